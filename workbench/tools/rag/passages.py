"""Cuts a text into passages of about equal size that overlap, and knows the lines of each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a file."""

    file: str
    """As tools name it: relative to the workspace."""
    number: int
    """Within its file, from 1."""
    first: int
    """Line, from 1."""
    last: int
    text: str

    @property
    def id(self) -> str:
        """``docs/faq.md#3``: stays the same while the file does."""
        return f"{self.file}#{self.number}"

    @property
    def lines(self) -> str:
        return f"line {self.first:,}" if self.first == self.last else f"lines {self.first:,}-{self.last:,}"


@dataclass(frozen=True, slots=True)
class _Piece:
    line: int
    text: str


def passages_of(file: str, text: str, size: int, overlap: int) -> list[Passage]:
    """Passages of at most ``size`` characters, cut at the ends of lines where that is possible; neighbours share at
    most ``overlap`` characters (never more than half a passage). A text of blanks has none."""
    overlap = min(overlap, size // 2)
    pieces = list(_pieces(text, overlap or size))
    found: list[Passage] = []
    start = 0
    while start < len(pieces):
        end, length = start, 0
        while end < len(pieces) and (end == start or length + len(pieces[end].text) <= size):
            length += len(pieces[end].text)
            end += 1
        body = "".join(piece.text for piece in pieces[start:end])
        if body.strip():
            found.append(Passage(file, len(found) + 1, pieces[start].line, pieces[end - 1].line, body))
        if end == len(pieces):
            break
        start = _back(pieces, start, end, overlap)
    return found


def _back(pieces: list[_Piece], start: int, end: int, overlap: int) -> int:
    """Where the next passage begins: as far back as the overlap allows, and always further than this one did."""
    position, shared = end, 0
    while position - 1 > start and shared + len(pieces[position - 1].text) <= overlap:
        position -= 1
        shared += len(pieces[position].text)
    return position


def _pieces(text: str, most: int) -> Iterator[_Piece]:
    """Lines with their ends; one longer than ``most`` characters in several pieces, cut behind a blank if there is
    one."""
    for number, line in enumerate(_LINE.findall(text), 1):
        rest = line
        while len(rest) > most:
            cut = rest.rfind(" ", 1, most) + 1 or most
            yield _Piece(number, rest[:cut])
            rest = rest[cut:]
        if rest:
            yield _Piece(number, rest)
