"""YAML read by PyYAML's C parser, as nodes with marks; every value is resolved here, by the rules of YAML 1.2.

The parser's own resolver follows YAML 1.1, where ``on`` is a boolean and ``012`` is 10, so it is switched off.
"""

from __future__ import annotations

import re
from typing import Any

import yaml
from yaml._yaml import CParser
from yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from workbench.language.clean import clean_line
from workbench.language.problem import Path, Severity
from workbench.language.reading import MAX_DEPTH, MAX_NODES, Fault, Reading, TooMuch, too_deep, too_many
from workbench.language.source import Spot
from workbench.language.yaml_values import NotJson, plain_value

_PREFIX = "tag:yaml.org,2002:"
_PLAIN = ""
"""Tag of a node that the rules for plain words resolve."""
_TEXT = _PREFIX + "str"


class _Composer(CParser):
    """The C composer without resolution; it counts nodes and depth while it builds, so no file can make it run away."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = 0
        self.nodes = 0

    def resolve(self, kind: type, value: str | None, implicit: Any) -> str:
        return _PLAIN if implicit is True or implicit is False or implicit[0] else _TEXT

    def descend_resolver(self, parent: Any, index: Any) -> None:
        self.depth += 1
        self.nodes += 1
        if self.depth > MAX_DEPTH:
            raise TooMuch(too_deep())
        if self.nodes > MAX_NODES:
            raise TooMuch(too_many())

    def ascend_resolver(self) -> None:
        self.depth -= 1


def read_yaml(text: str) -> Reading:
    """Never raises; what is wrong with the text stands in the faults."""
    reading = Reading()
    node: Node | None = None
    documents = 0
    second = 0
    try:
        parser = _Composer(text)
        while parser.check_node():
            found = parser.get_node()
            documents += 1
            if documents == 1:
                node = found
            elif documents == 2:
                second = found.start_mark.index if found else 0
    except TooMuch as stop:
        reading.error("L104", str(stop), 0, 0)
        return reading
    except yaml.YAMLError as fault:
        reading.faults.append(_fault(text, fault))
        if documents == 0:
            return reading
    if documents > 1:
        message = f"the file holds {documents} YAML documents; a cascade is one (the first is shown)"
        start = max(text.rfind("---", 0, second + 3), 0)
        reading.error("L102", message, start, min(start + 3, len(text)))
    if node is None:
        return reading
    builder = _Builder(text, reading)
    try:
        reading.data = builder.build(node, 0)
        reading.layout = _YamlLayout(text, node)
    except TooMuch as stop:
        reading.error("L104", str(stop), *builder.at)
    return reading


class _Builder:
    """Nodes to plain JSON. Aliases are copied, so no two places share a value."""

    def __init__(self, text: str, reading: Reading) -> None:
        self.text = text
        self.reading = reading
        self.count = 0
        self.at = (0, 0)
        self.tagged: set[int] = set()

    def build(self, node: Node, depth: int) -> Any:
        self.count += 1
        if self.count > MAX_NODES:
            self.at = _marks(node)
            raise TooMuch("aliases expand beyond the limit of 100,000 values")
        if depth > MAX_DEPTH:
            self.at = _marks(node)
            raise TooMuch("an alias stands inside the value it names")
        if type(node) is ScalarNode:
            return self._scalar(node)
        if node.tag and node.tag not in (_PREFIX + "map", _PREFIX + "seq"):
            self._ignored(node)
        if isinstance(node, MappingNode):
            return self._mapping(node, depth)
        return [self.build(item, depth + 1) for item in node.value]

    def _scalar(self, node: ScalarNode) -> Any:
        tag, word = node.tag, node.value
        if tag is _TEXT or tag == _TEXT:
            return word
        if tag and tag not in _SCALAR_TAGS:
            self._ignored(node)
        if tag and node.style and tag not in _SCALAR_TAGS:
            return word
        try:
            value = plain_value(word)
        except NotJson as fault:
            start, end = _marks(node)
            self.reading.error("L101", f"not valid YAML: {clean_line(str(fault))}", start, end, "put it in quotes")
            return word
        if tag == _PREFIX + "float" and type(value) is int:
            return float(value)
        return value

    def _mapping(self, node: MappingNode, depth: int) -> dict[str, Any]:
        data: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key, value in node.value:
            if type(key) is not ScalarNode:
                start, end = _marks(key)
                self.reading.error("L101", "not valid YAML: a key must be a text", start, end)
                continue
            if key.value == "<<" and key.tag is _PLAIN:
                self._merge(merged, value, depth)
                continue
            if key.value in data:
                self._twice(node, key)
            data[key.value] = self.build(value, depth + 1)
        return {**merged, **data} if merged else data

    def _merge(self, merged: dict[str, Any], value: Node, depth: int) -> None:
        for node in value.value if type(value) is SequenceNode else (value,):
            if type(node) is not MappingNode:
                self.reading.error("L101", "not valid YAML: '<<' merges mappings only", *_marks(node))
                continue
            for name, item in self.build(node, depth + 1).items():
                merged.setdefault(name, item)

    def _twice(self, node: MappingNode, key: ScalarNode) -> None:
        first = next(k for k, _ in node.value if type(k) is ScalarNode and k.value == key.value)
        mark = first.start_mark
        message = f"key '{clean_line(key.value, 80)}' is written twice, first at {mark.line + 1}:{mark.column + 1}"
        self.reading.error("L103", message, *_marks(key))

    def _ignored(self, node: Node) -> None:
        if id(node) in self.tagged:
            return
        self.tagged.add(id(node))
        name = node.tag.replace(_PREFIX, "!!")
        start, end = _marks(node)
        message = f"tag '{clean_line(name, 60)}' is ignored; the plain value is used"
        self.reading.faults.append(Fault(Severity.WARNING, "L106", message, start, end))


_SCALAR_TAGS = frozenset(_PREFIX + name for name in ("int", "float", "bool", "null"))


def _marks(node: Node) -> tuple[int, int]:
    return node.start_mark.index, node.end_mark.index


_WORDINGS = {
    "found character that cannot start any token": "this character cannot start a value",
    "mapping values are not allowed in this context": "a ':' cannot stand here; put the text in quotes",
    "did not find expected key": "the indentation does not fit what stands above",
    "found undefined alias": "this alias names nothing",
}


def _fault(text: str, fault: yaml.YAMLError) -> Fault:
    """A parser error in our words, with its place."""
    if isinstance(fault, yaml.reader.ReaderError):
        # The C parser counts bytes here.
        at = len(text.encode("utf-8")[: fault.position].decode("utf-8", "replace"))
        problem = f"the character U+{fault.character:04X} is not allowed"
        return Fault(Severity.ERROR, "L101", f"not valid YAML: {problem}", at, at + 1)
    mark = getattr(fault, "problem_mark", None) or getattr(fault, "context_mark", None)
    at = min(mark.index, len(text)) if mark else 0
    problem = str(getattr(fault, "problem", None) or fault)
    context = getattr(fault, "context", None)
    problem = _WORDINGS.get(problem, problem)
    if text[at : at + 1] == "\t":
        problem = "a tab cannot indent; use spaces"
    elif problem == "second occurrence":
        problem = "this anchor is defined twice"
    elif context and problem not in _WORDINGS.values():
        problem = f"{problem} {context}"
    return Fault(Severity.ERROR, "L101", f"not valid YAML: {clean_line(problem, 200)}", at, min(at + 1, len(text)))


_ALIAS = re.compile(r"(?:[\s:,\-\[{?]|#[^\n]*)*(\*[^\s,\[\]{}]+)")
_TRAILING = re.compile(r"[ \t]*(?:\r\n?|\n)")


class _YamlLayout:
    """Places of values, found by walking the nodes along a path."""

    def __init__(self, text: str, root: Node) -> None:
        self._text = text
        self._root = root

    def spot(self, path: Path) -> Spot | None:
        node, key, shared, before = self._root, None, False, 0
        for part in path:
            step = self._step(node, part)
            if step is None:
                return None
            node, key, merged, before = step
            shared = shared or merged
        alias = None
        if path and node.start_mark.index < before and not shared:
            alias = _ALIAS.match(self._text, before)
            shared = True
        if alias is not None:
            return Spot(alias.start(1), alias.end(1), key, _kind(node), "alias", shared=True)
        return Spot(node.start_mark.index, self._end(node), key, _kind(node), _style(node), shared)

    def _step(self, node: Node, part: str | int) -> tuple[Node, tuple[int, int] | None, bool, int] | None:
        """The child, its key, whether it was merged in, and the offset after which its text stands."""
        if isinstance(node, SequenceNode):
            if not isinstance(part, int) or not 0 <= part < len(node.value):
                return None
            return node.value[part], None, False, self._before(node, part)
        if not isinstance(node, MappingNode) or not isinstance(part, str):
            return None
        for key, value in reversed(node.value):
            if isinstance(key, ScalarNode) and key.value == part and not (key.value == "<<" and key.tag is _PLAIN):
                return value, _marks(key), False, key.end_mark.index
        for key, value in node.value:
            if isinstance(key, ScalarNode) and key.value == "<<":
                for merged in value.value if isinstance(value, SequenceNode) else (value,):
                    if (step := self._step(merged, part)) is not None:
                        return step[0], step[1], True, step[3]
        return None

    def _before(self, node: SequenceNode, part: int) -> int:
        """The offset after which an item's own text stands; an anchor that it repeats stands before it."""
        start = int(node.start_mark.index)
        starts = [item.start_mark.index for item in node.value[: part + 1]]
        if starts[-1] > max(starts[:-1], default=start - 1):
            return start
        at = start
        for item in node.value[:part]:
            alias = _ALIAS.match(self._text, at) if item.start_mark.index < at or at == start else None
            at = alias.end(1) if alias else max(at, int(item.end_mark.index))
        return at

    @staticmethod
    def _within(node: Node, item: Node) -> bool:
        return bool(node.start_mark.index <= item.start_mark.index < node.end_mark.index)

    def _end(self, node: Node) -> int:
        """Where the text of a value ends, without the blank lines and comments that the parser counts in."""
        start, end = _marks(node)
        if isinstance(node, ScalarNode):
            return self._block_end(node, start, end) if node.style in ("|", ">") else int(end)
        if isinstance(node, CollectionNode) and node.flow_style:
            return int(end)
        last = node.start_mark.index
        items = [n for pair in node.value for n in pair] if isinstance(node, MappingNode) else node.value
        for item in reversed(items):
            if self._within(node, item):
                last = max(last, self._end(item))
                break
        while (alias := _ALIAS.match(self._text, last, end)) is not None:
            last = alias.end(1)
        return last

    def _block_end(self, node: ScalarNode, start: int, end: int) -> int:
        if node.value.endswith("\n\n") or not node.value.strip("\n"):
            return end
        stretch = self._text[start:end].rstrip(" \t\r\n")
        match = _TRAILING.match(self._text, start + len(stretch), end)
        return match.end() if match else end


def _kind(node: Node) -> Any:
    return "mapping" if isinstance(node, MappingNode) else "sequence" if isinstance(node, SequenceNode) else "scalar"


def _style(node: Node) -> str:
    if isinstance(node, CollectionNode):
        return "flow" if node.flow_style else "block"
    return getattr(node, "style", None) or ""
