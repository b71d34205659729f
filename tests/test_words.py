"""Words that two places need stand in one of them: tables have a row for each word. That no list is written twice is
told by ``tests/test_public_interfaces.py``, which reads all modules."""

from __future__ import annotations

from pathlib import Path

from workbench.context.cache import PRICES, Price
from workbench.engine.contracts import ToolResult
from workbench.engine.routing.retries import POLICIES
from workbench.engine.run.command import command_values
from workbench.language.dot.attributes import NODE
from workbench.language.lint.pipeline import COMMAND_KEYS
from workbench.language.tables import DATA_TOOLS, table_uses
from workbench.language.words import ASK_HUMAN, ROUTE_TO, SET_STATE, SHELL
from workbench.workspace.project import Project


def test_tables_have_a_row_for_each_word(tmp_path: Path) -> None:
    (row,) = [one for one in NODE if one.name == "retry_policy"]
    assert set(POLICIES) == set(row.choices)
    assert set(command_values(ToolResult("x"))) == set(COMMAND_KEYS)
    assert set(PRICES) <= set(Price.__struct_fields__)
    tools = set(Project.at(tmp_path).environment.lint_environment(tmp_path / "c.yaml").tools or ())
    assert {*DATA_TOOLS, SHELL, ASK_HUMAN, SET_STATE, ROUTE_TO} <= tools


def test_each_data_tool_says_which_outputs_it_reads() -> None:
    samples = ("query", "SELECT * FROM _a"), ("code", "data.a"), ("code", "(:a data)"), ("input_table", "_a")
    for tool in DATA_TOOLS:
        assert any(list(table_uses(tool, argument, text, ["a"])) for argument, text in samples), tool
