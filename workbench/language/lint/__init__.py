"""What `check` finds in a cascade beyond its form: one table of codes, and checks by subject over shared facts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from workbench.language.lint.not_run import not_run
from workbench.language.lint.surroundings import (
    BUILTIN_TOOLS,
    BUILTIN_VALIDATORS,
    Surroundings,
    ToolFacts,
    ToolKind,
    ValidatorFacts,
)
from workbench.language.load import Loaded
from workbench.language.problem import Problem

if TYPE_CHECKING:
    from workbench.language.lint.facts import Check

__all__ = [
    "BUILTIN_TOOLS",
    "BUILTIN_VALIDATORS",
    "Surroundings",
    "ToolFacts",
    "ToolKind",
    "ValidatorFacts",
    "check",
    "not_run",
]


@cache
def _checks() -> tuple[tuple[Check, ...], tuple[Check, ...]]:
    """Checks that judge each value by itself: they hold for a draft too, from which faulty values were left out. And
    those that compare values, and so need all of them. A run needs neither, and does not load them."""
    from workbench.language.lint import candidates, flow, repeats, settings, sources, strategies, templates, tools

    subjects = (flow, sources, strategies, tools, templates, candidates, repeats, settings)
    local = tuple(check for subject in subjects for check in subject.LOCAL)
    return local, tuple(check for subject in subjects for check in subject.WHOLE)


def check(loaded: Loaded, around: Surroundings = Surroundings()) -> tuple[Problem, ...]:
    """Every problem of a file: those of loading and those of the catalogue, by position, each once.

    A file whose cascade could not be loaded is checked as far as its draft goes. Never raises for what a file holds.
    """
    found = dict.fromkeys((*loaded.problems, *_found(loaded, around)))
    return tuple(sorted(found, key=lambda problem: (problem.span, problem.code, problem.message)))


def _found(loaded: Loaded, around: Surroundings) -> Iterator[Problem]:
    cascade, graph = loaded.cascade or loaded.draft, loaded.graph
    if cascade is None or graph is None or not cascade.phases:
        return
    from workbench.language.lint.facts import Facts

    facts = Facts(cascade, graph, loaded.source, around)
    local, whole = _checks()
    checks = local if loaded.cascade is None else (*local, *whole)
    for one in checks:
        yield from one(facts)
    if loaded.cascade is not None:
        yield from not_run(cascade, loaded.source)
