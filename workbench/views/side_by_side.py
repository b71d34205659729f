"""Texts side by side in one list, aligned line by line: a message in full and what the model saw of it, or outputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest

from workbench.views.cells import Row, Span, crop, fit_ends, width_of
from workbench.views.model import WrappedRows
from workbench.views.text import TextLine, TextRows

NARROWEST = 28
"""Cells that a side has at least."""
RULE: Span = ("│", "rule")


class SideRows(WrappedRows):
    """Each text is wrapped to its share of the width; all scroll together."""

    def __init__(
        self,
        texts: Sequence[Sequence[TextLine]],
        labels: Sequence[str],
        title: tuple[Span, ...] = (),
        title_right: tuple[Span, ...] = (),
        copy: str = "",
        *,
        here: int = -1,
    ) -> None:
        """``here``: the side that the cursor of another list chose, where there is one."""
        self._sides = [TextRows(lines) for lines in texts]
        self.labels = labels
        self.title = title
        self.title_right = title_right
        self.copy = copy
        self._here = here
        self._shares: list[int] = []

    def _wrap(self, width: int) -> None:
        self._shares = self._shared(width - len(self._sides) + 1)
        for side, share in zip(self._sides, self._shares, strict=True):
            side.lay_out(share)

    def _shared(self, room: int) -> list[int]:
        """Cells of each side: the same for all, unless some need less than that and others more."""
        count = len(self._sides)
        shares = [room * (at + 1) // count - room * at // count for at in range(count)]
        needs = [
            max(NARROWEST, len(label) + 2, *(len(line.text) + 2 if line.block is None else room for line in side.lines))
            for label, side in zip(self.labels, self._sides, strict=True)
        ]
        spare = [max(0, share - need) for share, need in zip(shares, needs, strict=True)]
        lacking = sorted((need - share, at) for at, (share, need) in enumerate(zip(shares, needs, strict=True)))
        lacking = [(lack, at) for lack, at in lacking if lack > 0]
        left = sum(spare)
        for number, (lack, at) in enumerate(lacking):
            given = min(lack, left // (len(lacking) - number))
            shares[at] += given
            left -= given
        taken = sum(spare) - left
        for at in sorted(range(count), key=spare.__getitem__, reverse=True):
            shares[at] -= (part := min(spare[at], taken))
            taken -= part
        return shares

    def __len__(self) -> int:
        return max(len(side) for side in self._sides)

    def heads(self, width: int) -> Sequence[Row]:
        self.lay_out(width)
        parts = (
            ((f" {fit_ends(label, share - 1)}", "title-focus" if at == self._here else "head"),)
            for at, (label, share) in enumerate(zip(self.labels, self._shares, strict=True))
        )
        return (Row(_joined(parts)),)

    def row(self, index: int, width: int) -> Row:
        self.lay_out(width)
        parts = []
        for side, share in zip(self._sides, self._shares, strict=True):
            spans = crop(side.row(index, share).spans, share) if index < len(side) else ()
            parts.append((*spans, (" " * (share - width_of(spans)), "plain")))
        return Row(_joined(parts))

    def texts(self) -> list[tuple[str, ...]]:
        """Lines on the same row, before wrapping."""
        rows = zip_longest(*(side.lines for side in self._sides))
        return [tuple(line.text if line else "" for line in row) for row in rows]


def _joined(parts: Iterable[Sequence[Span]]) -> tuple[Span, ...]:
    """The sides with a rule between them."""
    first, *others = parts
    return (*first, *(span for part in others for span in (RULE, *part)))
