"""How often a search finds something, counted a little at a time: the screen goes on meanwhile."""

from __future__ import annotations

from bisect import bisect_left
from time import monotonic

from workbench.tui.rows.model import Rows


class Tally:
    """The rows of a list that hold a text."""

    def __init__(self, rows: Rows, needle: str) -> None:
        self.rows = rows
        self.needle = needle
        self.length = len(rows)
        """Rows that there were when the count began."""
        self.hits: list[int] = []
        """In order, as far as they were found."""
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
        """``3 of 12`` when the look is at a hit, else ``12 found``; a ``+`` while more may come."""
        more = "" if self.done else "+"
        index = bisect_left(self.hits, at)
        if index < len(self.hits) and self.hits[index] == at:
            return f"{index + 1:,} of {len(self.hits):,}{more}"
        return f"{len(self.hits):,}{more} found" if self.hits or self.done else "searching"
