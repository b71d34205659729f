"""Text for people and JSON for programs. stdout is data, stderr is talk; nothing untrusted reaches a terminal raw."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from typing import Any, TextIO

import click

from workbench.language.clean import clean
from workbench.views.value import (
    GAP,
    Block,
    Cell,
    Column,
    Drawing,
    FoldedMessages,
    Heading,
    MessageSide,
    Piece,
    SideBySide,
    Table,
    TextBlock,
    View,
    arranged,
    breaks,
    cut_to,
    fits,
    indent,
    width_of,
)

_BOLD, _DIM = {"bold": True}, {"dim": True}
_GREEN, _RED, _YELLOW, _CYAN = {"fg": "green"}, {"fg": "red", "bold": True}, {"fg": "yellow"}, {"fg": "cyan"}
STYLES: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("head", "bold", "name", "title"), _BOLD),
    **dict.fromkeys(("dim", "faint"), _DIM),
    **dict.fromkeys(("ok", "cached"), _GREEN),
    "error": _RED,
    **dict.fromkeys(("warning", "masked", "changed", "held", "waiting"), _YELLOW),
    **dict.fromkeys(("accent", "injected", "running", "recorded"), _CYAN),
}
"""The tokens of the visual language that a terminal shows otherwise than plain text."""


_BESIDE = 120
"""Width of two columns of text if no terminal sets it."""
_LINES = 2
"""Lines shown of each text, unless it is shown whole."""
_DRAWN = 100
"""Columns that a drawing takes at most."""
_NARROWEST = 20
"""Columns below which nothing is fitted any more."""


class Printer:
    """Writes to one stream: coloured and fitted in a terminal, bare and complete elsewhere or with ``plain``."""

    def __init__(self, plain: bool = False, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stdout
        terminal = not plain and self.stream.isatty() and os.environ.get("TERM") != "dumb"
        forced = not plain and os.environ.get("FORCE_COLOR", "0") not in ("", "0")
        self.plain = not terminal
        """Words instead of symbols, nothing cut."""
        self.colour = (terminal or forced) and not os.environ.get("NO_COLOR")
        """Without it, bold and dim stay. FORCE_COLOR sets it for logs of CI servers, which show colours without a
        terminal.
        """
        keys = ("fg", "bold", "dim") if self.colour else ("bold", "dim") if terminal else ()
        self._styles = {token: {key: style[key] for key in keys if key in style} for token, style in STYLES.items()}
        self.width = max(shutil.get_terminal_size().columns, _NARROWEST) if terminal else None
        """Available columns; None if nothing has to fit."""
        self._told: tuple[str, ...] = ()

    def show(self, blocks: Iterable[Block]) -> None:
        """Print a view, block by block."""
        for block in blocks:
            match block:
                case Heading():
                    self.line(Cell(block.text, "head"))
                case Table():
                    self._table(block)
                case TextBlock():
                    self.block(block.text, indent=block.indent)
                case SideBySide():
                    self._beside(block)
                case Drawing():
                    for spans in block.draw(min((self.width or _DRAWN), _DRAWN)):
                        self.line("".join(text for text, _ in spans))
                case _:
                    self.line(*block)

    def _table(self, block: Table) -> None:
        """A table, or its rows as blocks of lines."""
        if not block.stacks or self.width is None:
            self.table(block.columns, block.rows, below=block.below)
            return
        rows = [[self._cell(piece) for piece in row] for row in block.rows]
        names = [_flat(column.title) for column in block.columns]
        widths = [
            max(width_of(names[i]), *(width_of(self._at_most(column, row[i]).text) for row in rows), 1)
            for i, column in enumerate(block.columns)
        ]
        if fits(block.columns, widths, self.width):
            self.table(block.columns, block.rows)
            return
        widest = max(map(width_of, names))
        for number, row in enumerate(rows, start=1):
            self.line(Cell(f"row {number:,}", "dim"))
            for name, cell in zip(names, row, strict=True):
                self.line(Cell(_fitted(name, widest), "head"), "  ", cell)

    def _beside(self, block: SideBySide) -> None:
        """Two columns of messages; of each text its first lines, where it is not to be whole."""
        width = ((self.width or _BESIDE) - 3) // 2
        gutter, rule = (" | ", "--") if self.plain else (" │ ", "──")
        a, b = block.titles
        self.line(Cell(_fitted(a, width), "head"), gutter, Cell(_fitted(b, width).rstrip(), "head"))
        for note in block.notes:
            self.line(*note)
        for row in block.rows:
            if isinstance(row, FoldedMessages):
                self.line(Cell(f"{rule} {row.words} {rule}", "dim"))
                continue
            sides = [list(self._side(side, width, whole=block.whole)) for side in row]
            for one, other in zip_longest(*sides, fillvalue=Cell("")):
                right = Cell(_fitted(other.text, width).rstrip(), other.token)
                self.line(Cell(_fitted(one.text, width), one.token), gutter, right)

    def _side(self, side: MessageSide | None, width: int, *, whole: bool) -> Iterator[Cell]:
        """One side of a row: role, reason and size, then the text as sent."""
        if side is None:
            yield Cell("(not here)", "dim")
            return
        mark = "" if self.plain or not side.mark.text else f"{side.mark.text} "
        why = f"  {mark}{side.why}" if side.why else ""
        token = {"full": "head", "dropped": "dim"}.get(side.state, "masked")
        yield Cell(f"{_fitted(side.name + why, width - len(side.size) - 1)} {side.size}", token)
        text = "".join(f"⟦{part}⟧" if only else part for part, only in side.passages())
        if not text:
            return
        lines = text.split("\n")
        shown = lines if whole else lines[:_LINES]
        for line in shown:
            for start in range(0, max(len(line), 1), width - 2) if whole else (0,):
                yield Cell("  " + line[start : start + width - 2 if whole else None], "" if whole else "dim")
        if len(lines) > len(shown):
            more = len(lines) - len(shown)
            yield Cell(f"  {more:,} more line{'' if more == 1 else 's'}", "dim")

    def line(self, *pieces: Piece) -> None:
        """One line of text made of its pieces; folded between words if the terminal is too narrow."""
        found = [self._cell(piece) for piece in pieces]
        text = "".join(cell.text for cell in found)
        if self.width is None or width_of(text) <= self.width:
            self._write("".join(self._styled(cell.text, cell.token) for cell in found))
            return
        starts = breaks(text, self.width)
        for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
            before = " " * indent(text, self.width) if start else ""
            stop = start + len(text[start:end].rstrip())
            self._write(before + "".join(self._styled(cell.text, cell.token) for cell in _between(found, start, stop)))

    def table(
        self,
        columns: Sequence[Column],
        rows: Iterable[Sequence[Piece]],
        *,
        below: Sequence[str] = (),
    ) -> None:
        """Aligned columns under their titles; no row may have more fields than there are columns. ``below``: a text to
        print whole under each row, unless it is empty.
        """
        body = [
            [self._at_most(column, self._cell(field)) for column, field in zip(columns, row, strict=True)]
            for row in rows
        ]
        filled = [max((width_of(row[i].text) for row in body), default=0) for i in range(len(columns))]
        titles = [self._cell(Cell(column.title, "head", column.words)) for column in columns]
        widths = self._widths(columns, [width_of(title.text) for title in titles], filled)
        for number, row in enumerate([titles, *body]):
            self._write(self._row(row, columns, widths))
            if number and below and below[number - 1]:
                self.block(below[number - 1], indent="    ")
        left = tuple(c.text for c, width, held in zip(titles, widths, filled, strict=True) if held and width is None)
        if any(left) and left != self._told:
            self._told = left
            self.line(Cell(f"too narrow for: {', '.join(filter(None, left))} (--plain shows all)", "dim"))

    def block(self, text: str, *, indent: str = "") -> None:
        """A text of several lines; long lines are folded between words."""
        for line in clean(text).split("\n"):
            whole = f"{indent}{line}".rstrip()
            if self.width is None or width_of(whole := whole.expandtabs()) <= self.width:
                self._write(whole)
                continue
            before = min(len(whole) - len(whole.lstrip()), self.width // 2)
            starts = breaks(whole, self.width, before)
            for start, end in zip(starts, [*starts[1:], len(whole)], strict=True):
                self._write((" " * before if start else "") + whole[start:end].rstrip())

    def _widths(self, columns: Sequence[Column], titles: Sequence[int], filled: Sequence[int]) -> list[int | None]:
        """The width of each column, None for those left out: first the columns that are empty in all rows."""
        widths = [max(title, held) for title, held in zip(titles, filled, strict=True)]
        if self.width is None:
            return list(widths)
        if sum(widths) + GAP * (len(widths) - 1) > self.width:
            widths = [width if held else 0 for width, held in zip(widths, filled, strict=True)]
        return [width or None for width in arranged(columns, widths, self.width)]

    def _row(self, row: Sequence[Cell], columns: Sequence[Column], widths: Sequence[int | None]) -> str:
        told, blanks = "", 0
        for cell, column, width in zip(row, columns, widths, strict=True):
            if width is None:
                continue
            text, held = cell.text, width_of(cell.text)
            if held > width:
                text, held = (shorter := cut_to(text, width)), width_of(shorter)
            space = width - held
            if text:
                told += " " * (blanks + (space if column.right else 0)) + self._styled(text, cell.token)
                blanks = GAP + (0 if column.right else space)
            else:
                blanks += space + GAP
        return told

    def _cell(self, piece: Piece) -> Cell:
        """A piece on one line, cleaned, in the words of this stream."""
        if isinstance(piece, str):
            return Cell(_flat(piece))
        return Cell(_flat(piece.words if self.plain and piece.words is not None else piece.text), piece.token)

    @staticmethod
    def _at_most(column: Column, cell: Cell) -> Cell:
        return Cell(cut_to(cell.text, column.most), cell.token) if column.most else cell

    def _styled(self, text: str, token: str) -> str:
        style = self._styles.get(token)
        return click.style(text, **style) if style else text

    def _write(self, text: str) -> None:
        self.stream.write(text + "\n")


def _flat(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text  # Most cells: a line break is not printable.
    return clean(text).replace("\n", " ").replace("\t", " ")


def _between(cells: Iterable[Cell], start: int, end: int) -> Iterator[Cell]:
    """The cells of a line from one character to another."""
    at = 0
    for cell in cells:
        if text := cell.text[max(start - at, 0) : max(end - at, 0)]:
            yield Cell(text, cell.token)
        at += len(cell.text)


def _fitted(text: str, width: int) -> str:
    """A text in exactly this many columns: cleaned, on one line, cut with an ellipsis or filled with blanks."""
    text = cut_to(_flat(text), width)
    return text + " " * (width - width_of(text))


_PIECES = 10_000
"""Pieces of a JSON document that are written at once."""


def write_json(value: Any) -> None:
    """One JSON document on stdout. ASCII, so that no terminal can be steered by it."""
    _write(value)
    sys.stdout.write("\n")


def write_view(view: View, *, json: bool, plain: bool = False) -> None:
    """The output of a command on stdout: for a person, or as JSON."""
    if json:
        write_json(view.json())
    else:
        Printer(plain).show(view.blocks())


def write_json_list(values: Iterable[Any]) -> None:
    """One JSON document on stdout, the list of the values, of which each is written before the next is made: what the
    calls of a run saw is together as large as the square of its turns."""
    before = "[\n  "
    for value in values:
        sys.stdout.write(before)
        _write(value, "\n  ")
        before = ",\n  "
    sys.stdout.write("[]\n" if before.startswith("[") else "\n]\n")


def _write(value: Any, line: str = "\n") -> None:
    """A value with what begins each line after its first; no text in it holds a line break as it is."""
    pieces = json.JSONEncoder(ensure_ascii=True, allow_nan=False, indent=2).iterencode(value)
    while text := "".join(islice(pieces, _PIECES)):  # A comparison of long runs has a hundred million characters.
        sys.stdout.write(text.replace("\n", line))


def talk(text: str, style: str = "") -> None:
    """One line on stderr, for the person; stdout is data."""
    Printer(stream=sys.stderr).line(Cell(text, style))
