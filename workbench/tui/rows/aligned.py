"""Two texts line by line, what is equal on the same row, what only one has marked there, in one scroll."""

from __future__ import annotations

import difflib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from workbench.context.wording import passages
from workbench.tui.rows.cells import Row, Span, crop, width_of
from workbench.tui.rows.text import Line, TextRows

MOST_LINES = 1500
"""Differing lines of a text beyond which lines are laid side by side as they come: finding equal ones is quadratic."""
LONGEST = 600
"""Characters of a line beyond which its words are not compared."""
_ONLY_OLD, _ONLY_NEW, _SAME = "− ", "+ ", "  "


def aligned(old: Sequence[Line], new: Sequence[Line]) -> tuple[list[Line], list[Line]]:
    """Both as lists of the same length: equal lines beside each other, the others marked, their words compared."""
    left: list[Line] = []
    right: list[Line] = []
    for a, b, same in _pairs([line.text for line in old], [line.text for line in new]):
        one, other = old[a] if a >= 0 else None, new[b] if b >= 0 else None
        if same and one is not None and other is not None:
            left.append(_marked(one, _SAME))
            right.append(_marked(other, _SAME))
            continue
        spans = _words(one.text, other.text) if one is not None and other is not None else None
        left.append(Line("") if one is None else _marked(one, _ONLY_OLD, "gone", spans and spans[0]))
        right.append(Line("") if other is None else _marked(other, _ONLY_NEW, "added", spans and spans[1]))
    return left, right


def _pairs(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int, bool]]:
    """Indices of lines that stand on one row, -1 for none, and whether they are equal."""
    shortest = min(len(old), len(new))
    head = next((i for i in range(shortest) if old[i] != new[i]), shortest)
    most = shortest - head
    tail = next((i for i in range(most) if old[-1 - i] != new[-1 - i]), most)
    yield from ((i, i, True) for i in range(head))
    a_end, b_end = len(old) - tail, len(new) - tail
    if max(a_end - head, b_end - head) > MOST_LINES:
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


def _words(old: str, new: str) -> tuple[tuple[Span, ...], tuple[Span, ...]] | None:
    """Both lines with the words that only one has coloured; None for lines too long to compare."""
    if max(len(old), len(new)) > LONGEST:
        return None
    found = passages(old, new)
    if not any(one.same for one in found):
        return None
    left = tuple((one.old, "plain" if one.same else "gone-word") for one in found if one.old)
    right = tuple((one.new, "plain" if one.same else "added-word") for one in found if one.new)
    return left, right


def _marked(line: Line, mark: str, token: str = "", spans: tuple[Span, ...] | None = None) -> Line:
    """A line with its mark in front, which continues two cells further in."""
    text = mark + line.text
    if spans is not None:
        painted = ((mark, token), *spans)
        return Line(text, paint=lambda _, painted=painted: painted, hang=2)  # type: ignore[misc]
    if line.paint is not None and not token:
        own = line.paint
        return Line(text, paint=lambda whole: ((whole[:2], "plain"), *own(whole[2:])), hang=2)
    return Line(text, token or line.token, hang=2)


class Columns:
    """Two lists of lines of the same length, each wrapped to its half; both lines of a pair begin on the same row."""

    def __init__(self, left: Sequence[Line], right: Sequence[Line]) -> None:
        self.left, self.right = TextRows(left), TextRows(right)
        self._starts: list[int] = [0]

    def lay_out(self, width: int) -> None:
        """For a pane of so many cells."""
        half = (width - 1) // 2
        for rows, room in ((self.left, half), (self.right, width - 1 - half)):
            rows.lay_out(room)
        heights = ([b - a for a, b in pairwise(rows.starts)] for rows in (self.left, self.right))
        self._starts = [0, *accumulate(max(pair) for pair in zip(*heights, strict=True))]

    def __len__(self) -> int:
        return self._starts[-1]

    def row(self, index: int, width: int) -> Row:
        half = (width - 1) // 2
        line = bisect_right(self._starts, index) - 1
        part = index - self._starts[line]
        sides = [
            self._side(rows, line, part, room) for rows, room in ((self.left, half), (self.right, width - 1 - half))
        ]
        return Row((*sides[0], ("│", "rule"), *sides[1]))

    @staticmethod
    def _side(rows: TextRows, line: int, part: int, room: int) -> tuple[Span, ...]:
        at = rows.starts[line] + part
        spans = crop(rows.row(at, room).spans, room) if at < rows.starts[line + 1] else ()
        return (*spans, (" " * (room - width_of(spans)), "plain"))

    def find(self, needle: str) -> list[int]:
        """The rows at which a line begins that holds the needle on either side."""
        wanted = needle.casefold()
        pairs = zip(self.left.lines, self.right.lines, strict=True)
        return [
            self._starts[i]
            for i, (a, b) in enumerate(pairs)
            if wanted in a.text.casefold() or wanted in b.text.casefold()
        ]
