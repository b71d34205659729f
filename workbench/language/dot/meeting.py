"""Where the branches of a parallel node come together again."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from workbench.language.graph import Graph


def meeting(graph: Graph, id: str) -> str:
    """The nearest node that every branch of a parallel node can reach: a join first, then by the longest of the ways
    there, the sum of them and the order of the file. Empty where there is none."""
    starts = list(dict.fromkeys(edge.dst for edge in graph.out(id)))
    if not starts:
        return ""
    reached = [_distances(graph, start, id) for start in starts]
    common = [node for node in graph.nodes if node.id != id and all(node.id in ways for ways in reached)]
    if not common:
        return ""
    places = {node.id: place for place, node in enumerate(graph.nodes)}

    def nearness(node_id: str, *, joins: bool) -> tuple[int, int, int, int]:
        ways = [found[node_id] for found in reached]
        return (0 if joins else 1, max(ways), sum(ways), places[node_id])

    return min(common, key=lambda node: nearness(node.id, joins=node.kind == "join")).id


def _distances(graph: Graph, start: str, without: str) -> Mapping[str, int]:
    """Steps from a node to each that it reaches, itself included, on ways that do not come by ``without``."""
    found = {start: 0}
    waiting = deque([start])
    while waiting:
        here = waiting.popleft()
        for edge in graph.out(here):
            if edge.dst not in found and edge.dst != without and graph.node(edge.dst) is not None:
                found[edge.dst] = found[here] + 1
                waiting.append(edge.dst)
    return found
