"""Shell patterns over names, matched without backtracking.

``*`` and ``?`` stay within a name, ``**`` spans folders, ``**/`` stands for any folders or none, ``[…]`` is one
character of a set (``[!…]`` one that is not in it), never ``/``.

All places of the pattern at which a name may have arrived are followed at once (K. Thompson, "Regular expression search
algorithm", 1968), so that the time is that of the name's length times the pattern's, whatever both are; steps that were
taken once are remembered.
"""

from __future__ import annotations

import re
from collections.abc import Callable

MAX_PATTERN = 1000
"""Characters of a pattern."""
_MAX_STEPS = 50_000
"""Steps that are remembered."""

_SPECIAL = re.compile(r"[\\\[\]&~|]|-(?=-)")
_ESCAPED = r"\\\g<0>"
"""In a set of characters; there Python warns of signs that it may once take for operations on sets."""

_Test = Callable[[str], bool]


class Glob:
    """One pattern. Raises ValueError where it leads out of the folder or cannot be read."""

    def __init__(self, pattern: str) -> None:
        if pattern.startswith("/") or ".." in pattern.split("/"):
            raise ValueError(f"the pattern '{pattern[:MAX_PATTERN]}' leads out of the folder")
        if len(pattern) > MAX_PATTERN:
            raise ValueError(f"the pattern has {len(pattern):,} characters; it may have {MAX_PATTERN:,}")
        self._edges: list[list[tuple[_Test, int]]] = [[]]
        """For each place of the pattern, the characters that lead on, and where to."""
        self._free: list[list[int]] = [[]]
        """For each place, those that are reached from it without any character."""
        position = 0
        while position < len(pattern):
            position = self._read(pattern, position)
        self._end = 1 << len(self._edges) - 1
        self._start = self._with_free(1)
        self._steps: dict[tuple[int, str], int] = {}

    def fullmatch(self, name: str) -> bool:
        """Returns whether the whole name matches."""
        places = self._start
        for char in name:
            step = (places, char)
            reached = self._steps.get(step)
            if reached is None:
                if len(self._steps) >= _MAX_STEPS:
                    self._steps.clear()
                reached = self._steps[step] = self._step(places, char)
            if not reached:
                return False
            places = reached
        return bool(places & self._end)

    def _read(self, pattern: str, position: int) -> int:
        """Take over one piece of the pattern; the position after it."""
        here = len(self._edges) - 1
        if pattern.startswith("**/", position):
            inside, after = self._place(), self._place()
            self._edges[here].append((_in_name, inside))
            self._edges[inside] += [(_in_name, inside), ("/".__eq__, here)]
            self._free[here].append(after)
            return position + 3
        if pattern[position] == "*":
            spans = pattern.startswith("**", position)
            self._edges[here].append((_any if spans else _in_name, here))
            self._free[here].append(self._place())
            return position + (2 if spans else 1)
        test, end = _one(pattern, position)
        self._edges[here].append((test, self._place()))
        return end

    def _place(self) -> int:
        self._edges.append([])
        self._free.append([])
        return len(self._edges) - 1

    def _step(self, places: int, char: str) -> int:
        reached = 0
        for place, edges in enumerate(self._edges):
            if places >> place & 1:
                for test, target in edges:
                    if test(char):
                        reached |= 1 << target
        return self._with_free(reached)

    def _with_free(self, places: int) -> int:
        for place, targets in enumerate(self._free):  # These lead forward alone.
            if places >> place & 1:
                for target in targets:
                    places |= 1 << target
        return places


def _in_name(char: str) -> bool:
    return char != "/"


def _any(_char: str) -> bool:
    return True


def _one(pattern: str, position: int) -> tuple[_Test, int]:
    """Returns the test of one character, and its end."""
    char = pattern[position]
    if char == "?":
        return _in_name, position + 1
    close = pattern.find("]", position + 2)
    if char != "[" or close < 0:
        return char.__eq__, position + 1
    inner = pattern[position + 1 : close]
    try:
        members = re.compile(
            f"[{'^' if inner[0] == '!' else ''}{_SPECIAL.sub(_ESCAPED, inner.removeprefix('!'))}]", re.DOTALL
        )
    except re.error as fault:
        raise ValueError(f"the pattern '{pattern}' cannot be read: {fault}") from fault
    return lambda one: one != "/" and members.fullmatch(one) is not None, close + 1
