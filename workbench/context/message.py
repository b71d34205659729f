"""One message of a conversation, immutable, with the two hashes that identify it.

``content_hash`` joins messages to context cards; only ``body_hash`` may rebuild a request, because two calls with
equal results share a content hash but differ in their ids.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, Self, TypeVar, overload

from msgspec import Struct, field
from msgspec.structs import replace

Role = Literal["system", "user", "assistant", "tool"]


_canonical = json.JSONEncoder(ensure_ascii=True, allow_nan=False, sort_keys=True, separators=(",", ":")).encode
_quoted = json.encoder.encode_basestring_ascii
_sha256 = hashlib.sha256


def canonical(value: object) -> str:
    """The one JSON text of a value: sorted keys, no spaces, ASCII (a lone surrogate survives as an escape)."""
    return _canonical(value)


def is_blank(text: str) -> bool:
    """Returns whether a text is empty or white space."""
    return not text or text.isspace()


def sha256(text: str) -> str:
    """Hex digest of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


STAND_INS = ("[image: ", "[file: ")
"""Beginnings of texts that replace an image or a file whose bytes were not recorded. The original cost a different
number of tokens.
"""


UNSENT = "reasoning_unsent"
"""A field of an answer whose client left out its reasoning when it sent the answer back."""


WHOLE = "answered_whole"
"""A field of an answer of Gemini 2.5 that came whole: Google does not count its reasoning again, as it does that of a
streamed one."""


class TextPart(Struct, frozen=True):
    """A text part of a message."""

    text: str

    def to_json(self) -> dict[str, Any]:
        return {"type": "text", "text": self.text}


class Image(Struct, frozen=True):
    """An image part, by the digest of its bytes; the bytes lie in the journal's blobs."""

    digest: str
    media_type: str
    size: int
    """Bytes."""
    width: int = 0
    height: int = 0
    detail: str = ""
    """How closely the request asks for it to be looked at (``low``, ``high``), on which its tokens depend; empty where
    the provider decides."""

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "type": "image",
            "digest": self.digest,
            "media_type": self.media_type,
            "size": self.size,
            "width": self.width,
            "height": self.height,
        }
        return body | {"detail": self.detail} if self.detail else body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Image:
        """The inverse of ``to_json``. Raises KeyError when the body is no image."""
        sides = body.get("width", 0), body.get("height", 0)
        return cls(body["digest"], body["media_type"], body["size"], *sides, body.get("detail", ""))


Part = TextPart | Image


