"""Edits of a pipeline in DOT as text: an attribute is set or taken out, a node gets another name; all other bytes stay.

Each new text is read again before it is returned, and must differ in the edited value alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Any, Literal

from msgspec import Struct

from workbench.language.dot.attributes import BY_NAME, Scope
from workbench.language.dot.build import read_pipeline
from workbench.language.dot.variables import variables
from workbench.language.edit.errors import EditError
from workbench.language.problem import Path, Severity, path_text
from workbench.language.read.dot import (
    KEYWORDS,
    Attribute,
    Attributes,
    DotEdge,
    DotFile,
    DotNode,
    escaped,
    is_bare,
    read_dot,
)
from workbench.language.read.source import Source, value_offsets

_OF_PHASE = {
    "instructions": "prompt",
    "model": "llm_model",
    "tackle": "workbench.tools",
    "strategy": "workbench.strategy",
    "reasoning_effort": "reasoning_effort",
}
"""Attributes that other names stand for in the paths of phases."""
_TOKEN = re.compile(
    r'(?P<quoted>"[^"\\]*+(?:\\.[^"\\]*+)*+"?)|//[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/)?|^[ \t]*#[^\n]*'
    r"|(?P<word>[A-Za-z_][\w.]*)|(?P<sign>->|--|\S)",
    re.DOTALL | re.MULTILINE,
)
_NAMING = ("retry_target", "fallback_retry_target", "human.default_choice")
_OUTPUT = re.compile(r"(?:codergen\.)?(\w+)\.output")
_CONDITION = re.compile(
    r"(?:current_node|last_stage|parallel\.fan_in\.best_id)\s*!?==?\s*\"?(\w+)|internal\.retry_count\.(\w+)"
)
_RULE = re.compile(r"#(\w+)(?=\s*\{)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


# -- attributes ------------------------------------------------------------------------------------------------------


class _Owner(Struct, frozen=True):
    """The owner of an attribute."""

    scope: Scope
    node: DotNode | None = None
    edge: DotEdge | None = None


def set_attribute(source: Source, path: Path, value: Any) -> str:
    """The text with an attribute of the graph, of a node or of an edge; one that is missing is added. ``path`` is one
    of ``DotLayout``. Raises EditError."""
    read = read_dot(source.text)
    owner, key = _target(read, path)
    written = _written(value)
    old = _own(read, owner, key)
    name = old.key if old is not None else key
    if old is not None:
        new = written if not old.quoted and is_bare(written) else escaped(written)
        text = source.text[: old.start] + new + source.text[old.end :]
    else:
        text = _added(source.text, read, owner, f"{key}={written if is_bare(written) else escaped(written)}")
    return _verified(source, read, owner, name, written, text)


def remove_attribute(source: Source, path: Path) -> str:
    """The text without an attribute. Raises EditError if it does not stand there, or comes from a default."""
    read = read_dot(source.text)
    owner, key = _target(read, path)
    old = _own(read, owner, key)
    if old is None:
        raise EditError(f"there is no {path_text(path)}")
    text, begin, end = source.text, old.key_start, old.end
    after = re.compile(r"\s*[,;][ \t]*").match(text, end)
    if after is not None:
        text = text[:begin] + text[after.end() :]
    else:
        text = re.sub(r",?[ \t]*\Z", "", text[:begin]) + text[end:]
    return _verified(source, read, owner, old.key, None, text)


def _target(read: DotFile, path: Path) -> tuple[_Owner, str]:
    match path:
        case ("strategy",):
            return _Owner("graph"), "workbench.strategy"
        case ("description",):
            return _Owner("graph"), "goal"
        case ("graph", str(key)):
            return _Owner("graph"), key
        case ("phases", int(index), "attributes", str(key)) | ("phases", int(index), str(key)):
            nodes = list(read.nodes.values())
            key = _OF_PHASE.get(key, key) if len(path) == 3 else key
            if 0 <= index < len(nodes) and key in BY_NAME["node"]:
                return _Owner("node", node=nodes[index]), key
        case ("edges", int(index), str(key)):
            kept = [edge for edge in read.edges if edge.src in read.nodes and edge.dst in read.nodes]
            if 0 <= index < len(kept):
                return _Owner("edge", edge=kept[index]), key
    raise EditError(f"no attribute of DOT says {path_text(path)}")


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return ",".join(value)
    if isinstance(value, str | int | float):
        return str(value)
    raise EditError("a value of DOT is a text, a number or a switch")


def _attributes(read: DotFile, owner: _Owner) -> Attributes:
    if owner.node is not None:
        return owner.node.own
    return owner.edge.own if owner.edge is not None else read.attributes


def _own(read: DotFile, owner: _Owner, key: str) -> Attribute | None:
    """The attribute as the thing itself says it, under any of its names."""
    row = BY_NAME[owner.scope].get(key)
    names = (key,) if row is None else (row.name, *row.also, *row.dialects)
    own = _attributes(read, owner)
    if owner.edge is not None and own and len([edge for edge in read.edges if edge.own is own]) > 1:
        raise EditError("these attributes belong to all edges of a chain; write the edge as a statement of its own")
    return next((own[name] for name in names if name in own), None)


def _added(text: str, read: DotFile, owner: _Owner, pair: str) -> str:
    """The text with one more attribute."""
    newline = "\r\n" if "\r\n" in text else "\n"
    own = _attributes(read, owner)
    if own and owner.scope != "graph":
        at = max(attribute.end for attribute in own.values())
        return f"{text[:at]}, {pair}{text[at:]}"
    if owner.node is not None and not owner.node.declared:
        at = text.rindex("}")
        line = f"{owner.node.id} [{pair}]{newline}"
        return f"{text[:at]}{'' if text[:at].endswith(chr(10)) else newline}  {line}{text[at:]}"
    thing = owner.node or owner.edge
    if thing is not None:
        if owner.edge is not None and _chained(read, owner.edge):
            raise EditError("the edge is one of a chain; write it as a statement of its own")
        empty = re.compile(r"[ \t]*\[\s*").match(text, thing.end)
        if empty is not None:
            return f"{text[: empty.end()]}{pair}{text[empty.end() :]}"
        return f"{text[: thing.end]} [{pair}]{text[thing.end :]}"
    at = text.index("{", read.end) + 1
    # What stands behind the brace goes on in a line of its own.
    rest = re.compile(r"[ \t]*(?=\S)").match(text, at)
    return f"{text[:at]}{newline}  {pair}{newline + '  ' if rest else ''}{text[rest.end() if rest else at :]}"


def _chained(read: DotFile, edge: DotEdge) -> bool:
    return any(other is not edge and other.own is edge.own for other in read.edges)


def _values(read: DotFile) -> dict[Any, Any]:
    """All that a file says, without places."""
    found: dict[Any, Any] = {"graph": {key: one.value for key, one in read.attributes.items()}, "id": read.id}
    for node in read.nodes.values():
        found["node", node.id] = {key: one.value for key, one in node.attributes.items()}
    for number, edge in enumerate(read.edges):
        values = {key: one.value for key, one in edge.attributes.items()}
        found["edge", number] = (edge.src, edge.dst, values)
    return found


def _verified(source: Source, read: DotFile, owner: _Owner, key: str, value: str | None, text: str) -> str:
    """The text, if it is the edit and nothing else. Raises EditError."""
    wanted = _values(read)
    if owner.node is not None:
        place = wanted["node", owner.node.id]
        default = owner.node.defaults.get(key)
    elif owner.edge is not None:
        place = next(wanted["edge", n][2] for n, edge in enumerate(read.edges) if edge is owner.edge)
        default = owner.edge.defaults.get(key)
    else:
        place, default = wanted["graph"], None
    place.pop(key, None)
    if value is not None or default is not None:
        place[key] = value if value is not None or default is None else default.value
    again = read_dot(text)
    if _errors(again) > _errors(read) or _values(again) != wanted:
        raise EditError(f"{key} cannot be changed in place: other values would change with it")
    return source.bom + text


def _errors(read: DotFile) -> int:
    return sum(fault.severity is Severity.ERROR for fault in read.faults)


# -- names of nodes --------------------------------------------------------------------------------------------------


class NodeUse(Struct, frozen=True):
    """A place that names a node, as offsets into the text; the end is exclusive."""

    name: str
    start: int
    end: int


def node_uses(text: str) -> tuple[NodeUse, ...]:
    """Every place of a pipeline that names a node, in the order of the text: statements and edges, targets of retries
    and choices, rules ``#id`` of the stylesheet, outputs in prompts, conditions."""
    read = read_dot(text)
    found = {(use.start, use.end): use for use in chain(_in_statements(text, read), _in_values(text, read))}
    return tuple(found[at] for at in sorted(found) if found[at].name in read.nodes)


