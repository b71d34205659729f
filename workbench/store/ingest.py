"""The one thread that writes to the database: follows every journal of the store, its own process's or not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from workbench.store import summary
from workbench.store.database import WRITES, Engine, Handle
from workbench.store.faults import StoreError
from workbench.store.run_ingest import BACKLOG_RECORDS, BATCH_RECORDS, RunIngest
from workbench.store.store import Store

POLL_SECONDS = 1.0
STOP_SECONDS = 30.0


@dataclass(frozen=True)
class Progress:
    """How far the index is."""

    records: int = 0
    """Sent since the start."""
    waiting: int = 0
    """Read and not yet sent."""
    fault: str = ""
    """Why nothing is sent at the moment; tried again on its own."""
    refused: dict[str, str] = field(default_factory=dict)
    """Runs that make no sense as rows, and why; their journals are as they were."""


@dataclass(frozen=True)
class _Settled:
    """A run of which nothing is waiting, as it looked then."""

    changed: int
    """Modification time of its folder, in ns."""
    sizes: dict[str, int]
    written: bool
    """Somebody was writing: segments grow without changing the folder."""


class Ingester:
    """Copies journals into tables until it is stopped."""

    def __init__(
        self, store: Store, engine: Engine, identity: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """``identity`` is the database's; ``clock`` gives seconds."""
        self._store = store
        self._engine = engine
        self._identity = identity
        self._clock = clock
        self._active: dict[str, RunIngest] = {}
        self._settled: dict[str, _Settled] = {}
        self._records = 0
        self._fault = ""
        self._refused: dict[str, str] = {}
        self._wake = threading.Condition()
        self._asked = 0
        """Complete passes that somebody waits for, counted from the start."""
        self._passed = 0
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="index writer", daemon=True)

    def start(self) -> None:
        """Begin to follow the journals."""
        self._thread.start()

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Send what was read and end; what was not stays for the next owner. Gives up waiting after ``seconds``.

        May be called twice, or without a start.
        """
        with self._wake:
            self._stopping = True
            self._wake.notify_all()
        if self._thread.ident is not None:
            self._thread.join(seconds)

    def catch_up(self, seconds: float = 600.0) -> None:
        """Return when every record that is on disk now is in the tables. Raises StoreError when it cannot be."""
        with self._wake:
            self._asked += 1
            asked = self._asked
            self._wake.notify_all()
            done = self._wake.wait_for(lambda: self._passed >= asked or not self._thread.is_alive(), seconds)
            if not done:
                raise StoreError(f"the index is still {self.progress.waiting} records behind after {seconds:.0f} s")
            if self._fault:
                raise StoreError(f"the index cannot be brought up to date: {self._fault}")

    @property
    def progress(self) -> Progress:
        waiting = sum(ingest.waiting for ingest in list(self._active.values()))
        return Progress(self._records, waiting, self._fault, dict(self._refused))

    # -- the thread --------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        handle = self._engine.handle(WRITES)
        try:
            while True:
                with self._wake:
                    if self._asked == self._passed and not self._stopping:
                        self._wake.wait(POLL_SECONDS)
                    asked, stopping = self._asked, self._stopping
                self._pass(handle, flush=stopping or asked > self._passed)
                with self._wake:
                    self._passed = asked
                    self._wake.notify_all()
                if stopping:
                    return
        finally:
            self._engine.release(handle)

    def _pass(self, handle: Handle, *, flush: bool) -> None:
        self._fault = ""
        try:
            self._forget_removed(handle)
            for run_id in list(self._active) if self._stopping else self._store.run_ids():
                self._step(run_id, handle, flush=flush)
        except (StoreError, OSError) as error:
            self._fault = str(error)

    def _step(self, run_id: str, handle: Handle, *, flush: bool) -> None:
        folder = self._store.folder(run_id)
        settled, changed = self._settled.get(run_id), folder.stat().st_mtime_ns
        if settled is not None and not settled.written and settled.changed == changed:
            return
        sizes = summary.sizes(folder)
        if settled is not None and settled.sizes == sizes:
            self._settle(run_id, changed, sizes)
            return
        ingest = self._active.get(run_id)
        if ingest is None:
            batch = BATCH_RECORDS if self._store.writer(run_id) is not None else BACKLOG_RECORDS
            ingest = RunIngest(folder, handle, self._identity, self._clock, batch=batch)
            self._active[run_id] = ingest
        try:
            self._records += ingest.step(flush=flush, enough=lambda: self._stopping)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            self._refused[run_id] = f"{type(error).__name__}: {error}"
            self._settle(run_id, changed, sizes)
        except (StoreError, OSError):
            del self._active[run_id]
            raise
        else:
            self._refused.pop(run_id, None)
            if not ingest.waiting and not self._stopping:
                self._settle(run_id, changed, sizes)

    def _settle(self, run_id: str, changed: int, sizes: dict[str, int]) -> None:
        """Nothing is waiting; a run that nobody writes is let out of memory."""
        written = self._store.writer(run_id) is not None
        self._settled[run_id] = _Settled(changed, sizes, written)
        if not written:
            self._active.pop(run_id, None)

    def _forget_removed(self, handle: Handle) -> None:
        """Drop the rows of runs whose folders were removed (storage.md 5)."""
        if not self._store.removed.is_dir():
            return
        for note in list(self._store.removed.iterdir()):
            delete_run(handle, note.name)
            self._settled.pop(note.name, None)
            self._active.pop(note.name, None)
            note.unlink()


def delete_run(handle: Handle, run_id: str) -> None:
    """Delete a run's rows. Bodies stay, other runs may share them; a rebuild leaves them out. Raises DatabaseError."""
    parameters = {"run": run_id}
    own = (
        "session_id IN (SELECT session_id FROM messages WHERE run_id = {run:String})"
        " AND session_id NOT IN (SELECT session_id FROM messages WHERE run_id != {run:String})"
    )
    for table in ("contexts", "context_cards"):
        handle.query(f"DELETE FROM {table} WHERE {own}", parameters)
    for table in ("messages", "runs", "events", "evals"):
        handle.query(f"DELETE FROM {table} WHERE run_id = {{run:String}}", parameters)
