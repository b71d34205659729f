"""The commands of a browser session, read from the JSON array text in which a model writes them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

MAX_WAIT_S = 30.0
MAX_SCROLL = 50
MAX_TYPED = 10_000
_SHOWN = 80
FARTHEST = 100_000.0
"""Pixels: the largest coordinate."""


class CommandError(ValueError):
    """A command that cannot be read; the message says how it is written."""


class Command(Struct, frozen=True):
    """``name`` without its colon, and its arguments, checked: numbers are finite and within limits."""

    name: str
    numbers: tuple[float, ...] = ()
    text: str = ""


Reader = Callable[[str, Sequence[Any]], Command]


def read_command(text: str) -> Command:
    """``[":move-mouse", ":to", 400, 300]``. Raises CommandError."""
    try:
        parts = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise CommandError(f"{_cut(text)} is not JSON: {fault}. Write an array, as {EXAMPLES['click']}") from fault
    if not isinstance(parts, list) or not parts or not isinstance(parts[0], str):
        raise CommandError(f"{_cut(text)} is not an array that begins with a command, as {EXAMPLES['click']}")
    name = parts[0].removeprefix(":")
    row = _TABLE.get(name)
    if row is None:
        raise CommandError(
            f"there is no command '{_cut(name)}'; there are {', '.join(':' + known for known in _TABLE)}"
        )
    return row(name, parts[1:])


def _none(name: str, arguments: Sequence[Any]) -> Command:
    if arguments:
        hint = "; move the mouse first, a click happens where it is" if "click" in name else ""
        raise _wrong(name, "takes no arguments" + hint)
    return Command(name)


def _move(name: str, arguments: Sequence[Any]) -> Command:
    if len(arguments) != 3 or arguments[0] != ":to":
        raise _wrong(name, "takes :to, x and y")
    return Command(name, _numbers(name, arguments[1:]))


def _drag(name: str, arguments: Sequence[Any]) -> Command:
    if len(arguments) != 6 or (arguments[0], arguments[3]) != (":from", ":to"):
        raise _wrong(name, "takes :from, x, y, :to, x and y")
    return Command(name, _numbers(name, [*arguments[1:3], *arguments[4:]]))


def _steps(name: str, arguments: Sequence[Any]) -> Command:
    (steps,) = _numbers(name, arguments or [1]) if len(arguments) <= 1 else (0.0,)
    if not 1 <= steps <= MAX_SCROLL:
        raise _wrong(name, f"takes a number of steps from 1 to {MAX_SCROLL}")
    return Command(name, (steps,))


def _seconds(name: str, arguments: Sequence[Any]) -> Command:
    (seconds,) = _numbers(name, arguments or [1]) if len(arguments) <= 1 else (-1.0,)
    if not 0 <= seconds <= MAX_WAIT_S:
        raise _wrong(name, f"takes seconds from 0 to {MAX_WAIT_S:g}")
    return Command(name, (seconds,))


def _text(name: str, arguments: Sequence[Any]) -> Command:
    if len(arguments) != 1 or not isinstance(arguments[0], str) or not arguments[0]:
        raise _wrong(name, "takes one text")
    if len(arguments[0]) > MAX_TYPED:
        raise _wrong(name, f"takes at most {MAX_TYPED:,} characters")
    return Command(name, text=arguments[0])


def _numbers(name: str, values: Sequence[Any]) -> tuple[float, ...]:
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise _wrong(name, f"takes numbers, not {_cut(json.dumps(value))}")
        if not (math.isfinite(value) if isinstance(value, float) else True) or abs(value) > FARTHEST:
            raise _wrong(name, f"takes numbers up to {FARTHEST:g}")
    return tuple(float(value) for value in values)


def _wrong(name: str, what: str) -> CommandError:
    return CommandError(f":{name} {what}, as {EXAMPLES[name]}")


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


_TABLE: Mapping[str, Reader] = {
    "move-mouse": _move,
    **dict.fromkeys(("click", "double-click", "right-click", "middle-click"), _none),
    "drag": _drag,
    "type": _text,
    "keypress": _text,
    **dict.fromkeys(("scroll-wheel-down", "scroll-wheel-up"), _steps),
    "wait": _seconds,
    "url": _text,
    **dict.fromkeys(("back", "forward", "reload"), _none),
}

EXAMPLES: Mapping[str, str] = {
    **{name: f'[":{name}"]' for name, reader in _TABLE.items() if reader is _none},
    "move-mouse": '[":move-mouse", ":to", 400, 300]',
    "drag": '[":drag", ":from", 100, 200, ":to", 300, 400]',
    "type": '[":type", "hello world"]',
    "keypress": '[":keypress", "Enter"]',
    "scroll-wheel-down": '[":scroll-wheel-down", 5]',
    "scroll-wheel-up": '[":scroll-wheel-up", 5]',
    "wait": '[":wait", 2]',
    "url": '[":url", "https://example.org"]',
}
"""One for each command."""
