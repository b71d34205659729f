"""The words and the lines in which two texts differ."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

_WORD = re.compile(r"\s+|\w+|[^\w\s]")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
MOST_WORDS = 4000
"""Words beyond which whole lines are compared: the comparison of words takes their number squared at worst."""


class Passage(Struct, frozen=True):
    """A stretch of both texts: the same, or what one has in place of the other's; either may be empty then."""

    same: bool
    old: str
    new: str


ALIKE = 0.4
"""Share of the longer text that must be equal; below it, single words in common mean nothing."""


def passages(old: str, new: str) -> list[Passage]:
    """Both texts from beginning to end. All ``old`` together give the old text, all ``new`` the new one."""
    a, b = _WORD.findall(old), _WORD.findall(new)
    if max(len(a), len(b)) > MOST_WORDS:
        a, b = _LINE.findall(old), _LINE.findall(new)
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    found = [
        Passage(tag == "equal", "".join(a[a1:a2]), "".join(b[b1:b2])) for tag, a1, a2, b1, b2 in matcher.get_opcodes()
    ]
    shared = sum(len(passage.old.strip()) for passage in found if passage.same)
    if shared < ALIKE * max(len(old), len(new)):
        return [Passage(old == new, old, new)] if old or new else []
    return _merged(found)


def _merged(found: Sequence[Passage]) -> list[Passage]:
    """Passages with each blank between two differences merged into them."""
    merged: list[Passage] = []
    for index, one in enumerate(found):
        is_gap = one.same and not one.old.strip() and 0 < index < len(found) - 1
        if merged and not merged[-1].same and (is_gap or not one.same):
            merged[-1] = Passage(False, merged[-1].old + one.old, merged[-1].new + one.new)
        else:
            merged.append(one)
    return merged


MOST_LINES = 1500
"""Differing lines of a text beyond which lines are paired in order: finding equal ones is quadratic."""


def paired_lines(old: Sequence[str], new: Sequence[str], most: int = MOST_LINES) -> Iterator[tuple[int, int, bool]]:
    """Yields for each row that shows both texts side by side the indices of its lines, -1 for none, and whether they
    are equal. ``most``: differing lines beyond which they are paired in order."""
    shortest = min(len(old), len(new))
    head = next((i for i in range(shortest) if old[i] != new[i]), shortest)
    rest = shortest - head
    tail = next((i for i in range(rest) if old[-1 - i] != new[-1 - i]), rest)
    yield from ((i, i, True) for i in range(head))
    a_end, b_end = len(old) - tail, len(new) - tail
    if max(a_end - head, b_end - head) > most:
        yield from _beside(head, a_end, head, b_end)
    else:
        matcher = difflib.SequenceMatcher(None, old[head:a_end], new[head:b_end], autojunk=False)
        for tag, a1, a2, b1, b2 in matcher.get_opcodes():
            if tag == "equal":
                yield from ((head + a1 + i, head + b1 + i, True) for i in range(a2 - a1))
            else:
                yield from _beside(head + a1, head + a2, head + b1, head + b2)
    yield from ((a_end + i, b_end + i, True) for i in range(tail))


def _beside(a1: int, a2: int, b1: int, b2: int) -> Iterator[tuple[int, int, bool]]:
    for i in range(max(a2 - a1, b2 - b1)):
        yield (a1 + i if a1 + i < a2 else -1), (b1 + i if b1 + i < b2 else -1), False
