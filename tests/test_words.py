"""Words that two places need stand in one of them: no list is written twice, and tables have a row for each word."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import workbench
from workbench.context.cache import PRICES, Price
from workbench.engine.contracts import ToolResult
from workbench.engine.routing.retries import POLICIES
from workbench.engine.run.command import command_values
from workbench.language.dot.attributes import NODE
from workbench.language.lint.pipeline import COMMAND_KEYS
from workbench.language.tables import DATA_TOOLS, table_uses
from workbench.language.words import ASK_HUMAN, ROUTE_TO, SET_STATE, SHELL
from workbench.workspace.project import Project

ROOT = Path(workbench.__file__).parent
FEWEST = 4
"""Words of a list; a shorter one is alike by chance."""
BY_CHANCE = (
    # What programs of other makers call things: each reader and writer of a format stands for itself.
    {"temperature", "top_p", "top_k", "max_tokens", "seed", "frequency_penalty", "presence_penalty"},
    {"content", "reasoning", "reasoning_content", "refusal"},
    # Colours that a theme must have, and those that a palette shows.
    {"accent", "background", "error", "foreground", "primary", "secondary", "success", "warning"},
    # Slots of a cursor in two languages; parts of the system that two kinds of sandbox show.
    {"key", "model", "phase", "tool", "value"},
    {"/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d"},
    # Operators of Python in an expression; directions; prices without that of an hour.
    {"and", "in", "not", "or"},
    {"down", "left", "right", "up"},
    {"cache_read", "cache_write", "input", "output"},
)


def _lists(tree: ast.AST) -> Iterator[frozenset[str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            words = [one.value for one in node.elts if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            if len(words) == len(node.elts) and len(set(words)) >= FEWEST:
                yield frozenset(words)


def test_no_list_of_words_is_written_in_two_modules() -> None:
    found: dict[frozenset[str], set[str]] = defaultdict(set)
    for file in ROOT.rglob("*.py"):
        for words in _lists(ast.parse(file.read_text("utf-8"))):
            found[words].add(str(file.relative_to(ROOT)))
    twice = {tuple(sorted(words)): sorted(files) for words, files in found.items() if len(files) > 1}
    assert {words: files for words, files in twice.items() if set(words) not in BY_CHANCE} == {}
    assert [one for one in BY_CHANCE if tuple(sorted(one)) not in twice] == []


def test_tables_have_a_row_for_each_word(tmp_path: Path) -> None:
    (row,) = [one for one in NODE if one.name == "retry_policy"]
    assert set(POLICIES) == set(row.choices)
    assert set(command_values(ToolResult("x"))) == set(COMMAND_KEYS)
    assert set(PRICES) <= set(Price.__struct_fields__)
    tools = set(Project.at(tmp_path).environment.surroundings(tmp_path / "c.yaml").tools or ())
    assert {*DATA_TOOLS, SHELL, ASK_HUMAN, SET_STATE, ROUTE_TO} <= tools


def test_each_data_tool_says_which_outputs_it_reads() -> None:
    samples = ("query", "SELECT * FROM _a"), ("code", "data.a"), ("code", "(:a data)"), ("input_table", "_a")
    for tool in DATA_TOOLS:
        assert any(list(table_uses(tool, argument, text, ["a"])) for argument, text in samples), tool
