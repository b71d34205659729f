"""A clock that jumps: the order of a run is its numbering, and durations are of the monotonic clock."""

from __future__ import annotations

import pytest

from tests.engine.support import StepClock, play
from workbench.engine.definition import Options
from workbench.engine.state import RunState

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
