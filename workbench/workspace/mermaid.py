"""The graph of a run as Mermaid: its phases, what leads where, and the way that the run took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from workbench.analysis.tree import winners
from workbench.engine.journal.state import RunState
from workbench.language.clean import clean_line
from workbench.language.graph import NEXT, Edge, Format, Graph

_SHAPES = {
    "start": ('(["', '"])'),
    "exit": ('(["', '"])'),
    "llm": ('["', '"]'),
    "synthesis": ('["', '"]'),
    "tool": ('[["', '"]]'),
    "human": ('{{"', '"}}'),
    "route": ('{"', '"}'),
    "parallel": ('[/"', '"\\]'),
    "join": ('[\\"', '"/]'),
    "subgraph": ('[("', '")]'),
}
"""The brackets that a node of each kind is drawn between."""
_CLASSES = {
    "success": "stroke:#2e7d32,stroke-width:2px",
    "failed": "stroke:#c62828,stroke-width:2px",
    "blocked": "stroke:#c62828,stroke-dasharray:4",
    "stopped": "stroke:#f9a825,stroke-width:2px",
    "running": "stroke:#1565c0,stroke-width:2px",
}


class RunPath:
    """The path of a run through a graph: the last status and the visits of each phase, and the edges taken."""

    def __init__(self, state: RunState | None = None) -> None:
        self.status: dict[str, str] = {}
        self.visits: Counter[str] = Counter()
        self._steps: Counter[tuple[str, str]] = Counter()
        self._edges: Counter[int] = Counter()
        self.known = state is not None
        self.candidates: dict[str, list[tuple[str, bool]]] = {}
        """By phase: the name of each candidate, and whether it won."""
        self.children: dict[str, list[tuple[str, str]]] = {}
        """By phase: session id and status of each cascade that it started."""
        if state is not None:
            self.candidates = winners(state, [visit.phase for visit in state.visits])
        before: dict[str, str] = {}
        """The phase before, on each branch."""
        for visit in state.visits if state else ():
            if visit.branch and not visit.parallel:
                continue
            self.status[visit.phase] = visit.status
            started = [(child["session_id"], child.get("status", "running")) for child in visit.children]
            self.children.setdefault(visit.phase, []).extend(started)
            self.visits[visit.phase] += 1
            # A branch is entered along an edge that its parallel node did not choose, and left along one that it did.
            if visit.edge is not None and visit.branch not in before:
                self._edges[visit.edge] += 1
            if visit.route_edge is not None:
                self._edges[visit.route_edge] += 1
            if (last := before.get(visit.branch, "")) and not visit.wave:
                self._steps[(last, visit.phase)] += 1
            before[visit.branch] = visit.phase

    def taken(self, graph: Graph, number: int) -> int:
        """Returns how often the run went along an edge, by its place among those of the graph."""
        edge = graph.edges[number]
        if graph.format == "dot":
            return self._edges[number]
        if edge.kind == "dependency":
            return min(self.visits[edge.src], self.visits[edge.dst])
        return self._steps[(edge.src, edge.dst)]


def why(edge: Edge, form: Format) -> str:
    """The condition of an edge, in words; empty for an unconditional one. ``form`` is that of its graph."""
    if edge.kind == "dependency":
        return "its result, named by a placeholder" if edge.implied else "its result"
    if form != "cascade":
        weight = f"weight {edge.weight}" if edge.weight else ""
        restart = "a new run" if edge.kind == "restart" else ""
        return ", ".join(filter(None, (edge.label, edge.condition and f"if {edge.condition}", weight, restart)))
    if edge.kind == "handoff":
        return edge.label or "handoff"
    if edge.label == NEXT:
        return "next in the list"
    return f"{edge.label}: {edge.condition}" if edge.condition else edge.label


def mermaid(graph: Graph, walked: RunPath) -> str:
    """A Mermaid flowchart. Names are quoted, so that no name can become syntax."""
    return "\n".join(_mermaid_lines(graph, walked)) + "\n"


def _mermaid_lines(graph: Graph, walked: RunPath) -> Iterator[str]:
    ids = {node.id: f"n{index}" for index, node in enumerate(graph.nodes)}
    yield "flowchart TD"
    for node in graph.nodes:
        left, right = _SHAPES[node.kind]
        times = walked.visits[node.id]
        label = node.id + (f" x{times}" if times > 1 else "")
        yield f"  {ids[node.id]}{left}{_quoted(label)}{right}"
    for number, edge in enumerate(graph.edges):
        line = "==>" if walked.taken(graph, number) else "-->"
        words = "" if edge.label == NEXT and graph.format == "cascade" else why(edge, graph.format)
        label = f'|"{_quoted(words, 60)}"|' if words else ""
        yield f"  {ids[edge.src]} {line}{label} {ids[edge.dst]}"
    yield from _inner_lines(ids, walked)
    used = sorted(set(walked.status.values()) & set(_CLASSES))
    for status in used:
        yield f"  classDef {status} {_CLASSES[status]}"
        members = ",".join(ids[name] for name, found in walked.status.items() if found == status and name in ids)
        yield f"  class {members} {status}"


def _inner_lines(ids: Mapping[str, str], walked: RunPath) -> Iterator[str]:
    """Yields the runs inside a phase: its candidates, the winner with a thick line; and the cascades that it
    started."""
    for name, candidates in walked.candidates.items():
        for number, (words, won) in enumerate(candidates if name in ids else ()):
            line = "==>" if won else "-.->"
            yield f'  {ids[name]} {line} {ids[name]}c{number}(["{_quoted(words + (", the winner" if won else ""))}"])'
    for name, children in walked.children.items():
        for number, (session, status) in enumerate(children if name in ids else ()):
            yield f'  {ids[name]} -.->|"{_quoted(status)}"| {ids[name]}r{number}[/"{_quoted(session)}"/]'


def _quoted(text: str, limit: int = 80) -> str:
    text = clean_line(text, limit)
    return text.replace("&", "#amp;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
