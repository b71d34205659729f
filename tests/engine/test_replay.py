"""Determinism: a recording replays through the engine with no call and an equal journal; a changed request is found."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.engine.support import Answers, ListSink, Played, Reply, ScriptedModel, call, native, play, ports
from tests.support.equal_runs import comparable
from workbench.context.assembly import Request
from workbench.context.place import Place
from workbench.engine.contracts import Answer, Images, ModelFault, ToolImage, ToolResult, ValidatorVerdict
from workbench.engine.definition import Definition
from workbench.engine.gate import Decision, RunStopped, Stop, StopKind
from workbench.engine.journal.event import Event
from workbench.engine.journal.state import RunState
from workbench.engine.journal.usage import Usage
from workbench.engine.past.recording import Kind, Recording
from workbench.engine.past.replay import RESUMED, Replay
from workbench.engine.run.run import Run

TWO: dict[str, Any] = {
    "cascade_id": "c",
    "phases": [
        {
            "name": "look",
            "instructions": "Look for {{ input.what }}.",
            "tackle": ["search", "ask_human", "set_state"],
            "rules": {"max_turns": 6},
            "intra_context": {"mask_observations_after": 1, "min_masked_size": 0},
            "handoffs": ["tell", "drop"],
        },
        {
            "name": "tell",
            "instructions": "Tell.",
            "context": {"from": ["look"]},
            "output_schema": {"type": "object"},
            "rules": {"max_attempts": 2},
        },
        {"name": "drop", "instructions": "Drop."},
    ],
}
REPLIES: dict[str, list[Reply]] = {
    "look": [
        "a" + call("search", x="1"),
        ModelFault("server", "503"),
        "b\n" + call("ask_human", question="Which?"),
        "c\n" + call("set_state", key="k", value=[1]),
        "d\n" + call("search", x="2") + "\n" + call("route_to", target="tell"),
    ],
    "tell": ["no", '{"a": 1}'],
}


def recorded() -> Played:
    images = (ToolImage(b"\x89PNG....", "image/png", 1, 1),)
    return play(
        TWO,
        {k: list(v) for k, v in REPLIES.items()},
        input={"what": "it"},
        tools={"search": lambda x: ToolResult(f"hit {x} " * 40, images=images)},
        answers=["the second"],
    )


def replayed(played: Played, definition: Definition | None = None) -> tuple[list[Event], str, Replay]:
    replay = Replay(Recording(played.events, played.blobs))
    sink = ListSink()
    base = ports(ScriptedModel([]), tools=played.tools, human=Answers(), sink=sink)
    run = Run(definition or played.definition, {"what": "it"}, played.options, replay.ports(base))
    outcome = asyncio.run(run.execute())
    return sink.events, outcome.reason or outcome.status, replay


def check_replay(played: Played) -> Replay:
    """Replay a run that succeeded: the replay succeeds with an equal journal."""
    events, status, replay = replayed(played)
    assert status == "success"
    assert comparable(events) == comparable(played.events)
    return replay


def test_a_replay_makes_no_call_and_gives_an_equal_journal() -> None:
    played = recorded()
    assert played.outcome.status == "success", played.outcome.reason
    before = len(played.tools.called)
    events, status, replay = replayed(played)
    assert status == "success"
    assert (replay.asked[Kind.MODEL], replay.asked[Kind.TOOL]) == (0, 0)
    assert len(played.tools.called) == before
    assert comparable(events) == comparable(played.events)


def test_an_edited_cascade_diverges_at_the_first_changed_request_and_names_the_message() -> None:
    played = recorded()
    changed = Definition.of(played.definition.source.text.replace('"Tell."', '"Tell me."'), "test.yaml")
    events, reason, _ = replayed(played, changed)
    assert events[-1].data["status"] == "diverged"
    assert "call tell:1:" in reason
    assert "task" in reason


def test_a_changed_mask_diverges_and_names_the_rule() -> None:
    played = recorded()
    text = played.definition.source.text.replace('"mask_observations_after": 1', '"mask_observations_after": 2')
    _, reason, _ = replayed(played, Definition.of(text, "test.yaml"))
    assert "mask_observations_after" in reason


def test_with_live_ports_behind_it_only_what_changed_is_asked_again() -> None:
    played = recorded()
    changed = Definition.of(played.definition.source.text.replace('"Tell."', '"Tell me."'), "test.yaml")
    model = ScriptedModel(['{"b": 2}'])
    sink = ListSink()
    base = ports(model, tools=played.tools, sink=sink)
    replay = Replay(Recording(played.events, played.blobs), RESUMED, base)
    outcome = asyncio.run(Run(changed, {"what": "it"}, played.options, replay.ports(base)).execute())
    assert outcome.status == "success"
    assert [place.phase for place, _ in model.requests] == ["tell"]
    assert replay.asked[Kind.MODEL] == 1


def test_a_table_that_was_no_json_is_an_object_again_when_it_is_replayed() -> None:
    """A tool may give an object beside its text; later templates read the object, so the journal holds it."""
    phases = [
        {"name": "fetch", "tool": "search", "inputs": {"x": "1"}},
        {"name": "tell", "instructions": "{% for row in outputs.fetch.rows %}{{ row }};{% endfor %}"},
    ]
    table = ToolResult("a | b", value={"rows": ["one", "two"]})
    cascade = {"cascade_id": "c", "phases": phases}
    played = play(cascade, ["ok"], input={"what": "it"}, tools={"search": lambda x: table})
    assert played.texts(0)[-1] == ("user", "one;two;")
    check_replay(played)


class StopAt:
    """A gate that ends the run before its n-th call."""

    def __init__(self, call: int) -> None:
        self.left = call

    async def __call__(self, stop: Stop) -> Decision:
        if stop.kind is StopKind.BEFORE_CALL:
            self.left -= 1
            if self.left == 0:
                raise RunStopped("enough")
        return Decision()


@pytest.mark.parametrize("stop_at", [1, 2, 3, 4, 5, 6])
def test_a_stopped_run_goes_on_in_its_own_journal_and_ends_as_if_never_stopped(stop_at: int) -> None:
    whole = recorded()
    all_replies = {k: list(v) for k, v in REPLIES.items()}
    images = (ToolImage(b"\x89PNG....", "image/png", 1, 1),)
    tools = {"search": lambda x: ToolResult(f"hit {x} " * 40, images=images)}
    stopped = play(TWO, all_replies, input={"what": "it"}, tools=tools, answers=["the second"], gate=StopAt(stop_at))
    assert stopped.outcome.status == "stopped"
    sink = ListSink()
    sink.events = list(stopped.events)
    base = ports(stopped.model, tools=stopped.tools, sink=sink, human=Answers(["the second"]))
    replay = Replay(Recording(stopped.events, stopped.blobs), RESUMED, base)
    run = Run(
        stopped.definition,
        {"what": "it"},
        stopped.options,
        replay.ports(base),
        run_id="run-1",
        journaled=stopped.events,
    )
    outcome = asyncio.run(run.execute())
    assert outcome.status == "success"
    assert [e.seq for e in sink.events] == list(range(1, len(sink.events) + 1))
    state = RunState.of(sink.events)
    assert state.status == "success"
    assert state.outputs == whole.state.outputs
    assert [c.digest for c in state.calls] == [c.digest for c in whole.state.calls]
    assert [c.entries for c in state.calls] == [c.entries for c in whole.state.calls]
    assert len(stopped.tools.called) == len(whole.tools.called)


class StopLive:
    """A gate that lets some calls to the model through, and ends the run before the next one."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    async def __call__(self, stop: Stop) -> Decision:
        if stop.kind is StopKind.BEFORE_CALL and stop.answered_by == "live":
            await asyncio.sleep(0)  # Candidates take turns, as they do where a model takes its time.
            self.left -= 1
            if self.left < 0:
                raise RunStopped("enough")
        return Decision()


