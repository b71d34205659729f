"""Journals made into rows, and rows sent in batches that hold many short runs or a stretch of a long one."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Protocol

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from workbench.child_process import deaf_to_interrupts, follow_parent
from workbench.store.index.database import Database
from workbench.store.index.rows import RowMaker
from workbench.store.index.tables import ROW_TYPES, BlobRow, PartRow, RunRow, TableRow
from workbench.store.index.values import json_rows
from workbench.store.journal import annotation_file
from workbench.store.journal.lock import writer_of
from workbench.store.journal.reading import Health, JournalLine, Tail
from workbench.store.journal.record import crc_of, data_of

# What of each journal the tables hold: rows of the database itself, so that both are always of one age.


class IngestedRun(Struct, frozen=True):
    """How far one run is in the tables."""

    run_id: str
    segment: str = ""
    bytes: int = 0
    """Of the segment, up to the end of the last record."""
    seq: int = 0
    """Of the last record."""
    crc: str = ""
    """Of the last record, 8 hex digits: another one there says that this is another journal."""
    records: int = 0
    changed: int = 0
    """When its folder had last changed as all of it was in the tables, in ns since 1970; 0 while it is written."""
    refused: str = ""
    """Why the rest makes no rows."""
    annotated: int = 0
    """Bytes of the annotations that the tables hold."""
    unread: int = 0
    """Damaged lines behind the last record."""

    @property
    def lacking(self) -> int:
        """Records that the journal should hold, by the number of the last one and the lines behind it, and that could
        not be read."""
        return self.seq - self.records + self.unread


_READ = """SELECT run_id, segment, bytes, seq, crc, records, changed, refused, annotated, unread FROM ingested FINAL
WHERE run_id BETWEEN {first:String} AND {last:String}"""


def read_ledger(database: Database, first: str = "", last: str = "~") -> dict[str, IngestedRun]:
    """By run, of ids from ``first`` to ``last``: a server knows the runs of many machines. Raises DatabaseError."""
    found = database.query(_READ, {"first": first, "last": last})
    return {str(row[0]): IngestedRun(*row) for row in found.rows}


def note(database: Database, ingested: Iterable[IngestedRun], suffix: str = "") -> None:
    """To be called when the rows are in the tables. Raises DatabaseError."""
    version = time.time_ns()
    rows = [{**asdict(one), "row_version": version} for one in ingested]
    if rows:
        database.insert(f"ingested{suffix}", tuple(rows[0]), [tuple(row.values()) for row in rows])


NONSENSE = (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError)
"""The exceptions that making rows raises for records that are whole and make no sense."""

MOST_BYTES = 16 * 1024 * 1024
"""Of records that are read at once: their rows are in memory until they are sent."""
TOGETHER = 64
"""Records that are parsed before rows are made of them. In turns, record by record, both take a tenth longer: the
processor's caches hold one of the two."""


class OtherJournal(Exception):
    """The journal is not the one whose beginning is in the tables: its rows must be dropped."""


class NewRows(Struct, frozen=True):
    """Records that are not in the tables yet, as rows."""

    records: int
    rows: list[TableRow]
    more: bool
    """Reading stopped before the end of the journal."""


class FurtherRows(Protocol):
    """Makes rows of a run that not every database has."""

    def take(self, line: JournalLine) -> list[TableRow]:
        """Those of one record."""
        ...

    def beside(self, most: int) -> tuple[list[TableRow], bool]:
        """Rows of files beside the records that were not given before, up to a number of bytes; and whether there are
        more. Raises OSError.
        """
        ...

    def last(self) -> TableRow:
        """A summary of all rows that were read."""
        ...


