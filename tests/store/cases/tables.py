"""Ingest: what the tables hold after journals were copied once, twice, after a crash, without their offsets."""

from __future__ import annotations

import json
import random
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from tests.store.examples import candidate_run, rich_run, save
from workbench.engine.event import Event
from workbench.store import ddl
from workbench.store.database import WRITES, Engine
from workbench.store.index import Index
from workbench.store.offsets import Offsets, offsets_file
from workbench.store.rows import RowMaker
from workbench.store.run_ingest import TARGET, insert, newest
from workbench.store.store import Store
from workbench.store.tables import ROW_TYPES, Row


def contents(engine: Engine, suffix: str = "") -> dict[str, list[Any]]:
    """All rows of all tables, replaced ones left out."""
    found = {}
    for table in ddl.TABLES:
        rows = engine.reader.query(f"SELECT * FROM {table}{suffix} FINAL").rows
        found[table] = sorted((list(row) for row in rows), key=json.dumps)
    return found


def stored_rows(engine: Engine) -> int:
    """Rows of ``messages`` that are there, replaced ones included."""
    with engine.borrowed(WRITES) as handle:
        return int(handle.query("SELECT count() FROM messages").one())


def applied(engine: Engine, batches: list[tuple[str, list[Row]]], suffix: str) -> dict[str, list[Any]]:
    """The tables after these batches in this order."""
    with engine.borrowed(WRITES) as handle:
        for table in ddl.TABLES:
            handle.command(ddl.create_table(table, suffix))
        for name, rows in batches:
            insert(handle, rows, lambda table, name=name: f"{name}:{table}", suffix)  # type: ignore[misc]
    return contents(engine, suffix)


def batches_of(events: list[Event], size: int) -> list[tuple[str, list[Row]]]:
    maker = RowMaker(events[0].run_id)
    found: list[tuple[str, list[Row]]] = []
    for start in range(0, len(events), size):
        rows = [row for event in events[start : start + size] for row in maker.apply(event)]
        found.append((f"b{start}", newest([*rows, maker.run_row()])))
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
            table: list(index.engine.reader.query(f"SELECT * FROM {table} WHERE 0").names) for table in ddl.TABLES
        }
        observed["row types"] = {row.table: [field.name for field in fields(row)] for row in ROW_TYPES}
        observed["view columns"] = list(index.query_unified("0").names)
        observed["all_data columns"] = list(index.sql("SELECT * FROM all_data WHERE 0").names)
        observed["identity"] = index.schema.identity
        stored = stored_rows(index.engine)
    with Index(store) as index:
        index.catch_up()
        observed["again: records"] = index.progress.records
        observed["again: same"] = contents(index.engine) == first
        observed["again: identity"] = index.schema.identity
    _crash_before_done(store, observed["identity"])
    with Index(store) as index:
        index.catch_up()
        observed["sent without done: same"] = contents(index.engine) == first
        observed["sent without done: doubled rows"] = stored_rows(index.engine) - stored
    for run_id in store.run_ids():
        offsets_file(store.folder(run_id), TARGET).unlink()
    with Index(store) as index:
        index.catch_up()
        observed["lost offsets: records"] = index.progress.records
        observed["lost offsets: same"] = contents(index.engine) == first
        batches = batches_of(run, 7)
        in_order = applied(index.engine, batches, "_a")
        shuffled = [*batches, *((f"{name} again".replace(" ", "-"), rows) for name, rows in batches)]
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
    with Index(store) as index, index.engine.borrowed(WRITES) as handle:  # As the schema before had it.
        handle.command("ALTER TABLE runs UPDATE tokens_out = 0 WHERE 1 SETTINGS mutations_sync = 1")
        handle.command("ALTER TABLE schema_migrations DELETE WHERE version = 3 SETTINGS mutations_sync = 1")
    with Index(store) as index:
        observed["migrated"] = index.sql("SELECT countIf(tokens_out IS NULL), countIf(calls > 0) FROM runs").rows
    return observed


def _crash_before_done(store: Store, identity: str) -> None:
    """As if the process had ended after a batch was sent and before that was noted."""
    for run_id in store.run_ids():
        offsets = Offsets(store.folder(run_id), TARGET, identity)
        done, _ = offsets.read()
        assert done is not None
        offsets.forget()
        offsets.note(done, "sent")


def _senseless(store: Store, index: Index) -> dict[str, Any]:
    """A run whose records are whole and make no sense; another beside it must not suffer."""
    nonsense = Event(1, "yesterday", "nonsense", "state_set", data={"no": "key"})
    with store.create("nonsense") as journal:
        journal.append(nonsense)
    save(store, rich_run(), run_id="run-9")
    index.catch_up()
    return {
        "refused": list(index.progress.refused),
        "fault": index.progress.fault,
        "other": index.engine.reader.query("SELECT count() FROM events WHERE run_id = 'run-9'").one(),
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