def test_a_call_that_a_resume_sends_again_is_told_before_it_leaves_however_often() -> None:
    """The process is killed while the provider works, and again after each resume: each request may be billed."""
    sink = ListSink()
    left: list[list[Event]] = []

    class Killed(ScriptedModel):
        async def complete(self, *asked: Any) -> Answer:
            left.append(list(sink.events))
            return await super().complete(*asked)

    document = {"cascade_id": "c", "phases": [{"name": "p", "instructions": "x"}]}
    played = play(document, ["ok"], input={"what": "it"})
    sent = next(index for index, event in enumerate(played.events) if event.kind == "call_started")
    left.append(list(played.events[: sent + 1]))
    for _ in range(3):
        sink.events = list(left[-1])
        base = ports(Killed(["ok"]), sink=sink)
        replay = Replay(Recording(sink.events, played.blobs), RESUMED, base)
        again = Run(
            played.definition,
            {"what": "it"},
            played.options,
            replay.ports(base),
            run_id="run-1",
            journaled=list(sink.events),
        )
        assert asyncio.run(again.execute()).status == "success"
    assert [RunState.of(events).unanswered.own.again for events in left] == [0, 1, 2, 3]
    state = RunState.of(sink.events)
    assert (state.unanswered.own.again, len(state.calls), state.own.calls) == (3, 1, 1)


