"""The columns of the context pane: their positions and widths in a pane of a given width."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from workbench.views.cells import Row, Span, crop, fit

ROLE = 9
LINE = 5
TOKENS = 8
"""Cells of each of the columns ``full`` and ``sent``, at most."""
WHY = 24
"""Cells that a reason gets before where its entry comes from gets more than ``SOURCE``: ``masked: age 12 > 10``."""
SOURCE = 11
MOST_SOURCE, MOST_WHY = 27, 52
"""Cells of the two at most: of the first wherever it stands, of the second for a pane to become wider for it."""
LEAST_WHY = 18
"""Cells that a reason keeps where names of tools would be cut otherwise: ``masked: age 6 > 3``."""
TIGHT_WHY = 15
"""The same where figures with signs take what it lacks: ``age 6 > 3``."""
READABLE_WHY = 10
"""Cells of a reason below which there is none."""
LEAST_SOURCE = 5
LEAST_BOTH = 16
"""Cells of origins and reasons below which there are no lines of the file."""


class Needs(Struct, frozen=True):
    """Cells that the texts of some entries take."""

    source: int = 26
    name: int = 0
    """The same with the number of the turn alone: ``6 read_file``."""
    why: int = 400
    tokens: int = TOKENS - 2
    line: int = LINE
    """0 where no entry has a line of a file."""


def wanted(entries: int, needs: Needs, *, marked: bool) -> int:
    """Cells of a pane in which origins and reasons of so many entries are whole; of a very long one as much as a
    column has at most."""
    tokens = max(len("full") + 2, min(TOKENS, needs.tokens + 2))
    source, why = min(MOST_SOURCE, needs.source + 1), min(MOST_WHY, needs.why + 1)
    return _fixed(entries, needs, tokens, marked=marked) + source + why


def _fixed(entries: int, needs: Needs, tokens: int, *, marked: bool) -> int:
    """Cells beside the columns ``from`` and ``why``."""
    return 1 + len(str(entries)) + (2 if marked else 0) + 3 + ROLE + 3 + needs.line + 2 * tokens + 1


class Columns(Struct, frozen=True):
    """Widths in cells. The fixed ones are constants of this module."""

    width: int
    number: int
    marked: bool
    """Whether there is a column for the marks of a comparison."""
    source: int
    why: int
    tokens: int = TOKENS
    line: int = LINE

    @property
    def indent(self) -> str:
        """The empty cells before the role, for a row without a number."""
        return " " * (1 + self.number + (2 if self.marked else 0) + 3)

    @property
    def rest(self) -> int:
        """Cells from the column ``why`` to the last column."""
        return self.why + self.line + self.tokens

    def row(self, left: list[Span], *right: Span, tone: str = "") -> Row:
        """A row whose last columns keep their places while the rest is cut."""
        room = self.width - self.tokens * len(right)
        if room < 12:
            return Row(crop(left, self.width), tone)
        cells = [(fit(text, self.tokens, "right"), token) for text, token in right]
        return Row((*crop(left, room), *cells), tone)

    def head(self) -> Row:
        """The names of the columns."""
        number = " " + fit("#", self.number, "right")
        left = f"{number:<{len(self.indent)}}{fit('role', ROLE)}   {fit('from', self.source)}{fit('why', self.why)}"
        return self.row([(left + fit("line", self.line, "right"), "head")], ("full", "head"), ("sent", "head"))


@lru_cache(maxsize=64)
def columns(width: int, entries: int, needs: Needs, *, marked: bool) -> Columns:
    """The columns for a pane of ``width`` cells and so many entries. What one column does not need, the other gets."""
    number = len(str(entries))
    tokens = max(len("full") + 2, min(TOKENS, needs.tokens + 2))
    fixed = _fixed(entries, needs, tokens, marked=marked)
    line = needs.line if width - fixed >= LEAST_BOTH else 0
    flexible = width - fixed + needs.line - line
    if tokens > max(len("full"), needs.tokens) + 1 and needs.name + 1 > flexible - LEAST_WHY:
        # A space between two numbers is enough where names would be cut for the second one.
        tokens -= 1
        flexible += 2
    flexible = max(LEAST_SOURCE, flexible)
    least_why = LEAST_WHY if needs.name + 1 <= flexible - LEAST_WHY else TIGHT_WHY
    share = max(min(flexible * 45 // 100, max(SOURCE, flexible - WHY)), flexible - needs.why - 1)
    share = max(share, min(needs.name + 1, flexible - least_why))
    source = max(LEAST_SOURCE, min(MOST_SOURCE, needs.source + 1, share))
    if flexible - source < READABLE_WHY:
        source = flexible
    return Columns(width, number, marked, source, flexible - source, tokens, line)
