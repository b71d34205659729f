"""The answer to a question in SQL on a terminal: a table where its columns find room, else a block for each row."""

from __future__ import annotations

from workbench.cli.layout import Column, fits, width_of
from workbench.cli.output import Cell, Printer
from workbench.language.clean import clean_line
from workbench.store.formats import CELL, is_number, shown, summary_line
from workbench.store.table import Table

LEAST = 16
"""Columns that are left of a text before rows become blocks."""
_LONG = 2000
"""Characters of a value in a block."""


def print_answer(table: Table, printer: Printer) -> None:
    """Write it whole; ``printer`` is on a terminal."""
    columns = [
        Column(clean_line(c.name, CELL), right=is_number(c.type), flexible=not is_number(c.type), least=LEAST)
        for c in table.columns
    ]
    rows = [[shown(value, CELL) for value in row] for row in table.rows]
    widths = [max(width_of(c.title), *(width_of(row[i]) for row in rows), 1) for i, c in enumerate(columns)]
    if printer.width is None or fits(columns, widths, printer.width):
        printer.table(columns, rows)
    else:
        _print_blocks(table, [column.title for column in columns], printer)
    printer.line(Cell(summary_line(table), "dim"))


def _print_blocks(table: Table, names: list[str], printer: Printer) -> None:
    widest = max(map(width_of, names))
    for number, row in enumerate(table.rows, start=1):
        printer.line(Cell(f"row {number:,}", "dim"))
        for name, value in zip(names, row, strict=True):
            printer.line(Cell(name + " " * (widest - width_of(name)), "head"), "  ", shown(value, _LONG))