class ByPlace(ScriptedModel):
    """Answers by the place alone: two tool calls, then an answer."""

    async def complete(self, request: Request, place: Place, images: Images, on_text: Callable[[str], None]) -> Answer:
        if place.phase == "p" and 0 < place.turn < 3:
            return native("", t={"x": str(place.turn)})
        text = f"{place.branch} {place.phase} {place.turn}" if place.turn else "Winner: 1"
        return Answer(text, usage=Usage(input=100, output=10))


class KilledAt(ByPlace):
    """Keeps what the journal holds when so many calls of a phase are under way: there the process is killed."""

    def __init__(self, phase: str, calls: int, sink: ListSink) -> None:
        super().__init__([])
        self._phase, self._calls, self._sink = phase, calls, sink
        self.left: list[Event] = []

    async def complete(self, request: Request, place: Place, images: Images, on_text: Callable[[str], None]) -> Answer:
        if place.phase == self._phase and place.turn:
            self._calls -= 1
            while self._calls > 0:
                await asyncio.sleep(0)
            self.left = self.left or list(self._sink.events)
        return await super().complete(request, place, images, on_text)


@pytest.mark.parametrize("rivals", [1, 3])
def test_a_call_that_a_kill_cut_off_and_a_resume_answered_is_no_news_to_the_next_resume(rivals: int) -> None:
    """The process is killed at the first call of the first phase, then at that of the second, then once more."""
    soundings = {"soundings": {"factor": rivals, "evaluator_instructions": "the best"}} if rivals > 1 else {}
    phases = [{"name": "a", "instructions": "x", **soundings}, {"name": "b", "instructions": "y"}]
    played = play({"cascade_id": "c", "phases": phases}, [], own_model=ByPlace([]), input={"what": "it"})
    kept: list[Event] = []
    for phase, calls in (("a", rivals), ("b", 1), ("b", 1), ("", 0)):
        sink = ListSink()
        sink.events = list(kept)
        model = KilledAt(phase, calls, sink)
        outside = ports(model, sink=sink)
        if kept:
            outside = Replay(Recording(kept, played.blobs), RESUMED, outside).ports(outside)
        given = (played.definition, {"what": "it"}, played.options, outside)
        assert asyncio.run(Run(*given, run_id="run-1", journaled=kept).execute()).status == "success"
        kept = model.left or sink.events
    answered = [event.place for event in kept if event.kind == "call_finished"]
    assert len(answered) == len(set(answered)) == len(played.of_kind("call_finished"))
    assert RunState.of(kept).unanswered.own.again == rivals + 2


@pytest.mark.parametrize("every", [1, 2, 3])
def test_candidates_that_are_stopped_again_and_again_are_journaled_once(every: int) -> None:
    rival = {"factor": 3, "evaluator_instructions": "the best"}
    look = {"name": "p", "instructions": "x", "tackle": ["t"], "use_native_tools": True, "rules": {"max_turns": 3}}
    tell = {"name": "q", "instructions": "y", "context": {"from": ["p"]}}
    document = {"cascade_id": "c", "phases": [look | {"soundings": rival}, tell]}
    given: dict[str, Any] = {"input": {"what": "it"}, "tools": {"t": lambda x: f"r{x}"}}
    whole = play(document, [], own_model=ByPlace([]), **given)
    part = play(document, [], own_model=ByPlace([]), gate=StopLive(every), **given)
    sink, resumes = ListSink(), 0
    sink.events = list(part.events)
    while sink.events[-1].data["status"] == "stopped":
        resumes += 1
        assert resumes < 100, "a run that is resumed comes no further"
        base = ports(part.model, tools=part.tools, sink=sink, gate=StopLive(every))
        replay = Replay(Recording(sink.events, part.blobs), RESUMED, base)
        again = Run(
            part.definition,
            given["input"],
            part.options,
            replay.ports(base),
            run_id="run-1",
            journaled=list(sink.events),
        )
        asyncio.run(again.execute())
    assert resumes > 2
    counted = ("call_started", "call_finished", "tool_finished", "phase_started", "evaluation_finished")
    once = Counter((e.kind, e.place, e.data.get("index")) for e in sink.events if e.kind in counted)
    assert once == Counter((e.kind, e.place, e.data.get("index")) for e in whole.events if e.kind in counted)
    state = RunState.of(sink.events)
    assert state.outputs == whole.state.outputs
    assert {c.place: c.entries for c in state.calls} == {c.place: c.entries for c in whole.state.calls}


