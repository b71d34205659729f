"""Rules of the house that the code itself must keep: text goes through one door, workers never end the app."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "workbench" / "tui"
FILES = sorted(SOURCE.rglob("*.py"))

WIDGETS = {"Static", "Label", "Button", "Option", "Digits", "Link", "Checkbox", "RadioButton", "Tab", "Collapsible"}
METHODS = {"update", "notify", "add_row", "add_leaf", "set_label", "set_content"}
TITLES = {"border_title", "border_subtitle", "tooltip", "title", "sub_title"}
DOORS = {"plain", "styled", "clean", "clean_line"}
"""The functions that make text harmless."""
ROWS = {"self", "rows", "made", "empty", "waiting"}
"""Names of what is not a widget: its title is spans, which ``draw`` cleans as the last one before a terminal."""


def name_of(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def is_harmless(node: ast.expr, tree: ast.AST) -> bool:
    """A literal of our own source, what went through the door, or what a method of the file makes: a ``Content``."""
    if isinstance(node, ast.Constant):
        return True
    return isinstance(node, ast.Call) and (name_of(node.func) in DOORS or name_of(node.func) in makers(tree))


def makers(tree: ast.AST) -> set[str]:
    """Functions that say that they give ``Content``, or ``HangingIndent`` lines of it, and make it by a door alone."""
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and isinstance(node.returns, ast.Name)
        and node.returns.id in ("Content", "HangingIndent")
        if all(
            isinstance(made := laid_out(back.value), ast.Call) and name_of(made.func) in DOORS
            for back in ast.walk(node)
            if isinstance(back, ast.Return)
        )
    }


def laid_out(value: ast.expr | None) -> ast.expr | None:
    """The ``Content`` that is laid out as hanging lines; what is not so laid out is taken as it is."""
    return value.args[0] if isinstance(value, ast.Call) and name_of(value.func) == "HangingIndent" else value


def texts_for_widgets(tree: ast.AST) -> Iterator[ast.expr]:
    """Every expression that becomes text of a widget."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            widget = isinstance(node.func, ast.Name) and node.func.id in WIDGETS
            method = isinstance(node.func, ast.Attribute) and node.func.attr in METHODS
            if widget or (method and not isinstance(node.args[0], ast.Dict)):
                yield node.args[0]
        if isinstance(node, ast.Assign):
            for target in node.targets:
                on_widget = isinstance(target, ast.Attribute) and name_of(target.value) not in ROWS
                if on_widget and name_of(target) in TITLES:
                    yield node.value


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    """What stands in each file."""
    return {str(file.relative_to(SOURCE)): ast.parse(file.read_text()) for file in FILES}


def test_no_text_from_outside_reaches_a_widget_but_through_the_door(trees: dict[str, ast.Module]) -> None:
    found = [
        f"{file}:{node.lineno}: {ast.unparse(node)}"
        for file, tree in trees.items()
        for node in texts_for_widgets(tree)
        if not is_harmless(node, tree)
    ]
    assert not found


def test_no_worker_ends_the_app_and_none_is_called_back_blocking(trees: dict[str, ast.Module]) -> None:
    found = []
    for file, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                works = (one for one in node.decorator_list if name_of(getattr(one, "func", one)) == "work")
                found += [f"{file}:{one.lineno}: it may end the app" for one in works if not keeps_the_app(one)]
            if isinstance(node, ast.Call) and name_of(node.func) == "call_from_thread":
                found.append(f"{file}:{node.lineno}: it blocks")
    assert not found


def keeps_the_app(decorator: ast.expr) -> bool:
    """Whether a worker is declared with ``exit_on_error=False``."""
    keywords = {k.arg: k.value for k in decorator.keywords} if isinstance(decorator, ast.Call) else {}
    value = keywords.get("exit_on_error")
    return isinstance(value, ast.Constant) and value.value is False


def test_the_rest_is_imported_in_two_steps_behind_the_first_frame() -> None:
    """Imports inside functions hide circles, and let a key wait for a module."""
    lazy = [
        f"{file.name}: {ast.unparse(statement)}"
        for file in FILES
        for function in ast.walk(ast.parse(file.read_text()))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for statement in ast.walk(function)
        if isinstance(statement, ast.Import | ast.ImportFrom)
    ]
    assert lazy == [
        "app.py: from workbench.tui.bench.opening import opened_first",
        "app.py: from workbench.tui.navigation import Navigator",
    ]
