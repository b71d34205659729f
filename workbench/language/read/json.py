"""JSON read strictly, with a place for every value; common mistakes are named, and reading goes on after them."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NamedTuple, NoReturn

from workbench.language.clean import clean_line
from workbench.language.problem import Path
from workbench.language.read.reading import MAX_DEPTH, MAX_NODES, Reading, TooMuch, position, too_deep, too_many
from workbench.language.read.source import Spot

_BLANK = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_STRING = re.compile(r'"([^"\\\x00-\x1f]*)"')
_ESCAPED = re.compile(r'"((?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)"')
_STRING_PART = re.compile(r'(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*')
_WORD = re.compile(r"[A-Za-z_+\-.][A-Za-z0-9_+\-.]*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)|#[^\n]*", re.DOTALL)
_SURROGATE = re.compile("[\\ud800-\\udfff]")
_MAX_DIGITS = 400
_WORDS = {"true": True, "false": False, "null": None}


class _Node(NamedTuple):
    """A value with its place. ``items`` are the children: by key with the key's place, or in order."""

    start: int
    end: int
    items: dict[str, tuple[tuple[int, int], _Node]] | list[_Node] | None = None


class _Stop(Exception):
    """Reading cannot go on."""

    def __init__(self, message: str, start: int, end: int, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.start, self.end, self.hint = message, start, end, hint


def is_json(text: str) -> bool:
    """Returns whether a text is one JSON value; one that is nested too deep to be read is none."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def read_json(text: str) -> Reading:
    """Never raises; the problems of the text are in the faults."""
    reading = Reading()
    reader = _Reader(text, reading)
    try:
        data, root = reader.value(0)
        at = reader.blank(root.end)
        if at < len(text):
            reader.stop("nothing may follow the value", at)
    except _Stop as stop:
        reading.error("L101", f"not valid JSON: {stop.message}", stop.start, stop.end, stop.hint)
        return reading
    except TooMuch as stop:
        reading.error("L104", str(stop), reader.at, reader.at)
        return reading
    reading.data = data
    reading.layout = _JsonLayout(root)
    return reading


class _Reader:
    def __init__(self, text: str, reading: Reading) -> None:
        self.text = text
        self.reading = reading
        self.at = 0
        self.depth = 0
        self.count = 0
        self.told: set[str] = set()

    def stop(self, message: str, start: int, end: int | None = None, hint: str = "") -> NoReturn:
        raise _Stop(message, start, min(len(self.text), start + 1) if end is None else end, hint)

    def tell(self, message: str, start: int, end: int) -> None:
        """An error after which reading goes on; each kind is told once."""
        if message not in self.told:
            self.told.add(message)
            self.reading.error("L101", f"not valid JSON: {message}", start, end)

    def blank(self, at: int) -> int:
        """Past white space, and past comments, which are told."""
        while True:
            match = _BLANK.match(self.text, at)
            at = match.end() if match else at
            comment = _COMMENT.match(self.text, at) if self.text[at : at + 1] in ("/", "#") else None
            if comment is None:
                return at
            self.tell("JSON has no comments", at, comment.end())
            at = comment.end()

    def value(self, at: int) -> tuple[Any, _Node]:
        at = self.at = self.blank(at)
        self.count += 1
        if self.count > MAX_NODES:
            raise TooMuch(too_many())
        char = self.text[at : at + 1]
        if char == '"':
            string, end = self.string(at)
            return string, _Node(at, end)
        if char in ("{", "["):
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise TooMuch(too_deep())
            result = self.mapping(at) if char == "{" else self.sequence(at)
            self.depth -= 1
            return result
        return self.scalar(at)

    def scalar(self, at: int) -> tuple[Any, _Node]:
        match = _NUMBER.match(self.text, at)
        if match and not _WORD.match(self.text, match.end()) and not self.text[match.end() : match.end() + 1].isdigit():
            return self.number(match), _Node(at, match.end())
        word = _WORD.match(self.text, at)
        if word and word[0] in _WORDS:
            return _WORDS[word[0]], _Node(at, word.end())
        if word:
            name = clean_line(word[0], 40)
            hint = "write true, false or null" if word[0].lower() in ("true", "false", "none", "nil", "null") else ""
            self.stop(f"{name} is not a JSON value", at, word.end(), hint or "a text needs double quotes")
        if at >= len(self.text):
            self.stop("the text ends too early" if self.text.strip() else "the file is empty", at)
        if self.text[at] == "'":
            self.stop("a text needs double quotes", at)
        return self.stop(f"unexpected {clean_line(self.text[at])!r}", at)

    def number(self, match: re.Match[str]) -> int | float:
        if len(match[0]) > _MAX_DIGITS:
            self.stop("a number has too many digits", match.start(), match.end())
        if match[1] is None and match[2] is None:
            return int(match[0])
        number = float(match[0])
        if not math.isfinite(number):
            self.stop(f"{match[0]} is too large for a number", match.start(), match.end())
        return number

    def string(self, at: int) -> tuple[str, int]:
        match = _STRING.match(self.text, at)
        if match is not None:
            return match[1], match.end()
        match = _ESCAPED.match(self.text, at)
        if match is None:
            self.bad_string(at)
        value: str = json.loads(match[0])
        if _SURROGATE.search(value):
            self.stop("half of a surrogate pair", at, match.end())
        return value, match.end()

    def bad_string(self, at: int) -> NoReturn:
        good = _STRING_PART.match(self.text, at + 1)
        end = good.end() if good else at + 1
        char = self.text[end : end + 1]
        if char == "\\":
            self.stop(f"{clean_line(self.text[end : end + 2])} is not an escape", end, min(end + 2, len(self.text)))
        if char in ("\n", "\r"):
            self.stop("a text must not run over a line end", end, hint="write \\n")
        if char:
            self.stop(f"the character U+{ord(char):04X} must be escaped", end)
        self.stop("the text has no closing quote", at)

    def mapping(self, at: int) -> tuple[dict[str, Any], _Node]:
        data: dict[str, Any] = {}
        items: dict[str, tuple[tuple[int, int], _Node]] = {}
        start, at = at, self.blank(at + 1)
        while self.text[at : at + 1] != "}":
            if self.text[at : at + 1] != '"':
                self.at = at
                self.no_key(at)
            key, end = self.string(at)
            if key in items:
                self.twice(key, items[key][0][0], at, end)
            colon = self.blank(end)
            if self.text[colon : colon + 1] != ":":
                self.stop("a ':' must follow the key", colon)
            data[key], node = self.value(colon + 1)
            items[key] = ((at, end), node)
            at = self.comma(node.end, "}")
        return data, _Node(start, at + 1, items)

    def sequence(self, at: int) -> tuple[list[Any], _Node]:
        data: list[Any] = []
        items: list[_Node] = []
        start, at = at, self.blank(at + 1)
        while self.text[at : at + 1] != "]":
            value, node = self.value(at)
            data.append(value)
            items.append(node)
            at = self.comma(node.end, "]")
        return data, _Node(start, at + 1, items)

    def comma(self, at: int, closing: str) -> int:
        """Past the comma between two items; at the closing bracket after the last one."""
        after = self.blank(at)
        char = self.text[after : after + 1]
        if char == closing:
            return after
        if char != ",":
            if not char:
                self.stop(f"the text ends before the closing '{closing}'", after)
            self.stop(f"a ',' or '{closing}' must follow", at)
        following = self.blank(after + 1)
        if self.text[following : following + 1] == closing:
            self.tell("a comma before a closing bracket", after, after + 1)
        return following

    def no_key(self, at: int) -> NoReturn:
        if at >= len(self.text):
            self.stop("the text ends before the closing '}'", at)
        self.stop("a key needs double quotes", at)

    def twice(self, key: str, first: int, start: int, end: int) -> None:
        message = f"key '{clean_line(key, 80)}' is written twice, first at {position(self.text, first)}"
        self.reading.error("L103", message, start, end)


class _JsonLayout:
    """Places of values, found by walking along a path."""

    def __init__(self, root: _Node) -> None:
        self._root = root

    def spot(self, path: Path) -> Spot | None:
        node, key = self._root, None
        for part in path:
            if isinstance(node.items, dict) and isinstance(part, str) and part in node.items:
                key, node = node.items[part]
            elif isinstance(node.items, list) and isinstance(part, int) and 0 <= part < len(node.items):
                key, node = None, node.items[part]
            else:
                return None
        if node.items is None:
            return Spot(node.start, node.end, key, "scalar", '"')
        return Spot(node.start, node.end, key, "mapping" if isinstance(node.items, dict) else "sequence", "flow")
