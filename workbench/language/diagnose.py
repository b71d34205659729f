"""From a validation error to problems in the words of the catalogue, each at its place in the file."""

from __future__ import annotations

import json
import re
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from workbench.language.clean import clean_line
from workbench.language.clean import shown as shortened
from workbench.language.model.base import LIST, MAP, TAGS, TEXT
from workbench.language.model.cascade import Narrator
from workbench.language.model.context import ContextSource
from workbench.language.model.mcp import McpServer, bad_server_name
from workbench.language.nearest import nearest
from workbench.language.problem import Path, Problem, Severity, TextSpan
from workbench.language.read.source import Source

MAX_PROBLEMS = 200
"""Problems reported one by one; the rest is counted."""

_WANTED = {
    "int_type": "an integer",
    "int_from_float": "an integer",
    "int_parsing": "an integer",
    "float_parsing": "a number",
    "bool_parsing": "true or false",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "text",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "duration": "a duration such as 30s, 5m or 24h",
}
_NUMBERS = frozenset(kind for kind, words in _WANTED.items() if words.split()[-1] in ("integer", "number"))
_NUMBERS |= {"duration"}
_LIMITS = {
    "greater_than_equal": ("ge", "at least"),
    "less_than_equal": ("le", "at most"),
    "greater_than": ("gt", "more than"),
    "less_than": ("lt", "less than"),
}
_TEMPLATE = re.compile(r"\{\{|\{%")
_QUOTED = re.compile(r"'([^']*)'")


def diagnosed(fault: ValidationError, source: Source) -> list[Problem]:
    """One problem for each error of a cascade read from ``source``."""
    errors = [error for error in fault.errors(include_url=False) if not _echo(error)]
    problems = [_problem(error, source) for error in errors[:MAX_PROBLEMS]]
    if (rest := len(errors) - len(problems)) > 0:
        message = f"and {rest:,} more values of a wrong type"
        problems.append(Problem(Severity.ERROR, "L202", message, source.file, problems[-1].span))
    return problems


def _echo(error: ErrorDetails) -> bool:
    """A list counts as too short when all its items are wrong; they have been named already."""
    return error["type"] == "too_short" and bool(error["input"])


def _problem(error: ErrorDetails, source: Source) -> Problem:
    path = written(source.data, plain_path(error["loc"]))
    code, message, hint, fix = _said(error, path)
    return Problem(Severity.ERROR, code, message, source.file, _span(error, source, path), path, hint, fix)


def _span(error: ErrorDetails, source: Source, path: Path) -> TextSpan:
    if error["type"] != "missing":
        return source.span(path)
    start = source.span(path[:-1])
    end = len(source.line_text(start.line)) + 1
    return start if start.end_line == start.line else TextSpan(start.line, start.column, start.line, end)


def _said(error: ErrorDetails, path: Path) -> tuple[str, str, str, str | None]:
    """Code, message, hint and fix."""
    kind, got, name = error["type"], error.get("input"), name_of(path)
    if kind == "missing":
        return "L203", f"{name} is missing", "", None
    if kind == "too_short":
        return "L203", f"{name} is empty", "", None
    if kind in _LIMITS:
        return "L206", *_beyond(error, name), None
    if kind == "literal_error":
        return _choice(error, path, got)
    if types := _types(error):
        return "L202", f"{name} must be {types}, got {shown(got)}", _mended("", got, name)[0], None
    if kind not in _WANTED:
        return "L202", f"{name}: {clean_line(error['msg'], 200)}", "", None
    if isinstance(got, str) and _TEMPLATE.search(got) and (kind in _NUMBERS or kind == "bool_type"):
        what = "a number" if kind in _NUMBERS else "true or false"
        return "L205", f"{name} is {what}; a template is not rendered here", "", None
    hint, fix = _mended(kind, got, name)
    subject = "a cascade" if not path else name
    return "L202", f"{subject} must be {_WANTED[kind]}, got {shown(got)}", hint, fix


def _beyond(error: ErrorDetails, name: str) -> tuple[str, str]:
    """Message and hint for a number beyond its range."""
    key, words = _LIMITS[error["type"]]
    return f"{name} must be {words} {_number(error['ctx'][key])}", f"got {shown(error.get('input'))}"


