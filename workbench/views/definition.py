"""The file as the panes show it before anything ran: the outline of its phases, a card for each, its problems."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from workbench.language.model.parameters import laid_over, named_parameters
from workbench.language.problem import Problem, Severity
from workbench.views.cells import Row, Span, crop, fit, flat, joined
from workbench.views.model import Rows
from workbench.views.numbers import plural
from workbench.views.tree import PhaseOutline

if TYPE_CHECKING:
    from workbench.language.model.cascade import Cascade, ContextSource, Phase, Soundings
    from workbench.language.read.source import Source


def outline(cascade: Cascade | None, source: Source, problems: Sequence[Problem]) -> tuple[PhaseOutline, ...]:
    """The phases in the order of the file, with how many problems each has."""
    if cascade is None:
        return ()
    errors: dict[object, int] = defaultdict(int)
    warnings: dict[object, int] = defaultdict(int)
    for problem in problems:
        if problem.path[:1] == ("phases",) and len(problem.path) > 1:
            counts = errors if problem.severity is Severity.ERROR else warnings
            counts[problem.path[1]] += problem.severity is not Severity.INFO
    into: dict[str, list[str]] = defaultdict(list)
    for phase in cascade.phases:
        for handoff in phase.handoffs:
            into[handoff.target].append(phase.name)
    return tuple(
        PhaseOutline(
            phase.name,
            "tool" if phase.deterministic else "llm",
            source.span(("phases", index)).line,
            tuple(into[phase.name]),
            errors[index],
            warnings[index],
        )
        for index, phase in enumerate(cascade.phases)
    )


def phase_lines(cascade: Cascade | None, source: Source, name: str) -> tuple[int, int]:
    """First and last line of a phase in the file; ``(1, 1)`` when it is not there."""
    for index, phase in enumerate(cascade.phases if cascade else ()):
        if phase.name == name:
            span = source.span(("phases", index))
            return span.line, max(span.line, span.end_line - (1 if span.end_column == 1 else 0))
    return 1, 1


def budget_of(cascade: Cascade | None, name: str) -> int | None:
    """Tokens that a request of the phase may have; None where the file sets no limit."""
    budget = cascade.token_budget if cascade else None
    if budget is None:
        return None
    return max(0, budget.phase_overrides.get(name, budget.max_total) - budget.reserve_for_output)


class CardRows(Rows):
    """What is known of a phase that made no call: what it may use and what it sees."""

    def __init__(self, cascade: Cascade, phase: Phase, hint: str, default_model: str = "", status: str = "") -> None:
        """``status`` is how its last visit ended; empty where it has not run."""
        state = f" · {status}, no model call" if status else " · not run yet"
        self.title = (("Context", "title"), (f"  {flat(phase.name)}", "name"), (state, "dim"))
        self.hint = hint
        self.facts = tuple(_facts(cascade, phase, default_model))

    def heads(self, width: int) -> Sequence[Row]:
        return (Row(crop(((f" {self.hint}", "dim"),), width)),)

    def __len__(self) -> int:
        return len(self.facts)

    def row(self, index: int, width: int) -> Row:
        label, spans = self.facts[index]
        return Row(crop(((f" {fit(label, 12)}", "head"), *spans), width))


def _facts(cascade: Cascade, phase: Phase, default_model: str) -> Iterable[tuple[str, tuple[Span, ...]]]:
    if phase.deterministic:
        if (rule := phase.for_each_row) is not None:
            what = flat(rule.cascade) if rule.cascade is not None else f"'{flat(rule.instructions or '')}'"
            yield "each row", ((f"of {flat(rule.table)}: ", "dim"), (what, "plain"))
        else:
            yield "tool", ((flat(phase.tool or ""), "plain"),)
        for name, value in phase.inputs.items():
            yield "", ((f"{flat(name)} = ", "dim"), (flat(str(value)), "plain"))
    else:
        default = f"the default: {default_model}" if default_model else "the default"
        yield "model", ((flat(phase.model or default), "plain" if phase.model else "dim"),)
        if sent := laid_over(named_parameters(cascade), named_parameters(phase)):
            words = ", ".join(
                f"{flat(name)} {flat(json.dumps(value, ensure_ascii=False))}" for name, value in sent.items()
            )
            yield "sent with", ((words, "plain"),)
        yield "sees", _sees(cascade, phase)
        names = "chosen by the Quartermaster" if phase.manifest else ", ".join(map(flat, phase.tools))
        native = ("  as native tool calls", "dim") if phase.use_native_tools else ("", "plain")
        yield "tools", ((names or "none", "plain" if names else "dim"), native)
        if phase.rag is not None:
            by = f"by likeness ({flat(phase.rag.model)})" if phase.rag.model else "by words"
            yield "documents", ((flat(phase.rag.directory), "plain"), (f"  searched {by}", "dim"))
        if cascade.memory and cascade.memory in phase.tools:
            yield "memory", ((flat(cascade.memory), "plain"), ("  what earlier runs said", "dim"))
        yield "turns", _turns(phase)
        if masking := _masking(cascade, phase):
            yield "older turns", ((masking, "plain"),)
    budget = budget_of(cascade, phase.name)
    if budget is not None and cascade.token_budget is not None:
        yield "budget", ((f"{budget:,} tokens, then {cascade.token_budget.strategy}", "plain"),)
    if checks := _checks(phase):
        yield "checks", ((checks, "plain"),)
    if people := _people(phase):
        yield "people", ((people, "plain"),)
    if phase.handoffs:
        yield "next", ((", ".join(flat(h.target) for h in phase.handoffs), "plain"),)
    if phase.soundings is not None:
        yield "soundings", ((_candidates(phase.soundings), "plain"),)


def _candidates(soundings: Soundings) -> str:
    factor = soundings.factor
    return plural(factor, "candidate") if isinstance(factor, int) else f"{flat(factor)} candidates"


def _people(phase: Phase) -> str:
    """Where a person comes in."""
    asked, spoken, decides = phase.human_input, phase.audibles, phase.decision_points
    parts = [
        f"may speak to it {plural(spoken.budget, 'time')} (S)" if spoken is not None and spoken.enabled else "",
        "decide where its output asks" if decides is not None and decides.enabled else "",
        f"are asked at its end: {asked.type.replace('_', ' ')}" if asked is not None else "",
    ]
    return ", ".join(part for part in parts if part)


def _sees(cascade: Cascade, phase: Phase) -> tuple[Span, ...]:
    parts: list[list[Span]] = []
    rules = phase.context
    if rules is not None:
        if rules.include_input:
            parts.append([("↪ ", "injected"), ("input", "plain")])
        parts += [_source(source) for source in rules.from_]
        if rules.mode == "auto":
            parts.append([(f"what selection adds{_selection(cascade, phase)}", "plain")])
        if not parts:
            parts.append([("nothing from before: a clean start", "plain")])
        return joined(parts, "  ")
    if phase.inject_from is not None:
        return joined(
            [*(_source(source) for source in phase.inject_from), [("then all that came before", "plain")]], "  "
        )
    clean = cascade.context_default == "clean"
    return (("only its task and its own turns" if clean else "all that came before (snowball)", "plain"),)


def _selection(cascade: Cascade, phase: Phase) -> str:
    """How it selects: `` (llm, at most 1,200 tokens)``."""
    from workbench.context.part import PhaseInFile
    from workbench.context.parts.auto import Auto

    auto = Auto.from_file(PhaseInFile(cascade, phase, ()))
    return f" ({auto.strategy}, at most {auto.max_tokens:,} tokens)" if auto is not None else ""


def _source(source: ContextSource) -> list[Span]:
    include = "+".join(source.include) if source.include else "output"
    return [("↪ ", "injected"), (f"{flat(source.phase)}.{include}", "plain")]


def _turns(phase: Phase) -> tuple[Span, ...]:
    rules = phase.rules
    text = f"up to {rules.max_turns}" if rules.max_turns > 1 else "1"
    attempts = f", {rules.max_attempts} attempts" if rules.max_attempts > 1 else ""
    until = f", until {flat(str(rules.loop_until))} passes" if rules.loop_until else ""
    return ((text + attempts + until, "plain"),)


def _masking(cascade: Cascade, phase: Phase) -> str:
    if phase.strategy or cascade.strategy:
        return flat(phase.strategy or cascade.strategy or "")
    rules = phase.intra_context or (cascade.auto_context.intra_phase if cascade.auto_context else None)
    if rules is None or not rules.enabled:
        return ""
    return f"tool results masked after {plural(rules.mask_observations_after, 'turn')}, window {rules.window}"


def _checks(phase: Phase) -> str:
    wards = phase.wards
    names = [
        *(f"pre {ward.validator}" for ward in wards.pre),
        *(f"turn {ward.validator}" for ward in wards.turn),
        *(f"post {ward.validator}" for ward in wards.post),
    ]
    if phase.output_schema is not None:
        names.append(f"output schema (enforced: {phase.enforce})" if phase.enforce else "output schema")
    return ", ".join(flat(name) for name in names)
