"""Advisory file locks that name their holder. A lock ends with its process: there is nothing to clean up."""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from weakref import WeakSet

from msgspec import Struct

from workbench.store.faults import StoreBusy, StoreError

WRITER_LOCK = "writer.lock"
"""In the folder of a run: held by the process that writes it."""
_TRIES = 10
_PAUSE = 0.02
"""Seconds. A process that only reads the holder keeps the lock for microseconds, and must not turn a writer away."""


class Holder(Struct, frozen=True):
    """The process behind a lock. ``pid`` is None when the file does not name one."""

    pid: int | None
    since: str = ""
    """UTC, ISO 8601."""
    command: str = ""

    def __str__(self) -> str:
        pid = "an unknown process" if self.pid is None else f"pid {self.pid}"
        since = f"{pid} since {self.since}" if self.since else pid
        return f"{since} ({self.command})" if self.command else since


class FileLock:
    """An exclusive lock on a file, held until ``release`` or the end of the process."""

    def __init__(self, path: Path, what: str, remedy: str = "") -> None:
        """Raises StoreBusy, which names the holder after ``what`` ("the run is being written"), with what can be done
        about it, and StoreError."""
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise StoreError(f"cannot open {path}: {error.strerror}") from error
        _open_locks.add(self)
        if not _locked(self._fd, fcntl.LOCK_EX):
            holder = _read_holder(self._fd)
            self._close()
            raise StoreBusy(f"{what} by {holder}" + (f": {remedy}" if remedy else ""), holder.pid)
        self.left_by = _read_holder(self._fd) if os.fstat(self._fd).st_size else None
        """The last holder, if it ended without releasing the lock; None otherwise."""
        body = {
            "pid": os.getpid(),
            "since": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:2]]),
        }
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, json.dumps(body).encode(), 0)
        except OSError:
            pass  # A full disk: the lock holds all the same, only its holder stays unnamed.

    def release(self) -> None:
        """Let go. May be called twice."""
        if self._fd >= 0:
            with suppress(OSError):
                os.ftruncate(self._fd, 0)
            self._close()

    def leave_to_parent(self) -> None:
        """In a fork: close the file that it has inherited. The lock stays its parent's, and ends with it."""
        if self._fd >= 0:
            self._close()

    def _close(self) -> None:
        os.close(self._fd)
        self._fd = -1


_open_locks: WeakSet[FileLock] = WeakSet()


def _leave_all() -> None:
    for lock in list(_open_locks):
        lock.leave_to_parent()


os.register_at_fork(after_in_child=_leave_all)


def holder_of(path: Path) -> Holder | None:
    """The holder of the lock, or None when it is free."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)  # A pipe would wait.
    except OSError:
        return None
    try:
        if _locked(fd, fcntl.LOCK_SH, tries=1):
            return None
        return _read_holder(fd)
    finally:
        os.close(fd)


def writer_of(folder: Path) -> Holder | None:
    """The process that appends to the run in a folder now."""
    return holder_of(folder / WRITER_LOCK)


def _locked(fd: int, mode: int, tries: int = _TRIES) -> bool:
    for left in range(tries, 0, -1):
        try:
            fcntl.flock(fd, mode | fcntl.LOCK_NB)
        except BlockingIOError:
            if left > 1:
                time.sleep(_PAUSE)
        else:
            return True
    return False


def _read_holder(fd: int) -> Holder:
    try:
        body = json.loads(os.pread(fd, 4096, 0))
        return Holder(int(body["pid"]), str(body["since"])[:40], ascii(body["command"])[1:-1][:200])
    except (OSError, ValueError, KeyError, TypeError):
        return Holder(None)
