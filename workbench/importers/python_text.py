"""Values as Python prints them: literals, objects with their fields, and logs of agents that hold such objects."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from workbench.importers.values import array, mapping, string

MAX_LITERAL = 16 * 1024 * 1024
"""Characters of one value: Python's parser takes about fifty times their size in memory."""
_FAULTS = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)
_SECTION = re.compile(r"^=+ (User Instruction|Agent Response) =+$", re.MULTILINE)
_SAID = re.compile(r"^(?:Tool Response: )?(?=Response\()", re.MULTILINE)
_RESULT = re.compile(r"^Tool Result: ", re.MULTILINE)


def python_value(text: str) -> Any:
    """A Python literal as JSON values; an object, ``Name(field=value, …)``, as a mapping of its fields. No code is run.
    Bytes become text, and infinities null.

    Raises ValueError.
    """
    if len(text) > MAX_LITERAL:
        raise ValueError(f"it has more than {MAX_LITERAL:,} characters")
    try:
        return _value(ast.parse(text.strip(), mode="eval").body)
    except _FAULTS as fault:
        raise ValueError(str(fault)) from None


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=str() | int() | None as value):
            return value
        case ast.Constant(value=float() as value):
            return value if math.isfinite(value) else None
        case ast.Constant(value=bytes() as value):
            return value.decode("utf-8", "backslashreplace")
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float()) as operand):
            value = _value(operand)
            return None if value is None else -value
        case ast.List(elts=inner) | ast.Tuple(elts=inner) | ast.Set(elts=inner):
            return [_value(one) for one in inner]
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return {str(_value(key)): _value(value) for key, value in pairs if key is not None}
        case ast.Call(func=ast.Name() | ast.Attribute(value=ast.Name()), args=[], keywords=fields):
            if any(field.arg is None for field in fields):
                raise ValueError("an object of what is not in the text")
            return {str(field.arg): _value(field.value) for field in fields}
    raise ValueError("no value of JSON")


def transcript(text: str) -> tuple[dict[str, Any], int] | None:
    """A log of sections for the user and the agent, in which each answer is an object of OpenAI's responses, as a list
    of messages with what is said of each answer, and how many answers cannot be read; None for any other text."""
    marks = list(_SECTION.finditer(text))
    if not marks or text[: marks[0].start()].strip():
        return None
    messages: list[dict[str, Any]] = []
    tools: Any = None
    lost = 0
    for mark, behind in zip(marks, [*marks[1:], None], strict=True):
        section = text[mark.end() : behind.start() if behind is not None else len(text)].strip()
        if mark[1] == "User Instruction":
            messages.append({"role": "user", "content": section})
            continue
        for response, result in _answers(section):
            if not response:
                lost += 1
                continue
            tools = tools or response.get("tools")
            messages.append(_answer(response))
            messages += [{"role": "tool", "content": result}] if result else []
    return ({"messages": messages, "tools": tools}, lost) if any("usage" in one for one in messages) else None


def _answers(section: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Each answer of a section with what the tool that it called returned; one that cannot be read is empty."""
    starts = [found.end() for found in _SAID.finditer(section)]
    for start, end in zip(starts, [*starts[1:], len(section)], strict=False):
        line, _, rest = section[start:end].partition("\n")
        try:
            response = mapping(python_value(line))
        except ValueError:
            response = {}
        result = _RESULT.search(rest)
        told = rest[result.end() :] if result is not None else ""
        yield response, told.removesuffix("Tool Response: ").strip()


def _answer(response: Mapping[str, Any]) -> dict[str, Any]:
    """A response's items as one message, with the numbers and the time of its call."""
    content: list[Any] = []
    calls: list[Any] = []
    for item in map(mapping, array(response.get("output"))):
        if string(item.get("type")) == "function_call":
            calls.append({"id": item.get("call_id"), "name": item.get("name"), "arguments": item.get("arguments")})
        else:
            content += array(item.get("content")) if item.get("type") == "message" else [dict(item)]
    kept = {key: response.get(key) for key in ("model", "usage", "created_at")}
    return {"role": "assistant", "content": content, "tool_calls": calls, **kept}
