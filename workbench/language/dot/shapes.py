"""What a node does, by its type or its shape."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from workbench.language.graph import NodeKind

SHAPES: Mapping[str, str] = MappingProxyType(
    {
        "Mdiamond": "start",
        "circle": "start",
        "Msquare": "exit",
        "doublecircle": "exit",
        "box": "codergen",
        "hexagon": "wait.human",
        "diamond": "conditional",
        "component": "parallel",
        "tripleoctagon": "parallel.fan_in",
        "parallelogram": "tool",
        "house": "stack.manager_loop",
        "tab": "prompt",
        "folder": "subgraph",
    }
)
"""Shape to type. ``prompt`` (one model call, no tools) and ``subgraph`` (a child graph, once) are of dialects."""

TYPES: Mapping[str, NodeKind] = MappingProxyType(
    {
        "start": "start",
        "exit": "exit",
        "codergen": "llm",
        "wait.human": "human",
        "conditional": "route",
        "parallel": "parallel",
        "parallel.fan_in": "join",
        "tool": "tool",
        "stack.manager_loop": "subgraph",
        "prompt": "llm",
        "subgraph": "subgraph",
    }
)
STARTS = ("start", "Start")
EXITS = ("exit", "end", "Exit", "End")


def type_of(id: str, type: str, shape: str, shapes: Mapping[str, str]) -> tuple[str, str]:
    """The type of a node, and what was not known about it (``type 'x'``, ``shape 'y'``); the words written decide
    first, then the id. ``shapes`` are those of the file over the usual ones."""
    unknown = ""
    if type:
        if type in TYPES:
            return type, ""
        unknown = f"type '{type}'"
    if shape:
        if shape in shapes:
            return shapes[shape], unknown
        unknown = unknown or f"shape '{shape}'"
    if id in STARTS and shape in ("", "box"):
        return "start", unknown
    if id in EXITS and shape in ("", "box"):
        return "exit", unknown
    return "codergen", unknown
