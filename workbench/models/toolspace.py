"""Tokens of tool definitions, as providers are known to show them to their models."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

_SCALARS = {"integer": "number", "number": "number", "string": "string", "boolean": "boolean", "null": "null"}


_PER_TOOL = 14
"""Tokens of a tool shown as JSON, beside its name, description and schema."""

_DEFINITIONS = ("$defs", "definitions")
_MOST_REFERENCES = 200
"""Of one tool that are put in place: each may hold others, and a hostile schema could double them without end."""

Count = Callable[[str], int]
"""Tokens of a text."""


def notation_tokens(tools: Sequence[Mapping[str, Any]], count: Count) -> int:
    """Tokens of tools at OpenAI, whose models see them as the types of a TypeScript namespace; ``Notation`` says what a
    request has beside them. Each tool after the first takes one less than its text.

    Source: the namespace that OpenAI's models print when they are asked for their tools, and that the Harmony format of
    gpt-oss publishes ("Function calling" in OpenAI's cookbook; ``json_schema_to_typescript`` of openai/harmony, which
    shows titles and descriptions of a schema too); measured on recordings of OpenAI's API with 1 to 21 tools.
    """
    lines = ["namespace functions {", ""]
    for tool in tools:
        function = _function(tool)
        parameters = _resolved(function.get("parameters"))
        named = _properties(parameters, "") if isinstance(parameters, Mapping) else []
        headed = [*_title(parameters, ""), *_comment(_mapping(parameters).get("description"), "")]
        # Of a description with several lines only the first begins as a comment.
        if described := str(function.get("description") or ""):
            lines.append(f"// {described}")
        name = function.get("name", "")
        begun = [f"type {name} = (_: ", *headed, "{"] if headed else [f"type {name} = (_: {{"]
        lines += [*begun, *named, "}) => any;", ""] if named or headed else [f"type {name} = () => any;", ""]
    lines.append("} // namespace functions")
    return count("\n".join(lines)) + 1 - len(tools)


def json_tokens(tools: Sequence[Mapping[str, Any]], count: Count) -> int:
    """Tokens of tools if the provider shows the definitions as JSON, as Anthropic does."""
    tokens = 0
    for tool in tools:
        function = _function(tool)
        parameters = function.get("parameters")
        schema = json.dumps(parameters) if isinstance(parameters, Mapping) else ""
        tokens += _PER_TOOL + count(str(function.get("name", "")))
        tokens += count(str(function.get("description") or "")) + count(schema)
    return tokens


def declaration_tokens(tools: Sequence[Mapping[str, Any]], count: Count) -> int:
    """Tokens of tools whose definitions the model sees as JSON and nothing beside them. Measured on recordings of
    Gemini 2.5 and 3: within a fifth of what Google counts.
    """
    return sum(count(json.dumps(_function(tool), separators=(",", ":"), ensure_ascii=False)) for tool in tools)


def function_tokens(tools: Sequence[Mapping[str, Any]], count: Count) -> int:
    """Tokens of tools whose names, descriptions and schemas the model sees as JSON. Measured on recordings of Grok 4.3
    with one and two tools: within two tokens.
    """
    named = ("name", "description", "parameters")
    functions = [_function(tool) for tool in tools]
    return sum(count(json.dumps({name: one[name] for name in named if name in one})) for one in functions)


def definition_tokens(tools: Sequence[Mapping[str, Any]], count: Count) -> int:
    """Tokens of tools whose definitions the model sees as JSON, each in the form in which OpenAI's API takes it: so the
    published chat templates of Qwen, DeepSeek, GLM, Kimi, Mistral and Llama write them.
    """
    return sum(count(json.dumps({"type": "function", "function": dict(_function(tool))})) for tool in tools)


def word_tokens(tools: Sequence[Mapping[str, Any]], count: Count) -> int:
    """Tokens of tools of which all names, descriptions and types are counted, without the signs of JSON between them.
    Measured on recordings of Vertex AI and of Gemini 2.0: within an eighth of what they count.
    """
    functions = list(map(_function, tools))
    words = [str(one.get(name) or "") for one in functions for name in ("name", "description")]
    return sum(map(count, [*words, *(word for one in functions for word in _words(one.get("parameters")))]))


def _words(schema: object) -> Iterator[str]:
    if not (outer := _mapping(schema)):
        return
    yield from (str(outer[name]) for name in ("description", "type") if outer.get(name))
    yield from (str(one) for name in ("enum", "required") for one in _listed(outer.get(name)))
    for name, value in _named(outer).items():
        yield name
        yield from _words(value)
    yield from _words(outer.get("items"))


def _listed(value: object) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _function(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    function = tool.get("function", tool)
    return function if isinstance(function, Mapping) else {}


def _resolved(schema: object) -> object:
    """A schema with what its references (``#/$defs/Name``) name in their place. One that names itself, or more of them
    than any tool needs, stays as it is."""
    outer = schema if isinstance(schema, Mapping) else {}
    known = {f"#/{key}/{name}": one for key in _DEFINITIONS for name, one in _mapping(outer.get(key)).items()}
    left = _MOST_REFERENCES if known else 0

    def shown(one: object, inside: tuple[str, ...]) -> object:
        nonlocal left
        if isinstance(one, list | tuple):
            return [shown(each, inside) for each in one]
        if not isinstance(one, Mapping):
            return one
        name = one.get("$ref")
        if isinstance(name, str) and name in known and name not in inside and left > 0:
            left -= 1
            beside = {key: value for key, value in one.items() if key != "$ref"}
            return {**_mapping(shown(known[name], (*inside, name))), **beside}
        return {key: shown(value, inside) for key, value in one.items() if key not in _DEFINITIONS}

    return shown(schema, ()) if known else schema


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _properties(schema: Mapping[str, Any], indent: str) -> list[str]:
    lines: list[str] = []
    listed = schema.get("required")
    required = listed if isinstance(listed, list | tuple) else ()
    for name, value in _named(schema).items():
        mark = "" if name in required else "?"
        titled, described = _title(value, indent), _comment(_describe(value), indent)
        lines += [*titled, f"{indent}//", *described] if titled and described else [*titled, *described]
        lines.append(f"{indent}{name}{mark}: {_type(value, indent)},")
    return lines


def _named(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The properties; a schema that another tool recorded may have anything in their place."""
    found = schema.get("properties")
    return found if isinstance(found, Mapping) else {}


def _title(schema: object, indent: str) -> list[str]:
    """The comment for the title that frameworks give to a schema and to each of its properties."""
    title = _mapping(schema).get("title")
    return [f"{indent}// {title}"] if isinstance(title, str) and title else []


def _describe(schema: object) -> str:
    if not isinstance(schema, Mapping):
        return ""
    text = str(schema.get("description", ""))
    if "default" in schema:
        text += f" Default: {json.dumps(schema['default'])}"
    return text.strip()


def _comment(text: object, indent: str) -> list[str]:
    return [f"{indent}// {line}" for line in str(text).splitlines()] if text else []


def _type(schema: object, indent: str) -> str:
    if not isinstance(schema, Mapping):
        return "any"
    if isinstance(schema.get("enum"), list | tuple):
        return " | ".join(json.dumps(value) for value in schema["enum"])
    for union in ("anyOf", "oneOf"):
        if isinstance(schema.get(union), list | tuple):
            return " | ".join(_type(option, indent) for option in schema[union])
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(_SCALARS.get(str(one), "any") for one in kind)
    if kind == "array":
        return f"{_type(schema.get('items'), indent)}[]"
    if kind == "object" or "properties" in schema:
        if not _named(schema):
            return "object"
        return "\n".join(["{", *_properties(schema, indent + "  "), f"{indent}}}"])
    return _SCALARS.get(str(kind), "any")
