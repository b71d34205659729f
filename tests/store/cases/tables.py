"""Ingest: what the tables hold after journals were copied once, twice, after a crash, without their offsets."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from msgspec.structs import fields

from tests.store.examples import candidate_run, rich_run, save
from workbench.context.place import Place
from workbench.engine.journal.event import Event
from workbench.store.index import ddl
from workbench.store.index.database import WRITES, Engine
from workbench.store.index.index import Index
from workbench.store.index.rows import RowMaker
from workbench.store.index.run_ingest import insert, newest
from workbench.store.index.tables import ROW_TYPES, TableRow
from workbench.store.store import Store


def contents(engine: Engine, suffix: str = "") -> dict[str, list[Any]]:
    """All rows of all tables, replaced ones left out."""
    found = {}
    for table in ddl.TABLES.keys() - {"ingested"}:
        rows = engine.reader.query(f"SELECT * FROM {table}{suffix} FINAL").rows
        found[table] = sorted((list(row) for row in rows), key=json.dumps)
    return found


def applied(engine: Engine, batches: list[list[TableRow]], suffix: str) -> dict[str, list[Any]]:
    """The tables after these batches in this order."""
    with engine.borrowed(WRITES) as handle:
        for table in ddl.TABLES:
            handle.command(ddl.create_table(table, suffix))
        for rows in batches:
            insert(handle, rows, suffix)
    return contents(engine, suffix)


def batches_of(events: list[Event], size: int) -> list[list[TableRow]]:
    maker = RowMaker(events[0].run_id)
    found: list[list[TableRow]] = []
    for start in range(0, len(events), size):
        rows = [row for event in events[start : start + size] for row in maker.apply(event)]
        found.append(newest([*rows, maker.run_row()]))
    return found


def contexts_as_sent(store: Store, index: Index) -> list[bool]:
    """For each answer, whether the view names the messages of its request, whole and by what they say."""
    sql = "SELECT run_id, branch, phase_name, visit, attempt_number, turn_number, call, context_hashes, request_bodies"
    found = []
    for run_id, *place, contents, bodies in index.sql(f"{sql} FROM all_data WHERE node_type = 'agent'").rows:
        call = store.state(run_id).call_at(Place(*place))
        sent = [entry.sent for entry in (call.entries if call else ()) if entry.sent is not None]
        found.append(([m.content_hash for m in sent], [m.body_hash for m in sent]) == (list(contents), list(bodies)))
    return found


def main(folder: Path) -> dict[str, Any]:
    store = Store(folder)
    rich, run = rich_run(), candidate_run()
    save(store, rich)
    save(store, run)
    observed: dict[str, Any] = {"written": len(rich) + len(run), "written in one": len(rich)}
    with Index(store) as index:
        index.catch_up()
        first = contents(index.engine)
        observed["records"] = index.progress.records
        observed["refused"] = index.progress.refused
        observed["columns"] = {
            table: list(index.engine.reader.query(f"SELECT * FROM {table} WHERE 0").names)
            for table in ddl.TABLES.keys() - {"ingested"}
        }
        observed["row types"] = {
            row.table: [field.name for field in fields(row)] for row in ROW_TYPES if row.table in ddl.TABLES
        }
        observed["contexts as sent"] = contexts_as_sent(store, index)
        observed["view columns"] = list(index.query_unified("0").names)
        observed["all_data columns"] = list(index.sql("SELECT * FROM all_data WHERE 0").names)
    with Index(store) as index:
        index.catch_up()
        observed["again: records"] = index.progress.records
        observed["again: same"] = contents(index.engine) == first
    with Engine(store.root) as engine:  # As if the process had ended after a batch was sent, before that was noted.
        engine.handle(WRITES).command("TRUNCATE TABLE ingested")
    with Index(store) as index:
        index.catch_up()
        observed["lost ledger: records"] = index.progress.records
        observed["lost ledger: same"] = contents(index.engine) == first
        batches = batches_of(run, 7)
        in_order = applied(index.engine, batches, "_a")
        shuffled = [*batches, *batches]
        random.Random(7).shuffle(shuffled)
        observed["out of order and twice: same"] = applied(index.engine, shuffled, "_b") == in_order
        at_once = batches_of(run, len(run))
        observed["one batch: same"] = applied(index.engine, at_once, "_c") == in_order
        store.remove(run[0].run_id)
        index.catch_up()
        left = contents(index.engine)
        observed["removed: runs"] = [row[0] for row in left["runs"]]
        observed["removed: sessions"] = sorted({row[1] for row in left["messages"]})
        observed["removed: notes"] = [path.name for path in store.removed.iterdir()]
        observed["bad run"] = _senseless(store, index)
        right = index.sql("SELECT * FROM runs ORDER BY run_id").rows
    with Index(store) as index, index.engine.borrowed(WRITES) as handle:  # As a program before this one made it.
        for column in ("context_parts", "visit"):
            handle.command(f"ALTER TABLE {'evals' if column == 'visit' else 'messages'} DROP COLUMN {column}")
        handle.command("ALTER TABLE runs UPDATE tokens_out = 0 WHERE 1 SETTINGS mutations_sync = 1")
        handle.command("TRUNCATE TABLE schema_migrations")
        handle.command(
            "INSERT INTO schema_migrations (version, name, checksum) VALUES (0, 'database', 'a'), (3, 'x', 'b')"
        )
    with Index(store) as index:
        index.catch_up()
        observed["migrated: same"] = index.sql("SELECT * FROM runs ORDER BY run_id").rows == right
    return observed


def _senseless(store: Store, index: Index) -> dict[str, Any]:
    """A run whose records are whole and make no sense; another beside it must not suffer."""
    nonsense = Event(1, "2026-01-01T00:00:00.000000Z", "nonsense", "state_set", data={"no": "key"})
    with store.create("nonsense") as journal:
        journal.append(nonsense)
    save(store, rich_run(), run_id="run-9")
    index.catch_up()
    return {
        "refused": list(index.progress.refused),
        "fault": index.progress.fault,
        "other": index.engine.reader.query("SELECT count() FROM events WHERE run_id = 'run-9'").one(),
    }
