"""Turns a Python function into a tool: signature, type hints and docstring become what a model sees."""

from __future__ import annotations

import inspect
import json
import re
import types
import typing
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any, Literal, Union

from msgspec import Struct, field

from workbench.engine.contracts import Parameter, ToolSpec

# Reads what a docstring says of a function and of its parameters, in Google or Sphinx style.

_SECTION = re.compile(
    r"^(args|arguments|parameters|params|returns?|yields?|raises|examples?|notes?|attributes|keyword args)\s*:\s*$",
    re.IGNORECASE,
)
_ARGUMENTS = re.compile(r"^(args|arguments|parameters|params|keyword args)\s*:\s*$", re.IGNORECASE)
_GOOGLE = re.compile(r"^\*{0,2}(?P<name>\w+)\s*(\([^)]*\))?\s*:\s*(?P<text>.*)$")
_SPHINX = re.compile(r"^:(param|parameter|arg|argument|key)\s+([^:]*\s)?\*{0,2}(?P<name>\w+)\s*:\s*(?P<text>.*)$")
_SPHINX_FIELD = re.compile(r"^:\w+[^:]*:")


class Docstring(Struct, frozen=True):
    """The first line, the first paragraph as one line of text, and the description of each parameter that has one."""

    first_line: str = ""
    summary: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)


def docstring_of(function: Callable[..., Any]) -> Docstring:
    """The docstring of a function; empty where it has none."""
    return parse_docstring(inspect.getdoc(function) or "")


def parse_docstring(text: str) -> Docstring:
    """Never fails: unknown sections are left out."""
    lines = inspect.cleandoc(text).splitlines()
    summary = _summary(lines)
    return Docstring(summary[0] if summary else "", " ".join(summary), _google(lines) | _sphinx(lines))


def _summary(lines: list[str]) -> list[str]:
    """The lines of the first paragraph."""
    taken: list[str] = []
    for line in lines:
        if not line.strip() or _SECTION.match(line) or _SPHINX_FIELD.match(line):
            break
        taken.append(line.strip())
    return taken


def _google(lines: list[str]) -> dict[str, str]:
    start = next((i + 1 for i, line in enumerate(lines) if _ARGUMENTS.match(line)), len(lines))
    body: list[str] = []
    for line in lines[start:]:
        if line.strip() and not line[0].isspace():
            break
        body.append(line)
    indents = [len(line) - len(line.lstrip()) for line in body if line.strip()]
    margin = min(indents, default=0)
    return _entries(body, _GOOGLE, lambda line: len(line) - len(line.lstrip()) == margin)


def _sphinx(lines: list[str]) -> dict[str, str]:
    return _entries(lines, _SPHINX, lambda line: line.startswith(":"))


def _entries(lines: list[str], entry: re.Pattern[str], begins: Callable[[str], bool]) -> dict[str, str]:
    """``name: text`` entries; what does not begin an entry continues the one before it, a blank line ends it."""
    found: dict[str, str] = {}
    name = ""
    for line in lines:
        match = entry.match(line.strip()) if begins(line) else None
        if match:
            name = match["name"]
            found[name] = match["text"].strip()
        elif not line.strip() or begins(line):
            name = ""
        elif name:
            found[name] = f"{found[name]} {line.strip()}".strip()
    return found


_SCALARS: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_LISTS = (list, Sequence, MutableSequence)
_MAPS = (dict, Mapping, MutableMapping)
_SHOWN = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
    "null": "null",
}


class SchemaError(TypeError):
    """A function that cannot be offered to a model as it is written."""


def spec_of(name: str, function: Callable[..., Any], *, side_effects: bool = True) -> ToolSpec:
    """Describe a function as a tool.

    Parameters are ``str, int, float, bool, list, dict`` and their generic forms, ``Optional``, ``Union``,
    ``Literal``, ``TypedDict`` and ``Any``; one without a type may be anything. Raises SchemaError when the signature
    holds ``*args`` or ``**kwargs``, a positional-only parameter, a type that JSON has no word for, or a default that
    is no JSON.
    """
    signature, hints = _signature(name, function)
    return spec_from(name, signature, hints, docstring_of(function), side_effects=side_effects)


_OWN: dict[tuple[str, str, str], ToolSpec] = {}


def own_spec_of(name: str, function: Callable[..., Any], *, side_effects: bool) -> ToolSpec:
    """``spec_of`` for a function of this package, worked out once in a process: every check of a file asks for it."""
    key = (name, function.__module__, function.__qualname__)
    if key not in _OWN:
        _OWN[key] = spec_of(name, function, side_effects=side_effects)
    return _OWN[key]


def spec_from(
    name: str,
    signature: inspect.Signature,
    hints: Mapping[str, Any],
    docs: Docstring,
    *,
    side_effects: bool = True,
) -> ToolSpec:
    """The same from the parts of a function, where there is no function to call. Raises SchemaError."""
    properties: dict[str, Any] = {}
    parameters: list[Parameter] = []
    for parameter in signature.parameters.values():
        _refuse_kinds(name, parameter)
        required = parameter.default is inspect.Parameter.empty
        hint = hints.get(parameter.name, Any if required else _type_of(parameter.default))
        schema = _schema(hint, f"parameter '{parameter.name}' of tool '{name}'")
        shown = shown_type(schema)
        if text := docs.parameters.get(parameter.name):
            schema = schema | {"description": text}
        if not required:
            schema = schema | {"default": _default(name, parameter)}
        properties[parameter.name] = schema
        default = None if required else schema["default"]
        parameters.append(Parameter(parameter.name, shown, required, default))
    return ToolSpec(name, docs.summary, tuple(parameters), object_schema(properties, parameters), side_effects)


