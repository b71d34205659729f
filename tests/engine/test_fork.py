"""Forks and re-runs: no call before the point, live behind it; unchanged calls are answered from the recording."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from tests.engine.support import ListSink, Played, Reply, ScriptedModel, call, play, ports
from tests.engine.test_children import Shelf
from tests.support.equal_runs import comparable
from workbench.analysis.changed import changed_call
from workbench.context.edits import ChangeMessage, DropMessage
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.engine.debugger.stepper import Mode, Stepper
from workbench.engine.definition import Definition, Outcome, Parent
from workbench.engine.edits import Edit, SetAnswer, SetModel, SetResult, SetState
from workbench.engine.gate import Decision, Gate, Stop, StopKind, open_gate
from workbench.engine.journal.event import Event, seconds_between
from workbench.engine.journal.state import RunState
from workbench.engine.past.fork import ForkGate, ForkPoint, find_place, find_point
from workbench.engine.past.places import NoSuchPlace, find_call
from workbench.engine.past.recording import Kind, Recording
from workbench.engine.past.replay import FORKED, REUSED, Policy, Replay
from workbench.engine.run.run import Run

BEFORE, AFTER = StopKind.BEFORE_CALL, StopKind.AFTER_CALL
TWO: dict[str, Any] = {
    "cascade_id": "c",
    "phases": [
        {"name": "look", "instructions": "Look.", "tackle": ["search"], "rules": {"max_turns": 4}},
        {"name": "tell", "instructions": "Tell {{ state.who }}.", "context": {"from": ["look"]}},
    ],
}
SOUNDED: dict[str, Any] = {
    "cascade_id": "c",
    "phases": [
        {
            "name": "draft",
            "instructions": "Draft.",
            "rules": {"max_turns": 1},
            "soundings": {"factor": 3, "evaluator_instructions": "Best?"},
        },
        {"name": "tell", "instructions": "Tell.", "context": {"from": ["draft"]}},
    ],
}


def recorded() -> Played:
    replies: list[Reply] = ["a\n" + call("search", x="1"), "b\n" + call("search", x="2"), "c", "told"]
    return play(TWO, replies, tools={"search": lambda x: f"hit {x}"})


def sounded() -> Played:
    return play(
        SOUNDED,
        {"draft": ["one", "two", "three", '{"winner": 2, "scores": {}, "reason": "because"}'], "tell": ["told"]},
    )


class Forked:
    """A fork that has ended."""

    def __init__(
        self,
        played: Played,
        point: ForkPoint,
        edits: Sequence[Edit] = (),
        replies: Any = (),
        pins: frozenset[Place] = frozenset(),
    ) -> None:
        self.opened: list[int] = []
        self.model = ScriptedModel(replies)
        self.sink = ListSink()
        self.before = len(played.tools.called)
        live = ports(self.model, tools=played.tools, sink=self.sink)
        self.replay = Replay(Recording(played.events), FORKED, live, pins=pins)
        gate = ForkGate(self.replay, point, edits, open_gate, lambda: self.opened.append(len(self.model.requests)))
        live.gate = gate
        parent = Parent("run-1", "test", "fork", at=str(point))
        run = Run(played.definition, {}, played.options, self.replay.ports(live), run_id="fork", parent=parent)
        self.outcome: Outcome = asyncio.run(run.execute())

    @property
    def made(self) -> list[str]:
        """The live calls."""
        return [f"{place.branch}:{place.phase}:{place.turn}" for place, _ in self.model.requests]


LATER = "2099-01-02"


def moved(event: Event) -> Event:
    """Years later, at the same time of the day."""
    return replace(event, at=LATER + event.at[10:])


def test_the_time_between_the_recorded_past_and_what_went_on_live_counts_for_no_phase() -> None:
    events = Forked(recorded(), ForkPoint(BEFORE, Place("", "tell", 1, 1, 1, 1)), (), ["other"]).sink.events
    live = next(i for i, e in enumerate(events) if e.place.phase == "tell" and e.kind == "call_started")
    look, tell = RunState.of(
        moved(e) if i in (0, *range(live, len(events))) else e for i, e in enumerate(events)
    ).visits
    assert (seconds_between(tell.started, tell.finished) or 0.0) > 86_400
    assert look.seconds == 0
    assert 0 < (tell.seconds or 0.0) < 60


def test_a_pause_between_a_stop_and_going_on_counts_for_no_phase() -> None:
    events = recorded().events
    cut = next(i for i, e in enumerate(events) if e.kind == "call_finished") + 1
    stop = replace(events[cut], kind="phase_finished", data={"status": "stopped"})
    go_on = moved(replace(stop, kind="run_resumed", place=Place(), data={}))
    look = RunState.of([*events[:cut], stop, go_on, *map(moved, events[cut:])]).visits[0]
    passed = seconds_between(look.started, look.finished) or 0.0
    assert look.away > 86_400
    assert passed - look.away < 60


def point(played: Played, at: str, kind: StopKind = BEFORE, index: int = 0) -> ForkPoint:
    return find_point(Recording(played.events), kind, at, index)


def test_a_fork_makes_no_call_before_its_point_and_all_behind_it() -> None:
    played = recorded()
    forked = Forked(played, point(played, "look:2"), replies=["other", "new"])
    assert forked.opened == [0]
    assert forked.made == [":look:2", ":tell:1"]
    assert forked.outcome.output == "new"
    assert len(played.tools.called) == forked.before, "the results before the point are the recorded ones"
    parent = forked.sink.events[0].data["parent"]
    assert (parent["kind"], parent["session_id"], parent["at"]) == ("fork", "test", "look/1/1/2/1 (before_call)")


def test_a_fork_edits_where_it_begins_and_its_journal_says_so() -> None:
    played = recorded()
    task = ChangeMessage(1, Message("user", "Look again."))
    forked = Forked(played, point(played, "look:2"), [task, SetModel("gpt-4o", default=True)], ["other", "new"])
    assert [request.model for _, request in forked.model.requests] == ["gpt-4o", "gpt-4o"]
    assert "Look again." in [message.text for message in forked.model.requests[0][1].messages]
    assert [event.data["what"] for event in forked.sink.events if event.kind == "edited"] == ["change", "model"]


@pytest.mark.parametrize(
    ("kind", "at", "edit", "made"),
    [
        (StopKind.BEFORE_PHASE, "tell", SetState("who", "Ada"), [":tell:1"]),
        (AFTER, "look:1", SetAnswer(Message("assistant", "nothing")), [":tell:1"]),
        (StopKind.AFTER_TOOL, "look:2", SetResult("other"), [":look:3", ":tell:1"]),
    ],
)
def test_a_fork_can_begin_at_any_stop(kind: StopKind, at: str, edit: Edit, made: list[str]) -> None:
    played = recorded()
    forked = Forked(played, point(played, at, kind), [edit], ["x", "y"])
    assert forked.made == made
    assert forked.outcome.status == "success"


def test_a_fork_of_a_fork_replays_the_edits_of_the_first() -> None:
    played = recorded()
    first = Forked(played, point(played, "look:2"), [DropMessage(2), DropMessage(3)], ["other", "new"])
    recording = Recording(first.sink.events)
    live = ports(ScriptedModel(["newer"]), tools=played.tools, sink=ListSink())
    replay = Replay(recording, FORKED, live)
    live.gate = ForkGate(replay, find_point(recording, BEFORE, "tell"), (), open_gate)
    outcome = asyncio.run(Run(played.definition, {}, played.options, replay.ports(live)).execute())
    assert (outcome.status, outcome.output, replay.asked[Kind.MODEL]) == ("success", "newer", 1)


def test_a_pinned_call_keeps_its_answer_and_results_behind_the_point() -> None:
    played = recorded()
    pins = frozenset({Place("", "look", 1, 1, 2, 1)})
    forked = Forked(played, point(played, "look:1"), replies=[call("search", x="9"), "c", "t"], pins=pins)
    assert forked.made == [":look:1", ":look:3", ":tell:1"]
    assert [arguments["x"] for _, arguments in played.tools.called[forked.before :]] == ["9"]


def test_a_fork_inside_a_candidate_leaves_the_others_as_they_were() -> None:
    played = sounded()
    state = Recording(played.events).state
    second = next(c.place for c in state.calls if c.place.branch and state.calls.index(c) == 1)
    forked = Forked(
        played,
        point(played, str(second)),
        replies={"draft": ["new two", '{"winner": 1, "scores": {}, "reason": "because"}'], "tell": ["new"]},
    )
    assert forked.outcome.status == "success", forked.outcome.reason
    branches = [place.branch for place, _ in forked.model.requests]
    assert branches == [second.branch, "", ""], "one candidate, the evaluation and what follows it are live"


def test_an_edit_that_breaks_the_request_ends_the_fork_before_it_is_worth_keeping() -> None:
    played = recorded()
    forked = Forked(played, point(played, "look:2"), [DropMessage(1)])
    assert forked.opened == []
    assert forked.outcome.status == "stopped"
    assert "look:2: the edit breaks the request: message 2: the task is not sent" in forked.outcome.reason


def test_a_definition_that_changes_a_request_before_the_point_diverges_without_a_call() -> None:
    played = recorded()
    where = point(played, "tell")
    played.definition = Definition.of(played.definition.source.text.replace('"Look."', '"Look!"'), "test.yaml")
    forked = Forked(played, where)
    assert (forked.outcome.status, forked.opened, forked.made) == ("diverged", [], [])


@pytest.mark.parametrize(
    ("kind", "at", "words"),
    [
        (BEFORE, "look:9", "look:9 never ran; look came to turn 3"),
        (BEFORE, "lok", "phase 'lok' made no call in this run; look, tell did"),
        (BEFORE, "look:x", "turns count from 1"),
        (BEFORE, "look/1/1/9/1", "never ran"),
        (BEFORE, "look/1/1", "not a place"),
        (StopKind.BEFORE_TOOL, "look:3", "made no tool call 1"),
        (StopKind.AFTER_TOOL, "tell", "has no result of tool call 1"),
    ],
)
def test_a_place_that_never_ran_is_named(kind: StopKind, at: str, words: str) -> None:
    with pytest.raises(NoSuchPlace, match=words):
        point(recorded(), at, kind)


def test_a_place_means_the_latest_visit_and_the_last_attempt() -> None:
    cascade = {
        "cascade_id": "c",
        "phases": [
            {
                "name": "a",
                "instructions": "A.",
                "output_schema": {"type": "object"},
                "rules": {"max_attempts": 2, "max_turns": 1},
            }
        ],
    }
    played = play(cascade, ["no", "{}"])
    assert find_place(Recording(played.events), "a:1") == Place("", "a", 1, 2, 1, 1)
    assert find_place(Recording(played.events), "a") == Place("", "a", 1, 1, 1, 1)


def test_a_place_names_a_visit_as_the_screen_does() -> None:
    phases = [
        {"name": "a", "instructions": "A.", "handoffs": ["b"], "rules": {"max_turns": 1}},
        {"name": "b", "instructions": "B.", "handoffs": ["a", "c"], "rules": {"max_turns": 1}},
        {"name": "c", "instructions": "C."},
    ]
    replies: list[Reply] = [*("on\n" + call("route_to", target=to) for to in "babc"), "done"]
    recording = Recording(play({"cascade_id": "c", "phases": phases}, replies).events)
    assert [find_place(recording, text).visit for text in ("a", "a#1", "a#2:1", "b#1:1", "b:1")] == [2, 1, 2, 1, 2]
    with pytest.raises(NoSuchPlace, match="a#3 never ran; a came to visit 2"):
        find_place(recording, "a#3")


def test_a_place_in_full_is_found_also_where_the_name_of_its_phase_holds_a_slash() -> None:
    played = play({"cascade_id": "c", "phases": [{"name": "a/b", "instructions": "Go."}]}, ["done"])
    state, text = RunState.of(played.events), "a/b/1/1/1/1"
    place = state.calls[0].place
    assert find_place(Recording(played.events), text) == find_call(state, text) == place
    assert find_point(Recording(played.events), StopKind.BEFORE_CALL, text).place == place


# -- re-runs ---------------------------------------------------------------------------------------------------------


def fifty() -> Played:
    phases = [{"name": f"p{n}", "instructions": f"Say {n}.", "rules": {"max_turns": 5}} for n in range(10)]
    return play({"cascade_id": "c", "phases": phases}, [f"answer {n}" for n in range(50)])


def rerun(played: Played, text: str, replies: list[Reply], gate: Gate = open_gate) -> tuple[Outcome, list[str], Replay]:
    model = ScriptedModel(replies)
    live = ports(model, tools=played.tools, gate=gate)
    replay = Replay(Recording(played.events), REUSED, live)
    run = Run(Definition.of(text, "test.yaml"), {}, played.options, replay.ports(live))
    outcome = asyncio.run(run.execute())
    return outcome, [f"{place.phase}:{place.turn}" for place, _ in model.requests], replay


def test_of_fifty_calls_an_edit_in_the_last_phase_makes_its_five_again_and_no_other() -> None:
    played = fifty()
    assert len(played.model.requests) == 50
    text = played.definition.source.text.replace("Say 9.", "Say nine.")
    outcome, made, _ = rerun(played, text, [f"new {n}" for n in range(5)])
    assert made == [f"p9:{turn}" for turn in range(1, 6)]
    assert outcome.output == "new 4"


def test_a_rerun_of_an_unchanged_file_makes_no_call() -> None:
    played = fifty()
    outcome, made, replay = rerun(played, played.definition.source.text, [])
    assert (outcome.status, made, replay.asked[Kind.MODEL]) == ("success", [], 0)


def test_the_debugger_holds_at_the_first_changed_request_and_then_goes_live() -> None:
    played = fifty()
    held: list[Stop] = []
    text = played.definition.source.text.replace("Say 8.", "Say eight.")

    class Going(Stepper):
        async def __call__(self, stop: Stop) -> Decision:
            asyncio.get_running_loop().call_soon(self.go, Mode.CONTINUE)
            return await super().__call__(stop)

    stepper = Going(on_hold=lambda stop, why: held.append(stop))
    outcome, made, _ = rerun(played, text, [f"new {n}" for n in range(5)], stepper)
    assert [(stop.place.phase, stop.place.turn, stop.answered_by) for stop in held] == [("p8", 1, "changed")]
    assert made == [f"p8:{turn}" for turn in range(1, 6)]
    assert outcome.status == "success"


def test_a_changed_request_is_shown_with_the_line_that_changed_it() -> None:
    text = "cascade_id: c\nphases:\n  - name: a\n    instructions: Say it.\n    model: gpt-4o-mini\n"
    played = play(text, ["x"])
    seen: list[Stop] = []

    async def watch(stop: Stop) -> Decision:
        if stop.answered_by == "changed":
            seen.append(stop)
        return Decision()

    new = text.replace("Say it.", "Say it twice.").replace("gpt-4o-mini", "gpt-4o")
    rerun(played, new, ["y"], watch)
    changed = changed_call(Recording(played.events), Definition.of(new, "test.yaml"), seen[0])
    assert changed is not None
    message, setting = changed.parts
    assert (setting.kind, setting.was, setting.now, setting.rule.line) == ("model", "gpt-4o-mini", "gpt-4o", 5)
    assert setting.rule_words == ""
    assert (message.kind, message.rule.line) == ("reworded", 4)
    assert '"Say it." → "Say it twice."' in message.words
    assert changed.summary == "1 message reworded, another model"


# -- children --------------------------------------------------------------------------------------------------------

CHILD: dict[str, Any] = {
    "cascade_id": "child",
    "phases": [{"name": "p", "instructions": "Check.", "rules": {"max_turns": 1}}],
}
PARENT: dict[str, Any] = {
    "cascade_id": "parent",
    "phases": [
        {"name": "q", "instructions": "Ask.", "sub_cascades": [{"ref": "child.json"}], "rules": {"max_turns": 1}},
        {"name": "tell", "instructions": "Tell.", "rules": {"max_turns": 1}},
    ],
}


@pytest.mark.parametrize(("at", "made"), [("q", ["q", "tell"]), ("tell", ["tell"])])
def test_a_fork_behind_a_sub_cascade_replays_it_whole(at: str, made: list[str]) -> None:
    shelf = Shelf({"child": CHILD})
    played = play(PARENT, {"p": ["checked"], "q": ["asked"], "tell": ["told"]}, library=shelf)
    assert played.outcome.status == "success", played.outcome.reason
    children = {sink.events[0].run_id: Recording(sink.events) for sink in shelf.journals.values()}
    recording = Recording(played.events)
    model = ScriptedModel({"p": [], "q": ["asked again"], "tell": ["told again"]})
    live = ports(model, library=Shelf({"child": CHILD}))
    replay = Replay(recording, FORKED, live, children.get)
    live.gate = ForkGate(replay, find_point(recording, BEFORE, at), (), open_gate)
    outcome = asyncio.run(Run(played.definition, {}, played.options, replay.ports(live)).execute())
    assert (outcome.status, outcome.output) == ("success", "told again")
    assert [place.phase for place, _ in model.requests] == made


# -- determinism -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [recorded, sounded])
def test_two_replays_of_a_fork_give_equal_journals(make: Any) -> None:
    played: Played = make()
    place = "tell"
    forked = Forked(played, point(played, place), [SetState("who", "Ada")], ["new"])

    def again() -> list[Event]:
        sink = ListSink()
        base = ports(ScriptedModel([]), tools=played.tools, sink=sink)
        run = Run(played.definition, {}, played.options, Replay(Recording(forked.sink.events)).ports(base))
        assert asyncio.run(run.execute()).status == "success"
        return sink.events

    first, second = comparable(again()), comparable(again())
    assert first == second == comparable(forked.sink.events)


def test_before_the_point_no_tool_runs_whose_result_the_recording_has_lost() -> None:
    played = recorded()
    lost = played.of_kind("tool_finished")[0]
    model, before = ScriptedModel(["other"]), len(played.tools.called)
    live = ports(model, tools=played.tools, sink=ListSink())
    replay = Replay(Recording([event for event in played.events if event is not lost]), FORKED, live)
    live.gate = ForkGate(replay, ForkPoint(BEFORE, Place("", "tell", 1, 1, 1, 1)), (), open_gate)
    outcome = asyncio.run(Run(played.definition, {}, played.options, replay.ports(live)).execute())
    assert (outcome.status, len(played.tools.called), model.requests) == ("diverged", before, [])
    assert outcome.reason == "call look:1: the recording has no result of tool call 1 (search)"


@pytest.mark.parametrize("policy", [FORKED, REUSED])
def test_a_policy_that_goes_live_takes_live_ports(policy: Policy) -> None:
    with pytest.raises(ValueError, match=f"the policy '{policy.name}' takes live ports"):
        Replay(Recording([]), policy)
