"""Writes a table of any length to a file, a few thousand rows at a time."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from workbench.files import replacing

ENDINGS = (".parquet", ".csv", ".jsonl")
_AT_ONCE = 20_000
"""Rows."""
_ARROW = {str: "string", int: "int64", float: "float64", bool: "bool_"}


def write_table(file: Path, columns: Mapping[str, type], rows: Iterable[Mapping[str, Any]]) -> int:
    """Write rows as the name of the file ends, one of ``ENDINGS``; their number.

    ``columns``: name to str, int, float or bool; None stands for what is not known. A file that is there is replaced
    once the new one is whole. Raises OSError, and ValueError for another ending."""
    ending = file.suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(f"no table is written to a file that ends in '{ending}'")
    batches = _batches(iter(rows))
    with replacing(file) as fresh:
        if ending == ".parquet":
            return _parquet(fresh, columns, batches)
        with fresh.open("w", encoding="utf-8", errors="replace", newline="") as out:
            return _csv(out, columns, batches) if ending == ".csv" else _lines(out, batches)


def _batches(rows: Iterator[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    while batch := list(islice(rows, _AT_ONCE)):
        yield batch


def _parquet(fresh: Path, columns: Mapping[str, type], batches: Iterator[list[Mapping[str, Any]]]) -> int:
    pyarrow: Any = import_module("pyarrow")  # It takes 160 ms.
    parquet: Any = import_module("pyarrow.parquet")
    schema = pyarrow.schema([(name, getattr(pyarrow, _ARROW[kind])()) for name, kind in columns.items()])
    count = 0
    with parquet.ParquetWriter(fresh, schema) as writer:
        for batch in batches:
            found = {
                name: [_storable(row[name]) if kind is str else row[name] for row in batch]
                for name, kind in columns.items()
            }
            writer.write_table(pyarrow.table(found, schema=schema))
            count += len(batch)
    return count


def _storable(text: str | None) -> str | None:
    """A lone surrogate cannot be written as UTF-8."""
    return None if text is None else text.encode("utf-8", "replace").decode()


def _csv(out: Any, columns: Mapping[str, type], batches: Iterator[list[Mapping[str, Any]]]) -> int:
    writer = csv.DictWriter(out, list(columns), lineterminator="\n")
    writer.writeheader()
    count = 0
    for batch in batches:
        writer.writerows(batch)
        count += len(batch)
    return count


def _lines(out: Any, batches: Iterator[list[Mapping[str, Any]]]) -> int:
    count = 0
    for batch in batches:
        out.writelines(json.dumps(row) + "\n" for row in batch)
        count += len(batch)
    return count
