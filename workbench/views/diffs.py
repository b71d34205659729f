"""Two texts and their differences, in red and green with differing words marked: in two columns if there is room, else
as one list of lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from textwrap import wrap

from workbench.views.cells import Row, Span, fit
from workbench.views.edits import diff_lines
from workbench.views.model import WrappedRows
from workbench.views.requests import Columns, aligned
from workbench.views.text import TextLine, TextRows, text_lines
from workbench.views.value import Block, Cell

ROOMY = 76
"""Cells from which two texts are shown in two columns."""
LONGEST = 200_000
"""Most characters of both texts together; longer ones are shown in two columns without a comparison."""


class DiffRows(WrappedRows):
    """Both texts scroll together."""

    def __init__(
        self,
        texts: tuple[str, str],
        labels: tuple[str, str],
        title: tuple[Span, ...] = (),
        title_right: tuple[Span, ...] = (),
        copy: str = "",
    ) -> None:
        """``labels`` stand above the texts, ``copy`` is what a copy takes."""
        self.labels, self.title, self.title_right, self.copy = labels, title, title_right, copy
        old, new = texts
        self._texts = texts
        self._below: TextRows | None = None
        whole = [text_lines(text, whole=True) if text else [] for text in texts]
        if len(old) + len(new) > LONGEST:
            longest = max(map(len, whole))
            whole = [[*lines, *([TextLine("")] * (longest - len(lines)))] for lines in whole]
            self._beside = Columns(whole[0], whole[1])
        else:
            self._beside = Columns(*aligned(whole[0], whole[1]))

    def _wrap(self, width: int) -> None:
        self._beside.lay_out(width)
        if not self._is_beside(width):
            self._list().lay_out(width)

    def _list(self) -> TextRows:
        """The one list, made where there is no room for two columns: to compare the lines of long texts takes long."""
        if self._below is None:
            self._below = TextRows(diff_lines(*self._texts))
        return self._below

    def _is_beside(self, width: int) -> bool:
        return width >= ROOMY

    def __len__(self) -> int:
        return len(self._beside) if self._is_beside(self._width) else len(self._list())

    def heads(self, width: int) -> Sequence[Row]:
        self.lay_out(width)
        old, new = self.labels
        if not self._is_beside(width):
            lines = (
                f" {line}" for sign, text in (("−", old), ("+", new)) for line in wrap(f"{sign} {text}", width - 2)
            )
            return tuple(Row(((fit(line, width), "head"),)) for line in lines)
        half = (width - 1) // 2
        pairs = zip_longest(wrap(old, half - 2) or [""], wrap(new, width - half - 3), fillvalue="")
        return tuple(
            Row(((f" {fit(left, half - 1)}", "head"), ("│", "rule"), (f" {fit(right, width - 2 - half)}", "head")))
            for left, right in pairs
        )

    def row(self, index: int, width: int) -> Row:
        self.lay_out(width)
        return self._beside.row(index, width) if self._is_beside(width) else self._list().row(index, width)


def diff_blocks(old: str, new: str) -> Iterator[Block]:
    """How a text differs from another one, line by line, for a command or a page."""
    for line in diff_lines(old, new):
        spans = line.paint(line.text) if line.paint is not None else ((line.text, line.token),)
        yield tuple(Cell(text, token) for text, token in spans if text) or ("",)
