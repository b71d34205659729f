"""The tools that exist in every workspace, and which of them need a sandbox."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec import Struct

from workbench.tools.builtin.chart import create_chart
from workbench.tools.builtin.data import TIMEOUT_S as DATA_TIMEOUT_S
from workbench.tools.builtin.data import DataTools
from workbench.tools.builtin.files import FileTools
from workbench.tools.builtin.search import TIMEOUT_S as SEARCH_TIMEOUT_S
from workbench.tools.builtin.search import SearchTool
from workbench.tools.builtin.shell import MAX_TIMEOUT_S, ShellTools
from workbench.tools.builtin.sql import TIMEOUT_S as SQL_TIMEOUT_S
from workbench.tools.builtin.sql import SqlTool
from workbench.tools.paths import Workspace
from workbench.tools.registry import Function, Kind, Tool
from workbench.tools.sandbox import Sandbox
from workbench.tools.schema import own_spec_of

_SLACK_S = 15.0
"""Beyond a tool's own deadline, after which the toolbox gives up on it."""


class _Row(Struct, frozen=True):
    function: Function
    side_effects: bool
    timeout_s: float
    needs_sandbox: bool = False


def builtin_tools(workspace: Workspace, sandbox: Sandbox) -> dict[str, Callable[[], Tool]]:
    """Returns the functions that describe each of them, by name. Names are those of the functions."""
    files, shell = FileTools(workspace), ShellTools(sandbox, workspace.also, workspace.begin)
    data = DataTools(sandbox, workspace.also)
    rows = (
        _Row(files.read_file, False, 30.0),
        _Row(files.list_files, False, 30.0),
        _Row(SearchTool(workspace).search_files, False, SEARCH_TIMEOUT_S + _SLACK_S),
        _Row(SqlTool(workspace, sandbox).smart_sql_run, False, SQL_TIMEOUT_S + _SLACK_S),
        _Row(create_chart, False, 60.0),
        _Row(shell.linux_shell, True, MAX_TIMEOUT_S + _SLACK_S, needs_sandbox=True),
        _Row(shell.run_code, True, MAX_TIMEOUT_S + _SLACK_S, needs_sandbox=True),
        _Row(data.sql_data, False, DATA_TIMEOUT_S + _SLACK_S),
        _Row(data.python_data, True, DATA_TIMEOUT_S + _SLACK_S, needs_sandbox=True),
        _Row(data.js_data, True, DATA_TIMEOUT_S + _SLACK_S, needs_sandbox=True),
        _Row(data.clojure_data, True, DATA_TIMEOUT_S + _SLACK_S, needs_sandbox=True),
        _Row(data.bash_data, True, DATA_TIMEOUT_S + _SLACK_S, needs_sandbox=True),
    )
    return {row.function.__name__: partial(_tool, row) for row in rows}


def _tool(row: _Row) -> Tool:
    name = row.function.__name__
    spec = own_spec_of(name, row.function, side_effects=row.side_effects)
    return Tool(name, spec, row.function, Kind.BUILTIN, timeout_s=row.timeout_s, needs_sandbox=row.needs_sandbox)
