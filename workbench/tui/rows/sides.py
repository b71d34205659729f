"""Two texts side by side in one list, aligned line by line: a message in full, and what the model saw of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from workbench.tui.rows.cells import Row, Span, crop, fit, width_of
from workbench.tui.rows.model import Rows
from workbench.tui.rows.text import Line, TextRows


class SideRows(Rows):
    """Left and right are wrapped to half the width each and scroll as one."""

    def __init__(
        self,
        left: Sequence[Line],
        right: Sequence[Line],
        labels: tuple[str, str],
        title: tuple[Span, ...] = (),
        title_right: tuple[Span, ...] = (),
        copy: str = "",
    ) -> None:
        self.left = TextRows(left)
        self.right = TextRows(right)
        self.labels = labels
        self.title = title
        self.title_right = title_right
        self.copy = copy
        self._width = -1

    def lay_out(self, width: int) -> None:
        if width != self._width:
            self._width = width
            self.left.lay_out((width - 1) // 2)
            self.right.lay_out(width - 1 - (width - 1) // 2)

    def __len__(self) -> int:
        return max(len(self.left), len(self.right))

    def heads(self, width: int) -> Sequence[Row]:
        self.lay_out(width)
        half = (width - 1) // 2
        spans = (
            (" " + fit(self.labels[0], half - 1), "head"),
            ("│", "rule"),
            (" " + fit(self.labels[1], width - 2 - half), "head"),
        )
        return (Row(spans),)

    def row(self, index: int, width: int) -> Row:
        self.lay_out(width)
        half = (width - 1) // 2
        sides = []
        for rows, room in ((self.left, half), (self.right, width - 1 - half)):
            spans = crop(rows.row(index, room).spans, room) if index < len(rows) else ()
            sides.append((*spans, (" " * (room - width_of(spans)), "plain")))
        return Row((*sides[0], ("│", "rule"), *sides[1]))

    def plain(self, index: int) -> str:
        return self.row(index, self._width if self._width > 0 else 200).text

    def texts(self) -> list[tuple[str, str]]:
        """Pairs of lines as they stand beside each other before wrapping."""
        return [(a.text if a else "", b.text if b else "") for a, b in zip_longest(self.left.lines, self.right.lines)]
