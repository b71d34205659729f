"""Runs one query or one Python program of a data phase. A program of its own, run in the sandbox, never imported.

The first argument is a folder with ``job.json``: ``kind`` (sql or python), ``code``, ``data`` (by phase), ``tables``
(rows by name), ``names`` (more variables of the program), ``limit`` (rows), ``files`` (whether a query may read
files), ``sites`` (folders of packages). The answer is written to ``$OUTBOX/answer.json``: ``value``, ``table`` (with
the tables that the query ``made``, and names of those too ``large`` to be kept) or ``error``.

It starts with each phase, so it imports little: pathlib, typing and traceback would take half of the time of a short
program, pyarrow most of that of a short query.
"""

from __future__ import annotations

import ast
import datetime
import decimal
import importlib
import json
import math
import os
import re
import sys
import types
from collections.abc import Iterable, Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CODE = "<code>"
SIMPLE = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", str: "VARCHAR"}
"""The types of columns whose values all have the same type."""
FEW = 10_000
"""Rows that pass as JSON sooner than DuckDB imports pandas, for which it takes 0.4 s."""
CHANGES = re.compile(r"\b(?:create|insert|update|delete|alter)\b", re.IGNORECASE)
"""Words of a query that may make a table or change one."""


def plain(value: Any) -> Any:
    """A value as JSON: what JSON has no number or word for becomes null or text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() and value.as_tuple().exponent == 0 else float(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (datetime.date, datetime.time)):  # datetime and pandas' Timestamp are dates
        return None if str(value) == "NaT" else value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if hasattr(value, "tolist"):  # numpy scalars and arrays
        return plain(value.tolist())
    if isinstance(value, Iterable):
        return [plain(item) for item in value]
    return str(value)


def load(connection: Any, tables: Mapping[str, list[dict[str, Any]]]) -> None:
    """Make the rows tables. A column whose values have no common type becomes JSON text."""
    for name, rows in tables.items():
        columns = list(dict.fromkeys(key for row in rows for key in row))
        simple = [simple_type([row.get(key) for row in rows]) for key in columns] if len(rows) <= FEW else []
        if simple and all(simple) and all(columns) and len({key.casefold() for key in columns}) == len(columns):
            load_simple(connection, name, dict(zip(columns, simple, strict=True)), rows)
            continue
        import pyarrow as arrow  # a job needs one or two of DuckDB, pandas and this: 0.1 to 0.4 s each

        arrays = [column(arrow, [row.get(key) for row in rows]) for key in columns]
        connection.register("loading", arrow.table(arrays, names=columns))
        connection.execute(f"CREATE TABLE {quoted(name)} AS SELECT * FROM loading")
        connection.unregister("loading")


def load_simple(connection: Any, name: str, types: Mapping[str, str], rows: list[dict[str, Any]]) -> None:
    """Make a table whose columns all have a simple type. Its rows pass as JSON inside the statement: with a parameter
    of it, or an Arrow table, DuckDB imports pandas."""
    connection.execute(f"CREATE TABLE {quoted(name)} ({', '.join(f'{quoted(key)} {of}' for key, of in types.items())})")
    shape = json.dumps([{str(at): of for at, of in enumerate(types.values())}])
    body = json.dumps([{str(at): row.get(key) for at, key in enumerate(types)} for row in rows])
    doubled = body.replace("'", "''")
    connection.execute(f"INSERT INTO {quoted(name)} SELECT unnest(from_json('{doubled}', '{shape}'), max_depth := 2)")


def simple_type(values: list[Any]) -> str:
    """The type of a column whose values are all of one simple type, or null; else nothing."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) > 1:
        return ""
    kind = kinds.pop() if kinds else str
    if kind is int and not all(value is None or -(1 << 63) <= value < 1 << 63 for value in values):
        return ""
    if kind is float and not all(value is None or math.isfinite(value) for value in values):
        return ""
    return SIMPLE.get(kind, "")


def column(arrow: Any, values: list[Any]) -> Any:
    try:
        made = arrow.array(values)
        return arrow.array(values, arrow.string()) if arrow.types.is_null(made.type) else made
    except (arrow.ArrowInvalid, arrow.ArrowTypeError, arrow.ArrowNotImplementedError, OverflowError):
        texts = [v if v is None or isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in values]
        return arrow.array(texts, arrow.string())


def quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def run_sql(job: Mapping[str, Any]) -> dict[str, Any]:
    import duckdb  # as above

    connection = duckdb.connect(":memory:", config={"threads": 2, "memory_limit": "1GB"})
    load(connection, job["tables"])
    connection.execute("SET TimeZone = 'UTC'")
    if not job["files"]:
        connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    done = connection.execute(job["code"])
    columns = [str(part[0]) for part in done.description or ()]
    found = done.fetchmany(job["limit"] + 1)
    rows = [dict(zip(columns, (plain(value) for value in row), strict=True)) for row in found[: job["limit"]]]
    more = {"truncated": True} if len(found) > job["limit"] else {}
    made, large = kept_tables(connection, job) if CHANGES.search(job["code"]) else ({}, [])
    return {"table": rows, "columns": columns, "made": made, "large": large, **more}