def _in_statements(text: str, read: DotFile) -> Iterator[NodeUse]:
    depth, group, held = 0, False, None
    for token in _TOKEN.finditer(text, max(0, text.find("{", read.end))):
        word = token["word"] or (token["quoted"] or "")[1:-1]
        if word:
            if held is not None:
                yield held
            held = None
            if not depth and not group and (token["quoted"] or word not in KEYWORDS):
                quote = 1 if token["quoted"] else 0
                held = NodeUse(word, token.start() + quote, token.end() - quote)
            group = not depth and word == "subgraph"
        elif sign := token["sign"]:
            # What an equals sign follows is an attribute of the graph.
            if held is not None and sign != "=":
                yield held
            if held is not None or sign != "=":
                held = None
            if sign == "=" and not depth:
                group = True  # Its value is no node either.
                continue
            group = False
            depth += {"[": 1, "]": -1}.get(sign, 0)


def _in_values(text: str, read: DotFile) -> Iterator[NodeUse]:
    things: list[tuple[Scope, Attributes]] = [("graph", read.attributes)]
    for node in read.nodes.values():
        things += [("node", node.own), ("node", node.defaults)]
    for edge in read.edges:
        things += [("edge", edge.own), ("edge", edge.defaults)]
    seen: set[int] = set()
    for scope, attributes in things:
        for attribute in attributes.values():
            if attribute.start in seen:
                continue
            seen.add(attribute.start)
            row = BY_NAME[scope].get(attribute.key)
            spots = list(_named_in(row.name if row is not None else attribute.key, attribute.value))
            if not spots:
                continue
            style = '"' if attribute.quoted else ""
            offsets = value_offsets(text, attribute.start, attribute.end, style, attribute.value, "dot")
            if offsets is not None:
                yield from (NodeUse(name, offsets[start], offsets[end]) for name, start, end in spots)


