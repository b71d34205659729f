"""The parts of a view: cells, tables, texts and drawings. A screen draws them, the command line prints them, a page
shows them. This module also finds their room: which columns give way, where a line is folded. Widths are in terminal
cells."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any, Literal, NamedTuple

from msgspec import Struct

GAP = 2
"""Blanks between two columns of a table."""
_BARE = 4
"""Least width of a flexible column when no other can be cut."""
_FIELDS = re.compile(r"\S+(?: \S+)*\s*")
"""One part of a line that belongs together: words with one blank between them."""
_WORDS = re.compile(r"\S+\s*")


class Cell(NamedTuple):
    """One field of a table, or one piece of a line, with the token of the visual language that says what it means."""

    text: str
    token: str = ""
    words: str | None = None
    """The same without signs, for plain output; None if the text has no sign."""


Piece = str | Cell
Line = tuple[Piece, ...]
"""One line of text made of its pieces."""


class Column(Struct, frozen=True):
    """``flexible``: its text is cut, down to ``least``, where there is little room. ``leaves``: when that is not
    enough the columns with 1 are left out, then those with 2, and so on; 0 stays."""

    title: str
    right: bool = False
    flexible: bool = False
    leaves: int = 0
    least: int = 12
    most: int = 0
    """Cells of it at most, unless its row is a block of lines; 0 for as many as there is room for."""
    words: str | None = None
    """The title without signs, for plain output; None if it has no sign."""


class Table(Struct, frozen=True):
    """Rows under the titles of their columns. ``below``: a text to print whole under each row, where it is not
    empty. ``links``: what each row leads to on a page, where it is not empty. ``stacks``: where its columns find no
    room, each row becomes a block of lines."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Piece]]
    below: Sequence[str] = ()
    links: Sequence[str] = ()
    stacks: bool = False


class TextBlock(Struct, frozen=True):
    """A text of several lines, whole."""

    text: str
    indent: str = ""


Form = Literal["svg", "png"]
"""Of a picture."""


class Drawing(Struct, frozen=True):
    """Lines that are drawn for a width, each of spans of text and token; ``picture`` draws the same as a file."""

    draw: Callable[[int], Iterable[Iterable[tuple[str, str]]]]
    picture: Callable[[Form], bytes] | None = None
    """Of the library that the extra ``charts`` installs."""


class MessageSide(Struct, frozen=True):
    """One of two messages in parallel columns: its role, how it was sent and why, its size, and its text."""

    name: str
    state: str
    """``full``, ``masked``, ``dropped`` …"""
    why: str
    """Empty for a message that went out in full."""
    mark: Cell
    size: str
    passages: Callable[[], Sequence[tuple[str, bool]]]
    """The text, and whether only this side has it."""
    images: Sequence[str] = ()
    """Digests."""


class FoldedMessages(Struct, frozen=True):
    """Messages that both sides share, in one line."""

    words: str
    sides: Sequence[MessageSide]


class SideBySide(Struct, frozen=True):
    """The messages of one call on two sides; None if a side has none. ``whole``: texts are not cut."""

    titles: tuple[str, str]
    notes: Sequence[Line]
    rows: Sequence[tuple[MessageSide | None, MessageSide | None] | FoldedMessages]
    whole: bool = False


class Heading(Struct, frozen=True):
    """The beginning of a part of a page, which has a name there and leads to others: what is said, and their names."""

    text: str
    anchor: str = ""
    links: Sequence[tuple[str, str]] = ()


Block = Line | Heading | Table | TextBlock | Drawing | SideBySide
BLANK: Line = ()


class View(ABC):
    """The output of one command, and the content of one page. The rows of a screen are made from the same tables."""

    @abstractmethod
    def blocks(self) -> Iterable[Block]:
        """For a person, from the top."""

    @abstractmethod
    def json(self) -> Any:
        """For a program: every number and word of the blocks. Unknown numbers are null."""