def kept_tables(connection: Any, job: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The rows of tables that the query made or changed, for the queries of later phases; names of those with more
    rows than they can have."""
    made: dict[str, Any] = {}
    large: list[str] = []
    named = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main' ORDER BY table_name"
    for (name,) in connection.execute(named).fetchall():
        done = connection.execute(f"SELECT * FROM {quoted(name)} LIMIT {FEW + 1}")
        columns = [str(part[0]) for part in done.description]
        rows = [dict(zip(columns, (plain(value) for value in row), strict=True)) for row in done.fetchall()]
        if len(rows) > FEW:
            large += [] if name in job["tables"] else [name]
        elif rows and rows != job["tables"].get(name):
            made[name] = rows
    return made, large


class Data:
    """Outputs of earlier phases, by phase: a DataFrame for a table, else the value itself."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            known = ", ".join(self._values) or "none"
            raise KeyError(f"no phase '{name}' has an output; there are: {known}")
        if name not in self._made:
            self._made[name] = frame(self._values[name])
        return self._made[name]

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError as fault:
            raise AttributeError(fault.args[0]) from None

    def __iter__(self) -> Any:
        return iter(self._values)

    def list_available(self) -> list[str]:
        return list(self._values)


def frame(value: Any) -> Any:
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        import pandas  # as above

        return pandas.DataFrame(value)
    return value


class LazyModule(types.ModuleType):
    """A module that is imported when it is first used: most programs need none of them."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


def run_python(job: Mapping[str, Any]) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "__main__", "data": Data(job["data"]), "json": json}
    names |= {"pd": LazyModule("pandas"), "np": LazyModule("numpy"), **job["names"]}
    tree = ast.parse(job["code"], CODE)
    if returns(tree):
        wrapped = ast.parse("def cell(): pass")
        function = wrapped.body[0]
        assert isinstance(function, ast.FunctionDef)
        function.body = tree.body
        exec(compile(wrapped, CODE, "exec"), names)
        names["result"] = names["cell"]()
    else:
        exec(compile(tree, CODE, "exec"), names)
    if "result" not in names:
        raise NameError("the code must set the variable 'result'")
    result = names["result"]
    if image(result):
        return {"value": f"1 image ({type(result).__name__})"}
    kind = f"{type(result).__module__}.{type(result).__name__}"
    if kind.startswith("pandas.") and kind.endswith(".DataFrame"):
        rows = [{str(key): plain(value) for key, value in row.items()} for row in result.to_dict("records")]
        return {"table": rows, "columns": [str(name) for name in result.columns]}
    if kind.startswith("pandas.") and kind.endswith(".Series"):
        result = result.tolist()
    if kind.startswith("plotly."):
        result = json.loads(result.to_json())
    return {"value": plain(result)}


def returns(tree: ast.AST) -> bool:
    """Whether the program returns its result, as a function does."""
    inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
    return any(
        isinstance(node, ast.Return) or (not isinstance(node, inner) and returns(node))
        for node in ast.iter_child_nodes(tree)
    )


def image(result: Any) -> bool:
    """Whether a result is a picture: it is saved, and shown as any tool's images are."""
    path = os.path.join(os.environ["OUTBOX"], "result.png")
    if hasattr(result, "savefig"):
        result.savefig(path, dpi=100, bbox_inches="tight")
        return True
    if type(result).__module__.startswith("PIL."):
        result.save(path)
        return True
    return False


def told(fault: BaseException) -> str:
    """``line N: TYPE: MESSAGE``, with the line of the program where it is one."""
    import traceback  # 8 ms, for what fails alone

    frames = [entry for entry in traceback.extract_tb(fault.__traceback__) if entry.filename == CODE]
    line = fault.lineno if isinstance(fault, SyntaxError) else frames[-1].lineno if frames else None
    text = fault.args[0] if isinstance(fault, (KeyError, SyntaxError)) and fault.args else fault
    return (f"line {line}: " if line else "") + f"{type(fault).__name__}: {text}"


def main() -> None:
    with open(os.path.join(sys.argv[1], "job.json"), encoding="utf-8") as file:
        job = json.load(file)
    sys.path[:0] = job["sites"]
    try:
        answer = run_sql(job) if job["kind"] == "sql" else run_python(job)
    except KeyboardInterrupt:
        raise
    except BaseException as fault:  # noqa: BLE001 - code of the file may raise anything: its words are the answer
        answer = {"error": told(fault)}
    with open(os.path.join(os.environ["OUTBOX"], "answer.json"), "w", encoding="utf-8") as file:
        json.dump(answer, file)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