def object_schema(properties: Mapping[str, Any], parameters: Sequence[Parameter]) -> dict[str, Any]:
    """The JSON Schema of the arguments; unknown ones are refused."""
    required = [parameter.name for parameter in parameters if parameter.required]
    schema: dict[str, Any] = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return schema | {"required": required} if required else schema


def shown_type(schema: Mapping[str, Any]) -> str:
    """The word a model reads for a schema: str, int, float, bool, list, dict; alternatives joined by ``|``."""
    if "anyOf" in schema:
        words = [shown_type(option) for option in schema["anyOf"] if option != {"type": "null"}]
        return " | ".join(dict.fromkeys(words)) or "null"
    kind = schema.get("type", "string")
    return " | ".join(_SHOWN.get(name, "str") for name in ([kind] if isinstance(kind, str) else kind))


def _signature(name: str, function: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, Any]]:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as fault:
        raise SchemaError(f"tool '{name}': its signature cannot be read: {fault}") from fault
    holder = function if inspect.isroutine(function) else type(function).__call__
    try:
        return signature, typing.get_type_hints(holder, include_extras=True)
    except (NameError, TypeError, SyntaxError, AttributeError) as fault:
        raise SchemaError(f"tool '{name}': a type hint cannot be read: {fault}") from fault


def _refuse_kinds(tool: str, parameter: inspect.Parameter) -> None:
    kinds: dict[Any, str] = {
        inspect.Parameter.VAR_KEYWORD: f"'**{parameter.name}' accepts anything, so it cannot be described to a model",
        inspect.Parameter.VAR_POSITIONAL: f"'*{parameter.name}' has no names, and arguments come by name",
        inspect.Parameter.POSITIONAL_ONLY: f"'{parameter.name}' is positional only, and arguments come by name",
    }
    if reason := kinds.get(parameter.kind):
        raise SchemaError(f"tool '{tool}': {reason}; write out named parameters")


def _type_of(default: Any) -> Any:
    """The type of a parameter without a hint, from its default."""
    return type(default) if type(default) in {str, int, float, bool, list, dict} else Any


def _default(tool: str, parameter: inspect.Parameter) -> Any:
    try:
        return json.loads(json.dumps(parameter.default, allow_nan=False))
    except (TypeError, ValueError) as fault:
        raise SchemaError(f"tool '{tool}': the default of '{parameter.name}' is not a JSON value") from fault


def _schema(hint: Any, where: str) -> dict[str, Any]:
    """JSON Schema of a type hint."""
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if hint is Any or hint is object:
        return {}
    if hint in _SCALARS:
        return {"type": _SCALARS[hint]}
    if origin is typing.Annotated:
        notes = [note for note in arguments[1:] if isinstance(note, str)]
        return _schema(arguments[0], where) | ({"description": notes[0]} if notes else {})
    if origin is Literal:
        return _literal(arguments, where)
    if origin in (Union, types.UnionType):
        return _union([_schema(argument, where) for argument in arguments])
    if typing.is_typeddict(hint):
        return _typed_dict(hint, where)
    return _container(origin or hint, arguments, hint, where)


def _container(kind: Any, arguments: tuple[Any, ...], hint: Any, where: str) -> dict[str, Any]:
    if kind in _LISTS:
        items = _schema(arguments[0], where) if arguments else {}
        return {"type": "array", "items": items} if items else {"type": "array"}
    if kind in _MAPS:
        if arguments and arguments[0] not in (str, Any):
            raise SchemaError(f"{where}: keys of a JSON object are text, not {_name(arguments[0])}")
        values = _schema(arguments[1], where) if arguments else {}
        return {"type": "object", "additionalProperties": values} if values else {"type": "object"}
    raise SchemaError(f"{where}: JSON has no word for the type {_name(hint)}; use str, int, float, bool, list or dict")


def _literal(values: tuple[Any, ...], where: str) -> dict[str, Any]:
    kinds = {type(value) for value in values}
    if not kinds <= set(_SCALARS):
        raise SchemaError(f"{where}: a Literal holds text, numbers, true, false or None")
    schema: dict[str, Any] = {"enum": list(values)}
    return {"type": _SCALARS[kinds.pop()]} | schema if len(kinds) == 1 else schema


def _union(options: list[dict[str, Any]]) -> dict[str, Any]:
    if {} in options:
        return {}
    return options[0] if len(options) == 1 else {"anyOf": options}


def _typed_dict(hint: Any, where: str) -> dict[str, Any]:
    properties = {key: _schema(_unwrapped(value), where) for key, value in typing.get_type_hints(hint).items()}
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    required = sorted(hint.__required_keys__)
    return schema | {"required": required} if required else schema


def _unwrapped(hint: Any) -> Any:
    """``Required[x]`` and ``NotRequired[x]`` are x."""
    wrapped = typing.get_origin(hint) in (typing.Required, typing.NotRequired)
    return typing.get_args(hint)[0] if wrapped else hint


def _name(hint: Any) -> str:
    return getattr(hint, "__name__", None) or str(hint)
