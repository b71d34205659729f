"""Selection by embeddings in a run: made beside it, awaited, journaled, and made once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.engine.support import (
    Answers,
    FlatPrices,
    FunctionTools,
    ListSink,
    Played,
    ScriptedModel,
    Words,
    play,
    ports,
)
from tests.support.equal_runs import comparable
from workbench.analysis.what_if import what_if
from workbench.context.strategy import parse
from workbench.engine.contracts import EmbeddedTexts, ModelFault
from workbench.engine.definition import Options
from workbench.engine.journal.event import packed, unpacked
from workbench.engine.past.recording import Recording
from workbench.engine.past.replay import Replay
from workbench.engine.run.run import Run
from workbench.store.index.rows import RowMaker
from workbench.store.index.tables import CardRow


@dataclass
class Weather:
    """Embeds a text by whether it is about the sea or about rain; fails as often as it is told to."""

    faults: list[ModelFault] = field(default_factory=list)
    asked: list[Sequence[str]] = field(default_factory=list)

    async def embed(self, texts: Sequence[str], model: str) -> EmbeddedTexts:
        self.asked.append(list(texts))
        if self.faults:
            raise self.faults.pop(0)
        await asyncio.sleep(0)
        sea = ("sea", "harbour", "ship")
        vectors = tuple((1.0, 0.1) if any(word in text for word in sea) else (0.1, 1.0) for text in texts)
        return EmbeddedTexts(vectors, "weather-1", 7, 0.5)


def notes(strategy: str = "semantic") -> dict[str, Any]:
    context = {
        "mode": "auto",
        "anchors": {"window": 0, "from_phases": [], "include": []},
        "selection": {"strategy": strategy, "similarity_threshold": 0.9},
    }
    return {
        "cascade_id": "notes",
        "phases": [
            {"name": "read", "instructions": "Read.", "rules": {"max_turns": 2, "turn_prompt": "Go on."}},
            {"name": "idle", "instructions": "Wait."},
            {"name": "tell", "instructions": "Tell about the sea.", "context": context},
        ],
    }


OPTIONS = Options("test", "gpt-4o-mini", embedding_model="weather", backoff=0)
REPLIES = {"read": ["The harbour is full.", "It rained."], "idle": ["A ship came."], "tell": ["told"]}


def played(embedder: Weather | None, options: Options = OPTIONS, strategy: str = "semantic") -> Played:
    given: dict[str, Any] = {"embedder": embedder} if embedder is not None else {}
    return play(notes(strategy), REPLIES, options=options, **given)


def sent(run: Played) -> list[tuple[str, str]]:
    entries = run.state.calls[-1].entries
    return [(e.item.message.text, e.reason.code) for e in entries if e.item.source.endswith("messages") and e.sent][1:]


def test_what_is_near_the_task_is_sent_and_each_visit_is_embedded_once_when_it_ends() -> None:
    embedder = Weather()
    run = played(embedder)
    assert run.outcome.status == "success", run.outcome.reason
    assert sent(run) == [("The harbour is full.", "similar"), ("A ship came.", "similar")]
    assert embedder.asked == [
        ["Read.", "The harbour is full.", "Go on.", "It rained."],
        ["Wait.", "A ship came."],
        ["Tell about the sea."],
    ]
    assert "auto (semantic, weather-1): 2 of 6 messages selected, 13 tokens" in run.state.calls[-1].notes
    assert [event.place.phase for event in run.of_kind("embedded")] == ["read", "idle", "tell"]


def test_the_vectors_stand_in_the_cards_of_the_messages() -> None:
    maker = RowMaker("run-1")
    rows = [row for event in played(Weather()).events for row in maker.apply(event) if isinstance(row, CardRow)]
    newest = {row.summary: row for row in rows}
    assert newest["It rained."].embedding == unpacked(packed((0.1, 1.0)))
    assert newest["It rained."].embedding_model == "weather-1"


def test_a_replay_and_a_what_if_embed_nothing() -> None:
    run = played(Weather())
    embedder, sink = Weather(), ListSink()
    replay = Replay(Recording(run.events))
    base = ports(ScriptedModel([]), tools=FunctionTools(), human=Answers(), sink=sink, embedder=embedder)
    again = Run(run.definition, {}, run.options, replay.ports(base))
    assert asyncio.run(again.execute()).status == "success"
    assert embedder.asked == []
    assert comparable(sink.events) == comparable(run.events)
    tried = what_if(run.state, run.definition, None, Words(), FlatPrices())
    assert tried[-1].assembly.entries == run.state.calls[-1].entries
    other = what_if(run.state, run.definition, parse("auto(strategy=semantic,max_messages=1)"), Words(), FlatPrices())
    assert "auto (semantic, weather-1): 1 of 6 messages selected, 6 tokens" in other[-1].assembly.notes


def test_a_fault_that_passes_is_tried_again_and_one_that_stays_is_a_warning() -> None:
    passing = Weather([ModelFault("rate_limit", "slow down", retry_after=0.0)])
    assert [code for _, code in sent(played(passing))] == ["similar", "similar"]
    final = [ModelFault("authentication", "no key") for _ in range(9)]
    run = played(Weather(final))
    assert run.outcome.status == "success"
    assert {code for _, code in sent(run)} <= {"alike"}
    words = "likeness is lexical: weather gave no embeddings: authentication: no key"
    assert ("embedding", words) in {(event.data["code"], event.data["message"]) for event in run.of_kind("warning")}
    assert any("no key; likeness is lexical" in note for note in run.state.calls[-1].notes)
    assert run.of_kind("embedded")[0].data["fault"]["kind"] == "authentication"


def test_the_fault_of_a_recording_is_the_fault_of_its_replay() -> None:
    run = played(Weather([ModelFault("authentication", "no key") for _ in range(9)]))
    sink = ListSink()
    again = Run(
        run.definition, {}, run.options, Replay(Recording(run.events)).ports(ports(ScriptedModel([]), sink=sink))
    )
    assert asyncio.run(again.execute()).status == "success"
    assert comparable(sink.events) == comparable(run.events)


@pytest.mark.parametrize(
    ("strategy", "options", "with_port"),
    [
        ("heuristic", OPTIONS, True),
        ("semantic", Options("test", "m"), True),
        ("semantic", OPTIONS, False),
    ],
)
def test_nothing_is_embedded_unless_a_phase_and_the_settings_ask(
    strategy: str, options: Options, with_port: bool
) -> None:
    embedder = Weather()
    run = played(embedder if with_port else None, options, strategy)
    assert run.outcome.status == "success"
    assert (embedder.asked, run.of_kind("embedded")) == ([], [])


def test_candidates_share_what_was_embedded_before() -> None:
    cascade, embedder = notes(), Weather()
    cascade["phases"][2]["soundings"] = {"factor": 2, "max_parallel": 2}
    replies = REPLIES | {"tell": ["one", "two", '{"winner": 1}']}
    run = play(cascade, replies, options=OPTIONS, embedder=embedder)
    assert run.outcome.status == "success", run.outcome.reason
    assert sum(texts.count("Tell about the sea.") for texts in embedder.asked) == 1
    assert sum("Read." in texts for texts in embedder.asked) == 1
