"""The HTTP client that calls go out on: httpx's own, which notes each exchange on the tape of its call.

It bounds how much of a response is taken: a provider, or a server in its place, may send without end.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ssl import SSLContext
from typing import Any

import httpx
from msgspec import Struct

from workbench import __version__
from workbench.models.collect import sound
from workbench.models.tape import NotSent, Tape, Unreached, Unusable, current

IDLE = 5.0
"""Seconds that a connection is kept for the next call: fewer than servers wait before they close it."""
STALE = 1.0
"""Seconds within which the end of a closed connection answers a request: no server read it. HTTP cannot tell this from
a server that took the request and then failed, which usually takes longer.
"""


MEGABYTE = 1 << 20
_PIECE = MEGABYTE
"""Bytes that are unpacked at a time."""


class TooLarge(Exception):
    """A response went past a bound. Its words say which, as the end of a sentence about the answer."""


class Bounds(Struct, frozen=True):
    """Bounds of one response, counted after its content encoding was undone."""

    body: int = 64 * MEGABYTE
    """Bytes of the whole. An answer of 128,000 tokens with an event for each has some 30 MB."""
    line: int = 32 * MEGABYTE
    """Bytes between two line ends: an event of a stream, or JSON, which is parsed at once."""
    lines: int = 2_000_000
    """Lines of the whole: three for each token of a long answer are a quarter of that."""
    nodes: int = 1_000_000
    """Objects and lists that begin in one line: parsed, each takes some hundred times its two bytes."""
    error: int = 64 << 10
    """Bytes of the body of a response with an error status; the rest is not read. litellm searches it for secrets with
    patterns, which took 4 s for 1 MB."""


class Intake:
    """Counts the bytes of one response as they arrive."""

    def __init__(self, bounds: Bounds = Bounds()) -> None:
        self._bounds = bounds
        self._body = self._lines = self._line = self._nodes = 0

    def take(self, data: bytes) -> None:
        """The next bytes. Raises TooLarge at the first bound that they pass."""
        bounds = self._bounds
        self._body += len(data)
        if self._body > bounds.body:
            raise TooLarge(f"is longer than {_megabytes(bounds.body)}, the most that is read of one")
        self._lines += data.count(b"\n")
        if self._lines > bounds.lines:
            raise TooLarge(f"has more than {bounds.lines:,} lines, the most that are read of one")
        end = data.find(b"\n")
        self._goes_on(data, 0, len(data) if end < 0 else end)
        if end >= 0:  # The lines in between are shorter than a piece is: only the last one can grow past a bound.
            self._line = self._nodes = 0
            self._goes_on(data, data.rfind(b"\n") + 1, len(data))

    def _goes_on(self, data: bytes, start: int, stop: int) -> None:
        """A part of the data that goes on with the current line."""
        bounds = self._bounds
        self._line += stop - start
        self._nodes += data.count(b"{", start, stop) + data.count(b"[", start, stop)
        if self._line > bounds.line:
            raise TooLarge(f"has a line of more than {_megabytes(bounds.line)}, the most that is read of one")
        if self._nodes > bounds.nodes:
            raise TooLarge(f"has more than {bounds.nodes:,} objects and lists in one line")


def decoder(coding: str) -> Callable[[bytes], Iterator[bytes]]:
    """Decodes a content coding (RFC 9110, section 8.4.1), in pieces of at most 1 MB.

    Raises ValueError for a coding other than gzip, deflate or identity: none was requested. The decoder raises
    zlib.error for bytes that are not in its coding.
    """
    match coding.strip().lower():
        case "" | "identity":
            return lambda data: iter((data,))
        case "gzip" | "x-gzip":
            return _Inflated(zlib.MAX_WBITS | 16)
        case "deflate":
            return _Inflated(zlib.MAX_WBITS)
    raise ValueError(f"is encoded as {coding.strip()[:40]!r}, which was not asked for")


class _Inflated:
    """Undoes gzip or deflate."""

    def __init__(self, window: int) -> None:
        self._raw_too = window == zlib.MAX_WBITS
        self._stream = zlib.decompressobj(window)

    def __call__(self, data: bytes) -> Iterator[bytes]:
        while data and not self._stream.eof:
            yield self._once(data)
            data = self._stream.unconsumed_tail

    def _once(self, data: bytes) -> bytes:
        first, self._raw_too = self._raw_too, False
        try:
            return self._stream.decompress(data, _PIECE)
        except zlib.error:
            if not first:
                raise
            # Some servers take "deflate" for the stream without its zlib header.
            self._stream = zlib.decompressobj(-zlib.MAX_WBITS)
            return self._stream.decompress(data, _PIECE)


def _megabytes(count: int) -> str:
    return f"{count / MEGABYTE:,.3g} MB"


class RecordingClient(httpx.AsyncClient):
    """Sends a request once, notes it and its answer on the tape of the context, and follows no redirection.

    A key in a header of the provider's own would go along with a redirection. Answers are asked for uncompressed, and
    are unpacked here where they come compressed all the same, so that the bytes noted are the text, and that all of
    it has bounds. There is no time-out besides those of the request, and no limit of connections.
    Proxies of the environment are used as httpx knows them. Connections belong to an event loop: each has its own.
    """

    def __init__(self, transport: httpx.AsyncBaseTransport | None = None, bounds: Bounds = Bounds()) -> None:
        """``transport`` takes the requests in place of connections: for trials of providers on this machine.
        ``bounds`` are those of each response."""
        self._bounds = bounds
        self._settings = _settings() | {"transport": transport}
        super().__init__(**self._settings)
        self._of_loops: dict[asyncio.AbstractEventLoop, list[_Lane]] = {}

    async def send(self, request: httpx.Request, *, stream: bool = False, **options: Any) -> EventStreamResponse:
        """As httpx does. With a tape it raises Unreached where httpx raises an HTTPError, and NotSent for a second
        request: the engine makes retries, and litellm's client would add its own.
        """
        tape = current.get()
        # A client reads all variables of the process for proxies, which may change once the request has left.
        lane = self._free_lane()
        lane.busy = True
        try:
            if tape is not None:
                await tape.sending(request)
            answer = await self._once(request, lane, options | {"follow_redirects": False})
        except httpx.HTTPError as fault:
            lane.busy = False
            if tape is None:
                raise
            tape.unreached = fault
            raise Unreached(str(fault)) from fault
        except BaseException:
            lane.busy = False
            raise
        if tape is not None:
            tape.answering(answer)
        kept = [(name, value) for name, value in answer.headers.multi_items() if name.lower() != "content-encoding"]
        response = EventStreamResponse(
            answer.status_code,
            headers=[*kept, ("x-should-retry", "false")],  # OpenAI's SDK heeds it
            stream=_Body(answer, tape, self._bounds, lane),
            request=answer.request,
            extensions=answer.extensions,
        )
        try:
            if not stream or (tape is not None and response.status_code >= 400):
                await response.aread()
        except httpx.HTTPError as fault:
            await response.aclose()
            if tape is None:
                raise
            raise Unreached(str(fault)) from fault
        except BaseException:
            await response.aclose()
            raise
        return response

    async def close_here(self) -> None:
        """Close the connections of this event loop."""
        for lane in self._of_loops.pop(asyncio.get_running_loop(), ()):
            await lane.client.aclose()

    async def aclose(self) -> None:
        await self.close_here()
        await super().aclose()

    async def _once(self, request: httpx.Request, lane: _Lane, options: dict[str, Any]) -> httpx.Response:
        """The answer, its body unread. A request written to a connection that the server had closed already reached no
        server, and is sent again on another: RFC 9112, section 9.3.1; curl does the same.
        """
        journey = _Journey()
        request.extensions = {**request.extensions, "trace": journey.note}
        try:
            return await lane.client.send(request, stream=True, **options)
        except (httpx.NetworkError, httpx.RemoteProtocolError):
            if not journey.met_nobody:
                raise
        # A lane keeps one connection to a server at most, so that the next one is new.
        return await lane.client.send(request, stream=True, **options)

    def _free_lane(self) -> _Lane:
        """The first client of this event loop without a request, with the connection that was used last. Each request
        has a client for itself: at the beginning and the end of a request a pool of httpx looks through all of its
        connections, and a hundred requests in one pool cost each of them over a millisecond."""
        loop = asyncio.get_running_loop()
        if loop not in self._of_loops:
            for stale in [known for known in self._of_loops if known.is_closed()]:
                del self._of_loops[stale]
        lanes = self._of_loops.setdefault(loop, [])
        free = next((lane for lane in lanes if not lane.busy), None)
        if free is None:
            free = _Lane(httpx.AsyncClient(**self._settings))
            lanes.append(free)
        return free


_QUESTION = re.compile(rb'"(?:messages|prompt|text)"\s*:')
"""A key under which the routes that block send what a model is asked."""


class BlockingClient(httpx.Client):
    """Sends the requests of those routes of litellm that block a thread.

    A question to a model goes out on the client of all other routes, which notes it, bounds its answer and holds it
    where it is only looked at; the answer is read whole. Requests for something else (a token, what a model can do) go
    out by themselves.
    """

    def __init__(self, recording: RecordingClient) -> None:
        super().__init__(verify=_trust(), cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())))
        self._recording = recording

    def send(self, request: httpx.Request, *, stream: bool = False, **options: Any) -> httpx.Response:
        """As httpx does. Raises what the other client raises; NotSent on the thread of the event loop, which would wait
        for itself."""
        tape = current.get()
        asks = "json" in request.headers.get("content-type", "") and _QUESTION.search(request.read())
        if tape is None or tape.loop is None or not asks:
            return super().send(request, stream=stream, **options)
        with suppress(RuntimeError):
            if asyncio.get_running_loop() is tape.loop:
                raise NotSent("this provider would stop everything else until it has answered")
        response = asyncio.run_coroutine_threadsafe(self._recording.send(request), tape.loop).result()
        return httpx.Response(response.status_code, headers=response.headers, content=response.content, request=request)


def _settings() -> dict[str, Any]:
    return {
        "timeout": None,
        "verify": _trust(),
        "limits": httpx.Limits(max_connections=None, max_keepalive_connections=50, keepalive_expiry=IDLE),
        "headers": {"accept-encoding": "identity", "user-agent": f"cascade-workbench/{__version__}"},
        "cookies": CookieJar(DefaultCookiePolicy(allowed_domains=())),
    }


class _Lane(Struct):
    """A client of httpx, and whether it has a request whose answer is not fully read."""

    client: httpx.AsyncClient
    busy: bool = False


class _Journey:
    """Follows one request on its way, as httpcore reports it (its extension ``trace``)."""

    def __init__(self) -> None:
        self._connects = False
        self._sent_at: float | None = None
        self._answered = False

    async def note(self, event: str, info: dict[str, Any]) -> None:
        """An event of httpcore, such as ``connection.connect_tcp.started``."""
        if event.endswith((".connect_tcp.started", ".connect_unix_socket.started")):
            self._connects = True
        elif event.endswith(".send_request_body.complete"):
            self._sent_at = time.monotonic()
        elif event.endswith(".receive_response_headers.complete"):
            self._answered = True

    @property
    def met_nobody(self) -> bool:
        """Whether the request went to a connection of an earlier one and found it closed."""
        in_time = self._sent_at is None or time.monotonic() - self._sent_at < STALE
        return not self._connects and not self._answered and in_time


@cache
def _trust() -> SSLContext:
    """The certificates, read once: it takes longer than a call does."""
    return httpx.create_ssl_context()


class EventStreamResponse(httpx.Response):
    """A response whose lines end as those of an event stream do: httpx also ends them at characters that JSON may hold
    as they are (U+2028). Lines of events are such that litellm's parsers lose nothing of them (``readable_line``)."""

    def json(self, **options: Any) -> Any:
        """The body, as litellm's parsers can read it. Raises JSONDecodeError, as httpx does."""
        body = super().json(**options)
        return sound(body) if self.status_code < 400 and isinstance(body, dict) and "choices" in body else body

    async def aiter_lines(self) -> AsyncIterator[str]:
        is_stream = "event-stream" in self.headers.get("content-type", "")
        first = True
        async for line in self._lines():
            if first:  # A byte order mark is no part of the text (HTML, section 9.2.6).
                line, first = line.removeprefix("\ufeff"), False
            yield readable_line(line) if is_stream and line.startswith("data:") else line

    async def _lines(self) -> AsyncIterator[str]:
        if self.is_stream_consumed or "charset" in self.headers.get("content-type", "").lower().replace(
            "charset=utf-8", ""
        ):
            async for line in super().aiter_lines():
                yield line
            return
        begun: list[bytes] = []
        async for data in self.aiter_raw():
            begun.append(data)
            if b"\n" in data or b"\r" in data:
                lines = b"".join(begun).splitlines(keepends=True)
                begun = [] if lines[-1].endswith(b"\n") else [lines.pop()]
                for ended in lines:
                    yield ended.rstrip(b"\r\n").decode("utf-8", "replace")
        for last in b"".join(begun).splitlines():
            yield last.decode("utf-8", "replace")


