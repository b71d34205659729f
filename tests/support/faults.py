"""The ways a provider can go wrong, by the name of the model that shows them."""

from __future__ import annotations

import gzip
import json
import os
import socket
import struct
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from tests.support.dialects import USAGE, Reply

if TYPE_CHECKING:
    from tests.support.loopback import Handler, Received

HOSTILE = (
    "nul \x00 esc \x1b]52;c;eA==\x07\x1b[2J c1 \x9b bidi \u202e del \x7f lone \ud800 markup [/] [@click=app.quit]x[/]"
)
"""Control characters of every kind, a lone surrogate, and markup that is live in some widget."""

Fault = Callable[["Handler", "Received"], None]


def _status(status: int, message: str, code: str | None = None, headers: Mapping[str, str] = {}) -> Fault:
    return lambda handler, request: handler.error(status, message, code, headers)


def _raw(body: bytes, kind: str = "application/json", status: int = 200) -> Fault:
    return lambda handler, request: handler.send(status, body, kind=kind)


def _says(reply: Reply) -> Fault:
    return lambda handler, request: handler.answer(request, reply)


def _echoes_key(handler: Handler, request: Received) -> None:
    key = request.headers.get("authorization", "").removeprefix("Bearer ") or request.headers.get("x-api-key", "")
    handler.error(401, f"Incorrect API key provided: {key}.", "invalid_api_key")


def _empty(handler: Handler, request: Received) -> None:
    if request.streaming:
        handler.begin_stream()
        handler.chunk(b"data: [DONE]\n\n")
        handler.chunk(b"")
    else:
        handler.send(200, {"id": "chatcmpl-1", "model": request.model, "choices": [], "usage": dict(USAGE)})


def _hang(handler: Handler, request: Received) -> None:
    if handler.server.loopback.wait(handler.connection):
        handler.answer(request, Reply("late"))
    else:
        handler.hang_up()


def _reset(handler: Handler, _: Received) -> None:
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.close_connection = True
    os.close(handler.connection.detach())


def _before_http(sent: bytes) -> Fault:
    """Send bytes in the place of a response, and close."""

    def play(handler: Handler, _: Received) -> None:
        with suppress(OSError):  # The client may go before it has all of it.
            handler.wfile.write(sent)
            handler.wfile.flush()
        handler.hang_up()

    return play


def _short(handler: Handler, _: Received) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "5000")
    handler.end_headers()
    handler.wfile.write(b'{"id": "chatcmpl-1", "choices": [')
    handler.wfile.flush()
    handler.hang_up()


def _cut(handler: Handler, request: Received) -> None:
    handler.half_stream(request)
    handler.hang_up()


def _stall(handler: Handler, request: Received) -> None:
    handler.half_stream(request)
    handler.server.loopback.wait(handler.connection)
    handler.hang_up()


def _garbled(handler: Handler, request: Received) -> None:
    handler.half_stream(request)
    handler.chunk(b'data: {"choices": [{"delta": {"content": "lost\n\n')
    handler.chunk(b"data: [DONE]\n\n")
    handler.chunk(b"")


def _no_done(handler: Handler, request: Received) -> None:
    handler.half_stream(request)
    handler.chunk(b"")


def _closes(handler: Handler, request: Received) -> None:
    handler.answer(request, Reply())
    handler.hang_up()


def _closes_unread(handler: Handler, request: Received) -> None:
    handler.answer(request, Reply())
    handler.close_connection = True
    if handler.server.loopback.readable(handler.connection):
        handler.connection.close()  # with the next request unread, which the system answers by a reset


MOST = 256 * 1024 * 1024
"""Bytes after which even a response without end comes to one: no fault of a test may fill a machine."""


