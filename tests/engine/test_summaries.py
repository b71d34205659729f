"""Summaries by a model for a selector's menu: made beside the run, journaled in order, replaced where they fail."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from msgspec.structs import replace

from tests.engine.support import Answers, ListSink, Played, Reply, ScriptedModel, play, ports
from tests.support.equal_runs import comparable
from workbench.context.assembly import Request
from workbench.context.place import Place
from workbench.engine.contracts import Answer, ModelFault
from workbench.engine.definition import Options
from workbench.engine.journal.usage import Usage
from workbench.engine.past.recording import Kind, Recording
from workbench.engine.past.replay import Replay
from workbench.engine.run.run import Run
from workbench.store.index.rows import RowMaker
from workbench.store.index.tables import CardRow

LONG = "The harbour is full of ships that wait for the crane. " * 9
CONTEXT: dict[str, Any] = {
    "mode": "auto",
    "anchors": {"window": 0, "from_phases": [], "include": []},
    "selection": {"strategy": "llm", "selector_model": "picker"},
}
NOTES: dict[str, Any] = {
    "cascade_id": "notes",
    "phases": [
        {"name": "read", "instructions": "Read.", "rules": {"max_turns": 2, "turn_prompt": "Go on."}},
        {"name": "idle", "instructions": "Wait."},
        {"name": "tell", "instructions": "Tell.", "context": CONTEXT},
    ],
}
OPTIONS = Options("test", "gpt-4o-mini", card_model="small", backoff=0)


class Clerk(ScriptedModel):
    """Answers calls for cards by itself, after those that were begun later; the others as scripted."""

    def __init__(self, replies: dict[str, list[Reply]], cards: list[Reply]) -> None:
        super().__init__(replies)
        self.cards = cards
        self.asked = 0

    async def complete(self, request: Request, place: Place, images: Any, on_text: Any) -> Answer:
        if request.model != "small":
            return await super().complete(request, place, images, on_text)
        self.requests.append((place, request))
        self.asked += 1
        reply = self.cards[min(self.asked, len(self.cards)) - 1]
        for _ in range(6 - self.asked):
            await asyncio.sleep(0)
        if isinstance(reply, ModelFault):
            raise reply
        return reply if isinstance(reply, Answer) else Answer(reply, usage=Usage(input=50, output=5), cost=0.25)


def played(*cards: Reply, cascade: dict[str, Any] = NOTES, options: Options = OPTIONS) -> Played:
    pick = json.dumps({"selected": [1]})
    replies: dict[str, list[Reply]] = {"read": [LONG, LONG + "More."], "idle": ["Short."], "tell": [pick, "told"]}
    model = Clerk(replies, list(cards))
    return play(cascade, replies, options=options, own_model=model)


def menu(run: Played) -> str:
    return next(r.messages[-1].text for place, r in run.model.requests if r.model == "picker")


def test_long_messages_are_summed_up_and_the_menu_shows_it() -> None:
    run = played("Ships wait.", "More ships wait.")
    assert run.outcome.status == "success", run.outcome.reason
    assert "tokens: Ships wait.\n" in menu(run)
    assert "tokens: More ships wait.\n" in menu(run)
    assert "tokens: Short." in menu(run)
    calls = [call for call in run.state.calls if call.purpose == "card"]
    assert [(call.place.phase, call.place.turn, call.place.call) for call in calls] == [("read", 0, 1), ("read", 0, 2)]
    assert [event.data["summary"] for event in run.of_kind("card")] == ["Ships wait.", "More ships wait."]
    visit = next(visit for visit in run.state.visits if visit.phase == "read")
    assert len(visit.items) == 4, "a summary enters no history"


def test_the_summary_stands_in_the_card() -> None:
    maker = RowMaker("run-1")
    rows = [r for event in played("Ships wait.").events for r in maker.apply(event) if isinstance(r, CardRow)]
    assert {(row.summary, row.generator_model) for row in rows} >= {("Ships wait.", "small"), ("Short.", "heuristic")}


def test_a_summary_that_fails_is_a_warning_and_the_message_is_shortened_instead() -> None:
    run = played(ModelFault("authentication", "no key"))
    assert run.outcome.status == "success"
    assert "small wrote no summary: authentication: no key" in {e.data["message"] for e in run.of_kind("warning")}
    assert [event.data["fault"] for event in run.of_kind("card")] == ["authentication: no key"] * 2
    assert "characters)" in menu(run)


def test_a_fault_that_passes_is_tried_again_and_journaled() -> None:
    run = played(ModelFault("rate_limit", "slow down", retry_after=7.0), "Ships wait.", "More ships wait.")
    assert [round(seconds) for seconds in run.clock.slept] == [7], "as long as the provider asks for"
    (failed,) = run.of_kind("call_failed")
    assert failed.data["error"]["kind"] == "rate_limit"
    assert [event.data.get("fault") for event in run.of_kind("card")] == [None, None]


def test_a_replay_asks_nobody_and_gives_an_equal_journal() -> None:
    run = played("Ships wait.", "More ships wait.")
    replay, sink = Replay(Recording(run.events)), ListSink()
    again = Run(run.definition, {}, run.options, replay.ports(ports(ScriptedModel([]), human=Answers(), sink=sink)))
    assert asyncio.run(again.execute()).status == "success"
    assert replay.asked[Kind.MODEL] == 0
    assert comparable(sink.events) == comparable(run.events)


@pytest.mark.parametrize("missing", ["setting", "selector"])
def test_nothing_is_summed_up_unless_a_selector_and_the_settings_ask(missing: str) -> None:
    plain = CONTEXT | {"selection": {"strategy": "heuristic"}}
    phases = [*NOTES["phases"][:2], NOTES["phases"][2] | {"context": plain}]
    cascade = NOTES | {"phases": phases} if missing == "selector" else NOTES
    options = replace(OPTIONS, card_model="") if missing == "setting" else OPTIONS
    run = played("never", cascade=cascade, options=options)
    assert run.of_kind("card") == []
    assert [request.model for _, request in run.model.requests].count("small") == 0


def test_a_run_that_never_comes_to_the_selector_still_journals_what_it_paid() -> None:
    routed = {**NOTES, "phases": [NOTES["phases"][0] | {"output_extraction": {"pattern": "x{9}", "store_as": "k"}},
                                  {"name": "idle", "instructions": "{{ 1/0 }}"}, NOTES["phases"][2]]}  # fmt: skip
    run = played("Ships wait.", "More ships wait.", cascade=routed)
    assert run.outcome.status == "failed"
    assert len(run.of_kind("card")) == 2
    assert run.events[-1].kind == "run_finished"
