"""Chooses the edge out of a phase: the candidates, the verdict on each, and the step that decided."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct, field

from workbench.engine.routing.outcome import PhaseOutcome
from workbench.language.dot.conditions import Clause, Condition, ConditionFault, Lookup, normal_word, parse
from workbench.language.graph import Edge, Graph

CHOSEN, CONDITION, PREFERRED, SUGGESTED, WEIGHT, TARGET, AFTER_FAIL = (
    "a person's choice",
    "condition",
    "preferred label",
    "suggested next",
    "weight",
    "target id",
    "the way on after a failure",
)
"""The steps; ``Selection.step`` names the one that decided."""

MEETING = "the branches meet here"
"""The rule that decides where a parallel node is followed by the node that its branches come to."""
_ACCELERATOR = re.compile(r"^\s*(?:\[(?P<a>\w)\]\s*|(?P<b>\w)\)\s+|(?P<c>\w) - )")


class EdgeVerdict(Struct, frozen=True):
    """The finding about one edge."""

    index: int
    """Among the edges out of the phase, from 0."""
    to: str
    label: str = ""
    condition: str = ""
    holds: bool | None = None
    """Whether its condition holds; None without a condition."""
    values: dict[str, str] = field(default_factory=dict)
    """Of the keys of its condition."""
    weight: int = 0
    fault: str = ""
    """Why its condition cannot be read."""

    def to_json(self) -> dict[str, Any]:
        """As the journal has it; what does not apply is left out."""
        body: dict[str, Any] = {"edge": self.index, "to": self.to}
        body |= {"label": self.label} if self.label else {}
        body |= {"weight": self.weight} if self.weight else {}
        if self.condition:
            body |= {"condition": self.condition, "holds": bool(self.holds), "values": self.values}
        return body | ({"fault": self.fault} if self.fault else {})


class Selection(Struct, frozen=True):
    """The edge that is taken, if any."""

    index: int
    """Index among the edges out of the phase; -1 for none."""
    step: str
    verdicts: tuple[EdgeVerdict, ...] = ()


def choose_edge(
    edges: Sequence[Edge],
    outcome: PhaseOutcome,
    lookup: Lookup,
    *,
    chosen: int | None = None,
    allows: Callable[[Edge], bool] = lambda edge: True,
) -> Selection:
    """The edge out of a phase, by five steps. ``lookup`` gives the value of a key of a condition. ``chosen``: the edge
    that a person picked. ``allows``: which edges without a condition may be taken; after a failure few may."""
    verdicts = tuple(_verdict(index, edge, lookup) for index, edge in enumerate(edges))

    def taken(index: int, step: str) -> Selection:
        return Selection(index, step, verdicts)

    if chosen is not None:
        return taken(chosen, CHOSEN)
    if true := [verdict for verdict in verdicts if verdict.holds]:
        return taken(min(true, key=_rank).index, CONDITION)
    free = [verdict for verdict in verdicts if verdict.holds is None and allows(edges[verdict.index])]
    if not free:
        return taken(-1, "no edge can be taken")
    if wanted := normal_label(outcome.preferred_label):
        for verdict in free:
            if normal_label(verdict.label) == wanted:
                return taken(verdict.index, PREFERRED)
    for id in outcome.suggested_next_ids:
        for verdict in free:
            if verdict.to == id:
                return taken(verdict.index, SUGGESTED)
    best = min(free, key=_rank)
    tied = sum(verdict.weight == best.weight for verdict in free) > 1
    return taken(best.index, TARGET if tied else WEIGHT)


def _rank(verdict: EdgeVerdict) -> tuple[int, str, int]:
    """Highest weight first, then by the target's id, then as the file has them."""
    return -verdict.weight, verdict.to, verdict.index


def _verdict(index: int, edge: Edge, lookup: Lookup) -> EdgeVerdict:
    holds, values, fault = None, dict[str, str](), ""
    if edge.condition.strip():
        try:
            condition = compared(parse(edge.condition))
            holds, values = condition.holds(lookup), condition.values(lookup)
        except ConditionFault as problem:
            holds, fault = False, f"{problem} (character {problem.at + 1})"
    return EdgeVerdict(index, edge.dst, edge.label, edge.condition, holds, values, edge.weight, fault)


def compared(condition: Condition) -> Condition:
    """The condition with other spellings of an outcome replaced by the compared ones."""
    clauses = tuple(
        Clause(one.key, one.op, normal_word(one.literal), one.at) if one.key in _OUTCOME_KEYS and one.op else one
        for one in condition.clauses
    )
    return Condition(clauses, condition.doubled)


def gate_passes(condition: str, outcome: PhaseOutcome, lookup: Lookup) -> bool:
    """Returns whether a goal gate passes that ended so: by its condition, else by its status. Raises ConditionFault."""
    if not condition:
        return outcome.passed
    own = {"outcome": outcome.word, "preferred_label": outcome.preferred_label}

    def value(key: str) -> Any:
        name = key.removeprefix("context.")
        return own[name] if name in own else lookup(key)

    return compared(parse(condition)).holds(value)


def outcomes_of(graph: Graph) -> tuple[str, ...]:
    """The words that the conditions of a graph ask an outcome for, each once, in the order of the edges, then
    of goal gates."""
    found: dict[str, None] = {}
    asked = [edge.condition for edge in graph.edges] + [node.rules.gate_condition for node in graph.nodes]
    for condition in asked if graph.format == "dot" else ():
        try:
            clauses = compared(parse(condition)).clauses
        except ConditionFault:
            continue
        found |= dict.fromkeys(one.literal for one in clauses if one.key in _OUTCOME_KEYS and one.literal)
    return tuple(found)


_OUTCOME_KEYS = ("outcome", "context.outcome")


def normal_label(label: str) -> str:
    """A label as it is compared: lower case, trimmed, without its accelerator (``[Y] ``, ``Y) ``, ``Y - ``)."""
    return _ACCELERATOR.sub("", label).strip().lower()


def accelerator(label: str) -> str:
    """The key that a label names for itself, in upper case; empty without one."""
    found = _ACCELERATOR.match(label)
    return (found["a"] or found["b"] or found["c"]).upper() if found else ""


def no_way_on(id: str, selection: Selection) -> tuple[str, str]:
    """Code and text of the problem of a phase from which no edge can be taken."""
    if not selection.verdicts:
        return "dead_end", f"dead_end: no edge leads out of '{id}'"
    told = []
    for verdict in selection.verdicts:
        if verdict.fault:
            told.append(f"to {verdict.to}: the condition '{verdict.condition}' cannot be read: {verdict.fault}")
        elif verdict.condition:
            values = ", ".join(f"{key} is '{value}'" for key, value in verdict.values.items())
            told.append(f"to {verdict.to}: {verdict.condition} is false ({values})")
        else:
            told.append(f"to {verdict.to}: no condition, so it is not taken after a failure")
    return "no_matching_edge", f"no_matching_edge: no edge out of '{id}' can be taken: {'; '.join(told)}"
