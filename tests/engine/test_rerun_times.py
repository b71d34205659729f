"""A run that repeats a recording: what is repeated keeps its recorded time, what happens now has that of now."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.engine.support import ListSink, Played, ScriptedModel, StepClock, play, ports
from tests.engine.test_children import CHILD, Shelf
from tests.engine.test_clock import SlowModel
from workbench.context.place import Place
from workbench.engine.contracts import Answer
from workbench.engine.definition import Definition, Options
from workbench.engine.gate import Decision, Gate, RunStopped, Stop, StopKind, open_gate
from workbench.engine.journal.event import Event
from workbench.engine.journal.state import RunState
from workbench.engine.journal.usage import Usage
from workbench.engine.past.recording import Recording
from workbench.engine.past.replay import RECORDED, RESUMED, REUSED, STRICT, Policy, Replay
from workbench.engine.run.run import Run
from workbench.views.numbers import seconds
from workbench.views.run import RunView
from workbench.views.summary import SummaryRows
from workbench.views.timeline import Timeline, TimelineRows, numbers_of
from workbench.views.tree import TreeRows, TreeView
from workbench.views.value import Cell, Table

PHASES = [{"name": "a", "instructions": "x"}, {"name": "b", "instructions": "y"}]
TWO: dict[str, Any] = {"cascade_id": "c", "phases": PHASES}
OTHER: dict[str, Any] = {"cascade_id": "c", "phases": [PHASES[0], {"name": "b", "instructions": "z"}]}
NESTS: dict[str, Any] = {
    "cascade_id": "parent",
    "phases": [{"name": "outer", "instructions": "Go.", "sub_cascades": [{"ref": "child.json"}]}, PHASES[1]],
}
LATER = 1_800_000
"""Milliseconds between a run and the one that repeats it."""


HALVES = {"cascade_id": "child", "phases": [{"name": one, "instructions": one} for one in ("left", "right")]}


class Paused:
    """Pauses the run for a minute before each call, and stops it at the one of a phase."""

    def __init__(self, stops_at: str = "", clock: StepClock | None = None) -> None:
        self.clock = clock or StepClock()
        self._stops_at = stops_at

    async def __call__(self, stop: Stop) -> Decision:
        if stop.kind is not StopKind.BEFORE_CALL:
            return Decision()
        self.clock.skip(60_000)
        if stop.place.phase == self._stops_at:
            raise asyncio.CancelledError
        return Decision(held=True)


class StoppedAt:
    """Ends the run before the call of a phase."""

    def __init__(self, phase: str) -> None:
        self._phase = phase

    async def __call__(self, stop: Stop) -> Decision:
        if stop.kind is StopKind.BEFORE_CALL and stop.place.phase == self._phase:
            raise RunStopped("enough")
        return Decision()


class Rerun:
    """A run of half an hour later, with the state after it and those of its children."""

    def __init__(
        self,
        played: Played,
        gate: Gate = open_gate,
        *,
        policy: Policy = REUSED,
        cascade: Mapping[str, Any] | None = None,
        options: Options | None = None,
        shelf: Shelf | None = None,
    ) -> None:
        clock, sink = gate.clock if isinstance(gate, Paused) else StepClock(), ListSink()
        clock.skip(LATER)
        model = ScriptedModel(["live"] * 4)
        more: dict[str, Any] = {"library": shelf} if shelf is not None else {}
        base = ports(model, sink=sink, clock=clock, gate=gate, **more)
        cut_off = dict(shelf.journals) if shelf is not None else {}
        recorded = {key: Recording(one.events) for key, one in cut_off.items()}
        keys = {event.data["run_id"]: event.data["key"] for event in played.of_kind("child_started")}
        replay = Replay(
            Recording(played.events, played.blobs),
            policy,
            base if policy.live else None,
            lambda run_id: recorded.get(keys[run_id]),
        )
        definition = Definition.of(json.dumps(cascade), "test.yaml") if cascade is not None else played.definition
        goes_on = policy is RESUMED
        run_id, journaled = ("run-1", played.events) if goes_on else ("run-2", [])
        sink.events = list(journaled)
        run = Run(definition, {}, options or played.options, replay.ports(base), run_id=run_id, journaled=journaled)
        asyncio.run(run.execute())
        self.events, self.state = sink.events, RunState.of(sink.events)
        self.children = {key: RunState.of(one.events) for key, one in shelf.journals.items()} if shelf else {}

    def now(self) -> list[str]:
        """The kinds and phases of the events that happened now."""
        kinds = {one.kind for one in self.events} - {"blob", "context_assembled", "route_chosen", "phase_started"}
        told = [one for one in self.events if one.kind in kinds and one.at >= "2026-01-01T00:3"]
        return [" ".join(filter(None, (one.kind, one.place.phase))) for one in told]


@pytest.mark.parametrize(
    ("gate", "cascade", "options", "now"),
    [
        (None, None, None, ["run_started", "run_finished"]),
        (Paused, None, None, ["run_started", "paused a", "paused b", "run_finished"]),
        (
            lambda: Paused("b"),
            None,
            None,
            ["run_started", "paused a", "paused b", "run_finished"],
        ),
        (None, OTHER, None, ["run_started", "call_started b", "call_finished b", "phase_finished b", "run_finished"]),
        (
            None,
            None,
            Options("test", "gpt-4o-mini", max_calls=1),
            ["run_started", "phase_finished b", "run_finished"],
        ),
    ],
    ids=["whole", "paused", "stopped while paused", "another request", "another end"],
)
def test_what_happens_now_has_the_time_of_now(
    gate: Callable[[], Paused] | None, cascade: Any, options: Options | None, now: list[str]
) -> None:
    rerun = Rerun(play(TWO, ["one", "two"]), gate() if gate else open_gate, cascade=cascade, options=options)
    state = rerun.state
    assert rerun.now() == now
    assert state.seconds is not None
    assert 0 < state.seconds < 1
    assert state.paused == (60.0 * now.count("paused a") + 60.0 * now.count("paused b"))
    assert state.overhead is not None
    assert sum(visit.seconds or 0.0 for visit in state.visits) + state.overhead == pytest.approx(
        state.seconds, abs=1e-6
    )
    assert len(state.gaps) == 1


def test_what_is_repeated_keeps_its_recorded_time() -> None:
    """Also behind a pause: the forecasts of the prompt cache depend on it."""
    played, beside = play(TWO, ["one", "two"]), {"run_started", "run_finished", "paused"}
    recorded, again = (
        [(one.kind, one.place, one.at) for one in events if one.kind not in beside]
        for events in (played.events, Rerun(played, Paused()).events)
    )
    assert again == recorded


@pytest.mark.parametrize("policy", [REUSED, RESUMED])
def test_the_first_call_behind_a_recording_counts_on_no_cache_that_has_expired(policy: Policy) -> None:
    """Its request goes on from the recorded one, which was sent half an hour before."""
    checked = {"name": "a", "instructions": "word " * 2000, "output_schema": {"type": "object"}}
    twice = {"cascade_id": "c", "phases": [{**checked, "rules": {"max_attempts": 2}}]}
    answers = [Answer("no JSON", usage=Usage(input=2100, output=10))] * 2
    played = play(twice, answers, options=Options("test", "gpt-4o-mini", max_calls=1))
    state = Rerun(played, policy=policy, options=Options("test", "gpt-4o-mini")).state
    _, live = state.calls
    straight = RunState.of(play(twice, answers).events).calls[1]
    assert straight.forecast is not None
    assert straight.forecast.cached > 1024
    assert live.forecast is not None
    assert live.forecast.cached == 0


def test_a_nested_run_that_is_repeated_runs_when_its_parent_does() -> None:
    """In its parent's time, not hours before it; and what it repeats is no time of it either."""
    shelf = Shelf({"child": CHILD})
    played = play(NESTS, ["inner", "outer", "two"], library=shelf)
    rerun = Rerun(played, Paused(), shelf=shelf)
    (child,) = rerun.children.values()
    assert rerun.state.started <= child.started < child.finished <= rerun.state.finished
    assert child.seconds is not None
    assert rerun.state.seconds is not None
    assert child.seconds <= rerun.state.seconds < 1
    assert child.paused == 60.0


