"""Problems of a file with their places. An error is a value until a caller has to stop."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, NamedTuple

from msgspec import Struct

Path = tuple[str | int, ...]
"""The place of a value in a document: ``("phases", 1, "rules", "max_turns")``."""


class Severity(StrEnum):
    """An error opens but does not run; a warning runs, probably not as meant."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class TextSpan(NamedTuple):
    """A stretch of a file: lines and columns from 1 in characters, the end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


class Problem(Struct, frozen=True):
    """One finding. ``fix`` is the text to put at the span instead, if it is obvious."""

    severity: Severity
    code: str
    message: str
    file: str = ""
    span: TextSpan = TextSpan(1, 1, 1, 1)
    path: Path = ()
    hint: str = ""
    fix: str | None = None

    def __str__(self) -> str:
        """``file:line:column: severity: message (hint) [code]``, as compilers print it."""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.file}:{self.span.line}:{self.span.column}: {self.severity}: {self.message}{hint} [{self.code}]"

    def to_json(self) -> dict[str, Any]:
        return {
            "severity": str(self.severity),
            "code": self.code,
            "message": self.message,
            "file": self.file,
            "line": self.span.line,
            "column": self.span.column,
            "end_line": self.span.end_line,
            "end_column": self.span.end_column,
            "path": path_text(self.path),
            "hint": self.hint,
            "fix": self.fix,
        }


def path_text(path: Path) -> str:
    """``phases[1].rules.max_turns``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def path_of(text: str) -> Path:
    """The path that a text spells: ``phases[0].rules.max_turns``; empty for other texts."""
    path: list[str | int] = []
    for part in text.replace("[", ".[").split("."):
        number = part[1:-1] if part.startswith("[") and part.endswith("]") else ""
        path.append(int(number) if number.isdigit() else part)
    return tuple(path)


def texts_of(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """All texts inside a value of plain data, keys apart, with their paths."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from texts_of(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from texts_of(item, (*path, index))
