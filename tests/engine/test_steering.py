"""Steering a run while it goes: feedback of a person, and hooks; and that a replay needs neither."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.engine.support import ListSink, Played, Reply, ScriptedModel, call, native, play, ports
from tests.engine.test_replay import StopLive, replayed
from tests.support.equal_runs import comparable
from workbench.context.place import Place
from workbench.context.reasons import explain
from workbench.engine import texts
from workbench.engine.contracts import Feedback, HookAction, HookEvent, HookResult
from workbench.engine.debugger.stepper import Mode, Stepper
from workbench.engine.gate import Decision, RunStopped, Stop, StopKind
from workbench.engine.past.recording import Kind, Recording
from workbench.engine.past.replay import RESUMED, REUSED, Replay
from workbench.engine.run.run import Run
from workbench.engine.services import Injection, Injections


class Says:
    """A person who says what is listed for a place, once."""

    def __init__(self, **said: str) -> None:
        self.said = {key: Feedback(text.removeprefix("redo "), text.startswith("redo ")) for key, text in said.items()}

    async def hear(self, place: Place, *, redo: bool, tool: int = 0) -> Feedback | None:
        for key, feedback in self.said.items():
            if key == f"t{place.turn}" and feedback.redo == redo:
                del self.said[key]
                return feedback
        return None


class NeverFinishes:
    """A person who began to speak, and does not come to an end."""

    async def hear(self, place: Place, *, redo: bool, tool: int = 0) -> Feedback | None:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


def spoken(audibles: Any, replies: Sequence[str] = ("one", "two", "three"), **rule: Any) -> Played:
    document = {
        "cascade_id": "c",
        "phases": [{"name": "p", "instructions": "Write.", "rules": {"max_turns": 2}, "audibles": rule}],
    }
    return play(document, list(replies), input={"what": "it"}, audibles=audibles)


def same_again(played: Played) -> None:
    """The replay of a run needs nobody, and gives the same journal."""
    events, reason, replay = replayed(played)
    assert reason == (played.outcome.reason or played.outcome.status)
    assert (replay.asked[Kind.MODEL], replay.asked[Kind.TOOL]) == (0, 0)
    assert comparable(events) == comparable(played.events)


def test_feedback_is_in_the_next_call_with_its_reason() -> None:
    played = spoken(Says(t2="shorter"))
    assert ("user", "[User feedback]:\nshorter") in played.texts(1)
    assert ("user", "[User feedback]:\nshorter") not in played.texts(0)
    entry = played.state.calls[1].entries[-1]
    assert explain(entry, played.state.calls[1].place) == "feedback of a person"
    assert played.of_kind("audible")[0].data == {"index": 1, "redo": False, "text": "shorter", "left": 2}
    same_again(played)


def test_a_turn_is_taken_again_with_the_feedback_and_costs_no_turn() -> None:
    played = spoken(Says(t1="redo in French"))
    assert [str(place) for place, _ in played.model.requests] == ["p/1/1/1/1", "p/1/1/1/2", "p/1/1/2/1"]
    assert played.texts(1)[-2:] == [("assistant", "one"), ("user", "[User feedback]:\nin French")]
    assert played.outcome.output == "three"
    assert played.state.calls[1].purpose == "redo"
    same_again(played)


def test_a_run_that_reuses_answers_says_again_what_was_said_and_is_not_held_for_it() -> None:
    played, seen = spoken(Says(t1="shorter", t2="in French")), list[str]()

    async def gate(stop: Stop) -> Decision:
        seen.append(stop.answered_by)
        return Decision()

    live = ports(ScriptedModel([]), gate=gate)
    replay = Replay(Recording(played.events, played.blobs), REUSED, live)
    run = Run(played.definition, {"what": "it"}, played.options, replay.ports(live))
    assert asyncio.run(run.execute()).output == played.outcome.output
    assert replay.asked[Kind.MODEL] == 0
    assert "changed" not in seen


class AfterTools(Says):
    """The same person, who waits until the turn's tools have run."""

    async def hear(self, place: Place, *, redo: bool, tool: int = 0) -> Feedback | None:
        return None if tool else await super().hear(place, redo=redo)


def with_tools(audibles: Any, first: Reply, native: bool) -> tuple[Played, list[str]]:
    """A phase whose first answer calls a tool twice; what the tool was called with."""
    ran: list[str] = []

    def stamp(text: str) -> str:
        ran.append(text)
        return f"stamped {text}"

    phase = {"name": "p", "instructions": "Go.", "rules": {"max_turns": 2}, "audibles": {}, "tackle": ["stamp", "seal"]}
    document = {"cascade_id": "c", "phases": [phase | {"use_native_tools": native}]}
    tools = {"stamp": stamp, "seal": stamp}
    return play(document, [first, "two", "three"], input={"what": "it"}, audibles=audibles, tools=tools), ran


