"""Turns what a tool function returns into the result a model sees: text, JSON, or text with images."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from workbench.engine.ports import ToolResult
from workbench.tools.images import read_images
from workbench.tools.paths import Workspace

MAX_CHARS = 100_000
"""Of any result; built-in tools stay below."""
IN_PROCESS = "in process"
NOTHING = "(no output)"
"""Instead of a blank text, which providers refuse."""


def result_of(value: Any, workspace: Workspace) -> ToolResult:
    """The forms of a result: text as it is, ``{"content", "images": [paths]}``, a ready ToolResult,
    anything else as JSON (indent 2). What JSON has no word for is an error result.

    Images that cannot be read are named at the end of the text; they do not make the result an error.
    """
    if isinstance(value, ToolResult):
        return value
    if value is None:
        return ToolResult(NOTHING)
    if isinstance(value, Mapping) and isinstance(value.get("images"), (list, tuple)):
        return _with_images(value, workspace)
    text, plain = _text(value)
    if text is None:
        return ToolResult(f"TypeError: a {type(value).__name__} was returned, which is neither text nor JSON", True)
    return cut(text, value=plain) if text.strip() else ToolResult(NOTHING, value=plain)


def cut(
    text: str, limit: int = MAX_CHARS, *, is_error: bool = False, value: Any = None, sandbox: str = IN_PROCESS
) -> ToolResult:
    """The text as a result: cut for the model where it is too long, whole for the store."""
    whole = text if len(text) > limit else ""
    return ToolResult(bounded(text, limit), is_error, value=value, sandbox=sandbox, whole=whole)


def bounded(text: str, limit: int = MAX_CHARS) -> str:
    """The text, or its head and tail around a marker that says how many characters are left out."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"


def error_of(fault: BaseException) -> ToolResult:
    """``TYPE: MESSAGE``, without a traceback."""
    name = type(fault).__name__
    return cut(f"{name}: {fault}" if str(fault) else name, 4000, is_error=True)


def _text(value: Any) -> tuple[str | None, Any]:
    """The text of a value, and the value as plain JSON where it is not text already."""
    if isinstance(value, str):
        return value, None
    try:
        text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None, None
    return text, json.loads(text)


def _with_images(value: Mapping[str, Any], workspace: Workspace) -> ToolResult:
    names = [str(path) for path in value["images"]]
    images, refused = read_images(names, workspace)
    text, plain = _text(value.get("content", ""))
    if text is None:
        return ToolResult("TypeError: the tool's 'content' is neither text nor JSON", True)
    notes = "\n".join(f"[image left out: {reason}]" for reason in refused)
    joined = "\n".join(part for part in (text, notes) if part) or f"{len(images)} image(s)"
    return replace(cut(joined, value=plain), images=tuple(images))
