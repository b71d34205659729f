"""The phases of a cascade and what leads where; with a run, what was walked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from workbench.language.graph import Graph
from workbench.views.value import Block, Cell, View
from workbench.workspace.mermaid import RunPath, why


class GraphView(View):
    """One block of lines for each phase: its model, its tools, its ways out."""

    def __init__(self, graph: Graph, walked: RunPath) -> None:
        self.graph, self.walked = graph, walked

    def blocks(self) -> Iterator[Block]:
        graph, walked = self.graph, self.walked
        for node in graph.nodes:
            facts = [node.kind if node.kind != "llm" else "", node.model or "", ", ".join(node.tools)]
            times = walked.visits[node.id]
            told = f"  {walked.status[node.id]}{f' x{times}' if times > 1 else ''}" if times else ""
            if walked.known and not times:
                told = "  not visited"
            yield (Cell(node.id, "head"), Cell("  ".join(["", *filter(None, facts)]), "dim"), Cell(told, "accent"))
            for edge in graph.out(node.id):
                taken = walked.steps[(edge.src, edge.dst)]
                arrow = Cell("  → ", words="  to ")
                yield (arrow, f"{edge.dst}  ", Cell(why(edge), "dim"), Cell(" taken" if taken else "", "ok"))

    def json(self) -> dict[str, Any]:
        """Nodes and edges with their places in the file."""
        return _graph_json(self.graph, self.walked)


def _graph_json(graph: Graph, walked: RunPath) -> dict[str, Any]:
    return {
        "id": graph.id,
        "start": graph.start,
        "nodes": [
            {
                "id": node.id,
                "kind": node.kind,
                "model": node.model,
                "tools": list(node.tools),
                "line": node.span.line,
                **_status(node.id, walked),
            }
            for node in graph.nodes
        ],
        "edges": [
            {
                "from": edge.src,
                "to": edge.dst,
                "kind": edge.kind,
                "why": why(edge),
                "line": edge.span.line,
                **({"taken": walked.steps[(edge.src, edge.dst)]} if walked.known else {}),
            }
            for edge in graph.edges
        ],
    }


def _status(name: str, walked: RunPath) -> Mapping[str, Any]:
    return {"status": walked.status.get(name), "visits": walked.visits[name]} if walked.known else {}
