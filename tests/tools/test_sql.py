"""smart_sql_run with a real engine in a child: results, refusals by the engine's own parser, and each sandbox level."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

import pytest

from workbench.engine.contracts import ToolResult
from workbench.tools.builtin import sql as sql_module
from workbench.tools.builtin.sql import SqlTool
from workbench.tools.paths import Workspace
from workbench.tools.sandbox import Sandbox


@pytest.fixture
def tool(workspace: Workspace, bwrap: Sandbox) -> SqlTool:
    data = workspace.root / "data"
    (data / "people.json").write_text(json.dumps([{"id": 1, "name": "Ann"}, {"id": 2, "name": None}]))
    (data / "events.jsonl").write_text('{"id": 1, "tags": ["a", "b"]}\n{"id": 3, "tags": []}\n')
    return SqlTool(workspace, bwrap)


def ask(tool: SqlTool, query: str) -> ToolResult:
    return asyncio.run(tool.smart_sql_run(query))


def test_files_are_joined_by_their_relative_names_and_the_engine_is_never_imported_here(tool: SqlTool) -> None:
    before = "chdb" in sys.modules  # Another test of this process may have imported it.
    query = """
        SELECT o.id AS id, p.name AS name, amount
        FROM file('data/orders.csv') AS o JOIN 'data/people.json' AS p USING id ORDER BY id
    """
    result = ask(tool, query)
    assert not result.is_error
    assert ("chdb" in sys.modules) == before
    assert result.sandbox == "bwrap"
    assert result.text.splitlines() == [
        "id | name | amount",
        "---+------+-------",
        "1  | Ann  | 10",
        "2  | NULL | 32",
        "[2 rows]",
    ]
    assert result.value == {
        "columns": ["id", "name", "amount"],
        "rows": [["1", "Ann", "10"], ["2", None, "32"]],
        "total": 2,
    }


def test_parquet_and_json_lines_can_be_read(tool: SqlTool, workspace: Workspace) -> None:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"id": [1, 3]}), workspace.root / "ids.parquet")
    result = ask(tool, "SELECT id, tags FROM 'ids.parquet' JOIN file('data/events.jsonl') USING id ORDER BY id")
    assert result.text.splitlines()[2:] == ['1  | ["a", "b"]', "3  | []", "[2 rows]"]


def test_a_long_result_is_cut_and_says_how_long_it_is(tool: SqlTool) -> None:
    lines = ask(tool, "SELECT number FROM numbers(5000)").text.splitlines()
    assert lines[-1] == "[5,000 rows, the first 200 are shown; aggregate or LIMIT the query]"
    assert len(lines) == 203


def test_an_endless_result_ends(tool: SqlTool) -> None:
    assert "[more than 10,000 rows" in ask(tool, "SELECT number FROM numbers(1000000000)").text


def test_a_mistake_is_an_error_that_the_model_can_read(tool: SqlTool) -> None:
    result = ask(tool, "SELECT nme FROM 'data/people.json'")
    assert result.is_error
    assert result.text.startswith("SqlError: ")
    assert "nme" in result.text
    assert not re.search(r"DB::Exception|version \d", result.text)


@pytest.mark.parametrize("name", [".env", ".workbench/owner.lock", "../outside.csv", "link.csv"])
def test_hidden_and_outside_files_are_refused(tool: SqlTool, workspace: Workspace, name: str) -> None:
    outside = workspace.root.parent / "outside.csv"
    outside.write_text("a\n1\n")
    (workspace.root / "link.csv").symlink_to(outside)
    result = ask(tool, f"SELECT * FROM file('{name}', LineAsString)")
    assert result.is_error
    assert result.text.startswith("PathRefused: ")


def test_parameters_never_become_sql(tool: SqlTool) -> None:
    hostile = "x'; DROP TABLE t; -- \\ \n\t"
    result = asyncio.run(tool.run("SELECT {word:String} = unhex({hex:String}) AS same, {n:Int64} AS n", {
        "word": hostile, "hex": hostile.encode().hex(), "n": 7,
    }))  # fmt: skip
    assert result.text.splitlines()[2] == "1    | 7"


def test_the_folder_of_a_cascade_from_elsewhere_can_be_read_too(root: Path, tmp_path: Path, bwrap: Sandbox) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "far.csv").write_text("a\n5\n")
    assert ask(SqlTool(Workspace.of(root, other), bwrap), "SELECT a FROM 'far.csv'").text.splitlines()[2] == "5"


def test_landlock_holds_the_engine_as_well(
    workspace: Workspace, landlock: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_module, "LADDER", ("landlock",))
    result = ask(SqlTool(workspace, landlock), "SELECT sum(amount) AS total FROM 'data/orders.csv'")
    assert result.text.splitlines()[2] == "42"
    assert result.sandbox == "landlock (weak)"


def test_on_a_bare_machine_a_plain_child_does_it_marked_weak(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_module, "LADDER", ("docker",))
    bare = Sandbox(workspace.root, image="workbench-no-such-image")
    result = ask(SqlTool(workspace, bare), "SELECT sum(amount) AS total FROM 'data/orders.csv'")
    assert result.text.splitlines()[2] == "42"
    assert result.sandbox == "plain child (weak)"
    # The engine's own reading of a statement is checked, before it runs.
    refused = ask(SqlTool(workspace, bare), "SELECT * FROM `/etc/passwd`")
    assert refused.is_error
    assert "the table '/etc/passwd' cannot be read" in refused.text
