"""A sweep as a table, a plot and JSON: tokens and cost relative to sending everything."""

from __future__ import annotations

import string
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from workbench.cli.output import Cell, Column, Printer
from workbench.cli.views.plot import Point, scatter, svg_scatter
from workbench.engine.sweep import BASELINE, FILE, Spread, Sweep, Tried
from workbench.tui.rows.numbers import UNKNOWN, count, plural

X_TITLE = "tokens sent, relative to snowball"
Y_TITLE = "input cost, relative to snowball (predicted)"


def print_sweep(sweep: Sweep, printer: Printer, *, plot: bool = False) -> None:
    """A row for each strategy; those on the Pareto front carry the letter under which the plot shows them."""
    several = len(sweep.runs) > 1
    columns = [Column("front" if printer.plain else "★"), Column("strategy", flexible=True), Column("tokens", True)]
    columns += [Column("min to max", True)] if several else []
    columns += [Column("cost", True)] + ([Column("min to max", True)] if several else [])
    columns += [Column("peak", True), Column("invalid", True)]
    marks = _marks(sweep)
    rows: list[list[str | Cell]] = []
    for tried, mark in zip(sweep.rows, marks, strict=True):
        style = "good" if tried.on_front else "bad" if tried.invalid else ""
        meant = "" if tried.spec in ("", tried.label) else f": {tried.spec}"
        row: list[str | Cell] = [Cell(mark if tried.on_front else "", "good"), Cell(f"{tried.label}{meant}", style)]
        row += [_median(tried.tokens), *([_range(tried.tokens)] if several else [])]
        row += [_median(tried.cost) + _unknown(tried, several), *([_range(tried.cost)] if several else [])]
        row += [
            count(tried.peak),
            Cell(count(tried.invalid) if tried.invalid else "0", "bad" if tried.invalid else "dim"),
        ]
        rows.append(row)
    printer.table(columns, rows)
    printer.line()
    over = f"medians over {plural(len(sweep.runs), 'run')}, " if several else ""
    printer.line(
        Cell(f"{over}relative to {BASELINE}; cost of the input, predicted; '{FILE}' is what the file says", "dim")
    )
    star = "letters" if printer.plain else "★"
    printer.line(Cell(f"{star}: no other valid strategy sends fewer tokens for the same money or less", "dim"))
    if plot:
        printer.line()
        width = min((printer.width or 100) - 10, 90)
        for line in scatter(points(sweep), X_TITLE, Y_TITLE, width):
            printer.line(line)
        printer.line(Cell(" " * 8 + "S snowball  F the file  letters: the front  · others  x invalid", "dim"))


def points(sweep: Sweep) -> list[Point]:
    """The strategies with a known cost; those of the front come first, so that others never hide them."""
    found = [
        Point(tried.tokens.median, tried.cost.median, mark, tried.label)
        for tried, mark in zip(sweep.rows, _marks(sweep), strict=True)
        if tried.cost is not None
    ]
    return sorted(found, key=lambda point: (point.mark in "·x", point.mark == "·"))


def sweep_svg(sweep: Sweep) -> str:
    """The plot as an SVG document."""
    return svg_scatter(points(sweep), X_TITLE, Y_TITLE)


def sweep_json(sweep: Sweep) -> dict[str, Any]:
    """Everything, run by run. Unknown numbers are null."""
    return {
        "predicted": True,
        "baseline": BASELINE,
        "runs": list(sweep.runs),
        "skipped": list(sweep.skipped),
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


def _marks(sweep: Sweep) -> list[str]:
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


def _median(spread: Spread | None) -> str:
    return UNKNOWN if spread is None else f"{spread.median:.2f}x"


def _range(spread: Spread | None) -> str:
    return "" if spread is None else f"{spread.low:.2f} to {spread.high:.2f}"


def _unknown(tried: Tried, several: bool) -> str:
    return f" ({tried.unknown} unknown)" if several and tried.unknown and tried.cost is not None else ""
