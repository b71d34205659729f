"""What is wrong: with the file, in the run, with the request of the selected call; in one list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workbench.engine.event import Event
from workbench.engine.state import CallState, RunState
from workbench.language.problem import Problem, Severity, Span
from workbench.tui.rows.cells import Row, crop, fit, flat
from workbench.tui.rows.model import Rows


def of_run(run: RunState) -> Iterator[Problem]:
    """What a run warned of."""
    for event in run.warnings:
        yield _warning(event)


def _warning(event: Event) -> Problem:
    data = event.data
    line, column = _number(data.get("line")), _number(data.get("column")) or 1
    return Problem(
        Severity.WARNING,
        str(data.get("code", "run")),
        str(data.get("message", "")),
        str(data.get("file", "")),
        Span(line, column, line, column),
    )


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def of_call(call: CallState, file: str) -> Iterator[Problem]:
    """The broken invariants of a request."""
    for broken in call.problems:
        line = call.entries[broken.entry].rule.line if 0 <= broken.entry < len(call.entries) else 0
        where = f"{call.place.phase} · turn {call.place.turn}"
        code = f"invariant {broken.invariant}"
        yield Problem(Severity.ERROR, code, f"{where}: {broken.message}", file, Span(line, 1, line, 1))


class ProblemRows(Rows):
    """Problems of the file, then what the run warned of: ``L22:5  error  message (hint)``."""

    empty = ("No problems.",)

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)

    def __len__(self) -> int:
        return len(self.problems)

    def row(self, index: int, width: int) -> Row:
        problem = self.problems[index]
        token = {"error": "error", "warning": "warning"}.get(str(problem.severity), "dim")
        glyph = {"error": "✗", "warning": "⚠"}.get(str(problem.severity), "·")
        hint = f"  ({flat(problem.hint)})" if problem.hint else ""
        where = f"L{problem.span.line}:{problem.span.column}" if problem.span.line else ""
        return Row(
            crop(
                (
                    (" ", "plain"),
                    (f"{glyph} ", token),
                    (fit(where, 9), "faint"),
                    (flat(problem.message), "plain"),
                    (hint, "dim"),
                    (f"  {problem.code}", "faint"),
                ),
                width,
            )
        )

    def plain(self, index: int) -> str:
        return flat(str(self.problems[index]))
