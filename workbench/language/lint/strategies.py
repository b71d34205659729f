"""Strategy specs: those that cannot be read, and the fields that they make void."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.language.lint.environment import StrategyFacts
from workbench.language.lint.facts import Check, Facts, Finding
from workbench.language.lint.place import PhaseAt
from workbench.language.problem import Path


def _written(facts: Facts) -> Iterator[tuple[Path, str]]:
    """Each place that holds a spec."""
    cascade = facts.cascade
    yield from ((("strategies", name), spec) for name, spec in cascade.strategies.items())
    if cascade.strategy is not None:
        yield ("strategy",), cascade.strategy
    for at in facts.all_phases:
        if at.phase.strategy is not None:
            yield (*at.path, "strategy"), at.phase.strategy


def readable(facts: Facts) -> Iterator[Finding]:
    """L721."""
    read, named = facts.around.bad_strategy, facts.cascade.strategies
    for path, spec in _written(facts) if read is not None else ():
        if path[0] != "strategies" and spec.strip() in named:
            continue
        fault = read(spec) if read is not None else None
        if fault is not None:
            problem, column = fault
            span = facts.place.inside(path, column - 1)
            yield facts.report("L721", path, span=span, name=spec, problem=problem)


def _covered(facts: Facts, spec: str) -> StrategyFacts:
    return facts.around.strategy_facts(facts.cascade.strategies.get(spec.strip(), spec))


def read_by_strategy(facts: Facts, at: PhaseAt) -> frozenset[str]:
    """The fields that the strategy of a phase reads itself, whatever else the phase says."""
    spec = at.phase.strategy or facts.cascade.strategy
    return _covered(facts, spec).reads if spec is not None else frozenset()


def overruled(facts: Facts) -> Iterator[Finding]:
    """L403: a strategy wins over the fields that it covers."""
    cascade = facts.cascade
    for at in facts.all_phases:
        spec = at.phase.strategy or cascade.strategy
        if spec is None:
            continue
        because = f"'strategy: {spec}' is set" if at.phase.strategy else f"the cascade's 'strategy: {spec}' is set"
        for field in _covered(facts, spec).void:
            if field in at.phase.model_fields_set:
                yield facts.report("L403", (*at.path, field), at_key=True, field=field, because=because)
    if cascade.strategy is not None and cascade.token_budget is not None and _covered(facts, cascade.strategy).fits:
        because = f"'strategy: {cascade.strategy}' is set"
        yield facts.report("L403", ("token_budget",), at_key=True, field="token_budget", because=because)


LOCAL: tuple[Check, ...] = (readable,)
WHOLE: tuple[Check, ...] = (overruled,)
