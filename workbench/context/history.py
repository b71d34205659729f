"""The visit's own messages as they grow, with their turns counted over all attempts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workbench.context.assembly import Item, Kind
from workbench.context.place import Place

_ANSWER, _RESULT = Kind.ANSWER, Kind.RESULT


class History:
    """An append-only list of items. Turns are numbered through the visit, attempts included, from 1."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.turns: list[int] = []
        """The turn of each item, counted through the visit."""
        self.late: Callable[[], object] | None = None
        """Tells the sizes that are not known yet."""
        self._sizes: list[int] = []
        self.first_answer: int | None = None
        """Index of the visit's first answer; what stands before it opens the visit."""
        self.last_answered = 0
        """The last turn that has an answer."""
        self.tools_called: dict[int, list[str]] = {}
        """Names of the tools whose results follow an answer, by the answer's index."""
        self.attempt_starts: dict[int, int] = {}
        """Index of the first item of each attempt."""
        self._before: dict[int, int] = {}
        self._longest = 0
        self._attempt = 0
        self._answer_at: dict[Place, int] = {}

    def add(self, item: Item) -> int | None:
        """Append an item. ``sized`` sets its size later. Returns the index of an earlier answer that is now known to
        have called a tool in its text, or None.
        """
        index, place = len(self.items), item.place
        attempt, kind = place.attempt, item.kind
        if attempt not in self._before:
            self._before[attempt] = self._before.get(self._attempt, 0) + self._longest
            self._attempt, self._longest = attempt, 0
        if attempt == self._attempt and place.turn > self._longest:
            self._longest = place.turn  # An edit may have moved an earlier attempt's message behind this one.
        self.items.append(item)
        self.turns.append(self._before[attempt] + place.turn)
        if attempt not in self.attempt_starts:
            self.attempt_starts[attempt] = index
        if kind is _ANSWER:
            if self.first_answer is None:
                self.first_answer = index
            self.last_answered = self.turns[-1]
            self._answer_at[place] = index
        elif kind is _RESULT and (answer := self._answer_at.get(place)) is not None:
            self.tools_called.setdefault(answer, []).append(item.tool or item.message.name)
            return None if self.items[answer].message.tool_calls else answer
        return None

    def sized(self, tokens: int) -> None:
        """Set the full tokens of the next item."""
        self._sizes.append(tokens)

    @property
    def sizes(self) -> Sequence[int]:
        """Full tokens of each item. Reading them may wait for the counter; only totals and parts that decide by size
        read them.
        """
        if self.late is not None:
            self.late()
        return self._sizes

    def turn(self, place: Place) -> int:
        """The number of a place's turn, counted through the visit."""
        before = self._before.get(place.attempt)
        if before is None:
            before = self._before.get(self._attempt, 0) + self._longest
        return before + place.turn

    def opens_visit(self, index: int) -> bool:
        """Returns whether the item precedes the first answer: the task, and messages injected with it."""
        return self.first_answer is None or index < self.first_answer
