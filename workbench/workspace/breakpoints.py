"""Breakpoints outlive the app: they are kept for each cascade file, in the user's state folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from workbench.engine.debugger.condition import ConditionError, compile_condition
from workbench.engine.debugger.stepper import Breakpoint
from workbench.workspace.folders import Folders
from workbench.workspace.state_file import StateFile

_MOST = 1_000
"""Breakpoints that are read back; a file with more was not written here."""


class _Breakpoints(Struct, frozen=True):
    file: str = ""
    breakpoints: list[Any] = []


def load_breakpoints(folders: Folders, cascade: Path) -> list[Breakpoint]:
    """The breakpoints of a cascade file; empty where none are kept, or where they cannot be read."""
    kept = _file(folders, cascade).read_or_none()
    rows = kept.breakpoints[:_MOST] if kept else ()
    return [point for row in rows if (point := _read(row)) is not None]


def keep_breakpoints(folders: Folders, cascade: Path, points: Sequence[Breakpoint]) -> None:
    """Keep these for the next time the file is opened. Raises OSError where the state folder cannot be written."""
    file = _file(folders, cascade)
    if points:
        file.write(_Breakpoints(str(cascade), [asdict(point) for point in points]))
    else:
        file.remove()


def _file(folders: Folders, cascade: Path) -> StateFile[_Breakpoints]:
    return StateFile.about(folders.state / "breakpoints", cascade.resolve(), _Breakpoints)


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
