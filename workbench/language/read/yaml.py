"""YAML read by PyYAML's C parser, as nodes with marks; every value is resolved here, by the rules of YAML 1.2.

The parser's own resolver follows YAML 1.1, where ``on`` is a boolean and ``012`` is 10, so it is switched off.
"""

from __future__ import annotations

import math
import re
from typing import Any

import yaml
from yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from workbench.language.clean import clean_line
from workbench.language.problem import Path, Severity
from workbench.language.read.reading import MAX_DEPTH, MAX_NODES, Fault, Reading, TooMuch, position, too_deep, too_many
from workbench.language.read.source import Spot

# What a plain YAML word means: the core rules of YAML 1.2, with digits grouped by underscores, as plain JSON.

_FIXED: dict[str, Any] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_INTEGER = re.compile(r"[-+]?(?:[0-9][0-9_]*|0b[01][01_]*|0o[0-7][0-7_]*|0x[0-9a-fA-F][0-9a-fA-F_]*)")
_FLOAT = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[0-9][0-9_]*[eE][-+]?[0-9]+|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?)"
)
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_DATE = re.compile(
    r"\d{4}-\d\d-\d\d|\d{4}-\d\d?-\d\d?(?:[Tt]|[ \t]+)\d\d?:\d\d:\d\d(?:\.\d*)?(?:[ \t]*(?:Z|[-+]\d\d?(?::?\d\d)?))?"
)
_STARTS = frozenset("0123456789+-.~tTfFnN")
_MAX_DIGITS = 400
"""Beyond the digits of the largest float; longer integers are no number anybody meant."""


class NotJson(ValueError):
    """A plain word that YAML reads as something JSON has no form for."""


def plain_value(word: str) -> Any:
    """null, a bool, an int, a float or the text itself. Raises NotJson for dates and what is not finite."""
    if not word:
        return None
    if word[0] not in _STARTS:
        return word
    if word in _FIXED:
        return _FIXED[word]
    if _INTEGER.fullmatch(word):
        return _integer(word)
    if _FLOAT.fullmatch(word):
        number = float(word.replace("_", ""))
        if not math.isfinite(number):
            raise NotJson(f"{word} is too large for a number")
        return number
    if _NOT_FINITE.fullmatch(word):
        raise NotJson(f"{word} is not a finite number")
    if _DATE.fullmatch(word):
        raise NotJson(f"{word} is a date")
    return word


def _integer(word: str) -> int:
    digits = word.replace("_", "")
    if len(digits) > _MAX_DIGITS:
        raise NotJson("a number has too many digits")
    sign = -1 if digits[0] == "-" else 1
    digits = digits.lstrip("+-")
    bases = {"0x": 16, "0o": 8, "0b": 2}
    base = bases.get(digits[:2].lower(), 10)
    return sign * int(digits[2:] if base != 10 else digits, base)


_PREFIX = "tag:yaml.org,2002:"
_PLAIN = ""
"""Tag of a node that the rules for plain words resolve."""
_TEXT = _PREFIX + "str"


