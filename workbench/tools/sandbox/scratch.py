"""The folder of this process for what its commands need, and the end of what dead processes have left."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workbench.tools.sandbox.cgroup import end_group

_PREFIX = "workbench-"
_LOCK, _GROUPS = "owner.lock", "cgroups"
_BORN_S = 60.0
"""Seconds after which a folder without a lock is one whose owner died before it had one."""
_NAME = re.compile(r"workbench-[0-9]+-[0-9A-Za-z_]+")


class Scratch:
    """A folder that is removed when this process ends, or by the next one that starts after it was killed: whoever
    holds its lock lives. Made when it is first asked for."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._process = 0
        self._lock = -1

    @property
    def folder(self) -> Path:
        if self._folder is None or self._process != os.getpid():
            clear_ownerless()
            self._folder, self._process = (
                Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=_place())),
                os.getpid(),
            )
            self._folder.chmod(0o711)  # Commands of root run as another user, who has to reach what is theirs in it.
            self._lock = os.open(self._folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            atexit.register(self._remove, self._folder, os.getpid())
        return self._folder

    @contextmanager
    def subfolder(self, name: str) -> Iterator[Path]:
        """A new folder in it, for as long as it is used."""
        made = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.folder))
        try:
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)

    def note_group(self, group: Path) -> None:
        """Remember a cgroup that is to end with this process."""
        with (self.folder / _GROUPS).open("a") as file:
            file.write(f"{group}\n")

    def _remove(self, folder: Path, process: int) -> None:
        if os.getpid() == process:
            _clear(folder)


SCRATCH = Scratch()


def clear_ownerless() -> list[Path]:
    """Remove the folders and cgroups that dead processes of this user have left; the folders that were removed."""
    removed: list[Path] = []
    for folder in sorted(_place().glob(f"{_PREFIX}*")):
        if not _NAME.fullmatch(folder.name) or not _is_ours(folder):
            continue
        if not (folder / _LOCK).exists():
            if _age_s(folder) > _BORN_S:
                _clear(folder)
                removed.append(folder)
        elif (lock := _taken(folder / _LOCK)) is not None:
            try:
                _clear(folder)
                removed.append(folder)
            finally:
                os.close(lock)
    return removed


def _clear(folder: Path) -> None:
    """End what is noted in a folder and remove it, its lock last: whoever is killed meanwhile leaves the rest to the
    next. Where a cgroup will not end, its note stays."""
    if not _end_groups(folder / _GROUPS):
        return
    with contextlib.suppress(OSError):
        for entry in folder.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            elif entry.name != _LOCK:
                entry.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def _age_s(folder: Path) -> float:
    try:
        return time.time() - folder.stat().st_mtime
    except OSError:
        return 0.0


def _place() -> Path:
    """Root's lies where every user gets to."""
    return Path("/tmp") if os.geteuid() == 0 else Path(tempfile.gettempdir())


def _is_ours(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        status = folder.lstat()
        return status.st_uid == os.geteuid() and folder.is_dir() and not folder.is_symlink()
    return False


def _taken(lock: Path) -> int | None:
    """The lock, unless a process holds it."""
    try:
        file = os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        return None
    return file


def _end_groups(listed: Path) -> bool:
    """Returns whether all that are listed are gone."""
    try:
        groups = [Path(line) for line in listed.read_text().splitlines()]
    except OSError:
        return True
    gone = True
    for group in groups:
        try:
            if group.exists():
                end_group(group)
        except (OSError, ValueError):
            gone = False
    return gone
