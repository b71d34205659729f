"""Snapshots of the original: structure only, and said to be so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.snapshots.conftest import edit
from tests.support.command import run_cli

ORIGINAL = {
    "snapshot_name": "old",
    "description": "from before",
    "cascade_file": "greet.yaml",
    "input": {"name": "Ada"},
    "execution": {
        "phases": [
            {
                "name": "look",
                "turns": [
                    {
                        "turn_number": 1,
                        "agent_response": {
                            "content": "I read.",
                            "tool_calls": [{"tool": "read_file", "arguments": '{"path": "notes.txt"}'}],
                        },
                        "tool_results": [{"tool": "read_file", "result": "Ada likes short greetings."}],
                    },
                    {
                        "turn_number": 2,
                        "agent_response": {
                            "content": "Known.",
                            "tool_calls": [{"tool": "route_to", "arguments": '{"target": "answer"}'}],
                        },
                        "tool_results": [{"tool": "route_to", "result": "Routing to answer"}],
                    },
                ],
            },
            {"name": "answer", "turns": [{"turn_number": 1, "agent_response": {"content": "Hello, Ada."}}]},
        ]
    },
    "expectations": {"phases_executed": ["look", "answer"], "final_state": {}, "completion_status": "success"},
}


@pytest.fixture
def old(greeted: Path) -> Path:
    file = greeted / "snapshots" / "old.json"
    file.parent.mkdir()
    file.write_text(json.dumps(ORIGINAL), "utf-8")
    return file


def test_phases_and_status_are_compared_and_the_list_says_so(old: Path) -> None:
    ended = run_cli("test", "run")
    assert ended.code == 0, ended.out + ended.err
    assert "structure only: phases and status" in ended.out
    (listed,) = run_cli("test", "list", "--json").json
    assert (listed["kind"], listed["calls"]) == ("structure", None)


def test_another_route_fails_and_another_wording_does_not(old: Path) -> None:
    edit(Path("greet.yaml"), "Greet them.", "Greet them warmly.")
    assert run_cli("test", "run").code == 0
    edit(Path("greet.yaml"), "name: refuse", "name: decline")
    edit(Path("greet.yaml"), "target: refuse", "target: decline")
    assert run_cli("test", "run").code == 0
    edit(Path("greet.yaml"), "name: answer", "name: reply")
    edit(Path("greet.yaml"), "target: answer", "target: reply")
    ended = run_cli("test", "run")
    assert ended.code == 1
    assert "phases: look > answer ran, now look > reply" in ended.out


def test_what_the_original_lost_is_named(old: Path) -> None:
    edit(old, '"phases_executed": ["look", "answer"], ', "")
    assert "'expectations.phases_executed' is missing or no list" in run_cli("test", "run").out