class RunIngest:
    """Follows one run from the position that its ledger in the tables states."""

    def __init__(
        self,
        folder: Path,
        ingested: IngestedRun | None = None,
        further: Callable[[Path], FurtherRows] | None = None,
    ) -> None:
        self.ingested = replace(ingested or IngestedRun(folder.name), refused="")
        """How far it was read."""
        self._tail = Tail(folder)
        self._maker = RowMaker(folder.name)
        self._behind = self.ingested if self.ingested.records else None
        """Records up to here only prepare later rows."""
        self._further = further(folder) if further is not None else None
        self._newer = False
        """Rows were made since those of annotations, which have to be the last."""
        self._row: RunRow | None = None
        """The row of the run, as it was given last."""

    def read(self, most: int) -> NewRows:
        """The next records, up to a number. Reading stops before an invalid record; ``ingested`` says why.

        Raises OtherJournal, OSError.
        """
        said = annotation_file.read(self._tail.folder)
        if said.size < self.ingested.annotated:
            raise OtherJournal  # The file was exchanged: rows of a higher version would stand for ever.
        self._maker.annotated, self._maker.state.annotations = said.size, said.annotations
        count, size, rows, more, last, refused = 0, 0, list[TableRow](), False, None, ""
        lines = self._tail.lines() if not self.ingested.refused else iter(())
        while not (more or refused) and (some := list(islice(lines, min(TOGETHER, max(most - count, 1))))):
            for line in some:
                try:
                    made = self._maker.apply(line.event, _data_of(line)) if line.event is not None else []
                except NONSENSE as error:
                    refused = f"record {line.seq}: {type(error).__name__}: {error}"
                    break
                further = self._further.take(line) if self._further is not None else []
                if self._behind is not None:
                    self._recognize(line, self._behind)
                    continue
                rows += made
                rows += further
                count, size, last = count + 1, size + len(line.raw), line
            more = count >= most or size >= MOST_BYTES
        if last is not None:
            self.ingested = replace(
                self.ingested,
                segment=last.segment,
                bytes=last.end,
                seq=last.seq,
                crc=crc_of(last.raw),
                records=self.ingested.records + count,
            )
        self.ingested = replace(self.ingested, unread=0 if more else self._tail.unread)
        if refused:
            self.ingested = replace(self.ingested, refused=refused)
        if self._behind is not None:
            raise OtherJournal
        self._newer = self._newer or bool(rows)
        if not more and said.size and (self._newer or said.size != self.ingested.annotated):
            rows += self._maker.annotated_rows(said.annotations, said.size)
            self.ingested = replace(self.ingested, annotated=said.size)
            self._newer = False
        if self._further is not None:
            beside, waiting = self._further.beside(MOST_BYTES)
            rows += beside
            more = more or waiting
        left = not more and self._is_left
        if rows or (left and self._row is not None and self._row.status == "running"):
            self._row = self._maker.run_row(left=left)
            rows.append(self._row)
            if self._further is not None:
                rows.append(self._further.last())
        return NewRows(count, rows, more)

    @property
    def _is_left(self) -> bool:
        """Whether the run has no end, and no process writes it."""
        return self._maker.state.status == "running" and writer_of(self._tail.folder) is None

    @classmethod
    def row_of(cls, folder: Path) -> list[TableRow]:
        """The row of a whole run alone. Raises OSError."""
        ingest, more = cls(folder), True
        while more:
            more = ingest.read(sys.maxsize).more
        return [ingest._row] if ingest._row is not None else []

    @property
    def ended(self) -> bool:
        """Whether the last record read is the end of the run."""
        return bool(self._maker.state.finished)

    def _recognize(self, line: JournalLine, behind: IngestedRun) -> None:
        here, there = (line.segment, line.end), (behind.segment, behind.bytes)
        if here < there:
            return
        if here != there or crc_of(line.raw) != behind.crc:
            raise OtherJournal
        self._behind = None

    @property
    def health(self) -> Health:
        """The health of the journal, as far as it was read."""
        return self._tail.health


def _data_of(line: JournalLine) -> str:
    """The data of a record as it stands in its row of ``events``; empty for a body, which stands in no such row."""
    return "" if line.event is None or line.event.kind == "blob" else data_of(line.raw)


class Batch(Struct):
    """Rows that are to be sent together, by run."""

    records: int = 0
    since: float = 0.0
    """When the oldest was read, by the caller's clock."""
    rows: dict[str, list[TableRow]] = field(default_factory=dict)
    ingested: dict[str, IngestedRun] = field(default_factory=dict)
    """The entries of the ledger when they were sent."""

    def add(self, run: IngestedRun, made: NewRows) -> None:
        """Take rows of a run, and how far it is with them."""
        self.records += made.records
        self.rows.setdefault(run.run_id, []).extend(made.rows)
        self.ingested[run.run_id] = run

    def drop(self, run_id: str) -> None:
        """Leave a run out."""
        self.rows.pop(run_id, None)
        self.ingested.pop(run_id, None)

    def send(self, database: Database, suffix: str = "") -> None:
        """Rows first, ledger last: after a crash between the two they are sent again, and replace themselves.

        Raises DatabaseError."""
        insert(database, newest(row for rows in self.rows.values() for row in rows), suffix)
        note(database, self.ingested.values(), suffix)

    def clear(self) -> None:
        """Forget all waiting rows."""
        self.records = 0
        self.rows.clear()
        self.ingested.clear()

    def apart(self) -> list[Batch]:
        """A batch for each run."""
        return [
            Batch(0, self.since, {run_id: rows}, {run_id: self.ingested[run_id]}) for run_id, rows in self.rows.items()
        ]


def insert(database: Database, rows: Iterable[TableRow], suffix: str = "") -> None:
    """Send rows to their tables, one batch for each table. Raises DatabaseError."""
    for row_type, found in _by_type(rows):
        database.insert_encoded(row_type.table + suffix, row_type.columns(), json_rows(found))


def _by_type(rows: Iterable[TableRow]) -> list[tuple[type[TableRow], list[TableRow]]]:
    """Rows by their types, in the order in which they are sent."""
    by_type: dict[type[TableRow], list[TableRow]] = {row_type: [] for row_type in ROW_TYPES}
    for row in rows:
        by_type[type(row)].append(row)
    return [(row_type, found) for row_type, found in by_type.items() if found]


