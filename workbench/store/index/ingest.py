"""The one thread that writes to the database: follows every journal of the store, its own process's or not."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, suppress
from itertools import chain, islice
from math import inf
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from workbench.child_process import deaf_to_interrupts
from workbench.store.faults import StoreError, UnknownRun
from workbench.store.index.database import WRITES, Database, DatabaseError
from workbench.store.index.run_ingest import (
    MOST_BYTES,
    Batch,
    EncodedRuns,
    FurtherRows,
    IngestedRun,
    NewRows,
    OtherJournal,
    RunIngest,
    begin_worker,
    encoded_runs,
    encoded_stretches,
    read_ledger,
)
from workbench.store.index.tables import TableRow
from workbench.store.journal import annotation_file
from workbench.store.journal.lock import writer_of
from workbench.store.journal.reading import segments, written
from workbench.store.journal.record import crc_at_end
from workbench.store.store import Store

POLL_SECONDS = 1.0
FAULT_SECONDS = 10.0
"""Before another try after a fault."""
STOP_SECONDS = 30.0
BATCH_RECORDS = 100
"""Limit for runs that are being written: SQL may lack at most this many of their records, for at most
``BATCH_SECONDS``.
"""
BATCH_SECONDS = 10.0
BEHIND_RECORDS = 2_000
"""Batch size for a run that is written faster than it is read here: each batch costs an insert into each table, and the
engine starts a thread for each part of a table that it deletes, once 100 of them are to be deleted."""
MOST_FOLLOWED = 5_000
"""Records of a run that is being written up to which its rows are made as it grows: what makes them keeps some 2 KB for
each record. Of a longer one the rest become rows when somebody asks, or when the run has ended."""
ASKED_SECONDS = 60.0
"""For which a longer one is followed after that, so that further questions do not wait for all of it."""
BACKLOG_RECORDS = 10_000
"""Batch size for finished runs: large, because each batch costs an insert into each table."""
WORKERS = 2
"""Processes that read a backlog, while this one sends."""
PARALLEL_BYTES = 12 * 1024 * 1024
"""Of runs that the tables do not know: 2 s of work, and to start the processes takes 0.3 s."""
TASK_BYTES = 2 * 1024 * 1024
"""Of runs that are read together: a quarter of a second of work. At the end no process waits long for another."""
TASKS = 16
"""Begun before they are needed, so that the processes have work while this one sends."""
SEND_BYTES = 16 * 1024 * 1024
"""Of runs that are sent together. Each time costs an insert into each table and, later, merges: with 4 MB the engine
takes twice as long as with 16."""
FRESH_NS = 1_000_000_000
"""A folder that changed less than a second ago may change again without another time of change."""
_OF_THE_MACHINE = frozenset({0, 74, 75, 76, 107, 159, 236, 241, 243, 252, 394, 425, 1000, 1001, 1002})
"""Codes of the engine that no run is to blame for: files, memory, space, time, an end of the engine."""


class Progress(Struct, frozen=True):
    """How far the index is."""

    records: int = 0
    """Sent since the start."""
    waiting: int = 0
    """Read and not yet sent."""
    fault: str = ""
    """Why nothing is sent at the moment; sending is retried."""
    refused: dict[str, str] = field(default_factory=dict)
    """Runs that cannot become rows, and why; their journals stay unchanged."""
    lacking: dict[str, int] = field(default_factory=dict)
    """Runs whose journals lack records, and how many."""


class Shipment(Struct, frozen=True):
    """Differences for a database that several people use."""

    further: Callable[[Path], FurtherRows]
    """Makes the rows that hold the journals themselves; may go to another process."""
    prepare: Callable[[Database], None]
    """Called before the first look at the tables, until it succeeds. Raises StoreError."""


class Writable(Protocol):
    """An engine, as far as its writer needs it."""

    def handle(self, settings: str = ...) -> Database: ...

    def release(self, handle: Any) -> None: ...


class Ingester:
    """Copies journals into tables until it is stopped."""

    def __init__(
        self,
        store: Store,
        engine: Writable,
        clock: Callable[[], float] = time.monotonic,
        shipment: Shipment | None = None,
    ) -> None:
        """``clock`` gives seconds."""
        self._engine = engine
        self._follower = Follower(store, clock, shipment=shipment)
        self._ships = shipment is not None
        self._fault = ""
        self._wake = threading.Condition()
        self._asked = 0
        """Complete passes that somebody waits for, counted from the start."""
        self._passed = 0
        self._thread = threading.Thread(target=self._run, name="index writer", daemon=True)

    def start(self) -> None:
        """Begin to follow the journals."""
        self._thread.start()

    def stop(self, seconds: float = STOP_SECONDS) -> bool:
        """Send what was read and end; the rest stays for the next owner. False if it takes over ``seconds``.

        May be called twice, or without a start.
        """
        with self._wake:
            self._follower.stopping = True
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
                raise StoreError(f"the {'server' if self._ships else 'index'} {what}")
            if self._fault:
                why = "" if self._ships else "the index cannot be brought up to date: "
                raise StoreError(f"{why}{self._fault}")

    @property
    def progress(self) -> Progress:
        follower = self._follower
        return Progress(follower.sent, follower.waiting, self._fault, follower.refused, follower.lacking)

    # -- the thread --------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        handle = self._engine.handle(WRITES)
        try:
            while True:
                with self._wake:
                    if self._asked == self._passed and not self._follower.stopping:
                        self._wake.wait(FAULT_SECONDS if self._fault else POLL_SECONDS)
                    asked, stopping = self._asked, self._follower.stopping
                try:
                    self._fault = ""
                    self._follower.follow(handle, flush=stopping or asked > self._passed)
                except (StoreError, OSError) as error:
                    self._fault = str(error)
                with self._wake:
                    self._passed = asked
                    self._wake.notify_all()
                if stopping:
                    return
        finally:
            self._engine.release(handle)


class _UnknownRun(Struct, frozen=True):
    """A run that the tables do not know."""

    folder: Path
    size: int
    """Bytes of its records."""
    changed: int
    """When its folder last changed, in ns since 1970."""


def _tasks(found: Iterable[_UnknownRun], least: int) -> Iterator[list[_UnknownRun]]:
    """Runs that are read together, if all are ``least`` bytes or more. They are looked for as they are needed, while
    others are already being read.
    """
    waiting: list[list[_UnknownRun]] = []
    task: list[_UnknownRun] = []
    size = held = 0
    for run in found:
        if task and size + run.size > TASK_BYTES:
            waiting.append(task)
            task, size = [], 0
        task.append(run)
        size += run.size
        held += run.size
        if held >= least:
            yield from waiting
            waiting.clear()
    if task and held >= least:
        yield from waiting
        yield task


class Follower:
    """Follows all runs of a store. Belongs to the thread that writes to the database."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float],
        parallel_bytes: int = PARALLEL_BYTES,
        long_bytes: int = MOST_BYTES,
        shipment: Shipment | None = None,
    ) -> None:
        """``clock`` gives seconds. ``parallel_bytes``: of runs to read, from which more processes read them.
        ``long_bytes``: of one run, above which a process reads it in stretches."""
        self._store = store
        self._shipment = shipment
        self._further = shipment.further if shipment is not None else None
        self._removed = store.removed if shipment is None else store.removed_there
        self._parallel_bytes = parallel_bytes
        self._long_bytes = long_bytes
        self._clock = clock
        self._active: dict[str, RunIngest] = {}
        """Runs that are being written."""
        self._ledger: dict[str, IngestedRun] | None = None
        """The runs that the tables hold, and those that wait in the batch; read with the first pass."""
        self._batch = Batch()
        self._asked = -inf
        """When somebody last asked for all records, by the clock."""
        self.sent = 0
        """Records, since the start."""
        self.stopping = False
        """Read no more; send what was read."""

    @property
    def waiting(self) -> int:
        """Records that were read and not sent."""
        return self._batch.records

    @property
    def refused(self) -> dict[str, str]:
        """Runs that make no sense as rows, and why."""
        return {run_id: one.refused for run_id, one in list((self._ledger or {}).items()) if one.refused}

    @property
    def lacking(self) -> dict[str, int]:
        """Runs of which fewer records were read than their journals hold, and by how many."""
        return {run_id: one.lacking for run_id, one in list((self._ledger or {}).items()) if one.lacking > 0}

    def follow(self, database: Database, *, flush: bool = False) -> None:
        """Read what is new in all runs, and send it when it is due, or with ``flush``. A failed send is repeated by the
        next call. Raises StoreError, OSError.
        """
        run_ids = [] if self.stopping else self._run_ids()
        if flush:
            self._asked = self._clock()
        if self._ledger is None:
            if self._shipment is None:
                self._ledger = read_ledger(database)
            else:
                self._shipment.prepare(database)
                self._ledger = read_ledger(database, run_ids[0], run_ids[-1]) if run_ids else {}
        ledger = self._ledger
        self._forget_removed(database, ledger)
        self._read_backlog(run_ids, database, ledger)
        for run_id in run_ids:
            with suppress(UnknownRun, FileNotFoundError):  # Removed since the folder was listed.
                self._step(run_id, database, ledger)
            if self.stopping:
                break
        if flush or self._clock() - self._batch.since >= BATCH_SECONDS:
            self._send(database, ledger)

    def _run_ids(self) -> list[str]:
        """Runs of this store, oldest first, without those copied from a server, which has them already."""
        return self._store.run_ids() if self._shipment is None else self._store.own_run_ids()

    def _read_backlog(self, run_ids: Sequence[str], database: Database, ledger: dict[str, IngestedRun]) -> None:
        """Have many runs, or a long one, that the tables do not know read by more processes. What is left out or
        refused here is read one by one, as others are. Raises DatabaseError."""
        short = (run for run in self._unknown_runs(run_ids, ledger) if run.size <= self._long_bytes)
        tasks = _tasks(short, self._parallel_bytes)
        if (first := next(tasks, None)) is not None:
            with (
                suppress(BrokenProcessPool, OSError),
                ProcessPoolExecutor(WORKERS, get_context("spawn"), begin_worker) as pool,
            ):
                try:
                    self._send_read(pool, chain([first], tasks), database, ledger)
                finally:
                    pool.shutdown(wait=False, cancel_futures=True)
        for run in self._unknown_runs(run_ids, ledger):
            if run.size > self._long_bytes and not self.stopping:
                self._send_stretches(run, database, ledger)

    def _unknown_runs(self, run_ids: Iterable[str], ledger: Mapping[str, IngestedRun]) -> Iterator[_UnknownRun]:
        """Runs that the tables do not know and that no process wrote for a second."""
        for run_id in run_ids:
            if run_id in ledger or run_id in self._active:
                continue
            with suppress(UnknownRun, OSError):
                folder = self._store.folder(run_id)
                changed = folder.stat().st_mtime_ns
                if time.time_ns() - changed <= FRESH_NS or writer_of(folder) is not None:
                    continue
                size = sum((folder / name).stat().st_size for name in segments(folder))
                yield _UnknownRun(folder, size, changed)

    def _send_read(
        self,
        pool: ProcessPoolExecutor,
        tasks: Iterator[list[_UnknownRun]],
        database: Database,
        ledger: dict[str, IngestedRun],
    ) -> None:
        """Send what the processes read, and let them read more meanwhile."""
        changed: dict[str, int] = {}
        begun: deque[tuple[Future[EncodedRuns], int]] = deque()

        def begin(most: int) -> None:
            for task in islice(tasks, most):
                changed.update((run.folder.name, run.changed) for run in task)
                future = pool.submit(encoded_runs, [run.folder for run in task], self._further)
                begun.append((future, sum(run.size for run in task)))

        with deaf_to_interrupts():
            begin(TASKS)
        while begun and not self.stopping:
            read, size = list[EncodedRuns](), 0
            while begun and size < SEND_BYTES and not self.stopping:
                future, bytes_read = begun.popleft()
                read.append(future.result())
                size += bytes_read
                begin(1)
            self._send_encoded(EncodedRuns.joined(read), database, ledger, changed)

    def _send_stretches(self, run: _UnknownRun, database: Database, ledger: dict[str, IngestedRun]) -> None:
        """Send what a process reads of a long run, while it reads on."""
        with suppress(OSError), closing(encoded_stretches(run.folder, BACKLOG_RECORDS, self._further)) as stretches:
            for made in stretches:
                taken = self._send_encoded(made, database, ledger, {run.folder.name: run.changed})
                if self.stopping or not taken:
                    return

    def _send_encoded(
        self, made: EncodedRuns, database: Database, ledger: dict[str, IngestedRun], changed: Mapping[str, int]
    ) -> bool:
        """Returns whether the engine took the rows. Raises DatabaseError for a fault that is not theirs."""
        try:
            ledger.update({one.run_id: one for one in made.send(database, changed)})
        except DatabaseError as error:
            if error.code in _OF_THE_MACHINE:
                raise
            return False
        self.sent += made.records
        return True

    def _step(self, run_id: str, database: Database, ledger: dict[str, IngestedRun]) -> None:
        """Read what is new of a run. An indexed run without a writer costs one look at its folder's time: its segments
        do not grow, and a process that resumes it begins a new one.
        """
        folder = self._store.folder(run_id)
        known, changed = ledger.get(run_id), folder.stat().st_mtime_ns
        if known is not None and known.changed == changed:
            return
        writer = writer_of(folder) is not None
        if writer and known is not None and self._is_left(known):
            self._active.pop(run_id, None)
            return
        settled = changed if not writer and time.time_ns() - changed > FRESH_NS else 0
        ingest = self._active.get(run_id)
        followed = ingest is not None
        if ingest is None:
            if known is not None and not writer and self._is_whole(run_id, known):
                if settled:
                    self._add(replace(known, changed=settled), NewRows(0, self._row_if_left(run_id), False), ledger)
                return
            ingest = self._active[run_id] = RunIngest(folder, known, self._further)
        try:
            self._read(ingest, database, ledger, grows=writer)
        except OtherJournal:
            self._forget(run_id, database, ledger)
            self._step(run_id, database, ledger)
            return
        if ingest.ingested.refused:
            self._add(replace(ingest.ingested, changed=changed), NewRows(0, [], False), ledger)
        elif settled and not self.stopping:
            self._add(replace(ingest.ingested, changed=settled), NewRows(0, [], False), ledger)
        if not writer and not self.stopping:
            del self._active[run_id]
        if followed and ingest.ended:
            self._send(database, ledger)  # A run that has just ended shows without a wait.

    def _row_if_left(self, run_id: str) -> list[TableRow]:
        """The row of a run whose process was killed, since the tables may call it running; no row of any other."""
        return RunIngest.row_of(self._store.folder(run_id)) if not self._store.summary(run_id).finished else []

    def _is_left(self, known: IngestedRun) -> bool:
        """Returns whether a run that is being written is too long to be followed unasked. A server gets all runs as
        they grow: others look at them there."""
        asked = self._clock() - self._asked < ASKED_SECONDS
        return self._shipment is None and known.records >= MOST_FOLLOWED and not asked

    def _read(self, ingest: RunIngest, database: Database, ledger: dict[str, IngestedRun], *, grows: bool) -> None:
        """Read to the end of a run, or up to the records that are followed of one that is being written: that may have
        no end while its program is fast."""
        most, more = BATCH_RECORDS if grows else BACKLOG_RECORDS, True
        while more and not self.stopping and not (grows and self._is_left(ingest.ingested)):
            if self._batch.records >= most:
                self._send(database, ledger)
            made = ingest.read(most - self._batch.records)
            if made.records or made.rows:
                self._add(ingest.ingested, made, ledger)
            more = made.more
            if more:
                self._send(database, ledger)
                most = max(most, BEHIND_RECORDS)
        if grows and self._batch.records >= BATCH_RECORDS:
            self._send(database, ledger)

    def _add(self, ingested: IngestedRun, made: NewRows, ledger: dict[str, IngestedRun]) -> None:
        if not self._batch.rows:
            self._batch.since = self._clock()
        self._batch.add(ingested, made)
        ledger[ingested.run_id] = ingested

    def _is_whole(self, run_id: str, known: IngestedRun) -> bool:
        """Returns whether the tables hold all records of a run, by the size of its last segment and the record it ends
        with."""
        folder = self._store.folder(run_id)
        last = max(segments(folder), default="")
        if known.annotated != annotation_file.size_of(folder):
            return False
        if known.refused or last != known.segment or written(folder / last) != known.bytes:
            return False
        return crc_at_end(folder / last, known.bytes) == known.crc

    def _send(self, database: Database, ledger: dict[str, IngestedRun]) -> None:
        """Send the batch. If the engine refuses its content, send each run by itself, so that one run does not block
        the others.
        """
        batch = self._batch
        if not batch.ingested:
            return
        try:
            batch.send(database)
        except DatabaseError as error:
            if error.code in _OF_THE_MACHINE:
                raise
            for one in batch.apart():
                self._send_apart(one, database, ledger)
        self.sent += batch.records
        self._batch = Batch()

    def _send_apart(self, one: Batch, database: Database, ledger: dict[str, IngestedRun]) -> None:
        try:
            one.send(database)
        except DatabaseError as error:
            if error.code in _OF_THE_MACHINE:
                raise
            for run_id, ingested in one.ingested.items():
                refused = replace(ingested, refused=str(error))
                ledger[run_id] = refused
                self._active.pop(run_id, None)
                Batch(ingested={run_id: refused}).send(database)

    def _forget_removed(self, database: Database, ledger: dict[str, IngestedRun]) -> None:
        """Drop the rows of removed runs."""
        if not self._removed.is_dir():
            return
        for removed in list(self._removed.iterdir()):
            self._forget(removed.name, database, ledger)
            removed.unlink()

    def _forget(self, run_id: str, database: Database, ledger: dict[str, IngestedRun]) -> None:
        """Drop all that is in the tables of a run, and what waits for them."""
        self._batch.drop(run_id)
        delete_run(database, run_id)
        for table in ("journal_lines", "journal_files", "origins") if self._shipment is not None else ():
            database.delete(table, "run_id = {run:String}", {"run": run_id})
        ledger.pop(run_id, None)
        self._active.pop(run_id, None)


def delete_run(database: Database, run_id: str) -> None:
    """Delete a run's rows. Bodies stay, other runs may share them; a rebuild leaves them out. Raises DatabaseError."""
    parameters = {"run": run_id}
    sessions = database.query("SELECT DISTINCT session_id FROM messages WHERE run_id = {run:String}", parameters)
    names = [str(name) for (name,) in sessions.rows]
    shared = database.query(
        "SELECT DISTINCT session_id FROM messages WHERE session_id IN {names:Array(String)} AND run_id != {run:String}",
        {"names": names, "run": run_id},
    )
    own = sorted(set(names) - {str(name) for (name,) in shared.rows})
    for table in ("contexts", "context_cards") if own else ():
        database.delete(table, "session_id IN {own:Array(String)}", {"own": own})
    for table in ("messages", "runs", "events", "evals", "annotations", "ingested"):
        database.delete(table, "run_id = {run:String}", parameters)
