"""Automatic context in a run: the engine hands the task and the callouts to it, live and in a what-if."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.support import FlatPrices, Played, Words, call, play
from workbench.analysis.what_if import what_if
from workbench.context.strategy import parse

NOTES: dict[str, Any] = {
    "cascade_id": "notes",
    "phases": [
        {"name": "read", "instructions": "Read {{ input.what }}.", "tackle": ["t"], "rules": {"max_turns": 3}},
        {"name": "mark", "instructions": "Mark it.", "callouts": "Finding {{ input.what }}"},
        {"name": "vote", "instructions": "Vote.", "soundings": {"factor": 2, "max_parallel": 1}, "callouts": "Vote"},
        {
            "name": "tell",
            "instructions": "Tell about the {{ outputs.mark }}.",
            "context": {"mode": "auto", "selection": {"max_messages": 1}},
        },
    ],
}


def noted() -> Played:
    replies = {
        "read": ["a\n" + call("t", x="1"), "The harbour log is long."],
        "mark": ["harbour"],
        "vote": ["one", "two", '{"winner": 2}'],
        "tell": ["told"],
    }
    return play(NOTES, replies, input={"what": "logs"}, tools={"t": lambda x: "result " * 9})


def test_the_rendered_task_and_the_callouts_decide() -> None:
    played = noted()
    assert played.outcome.status == "success", played.outcome.reason
    entries = played.state.calls[-1].entries
    sent = [(e.item.source, e.reason.code, e.reason.args) for e in entries if e.item.source and e.sent is not None]
    # The fourth of five candidates, the best by its words: 100 x 0.3 x 3/4 + 100 x 0.4.
    assert [row for row in sent if row[1] != "anchor"] == [("read.messages", "selected", ("62.5",))]
    assert ("mark.messages", "anchor", ("callout",)) in sent
    assert ("vote.output", "anchor", ("output",)) in sent


@pytest.mark.parametrize("spec", [None, "auto(strategy=semantic)"])
def test_a_what_if_selects_as_the_run_did(spec: str | None) -> None:
    played = noted()
    calls = [c for c in played.state.calls if not c.beside]
    again = what_if(played.state, played.definition, parse(spec) if spec else None, Words(), FlatPrices())
    same = [r.assembly.request.digest for r in again] == [c.digest for c in calls]
    assert same is (spec is None)
    assert ([r.assembly.entries for r in again] == [c.entries for c in calls]) is (spec is None)
