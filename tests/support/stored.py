"""Texts that are stored beside the tests: what the program says of an example, word by word."""

from __future__ import annotations

import difflib
import os
from itertools import islice
from pathlib import Path

UPDATE = "WORKBENCH_UPDATE_SNAPSHOTS"
"""Set in the environment, texts are written instead of compared; review them before they are kept."""
_UPDATES = bool(os.environ.get(UPDATE))  # Tests that run alone take it from the environment.
SHOWN_LINES = 40
"""Lines of a difference that a failing test shows."""


def check_stored(file: Path, content: str) -> None:
    """Compare a text with the stored one. Raises AssertionError with what differs and the command that writes it."""
    if _UPDATES:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, "utf-8")
        return
    stored = file.read_text("utf-8") if file.exists() else ""
    if content != stored:
        raise AssertionError(_told(file, stored, content))


def _told(file: Path, stored: str, content: str) -> str:
    lines = difflib.unified_diff(
        stored.splitlines(), content.splitlines(), f"stored {file.name}", "now", lineterm="", n=1
    )
    shown = list(islice(lines, SHOWN_LINES + 1))
    if len(shown) > SHOWN_LINES:
        shown[SHOWN_LINES:] = ["…"]
    test = os.environ.get("PYTEST_CURRENT_TEST", "tests").rpartition(" ")[0] or "tests"
    anew = f"if this is what you meant: {UPDATE}=1 .venv/bin/python -m pytest -q '{test}'"
    return "\n".join([f"{file.name} is not what it was" if stored else f"there is no {file.name} yet", *shown, anew])
