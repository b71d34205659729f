"""A message as it stands in the JSON body of an OpenAI chat call, and the bytes of such a body."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from workbench.context.message import Image, Message, Part, TextPart, ToolCall

# Joins neighbours of the same role, for providers that insist on alternating roles.


def can_merge(first: Message, second: Message) -> bool:
    """Returns whether two neighbours of one role can become one message without losing anything.

    Tool results never merge, nor need to. An assistant's calls must stay next to their results, and its provider
    metadata belongs to one message alone.
    """
    if first.role != second.role:
        return False
    if first.role == "tool":
        return True
    if first.role == "assistant":
        return not first.tool_calls and not first.extra and not second.extra
    return True


def merge_neighbours(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages with neighbours of the same role joined by a blank line; parts are kept in order."""
    merged: list[Message] = []
    for message in messages:
        if merged and message.role != "tool" and can_merge(merged[-1], message):
            merged[-1] = _joined(merged[-1], message)
        else:
            merged.append(message)
    return tuple(merged)


def _joined(first: Message, second: Message) -> Message:
    content: str | tuple[Part, ...]
    if isinstance(first.content, str) and isinstance(second.content, str):
        content = "\n\n".join(text for text in (first.content, second.content) if text.strip())
    else:
        content = (*_parts(first), *_parts(second))
    return replace(first, content=content, tool_calls=second.tool_calls, extra={**first.extra, **second.extra})


def _parts(message: Message) -> tuple[Part, ...]:
    if not isinstance(message.content, str):
        return message.content
    return (TextPart(message.content),) if message.content.strip() else ()


class MissingImage(LookupError):
    """The bytes of an image that should be sent are not at hand."""

    def __init__(self, image: Image) -> None:
        super().__init__(f"the bytes of image {image.digest[:8]} ({image.media_type}) are missing")
        self.image = image


def to_wire(message: Message, images: Mapping[str, bytes]) -> dict[str, Any]:
    """One message. Provider metadata goes back at the level it came from; keys that begin with ``_`` never do.

    ``images``: bytes by digest. Raises MissingImage.
    """
    body: dict[str, Any] = {"role": message.role, "content": _content(message, images)}
    if message.tool_calls:
        body["tool_calls"] = [_call(call) for call in message.tool_calls]
    if message.tool_call_id:
        body["tool_call_id"] = message.tool_call_id
    if message.name:
        body["name"] = message.name
    return _with_extra(body, message.extra)


def _content(message: Message, images: Mapping[str, bytes]) -> Any:
    if message.tool_calls and not message.images and not message.text.strip():
        return None
    if isinstance(message.content, str):
        return message.content
    return [_part(part, images) for part in message.content]


def _part(part: Part, images: Mapping[str, bytes]) -> dict[str, Any]:
    if not isinstance(part, Image):
        return part.to_json()
    data = images.get(part.digest)
    if data is None:
        raise MissingImage(part)
    url = f"data:{part.media_type};base64,{base64.b64encode(data).decode('ascii')}"
    return {"type": "image_url", "image_url": {"url": url, **({"detail": part.detail} if part.detail else {})}}


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return _with_extra({"id": call.id, "type": "function", "function": function}, call.extra)


def _with_extra(body: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """The body with more keys, which never replace its own."""
    return body | {key: value for key, value in extra.items() if key not in body and not key.startswith("_")}


# The bytes of a body.

_STYLES: Mapping[str, Mapping[str, Any]] = {"compact": {"ensure_ascii": False, "separators": (",", ":")}, "spaced": {}}


def wire_bytes(body: Mapping[str, Any], style: str) -> bytes:
    """The bytes of a request body in one of the styles that occur: httpx's ``compact``, or json's own ``spaced``."""
    return json.dumps(body, **_STYLES[style]).encode("utf-8")


def wire_style(raw: bytes, body: Mapping[str, Any]) -> str:
    """The style that reproduces these bytes exactly; empty if neither does."""
    for style in ("compact" if raw[:2] == b'{"' and b'": ' not in raw[:200] else "spaced", "compact", "spaced"):
        try:
            if wire_bytes(body, style) == raw:
                return style
        except UnicodeEncodeError:
            continue
    return ""