def newest(rows: Iterable[TableRow]) -> list[TableRow]:
    """Without the versions of a row that a later one in the same batch replaces."""
    return list({type(row).key_of(row): row for row in rows}.values())


# Many finished runs are read by several processes: making rows takes three quarters of a first index, and threads of
# one process would take turns at it.


class EncodedRuns(Struct, frozen=True):
    """Runs as the engine takes them in."""

    records: int
    tables: tuple[tuple[type[TableRow], bytes], ...]
    ingested: tuple[IngestedRun, ...]
    """Runs that could not be read are left out."""
    more: bool = False
    """The last run has further records."""

    @classmethod
    def joined(cls, several: Sequence[EncodedRuns]) -> EncodedRuns:
        """All of them, to be sent at once."""
        written: dict[type[TableRow], list[bytes]] = {}
        for one in several:
            for row_type, rows in one.tables:
                written.setdefault(row_type, []).append(rows)
        tables = tuple((row_type, b"".join(written[row_type])) for row_type in ROW_TYPES if row_type in written)
        return cls(sum(one.records for one in several), tables, tuple(i for one in several for i in one.ingested))

    def send(self, database: Database, changed: Mapping[str, int]) -> list[IngestedRun]:
        """Rows first, ledger last, as a batch does; what the ledger says now. ``changed``: of the folders, by run.

        Raises DatabaseError."""
        for row_type, rows in self.tables:
            database.insert_encoded(row_type.table, row_type.columns(), rows)
        noted = [replace(one, changed=0 if self.more else changed[one.run_id]) for one in self.ingested]
        note(database, noted)
        return noted


_OF_ALL_RUNS = (PartRow, BlobRow)
"""Rows that several runs may have in common."""


def encoded_runs(folders: Sequence[Path], further: Callable[[Path], FurtherRows] | None = None) -> EncodedRuns:
    """Read whole runs from their beginning. The rows of each become text before the next is read: while they are in
    the processor's cache, which spares a tenth of the work."""
    written: dict[type[TableRow], bytearray] = {row_type: bytearray() for row_type in ROW_TYPES}
    shared: list[TableRow] = []
    ingested: list[IngestedRun] = []
    for folder in folders:
        try:
            ingest = RunIngest(folder, further=further)
            made = ingest.read(sys.maxsize)
        except OSError:
            continue  # Removed meanwhile, or a fault that the index will tell when it looks itself.
        if made.more:
            continue  # It has grown too large to be sent with others.
        for row_type, rows in _by_type(newest(made.rows)):
            if row_type in _OF_ALL_RUNS:
                shared += rows
            else:
                written[row_type] += json_rows(rows)
        ingested.append(ingest.ingested)
    for row_type, rows in _by_type(newest(shared)):
        written[row_type] += json_rows(rows)
    tables = tuple((row_type, bytes(found)) for row_type, found in written.items() if found)
    return EncodedRuns(sum(one.records for one in ingested), tables, tuple(ingested))


def encoded_stretches(
    folder: Path, most: int, further: Callable[[Path], FurtherRows] | None = None
) -> Generator[EncodedRuns, None, None]:
    """Read a run from its beginning in another process, up to so many records at a time, the next ones while the
    caller sends the last. Ends before the end of the run if that process ends."""
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    reader = context.Process(target=_send_stretches, args=(folder, most, further, theirs), daemon=True)
    with deaf_to_interrupts():
        reader.start()
    theirs.close()
    try:
        more = True
        while more:
            made: EncodedRuns = ours.recv()
            yield made
            more = made.more
    except (EOFError, OSError):
        return
    finally:
        ours.close()
        reader.kill()
        reader.join()


def _send_stretches(folder: Path, most: int, further: Callable[[Path], FurtherRows] | None, pipe: Connection) -> None:
    """In that process. It waits until what it sent before is taken."""
    begin_worker()
    ingest, more = RunIngest(folder, further=further), True
    with suppress(OSError):  # A fault of the run's files: the index will tell it when it looks itself.
        while more:
            more = _send_stretch(ingest, most, pipe)


def _send_stretch(ingest: RunIngest, most: int, pipe: Connection) -> bool:
    """Returns whether there is more. A function of its own: its rows are gone before the next ones are made."""
    made = ingest.read(most)
    tables = tuple((row_type, json_rows(rows)) for row_type, rows in _by_type(newest(made.rows)))
    encoded = EncodedRuns(made.records, tables, (ingest.ingested,), made.more)
    made.rows.clear()
    pipe.send(encoded)
    return encoded.more


def begin_worker() -> None:
    """Prepare a process that makes rows for another."""
    follow_parent()
    gc.disable()  # Events and rows hold no reference cycles: reference counts free them.
