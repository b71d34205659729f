"""Files, read without waiting for what is not a plain file, and replaced whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def read_plain(path: Path, most: int = -1) -> bytes:
    """A file, or its first bytes. Raises OSError, also for a pipe or a device: a read of those may never return."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a plain file")
        return file.read(most)


MOST_GIVEN = 64 * 1024 * 1024
"""Bytes of a file that a person names on a command line."""


def read_given(path: Path) -> str:
    """The text of a file that a person named, who may mean a pipe. Raises OSError, also for one without an end, and
    UnicodeDecodeError."""
    with path.open("rb") as file:
        data = file.read(MOST_GIVEN + 1)
    if len(data) > MOST_GIVEN:
        raise OSError(errno.EFBIG, f"it is larger than {MOST_GIVEN // 2**20} MB")
    return data.decode("utf-8")


def is_there(path: Path) -> bool:
    """Returns whether there is such a file. Of a name that no file can have ``Path.is_file`` raises."""
    return os.path.isfile(path)  # noqa: PTH113


@contextmanager
def replacing(path: Path, mode: int = 0o644) -> Iterator[Path]:
    """A fresh file beside ``path``, to be written: it takes its place when the block ends, and is gone when it fails.

    Links are followed and permissions kept; ``mode`` is that of a file which was not there. Raises OSError.
    """
    target = Path(os.path.realpath(path))
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".new", dir=target.parent)
    os.close(descriptor)
    fresh = Path(name)
    try:
        yield fresh
        fresh.chmod(target.stat().st_mode & 0o7777 if target.exists() else mode)
        fresh.replace(target)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def write_whole(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Put bytes in place of a file, also if the machine stops meanwhile; see ``replacing``. Raises OSError."""
    with replacing(path, mode) as fresh, fresh.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
