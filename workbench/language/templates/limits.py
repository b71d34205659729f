"""How much one rendering of a template may take, and what refuses more before it is made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextvars import ContextVar
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any

from msgspec import Struct, field

MAX_OUTPUT = 1 << 20
"""Characters of a rendered template, and of any text made on the way."""
MAX_GROWN = 32 << 20
"""Characters and items that one rendering may make in all."""
MAX_STEPS = 200_000
"""Rounds of loops, calls of macros and items handed to filters."""
MAX_NUMBER = 10_000
"""Widths, precisions and counts given to filters and methods."""
MAX_BITS = 10_000
"""Size of an integer."""
MAX_ITEMS = 100_000
"""Values inside a list or mapping that becomes text."""

Site = tuple[str, int, int]
"""An expression with its line and column in the template."""


class LimitReached(Exception):
    """A template that would take too much."""


class Budget(Struct):
    """The resources that one rendering has used up, and the undefined names in it."""

    steps: int = 0
    grown: int = 0
    undefined: dict[Site, None] = field(default_factory=dict)
    place: tuple[int, int] = (0, 0)
    """Line and column of the expression that was begun last; (0, 0) before the first."""

    def step(self, count: int) -> None:
        self.steps += count
        if self.steps > MAX_STEPS:
            raise LimitReached(f"more than {MAX_STEPS:,} rounds of loops")

    def grow(self, count: int) -> None:
        if count > MAX_OUTPUT:
            raise LimitReached("a text or list is larger than 1 MB")
        self.grown += count
        if self.grown > MAX_GROWN:
            raise LimitReached("the template makes too much text")


BUDGET: ContextVar[Budget] = ContextVar("budget")


def text_of(value: Any) -> str:
    """A value as text; containers only if they are not too large. What a filter like ``map`` gives is a list.

    Raises TypeError for a method or function without its call: as text it would be an address, another one in each run.
    """
    if isinstance(value, Iterator):
        value = list(bounded(value))
    require_called(value)
    if isinstance(value, list | dict | tuple):
        weigh(value)
    return str(value)


def require_called(value: Any) -> None:
    """Raises TypeError for a method or a function."""
    if isinstance(value, BuiltinMethodType | MethodType | FunctionType):
        name = value.__name__.removeprefix("safe_")  # Jinja's own range.
        kind = "function" if isinstance(value, FunctionType) else "method"
        raise TypeError(f"'{name}' is a {kind}: write {name}() to call it")


def weigh(value: Any) -> None:
    """Refuse containers whose text could be huge, however often a part is shared, or another one in each run."""
    if not isinstance(value, list | dict | tuple):
        return
    items = size = 0
    stack: list[Any] = [value]
    while stack:
        part = stack.pop()
        items += 1
        if isinstance(part, dict):
            stack += part.values()
            size += sum(len(key) for key in part if isinstance(key, str))
        elif isinstance(part, list | tuple):
            stack += part
        elif isinstance(part, str):
            size += len(part)
        else:
            require_called(part)
        if items > MAX_ITEMS or size > MAX_OUTPUT or len(stack) > MAX_ITEMS:
            raise LimitReached("a list or mapping is too large to become text")
    BUDGET.get().step(items // 16)


def sized(value: Any) -> Any:
    if isinstance(value, str | list | tuple):
        BUDGET.get().grow(len(value))
    elif isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise LimitReached("a number is too large")
    return value


def weigh_operation(operator: str, left: Any, right: Any) -> None:
    """Refuse an operation before it makes something huge."""
    if operator == "+" and isinstance(left, str | list) and isinstance(right, str | list):
        allow(len(left) + len(right))
    elif operator == "*":
        for thing, times in ((left, right), (right, left)):
            if isinstance(thing, str | list | tuple) and isinstance(times, int):
                allow(len(thing) * max(times, 0))
        if isinstance(left, int) and isinstance(right, int) and left.bit_length() + right.bit_length() > MAX_BITS:
            raise LimitReached("a number is too large")
    elif operator == "**" and isinstance(left, int) and isinstance(right, int):
        if left.bit_length() * max(right, 0) > MAX_BITS:
            raise LimitReached("a number is too large")
    elif operator == "%" and isinstance(left, str):
        allow_widths(left)
        for part in right if isinstance(right, tuple) else (right,):
            weigh(part)


def allow(size: int) -> None:
    if size > MAX_OUTPUT:
        raise LimitReached("a text or list is larger than 1 MB")


_DIGITS = re.compile(r"\d+")


def allow_widths(pattern: str) -> None:
    """Refuse format patterns with huge or computed widths."""
    if re.search(r"%[^a-zA-Z%]*\*", pattern) or any(int(n[:9]) > MAX_NUMBER for n in _DIGITS.findall(pattern)):
        raise LimitReached("a format asks for too many characters")


def bounded(values: Any) -> Iterator[Any]:
    for count, value in enumerate(values):
        if count > MAX_ITEMS:
            raise LimitReached("a list is too long")
        yield value


def allow_result(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse by the size of what would come out; ``args`` begins with the text or list itself."""
    given = [*args[1:], *kwargs.values()]
    for value in given:
        if isinstance(value, int) and value > MAX_NUMBER:
            raise LimitReached(f"the number {value} is too large for '{name}'")
    first = args[0] if args else ""
    length = len(first) if isinstance(first, str | list | tuple | dict) else 0
    texts = [len(value) for value in given if isinstance(value, str)]
    if name == "replace" and len(args) > 2 and isinstance(first, str):
        old, new = text_of(args[1]), text_of(args[2])
        allow(length + (first.count(old) if old else length + 1) * len(new))
    elif name == "join":
        items = given[0] if isinstance(first, str) and given and isinstance(given[0], list) else first
        between = length if isinstance(first, str) else sum(texts)
        weigh(list(items))
        allow(len(items) * between)
    elif name in ("indent", "wordwrap", "expandtabs") and isinstance(first, str):
        numbers = [value for value in given if isinstance(value, int)]
        marks = length if name == "wordwrap" else first.count("\t" if name == "expandtabs" else "\n") + 1
        allow(length + marks * (max(texts, default=0) + (0 if name == "wordwrap" else max(numbers, default=8))))