@pytest.mark.parametrize("is_native", [False, True])
def test_a_turn_that_is_taken_again_does_not_run_the_tools_that_wait(is_native: bool) -> None:
    calls = {"stamp": {"text": "a"}, "seal": {"text": "b"}}
    first = (
        native("", **calls) if is_native else "\n".join(call(name, **arguments) for name, arguments in calls.items())
    )
    played, ran = with_tools(Says(t1="redo not that"), first, is_native)
    assert (ran, played.outcome.output) == ([], "two")
    assert [place.turn for place, _ in played.model.requests] == [1, 1]
    finished = played.of_kind("tool_finished")
    assert [(event.data["index"], event.data["is_error"], event.data["text"]) for event in finished] == [
        (1, True, texts.NOT_RUN),
        (2, True, texts.NOT_RUN),
    ]
    tools = played.state.calls[0].tools
    assert [(tool.tool, json.loads(tool.arguments), tool.status) for tool in tools] == [
        ("stamp", {"text": "a"}, "failed"),
        ("seal", {"text": "b"}, "failed"),
    ]
    assert played.texts(1)[-1] == ("user", "[User feedback]:\nnot that")
    assert played.of_kind("audible")[0].data["tool"] == 1
    assert played.model.requests[1][1].messages[-2].role == ("tool" if is_native else "user")
    same_again(played)


def test_a_turn_that_is_taken_again_after_its_tools_keeps_their_results() -> None:
    played, ran = with_tools(AfterTools(t1="redo not that"), call("stamp", text="a"), native=False)
    assert ran == ["a"]
    assert [place.turn for place, _ in played.model.requests] == [1, 1]
    assert played.texts(1)[-2:] == [("user", "[Tool result: stamp]\nstamped a"), ("user", "[User feedback]:\nnot that")]
    assert "tool" not in played.of_kind("audible")[0].data
    same_again(played)


def test_a_route_that_was_chosen_in_a_turn_taken_again_is_forgotten() -> None:
    document = {
        "cascade_id": "c",
        "phases": [
            {"name": "p", "instructions": "Go.", "handoffs": ["q", "r"], "audibles": {}},
            {"name": "q", "instructions": "Q"},
            {"name": "r", "instructions": "R"},
        ],
    }
    replies = {
        "p": ["To q." + call("route_to", target="q"), "To r." + call("route_to", target="r")],
        "r": ["end"],
    }
    played = play(document, replies, input={"what": "it"}, audibles=Says(t1="redo the other one"))
    assert played.of_kind("route_chosen")[0].data["to"] == "r"
    same_again(played)


@pytest.mark.parametrize(
    ("rule", "heard"), [({"budget": 1}, 1), ({"budget": 0}, 0), ({"enabled": False}, 0), ({"budget": 9}, 2)]
)
def test_feedback_stays_within_the_budget(rule: dict[str, Any], heard: int) -> None:
    assert len(spoken(Says(t1="a", t2="b"), **rule).of_kind("audible")) == heard


def test_without_allow_retry_no_turn_is_taken_again() -> None:
    played = spoken(Says(t1="redo it"), allow_retry=False)
    assert played.of_kind("audible") == []


def test_a_phase_without_audibles_hears_nobody() -> None:
    document = {"cascade_id": "c", "phases": [{"name": "p", "instructions": "Write."}]}
    assert play(document, ["one"], audibles=Says(t1="a")).of_kind("audible") == []


def test_who_begins_to_speak_and_does_not_end_is_waited_for_so_long_and_journaled() -> None:
    played = spoken(NeverFinishes(), timeout_seconds=45)
    assert played.outcome.status == "success"
    assert set(played.clock.slept) == {45}
    assert played.of_kind("audible")[0].data["timed_out"] is True
    same_again(played)


# -- hooks -----------------------------------------------------------------------------------------------------------


class Hooked:
    """Functions as hooks, by type; keeps what they were told."""

    def __init__(self, **functions: Callable[[HookEvent], HookResult | None]) -> None:
        self.functions = functions
        self.told: list[HookEvent] = []

    def wants(self, type: str) -> bool:
        return type in self.functions or "every" in self.functions

    async def call(self, event: HookEvent, place: Place, index: int) -> Sequence[HookResult]:
        self.told.append(event)
        function = self.functions.get(event.type) or self.functions["every"]
        return [function(event) or HookResult("hook")]


