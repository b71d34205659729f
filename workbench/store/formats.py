"""Forms of an answer: text table, JSON, CSV, Parquet."""

from __future__ import annotations

import csv
import io
import json
import os
from importlib import import_module
from pathlib import Path
from typing import Any
from unicodedata import combining, east_asian_width

from workbench.language.clean import clean_line
from workbench.store.faults import StoreError
from workbench.store.table import Table

CELL = 60
"""Characters of a cell that a text table shows."""


def as_text(table: Table, width: int = CELL) -> str:
    """A table for people: numbers to the right, long cells cut, unknown values as ``–``, all text cleaned."""
    cells = [[clean_line(name, width) for name in table.names]] + [
        [shown(value, width) for value in row] for row in table.rows
    ]
    widths = [max(_width(row[column]) for row in cells) for column in range(len(table.columns))]
    right = [is_number(column.type) for column in table.columns]
    lines = ["  ".join(_padded(*cell) for cell in zip(row, widths, right, strict=True)).rstrip() for row in cells]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join([*lines, summary_line(table)])


def summary_line(table: Table) -> str:
    """How many rows there are, and whether there are more."""
    rows = "row" if len(table) == 1 else "rows"
    more = ", more were found" if table.cut else ""
    return f"({len(table)} {rows}{more})"


def as_json(table: Table) -> str:
    """An array with an object per row."""
    return json.dumps(list(table.dicts()), ensure_ascii=True, indent=2)


def as_csv(table: Table) -> str:
    """With a header; an unknown value is an empty cell, arrays and objects are JSON."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.names)
    writer.writerows([_plain(value) for value in row] for row in table.rows)
    return out.getvalue()


def write_parquet(arrow: bytes, path: Path) -> int:
    """Write an Arrow file (``Queries.arrow``) as Parquet; the number of rows. Raises StoreError."""
    pyarrow: Any = import_module("pyarrow")
    parquet: Any = import_module("pyarrow.parquet")
    table = pyarrow.ipc.open_file(pyarrow.py_buffer(arrow)).read_all()
    try:
        parquet.write_table(table, path)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {os.strerror(error.errno) if error.errno else error}") from error
    return int(table.num_rows)


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def shown(value: Any, width: int) -> str:
    """A value for people: on one line, cleaned, cut to so many characters; unknown is ``–``."""
    if value is None:
        return "–"
    return clean_line(str(_plain(value)), width)


def _width(text: str) -> int:
    """Columns on a terminal."""
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def _padded(text: str, width: int, right: bool) -> str:
    space = " " * (width - _width(text))
    return space + text if right else text + space


def is_number(type_name: str) -> bool:
    """Whether the engine's type is one that stands to the right."""
    return type_name.removeprefix("Nullable(").startswith(("Int", "UInt", "Float", "Decimal"))
