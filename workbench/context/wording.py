"""The words in which two texts differ, for a message that was reworded."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

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
