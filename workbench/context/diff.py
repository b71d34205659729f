"""Finds the splices that turn one list of entries into another. The result is always correct, and short if much is
shared.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter as Tally
from collections.abc import Mapping, Sequence

from workbench.context.assembly import Entry, Splice


def splices_between(before: Sequence[Entry], after: Sequence[Entry]) -> tuple[Splice, ...]:
    """Splices that turn ``before`` into ``after``. Keeps the common ends, and between them the longest run of entries
    that occur once on both sides in the same order."""
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    left, right = before[start : len(before) - end], after[start : len(after) - end]
    anchors = _anchors(left, right) if left and right else []
    splices: list[Splice] = []
    at_before = at_after = start
    stops = [(start + i, start + j) for i, j in anchors] + [(len(before) - end, len(after) - end)]
    for stop_before, stop_after in stops:
        if stop_before > at_before or stop_after > at_after:
            splices.append(Splice(at_before, stop_before - at_before, tuple(after[at_after:stop_after])))
        at_before, at_after = stop_before + 1, stop_after + 1
    return tuple(splices)


def splices_of(changed: Mapping[int, Entry], length: int) -> tuple[Splice, ...]:
    """Splices for entries replaced or appended at these indices of a list of ``length``, one for each stretch."""
    stretches: list[tuple[int, list[Entry]]] = []
    for index in sorted(changed):
        if stretches and stretches[-1][0] + len(stretches[-1][1]) == index:
            stretches[-1][1].append(changed[index])
        else:
            stretches.append((index, [changed[index]]))
    return tuple(Splice(at, max(min(at + len(entries), length) - at, 0), tuple(entries)) for at, entries in stretches)


def _common(a: Sequence[Entry], b: Sequence[Entry]) -> int:
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if x is not y and x != y:
            return i
    return min(len(a), len(b))


def _anchors(before: Sequence[Entry], after: Sequence[Entry]) -> list[tuple[int, int]]:
    """Pairs of indices of equal entries, ascending on both sides."""
    counts_before, counts_after = Tally(before), Tally(after)
    position = {entry: i for i, entry in enumerate(before) if counts_before[entry] == 1}
    pairs = [(position[e], j) for j, e in enumerate(after) if counts_after[e] == 1 and e in position]
    return _ascending(pairs)


def _ascending(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest subsequence whose first members ascend (patience)."""
    ends: list[int] = []
    at: list[int] = []
    back: list[int] = []
    for index, (first, _) in enumerate(pairs):
        pile = bisect_left(ends, first)
        back.append(at[pile - 1] if pile else -1)
        ends[pile : pile + 1] = [first]
        at[pile : pile + 1] = [index]
    chain: list[tuple[int, int]] = []
    index = at[-1] if at else -1
    while index >= 0:
        chain.append(pairs[index])
        index = back[index]
    return chain[::-1]
