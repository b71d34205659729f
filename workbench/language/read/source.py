"""A file as text with a place for every value: what problems point at and what edits replace."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol

from msgspec import Struct, field

from workbench.language.problem import Path, TextSpan

# From a text value back to the characters it was written with: escapes, folding and indentation undone.

Piece = tuple[str, int]
"""Characters of the value and the offset in the file of what they were written as."""


Format = Literal["yaml", "json", "dot"]


def value_offsets(text: str, start: int, end: int, style: str, value: str, form: Format = "yaml") -> list[int] | None:
    """The file offset of each character of ``value``, and of its end, for a scalar at ``text[start:end]``.

    ``style`` is ``|``, ``>``, ``"``, ``'`` or nothing for plain. None when the text does not spell the value.
    """
    if form == "dot":
        spelled, offsets = _collected(
            _dot(text, start + 1, end - 1) if style else ((text[i], i) for i in range(start, end))
        )
        return [*offsets, end - 1 if style else end] if spelled == value else None
    start = _after_properties(text, start, end, style)
    if style in ("|", ">"):
        return _block_offsets(text, start, end, value, folded=style == ">")
    if style == '"':
        pieces = _double(text, start + 1, end - 1, folds=form != "json")
    elif style == "'":
        pieces = _single(text, start + 1, end - 1)
    else:
        pieces = _plain(text, start, end)
    spelled, offsets = _collected(pieces)
    if spelled != value:
        return None
    return [*offsets, end - 1 if style else end]


def _collected(pieces: Iterator[Piece]) -> tuple[str, list[int]]:
    spelled: list[str] = []
    offsets: list[int] = []
    for characters, offset in pieces:
        spelled.append(characters)
        offsets += [offset] * len(characters)
    return "".join(spelled), offsets


_PROPERTY = re.compile(r"(?:[&!][^\s,\[\]{}]*(?:\s+|#[^\n]*\n)+)+")


def _after_properties(text: str, start: int, end: int, style: str) -> int:
    """Past an anchor and a tag before the scalar itself."""
    match = _PROPERTY.match(text, start, end) if text[start : start + 1] in ("&", "!") else None
    start = match.end() if match else start
    return text.find(style, start, end) if style else start


_ESCAPES = {
    "0": "\0",
    "a": "\a",
    "b": "\b",
    "t": "\t",
    "\t": "\t",
    "n": "\n",
    "v": "\v",
    "f": "\f",
    "r": "\r",
    "e": "\x1b",
    " ": " ",
    '"': '"',
    "/": "/",
    "\\": "\\",
    "N": "\x85",
    "_": "\xa0",
    "L": "\u2028",
    "P": "\u2029",
}
_HEX = {"x": 2, "u": 4, "U": 8}
_FOLD = re.compile(r"[ \t]*((?:\r\n?|\n)[ \t]*)+")
_BREAK = re.compile(r"\r\n?|\n")


def _folded(match: re.Match[str], blank_first: str = " ") -> Iterator[Piece]:
    """A line break with what surrounds it: one gives a space, n + 1 give n breaks."""
    breaks = [b.start() for b in _BREAK.finditer(match.string, match.start(), match.end())]
    if len(breaks) == 1:
        if blank_first:
            yield blank_first, breaks[0]
    else:
        for at in breaks[1:]:
            yield "\n", at


def _double(text: str, start: int, end: int, *, folds: bool) -> Iterator[Piece]:
    at = start
    while at < end:
        char = text[at]
        if char == "\\" and at + 1 < end:
            code = text[at + 1]
            if folds and code in "\r\n":
                match = _FOLD.match(text, at + 1, end)
                assert match is not None
                yield from _folded(match, "")
                at = match.end()
            elif code in _HEX:
                size = _HEX[code]
                number = int(text[at + 2 : at + 2 + size], 16)
                low = text[at + 6 : at + 12]
                if not folds and 0xD800 <= number < 0xDC00 and low[:2] == "\\u":
                    number = 0x10000 + ((number - 0xD800) << 10) + (int(low[2:], 16) - 0xDC00)
                    size += 6
                yield chr(number), at
                at += 2 + size
            else:
                yield _ESCAPES.get(code, code), at
                at += 2
        elif folds and char in " \t\r\n" and (match := _FOLD.match(text, at, end)):
            yield from _folded(match)
            at = match.end()
        else:
            yield char, at
            at += 1


_DOT_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "t": "\t"}


def _dot(text: str, start: int, end: int) -> Iterator[Piece]:
    at = start
    while at < end:
        meant = _DOT_ESCAPES.get(text[at + 1 : at + 2]) if text[at] == "\\" and at + 1 < end else None
        yield meant or text[at], at
        at += 2 if meant else 1


def _single(text: str, start: int, end: int) -> Iterator[Piece]:
    at = start
    while at < end:
        char = text[at]
        if char == "'":
            yield "'", at
            at += 2
        elif char in " \t\r\n" and (match := _FOLD.match(text, at, end)):
            yield from _folded(match)
            at = match.end()
        else:
            yield char, at
            at += 1


def _plain(text: str, start: int, end: int) -> Iterator[Piece]:
    at = start
    while at < end:
        if text[at] in " \t\r\n" and (match := _FOLD.match(text, at, end)):
            yield from _folded(match)
            at = match.end()
        else:
            yield text[at], at
            at += 1


_LINE = re.compile(r"([^\r\n]*)(\r\n?|\n|\Z)")
_HEADER = re.compile(r"[|>][+-]?([1-9]?)")


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, str, bool]]:
    """Offset, content and whether it has a break, line by line."""
    at = start
    while at < end:
        match = _LINE.match(text, at, end)
        if match is None or match.end() == at:
            return
        yield at, match[1], bool(match[2])
        at = match.end()


def _block_offsets(text: str, start: int, end: int, value: str, *, folded: bool) -> list[int] | None:
    header = _HEADER.match(text, start)
    first = _BREAK.search(text, start, end)
    if header is None or first is None:
        return None if value else [end]
    lines = list(_lines(text, first.end(), end))
    line_start = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    digits = int(header[1] or 0)
    # A stated indentation counts from the parent's, which the text alone does not tell: take what spells the value.
    for indent in range(digits, digits + start - line_start + 1) if digits else (_indent(lines),):
        spelled, offsets = _collected(_block(lines, indent, folded=folded))
        if spelled.startswith(value):
            return [*offsets[: len(value)], offsets[len(value)] if len(value) < len(offsets) else end]
    return None


def _block(lines: list[tuple[int, str, bool]], indent: int, *, folded: bool) -> Iterator[Piece]:
    fold = _Folding() if folded else None
    for offset, content, broken in lines:
        body = content[indent:]
        if fold is not None:
            yield from fold.before(body)
        yield from ((char, offset + indent + i) for i, char in enumerate(body))
        if broken:
            if fold is not None:
                fold.held.append(offset + len(content))
            else:
                yield "\n", offset + len(content)
    if fold is not None:
        yield from (("\n", at) for at in fold.held)


class _Folding:
    """Line breaks of a folded scalar: held until the next line shows what they become."""

    def __init__(self) -> None:
        self.held: list[int] = []
        self.text_before = False
        self.indented_before = False

    def before(self, body: str) -> Iterator[Piece]:
        if not body:
            return
        indented = body[0] in " \t"
        joins = self.text_before and not self.indented_before and not indented
        if joins and len(self.held) == 1:
            yield " ", self.held[0]
        else:
            yield from (("\n", at) for at in (self.held[1:] if joins else self.held))
        self.held = []
        self.text_before = True
        self.indented_before = indented


def _indent(lines: list[tuple[int, str, bool]]) -> int:
    """Of the first line that is not blank."""
    return next((len(content) - len(content.lstrip(" ")) for _, content, _ in lines if content.strip(" ")), 0)


class Spot(NamedTuple):
    """The place of one value, as offsets into the text; ends exclusive."""

    start: int
    end: int
    key: tuple[int, int] | None = None
    """Its key, if it stands in a mapping."""
    kind: Literal["mapping", "sequence", "scalar"] = "scalar"
    style: str = ""
    """Of a scalar: ``|``, ``>``, ``"``, ``'`` or nothing for plain. Of a collection: ``flow`` or ``block``."""
    shared: bool = False
    """Reached through an alias or a merge key: the same text serves other places too."""


