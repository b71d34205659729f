"""Selectors, summaries, embeddings and retrieval with a real provider library, and replays that ask for nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command import Cli
from tests.support.loopback import Loopback, Received, Reply

CASCADE = """\
cascade_id: notes
phases:
  - name: find
    instructions: What do the pages say of the lamp?
    rag: {directory: docs, model: tiny}
    rules: {max_turns: 2}
  - name: tell
    instructions: Tell about the lamp.
    context: {mode: auto, anchors: {window: 0, from_phases: []}, selection: {strategy: llm, selector_model: picker}}
  - name: near
    instructions: Tell about the crane.
    context: {mode: auto, anchors: {window: 0, from_phases: []}, selection: {strategy: semantic}}
"""
SEARCH = '```json\n{"tool": "rag_search", "arguments": {"query": "lamp", "k": 1}}\n```'


def answers(request: Received) -> Reply:
    """By who is asked: the selector, the model for cards, or a phase."""
    said = json.dumps(request.body.get("messages"))
    if request.model == "picker":
        return Reply('{"selected": [1], "reason": "it asks"}')
    if request.model == "summer":
        return Reply("Lamps and cranes, summed up.")
    return Reply(SEARCH) if "rag_search" in said and "Tool result" not in said else Reply("The lamp and a crane. " * 20)


@pytest.fixture
def provider(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    (workspace / "notes.yaml").write_text(CASCADE)
    (workspace / "docs").mkdir()
    (workspace / "docs" / "lamp.md").write_text("A lamp needs a bulb.\n")
    (workspace / "docs" / "crane.md").write_text("A crane needs oil.\n")
    monkeypatch.setenv("WORKBENCH_EMBEDDING_MODEL", "tiny")
    monkeypatch.setenv("WORKBENCH_CARD_MODEL", "summer")
    with Loopback(answers) as server:
        yield server


def test_everything_that_a_model_prepares_is_asked_once_and_replayed(cli: Cli, provider: Loopback) -> None:
    ended = cli("run", "notes.yaml", "--base-url", provider.url, "-m", "gpt-x", "--session", "s", "-q")
    assert ended.code == 0, ended.err
    by_path = [(request.path.rpartition("/")[2], request.model) for request in provider.requests]
    assert by_path.count(("completions", "picker")) == by_path.count(("completions", "summer")) == 1
    run = cli("show", "s", "--json").json
    (found,) = [tool for phase in run["phases"] for call in phase["calls"] for tool in call["tools"]]
    assert "best first, by likeness (tiny):\n\n[lamp.md#1] docs/lamp.md line 1\nA lamp needs a bulb." in found["result"]
    selection, tell = cli("context", "s", "--phase", "tell", "--json").json
    assert "Lamps and cranes, summed up." in str(selection["entries"])
    assert "gpt" not in str(tell["notes"])
    (near,) = cli("context", "s", "--phase", "near", "--json").json
    assert any(note.startswith("auto (semantic, tiny):") for note in near["notes"])
    embedded = run["totals"]["embeddings"]
    assert (embedded["by"], embedded["cost"], embedded["failed"]) == ("tiny", None, 0)
    assert embedded["texts"] >= 5
    assert f"embedded {embedded['texts']} texts   by tiny   in {embedded['tokens']}" in cli("show", "s", "--plain").out

    asked = len(provider.requests)
    assert cli("test", "freeze", "s", "--name", "s").code == 0
    assert cli("test", "run").code == 0
    assert cli("sweep", "s", "--strategy", "auto(strategy=[llm,semantic])").code == 0
    again = cli("context", "s", "--phase", "near", "-s", "auto(strategy=semantic)", "--json").json[0]
    assert any(note.startswith("auto (semantic, tiny):") for note in again["notes"])
    assert len(provider.requests) == asked


def test_a_comparison_says_where_the_heuristic_stands_in_for_a_selecting_model(cli: Cli, provider: Loopback) -> None:
    assert cli("run", "notes.yaml", "--base-url", provider.url, "-m", "gpt-x", "--session", "s", "-q").code == 0
    recorded = cli("diff", "s", "--strategies", "file", "auto(strategy=hybrid)").out
    assert "B has no answer of a selecting model in" in recorded
    assert "A has no answer" not in recorded
    note = "auto(strategy=hybrid) has no answer of a selecting model in"
    notes = cli("sweep", "s", "-s", "auto(strategy=hybrid)", "--json").json["notes"]
    assert sum(said.startswith(note) for said in notes) == 1
    swept = cli("sweep", "s", "-s", "auto(strategy=[hybrid,heuristic])").out
    assert " ".join(swept.split()).count("has no answer of a selecting model in") == 1
    assert note in " ".join(swept.split())