class _Composer(yaml.CBaseLoader):
    """The C composer without resolution; it counts nodes and depth while it builds, so no file can make it run away."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = 0
        self.nodes = 0
        self.stopped_at = 0

    def resolve(self, kind: type, value: str | None, implicit: Any) -> str:
        return _PLAIN if isinstance(implicit, bool) or implicit[0] else _TEXT

    def descend_resolver(self, parent: Any, index: Any) -> None:
        self.depth += 1
        self.nodes += 1
        fault = too_deep if self.depth > MAX_DEPTH else too_many if self.nodes > MAX_NODES else None
        if fault is not None:
            self.stopped_at = parent.start_mark.index if parent is not None else 0
            raise TooMuch(fault())

    def ascend_resolver(self) -> None:
        self.depth -= 1


def read_yaml(text: str) -> Reading:
    """Never raises; the problems of the text are in the faults."""
    reading = Reading()
    node: Node | None = None
    documents = 0
    second = 0
    parser = None
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
        at = parser.stopped_at if parser else 0
        reading.error("L104", str(stop), at, at)
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
            raise TooMuch("an alias is inside the value that it names")
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
        first: dict[str, int] = {}
        for key, value in node.value:
            if type(key) is not ScalarNode:
                start, end = _marks(key)
                template = self.text[start - 1 : start + 1] == "{{" or self.text[start : start + 2] == "{{"
                hint = "put a template in quotes" if template else ""
                self.reading.error("L101", "not valid YAML: a key must be a text", start, end, hint)
                continue
            if key.value == "<<" and key.tag is _PLAIN:
                self._merge(merged, value, depth)
                continue
            start = key.start_mark.index
            if (before := first.setdefault(key.value, start)) != start:
                name, place = clean_line(key.value, 80), position(self.text, before)
                self.reading.error("L103", f"key '{name}' is written twice, first at {place}", *_marks(key))
            data[key.value] = self.build(value, depth + 1)
        return {**merged, **data} if merged else data

    def _merge(self, merged: dict[str, Any], value: Node, depth: int) -> None:
        for node in value.value if type(value) is SequenceNode else (value,):
            if type(node) is not MappingNode:
                self.reading.error("L101", "not valid YAML: '<<' merges mappings only", *_marks(node))
                continue
            for name, item in self.build(node, depth + 1).items():
                merged.setdefault(name, item)

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


_WORDINGS: dict[tuple[str, str], tuple[str, bool]] = {
    ("found character that cannot start any token", ""): ("a text that starts so needs quotes", False),
    ("mapping values are not allowed in this context", ""): (
        "a ':' cannot stand here, or needs quotes",
        False,
    ),
    ("did not find expected key", ""): ("the indentation does not match the lines above", False),
    ("did not find expected '-' indicator", ""): ("the indentation does not fit the list above", False),
    ("did not find expected <document start>", ""): ("nothing may follow the value", False),
    ("could not find expected ':'", ""): ("a ':' must follow this key", True),
    ("found undefined alias", ""): ("this alias names nothing; a text needs quotes", False),
    ("second occurrence", ""): ("this anchor is defined twice", False),
    ("found unexpected end of stream", "while scanning a quoted scalar"): ("this text has no closing quote", True),
    ("did not find expected ',' or ']'", ""): ("a ',' or ']' must follow", False),
    ("did not find expected ',' or '}'", ""): ("a ',' or '}' must follow", False),
}
"""Our words for the parser's messages, with their context if it matters, and whether the context's place is meant."""
_OPEN_TEMPLATE = re.compile(r"(?:^|[:\-,\[{])\s*(?:\{\{|\{%)")


def _fault(text: str, fault: yaml.YAMLError) -> Fault:
    """A parser error in our words, with its place."""
    if isinstance(fault, yaml.reader.ReaderError):
        # The C parser counts bytes here.
        at = len(text.encode("utf-8")[: fault.position].decode("utf-8", "replace"))
        problem = f"the character U+{fault.character:04X} is not allowed"
        return Fault(Severity.ERROR, "L101", f"not valid YAML: {problem}", at, at + 1)
    problem, context = str(getattr(fault, "problem", None) or fault), str(getattr(fault, "context", None) or "")
    mark, around = getattr(fault, "problem_mark", None), getattr(fault, "context_mark", None)
    words, at_context = _WORDINGS.get((problem, context)) or _WORDINGS.get((problem, "")) or ("", False)
    mark = around if at_context or mark is None else mark
    at = min(mark.index, len(text)) if mark else 0
    if text[at : at + 1] == "\t":
        words = "a tab cannot indent; use spaces"
    elif "must follow" in words and around is not None and not at_context:
        words = f"{words}; the bracket opens at {position(text, around.index)}"
    line_end = text.find("\n", at)
    line = text[text.rfind("\n", 0, at) + 1 : line_end if line_end >= 0 else len(text)]
    hint = "a text that begins with a template needs quotes" if _OPEN_TEMPLATE.search(line) else ""
    message = f"not valid YAML: {clean_line(words or f'{problem} {context}'.rstrip(), 200)}"
    return Fault(Severity.ERROR, "L101", message, at, min(at + 1, len(text)), hint)


_ALIAS = re.compile(r"(?:[\s:,\-\[{?]|#[^\n]*)*(\*[^\s,\[\]{}]+)")
_TRAILING = re.compile(r"[ \t]*(?:\r\n?|\n)")


class _YamlLayout:
    """Places of values, found by walking the nodes along a path."""

    def __init__(self, text: str, root: Node) -> None:
        self._text = text
        self._root = root
        self._mappings: dict[int, dict[str, tuple[ScalarNode, Node]]] = {}
        self._sequences: dict[int, list[int]] = {}

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
            return node.value[part], None, False, self._befores(node)[part]
        if not isinstance(node, MappingNode) or not isinstance(part, str):
            return None
        if (pair := self._keys(node).get(part)) is not None:
            return pair[1], _marks(pair[0]), False, pair[0].end_mark.index
        for key, value in node.value:
            if isinstance(key, ScalarNode) and key.value == "<<" and key.tag is _PLAIN:
                for merged in value.value if isinstance(value, SequenceNode) else (value,):
                    if (step := self._step(merged, part)) is not None:
                        return step[0], step[1], True, step[3]
        return None

    def _keys(self, node: MappingNode) -> dict[str, tuple[ScalarNode, Node]]:
        """The pairs of a mapping by key; of a key written twice the last, as in the data."""
        keys = self._mappings.get(id(node))
        if keys is None:
            pairs = [(key, value) for key, value in node.value if isinstance(key, ScalarNode)]
            keys = {key.value: (key, value) for key, value in pairs if key.value != "<<" or key.tag is not _PLAIN}
            self._mappings[id(node)] = keys
        return keys

    def _befores(self, node: SequenceNode) -> list[int]:
        """For each item the offset after which its own text stands; an anchor that it repeats stands before it."""
        befores = self._sequences.get(id(node))
        if befores is None:
            befores, at = [], int(node.start_mark.index)
            for item in node.value:
                befores.append(at)
                alias = (
                    _ALIAS.match(self._text, at) if item.start_mark.index < at or not self._within(node, item) else None
                )
                at = alias.end(1) if alias else max(at, int(item.end_mark.index))
            self._sequences[id(node)] = befores
        return befores

    @staticmethod
    def _within(node: Node, item: Node) -> bool:
        return bool(node.start_mark.index <= item.start_mark.index < node.end_mark.index)

    def _end(self, node: Node) -> int:
        """The end of a value's text, without the blank lines and comments that the parser includes."""
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
