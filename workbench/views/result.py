"""The result of a query as a grid, one of its rows in full, and the catalogue of what a query can be made from."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from rich.cells import cell_len

from workbench.context.place import Place
from workbench.dollars import money
from workbench.language.clean import clean_line
from workbench.store.index.catalogue import COLUMNS, INTERNAL, TABLES
from workbench.store.index.table import Column as Field
from workbench.store.index.table import ResultTable as Answer
from workbench.store.index.table import summary_line
from workbench.views.cells import Align, Row, Span, crop, fit, flat
from workbench.views.keys import told
from workbench.views.model import Rows
from workbench.views.numbers import day_and_time, plural, seconds
from workbench.views.signs import sign
from workbench.views.text import TextLine, TextRows, drawn_line, text_lines, wrapped
from workbench.views.value import Block, Cell, Column, Piece, Table, View

if TYPE_CHECKING:
    from workbench.workspace.sql_queries import StatementOutcome

WIDEST = 44
"""Cells of a column; a row in full shows all."""
MEASURED = 300
"""Rows that decide how wide a column is."""
GAP = 2
DECIMALS, SECONDS = 6, 3
"""Significant decimals of a number, and of one in seconds."""
NULL = "NULL"
CELL, LONG = 60, 2000
"""Characters of a value that a table of the command line shows, and a block of one row."""
_NAMING = re.compile(r"(?:^|_)(?:id|seq|version|year|line|number|index)$")
"""Names of columns whose whole numbers are names: their thousands are not separated."""
_SECONDS = re.compile(r"(?:^|_)(?:s|seconds)$")
"""Names of columns that hold seconds."""
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


def short(value: Any, column: Field | None = None, *, is_predicted: bool = False) -> str:
    """A value as a table shows it: thousands separated, at most six significant decimals, dollars if the column holds
    them, with ``~`` where they are predicted, times to the second. Numbers that are names stay unchanged.
    """
    if isinstance(value, bool) or value is None:
        return shown(value)
    if isinstance(value, int | float):
        name = column.name.casefold() if column is not None else ""
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        if column is not None and column.dollars:
            return money(float(value), exact=not value or not (is_predicted or column.is_predicted))
        if isinstance(value, int):
            return str(value) if _NAMING.search(name) else f"{value:,}"
        return _decimal(value, SECONDS if _SECONDS.search(name) else DECIMALS)
    if isinstance(value, str) and column is not None and column.plain == "time":
        return value.partition(".")[0]
    return shown(value)


def _short_in(table: Answer, row: int, index: int) -> str:
    """A value as a table shows it: what was spent is predicted where the tables say so, or where ``cost``, the bill, is
    unknown in the same row."""
    column, values = table.columns[index], table.rows[row]
    unbilled = column.name == "spent" and "cost" in table.names and values[table.names.index("cost")] is None
    return short(values[index], column, is_predicted=unbilled or (row, index) in table.predicted)


def _decimal(value: float, decimals: int = DECIMALS) -> str:
    """At most so many significant decimals, without an exponent if that is readable."""
    if not value:
        return "0"
    rounded = round(value, decimals - 1 - min(-1, math.floor(math.log10(abs(value)))))
    if not 1e-12 <= abs(rounded) < 1e15:
        return str(rounded)
    text = format(Decimal(repr(rounded)), ",f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _is_number(column: Field | None) -> bool:
    return column is not None and column.plain in ("number", "whole number")


class AnswerView(View):
    """A table if its columns fit, else a block of lines for each row."""

    def __init__(self, table: Answer) -> None:
        self.table = table

    def blocks(self) -> Iterator[Block]:
        columns = [
            Column(clean_line(c.name, CELL), right=_is_number(c), flexible=not _is_number(c), least=LEAST, most=CELL)
            for c in self.table.columns
        ]
        rows = [[_cell(self.table, row, at) for at in range(len(self.table.columns))] for row in range(len(self.table))]
        yield Table(columns, rows, stacks=True)
        yield (Cell(summary_line(self.table), "dim"),)

    def json(self) -> list[dict[str, Any]]:
        return list(self.table.dicts())


def _cell(table: Answer, row: int, index: int) -> Piece:
    return Cell(NULL, "faint") if table.rows[row][index] is None else clean_line(_short_in(table, row, index), LONG)


class FoundPlace(Struct, frozen=True):
    """The subject of a row of a result."""

    run: str
    """The run's id, else its session."""
    is_of_call: bool = False
    """Whether the row may be of a call, and not of the run as a whole."""
    is_vague: bool = False
    """Whether the row is of a call, and names its run alone."""
    places: tuple[Place, ...] = ()
    """The places in the run that it may be of, as the tables know them: of the whole cascade without a phase."""

    def fitting(self, calls: Sequence[Place]) -> Sequence[Place]:
        """Of the calls of the run those that the row may be of. A row that is of no call, as of a phase or a candidate,
        is taken for the calls inside."""
        known = [(call._replace(phase="") if call.is_whole else call, call) for call in calls]
        if exact := [call for as_stored, call in known if as_stored in self.places]:
            return exact
        around = [place for place in self.places if place.phase]
        return [call for call in calls if any(_is_inside(call, place) for place in around)]


