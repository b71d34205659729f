"""Long text as rows: cleaned once, wrapped to the pane, coloured line by line as it is drawn."""

from __future__ import annotations

import re
import textwrap
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Literal, Protocol

from msgspec import Struct
from rich.cells import cell_len

from workbench.language.clean import clean
from workbench.views.cells import Row, Span, crop, fit, width_of
from workbench.views.keys import told
from workbench.views.model import Rows

HEAD_AND_TAIL = 64 * 1024
"""Characters of each end that a preview shows of a text longer than both."""
WORD_WRAP_LIMIT = 256 * 1024
"""Characters above which lines break anywhere: their count is then arithmetic."""
CHUNK = 4096
"""A longer line is broken here first, whatever it holds."""

Paint = Callable[[str], tuple[Span, ...]]
"""Colours one line."""


class Block(Protocol):
    """A part of a document that lays itself out: a picture, rendered Markdown."""

    def height(self, room: int) -> int:
        """Rows that it takes in this many cells; at least one."""
        ...

    def row(self, part: int, room: int) -> tuple[Span, ...]:
        """One of its rows, no wider than the room."""
        ...

    def texts(self, room: int) -> Sequence[str]:
        """Its rows as text, for a search."""
        ...


class TextLine(Struct, frozen=True):
    """A line of a document: its text, its token, how far wrapped parts are indented, and what colours it."""

    text: str
    token: str = "plain"
    tone: str = ""
    paint: Paint | None = None
    number: int = 0
    """Shown in the margin; 0 shows none."""
    hang: int = 0
    block: Block | None = None
    """Replaces the text."""


def text_lines(text: str, token: str = "plain", *, whole: bool = False, paint: Paint | None = None) -> list[TextLine]:
    """Text as lines. Unless ``whole``, a very long one is cut to its head and its tail, which says so."""
    if not whole and len(text) > 2 * HEAD_AND_TAIL:
        left_out = len(text) - 2 * HEAD_AND_TAIL
        return [
            *text_lines(text[:HEAD_AND_TAIL], token, whole=True, paint=paint),
            TextLine(f"… {left_out:,} characters left out here; {told('{list.open} opens all')} …", "masked"),
            *text_lines(text[-HEAD_AND_TAIL:], token, whole=True, paint=paint),
        ]
    lines = clean(text).replace("\r\n", "\n").expandtabs(4).split("\n")
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    return [
        TextLine(part, token, paint=paint, hang=_hang(line) if paint else 0) for line in lines for part in _chunks(line)
    ]


def _hang(line: str) -> int:
    """Structured text goes on two cells further in than it began."""
    return min(len(line) - len(line.lstrip(" ")) + 2, 24)


def _chunks(line: str) -> Sequence[str]:
    if len(line) <= CHUNK:
        return (line,)
    return [line[i : i + CHUNK] for i in range(0, len(line), CHUNK)]


_LEAD = re.compile(r"^\s*(?:\S{1,6}  )?")
"""Before the words of such a line: spaces, and perhaps the key that they are about."""


def explained(words: Iterable[str], room: int) -> tuple[str, ...]:
    """Returns the explanation of an empty list, in lines of at most ``room`` cells; a continued line begins where its
    text began."""
    lines: list[str] = []
    for line in words:
        hang = len(line) - len(_LEAD.sub("", line))
        wrapped = textwrap.wrap(line[hang:], max(8, room - hang)) or [""]
        lines += [line[:hang] + wrapped[0], *(" " * hang + part for part in wrapped[1:])]
    return tuple(lines)


