"""Edits at a stop: what they change, how they are journaled, and that a replay makes them again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.engine.support import ListSink, Played, Reply, ScriptedModel, call, native, play, ports
from tests.support.equal_runs import comparable
from workbench.context.assembly import Action
from workbench.context.edits import AddMessage, ChangeMessage, DropMessage, MoveMessage
from workbench.context.message import Message, TextPart, ToolCall
from workbench.engine.edits import (
    Edit,
    SetAnswer,
    SetArguments,
    SetModel,
    SetResult,
    SetState,
    SkipTool,
    from_json,
    to_json,
)
from workbench.engine.gate import Decision, Stop, StopKind
from workbench.engine.past.recording import Recording
from workbench.engine.past.replay import Replay
from workbench.engine.run.run import Run

LOOK: dict[str, Any] = {
    "cascade_id": "c",
    "phases": [
        {
            "name": "look",
            "instructions": "Look.",
            "tackle": ["search"],
            "rules": {"max_turns": 4},
            "intra_context": {"mask_observations_after": 1, "min_masked_size": 0},
        },
        {"name": "tell", "instructions": "Tell {{ state.who }}.", "context": {"from": ["look"]}},
    ],
}
REPLIES: list[Reply] = ["a\n" + call("search", x="1"), "b\n" + call("search", x="2"), "c", "told"]
BEFORE, AFTER = StopKind.BEFORE_CALL, StopKind.AFTER_CALL


class EditAt:
    """A gate that makes edits the first time it comes to a stop of this kind and turn."""

    def __init__(self, kind: StopKind, phase: str, turn: int, *edits: Edit, send: bool = False) -> None:
        self.where = (kind, phase, turn)
        self.edits: tuple[Edit, ...] = edits
        self.send = send
        self.seen: list[Stop] = []

    async def __call__(self, stop: Stop) -> Decision:
        if (stop.kind, stop.place.phase, stop.place.turn) != self.where:
            return Decision()
        self.seen.append(stop)
        return Decision(edits=self.edits) if len(self.seen) == 1 else Decision(send_anyway=self.send)


def edit(gate: EditAt, replies: Sequence[Reply] = REPLIES, cascade: Mapping[str, Any] = LOOK) -> Played:
    return play(cascade, list(replies), tools={"search": lambda x: f"hit {x}"}, gate=gate)


def replayed(played: Played) -> tuple[list[Any], str]:
    sink = ListSink()
    base = ports(ScriptedModel([]), tools=played.tools, sink=sink)
    run = Run(played.definition, {}, played.options, Replay(Recording(played.events)).ports(base))
    return sink.events, asyncio.run(run.execute()).reason


def texts(played: Played, call: int) -> list[str]:
    return [text for _, text in played.texts(call)]


def user(text: str) -> Message:
    return Message("user", text)


def test_a_changed_message_is_sent_and_later_turns_keep_it() -> None:
    gate = EditAt(BEFORE, "look", 2, ChangeMessage(1, user("Look closely.")))
    played = edit(gate)
    assert "Look closely." in texts(played, 1)
    assert "Look closely." in texts(played, 2)
    assert [stop.edited for stop in gate.seen] == [False, True]
    entry = played.state.calls[2].entries[1]
    assert (entry.reason.code, entry.rule.path, entry.item.edited) == ("edited", "edit", "changed")


def test_a_dropped_message_stays_in_sight_and_is_never_sent_again() -> None:
    played = edit(EditAt(BEFORE, "look", 2, DropMessage(2), DropMessage(3)))
    entries = played.state.calls[2].entries
    assert [entry.action for entry in entries[2:4]] == [Action.DROPPED, Action.DROPPED]
    assert not any("hit 1" in text for text in texts(played, 2))
    tell = played.state.calls[3].entries
    assert all("hit 1" not in entry.item.message.text for entry in tell), "later phases do not see it either"


def test_an_added_message_ages_with_its_neighbours_and_a_moved_one_changes_places() -> None:
    note = user("A note.")
    played = edit(EditAt(BEFORE, "look", 2, AddMessage(2, note), MoveMessage(2, 1)))
    assert texts(played, 1)[1:3] == ["A note.", "Look."]
    assert texts(played, 2)[1:3] == ["A note.", "Look."]
    with_mask = edit(EditAt(BEFORE, "look", 2, ChangeMessage(3, user("[Tool result: search]\nanother hit"))))
    assert with_mask.state.calls[2].entries[3].action is Action.MASKED, "an edited result is masked when it is old"


def test_an_edit_that_breaks_pairing_is_seen_at_once_and_not_sent() -> None:
    cascade = {"cascade_id": "c", "phases": [{**LOOK["phases"][0], "use_native_tools": True}]}
    gate = EditAt(BEFORE, "look", 2, DropMessage(1))
    played = edit(gate, [native("a", search={"x": "1"}), "b"], cascade)
    assert [stop.problems > 0 for stop in gate.seen] == [False, True]
    assert played.outcome.status == "failed"
    assert "invariant 1" in played.outcome.reason
    assert len(played.model.requests) == 1


def test_the_model_and_its_parameters_change_for_the_rest_of_the_visit() -> None:
    played = edit(EditAt(BEFORE, "look", 2, SetModel("gpt-4o", {"temperature": 0})))
    models = [request.model for _, request in played.model.requests]
    assert models == ["gpt-4o-mini", "gpt-4o", "gpt-4o", "gpt-4o-mini"]
    assert played.model.requests[1][1].parameters == {"temperature": 0}
    assert played.state.calls[1].model == "gpt-4o"


@pytest.mark.parametrize(("kind", "phase"), [(StopKind.BEFORE_PHASE, "tell"), (BEFORE, "look")])
def test_state_set_before_a_phase_is_seen_by_its_instructions(kind: StopKind, phase: str) -> None:
    turn = 0 if kind is StopKind.BEFORE_PHASE else 1
    played = edit(EditAt(kind, phase, turn, SetState("who", "Ada")))
    assert "Tell Ada." in texts(played, 3)
    assert played.state.state == {"who": "Ada"}


def test_before_a_phase_nothing_but_the_state_can_be_edited() -> None:
    played = edit(EditAt(StopKind.BEFORE_PHASE, "tell", 0, SetState("who", "Ada"), DropMessage(0)))
    assert played.outcome.status == "stopped"
    assert played.outcome.reason == "tell (before phase): 'drop' can be edited at before call only"
    assert played.state.state == {}, "none of the edits was made"


def test_an_edited_answer_is_what_the_turn_reads() -> None:
    cascade = {"cascade_id": "c", "phases": [{**LOOK["phases"][0], "use_native_tools": True}]}
    changed = Message("assistant", "Nothing to search.")
    played = edit(EditAt(AFTER, "look", 1, SetAnswer(changed)), [native("a", search={"x": "1"})], cascade)
    assert played.outcome.output == "Nothing to search."
    assert played.tools.called == []
    assert played.state.calls[0].answer == changed
    (put,) = played.of_kind("edited")[0].data["after"]
    assert not put.get("is_error"), "an answer of a person is no error of a tool"


def test_arguments_can_be_changed_a_tool_skipped_and_a_result_rewritten() -> None:
    played = edit(EditAt(StopKind.BEFORE_TOOL, "look", 1, SetArguments('{"x": "9"}')))
    assert played.tools.called[0] == ("search", {"x": "9"})
    played = edit(EditAt(StopKind.BEFORE_TOOL, "look", 1, SkipTool("not today", True)))
    assert [arguments for _, arguments in played.tools.called] == [{"x": "2"}]
    assert "[Tool error: search]\nnot today" in texts(played, 1)
    assert [(t.status, t.text) for t in played.state.calls[0].tools] == [("failed", "[Tool error: search]\nnot today")]
    played = edit(EditAt(StopKind.AFTER_TOOL, "look", 1, SetResult("a better hit")))
    assert "[Tool result: search]\na better hit" in texts(played, 1)
    assert played.state.calls[0].tools[0].text == "a better hit"


def test_the_tool_of_a_deterministic_phase_can_be_edited_too() -> None:
    cascade = {"cascade_id": "c", "phases": [{"name": "look", "tool": "search", "inputs": {"x": "1"}}]}
    played = edit(EditAt(StopKind.BEFORE_TOOL, "look", 0, SetArguments('{"x": "9"}')), [], cascade)
    assert played.outcome.output == "hit 9"
    played = edit(EditAt(StopKind.AFTER_TOOL, "look", 0, SetResult("other")), [], cascade)
    assert played.outcome.output == "other"


EVERY: list[tuple[StopKind, str, int, tuple[Edit, ...]]] = [
    (BEFORE, "look", 2, (ChangeMessage(1, user("Look closely.")), DropMessage(2), DropMessage(3))),
    (BEFORE, "look", 1, (ChangeMessage(0, Message("system", "## Available Tools\nNone.")), SetState("who", 1))),
    (BEFORE, "look", 2, (AddMessage(4, user("More.")), SetModel("gpt-4o", {"temperature": 0.5}))),
    (BEFORE, "look", 3, (MoveMessage(5, 3),)),
    (AFTER, "look", 2, (SetAnswer(Message("assistant", "enough")),)),
    (StopKind.BEFORE_TOOL, "look", 1, (SetArguments('{"x": "7"}'),)),
    (StopKind.BEFORE_TOOL, "look", 2, (SkipTool("no"),)),
    (StopKind.AFTER_TOOL, "look", 1, (SetResult("x", True), SetState("who", ["a"]))),
    (StopKind.BEFORE_PHASE, "tell", 0, (SetState("who", "Ada"),)),
]


@pytest.mark.parametrize("what", EVERY, ids=lambda what: f"{what[0]}-{type(what[3][0]).__name__}")
def test_a_replay_makes_every_edit_again_and_gives_an_equal_journal(
    what: tuple[StopKind, str, int, tuple[Edit, ...]],
) -> None:
    kind, phase, turn, edits = what
    played = edit(EditAt(kind, phase, turn, *edits, send=True))
    assert played.outcome.status == "success", played.outcome.reason
    made = played.of_kind("edited")
    assert len(made) == len(edits) == played.state.edited
    assert all("before" in event.data and "after" in event.data for event in made)
    assert [from_json(event.data["edit"]) for event in made] == list(edits)
    events, reason = replayed(played)
    assert reason == ""
    assert comparable(events) == comparable(played.events)
    again, _ = replayed(played)
    assert comparable(again) == comparable(events)


class OneByOne:
    """Makes each edit at a stop of its own, as a person does who looks at each of them."""

    def __init__(self, kind: StopKind, turn: int, *edits: Edit) -> None:
        self.where, self.left = (kind, "look", turn), list(edits)

    async def __call__(self, stop: Stop) -> Decision:
        if (stop.kind, stop.place.phase, stop.place.turn) == self.where and self.left:
            return Decision(edits=(self.left.pop(0),))
        return Decision()


@pytest.mark.parametrize(
    "gate",
    [
        OneByOne(BEFORE, 2, SetState("who", "A"), ChangeMessage(1, user("Look!")), SetState("who", "B"), SetModel("m")),
        OneByOne(BEFORE, 2, SetModel(""), SetState("who", "Ada"), AddMessage(3, user("And?"))),
        OneByOne(AFTER, 2, SetState("who", "Ada"), SetAnswer(Message("assistant", "x")), SetState("who", "Ben")),
        OneByOne(StopKind.BEFORE_TOOL, 1, SetState("who", "Ada"), SetArguments('{"x": "2"}'), SkipTool("no")),
    ],
)
def test_edits_made_one_after_the_other_are_made_so_again(
    gate: OneByOne,
) -> None:
    wanted = len(gate.left)
    played = play(LOOK, list(REPLIES), tools={"search": lambda x: f"hit {x}"}, gate=gate)
    assert played.outcome.status == "success", played.outcome.reason
    assert len(played.of_kind("edited")) == wanted
    events, reason = replayed(played)
    assert reason == ""
    assert comparable(events) == comparable(played.events)


@pytest.mark.parametrize(
    ("kind", "turn", "what", "words"),
    [
        (BEFORE, 2, DropMessage(40), "there is no message 41; the context has 4"),
        (BEFORE, 2, ChangeMessage(1, user(" ")), "would be blank"),
        (BEFORE, 2, SetAnswer(Message("assistant", "x")), "at after call only"),
        (AFTER, 1, SetAnswer(user("x")), "an answer is an assistant's message"),
        (StopKind.BEFORE_TOOL, 1, SetArguments("{"), "not valid JSON"),
        (StopKind.BEFORE_TOOL, 1, SetArguments("[]"), "not a JSON object"),
        (BEFORE, 2, MoveMessage(1, 0), "can go to places 2 to 4"),
    ],
)
def test_an_edit_that_makes_no_sense_stops_the_run_and_names_the_place(
    kind: StopKind, turn: int, what: Edit, words: str
) -> None:
    played = edit(EditAt(kind, "look", turn, what))
    assert played.outcome.status == "stopped"
    assert words in played.outcome.reason
    assert played.outcome.reason.startswith(f"look:{turn}")
    assert played.of_kind("edited") == []


def test_edits_go_to_json_and_back() -> None:
    for _, _, _, edits in EVERY:
        for one in edits:
            assert from_json(to_json(one)) == one


@pytest.mark.parametrize(
    "edits",
    [
        (BEFORE, ChangeMessage(1, user("hunter2 and on")), AddMessage(2, user("also hunter2"))),
        (BEFORE, AddMessage(2, Message("user", (TextPart("hunter2 in a part"),)))),
        (AFTER, SetAnswer(Message("assistant", "hunter2"))),
        (AFTER, SetAnswer(Message("assistant", "", (ToolCall("c1", "search", '{"x": "hunter2"}'),)))),
    ],
    ids=["text", "part", "answer", "arguments"],
)
def test_secrets_in_what_a_person_writes_are_replaced_before_they_are_sent_or_journaled(
    edits: tuple[StopKind, *tuple[Edit, ...]],
) -> None:
    def hide(text: str) -> tuple[str, int]:
        return text.replace("hunter2", "[redacted]"), text.count("hunter2")

    gate = EditAt(edits[0], "look", 1, *edits[1:])
    played = play(LOOK, list(REPLIES), tools={"search": lambda x: "hit"}, gate=gate, redact=hide)
    assert len(played.of_kind("edited")) == len(edits) - 1
    kept = str([event.data for event in played.events])
    assert "hunter2" not in kept
    assert "[redacted]" in kept


CONTEST: dict[str, Any] = {
    "cascade_id": "c",
    "phases": [
        {
            "name": "look",
            "instructions": "Look.",
            "output_schema": {"type": "object"},
            "soundings": {"factor": 2, "max_parallel": 1, "evaluator_instructions": "Best."},
        },
        {"name": "tell", "instructions": "Tell {{ state.who }}."},
    ],
}


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        (StopKind.BEFORE_CANDIDATES, 1),
        (StopKind.AFTER_CHECK, 1),
        (StopKind.AFTER_CHECK, 2),
        (StopKind.AFTER_EVALUATION, 1),
    ],
)
def test_the_state_is_edited_around_checks_and_candidates(kind: StopKind, number: int) -> None:
    """The second check is that of the candidate that wins, so that all but the first edit reach the next phase."""
    seen: list[Stop] = []

    async def gate(stop: Stop) -> Decision:
        if stop.kind is not kind or stop.edited:
            return Decision()
        seen.append(stop)
        return Decision(edits=(SetState("who", "Ada"),)) if len(seen) == number else Decision()

    replies = ['{"a": 1}', '{"a": 2}', '{"winner": 2}', "told"]
    played = play(CONTEST, replies, gate=gate)
    assert played.outcome.status == "success", played.outcome.reason
    assert len(played.of_kind("edited")) == 1
    reaches = (kind, number) != (StopKind.AFTER_CHECK, 1)
    assert (played.state.state.get("who") == "Ada") is reaches
    events, reason = replayed(played)
    assert reason == ""
    assert comparable(events) == comparable(played.events)
