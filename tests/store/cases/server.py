"""A team's server beside the embedded database: the same tables and answers; runs that come and go; faults."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.store.cases.asking import ALLOWED, FORBIDDEN, hostile_run, refusal
from tests.store.examples import HOSTILE, candidate_run, plain_run, rich_run, save
from tests.support.clickhouse import ClickHouse
from workbench.context.place import Place
from workbench.engine.journal.annotations import Change
from workbench.store.faults import StoreError
from workbench.store.index.database import READS, WRITES
from workbench.store.index.index import Index
from workbench.store.index.queries import Queries
from workbench.store.server.connection import ServerEngine
from workbench.store.server.pulling import bring, team_runs
from workbench.store.server.server_index import SERVER_VERSION, ServerIndex
from workbench.store.server.tables import create_statements, drop_statements, retention_statements
from workbench.store.store import Store
from workbench.store.team_server import TeamServer

COMPARED = {
    "messages": "SELECT * FROM unified_logs ORDER BY run_id, seq, toString(message_id)",
    "runs": "SELECT * FROM runs ORDER BY run_id",
    "events": "SELECT * FROM events ORDER BY run_id, seq",
    "contexts": "SELECT * FROM contexts ORDER BY ALL",
    "cards": "SELECT * FROM context_cards ORDER BY ALL",
    "evals": "SELECT * FROM all_evals ORDER BY ALL",
    "annotations": "SELECT * FROM annotations ORDER BY ALL",
}
OWN = {"kept_from"}
"""Columns that only a server has."""


def answers(index: Queries) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, sql in COMPARED.items():
        found[name] = [{k: v for k, v in row.items() if k not in OWN} for row in index.sql(sql).dicts()]
    found["costs"] = list(index.get_cascade_costs("triage").dicts())
    found["soundings"] = list(index.get_soundings_analysis("contest", "write").dicts())
    found["context"] = [
        {k: v for k, v in row.items() if k not in OWN}
        for row in index.get_context("test", Place("", "sort", 1, 1, 2, 1)).dicts()
    ]
    found["search"] = list(index.search_text(["log"]).dicts())
    for text in HOSTILE:
        found[f"hostile {text!a}"] = [
            len(index.get_session_messages(text)),
            len(
                index.query_unified(
                    "content_json = {x:String} OR has({y:Array(String)}, role)", {"x": text, "y": [text]}
                )
            ),
        ]
    return found


def filled(root: Path, server: TeamServer) -> Store:
    store = Store(root, server=server)
    save(store, rich_run())
    save(store, candidate_run())
    save(store, hostile_run())
    for number in range(3):
        save(store, plain_run(f"0190a000-0000-7000-8000-00000000010{number}", 3, session=f"plain {number}"))
    store.annotate(store.run_ids()[0], Change(tags=("good",), notes=("as it should be",)))
    return store


def contract(folder: Path, clickhouse: ClickHouse) -> dict[str, Any]:
    server = clickhouse.address("contract", who="ana", machine="lab3", workspace="/w")
    store = filled(folder / "ana", server)
    with Index(Store(store.root)) as index:
        index.catch_up()
        here = answers(index)
    with ServerIndex(store, server) as index:
        index.catch_up()
        there = answers(index)
        return {
            "different": [name for name in here if here[name] != there[name]],
            "rows": {name: len(rows) for name, rows in there.items()},
            "refused": {sql: refusal(index, sql) for sql in FORBIDDEN},  # type: ignore[arg-type]
            "allowed": {sql: refusal(index, sql) for sql in ALLOWED},  # type: ignore[arg-type]
            "arrow": len(index.arrow("SELECT * FROM runs")) > 0,
            "whose": sorted({tuple(row) for row in index.sql("SELECT user, machine, workspace FROM all_runs").rows}),
            "second": ServerIndex(store, server).notice,
            **team(folder, store, server),
            **gone(store, server, index),
        }


def team(folder: Path, store: Store, server: TeamServer) -> dict[str, Any]:
    """What a colleague sees, who has none of the runs."""
    mine = replace(server, who="ben", machine="desk1")
    other = Store(folder / "ben", server=mine, bring=bring)
    listed = team_runs(mine)
    brought = {run.run_id: other.find(run.session_id) for run in listed}
    run_id = store.run_ids()[0]
    try:
        other.append_to(run_id)
        refused = ""
    except StoreError as fault:
        refused = str(fault)
    with ServerIndex(other, mine) as index:
        index.catch_up()
        shipped = index.progress.records
    other.remove(run_id)
    return {
        "listed": {run.run_id: [run.user, run.machine, run.status] for run in listed},
        "brought": brought,
        "same journals": all(lines_of(store, one) == lines_of(other, one) for one in brought if one != run_id),
        "same images": len(list((other.pulled).rglob("blobs/*"))) == len(list((store.journals).rglob("blobs/*"))),
        "going on": refused,
        "shipped again": shipped,
        "unknown": bring(other, "nobody"),
        "again after removing the copy": other.find(run_id),
        "labels": list(other.summary(run_id).labels.tags),
        "written": {one: store.summary(one).seq for one in store.run_ids()},
    }


def lines_of(store: Store, run_id: str) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(store.folder(run_id).glob("0*.jsonl")))


def gone(store: Store, server: TeamServer, index: ServerIndex) -> dict[str, Any]:
    """A run that is removed here is removed there, and may be shipped anew."""
    run_id = store.run_ids()[-1]
    counts = "SELECT count() FROM {} WHERE run_id = '" + run_id + "'"
    tables = ("messages", "events", "runs", "journal_lines", "origins", "ingested")
    events = list(store.events(run_id))
    store.remove(run_id)
    index.catch_up()
    left = [index.sql(counts.format(table)).one() for table in tables]
    save(store, events)
    index.catch_up()
    return {"left": left, "anew": index.sql(counts.format("events")).one() == len(events)}


def restarts(folder: Path, clickhouse: ClickHouse) -> dict[str, Any]:
    """The server dies while runs are shipped, and is away for some time. `python -m bench.ship` does it more often."""
    server = clickhouse.address("restarts", who="ana", machine="lab3")
    store = Store(folder / "restarts", server=server)
    faults, wanted = [], 0
    with ServerIndex(store, server) as index:
        for number in range(2):
            for one in range(4):
                events = plain_run(
                    f"0190a000-0000-7000-8000-000000{number:03d}{one:03d}", 40, session=f"{number} {one}"
                )
                wanted += len(events)
                save(store, events)
            killer = threading.Timer(0.03, clickhouse.kill)
            killer.start()
            try:
                index.catch_up(60)
            except StoreError as fault:
                faults.append(str(fault))
            killer.join()
        clickhouse.start()
        index.engine.close()
        index.catch_up(60)
        counts = "SELECT count() AS all, uniqExact(run_id, seq) AS different FROM {}"
        return {
            "wanted": wanted,
            "counted": {table: list(index.sql(counts.format(table)).rows[0]) for table in ("events", "journal_lines")},
            "faults": faults,
        }


def faults(folder: Path, clickhouse: ClickHouse) -> dict[str, Any]:
    server = clickhouse.address("faults", who="ana", machine="lab3")
    store = Store(folder / "faults", server=server)
    save(store, plain_run())
    said: dict[str, Any] = {
        "wrong password": said_of(store, replace(server, password="wrong")),
        "nobody there": said_of(store, replace(server, port=free_port())),
        "native port": with_native(store, server),
    }
    with ServerIndex(store, server) as index:
        index.catch_up()
    engine = ServerEngine(server)
    writer = engine.handle(WRITES)
    for days, kept in ((30, True), (0, False)):
        for statement in retention_statements(replace(server, retention_days=days)):
            writer.command(statement)
        made = str(
            writer.query(
                "SELECT create_table_query FROM system.tables WHERE name = 'messages' AND database = 'faults'"
            ).one()
        )
        said[f"TTL of {days} days"] = ("TTL kept_from + toIntervalDay(30)" in made) is kept
    writer.insert("schema_migrations", ("version", "name"), [(SERVER_VERSION + 1, "by a newer program")])
    with ServerIndex(store, server) as index:
        index.catch_up()
        said["newer"] = index.notice
        said["read"] = index.sql("SELECT count() FROM runs").one()
    writer.command(f"ALTER TABLE schema_migrations DELETE WHERE version >= {SERVER_VERSION}")
    writer.insert("schema_migrations", ("version", "name"), [(1, "by an older program")])
    with ServerIndex(store, server) as index:
        index.catch_up()
        said["older"] = index.notice
        said["upgraded"] = index.upgrade()
    with ServerIndex(store, server) as index:
        index.catch_up()
        said["after"] = [index.notice, index.sql("SELECT count() FROM runs").one()]
    before = sockets()
    with ServerIndex(store, server) as index:
        index.catch_up()
        index.sql("SELECT 1")
    said["left open"] = sockets() - before
    cluster = replace(server, cluster="main", retention_days=7)
    statements = [*create_statements(cluster), *drop_statements(cluster), *retention_statements(cluster)]
    parse = "SELECT formatQuerySingleLine({sql:String})"
    said["cluster"] = [str(writer.query(parse, {"sql": sql}).one()) for sql in statements]
    engine.close()
    return said


def said_of(store: Store, server: TeamServer) -> str:
    with ServerIndex(store, server) as index:
        try:
            index.catch_up(60)
        except StoreError as fault:
            return str(fault)
    return ""


def with_native(store: Store, server: TeamServer) -> str:
    """What is said of a port of the native protocol, by its number and by what it answers."""
    try:
        ServerEngine(replace(server, port=9000, host="127.0.0.1")).handle(READS).query("SELECT 1")
    except StoreError as fault:
        return str(fault)
    return ""


def sockets() -> int:
    """The sockets that this process has open, where the system shows them."""
    return sum(
        os.path.realpath(file).rpartition("/")[2].startswith("socket:") for file in Path("/proc/self/fd").glob("*")
    )


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


def main(folder: Path) -> dict[str, Any]:
    with (
        pytest.MonkeyPatch.context() as patch,
        ClickHouse(folder / "clickhouse", "team", "it's \\ a secret") as clickhouse,
    ):
        patch.setenv("NO_PROXY", "*")
        return {
            "contract": contract(folder, clickhouse),
            "faults": faults(folder, clickhouse),
            "restarts": restarts(folder, clickhouse),
        }
