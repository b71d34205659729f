"""The answer to a question in SQL as a grid, and one of its rows in full."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from rich.cells import cell_len

from workbench.language.clean import clean_line
from workbench.store.index.table import Column as Field
from workbench.store.index.table import ResultTable as Answer
from workbench.store.index.table import summary_line
from workbench.views.cells import Row, Span, crop, fit, flat
from workbench.views.model import Rows
from workbench.views.text import TextLine, TextRows, text_lines
from workbench.views.value import Block, Cell, Column, Piece, Table, View

WIDEST = 44
"""Cells of a column; a row in full shows all."""
MEASURED = 300
"""Rows that decide how wide a column is."""
GAP = 2
DECIMALS = 6
NULL = "NULL"
CELL, LONG = 60, 2000
"""Characters of a value that a table of the command line shows, and a block of one row."""
_NUMBERS = ("Int", "UInt", "Float", "Decimal")
LEAST = 16
"""Columns that are left of a text before rows become blocks."""


def shown(value: Any) -> str:
    """A value as text on one line."""
    if value is None:
        return NULL
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def short(value: Any) -> str:
    """A value as a cell of the grid shows it: like ``shown``, but at most six decimals that count."""
    if not isinstance(value, float) or not math.isfinite(value) or not value:
        return shown(value)
    return str(round(value, DECIMALS - 1 - min(-1, math.floor(math.log10(abs(value))))))


def _is_number(column: Field) -> bool:
    return column.type.removeprefix("Nullable(").removeprefix("LowCardinality(").startswith(_NUMBERS)


class AnswerView(View):
    """A table where its columns find room, else a block of lines for each row."""

    def __init__(self, table: Answer) -> None:
        self.table = table

    def blocks(self) -> Iterator[Block]:
        columns = [
            Column(clean_line(c.name, CELL), right=_is_number(c), flexible=not _is_number(c), least=LEAST, most=CELL)
            for c in self.table.columns
        ]
        rows = [[_cell(field) for field in row] for row in self.table.rows]
        yield Table(columns, rows, stacks=True)
        yield (Cell(summary_line(self.table), "dim"),)

    def json(self) -> list[dict[str, Any]]:
        return list(self.table.dicts())


def _cell(field: Any) -> Piece:
    return Cell(NULL, "faint") if field is None else clean_line(shown(field), LONG)


class ResultRows(Rows):
    """A grid: numbers to the right, NULL dim, long cells cut; ``first`` is the leftmost column in view."""

    def __init__(self, table: Answer | None = None, note: Sequence[str] = (), *, is_fault: bool = False) -> None:
        """Without a ``table`` a ``note`` stands in its place, which may say what went wrong."""
        self.table = table
        self.first = 0
        self.empty = tuple(note) if table is None else ("The answer has no rows.",)
        self.empty_token = "error" if is_fault else "dim"
        self._columns: tuple[Field, ...] = table.columns if table is not None else ()
        self._right = [_is_number(column) for column in self._columns]
        self._widths = [self._measured(index) for index in range(len(self._columns))]

    def _measured(self, index: int) -> int:
        assert self.table is not None
        widest = cell_len(flat(self._columns[index].name, WIDEST))
        for row in self.table.rows[:MEASURED]:
            widest = max(widest, min(WIDEST, cell_len(flat(short(row[index]), WIDEST * 2))))
            if widest >= WIDEST:
                return WIDEST
        return max(3, widest)

    def __len__(self) -> int:
        return len(self.table) if self.table is not None else 0

    def scroll_columns(self, step: int) -> bool:
        """Show other columns; whether that changed anything."""
        wanted = max(0, min(self.first + step, len(self._columns) - 1))
        changed, self.first = wanted != self.first, wanted
        return changed

    def heads(self, width: int) -> Sequence[Row]:
        if not self._columns:
            return ()
        cells: list[Span] = [(f" {'◂' if self.first else ' '}", "faint")]
        for index in range(self.first, len(self._columns)):
            name = fit(self._columns[index].name, self._widths[index], "right" if self._right[index] else "left")
            cells += [(name, "name"), (" " * GAP, "plain")]
        return (Row(crop(cells, width)),)

    def row(self, index: int, width: int) -> Row:
        assert self.table is not None
        cells: list[Span] = [("  ", "plain")]
        used = 2
        for column in range(self.first, len(self._columns)):
            if used > width:
                break
            value = self.table.rows[index][column]
            align = "right" if self._right[column] else "left"
            token = "faint" if value is None else "plain"
            text = fit(short(value), self._widths[column], align)
            cells += [(text, token), (" " * GAP, "plain")]
            used += self._widths[column] + GAP
        return Row(crop(cells, width))

    def plain(self, index: int) -> str:
        assert self.table is not None
        return "  ".join(flat(shown(value)) for value in self.table.rows[index])


def record(table: Answer, index: int) -> TextRows:
    """One row in full: each column with its type and its whole value."""
    lines: list[TextLine] = []
    for column, value in zip(table.columns, table.rows[index], strict=True):
        lines.append(TextLine(flat(f"{column.name}  {column.type}"), "name"))
        text = json.dumps(value, ensure_ascii=False, indent=2) if isinstance(value, list | dict) else shown(value)
        lines += [TextLine("  " + line.text, "faint" if value is None else "plain") for line in text_lines(text)]
    title: tuple[Span, ...] = (("Row", "title"), (f"  {index + 1:,} of {len(table):,}", "name"))
    return TextRows(lines, title)


class SideRows(Rows):
    """What a question can be made from: tables that unfold to their columns, examples, earlier questions."""

    def __init__(
        self,
        tables: Sequence[tuple[str, Sequence[tuple[str, str]]]],
        unfolded: frozenset[str],
        examples: Sequence[tuple[str, str]],
        history: Sequence[str],
    ) -> None:
        self.entries: list[tuple[str, str, str]] = []
        """Kind (head, table, column, example, history), what is shown, what enter takes."""
        self._details: list[str] = []
        self._add("head", "Examples", "")
        for title, sql in examples:
            self._add("example", f"  {title}", sql)
        self._add("head", "Tables", "")
        for name, columns in tables:
            self._add("table", f"{'▾' if name in unfolded else '▸'} {name}", name, f"{len(columns)} columns")
            for column, kind in columns if name in unfolded else ():
                self._add("column", f"    {column}", column, kind)
        if history:
            self._add("head", "Asked before", "")
            for sql in reversed(history):
                self._add("history", f"  {flat(sql, 200)}", sql)
        self.title = (("Ask", "title"),)

    def _add(self, kind: str, text: str, taken: str, detail: str = "") -> None:
        self.entries.append((kind, text, taken))
        self._details.append(detail)

    def __len__(self) -> int:
        return len(self.entries)

    def row(self, index: int, width: int) -> Row:
        kind, text, _ = self.entries[index]
        token = {"head": "head", "table": "name", "column": "code-key"}.get(kind, "plain")
        detail = flat(self._details[index], 60)
        room = width - cell_len(flat(text)) - 3
        right = fit(detail, room, "right") if detail and room > 3 else ""
        gap = " " * max(0, room - cell_len(right)) if right else ""
        return Row(crop((("  ", "plain"), (flat(text), token), (gap, "plain"), (right, "dim")), width))

    def plain(self, index: int) -> str:
        return flat(self.entries[index][1]).strip()
