"""One part of a message's content, however it is spelled, and what it is: a call, a result, an image, a mark."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from workbench.context.message import ToolCall
from workbench.importers.conversation import Picture
from workbench.importers.values import array, as_text, mapping, string

REASONING = ("thinking", "redacted_thinking", "reasoning", "reasoning_text", "summary_text")
"""Types of parts that hold what a model thought; they go back to it verbatim, or not at all."""

PDF = "application/pdf"
SIGNATURE = "thought_signature"
"""The key of Google's mark that reasoning goes back with a call or a text."""
CALL_EXTRA = (SIGNATURE, "provider_specific_fields", "extra_content")
"""The key of the values that a provider wants back with a call, as it gave them."""

_NAMES = {
    "functionCall": "function_call",
    "functionResponse": "function_response",
    "inlineData": "inline_data",
    "fileData": "file_data",
    "mimeType": "mime_type",
    "mediaType": "media_type",
    "thoughtSignature": "thought_signature",
    "toolUse": "tool_use",
    "toolResult": "tool_result",
    "imageUrl": "image_url",
}
_CALLS = ("tool_use", "tool_call", "tool-call", "toolCall", "function_call")
_RESULTS = ("tool_result", "tool_call_response", "tool-result", "toolResult", "function_response")
_MARKS = ("cachePoint", "cache_point")
_FILES = ("input_file", "file", "blob", "document", "media", "audio", "video", "input_audio", "document_url")
_MEDIA_KEYS = ("media_type", "mime_type", "mimeType", "format")
_DATA_URL = re.compile(r"data:(image/[\w.+-]+);base64,(.*)", re.DOTALL)
_ANY_DATA_URL = re.compile(r"data:([\w.+/-]+)(?:;[\w=.-]+)*;base64,")
_MEDIA = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}


