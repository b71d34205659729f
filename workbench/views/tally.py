"""Counts the lines on which a search finds something, a little at a time, so that the screen stays responsive."""

from __future__ import annotations

from bisect import bisect_left
from time import monotonic

from workbench.views.model import Rows


class Tally:
    """The rows of a list that hold a text."""

    def __init__(self, rows: Rows, needle: str) -> None:
        self.rows = rows
        self.needle = needle
        self.length = len(rows)
        """Rows that there were when the count began."""
        self.hits: list[int] = []
        """Matching lines in order, as far as they were found."""
        self.done = not needle
        self._places = rows.places(needle)

    def go_on(self, seconds: float) -> None:
        """Count for about so long."""
        until = monotonic() + seconds
        for number, place in enumerate(self._places, 1):
            if place is not None:
                self.hits.append(place)
            if number % 32 == 0 and monotonic() > until:
                return
        self.done = True

    def words(self, at: int) -> str:
        """``line 3 of 12`` if the current line matches, else ``on 12 lines``; a ``+`` while more may come. A line
        counts once, however often it matches: it is where the search stops.
        """
        more = "" if self.done else "+"
        index = bisect_left(self.hits, at)
        if index < len(self.hits) and self.hits[index] == at:
            return f"line {index + 1:,} of {len(self.hits):,}{more}"
        if not self.hits:
            return "on no line" if self.done else "searching"
        return f"on {len(self.hits):,}{more} line{'' if len(self.hits) == 1 and self.done else 's'}"
