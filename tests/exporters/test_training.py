"""Chosen runs as data for fine-tuning, held against the types of the client of the format's owner."""

from __future__ import annotations

import json
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from tests.support.command import run_cli
from tests.support.workspaces import GREETING, alone

TRIES = """\
cascade_id: tries
inputs_schema: {topic: what}
phases:
  - name: write
    instructions: "Write of {{ input.topic }}, key sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
    soundings: {factor: 3, mutate: false, evaluator_instructions: Which is best?}
"""
REPLIES = """\
replies:
  write:
    - {branch: s0, text: one}
    - {branch: s1, text: two}
    - {branch: s2, text: three}
    - {aside: 1, text: '{"winner": 2, "reason": "best"}'}
"""


@cache
def the_owners(name: str) -> TypeAdapter[Any]:
    """A list of one of the client's types. Importing them takes as long as collecting the tests of a folder."""
    return TypeAdapter(list[getattr(import_module("openai.types.chat"), name)])  # type: ignore[arg-type, misc]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    alone(monkeypatch, tmp_path / "home", tmp_path / "work")
    for name, content in GREETING.items():
        Path(name).write_text(content if isinstance(content, str) else json.dumps(content))
    return tmp_path / "work"


def test_chat_data_has_the_messages_and_tools_of_the_owner_and_each_once(folder: Path) -> None:
    for session, score in (("a", "4"), ("b", "4"), ("c", "1")):
        assert run_cli("run", "greet.yaml", "--session", session, "-q").code == 0
        assert run_cli("annotate", session, "--score", score).code == 0
    ended = run_cli("training", "--filter", "cascade:greet", "--min-score", "2")
    assert ended.code == 0, ended.err
    assert len(ended.lines) == 2, "one for each phase: the runs are the same"
    for document in ended.lines:
        assert set(document) <= {"messages", "tools"}
        the_owners("ChatCompletionMessageParam").validate_python(document["messages"])
        assert document["messages"][-1]["role"] == "assistant"
        the_owners("ChatCompletionToolParam").validate_python(document.get("tools", []))
    assert "2 answers left out: the same as another one" in ended.err
    assert "2 answers left out: no score, or too low" in ended.err


def test_runs_with_other_scores_are_preferences(folder: Path) -> None:
    Path("rows.jsonl").write_text('{"q": "x", "expected": "good"}\n' * 2)
    Path("flow.yaml").write_text("cascade_id: flow\nphases: [{name: p, instructions: '{{ input.q }}'}]\n")
    Path("flow.replies.yaml").write_text("replies: {p: [{text: good}]}\n")
    Path("other.yaml").write_text(Path("flow.yaml").read_text())
    Path("other.replies.yaml").write_text("replies: {p: [{text: bad}]}\n")
    options = ("--name", "b", "--score", "exact", "--cascade", "other.yaml", "-q")
    assert run_cli("batch", "flow.yaml", "-i", "rows.jsonl", *options).code == 0
    (pair,) = run_cli("training", "--batch", "b", "--as", "preference").lines
    assert pair["preferred_output"] == [{"role": "assistant", "content": "good"}]
    assert pair["non_preferred_output"] == [{"role": "assistant", "content": "bad"}]
    the_owners("ChatCompletionMessageParam").validate_python([*pair["input"]["messages"], *pair["preferred_output"]])
    (text,) = run_cli("training", "--batch", "b", "--as", "pairs", "--min-score", "1").lines
    assert text["completion"] == "good"
    assert run_cli("training", "--batch", "b", "--min-score", "2").code == 1


def test_the_winner_of_candidates_is_preferred_to_each_loser_and_secrets_go(folder: Path) -> None:
    Path("tries.yaml").write_text(TRIES)
    Path("tries.replies.yaml").write_text(REPLIES)
    assert run_cli("run", "tries.yaml", "--input", '{"topic": "tents"}', "-q").code == 0
    ended = run_cli("training", "--as", "preference")
    assert ended.code == 0, ended.err
    assert len(ended.lines) == 2
    assert "sk-proj-" not in ended.out
    (winner,) = {json.dumps(pair["preferred_output"]) for pair in ended.lines}
    assert winner not in {json.dumps(pair["non_preferred_output"]) for pair in ended.lines}
    assert len(run_cli("training", "--as", "chat", "--phase", "write").lines) == 1
