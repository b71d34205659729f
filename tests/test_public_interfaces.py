"""The workbench uses public interfaces of its dependencies alone: nothing of theirs that begins with an underscore."""

from __future__ import annotations

import ast
import inspect
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from jinja2 import sandbox
from textual import app, screen, scroll_view, widget, widgets

ROOT = Path(__file__).resolve().parent.parent
BASES = (
    *(sandbox.SandboxedEnvironment, sandbox.ImmutableSandboxedEnvironment),
    *(app.App, screen.Screen, screen.ModalScreen, widget.Widget, scroll_view.ScrollView),
    *(getattr(widgets, name) for name in vars(widgets)["__all__"]),
)
OF_PYTHON = frozenset({"_exit", "_replace", "_asdict", "_fields", "_make"})
"""Public in spite of their names: of ``os`` and of named tuples."""
ALLOWED = {
    "_skip_mcp_handler": "litellm imports the package mcp for each call with tools without it, and mcp is an extra",
    "_build_environment": "textual-serve starts the app with a fixed environment, and offers no argument for another",
    **dict.fromkeys(
        ("_build_highlight_map", "_highlights"),
        "TextArea has no public way to colour Jinja inside YAML",
    ),
    "_tokenize": "Jinja's parser calls it; no public method of an environment gives it tokens with columns",
    "_chdb": "chDB's handlers of signals swallow Ctrl+Z and hold a crash; only its native module switches them off",
    "_parse": "Jinja compiles what it returns, and calls none of its public methods to look at the tree before",
}
"""Names with the reason why they are used all the same. Keep this short."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


def is_foreign(module: str) -> bool:
    """Whether a module is neither ours nor Python's."""
    return module.partition(".")[0] not in (*sys.stdlib_module_names, "_typeshed", "workbench", "")


PRIVATE = {one.__name__: set(filter(is_private, dir(one))) for one in BASES if inspect.isclass(one)}
"""The private names of each class that ours derive from."""


class Names(NamedTuple):
    """The underscored names of one module."""

    defined: frozenset[str]
    """Given to something by the module."""
    overridden: frozenset[str]
    """Private methods of a library's class that a class derived from it takes the place of."""
    used: frozenset[str]
    """Of attributes, of arguments, and of what is imported from the libraries."""


def bases(node: ast.ClassDef) -> list[str]:
    """The names of the classes that a class derives from, without their modules and parameters."""
    return [ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases]


def bases_of(tree: ast.AST) -> dict[str, list[str]]:
    """The bases of each class of a module."""
    return {node.name: bases(node) for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def private_of(name: str, ours: Mapping[str, Sequence[str]]) -> set[str]:
    """The private names that a class has from a library, by way of our own classes too."""
    return PRIVATE.get(name, set()).union(*(private_of(base, ours) for base in ours.get(name, ()) if base != name))


def names(tree: ast.AST, ours: Mapping[str, Sequence[str]] | None = None) -> Names:
    """All names of a module, in one walk; ``ours`` are the bases of the classes of all modules."""
    ours = ours or bases_of(tree)
    defined, overridden, used = set[str](), set[str](), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            (defined if isinstance(node.ctx, ast.Store) else used).add(node.attr)
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                defined.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            defined.add(node.name)
        elif isinstance(node, ast.ClassDef):
            defined.add(node.name)
            methods = {one.name for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}
            for base in bases(node):
                overridden |= methods & private_of(base, ours)
        elif isinstance(node, ast.keyword):
            used.add(node.arg or "")
        elif isinstance(node, ast.Import):
            used |= {name for alias in node.names if is_foreign(alias.name) for name in alias.name.split(".")}
        elif isinstance(node, ast.ImportFrom) and is_foreign(node.module or ""):
            used |= {*(node.module or "").split("."), *(alias.name for alias in node.names)}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            named = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            used |= {name for module in named if is_foreign(module) for name in module.split(".")}
    return Names(*(frozenset(filter(is_private, found)) for found in (defined, overridden, used)))


def private_uses(modules: Iterable[Names]) -> set[str]:
    """What is private and not ours: used and defined nowhere among these modules, or defined in place of a library's.

    A name that we define somewhere counts as ours everywhere: a text says nothing of types.
    """
    everything = list(modules)
    ours = set[str]().union(*(module.defined for module in everything)) | OF_PYTHON
    used = set[str]().union(*(module.used for module in everything))
    return used - ours | set[str]().union(*(module.overridden for module in everything))


def test_nothing_private_of_a_dependency_is_used() -> None:
    trees = {path: ast.parse(path.read_text("utf-8")) for path in sorted((ROOT / "workbench").rglob("*.py"))}
    ours = {name: classes for tree in trees.values() for name, classes in bases_of(tree).items()}
    modules = {path: names(tree, ours) for path, tree in trees.items()}
    found = private_uses(modules.values())
    where = defaultdict[str, list[str]](list)
    for path, module in modules.items():
        for name in (module.used | module.overridden) & (found - set(ALLOWED)):
            where[name].append(path.relative_to(ROOT).as_posix())

    assert dict(where) == {}
    assert set(ALLOWED) <= found, "an exception that nothing needs any more"


@pytest.mark.parametrize(
    "text",
    [
        "import litellm\nlitellm.main._cache()",
        "from tiktoken import _educational",
        "import rich._loop",
        "import importlib\nimportlib.import_module('pandas._libs')",
        "from jinja2.sandbox import SandboxedEnvironment\nclass A(SandboxedEnvironment):\n    def _parse(self): ...",
        "from textual.app import App\nclass A(App[None]):\n    def go(self): self._refresh_notifications()",
        "def keys(widget): return widget._bindings",
        "import textual\ntextual.work(_private=1)",
    ],
)
def test_private_uses_are_seen(text: str) -> None:
    assert private_uses([names(ast.parse(text))])


def test_what_is_ours_or_pythons_may_be_used() -> None:
    text = "class A:\n    def __init__(self): self._a = 1\n    def b(self, other): return other._a, place._replace(x=1)"
    assert private_uses([names(ast.parse(text))]) == set()
