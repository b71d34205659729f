"""Where a run is held: stepping over, into and out, breakpoints, pausing, and going on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.engine.support import FunctionTools, Reply, ScriptedModel, call, ports
from workbench.context.place import Place
from workbench.engine.debugger.condition import ConditionError, compile_condition, matches
from workbench.engine.debugger.stepper import Breakpoint, Mode, Stepper
from workbench.engine.definition import Definition, Options, Outcome
from workbench.engine.gate import Stop, StopKind
from workbench.engine.run.run import Run

CASCADE = {
    "cascade_id": "c",
    "phases": [
        {"name": "look", "instructions": "Look.", "tackle": ["search", "set_state"], "rules": {"max_turns": 4}},
        {"name": "tell", "instructions": "Tell.", "rules": {"max_turns": 2}},
    ],
}
REPLIES: list[Reply] = [call("search"), call("set_state", key="n", value=1), "found", "a", "b"]


def step(
    commands: Sequence[Mode | Callable[[Stepper], None]],
    mode: Mode,
    *points: Breakpoint,
    cascade: Any = CASCADE,
    replies: Any = None,
) -> tuple[list[tuple[str, str]], Outcome]:
    """Run under a stepper; at each hold the next command is given, then CONTINUE without breakpoints."""
    held: list[tuple[str, str]] = []
    queue = list(commands)

    steppers: dict[int, Stepper] = {}

    def on_hold(stop: Stop, why: str) -> None:
        stepper = steppers[0]
        held.append((str(stop.kind), f"{stop.place.phase}:{stop.place.turn}"))
        command = queue.pop(0) if queue else None
        if command is None:
            stepper.breakpoints = []
            stepper.go(Mode.CONTINUE)
        elif isinstance(command, Mode):
            stepper.go(command)
        else:
            command(stepper)

    async def main() -> Outcome:
        stepper = steppers[0] = Stepper(mode, on_hold=lambda stop, why: loop_later(on_hold, stop, why), matches=matches)
        stepper.breakpoints = list(points)
        outside = ports(
            ScriptedModel(list(replies or REPLIES)), tools=FunctionTools({"search": lambda x="": "hit"}), gate=stepper
        )
        definition = Definition.of(json.dumps(cascade), "c.json")
        return await Run(definition, {}, Options("s", "gpt-4o"), outside).execute()

    return held, asyncio.run(main())


def loop_later(function: Callable[[Stop, str], None], stop: Stop, why: str) -> None:
    """A person answers after the hold has begun, never inside it."""
    asyncio.get_running_loop().call_soon(function, stop, why)


def test_over_holds_before_the_first_call_of_each_turn_and_at_the_end() -> None:
    held, outcome = step([Mode.OVER] * 9, Mode.OVER)
    before = [("before_call", place) for place in ("look:1", "look:2", "look:3", "tell:1", "tell:2")]
    assert held == [*before, ("run_end", ":0")]
    assert outcome.status == "success"


def test_into_holds_at_every_stop() -> None:
    held, _ = step([Mode.INTO] * 40, Mode.INTO)
    kinds = [kind for kind, _ in held]
    assert kinds[:6] == ["before_phase", "before_call", "after_call", "before_tool", "after_tool", "before_call"]
    assert kinds[-2:] == ["after_phase", "run_end"]


def test_out_runs_to_the_end_of_the_phase() -> None:
    held, _ = step([Mode.OUT], Mode.OVER)
    assert held[1] == ("after_phase", "look:0")


def test_continue_runs_to_the_end() -> None:
    held, outcome = step([], Mode.CONTINUE)
    assert held == []
    assert outcome.status == "success"


@pytest.mark.parametrize(
    ("point", "at"),
    [
        (Breakpoint(phase="tell"), ("before_call", "tell:1")),
        (Breakpoint(phase="look", turn=3), ("before_call", "look:3")),
        (Breakpoint(tool="set_state"), ("before_tool", "look:2")),
        (Breakpoint(condition="turn == 2 and phase == 'tell'"), ("before_call", "tell:2")),
        (Breakpoint(condition="state.n == 1"), ("before_call", "look:3")),
        (Breakpoint(condition="messages > 4"), ("before_call", "look:3")),
    ],
)
def test_breakpoints_hold_where_they_say(point: Breakpoint, at: tuple[str, str]) -> None:
    held, _ = step([], Mode.CONTINUE, point)
    assert held == [at]


def test_pausing_holds_at_the_next_stop() -> None:
    def pause_and_go(stepper: Stepper) -> None:
        stepper.go(Mode.CONTINUE)
        stepper.pause()

    held, _ = step([pause_and_go], Mode.OVER)
    assert held[1] == ("after_call", "look:1")


def test_parallel_candidates_are_one_step_over_and_are_held_one_at_a_time_stepping_into() -> None:
    cascade = {
        "cascade_id": "c",
        "phases": [
            {"name": "p", "instructions": "x", "soundings": {"factor": 2, "mode": "aggregate"}},
            {"name": "q", "instructions": "y"},
        ],
    }
    held, _ = step([Mode.OVER] * 5, Mode.OVER, cascade=cascade, replies=["1", "2", "end"])
    assert ("before_call", "q:1") in held
    held, outcome = step([Mode.INTO] * 60, Mode.INTO, cascade=cascade, replies=["1", "2", "end"])
    assert [kind for kind, place in held if place == "p:1"].count("before_call") == 2
    assert outcome.status == "success"


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("tokens > > 1", 10),
        ("tokens >", 9),
        ("open('x')", 1),
        ("tokns > 1", 1),
        ("state.a()", 1),
        ("1 + 1", 1),
        ("x" * 600, 500),
    ],
)
def test_a_condition_that_cannot_be_read_says_where(text: str, column: int) -> None:
    with pytest.raises(ConditionError) as fault:
        compile_condition(text)
    assert fault.value.column == column


def test_a_condition_over_missing_or_mixed_values_is_false() -> None:
    condition = compile_condition("state.score < 3 or tokens > 'many'")
    assert condition({"state": {}, "tokens": 5}) is False


def test_a_breakpoint_on_problems_needs_a_broken_request() -> None:
    place = Place("", "p", 1, 1, 1, 1)
    assert matches(Breakpoint(condition="problems"), Stop(StopKind.BEFORE_CALL, place, problems=1)) is True
    assert matches(Breakpoint(condition="problems"), Stop(StopKind.BEFORE_CALL, place)) is False
