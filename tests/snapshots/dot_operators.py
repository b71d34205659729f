"""Small changes of any pipeline, made from its shape alone: every value is changed or left out, every edge left out."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.language.dot.attributes import BY_NAME, Scope
from workbench.language.read.dot import Attribute, escaped, read_dot

Change = tuple[str, str]
"""What was changed, and the changed text."""


def dot_changes(text: str) -> Iterator[Change]:
    """Every changed text, each of another meaning than the first."""
    read = read_dot(text)
    things: list[tuple[Scope, str, dict[str, Attribute]]] = [("graph", "graph", read.attributes)]
    things += [("node", node.id, {**node.defaults, **node.own}) for node in read.nodes.values()]
    things += [("edge", f"{edge.src}>{edge.dst}", edge.attributes) for edge in read.edges]
    seen: set[int] = set()
    for scope, name, attributes in things:
        for at in attributes.values():
            if at.start in seen or at.key not in BY_NAME[scope]:
                continue
            seen.add(at.start)
            for what, value in _others(scope, at):
                yield f"{name}.{at.key}: {what}", text[: at.start] + escaped(value) + text[at.end :]
            yield f"without {name}.{at.key}", text[: at.key_start] + f"x_{at.key}" + text[at.key_end :]
    for edge in read.edges:
        if text[edge.start : edge.end].count("->") == 1:
            yield f"without {edge.src}>{edge.dst}", text[: edge.start] + edge.src + text[edge.end :]


def _others(scope: Scope, at: Attribute) -> Iterator[tuple[str, str]]:
    """Other values of the same kind."""
    row = BY_NAME[scope][at.key]
    for choice in row.choices:
        if choice != at.value:
            yield choice, choice
    if row.kind in ("count", "number"):
        yield "one more", str(int(at.value) + 1)
        yield "one", "1"
    elif row.kind == "switch":
        yield "switched", "false" if at.value == "true" else "true"
    elif at.key == "condition":
        yield "the opposite", at.value.replace("!=", "=") if "!=" in at.value else at.value.replace("=", "!=")
    elif not row.choices and row.kind != "duration":
        yield "more words", f"{at.value} Be brief."
        yield "its first half", at.value[: len(at.value) // 2]