class Layout(Protocol):
    """Finds values in the text they were read from."""

    def spot(self, path: Path) -> Spot | None:
        """None when there is no such value."""
        ...


class NoLayout:
    """Of a text that could not be read."""

    def spot(self, path: Path) -> Spot | None:
        return None


_LINE_END = re.compile(r"\r\n?|\n")


class Source(Struct, frozen=True, eq=False, dict=True):
    """The text of a file and the JSON value it holds. Lines and columns count from 1, in characters."""

    text: str
    """Without a byte order mark."""
    file: str = ""
    format: Format = "yaml"
    data: Any = None
    """Plain JSON; None when the text could not be read. Callers must not change it."""
    bom: str = ""
    """The byte order mark before the text, or empty."""
    layout: Layout = field(default_factory=NoLayout)

    def has(self, path: Path) -> bool:
        """Returns whether the file holds a value there; merged keys count."""
        return self.layout.spot(path) is not None

    def spot(self, path: Path) -> Spot | None:
        """The exact place of a value, or None."""
        return self.layout.spot(path)

    def offsets(self, path: Path) -> tuple[int, int]:
        """Start and end of the value's text. Raises KeyError when there is no such value."""
        spot = self.layout.spot(path)
        if spot is None:
            raise KeyError(path)
        return spot.start, spot.end

    def span(self, path: Path) -> TextSpan:
        """The place of the value; if it is missing, its nearest ancestor."""
        spot = self._nearest(path)
        return self.between(spot.start, spot.end) if spot else TextSpan(1, 1, 1, 1)

    def key_span(self, path: Path) -> TextSpan:
        """The place of the value's key; for an item of a list, the item itself."""
        spot = self.layout.spot(path)
        if spot is None:
            return self.span(path)
        return self.between(*(spot.key or (spot.start, spot.end)))

    def inner_span(self, path: Path, line: int, column: int, length: int = 1) -> TextSpan:
        """The place in the file of a position inside a text value, such as line 3 column 5 of a template.

        Folding, indentation and escapes are undone. A position outside the value gives the value itself.
        """
        value = self._value(path)
        spot = self.layout.spot(path)
        if spot is None or not isinstance(value, str):
            return self.span(path)
        at = _index(value, line, column)
        offsets = value_offsets(self.text, spot.start, spot.end, spot.style, value, self.format)
        if offsets is None or not 0 <= at < len(offsets):
            return self.span(path)
        start = offsets[at]
        end = offsets[min(at + length, len(offsets) - 1)]
        return self.between(start, max(end, start + 1))

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset into the text."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def between(self, start: int, end: int) -> TextSpan:
        """The span of a stretch of text."""
        return TextSpan(*self.position(start), *self.position(max(start, end)))

    def line_text(self, line: int) -> str:
        """One line without its end; empty beyond the text."""
        if not 1 <= line <= len(self._starts):
            return ""
        end = self._starts[line] if line < len(self._starts) else len(self.text)
        return self.text[self._starts[line - 1] : end].rstrip("\r\n")

    @cached_property
    def _starts(self) -> Sequence[int]:
        return [0, *(match.end() for match in _LINE_END.finditer(self.text))]

    def _nearest(self, path: Path) -> Spot | None:
        for length in range(len(path), -1, -1):
            if (spot := self.layout.spot(path[:length])) is not None:
                return spot
        return None

    def _value(self, path: Path) -> Any:
        value = self.data
        for part in path:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return None
        return value


def _index(value: str, line: int, column: int) -> int:
    """Offset of a line and column in a text whose lines end as templates count them; -1 outside."""
    start = 0
    for _ in range(line - 1):
        match = _LINE_END.search(value, start)
        if match is None:
            return -1
        start = match.end()
    return start + column - 1 if column >= 1 else -1
