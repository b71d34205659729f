"""A clock that jumps: the order of a run is its numbering, and durations are of the monotonic clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.support import ListSink, Reply, ScriptedModel, StepClock, play, ports
from workbench.context.assembly import Request
from workbench.context.place import Place
from workbench.engine.contracts import Answer, Images, ModelFault
from workbench.engine.definition import Options
from workbench.engine.journal.elapsed import Elapsed
from workbench.engine.journal.event import Event
from workbench.engine.journal.state import RunState
from workbench.engine.past.recording import Recording
from workbench.engine.past.replay import RESUMED, REUSED, Replay
from workbench.engine.run.run import Run
from workbench.exporters.otel import spans_of_run
from workbench.store.summary import Summarizer
from workbench.workspace.system import SystemClock

TWO = {"cascade_id": "c", "phases": [{"name": "a", "instructions": "x"}, {"name": "b", "instructions": "y"}]}


class JumpingClock(StepClock):
    """The wall clock goes an hour back at every look (daylight saving), the monotonic one steps."""

    def now(self) -> str:
        self._ticks += 1
        return f"2026-10-25T{23 - self._ticks % 24:02}:30:00.000000Z"


@pytest.mark.fault("F33")
def test_a_clock_that_goes_back_changes_neither_order_nor_outcome() -> None:
    plain, jumped = (play(TWO, ["one", "two"], clock=clock) for clock in (StepClock(), JumpingClock()))
    assert [event.at for event in jumped.events] != sorted(event.at for event in jumped.events)
    assert [event.seq for event in jumped.events] == list(range(1, len(jumped.events) + 1))
    assert [(e.kind, e.place, e.data) for e in jumped.events] == [(e.kind, e.place, e.data) for e in plain.events]
    state = RunState.of(jumped.events)
    assert (state.status, [call.answer.text for call in state.calls if call.answer]) == ("success", ["one", "two"])


@pytest.mark.fault("F33")
def test_a_limit_in_seconds_does_not_count_the_jumps_of_the_wall_clock() -> None:
    played = play(TWO, ["one", "two"], clock=JumpingClock(), options=Options("s", "gpt-4o", max_seconds=5.0))
    assert played.outcome.status == "success"


class SetClock(StepClock):
    """The clock of a machine whose wall clock is set once, by so many seconds, while each look takes a tenth of one."""

    def __init__(self, by: float, after: int) -> None:
        super().__init__()
        looks = iter(range(10_000))
        self._system = SystemClock(lambda: 1.7e9 + (by if next(looks) >= after else 0.0), self._pass)

    def _pass(self) -> float:
        self._ticks += 1
        return self._ticks / 10

    def now(self) -> str:
        return self._system.now()


@pytest.mark.parametrize("by", [315_360_000.0, -315_360_000.0])
@pytest.mark.parametrize("after", [0, 1, 5])
def test_no_duration_shows_that_the_wall_clock_was_set(by: float, after: int) -> None:
    soundings = {"factor": 2, "max_parallel": 1}
    cascade = {"cascade_id": "c", "phases": [{"name": "a", "instructions": "x", "soundings": soundings}]}
    played = play(cascade, ["one", "two", '{"winner": 1}'], clock=SetClock(by, after))
    fold = Summarizer("r")
    for event in played.events:
        fold.apply(event)
    state = played.state
    (resource,) = spans_of_run(state, played.events, {})["resourceSpans"]
    spans = resource["scopeSpans"][0]["spans"]
    took = len(played.events) / 10
    assert state.seconds == fold.summary().seconds == pytest.approx(took, abs=0.2)
    assert all(0 < visit.seconds < took for visit in state.visits if visit.seconds is not None)
    candidates = state.contests.all[0].rounds[0].entrants
    assert all(entrant.seconds is not None and 0 < entrant.seconds < took for entrant in candidates)
    lengths = [int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"]) for span in spans]
    assert all(0 <= length <= took * 1e9 for length in lengths)


class SlowModel(ScriptedModel):
    """A minute passes until it answers."""

    def __init__(self, replies: Sequence[Reply], clock: StepClock) -> None:
        super().__init__(replies)
        self._clock = clock

    async def complete(self, request: Request, place: Place, images: Images, on_text: Callable[[str], None]) -> Answer:
        answer = await super().complete(request, place, images, on_text)
        self._clock.skip(60_000)
        return answer


def test_a_call_that_a_resumed_run_sends_again_takes_its_time() -> None:
    """It began before the kill, so that its answer is the first record behind it."""
    played = play(TWO, ["one", "two"])
    cut = max(number for number, event in enumerate(played.events, 1) if event.kind == "call_started")
    sink, clock = ListSink(), StepClock()
    sink.events = played.events[:cut]
    clock.skip(cut)
    base = ports(SlowModel(["two"], clock), sink=sink, clock=clock)
    replay = Replay(Recording(sink.events, played.blobs), RESUMED, base)
    run = Run(played.definition, {}, played.options, replay.ports(base), run_id="run-1", journaled=list(sink.events))
    asyncio.run(run.execute())
    seconds = RunState.of(sink.events).seconds
    assert seconds is not None
    assert 60 < seconds < 61


def test_a_phase_that_fails_and_is_retried_later_took_the_time_of_its_two_stretches() -> None:
    """Nothing ran in the ten minutes until the run was resumed."""
    clock = StepClock()
    played = play(TWO, ["one", ModelFault("authentication", "401")], clock=clock)
    assert played.outcome.status == "failed"
    clock.skip(600_000)
    sink = ListSink()
    sink.events = list(played.events)
    base = ports(ScriptedModel(["two"]), sink=sink, clock=clock)
    replay = Replay(Recording(list(sink.events), played.blobs), RESUMED, base)
    run = Run(played.definition, {}, played.options, replay.ports(base), run_id="run-1", journaled=list(sink.events))
    asyncio.run(run.execute())
    state = RunState.of(sink.events)
    took = [visit.seconds for visit in state.visits]
    assert state.status == "success"
    assert state.seconds is not None
    assert all(one is not None and one <= state.seconds < 60 for one in took)


@pytest.mark.parametrize("live", [0, 1, 2])
def test_what_a_run_again_takes_from_its_recording_is_time_of_neither_the_run_nor_its_phases(live: int) -> None:
    """Each recorded call took a minute; so many calls are made again."""
    soundings = {"factor": 2, "max_parallel": 1, "evaluator_instructions": "Best?"}
    sounded = {"cascade_id": "c", "phases": [{"name": "a", "instructions": "x", "soundings": soundings}]}
    best = '{"winner": 1, "scores": {}, "reason": ""}'
    for cascade, replies in ((TWO, ["one", "two"]), (sounded, ["one", "two", best])):
        clock = StepClock()
        played = play(cascade, [], own_model=SlowModel(replies, clock), clock=clock)
        answers = [number for number, event in enumerate(played.events) if event.kind == "call_finished"]
        cut = answers[len(answers) - live] if live else len(played.events)
        sink = ListSink()
        base = ports(SlowModel(replies[len(replies) - live :], clock), sink=sink, clock=clock)
        replay = Replay(Recording(played.events[:cut], played.blobs), REUSED, base)
        asyncio.run(Run(played.definition, {}, played.options, replay.ports(base), run_id="run-2").execute())
        state = RunState.of(sink.events)
        total = state.seconds
        assert state.status == "success"
        assert total is not None
        assert total == pytest.approx(60 * live, abs=1)
        took = [visit.seconds or 0.0 for visit in state.visits if visit.kind != "candidate"]
        assert sum(took) == pytest.approx(total, abs=1)
        for contest in state.contests.all:
            assert all((entrant.seconds or 0.0) <= total for entrant in contest.rounds[0].entrants)


def at(seconds: int) -> str:
    return (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).isoformat()


@given(st.lists(st.tuples(st.integers(-(10**6), 10**6), st.lists(st.integers(0, 50), max_size=5)), min_size=1))
def test_a_run_took_the_sum_of_its_stretches(stretches: list[tuple[int, list[int]]]) -> None:
    """Wherever a stretch begins by the wall clock: what lies between two of them is not a time of the run."""
    elapsed, told, seq = Elapsed(), 0, 0
    for number, (begin, steps) in enumerate(stretches):
        moment = begin
        for kind, step in [("run_resumed" if number else "run_started", 0), *(("warning", step) for step in steps)]:
            moment, seq, told = moment + step, seq + 1, told + step
            elapsed.take(Event(seq, at(moment), "r", kind))
    assert elapsed.whole(finished=True, imported=False) == told
    assert elapsed.whole(finished=False, imported=False) is None


def test_a_pause_that_has_a_recorded_time_is_no_time_of_the_run() -> None:
    """A run that repeats a recording, and pauses 100 seconds at the first request that is another."""
    elapsed = Elapsed()
    moments = (
        ("run_started", 1000),
        ("call_finished", 2),
        ("paused", 3),
        ("call_finished", 1104),
        ("run_finished", 1105),
    )
    for seq, (kind, moment) in enumerate(moments, 1):
        data = {"seconds": 100.0} if kind == "paused" else {}
        elapsed.take(Event(seq, at(moment), "r", kind, data=data))
    assert (elapsed.seconds, elapsed.paused) == (5.0, 100.0)


def test_a_pause_after_the_end_of_a_phase_is_not_taken_off_its_time() -> None:
    """A context of a watched program ends with its last answer, which may be paused before the program gets it."""
    place, state = Place(phase="a", visit=1), RunState()
    moments: tuple[tuple[str, int, dict[str, Any]], ...] = (
        ("run_started", 0, {"ports": ["imported"]}),
        ("phase_started", 1, {}),
        ("paused", 4, {"seconds": 2.0}),
        ("paused", 59, {"seconds": 50.0}),
        ("phase_finished", 60, {"ended": at(8)}),
    )
    for seq, (kind, moment, data) in enumerate(moments, 1):
        state.apply(Event(seq, at(moment), "r", kind, place if seq > 1 else Place(), data=data))
    assert state.visits[0].seconds == 5.0


def test_a_journal_whose_times_go_back_has_no_negative_duration() -> None:
    elapsed = Elapsed()
    for number, moment in enumerate([0, 10, -3600, -3590]):
        elapsed.take(Event(number + 1, at(moment), "r", "warning" if number else "run_started"))
    assert elapsed.whole(finished=True, imported=False) == 10


def test_an_imported_run_whose_file_names_no_times_took_nobody_knows_how_long() -> None:
    elapsed = Elapsed()
    elapsed.take(Event(1, at(0), "r", "run_started"))
    elapsed.take(Event(2, at(0), "r", "run_finished"))
    elapsed.take(Event(3, "", "r", "cost_known"))
    assert elapsed.whole(finished=True, imported=False) == 0.0
    assert elapsed.whole(finished=True, imported=True) is None
