"""Completion and help at the cursor in a pipeline: values that can be written there, and the meaning of an
attribute."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from workbench.language.dot.attributes import BY_NAME, SHAPES, TABLE, TYPES, AttributeRow, Scope
from workbench.language.dot.conditions import OUTCOMES

_TOKEN = re.compile(
    r'"(?P<text>[^"\\]*+(?:\\.[^"\\]*+)*+)(?P<closed>"?)|//[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/)?'
    r"|(?P<word>[A-Za-z_][\w.]*)|(?P<arrow>->|--)|(?P<sign>[^\s])",
    re.DOTALL,
)
_WORD = re.compile(r"[\w.:-]*\Z")
Slot = Literal["statement", "target", "key", "value", "text", ""]


class Position(NamedTuple):
    """Where the cursor stands."""

    slot: Slot
    """A new statement, the node that an edge leads to, an attribute, its value, or text where nothing is offered."""
    scope: Scope
    key: str
    """The attribute whose value it is."""
    start: int
    """Where the typed word begins."""
    typed: str
    in_text: str = ""
    """Of a value in quotes: what stands before the word."""


def position_at(text: str, offset: int) -> Position:
    """Returns where an offset stands. The text before it decides; what is broken behind it does not matter."""
    scope: Scope = "graph"
    depth, key, equals = 0, "", False
    before: Slot = "statement"
    inside: tuple[int, str] | None = None
    last = ""
    at = 0
    edge = False
    while (match := _TOKEN.search(text, at, offset)) is not None:
        at = match.end()
        if match["text"] is not None:
            if not match["closed"]:
                inside = match.start("text"), match["text"]
                break
            last, equals = ("value" if equals else "id"), False
            continue
        if match["word"]:
            if match.end() == offset:
                break
            if (depth and not equals) or not depth:
                key = match["word"]
            last, equals = ("value" if equals else "id"), False
            before = "target" if before == "target" and last != "id" else before
            if not depth and last == "id" and not edge:
                scope = {"graph": "graph", "edge": "edge"}.get(key, "node")  # type: ignore[assignment]
            continue
        sign = match["sign"] or match["arrow"] or ""
        if sign in ("->", "--"):
            edge, last, before = True, "arrow", "target"
            scope = "edge"
        elif sign == "[":
            depth, key, equals = 1, "", False
        elif sign == "]":
            depth, last = 0, "list"
        elif sign == "=":
            equals = True
        elif sign in ",;" and depth:
            key, equals, last = "", False, ""
        elif sign in ";{}":
            edge, key, equals, last, before, scope = False, "", False, "", "statement", "graph"
    if inside is not None:
        word = _WORD.search(inside[1])
        typed = word[0] if word is not None else ""
        wanted: Scope = scope if depth else "graph"
        return Position("text", wanted, key, offset - len(typed), typed, inside[1][: len(inside[1]) - len(typed)])
    start = offset
    while start and (text[start - 1].isalnum() or text[start - 1] in "_.:"):
        start -= 1
    typed = text[start:offset]
    if equals:
        return Position("value", scope if depth else "graph", key, start, typed)
    if depth:
        return Position("key", scope, "", start, typed)
    new_line = "\n" in text[text.rfind("]", 0, start) + 1 : start] and last != "arrow"
    if last == "arrow":
        return Position("target", "edge", "", start, typed)
    return Position("statement" if new_line or last in ("", "list") else "", "graph", "", start, typed)


def row_at(text: str, offset: int) -> tuple[AttributeRow, Scope] | None:
    """The attribute under the cursor: its name, or its value."""
    found = position_at(text, offset)
    word = re.search(r"[\w.]*\Z", text[:offset])
    rest = re.compile(r"[\w.]*").match(text, offset)
    name = found.key
    if found.slot in ("key", "statement", "") and word is not None and rest is not None:
        name = word[0] + rest[0]
    row = BY_NAME[found.scope].get(name)
    return (row, found.scope) if row is not None else None


class Offer(NamedTuple):
    """One thing that may stand at the cursor."""

    text: str
    kind: Literal["key", "value", "phase", "tool", "model"]
    detail: str = ""
    insert: str = ""


def offers(
    found: Position, nodes: Mapping[str, str], tools: Mapping[str, str], models: Mapping[str, str]
) -> Iterator[Offer]:
    """Yields the offers at a position; ``nodes``, ``tools`` and ``models`` are names with a few words about each."""
    if found.slot == "key":
        yield from (Offer(row.name, "key", row.about, f"{row.name}=") for row in TABLE[found.scope])
    elif found.slot == "target":
        yield from (Offer(name, "phase", words) for name, words in nodes.items())
    elif found.slot == "statement":
        yield from (Offer(name, "phase", words) for name, words in nodes.items())
        yield from (Offer(row.name, "key", row.about, f"{row.name}=") for row in TABLE["graph"])
        yield from (Offer(word, "key", about, f"{word} [") for word, about in _DEFAULTS.items())
    elif found.slot in ("value", "text"):
        quoted = found.slot == "text"
        for word, kind, words in _values(found, nodes, tools, models):
            bare = quoted or re.fullmatch(r"[A-Za-z_][\w.:-]*|\d+", word) is not None
            yield Offer(word, kind, words, word if bare else f'"{word}"')


_DEFAULTS = {
    "node": "attributes of nodes declared later",
    "edge": "attributes of edges written later",
    "subgraph": "a group of nodes",
}
_KEYS = (
    "outcome",
    "preferred_label",
    "context.",
    "context.tool.exit_code",
    "context.tool.output",
    "context.last_stage",
)
_Value = tuple[str, Literal["value", "phase", "tool", "model"], str]


def _values(
    found: Position, nodes: Mapping[str, str], tools: Mapping[str, str], models: Mapping[str, str]
) -> Iterable[_Value]:
    row = BY_NAME[found.scope].get(found.key)
    if row is None:
        return
    if row.name == "shape":
        yield from ((shape, "value", type) for shape, type in SHAPES.items())
    elif row.name == "type":
        yield from ((type, "value", kind) for type, kind in TYPES.items())
    elif row.name in ("retry_target", "fallback_retry_target"):
        yield from ((name, "phase", words) for name, words in nodes.items())
    elif row.name == "workbench.tools":
        yield from ((name, "tool", words) for name, words in tools.items())
    elif row.name == "llm_model":
        yield from ((name, "model", words) for name, words in models.items())
    elif row.name in ("condition", "manager.stop_condition") and found.slot == "text":
        if re.search(r"outcome\s*!?=\s*\Z", found.in_text):
            statuses = dict.fromkeys((*OUTCOMES.values(), "retry", "skipped"))
            yield from ((word, "value", "outcome") for word in statuses)
        elif not re.search(r"=\s*\Z", found.in_text):
            yield from ((key, "value", "key") for key in _KEYS)
    elif row.kind in ("switch", "gate"):
        yield from ((word, "value", "") for word in ("true", "false"))
    else:
        yield from ((word, "value", row.default and f"default {row.default}") for word in row.choices)
