"""The few file operations that a journal is made of, behind a port, so that each of them can be made to fail."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from workbench.store.faults import StoreError

# Names that become files: one pattern for ids, one function that joins them to a folder.

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


def is_id(name: str) -> bool:
    """Returns whether a name may stand for a run on disk."""
    return _ID.fullmatch(name) is not None


def is_digest(name: str) -> bool:
    """Returns whether this is a sha256 in lower-case hex."""
    return _DIGEST.fullmatch(name) is not None


def safe_join(folder: Path, name: str) -> Path:
    """The path of an entry of a folder. Raises StoreError for anything that is not a plain id, or is a link."""
    if not is_id(name):
        raise StoreError(f"{name[:80]!a} is not a valid id (letters, digits, '.', '_', '-', at most 128)")
    path = folder / name
    if path.is_symlink():
        raise StoreError(f"{name} in the store is a link, and the store follows none")
    return path


class File(Protocol):
    """An open file that only grows."""

    def write(self, data: bytes) -> int:
        """Append, in one system call. Returns how many bytes went in, which may be fewer. Raises OSError."""
        ...

    def sync(self) -> None:
        """Bring the data to the device. Raises OSError."""
        ...

    def close(self) -> None: ...


class Disk(Protocol):
    """Makes and moves files."""

    def create(self, path: Path) -> File:
        """A new, empty file, mode 0600. Raises FileExistsError, OSError."""
        ...

    def replace(self, source: Path, target: Path) -> None:
        """Rename, over an existing target if there is one. Raises OSError."""
        ...

    def remove(self, path: Path) -> None:
        """Raises OSError."""
        ...

    def sync_folder(self, path: Path) -> None:
        """Make new names in a folder durable. Raises OSError."""
        ...


class LocalFile:
    """A file of the operating system, unbuffered."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def write(self, data: bytes) -> int:
        return os.write(self._fd, data)

    def sync(self) -> None:
        _data_sync(self._fd)

    def close(self) -> None:
        os.close(self._fd)


class LocalDisk:
    """The file system."""

    def create(self, path: Path) -> File:
        return LocalFile(path)

    def replace(self, source: Path, target: Path) -> None:
        source.replace(target)

    def remove(self, path: Path) -> None:
        path.unlink()

    def sync_folder(self, path: Path) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


_data_sync = getattr(os, "fdatasync", os.fsync)


def make_root(root: Path) -> None:
    """Make the folder of a store: private, and never taken for a part of a repository. Raises OSError."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    ignore = root / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")
        ignore.chmod(0o600)


NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Errors that mean a lack of space. If only a sync gives another error, the written data can be read."""


def write_whole(disk: Disk, path: Path, data: bytes) -> str:
    """Write a file completely or not at all.

    Returns why it may not survive a power cut: the error of a device that takes data and cannot sync; empty otherwise.
    Raises OSError if the data cannot be written.
    """
    undurable = ""

    def synced(sync: Callable[[], None]) -> None:
        nonlocal undurable
        try:
            sync()
        except OSError as fault:
            if fault.errno in NO_ROOM:
                raise
            undurable = fault.strerror or str(fault)

    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    if not path.parent.is_dir():
        path.parent.mkdir(mode=0o700)
        synced(lambda: disk.sync_folder(path.parent.parent))
    try:
        file = disk.create(part)
    except FileExistsError:
        disk.remove(part)
        file = disk.create(part)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[file.write(bytes(rest)) :]
        synced(file.sync)
    finally:
        file.close()
    disk.replace(part, path)
    synced(lambda: disk.sync_folder(path.parent))
    return undurable