def test_native_runs_replay_too() -> None:
    document = {
        "cascade_id": "c",
        "phases": [
            {"name": "p", "instructions": "x", "tackle": ["t"], "use_native_tools": True, "rules": {"max_turns": 3}}
        ],
    }
    played = play(document, [native("", t={"x": "1"}), "done"], input={"what": "it"}, tools={"t": lambda x: "r"})
    check_replay(played)


def test_recorded_verdicts_are_used_instead_of_validators() -> None:
    document = {"cascade_id": "c", "phases": [{"name": "p", "instructions": "x", "rules": {"loop_until": "v"}}]}
    verdicts = iter([ValidatorVerdict(False, "again"), ValidatorVerdict(True)])
    played = play(document, ["a", "b"], input={"what": "it"}, validators={"v": lambda text: next(verdicts)})
    assert played.outcome.status == "success"
    replay = Replay(Recording(played.events))
    sink = ListSink()
    from tests.engine.support import FunctionValidators

    known = FunctionValidators({"v": lambda text: ValidatorVerdict(False, "never asked")})
    base = ports(ScriptedModel([]), validators=known, sink=sink)
    asyncio.run(Run(played.definition, {"what": "it"}, played.options, replay.ports(base)).execute())
    assert comparable(sink.events) == comparable(played.events)


WAY: dict[str, Any] = {
    "cascade_id": "c",
    "phases": [
        {"name": "one", "instructions": "First."},
        {
            "name": "two",
            "instructions": "Second.",
            "context": {"from": ["one"]},
            "tackle": ["search"],
            "rules": {"max_turns": 3},
        },
    ],
}
SAID: dict[str, list[Reply]] = {"one": ["a"], "two": [call("search", x="1"), "c"]}


def with_phase(number: int, **keys: Any) -> dict[str, Any]:
    phases = [{**phase, **keys} if at == number else phase for at, phase in enumerate(WAY["phases"])]
    return {**WAY, "phases": [{key: value for key, value in phase.items() if value is not None} for phase in phases]}


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (
            with_phase(0, instructions="Third."),
            "call one:1: message 1 (task of one turn 1; rule phases[0].instructions, line 1) is not as recorded",
        ),
        (
            with_phase(1, instructions="Third."),
            "call two:1: message 4 (task of two turn 1; rule phases[1].instructions, line 1) is not as recorded",
        ),
        (
            with_phase(1, context=None),
            "call two:1: message 2 (input; rule default) is not as recorded",
        ),
        (with_phase(1, model="gpt-4o"), "call two:1: model, parameters or tools are not as recorded"),
        (with_phase(0, temperature=0.5), "call one:1: model, parameters or tools are not as recorded"),
        (
            {**WAY, "phases": [WAY["phases"][0], {"name": "new", "instructions": "New."}, WAY["phases"][1]]},
            "call new:1: the recording has no call here",
        ),
        (with_phase(0, rules={"max_turns": 2}), "call one:2: the recording has no call here"),
    ],
)
def test_a_divergence_says_what_is_not_as_recorded(changed: dict[str, Any], reason: str) -> None:
    said = {name: list(texts) for name, texts in SAID.items()}
    played = play(WAY, said, input={"what": "it"}, tools={"search": lambda x="": "hit"})
    assert played.outcome.status == "success", played.outcome.reason
    events, told, _ = replayed(played, Definition.of(json.dumps(changed), "test.yaml"))
    assert (events[-1].data["status"], told) == ("diverged", reason)
