"""The input of a run that was given none: ``<stem>.input.json`` beside the cascade file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ENDING = ".input.json"


def input_file(cascade: Path) -> Path:
    """Where the default input of a cascade file would lie."""
    return cascade.with_name(cascade.stem + ENDING)


def default_input(cascade: Path) -> dict[str, Any]:
    """What that file holds; an empty input where there is none. Raises CannotOpen when it is no JSON object."""
    file = input_file(cascade)
    try:
        value = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except json.JSONDecodeError as fault:
        raise _cannot_open(f"{file}:{fault.lineno}:{fault.colno}: error: not valid JSON: {fault.msg}") from fault
    except (OSError, ValueError) as fault:
        raise _cannot_open(f"{file}: error: cannot be read: {fault}") from fault
    if not isinstance(value, dict):
        raise _cannot_open(f"{file}:1:1: error: the input is no JSON object")
    return value


def _cannot_open(message: str) -> Exception:
    """Imported here alone: the app reads the input before its first frame."""
    from workbench.workspace.opened import CannotOpen

    return CannotOpen(message)
