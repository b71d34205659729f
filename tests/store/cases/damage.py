"""Damage: what doctor says of parts, tables and tails that went bad, and what a rebuild brings back."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.store.cases.tables import contents
from tests.store.examples import candidate_run, flipped, rich_run, save
from workbench.store.faults import StoreError
from workbench.store.index.database import WRITES, Engine
from workbench.store.index.health import Report, examine, fix
from workbench.store.index.index import Index
from workbench.store.index.rebuild import VERSION, rebuild
from workbench.store.store import Store


def main(folder: Path) -> dict[str, Any]:
    store = Store(folder)
    save(store, rich_run())
    save(store, candidate_run())
    with Index(store) as index:
        index.catch_up()
        whole = contents(index.engine)
    observed: dict[str, Any] = {"healthy": said(examine(store)), "signals": _caught_signals()}
    observed["rows per run"] = [[run.health.records, run.ingested, run.rows] for run in examine(store).runs]
    observed["written"] = [store.summary(run_id).seq for run_id in store.run_ids()]

    largest(folder).write_bytes(b"cut")
    observed["cut part"] = said(examine(store))
    observed["after rebuild"] = [said(examine_after_rebuild(store)), same(store, whole)]

    part = largest(folder)
    data = part.read_bytes()
    part.write_bytes(flipped(data, len(data) * 4))
    observed["flipped bit"] = said(examine(store))
    rebuild(store)

    (table,) = (folder / "ch" / "metadata" / "workbench").resolve().glob("messages.sql")
    table.write_text("no table\n")
    observed["broken table"] = said(examine(store))
    observed["index says"] = refusal(store)
    moved = rebuild(store).moved
    observed["moved aside"] = moved is not None and moved.is_dir() and moved.name.startswith("ch.broken-")
    observed["after moving"] = [said(examine(store)), same(store, whole)]

    segment = store.folder("run-2") / "000001.jsonl"
    observed["size"] = segment.stat().st_size
    segment.write_bytes(segment.read_bytes() + b'{"v":1,"run_')
    observed["torn"] = said(examine(store))
    observed["fixed"] = fix(store)
    observed["after fix"] = [said(examine(store)), sorted(path.name for path in segment.parent.glob("*.torn"))]
    first = segment.read_bytes().index(b"\n") + 1
    segment.write_bytes(flipped(segment.read_bytes(), (first + 60) * 8))
    observed["second record"] = first
    observed["damaged journal"] = said(examine(store))
    observed["readable"] = store.state("run-2").status
    observed["rebuilt without the lost record"] = rebuild(store).records

    observed["power loss"] = power_lost(store)
    observed["newer schema"] = newer(store)
    observed["rebuilt progress"] = rebuilt_names(store)
    return observed


def power_lost(store: Store) -> dict[str, Any]:
    """The last moment of a journal and of the newest part never reached the disk: what opens then, and holds what."""
    run_id = next(run_id for run_id in store.run_ids() if store.health(run_id).whole)
    segment = max(store.folder(run_id).glob("0*.jsonl"))
    before = len(list(store.events(run_id)))
    os.truncate(segment, segment.stat().st_size - 40)
    part = max((store.root / "ch" / "store").rglob("2026*/data.bin"), key=lambda path: path.stat().st_mtime)
    os.truncate(part, part.stat().st_size // 2)
    with Index(store) as index:
        opened = index.sql("SELECT 1").one()
    rebuilt = rebuild(store)
    with Index(store) as index:
        rows = index.sql("SELECT count() FROM events").one()
    return {
        "opened": opened,
        "events lost": before - len(list(store.events(run_id))),
        "rows": rows,
        "records": rebuilt.records,
        "torn": list(examine(store).notices),
    }


def said(report: Report) -> dict[str, Any]:
    return {"ok": report.ok, "problems": list(report.problems), "notices": list(report.notices)}


def largest(folder: Path) -> Path:
    """The biggest data file: a part of ``messages``."""
    return max((folder / "ch" / "store").rglob("2026*/data.bin"), key=lambda path: path.stat().st_size)


def examine_after_rebuild(store: Store) -> Report:
    rebuild(store)
    return examine(store)


def same(store: Store, whole: dict[str, list[Any]]) -> bool:
    with Index(store) as index:
        index.catch_up()
        return contents(index.engine) == whole


def refusal(store: Store) -> str:
    try:
        Index(store).close()
    except StoreError as error:
        return str(error)
    return ""


def newer(store: Store) -> dict[str, Any]:
    """A database of a later program: read, and not written."""
    with Engine(store.root) as engine:
        columns = ("version", "name", "checksum")
        engine.handle(WRITES).insert("schema_migrations", columns, [(VERSION + 5, "later", "x")])
    save(store, rich_run(), run_id="run-8")
    with Index(store) as index:
        index.catch_up()
        rows = index.sql("SELECT count() FROM events WHERE run_id = 'run-8'").one()
        return {"notice": index.notice, "new rows": rows, "old rows": index.sql("SELECT count() FROM runs").one()}


def rebuilt_names(store: Store) -> list[str]:
    """The runs that a rebuild names as it goes, and that it refuses to touch a newer schema."""
    names: list[str] = []
    try:
        rebuild(store, names.append)
    except StoreError as error:
        return [str(error)]
    return names


def _caught_signals() -> list[int]:
    """Signals that this process catches after the engine was opened."""
    mask = int(Path(f"/proc/{os.getpid()}/status").read_text().split("SigCgt:")[1].split()[0], 16)
    return [number for number in range(1, 32) if mask >> (number - 1) & 1]


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
