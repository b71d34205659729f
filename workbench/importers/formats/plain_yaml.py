"""Reads YAML of other programs as plain JSON values (and bytes). Tags run nothing, and neither aliases nor nesting can
make a small file large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import yaml
from msgspec import Struct, field

MOST_NESTED = 100
"""Lists and mappings in one another; the parser's own recursion would end the process at some ten thousand."""
_SPARE = 1_000_000
_TIMES = 16
"""Bound on aliases, which count as the values that they repeat: all values and their characters are at most this many
times the text's length, plus ``_SPARE`` for small files.
"""
MOST_COUNTED = 1 << 64
"""Larger numbers, infinities and invalid numbers stay texts, because not every JSON reader takes them."""
_PREFIX = "tag:yaml.org,2002:"


class NotPlain(ValueError):
    """A text that is no YAML, or has values that JSON lacks; the message says why, with the line."""


def plain_yaml(text: str) -> Any:
    """The first document of a text; keys and times are texts, and a value with an unknown tag is what it is without.

    Raises NotPlain.
    """
    return next(iter(plain_documents(text, 1)), None)


def plain_documents(text: str, most: int) -> list[Any]:
    """The same of its first ``most`` documents, up to one that is empty."""
    loader = yaml.CSafeLoader(text)
    found: list[Any] = []
    try:
        reader = _Reader(loader, _SPARE + _TIMES * len(text))
        while len(found) < most and (one := reader.document()) is not None:
            found.append(one)
        return found
    except (yaml.YAMLError, ValueError) as fault:
        mark = getattr(fault, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        raise NotPlain(f"{getattr(fault, 'problem', None) or fault}{line}") from None
    finally:
        loader.dispose()


class _Open(Struct):
    """A list or mapping that is not closed yet."""

    value: Any
    anchor: str | None
    before: int
    """The count when it began."""
    key: str | None = None
    made: bool = False
    """Whether a tag says that it is what an object is made of."""


class _Reader(Struct):
    loader: Any
    most: int
    counted: int = 0
    anchors: dict[str, tuple[Any, int]] = field(default_factory=dict)
    """Whole values by their names, with what each counts."""

    def document(self) -> Any:
        opened: list[_Open] = []
        for event in self._events():
            if isinstance(event, yaml.CollectionStartEvent):
                if len(opened) >= MOST_NESTED:
                    raise NotPlain(f"its values are nested more than {MOST_NESTED} deep")
                empty: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
                opened.append(_Open(empty, event.anchor, self.counted, made=event.tag is not None))
                continue
            done = opened.pop() if isinstance(event, yaml.CollectionEndEvent) else None
            if done is not None:
                value, anchor, before = done.value, done.anchor, done.before
            else:
                value, anchor, before = self._leaf(event), getattr(event, "anchor", None), self.counted
            self._count(1)
            if anchor is not None and not isinstance(event, yaml.AliasEvent):
                self.anchors[anchor] = (value, self.counted - before)
            if not opened:
                return value
            is_key = isinstance(opened[-1].value, dict) and opened[-1].key is None
            _put(opened[-1], value[0] if is_key and done is not None and done.made and _is_name(value) else value)
        return None

    def _events(self) -> Iterator[Any]:
        """Those of the values that are left."""
        while self.loader.check_event():
            event = self.loader.get_event()
            if isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent):
                yield event

    def _leaf(self, event: Any) -> Any:
        if isinstance(event, yaml.AliasEvent):
            name = event.anchor or ""
            if name not in self.anchors:
                raise NotPlain(f"the alias '{name[:40]}' names nothing that is whole, line {_line(event)}")
            value, size = self.anchors[name]
            self._count(size)
            return value
        self._count(len(event.value))
        tag = event.tag
        if tag is None or tag == "!":
            tag = self.loader.resolve(yaml.ScalarNode, event.value, event.implicit)
        made = _SCALARS.get(tag.removeprefix(_PREFIX).removeprefix("!"))  # Ruby writes !binary for !!binary.
        if made is None:
            return event.value
        value = made(self.loader, yaml.ScalarNode(tag, event.value))
        is_number = isinstance(value, int | float)
        return event.value if is_number and not -MOST_COUNTED < value < MOST_COUNTED else value

    def _count(self, more: int) -> None:
        self.counted += more
        if self.counted > self.most:
            raise NotPlain("its aliases stand for more than a file of its size may hold")


_SCALARS: dict[str, Callable[[Any, yaml.ScalarNode], Any]] = {
    "null": yaml.constructor.SafeConstructor.construct_yaml_null,
    "bool": yaml.constructor.SafeConstructor.construct_yaml_bool,
    "int": yaml.constructor.SafeConstructor.construct_yaml_int,
    "float": yaml.constructor.SafeConstructor.construct_yaml_float,
    "binary": yaml.constructor.SafeConstructor.construct_yaml_binary,
}


def _is_name(value: Any) -> bool:
    """One text in a list: so Python writes an object of a class of texts, such as a header's name of aiohttp."""
    return isinstance(value, list) and len(value) == 1 and isinstance(value[0], str)


def _put(into: _Open, value: Any) -> None:
    """Raises NotPlain for a key that is a list or a mapping."""
    if isinstance(into.value, list):
        into.value.append(value)
    elif into.key is not None:
        into.value[into.key] = value
        into.key = None
    elif isinstance(value, list | dict):
        raise NotPlain("a key is a list or a mapping")
    else:
        into.key = value if isinstance(value, str) else str(value)


def _line(event: Any) -> int:
    line: int = event.start_mark.line
    return line + 1
