"""Where the values of a pipeline stand in its DOT text, by the paths that a cascade of the same phases would have."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.language.problem import Path
from workbench.language.read.dot import Attribute, DotFile
from workbench.language.read.source import Spot


class DotLayout:
    """Paths: ``phases[i]``, ``phases[i].instructions``, ``phases[i].attributes.KEY``, ``edges[k].KEY``,
    ``graph.KEY``."""

    def __init__(self, text: str, read: DotFile, origins: Mapping[Path, Attribute], kept: tuple[int, ...]) -> None:
        self._text = text
        self._read = read
        self._nodes = list(read.nodes.values())
        self._origins = origins
        self._kept = kept

    def spot(self, path: Path) -> Spot | None:
        if (at := self._origins.get(path)) is not None:
            return _spot(at)
        match path:
            case () | ("phases",) | ("edges",) | ("graph",):
                return Spot(0, len(self._text), kind="mapping")
            case ("cascade_id",):
                return Spot(self._read.start, self._read.end)
            case ("graph", str(key)):
                return _spot(self._read.attributes.get(key))
            case ("phases", int(index), *rest) if 0 <= index < len(self._nodes):
                node = self._nodes[index]
                if rest in ([], ["name"]):
                    return Spot(node.start, node.end)
                return _spot(node.attributes.get(str(rest[1]))) if rest[0] == "attributes" and len(rest) == 2 else None
            case ("edges", int(index), *rest) if 0 <= index < len(self._kept):
                edge = self._read.edges[self._kept[index]]
                if not rest or rest[0] in ("from", "to"):
                    return Spot(edge.start, edge.end)
                return _spot(edge.attributes.get(str(rest[0])))
        return None


def _spot(at: Attribute | None) -> Spot | None:
    if at is None:
        return None
    return Spot(at.start, at.end, (at.key_start, at.key_end), "scalar", '"' if at.quoted else "")
