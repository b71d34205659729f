"""Plots drawn with characters: points with their names, and two lines over the same calls."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise

from msgspec import Struct
from rich.cells import cell_len

from workbench.views.cells import Span, flat

Drawn = tuple[Span, ...]
"""One line of a drawing."""

SIDES = (("A", "side-a"), ("B", "side-b"))
"""The marks of two lines over the same calls."""

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bits of a braille character, by row and column of its dots."""
MOST = 8
"""Steps on an upright axis."""
LONGEST_NAME = 28
"""Cells of a name beside its point."""


class Point(Struct, frozen=True):
    """A point with its mark, one character, and what it stands for."""

    x: float
    y: float
    mark: str
    label: str
    token: str = "plain"


class Axis(Struct, frozen=True):
    """What one side of a drawing spans, and the round numbers on it."""

    low: float
    high: float
    step: float

    @property
    def ticks(self) -> list[float]:
        first, last = math.ceil(self.low / self.step - 1e-9), math.floor(self.high / self.step + 1e-9)
        return [number * self.step for number in range(first, last + 1)]

    def at(self, value: float, cells: int) -> int:
        """The cell of a value, of so many from ``low`` to ``high``."""
        return round((value - self.low) / (self.high - self.low) * (cells - 1))

    def text(self, value: float) -> str:
        """A number with the digits that tell it from the next one."""
        return f"{value:,.{max(0, -math.floor(math.log10(self.step) + 1e-9))}f}"


def axis(low: float, high: float, most: int) -> Axis:
    """From ``low`` to ``high`` in steps of 1, 2 or 5 times a power of ten, at most about ``most`` of them."""
    least = (high - low) / max(1, most)
    power = 10.0 ** math.floor(math.log10(least))
    return Axis(low, high, next(power * times for times in (1, 2, 5, 10) if power * times >= least * (1 - 1e-9)))


