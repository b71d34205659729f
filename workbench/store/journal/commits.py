"""Writes the journals of this process to the device: by the clock, and at once where a caller waits for it. Runs of one
event loop that end together share a group commit, and none of them holds up the others."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from workbench.store.journal.disk import LocalDisk

if TYPE_CHECKING:
    import asyncio

_AT_ONCE = 8
"""Journals of one group whose files are synced at the same time: the device writes them down together (measured on
ext4: 1.1 ms a file one after the other, 0.4 ms side by side)."""
_LINGER = 5.0
"""Seconds that the thread waits for another journal before it ends."""


class Committed(Protocol):
    """A journal, as far as it is brought to the device."""

    @property
    def new_in(self) -> Path | None:
        """The folder that holds its own, where that name is too new to outlive a power cut; None where it is not."""
        ...

    def sync(self, named: Collection[Path] = ()) -> None:
        """Bring everything to the device. Of folders that are ``named``, names are durable already."""
        ...


class Commits:
    """One thread for all journals of a process; it is there while one is open."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due: dict[Committed, tuple[float, float]] = {}
        """By journal: when it is synced next, on the monotonic clock, and the seconds between two times."""
        self._asked: list[tuple[Committed, asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self._thread: threading.Thread | None = None
        self._pool: ThreadPoolExecutor | None = None

    def watch(self, journal: Committed, seconds: float) -> None:
        """Sync a journal every so many seconds, until ``forget``."""
        with self._changed:
            self._due[journal] = time.monotonic() + seconds, seconds
            self._wake(seconds)

    def forget(self, journal: Committed) -> None:
        """A journal that is closed. One that is being synced now may be so for another moment."""
        with self._changed:
            self._due.pop(journal, None)

    async def synced(self, journal: Committed) -> None:
        """Wait until everything in a journal is on the device. Those that ask meanwhile share the next commit."""
        import asyncio  # 30 ms, for every command that reads the store and writes no run

        loop = asyncio.get_running_loop()
        done = loop.create_future()
        with self._changed:
            self._asked.append((journal, loop, done))
            self._wake()
        await done

    def _wake(self, seconds: float = 0.0) -> None:
        """Have the thread look again, if it would sleep for longer than ``seconds``."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="journal commits", daemon=True)
            self._thread.start()
        elif seconds < 1.0:
            self._changed.notify()

    def _work(self) -> None:
        while True:
            with self._changed:
                now = time.monotonic()
                if not self._asked and not (wait := self._until(now)) <= 0:
                    self._changed.wait(wait)
                    now = time.monotonic()
                if not self._asked and not self._due:
                    self._thread = None
                    if self._pool is not None:
                        self._pool.shutdown(wait=False)
                        self._pool = None
                    return
                asked, self._asked = self._asked, []
                due = [journal for journal, (at, _) in self._due.items() if at <= now]
                for journal in due:
                    self._due[journal] = now + self._due[journal][1], self._due[journal][1]
            faults = self._bring(list(dict.fromkeys([*(journal for journal, _, _ in asked), *due])))
            by_loop: dict[asyncio.AbstractEventLoop, list[_Answer]] = {}
            for journal, loop, done in asked:
                by_loop.setdefault(loop, []).append((done, faults.get(journal)))
            for loop, answers in by_loop.items():
                with suppress(RuntimeError):  # The loop was closed: no caller waits any more.
                    loop.call_soon_threadsafe(_tell, answers)

    def _until(self, now: float) -> float:
        """Seconds until a journal is due."""
        return min((at for at, _ in self._due.values()), default=now + _LINGER) - now

    def _bring(self, journals: Sequence[Committed]) -> Mapping[Committed, Exception]:
        """Sync these, and the folders that hold new ones once; what went wrong beside the faults that a journal keeps
        to itself."""
        named = {folder for journal in journals if (folder := journal.new_in) is not None}
        for folder in list(named):
            try:
                LocalDisk().sync_folder(folder)
            except OSError:
                named.discard(folder)  # Each journal tries it for itself, and tells why.
        faults: dict[Committed, Exception] = {}

        def sync(journal: Committed) -> None:
            try:
                journal.sync(named)
            except Exception as fault:  # noqa: BLE001 - whatever it is, those who wait are told
                faults[journal] = fault

        if len(journals) > 1:
            self._pool = self._pool or ThreadPoolExecutor(_AT_ONCE, "journal sync")
            with suppress(RuntimeError):  # Python is ending, which ends pools first: now one after the other.
                list(self._pool.map(sync, journals))
                return faults
        for journal in journals:
            sync(journal)
        return faults


_Answer = tuple["asyncio.Future[None]", Exception | None]


def _tell(answers: Sequence[_Answer]) -> None:
    for done, fault in answers:
        if done.done():
            continue
        if fault is None:
            done.set_result(None)
        else:
            done.set_exception(fault)


def commits() -> Commits:
    """That of this process."""
    return _commits_of(os.getpid())


@cache
def _commits_of(_pid: int) -> Commits:
    """A fork has no thread of its parent's."""
    return Commits()
