"""A query's answer: named, typed columns and rows of plain values."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from workbench.store.faults import StoreError

if TYPE_CHECKING:
    from pandas import DataFrame

# Forms of an answer: JSON, CSV, Parquet.


def summary_line(table: ResultTable) -> str:
    """Returns how many rows there are, and whether there are more."""
    rows = "row" if len(table) == 1 else "rows"
    more = ", more were found" if table.cut else ""
    return f"({len(table)} {rows}{more})"


def as_json(table: ResultTable) -> str:
    """An array with an object per row."""
    return json.dumps(list(table.dicts()), ensure_ascii=True, indent=2)


def as_csv(table: ResultTable) -> str:
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


_WRAPPED = re.compile(r"(?:Nullable|LowCardinality|SimpleAggregateFunction\(\w+,)\s*\(?(.*)\)", re.DOTALL)
_TYPES = (
    ("String", "text"),
    ("FixedString", "text"),
    ("Enum", "text"),
    ("Bool", "true or false"),
    ("Int", "whole number"),
    ("UInt", "whole number"),
    ("Float", "number"),
    ("BFloat", "number"),
    ("Decimal", "number"),
    ("DateTime", "time"),
    ("Date", "date"),
    ("UUID", "id"),
    ("Tuple", "tuple"),
    ("Map", "mapping"),
    ("Nothing", "nothing"),
)
"""Plain words by the beginning of the engine's name; the first that fits."""


def plain_type(engine: str) -> str:
    """A type in plain words: ``Nullable(Float64)`` is a ``number``, ``Array(UInt32)`` a ``list of whole numbers``."""
    while (inner := _WRAPPED.fullmatch(engine)) is not None:
        engine = inner[1]
    if engine.startswith("Array("):
        item = plain_type(engine.removeprefix("Array(")[:-1])
        return f"list of {item}{'s' if item.endswith(('number', 'time', 'id', 'date')) else ''}"
    return next((words for name, words in _TYPES if engine.startswith(name)), engine)


_COST = re.compile(r"(?<![a-z])(?:cost|costs|dollars|spent|usd)(?![a-z])")
"""Names of columns that hold US dollars; an underscore or a bracket may stand around the word."""
_RENAMED = re.compile(
    r"(?:\w+\s*\(\s*)*(?:[a-z_]\w*\.)?([a-z_]\w*)(?:(?:\s*,[^()]*)?\s*\))*"
    r"(?:\s*/\s*(?:count|uniq\w*)\s*\([^()]*\))?\s+as\s+[`\"]?(\w+)",
    re.IGNORECASE,
)
"""The column and its new name, of ``sum(spent) AS total``, ``round(avg(r.cost), 4) AS mean`` and
``sum(cost) / count() AS each``."""


_SPENT = re.compile(r"((?:\b[a-z_]\w*\.)?)`?\bspent\b`?", re.IGNORECASE)
_PREDICTED_PARTS = (
    "({0}predicted_cost + {0}inside_predicted_cost > 0)",
    "(ifNull({0}spent, 0) > 0 AND {0}cost IS NULL)",
    "({0}response_hash != '' AND NOT {0}recorded AND {0}cost IS NULL)",
)
"""What says that a row's ``spent`` is predicted, in runs and in calls, and in calls where a sum has the name of the
column; the place is for the name of the table."""
_TOKEN = re.compile(r"'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`|\"(?:\\.|[^\"\\])*\"|.", re.DOTALL)