def _endless(head: bytes, piece: bytes, kind: str, status: int = 200, headers: Mapping[str, str] = {}) -> Fault:
    """Send a piece again and again until the client has gone."""

    def play(handler: Handler, request: Received) -> None:
        handler.send_response(status)
        for name, value in {"Content-Type": kind, "Transfer-Encoding": "chunked", **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        if head:  # an empty chunk ends a response
            handler.chunk(head)
        for _ in range(MOST // len(piece)):
            if handler.server.loopback.closing.is_set():
                break
            handler.chunk(piece)
        handler.hang_up()

    return play


def _bomb(handler: Handler, request: Received) -> None:
    """An answer of 256 MB in 256 KB."""
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    packed = packer.compress(b'{"choices": [{"message": {"content": "')
    for _ in range(256):
        packed += packer.compress(b"a" * (1 << 20))
    kind = "text/event-stream" if request.streaming else "application/json"
    handler.send(200, packed + packer.flush(), {"Content-Encoding": "gzip"}, kind=kind)


def _gzip(handler: Handler, request: Received) -> None:
    """A plain answer, compressed though nobody asked for it."""
    from tests.support.loopback import chunks, completion

    reply, kind = Reply("packed"), "application/json"
    data = json.dumps(completion(request.model, reply)).encode()
    if request.streaming:
        events = chunks(request.model, reply, include_usage=True)
        kind, data = "text/event-stream", b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in events)
    handler.send(200, gzip.compress(data), {"Content-Encoding": "gzip"}, kind=kind)


FAULTS: Mapping[str, Fault] = {
    "endlessline": _endless(b'data: {"choices": [{"delta": {"content": "', b"a" * 65_536, "text/event-stream"),
    "endlessjson": _endless(b'{"choices": [{"message": {"content": "', b"a" * 65_536, "application/json"),
    "endlessnodes": _endless(b'{"choices": [', b"{}," * 20_000, "application/json"),
    "endlessblank": _endless(b"", b"\n" * 65_536, "text/event-stream"),
    "endlesstext": _endless(
        b"",
        b'data: {"choices": [{"delta": {"content": "' + b"a" * 65_536 + b'"}}]}\n\n',
        "text/event-stream",
    ),
    "endlesserror": _endless(b"An error: ", b"no " * 20_000, "text/plain", 500),
    "bomb": _bomb,
    "gzip": _gzip,
    "brotli": lambda handler, request: handler.send(200, b"\x0b\x02\x80", {"Content-Encoding": "br"}),
    "notgzip": lambda handler, request: handler.send(200, b"plain", {"Content-Encoding": "gzip"}),
    "closes": _closes,
    "closesunread": _closes_unread,
    "429": _status(429, "Rate limit reached", "rate_limit_exceeded", {"Retry-After": "7"}),
    "500": _status(500, "The server had an error"),
    "503html": _raw(b"<html><body><h1>503 Service Unavailable</h1></body></html>", "text/html", 503),
    "307": lambda handler, request: handler.send(307, b"", {"Location": "http://127.0.0.1:9/v1/chat/completions"}),
    "400": _status(400, "Unknown parameter: 'foo'"),
    "401": _echoes_key,
    "402": _status(402, "Insufficient credits"),
    "403": _status(403, "Your key may not use this model"),
    "404": _status(404, "The model does not exist", "model_not_found"),
    "ctx": _status(
        400, "This model's maximum context length is 8192 tokens, however you requested 9000", "context_length_exceeded"
    ),
    "badjson": _raw(b'{"id": "chatcmpl-1", "choices": [{'),
    "html200": _raw(b"<html><body>Sign in to the network</body></html>", "text/html"),
    "badutf8": _raw(b'{"id": "chatcmpl-1", "choices": [{"message": {"content": "\xff\xfe\xe9"}}]}'),
    "error200": _raw(b'{"error": {"message": "Upstream is overloaded", "code": 502}}'),
    "empty": _empty,
    "nullcontent": _says(Reply(None)),
    "blank": _says(Reply(" \n")),
    "nousage": _says(Reply("ok", usage=None)),
    "hang": _hang,
    "reset": _reset,
    "short": _short,
    "nohttp": _before_http(b"220 mail.example ESMTP\r\n\r\n"),
    "endlesshead": _before_http(b"HTTP/1.1 200 OK\r\nX-Long: " + b"a" * 1_000_000),
    "scut": _cut,
    "sstall": _stall,
    "snodone": _no_done,
    "sgarbled": _garbled,
    "length": _says(Reply("An answer that stops", finish_reason="length")),
    "big": _says(Reply("x" * 1_000_000 + "\n" + "A line of text.\n" * 600_000, piece=65_536)),
    "hostile": _says(Reply(HOSTILE)),
    "toolbad": _says(Reply("", calls=[("read_file", '{"path": "data/app.log"')])),
}
"""What each name does. 3xx, 4xx and 5xx by status; ``ctx`` context too long; ``badjson`` ``html200`` ``badutf8``
``error200`` unreadable with status 200; ``empty`` no choices; ``nullcontent`` ``blank`` no text; ``nousage`` no usage;
``hang`` no answer; ``reset`` ``short`` connection lost; ``nohttp`` another protocol; ``endlesshead`` headers of 1 MB;
``closes`` an answer that announces a connection kept alive, which is closed at once; ``closesunread`` the same, closed
while the next request lies unread; ``scut`` ``sstall``
``snodone`` ``sgarbled`` a stream that is cut, stands still, ends without a finish reason, or holds an event that is no
JSON (plain requests get the same bytes); ``length`` stopped by the token limit; ``big`` 10 MB, the first line 1 MB;
``hostile`` control characters and markup; ``toolbad`` malformed arguments;
``endless...`` a line, JSON, objects, blank lines, text or an error body without end; ``bomb`` 256 MB in 256 KB;
``gzip`` an answer that is compressed unasked; ``brotli`` ``notgzip`` a coding that is not read."""