def plain_part(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part without its nulls, and with names in the one spelling that is asked for here."""
    part = {_NAMES.get(key, key): value for key, value in part.items() if value is not None}
    kind = part.get("$type") or part.get("content_type")
    if isinstance(kind, str) and "type" not in part:
        return _of_kernel(kind, part)
    for asked, told in (("toolRequest", "toolCall"), ("toolResponse", "toolResult")):
        if part.get("type") == asked:
            return _of_goose(part, mapping(part.get(_NAMES.get(told, told), part.get(told))))
    return part


_KERNEL = {
    "textcontent": "text",
    "functioncallcontent": "tool_call",
    "functioncall": "tool_call",
    "function_call": "tool_call",
    "functionresultcontent": "tool_result",
    "functionresult": "tool_result",
    "function_result": "tool_result",
    "imagecontent": "image",
    "reasoningcontent": "reasoning",
    "uri": "image",
    "data": "image",
}
"""Types of items in Semantic Kernel and Microsoft.Extensions.AI, in small letters, as parts are called here."""


def _of_kernel(kind: str, part: Mapping[str, Any]) -> Mapping[str, Any]:
    """An item of Semantic Kernel (C# and Python) or of Microsoft.Extensions.AI."""
    body = {name[:1].lower() + name[1:]: value for name, value in part.items()}
    found = {**body, "type": _KERNEL.get(kind.lower(), kind.lower())}
    if found["type"] in ("tool_call", "tool_result"):
        own = next((body[key] for key in ("callId", "call_id", "id") if body.get(key) is not None), "")
        plugin = string(body.get("pluginName") or body.get("plugin_name"))
        function = string(body.get("functionName") or body.get("function_name"))
        name = "-".join(filter(None, (plugin, function))) if function else string(body.get("name"))
        arguments = body.get("arguments")
        answer = {"content": body.get("result")} if found["type"] == "tool_result" else {}
        return {"type": found["type"], "id": own, "name": name, "arguments": arguments, **answer}
    if found["type"] == "image":
        media = string(body.get("mimeType") or body.get("mediaType") or body.get("media_type"))
        data = string(body.get("data"))
        address = string(body.get("dataUri") or body.get("data_uri") or body.get("uri"))
        is_url = address or data.startswith("data:")
        return {
            "type": "image",
            "image_url": {"url": address or data if is_url else f"data:{media or 'image/png'};base64,{data}"},
        }
    return found


def _of_goose(part: Mapping[str, Any], outcome: Mapping[str, Any]) -> Mapping[str, Any]:
    """A call or a result of Goose, which wraps it in how it went."""
    value = outcome.get("value", outcome)
    if part["type"] == "toolRequest":
        inner = mapping(value)
        return {"type": "tool_call", "id": part.get("id"), "name": inner.get("name"), "input": inner.get("arguments")}
    failed = outcome.get("status") == "error" or mapping(value).get("isError") is True
    content = mapping(value).get("content", value) if outcome.get("status") != "error" else outcome.get("error")
    return {"type": "tool_result", "id": part.get("id"), "content": content, "is_error": failed}


def tool_call(
    name: object, arguments: object, call_id: object = "", extra: Mapping[str, Any] | None = None
) -> ToolCall:
    """A call whose arguments may be text or JSON; text is kept as the model wrote it."""
    written = "{}" if arguments is None or arguments == "" else as_text(arguments)
    return ToolCall(as_text(call_id), as_text(name), written, extra or {})


def is_call(part: Mapping[str, Any]) -> bool:
    """A call of a tool that the caller runs; what a provider runs itself is another part."""
    if part.get("type") in _CALLS or any(mapping(part.get(key)) for key in ("function_call", "tool_use")):
        return True
    if part.get("type") in (None, "function") and "arguments" in mapping(part.get("function")):
        return True
    if "type" not in part and {"id", "name", "arguments"} <= part.keys():
        return True
    return "toolName" in part and not any(key in part for key in ("output", "result"))


def part_call(part: Mapping[str, Any]) -> ToolCall:
    """The call of a part (``is_call``)."""
    inner = mapping(part.get("function"))
    body = mapping(part.get("function_call")) or mapping(part.get("tool_use")) or {**part, **inner}
    keys = ("workbench.arguments", "input", "arguments", "args")
    arguments: Any = next((body[key] for key in keys if body.get(key) is not None), {})
    kept = {key: part[key] for key in CALL_EXTRA if part.get(key)}
    return tool_call(
        body.get("name") or body.get("toolName"),
        arguments,
        next((body[key] for key in ("id", "toolCallId", "toolUseId", "call_id") if body.get(key) is not None), ""),
        kept,
    )


def is_result(part: Mapping[str, Any]) -> bool:
    """Tells whether a part is the result of a tool."""
    if part.get("type") in _RESULTS or any(mapping(part.get(key)) for key in ("function_response", "tool_result")):
        return True
    if "type" not in part and {"call_id", "content"} <= part.keys():
        return True
    return "toolName" in part and any(key in part for key in ("output", "result"))


def result_value(body: Mapping[str, Any]) -> tuple[Any, bool]:
    """Returns the content of a result, and whether the tool says that it failed."""
    value = next((body[key] for key in ("content", "response", "output", "result") if body.get(key) is not None), None)
    failed = body.get("is_error") is True or body.get("isError") is True or body.get("status") == "error"
    if isinstance(value, list):
        value = [as_text(one["json"]) if list(mapping(one)) == ["json"] else one for one in value]
    inner = mapping(value)
    if (kind := string(inner.get("type"))) in (
        "text",
        "json",
        "content",
        "error-text",
        "error-json",
    ) and "value" in inner:
        # A list of JSON is one value, and no list of parts.
        return as_text(inner["value"]) if kind.endswith("json") else inner["value"], failed or kind.startswith("error")
    return value, failed or list(inner) == ["error"]


def result_id(body: Mapping[str, Any]) -> str:
    """Of the call that a result answers."""
    keys = ("tool_use_id", "toolUseId", "id", "toolCallId", "tool_call_id", "call_id")
    return next((as_text(body[key]) for key in keys if body.get(key) is not None), "")


def is_mark(part: Mapping[str, Any]) -> bool:
    """A place where a provider may cut its cache; models do not see it."""
    return part.get("type") in _MARKS or any(key in part for key in _MARKS)


def mark_of(part: Mapping[str, Any]) -> str:
    """Requested lifetime of the cached prefix that ends with a part, a message or a tool: ``5m``, ``1h``;
    else empty.
    """
    mark = next((part[key] for key in ("cache_control", *_MARKS) if part.get(key)), None)
    if mark is None:
        return "5m" if part.get("type") in _MARKS else ""
    return "1h" if mapping(mark).get("ttl") == "1h" or part.get("ttl") == "1h" else "5m"


def picture_of(part: Mapping[str, Any]) -> Picture | None:
    """An image whose bytes are in the message."""
    found = _picture_of(part)
    detail = string(mapping(part.get("image_url")).get("detail")) or string(part.get("detail"))
    return found if found is None or detail not in _DETAILS else replace(found, detail=detail)


_DETAILS = ("low", "high")
"""What OpenAI's ``detail`` asks for; ``auto`` leaves it to the provider, as a missing one does."""


def _picture_of(part: Mapping[str, Any]) -> Picture | None:
    kind = string(part.get("mime_type")) or string(part.get("media_type"))
    if part.get("type") in ("blob", "file", "image") and (data := string(part.get("content") or part.get("data"))):
        return _data_url(data) or _decoded(data, kind or ("image/" if part.get("type") == "image" else ""))
    source = mapping(part.get("source")) or mapping(part.get("inline_data"))
    if data := string(source.get("data")):
        keys = ("media_type", "mime_type", "mimeType")
        return _decoded(data, next((found for key in keys if (found := string(source.get(key)))), ""))
    image = part.get("image_url", part.get("image", part.get("url")))
    inner = mapping(image)
    if data := string(mapping(inner.get("source")).get("bytes")):
        return _decoded(data, f"image/{string(inner.get('format'))}")
    text = string(inner.get("url", image))
    return _data_url(text) or (_decoded(text, kind) if part.get("type") == "image" and len(text) > 200 else None)


def file_of(part: Mapping[str, Any]) -> str | None:
    """The text of a text file whose bytes are in the message; the text that replaces sound, video or any other
    document: its kind, name, size, and how many pages a PDF has."""
    kind = string(part.get("type"))
    if described := _in_data_url(part):
        return described
    for key in ("input_audio", "file", "document", "audio", "video", "source", "inline_data", ""):
        held = part.get(key)
        inner = mapping(held) if key else part
        if key == "input_audio" and isinstance(held, str) and not held.startswith(("http:", "https:")):
            inner = {"data": held}  # Mistral has the bytes of sound alone.
        media = next((found for name in _MEDIA_KEYS if (found := string(inner.get(name)))), "") or key or kind
        source = mapping(inner.get("source")) or inner
        if not key and kind == "file" and "path" in part and media == kind:
            continue  # A text file with its path (Cline's): the model sees its text.
        data = next((one for name in ("data", "file_data", "bytes", "content") if (one := source.get(name))), None)
        size = len(data) * 3 // 4 if isinstance(data, str) else len(data) if isinstance(data, bytes) else 0
        if size and (key or kind in _FILES):
            name = next((found for name in ("filename", "name", "title") if (found := string(inner.get(name)))), "")
            if (text := _text_of(media, source.get("type"), data)) is not None:
                return text
            return _described(media, name, size, _raw(data) if media == PDF else b"")
    return None


def _text_of(media: str, kind: object, data: object) -> str | None:
    """What a model reads of a text file: its text, which Anthropic's API also takes as such."""
    if not (media.startswith("text/") and isinstance(data, str)):
        return None
    if kind == "text":
        return data
    try:
        return _raw(data).decode() or None
    except UnicodeDecodeError:
        return None


def _raw(data: object) -> bytes:
    if isinstance(data, bytes):
        return data
    try:
        return base64.b64decode(string(data).translate(_URL_SAFE))
    except (binascii.Error, ValueError):
        return b""


_PAGE = re.compile(rb"/Type\s*/Page(?![s\w])")
_PAGES = re.compile(rb"/Type\s*/Pages\b[^>]{0,200}?/Count\s+(\d{1,5})\b")


def _described(media: str, name: str, size: int, pdf: bytes) -> str:
    pages = len(_PAGE.findall(pdf)) or max((int(found) for found in _PAGES.findall(pdf)), default=0)
    told = f"{pages:,} page{'s' if pages > 1 else ''}" if pages else ""
    return f"[file: {', '.join(filter(None, (media[:60], name[:100], f'{size:,} bytes', told)))}]"


def _in_data_url(part: Mapping[str, Any]) -> str:
    """The same of a part that has its bytes in a data URL, under whatever key; empty for any other."""
    inner = [mapping(value) for value in part.values()]
    for body in (part, *inner):
        name = next((told for key in ("filename", "name", "title") if (told := string(body.get(key)))), "")
        for value in body.values():
            found = _ANY_DATA_URL.match(value) if isinstance(value, str) and value.startswith("data:") else None
            if found is not None:
                size, packed = (len(value) - found.end()) * 3 // 4, value[found.end() :]
                if (text := _text_of(found[1], "", packed)) is not None:
                    return text
                return _described(found[1], name, size, _raw(packed) if found[1] == PDF else b"")
    return ""


def reference_of(part: Mapping[str, Any]) -> str | None:
    """The name or address of a file that a part refers to; None for any other part. Images have texts of their own."""
    kind = string(part.get("type"))
    if "image" in kind or "image_url" in part or part.get("modality") == "image":
        return None
    if (sound := string(part.get("input_audio"))).startswith(("http:", "https:")):
        return sound  # Mistral's
    for key in ("file", "document", "audio", "video", "source", "file_data", ""):
        inner = mapping(part.get(key)) if key else part
        source = mapping(inner.get("source")) or inner
        told = (string(source.get(name)) for name in _ADDRESSES)
        found = next((one for one in told if one and not one.startswith("data:")), "")
        if any(source.get(name) for name in ("content", "text", "data")):
            return None
        if found and (key or kind in (*_FILES, "uri")):
            return found
    return None


_ADDRESSES = ("file_id", "file_uri", "fileUri", "uri", "url", "path", "file_url", "document_url")


def _data_url(text: str) -> Picture | None:
    found = _DATA_URL.match(text)
    return _decoded(found[2], found[1]) if found else None


_URL_SAFE = str.maketrans("-_", "+/")


def _decoded(data: str, media_type: str) -> Picture | None:
    try:
        raw = base64.b64decode(data.translate(_URL_SAFE), validate=True)  # Google's clients write it so.
    except (binascii.Error, ValueError):
        return None
    known = next((kind for magic, kind in _MEDIA.items() if raw.startswith(magic)), "")
    if raw[:4] == b"RIFF" and raw[8:12] == b"WEBP":  # A sound (WAVE) begins with RIFF, too.
        known = "image/webp"
    return Picture(raw, known or media_type) if known or (raw and media_type.startswith("image/")) else None


def parts_of(value: object) -> list[Any]:
    """A content that is a list of parts, or one."""
    return list(array(value)) if isinstance(value, list) else [value]