class TextRows(Rows):
    """A document. Wrapping happens once for each width; a row is coloured when it is drawn."""

    def __init__(
        self,
        lines: Sequence[TextLine],
        title: tuple[Span, ...] = (),
        title_right: tuple[Span, ...] = (),
        *,
        empty: Sequence[str] = (),
        copy: str | None = None,
        focus: int = 0,
        above: Sequence[TextLine] = (),
    ) -> None:
        self.lines = lines
        self.above = tuple(above)
        """Lines that stay in view above the text."""
        self.title = title
        self.title_right = title_right
        self.empty = tuple(empty)
        self.copy = "\n".join(line.text for line in lines) if copy is None else copy
        """The text that a copy of the whole takes."""
        self.focus = focus
        """The line that should be in view at first."""
        self._numbered = any(line.number for line in lines)
        self._margin = len(str(max((line.number for line in lines), default=0))) + 2 if self._numbered else 1
        self._words = sum(len(line.text) for line in lines) <= WORD_WRAP_LIMIT
        self._width = -1
        self._starts: list[int] = [0]
        self._parts: dict[int, list[tuple[int, int]]] = {}

    def lay_out(self, width: int) -> None:
        """Lay the lines out for a width in cells."""
        if width == self._width:
            return
        self._width = width
        self._parts = {}
        self._starts = [0, *accumulate(self._height(i) for i in range(len(self.lines)))]

    @property
    def _room(self) -> int:
        return max(8, self._width - self._margin - 1)

    def _height(self, index: int) -> int:
        line, room = self.lines[index], self._room
        if line.block is not None:
            return line.block.height(room)
        if len(line.text) <= room and line.text.isascii():
            return 1
        if self._words:
            return len(self._slices(index))
        return max(1, -(-len(line.text) // _step(line.text, room)))

    def _slices(self, index: int) -> list[tuple[int, int]]:
        parts = self._parts.get(index)
        if parts is None:
            line, room = self.lines[index], self._room
            parts = _words(line.text, room, line.hang) if self._words else _hard(line.text, room)
            self._parts[index] = parts
        return parts

    def __len__(self) -> int:
        return self._starts[-1] if self._width > 0 else len(self.lines)

    def heads(self, width: int) -> Sequence[Row]:
        return tuple(
            Row(crop(((" ", "plain"), *part), width), line.tone)
            for line in self.above
            for part in wrapped(((line.text, line.token),), max(8, width - 1))
        )

    def first_row(self, line: int) -> int:
        """The row at which a line begins."""
        return self._starts[min(line, len(self._starts) - 1)]

    @property
    def starts(self) -> Sequence[int]:
        """The row at which each line begins, and at the end the number of rows."""
        return self._starts

    def line_of(self, row: int) -> int:
        """The line that stands at a row."""
        return min(bisect_right(self._starts, row) - 1, len(self.lines) - 1)

    def row(self, index: int, width: int) -> Row:
        self.lay_out(width)
        which = bisect_right(self._starts, index) - 1
        line = self.lines[which]
        part = index - self._starts[which]
        if line.block is not None:
            return Row(((" " * self._margin, "faint"), *line.block.row(part, self._room)), line.tone)
        start, end = self._slices(which)[part] if len(line.text) > self._room or not line.text.isascii() else (0, None)
        spans = _cut(line.paint(line.text) if line.paint else ((line.text, line.token),), start, end)
        margin = " " * self._margin
        if self._numbered:
            number = str(line.number) if line.number and part == 0 else ""
            margin = fit(number, self._margin - 1, "right") + " "
        hang = " " * line.hang if part else ""
        return Row(((margin, "faint"), (hang, "plain"), *spans), line.tone)

    def plain(self, index: int) -> str:
        return self.row(index, self._width if self._width > 0 else 400).text.strip()

    def find(self, needle: str, start: int, step: int = 1) -> int | None:
        """Searches the lines, not what they wrap to: a match across a line break of ours is found."""
        if not needle or not self.lines:
            return None
        if self._width <= 0:
            self.lay_out(400)
        wanted, total = needle.casefold(), len(self.lines)
        first = max(0, min(bisect_right(self._starts, start) - 1, total - 1))
        for offset in range(total + 1):
            rows = self._holding((first + step * offset) % total, wanted)
            if offset == 0:
                rows = [row for row in rows if (row >= start if step > 0 else row <= start)]
            if rows:
                return rows[0] if step > 0 else rows[-1]
        return None

    def places(self, needle: str) -> Iterator[int | None]:
        wanted = needle.casefold()
        for which in range(len(self.lines) if wanted else 0):
            yield from self._holding(which, wanted) or (None,)

    def _holding(self, which: int, wanted: str) -> list[int]:
        """The rows of a line that hold a text: its first row; in a block every row that does."""
        line, row = self.lines[which], self.first_row(which)
        if line.block is None:
            return [row] if wanted in line.text.casefold() else []
        return [row + part for part, text in enumerate(line.block.texts(self._room)) if wanted in text.casefold()]


def hung(before: Sequence[Span], words: Sequence[Span], width: int) -> tuple[Row, ...]:
    """A row whole: its words wrapped beside what stands before them, in 12 cells at least."""
    indent = width_of(before)
    first, *more = wrapped(words, max(12, width - indent))
    return (Row((*before, *first)), *(Row(((" " * indent, "plain"), *line)) for line in more))


def columns_whole(before: Sequence[Span], cells: Sequence[tuple[Span, int]]) -> tuple[Row, ...]:
    """A row of a table whole, beside what stands before it: each cell is wrapped in its column of so many cells, the
    blank between columns included."""
    columns = [(wrapped((span,), max(8, width - 1)), width) for span, width in cells]
    rows = []
    for at in range(max(len(lines) for lines, _ in columns)):
        spans = [*before] if not at else [(" " * width_of(before), "plain")]
        for lines, width in columns:
            spans += _padded(lines[at] if at < len(lines) else (), width)
        rows.append(Row(tuple(spans)))
    return tuple(rows)


def _padded(spans: Sequence[Span], width: int) -> tuple[Span, ...]:
    return (*spans, (" " * (width - width_of(spans)), "plain"))


def wrapped(spans: Sequence[Span], room: int) -> tuple[tuple[Span, ...], ...]:
    """Spans in lines of at most ``room`` cells, broken between words if possible."""
    text = "".join(part for part, _ in spans)
    # One of the two blanks that set parts off may be left where a line breaks.
    return tuple(_cut(spans, start + (text[start : start + 1] == " "), end) for start, end in _words(text, room, 0))


def _step(text: str, room: int) -> int:
    return room if text.isascii() else max(1, room // 2)


def _hard(text: str, room: int) -> list[tuple[int, int]]:
    step = _step(text, room)
    return [(i, min(i + step, len(text))) for i in range(0, max(1, len(text)), step)]


def _words(text: str, room: int, hang: int) -> list[tuple[int, int]]:
    """Breaks after spaces if possible, else anywhere. In cells."""
    parts: list[tuple[int, int]] = []
    start, limit = 0, room
    while start < len(text):
        end = _fitting(text, start, limit)
        if end < len(text) and (space := text.rfind(" ", start + 1, end + 1)) > start + limit // 3:
            end = space
        parts.append((start, end))
        start = end + 1 if end < len(text) and text[end] == " " else end
        limit = max(4, room - hang)
    return parts or [(0, 0)]


def _fitting(text: str, start: int, room: int) -> int:
    """The end of the longest part from ``start`` that fits into ``room`` cells; at least one character."""
    end = min(len(text), start + room)
    piece = text[start:end]
    if piece.isascii():
        return end
    while end > start + 1 and cell_len(text[start:end]) > room:
        end -= max(1, (cell_len(text[start:end]) - room) // 2)
    return end


def _cut(spans: Sequence[Span], start: int, end: int | None) -> tuple[Span, ...]:
    """The characters from ``start`` to ``end`` of a painted line."""
    if start == 0 and end is None:
        return tuple(spans)
    result: list[Span] = []
    position = 0
    for text, token in spans:
        after = position + len(text)
        low, high = max(start, position), after if end is None else min(end, after)
        if low < high:
            result.append((text[low - position : high - position], token))
        position = after
    return tuple(result)


def drawn_line(spans: Sequence[Span]) -> TextLine:
    """A line whose parts have colours of their own."""
    return TextLine("".join(text for text, _ in spans), paint=lambda _: tuple(spans))


class DrawnRows(TextRows):
    """A document that is drawn again for each width: a drawing, whose lines cannot be wrapped."""

    def __init__(
        self,
        draw: Callable[[int], Sequence[TextLine]],
        title: tuple[Span, ...],
        picture: Callable[[Literal["svg", "png"]], bytes] | None = None,
    ) -> None:
        """``draw`` gets the cells that a line may take; ``picture`` gives the drawing as a file."""
        self._draw, self.picture = draw, picture
        super().__init__(draw(80), title)

    def lay_out(self, width: int) -> None:
        if width != self._width:
            self.lines = self._draw(max(20, width - self._margin - 1))
            self.copy = "\n".join(line.text for line in self.lines)
        super().lay_out(width)