def readable_line(line: str) -> str:
    """A line ``data: ...`` of an event stream, rewritten so that litellm reads all of it.

    litellm skips lines that are not JSON, takes every line that mentions ``[DONE]`` for the end, and stops at invalid
    usage, choices and ids. Raises JSONDecodeError for text that is not JSON.
    """
    value = line.removeprefix("data:").strip()
    if not value or value == "[DONE]":
        return line
    event = json.loads(value)
    if isinstance(event, dict) and (mended := sound(event)) != event:
        value = json.dumps(mended)
    return "data: " + value.replace("[DONE]", "\\u005bDONE]")  # In JSON it can only stand inside of a text.


class _Body(httpx.AsyncByteStream):
    """The bytes of an answer as they arrive, unpacked, within bounds, and noted on a tape."""

    def __init__(self, answer: httpx.Response, tape: Tape | None, bounds: Bounds, lane: _Lane) -> None:
        self._answer = answer
        self._lane: _Lane | None = lane
        self._tape = tape
        self._bounds = bounds

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Raises Unusable (an HTTPError, as for a broken connection) beyond a bound. Of an error's body only the
        beginning is read.
        """
        failed, room = self._answer.status_code >= 400, self._bounds.error
        try:
            async for data in self._unpacked():
                if self._tape is not None:
                    self._tape.note(data)
                yield data
                room -= len(data)
                if failed and room <= 0:
                    return
        except httpx.HTTPError as fault:
            if self._tape is not None:
                self._tape.broken = fault
            raise

    async def _unpacked(self) -> AsyncIterator[bytes]:
        intake = Intake(self._bounds)
        try:
            unpack = decoder(self._answer.headers.get("content-encoding", ""))
            async for data in self._answer.aiter_raw():
                for piece in unpack(data):
                    intake.take(piece)
                    yield piece
        except TooLarge as fault:
            raise Unusable(str(fault), too_large=True) from None
        except zlib.error:
            raise Unusable("is not compressed in the way that it says") from None
        except ValueError as fault:
            raise Unusable(str(fault)) from None

    async def aclose(self) -> None:
        """Close a connection whose answer was not fully read."""
        if self._lane is not None:
            self._lane.busy = False
            self._lane = None
        with suppress(httpx.StreamClosed):
            await self._answer.aclose()