def injects(text: str, reason: str = "") -> Callable[[HookEvent], HookResult]:
    return lambda event: HookResult("tell", HookAction.INJECT, text, reason)


PAUSE = HookResult("hold", HookAction.PAUSE, reason="look at this")
TWO = {
    "cascade_id": "c",
    "phases": [
        {"name": "p", "instructions": "Look.", "tackle": ["look"], "rules": {"max_turns": 2}},
        {"name": "q", "instructions": "Say."},
    ],
}


def hooked(hooks: Hooked, **more: Any) -> Played:
    replies = [call("look", x="a"), "seen", "said"]
    return play(TWO, replies, input={"what": "it"}, tools={"look": lambda x="": "a tree"}, hooks=hooks, **more)


def test_hooks_are_told_of_the_life_of_a_run_in_order() -> None:
    hooks = Hooked(every=lambda event: None)
    played = hooked(hooks)
    assert [(event.type, event.data.get("phase_name", "")) for event in hooks.told] == [
        ("cascade_start", ""),
        ("phase_start", "p"),
        ("turn_start", "p"),
        ("tool_call", "p"),
        ("tool_result", "p"),
        ("turn_start", "p"),
        ("phase_complete", "p"),
        ("phase_start", "q"),
        ("turn_start", "q"),
        ("phase_complete", "q"),
        ("cascade_complete", ""),
    ]
    result = next(event for event in hooks.told if event.type == "tool_result")
    assert (result.session_id, result.data["tool"], result.data["result"]) == ("test", "look", "a tree")
    assert played.of_kind("hook") == [], "a hook that only looks leaves nothing in the journal"


def test_a_failed_run_is_told_as_an_error() -> None:
    hooks = Hooked(cascade_error=lambda event: None)
    document = {"cascade_id": "c", "phases": [{"name": "p", "instructions": "x", "output_schema": {"type": "object"}}]}
    play(document, ["no"], hooks=hooks)
    assert hooks.told[0].data["status"] == "failed"


@pytest.mark.parametrize(
    ("type", "first"),
    [("cascade_start", 0), ("phase_start", 0), ("turn_start", 0), ("tool_call", 1), ("tool_result", 1)],
)
def test_what_a_hook_injects_is_in_the_next_call_and_says_why(type: str, first: int) -> None:
    played = hooked(Hooked(**{type: injects("Mind the gap.", "rule 7")}))
    said = [index for index in range(3) if ("user", "[User injection]:\nMind the gap.") in played.texts(index)]
    assert said[0] == first
    entries = played.state.calls[first].entries
    entry = next(entry for entry in entries if entry.item.message.text.endswith("Mind the gap."))
    assert explain(entry, played.state.calls[first].place) == "hook tell: rule 7"
    same_again(played)


def test_an_injection_does_not_come_between_native_calls_and_their_results() -> None:
    document = {"cascade_id": "c", "phases": [{**TWO["phases"][0], "use_native_tools": True}]}  # type: ignore[dict-item]
    replies: list[Reply] = [native("", look={"x": "a"}), "seen"]
    hooks = Hooked(tool_call=injects("Mind."))
    played = play(document, replies, input={"what": "it"}, tools={"look": lambda x="": "a tree"}, hooks=hooks)
    assert [role for role, _ in played.texts(1)][-3:] == ["assistant", "tool", "user"]
    assert played.state.calls[1].problems == ()
    same_again(played)


def test_every_candidate_sees_what_was_injected_before_them_once() -> None:
    document = {"cascade_id": "c", "phases": [{"name": "p", "instructions": "x", "soundings": {"factor": 2}}]}
    replies = ["a", "b", '{"winner": 1, "reason": "r"}']
    played = play(document, replies, input={"what": "it"}, hooks=Hooked(phase_start=injects("Mind.")))
    assert [("user", "[User injection]:\nMind.") in played.texts(n) for n in range(3)] == [True, True, False]
    same_again(played)


def test_a_pause_with_nobody_attached_stops_the_run_and_says_which_hook() -> None:
    played = hooked(Hooked(phase_complete=lambda event: PAUSE))
    assert played.outcome.status == "stopped"
    assert played.outcome.reason == "hook hold pauses the run: look at this"
    same_again(played)


def test_a_pause_holds_at_the_gate_and_the_run_goes_on_when_it_is_let_go() -> None:
    held: list[str] = []

    async def gate(stop: Stop) -> Decision:
        if stop.paused:
            held.append(f"{stop.kind} {stop.place.phase}: {stop.paused}")
        return Decision()

    played = hooked(Hooked(phase_start=lambda event: PAUSE), gate=gate)
    assert held == [f"hook {phase}: hook hold pauses the run: look at this" for phase in ("p", "q")]
    assert played.outcome.status == "success"
    same_again(played)


