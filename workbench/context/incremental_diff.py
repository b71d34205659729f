"""Two contexts of one visit, followed from call to call: how they differ, at the cost of what changes in between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from itertools import compress, count
from operator import is_not
from typing import NamedTuple

from msgspec import Struct

from workbench.context.align import Alignment, Change, ChangeKind, Naming
from workbench.context.assembly import Entry, Splice


class Outline(Struct, frozen=True):
    """How two contexts of one call differ, in numbers."""

    first: Change | None = None
    """The first of ``changes``."""
    changes: int = 0
    """How many messages a provider would see otherwise."""
    kinds: frozenset[ChangeKind] = frozenset()
    """Of all changes."""
    different: int = 0
    """Rows of ``align`` whose two sides send different messages."""
    equal: int = 0
    """Stretches of rows that are the same: how many folds ``stretches`` gives."""


class Step(NamedTuple):
    """The entries of a context that the one before it did not have."""

    since: Sequence[Entry]
    """The context before."""
    replaced: Sequence[int]
    """Indices of its entries that have become other objects."""

    @classmethod
    def between(cls, before: Sequence[Entry], after: Sequence[Entry], splices: Iterable[Splice] | None = None) -> Step:
        """By splices from the one to the other that replace and append, as those within a visit do; else by looking
        at all: a context shares with the one before what it keeps."""
        if splices is None:
            return cls(before, tuple(compress(count(), map(is_not, before, after))))
        ends = ((splice.at, min(splice.at + splice.remove, len(before))) for splice in splices)
        return cls(before, tuple(index for at, end in ends for index in range(at, end)))


class IncrementalDiff:
    """The two sides of one visit. ``outline`` takes their contexts call by call."""

    def __init__(self) -> None:
        self._old: Sequence[Entry] = ()
        self._new: Sequence[Entry] = ()
        self._begin((), ())

    def outline(
        self,
        old: Sequence[Entry],
        new: Sequence[Entry],
        step_old: Step | None = None,
        step_new: Step | None = None,
    ) -> Outline:
        """Returns how these two differ. Contexts that only grew since the last ones cost what changed, others a new
        alignment.

        What changed is told by the steps, else looked for. The outline is the same either way.
        """
        if step_old is None or step_old.since is not self._old:
            step_old = Step.between(self._old, old)
        if step_new is None or step_new.since is not self._new:
            step_new = Step.between(self._new, new)
        if not self._goes_on(old, new, step_old.replaced, step_new.replaced):
            self._begin(old, new)
        first = self._first()
        return Outline(
            None if first is None else self._rows.change(first, old, new),
            len(self._kinds),
            frozenset(kind for kind, number in self._tally.items() if number),
            self._different,
            self._equal,
        )

    def _begin(self, old: Sequence[Entry], new: Sequence[Entry]) -> None:
        self._rows = Alignment(old, new)
        self._names = Naming(old), Naming(new)
        self._row_of_old = {pair.old: row for row, pair in enumerate(self._rows.pairs) if pair.old >= 0}
        self._row_of_new = {pair.new: row for row, pair in enumerate(self._rows.pairs) if pair.new >= 0}
        self._kinds: dict[int, ChangeKind] = {}
        self._tally: Counter[ChangeKind] = Counter()
        self._differs = bytearray()
        self._different = self._equal = 0
        self._starts: list[int] = []
        for row in range(len(self._rows.pairs)):
            self._append()
            self._look(row, old, new)
        self._old, self._new = old, new

    def _goes_on(
        self, old: Sequence[Entry], new: Sequence[Entry], changed_old: Sequence[int], changed_new: Sequence[int]
    ) -> bool:
        """Apply a change in which both contexts grew by the same messages. Returns False if they did not."""
        grown = range(len(self._old), len(old))
        if not self._old or len(old) < len(self._old) or len(grown) != len(new) - len(self._new):
            return False
        if any(self._old[i].item is not old[i].item for i in changed_old):
            return False
        if any(self._new[i].item is not new[i].item for i in changed_new):
            return False
        shift, (names_old, names_new) = len(self._new) - len(self._old), self._names
        for index in grown:
            if names_old.key(old[index]) != names_new.key(new[index + shift]):
                return False
        touched = {self._row_of_old[i] for i in changed_old} | {self._row_of_new[i] for i in changed_new}
        for index in grown:
            row = self._rows.append(index, index + shift)
            self._row_of_old[index] = self._row_of_new[index + shift] = row
            self._append()
            touched.add(row)
        for row in touched:
            self._look(row, old, new)
        self._old, self._new = old, new
        return True

    def _append(self) -> None:
        """One more row, equal for now."""
        if not self._differs or self._differs[-1]:
            self._equal += 1
        self._differs.append(False)

    def _look(self, row: int, old: Sequence[Entry], new: Sequence[Entry]) -> None:
        """See anew how the sides of a row stand to each other."""
        kind, known = self._rows.kind(row, old, new), self._kinds.get(row)
        if kind is not known:
            if known is not None:
                self._tally[known] -= 1
                del self._kinds[row]
            if kind is not None:
                self._tally[kind] += 1
                self._kinds[row] = kind
                heappush(self._starts, row)
        differs = self._rows.differs(row, old, new)
        if differs != bool(self._differs[row]):
            before = row > 0 and not self._differs[row - 1]
            after = row + 1 < len(self._differs) and not self._differs[row + 1]
            self._equal += (before + after - 1) * (1 if differs else -1)
            self._different += 1 if differs else -1
            self._differs[row] = differs

    def _first(self) -> int | None:
        while self._starts and self._starts[0] not in self._kinds:
            heappop(self._starts)
        if len(self._starts) > 2 * len(self._kinds) + 8:  # Rows that came and went, and came again.
            self._starts = list(self._kinds)
            heapify(self._starts)
        return self._starts[0] if self._starts else None
