"""For an editor of task decompositions: what may stand at the cursor, and what is named there, by their JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from workbench.language.decomposition.placeholders import PLACEHOLDER, same_id
from workbench.language.decomposition.schema import json_schema
from workbench.language.edit.cursor import ITEM, Cursor
from workbench.language.edit.errors import EditError
from workbench.language.model.job import CLARIFICATION, SYNTHESIS
from workbench.language.problem import Path
from workbench.language.read.source import Format, Source, value_offsets

_SCHEMA = json_schema()
_IS_TASKS = re.compile(r'(?m)"(?:sub_tasks|original_request)"\s*:|^(?:sub_tasks|original_request)\s*:')
_IS_CASCADE = re.compile(r'(?m)"(?:phases|cascade_id)"\s*:|^(?:phases|cascade_id)\s*:')
_OPEN = re.compile(r"<[^<>\n]*\Z")
_TASK = ("sub_tasks", ITEM)
_WORK = (*_TASK, "tool_or_prompt")
_PARAMS = (*_WORK, "params")
_NAMING = ((*_TASK, "id"), (*_TASK, "dependencies"), (*_TASK, "dependency_outputs", ITEM, "task_id"))
"""Fields that hold the ids of tasks."""
_OF_PARAMS = {"prompt": "text: what the model is asked", "model": "text: another model than that of the run"}


class TaskOffer(NamedTuple):
    """One thing that may stand at the cursor."""

    text: str
    kind: Literal["key", "value", "phase", "tool", "model"]
    detail: str = ""
    is_text: bool = True
    """Whether it is written in quotes in JSON."""


class TaskField(NamedTuple):
    """The schema of a field."""

    type: str
    default: Any
    description: str
    choices: tuple[str, ...]


def is_task_text(text: str) -> bool:
    """Returns whether a text, which need not be readable, is that of a decomposition."""
    return _IS_TASKS.search(text) is not None and _IS_CASCADE.search(text) is None


def open_placeholder(cursor: Cursor) -> str | None:
    """The beginning of a placeholder, from its ``<`` to the cursor, in a parameter of a task; None where none is."""
    found = _OPEN.search(cursor.before) if cursor.path[: len(_PARAMS)] == _PARAMS else None
    return found[0] if found is not None else None


def placeholder_offers(tasks: Mapping[str, str]) -> Iterator[TaskOffer]:
    """A placeholder for the result of each task."""
    for name, words in _tasks(tasks):
        yield TaskOffer(f"<Result of Task {name}>", "phase", words)


def key_offers(cursor: Cursor) -> Iterator[TaskOffer]:
    """Keys that may stand at the cursor: required ones first."""
    node = _inside(_schema_at(cursor.path))
    known: Mapping[str, Any] = node.get("properties", {})
    if cursor.path == _PARAMS:
        for key, words in _OF_PARAMS.items():
            if key not in cursor.written:
                yield TaskOffer(key, "key", words)
    required = node.get("required", ())
    for key in sorted(known, key=lambda key: key not in required):
        if key not in cursor.written:
            yield TaskOffer(key, "key", _type(known[key]))


def value_offers(
    path: tuple[str, ...], tasks: Mapping[str, str], tools: Mapping[str, str], models: Mapping[str, str]
) -> Iterator[TaskOffer]:
    """Values that may stand at a path: words of the schema, ids of tasks, tools, models."""
    node = _schema_at(path)
    for choice in node.get("enum", ()):
        yield TaskOffer(choice, "value", "default" if node.get("default") == choice else "")
    if node.get("type") == "boolean":
        yield from (TaskOffer(word, "value", "bool", is_text=False) for word in ("true", "false"))
    field = path[:-1] if path[-1:] == (ITEM,) else path
    if field in _NAMING[1:]:
        yield from (TaskOffer(name, "phase", words) for name, words in _tasks(tasks))
    elif path == (*_WORK, "name"):
        yield TaskOffer("inference", "value", "a model")
        yield from (TaskOffer(name, "tool", words) for name, words in tools.items())
    elif path == (*_PARAMS, "model"):
        yield from (TaskOffer(name, "model", words) for name, words in models.items())


def kind_at(path: tuple[str, ...]) -> Literal["phase", "tool", "model", ""]:
    """Returns the kind of thing that a value at a path names."""
    field = path[:-1] if path[-1:] == (ITEM,) else path
    if field in _NAMING:
        return "phase"
    return "tool" if path == (*_WORK, "name") else "model" if path == (*_PARAMS, "model") else ""


def placeholder_at(text: str, offset: int) -> tuple[str, int, int] | None:
    """The task that a placeholder around an offset names, and where the name stands."""
    begin = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    for found in PLACEHOLDER.finditer(text, begin, end if end >= 0 else len(text)):
        if found.start() <= offset <= found.end():
            return found[1], *found.span(1)
    return None


def field_of(path: Iterable[str]) -> TaskField | None:
    """The field at a path; None if the schema does not know it."""
    path = tuple(path)
    if not path:
        return None
    if path[:-1] == _PARAMS and path[-1] in _OF_PARAMS:
        return TaskField("text", None, _OF_PARAMS[path[-1]].removeprefix("text: ").capitalize() + ".", ())
    node = _schema_at(path)
    if not node:
        return None
    return TaskField(_type(node), node.get("default"), node.get("description", ""), tuple(node.get("enum", ())))


def _tasks(found: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    return ((name, words) for name, words in found.items() if name not in (CLARIFICATION, SYNTHESIS))


def _schema_at(path: Iterable[str]) -> Mapping[str, Any]:
    """The schema of what stands at a path; empty if it is unknown."""
    node: Mapping[str, Any] = _SCHEMA
    for part in path:
        node = _inside(node)
        node = node.get("items", {}) if part == ITEM else node.get("properties", {}).get(part, {})
    return node


def _inside(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of what may have several forms, the one with keys."""
    return node["anyOf"][0] if "anyOf" in node else node


