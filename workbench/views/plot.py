"""Plots in a terminal, drawn by plotext: points with their names, and two lines over the same calls.

Which numbers stand on an axis is decided here, for the pictures of ``figure.py`` too.
"""

from __future__ import annotations

import math
import re
import textwrap
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any

from msgspec import Struct
from rich.cells import cell_len

from workbench.views.cells import Span, flat

Drawn = tuple[Span, ...]
"""One line of a drawing."""

SIDES = (("A", "side-a"), ("B", "side-b"))
"""The marks of two lines over the same calls."""
MOST = 8
"""Numbers on an upright axis."""
LONGEST_NAME, NAME_LINES = 28, 3
"""Cells of a line of a name beside its point, and lines, at most."""
NEAR_ZERO = 0.25
"""Values that begin below this share of the largest are drawn from 0 on; the others from a round number below them."""
ROOM = 0.05
"""Of what an axis spans, beyond the largest value, unless the next round number is nearer."""
_NAMED = 200
"""Points that get a name; the library tells this many colours apart, which is how a point is found again."""
_FIRST = 20
"""The first colour that stands for something: those before it are the named ones."""
_one_at_a_time = threading.Lock()
"""The library keeps its figure in one place for the whole process."""


class Point(Struct, frozen=True):
    """A point with its mark, one character, and what it stands for."""

    x: float
    y: float
    mark: str
    label: str
    token: str = "plain"


class Axis(Struct, frozen=True):
    """The range of one side of a drawing; it begins at a round number."""

    low: float
    high: float
    step: float

    @property
    def ticks(self) -> list[float]:
        """The round numbers on the axis; the axes meet at the first."""
        first, last = math.ceil(self.low / self.step - 1e-9), math.floor(self.high / self.step + 1e-9)
        return [number * self.step for number in range(first, last + 1)]

    def text(self, value: float) -> str:
        """A number with the digits that tell it from the next one."""
        if abs(value) < self.step / 100:
            return "0"
        power = math.floor(math.log10(self.step) + 1e-9)
        return f"{value:,.{max(0, -power)}f}"


def axis(low: float, high: float, most: int) -> Axis:
    """From a round number at or below ``low`` to a little more than ``high``, in steps of 1, 2 or 5 times a power of
    ten, with about ``most`` of them at most. Values that are near 0 are drawn from 0 on."""
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-9):
        room = max(abs(high) * 0.05, 1e-9)
        low, high = (low - room if low else 0.0), high + room
    if 0 < low < high * NEAR_ZERO:
        low = 0.0
    least = (high - low) / max(1, most)
    power = 10.0 ** math.floor(math.log10(least))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= least * (1 - 1e-9))
    begin = math.floor(low / step + 1e-9) * step
    return Axis(begin, min(math.ceil(high / step - 1e-9) * step, high + ROOM * (high - begin)), step)


def axis_of(values: Sequence[float], most: int) -> Axis:
    """An axis that has room for these values, and no more than that."""
    return axis(min(values, default=0.0), max(values, default=1.0), most)


