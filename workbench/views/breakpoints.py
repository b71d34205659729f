"""The breakpoints of a cascade as a list: where each stops a run, in words, and whether it is enabled."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from workbench.engine.debugger.condition import asked_at
from workbench.engine.debugger.stepper import Breakpoint
from workbench.engine.gate import StopKind
from workbench.views.cells import Row, Span, crop, fit, flat
from workbench.views.keys import told
from workbench.views.model import Rows
from workbench.views.signs import sign
from workbench.views.text import hung

NAME = 34
"""Cells of what was written, at most."""


def meaning(point: Breakpoint) -> str:
    """Returns where a breakpoint stops a run: ``before turn 3 of triage, where tokens > 6000``."""
    if point.edge or point.outcome:
        where = _way_on(point)
    elif point.tool:
        where = f"before the tool {point.tool}" + (f" in {point.room}" if point.phase else "")
    elif point.turn:
        where = f"before turn {point.turn} of {point.room}"
    elif point.phase and not point.condition and not point.visit:
        where = f"where {point.phase} begins"
    else:
        when = _WHEN[asked_at(point) if point.condition else StopKind.BEFORE_CALL]
        where = f"{when} of {point.room}" if point.phase else when
    return f"{where}, where {point.condition}" if point.condition else where


_WHEN = {
    StopKind.BEFORE_CALL: "before each call",
    StopKind.AFTER_CALL: "after each call",
    StopKind.AFTER_ROUTE: "at each end of a phase",
}


def _way_on(point: Breakpoint) -> str:
    outcome = f"has come to {point.outcome}" if point.outcome else "has ended"
    ended = f"where {point.phase or 'a phase'} {outcome}"
    if not point.edge:
        return ended
    source, target = point.phase or "any phase", point.to or "any other"
    edge = f"the edge from {source} to {target} is {point.edge}"
    return f"{ended} and {edge}" if point.outcome else f"where {edge}"


class BreakpointRows(Rows):
    """One row for each. The list is that of the session, so that it shows every change."""

    spreads = True

    def __init__(self, points: Sequence[Breakpoint]) -> None:
        self.points = points
        self.title = (("Breakpoints", "title"),)

    @property
    def empty(self) -> tuple[str, ...]:  # type: ignore[override]
        return (
            "No breakpoints.",
            told("{breakpoints.add} adds one, by phase, turn, edge, outcome, tool or condition."),
        )

    def __len__(self) -> int:
        return len(self.points)

    def row(self, index: int, width: int) -> Row:
        before, words = self._parts(index, width)
        return Row(crop((*before, words), width))

    def whole(self, index: int, width: int) -> tuple[Row, ...]:
        before, words = self._parts(index, width)
        return hung(before, (words,), width)

    def _parts(self, index: int, width: int) -> tuple[tuple[Span, ...], Span]:
        """Its mark and name, and what it means."""
        point = self.points[index]
        mark = ("◇", "faint") if point.disabled else sign("breakpoint")
        token = "faint" if point.disabled else "plain"
        widest = max(cell_len(flat(str(one))) for one in self.points)
        name = fit(flat(str(point)), max(12, min(NAME, widest, width // 2)))
        words = flat(meaning(point)) + ("  (disabled)" if point.disabled else "")
        return ((" ", "plain"), mark, (" ", "plain"), (f"{name}  ", token)), (words, "dim")

    def plain(self, index: int) -> str:
        return f"{self.points[index]}  {meaning(self.points[index])}"
