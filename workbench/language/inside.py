"""From a text value back to the characters it was written with: escapes, folding and indentation undone."""

from __future__ import annotations

import re
from collections.abc import Iterator

Piece = tuple[str, int]
"""Characters of the value and the offset in the file of what they were written as."""


def value_offsets(text: str, start: int, end: int, style: str, value: str, json: bool = False) -> list[int] | None:
    """The file offset of each character of ``value``, and of its end, for a scalar at ``text[start:end]``.

    ``style`` is ``|``, ``>``, ``"``, ``'`` or nothing for plain. None when the text does not spell the value.
    """
    start = _after_properties(text, start, end, style)
    if style in ("|", ">"):
        return _block_offsets(text, start, end, value, folded=style == ">")
    if style == '"':
        pieces = _double(text, start + 1, end - 1, folds=not json)
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
