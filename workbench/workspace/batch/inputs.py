"""The records that a batch is made of: lines of JSON, a CSV file, a Parquet file, or the answer of a query."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from workbench.files import read_plain
from workbench.language.read.json import is_json
from workbench.workspace.sql_queries import open_index

if TYPE_CHECKING:
    from workbench.store.store import Store

ENDINGS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")
LARGEST = 1 << 30
"""Bytes of a file of inputs: it is held in memory."""
_CELL = 16 * 1024 * 1024
"""Characters of one field of a CSV file."""


class InputsError(Exception):
    """Inputs that cannot be read at all; the message says where and why."""


class BadRecord(Struct, frozen=True):
    """A record that could not be read; its row fails with this reason."""

    reason: str


class Records(Struct, frozen=True):
    """The records, each with its place."""

    found: tuple[tuple[str, Any], ...]
    digest: str = ""
    """Of the bytes of the file."""


def read_inputs(file: Path, shown: str, limit: int | None = None) -> Records:
    """The records of a file, by the ending of its name. Raises InputsError."""
    ending = file.suffix.lower()
    if ending not in ENDINGS:
        raise InputsError(f"{shown}: the inputs are a file that ends in {', '.join(ENDINGS)}")
    try:
        data = read_plain(file, LARGEST)
    except OSError as fault:
        raise InputsError(f"{shown}: cannot be read: {fault.strerror or fault}") from fault
    digest = hashlib.sha256(data).hexdigest()
    if ending == ".parquet":
        found = _parquet(data, shown)
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as fault:
            line = data.count(b"\n", 0, fault.start) + 1
            raise InputsError(f"{shown}:{line}: is not UTF-8") from fault
        found = (
            _csv(text, shown, "\t" if ending == ".tsv" else ",")
            if ending in (".csv", ".tsv")
            else _json(text, shown, lines=ending != ".json")
        )
    kept: list[tuple[str, Any]] = []
    for one in found:
        if limit is not None and len(kept) >= limit:
            break
        kept.append(one)
    if not kept:
        raise InputsError(f"{shown}: holds no row")
    return Records(tuple(kept), digest)


def changed_since(file: Path, digest: str) -> bool:
    """Returns whether the file is another than the one that was read. One that is gone is."""
    try:
        return hashlib.sha256(read_plain(file, LARGEST)).hexdigest() != digest
    except OSError:
        return True


def query_inputs(store: Store, sql: str, limit: int | None = None) -> Records:
    """The rows of a query over the stored runs. Raises BadSql, DatabaseError, StoreError, InputsError."""
    with open_index(store) as index:
        index.catch_up()
        table = index.sql(sql, limit)
    found = tuple((f"row {number} of the query", _plain(row)) for number, row in enumerate(table.dicts(), 1))
    if not found:
        raise InputsError("the query has no row")
    return Records(found)


def _json(text: str, shown: str, *, lines: bool) -> Iterator[tuple[str, Any]]:
    """A list in one document, or a record on each line. ``lines``: where it is not a document, it is lines. Raises
    InputsError."""
    lines = lines or is_json(text.lstrip().partition("\n")[0])
    try:
        whole = json.loads(text, parse_constant=_refused) if text.lstrip()[:1] == "[" or not lines else None
    except json.JSONDecodeError as fault:
        if not lines:
            raise InputsError(f"{shown}:{fault.lineno}:{fault.colno}: not valid JSON: {fault.msg}") from fault
        whole = None  # Lines that are lists: each is reported as no object.
    except (ValueError, RecursionError) as fault:
        if not lines:
            raise InputsError(f"{shown}: not valid JSON: {fault}") from fault
        whole = None
    if isinstance(whole, list):
        yield from _listed(text, shown)
        return
    if not lines:
        raise InputsError(f"{shown}:1: the inputs are a list of objects, or an object on each line")
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{shown}:{number}"
        try:
            yield where, json.loads(line, parse_constant=_refused)
        except json.JSONDecodeError as fault:
            yield where, BadRecord(f"{where}:{fault.colno}: not valid JSON: {fault.msg}")
        except (ValueError, RecursionError) as fault:
            yield where, BadRecord(f"{where}: not valid JSON: {fault}")


def _refused(constant: str) -> Any:
    """What Python writes and JSON does not have."""
    raise ValueError(f"{constant} is not a number of JSON")


def _listed(text: str, shown: str) -> Iterator[tuple[str, Any]]:
    """The records of a list that is valid JSON, each with its line."""
    decoder, line, counted = json.JSONDecoder(), 1, 0
    at = _after_comma(text, text.index("[") + 1)
    while text[at] != "]":
        line, counted = line + text.count("\n", counted, at), at
        record, end = decoder.raw_decode(text, at)
        yield f"{shown}:{line}", record
        at = _after_comma(text, end)


def _after_comma(text: str, at: int) -> int:
    while text[at] in ", \t\r\n":
        at += 1
    return at


def _csv(text: str, shown: str, delimiter: str) -> Iterator[tuple[str, Any]]:
    """Values are text. A line with too many or too few fields is a row with a reason. Raises InputsError."""
    csv.field_size_limit(_CELL)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        names = [name.strip() for name in next(reader, [])]
    except csv.Error as fault:
        raise InputsError(f"{shown}:1: cannot be read: {fault}") from fault
    if not any(names) or len(set(names)) != len(names):
        raise InputsError(f"{shown}:1: the first line names the columns, each once")
    while True:
        line = reader.line_num + 1
        where = f"{shown}:{line}"
        try:
            fields = next(reader, None)
        except csv.Error as fault:
            yield where, BadRecord(f"{where}: cannot be read: {fault}")
            continue
        if fields is None:
            return
        if not fields:
            continue
        if len(fields) != len(names):
            yield where, BadRecord(f"{where}: the first line names {len(names)} columns, this one holds {len(fields)}")
        else:
            yield where, dict(zip(names, fields, strict=True))


def _parquet(data: bytes, shown: str) -> Iterator[tuple[str, Any]]:
    """Raises InputsError."""
    pyarrow: Any = import_module("pyarrow")
    parquet: Any = import_module("pyarrow.parquet")
    try:
        batches = parquet.ParquetFile(pyarrow.BufferReader(data)).iter_batches(1000)
        rows = [row for batch in batches for row in batch.to_pylist()]
    except (pyarrow.ArrowException, OSError) as fault:
        raise InputsError(f"{shown}: is not a Parquet file that can be read: {str(fault)[:200]}") from fault
    yield from ((f"{shown}, row {number}", _plain(row)) for number, row in enumerate(rows, 1))


def _plain(value: Any) -> Any:
    """Values as JSON has them: times, decimals and bytes as text, NaN as null: it is how tables write a number that is
    not there."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float) and math.isnan(value):
        return None
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
