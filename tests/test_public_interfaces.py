"""What the texts of all modules show: nothing private of a dependency is used, no list of words is written twice."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping, Sequence
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


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


def is_foreign(module: str) -> bool:
    """Whether a module is neither ours nor Python's."""
    return module.partition(".")[0] not in (*sys.stdlib_module_names, "_typeshed", "workbench", "")


PRIVATE = {one.__name__: set(filter(is_private, dir(one))) for one in BASES if inspect.isclass(one)}
"""The private names of each class that ours derive from."""


class Names(NamedTuple):
    """The underscored names of one module."""

    defined: set[str]
    """Given to something by the module."""
    used: set[str]
    """Of attributes, of arguments, and of what is imported from the libraries."""
    classes: dict[str, list[str]]
    """The bases of each class, without their modules and parameters."""
    methods: dict[str, set[str]]
    """The private methods of each class."""
    lists: set[frozenset[str]]
    """The lists, tuples and sets of words alone."""


def bases(node: ast.ClassDef) -> list[str]:
    return [ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases]


def private_of(name: str, ours: Mapping[str, Sequence[str]]) -> set[str]:
    """The private names that a class has from a library, by way of our own classes too."""
    return PRIVATE.get(name, set()).union(*(private_of(base, ours) for base in ours.get(name, ()) if base != name))


def is_import(function: ast.expr) -> bool:
    """Whether what is called is ``import_module``."""
    return "import_module" in (getattr(function, "attr", ""), getattr(function, "id", ""))


def names(text: str) -> Names:
    """All names of a module, in one walk."""
    found = Names(set(), set(), {}, {}, set())
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute):
            (found.defined if isinstance(node.ctx, ast.Store) else found.used).add(node.attr)
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                found.defined.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.defined.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found.defined.add(node.name)
            methods = {one.name for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}
            found.classes[node.name] = bases(node)
            found.methods[node.name] = set(filter(is_private, methods))
        elif isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            words = {one.value for one in node.elts if isinstance(one, ast.Constant) and isinstance(one.value, str)}
            if len(words) >= FEWEST and all(isinstance(one, ast.Constant) and one.value in words for one in node.elts):
                found.lists.add(frozenset(words))
        elif isinstance(node, ast.keyword):
            found.used.add(node.arg or "")
        elif isinstance(node, ast.Import):
            found.used.update(name for one in node.names if is_foreign(one.name) for name in one.name.split("."))
        elif isinstance(node, ast.ImportFrom) and is_foreign(node.module or ""):
            found.used.update((node.module or "").split("."), (one.name for one in node.names))
        elif isinstance(node, ast.Call) and is_import(node.func):
            named = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            found.used.update(name for module in named if is_foreign(module) for name in module.split("."))
    return Names(set(filter(is_private, found.defined)), set(filter(is_private, found.used)), *found[2:])


def private_uses(modules: Sequence[Names]) -> list[set[str]]:
    """What is private and not ours, by module: used and defined nowhere among these modules, or a method in place of a
    library's.

    A name that we define somewhere counts as ours everywhere: a text says nothing of types.
    """
    defined = set[str]().union(*(module.defined for module in modules)) | OF_PYTHON
    classes = {name: of for module in modules for name, of in module.classes.items()}
    return [
        (module.used - defined).union(
            *(methods & private_of(base, classes) for name, methods in module.methods.items() if methods
              for base in module.classes[name])
        )
        for module in modules
    ]  # fmt: skip


@pytest.fixture(scope="module")
def modules() -> Mapping[str, Names]:
    """All of the program, by path. One text at a time: the trees of all of them take half a gigabyte."""
    paths = sorted((ROOT / "workbench").rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): names(path.read_text("utf-8")) for path in paths}


def test_nothing_private_of_a_dependency_is_used(modules: Mapping[str, Names]) -> None:
    found = private_uses(list(modules.values()))
    where = {path: of - set(ALLOWED) for path, of in zip(modules, found, strict=True)}
    assert {path: of for path, of in where.items() if of} == {}
    assert set(ALLOWED) <= set().union(*found), "an exception that nothing needs any more"


def test_no_list_of_words_is_written_in_two_modules(modules: Mapping[str, Names]) -> None:
    found: dict[frozenset[str], list[str]] = {}
    for path, module in modules.items():
        for words in module.lists:
            found.setdefault(words, []).append(path)
    twice = {tuple(sorted(words)): paths for words, paths in found.items() if len(paths) > 1}
    assert {words: paths for words, paths in twice.items() if set(words) not in BY_CHANCE} == {}
    assert [one for one in BY_CHANCE if tuple(sorted(one)) not in twice] == []


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
    assert private_uses([names(text)])[0]


def test_what_is_ours_or_pythons_may_be_used() -> None:
    text = "class A:\n    def __init__(self): self._a = 1\n    def b(self, other): return other._a, place._replace(x=1)"
    assert private_uses([names(text)]) == [set()]