@pytest.mark.parametrize("kind", ["show", "timeline"])
def test_a_recorded_time_is_told_apart_from_that_of_the_run(kind: str) -> None:
    """The recorded call took a minute, which is no time of this run."""
    clock = StepClock()
    played = play(TWO, [], own_model=SlowModel(["one", "two"], clock), clock=clock)
    state = Rerun(played, cascade=OTHER).state
    assert state.seconds is not None
    if kind == "timeline":
        (head,) = TimelineRows(Timeline.of(state)).heads(120)
        assert head.text.rstrip().endswith(f"1m 00s recorded, then {seconds(state.seconds)}")
        return
    (table,) = (block for block in RunView(state).blocks() if isinstance(block, Table))
    times = [str(row[7]) for row in table.rows]
    assert (times[1], times[3]) == (
        f"⟲{seconds(state.calls[0].duration_s)}",
        seconds(state.calls[1].duration_s),
    )


def repeated(*live: tuple[float, str, Place, dict[str, Any]]) -> RunState:
    """A re-run that begins 100 seconds after its recording and ends 8 seconds later; a call of phase ``a`` is
    recorded."""
    a = Place("", "a", 1)
    call = a._replace(attempt=1, turn=1, call=1)
    recorded: list[tuple[float, str, Place, dict[str, Any]]] = [
        (100.0, "run_started", Place(), {"session_id": "again"}),
        (0.0, "phase_started", a, {}),
        (0.5, "context_assembled", call, {"tokens_sent": 9}),
        (1.0, "call_started", call, {}),
        (3.0, "call_finished", call, {"duration_s": 2.0, "recorded": True}),
    ]
    begun = datetime(2026, 1, 1, tzinfo=UTC)
    told = [*recorded, *live, (108.0, "run_finished", Place(), {"status": "success"})]
    return RunState.of(
        Event(seq, (begun + timedelta(seconds=at)).isoformat(), "r", kind, place, data)
        for seq, (at, kind, place, data) in enumerate(told, 1)
    )


