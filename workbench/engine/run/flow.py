"""Chooses the phase after a phase: one function over the graph, with the rule that chose."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from workbench.language.graph import Graph
from workbench.language.model.flow import END
from workbench.language.words import ROUTE_TO


class Route(Struct, frozen=True):
    """The next phase, or none, with the rule that chose it and the alternatives."""

    to: str
    rule: str
    candidates: tuple[str, ...] = ()


def next_phase(
    graph: Graph, phase: str, chosen: str, rule: str = ROUTE_TO, targets: Sequence[str] | None = None
) -> Route:
    """``targets`` are the phase's handoffs as the file lists them, ``end`` included (those of the graph by default).
    ``chosen`` is the phase that ``rule`` picked, or empty: the last valid ``route_to`` target of the attempt,
    a match of ``routing``, ``on_error``, or a person's decision."""
    phases = {node.id for node in graph.nodes}
    ends = END if END not in phases else ""
    if targets is None:
        handoffs = [edge.dst for edge in graph.out(phase) if edge.kind == "handoff"]
    else:
        handoffs = [target for target in targets if target in phases or target == ends]
    candidates = tuple(handoffs)

    def to(target: str, rule: str) -> Route:
        return Route("" if target == ends else target, rule, candidates)

    if chosen:
        return to(chosen, rule)
    if len(handoffs) == 1:
        return to(handoffs[0], "the only handoff")
    if handoffs:
        return to(handoffs[0], "no route chosen: the first handoff")
    following = [edge.dst for edge in graph.out(phase) if edge.kind == "routed" and edge.label == "next"]
    if following:
        return Route(following[0], "next in the list")
    return Route("", "nothing follows: the run ends")


def offers_choice(handoffs: Sequence[tuple[str, str]]) -> bool:
    """Returns whether ``route_to`` is offered: two or more ``(target, description)``, or any with a description."""
    return len(handoffs) > 1 or any(description for _, description in handoffs)
