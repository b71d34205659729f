"""The columns of the context pane: their positions and widths in a pane of a given width."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from workbench.views.cells import Row, Span, crop, fit

ROLE = 9
LINE = 5
TOKENS = 8
"""Cells of each of the columns ``full`` and ``sent``."""


class Columns(Struct, frozen=True):
    """Widths in cells. The fixed ones are constants of this module."""

    width: int
    number: int
    marked: bool
    """Whether there is a column for the marks of a comparison."""
    source: int
    why: int

    @property
    def indent(self) -> str:
        """The empty cells before the role, for a row without a number."""
        return " " * (1 + self.number + (2 if self.marked else 0) + 3)

    @property
    def rest(self) -> int:
        """Cells from the column ``why`` to the last column."""
        return self.why + LINE + TOKENS

    def row(self, left: list[Span], *right: Span, tone: str = "") -> Row:
        """A row whose last columns keep their places while the rest is cut."""
        room = self.width - TOKENS * len(right)
        if room < 12:
            return Row(crop(left, self.width), tone)
        cells = [(fit(text, TOKENS, "right"), token) for text, token in right]
        return Row((*crop(left, room), *cells), tone)

    def head(self) -> Row:
        """The names of the columns."""
        number = " " + fit("#", self.number, "right")
        left = f"{number:<{len(self.indent)}}{fit('role', ROLE)}   {fit('from', self.source)}{fit('why', self.why)}"
        return self.row([(left + fit("line", LINE, "right"), "head")], ("full", "head"), ("sent", "head"))


@lru_cache(maxsize=64)
def columns(width: int, entries: int, *, marked: bool) -> Columns:
    """The columns for a pane of ``width`` cells and so many entries."""
    number = len(str(entries))
    fixed = 1 + number + (2 if marked else 0) + 3 + ROLE + 3 + LINE + 2 * TOKENS + 1
    flexible = max(12, width - fixed)
    source = max(7, min(27, flexible * 45 // 100))
    return Columns(width, number, marked, source, flexible - source)