@pytest.mark.parametrize(
    ("live", "phases", "beside", "spent"),
    [
        pytest.param(
            [(3.0, "phase_finished", Place("", "a", 1), {})],
            ["<1 ms"],
            {"overhead": "8.0s"},
            "2.0s recorded, then 8.0s idle",
            id="whole",
        ),
        pytest.param(
            [
                (102.5, "context_assembled", Place("", "a", 1, 1, 2, 1), {}),
                (102.6, "call_started", Place("", "a", 1, 1, 2, 1), {}),
                (107.25, "call_finished", Place("", "a", 1, 1, 2, 1), {"duration_s": 4.56}),
                (107.5, "phase_finished", Place("", "a", 1), {}),
            ],
            ["5.0s"],
            {"overhead": "3.0s"},
            "2.0s recorded, then 4.7s busy + 3.3s idle",
            id="goes live",
        ),
        pytest.param(
            [
                (3.0, "phase_finished", Place("", "a", 1), {}),
                (101.5, "context_assembled", Place("", "", 0, 0, 0, 1), {}),
                (102.0, "call_started", Place("", "", 0, 0, 0, 1), {}),
                (106.0, "call_finished", Place("", "", 0, 0, 0, 1), {"duration_s": 4.0}),
            ],
            ["<1 ms"],
            {"overhead": "4.0s"},
            "2.0s recorded, then 4.0s busy + 4.0s idle",
            id="a call beside the phases",
        ),
        pytest.param(
            [
                (101.0, "child_started", Place("", "a", 1), {"run_id": "slow", "session_id": "slow"}),
                (102.0, "phase_finished", Place("", "a", 1), {}),
                (107.0, "child_finished", Place("", "a", 1), {"run_id": "slow", "session_id": "slow"}),
            ],
            ["1.0s"],
            {"runs inside": "5.0s", "overhead": "2.0s"},
            "2.0s recorded, then ",
            id="a run that goes on after the phases",
        ),
    ],
)
def test_the_rows_of_a_rerun_add_up_to_its_time(
    live: list[tuple[float, str, Place, dict[str, Any]]], phases: list[str], beside: dict[str, str], spent: str
) -> None:
    """The start, going through what is recorded, and the wait for asynchronous runs are no time of a phase, and have
    rows of their own."""
    state = repeated(*live)
    assert state.seconds == 8.0
    (table,) = (block for block in RunView(state).blocks() if isinstance(block, Table))
    times = {row[0].text if isinstance(row[0], Cell) else str(row[0]): str(row[-2]) for row in table.rows}
    names = ("a", "runs inside", "overhead")
    assert [(name, time) for name, time in times.items() if name in names] == [("a", *phases), *beside.items()]
    summary, tree = SummaryRows(state, {}), TreeRows(state, TreeView())
    summary.lay_out(100)
    told = [rows.row(index, 100).text.split() for rows in (summary, tree) for index in range(len(rows))]
    rows_beside = [" ".join(words) for words in told if " ".join(words[:-1]) in names[1:]]
    assert rows_beside == [f"{name} {time}" for name, time in beside.items()] * 2
    assert [words[-1] for words in told if "total" in words] == ["8.0s", "8.0s"]
    timeline = Timeline.of(state)
    assert spent in TimelineRows(timeline).heads(120)[0].text
    calls = {bar.place.turn: numbers_of(bar)["time"] for bar in timeline.bars if bar.kind == "call" and bar.place.turn}
    finished = {place.turn: data["duration_s"] for _, kind, place, data in live if kind == "call_finished"}
    assert calls == {1: "⟲2.0s"} | {turn: seconds(took) for turn, took in finished.items() if turn}
    assert [time for name, time in times.items() if name.startswith("  turn")] == list(calls.values())


