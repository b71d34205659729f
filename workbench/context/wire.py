"""A message as it stands in the JSON body of an OpenAI chat call."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from workbench.context.message import Image, Message, Part, ToolCall


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
    return {"type": "image_url", "image_url": {"url": url}}


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return _with_extra({"id": call.id, "type": "function", "function": function}, call.extra)


def _with_extra(body: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """The body with more keys, which never replace its own."""
    return body | {key: value for key, value in extra.items() if key not in body and not key.startswith("_")}