def _type(node: Mapping[str, Any]) -> str:
    """The type in a word or two."""
    if "enum" in node:
        return "a word"
    if "anyOf" in node:
        return " or ".join(_type(one) for one in node["anyOf"])
    words = {"string": "text", "integer": "int", "boolean": "bool", "array": "list", "object": "mapping"}
    types = node.get("type", ())
    return " or ".join(words.get(one, one) for one in ((types,) if isinstance(types, str) else types))


def task_names(text: str, known: Mapping[str, str], form: Format) -> Mapping[str, str]:
    """The ids of a decomposition: those that were read, else those that its text shows."""
    if known:
        return known
    pattern = _ID_IN_JSON if form == "json" else _ID_IN_YAML
    return dict.fromkeys((found[1] for found in pattern.finditer(text)), "")


_ID_IN_JSON = re.compile(r'"id"\s*:\s*"?([^"\s,}]+)')
_ID_IN_YAML = re.compile(r"(?m)^[ -]*\bid\s*:\s*[\"']?([^\"'\n,}]+)")


def renamed_task(source: Source, old: str, new: str) -> str:
    """The text of a decomposition with another id for a task, wherever it is named: dependencies, stated outputs,
    placeholders. Raises EditError, with nothing changed."""
    if not _NEW_ID.fullmatch(new):
        raise EditError("an id is made of letters, digits, _, - and dots")
    if new in (CLARIFICATION, SYNTHESIS):
        raise EditError(f"{new} is that of a phase which the workbench adds")
    data = source.data if isinstance(source.data, Mapping) else {}
    listed = data.get("sub_tasks")
    ids = [str(one.get("id", "")).strip() for one in _mappings(listed)]
    if old not in ids:
        raise EditError(f"there is no task {old}")
    if new == old:
        raise EditError("that is its id already")
    if same_id(new, ids):
        raise EditError(f"there is a task {same_id(new, ids)} already")
    changes: list[tuple[int, int, str]] = []
    for path, value in _strings(data, ()):
        inside = tuple(ITEM if isinstance(part, int) else part for part in path)
        field = inside[:-1] if inside[-1:] == (ITEM,) else inside
        spot = source.spot(path)
        if spot is None or spot.shared:
            continue
        text = str(value)
        if field in _NAMING and same_id(text, ids) == old:
            quoted = source.text[spot.start] in "\"'"
            word = new if quoted or source.format != "json" else f'"{new}"'
            changes.append((spot.start + quoted, spot.end - quoted, word))
        elif isinstance(value, str) and (inside[: len(_PARAMS)] == _PARAMS or inside == ("synthesis_plan",)):
            offsets = None
            for found in PLACEHOLDER.finditer(value):
                if same_id(found[1], ids) != old:
                    continue
                offsets = offsets or value_offsets(source.text, spot.start, spot.end, spot.style, value, source.format)
                if offsets is None:
                    line = source.position(spot.start)[0]
                    raise EditError(f"the id is written in a form that cannot be changed (line {line})")
                changes.append((offsets[found.start(1)], offsets[found.end(1)], new))
    pieces, at = list[str](), 0
    for start, end, word in sorted(changes):
        pieces += [source.text[at:start], word]
        at = end
    return source.bom + "".join((*pieces, source.text[at:]))


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _strings(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Every text and number of a document, with its path."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _strings(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _strings(inner, (*path, index))
    elif isinstance(value, str | int) and not isinstance(value, bool):
        yield path, value


_NEW_ID = re.compile(r"[\w.-]+")