def _named_in(key: str, value: str) -> Iterator[tuple[str, int, int]]:
    """The names of nodes in a value, with their places in it."""
    if key in _NAMING:
        yield value, 0, len(value)
    elif key == "model_stylesheet":
        yield from ((match[1], *match.span(1)) for match in _RULE.finditer(value))
    elif key in ("condition", "manager.stop_condition", "goal_gate"):
        for found in _CONDITION.finditer(value):
            group = 1 if found[1] else 2
            yield found[group], *found.span(group)
    elif key in ("prompt", "label", "tool_command"):
        for variable in variables(value):
            if (match := _OUTPUT.fullmatch(variable.name)) is not None:
                at = value.index(variable.name, variable.start)
                yield match[1], at + match.start(1), at + match.end(1)


def renamed_node(source: Source, old: str, new: str) -> str:
    """The text with another id for a node, everywhere. Raises EditError, with nothing changed."""
    text = source.text
    before = read_pipeline(text, source.file, "g")
    if before.graph is None or before.graph.node(old) is None:
        raise EditError(f"there is no node {old}")
    if before.broken:
        raise EditError("the file has errors; mend them first")
    if not _NAME.fullmatch(new) or new in KEYWORDS:
        raise EditError("an id begins with a letter or _ and goes on with letters, digits and _")
    if new == old:
        raise EditError("that is its name already")
    if before.graph.node(new) is not None:
        raise EditError(f"there is a node {new} already")
    made, at = [], 0
    for use in node_uses(text):
        if use.name == old:
            made += [text[at : use.start], new]
            at = use.end
    changed = "".join((*made, text[at:]))
    after = read_pipeline(changed, source.file, "g").graph
    assert after is not None
    names = {node.id: new if node.id == old else node.id for node in before.graph.nodes}
    ways = [(names[edge.src], names[edge.dst]) for edge in before.graph.edges]
    if [*names.values()] != [node.id for node in after.nodes] or ways != [(e.src, e.dst) for e in after.edges]:
        raise EditError(f"{old} cannot be renamed in place: the file would be read differently")
    kinds = {node.id: node.kind for node in after.nodes}
    changing = next((node for node in before.graph.nodes if kinds[names[node.id]] != node.kind), None)
    if changing is not None:
        kind = kinds[names[changing.id]]
        raise EditError(f"{new} would be a node of the kind {kind}, and {old} is {changing.kind}: give it a shape")
    return source.bom + changed