def _is_inside(call: Place, place: Place) -> bool:
    return call[:2] == place[:2] and all(not want or want == has for want, has in zip(place[2:], call[2:], strict=True))


_OF_A_CALL = {"turn_number", "call", "attempt_number", "tokens_in", "tokens_out"}
"""Columns that a query asks for who looks for a call."""
_TELLING = ("branch", "message_id", "response_hash", "request_hash", "request_id")
"""Columns that lead to a call without the name of its phase."""


def place_of_row(row: Mapping[str, Any]) -> FoundPlace | None:
    """The run that a row of a result names, and whether it may be of a call; None if it names no run."""
    run = next((row[name] for name in ("run_id", "session_id") if isinstance(row.get(name), str) and row[name]), None)
    if run is None:
        return None
    is_of_call = isinstance(row.get("phase_name"), str) or any(row.get(name) for name in _TELLING)
    return FoundPlace(run, is_of_call, is_vague=not is_of_call and not _OF_A_CALL.isdisjoint(row))


class ResultRows(Rows):
    """A grid: numbers to the right, NULL dim, long cells cut; ``first`` is the leftmost column in view."""

    def __init__(self, table: Answer | None = None, note: Sequence[str] = (), *, is_fault: bool = False) -> None:
        """Without a ``table`` a ``note`` stands in its place, which may say what went wrong."""
        self.table = table
        self.first = 0
        self.empty = tuple(note) if table is None else ("No rows.",)
        self.empty_token = "error" if is_fault else "dim"
        self._columns: tuple[Field, ...] = table.columns if table is not None else ()
        self._right = [_is_number(column) for column in self._columns]
        self._widths = [self._measured(index) for index in range(len(self._columns))]

    def _measured(self, index: int) -> int:
        assert self.table is not None
        widest = cell_len(flat(self._columns[index].name, WIDEST))
        for row in range(min(MEASURED, len(self.table))):
            widest = max(widest, min(WIDEST, cell_len(flat(_short_in(self.table, row, index), WIDEST * 2))))
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

    def lay_out(self, width: int) -> None:
        after = len(self._columns) - self._shown(width).stop
        hidden = [f"[ {self.first:,} to the left"] if self.first else []
        hidden += [f"] {plural(after, 'more column')}"] if after else []
        self.title_right = (("   ".join(hidden), "dim"),) if hidden else ()

    def _shown(self, width: int) -> range:
        """The columns that a pane has room for, whole; the first one in view may be cut."""
        used, last = 2, self.first
        while last < len(self._columns) and (last == self.first or used + self._widths[last] <= width):
            used += self._widths[last] + GAP
            last += 1
        return range(self.first, last)

    def heads(self, width: int) -> Sequence[Row]:
        if not self._columns:
            return ()
        cells: list[Span] = [(f" {'◂' if self.first else ' '}", "faint")]
        for index in self._shown(width):
            name = fit(self._columns[index].name, self._widths[index], "right" if self._right[index] else "left")
            cells += [(name, "name"), (" " * GAP, "plain")]
        return (Row(crop(cells, width)),)

    def row(self, index: int, width: int) -> Row:
        assert self.table is not None
        cells: list[Span] = [("  ", "plain")]
        for column in self._shown(width):
            value = self.table.rows[index][column]
            align: Align = "right" if self._right[column] else "left"
            token = "faint" if value is None else "plain"
            text = fit(_short_in(self.table, index, column), self._widths[column], align)
            cells += [(text, token), (" " * GAP, "plain")]
        return Row(crop(cells, width))

    def plain(self, index: int) -> str:
        assert self.table is not None
        return "  ".join(flat(shown(value)) for value in self.table.rows[index])


def record(table: Answer, index: int) -> TextRows:
    """One row in full: each column with its type, what it holds, and its whole value."""
    lines: list[TextLine] = []
    for column, value in zip(table.columns, table.rows[index], strict=True):
        about = COLUMNS.get(column.name, "")
        lines.append(
            drawn_line(
                (
                    (flat(column.name), "name"),
                    (f"  {column.plain}", "accent"),
                    (f"  {about}" if about else "", "dim"),
                )
            )
        )
        text = json.dumps(value, ensure_ascii=False, indent=2) if isinstance(value, list | dict) else shown(value)
        lines += [TextLine("  " + line.text, "faint" if value is None else "plain") for line in text_lines(text)]
    title: tuple[Span, ...] = (("Row", "title"), (f"  {index + 1:,} of {len(table):,}", "name"))
    return TextRows(lines, title)


class CatalogueEntry(Struct, frozen=True):
    """One row of the catalogue."""

    kind: str
    """head, table, column, example, saved or earlier."""
    text: str
    """The shown text, with its indentation."""
    taken: str = ""
    """The text that enter inserts: a query, the name of a column or a table."""
    detail: str = ""
    """Shown at the right edge."""
    about: str = ""
    """A sentence."""