@pytest.mark.parametrize("pauses", [False, True])
@pytest.mark.parametrize("cut", ["left", "right"])
def test_a_nested_run_that_is_resumed_with_its_parent_leaves_out_the_time_of_the_stop(cut: str, pauses: bool) -> None:
    """Wherever it was cut off, and whether it was paused before and is again."""
    shelf, clock = Shelf({"child": HALVES}), StepClock()
    gate = Paused(cut, clock) if pauses else StoppedAt(cut)
    played = play(NESTS, ["one"], library=shelf, gate=gate, clock=clock)
    assert played.outcome.status == "stopped"
    rerun = Rerun(played, Paused() if pauses else open_gate, policy=RESUMED, shelf=shelf)
    (child,) = rerun.children.values()
    assert child.status == rerun.state.status == "success"
    assert child.seconds is not None
    assert rerun.state.seconds is not None
    assert 0 < child.seconds < rerun.state.seconds < 1
    assert child.paused == (120.0 if pauses else 0.0)
    assert sum(visit.seconds or 0.0 for visit in child.visits) <= child.seconds
    assert len(child.gaps) == len(rerun.state.gaps) == 1


def test_a_timeline_that_is_drawn_meanwhile_ends_where_the_recording_does() -> None:
    """A nested run ends now, while its parent goes on with what it took half an hour ago."""
    shelf = Shelf({"child": CHILD})
    played = play(NESTS, ["inner", "outer", "two"], library=shelf)
    rerun = Rerun(played, shelf=shelf)
    children = {key: RunState.of(one.events) for key, one in shelf.journals.items()}
    state, timeline, ends = RunState(), Timeline(), list[float]()
    for event in rerun.events:
        state.apply(event)
        timeline.absorb(state, children)
        ends.append(timeline.end)
    assert max(ends) < 1
    assert [bar.start for bar in timeline.bars] == [bar.start for bar in Timeline.of(state, children).bars]


@pytest.mark.parametrize("policy", [STRICT, RECORDED])
def test_a_replay_for_a_test_has_all_times_of_its_recording(policy: Policy) -> None:
    played = play(TWO, ["one", "two"])
    assert [one.at for one in Rerun(played, policy=policy).events] == [one.at for one in played.events]
