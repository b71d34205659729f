"""Why a run went on where it did: each edge out of a phase, and the step of the selection at which it won or lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from workbench.engine.journal.parts import VisitState
from workbench.engine.routing.choosing import (
    AFTER_FAIL,
    CHOSEN,
    CONDITION,
    MEETING,
    PREFERRED,
    SUGGESTED,
    TARGET,
    WEIGHT,
    normal_label,
)
from workbench.language.graph import Edge, Graph

STEPS = (CHOSEN, CONDITION, PREFERRED, SUGGESTED, WEIGHT, TARGET)
"""The steps of the selection, in their order; the first has the number 0."""


class Way(Struct, frozen=True):
    """One edge out of a phase."""

    number: int
    """Among all edges of the graph, from 0."""
    to: str
    label: str
    condition: str
    weight: int
    line: int
    """Of the file, from 1."""
    column: int
    taken: bool
    why: str
    """Why it was taken or not, in words."""
    step: int | None = None
    """The step at which it won or lost; None where no selection compared it."""
    holds: bool | None = None
    """Whether its condition was true; None without one, and before it was asked."""
    values: Mapping[str, str] = {}
    """Of the keys of its condition."""

    def to_json(self) -> dict[str, Any]:
        """All that is known of it."""
        return {
            "to": self.to,
            "label": self.label,
            "condition": self.condition,
            "holds": self.holds,
            "values": dict(self.values),
            "weight": self.weight,
            "taken": self.taken,
            "step": self.step,
            "why": self.why,
            "line": self.line,
            "column": self.column,
        }


class WaysOn(Struct, frozen=True):
    """The phase that follows one visit of a phase, with the reason and all edges."""

    to: str
    """The phase that followed; empty where the run, or its branch, ended."""
    rule: str
    """The rule that decided, as the journal has it; empty while the visit goes on."""
    why: str
    """The same in words, with the number of the step."""
    outcome: str
    """The word that conditions saw; empty where the phase states none."""
    ways: tuple[Way, ...]

    def to_json(self) -> dict[str, Any]:
        """As ``show --json`` has it."""
        return {
            "to": self.to or None,
            "rule": self.rule or None,
            "why": self.why,
            "outcome": self.outcome or None,
            "edges": [way.to_json() for way in self.ways],
        }


def ways_on(graph: Graph, visit: VisitState) -> WaysOn:
    """Returns the edges out of a visit of a graph, each with the reason that the journal holds; an edge of a cascade
    has none."""
    edges, rule = graph.ways(visit.phase), visit.route_rule
    outcome = str(visit.outcome.get("outcome") or visit.outcome.get("status") or "")
    if graph.scheduling == "dataflow":
        ways = tuple(_dependency(number, edge, visit) for number, edge in edges)
        ended = bool(visit.finished)
        why = "its result goes to every task that depends on it" if visit.status == "success" else ""
        return WaysOn("", "dependency" if ended else "", why or _ended_words(visit), visit.status, ways)
    if rule == MEETING:
        why = f"each edge began a branch; the run went on at '{visit.route}', where the branches meet"
        return WaysOn(visit.route, rule, why, outcome, tuple(_way(n, e, True, "began a branch") for n, e in edges))
    if graph.format == "cascade" or not visit.verdicts:
        found = tuple(_way(n, e, bool(visit.route) and e.dst == visit.route, "") for n, e in edges)
        return WaysOn(visit.route, rule, rule or "not chosen yet", outcome, found)
    return WaysOn(visit.route, rule, _decided(visit), outcome, tuple(_selected(graph, visit, edges)))


def _way(number: int, edge: Edge, taken: bool, why: str, step: int | None = None, **more: Any) -> Way:
    span = edge.span
    where = (span.line, span.column)
    return Way(number, edge.dst, edge.label, edge.condition, edge.weight, *where, taken, why, step, **more)


def _dependency(number: int, edge: Edge, visit: VisitState) -> Way:
    got = visit.status == "success"
    return _way(number, edge, got, "gets its result" if got else _ended_words(visit))


def _ended_words(visit: VisitState) -> str:
    return {"running": "it has not ended", "success": ""}.get(visit.status, f"it is {visit.status}: there is no result")


def _step(rule: str) -> int | None:
    """The number of the step that decided; None for a jump and an end."""
    plain = rule.removesuffix(f" ({AFTER_FAIL})")
    return STEPS.index(plain) if plain in STEPS else None


def _decided(visit: VisitState) -> str:
    step, after = _step(visit.route_rule), f", {AFTER_FAIL}" if visit.route_rule.endswith(f"({AFTER_FAIL})") else ""
    if step is not None:
        return f"step {step}: {STEPS[step]}{after}"
    return visit.route_rule if not visit.route else f"a jump, not an edge: {visit.route_rule}"


def _selected(graph: Graph, visit: VisitState, edges: Sequence[tuple[int, Edge]]) -> Iterator[Way]:
    """Each edge with its verdict. The places of the verdicts are those among the edges out of the phase."""
    verdicts = {int(verdict.get("edge", -1)): verdict for verdict in visit.verdicts}
    comparison = _Comparison(graph, visit, edges, verdicts)
    for place, (number, edge) in enumerate(edges):
        verdict = verdicts.get(place, {})
        taken = number == visit.route_edge
        step, why = comparison.won(edge) if taken else comparison.lost(place, edge)
        holds = bool(verdict.get("holds")) if edge.condition.strip() else None
        yield _way(number, edge, taken, why, step, holds=holds, values=verdict.get("values") or {})


class _Comparison:
    """The edges out of one visit against the one that won."""

    def __init__(
        self,
        graph: Graph,
        visit: VisitState,
        edges: Sequence[tuple[int, Edge]],
        verdicts: Mapping[int, Mapping[str, Any]],
    ) -> None:
        self._graph, self._visit = graph, visit
        self._edges = [edge for _, edge in edges]
        self._verdicts = verdicts
        self._step = _step(visit.route_rule)
        self._winner = next((edge for number, edge in edges if number == visit.route_edge), None)
        node = graph.node(visit.phase)
        self._failed = visit.outcome.get("status") == "fail" and (node is None or node.kind != "route")
        self._wanted = str(visit.outcome.get("preferred_label") or "")
        self._suggested = [str(id) for id in visit.outcome.get("suggested_next_ids") or ()]

    def _true(self, place: int) -> bool:
        return bool(self._edges[place].condition.strip()) and bool(self._verdicts.get(place, {}).get("holds"))

    def _is_free(self, place: int) -> bool:
        """Returns whether it has no condition, and may be taken after what the phase came to."""
        edge = self._edges[place]
        return not edge.condition.strip() and not (self._failed and not self._leads_to_route(edge))

    def _leads_to_route(self, edge: Edge) -> bool:
        target = self._graph.node(edge.dst)
        return target is not None and target.kind == "route"

    def won(self, edge: Edge) -> tuple[int | None, str]:
        """The step at which an edge won, and why."""
        if self._step == STEPS.index(CHOSEN):
            return (
                self._step,
                "a person chose it; its condition is not asked" if edge.condition else "a person chose it",
            )
        if self._step == STEPS.index(CONDITION):
            others = sum(self._true(other) for other in range(len(self._edges)))
            return self._step, "its condition is true" + (f", the first of {others} by weight" if others > 1 else "")
        if self._step == STEPS.index(PREFERRED):
            return self._step, f"its label is the preferred one, '{self._wanted}'"
        if self._step == STEPS.index(SUGGESTED):
            return self._step, "the phase suggested it"
        if sum(self._is_free(other) for other in range(len(self._edges))) == 1:
            return self._step, "the only edge that needs no condition"
        if self._step == STEPS.index(WEIGHT):
            return self._step, f"weight {edge.weight} is the highest"
        return self._step, f"of equal weight, '{edge.dst}' comes first by its id"

    def lost(self, place: int, edge: Edge) -> tuple[int | None, str]:
        """The step at which an edge was out, and why."""
        if self._step == STEPS.index(CHOSEN):
            return 0, "a person chose another"
        winner, fault = self._winner, str(self._verdicts.get(place, {}).get("fault") or "")
        if edge.condition.strip():
            if fault:
                return 1, f"its condition cannot be read: {fault}"
            if not self._true(place) or winner is None:
                return 1, "its condition is false"
            return 1, self._behind(edge, winner)
        if self._step == STEPS.index(CONDITION):
            return 1, "it has no condition, and that of another is true"
        if not self._is_free(place):
            return None, "after a failure, an edge without a condition counts at a conditional alone"
        if winner is None:
            return None, "it was not taken"
        if self._step == STEPS.index(PREFERRED):
            same = normal_label(edge.label) == normal_label(self._wanted)
            return 2, "another edge with this label comes before it" if same else f"its label is not '{self._wanted}'"
        if self._step == STEPS.index(SUGGESTED):
            return 3, "'" + "', '".join(self._suggested) + "' was suggested"
        return (4 if edge.weight != winner.weight else 5), self._behind(edge, winner)

    @staticmethod
    def _behind(edge: Edge, winner: Edge) -> str:
        if edge.weight != winner.weight:
            return f"weight {edge.weight} is less than {winner.weight}"
        if edge.dst != winner.dst:
            return f"of equal weight, '{edge.dst}' comes after '{winner.dst}' by its id"
        return "another edge to the same node comes before it"