async def test_the_debuggers_gate_holds_where_a_hook_pauses_in_every_mode() -> None:
    stop = Stop(StopKind.HOOK, Place("", "p", 1), paused="hook h pauses the run")

    why: list[str] = []

    def held(_: Stop, reason: str) -> None:
        why.append(reason)
        stepper.go(Mode.CONTINUE)

    stepper = Stepper(on_hold=held)
    await stepper(stop)
    assert why[0] == "hook h pauses the run"


def test_a_hook_that_raises_is_a_warning_and_the_run_goes_on() -> None:
    played = hooked(Hooked(turn_start=lambda event: HookResult("bad", error="ZeroDivisionError: division by zero")))
    assert played.outcome.status == "success"
    warnings = [event.data["message"] for event in played.of_kind("warning") if event.data["code"] == "hook"]
    assert warnings == ["hook bad at turn_start: ZeroDivisionError: division by zero"], "once for each text"
    assert len(played.of_kind("hook")) == 3
    same_again(played)


def test_at_the_end_there_is_nothing_to_pause_and_that_is_said() -> None:
    played = hooked(Hooked(cascade_complete=lambda event: PAUSE))
    assert played.outcome.status == "success"
    assert "the run is over" in played.of_kind("warning")[-1].data["message"]
    same_again(played)


def test_a_gate_may_end_the_run_at_a_pause() -> None:
    async def gate(stop: Stop) -> Decision:
        if stop.paused:
            raise RunStopped("enough")
        return Decision()

    assert hooked(Hooked(cascade_start=lambda event: PAUSE), gate=gate).outcome.reason == "enough"


def test_secrets_in_what_a_hook_says_are_replaced() -> None:
    played = hooked(
        Hooked(phase_start=injects("key 1234")),
        redact=lambda text: (text.replace("1234", "[secret]"), text.count("1234")),
    )
    assert "1234" not in json.dumps([dict(event.data) for event in played.of_kind("hook")])
    assert ("user", "[User injection]:\nkey [secret]") in played.texts(0)


def test_what_waits_for_a_candidate_never_reaches_one_of_the_same_name_in_another_contest() -> None:
    waiting = Injections()
    for branch in ("", "s0", "s1"):
        waiting.add(Injection(f"for {branch or 'all'}", "", branch))
    assert [one.text for one in waiting.take("s0")] == ["for all", "for s0"]
    waiting.settled("", "s1")
    assert [one.text for one in waiting.take("s0")] == ["for s1"], "what waits for the winner goes on in its place"
    assert [one.text for one in waiting.take("s2")] == ["for s1"]
    assert waiting.take("") == [], "its candidates were told"


def test_candidates_of_one_walk_being_told_leaves_the_other_walk_to_be_told() -> None:
    waiting = Injections()
    waiting.add(Injection("for all", "", ""))
    assert waiting.take("s0/s0")
    waiting.settled("s0", "s0/s0")
    assert waiting.take("s0") == [], "its candidate was told"
    assert [one.text for one in waiting.take("s1")] == ["for all"]


@pytest.mark.parametrize("calls", [1, 2])
def test_hooks_that_were_not_told_of_the_end_are_told_when_the_run_is_resumed(calls: int) -> None:
    told = Hooked(every=lambda event: None)
    stopped = hooked(Hooked(), gate=StopLive(calls))
    assert stopped.outcome.status == "stopped"
    sink = ListSink()
    sink.events = list(stopped.events)
    base = ports(stopped.model, tools=stopped.tools, sink=sink, hooks=told)
    replay = Replay(Recording(sink.events, stopped.blobs), RESUMED, base)
    given: dict[str, Any] = {"run_id": stopped.events[0].run_id, "journaled": list(sink.events)}
    again = Run(stopped.definition, {"what": "it"}, stopped.options, replay.ports(base), **given)
    assert asyncio.run(again.execute()).status == "success"
    types = [event.type for event in told.told]
    assert types.count("cascade_complete") == 1
    assert types[-1] == "cascade_complete"
    assert "cascade_start" not in types, "the recorded run came past it"


def test_hooks_are_not_told_again_of_the_end_of_a_run_that_is_replayed_whole() -> None:
    told, played = Hooked(every=lambda event: None), hooked(Hooked())
    base = ports(ScriptedModel([]), tools=played.tools, hooks=told)
    replay = Replay(Recording(played.events, played.blobs), RESUMED, base)
    run = Run(played.definition, {"what": "it"}, played.options, replay.ports(base))
    assert asyncio.run(run.execute()).status == "success"
    assert told.told == []
