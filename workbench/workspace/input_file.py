"""The input of a run that was given none: ``<stem>.input.json`` beside the cascade file. The app reads it before its
first frame, so this imports nothing of the language."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ENDING = ".input.json"


class CannotOpen(Exception):
    """A file that cannot be read; the message begins with its name."""


def input_file(cascade: Path) -> Path:
    """The place of a cascade file's default input."""
    return cascade.with_name(cascade.stem + ENDING)


def default_input(cascade: Path) -> dict[str, Any]:
    """The content of that file; an empty input if it is missing. Raises CannotOpen when it is no JSON object."""
    file = input_file(cascade)
    try:
        value = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except json.JSONDecodeError as fault:
        raise CannotOpen(f"{file}:{fault.lineno}:{fault.colno}: error: not valid JSON: {fault.msg}") from fault
    except (OSError, ValueError) as fault:
        raise CannotOpen(f"{file}: error: cannot be read: {fault}") from fault
    if not isinstance(value, dict):
        raise CannotOpen(f"{file}:1:1: error: the input is no JSON object")
    return value
