"""Conditions of breakpoints: ``tokens > 8000``, ``state.score < 3 and turn > 2``, ``problems``. Never ``eval``."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from workbench.context.cache import breaks
from workbench.engine.debugger.stepper import Breakpoint, at_tool, at_way_on, matches_breakpoint
from workbench.engine.gate import Stop, StopKind
from workbench.language.nearest import nearest

NAMES = (
    "tokens",
    "full",
    "masked",
    "messages",
    "problems",
    "phase",
    "visit",
    "attempt",
    "turn",
    "call",
    "tool",
    "state",
    "model",
    "text",
    "answer",
    "cached",
    "breaks",
    "outcome",
    "taken",
    "considered",
)
_AFTER = frozenset({"outcome", "taken", "considered"})
"""Names that are known where a phase has ended, and the way on is chosen."""
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_MAX_LENGTH = 500


class ConditionError(Exception):
    """A condition that cannot be read; ``column`` counts from 1. ``is_form``: it has not the form of a condition."""

    def __init__(self, message: str, column: int = 1, *, is_form: bool = False) -> None:
        super().__init__(f"{message} at column {column}")
        self.column = column
        self.is_form = is_form


def compile_condition(text: str) -> Callable[[Mapping[str, Any]], bool]:
    """A function of the names. Raises ConditionError. When it is evaluated, a missing name or a comparison of different
    types counts as false.
    """
    if len(text) > _MAX_LENGTH:
        raise ConditionError(f"a condition has at most {_MAX_LENGTH} characters", _MAX_LENGTH)
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError) as fault:
        if offset := getattr(fault, "offset", None):
            raise ConditionError("cannot be read", offset, is_form=True) from fault
        raise ConditionError("ends too early", len(text.strip()) + 1, is_form=True) from fault
    _check(tree)

    def condition(names: Mapping[str, Any]) -> bool:
        try:
            return bool(_value(tree, names))
        except (TypeError, KeyError, IndexError):
            return False

    return condition


def _check(node: ast.AST) -> None:
    column = getattr(node, "col_offset", 0) + 1
    match node:
        case ast.BoolOp(values=values):
            parts: list[ast.expr] = list(values)
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            parts = [operand]
        case ast.Compare(left=left, ops=ops, comparators=right) if all(type(op) in _COMPARE for op in ops):
            parts = [left, *right]
        case ast.Constant(value=str() | int() | float() | bool() | None):
            parts = []
        case ast.Name(id=name) if name in NAMES:
            parts = []
        case ast.Name(id=name):
            near = nearest(name, NAMES)
            meant = f"did you mean '{near}'?" if near else f"known: {', '.join(NAMES)}"
            raise ConditionError(f"'{name}' is not known ({meant})", column)
        case ast.Attribute(value=value):
            parts = [value]
        case ast.Subscript(value=value, slice=ast.Constant()):
            parts = [value]
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            parts = list(elements)
        case _:
            raise ConditionError("only names, numbers, texts, comparisons, and, or, not", column)
    for part in parts:
        _check(part)


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.BoolOp(op=ast.And(), values=values):
            return all(_value(v, names) for v in values)
        case ast.BoolOp(values=values):
            return any(_value(v, names) for v in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, names)
        case ast.UnaryOp(operand=operand):
            return -_value(operand, names)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            current = _value(left, names)
            for op, right in zip(ops, comparators, strict=True):
                other = _value(right, names)
                if not _COMPARE[type(op)](current, other):
                    return False
                current = other
            return True
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return names[name]
        case ast.Attribute(value=value, attr=attr):
            return _value(value, names)[attr]
        case ast.Subscript(value=value, slice=ast.Constant(value=key)):
            return _value(value, names)[key]
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return [_value(e, names) for e in elements]
    raise TypeError(type(node).__name__)


def names_at(stop: Stop) -> dict[str, Any]:
    """Returns the names that a condition can use at a stop, with their values."""
    assembly = stop.assembly
    names: dict[str, Any] = stop.place._asdict() | {"tool": stop.tool, "state": stop.state, "problems": stop.problems}
    if assembly is not None:
        # As every place shows them: as the provider is expected to count them, by what it counted before.
        predicted = stop.forecast.tokens if stop.forecast is not None else None
        tokens = assembly.tokens_sent if predicted is None else predicted
        names |= {
            "tokens": tokens,
            "full": tokens + max(assembly.tokens_full - assembly.tokens_sent, 0),
            "masked": assembly.masked,
            "messages": len(assembly.request.messages),
        }
        said = assembly.request.messages
        names |= {"model": assembly.request.model, "text": said[-1].text if said else ""}
    if stop.forecast is not None:
        names |= {"cached": stop.forecast.cached, "breaks": breaks(stop.forecast)}
    if stop.answer is not None:
        names["answer"] = stop.answer.text
    if stop.kind is StopKind.AFTER_ROUTE:
        names |= {"outcome": stop.outcome, "taken": list(stop.taken), "considered": list(stop.considered)}
    return names


def _names_in(point: Breakpoint) -> frozenset[str]:
    tree = ast.parse(point.condition.strip(), mode="eval")
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


def _asks_answer(point: Breakpoint) -> bool:
    """Returns whether a condition is about what the model says."""
    return "answer" in _names_in(point)


def asked_at(point: Breakpoint) -> StopKind:
    """Returns where a condition that belongs to no tool is asked, by what it is about."""
    names = _names_in(point)
    if names & _AFTER:
        return StopKind.AFTER_ROUTE
    return StopKind.AFTER_CALL if "answer" in names else StopKind.BEFORE_CALL


def may_match(point: Breakpoint, stop: Stop) -> bool:
    """Returns whether a breakpoint may hold behind a call that is not answered yet. ``stop.tools``: those that the
    answer may call."""
    if not point.is_of(stop.place):
        return False
    if point.tool:
        return point.tool in stop.tools
    return bool(point.condition) and _asks_answer(point)


def matches(point: Breakpoint, stop: Stop) -> bool:
    """Returns whether a breakpoint, conditional or not, holds at a stop. Conditions are asked before calls and tools,
    those about ``answer`` behind calls, those about an outcome or an edge where the way on is chosen."""
    if not point.condition:
        return matches_breakpoint(point, stop)
    if not point.is_of(stop.place):
        return False
    if point.turn and point.turn != stop.place.turn:
        return False
    if point.edge or point.outcome:
        if not at_way_on(point, stop):
            return False
    elif point.tool:
        if not at_tool(point, stop):
            return False
    elif stop.kind is not asked_at(point):
        return False
    return compile_condition(point.condition)(names_at(stop))
