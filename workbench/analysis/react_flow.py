"""The execution tree as nodes and edges of React Flow, laid out from left to right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

WIDTH, HEIGHT, GAP, HEAD = 180, 60, 60, 40
"""Of a node, between nodes, and of a group's title, in pixels."""
WON = {"stroke": "#00ff00", "strokeWidth": 3}
"""The edges of the path that won."""
_DATA = ("status", "visit", "model", "mutation_type", "cost", "tokens")


def react_flow(tree: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """``nodes`` and ``edges`` of an execution tree (``tree.execution_tree``).

    Nodes are ``phaseNode``, ``soundingNode`` and ``group``, a group before what stands in it (``parentNode``; positions
    are relative to it then). An edge into a phase that runs is animated.
    """
    drawn = _Drawing()
    if "soundings" in tree:
        drawn.contest(tree, "run", "the whole cascade", _Position(0, 0), ())
    else:
        drawn.chain(tree.get("phases", ()), "", _Position(0, 0))
    return {"nodes": drawn.nodes, "edges": drawn.edges}


class _Position(Struct, frozen=True):
    x: int
    y: int
    parent: str = ""


class _EdgeStart(Struct, frozen=True):
    """The start of the next edge."""

    node: str
    won: bool = False


class _Drawing(Struct):
    nodes: list[dict[str, Any]] = field(default_factory=list)
    edges: list[dict[str, Any]] = field(default_factory=list)

    def chain(self, phases: Sequence[Mapping[str, Any]], prefix: str, at: _Position) -> int:
        """Phases one after the other; how wide they are."""
        x, ends = at.x, tuple[_EdgeStart, ...]()
        for number, phase in enumerate(phases):
            id, here = f"{prefix}phase_{number}", _Position(x, at.y, at.parent)
            if "soundings" in phase or "reforge_steps" in phase:
                wide, ends = self.contest(phase, id, str(phase.get("name", "")), here, ends)
            else:
                self.node(id, "phaseNode", here, {"label": phase.get("name", ""), **_data(phase)})
                self.connect(ends, id, phase)
                wide, ends = WIDTH, (_EdgeStart(id),)
            x += wide + GAP
        return max(0, x - at.x - GAP)

    def contest(
        self, body: Mapping[str, Any], id: str, label: str, at: _Position, before: tuple[_EdgeStart, ...]
    ) -> tuple[int, tuple[_EdgeStart, ...]]:
        """Candidates below each other in a group, a column for each round; how wide it is, and where it ends."""
        group = f"{id}_group"
        place = len(self.nodes)
        x, tall, ends = GAP // 2, 0, tuple[_EdgeStart, ...]()
        for name, each in _rounds(body):
            y, wide, made = HEAD, WIDTH, list[_EdgeStart]()
            for candidate in each.get("soundings", ()):
                node = f"{id}{name}_sounding_{candidate['index']}"
                size = self._candidate(candidate, node, _Position(x, y, group))
                self.connect(ends, node, candidate)
                made.append(_EdgeStart(node, bool(candidate.get("is_winner"))))
                wide, y = max(wide, size[0]), y + size[1] + GAP // 2
            won = tuple(end for end in made if end.won)
            # A step of reforge without a winner keeps the incumbent.
            ends, x, tall = won or ends or tuple(made), x + wide + GAP, max(tall, y)
        style = {"width": x - GAP // 2, "height": tall}
        self.node(group, "group", at, {"label": label, **_data(body)}, place, style=style)
        self.connect(before, group, body)
        return style["width"], ends

    def _candidate(self, candidate: Mapping[str, Any], id: str, at: _Position) -> tuple[int, int]:
        data = {"index": candidate["index"], "is_winner": bool(candidate.get("is_winner")), **_data(candidate)}
        phases = candidate.get("phases", ())
        if not phases:
            self.node(id, "soundingNode", at, data)
            return WIDTH, HEIGHT
        place = len(self.nodes)
        wide = self.chain(phases, f"{id}_", _Position(GAP // 2, HEAD, id)) + GAP
        tall = HEAD + GAP // 2 + max((n["style"]["height"] for n in self.nodes[place:] if "style" in n), default=HEIGHT)
        self.node(id, "group", at, data, place, style={"width": wide, "height": tall})
        return wide, tall

    def node(
        self, id: str, type: str, at: _Position, data: dict[str, Any], place: int | None = None, **more: Any
    ) -> None:
        """``place``: its index among the nodes, for a group whose members were added before it."""
        inside = {"parentNode": at.parent, "extent": "parent"} if at.parent else {}
        body = {"id": id, "type": type, "position": {"x": at.x, "y": at.y}, **inside, "data": data, **more}
        self.nodes.insert(len(self.nodes) if place is None else place, body)

    def connect(self, ends: tuple[_EdgeStart, ...], target: str, body: Mapping[str, Any]) -> None:
        for end in ends:
            edge: dict[str, Any] = {"id": f"{end.node}-{target}", "source": end.node, "target": target}
            edge["animated"] = body.get("status") == "running"
            self.edges.append(edge | ({"style": WON} if end.won else {}))


def _rounds(body: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The rounds of a contest, each with what tells its ids from those of the others."""
    if "soundings" in body:
        yield "", body
    for step in body.get("reforge_steps", ()):
        yield f"_reforge_{step['step']}", step


def _data(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: body[name] for name in _DATA if body.get(name) is not None}
