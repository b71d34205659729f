"""Colours of YAML, JSON and DOT, one line at a time: enough to read by, cheap enough to do while drawing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from workbench.views.cells import Span

_YAML = re.compile(
    r"""(?P<comment>(?:^|(?<=\s))\#.*$)
      | (?P<template>\{\{.*?\}\}|\{%.*?%\})
      | (?P<key>(?:^\s*(?:-\s+)*|(?<=[{,]\s)|(?<=[{,]))(?:"[^"]*"|'[^']*'|[A-Za-z_][\w.\-]*)\s*:(?=\s|$))
      | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')
      | (?P<number>(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])|\b(?:true|false|null)\b)""",
    re.VERBOSE,
)

_JSON = re.compile(  # A text that was cut ends with its sign instead of its quotation mark.
    r"""(?P<key>"(?:[^"\\]|\\.)*"\s*:)
      | (?P<string>"(?:[^"\\]|\\.)*"|"(?:[^"\\…]|\\.)*…)
      | (?P<number>(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\b(?:true|false|null)\b)""",
    re.VERBOSE,
)

_DOT = re.compile(
    r"""(?P<comment>//.*$|/\*.*?(?:\*/|$)|^\s*\#.*$)
      | (?P<string>"(?:[^"\\]|\\.)*(?:"|$))
      | (?P<key>\b[A-Za-z_][\w.]*(?=\s*=[^=])|\b(?:strict|digraph|graph|subgraph|node|edge)\b)
      | (?P<template>->|--)
      | (?P<number>(?<![\w.])-?\d+(?:\.\d+)?(?:ms|s|m|h|d)?(?![\w.])|\b(?:true|false)\b)""",
    re.VERBOSE,
)
_OPENED = re.compile(r'"(?:[^"\\]|\\.)*"|//.*|/\*.*?\*/|(?P<string>"(?:[^"\\]|\\.)*\\?$)|(?P<comment>/\*.*$)')
_CLOSED = {"string": re.compile(r'(?:[^"\\]|\\.)*(?:"|\\?$)'), "comment": re.compile(r".*?(?:\*/|$)")}
_DIGRAPH = re.compile(r"(?m)^[ \t]*(?:strict[ \t]+)?digraph\b")

LONGEST = 1000
"""Characters of a line beyond which it stays plain."""


def _paint(pattern: re.Pattern[str], line: str) -> tuple[Span, ...]:
    if len(line) > LONGEST:
        return ((line, "plain"),)
    spans: list[Span] = []
    position = 0
    for match in pattern.finditer(line):
        if match.start() > position:
            spans.append((line[position : match.start()], "plain"))
        spans.append((match.group(), f"code-{match.lastgroup}"))
        position = match.end()
    if position < len(line) or not spans:
        spans.append((line[position:], "plain"))
    return tuple(spans)


@lru_cache(maxsize=2048)
def yaml(line: str) -> tuple[Span, ...]:
    """A line of YAML with Jinja in it."""
    return _paint(_YAML, line)


@lru_cache(maxsize=2048)
def json(line: str) -> tuple[Span, ...]:
    """A line of JSON as ``json.dumps`` indents it."""
    return _paint(_JSON, line)


def dot(line: str) -> tuple[Span, ...]:
    """A line of DOT that no string and no comment reaches into."""
    return _paint(_DOT, line)


def dot_lines(lines: Iterable[str]) -> Iterator[tuple[Span, ...]]:
    """The lines of a text in DOT; strings and comments may go over several."""
    inside = ""
    for line in lines:
        spans: tuple[Span, ...] = ()
        rest = line
        if inside:
            match = _CLOSED[inside].match(line)
            end = match.end() if match is not None else len(line)
            spans, rest = ((line[:end], f"code-{inside}"),), line[end:]
            ends = '"' if inside == "string" else "*/"
            if not line[:end].endswith(ends):
                yield spans
                continue
        opened = next((found.lastgroup for found in _OPENED.finditer(rest) if found.lastgroup), None)
        inside = opened or ""
        yield (*spans, *dot(rest)) if rest else spans


def of(text: str) -> Callable[[str], tuple[Span, ...]]:
    """Returns the function that paints the lines of a file."""
    return dot if _DIGRAPH.search(text, 0, 4000) is not None else yaml
