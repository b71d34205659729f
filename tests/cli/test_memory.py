"""Retrieval and memory from end to end: a folder and a bank in a workspace, looked into and replayed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import Cli

CASCADE = """\
cascade_id: helper
memory: lessons
phases:
  - name: answer
    instructions: "Answer: {{ input.question }}"
    rag: {directory: docs}
    tackle: [lessons]
    rules: {max_turns: 3}
"""
REPLIES = """\
replies:
  answer:
    - calls: [{tool: rag_search, arguments: {query: refund}}, {tool: lessons, arguments: {query: refund}}]
    - text: A refund takes five days.
"""


@pytest.fixture
def helper(cli: Cli, workspace: Path) -> Cli:
    (workspace / "helper.yaml").write_text(CASCADE)
    (workspace / "helper.replies.yaml").write_text(REPLIES)
    (workspace / "docs").mkdir()
    (workspace / "docs" / "faq.md").write_text("Refunds:\na refund takes five days.\n")
    return cli


def results(cli: Cli, session: str) -> list[str]:
    run = cli("show", session, "--json").json
    return [tool["result"] for phase in run["phases"] for call in phase["calls"] for tool in call["tools"]]


def run(cli: Cli, session: str) -> None:
    ended = cli("run", "helper.yaml", "--input", '{"question": "When?"}', "--session", session, "-q")
    assert ended.code == 0, ended.err


def test_the_second_run_remembers_the_first(helper: Cli) -> None:
    run(helper, "one")
    run(helper, "two")
    first, second = results(helper, "one"), results(helper, "two")
    assert "docs/faq.md lines 1-2" in first[0]
    assert first[1].endswith("The memory 'lessons' is still empty.")
    assert "A refund takes five days." in second[1]
    assert "run one" in second[1]
    assert "docs/faq.md" not in second[1], "what a search found is not kept"


def test_a_frozen_run_replays_whatever_the_bank_and_the_folder_hold_by_then(helper: Cli, workspace: Path) -> None:
    run(helper, "one")
    assert helper("test", "freeze", "one", "--name", "one").code == 0
    run(helper, "two")
    (workspace / "docs" / "faq.md").write_text("Nothing.")
    ended = helper("test", "run")
    assert ended.code == 0, ended.out
    assert len(helper("memory", "lessons", "--json").json) == 2


def test_banks_are_listed_searched_and_shown(helper: Cli) -> None:
    assert "no memory banks" in helper("memory").err
    run(helper, "one")
    (listed,) = helper("memory", "--json").json
    assert (listed["bank"], listed["messages"]) == ("lessons", 2)
    assert helper("memory", "--plain").out.splitlines()[1].split()[:2] == ["lessons", "2"]
    (found,) = helper("memory", "lessons", "-s", "five days", "-n", "1", "--json").json
    assert found["text"] == "A refund takes five days."
    shown = helper("memory", "lessons", "--plain").out
    assert "answer turn 2 · assistant · run one" in shown
    assert "  A refund takes five days." in shown


def test_a_bank_that_is_not_there_is_named_with_those_that_are(helper: Cli) -> None:
    run(helper, "one")
    ended = helper("memory", "lesson")
    assert (ended.code, ended.err) == (2, "error: there is no memory bank 'lesson' (there are lessons)\n")
    assert helper("memory", "--search", "x").code == 2


def test_check_has_nothing_to_say_about_rag_and_memory(helper: Cli) -> None:
    ended = helper("check", "helper.yaml")
    assert (ended.code, ended.out) == (0, "")
