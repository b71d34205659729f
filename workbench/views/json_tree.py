"""JSON as lines whose objects and lists can be folded."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct
from rich.cells import cell_len

from workbench.language.clean import clean
from workbench.views import syntax
from workbench.views.cells import Span, fit
from workbench.views.numbers import plural
from workbench.views.text import CHUNK, TextLine, TextRows

LONGEST = 200_000
"""Characters of a text that is read as JSON while a key is pressed."""
FOLDED_FROM = 120
"""Lines beyond which everything deeper than the second level begins folded."""
SHORT = 24
"""Lines of a value that needs no folding."""
PREVIEW = 40
"""Cells of a folded object's fields that are shown at least, however narrow the pane is."""
_UNBOUND = 400
"""Cells of a line before a pane says how many it has."""
_DEEPEST = 200


class _Line(Struct, frozen=True):
    depth: int
    text: str
    until: int = 0
    """Of an object or a list that holds something: the line that closes it."""
    summary: str = ""


class JsonRows(TextRows):
    """A value, pretty-printed. A folded list says how much it hides; a folded object shows its first fields, as far as
    its line has room.
    """

    def __init__(
        self, value: object, title: tuple[Span, ...] = (), title_right: tuple[Span, ...] = (), *, copy: str = ""
    ) -> None:
        self._all: list[_Line] = []
        for line in _lines(value):
            self._all.append(line)
        self._close()
        deep = len(self._all) > FOLDED_FROM
        self.folded = {i for i, line in enumerate(self._all) if line.until and deep and line.depth >= 2}
        self._shown: list[int] = []
        super().__init__(self._visible(_UNBOUND), title, title_right, copy=copy)

    def _close(self) -> None:
        """Let each opening line know the one that closes it."""
        opened: list[int] = []
        for index, line in enumerate(self._all):
            if line.until < 0:
                start = opened.pop()
                first = self._all[start]
                self._all[start] = _Line(first.depth, first.text, index, first.summary)
                self._all[index] = _Line(line.depth, line.text)
            elif line.summary:
                opened.append(index)

    def _visible(self, room: int) -> Sequence[TextLine]:
        """The lines that no fold hides; a folded one takes at most ``room`` cells if it can."""
        self._shown, lines, index = [], [], 0
        while index < len(self._all):
            line = self._all[index]
            self._shown.append(index)
            closed = index in self.folded
            mark = ("▸ " if closed else "▾ ") if line.until else "  "
            text = f"{'  ' * line.depth}{mark}{line.text}"
            if closed:
                ending = f" {self._all[line.until].text}"
                text += " " + self._hidden(index, max(PREVIEW, room - cell_len(text + ending) - 1)) + ending
            lines.append(TextLine(text, paint=syntax.json, hang=2 * line.depth + 4))
            index = line.until + 1 if closed else index + 1
        return lines

    def _hidden(self, index: int, room: int) -> str:
        """Returns the text between the brackets of a folded part: the beginning of an object, else its size."""
        first = self._all[index]
        if first.text.endswith("["):
            return first.summary
        parts, wanted = [], room + 1
        for line in self._all[index + 1 : first.until]:
            parts.append(line.text)
            wanted -= len(line.text)
            if wanted < 0:
                break
        return fit(" ".join(parts), room).rstrip()

    def lay_out(self, width: int) -> None:
        if width != self._width:
            self.lines = self._visible(width - self._margin - 1)
        super().lay_out(width)

    def fold(self, row: int, *, closed: bool | None = None) -> int:
        """Fold or unfold what begins at a row (folding inside it closes what is around); the row to look at then."""
        which = self._shown[self._line_at(row)]
        around = [i for i in range(which, -1, -1) if self._all[i].until and i <= which <= self._all[i].until]
        if closed and which in self.folded:
            around = [i for i in around if i != which]
        if not around or (closed is not True and around[0] != which):
            return row
        target = around[0]
        now = target not in self.folded if closed is None else closed
        (self.folded.add if now else self.folded.discard)(target)
        self._again()
        return self.first_row(self._shown.index(target))

    def fold_below(self, depth: int) -> None:
        """Fold all deeper parts, if the whole does not fit on a screen."""
        if len(self._all) > SHORT:
            self.folded = {i for i, line in enumerate(self._all) if line.until and line.depth > depth}
            self._again()

    def unfold_all(self) -> None:
        if self.folded:
            self.folded.clear()
            self._again()

    def reveal(self, *path: str | int) -> None:
        """Unfold the part at a path of keys and places in lists, and all in it, and let it be in view at first. Stays
        as it is where there is no such part.
        """
        at = 0
        opened = {0}
        for key in path:
            found = self._child(at, key)
            if found is None:
                return
            at = found
            opened.add(at)
        opened.update(range(at, self._all[at].until))
        self.folded -= opened
        self._again()
        self.focus = self._shown.index(at)

    def _child(self, parent: int, key: str | int) -> int | None:
        """The line at which a field of an object, or an item of a list, begins."""
        at, place = parent + 1, 0
        while at < self._all[parent].until:
            if place == key or (isinstance(key, str) and self._all[at].text.startswith(f"{_text(key)}: ")):
                return at
            at, place = max(at, self._all[at].until) + 1, place + 1
        return None

    def item_at(self, row: int, key: str) -> int | None:
        """The place of the item that a row belongs to in the list that is a field of the value; None beside it."""
        found = self._child(0, key) if self._all[0].until else None
        which = self._shown[self._line_at(row)]
        if found is None or not found < which < self._all[found].until:
            return None
        at, place = found + 1, 0
        while max(at, self._all[at].until) < which:
            at, place = max(at, self._all[at].until) + 1, place + 1
        return place

    def _again(self) -> None:
        width, self._width = self._width, -1
        self.lay_out(width if width > 0 else _UNBOUND)

    def _line_at(self, row: int) -> int:
        return max(0, min(bisect_right(self._starts, row) - 1, len(self.lines) - 1))

    def find(self, needle: str, start: int, step: int = 1) -> int | None:
        """A search looks into what is folded, so it unfolds."""
        if needle:
            self.unfold_all()
        return super().find(needle, start, step)


def read_json(text: str) -> Any | None:
    """The value of a text that is an object or a list; None for every other text, and for one that is too long."""
    stripped = text.strip()
    if not (2 <= len(stripped) <= LONGEST) or stripped[0] not in "{[" or stripped[-1] not in "]}":
        return None
    try:
        return json.loads(stripped)
    except (ValueError, RecursionError):
        return None


def _lines(value: object, depth: int = 0, label: str = "", tail: str = "") -> Iterator[_Line]:
    """A line that opens something has a summary; one that closes it has ``until`` -1."""
    if isinstance(value, (dict, list)) and value and depth < _DEEPEST:
        opening, closing = "{}" if isinstance(value, dict) else "[]"
        noun = "field" if isinstance(value, dict) else "item"
        yield _Line(depth, f"{label}{opening}", 0, plural(len(value), noun))
        pairs = value.items() if isinstance(value, dict) else ((None, one) for one in value)
        for number, (key, one) in enumerate(pairs, 1):
            name = "" if key is None else f"{_text(key)}: "
            yield from _lines(one, depth + 1, name, "," if number < len(value) else "")
        yield _Line(depth, f"{closing}{tail}", -1)
        return
    text = f"{label}{_text(value)}{tail}"
    for at in range(0, len(text), CHUNK):
        yield _Line(depth, text[at : at + CHUNK])


def _text(value: object) -> str:
    return clean(json.dumps(value, ensure_ascii=False))
