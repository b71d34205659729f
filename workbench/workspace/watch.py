"""Notices saves: watches folders, because saving replaces files, and reads a file only when no process writes it.

Every kind of event means "look again"; a look is a read lease if the file system grants one, else a quiet moment;
content that looks unfinished needs a second, equal look.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal

from watchfiles import watch

STEP_MS = 5
"""Milliseconds without a change after which a group of changes is reported. The watcher wakes as often: at 1 ms that
was half of what an idle app used of a processor."""
DEBOUNCE_MS = 50
"""Milliseconds after which a group is reported although changes go on."""
QUIET_SECONDS = 0.05
"""Seconds for which size and time of change must not move if there are no leases, and before a second look."""
BUSY_SECONDS = 5.0
"""How long a file that somebody keeps open for writing is waited for."""
GONE_SECONDS = 0.2
"""How long a file must be missing before it is gone: some programs delete and create."""
LOOK_AGAIN_MS = 500
"""How often the set of watched folders is looked at."""

Lease = Literal["free", "busy", "unsupported"]


def lease(descriptor: int) -> Lease:
    """Returns whether anybody has the file open for writing, by asking the kernel for a read lease and giving it
    back."""
    if not hasattr(fcntl, "F_SETLEASE"):
        return "unsupported"
    try:
        # A broken lease is announced by a signal; the default one would end the process, this one is ignored.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as fault:
        return "busy" if fault.errno == errno.EAGAIN else "unsupported"
    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return "free"


def read_settled(file: Path, before: bytes | None = None) -> bytes:
    """The bytes of a file at a moment when its writer was done.

    ``before`` is the last version, if known: a text that is empty, lost its final newline or is a beginning of it is
    believed only when it looks the same twice. Raises OSError, FileNotFoundError when there is no such file.
    """
    data = _look(file)
    while before is not None and _suspect(data, before):
        time.sleep(QUIET_SECONDS)
        again = _look(file)
        if again == data:
            break
        data = again
    return data


def _suspect(data: bytes, before: bytes) -> bool:
    if data == before:
        return False
    return not data or before.startswith(data) or (before.endswith(b"\n") and not data.endswith(b"\n"))


def _look(file: Path) -> bytes:
    give_up = time.monotonic() + BUSY_SECONDS
    while True:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            state = lease(descriptor)
            if state == "free" or (state == "unsupported" and _quiet(descriptor)) or time.monotonic() > give_up:
                return _read(descriptor)
        finally:
            os.close(descriptor)
        time.sleep(STEP_MS / 1000)


def _quiet(descriptor: int) -> bool:
    before = os.fstat(descriptor)
    time.sleep(QUIET_SECONDS)
    after = os.fstat(descriptor)
    return (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)


def _read(descriptor: int) -> bytes:
    parts = []
    while part := os.read(descriptor, 1 << 20):
        parts.append(part)
    return b"".join(parts)


class Watcher:
    """Calls ``on_saved(file, content)``, in its own thread, whenever a watched file has new, complete content; a
    removed file has the content None.
    """

    def __init__(
        self,
        files: Callable[[], Iterable[Path]],
        on_saved: Callable[[Path, bytes | None], None],
        known: Mapping[Path, bytes] | None = None,
    ) -> None:
        """``files`` gives the files to watch, and is asked again while watching. ``known`` is their content as it was
        read; of other files, the first look is what they are compared with."""
        self._files = files
        self._on_saved = on_saved
        self._known: dict[Path, bytes | None] = dict(known or {})
        self._signatures: dict[Path, tuple[int, ...] | None] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        """Begin to watch; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """Stop watching; returns when the thread has ended, within a second."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(1.0)

    def _run(self) -> None:
        while not self._stop.is_set():
            files = tuple(self._files())
            folders = _folders(files)
            if not folders:
                self._stop.wait(LOOK_AGAIN_MS / 1000)
                continue
            self._watch(files, folders)

    def _watch(self, files: tuple[Path, ...], folders: frozenset[Path]) -> None:
        """Watch until the files to watch are others, or a folder cannot be watched any more."""
        names = {name for file in files for name in _names(file)}
        changes = watch(
            *folders,
            watch_filter=lambda _, path: Path(path).name in names,
            debounce=DEBOUNCE_MS,
            step=STEP_MS,
            stop_event=self._stop,
            rust_timeout=LOOK_AGAIN_MS,
            yield_on_timeout=True,
            raise_interrupt=False,
            recursive=False,
        )
        self._look_at(files)
        try:
            for changed in changes:
                # Between the look above and the kernel's first notice a save goes unseen: each time-out finds it.
                told = {Path(path).name for _, path in changed}
                # A look at all would read them beside the thread that reads the one that was saved.
                self._look_at([file for file in files if (told and told & _names(file)) or self._moved(file)])
                now = tuple(self._files())
                if now != files or _folders(now) != folders:
                    return
        except (FileNotFoundError, OSError, RuntimeError):
            # The folder itself went away; it is looked for again.
            self._look_at(files)
            self._stop.wait(LOOK_AGAIN_MS / 1000)

    def _moved(self, file: Path) -> bool:
        """Returns whether it is another one, or of another time or size, than at the last look."""
        return _signature(file) != self._signatures.get(file)

    def _look_at(self, files: Iterable[Path]) -> None:
        for file in files:
            self._signatures[file] = _signature(file)
            unknown = file not in self._known
            before = self._known.get(file)
            data = self._content(file, before)
            self._known[file] = data
            if not unknown and data != before and not self._stop.is_set():
                self._on_saved(file, data)

    def _content(self, file: Path, before: bytes | None) -> bytes | None:
        """The complete content; None if the file is gone or cannot be read, and stays so."""
        for last in (False, True):
            try:
                return read_settled(file, before)
            except OSError:
                if not last:
                    self._stop.wait(GONE_SECONDS)
        return None


def _signature(file: Path) -> tuple[int, ...] | None:
    """Values that change when a file is saved; None when it is gone."""
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


def _names(file: Path) -> set[str]:
    """The names by which the kernel tells of changes of a file: its own, and that of what it links to."""
    return {file.name, _real(file).name}


def _real(file: Path) -> Path:
    return Path(os.path.realpath(file))


def _folders(files: Iterable[Path]) -> frozenset[Path]:
    """The folders of the files and of their link targets, as far as they exist."""
    folders = {folder for file in files for folder in (file.parent, _real(file).parent)}
    return frozenset(folder for folder in folders if folder.is_dir())