def scatter(points: Sequence[Point], x_title: str, y_title: str, width: int, height: int = 18) -> list[Drawn]:
    """Lines of a scatter plot in ``width`` cells, ``height`` of them for the drawing alone.

    Of several points in one cell, the one that comes first is drawn; a name stands beside its point where nothing else
    does.
    """
    across = spread([point.x for point in points])
    up = axis(*spread([point.y for point in points]), max(2, min(MOST, height // 3)))
    canvas = _Canvas(up, height, width)
    along = axis(*across, max(2, canvas.width // 16))
    places: dict[tuple[int, int], list[Point]] = {}
    for point in points:
        row, column = height - 1 - up.at(point.y, height), along.at(point.x, canvas.width)
        places.setdefault((row, column), []).append(point)
    for (row, column), here in places.items():
        canvas.put(row, column, here[0].mark, here[0].token)
    for (row, column), here in places.items():
        names = ", ".join(dict.fromkeys(flat(point.label) for point in here if point.label != point.mark))
        canvas.name(row, column, names, here[0].token)
    below = [(along.at(tick, canvas.width), along.text(tick)) for tick in along.ticks]
    return [((y_title, "dim"),), *canvas.rows(), *canvas.floor(below), ((canvas.under(x_title), "dim"),)]


def lines_over_calls(
    names: Sequence[str], lines: Sequence[Sequence[float | None]], title: str, width: int, height: int = 8
) -> list[Drawn]:
    """Lines of a plot of A and B over the same calls: ``A``, ``B``, ``=`` where they fall into one cell.

    More calls than columns share them: each column shows the largest of its calls.
    """
    high = max((value for line in lines for value in line if value is not None), default=0.0) or 1.0
    canvas = _Canvas(axis(0.0, high, min(MOST, height // 2)), height, width)
    step = max(1, -(-len(names) // canvas.width))
    groups = [range(start, min(start + step, len(names))) for start in range(0, len(names), step)]
    gap = canvas.width // max(1, len(groups))
    columns = [at * gap + gap // 2 for at in range(len(groups))]
    for (mark, token), line in zip(SIDES, lines, strict=False):
        before: tuple[int, int] | None = None
        for column, group in zip(columns, groups, strict=True):
            known = [value for index in group if (value := line[index]) is not None]
            here = (height - 1 - canvas.up.at(max(known), height), column) if known else None
            if here is not None:
                both = canvas.marked(*here)
                canvas.put(*here, "=" if both else mark, "bold" if both else token)
                if before is not None:
                    canvas.line(before, here, token)
            before = here
    shared = f"{title} ({step} calls in a column, the largest shown)" if step > 1 else title
    called = [(column, names[group[0]]) for column, group in zip(columns, groups, strict=True)]
    return [((shared, "dim"),), *canvas.rows(), *canvas.floor(called)]


class _Canvas:
    """Cells above and right of two axes: marks, names beside them, lines between them."""

    def __init__(self, up: Axis, height: int, width: int) -> None:
        self.up, self.height = up, height
        self._ticks = {height - 1 - up.at(tick, height): up.text(tick) for tick in up.ticks}
        self.margin = max(map(len, self._ticks.values()), default=0) + 2
        """Cells left of the drawing, the axis among them."""
        self.width = max(10, width - self.margin)
        self._cells: dict[tuple[int, int], Span] = {}
        self._dots: dict[tuple[int, int], tuple[int, str]] = {}

    def marked(self, row: int, column: int) -> bool:
        return (row, column) in self._cells

    def put(self, row: int, column: int, mark: str, token: str) -> None:
        self._cells[row, column] = (mark, token)

    def name(self, row: int, column: int, text: str, token: str) -> None:
        """Right of a mark, left of it, above or below; nowhere while something else is there."""
        if len(text) > LONGEST_NAME:
            text = text[: LONGEST_NAME - 1] + "…"
        if not text or len(text) != cell_len(text):
            return
        middle = self._left(column, text)
        for at, start in ((row, column + 2), (row, column - 1 - len(text)), (row - 1, middle), (row + 1, middle)):
            room = range(start - 1, start + len(text) + 1)
            free = all((at, cell) not in self._cells for cell in room if (at, cell) != (row, column))
            if free and 0 <= at < self.height and 0 <= start <= self.width - len(text):
                for cell, letter in zip(room, f" {text} ", strict=True):
                    self._cells.setdefault((at, cell), (letter, token))
                return

    def line(self, start: tuple[int, int], end: tuple[int, int], token: str) -> None:
        """Dots from one cell to another, four in the height of a cell and two in its width."""
        (row, column), (last_row, last_column) = start, end
        steps = max(abs(last_row - row) * 4, abs(last_column - column) * 2, 1)
        for step in range(steps + 1):
            y = round(row * 4 + 2 + (last_row - row) * 4 * step / steps)
            x = round(column * 2 + (last_column - column) * 2 * step / steps)
            cell = (y // 4, x // 2)
            bits, first = self._dots.get(cell, (0, token))
            self._dots[cell] = (bits | _DOTS[y % 4][x % 2], first)

    def rows(self) -> Iterable[Drawn]:
        """The axis, its numbers and what is drawn, line by line."""
        for row in range(self.height):
            number = self._ticks.get(row, "")
            edge = (f"{number:>{self.margin - 2}} {'┤' if number else '│'}", "dim")
            cells = [self._cell(row, column, bool(number)) for column in range(self.width)]
            yield (edge, *_joined(cells))

    def _cell(self, row: int, column: int, on_tick: bool) -> Span:
        if (mark := self._cells.get((row, column))) is not None:
            return mark
        if (dots := self._dots.get((row, column))) is not None:
            return chr(0x2800 + dots[0]), dots[1]
        return ("┈", "rule") if on_tick else (" ", "plain")

    def floor(self, ticks: Sequence[tuple[int, str]]) -> list[Drawn]:
        """The lower axis, and below it the texts of the columns: all of them, or every second, third … one."""
        every = 1
        while every < len(ticks) and not self._apart(ticks[::every]):
            every += 1
        line, texts = ["─"] * self.width, ""
        for column, text in ticks[::every]:
            line[column] = "┴"
            texts = texts.ljust(self._left(column, text)) + text
        left = " " * (self.margin - 1)
        return [((f"{left}└{''.join(line)}", "dim"),), ((f"{left} {texts}", "dim"),)]

    def _left(self, column: int, text: str) -> int:
        """Where a text begins that stands below a column."""
        return max(0, min(column - len(text) // 2, self.width - len(text)))

    def _apart(self, ticks: Sequence[tuple[int, str]]) -> bool:
        starts = [(self._left(column, text), len(text)) for column, text in ticks]
        return all(start + length < after for (start, length), (after, _) in pairwise(starts))

    def under(self, title: str) -> str:
        """A title in the middle below the drawing."""
        return " " * self.margin + title.center(self.width).rstrip()


def _joined(cells: Iterable[Span]) -> list[Span]:
    return [("".join(text for text, _ in same), token) for token, same in groupby(cells, key=lambda cell: cell[1])]


def spread(values: Sequence[float]) -> tuple[float, float]:
    """A little more than the values span, and never nothing."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = (high - low) * 0.04 or max(abs(high) * 0.05, 1e-9)
    return low - room, high + room