def arranged(columns: Sequence[Column], widths: Sequence[int], room: int) -> list[int]:
    """Returns how wide each column is in so much room; 0 for those that are left out. ``widths`` is what they ask
    for."""
    shown = [index for index, width in enumerate(widths) if width]
    ranks = sorted({columns[index].leaves for index in shown} - {0})
    for rank in (0, *ranks):
        shown = [index for index in shown if not rank or columns[index].leaves != rank]
        if (fit := _cut(columns, widths, shown, room, None)) is not None:
            return fit
    while len(shown) > 1:
        if (fit := _cut(columns, widths, shown, room, _BARE)) is not None:
            return fit
        shown.pop()
    return [min(width, room) if index in shown else 0 for index, width in enumerate(widths)]


def fits(columns: Sequence[Column], widths: Sequence[int], room: int) -> bool:
    """Returns whether no column has to leave, when those that may be cut are."""
    return _cut(columns, widths, range(len(widths)), room, None) is not None


def _cut(
    columns: Sequence[Column], widths: Sequence[int], shown: Sequence[int], room: int, least: int | None
) -> list[int] | None:
    """The widths with the widest flexible columns cut to one level; None if even their least widths do not fit."""

    def at(level: int) -> list[int]:
        cut = [0] * len(widths)
        for index in shown:
            floor = (columns[index].least if least is None else least) if columns[index].flexible else widths[index]
            cut[index] = min(widths[index], max(floor, level))
        return cut

    room -= GAP * (len(shown) - 1)
    level = bisect_right(range(1, max(widths, default=0) + 1), room, key=lambda one: sum(at(one)))
    return at(level) if sum(at(level)) <= room else None


def breaks(text: str, room: int, after: int | None = None) -> list[int]:
    """Returns where lines begin, when a line is folded to so much room: between fields, else between words. The lines
    after the first have ``after`` blanks before them, by itself ``indent``. A word that is longer than a line stays
    whole, so that it can be copied, unless it is a sentence in a script that puts no blanks between words."""
    begin = column = len(text) - len(text.lstrip())
    after, found = indent(text, room) if after is None else after, [0]
    for field in _FIELDS.finditer(text):
        whole = width_of(field[0].rstrip()) <= room - after
        for start, part in [(field.start(), field[0])] if whole else _words(text, field, room - after):
            if column > begin and column + width_of(part.rstrip()) > room:
                found.append(start)
                begin = column = after
            column += width_of(part)
    return found


def folded(text: str, room: int) -> list[str]:
    """A text as the lines that it is folded to, between words."""
    starts = breaks(text, room)
    before = " " * indent(text, room)
    lines = [text[start:end].rstrip() for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    return [line if number == 0 else before + line for number, line in enumerate(lines)]


def _words(text: str, field: re.Match[str], room: int) -> Iterator[tuple[int, str]]:
    """The words of a field, with their offsets; a word longer than a line, in wide characters, as its characters."""
    for word in _WORDS.finditer(text, field.start(), field.end()):
        width = width_of(word[0].rstrip())
        if width <= room or width == len(word[0].rstrip()):
            yield word.start(), word[0]
        else:
            yield from enumerate(word[0], word.start())


def indent(text: str, room: int) -> int:
    """Blanks before the later lines of a folded one: two more than before the first."""
    return min(len(text) - len(text.lstrip()) + 2, room // 2)


def _cells() -> ModuleType:
    """Rich's widths of characters. Before the first frame of the app there is nothing to measure."""
    import rich.cells  # 10 to 80 ms, with rich itself

    return rich.cells


def width_of(text: str) -> int:
    """Columns of a text in a terminal."""
    if text.isascii():
        return len(text)
    return int(_cells().cell_len(text))


def cut_to(text: str, width: int) -> str:
    """A text of at most this many columns; if something was cut, it ends with an ellipsis."""
    if width_of(text) <= width:
        return text
    return f"{_cells().set_cell_size(text, width - 1).rstrip()}…"