class CatalogueRows(Rows):
    """Material for a query: saved queries, examples, tables that unfold to their columns, earlier queries."""

    spreads = True

    def __init__(
        self,
        tables: Sequence[tuple[str, Sequence[Field]]],
        unfolded: Collection[str],
        examples: Sequence[tuple[str, str]],
        saved: Mapping[str, str],
        earlier: Sequence[str],
        outcomes: Mapping[str, StatementOutcome] = {},
    ) -> None:
        """``saved`` are queries by name; of ``earlier`` ones the newest is the last, and ``outcomes`` say what came of
        them."""
        self.entries: list[CatalogueEntry] = []
        self._head("Saved queries", saved)
        for name, sql in saved.items():
            self._add("saved", f"  {flat(name, 80)}", sql, about=flat(sql, 400))
        self._head("Examples", examples)
        for title, sql in examples:
            self._add("example", f"  {title}", sql, about=flat(sql, 400))
        self._head("Tables", tables)
        inner = [(name, columns) for name, columns in tables if name in INTERNAL]
        for name, columns in tables:
            if name not in INTERNAL:
                self._table(name, columns, name in unfolded)
        if inner:
            open_ = INNER in unfolded
            self._add("table", f"{_fold(open_)} {INNER}", INNER, about=_INNER_ABOUT)
            for name, columns in inner if open_ else ():
                self._table(name, columns, name in unfolded, "  ")
        self._head("Earlier queries", earlier)
        for sql in reversed(earlier):
            outcome = outcomes.get(sql)
            failed = f"{sign('failed')[0]} " if outcome is not None and outcome.fault else ""
            said = f"{outcome_words(outcome)} · " if outcome is not None else ""
            self._add("earlier", f"  {failed}{flat(sql, 200)}", sql, about=f"{said}{flat(sql, 400)}")
        self.title = (("Catalogue", "title"),)

    def _head(self, words: str, below: Sequence[Any] | Mapping[str, Any]) -> None:
        if below:
            self._add("head", words)

    def _table(self, name: str, columns: Sequence[Field], unfolded: bool, indent: str = "") -> None:
        shown_name = flat(name, 80)
        self._add("table", f"{indent}{_fold(unfolded)} {shown_name}", name, about=TABLES.get(name, ""))
        for column in columns if unfolded else ():
            about = COLUMNS.get(column.name, "")
            self._add("column", f"{indent}    {flat(column.name, 80)}", column.name, column.plain, about)

    def _add(self, kind: str, text: str, taken: str = "", detail: str = "", about: str = "") -> None:
        self.entries.append(CatalogueEntry(kind, text, taken, detail, about))

    def __len__(self) -> int:
        return len(self.entries)

    def row(self, index: int, width: int) -> Row:
        entry = self.entries[index]
        token = {"head": "head", "table": "name", "column": "code-key"}.get(entry.kind, "plain")
        room = width - cell_len(entry.text) - 3
        right = fit(entry.detail, room, "right") if entry.detail and room > 3 else ""
        gap = " " * max(0, room - cell_len(right)) if right else ""
        return Row(crop((("  ", "plain"), (entry.text, token), (gap, "plain"), (right, "dim")), width))

    def whole(self, index: int, width: int) -> tuple[Row, ...]:
        entry = self.entries[index]
        if entry.kind in ("table", "column") or cell_len(entry.text) <= width - 2:
            return ()
        lines = wrapped(((entry.text.strip(), "plain"),), max(8, width - 4))
        return tuple(Row((("    ", "plain"), *line)) for line in lines)

    def plain(self, index: int) -> str:
        return self.entries[index].text.strip()

    def about(self, index: int) -> TextRows:
        """Describes a row, for the pane below the list."""
        entry = self.entries[index] if 0 <= index < len(self.entries) else CatalogueEntry("", "")
        words = [entry.detail] if entry.kind == "column" else []
        said = " · ".join(part for part in (*words, entry.about) if part)
        if entry.kind == "head":
            said = told(_TABLES_ABOUT if entry.text == "Tables" else _QUERIES_ABOUT)
        return TextRows([TextLine(said, "dim")], (("About", "title"),))


def outcome_words(outcome: StatementOutcome) -> str:
    """When a query was last run and what came of it: ``11-29 19:33 · 1,953 rows in 1.3s``."""
    if outcome.fault:
        return f"{day_and_time(outcome.at)} · failed: {flat(outcome.fault, 200)}"
    rows = f"more than {plural(outcome.rows, 'row')}" if outcome.cut else plural(outcome.rows, "row")
    return f"{day_and_time(outcome.at)} · {rows} in {seconds(outcome.seconds)}"


_QUERIES_ABOUT = "{list.open} takes the query under the cursor."
_TABLES_ABOUT = "{list.open} unfolds a table to its columns, and writes the name of a column into the query."
INNER = "internal"
"""The text that replaces the names of tables that serve the index."""
_INNER_ABOUT = "Internal tables, and tables that another table shows better."


def _fold(unfolded: bool) -> str:
    return "▾" if unfolded else "▸"
