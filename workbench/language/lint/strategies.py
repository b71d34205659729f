"""Strategy specs: those that cannot be read, and the fields that they make void."""

from __future__ import annotations

import re
from collections.abc import Iterator

from workbench.language.lint.facts import Check, Facts, Finding
from workbench.language.lint.place import PhaseAt
from workbench.language.problem import Path

ENTERING = frozenset({"snowball", "inject", "auto", "fidelity", "entities"})
"""Parts that say what enters a phase in place of its own fields; ``selective`` leaves it to them."""
_READ_BY = {"context": "auto", "inject_from": "inject", "thread_id": "fidelity"}
SURVIVING = frozenset({"mask", "slide", "clear", "loop"})
_PART = re.compile(r"(?:^|\+)\s*([a-z_]+)")
_NESTED = re.compile(r"\([^()]*\)")


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


def _parts(facts: Facts, spec: str) -> frozenset[str]:
    text = facts.cascade.strategies.get(spec.strip(), spec)
    return frozenset(_PART.findall(_NESTED.sub("", text)))


def void_fields(parts: frozenset[str]) -> tuple[str, ...]:
    """The fields of a phase that a strategy with these parts makes void. What such a part reads itself is not among
    them: ``auto`` keeps to the sources and anchors of ``context``, ``inject`` takes its own from ``inject_from``."""
    entering: tuple[str, ...] = ("context", "inject_from", "fidelity", "thread_id") if parts & ENTERING else ()
    entering = tuple(field for field in entering if _READ_BY.get(field) not in parts)
    masking = ("intra_context",) if parts & (ENTERING | SURVIVING | {"selective"}) else ()
    return (*entering, *masking)


def read_by_strategy(facts: Facts, at: PhaseAt) -> frozenset[str]:
    """The fields that the strategy of a phase reads itself, whatever else the phase says."""
    spec = at.phase.strategy or facts.cascade.strategy
    parts = _parts(facts, spec) if spec is not None else frozenset()
    return frozenset(field for field, part in _READ_BY.items() if part in parts)


def overruled(facts: Facts) -> Iterator[Finding]:
    """L403: a strategy wins over the fields that it covers."""
    cascade = facts.cascade
    for at in facts.all_phases:
        spec = at.phase.strategy or cascade.strategy
        if spec is None:
            continue
        because = f"'strategy: {spec}' is set" if at.phase.strategy else f"the cascade's 'strategy: {spec}' is set"
        for field in void_fields(_parts(facts, spec)):
            if field in at.phase.model_fields_set:
                yield facts.report("L403", (*at.path, field), at_key=True, field=field, because=because)
    named = _parts(facts, cascade.strategy) if cascade.strategy is not None else frozenset()
    if cascade.token_budget is not None and "budget" in named:
        because = f"'strategy: {cascade.strategy}' is set"
        yield facts.report("L403", ("token_budget",), at_key=True, field="token_budget", because=because)


LOCAL: tuple[Check, ...] = (readable,)
WHOLE: tuple[Check, ...] = (overruled,)