def scatter(points: Sequence[Point], x_title: str, y_title: str, width: int, height: int = 18) -> list[Drawn]:
    """Lines of a scatter plot in ``width`` cells, ``height`` of them for the drawing alone.

    Of several points in one cell, the one that comes first is drawn; a name stands beside its point where nothing else
    does.
    """
    if not points:
        return []
    up = axis_of([point.y for point in points], max(2, min(MOST, height // 3)))
    along = axis_of([point.x for point in points], max(2, width // 18))
    below = [(tick, along.text(tick)) for tick in along.ticks]

    def paint(plot: Any) -> None:
        for number in range(len(points) - 1, -1, -1):
            one = points[number]
            plot.scatter([one.x], [one.y], marker=one.mark, color=_FIRST + min(number, _NAMED))

    cells = _built(paint, (along.low, along.high, below), up, width, height, corner=along.low != 0 or up.low != 0)
    _name(cells, points, along, up)
    tokens = [*(point.token for point in points[:_NAMED]), "dim"]
    middle = " " * max(0, (width - cell_len(x_title)) // 2)
    return [((y_title, "dim"),), *_spans(cells, tokens), ((middle + x_title, "dim"),)]


def lines_over_calls(
    names: Sequence[str],
    visits: Sequence[Hashable],
    lines: Sequence[Sequence[float | None]],
    title: str,
    width: int,
    height: int = 8,
) -> list[Drawn]:
    """Lines of a plot of A and B over the same calls: ``A``, ``B``, ``=`` where they fall into one cell.

    ``visits`` says which visit of a phase each call belongs to: no line leads from one to the next, and a rule stands
    between them. A call without a value breaks its line. Both lines begin at 0.
    """
    high = max((value for line in lines for value in line if value is not None), default=0.0) or 1.0
    up = axis(0.0, high, max(1, min(MOST, height // 2)))
    canvas = max(10, width - max(len(up.text(tick)) for tick in up.ticks) - 1)
    ends = (-0.5, len(names) - 0.5)
    below = [(float(at), names[at]) for at in visible_names(names, visits, canvas)]
    each = max(1, -(-4 * len(names) // canvas))  # A letter at every fourth cell can be told from its neighbours.
    alike = (up.high - up.low) / height / 2
    rule = _FIRST + len(SIDES) + 1

    def paint(plot: Any) -> None:
        for at in range(1, len(visits)):
            if visits[at] != visits[at - 1] and canvas >= 2 * len(names):
                plot.vline(at - 0.5, rule)
        for number, line in enumerate(lines):
            for part in unbroken(visits, line):
                drawn = [line[at] for at in part]
                plot.plot(list(part), drawn, marker="braille", color=_FIRST + number)
        for number, line in enumerate(lines):
            for at, value in enumerate(line):
                if value is None or at % each:
                    continue
                others = [other[at] for other in lines if other is not line]
                both = any(other is not None and abs(other - value) < alike for other in others)
                mark, colour = ("=", _FIRST + len(SIDES)) if both else (SIDES[number][0], _FIRST + number)
                plot.scatter([at], [value], marker=mark, color=colour)

    cells = _built(paint, (*ends, below), up, width, height)
    tokens = [*(token for _, token in SIDES), "bold", "rule"]
    return [((title, "dim"),), *_spans(cells, tokens)]


def unbroken(visits: Sequence[Hashable], line: Sequence[float | None]) -> Iterator[list[int]]:
    """The stretches of calls that one line leads through: of one visit, each with a value."""
    part: list[int] = []
    for at, value in enumerate(line):
        if part and (value is None or visits[at] != visits[part[-1]]):
            yield part
            part = []
        if value is not None:
            part.append(at)
    if part:
        yield part


def visible_names(names: Sequence[str], visits: Sequence[Hashable], canvas: int) -> list[int]:
    """The calls whose names stand below the drawing: the first of each visit, then every second, fifth, tenth … as far
    as there is room.
    """
    first = [at for at in range(len(names)) if not at or visits[at] != visits[at - 1]]
    taken: list[int] = []

    def room(wanted: Iterable[int]) -> list[int]:
        found = sorted({*taken, *wanted})
        spans = [(at * canvas / max(1, len(names)), len(names[at]) + 2) for at in found]
        apart = all(b - a >= (m + n) / 2 for (a, m), (b, n) in pairwise(spans))
        return found if apart else []

    for at in first:
        taken = room([at]) or taken
    for every in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000):
        if found := room(range(0, len(names), every)):
            return found
    return taken


# -- the library -----------------------------------------------------------------------------------------------------

_CODE = re.compile("\x1b\\[(?:38;5;(\\d+)|0)m")
_Cell = tuple[str, int]
"""A character and the number of its colour; 0 for no colour."""
_FRAME = 8


def _built(
    paint: Callable[[Any], None],
    along: tuple[float, float, Sequence[tuple[float, str]]],
    up: Axis,
    width: int,
    height: int,
    *,
    corner: bool = True,
) -> list[list[_Cell]]:
    """The cells of a drawing with its axes: ``height`` lines, the axis below them and the texts below it. ``corner``:
    whether the upright axis has a number where the axes meet."""
    import plotext  # 50 ms, and most commands draw nothing.

    with _one_at_a_time:
        plotext.clear_figure()
        plotext.limit_size(False, False)
        plotext.plot_size(max(20, width), height + 2)
        for colour in (plotext.canvas_color, plotext.axes_color):
            colour("default")
        plotext.ticks_color(_FRAME)
        plotext.xaxes(True, False)
        plotext.yaxes(True, False)
        plotext.xlim(along[0], along[1])
        plotext.ylim(up.low, up.high)
        plotext.xticks([at for at, _ in along[2]], [_narrow(text) for _, text in along[2]])
        plotext.yticks(up.ticks, [up.text(tick) if number or corner else "" for number, tick in enumerate(up.ticks)])
        paint(plotext)
        text = plotext.build()
        plotext.clear_figure()
    return [list(_cells(line)) for line in text.rstrip("\n").split("\n")]


def _cells(line: str) -> Iterator[_Cell]:
    colour, end = 0, 0
    for code in _CODE.finditer(line):
        yield from ((letter, colour) for letter in line[end : code.start()])
        colour, end = int(code[1] or 0), code.end()
    yield from ((letter, colour) for letter in line[end:])


def _narrow(text: str, most: int = LONGEST_NAME) -> str:
    """A text of at most so many characters, each of which takes one cell, as the library takes it."""
    return "".join(letter if cell_len(letter) == 1 else "?" for letter in flat(text, most))


def _spans(cells: Sequence[Sequence[_Cell]], tokens: Sequence[str]) -> list[Drawn]:
    """Cells as spans: the colours from ``_FIRST`` on stand for these tokens."""
    lines = []
    for line in cells:
        painted = [_token(letter, colour, tokens) for letter, colour in line]
        while painted and painted[-1][0] == " ":
            painted.pop()
        same = groupby(painted, key=lambda cell: cell[1])
        lines.append(tuple(("".join(letter for letter, _ in part), token) for token, part in same))
    return lines


def _token(letter: str, colour: int, tokens: Sequence[str]) -> Span:
    if colour < _FIRST:
        return letter, "plain" if letter == " " else "dim"
    token = tokens[min(colour - _FIRST, len(tokens) - 1)]
    return ("┊" if token == "rule" and letter == "│" else letter), token


def _name(cells: list[list[_Cell]], points: Sequence[Point], along: Axis, up: Axis) -> None:
    """Write names beside the points that can be seen; those that are hidden behind one are named with it."""
    places = {
        colour - _FIRST: (row, column)
        for row, line in enumerate(cells)
        for column, (_, colour) in enumerate(line)
        if colour >= _FIRST
    }
    named: dict[int, list[str]] = {}

    def far(one: Point, other: Point) -> float:
        wide, high = along.high - along.low, up.high - up.low
        return math.hypot((one.x - other.x) / wide, (one.y - other.y) / high)

    for number, point in enumerate(points[:_NAMED]):
        seen = number if number in places else min(places, key=lambda at: far(points[at], point), default=None)
        if seen is not None and point.label != point.mark:
            named.setdefault(seen, []).append(point.label)
    texts = {
        seen: _narrow(", ".join(dict.fromkeys(map(flat, of))), LONGEST_NAME * NAME_LINES) for seen, of in named.items()
    }
    for seen in sorted(texts, key=lambda seen: len(texts[seen]) > LONGEST_NAME):  # Those in one line find room first.
        text = texts[seen]
        lines = textwrap.wrap(text, LONGEST_NAME, break_on_hyphens=False) or [text]
        if len(lines) > NAME_LINES or not _write(cells, places[seen], lines, seen):
            _write(cells, places[seen], [_narrow(text)], seen)


def _write(cells: list[list[_Cell]], place: tuple[int, int], lines: Sequence[str], colour: int) -> bool:
    """Right of a mark, left of it, above or below; nowhere while something else is there, which makes it False."""
    row, column = place
    edge = next((at for at, (letter, _) in enumerate(cells[row]) if letter in "│┤"), 0)
    width, wide, high = len(cells[row]), max(map(len, lines)), len(lines)
    middle = max(edge + 1, min(column - wide // 2, width - wide))
    right, left = column + 2, column - 1 - wide
    sides = [(row, right), (row, left), (row - high + 1, right), (row - high + 1, left)]
    for top, start in (*sides, (row - high, middle), (row + 1, middle)):
        if not 0 <= top <= len(cells) - 2 - high or start <= edge or start + wide > width:
            continue
        room = range(max(edge + 1, start - 1), min(width, start + wide + 1))
        rows = range(top, top + high)
        if all(cells[at][cell][0] == " " for at in rows for cell in room if (at, cell) != place):
            for at, text in zip(rows, lines, strict=True):
                shown = text.rjust(wide) if start == left else text
                cells[at][start : start + len(shown)] = [(letter, _FIRST + colour) for letter in shown]
            return True
    return False
