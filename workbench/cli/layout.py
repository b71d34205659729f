"""How text finds room in a narrow terminal: which columns give way, where a line is folded. Widths are in columns."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from workbench.dataclass import dataclass

GAP = 2
"""Blanks between two columns of a table."""
_BARE = 4
"""What is left of a flexible column when nothing else can give way."""
_FIELDS = re.compile(r"\S+(?: \S+)*\s*")
"""What belongs together in a line: words with one blank between them."""
_WORDS = re.compile(r"\S+\s*")


@dataclass(frozen=True, slots=True)
class Column:
    """``flexible``: its text is cut, down to ``least``, when the terminal is too narrow. ``leaves``: when that is not
    enough the columns with 1 are left out, then those with 2, and so on; 0 stays."""

    title: str
    right: bool = False
    flexible: bool = False
    leaves: int = 0
    least: int = 12


def arranged(columns: Sequence[Column], widths: Sequence[int], room: int) -> list[int]:
    """How wide each column is in so much room; 0 for those that are left out. ``widths`` is what they ask for."""
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
    """Whether no column has to leave, when those that may be cut are."""
    return _cut(columns, widths, range(len(widths)), room, None) is not None


def _cut(
    columns: Sequence[Column], widths: Sequence[int], shown: Sequence[int], room: int, least: int | None
) -> list[int] | None:
    """The widths with the widest flexible columns cut to one level; None where their least is still too much."""

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
    """Where lines begin, when a line is folded to so much room: between fields, else between words. The lines after
    the first have ``after`` blanks before them, by itself ``indent``. A word that is longer than a line stays whole, so
    that it can be copied, unless it is a sentence in a script that puts no blanks between words."""
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


def _words(text: str, field: re.Match[str], room: int) -> Iterator[tuple[int, str]]:
    """The words of a field, with where they begin; one without blanks for longer than a line, in wide characters, as
    its characters."""
    for word in _WORDS.finditer(text, field.start(), field.end()):
        width = width_of(word[0].rstrip())
        if width <= room or width == len(word[0].rstrip()):
            yield word.start(), word[0]
        else:
            yield from enumerate(word[0], word.start())


def indent(text: str, room: int) -> int:
    """Blanks before the later lines of a folded one: two more than before the first."""
    return min(len(text) - len(text.lstrip()) + 2, room // 2)


def width_of(text: str) -> int:
    """Columns of a text in a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cut_to(text: str, width: int) -> str:
    """A text that has at most so many columns, the last an ellipsis where something was cut."""
    if width_of(text) <= width:
        return text
    from rich.cells import set_cell_size

    return set_cell_size(text, width - 1).rstrip() + "…"
