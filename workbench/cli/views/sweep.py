"""A sweep as a table, a plot and JSON: tokens and cost relative to sending everything."""

from __future__ import annotations

from workbench.cli.layout import Column
from workbench.cli.output import Cell, Printer
from workbench.engine.sweep import BASELINE, FILE, Sweep
from workbench.tui.rows.numbers import count, plural
from workbench.tui.rows.plot import scatter
from workbench.tui.rows.svg import svg_scatter
from workbench.tui.rows.sweep_words import (
    LEGEND,
    X_TITLE,
    Y_TITLE,
    fallback_lines,
    marks,
    median,
    points,
    spread_words,
    unknown_words,
)


def print_sweep(sweep: Sweep, printer: Printer, *, plot: bool = False) -> None:
    """A row for each strategy; those on the Pareto front carry the letter under which the plot shows them."""
    several = len(sweep.runs) > 1
    columns = [Column("front" if printer.plain else "★"), Column("strategy", flexible=True, least=30)]
    spread = [Column("min to max", right=True, leaves=1)] if several else []
    columns += [Column("tokens", right=True), *spread, Column("cost", right=True), *spread]
    columns += [Column("peak", right=True, leaves=2), Column("invalid", right=True, leaves=3)]
    letters = marks(sweep)
    rows: list[list[str | Cell]] = []
    for tried, mark in zip(sweep.rows, letters, strict=True):
        style = "good" if tried.on_front else "bad" if tried.invalid else ""
        meant = "" if tried.spec in ("", tried.label) else f": {tried.spec}"
        row: list[str | Cell] = [Cell(mark if tried.on_front else "", "good"), Cell(f"{tried.label}{meant}", style)]
        row += [median(tried.tokens), *([spread_words(tried.tokens)] if several else [])]
        row += [median(tried.cost) + unknown_words(tried, several), *([spread_words(tried.cost)] if several else [])]
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
    for line in fallback_lines(sweep):
        printer.line(Cell(line, "warn"))
    if plot:
        printer.line()
        width = min(printer.width or 100, 100)
        for spans in scatter(points(sweep), X_TITLE, Y_TITLE, width):
            printer.line("".join(text for text, _ in spans))
        printer.line(Cell(LEGEND, "dim"))


def sweep_svg(sweep: Sweep) -> str:
    """The plot as an SVG document."""
    return svg_scatter(points(sweep), X_TITLE, Y_TITLE, tuple(fallback_lines(sweep)))
