"""The rows of a comparison: counted from the calls' outlines, and laid out only for the calls that are looked at."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Literal, NamedTuple

from workbench.analysis.compare import CallPair, Comparison
from workbench.context.align import Stretch, stretches


class Ref(NamedTuple):
    """The content of a row. ``pair`` and ``stretch`` count from 0; ``old`` and ``new`` are entries, -1 for none."""

    kind: Literal[
        "text", "head", "call", "total", "peak", "answers", "answer", "section", "note", "fold", "entry", "sent"
    ]
    pair: int = -1
    stretch: int = -1
    old: int = -1
    new: int = -1
    line: int = -1


OUTPUT = -1
"""Stands for the output of the whole run, in place of a call."""
KEPT = 16
"""Calls whose rows are kept after layout: all rows of all calls would grow with the square of a run."""


class CompareRefs:
    """The rows above the calls' messages, then one section for each call that differs."""

    def __init__(self, comparison: Comparison, lines: int, notes: Callable[[CallPair], Sequence[str]]) -> None:
        """``lines``: how many lines of sentences stand on top; ``notes`` gives those of what a call took back."""
        self._notes = notes
        self._pairs = comparison.pairs
        outputs = comparison.outputs
        self._answers = (*((OUTPUT,) if outputs and outputs[0] != outputs[1] else ()), *comparison.answered_otherwise)
        self._top = self._above(lines)
        both = ((i, pair) for i, pair in enumerate(comparison.pairs) if pair.a is not None and pair.b is not None)
        self._sections = [index for index, pair in both if not pair.same]
        self._open: dict[int, set[int]] = {}
        """By call, the stretches of equal messages that are not folded."""
        self._stretches = lru_cache(KEPT)(self._folded)
        self._rows = lru_cache(KEPT)(self._laid_out)
        self._count()

    def _above(self, lines: int) -> list[Ref]:
        sentences = (Ref("text", line=line) for line in range(lines))
        calls = (Ref("call", index) for index in range(len(self._pairs)))
        answers = [Ref("answer", index) for index in self._answers]
        answers = [Ref("text"), Ref("answers"), *answers] if answers else []
        return [*sentences, Ref("text"), Ref("head"), *calls, Ref("total"), Ref("peak"), *answers]

    def say(self, lines: int) -> None:
        """So many lines of sentences stand on top now: there is another width."""
        self._top = self._above(lines)
        self._rows.cache_clear()
        self._count()

    def __len__(self) -> int:
        return self._starts[-1]

    def __getitem__(self, row: int) -> Ref:
        if row < 0:
            raise IndexError(row)
        if row < len(self._top):
            return self._top[row]
        number = self._section_at(row)
        if number >= len(self._sections):
            raise IndexError(row)
        return self._rows(self._sections[number])[row - self._starts[number]]

    def row_of(self, ref: Ref) -> int:
        """The current index of such a row. Raises ValueError if it no longer exists."""
        pair = bisect_right(self._sections, ref.pair) - 1
        if ref in self._top or pair < 0:
            return self._top.index(ref)
        return self._starts[pair] + self._rows(self._sections[pair]).index(ref)

    def stretch(self, ref: Ref) -> Stretch:
        """The stretch that a fold stands for, or a row of messages belongs to."""
        return self._stretches(ref.pair)[ref.stretch]

    def section_of(self, pair: int) -> int | None:
        """The row at which the messages of a call begin; None if none are shown."""
        number = bisect_right(self._sections, pair) - 1
        return self._starts[number] + 1 if number >= 0 and self._sections[number] == pair else None

    def toggle(self, ref: Ref) -> None:
        """Open or close a stretch of equal messages."""
        self._open[ref.pair] = self._open.get(ref.pair, set()) ^ {ref.stretch}
        self._rows.cache_clear()
        self._count()

    def step(self, row: int, by: int) -> int | None:
        """The next or previous row with a difference; of neighbouring ones, the first."""
        here = self._section_at(row) if row >= len(self._top) else -1
        numbers = range(max(here, 0), len(self._sections)) if by > 0 else range(here, -1, -1)
        for number in numbers:
            starts = self._differences(number)
            found = next((i for i in (starts if by > 0 else reversed(starts)) if (i - row) * by > 0), None)
            if found is not None:
                return found
        return None

    def _section_at(self, row: int) -> int:
        return bisect_right(self._starts, row) - 1

    def _differences(self, number: int) -> list[int]:
        """The first rows of the stretches that differ, in one section."""
        start, pair = self._starts[number], self._sections[number]
        rows, folded = self._rows(pair), self._stretches(pair)
        kinds = enumerate(pairwise(rows), start + 1)
        found = ((i, ref) for i, (before, ref) in kinds if ref.kind == "entry" and before.kind not in ("entry", "sent"))
        return [i for i, ref in found if not folded[ref.stretch].equal]

    def _count(self) -> None:
        sizes = (self._size(index) for index in self._sections)
        self._starts = list(accumulate(sizes, initial=len(self._top)))
        """The first row of each section, and the end of all."""

    def _size(self, index: int) -> int:
        if self._open.get(index):
            return len(self._rows(index))
        pair = self._pairs[index]
        return 2 + len(self._notes(pair)) + pair.outline.equal + 2 * pair.outline.different

    def _folded(self, index: int) -> list[Stretch]:
        pair = self._pairs[index]
        assert pair.a is not None
        assert pair.b is not None
        return stretches(pair.a.entries, pair.b.entries)

    def _laid_out(self, index: int) -> list[Ref]:
        return list(self._section(index))

    def _section(self, index: int) -> Iterator[Ref]:
        yield Ref("text")
        yield Ref("section", index)
        yield from (Ref("note", index, line=line) for line in range(len(self._notes(self._pairs[index]))))
        opened = self._open.get(index, ())
        for number, stretch in enumerate(self._stretches(index)):
            if stretch.equal and number not in opened:
                yield Ref("fold", index, number)
                continue
            for row in stretch.pairs:
                yield Ref("entry", index, number, row.old, row.new)
                if not stretch.equal:
                    yield Ref("sent", index, number, row.old, row.new)