# -- the name at a place ---------------------------------------------------------------------------------------------

_CLASS = re.compile(r"\.([A-Za-z_][\w-]*)(?=\s*\{)")
_LISTED = re.compile(r"[^\s,]+")
MOST_LOOKED_AT = 400_000
"""Characters of a text that is read again wherever the cursor goes (0.1 s)."""
ThingKind = Literal["phase", "file", "model", "tool", "name"]


def thing_at(text: str, offset: int) -> tuple[ThingKind, str, int, int] | None:
    """Returns the kind and name of the thing at an offset, with its place: a node, a file, a model, a tool, or as
    ``name`` a class (``.fast``) or a variable (``$goal``). None if there is none. Works in a text with errors."""
    if len(text) > MOST_LOOKED_AT:
        return None
    use = next((use for use in node_uses(text) if use.start <= offset <= use.end), None)
    if use is not None:
        return "phase", use.name, use.start, use.end
    read = read_dot(text)
    attribute, name = _attribute_at(read, offset)
    if attribute is None:
        return None
    value, style = attribute.value, '"' if attribute.quoted else ""
    offsets = value_offsets(text, attribute.start, attribute.end, style, value, "dot")
    found: list[tuple[ThingKind, str, int, int]] = []
    if name in ("stack.child_dotfile", "prompt_file"):
        found.append(("file", value, 0, len(value)))
    elif name == "prompt" and value.startswith("@") and "\n" not in value:
        found.append(("file", value[1:].strip(), 0, len(value)))
    elif name == "llm_model":
        found.append(("model", value, 0, len(value)))
    elif name == "workbench.tools":
        found += [("tool", match[0], *match.span()) for match in _LISTED.finditer(value)]
    elif name == "class":
        found += [("name", f".{match[0]}", *match.span()) for match in _LISTED.finditer(value)]
    elif name == "model_stylesheet":
        found += [("name", match[0], *match.span()) for match in _CLASS.finditer(value)]
    else:
        found += [("name", f"${one.name}", one.start, one.end) for one in variables(value)]
    for kind, named, start, end in found if offsets is not None else ():
        if offsets is not None and offsets[start] <= offset <= offsets[end]:
            return kind, named, offsets[start], offsets[end]
    return None


def _attribute_at(read: DotFile, offset: int) -> tuple[Attribute | None, str]:
    """The attribute whose value an offset is in, and its name in the table."""
    things: list[tuple[Scope, Attributes]] = [("graph", read.attributes)]
    things += [("node", node.attributes) for node in read.nodes.values()]
    things += [("edge", edge.attributes) for edge in read.edges]
    for scope, attributes in things:
        for attribute in attributes.values():
            if attribute.start <= offset <= attribute.end:
                row = BY_NAME[scope].get(attribute.key)
                return attribute, attribute.key if row is None or attribute.key == "prompt_file" else row.name
    return None, ""


def words_of(text: str) -> dict[str, tuple[str, int]]:
    """Returns the values of classes and variables of a file, with the line that defines each."""
    read, found = read_dot(text), dict[str, tuple[str, int]]()

    def line(offset: int) -> int:
        return text.count("\n", 0, offset) + 1

    for key in ("goal", "label"):
        if (attribute := read.attributes.get(key)) is not None:
            found[f"${key}"] = f"the graph's {key}: {attribute.value}", line(attribute.start)
    sheet = read.attributes.get("model_stylesheet")
    if sheet is not None:
        offsets = value_offsets(text, sheet.start, sheet.end, '"', sheet.value, "dot")
        for match in _CLASS.finditer(sheet.value):
            rule = sheet.value[match.start() : sheet.value.find("}", match.end()) + 1]
            members = [node.id for node in read.nodes.values() if match[1] in _classes(node)]
            said = f"{' '.join(rule.split())} for {', '.join(members) or 'no node'}"
            found.setdefault(match[0], (said, line(offsets[match.start()]) if offsets is not None else 0))
    for node in read.nodes.values():
        for name in _classes(node):
            said = f"class of {node.id}; no rule of the stylesheet names it"
            found.setdefault(f".{name}", (said, line(node.start)))
        for name in (f"${node.id}.output", f"$codergen.{node.id}.output"):
            found[name] = f"what {node.id} gave last", line(node.start)
    return found


def _classes(node: DotNode) -> list[str]:
    at = node.attributes.get("class")
    return _LISTED.findall(at.value) if at is not None else []