class ToolCall(Struct, frozen=True):
    """A native tool call as the model wrote it; ``arguments`` is JSON text, never re-serialised."""

    id: str
    name: str
    arguments: str
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Provider metadata that must go back verbatim (a thought signature, say)."""

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"id": self.id, "name": self.name, "arguments": self.arguments}
        return body | {"extra": dict(self.extra)} if self.extra else body


T = TypeVar("T")


class remembered(Generic[T]):
    """A property worked out once, for values that depend on nothing that changes.

    It takes no lock: two threads that ask at the same time may both work it out. In Python 3.11 the lock of
    ``functools.cached_property`` takes twice as long as the property behind it often does.
    """

    def __init__(self, work: Callable[[Any], T]) -> None:
        self._work = work
        self._name = work.__name__
        self.__doc__ = work.__doc__

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type[Any]) -> T: ...

    def __get__(self, instance: object | None, owner: type[Any]) -> Self | T:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._work(instance)
        return value


class Message(Struct, frozen=True, eq=False, dict=True):
    """One message. Equal when every byte that could reach a provider is equal."""

    role: Role
    content: str | tuple[Part, ...] = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    name: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Provider metadata (reasoning blocks) that goes back with the message."""

    @remembered
    def text(self) -> str:
        """The text of all text parts, joined by line breaks."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content if isinstance(part, TextPart))

    def with_text_before(self, text: str) -> Message:
        """The same message with more text before its own."""
        if isinstance(self.content, str):
            return replace(self, content=text + self.content)
        first, *rest = self.content
        if isinstance(first, TextPart):
            return replace(self, content=(TextPart(text + first.text), *rest))
        return replace(self, content=(TextPart(text), *self.content))

    @remembered
    def images(self) -> tuple[Image, ...]:
        if isinstance(self.content, str):
            return ()
        return tuple(part for part in self.content if isinstance(part, Image))

    @remembered
    def stands_in(self) -> bool:
        """Returns whether a part of it stands for an image or a file whose bytes were not kept."""
        if isinstance(self.content, str):
            return self.content.startswith(STAND_INS)
        return any(isinstance(part, TextPart) and part.text.startswith(STAND_INS) for part in self.content)

    @remembered
    def content_hash(self) -> str:
        """First 16 hex digits of sha256 over the canonical JSON of role, content and tool_calls."""
        if isinstance(self.content, str) and not self.tool_calls:
            plain = f'{{"content":{_quoted(self.content)},"role":{_quoted(self.role)},"tool_calls":null}}'
            return _sha256(plain.encode()).hexdigest()[:16]
        body = self.to_json()
        return sha256(canonical({key: body.get(key) for key in ("role", "content", "tool_calls")}))[:16]

    @remembered
    def body_hash(self) -> str:
        """Sha256 of the whole message, ids and provider metadata included."""
        if isinstance(self.content, str) and not (self.tool_calls or self.tool_call_id or self.name or self.extra):
            plain = f'{{"content":{_quoted(self.content)},"role":{_quoted(self.role)}}}'
            return _sha256(plain.encode()).hexdigest()
        return _sha256(self.canonical().encode()).hexdigest()

    def canonical(self) -> str:
        """Returns what the function ``canonical`` returns for ``to_json``, for most messages in a tenth of its time."""
        calls = self.tool_calls
        if not isinstance(self.content, str) or self.extra or any(call.extra for call in calls):
            return canonical(self.to_json())
        text = f'{{"content":{_quoted(self.content)}'
        if self.name:
            text += f',"name":{_quoted(self.name)}'
        text += f',"role":{_quoted(self.role)}'
        if self.tool_call_id:
            text += f',"tool_call_id":{_quoted(self.tool_call_id)}'
        if not calls:
            return text + "}"
        made = (f'{{"arguments":{_quoted(c.arguments)},"id":{_quoted(c.id)},"name":{_quoted(c.name)}}}' for c in calls)
        return f'{text},"tool_calls":[{",".join(made)}]}}'

    def with_content(self, content: str | tuple[Part, ...]) -> Message:
        """The same message with other content."""
        return Message(self.role, content, self.tool_calls, self.tool_call_id, self.name, self.extra)

    def to_json(self) -> dict[str, Any]:
        """The stored body. Keys that are empty are left out."""
        content = self.content if isinstance(self.content, str) else [part.to_json() for part in self.content]
        body: dict[str, Any] = {"role": self.role, "content": content}
        if self.tool_calls:
            body["tool_calls"] = [call.to_json() for call in self.tool_calls]
        for key in ("tool_call_id", "name"):
            if value := getattr(self, key):
                body[key] = value
        if self.extra:
            body["extra"] = dict(self.extra)
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Message:
        """The inverse of ``to_json``. Raises KeyError or TypeError when the body is not a message."""
        content = body["content"]
        parts = content if isinstance(content, str) else tuple(_part(part) for part in content)
        calls = tuple(
            ToolCall(c["id"], c["name"], c["arguments"], c.get("extra", {})) for c in body.get("tool_calls", ())
        )
        return cls(
            body["role"], parts, calls, body.get("tool_call_id", ""), body.get("name", ""), body.get("extra", {})
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and (self is other or self.body_hash == other.body_hash)

    def __ne__(self, other: object) -> bool:
        return not self == other  # A struct's own would compare identities.

    def __hash__(self) -> int:
        return hash(self.body_hash)


def _part(body: Mapping[str, Any]) -> Part:
    if body["type"] == "text":
        return TextPart(body["text"])
    return Image.from_json(body)


def reasoning_told(answer: Message) -> str:
    """The reasoning that goes back with an answer as text, in the form of DeepSeek and of local servers; empty where
    its client left it out."""
    told = answer.extra.get("reasoning_content")
    return told if isinstance(told, str) and not answer.extra.get(UNSENT) else ""
