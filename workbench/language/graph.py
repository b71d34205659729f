"""What the engine walks: phases as nodes, and as edges every way from one to the next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Literal

from msgspec import Struct

from workbench.language.model.cascade import Cascade, Phase
from workbench.language.problem import Path, Span
from workbench.language.read.source import Source

NodeKind = Literal["llm", "tool"]
EdgeKind = Literal["handoff", "routed"]
NOWHERE = Span(1, 1, 1, 1)

NEXT = "next"
"""Label of the edge to the next phase in the list."""
ROUTING, ON_ERROR, DECISION, ESCALATION = "routing", "on_error", "decision", "escalation"
"""Labels of the edges that the fields of those names (``human_input.escalate_to``) give; their condition is the key
in the file."""


class Node(Struct, frozen=True):
    """One phase."""

    id: str
    kind: NodeKind
    model: str | None = None
    tools: tuple[str, ...] = ()
    span: Span = NOWHERE


class Edge(Struct, frozen=True):
    """One way on. ``handoff``: chosen inside the phase; ``routed``: taken by the engine after it."""

    src: str
    dst: str
    kind: EdgeKind
    label: str = ""
    """Of a handoff its description; of a routed edge ``next``, ``routing``, ``on_error``, ``decision`` or
    ``escalation``."""
    condition: str = ""
    span: Span = NOWHERE


class Graph(Struct, frozen=True, dict=True):
    """A definition as the engine walks it. Edges lead only to nodes that exist."""

    id: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    @property
    def start(self) -> str:
        """Where a run begins; empty without nodes."""
        return self.nodes[0].id if self.nodes else ""

    def out(self, id: str) -> tuple[Edge, ...]:
        """The edges from a node, in the order of the file."""
        return self._out.get(id, ())

    def returns(self, id: str) -> bool:
        """Whether a walk can come back to a node."""
        seen, waiting = set[str](), [id]
        while waiting:
            following = {edge.dst for edge in self.out(waiting.pop())} - seen
            seen |= following
            waiting += following
        return id in seen

    @cached_property
    def _out(self) -> Mapping[str, tuple[Edge, ...]]:
        out: dict[str, list[Edge]] = {}
        for edge in self.edges:
            out.setdefault(edge.src, []).append(edge)
        return {id: tuple(edges) for id, edges in out.items()}


def lower(cascade: Cascade, source: Source | None = None) -> Graph:
    """The graph of a cascade. Of phases with one name the first counts."""
    phases = {phase.name: (index, phase) for index, phase in reversed(list(enumerate(cascade.phases)))}
    chosen = [list(_chosen(phase, index, source)) for index, phase in enumerate(cascade.phases)]
    branches = {edge.dst for out in chosen for edge in out}
    edges: list[Edge] = []
    for index, phase in enumerate(cascade.phases):
        if phases[phase.name][0] != index:
            continue
        edges += [edge for edge in chosen[index] if edge.dst in phases]
        following = cascade.phases[index + 1].name if index + 1 < len(cascade.phases) else ""
        if not phase.handoffs and following and following not in branches:
            edges.append(Edge(phase.name, following, "routed", NEXT, span=_span(source, ("phases", index, "name"))))
    nodes = tuple(
        _node(phase, index, source) for index, phase in enumerate(cascade.phases) if phases[phase.name][0] == index
    )
    return Graph(cascade.cascade_id, nodes, tuple(edges))


def _node(phase: Phase, index: int, source: Source | None) -> Node:
    kind: NodeKind = "tool" if phase.deterministic else "llm"
    return Node(phase.name, kind, phase.model, phase.tools, _span(source, ("phases", index)))


def _chosen(phase: Phase, index: int, source: Source | None) -> Iterator[Edge]:
    """Every way out of a phase that names its target."""
    base: Path = ("phases", index)
    for at, handoff in enumerate(phase.handoffs):
        span = _span(source, (*base, "handoffs", at))
        yield Edge(phase.name, handoff.target, "handoff", handoff.description or "", span=span)
    for key, target in phase.routing.items():
        yield Edge(phase.name, target, "routed", ROUTING, key, span=_span(source, (*base, "routing", key)))
    if isinstance(phase.on_error, str):
        yield Edge(phase.name, phase.on_error, "routed", ON_ERROR, span=_span(source, (*base, "on_error")))
    decisions = phase.decision_points
    for key, route in decisions.routing.items() if decisions else ():
        if route.to is not None and route.to not in ("next", "self"):
            span = _span(source, (*base, "decision_points", "routing", key))
            yield Edge(phase.name, route.to, "routed", DECISION, key, span=span)
    asked = phase.human_input
    if asked is not None and asked.on_timeout == "escalate" and asked.escalate_to:
        span = _span(source, (*base, "human_input", "escalate_to"))
        yield Edge(phase.name, asked.escalate_to, "routed", ESCALATION, span=span)


def _span(source: Source | None, path: Path) -> Span:
    return source.span(path) if source is not None else NOWHERE
