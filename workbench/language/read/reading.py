"""The result of reading a text, in whichever format, and the limit of how much is read."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from workbench.language.problem import Severity
from workbench.language.read.source import Layout, NoLayout

MAX_BYTES = 1 << 20
MAX_DOT_BYTES = 16 << 20
"""Of a text in DOT: 10,000 nodes with a prompt of 1,500 characters each."""
MAX_DEPTH = 100
MAX_NODES = 100_000


class TooMuch(Exception):
    """A text beyond the limits."""


def too_deep() -> str:
    return f"too deep: more than {MAX_DEPTH} levels"


def too_many() -> str:
    return f"too large: more than {MAX_NODES:,} values"


def position(text: str, offset: int) -> str:
    """Line and column of an offset, for a message: ``3:14``."""
    before = text[:offset]
    line = before.count("\n") + before.count("\r") - before.count("\r\n") + 1
    return f"{line}:{offset - max(before.rfind(chr(10)), before.rfind(chr(13)))}"


class Fault(Struct, frozen=True):
    """A problem before its file, line and column are known: offsets into the text."""

    severity: Severity
    code: str
    message: str
    start: int
    end: int
    hint: str = ""


class Reading(Struct):
    """A value, the places of its parts, and its problems."""

    data: Any = None
    layout: Layout = field(default_factory=NoLayout)
    faults: list[Fault] = field(default_factory=list)

    def error(self, code: str, message: str, start: int, end: int, hint: str = "") -> None:
        self.faults.append(Fault(Severity.ERROR, code, message, start, end, hint))
