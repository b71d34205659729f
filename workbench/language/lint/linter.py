"""Runs the checks of a cascade beyond its form: one table of codes, and checks by subject over shared facts."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from workbench.language.lint import candidates, flow, repeats, settings, sources, strategies, templates, tools
from workbench.language.lint.facts import Check, Facts
from workbench.language.lint.not_run import not_run
from workbench.language.lint.pipeline import check_pipeline
from workbench.language.lint.surroundings import LintEnvironment
from workbench.language.load import Loaded
from workbench.language.problem import Problem, Severity

_WALK = frozenset(("phases", "name", "handoffs", "routing", "on_error", "decision_points", "tackle", "tool"))
_CONTEXT = frozenset(("context", "inject_from", "fidelity", "thread_id", "strategy", "strategies"))
_ASKED = frozenset(("model", "soundings", "use_native_tools"))
_SUBJECTS = (
    (flow, _WALK),
    (sources, _WALK | _CONTEXT | {"context_default", "auto_context", "use_native_tools", "default_fidelity"}),
    (strategies, _CONTEXT | {"phases", "intra_context", "token_budget"}),
    (tools, _ASKED | {"phases", "tackle", "validators", "manifest_context"}),
    (
        templates,
        _WALK
        | {"inputs_schema", "sub_cascades", "validators", "output_extraction", "output_schema"}
        | {"human_input", "rules", "soundings"},
    ),
    (candidates, _ASKED | {"phases"}),
    (repeats, _ASKED | {"phases", "rules", "wards", "output_schema", "intra_context", "auto_context", "validators"}),
    (settings, _ASKED | {"phases", "tackle", "human_input", "tool_caching", "token_budget"}),
)

_LOCAL: tuple[Check, ...] = tuple(check for subject, _ in _SUBJECTS for check in subject.LOCAL)
"""Checks that judge each value by itself: they hold for a draft too, from which faulty values were left out."""

_WHOLE: tuple[tuple[Check, frozenset[str]], ...] = tuple(
    (check, fields) for subject, fields in _SUBJECTS for check in subject.WHOLE
)
"""Checks that compare values, with the fields that they compare."""


def check(loaded: Loaded, around: LintEnvironment = LintEnvironment()) -> tuple[Problem, ...]:
    """Every problem of a file: those of loading and those of the catalogue, by position, each once.

    A file whose cascade could not be loaded is checked as far as its draft goes. Never raises for any content of a
    file.
    """
    found = dict.fromkeys((*loaded.problems, *_found(loaded, around)))
    return tuple(sorted(found, key=lambda problem: (problem.span, problem.code, problem.message)))


def _left_out(loaded: Loaded) -> frozenset[str]:
    """The fields that a draft lacks because their value is wrong: comparing them would report too much."""
    if loaded.cascade is not None:
        return frozenset()
    wrong = (problem.path for problem in loaded.problems if problem.severity is Severity.ERROR)
    return frozenset(
        str(path[2] if path[0] == "phases" and len(path) > 2 else path[0]) if path else "phases" for path in wrong
    )


def _found(loaded: Loaded, around: LintEnvironment) -> Iterator[Problem]:
    if loaded.own is not None:
        if loaded.own.format == "dot":
            yield from check_pipeline(loaded, around)
            if (pipeline := loaded.cascade or loaded.draft) is not None:
                yield from strategies.readable(Facts(pipeline, loaded.own, loaded.source, around))
        elif (job := loaded.cascade or loaded.draft) is not None:
            # A task whose tool is unknown fails by itself, and the rest of the job runs.
            for found in tools.known_tools(Facts(job, loaded.own, loaded.source, around)):
                yield replace(found, severity=Severity.WARNING)
        return
    cascade, graph = loaded.cascade or loaded.draft, loaded.graph
    if cascade is None or graph is None or not cascade.phases:
        return
    facts = Facts(cascade, graph, loaded.source, around)
    left_out = _left_out(loaded)
    for one in (*_LOCAL, *(check for check, fields in _WHOLE if not fields & left_out)):
        yield from one(facts)
    yield from not_run(cascade, loaded.source)