def marked_predictions(formatted: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Statements that answer as this one, with a further column at the end for each column made from ``spent``, above 0
    where that is predicted, and the indices of those columns: one statement for runs, two for calls, as only the engine
    knows which of them fits.

    ``formatted`` is a statement as the engine lays it out, with each clause of the outermost query at the beginning of
    a line. Nothing is given for one without such a column, and for one whose rows further columns could change.
    """
    begin = re.match(r"(?:WITH\b.*?\n)?SELECT\s", formatted, re.DOTALL)
    end = re.search(r"^FROM\s", formatted, re.MULTILINE)
    if (
        begin is None
        or end is None
        or re.search(r"^UNION|^INTERSECT|^EXCEPT|^SELECT DISTINCT", formatted, re.MULTILINE)
    ):
        return (), ()
    items = _items(formatted[begin.end() : end.start()])
    if any(item.rstrip().endswith("*") for item in items):
        return (), ()
    found = [at for at, item in enumerate(items) if _SPENT.search(item)]
    plain = [re.sub(r"\s+AS\s+\S+\s*$", "", items[at], flags=re.IGNORECASE) for at in found]
    made = [", ".join(_SPENT.sub(partial(_asked_of, part), item) for item in plain) for part in _PREDICTED_PARTS]
    head, rest = formatted[: end.start()].rstrip(), formatted[end.start() :]
    return (tuple(f"{head}, {more}\n{rest}" for more in made), tuple(found)) if found else ((), ())


def _asked_of(part: str, name: re.Match[str]) -> str:
    return f"toFloat64({part.format(name[1])})"


def _items(listed: str) -> list[str]:
    """The expressions of a list, divided at the commas outside of brackets and quotes."""
    items, depth = [""], 0
    for token in _TOKEN.findall(listed):
        depth += (token in "([{") - (token in ")]}")
        if token == "," and not depth:
            items.append("")
        else:
            items[-1] += token
    return items


_PREDICTED = "predicted"
"""The word in the names of columns that hold predictions."""


def renamed_costs(sql: str) -> frozenset[str]:
    """The new names that a query gives to sums, means and other aggregates of columns that hold US dollars."""
    return frozenset(_renamed_costs(sql))


def _renamed_costs(sql: str) -> dict[str, str]:
    """The columns of US dollars behind these names."""
    return {found[2]: found[1] for found in _RENAMED.finditer(sql) if _COST.search(found[1].casefold())}


class Column(NamedTuple):
    """A column of an answer."""

    name: str
    type: str
    """As the engine names it: ``Nullable(Float64)``."""
    renamed_cost: str = ""
    """The column of US dollars from which the query made it, perhaps under a name that does not say so."""

    @property
    def dollars(self) -> bool:
        """Whether it holds US dollars; a whole number of costs is a count."""
        return self.plain == "number" and bool(self.renamed_cost or _COST.search(self.name.casefold()))

    @property
    def is_predicted(self) -> bool:
        """Whether it holds US dollars that are predicted."""
        return self.dollars and _PREDICTED in (self.renamed_cost or self.name).casefold()

    @property
    def plain(self) -> str:
        """The type in plain words."""
        return plain_type(self.type)


class ResultTable(Struct, frozen=True):
    """Rows are tuples in the order of the columns. Times are text in UTC, ids are text, unknown values are None."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    cut: bool = False
    """More rows matched than the limit let through."""
    predicted: frozenset[tuple[int, int]] = frozenset()
    """The cells, by row and column, whose US dollars are known to be predicted."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def __len__(self) -> int:
        return len(self.rows)

    def dicts(self) -> Iterator[dict[str, Any]]:
        """Rows by column name; of two columns with one name, the last counts."""
        names = self.names
        return (dict(zip(names, row, strict=True)) for row in self.rows)

    def to_pandas(self) -> DataFrame:
        """A data frame with these columns; of two with one name, both. Numbers with unknown values among them are
        floats with NaN, other unknown values None."""
        import pandas  # 300 ms, and only a table for Python needs it

        return pandas.DataFrame(list(self.rows), columns=list(self.names))

    def iterrows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Rows by column name, each with its number from 0, as a data frame gives them."""
        return enumerate(self.dicts())

    def to_json(self, path: str | Path | None = None, *, orient: str = "records", lines: bool = False) -> str | None:
        """An array with an object per row, or with ``lines`` one object per line; written to ``path``, or returned.
        Raises ValueError for another ``orient``, which only the data frame of ``to_pandas`` knows."""
        if orient != "records":
            raise ValueError(f"orient {orient!r} is one of to_pandas().to_json(); a table writes 'records'")
        rows = [json.dumps(row, ensure_ascii=False) for row in self.dicts()]
        text = "".join(f"{row}\n" for row in rows) if lines else f"[{', '.join(rows)}]"
        if path is None:
            return text
        Path(path).write_text(text, encoding="utf-8")
        return None

    def one(self) -> Any:
        """The value of an answer of one row and one column. Raises ValueError for any other shape."""
        if len(self.rows) != 1 or len(self.columns) != 1:
            raise ValueError(f"expected one value, got {len(self.rows)} rows of {len(self.columns)} columns")
        return self.rows[0][0]

    def first(self, limit: int) -> ResultTable:
        """At most ``limit`` rows."""
        return replace(self, rows=self.rows[:limit], cut=True) if len(self.rows) > limit else self

    def without_marks(self, marked: Sequence[int]) -> ResultTable:
        """The same table without its last columns, each of which says of one of the ``marked`` columns where it is
        predicted."""
        width = len(self.columns) - len(marked)
        cells = (
            (at, of) for at, row in enumerate(self.rows) for of, mark in zip(marked, row[width:], strict=True) if mark
        )
        return replace(
            self,
            columns=self.columns[:width],
            rows=tuple(row[:width] for row in self.rows),
            predicted=frozenset(cells),
        )

    def with_costs(self, sql: str) -> ResultTable:
        """The same table, with the columns known that the query made from US dollars under another name."""
        made = _renamed_costs(sql)
        columns = tuple(column._replace(renamed_cost=made.get(column.name, "")) for column in self.columns)
        return replace(self, columns=columns) if made else self

    @classmethod
    def from_compact_json(cls, data: bytes) -> ResultTable:
        """Read the engine's ``JSONCompact``. Statements without an answer give a table without columns.

        Raises ValueError for an answer of another form.
        """
        if not data.strip():
            return cls((), ())
        body = json.loads(data.decode("utf-8", "replace"))
        columns = tuple(Column(column["name"], column["type"]) for column in body["meta"])
        return cls(columns, tuple(tuple(row) for row in body["data"]))
