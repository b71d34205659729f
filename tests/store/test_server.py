"""A team's server: rows and answers as of the embedded database, runs that colleagues share, what goes wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.store.conftest import Observed
from tests.support.command import run_cli
from tests.support.workspaces import GREETING, filled
from workbench.store.index.database import READS, DatabaseError
from workbench.store.index.ddl import TABLES
from workbench.store.server.connection import ServerEngine, fault_of
from workbench.store.store import Store
from workbench.store.summary import RunSummary
from workbench.store.team_server import TeamServer
from workbench.workspace.project import Project
from workbench.workspace.team import with_team


@pytest.fixture(scope="module")
def seen(observe: Callable[[str], Observed]) -> Observed:
    return observe("server")


def test_the_server_answers_every_question_as_the_embedded_database_does(seen: Observed) -> None:
    assert seen["contract"]["different"] == []
    assert all(seen["contract"]["rows"][name] for name in ("messages", "runs", "events", "contexts", "cards", "evals"))
    assert seen["contract"]["arrow"] is True


def test_the_guard_stands_before_the_server_too(seen: Observed) -> None:
    assert [sql for sql, said in seen["contract"]["refused"].items() if not said] == []
    assert {sql: said for sql, said in seen["contract"]["allowed"].items() if said} == {}


def test_runs_are_listed_with_who_ran_them_and_where(seen: Observed) -> None:
    found = seen["contract"]
    assert set(found["listed"]) == set(found["written"])
    assert set(map(tuple, found["listed"].values())) == {("ana", "lab3", "success")}
    assert found["whose"] == [["ana", "lab3", "/w"]]


def test_a_colleague_has_whole_journals_and_changes_none(seen: Observed) -> None:
    found = seen["contract"]
    assert found["brought"] == {run_id: run_id for run_id in found["written"]}
    assert (found["same journals"], found["same images"], found["labels"]) == (True, True, ["good"])
    assert "can be shown, replayed and forked here" in found["going on"]
    assert (found["shipped again"], found["unknown"]) == (0, "")
    assert found["again after removing the copy"] in found["written"]


def test_an_index_that_is_closed_leaves_no_connection(seen: Observed) -> None:
    assert seen["faults"]["left open"] == 0


def test_one_process_ships_a_store(seen: Observed) -> None:
    assert "are shipped by pid" in seen["contract"]["second"]


def test_a_removed_run_goes_there_too_and_may_come_again(seen: Observed) -> None:
    assert set(seen["contract"]["left"]) == {0}
    assert seen["contract"]["anew"] is True


def test_nothing_is_lost_or_counted_twice_when_the_server_dies(seen: Observed) -> None:
    found = seen["restarts"]
    assert found["counted"] == dict.fromkeys(("events", "journal_lines"), [found["wanted"]] * 2)
    assert any("Connection refused" in fault or "Remote end closed" in fault for fault in found["faults"])


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("wrong password", "refuses user 'team'"),
        ("wrong password", "WORKBENCH_CLICKHOUSE_PASSWORD"),
        ("nobody there", "Connection refused"),
        ("native port", "set WORKBENCH_CLICKHOUSE_PORT to its HTTP port, which is 8123 by default"),
        ("newer", "they are only read, and runs wait here; update the workbench"),
        ("older", "'workbench push --upgrade' rebuilds them from the journals"),
    ],
)
def test_a_sentence_says_what_to_do(seen: Observed, fault: str, words: str) -> None:
    assert words in seen["faults"][fault]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("193, e.displayText() = DB::Exception: Wrong password for user default", "refuses user 'default': Wrong"),
        ("47, e.displayText() = DB::Exception: Unknown identifier: readonly", "too old, 23.3 or later is needed"),
        ("47. DB::Exception: Unknown identifier x", "Unknown identifier x"),
    ],
)
def test_faults_of_old_servers_are_read_too(said: str, words: str) -> None:
    """As ClickHouse 18.16.1 says them."""
    fault = fault_of(Exception(f"HTTP status 404, server response: Code: {said}, e.what() = x"), TeamServer("db"))
    assert words in str(fault)
    assert "e.what" not in str(fault)


def test_a_file_of_certificates_that_is_none_is_named(tmp_path: Path) -> None:
    none, empty = tmp_path / "none.pem", tmp_path / "empty.pem"
    empty.write_text("no certificate\n")
    for file, why in ((none, "cannot be read: No such file or directory"), (empty, "holds no certificate (PEM)")):
        server = TeamServer("127.0.0.1", 1, secure=True, ca_cert=str(file))
        with pytest.raises(DatabaseError, match=re.escape(f"WORKBENCH_CLICKHOUSE_CA_CERT names {file}, which {why}")):
            ServerEngine(server).handle(READS).query("SELECT 1")


def test_tables_of_another_version_are_read_and_upgraded_when_asked(seen: Observed) -> None:
    assert (seen["faults"]["read"], seen["faults"]["upgraded"], seen["faults"]["after"]) == (1, True, ["", 1])


def test_retention_is_set_and_taken_off(seen: Observed) -> None:
    assert (seen["faults"]["TTL of 30 days"], seen["faults"]["TTL of 0 days"]) == (True, True)


def test_tables_of_a_cluster_are_replicated_and_sharded_by_a_part_of_their_key(seen: Observed) -> None:
    statements = [sql for sql in seen["faults"]["cluster"] if sql.startswith("CREATE TABLE")]
    stored = [sql for sql in statements if "ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/" in sql]
    over = [sql for sql in statements if "Distributed('main', 'faults', " in sql]
    assert len(stored) == len(over) == len(TABLES) + 4
    assert all("ON CLUSTER main" in sql for sql in seen["faults"]["cluster"])
    (messages,) = (sql for sql in over if "'messages_local'" in sql)
    assert "cityHash64(session_id)" in messages


def test_the_variables_of_the_original_name_the_server_too(tmp_path: Path) -> None:
    env = {
        "WINDLASS_USE_CLICKHOUSE_SERVER": "true",
        "WINDLASS_CLICKHOUSE_HOST": "db",
        "WINDLASS_CLICKHOUSE_PORT": "8124",
        "WINDLASS_CLICKHOUSE_PASSWORD": "secret",
        "WORKBENCH_USER": "ana",
    }
    server = Project.at(tmp_path, env=env).team_server
    assert server is not None
    assert (server.url, server.password, server.who) == ("http://db:8124", "secret", "ana")
    assert Project.at(tmp_path, env={**env, "WINDLASS_USE_CLICKHOUSE_SERVER": "false"}).team_server is None


def test_runs_of_the_team_join_those_of_this_machine_once() -> None:
    mine = RunSummary("a", session_id="mine", started="2026-01-02")
    there = [RunSummary("a", user="ana", machine="lab3"), RunSummary("b", started="2026-01-03", user="ben")]
    joined = with_team([mine], there)
    assert [(run.run_id, run.session_id, run.user) for run in joined] == [("b", "", "ben"), ("a", "mine", "ana")]


def test_a_server_that_is_away_delays_shipping_and_never_a_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, free_port: int
) -> None:
    filled(folder, GREETING)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("WORKBENCH_USE_CLICKHOUSE_SERVER", "true")
    monkeypatch.setenv("WORKBENCH_CLICKHOUSE_HOST", "127.0.0.1")
    monkeypatch.setenv("WORKBENCH_CLICKHOUSE_PORT", str(free_port))
    monkeypatch.setenv("WORKBENCH_CLICKHOUSE_PASSWORD", "never-shown")
    ended = run_cli("run", "greet.yaml", "--session", "greet", "-q")
    assert ended.code == 0
    assert ended.err.count("runs wait here, and are shipped later") == 1
    assert Store(Path(".workbench")).summary(Store(Path(".workbench")).find("greet")).status == "success"
    assert "only the runs of this machine" in run_cli("runs").err
    pushed = run_cli("push")
    assert pushed.code != 0
    assert "Connection refused" in pushed.err
    assert "never-shown" not in run_cli("config", "show").out + run_cli("config", "show", "--json").out


def test_commands_say_how_a_server_is_named(folder: Path) -> None:
    for command in (("push",), ("pull", "x")):
        ended = run_cli(*command)
        assert ended.code == 2
        assert "WORKBENCH_USE_CLICKHOUSE_SERVER=true" in ended.err
