"""Where a run is held: stepping over, into and out, breakpoints, pausing, and going on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from tests.engine.support import FunctionTools, Reply, ScriptedModel, call, ports
from workbench.context.cache import Forecast
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
        stepper = steppers[0] = Stepper(on_hold=lambda stop, why: loop_later(on_hold, stop, why), matches=matches)
        stepper.go(mode)
        stepper.breakpoints = list(points)
        outside = ports(
            ScriptedModel(list(replies or REPLIES)), tools=FunctionTools({"search": lambda x="": "hit"}), gate=stepper
        )
        text, name = (cascade, "p.dot") if isinstance(cascade, str) else (json.dumps(cascade), "c.json")
        name = "c.json" if text.startswith("{") else name
        definition = Definition.of(text, name)
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
        (Breakpoint(phase="look", turn=3, visit=1), ("before_call", "look:3")),
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


@pytest.mark.parametrize(("branch", "depth", "level"), [("", 0, 0), ("s0", 0, 1), ("s0/r1.0", 0, 2), ("s0/r1.0", 1, 3)])
def test_candidates_within_candidates_and_nested_cascades_are_deeper(branch: str, depth: int, level: int) -> None:
    assert Stop(StopKind.BEFORE_CALL, Place(branch, "p", 1, 1, 1, 1), depth=depth).level == level


def test_a_breakpoint_on_the_cache_asks_what_is_expected_of_the_call() -> None:
    stop = Stop(StopKind.BEFORE_CALL, Place("", "p", 1, 1, 1, 1), forecast=Forecast(300, 20, 0, None, 2))
    assert [matches(Breakpoint(condition=f"cached > {least}"), stop) for least in (299, 300)] == [True, False]
    assert matches(Breakpoint(condition="cached >= 0"), replace(stop, forecast=None)) is False


@pytest.mark.parametrize("point", [Breakpoint("p", 1), Breakpoint("p"), Breakpoint("p", condition="turn == 1")])
def test_a_breakpoint_on_a_visit_holds_in_that_one_alone(point: Breakpoint) -> None:
    stops = [Stop(StopKind.BEFORE_CALL, Place("", "p", visit, 1, 1, 1)) for visit in (1, 2, 3)]
    assert [matches(point, stop) for stop in stops] == [True, True, True]
    assert [matches(replace(point, visit=2), stop) for stop in stops] == [False, True, False]
    later = Stop(StopKind.BEFORE_CALL, Place("", "p", 2, 1, 3, 1))
    assert matches(replace(point, visit=2), later) is (point == Breakpoint("p")), "a context may begin at any turn"


PIPELINE = """digraph p { start [shape=Mdiamond] done [shape=Msquare]
  one [prompt="One"] check [shape=diamond] fan [shape=component] a [prompt="A"] b [prompt="B"]
  meet [shape=tripleoctagon] last [prompt="Last"]
  start -> one -> check; check -> fan [condition="outcome=success"]; check -> one [condition="outcome=fail"]
  fan -> a -> meet; fan -> b -> meet; meet -> last -> done }"""
ANSWERS = ["bad\noutcome=fail", "good", "from a", "from b", "end"]


def walk(
    commands: Sequence[Mode | Callable[[Stepper], None]], mode: Mode, *points: Breakpoint, text: str = PIPELINE
) -> list[str]:
    """Where a pipeline is held, as ``KIND NODE``, with the visit from the second on and the branch."""
    replies = ANSWERS if text == PIPELINE else ["x"] * 9
    held, outcome = step(commands, mode, *points, cascade=text, replies=replies)
    assert outcome.status == "success", outcome.reason
    return [f"{kind} {place.partition(':')[0]}".strip() for kind, place in held]


def test_a_step_over_in_a_pipeline_is_one_node_and_passes_over_branches() -> None:
    assert walk([Mode.OVER] * 20, Mode.OVER) == [
        "before_call one",
        "before_phase check",
        "before_call one",
        "before_phase check",
        "before_phase fan",
        "before_phase meet",
        "before_call last",
        "run_end",
    ]


def test_a_step_into_a_parallel_node_enters_its_branches_and_a_step_out_leaves_them() -> None:
    to_fan = [Mode.OVER] * 4
    assert walk([*to_fan, *[Mode.INTO] * 3, Mode.OUT, Mode.OVER], Mode.OVER)[5:] == [
        "after_route fan",
        "after_route fan",
        "before_phase a",
        "after_phase fan",
        "before_phase meet",
    ]
    inside = walk([*to_fan, *[Mode.INTO] * 3, *[Mode.OVER] * 3], Mode.OVER)
    assert sorted(inside[8:10]) == ["before_call a", "before_call b"]
    assert inside[10] == "before_phase meet"


def test_a_step_out_of_a_node_ends_at_the_end_of_that_node() -> None:
    assert walk([Mode.INTO, Mode.OUT, Mode.OUT], Mode.OVER) == [
        "before_call one",
        "after_call one",
        "after_phase one",
        "run_end",
    ]


def test_a_step_over_in_a_decomposition_is_one_task_and_a_step_out_one_wave() -> None:
    def task(id: str, *needs: str) -> dict[str, Any]:
        how = {"name": "inference", "params": {"prompt": f"Do {id}"}}
        return {"id": id, "description": id, "action_type": "inference", "tool_or_prompt": how, "dependencies": needs}

    tasks = [task("a"), task("b", "a"), task("c", "a"), task("d", "b", "c"), task("e", "d")]
    text = json.dumps({"original_request": "Do it", "sub_tasks": tasks, "synthesis_plan": ""})
    assert walk([Mode.OVER] * 9, Mode.OVER, text=text) == [*(f"before_call {id}" for id in "abcde"), "run_end"]
    out = walk([Mode.OUT] * 9, Mode.OVER, text=text)
    assert out == ["before_call a", "before_call b", "before_call d", "before_call e", "run_end"]


@pytest.mark.parametrize(
    ("point", "where"),
    [
        (Breakpoint("check"), ["before_phase check"] * 2),
        (Breakpoint("start"), ["before_phase start"]),
        (Breakpoint("a"), ["before_call a"]),
        (Breakpoint("check", edge="taken", to="one"), ["after_route check"]),
        (Breakpoint("check", edge="considered", to="one"), ["after_route check"] * 2),
        (Breakpoint(edge="taken", to="meet"), ["after_route a", "after_route b", "after_route fan"]),
        (Breakpoint("fan", edge="taken", to="b"), ["after_route fan"]),
        (Breakpoint(outcome="fail"), ["after_route check", "after_route one"]),
        (Breakpoint("one", outcome="success"), ["after_route one"]),
        (Breakpoint("one", edge="taken", outcome="fail"), ["after_route one"]),
        (Breakpoint(condition="outcome == 'fail' and 'one' in taken"), ["after_route check"]),
        (Breakpoint("check", edge="considered", to="fan", condition="outcome == 'success'"), ["after_route check"]),
    ],
)
def test_breakpoints_of_nodes_edges_and_outcomes_hold_a_pipeline(point: Breakpoint, where: list[str]) -> None:
    found: list[str] = []
    for times in range(1, 5):
        held = walk([Mode.CONTINUE] * times, Mode.CONTINUE, point)
        if len(held) < times:
            break
        found = held
    assert sorted(found) == where


def test_a_failure_that_leads_nowhere_holds_before_the_run_fails() -> None:
    text = """digraph p { start [shape=Mdiamond] done [shape=Msquare] one [prompt="One"]
      start -> one; one -> done [condition="outcome=success"] }"""
    point = Breakpoint("one", edge="considered", to="done", condition="not taken")
    held, outcome = step([], Mode.CONTINUE, point, cascade=text, replies=["no\noutcome=fail"])
    assert held == [("after_route", "one:0")]
    assert outcome.status == "failed"


def test_the_edge_of_a_cascade_holds_where_it_is_taken() -> None:
    held, _ = step([], Mode.CONTINUE, Breakpoint("look", edge="taken", to="tell"))
    assert held == [("after_route", "look:0")]
