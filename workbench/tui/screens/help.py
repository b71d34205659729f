"""Keys and signs, from the key table and the table of signs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from workbench.views.cells import Row, Span, crop, fit
from workbench.views.keys import Key, display, told
from workbench.views.model import Rows
from workbench.views.signs import SIGNS

MOUSE = (
    ("click", "choose a row or a tab; a second click opens the row"),
    ("click", "what is underlined in the first line: the same as its key"),
    ("wheel", "scroll; the thumb of a pane can be dragged too"),
    ("drag", "select text; on the edge of the tree or of the lower pane: resize"),
    ("drag, esc", "the pane has the size again that it had"),
)
"""What the mouse does, and its meaning."""


class HelpRows(Rows):
    """Two columns where there is room for them: keys by group, then the signs."""

    title = (("Help", "title"), ("  keys and signs", "name"))

    def __init__(self, table: Iterable[Key], here: Sequence[str] = ()) -> None:
        """``here``: contexts of the screen that it is asked for on; their groups come first."""
        keys = tuple(table)
        self.title_right = ((told("every command is in the palette too: {app.palette}"), "dim"),)
        own = list(dict.fromkeys(key.group for context in here for key in keys if key.context == context))
        self._blocks = _blocks(
            tuple(sorted(keys, key=lambda key: own.index(key.group) if key.group in own else len(own)))
        )
        self._rows: tuple[Row, ...] = ()
        self._width = -1
        self.copy = "\n".join(Row(spans).text.rstrip() for block in self._blocks for spans in block)

    def lay_out(self, width: int) -> None:
        if width == self._width:
            return
        self._width = width
        if width < 130:
            flat = [spans for block in self._blocks for spans in (*block, ())]
            self._rows = tuple(Row(crop(spans, width)) for spans in flat)
            return
        half = width // 2
        columns: list[list[tuple[Span, ...]]] = [[], []]
        for block in self._blocks:
            target = min(columns, key=len) if columns[0] else columns[0]
            target += [*block, ()]
        rows = []
        for index in range(max(len(column) for column in columns)):
            left = crop(columns[0][index], half - 1) if index < len(columns[0]) else ()
            right = columns[1][index] if index < len(columns[1]) else ()
            used = sum(len(text) for text, _ in left)
            rows.append(Row((*left, (" " * (half - used), "plain"), *crop(right, width - half))))
        self._rows = tuple(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, index: int, width: int) -> Row:
        return self._rows[index]

    def plain(self, index: int) -> str:
        return self._rows[index].text.strip()


def _blocks(table: tuple[Key, ...]) -> list[list[tuple[Span, ...]]]:
    blocks: list[list[tuple[Span, ...]]] = []
    for group in dict.fromkeys(key.group for key in table):
        block: list[tuple[Span, ...]] = [((f" {group}", "title-focus"),)]
        for key in table:
            if key.group == group:
                names = " ".join(display(name) for name in key.keys.split(","))
                block.append(((f"  {fit(names, 11)} ", "key"), (key.help, "plain")))
        blocks.append(block)
    mouse: list[tuple[Span, ...]] = [((" Mouse", "title-focus"),)]
    mouse += [(("  ", "plain"), (fit(name, 11), "key"), (f" {said}", "plain")) for name, said in MOUSE]
    blocks.append(mouse)
    signs: list[tuple[Span, ...]] = [((" Signs", "title-focus"),)]
    for glyph, token, meaning in SIGNS.values():
        signs.append((("  ", "plain"), (fit(glyph, 11), token), (" ", "plain"), (meaning, "plain")))
    signs.append((("  ", "plain"), (fit("1,812", 11), "plain"), (" exact: as the provider counts", "plain")))
    blocks.append(signs)
    return blocks
