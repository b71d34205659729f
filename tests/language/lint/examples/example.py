"""What an example is, and how it is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent

from workbench.context.strategy import strategy_facts
from workbench.language.lint.environment import LintEnvironment, ToolFacts
from workbench.workspace.project import Project

MARK = "«"
"""Stands before the character that the finding must point at; it is taken out before the file is read."""
FALLBACK = """
- {name: a, tool: t, on_error: {name: rescue, instructions: x}}
"""
"""A phase whose stand-in is written in place."""


def reading(files: Mapping[str, str]) -> Callable[[str], str | None]:
    """A reader of files that exist in memory alone."""
    return {name: whole(text) for name, text in files.items()}.get


def whole(text: str) -> str:
    """A file. What begins with a phase gets the head of a cascade."""
    text = dedent(text).strip("\n") + "\n"
    return "cascade_id: c\nphases:\n" + text if text.replace(MARK, "").startswith("- ") else text


with TemporaryDirectory() as _empty:
    _built_in = Project.at(Path(_empty)).environment.lint_environment(Path(_empty) / "c.yaml")
BUILTIN_TOOLS = {name: ToolFacts("builtin") for name in _built_in.tools or ()}
BUILTIN_VALIDATORS = dict(_built_in.validators or {})
"""What a folder without anything in it offers."""


@dataclass(frozen=True)
class Example:
    """``bad`` gives the code exactly once, at the mark; ``good`` does not give it."""

    code: str
    bad: str
    good: str
    around: LintEnvironment = LintEnvironment(BUILTIN_TOOLS, BUILTIN_VALIDATORS, strategy_facts=strategy_facts)
    file: str = "c.yaml"
    fix: str | None = None
    id: str = ""
    """Tells it from other examples of its code."""

    @property
    def name(self) -> str:
        return f"{self.code} {self.id}".strip()

    @property
    def text(self) -> str:
        return whole(self.bad).replace(MARK, "")

    @property
    def place(self) -> tuple[int, int]:
        """Line and column of the mark."""
        before = whole(self.bad).split(MARK)[0]
        return before.count("\n") + 1, len(before) - before.rfind("\n")
