"""Checks a real ClickHouse server or cluster: does the workbench ship to it, read from it and leave nothing out?

    WORKBENCH_CLICKHOUSE_HOST=db.example.org WORKBENCH_CLICKHOUSE_USER=… WORKBENCH_CLICKHOUSE_PASSWORD=… \
      python -m scripts.check_clickhouse [--keep] [--pause]

The other settings of the server count as well: port, TLS, certificates, cluster. It makes a database of its own,
``workbench_check_`` and eight digits, with its tables; ships three runs twice; compares what the server answers with
the embedded engine; brings the runs back and compares the journals; sets and takes off a retention; removes a run; and
drops the database (``--keep`` leaves it). ``--pause`` waits after shipping for you to restart the server. Prints a line
for each check, and exits with 1 if one fails.

No server was at hand when this was written: the tests run the same steps against the embedded engine behind
ClickHouse's HTTP interface, and parse the statements of a cluster. What only a real one can show is listed in
docs/guide/team-server.md.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from workbench.store.faults import StoreError
from workbench.store.index.database import WRITES
from workbench.store.index.index import Index
from workbench.store.server.connection import ServerEngine
from workbench.store.server.pulling import bring, pull, team_runs
from workbench.store.server.server_index import ServerIndex
from workbench.store.server.tables import on_cluster, retention_statements
from workbench.store.store import Store
from workbench.store.team_server import TeamServer
from workbench.workspace.api import run_cascade
from workbench.workspace.home import copy_examples
from workbench.workspace.project import Project

EXAMPLES = ("log_triage", "help_desk", "diff_review")
COMPARED = (
    "SELECT run_id, seq, node_type, role, content_json, tokens_in, full_request_json FROM unified_logs ORDER BY ALL",
    "SELECT run_id, seq, kind, data_json FROM events ORDER BY ALL",
    "SELECT run_id, session_id, status, calls, tokens_in FROM runs ORDER BY ALL",
)
PATIENCE = 120.0


class Checks:
    """Prints what each found, and counts those that failed."""

    def __init__(self) -> None:
        self.failed = 0

    def check(self, what: str, find: Callable[[], str]) -> None:
        """``find`` gives what is wrong, empty where nothing is."""
        try:
            wrong = find()
        except StoreError as fault:
            wrong = str(fault)
        self.failed += bool(wrong)
        print(f"{'FAILED' if wrong else 'ok':7} {what}{f': {wrong}' if wrong else ''}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="leave the database")
    parser.add_argument("--pause", action="store_true", help="wait for a restart of the server")
    options = parser.parse_args()
    env = {**os.environ, "WORKBENCH_USE_CLICKHOUSE_SERVER": "true"}
    found = Project.at(env=env).team_server
    assert found is not None
    server = replace(found, database=f"workbench_check_{uuid.uuid4().hex[:8]}", who="ana", machine="lab3")
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WORKBENCH_STATE_DIR"] = os.environ["WORKBENCH_CONFIG_DIR"] = f"{folder}/state"
        os.environ.pop("WORKBENCH_USE_CLICKHOUSE_SERVER", None)
        copy_examples(Path(folder, "work"))
        for name in EXAMPLES:
            run_cascade(Path(folder, "work", f"{name}.yaml"), model="offline", folder=Path(folder, "work"))
        try:
            _checked(checks, Path(folder), server, pause=options.pause)
        finally:
            if not options.keep:
                checks.check(f"database {server.database} is dropped", lambda: _dropped(server))
    return 1 if checks.failed else 0


def _checked(checks: Checks, folder: Path, server: TeamServer, *, pause: bool) -> None:
    store = Store(folder / "work" / ".workbench", server=server, bring=bring)
    written = {run_id: store.summary(run_id).seq for run_id in store.run_ids()}

    def shipped() -> str:
        with ServerIndex(store, server) as index:
            index.catch_up(PATIENCE)
            if index.notice:
                return index.notice
            rows = index.sql("SELECT run_id, count() FROM journal_lines GROUP BY run_id").rows
            return "" if dict(rows) == written else f"{dict(rows)} records instead of {written}"

    checks.check(f"tables are made and {len(written)} runs are shipped", shipped)
    checks.check("shipping again changes nothing", shipped)
    if pause:
        input("restart the server now, then press Enter: ")
        checks.check("it answers after the restart", shipped)

    def alike() -> str:
        with Index(Store(store.root)) as index:
            index.catch_up(PATIENCE)
            here = [index.sql(sql).rows for sql in COMPARED]
        with ServerIndex(store, server) as index:
            index.catch_up(PATIENCE)
            there = [index.sql(sql).rows for sql in COMPARED]
        return "; ".join(sql for sql, a, b in zip(COMPARED, here, there, strict=True) if a != b)

    checks.check("it answers as the embedded engine does, bodies included", alike)

    def brought() -> str:
        other = Store(folder / "other", server=server, bring=bring)
        missing = [run_id for run_id in written if pull(other, server, run_id) != run_id]
        changed = [run_id for run_id in written if list(other.events(run_id)) != list(store.events(run_id))]
        listed = {(run.user, run.machine) for run in team_runs(server)}
        return "" if not missing and not changed and listed == {("ana", "lab3")} else f"{missing} {changed} {listed}"

    checks.check("runs come back as they were, with who ran them", brought)

    def retained() -> str:
        engine = ServerEngine(server)
        try:
            for days in (30, 0):
                for statement in retention_statements(replace(server, retention_days=days)):
                    engine.handle(WRITES).command(statement)
        finally:
            engine.close()
        return ""

    checks.check("a retention is set and taken off", retained)

    def removed() -> str:
        run_id = next(iter(written))
        store.remove(run_id)
        with ServerIndex(store, server) as index:
            index.catch_up(PATIENCE)
            left = index.sql(
                "SELECT count() FROM journal_lines WHERE run_id = {run:String}", params={"run": run_id}
            ).one()
        return f"{left} records are left" if left else ""

    checks.check("a run that is removed here is removed there", removed)


def _dropped(server: TeamServer) -> str:
    engine = ServerEngine(server)
    try:
        engine.handle(WRITES).command(on_cluster(f"DROP DATABASE IF EXISTS {server.database} SYNC", server))
    finally:
        engine.close()
    return ""


if __name__ == "__main__":
    sys.exit(main())
