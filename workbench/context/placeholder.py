"""Texts that replace messages or parts that are not sent in full. Every one names what it replaces."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from workbench.context.assembly import Item
from workbench.context.message import Image, Message, Part, TextPart, ToolCall, canonical, sha256

REASONING_LIMIT = 2000
"""Characters of old assistant text that stay."""
BRIEF_LIMIT = 200
"""Characters of old assistant text that stay with ``preserve_reasoning: false``."""

_DATA_URL = re.compile(r"data:[\w.+-]+/[\w.+-]+;base64,[A-Za-z0-9+/=]*")


def result_header(tool: str, is_error: bool) -> str:
    """First line of a tool result that goes out as user text."""
    return f"[Tool {'error' if is_error else 'result'}: {tool}]\n"


def result_size(item: Item) -> int:
    """Characters of a tool result, without the header of the prompt-based form."""
    text = item.message.text
    if text.startswith("[Tool ") and text.startswith(header := result_header(item.tool, item.is_error)):
        return len(text) - len(header)
    return len(text)


def masked_result(item: Item) -> Message:
    """The result with its content replaced; call id and name stay, so that the call stays answered."""
    word = "error" if item.is_error else "result"
    tool = item.tool or item.message.name or "tool"
    shown = f"[{tool} {word} · {result_size(item):,} chars · ref {item.message.content_hash[:8]}]"
    return item.message.with_content(shown)


def blank_result(item: Item) -> Message:
    """Returns the message that replaces a result without any text: providers refuse blank content."""
    return item.message.with_content(f"[{item.tool or item.message.name or 'tool'} result · empty]")


def image_text(image: Image) -> str:
    """Returns the text that replaces an image that is not sent."""
    shape = f" · {image.width}x{image.height}" if image.width and image.height else ""
    return f"[image{shape} · {image.size:,} bytes · ref {image.digest[:8]}]"


def without_images(message: Message, digests: Collection[str] | None = None) -> Message:
    """The message with its images, or those of these digests, replaced by text. Images are never cut."""
    if isinstance(message.content, str):
        return message
    parts: list[Part] = []
    for part in message.content:
        hidden = isinstance(part, Image) and (digests is None or part.digest in digests)
        parts.append(TextPart(image_text(part)) if hidden and isinstance(part, Image) else part)
    if any(isinstance(part, Image) for part in parts):
        return replace(message, content=tuple(parts))
    return replace(message, content="\n".join(part.text for part in parts if isinstance(part, TextPart)))


def cut(text: str, limit: int) -> str:
    """The first ``limit`` characters and a marker; a data URL that the cut would go through is left out whole."""
    end = limit
    for url in _DATA_URL.finditer(text):
        if url.start() >= limit:
            break
        if url.end() > limit:
            end = url.start()
    return f"{text[:end]}\n[… {len(text) - end:,} more characters]"


def data_urls(text: str) -> list[str]:
    """The data URLs in a text, unchanged."""
    return _DATA_URL.findall(text) if "base64," in text else []


def shortened(message: Message, limit: int) -> Message:
    """An assistant message whose text parts are cut to ``limit``; the message itself if none is longer."""
    if isinstance(message.content, str):
        return message if len(message.content) <= limit else replace(message, content=cut(message.content, limit))
    if all(len(part.text) <= limit for part in message.content if isinstance(part, TextPart)):
        return message
    parts = (
        TextPart(cut(part.text, limit)) if isinstance(part, TextPart) and len(part.text) > limit else part
        for part in message.content
    )
    return replace(message, content=tuple(parts))


def cleared_calls(message: Message) -> Message:
    """An assistant message whose call arguments are replaced by a marked JSON object; ids, names and metadata stay.

    Arguments no longer than the mark stay.
    """
    calls = tuple(_cleared(call) for call in message.tool_calls)
    return message if all(a is b for a, b in zip(calls, message.tool_calls, strict=True)) else _with(message, calls)


def readable_calls(message: Message) -> Message:
    """An assistant message whose call arguments are all JSON objects: invalid arguments become a string inside one.
    Returns the message itself if all are valid.
    """
    if all(is_json_object(call.arguments) for call in message.tool_calls):
        return message
    calls = tuple(
        call if is_json_object(call.arguments) else replace(call, arguments=_wrapped(call.arguments))
        for call in message.tool_calls
    )
    return _with(message, calls)


def is_json_object(text: str) -> bool:
    """Returns whether a text is one JSON object, strictly: no NaN, no infinity, no depth that exhausts the parser."""
    return _is_short_object(text) if len(text) <= _SHORT else _is_object(text)


def _is_object(text: str) -> bool:
    try:
        return isinstance(_STRICT.decode(text), dict)
    except (ValueError, RecursionError):
        return False


_SHORT = 1000
"""Characters of arguments up to which the answer is kept: every look at a run asks again about the same calls."""
_is_short_object = lru_cache(maxsize=4096)(_is_object)


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


_STRICT = json.JSONDecoder(parse_constant=_refused)


def _wrapped(arguments: str) -> str:
    return json.dumps({"unreadable": arguments}) if arguments.strip() else "{}"


def _cleared(call: ToolCall) -> ToolCall:
    mark = canonical({"cleared": f"{len(call.arguments)} chars, ref {sha256(call.arguments)[:8]}"})
    return replace(call, arguments=mark) if len(call.arguments) > len(mark) else call


def _with(message: Message, calls: tuple[ToolCall, ...]) -> Message:
    return replace(message, tool_calls=calls)
