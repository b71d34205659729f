"""The interface of a list: rows by index, fixed lines above them, and a text for an empty list."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from workbench.views.cells import Row, Span, crop, flat
from workbench.views.keys import told


class Rows:
    """The rows of one pane, made on demand: a list of 10,000 costs no more to draw than one of 10."""

    empty: tuple[str, ...] = ()
    """Lines of explanation while there is no row."""
    empty_token: str = "dim"
    """How they look."""
    title: tuple[Span, ...] = ()
    title_right: tuple[Span, ...] = ()
    spreads: bool = False
    """Whether all rows may show whole where there is room for it; else only the one under the cursor does."""
    told_beside: bool = False
    """Whether another pane tells the row under the cursor, so that it takes no line that another row needs."""

    @property
    def wanted_width(self) -> int:
        """Cells of a pane in which nothing is cut that could be whole; 0 where the width does not matter."""
        return 0

    def __len__(self) -> int:
        return 0

    def lay_out(self, width: int) -> None:
        """Called before the rows are counted for a pane of that many cells: wrapped text counts by it."""

    def heads(self, width: int) -> Sequence[Row]:
        """Lines that stay above the rows while they scroll."""
        return ()

    def row(self, index: int, width: int) -> Row:
        """One row, laid out for ``width`` cells. Raises IndexError outside the rows."""
        raise IndexError(index)

    def whole(self, index: int, width: int) -> tuple[Row, ...]:
        """The lines of a row that one line may cut, with nothing lost; empty for a row that is not cut."""
        return ()

    def plain(self, index: int) -> str:
        """The row as text without layout: what a search looks at and a copy takes."""
        return self.row(index, 400).text.strip()

    def find(self, needle: str, start: int, step: int = 1) -> int | None:
        """The next row from ``start`` on that holds the needle, case ignored, going round once."""
        total, needle = len(self), needle.casefold()
        if not needle:
            return None
        for offset in range(total):
            index = (start + step * offset) % total
            if needle in self.plain(index).casefold():
                return index
        return None

    def kept(self, needle: str, start: int = 0) -> Iterator[int]:
        """The rows from ``start`` on that a filter shows, in their order."""
        wanted = needle.casefold()
        return (index for index in range(start, len(self)) if wanted in self.plain(index).casefold())

    @property
    def growing(self) -> bool:
        """Whether more rows come by ``go_on``."""
        return False

    def go_on(self, seconds: float) -> None:
        """Lay out more rows, for about this many seconds."""

    def places(self, needle: str) -> Iterator[int | None]:
        """The rows at which a search stops, from the top; None in between, so that a count can pause."""
        wanted = needle.casefold()
        for index in range(len(self) if wanted else 0):
            yield index if wanted in self.plain(index).casefold() else None


class WrappedRows(Rows):
    """Rows whose number depends on the width, laid out once for each."""

    _width = -1

    def lay_out(self, width: int) -> None:
        if width != self._width:
            self._width = width
            self._wrap(width)

    def _wrap(self, width: int) -> None:
        """Lay out all rows for this width."""

    def plain(self, index: int) -> str:
        return self.row(index, self._width if self._width > 0 else 200).text


class Lines(Rows):
    """A few ready rows."""

    def __init__(self, rows: Sequence[Row] = (), empty: Sequence[str] = ()) -> None:
        self.rows = tuple(rows)
        self.empty = tuple(empty)

    def __len__(self) -> int:
        return len(self.rows)

    def row(self, index: int, width: int) -> Row:
        return Row(crop(self.rows[index].spans, width), self.rows[index].tone)

    def plain(self, index: int) -> str:
        return self.rows[index].text.strip()


class Filtered(Rows):
    """Only the rows that hold the needle; ``origin`` gives the index among all of them."""

    def __init__(self, rows: Rows, needle: str, clears: str = "view.clear") -> None:
        """``clears`` is the command that shows all rows again."""
        self.inner = rows
        self.needle = needle
        self.indices = list(rows.kept(needle))
        self.spreads, self.told_beside = rows.spreads, rows.told_beside
        self._seen = (len(rows), 0)
        """How many rows were looked at, and the width at which they were counted; 0 before any."""
        self.empty = (f"No row holds '{flat(needle)}'.", told(f"{{{clears}}} shows all again."))

    def __len__(self) -> int:
        return len(self.indices)

    def lay_out(self, width: int) -> None:
        """Lay out what was added since; everything if the width changed."""
        self.inner.lay_out(width)
        seen, before = self._seen
        now = len(self.inner)
        if (before and before != width) or now < seen:
            self.indices, seen = [], 0
        if now != seen:
            self.indices += self.inner.kept(self.needle, seen)
        self._seen = (now, width)

    @property
    def growing(self) -> bool:
        return self.inner.growing

    def go_on(self, seconds: float) -> None:
        self.inner.go_on(seconds)

    def heads(self, width: int) -> Sequence[Row]:
        return self.inner.heads(width)

    def row(self, index: int, width: int) -> Row:
        return self.inner.row(self.indices[index], width)

    def whole(self, index: int, width: int) -> tuple[Row, ...]:
        return self.inner.whole(self.indices[index], width)

    def plain(self, index: int) -> str:
        return self.inner.plain(self.indices[index])

    def nearest(self, index: int) -> int:
        """The row that shows an index of all rows, or the last one before it."""
        return max(0, bisect_right(self.indices, index) - 1)

    def origin(self, index: int) -> int:
        """The index of a row before filtering."""
        return self.indices[index]


DIFFERS = frozenset({"gone", "added", "gone-word", "added-word"})
"""Tokens of text that one side lacks."""


def difference_from(rows: Rows, at: int, step: int, width: int) -> int | None:
    """The row where the next difference begins after a row, or the one before it (``step`` -1); None for none within
    ``LOOKED_AT`` rows."""

    def differs(index: int) -> bool:
        return any(token in DIFFERS for _, token in rows.row(index, width).spans)

    ahead = range(at + 1, min(len(rows), at + LOOKED_AT)) if step > 0 else range(at - 1, max(-1, at - LOOKED_AT), -1)
    return next((index for index in ahead if differs(index) and not (index and differs(index - 1))), None)


LOOKED_AT = 5_000
"""Rows among which the next difference is looked for, as a key must not take long."""
