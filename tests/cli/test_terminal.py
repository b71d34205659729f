"""``run`` in a real terminal: the moving line, questions, and Ctrl+C at a question."""

from __future__ import annotations

import os
import signal
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.support.command import WORKBENCH, Cli
from tests.support.pseudo_terminal import PseudoTerminal, pseudo_terminal
from tests.support.waiting import PATIENCE, until


def terminal(folder: Path, *arguments: str) -> AbstractContextManager[PseudoTerminal]:
    """The command line as the leader of its session."""
    return pseudo_terminal([*WORKBENCH, *arguments], folder)


@pytest.fixture
def asking(workspace: Path) -> Path:
    (workspace / "ask.yaml").write_text(
        "cascade_id: ask\nphases: [{name: p, instructions: go, tackle: [ask_human], rules: {max_turns: 2}}]\n"
    )
    (workspace / "ask.replies.yaml").write_text(
        "replies: {p: [{calls: [{tool: ask_human, arguments: {question: May I?}}]}, {text: Done.}]}\n"
    )
    return workspace


def test_a_person_is_asked_lists_say_that_the_run_waits_and_the_answer_reaches_the_model(
    asking: Path, cli: Cli
) -> None:
    with terminal(asking, "run", "ask.yaml", "--session", "s") as screen:
        screen.until("May I?")
        until(lambda: cli("runs", "status:waiting", "--json").json, "the list does not find it")
        assert "waiting" in cli("runs").out
        for wanted in ("status:waiting", "status:running"):
            (run,) = cli("runs", wanted, "--json").json
            assert (run["status"], run["waiting"]) == ("running", True)
        screen.type("yes\n")
        screen.until("success")
        assert screen.process.wait(PATIENCE) == 0
    lines = [line.strip() for line in screen.text.replace("\r", "\n").splitlines()]
    assert "Done." in lines
    assert not [line for line in lines if "sends" in line and "starting" in line], "no line runs into the moving one"
    assert cli("show", "s", "--json").json["status"] == "success"
    (run,) = cli("runs", "--json").json
    assert (run["status"], run["waiting"]) == ("success", False)


def test_an_interrupt_at_a_question_ends_at_once(asking: Path, cli: Cli) -> None:
    with terminal(asking, "run", "ask.yaml", "--session", "s") as screen:
        screen.until("May I?")
        os.killpg(screen.process.pid, signal.SIGINT)
        assert screen.process.wait(PATIENCE) == 130
    assert cli("show", "s", "--json").json["status"] == "stopped"


@pytest.mark.fault("F29")
def test_a_question_in_sql_may_begin_with_a_comment(cli: Cli) -> None:
    assert cli("sql", "-- How much is two and two?\nSELECT 2 + 2 AS sum", "--json").json == [{"sum": 4}]
    told = cli("sql", "-- a question\nSELECT nonsense")
    assert told.err.startswith("query:2:8: error: ")
    assert cli("sql", "--nonsense").code == 2


def test_a_csv_answer_is_cleaned_for_a_terminal_and_whole_in_a_file(cli: Cli, workspace: Path) -> None:
    query = "SELECT char(27) || '[2J' AS seen, char(11) AS unit"
    with terminal(workspace, "sql", query, "--format", "csv") as it:
        assert "␛[2J,␋" in it.until("␋")
    cli("sql", query, "--format", "csv", "-o", "seen.csv")
    assert (workspace / "seen.csv").read_text() == "seen,unit\n\x1b[2J,\x0b\n"
