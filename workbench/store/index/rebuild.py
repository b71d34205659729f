"""Makes all tables anew from the journals, beside the old ones, and then swaps them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct, field

from workbench.store.faults import StoreBusy, StoreError
from workbench.store.index import ddl
from workbench.store.index.database import NAME, WRITES, Database, Engine, Handle
from workbench.store.index.ingest import BACKLOG_RECORDS
from workbench.store.index.run_ingest import Batch, RunIngest
from workbench.store.store import Store

# Brings the database to the schema of this program. It holds nothing that the journals do not, so an older one is
# dropped and made from them again.

VERSION = 15
"""Of the tables, and of what their columns mean: raise it with every change of either."""


class Schema(Struct, frozen=True):
    """The schema of a database."""

    version: int


class NewerSchema(StoreError):
    """A newer release made the database: it may be read, and is not written to."""

    def __init__(self, schema: Schema) -> None:
        super().__init__(f"the index has schema {schema.version}, this program knows {VERSION}: it is only read")
        self.schema = schema


def migrate(database: Database) -> Schema:
    """Make the tables and views if the database is new or older. Returns its schema. Raises NewerSchema."""
    database.command(ddl.SCHEMA_MIGRATIONS)
    known = int(database.query("SELECT max(version) FROM schema_migrations").one() or 0)
    if known > VERSION:
        raise NewerSchema(Schema(known))
    if known < VERSION:
        for statement in ddl.DROP if known else ():
            database.command(statement)
        for statement in (*map(ddl.create_table, ddl.TABLES), *ddl.dictionaries(NAME), *ddl.views(NAME)):
            database.command(statement)
        database.insert("schema_migrations", ("version", "name"), [(VERSION, "made from the journals")])
    return Schema(VERSION)


_NEW = "_new"


class RebuildResult(Struct, frozen=True):
    """The result of a rebuild."""

    runs: int
    records: int
    refused: dict[str, str] = field(default_factory=dict)
    """Runs that make no sense as rows, and why."""
    moved: Path | None = None
    """The new place of an old database that could not be opened."""


def rebuild(store: Store, progress: Callable[[str], None] = lambda run_id: None) -> RebuildResult:
    """Ingest every journal into new tables, compare the counts, exchange the tables, drop the old ones.

    A database that cannot be opened is moved aside first. Raises StoreBusy when another process owns the index,
    NewerSchema when a newer program made it, and StoreError when the counts differ: the old tables stay then.
    """
    engine, moved = _opened(store)
    try:
        handle = engine.handle(WRITES)
        for table in ddl.TABLES:
            handle.command(f"DROP TABLE IF EXISTS {table}{_NEW} SYNC")
            handle.command(ddl.create_table(table, _NEW))
        batch, counts = Batch(), dict[str, int]()
        refused: dict[str, str] = {}
        for run_id in store.run_ids():
            progress(run_id)
            _ingest(store, run_id, handle, batch, counts, refused)
        batch.send(handle, _NEW)
        _compare(handle, counts)
        for table in ddl.TABLES:
            handle.command(f"EXCHANGE TABLES {table} AND {table}{_NEW}")
            handle.command(f"DROP TABLE {table}{_NEW} SYNC")
    finally:
        engine.close()
    return RebuildResult(len(counts), sum(counts.values()), refused, moved)


def _opened(store: Store) -> tuple[Engine, Path | None]:
    try:
        return _engine(store), None
    except (StoreBusy, NewerSchema):
        raise
    except StoreError:
        old = store.root / "ch"
        if not old.is_dir():
            raise
        aside = store.root / f"ch.broken-{datetime.now(UTC):%Y%m%dT%H%M%S}"
        old.rename(aside)
        return _engine(store), aside


def _engine(store: Store) -> Engine:
    engine = Engine(store.root)
    try:
        handle = engine.handle(WRITES)
        migrate(handle)
        engine.release(handle)
    except BaseException:
        engine.close()
        raise
    return engine


def _ingest(
    store: Store, run_id: str, handle: Handle, batch: Batch, counts: dict[str, int], refused: dict[str, str]
) -> None:
    """Read a run into the batch, which is sent as often as it is full. Raises DatabaseError, OSError."""
    ingest, more = RunIngest(store.folder(run_id)), True
    while more:
        made = ingest.read(BACKLOG_RECORDS - batch.records)
        batch.add(ingest.ingested, made)
        more = made.more
        if more:
            batch.send(handle, _NEW)
            batch.clear()
    if ingest.ingested.refused:
        refused[run_id] = ingest.ingested.refused
    if ingest.ingested.records:
        counts[run_id] = ingest.ingested.records


def _compare(handle: Handle, counts: dict[str, int]) -> None:
    found = handle.query(f"SELECT run_id, count() FROM events{_NEW} FINAL GROUP BY run_id")
    rows = {str(run_id): int(rows) for run_id, rows in found.rows}
    for run_id, records in counts.items():
        if rows.get(run_id, 0) != records:
            raise StoreError(f"run {run_id}: {records} records gave {rows.get(run_id, 0)} rows; the old tables stay")
