"""The tool search_context: this run's own messages, where a phase lists it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.engine.support import Answers, ListSink, Played, ScriptedModel, call, play, ports
from tests.support.equal_runs import comparable
from workbench.context.scoring import Ranking
from workbench.engine.past.recording import Recording
from workbench.engine.past.replay import Replay
from workbench.engine.run.run import Run

NOTES: dict[str, Any] = {
    "cascade_id": "notes",
    "phases": [
        {"name": "read", "instructions": "Read the log of the harbour.", "callouts": "Finding"},
        {"name": "idle", "instructions": "Wait."},
        {"name": "tell", "instructions": "Tell.", "tackle": ["search_context"], "rules": {"max_turns": 3}},
    ],
}


def asked(**arguments: Any) -> Played:
    tell = [call("search_context", **arguments), call("search_context", query="crane"), "told"]
    return play(NOTES, {"read": ["The crane of the harbour stood still. " * 60], "idle": ["Nothing."], "tell": tell})


def result(played: Played, number: int = 0) -> str:
    text: str = played.of_kind("tool_finished")[number].data["text"]
    return text


def test_the_best_messages_come_with_their_place_size_and_callout() -> None:
    played = asked(query="crane", limit=1)
    assert played.outcome.status == "success", played.outcome.reason
    assert result(played).startswith("1 of 5 messages, best first:\n\n1. read turn 1 · assistant · 424 tokens")
    assert 'called out as "Finding"\nThe crane of the harbour stood still.' in result(played)
    assert result(played).endswith("… (2,279 characters in all)")


def test_a_search_finds_neither_the_question_itself_nor_what_searches_found() -> None:
    played = asked(query="crane")
    assert "search_context" not in result(played)
    assert result(played, 1).count("crane of the harbour stood still.") <= result(played).count("stood still.")
    assert "[Tool result: search_context]" not in result(played, 1)


def test_no_shared_word_says_so() -> None:
    assert result(asked(query="zebra")) == "None of 5 messages shares a word with 'zebra'."


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "'query' must be a text"),
        ({"query": " "}, "'query' must be a text"),
        ({"query": "a", "limit": 0}, "'limit' must be a whole number from 1 to 50"),
        ({"query": "a", "k": 1}, "there is no parameter 'k'"),
    ],
)
def test_arguments_that_make_no_sense_are_told_to_the_model(arguments: dict[str, Any], words: str) -> None:
    event = asked(**arguments).of_kind("tool_finished")[0]
    assert event.data["is_error"]
    assert words in event.data["text"]


def test_a_replay_finds_the_same() -> None:
    played = asked(query="harbour")
    sink = ListSink()
    replay = Replay(Recording(played.events))
    run = Run(played.definition, {}, played.options, replay.ports(ports(ScriptedModel([]), human=Answers(), sink=sink)))
    assert asyncio.run(run.execute()).status == "success"
    assert comparable(sink.events) == comparable(played.events)


def test_a_phase_that_does_not_list_it_is_not_offered_it() -> None:
    played = asked(query="crane")
    offers = ["search_context" in text for _, text in [played.texts(0)[0], played.texts(2)[0]]]
    assert offers == [False, True]


def test_ranking_prefers_rare_words_and_short_texts() -> None:
    ranking = Ranking(["the disk is full", "the disk", "the the the", "rare_word here", ""])
    assert [index for index, _ in ranking.best("disk", 5)] == [1, 0]
    assert [index for index, _ in ranking.best("RARE here full", 2)] == [3, 0]
    assert ranking.best("…", 5) == []
    assert Ranking([]).best("a", 3) == []
