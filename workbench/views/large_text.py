"""A text of any size, whole: laid out a piece at a time, cleaned as it is drawn, so that ten megabytes open at once."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from time import monotonic

from workbench.language.clean import clean
from workbench.views.cells import Row, Span
from workbench.views.model import Rows

PIECE = 1 << 16
"""Characters that one step of a search looks at."""
PATIENCE = 0.03
"""Seconds that a search may hold up a key; then the count goes on by itself."""


class LargeTextRows(Rows):
    """Lines break anywhere. Rows that are not laid out yet are not counted: ``growing`` says that there are some."""

    def __init__(self, text: str, title: tuple[Span, ...] = (), facts: str = "") -> None:
        self.text = text
        self.copy = text
        self.title = title
        self._facts = facts
        self._width = -1
        self._starts = array("Q")
        """The offset of each row, in characters."""
        self._at = 0
        """How far the text is laid out."""

    # -- layout ------------------------------------------------------------------------------------------------------

    @property
    def growing(self) -> bool:
        return self._width > 0 and self._at <= len(self.text)

    def lay_out(self, width: int) -> None:
        if width == self._width:
            return
        self._width = width
        self._starts = array("Q")
        self._at = 0
        self.go_on(PATIENCE / 3)

    @property
    def _room(self) -> int:
        return max(8, self._width - 2)

    def go_on(self, seconds: float) -> None:
        """Lay out more lines, for about so long."""
        until = monotonic() + seconds
        text, starts, room, count = self.text, self._starts, self._room, 0
        while self.growing:
            end = text.find("\n", self._at)
            end = len(text) if end < 0 else end
            if end - self._at <= room // 2:
                starts.append(self._at)
            else:
                step = room if text[self._at : end].isascii() else room // 2
                starts.extend(range(self._at, end, step))
            self._at = end + 1
            count += 1
            if count % 256 == 0 and monotonic() > until:
                break
        done = "" if not self.growing else f" · {100 * self._at // max(1, len(text))} %"
        self.title_right = ((f"{self._facts}{done}", "dim"),)

    def __len__(self) -> int:
        return len(self._starts)

    def row(self, index: int, width: int) -> Row:
        start = self._starts[index]
        end = self._starts[index + 1] if index + 1 < len(self._starts) else min(len(self.text), start + self._room)
        piece = self.text[start:end].partition("\n")[0].rstrip("\r").replace("\t", " ")
        return Row(((" ", "plain"), (clean(piece), "plain")))

    # -- search ------------------------------------------------------------------------------------------------------

    def find(self, needle: str, start: int, step: int = 1) -> int | None:
        """The next row that holds the needle; None if none was found in the given time."""
        if not needle or not self._starts:
            return None
        until = monotonic() + PATIENCE
        for row in self._around(needle, start, step):
            if row is not None:
                return row
            if monotonic() > until:
                return None
        return None

    def _around(self, needle: str, start: int, step: int) -> Iterator[int | None]:
        """From a row to the end and on from the top; or back from it, piece by piece."""
        start = min(start, len(self._starts) - 1)
        if step > 0:
            yield from self._hits(needle, self._starts[start], len(self.text))
            yield from self._hits(needle, 0, self._starts[start])
            return
        at = self._starts[start + 1] if start + 1 < len(self._starts) else len(self.text)
        for low, high in ((0, at), (at, len(self.text))):
            for edge in range(high, low, -PIECE):
                found = [row for row in self._hits(needle, max(low, edge - PIECE), edge) if row is not None]
                yield found[-1] if found else None

    def places(self, needle: str) -> Iterator[int | None]:
        if not needle:
            return
        last = -1
        for row in self._hits(needle, 0, len(self.text)):
            if row != last:
                yield row
            last = last if row is None else row

    def _hits(self, needle: str, start: int, end: int) -> Iterator[int | None]:
        """The row of each match, and None after each piece; a match in a part that is not laid out is waited for."""
        pattern = re.compile(re.escape(needle), re.IGNORECASE)
        at = start
        while at < end:
            edge = min(end, at + PIECE)
            for match in pattern.finditer(self.text, at, min(end, edge + len(needle) - 1)):
                while match.start() >= self._at:
                    yield None
                yield bisect_right(self._starts, match.start()) - 1
            at = edge
            yield None
