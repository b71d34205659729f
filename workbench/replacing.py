"""Files that are replaced whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
