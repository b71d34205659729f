"""Tool definitions as text, in the notation that OpenAI's models are known to be shown: for counting alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

_SCALARS = {"integer": "number", "number": "number", "string": "string", "boolean": "boolean", "null": "null"}


def rendered(tools: Sequence[Mapping[str, Any]]) -> str:
    """A namespace of function types, one per tool in OpenAI form, with descriptions as comments."""
    lines = ["# Tools", "", "## functions", "", "namespace functions {", ""]
    for tool in tools:
        function = tool.get("function", tool)
        lines += _comment(function.get("description"), "")
        parameters = function.get("parameters") or {}
        if parameters.get("properties"):
            lines += [f"type {function.get('name', '')} = (_: {{", *_properties(parameters, ""), "}) => any;", ""]
        else:
            lines += [f"type {function.get('name', '')} = () => any;", ""]
    return "\n".join([*lines, "} // namespace functions"])


def _properties(schema: Mapping[str, Any], indent: str) -> list[str]:
    lines: list[str] = []
    required = schema.get("required") or ()
    for name, value in schema.get("properties", {}).items():
        mark = "" if name in required else "?"
        lines += _comment(_describe(value), indent)
        lines.append(f"{indent}{name}{mark}: {_type(value, indent)},")
    return lines


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
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return " | ".join(_type(option, indent) for option in schema[union])
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(_SCALARS.get(one, "any") for one in kind)
    if kind == "array":
        return f"{_type(schema.get('items'), indent)}[]"
    if kind == "object" or "properties" in schema:
        if not schema.get("properties"):
            return "object"
        return "\n".join(["{", *_properties(schema, indent + "  "), f"{indent}}}"])
    return _SCALARS.get(str(kind), "any")