def mistyped(error: ErrorDetails, name: str) -> tuple[str, str]:
    """Message and hint for a value of the wrong type, in the same words for every file that people write; pydantic's
    own message for what is wrong otherwise."""
    kind, got = error["type"], error.get("input")
    if kind == "missing":
        return f"{name} is missing", ""
    if kind in _LIMITS:
        return _beyond(error, name)
    if types := _types(error):
        return f"{name} must be {types}, got {shown(got)}", _mended("", got)[0]
    if kind not in _WANTED:
        return f"{name}: {error['msg'][:1].lower()}{clean_line(error['msg'][1:], 200)}", ""
    return f"{name} must be {_WANTED[kind]}, got {shown(got)}", _mended(kind, got)[0]


def _types(error: ErrorDetails) -> str:
    """The types that a value may have, in words, where it has none of several; empty for any other error."""
    tags = _QUOTED.findall(str(error.get("ctx", {}).get("expected_tags", "")))
    return " or ".join(_TAGGED[tag] for tag in tags) if TAGS.issuperset(tags) else ""


_TAGGED = {TEXT: "text", LIST: "a list", MAP: "a mapping"}
_SHORT = {
    "soundings": ("factor", int),
    "token_budget": ("max_total", int),
    "retry": ("max_attempts", int),
    "context": ("from", str | list),
    "rag": ("directory", str),
    "cache_control": ("at", list),
}
"""Keys whose mapping people write as the value of one of its keys: that key, and the type of its value."""


def _in_mapping(name: str, got: Any) -> str:
    """The mapping that a value stands for; empty if none is known."""
    key, kind = _SHORT.get(name.strip("'"), ("", int))
    if name.startswith("'sub_cascades[") and isinstance(got, str):
        key, kind = "ref", str
    if not key or not isinstance(got, kind) or isinstance(got, bool):
        return ""
    value = [got] if name == "'context'" and isinstance(got, str) else got
    listed = f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)
    return f"write {{{key}: {clean_line(listed, 60)}}}"


def _mended(kind: str, got: Any, name: str = "") -> tuple[str, str | None]:
    if kind == "model_type" and (short := _in_mapping(name, got)):
        return short, None
    if name == "'phases'" and isinstance(got, dict):
        return "write - name: NAME for each", None
    if not kind or (kind == "dict_type" and isinstance(got, list)):
        if isinstance(got, dict) and got and all(isinstance(key, str) for key in got):
            return f"write [{clean_line(', '.join(got), 60)}]", None
        if isinstance(got, str):
            return f"write [{clean_line(got, 40)}]", None
        return ("write NAME: VALUE for each", None) if isinstance(got, list) and kind else ("", None)
    if kind in _NUMBERS and isinstance(got, str) and re.fullmatch(r"[-+]?\d+(\.\d+)?", got.strip()):
        return "take the quotes away", got.strip()
    if kind == "bool_type" and isinstance(got, str) and got.lower() in _BOOLS:
        return f"write {_BOOLS[got.lower()]}", _BOOLS[got.lower()]
    if kind == "string_type" and isinstance(got, bool | int | float):
        return "put it in quotes", json.dumps(json.dumps(got))
    if kind == "tuple_type" and isinstance(got, str):
        return f"write [{clean_line(got, 40)}]", None
    if kind == "model_type" and got is None:
        return "write {} for an empty one, or take the key away", "{}"
    return "", None


_BOOLS = {"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false"}


