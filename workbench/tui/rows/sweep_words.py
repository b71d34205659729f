"""A sweep in words: marks, medians, spreads, points for a plot, JSON; for the command and for the app."""

from __future__ import annotations

import string
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from workbench.engine.sweep import BASELINE, FILE, Spread, Sweep, Tried
from workbench.tui.rows.numbers import UNKNOWN, plural
from workbench.tui.rows.plot import Point

X_TITLE = "tokens sent, relative to snowball"
Y_TITLE = "input cost, relative to snowball (predicted)"
LEGEND = "S snowball  F the file  letters: the front  · others  x invalid"


def points(sweep: Sweep) -> list[Point]:
    """The strategies with a known cost; those of the front come first, so that others never hide them."""
    found = [
        Point(tried.tokens.median, tried.cost.median, mark, tried.label, _token(tried, mark))
        for tried, mark in zip(sweep.rows, marks(sweep), strict=True)
        if tried.cost is not None
    ]
    return sorted(found, key=lambda point: (point.mark in "·x", point.mark == "·"))


def _token(tried: Tried, mark: str) -> str:
    return "error" if tried.invalid else "ok" if tried.on_front else "bold" if mark in "SF" else "dim"


def sweep_json(sweep: Sweep) -> dict[str, Any]:
    """Everything, run by run. Unknown numbers are null."""
    return {
        "predicted": True,
        "baseline": BASELINE,
        "runs": list(sweep.runs),
        "skipped": list(sweep.skipped),
        "notes": list(fallback_lines(sweep)),
        "strategies": [
            {
                "strategy": tried.label,
                "spec": tried.spec,
                "tokens": asdict(tried.tokens),
                "cost": asdict(tried.cost) if tried.cost is not None else None,
                "unknown_costs": tried.unknown,
                "peak": tried.peak,
                "invalid": tried.invalid,
                "pareto": tried.on_front,
                "by_run": [
                    {"run": t.run, "tokens": t.tokens, "cost": t.cost, "totals": asdict(t.totals)} for t in tried.trials
                ],
            }
            for tried in sweep.rows
        ],
    }


def fallback_lines(sweep: Sweep) -> Iterator[str]:
    """For each strategy whose selecting model left no answer to be read: in how many calls the heuristic selects."""
    for tried in sweep.rows:
        if runs := [trial.fell_back for trial in tried.trials if trial.fell_back]:
            where = plural(sum(runs), "call") + (f" of {plural(len(runs), 'run')}" if len(sweep.runs) > 1 else "")
            yield f"{tried.label} has no answer of a selecting model in {where}: the heuristic selects"


def marks(sweep: Sweep) -> list[str]:
    """A letter for each strategy of the front, S and F for the two that are always there."""
    letters = _letters()
    marks = []
    for tried in sweep.rows:
        if tried.label in (BASELINE, FILE):
            marks.append("S" if tried.label == BASELINE else "F")
        elif tried.on_front:
            marks.append(next(letters))
        else:
            marks.append("x" if tried.invalid else "·")
    return marks


def _letters() -> Iterator[str]:
    yield from string.ascii_lowercase.replace("x", "")
    while True:
        yield "*"


def median(spread: Spread | None) -> str:
    return UNKNOWN if spread is None else f"{spread.median:.2f}x"


def spread_words(spread: Spread | None) -> str:
    return "" if spread is None else f"{spread.low:.2f} to {spread.high:.2f}"


def unknown_words(tried: Tried, several: bool) -> str:
    return f" ({tried.unknown} unknown)" if several and tried.unknown and tried.cost is not None else ""
