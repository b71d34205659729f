"""Inputs as people write them, one line for each, and the file that keeps them beside a cascade."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.language.clean import clean_line
from workbench.replacing import write_whole
from workbench.workspace.input_file import CannotOpen, input_file


def as_line(value: Any) -> str:
    """A value as one line; a text that has line breaks, or would be read as JSON, as JSON."""
    if isinstance(value, str) and clean_line(value) == value and from_line(value) == value:
        return value
    return json.dumps(value)


def from_line(line: str) -> Any:
    """What a line means: objects, lists, numbers, true, false and null as JSON, else the text."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return line


def write_input(cascade: Path, values: Mapping[str, Any]) -> Path:
    """Keep an input beside a cascade, completely or not at all. Returns the file. Raises CannotOpen."""
    file = input_file(cascade)
    try:
        write_whole(file, (json.dumps(dict(values), indent=2, ensure_ascii=False) + "\n").encode("utf-8", "replace"))
    except OSError as fault:
        raise CannotOpen(f"{file}: error: cannot be written: {fault.strerror}") from fault
    return file