def _choice(error: ErrorDetails, path: Path, got: Any) -> tuple[str, str, str, str | None]:
    choices = tuple(_QUOTED.findall(str(error["ctx"]["expected"])))
    name = name_of(path)
    if TEXT in error["loc"]:
        guess = nearest(str(got), choices)
        hint = f"did you mean '{guess}'?" if guess else f"write [{clean_line(str(got), 40)}]"
        return "L204", f"{name} must be a list or {choices[0]}; got {shown(got)}", hint, guess or None
    wrong = f"'{clean_line(got, 60)}'" if isinstance(got, str) else shown(got)
    guess = nearest(got.lower(), choices) if isinstance(got, str) else ""
    hint = f"did you mean '{guess}'?" if guess else ""
    return "L204", f"{name} must be one of {', '.join(choices)}; got {wrong}", hint, guess or None


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def shown(value: Any) -> str:
    """A value as a message shows it: its kind, and the start of it."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"number {clean_line(str(value), 40)}"
    if isinstance(value, str):
        return f'text "{clean_line(value, 60)}"'
    return "a list" if isinstance(value, list) else "a mapping"


def name_of(path: Path) -> str:
    """The last key of a path, with the numbers after it, quoted: ``'tackle[1]'``."""
    if not path:
        return "the file"
    index = next((i for i in range(len(path) - 1, -1, -1) if isinstance(path[i], str)), 0)
    rest = "".join(f"[{part}]" for part in path[index + 1 :])
    return f"'{clean_line(str(path[index]), 80)}{rest}'"


def plain_path(location: tuple[int | str, ...]) -> Path:
    """A location without the names of union branches."""
    return tuple(part for part in location if part not in TAGS)


def written(data: Any, path: Path) -> Path:
    """A path of model keys as the file writes it: accepted spellings undone, cut at a short form."""
    found: list[str | int] = []
    for depth, part in enumerate(path):
        if isinstance(data, dict):
            key = next((k for k in (part, *_OTHER.get(str(part), ())) if k in data), part)
            found.append(key)
            data = data.get(str(key))
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            found.append(part)
            data = data[part]
        else:
            return (*found, *path[depth:]) if data is None else tuple(found)
    return tuple(found)


_OTHER = {proper: (spelling,) for model in (ContextSource, Narrator) for spelling, proper in model.SPELLINGS.items()}


def without(data: Any, fault: ValidationError) -> Any:
    """A copy of the data without the faulty parts; None when nothing is left. Phases keep their places."""
    errors = [error for error in fault.errors(include_url=False) if not _echo(error)]
    if len(errors) > MAX_PROBLEMS:
        return None
    for error in errors:
        path = written(data, plain_path(error["loc"]))
        data = _mended_data(data, path, missing=error["type"] == "missing")
        if data is None:
            return None
    return data


def _mended_data(data: Any, path: Path, *, missing: bool) -> Any:
    if not path or path == ("phases",):
        return None
    if path == ("cascade_id",):
        return {**data, "cascade_id": ""}
    if path[0] == "phases" and len(path) == 2 and isinstance(path[1], int):
        return _replaced(data, path, {"name": f"phases[{path[1]}]", "instructions": ""})
    if path[0] == "phases" and len(path) == 3 and path[2] == "name":
        return _replaced(data, path, f"phases[{path[1]}]")
    # A missing key condemns the mapping that lacks it; an item of a list, the whole list.
    path = path[:-1] if missing else path
    while path and not isinstance(path[-1], str):
        path = path[:-1]
    return None if not path or path == ("phases",) else _replaced(data, path, None)


def _replaced(data: Any, path: Path, value: Any) -> Any:
    """A copy along the path; a value of None removes the key."""
    part = path[0]
    if isinstance(data, list) and isinstance(part, int):
        if len(path) == 1:
            return [value if i == part else item for i, item in enumerate(data)]
        return [_replaced(item, path[1:], value) if i == part else item for i, item in enumerate(data)]
    if not isinstance(data, dict):
        return data
    if len(path) == 1:
        return {k: v for k, v in data.items() if k != part} if value is None else {**data, part: value}
    return {k: _replaced(v, path[1:], value) if k == part else v for k, v in data.items()}


def bad_server(name: object, fields: object) -> str:
    """Returns why this is not the name and the fields of a server, with the path of the field; empty if it is."""
    try:
        server = McpServer.model_validate(fields)
    except ValidationError as fault:
        error = fault.errors(include_url=False)[0]
        return ": ".join(filter(None, (".".join(map(str, plain_path(error["loc"]))), error["msg"])))
    unknown = next(iter(server.model_extra or {}), None)
    wrong = "" if unknown is None else f"{shortened(unknown)} is not a key of an MCP server"
    return bad_server_name(str(name)) or wrong
