"""Breakpoints outlive the app: they are kept for each cascade file, in the user's state folder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import asdict

from workbench.engine.debugger.condition import ConditionError, compile_condition
from workbench.engine.debugger.stepper import ARROW, CONSIDERED, OUTCOME, TAKEN, TOOL, Breakpoint
from workbench.language.nearest import nearest
from workbench.workspace.folders import Folders
from workbench.workspace.state_file import StateFile

_MOST = 1_000
"""Breakpoints that are read back; a file with more was not written here."""


class _Breakpoints(Struct, frozen=True):
    file: str = ""
    breakpoints: list[Any] = []


def load_breakpoints(folders: Folders, cascade: Path) -> list[Breakpoint]:
    """The kept breakpoints of a cascade file; empty if there are none, or they cannot be read."""
    kept = _file(folders, cascade).read_or_none()
    rows = kept.breakpoints[:_MOST] if kept else ()
    return [point for row in rows if (point := _read(row)) is not None]


def keep_breakpoints(folders: Folders, cascade: Path, points: Sequence[Breakpoint]) -> None:
    """Keep these for the next time the file is opened. Raises OSError if the state folder cannot be written."""
    file = _file(folders, cascade)
    if points:
        file.write(_Breakpoints(str(cascade), [asdict(point) for point in points]))
    else:
        file.remove()


def _file(folders: Folders, cascade: Path) -> StateFile[_Breakpoints]:
    return StateFile.about(folders.state / "breakpoints", cascade.resolve(), _Breakpoints)


def _read(row: object) -> Breakpoint | None:
    """A kept breakpoint; None for an invalid one, including an unreadable condition."""
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
    disabled, turn = row.get("disabled") is True, turn if isinstance(turn, int) and turn > 0 else 0
    edge, to, outcome = (row.get(name, "") for name in ("edge", "to", "outcome"))
    if edge not in ("", TAKEN, CONSIDERED) or not (isinstance(to, str) and isinstance(outcome, str)):
        return None
    visit = row.get("visit")
    visit = visit if isinstance(visit, int) and visit > 0 else 0
    return Breakpoint(phase, turn, tool, condition, disabled, edge, to, outcome, visit)


class BreakpointError(Exception):
    """A breakpoint that cannot be read, in words."""


def parse_breakpoint(text: str, phases: Sequence[str], edges: Sequence[tuple[str, str]] = ()) -> Breakpoint:
    """Read a breakpoint: an optional phase with an optional visit and turn, an optional edge, outcome and tool, an
    optional condition. ``edges``: where each edge of the file begins and ends.

    Raises BreakpointError, also for a phase and for an edge that the file does not have, naming the nearest.
    """
    words = text.split()
    phase, visit, turn, tool, outcome, to = "", 0, 0, "", "", ""
    edge: Literal["", "taken", "considered"] = ""
    if ARROW in words and (at := words.index(ARROW)) <= _LONGEST_NAME:
        phase, to, edge, words = _edge(words[:at], words[at + 1 :], phases, edges)
    elif head := _longest(words, phases):
        phase, words = head
    elif words and (found := _place(words[0], phases)):
        (phase, visit, turn), words = found, words[1:]
    if _names(OUTCOME, words):
        outcome, words = words[1].strip("'\""), words[2:]
    if _names(TOOL, words):
        tool, words = words[1], words[2:]
    condition = " ".join(words)
    if not (phase or tool or condition or edge or outcome):
        raise BreakpointError("a breakpoint is a phase, phase:turn, FROM -> TO, outcome WORD, tool NAME or a condition")
    if condition.isidentifier() and condition not in ("problems", "masked", "breaks", TOOL, TAKEN, CONSIDERED):
        raise BreakpointError(f"name it: {OUTCOME} WORD" if condition == OUTCOME else _unknown(condition, phases))
    if condition:
        try:
            compile_condition(condition)
        except ConditionError as fault:
            raise BreakpointError(f"the condition {fault}{LIKE if fault.is_form else ''}") from fault
    return Breakpoint(phase, turn, tool, condition, edge=edge, to=to, outcome=outcome, visit=visit)


LIKE = "; write it like tokens > 6000, model == 'gpt-4.1' or 'some words' in text"


def _names(what: str, words: Sequence[str]) -> bool:
    """Returns whether words begin with an outcome or a tool that is named, rather than with a condition about it."""
    if len(words) < 2 or words[0] != what:
        return False
    return words[1][0] not in "=!<>" and words[1] not in ("in", "not", "and", "or")


_LONGEST_NAME = 40
"""Words of the name of a phase, at most."""


def _longest(words: Sequence[str], phases: Sequence[str]) -> tuple[str, list[str]] | None:
    """The phase that the first words name, and the words behind it: ids of tasks may hold blanks."""
    for length in range(min(len(words), _LONGEST_NAME), 0, -1):
        if (name := " ".join(words[:length])) in phases:
            return name, list(words[length:])
    return None


def _edge(
    before: Sequence[str], behind: Sequence[str], phases: Sequence[str], edges: Sequence[tuple[str, str]]
) -> tuple[str, str, Literal["taken", "considered"], list[str]]:
    """Returns where an edge begins and ends, whether it has to be taken, and the words behind it. Raises
    BreakpointError."""
    source = " ".join(before)
    if source and source not in phases:
        raise BreakpointError(_unknown(source, phases))
    kind: Literal["taken", "considered"] = TAKEN
    rest, to = list(behind), ""
    if rest and rest[0] not in (TAKEN, CONSIDERED, OUTCOME):
        found = _longest(rest, phases)
        if found is None:
            raise BreakpointError(_unknown(rest[0], phases))
        to, rest = found
    if rest and rest[0] in (TAKEN, CONSIDERED) and (len(rest) == 1 or rest[1] != "=="):
        kind = CONSIDERED if rest.pop(0) == CONSIDERED else TAKEN
    if not source and not to:
        raise BreakpointError("an edge is FROM -> TO, FROM -> or -> TO")
    if not any((not source or source == a) and (not to or to == b) for a, b in edges):
        known = [f"{a} -> {b}" for a, b in edges if a == source] or [f"{a} -> {b}" for a, b in edges if b == to]
        there = f"; there is {', '.join(known[:MOST_NAMED])}" if known else ""
        raise BreakpointError(f"no edge leads {f'from {source}' if source else ''} to {to or 'anywhere'}{there}")
    return source, to, kind, rest


MOST_NAMED = 12
"""Names that an error lists."""


def _unknown(word: str, phases: Sequence[str]) -> str:
    near = nearest(word, tuple(phases))
    if near:
        return f"there is no phase '{word}' (did you mean '{near}'?)"
    more = ", …" if len(phases) > MOST_NAMED else ""
    return f"there is no phase '{word}'; phases are {', '.join(phases[:MOST_NAMED])}{more}"


def _place(word: str, phases: Sequence[str]) -> tuple[str, int, int] | None:
    """A phase, its visit and its turn as a word says them, 0 for each that it leaves out: ``agent#2``, ``look:3``,
    ``look#2:3``."""
    for phase in phases:
        if word.startswith(phase) and (found := _NUMBERS.fullmatch(word, len(phase))):
            return phase, int(found["visit"] or 0), int(found["turn"] or 0)
    return None


_NUMBERS = re.compile(r"(?:#(?P<visit>[1-9][0-9]{0,8}))?(?::(?P<turn>[0-9]{1,9}))?", re.ASCII)
