"""Which lines of a list each of its rows takes: one, and more where a row that a line cuts goes on below it."""

from __future__ import annotations

from workbench.tui.rows.cells import Row
from workbench.tui.rows.model import Rows


class Spread:
    """Rows and lines count from 0."""

    def __init__(self, rows: Rows, width: int, page: int, selected: int) -> None:
        """All rows that are cut show whole where the ``page`` has lines for all of them and they may, else the selected
        one, where it has lines enough. ``selected`` is -1 for none."""
        self._whole: dict[int, tuple[Row, ...]] = {}
        self._count = len(rows)
        if rows.spreads and self._count <= page:
            self._show_whole(rows, range(self._count), width)
        if not self._whole or len(self) > page:
            self._whole = {}
            if 0 <= selected < self._count:
                self._show_whole(rows, (selected,), width)
            if any(len(lines) > page for lines in self._whole.values()):
                self._whole = {}

    def _show_whole(self, rows: Rows, positions: range | tuple[int, ...], width: int) -> None:
        found = ((position, rows.whole(position, width)) for position in positions)
        self._whole = {position: lines for position, lines in found if len(lines) > 1}

    def __len__(self) -> int:
        """Lines in all."""
        return self._count + sum(len(lines) - 1 for lines in self._whole.values())

    def lines_of(self, position: int) -> range:
        """The lines that a row takes."""
        before = sum(len(lines) - 1 for other, lines in self._whole.items() if other < position)
        first = position + before
        return range(first, first + len(self._whole.get(position, (None,))))

    def at(self, line: int) -> tuple[int, Row | None]:
        """The row that a line belongs to, and what stands there; None for a row in one line, drawn as ever."""
        position = line
        for other, lines in self._whole.items():
            taken = self.lines_of(other)
            if line in taken:
                return other, lines[line - taken.start]
            if line >= taken.stop:
                position -= len(lines) - 1
        return position, None
