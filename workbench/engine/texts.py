"""The exact texts that the engine itself puts before a model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # What reads journals needs these texts, and not the language.
    from workbench.engine.contracts import Parameter, ToolSpec

CONTINUE = "Continue/Refine based on previous output."
CLOSING = "No more tool calls are possible. Give your final answer now, based on the results above."

_EXAMPLES: dict[str, Any] = {
    "int": 0,
    "integer": 0,
    "float": 0,
    "number": 0,
    "bool": False,
    "boolean": False,
    "list": [],
    "array": [],
    "dict": {},
    "object": {},
}

_CALLING = """## Calling tools
Answer with one JSON object per call, each in its own ```json block. The results follow in the next message. \
If you need no tool, answer in plain text."""


def tool_text(specs: Sequence[ToolSpec]) -> str:
    """The system message that teaches prompt-based tools; empty without tools."""
    if not specs:
        return ""
    return "\n\n".join(["## Available Tools", *(_tool(spec) for spec in specs), _CALLING])


def _tool(spec: ToolSpec) -> str:
    lines = [f"**{spec.name}**", spec.description]
    if spec.parameters:
        lines.append("Parameters:")
        lines += [_parameter(parameter) for parameter in spec.parameters]
    arguments = {p.name: _EXAMPLES.get(p.type, f"<{p.name}>") for p in spec.parameters}
    example = json.dumps({"tool": spec.name, "arguments": arguments}, ensure_ascii=False)
    return "\n".join(lines) + f"\n\nTo use: {example}"


def _parameter(parameter: Parameter) -> str:
    said = f": {parameter.description}" if parameter.description else ""
    if parameter.required:
        return f"  - {parameter.name} ({parameter.type}) (required){said}"
    default = json.dumps(parameter.default, ensure_ascii=False)
    return f"  - {parameter.name} ({parameter.type}) (optional, default: {default}){said}"


def native_schema(spec: ToolSpec) -> dict[str, Any]:
    """The tool as a provider's native tool calling wants it."""
    return {
        "type": "function",
        "function": {"name": spec.name, "description": spec.description, "parameters": dict(spec.schema)},
    }


def routing_block(targets: Sequence[tuple[str, str]]) -> str:
    """The menu of ``(target, description)`` that ends the task of a phase with a choice."""
    lines = [f"- {target}: {text}" if text else f"- {target}" for target, text in targets]
    menu = "\n".join(lines)
    return (
        "---\nROUTING OPTIONS:\nWhen this step is done, choose what comes next by calling the tool route_to "
        f"with one of these targets:\n{menu}\n---"
    )


def validation_block(validator: str, description: str, attempts: int, prompt: str = "") -> str:
    """Returns the announcement of ``loop_until`` to a phase; ``prompt`` replaces the middle line."""
    checks = f" which checks: {description}" if description else ""
    middle = prompt or f"Your output will be validated using '{validator}'{checks}"
    return f"---\nVALIDATION REQUIREMENT:\n{middle}\nYou have {attempts} attempt(s) to satisfy this validator.\n---"


def not_available(name: str, available: Sequence[str]) -> str:
    return f"{name} is not available in this phase. Available: {', '.join(available) or 'none'}."


NOT_RUN = "Not run: the user asks for this turn again."
"""The result of a tool call that a person did not let run."""


def unreadable(problem: str) -> str:
    return f'The call could not be read: {problem}. Send one object {{"tool": "…", "arguments": {{…}}}}.'


def result_text(tool: str, text: str, is_error: bool) -> str:
    """A prompt-based tool result, as the user message that carries it."""
    return f"[Tool {'error' if is_error else 'result'}: {tool}]\n{text}"


def result_body(tool: str, text: str, is_error: bool) -> str:
    """What a tool said, of a result with or without the header that ``result_text`` gives it."""
    return text.removeprefix(result_text(tool, "", is_error))


def rejected(check: str, reason: str, *, silent: bool = False) -> str:
    """Returns how a failed validator or ward is told to the model."""
    return f"Your answer was not accepted: {reason}" if silent else f"Your answer was rejected by '{check}': {reason}"


def schema_rejected(reason: str, schema: object) -> str:
    """Returns how a failed schema is told; ``reason`` names the JSON path."""
    text = json.dumps(schema, indent=2, ensure_ascii=False)
    return f"Your answer does not match the required schema {reason}\nRequired schema:\n{text}"


def schema_block(schema: object) -> str:
    """Returns the end of the task of a phase with ``enforce: prompt``."""
    text = json.dumps(schema, indent=2, ensure_ascii=False)
    return f"---\nOUTPUT FORMAT:\nAnswer with JSON that matches this schema, and nothing else:\n{text}\n---"


def answer_format(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The ``response_format`` that makes a provider enforce a schema, in OpenAI form. ``strict`` is requested only if
    the schema keeps to what providers support in that mode; they refuse others.
    """
    safe = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "answer"
    body = {"name": safe, "schema": dict(schema)} | ({"strict": True} if _can_be_strict(schema) else {})
    return {"type": "json_schema", "json_schema": body}


_STRICT = frozenset(
    (
        *("type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs"),
        *("title", "description", "pattern", "format", "multipleOf", "minItems", "maxItems"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    )
)
"""Keywords of JSON Schema that structured outputs of OpenAI support with ``strict``; every object must also close
itself and require all of its properties (https://platform.openai.com/docs/guides/structured-outputs)."""


def _can_be_strict(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "object" and "anyOf" not in schema and _is_strict(schema)


def _is_strict(schema: Any) -> bool:
    if not isinstance(schema, Mapping) or not schema.keys() <= _STRICT:
        return False
    properties = schema.get("properties", {})
    if schema.get("type") == "object" or "properties" in schema:
        named = schema.get("required", ())
        if schema.get("additionalProperties") is not False or not isinstance(properties, Mapping):
            return False
        if not isinstance(named, list) or set(named) != set(properties):
            return False
    definitions = schema.get("$defs", {})
    below = [*properties.values(), *(definitions.values() if isinstance(definitions, Mapping) else ())]
    below += [schema["items"]] if "items" in schema else []
    options = schema.get("anyOf", [])
    return isinstance(options, list) and all(map(_is_strict, (*below, *options)))


def attempt_line(attempt: int, attempts: int) -> str:
    return f"This is attempt {attempt} of {attempts}. Revise your answer."
