"""How far to go to gain enough: the one idea behind every budget."""

from __future__ import annotations


class Frontier:
    """The shortest prefix of a growing list of gains that adds up to a need; moves no further than it must."""

    def __init__(self) -> None:
        self.gains: list[int] = []
        self.length = 0
        self.gained = 0
        """Sum of the gains in the prefix."""

    def change(self, index: int, by: int) -> None:
        """One gain has grown or shrunk."""
        self.gains[index] += by
        if index < self.length:
            self.gained += by

    def reach(self, need: int, limit: int, least: int = 0) -> range:
        """Move to the shortest prefix, between ``least`` and ``limit`` gains long, that adds up to ``need``.

        The longest, if none does. Returns the indices whose side has changed. The result depends on the gains alone,
        not on where the frontier stood before; the work, on how far it moves.
        """
        before = self.length
        while self.length < limit and (self.gained < need or self.length < least):
            self.gained += self.gains[self.length]
            self.length += 1
        while self.length > least and self.gained - self.gains[self.length - 1] >= max(need, 0):
            self.length -= 1
            self.gained -= self.gains[self.length]
        return range(min(before, self.length), max(before, self.length))
