"""Copies one run's journal into tables, batch by batch, so that a crash at any moment costs and doubles nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from workbench.store.database import Database
from workbench.store.offsets import Batch, Offsets, digest_of
from workbench.store.reading import Health, Line, Tail
from workbench.store.rows import RowMaker
from workbench.store.tables import ROW_TYPES, Row

BATCH_RECORDS = 100
BACKLOG_RECORDS = 1000
"""Of a run that nobody writes: there is no reason to hurry a small batch."""
BATCH_SECONDS = 10.0
TARGET = "chdb"
NONSENSE = (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError)
"""What making rows raises for records that are whole and make no sense."""


class RunIngest:
    """Follows one run. Belongs to the thread that writes to the database."""

    def __init__(
        self,
        folder: Path,
        database: Database,
        identity: str,
        clock: Callable[[], float],
        *,
        suffix: str = "",
        batch: int = BATCH_RECORDS,
        notes: Path | None = None,
    ) -> None:
        """``clock`` gives seconds; rows go to tables whose names end in ``suffix``, ``batch`` records at a time; what
        was sent is noted in the folder ``notes``, by default the run's."""
        self.run_id = folder.name
        self._batch = batch
        self._folder = folder
        self._database = database
        self._suffix = suffix
        self._clock = clock
        self._tail = Tail(folder)
        self._maker = RowMaker(folder.name)
        self._offsets = Offsets(notes or folder, TARGET + suffix, identity)
        self._done, self._again = self._offsets.read()
        self._pending: list[Line] = []
        self._since = 0.0
        """When the oldest pending record was read."""

    def step(self, *, flush: bool = False, enough: Callable[[], bool] = lambda: False) -> int:
        """Send what has become due, or all there is; how many records were sent. Stops reading on when ``enough``.

        Raises DatabaseError, OSError.
        """
        sent = 0
        for line in self._tail.lines():
            if self._behind(line):
                if line.event is not None:
                    self._maker.apply(line.event)
                continue
            if self._pending and self._pending[-1].segment != line.segment:
                sent += self._send()
            if not self._pending:
                self._since = self._clock()
            self._pending.append(line)
            if self._full():
                sent += self._send()
                if enough():
                    break
        if self._pending and (flush or self._ended or self._clock() - self._since >= BATCH_SECONDS):
            sent += self._send()
        return sent

    @property
    def health(self) -> Health:
        """Of the journal, as far as it was read."""
        return self._tail.health

    @property
    def waiting(self) -> int:
        """Records that were read and not sent."""
        return len(self._pending)

    def _behind(self, line: Line) -> bool:
        """Whether a record has been ingested before: then it only tells what later rows need."""
        done = self._done
        return done is not None and (line.segment, line.end) <= (done.segment, done.end)

    def _full(self) -> bool:
        again = self._again
        if again is not None:
            last = self._pending[-1]
            if (last.segment, last.end) < (again.segment, again.end):
                return False
            if (last.segment, last.end) == (again.segment, again.end):
                return True
        return len(self._pending) >= self._batch

    @property
    def _ended(self) -> bool:
        event = self._pending[-1].event
        return event is not None and event.kind == "run_finished"

    def _send(self) -> int:
        lines, self._pending = self._pending, []
        self._again = None
        batch = Batch(
            lines[0].segment,
            lines[0].seq,
            lines[-1].seq,
            lines[0].start,
            lines[-1].end,
            digest_of(b"".join(line.raw for line in lines)),
        )
        rows: list[Row] = []
        for line in lines:
            if line.event is not None:
                rows += self._maker.apply(line.event)
        rows.append(self._maker.run_row())
        self._offsets.note(batch, "sent")
        insert(self._database, newest(rows), lambda table: batch.token(self.run_id, table), self._suffix)
        self._offsets.note(batch, "done")
        self._done = batch
        return len(lines)


def insert(database: Database, rows: Iterable[Row], token: Callable[[str], str], suffix: str = "") -> None:
    """Send rows to their tables, each table's as one batch. Raises DatabaseError."""
    by_table: dict[str, list[Row]] = {row_type.table: [] for row_type in ROW_TYPES}
    for row in rows:
        by_table[row.table].append(row)
    for table, found in by_table.items():
        if found:
            database.insert(table + suffix, [row.to_json() for row in found], token(table))


def newest(rows: Iterable[Row]) -> list[Row]:
    """Without the versions of a row that a later one in the same batch replaces."""
    kept: dict[object, Row] = {}
    for row in rows:
        key = row.key
        kept.pop(key, None)
        kept[key] = row
    return list(kept.values())
