"""Colours of YAML and JSON, one line at a time: enough to read by, cheap enough to do while drawing."""

from __future__ import annotations

import re
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

_JSON = re.compile(
    r"""(?P<key>"(?:[^"\\]|\\.)*"\s*:)
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<number>(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\b(?:true|false|null)\b)""",
    re.VERBOSE,
)

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
