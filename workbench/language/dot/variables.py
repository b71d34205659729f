"""Variables in the prompts of a pipeline: ``$goal``, ``$name``, ``${key.path}``, ``$codergen.ID.output``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_VARIABLE = re.compile(r"\$(?:\{(?P<braced>[A-Za-z_][\w.-]*)\}|(?P<bare>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*))")
OUTPUT = re.compile(r"codergen\.(\w+)\.output")
"""How dialects name the output of a node."""


class Variable(NamedTuple):
    """One use, with its place in the text."""

    name: str
    start: int
    end: int


def variables(text: str) -> Iterator[Variable]:
    """Every use of a variable in a text."""
    for match in _VARIABLE.finditer(text):
        yield Variable(match["braced"] or match["bare"], *match.span())


def expand(text: str, values: Mapping[str, str]) -> str:
    """A text with the known variables filled in, in one pass: what a value holds is not looked at again. An unknown
    one stays as it is written. Of ``$goal.`` the name is ``goal``: the longest known part of a bare name counts."""
    if "$" not in text:
        return text

    def filled(match: re.Match[str]) -> str:
        if match["braced"]:
            return values.get(match["braced"], match[0])
        name = match["bare"]
        while name not in values and "." in name:
            name = name.rpartition(".")[0]
        return values[name] + match[0][1 + len(name) :] if name in values else match[0]

    return _VARIABLE.sub(filled, text)
