"""Breakpoints outlive the app: they are kept for each cascade file, in the user's state folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from workbench.engine.condition import ConditionError, compile_condition
from workbench.engine.stepper import Breakpoint
from workbench.workspace.folders import Folders

_MOST = 1_000
"""Breakpoints that are read back; a file with more was not written here."""


def load_breakpoints(folders: Folders, cascade: Path) -> list[Breakpoint]:
    """The breakpoints of a cascade file; none where nothing, or nothing sensible, is kept."""
    try:
        kept = json.loads(_file(folders, cascade).read_text("utf-8"))
    except (OSError, ValueError):
        return []
    rows = kept.get("breakpoints", []) if isinstance(kept, dict) else []
    return [point for row in rows[:_MOST] if (point := _read(row)) is not None]


def keep_breakpoints(folders: Folders, cascade: Path, points: Sequence[Breakpoint]) -> None:
    """Keep these for the next time the file is opened. Raises OSError where the state folder cannot be written."""
    file = _file(folders, cascade)
    if not points:
        file.unlink(missing_ok=True)
        return
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    body = {"file": str(cascade), "breakpoints": [asdict(point) for point in points]}
    fresh = file.with_suffix(".new")
    fresh.write_text(json.dumps(body, indent=2) + "\n", "utf-8")
    fresh.replace(file)


def _file(folders: Folders, cascade: Path) -> Path:
    name = hashlib.sha256(str(cascade.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return folders.state / "breakpoints" / f"{name}.json"


def _read(row: object) -> Breakpoint | None:
    """A breakpoint as it was kept; None for what is none, a condition that cannot be read included."""
    if not isinstance(row, dict):
        return None
    phase, turn, tool, condition = (row.get(name, "") for name in ("phase", "turn", "tool", "condition"))
    if not (isinstance(phase, str) and isinstance(tool, str) and isinstance(condition, str)):
        return None
    try:
        if condition:
            compile_condition(condition)
    except ConditionError:
        return None
    return Breakpoint(phase, turn if isinstance(turn, int) and turn > 0 else 0, tool, condition)
