"""Keys and signs, from the key table and the table of signs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple

from workbench.tui.screens.sheet import Sheet
from workbench.views.cells import Row, Span, crop, fit, width_of
from workbench.views.commands import found_by, name_of
from workbench.views.keys import Key, display, told
from workbench.views.model import Rows
from workbench.views.signs import SIGNS
from workbench.views.text import hung

MOUSE = (
    ("click", "choose a row or a tab; a second click opens the row"),
    ("click", "what is underlined in the first line: the same as its key"),
    ("wheel", "scroll; the thumb of a pane can be dragged too"),
    ("drag", "select text; on the edge of the tree or of the lower pane: resize"),
    ("drag, esc", "the pane has the size again that it had"),
)
"""Actions of the mouse, with their meaning."""
MOUSE_IN_SHORT = (("drag", "select, or move a border"),)
"""The same where there is little room."""


BENCH = ("found", "bench", "annotate", "tree", "list", "app")
"""The contexts of the Bench."""
COLUMN = 37
"""Cells that a column takes at least."""
MOST_COLUMNS = 5


class Line(NamedTuple):
    """A line as it is before a layout: the last span is what may go on below."""

    spans: tuple[Span, ...] = ()
    found_by: str = ""
    """Words that a filter finds it by besides its own."""


class HelpSheet(Sheet):
    """The help; its footer does not offer itself."""

    FIXED: ClassVar[tuple[str, ...]] = ()


class HelpRows(Rows):
    """As many columns as there is room for: the keys of the screen by subject, the mouse and the signs. In one column,
    as under a filter, each key has its sentence, and the keys of the other screens follow."""

    title = (("Help", "title"), ("  keys and signs", "name"))

    def __init__(self, table: Iterable[Key], here: Sequence[str] = (), of_app: Iterable[str] | None = None) -> None:
        """``here``: contexts of the screen that it is asked for on; those of the Bench where it names none. ``of_app``:
        the commands of the app that work there, by id; None for all."""
        keys = tuple(table)
        said = told("{sheet.filter} filters the keys of all screens  {app.palette} runs a command by name")
        self.title_right = ((said, "dim"),)
        contexts = (*here, "app") if here else BENCH
        own = sorted((key for key in keys if key.context in contexts), key=lambda key: contexts.index(key.context))
        own = own if here else [key for key in keys if key.context in contexts]
        own = [key for key in own if key.context != "app" or of_app is None or key.id in of_app]
        self._own, self._others = tuple(own), tuple(key for key in keys if key not in own)
        self._rows: tuple[Row, ...] = ()
        self._searched: tuple[str, ...] = ()
        """What a search looks at, by row: of a sentence in several lines the whole one."""
        self._width, self._listed = -1, False
        blocks = [*_key_blocks(self._own, whole=True), *_signs(whole=True), *_key_blocks(self._others, whole=True)]
        self.copy = "\n".join(Row(line.spans).text.rstrip() for block in blocks for line in block)

    def list_out(self, *, listed: bool) -> None:
        """One key a line with its sentence, however wide it is: for a filter."""
        self._listed, self._width = listed, -1

    def lay_out(self, width: int) -> None:
        if width == self._width:
            return
        self._width = width
        count = 1 if self._listed else max(1, min(MOST_COLUMNS, width // COLUMN))
        whole = count == 1
        blocks = [*_key_blocks(self._own, whole=whole), *_signs(whole=whole)]
        if whole:
            others = [[Line(((" On other screens", "title"),))], *_key_blocks(self._others, whole=True)]
            made = [
                (row, f"{Row(line.spans).text} {line.found_by}".strip())
                for block in (*blocks, *others)
                for line in (*block, Line())
                for row in _hung(line, width)
            ]
        else:
            made = [(row, row.text.strip()) for row in _beside(blocks, count, width)]
        self._rows, self._searched = tuple(row for row, _ in made), tuple(words for _, words in made)

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, index: int, width: int) -> Row:
        return self._rows[index]

    def plain(self, index: int) -> str:
        return self._searched[index]


def _hung(line: Line, width: int) -> tuple[Row, ...]:
    """A line with nothing cut: its last part goes on below where it began."""
    spans = line.spans
    hangs = len(spans) > 1 and width_of(spans) > width
    return (hangs and hung(spans[:-1], spans[-1:], width)) or (Row(crop(spans, width)),)


def _beside(blocks: Sequence[Sequence[Line]], count: int, width: int) -> list[Row]:
    """Blocks in columns of nearly one height, read from top to bottom; no heading stands last in its column."""
    room = width // count
    lines = [(row, at == 0) for block in blocks for at, line in enumerate(block) for row in _hung(line, room - 1)]
    every, height = [row for row, _ in lines], -(-len(lines) // count)
    columns: list[list[Row]] = []
    while lines:
        taken, lines = lines[:height], lines[height:]
        if lines and taken[-1][1]:
            lines.insert(0, taken.pop())
        columns.append([row for row, _ in taken])
    if len(columns) > count:  # The headings that moved on: the last lines join the column before.
        columns = [every[at : at + height + 1] for at in range(0, len(every), height + 1)]
    rows: list[Row] = []
    for index in range(max(map(len, columns), default=0)):
        spans: list[Span] = []
        for column in columns:
            cell = column[index].spans if index < len(column) else ()
            spans += [*cell, (" " * (room - width_of(cell)), "plain")]
        rows.append(Row(crop(spans, width)))
    return rows


def _key_blocks(keys: Sequence[Key], *, whole: bool) -> list[list[Line]]:
    """The keys by subject, each with its name, or ``whole`` with all its keys and its sentence."""
    blocks: list[list[Line]] = []
    for group in dict.fromkeys(key.group for key in keys):
        block = [Line(((f" {group}", "title-focus"),))]
        for key in keys:
            if key.group == group:
                names = [display(name) for name in key.keys.split(",")]
                two = " ".join(names[:2])
                shown = " ".join(names) if whole else two if len(two) <= 11 else names[0]
                said = ((f"  {fit(shown, 11)} ", "key"), (key.help if whole else name_of(key), "plain"))
                block.append(Line(said, found_by(key)))
        blocks.append(block)
    return blocks


def _signs(*, whole: bool) -> list[list[Line]]:
    """Actions of the mouse, and the meaning of signs; in short two signs share a line."""
    said_of = MOUSE if whole else MOUSE_IN_SHORT
    mouse = [Line(((" Mouse", "title-focus"),))]
    for name, said in said_of:
        mouse.append(Line((("  ", "plain"), (fit(name, 11), "key"), (" ", "plain"), (said, "plain"))))
    signs = [Line(((" Signs", "title-focus"),))]
    if whole:
        meanings = [*SIGNS.values(), ("1,812", "plain", "exact: as the provider counts")]
        for glyph, token, meaning in meanings:
            signs.append(Line((("  ", "plain"), (fit(glyph, 11), token), (" ", "plain"), (meaning, "plain"))))
        return [mouse, signs]
    named = [(glyph, token, name) for name, (glyph, token, _) in SIGNS.items()]
    for at in range(0, len(named), 2):
        spans: list[Span] = [("  ", "plain")]
        for glyph, token, name in named[at : at + 2]:
            spans += [(glyph, token), (f" {fit(name, 13)} ", "plain")]
        signs.append(Line(tuple(spans)))
    return [mouse, signs]
