"""Runs the checks of a cascade beyond its form: one table of codes, and checks by subject over shared facts."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from workbench.language.lint import candidates, flow, repeats, settings, sources, strategies, templates, tools
from workbench.language.lint.environment import LintEnvironment
from workbench.language.lint.facts import Check, Facts
from workbench.language.lint.not_run import not_run
from workbench.language.lint.pipeline import check_pipeline
from workbench.language.load import Loaded
from workbench.language.problem import Path, Problem, Severity

_WALK = frozenset(("phases", "name", "handoffs", "routing", "on_error", "decision_points", "tackle", "tool"))
_CONTEXT = frozenset(("context", "inject_from", "fidelity", "thread_id", "strategy", "strategies"))
_ASKED = frozenset(("model", "soundings", "use_native_tools"))
_SUBJECTS = (flow, sources, strategies, tools, templates, candidates, repeats, settings)

_LOCAL: tuple[Check, ...] = tuple(check for subject in _SUBJECTS for check in subject.LOCAL)
"""Checks that judge each value by itself: they hold for a draft too, from which faulty values were left out."""

_ACROSS: tuple[tuple[tuple[Check, ...], frozenset[str]], ...] = (
    (flow.WHOLE, _WALK),
    (sources.WHOLE, _WALK | _CONTEXT | {"context_default", "auto_context", "use_native_tools", "default_fidelity"}),
    (
        templates.WHOLE,
        _WALK
        | {"inputs_schema", "sub_cascades", "validators", "output_extraction", "output_schema"}
        | {"human_input", "for_each_row"},
    ),
)
"""Checks that compare the phases with each other, and the fields that they compare."""

_WITHIN: tuple[tuple[tuple[Check, ...], frozenset[str]], ...] = (
    (strategies.WHOLE, _CONTEXT | {"phases", "intra_context", "token_budget"}),
    (tools.WHOLE, _ASKED | {"phases", "tackle", "validators", "manifest_context"}),
    (templates.WITHIN, frozenset(("phases", "rules"))),
    (candidates.WHOLE, _ASKED | {"phases"}),
    (
        repeats.WHOLE,
        _ASKED | {"phases", "rules", "wards", "output_schema", "intra_context", "auto_context", "validators"},
    ),
    (settings.WHOLE, _ASKED | {"phases", "tackle", "handoffs", "human_input", "tool_caching", "token_budget"}),
)
"""Checks that compare the values of one phase with each other and with those of the cascade."""


def check(loaded: Loaded, around: LintEnvironment = LintEnvironment()) -> tuple[Problem, ...]:
    """Every problem of a file: those of loading and those of the catalogue, by position, each once.

    A file whose cascade could not be loaded is checked as far as its draft goes. Never raises for any content of a
    file.
    """
    found = dict.fromkeys((*loaded.problems, *_found(loaded, around)))
    return tuple(sorted(found, key=lambda problem: (problem.span, problem.code, problem.message)))


def _left_out(loaded: Loaded) -> dict[int | None, set[str]]:
    """The fields that a draft lacks because their value is wrong, by the number of the phase, None for the cascade's
    own: comparing them would report too much."""
    found: dict[int | None, set[str]] = {}
    for problem in loaded.problems if loaded.cascade is None else ():
        if problem.severity is Severity.ERROR:
            phase = _phase(problem.path)
            field = "phases" if not problem.path else problem.path[0 if phase is None or len(problem.path) < 3 else 2]
            found.setdefault(phase, set()).add(str(field))
    return found


def _phase(path: Path) -> int | None:
    """The number of the phase that a path leads into."""
    return path[1] if len(path) > 1 and path[0] == "phases" and isinstance(path[1], int) else None


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
    anywhere = frozenset().union(*left_out.values())
    for one in _LOCAL:
        yield from one(facts)
    for checks, fields in _ACROSS:
        if not fields & anywhere:
            for one in checks:
                yield from one(facts)
    for checks, fields in _WITHIN:
        wrong = {phase for phase, lacks in left_out.items() if fields & lacks}
        for one in checks if None not in wrong else ():
            yield from (found for found in one(facts) if not wrong or _phase(found.path) not in (None, *wrong))
    yield from not_run(cascade, loaded.source)
