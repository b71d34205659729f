"""Re-assembling stored runs: the file's own strategy gives what was recorded, another one what would have been sent."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.support import FlatPrices, Played, Reply, Words, call, native, play
from tests.engine.test_replay import recorded
from workbench.analysis.what_if import what_if
from workbench.context.align import ChangeKind, align, changes
from workbench.context.strategy import parse

DIALOGUE: dict[str, Any] = {
    "cascade_id": "c",
    "context_default": "snowball",
    "phases": [
        {
            "name": "a",
            "instructions": "A",
            "tackle": ["t"],
            "rules": {"max_turns": 5},
            "use_native_tools": True,
            "intra_context": {"mask_observations_after": 1, "min_masked_size": 0},
        },
        {"name": "b", "instructions": "B {{ outputs.a }}", "soundings": {"factor": 2, "max_parallel": 1}},
        {"name": "c", "instructions": "C", "output_schema": {"type": "object"}, "rules": {"max_attempts": 3}},
    ],
}


def dialogue() -> Played:
    replies: dict[str, list[Reply]] = {
        "a": [native("", t={"x": "1"}), native("", t={"x": "2"}), native("", t={"x": "3"}), "done"],
        "b": ["one", "two", '{"winner": 2}'],
        "c": ["no", "no", "{}"],
    }
    return play(DIALOGUE, replies, tools={"t": lambda x: f"result {x} " * 20})


@pytest.mark.parametrize("make", [recorded, dialogue])
def test_the_files_own_strategy_gives_the_recorded_contexts_again(make: Any) -> None:
    played = make()
    assert played.outcome.status == "success", played.outcome.reason
    again = what_if(played.state, played.definition, None, Words(), FlatPrices())
    assert [r.assembly.request.digest for r in again] == [c.digest for c in played.state.calls if not c.beside]
    assert [r.assembly.entries for r in again] == [c.entries for c in played.state.calls if not c.beside]
    stored = [call.forecast.cached for call in played.state.calls if call.forecast]
    assert [one.prediction.forecast.cached for one in again][:4] == stored[:4]


def test_another_strategy_changes_what_is_sent_and_nothing_is_asked() -> None:
    played = dialogue()
    asked = len(played.model.requests)
    masked = what_if(played.state, played.definition, None, Words(), FlatPrices())
    full = what_if(played.state, played.definition, parse("snowball"), Words(), FlatPrices())
    assert len(played.model.requests) == asked
    assert full[3].assembly.tokens_sent > masked[3].assembly.tokens_sent
    assert full[3].assembly.tokens_full == masked[3].assembly.tokens_full
    found = changes(full[3].assembly.entries, masked[3].assembly.entries)
    assert [change.kind for change in found] == [ChangeKind.MASKED] * 2
    assert found[0].words == "message 3 (turn 1's result) was sent in full, is now masked"
    assert found[0].rule.path == "phases[0].intra_context.mask_observations_after"


def test_equal_contexts_have_no_changes_and_every_message_has_its_row() -> None:
    played = dialogue()
    entries = played.state.calls[3].entries
    assert changes(entries, entries) == []
    assert [(pair.old, pair.new) for pair in align(entries, entries)] == [(i, i) for i in range(len(entries))]


def test_a_reworded_task_shows_the_words_that_differ() -> None:
    played = recorded()
    text = played.definition.source.text.replace("Look for", "Search for")
    other = play(text, [call("route_to", target="drop"), "x", "y"], input={"what": "it"}, tools={"search": lambda x: x})
    found = changes(played.state.calls[0].entries, other.state.calls[0].entries)
    assert [change.kind for change in found] == [ChangeKind.REWORDED]
    assert '"Look for it.⏎' in found[0].words


def test_messages_that_appear_vanish_or_move_are_named() -> None:
    entries = dialogue().state.calls[3].entries
    assert [c.kind for c in changes(entries, entries[:-1])] == [ChangeKind.GONE]
    assert [c.kind for c in changes(entries[:-1], entries)] == [ChangeKind.ADDED]
    swapped = (*entries[:1], entries[2], entries[1], *entries[3:])
    assert {c.kind for c in changes(entries, swapped)} == {ChangeKind.MOVED}


@pytest.mark.parametrize("walks", [1, 2])
@pytest.mark.parametrize("level", ["full", "truncate", "compact", "summary:low", "summary:high", "sources"])
def test_candidates_of_a_later_phase_see_again_what_they_saw(walks: int, level: str) -> None:
    """Neither what candidates of the same name wrote in an earlier phase, nor less than their walk had."""
    soundings = {"factor": 2, "max_parallel": 1}
    sources = {"context": {"from": [{"phase": "a", "include": ["output", "state", "messages"]}]}}
    seen = sources if level == "sources" else {"fidelity": level}
    phases: list[dict[str, Any]] = [
        {"name": "a", "instructions": "A", "tackle": ["set_state"], "soundings": soundings},
        {"name": "b", "instructions": "B", "soundings": soundings, **seen},
        {"name": "d", "instructions": "D", "context": {"from": ["all"]}},
    ]
    written = [[call("set_state", key=key, value=1), key] for key in ("first", "second")]
    walk = [*written[0], *written[1], '{"winner": 2}', "b0", "b1", '{"winner": 1}', "d"]
    whole = {"soundings": soundings} if walks > 1 else {}
    replies = walk * walks + ['{"winner": 2}'] * (walks > 1)
    played = play({"cascade_id": "c", "phases": phases, **whole}, replies, input={"what": "it"})
    assert played.outcome.status == "success", played.outcome.reason
    calls = [one for one in played.state.calls if not one.beside]
    again = what_if(played.state, played.definition, None, Words(), FlatPrices())
    pairs = zip(calls, again, strict=True)
    assert [str(one.place) for one, made in pairs if one.digest != made.assembly.request.digest] == []


@pytest.mark.parametrize("walks", [1, 2])
def test_candidates_of_a_later_phase_are_forecast_alike(walks: int) -> None:
    """What ``s0`` of an earlier phase, or of an earlier visit, had in the cache is not what ``s0`` of this one has."""
    task = "word " * 1_200
    phases: list[dict[str, Any]] = [
        {"name": "a", "instructions": task, "soundings": {"factor": 2, "max_parallel": 1}},
        {"name": "b", "instructions": task, "soundings": {"factor": 3, "max_parallel": 1}},
    ]
    walk = ["a0", "a1", '{"winner": 1}', "b0", "b1", "b2", '{"winner": 1}']
    whole = {"soundings": {"factor": walks, "max_parallel": 1}} if walks > 1 else {}
    replies = walk * walks + ['{"winner": 2}'] * (walks > 1)
    played = play({"cascade_id": "c", "phases": phases, **whole}, replies)
    assert played.outcome.status == "success", played.outcome.reason
    later = [one for one in played.state.calls if not one.beside and one.place.phase == "b"]
    live = {one.place: one.forecast.cached for one in later if one.forecast is not None}
    again = {
        one.call.place: one.prediction.forecast.cached
        for one in what_if(played.state, played.definition, None, Words(), FlatPrices())
        if one.call.place.phase == "b"
    }
    assert len(live) == len(again) == 3 * walks
    assert len(set(live.values())) == 1, live
    assert live == again
