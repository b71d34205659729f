"""At which stops each sort of breakpoint holds and may hold, what holds a stepper, and what conditions come to."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.stored import check_stored
from workbench.context.cache import Forecast
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.engine.debugger.condition import ConditionError, asked_at, compile_condition, matches, may_match
from workbench.engine.debugger.stepper import Breakpoint, Mode, Stepper
from workbench.engine.gate import Decision, Stop, StopKind

STORED = Path(__file__).parent / "stored"
PLACE = Place("", "look", 2, 1, 3, 1)
CALL = Stop(StopKind.BEFORE_CALL, PLACE, state={"n": 3}, forecast=Forecast(300, 20, 0, None, 2, "message 2 changed"))
ROUTE = Stop(StopKind.AFTER_ROUTE, PLACE._replace(turn=0), taken=("tell",), considered=("tell", "ask"), outcome="fail")
STOPS = {
    "first call of the phase": replace(CALL, place=PLACE._replace(visit=1, turn=1)),
    "call in another attempt": replace(CALL, place=PLACE._replace(attempt=2, turn=1)),
    "second call of a turn": replace(CALL, place=PLACE._replace(call=2)),
    "call of turn 3": CALL,
    "call of another phase": replace(CALL, place=PLACE._replace(phase="tell")),
    "answer": Stop(StopKind.AFTER_CALL, PLACE, answer=Message("assistant", "found it"), tools=("search",)),
    "tool": Stop(StopKind.BEFORE_TOOL, PLACE, tool="search"),
    "result": Stop(StopKind.AFTER_TOOL, PLACE, tool="search", result="r"),
    "way on": ROUTE,
    "end of the list": replace(ROUTE, taken=(), considered=(), outcome="success"),
    "node begins": Stop(StopKind.BEFORE_PHASE, PLACE._replace(turn=0), node="tool", begins=True),
    "node goes on": replace(CALL, node="codergen"),
}
POINTS = (
    *(
        Breakpoint("look"),
        Breakpoint("look", 3),
        Breakpoint("look", 1),
        Breakpoint("look", visit=2),
        Breakpoint("tell"),
    ),
    *(Breakpoint(turn=3), Breakpoint(tool="search"), Breakpoint("tell", tool="search"), Breakpoint(tool="other")),
    *(
        Breakpoint("look", edge="taken"),
        Breakpoint("look", edge="taken", to="tell"),
        Breakpoint(edge="taken", to="ask"),
    ),
    *(Breakpoint(edge="considered", to="ask"), Breakpoint("tell", edge="considered"), Breakpoint(outcome="fail")),
    *(Breakpoint("look", outcome="success"), Breakpoint(edge="taken", to="tell", outcome="fail")),
    *(
        Breakpoint(condition="turn > 2"),
        Breakpoint("look", 3, condition="state.n == 3"),
        Breakpoint("look", 1, condition="n"),
    ),
    *(Breakpoint(condition="'it' in answer"), Breakpoint("tell", condition="answer"), Breakpoint(condition="breaks")),
    *(Breakpoint(tool="search", condition="turn == 3"), Breakpoint(tool="other", condition="turn == 3")),
    *(Breakpoint(condition="outcome == 'fail'"), Breakpoint(condition="'ask' in considered and not problems")),
    *(Breakpoint(edge="taken", condition="'tell' in taken"), Breakpoint(outcome="success", condition="turn")),
    *(Breakpoint(condition="cached >= 300"), Breakpoint("look", 3, visit=1), Breakpoint("look#", condition="turn")),
)


def _held() -> Iterator[str]:
    for point in POINTS:
        if point.condition == "n":
            continue
        yield f"{point}".strip()
        yield f"    holds at: {', '.join(name for name, stop in STOPS.items() if matches(point, stop)) or 'none'}"
        if may := [name for name, stop in STOPS.items() if may_match(point, replace(stop, tools=("search",)))]:
            yield f"    may hold behind: {', '.join(may)}"
        if point.condition and not (point.tool or point.edge or point.outcome):
            yield f"    asked at: {asked_at(point)}"


def test_each_breakpoint_holds_at_the_stored_stops() -> None:
    check_stored(STORED / "breakpoints.txt", "\n".join(_held()) + "\n")


NAMES: dict[str, Any] = {
    **{
        "tokens": 80,
        "turn": 2,
        "phase": "look",
        "state": {"n": 3, "list": [1, 2], "deep": {"a": "x"}},
        "text": "hello",
    },
    "problems": 0,
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("tokens > 80", False),
        ("tokens >= 80", True),
        ("tokens < 80", False),
        ("tokens <= 80", True),
        ("tokens == 80 and turn == 2", True),
        ("tokens != 80 or turn != 2", False),
        ("turn == 3 or phase == 'look'", True),
        ("not problems", True),
        ("problems", False),
        ("-turn == -2", True),
        ("1 < turn < 3", True),
        ("1 < turn < 2", False),
        ("state.n in [1, 3]", True),
        ("state.n not in (1, 3)", False),
        ("'ell' in text", True),
        ("state.deep.a == 'x'", True),
        ("state['deep']['a'] == 'x'", True),
        ("state.list[1] == 2", True),
        ("state.list[2] == 2", False),
        ("state.absent == 1", False),
        ("text > 3", False),
        ("-phase == 1", False),
        ("cached > 1", False),
        ("True", True),
        ("turn == None", False),
    ],
)
def test_a_condition_comes_to_its_value(text: str, value: bool) -> None:
    assert compile_condition(f"  {text} ")(NAMES) is value


@pytest.mark.parametrize(
    ("text", "message", "is_form"),
    [
        ("turn > 1)", "cannot be read at column 9", True),
        ("", "ends too early at column 1", True),
        ("tokns > 1", "'tokns' is not known (did you mean 'tokens'?) at column 1", False),
        ("turn > 1 and zzz", "'zzz' is not known (known: tokens, full, masked, messages,", False),
        ("turn > len(text)", "only names, numbers, texts, comparisons, and, or, not at column 8", False),
        ("turn is 1", "only names, numbers, texts, comparisons, and, or, not at column 1", False),
        ("state[turn]", "only names, numbers, texts, comparisons, and, or, not at column 1", False),
        ("turn == b'1'", "only names, numbers, texts, comparisons, and, or, not at column 9", False),
        ("+turn", "only names, numbers, texts, comparisons, and, or, not at column 1", False),
        ("turn == [1, open]", "'open' is not known (known: tokens, full,", False),
        ("x" * 501, "a condition has at most 500 characters at column 500", False),
    ],
)
def test_what_is_no_condition_is_refused_in_words(text: str, message: str, is_form: bool) -> None:
    with pytest.raises(ConditionError) as fault:
        compile_condition(text)
    assert str(fault.value).startswith(message)
    assert fault.value.is_form is is_form
    assert str(fault.value).endswith(f" at column {fault.value.column}")


BROKEN = replace(CALL, problems=1)
REASONS = {
    "broken request": BROKEN,
    "broken, behind the call": replace(BROKEN, kind=StopKind.AFTER_CALL),
    "paused by a hook": replace(CALL, paused="hook h"),
    "edited": replace(CALL, edited=True),
    "heard": replace(CALL, heard=True),
    "changed": replace(CALL, answered_by="changed"),
    "maybe": Stop(StopKind.BEFORE_TOOL, PLACE, tool="send", answered_by="maybe"),
    "recorded": replace(CALL, answered_by="recorded"),
    **{name: STOPS[name] for name in ("call of turn 3", "answer", "way on", "node begins")},
    "way on of a node": replace(ROUTE, node="tool"),
    "end": Stop(StopKind.RUN_END, Place()),
}
POINT = Breakpoint("look", 3)


async def _told(mode: Mode, *, pause: bool, points: list[Breakpoint], stop: Stop) -> str:
    told: list[str] = []

    def on_hold(_: Stop, why: str) -> None:
        told.append(why)
        stepper.go(Mode.CONTINUE)

    stepper = Stepper(on_hold=on_hold, matches=matches)
    stepper.mode, stepper.breakpoints = mode, points
    if pause:
        stepper.pause()
    assert await stepper(stop) == (Decision(send_anyway=bool(stop.problems), held=True) if told else Decision())
    return told[0] if told else ""


async def test_a_stepper_tells_why_it_holds() -> None:
    lines = []
    for mode, pause, points in product(Mode, (False, True), ([], [POINT], [replace(POINT, disabled=True)])):
        if (pause or points) and mode is not Mode.CONTINUE:
            continue
        way = ", ".join(
            [str(mode), *(["pause"] if pause else []), *(f"{one}{' off' if one.disabled else ''}" for one in points)]
        )
        lines.append(f"{way}:")
        for name, stop in REASONS.items():
            why = await _told(mode, pause=pause, points=points, stop=stop)
            lines.append(f"    {name}: {why or '-'}")
    check_stored(STORED / "holds.txt", "\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("mode", "pause", "points", "free", "holds"),
    [
        (Mode.CONTINUE, False, [], True, False),
        (Mode.CONTINUE, True, [], False, True),
        (Mode.CONTINUE, False, [replace(POINT, disabled=True)], True, False),
        (Mode.CONTINUE, False, [POINT], False, False),
        (Mode.CONTINUE, False, [Breakpoint(tool="search")], False, True),
        (Mode.CONTINUE, False, [Breakpoint(tool="search", disabled=True)], True, False),
        (Mode.OVER, False, [], False, False),
        (Mode.INTO, False, [], False, True),
        (Mode.OUT, False, [], False, True),
    ],
)
async def test_a_stepper_knows_whether_anything_can_hold_it(
    mode: Mode, pause: bool, points: list[Breakpoint], free: bool, holds: bool
) -> None:
    stepper = Stepper(matches=matches)
    stepper.mode, stepper.breakpoints = mode, points
    if pause:
        stepper.pause()
    behind = replace(STOPS["answer"], answer=None)
    assert (stepper.is_free, stepper.may_hold(behind, may_match)) == (free, holds)
    assert stepper.may_concern(CALL) is (mode is not Mode.CONTINUE or pause or points == [POINT])
    other = Stepper(matches=matches)
    other.steer(stepper.steering)
    assert other.steering == stepper.steering
