"""Small changes of any cascade, made from its shape alone: every value of a file is changed, left out or moved."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from workbench.language.model.schema import json_schema
from workbench.language.problem import path_text

Doc = dict[str, Any]
Change = tuple[str, Doc]
"""What was changed, and the changed document."""
Path = tuple[str | int, ...]

UNTOUCHED = frozenset({"properties", "required", "inputs_schema", "strategies"})
"""Inside a schema of outputs, and what only people and comparisons read: told by their whole alone."""


def changes(doc: Doc) -> Iterator[Change]:
    """Every changed document, each of which another text of the file gives."""
    for path, value in _values(doc, ()):
        for what, other in _others(path, value):
            yield f"{path_text(path)}: {what}", _put(doc, path, other)
        if path and path != ("phases",):
            yield f"without {path_text(path)}", _dropped(doc, path)
    for index, phase in enumerate(doc["phases"]):
        yield from _more(doc, ("phases", index), phase)
    first = {"name": "before_all", "instructions": "Say that you are ready.", "handoffs": [doc["phases"][0]["name"]]}
    yield "a phase before all", {**doc, "phases": [first, *doc["phases"]]}
    yield (
        "a phase after all",
        {**doc, "phases": [*doc["phases"], {"name": "after_all", "instructions": "Say goodbye."}]},
    )


def _values(value: object, path: Path) -> Iterator[tuple[Path, object]]:
    if path and path[-1] in UNTOUCHED:
        return
    if path:
        yield path, value
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from _values(item, (*path, key))


def _others(path: Path, value: object) -> Iterator[tuple[str, object]]:
    """Other values of the same kind."""
    if isinstance(value, bool):
        yield "switched", not value
    elif isinstance(value, int | float):
        yield "one more", value + 1
        if value >= 1:
            yield "one less", value - 1
    elif isinstance(value, str):
        yield from _texts(str(path[-1]), value)
    elif isinstance(value, list) and len(value) > 1:
        yield "reversed", value[::-1]


def _texts(key: str, text: str) -> Iterator[tuple[str, str]]:
    for word in sorted(_WORDS.get(key, frozenset()) - {text}):
        if text in _WORDS[key]:
            yield word, word
    if " " not in text:
        yield "another name", f"{text}_2"
        return
    yield "more polite", f"{text.rstrip()} Please.\n"
    yield "a word less", text.partition(" ")[2]
    if "{{" in text:
        before, _, rest = text.partition("{{")
        yield "another variable", f"{before}{{{{ input.nothing }}}}{rest.partition('}}')[2]}"


def _more(doc: Doc, path: Path, phase: Doc) -> Iterator[Change]:
    """What a phase could have besides."""
    name = path_text(path)
    if "tool" in phase:
        return
    if "model" not in phase:
        yield f"{name}: a model of its own", _put(doc, (*path, "model"), "openai/gpt-4o-mini")
    tools = phase.get("tackle", [])
    if isinstance(tools, list):
        more = next(tool for tool in ("list_files", "read_file", "set_state") if tool not in tools)
        yield f"{name}: one more tool", _put(doc, (*path, "tackle"), [*tools, more])
        if tools and not phase.get("use_native_tools"):
            yield f"{name}: native tools", _put(doc, (*path, "use_native_tools"), True)
    if "context" not in phase:
        yield f"{name}: a context without anything", _put(doc, (*path, "context"), {"from": []})
    if "rules" not in phase:
        yield (
            f"{name}: another prompt for turn 2",
            _put(doc, (*path, "rules"), {"max_turns": 2, "turn_prompt": "Again."}),
        )


def _put(doc: Doc, path: Path, value: object) -> Doc:
    other = copy.deepcopy(doc)
    _holder(other, path)[path[-1]] = value
    return other


def _dropped(doc: Doc, path: Path) -> Doc:
    other = copy.deepcopy(doc)
    del _holder(other, path)[path[-1]]
    return other


def _holder(doc: Doc, path: Path) -> Any:
    at: Any = doc
    for key in path[:-1]:
        at = at[key]
    return at


def _enumerations(schema: object) -> Iterator[tuple[str, frozenset[str]]]:
    """Fields whose values are words of a list, and the list."""
    if isinstance(schema, dict):
        for name, field in schema.get("properties", {}).items():
            words = [w for option in (field, *field.get("anyOf", ())) for w in option.get("enum", ())]
            if words:
                yield name, frozenset(words)
        for value in schema.values():
            yield from _enumerations(value)


_WORDS: dict[str, frozenset[str]] = dict(_enumerations(json.loads(json.dumps(json_schema()))))
