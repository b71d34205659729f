"""The tool smart_sql_run: SQL over the CSV, Parquet and JSON files of the workspace, in a child of its own."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.engine.contracts import ToolResult
from workbench.tools.builtin.sql_guard import DENIED, TABLE_FUNCTIONS, SqlError, guard
from workbench.tools.calling import call_function
from workbench.tools.globs import Glob
from workbench.tools.paths import PathRefused, Workspace, is_regular
from workbench.tools.results import error_of
from workbench.tools.sandbox import FinishedCommand, Level, Limits, Sandbox

LADDER: tuple[Level, ...] = ("bwrap", "landlock")
"""The child needs our own interpreter, which a container does not have."""
LIMITS = Limits(cpu_s=60, memory_bytes=12 << 30, processes=512, output_bytes=8_000_000, open_files=1024)
"""Address space and threads of the engine are far above what it uses; ``SETTINGS`` hold its memory down."""
SETTINGS: Mapping[str, int | str] = {
    "max_execution_time": 30,
    "max_memory_usage": 1_000_000_000,
    "max_threads": 1,
    "max_result_rows": 10_000,
    "max_result_bytes": 20_000_000,
    "result_overflow_mode": "break",
    "joined_subquery_requires_alias": 0,
    "output_format_json_quote_denormals": 1,
    "output_format_json_quote_64bit_integers": 0,
}
TIMEOUT_S = 40.0
MAX_ROWS = 200
MAX_CELL = 500
MAX_FILES = 1000
_CHILD = Path(__file__).with_name("sql_child.py")


class SqlTool:
    """smart_sql_run over one workspace."""

    def __init__(self, workspace: Workspace, sandbox: Sandbox) -> None:
        self.workspace = workspace
        self.sandbox = sandbox

    async def smart_sql_run(self, query: str) -> ToolResult:
        """Run one SQL query (ClickHouse dialect) over CSV, Parquet or JSON files of the workspace.

        Args:
            query: One SELECT, DESCRIBE or SHOW. Name files like this: SELECT * FROM file('data/orders.csv') LIMIT 5
        """
        return await self.run(query)

    async def run(self, query: str, parameters: Mapping[str, Any] | None = None) -> ToolResult:
        """The same with values for the query's ``{name:Type}`` parameters; text is never made part of the SQL."""
        try:
            # In a thread: a pattern reads the whole workspace.
            guarded = await call_function(lambda: guard(query, self._find), {}, TIMEOUT_S)
        except (SqlError, PathRefused) as fault:
            return error_of(fault)
        site = _site()
        job = {
            "sql": guarded.sql,
            "files": guarded.files,
            "parameters": {name: _encoded(value) for name, value in (parameters or {}).items()},
            "table_functions": sorted(TABLE_FUNCTIONS),
            "denied": DENIED.pattern,
            "site": str(site),
            "settings": dict(SETTINGS),
            "max_rows": MAX_ROWS,
            "max_cell": MAX_CELL,
        }
        finished = await self.sandbox.run(
            [str(Path(sys.executable).resolve()), "-I", "-S", "-B", str(_CHILD)],
            timeout_s=TIMEOUT_S,
            stdin=json.dumps(job).encode(),
            writable=False,
            readable=[Path(sys.base_prefix).resolve(), site, _CHILD],
            folders=self.workspace.also,
            limits=LIMITS,
            ladder=LADDER,
            or_plain=True,
        )
        return _result(finished)

    def _find(self, name: str) -> Sequence[str]:
        """The files that a name or a pattern stands for. Raises PathRefused when there is none."""
        if "{" in name or not any(char in name for char in "*?["):
            real = self.workspace.find(name)
            if not real.is_file() or not is_regular(real):
                raise PathRefused(f"'{name}' is not a file")
            return [self._path(real)]
        wanted = Glob(name.removeprefix("./"))
        found = [
            self._path(self.workspace.admit(Path(entry.path).resolve(), entry.name))
            for folder in self.workspace.folders
            for entry in self.workspace.walk(folder)
            if entry.is_file(follow_symlinks=False)
            and wanted.fullmatch(Path(entry.path).relative_to(folder).as_posix())
        ]
        if not 0 < len(found) <= MAX_FILES:
            raise PathRefused(f"'{name}' matches {len(found):,} files; it must match 1 to {MAX_FILES:,}")
        return found

    def _path(self, real: Path) -> str:
        """Relative to the child's folder; absolute in the folder of a cascade from elsewhere."""
        root = self.workspace.root
        return real.relative_to(root).as_posix() if real.is_relative_to(root) else str(real)


def _encoded(value: Any) -> str:
    """A parameter as the engine reads it: text with escapes. Raises ValueError for lists and maps."""
    if value is None:
        return "\\N"
    if isinstance(value, str):
        return value.translate(_ESCAPES)
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)
    raise ValueError("a query's parameters are text, numbers, true, false or null")


_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"})


def _site() -> Path:
    """The folder that holds chdb, found without importing it. Raises LookupError when it is not installed."""
    spec = importlib.util.find_spec("chdb")
    if spec is None or spec.origin is None:
        raise LookupError("chdb is not installed")
    return Path(spec.origin).resolve().parent.parent


def _result(finished: FinishedCommand) -> ToolResult:
    if finished.timed_out:
        return ToolResult(f"the query took longer than {TIMEOUT_S:g} s and was ended", True, sandbox=finished.level)
    try:
        answer: dict[str, Any] = json.loads(finished.stdout)
    except ValueError:
        last = finished.stderr.strip().splitlines()[-1:] or [f"exit code {finished.exit_code}"]
        return ToolResult(f"the query engine failed: {last[0]}", True, sandbox=finished.level)
    if "error" in answer:
        return ToolResult(f"SqlError: {answer['error']}", True, sandbox=finished.level)
    return ToolResult(_table(answer), sandbox=finished.level, value=_value(answer))


def _value(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {"columns": answer["columns"], "rows": answer["rows"], "total": answer["total"]}


def _table(answer: Mapping[str, Any]) -> str:
    """An aligned text table, then the number of rows."""
    columns, rows, total = answer["columns"], answer["rows"], answer["total"]
    lines = [[_flat(value) for value in line] for line in [columns, *rows]]
    widths = [min(max(len(line[i]) for line in lines), 40) for i in range(len(columns))]
    padded = [" | ".join(value.ljust(width) for value, width in zip(line, widths, strict=True)) for line in lines]
    text = [padded[0].rstrip(), "-+-".join("-" * width for width in widths), *(line.rstrip() for line in padded[1:])]
    count = f"{total:,}" if answer["complete"] else f"more than {SETTINGS['max_result_rows']:,}"
    shown = f", the first {len(rows):,} are shown; aggregate or LIMIT the query" if len(rows) < total else ""
    return "\n".join([*text, f"[{count} {'row' if total == 1 else 'rows'}{shown}]"])


def _flat(value: str | None) -> str:
    return "NULL" if value is None else value.replace("\n", "⏎").replace("\r", "")
