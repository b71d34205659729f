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
    disabled = row.get("disabled") is True
    return Breakpoint(phase, turn if isinstance(turn, int) and turn > 0 else 0, tool, condition, disabled)


class BreakpointError(Exception):
    """A breakpoint that cannot be read, in words."""


def parse_breakpoint(text: str, phases: Sequence[str]) -> Breakpoint:
    """Read a breakpoint: an optional phase with an optional turn, an optional tool, an optional condition.

    Raises BreakpointError, also for a phase that the cascade does not have.
    """
    words = text.split()
    phase, turn, tool = "", 0, ""
    if words and (words[0] in phases or _place(words[0], phases)):
        head = words.pop(0)
        phase, turn = (head, 0) if head in phases else _place(head, phases) or ("", 0)
    if len(words) > 1 and words[0] == "tool":
        tool = words[1]
        words = words[2:]
    condition = " ".join(words)
    if not (phase or tool or condition):
        raise BreakpointError("a breakpoint is a phase, phase:turn, tool NAME or a condition")
    if condition:
        try:
            compile_condition(condition)
        except ConditionError as fault:
            known = f"; phases are {', '.join(phases)}" if len(words) == 1 and phases else ""
            raise BreakpointError(f"the condition {fault}{known}") from fault
        if condition.isidentifier() and condition not in ("problems", "masked", "tool"):
            raise BreakpointError(f"there is no phase '{condition}'; phases are {', '.join(phases)}")
    return Breakpoint(phase, turn, tool, condition)


def _place(word: str, phases: Sequence[str]) -> tuple[str, int] | None:
    phase, colon, turn = word.rpartition(":")
    return (phase, int(turn)) if colon and phase in phases and turn.isdigit() else None
