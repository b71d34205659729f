"""Files of folders that anybody may have made: what is no plain file is not waited for."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read_plain(path: Path, most: int = -1) -> bytes:
    """A file, or its first bytes. Raises OSError, also for a pipe or a device: a read of those may never return."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no plain file")
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
    """Whether there is such a file. Of a name that no file can have ``Path.is_file`` raises."""
    return os.path.isfile(path)  # noqa: PTH113
