"""A model that selects context: asked before the phase, journaled, replayed, and never asked by a what-if."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.engine.support import Answers, FlatPrices, ListSink, Played, Reply, ScriptedModel, Words, play, ports
from tests.support.equal_runs import comparable
from workbench.analysis.what_if import what_if
from workbench.context.strategy import parse
from workbench.engine.contracts import ModelFault
from workbench.engine.past.recording import Kind, Recording
from workbench.engine.past.replay import Replay
from workbench.engine.run.run import Run


def notes(strategy: str = "llm", **selection: Any) -> dict[str, Any]:
    context = {
        "mode": "auto",
        "anchors": {"window": 0, "from_phases": [], "include": ["input"]},
        "selection": {"strategy": strategy, "selector_model": "picker", **selection},
    }
    return {
        "cascade_id": "notes",
        "phases": [
            {"name": "read", "instructions": "Read the log.", "rules": {"max_turns": 2, "turn_prompt": "Go on."}},
            {"name": "mark", "instructions": "Mark it.", "callouts": "Finding"},
            {"name": "tell", "instructions": "Tell about the harbour.", "context": context},
        ],
    }


def played(selector: Reply, strategy: str = "llm", **selection: Any) -> Played:
    replies: dict[str, list[Reply]] = {
        "read": ["The harbour log is long.", "The crane stood still."],
        "mark": ["harbour"],
        "tell": [selector, "told"],
    }
    return play(notes(strategy, **selection), replies, input={"what": "logs"})


PICK = json.dumps({"selected": [4, 2], "reason": "they name the crane"})


def sources(run: Played) -> list[tuple[str, str]]:
    """Reason and text of what the last phase was sent of the others' messages."""
    entries = run.state.calls[-1].entries
    return [(e.reason.code, e.item.message.text) for e in entries if e.item.source.endswith("messages") and e.sent]


def test_the_selector_sees_a_menu_and_its_choice_is_sent_in_the_original_order() -> None:
    run = played(PICK)
    assert run.outcome.status == "success", run.outcome.reason
    place, request = run.model.requests[-2]
    assert (place.phase, place.turn, request.model) == ("tell", 0, "picker")
    menu = request.messages[-1].text
    assert "[4] assistant, read turn 2, 7 tokens: The crane stood still." in menu
    assert 'called out as "Finding": harbour' in menu
    assert sources(run) == [("chosen", "The harbour log is long."), ("chosen", "The crane stood still.")]
    (event,) = run.of_kind("context_selected")
    assert (event.data["picked"], event.data["fault"], len(event.data["offered"])) == ([4, 2], "", 6)
    assert run.of_kind("warning") == []


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        ("I would send everything.", "no object with 'selected'"),
        (ModelFault("authentication", "no key"), "authentication: no key"),
    ],
)
def test_a_selector_that_fails_is_a_warning_and_the_heuristic_selects(selector: Reply, words: str) -> None:
    run = played(selector, max_messages=1)
    assert run.outcome.status == "success", run.outcome.reason
    (warning,) = run.of_kind("warning")
    assert words in warning.data["message"]
    assert [code for code, _ in sources(run)] == ["fell_back"]
    assert any(words in note and "the heuristic selects" in note for note in run.state.calls[-1].notes)
    assert run.of_kind("context_selected")[0].data["fault"]


@pytest.mark.parametrize("strategy", ["llm", "hybrid"])
def test_a_replay_asks_nobody_and_gives_an_equal_journal(strategy: str) -> None:
    run = played(PICK, strategy)
    replay = Replay(Recording(run.events, run.blobs))
    sink = ListSink()
    base = ports(ScriptedModel([]), human=Answers(), sink=sink)
    again = Run(run.definition, {"what": "logs"}, run.options, replay.ports(base))
    assert asyncio.run(again.execute()).status == "success"
    assert replay.asked[Kind.MODEL] == 0
    assert comparable(sink.events) == comparable(run.events)


def test_a_what_if_takes_the_recorded_choice_and_calls_nobody() -> None:
    run = played(PICK)
    calls = [call for call in run.state.calls if not call.beside]
    again = what_if(run.state, run.definition, None, Words(), FlatPrices())
    assert [r.assembly.request.digest for r in again] == [call.digest for call in calls]
    assert again[-1].assembly.notes == calls[-1].notes


@pytest.mark.parametrize("spec", ["auto(strategy=llm,max_messages=2)", "auto(strategy=llm,selector_model=other)"])
def test_a_what_if_of_another_selector_falls_back_and_says_so(spec: str) -> None:
    run = played(PICK)
    last = what_if(run.state, run.definition, parse(spec), Words(), FlatPrices())[-1].assembly
    assert any("no answer to this menu is recorded" in note for note in last.notes)
    assert {e.reason.code for e in last.entries if e.item.source.endswith("messages") and e.sent} == {"fell_back"}


def test_each_candidate_has_a_selection_of_its_own() -> None:
    cascade = notes()
    cascade["phases"][2]["soundings"] = {"factor": 2, "max_parallel": 1}
    tell = [PICK, "one", json.dumps({"selected": [1]}), "two", '{"winner": 2}']
    run = play(cascade, {"read": ["a harbour", "b"], "mark": ["c"], "tell": tell}, input={})
    assert run.outcome.status == "success", run.outcome.reason
    assert [(e.place.branch, e.data["picked"]) for e in run.of_kind("context_selected")] == [
        ("s0", [4, 2]),
        ("s1", [1]),
    ]


def test_the_first_phase_has_nothing_to_choose_from() -> None:
    cascade = notes()
    cascade["phases"] = cascade["phases"][2:]
    run = play(cascade, ["told"], input={})
    assert run.outcome.status == "success"
    assert run.of_kind("context_selected") == []
