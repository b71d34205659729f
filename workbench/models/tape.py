"""Records what one model call sent and received, at the HTTP client, below every library."""

from __future__ import annotations

import asyncio
import codecs
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import httpx

from workbench.context.wire import wire_style

HEAD = 4096
"""Bytes kept of the beginning of a response."""
_OVERLAP = 64
_MARKS: Mapping[str, re.Pattern[bytes]] = {
    "finish": re.compile(rb'"(?:finish_reason|stop_reason|finishReason|done_reason)"\s*:\s*"'),
    "end": re.compile(rb'\ndata:\s*\[DONE\]|"type"\s*:\s*"message_stop"|"done"\s*:\s*true'),
    "usage": re.compile(rb'"(?:usage|usageMetadata)"\s*:\s*\{|"prompt_eval_count"\s*:'),
    "reasoning": re.compile(rb'"(?:reasoning_tokens|thoughtsTokenCount|reasoningTokens)"\s*:\s*\d'),
    "cost": re.compile(rb'"cost"\s*:\s*\d'),
}
"""The marks of values that the provider itself stated: litellm makes up a finish reason, usage, reasoning tokens and a
cost where it did not. Text in a JSON string cannot look like these: its quotes and line ends are escaped."""

_MESSAGES = b'"messages": '


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


class NotSent(BaseException):
    """A request was stopped before it left: its call was cancelled, it is only looked at, or this would have been a
    second try. No Exception, so that no library waits and tries again."""


class Unreached(BaseException):
    """No response came, or not all of one that was to come whole: the cause says why. No Exception, so that no library
    waits and tries again."""


class Unusable(httpx.HTTPError):
    """A response that is not read on. Its words end a sentence that begins with the answer.

    ``too_large``: it goes past a bound, which another try would do as well.
    """

    def __init__(self, message: str, *, too_large: bool = False) -> None:
        super().__init__(message)
        self.too_large = too_large


class Tape:
    """The exchange of one call. A second request on it is refused: only the engine retries."""

    def __init__(self, keep: str = "", *, held: bool = False) -> None:
        """``keep``: a key whose events are kept whole, because litellm drops them. ``held``: the request is only
        recorded, never sent.
        """
        self.raw = b""
        """The request body as sent; empty if there was none."""
        self.url: httpx.URL | None = None
        """Address of the request; None if none was made."""
        self.request_headers: Mapping[str, str] = {}
        self.sent = False
        self.loop: asyncio.AbstractEventLoop | None = None
        """The event loop of the call."""
        self.on_leaving: Callable[[], None] = lambda: None
        """Called when the request is made and about to be sent."""
        self.cancelled = False
        """Set to stop a request that has not left yet."""
        self.status: int | None = None
        self.headers: Mapping[str, str] = {}
        self.head = b""
        self.said: set[str] = set()
        """Of finish, end, usage, reasoning and cost, what the response holds."""
        self.broken: Exception | None = None
        """The exception that ended the reading of the response before its end."""
        self.unreached: Exception | None = None
        """Why no response came."""
        self.garbled = False
        """Whether the response holds bytes that are no UTF-8."""
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._whole: list[bytes] | None = None
        self._held = held
        self._end = b"\n"
        self._key = json.dumps(keep).encode() if keep else b""
        self._kept: list[bytes] = []
        self._response: httpx.Response | None = None

    @property
    def ended(self) -> bool:
        """Whether the provider came to an end: with a finish reason, or an end marker."""
        return not self.said.isdisjoint({"finish", "end"})

    def wire(self, messages: Sequence[Mapping[str, Any]] = ()) -> tuple[dict[str, Any] | None, str]:
        """The body as sent, keys in order, and its style.

        ``messages`` are those handed in to be sent. Where the body holds their very bytes only the rest is parsed:
        with a thousand messages parsing costs as much as all else that is done for the call.
        """
        if not self.raw:
            return None, ""
        rest, found = self.raw, False
        if messages:
            written = json.dumps(messages).encode()
            start = self.raw.find(_MESSAGES) + len(_MESSAGES)
            found = self.raw[start : start + len(written)] == written
            rest = self.raw[:start] + b"0" + self.raw[start + len(written) :] if found else rest
        body = _object(rest)
        if body is None:
            return None, ""
        style = wire_style(rest, body)
        if found and style != "spaced":
            body, style, found = json.loads(self.raw), "", False
        return body | {"messages": list(messages)} if found else body, style

    def text(self) -> str:
        """The beginning of the response."""
        return self.head.decode("utf-8", "replace")

    def first_event(self) -> Mapping[str, Any]:
        """The first JSON object of the response: ids, model and provider as the provider names them."""
        text = self.text()
        start = text.find("{")
        try:
            event, _ = json.JSONDecoder().raw_decode(text, max(start, 0))
        except (ValueError, RecursionError):
            return {}
        inner = event.get("message") if isinstance(event, dict) else None
        if not isinstance(event, dict):
            return {}
        return inner if isinstance(inner, dict) and "id" in inner else event

    def kept(self) -> Iterator[Mapping[str, Any]]:
        """The events, or the one body, that hold the key to keep."""
        for line in b"".join(self._kept).splitlines():
            event = _object(line.removeprefix(b"data:")) if self._key in line else None
            if event is not None:
                yield event

    def readable(self) -> bool:
        """Returns whether the response is a stream of events, or JSON to its first line's end."""
        if re.search(rb"(?:^|\n)(?:data|event):", self.head):
            return True
        try:
            json.loads(self.head.strip().partition(b"\n")[0] or b"{}")
        except (ValueError, RecursionError):
            return False
        return True

    def whole(self) -> str:
        """The response, if it is JSON by its type or its beginning; else empty."""
        return b"".join(self._whole).decode("utf-8-sig", "replace") if self._whole else ""

    def note(self, data: bytes) -> None:
        """Record bytes of the response as they arrive."""
        try:
            self._utf8.decode(data)
        except UnicodeDecodeError:
            self.garbled = True
            self._utf8.reset()
        if not self.head and data.removeprefix(codecs.BOM_UTF8).startswith(b"{"):
            self._whole = self._whole or []  # Some servers call a whole answer a stream.
        if self._whole is not None:
            self._whole.append(data)
        if len(self.head) < HEAD:
            self.head += data[: HEAD - len(self.head)]
        if self._key:
            self._kept.append(data)
        seen = self._end + data
        self.said |= {name for name, mark in _MARKS.items() if name not in self.said and mark.search(seen)}
        self._end = seen[-_OVERLAP:]

    async def sending(self, request: httpx.Request) -> None:
        """Note a request that is about to leave. Raises NotSent for a second one, and after a cancellation."""
        if self.cancelled:
            raise NotSent("the call was cancelled")
        if self.sent:
            raise NotSent("this would have been a second try")
        self.sent = True
        self.url, self.request_headers = request.url, request.headers
        self.raw = await request.aread()
        self.on_leaving()
        if self._held:
            raise NotSent("the request was made to be looked at")

    def answering(self, response: httpx.Response) -> None:
        """Note the head of the response to it."""
        self._response = response
        self.status = response.status_code
        self.headers = response.headers
        if "json" in response.headers.get("content-type", ""):
            self._whole = []

    async def close(self) -> None:
        """End the exchange. A connection whose answer was not fully read is closed."""
        if self._response is not None:
            await self._response.aclose()


current: ContextVar[Tape | None] = ContextVar("tape", default=None)
"""The tape of the call that runs in this context."""

leaving: ContextVar[Callable[[], None]] = ContextVar("leaving", default=lambda: None)
"""Called when a request of this context is made and about to be sent."""
