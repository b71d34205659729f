"""Finds the position of a cursor in an unfinished file: the keys around it, even if the text cannot be parsed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from workbench.language.read.source import Format
from workbench.language.words import LIST_ITEM

ITEM = LIST_ITEM
"""The step of a path that leads into an item of a list, whichever it is."""

Slot = Literal["key", "value", "text"]


class Cursor(Struct, frozen=True):
    """A place between two characters of a file."""

    path: tuple[str, ...]
    """Keys from the top, ``[]`` for an item of a list; to the mapping in the slot ``key``, else to the value."""
    slot: Slot
    """``key``: a key may stand here. ``value``: a value. ``text``: inside of a text that goes on over lines."""
    start: int
    """Offset of the beginning of the word under the cursor."""
    typed: str
    """The part of the word before the cursor, without its quote."""
    end: int
    """Offset of the end of the word."""
    quote: str = ""
    """The quote that opens the word."""
    written: frozenset[str] = frozenset()
    """The other keys of the mapping around the cursor."""
    before: str = ""
    """The text of the value before the cursor."""
    key: str = ""
    """The key under the cursor, in the slot ``key``."""

    @property
    def target(self) -> tuple[str, ...]:
        """The path of the field that the cursor is on."""
        return (*self.path, self.key) if self.slot == "key" and self.key else self.path


@lru_cache(maxsize=8)
def cursor_at(text: str, offset: int, form: Format) -> Cursor:
    """Find the place of an offset. Never raises; the cost is that of the lines above up to the first key at the left
    edge, for JSON that of the text. Kept, because several look at the same place after one key."""
    offset = max(0, min(offset, len(text)))
    if form == "json":
        return _in_brackets(text, 0, offset, ()) or Cursor((), "value", offset, "", offset)
    return _Yaml(text, offset).cursor()


# -- block YAML ------------------------------------------------------------------------------------------------------

_SHAPE = re.compile(r"(?P<indent> *)(?P<dashes>(?:-(?: +|$))*)")
_KEY = re.compile(
    r"""(?P<key>"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#'"\[\]{},&*!|>%@`?-](?:[^:#]|:(?=\S)|(?<=\S)\#)*?)\s*:(?=\s|$)""",
    re.VERBOSE,
)
_HEADER = re.compile(r"(?:[&!]\S*\s+)*[|>][0-9+-]*\s*(?:#.*)?$")
_BARE = re.compile(r"(?:[&!]\S*\s*)*(?:#.*)?$")
_WORD = re.compile(r"[^\s,\[\]{}\"':#]*")


class _Line(Struct, frozen=True):
    """The beginning of one line of block YAML: items, a key, a value."""

    start: int
    """Offset of the line."""
    text: str
    dashes: tuple[int, ...]
    column: int
    """Of what follows the dashes."""
    key: str | None
    key_end: int
    value: int
    """Column of the value."""

    @property
    def rest(self) -> str:
        """The value as it is written."""
        return self.text[self.value :]

    @property
    def first(self) -> int:
        return self.dashes[0] if self.dashes else self.column


def _line(text: str, start: int) -> _Line:
    shape = _SHAPE.match(text)
    assert shape is not None
    indent, dashes = len(shape["indent"]), shape["dashes"]
    columns = tuple(indent + at for at, char in enumerate(dashes) if char == "-")
    column = indent + len(dashes)
    found = _KEY.match(text, column)
    if found is None:
        return _Line(start, text, columns, column, None, column, column)
    value = found.end()
    value += len(text[value:]) - len(text[value:].lstrip())
    return _Line(start, text, columns, column, _unquoted(found["key"]), found.end("key"), value)


def _steps(line: _Line) -> tuple[str, ...]:
    """Returns the steps that a line adds to the path of the mapping or list that it stands in."""
    return (*(ITEM for _ in line.dashes), *((line.key,) if line.key is not None else ()))


def _unquoted(word: str) -> str:
    if word[:1] == '"':
        try:
            return str(json.loads(word))
        except ValueError:
            return word.strip('"')
    return word.strip("'").replace("''", "'") if word[:1] == "'" else word


class _Yaml:
    """Looks upwards from the line of the cursor: what stands further left is around it."""

    def __init__(self, text: str, offset: int) -> None:
        self.text = text
        self.offset = offset
        self.start = text.rfind("\n", 0, offset) + 1
        self.column = offset - self.start
        end = text.find("\n", offset)
        self.here = _line(text[self.start : len(text) if end < 0 else end].rstrip("\r"), self.start)
        self.path: list[str] = []
        self.written: set[str] = set()

    def cursor(self) -> Cursor:
        here = self.here
        if here.text.lstrip().startswith("#") and "#" in here.text[: self.column]:
            return Cursor((), "text", self.offset, "", self.offset)
        blank = not here.text.strip()
        found = self._around(self.column if blank else here.first, dash=bool(here.dashes))
        if found is not None:
            return found
        self.path += [ITEM for column in here.dashes if column < self.column]
        opened = here.value if here.key is not None else here.column
        if here.text[opened : opened + 1] in ("{", "[") and self.column > opened:
            path = (*self.path, here.key) if here.key is not None else tuple(self.path)
            inside = _in_brackets(self.text, self.start + opened, self.offset, path)
            if inside is not None:
                return inside
        if here.key is not None and self.column > here.key_end:
            return self._word("value", (*self.path, here.key), here.value)
        self._siblings_below(self.column if blank else here.column)
        return self._word("key", tuple(self.path), here.column)

    def _word(self, slot: Slot, path: tuple[str, ...], begin: int) -> Cursor:
        """The word under the cursor, in what begins at a column."""
        line, column = self.here.text, min(self.column, len(self.here.text))
        begin = min(begin, column)
        stretch = line[begin:column]
        quote = stretch[:1] if stretch[:1] in ("'", '"') else ""
        typed = stretch[len(quote) :]
        after = _WORD.match(line, column)
        end = after.end() if after else column
        key = self.here.key or "" if slot == "key" and self.column >= self.here.column else ""
        return Cursor(
            path,
            slot,
            self.start + begin,
            typed,
            self.start + (max(end, self.here.key_end) if key else end),
            quote,
            frozenset(self.written - {key}),
            stretch,
            key,
        )

    def _above(self) -> Iterator[tuple[int, str, int]]:
        """The lines above with their offset and their indentation, nearest first, without blank ones and comments."""
        end = self.start - 1
        while end >= 0:
            start = self.text.rfind("\n", 0, end) + 1
            line = self.text[start:end].rstrip("\r")
            indent = len(line) - len(line.lstrip(" "))
            if line.strip() and line[indent] != "#":
                yield start, line, indent
            end = start - 1

    def _around(self, limit: int, *, dash: bool) -> Cursor | None:
        """Collect the path above the cursor. Returns a cursor if a text or brackets continue over lines."""
        inner = True
        for start, text, indent in self._above():
            if indent > limit or (indent == limit and (not inner if not dash else text[indent] == "-")):
                continue  # Looked at no closer: of thousands of lines nearly all stand further right.
            line = _line(text, start)
            if line.key is not None:
                if line.column < limit or (dash and line.column == limit and not line.dashes):
                    if (found := self._inside(line)) is not None:
                        return found
                    self.path.insert(0, line.key)
                    limit, dash, inner = line.column, False, False
                elif line.column == limit and not dash and inner:
                    self.written.add(line.key)
            elif (
                line.text[line.column : line.column + 1] in ("{", "[")
                and line.first < limit
                and (found := self._brackets(line, line.column)) is not None
            ):
                return found
            for column in reversed(line.dashes):
                if column < limit:
                    self.path.insert(0, ITEM)
                    limit, dash, inner = column, True, False
            if limit == 0 and not dash:
                break
        return None

    def _inside(self, line: _Line) -> Cursor | None:
        """A cursor inside the value of a key above, if that is a text, or brackets that are still open."""
        if _BARE.match(line.rest):
            return None
        if line.rest[0] in "{[":
            return self._brackets(line, line.value)
        if not _HEADER.match(line.rest) and not self.here.text.strip():
            return None  # Below a finished value: a new key may stand here.
        outer = _Yaml(self.text, line.start + line.first).cursor()
        if outer.slot == "text":
            before = outer.before + self.text[outer.start : self.offset]
            return Cursor(outer.path, "text", self.offset, "", self.offset, before=before)
        before = self.text[line.start + line.value : self.offset]
        return Cursor((*outer.path, *_steps(line)), "text", self.offset, "", self.offset, before=before)

    def _brackets(self, line: _Line, column: int) -> Cursor | None:
        """The cursor in brackets that open on a line above."""
        inside = _in_brackets(self.text, line.start + column, self.offset, ())
        if inside is None:
            return None
        outer = _Yaml(self.text, line.start + line.first).cursor()
        if outer.slot == "text":
            return Cursor(outer.path, "text", self.offset, "", self.offset)
        return replace(inside, path=(*outer.path, *_steps(line), *inside.path))

    def _siblings_below(self, column: int) -> None:
        at = self.text.find("\n", self.offset)
        while at >= 0:
            end = self.text.find("\n", at + 1)
            line = self.text[at + 1 : len(self.text) if end < 0 else end].rstrip("\r")
            if line.strip() and not line.lstrip().startswith("#"):
                found = _line(line, at + 1)
                if found.first < column:
                    return
                if found.key is not None and found.column == column and not found.dashes:
                    self.written.add(found.key)
            at = end


# -- brackets: JSON, and flow collections of YAML --------------------------------------------------------------------

_TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\\n]|\\.)*"?|'(?:[^'\n]|'')*'?)
      | (?P<mark>[{}\[\],]|:(?=[\s,\[\]{}"']|$))
      | (?P<comment>(?<=\s)\#[^\n]*)
      | (?P<word>(?:[^\s{}\[\],:"']|:(?=[^\s,\[\]{}"']))(?:[^{}\[\],:\n]|:(?=[^\s,\[\]{}"']))*)""",
    re.VERBOSE,
)


class _Frame(Struct):
    """An open bracket."""

    mapping: bool
    key: str | None = None
    valued: bool = False
    """A colon stands behind the key."""
    filled: bool = False
    """A value stands behind the colon: another word without a comma is a key whose comma is missing."""
    keys: list[str] = field(default_factory=list)


def _in_brackets(text: str, begin: int, offset: int, path: tuple[str, ...]) -> Cursor | None:
    """The cursor in brackets that open at ``begin``; None if they are closed before it."""
    frames: list[_Frame] = []
    word: tuple[int, int, str] | None = None
    position = begin
    for token in _tokens(text, begin):
        start, end = token.span()
        if start >= offset:
            break
        position = end
        inside = end > offset or (end == offset and token.lastgroup in ("string", "word"))
        if token.lastgroup == "comment" and inside:
            return None
        if token.lastgroup in ("string", "word"):
            closed = token.lastgroup == "string" and end == offset and _is_closed(token.group())
            if inside and not closed:
                word = (start, end, token.group())
                break
            _take(frames, token.group())
        elif token.lastgroup == "mark":
            _mark(frames, token.group())
            if not frames:
                return None
    if not frames:
        return None
    return _cursor_in(text, offset, frames, word, path, position)


def _is_closed(word: str) -> bool:
    return len(word) > 1 and word[-1] == word[0]


def _tokens(text: str, begin: int) -> Iterator[re.Match[str]]:
    return _TOKEN.finditer(text, begin)


def _take(frames: Sequence[_Frame], word: str) -> None:
    if not frames or not frames[-1].mapping:
        return
    frame = frames[-1]
    if not frame.valued or frame.filled:
        frame.key, frame.valued, frame.filled = _unquoted(word.strip()), False, False
    else:
        frame.filled = True


def _mark(frames: list[_Frame], mark: str) -> None:
    if mark in "{[":
        frames.append(_Frame(mark == "{"))
    elif mark in "}]":
        if frames:
            frames.pop()
        if frames:
            frames[-1].filled = frames[-1].valued
    elif frames and mark == ":":
        frames[-1].valued, frames[-1].filled = True, False
        if frames[-1].key is not None:
            frames[-1].keys.append(frames[-1].key)
    elif frames:
        frames[-1].key, frames[-1].valued, frames[-1].filled = None, False, False


def _cursor_in(
    text: str,
    offset: int,
    frames: Sequence[_Frame],
    word: tuple[int, int, str] | None,
    path: tuple[str, ...],
    position: int,
) -> Cursor:
    for frame in frames[:-1]:
        path = (*path, (frame.key or "") if frame.mapping else ITEM)
    last = frames[-1]
    start, end, written = word if word is not None else (offset, offset, "")
    quote = written[:1] if written[:1] in ("'", '"') else ""
    typed = text[start + len(quote) : offset]
    if _is_closed(written) and quote:
        end -= 1
    behind = word is None and position == offset
    if not last.mapping or (last.valued and (behind or not last.filled)):
        path = (*path, last.key or "") if last.mapping else (*path, ITEM)
        return Cursor(path, "value", start, typed, end, quote, before=text[start:offset])
    keys = _later_keys(text, max(position, end), last)
    key = _unquoted(written.strip()) if written else ""
    return Cursor(path, "key", start, typed, end, quote, frozenset(keys) - {key}, key=key)


def _later_keys(text: str, begin: int, frame: _Frame) -> list[str]:
    """The keys of the innermost mapping, those after the cursor too. Of one that is not closed, those of the cursor's
    line: what stands below belongs to other mappings."""
    line_end = text.find("\n", begin)
    own = _Frame(mapping=True, keys=list(frame.keys))
    frames, on_line = [own], own.keys
    for token in _tokens(text, begin):
        if 0 <= line_end < token.start():
            on_line, line_end = [*own.keys], -1
        if token.lastgroup in ("string", "word"):
            _take(frames, token.group())
        elif token.lastgroup == "mark":
            _mark(frames, token.group())
        if not frames:
            return own.keys
    return on_line
