"""The one thread that writes to the database: follows every journal of the store, its own process's or not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import field

from workbench.dataclass import dataclass
from workbench.store import summary
from workbench.store.database import WRITES, DatabaseError, Engine, Handle
from workbench.store.faults import StoreError, UnknownRun
from workbench.store.run_ingest import BACKLOG_RECORDS, BATCH_RECORDS, NONSENSE, RunIngest
from workbench.store.store import Store

POLL_SECONDS = 1.0
FAULT_SECONDS = 10.0
"""Before another try after a fault."""
STOP_SECONDS = 30.0
_OF_THE_MACHINE = frozenset({0, 74, 75, 76, 107, 159, 236, 241, 243, 252, 394, 425, 1000, 1001, 1002})
"""Codes of the engine that no run is to blame for: files, memory, space, time, an end of the engine."""


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

    def stop(self, seconds: float = STOP_SECONDS) -> bool:
        """Send what was read and end; what was not stays for the next owner. False if it takes over ``seconds``.

        May be called twice, or without a start.
        """
        with self._wake:
            self._stopping = True
            self._wake.notify_all()
        if self._thread.ident is not None:
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def catch_up(self, seconds: float = 600.0) -> None:
        """Return when every record that is on disk now is in the tables. Raises StoreError when it cannot be."""
        with self._wake:
            self._asked += 1
            asked = self._asked
            self._wake.notify_all()
            self._wake.wait_for(lambda: self._passed >= asked or not self._thread.is_alive(), seconds)
            if self._passed < asked:
                what = f"is still behind after {seconds:.0f} s" if self._thread.is_alive() else "has no writer any more"
                raise StoreError(f"the index {what}")
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
                        self._wake.wait(FAULT_SECONDS if self._fault else POLL_SECONDS)
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
                with suppress(UnknownRun, FileNotFoundError):  # Removed since the folder was listed.
                    self._step(run_id, handle, flush=flush)
        except (StoreError, OSError) as error:
            self._fault = str(error)

    def _step(self, run_id: str, handle: Handle, *, flush: bool) -> None:
        folder = self._store.folder(run_id)
        settled, changed = self._settled.get(run_id), folder.stat().st_mtime_ns
        if settled is not None and not settled.written and settled.changed == changed:
            return
        written = self._store.writer(run_id) is not None
        now = _Settled(changed, summary.sizes(folder), written)
        if settled is not None and settled.sizes == now.sizes:
            self._settle(run_id, now)
            return
        ingest = self._active.get(run_id)
        if ingest is None:
            batch = BATCH_RECORDS if written else BACKLOG_RECORDS
            notes = self._store.notes_folder(run_id, make=True)
            ingest = RunIngest(folder, handle, self._identity, self._clock, batch=batch, notes=notes)
            self._active[run_id] = ingest
        try:
            self._records += ingest.step(flush=flush, enough=lambda: self._stopping)
        except (DatabaseError, OSError) as error:
            del self._active[run_id]
            if not isinstance(error, DatabaseError) or error.code in _OF_THE_MACHINE:
                raise
            self._refuse(run_id, str(error), now)
        except NONSENSE as error:
            self._refuse(run_id, f"{type(error).__name__}: {error}", now)
        else:
            self._refused.pop(run_id, None)
            if not ingest.waiting and not self._stopping:
                self._settle(run_id, now)

    def _refuse(self, run_id: str, reason: str, now: _Settled) -> None:
        """Leave a run out until it grows; the others must not wait for it."""
        self._refused[run_id] = reason
        self._active.pop(run_id, None)
        self._settle(run_id, now)

    def _settle(self, run_id: str, now: _Settled) -> None:
        """Nothing is waiting; a run that nobody wrote when it was looked at is let out of memory."""
        self._settled[run_id] = now
        if not now.written:
            self._active.pop(run_id, None)

    def _forget_removed(self, handle: Handle) -> None:
        """Drop the rows of runs whose folders were removed."""
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
