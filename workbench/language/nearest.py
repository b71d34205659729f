"""The word that was probably meant: what messages and hints suggest for a mistyped name."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """The closest known word within edit distance 2, or nothing; for words of three letters or fewer within 1. A word
    without any of its characters is none: 1 is not what 9 was meant to be.
    """
    limit, characters = 1 if len(word) <= 3 else 2, set(word.lower())
    best, distance = "", limit + 1
    for candidate in known:
        if abs(len(candidate) - len(word)) > limit or characters.isdisjoint(candidate.lower()):
            continue
        if (d := _distance(word, candidate, distance)) < distance:
            best, distance = candidate, d
    return best


def _distance(a: str, b: str, limit: int) -> int:
    """Edit distance with swapped neighbours as one edit; gives up at ``limit``."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        above, row_new = row, [i]
        for j, y in enumerate(b, 1):
            cost = min(above[j] + 1, row_new[j - 1] + 1, above[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, before[j - 2] + 1)
            row_new.append(cost)
        if min(row_new) >= limit:
            return limit
        before, row = above, row_new
    return row[-1]
