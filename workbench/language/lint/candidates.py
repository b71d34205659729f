"""Soundings, of a phase or of the cascade: settings that contradict or do nothing, and models without a price."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.language.lint.facts import Check, Facts, Finding, bare_model, models_of
from workbench.language.model.candidates import Soundings
from workbench.language.model.cascade import Phase
from workbench.language.problem import Path

COMPARING = (
    *("evaluator_instructions", "validator", "mutate", "mutation_mode", "mutations", "cost_aware_evaluation"),
    *("pareto_frontier", "evaluator", "human_eval", "llm_prefilter", "llm_prefilter_instructions"),
)
"""Fields that only matter between several candidates."""


def _all(facts: Facts) -> Iterator[tuple[Path, Soundings, Phase | None]]:
    """Each soundings block with the path of what it belongs to."""
    if facts.cascade.soundings is not None:
        yield (), facts.cascade.soundings, None
    for at in facts.all_phases:
        if at.phase.soundings is not None:
            yield at.path, at.phase.soundings, at.phase


def models(facts: Facts) -> Iterator[Finding]:
    """L701, L702, L719."""
    for path, soundings, phase in _all(facts):
        block = (*path, "soundings")
        if phase is not None and phase.model is not None and soundings.models:
            yield facts.report("L701", (*path, "model"), at_key=True)
        total = soundings.shares_total
        if not total:
            continue
        if soundings.model_strategy == "random":
            yield facts.report("L719", (*block, "model_strategy"), fix="weighted")
        elif soundings.model_strategy == "round_robin" and soundings.factor != total:
            yield facts.report("L702", (*block, "factor"), factor=soundings.factor, total=total, fix=str(total))


def idle(facts: Facts) -> Iterator[Finding]:
    """L704, L705, L712, L715: fields that another field makes void."""
    for path, soundings, _ in _all(facts):
        block, written = (*path, "soundings"), soundings.model_fields_set
        if soundings.candidates == 1 and soundings.reforge is None and soundings.mode == "evaluate":
            for field in COMPARING:
                if field in written and getattr(soundings, field) is not False:
                    yield facts.report("L704", (*block, field), at_key=True, field=field)
                    break
        elif "mutate" in written and not soundings.mutate:
            for field in ("mutations", "mutation_mode"):
                if field in written:
                    yield facts.report("L705", (*block, field), at_key=True, field=field)
        for field, needs in _unmet(soundings):
            if field in written:
                yield facts.report("L712", (*block, field), at_key=True, field=field, needs=needs)
        threshold = soundings.reforge.threshold if soundings.reforge else None
        if threshold is not None and "mode" in threshold.model_fields_set:
            yield facts.report("L715", (*block, "reforge", "threshold", "mode"), at_key=True)


def _unmet(soundings: Soundings) -> Iterator[tuple[str, str]]:
    if soundings.evaluator is None:
        yield "human_eval", "evaluator: human"
    if soundings.evaluator != "hybrid":
        yield "llm_prefilter", "evaluator: hybrid"
        yield "llm_prefilter_instructions", "evaluator: hybrid"
    if soundings.mode != "aggregate":
        yield "aggregator_instructions", "mode: aggregate"
        yield "aggregator_model", "mode: aggregate"


def costs(facts: Facts) -> Iterator[Finding]:
    """L703, L713."""
    for path, soundings, phase in _all(facts):
        pareto, cost_aware = soundings.pareto_frontier, soundings.cost_aware_evaluation
        frontier = pareto is not None and pareto.enabled
        weighing = cost_aware is not None and cost_aware.enabled
        if frontier and weighing:
            yield facts.report("L703", (*path, "soundings", "cost_aware_evaluation"), at_key=True)
        if not (frontier or weighing):
            continue
        named = list(models_of(soundings, path))
        if not named and phase is not None and phase.model is not None:
            named = [((*path, "model"), False, phase.model)]
        told: set[str] = set()
        for at, is_key, name in named:
            if name not in told and facts.around.price_known(bare_model(name)) is False:
                told.add(name)
                yield facts.report("L713", at, at_key=is_key, name=name)


LOCAL: tuple[Check, ...] = ()
WHOLE: tuple[Check, ...] = (models, idle, costs)
