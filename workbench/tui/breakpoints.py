"""Breakpoints as a person writes them: ``triage``, ``triage:3``, ``tool read_log``, ``triage tokens > 6000``."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.engine.condition import ConditionError, compile_condition
from workbench.engine.stepper import Breakpoint


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
