"""An OpenAI-compatible provider on 127.0.0.1, for tests: the model's name selects a fault, else it answers as scripted.

``with Loopback([Reply("Hello")]) as provider:`` serves chat completions at ``provider.url`` until the block ends. The
name of the behaviour is the last part of the model's name (``openai/429`` -> ``429``); ``429@2`` misbehaves on the
first two requests for that name and then answers. ``FAULTS`` lists the names. Nothing here sleeps: what must wait waits
for the client to go away, for ``resume()``, or for the end of the block.
"""

from __future__ import annotations

import json
import re
import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from tests.support.descriptors import is_readable
from tests.support.dialects import USAGE, DialectAnswer, Reply, dialect_of
from tests.support.faults import FAULTS, HOSTILE

__all__ = ["FAULTS", "HOSTILE", "USAGE", "Loopback", "Received", "Reply", "chunks", "completion"]


@dataclass(frozen=True)
class Received:
    """One request as it came in."""

    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.raw)
        return parsed

    @property
    def model(self) -> str:
        match = _IN_PATH.search(self.path)
        return match[1] if match else str(self.body.get("model", ""))

    @property
    def streaming(self) -> bool:
        return ":streamGenerateContent" in self.path or bool(self.body.get("stream"))


_IN_PATH = re.compile(r"/models/([^/:]+):")
Script = Callable[[Received], Reply]


class Loopback:
    """The server. ``replies`` is what a well-behaved model answers: one after the other (the last one stays), or a
    function of the request; without any, ``ok``."""

    def __init__(self, replies: Script | Iterable[Reply] = ()) -> None:
        self._script = replies if callable(replies) else None
        self._replies = [] if callable(replies) else list(replies)
        self._lock = threading.Lock()
        self._seen: Counter[str] = Counter()
        self._sockets: set[socket.socket] = set()
        self._resumed = threading.Event()
        self.closing = threading.Event()
        self.requests: list[Received] = []
        self.arrived = threading.Semaphore(0)
        """Released once per request, before it is answered."""
        self.left = threading.Semaphore(0)
        """Released once per client that went away before its answer was whole."""
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def url(self) -> str:
        """The base URL, as ``--base-url`` takes it."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def resume(self) -> None:
        """Let the requests that hang be answered."""
        self._resumed.set()

    def __enter__(self) -> Loopback:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        with self._lock:
            for connection in self._sockets:
                _hang_up(connection)
        self._server.server_close()
        self._thread.join()

    def opened(self, connection: socket.socket) -> None:
        with self._lock:
            self._sockets.add(connection)

    def closed(self, connection: socket.socket) -> None:
        with self._lock:
            self._sockets.discard(connection)

    def received(self, request: Received) -> tuple[str, Reply]:
        """Note a request; the fault to play (empty for none) and the answer a well-behaved model gives."""
        name, _, times = request.model.rpartition("/")[2].partition("@")
        with self._lock:
            self.requests.append(request)
            self._seen[request.model] += 1
            faulty = name in FAULTS and (not times or self._seen[request.model] <= int(times))
            if self._script is not None or faulty:
                reply = Reply()
            elif len(self._replies) > 1:
                reply = self._replies.pop(0)
            else:
                reply = self._replies[0] if self._replies else Reply()
        if self._script is not None and not faulty:
            reply = self._script(request)
        self.arrived.release()
        return (name if faulty else ""), reply

    def readable(self, connection: socket.socket) -> bool:
        """Wait until something comes in; False when the block ended before."""
        while not self.closing.is_set():
            if is_readable(connection.fileno(), 0.01):
                return True
        return False

    def wait(self, connection: socket.socket) -> bool:
        """Keep a client waiting; False when it went away or the block ended, True after ``resume()``."""
        while not self._resumed.is_set():
            if self.closing.is_set():
                return False
            if is_readable(connection.fileno(), 0.01) and not _peek(connection):
                self.left.release()
                return False
        return True


class _Server(ThreadingHTTPServer):
    request_queue_size = 256

    def __init__(self, loopback: Loopback) -> None:
        self.loopback = loopback
        super().__init__(("127.0.0.1", 0), Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what half of the tests are about; anything else is said: the client sees only that
        the connection ended."""
        if isinstance(sys.exc_info()[1], ConnectionError):
            self.loopback.left.release()
        else:
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.loopback.opened(self.connection)

    def finish(self) -> None:
        self.server.loopback.closed(self.connection)
        super().finish()

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", "0")))
        request = Received(self.path, {name.lower(): value for name, value in self.headers.items()}, raw)
        fault, reply = self.server.loopback.received(request)
        if fault:
            FAULTS[fault](self, request)
        else:
            self.answer(request, reply)

    def answer(self, request: Received, reply: Reply) -> None:
        if request.path.endswith("/embeddings"):
            self.send(200, embeddings(request))
            return
        spoken = dialect_of(request.path)
        if spoken is not None:
            self.speak(request, spoken(request.model, reply), request.streaming)
        elif request.streaming:
            self.stream(request, reply)
        else:
            self.send(200, completion(request.model, reply))

    def speak(self, request: Received, said: DialectAnswer, streaming: bool) -> None:
        """An answer in the dialect of another provider."""
        if not streaming:
            self.send(200, said.body)
            return
        self.begin_stream()
        for kind, body in said.events:
            data = json.dumps(body).encode() + b"\n"
            name = f"event: {kind}\n".encode() if kind else b""
            self.chunk(data if said.lines else name + b"data: " + data + b"\n")
        self.chunk(b"")

    def send(
        self, status: int, body: object, headers: Mapping[str, str] = {}, *, kind: str = "application/json"
    ) -> None:
        """A whole response; ``body`` is JSON, or bytes as they are."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def error(self, status: int, message: str, code: str | None = None, headers: Mapping[str, str] = {}) -> None:
        self.send(status, {"error": {"message": message, "type": "error", "code": code}}, headers)

    def begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def event(self, body: object) -> None:
        self.chunk(b"data: " + json.dumps(body).encode() + b"\n\n")

    def stream(self, request: Received, reply: Reply) -> None:
        self.begin_stream()
        include = bool(request.body.get("stream_options", {}).get("include_usage"))
        for body in chunks(request.model, reply, include_usage=include):
            self.event(body)
        self.chunk(b"data: [DONE]\n\n")
        self.chunk(b"")

    def half_stream(self, request: Received) -> None:
        """The head of a stream: two pieces of text and nothing that ends it."""
        self.begin_stream()
        for piece in ("The first half", " of an"):
            self.event(_chunk(request.model, {"content": piece}))

    def hang_up(self) -> None:
        self.close_connection = True
        _hang_up(self.connection)


def embeddings(request: Received) -> dict[str, Any]:
    """The body of an answer with embeddings, last text first: how often each says ``lamp`` and ``crane``, and a
    constant. The words are the tokens."""
    texts: list[str] = request.body["input"]
    data = [
        {"object": "embedding", "index": index, "embedding": [text.count("lamp"), text.count("crane"), 0.1]}
        for index, text in enumerate(texts)
    ]
    tokens = sum(len(text.split()) for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "model": request.model, "data": data[::-1], "usage": usage}


def completion(model: str, reply: Reply) -> dict[str, Any]:
    """The body of a plain answer."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, **reply.extra}
    if reply.calls:
        message["tool_calls"] = [_call(i, name, arguments) for i, (name, arguments) in enumerate(reply.calls)]
    body = _head(model, "chat.completion") | {
        "choices": [{"index": 0, "message": message, "finish_reason": _finish(reply)}]
    }
    return body if reply.usage is None else body | {"usage": dict(reply.usage)}


def chunks(model: str, reply: Reply, *, include_usage: bool) -> Iterable[dict[str, Any]]:
    """The events of a streamed answer, without the end marker."""
    yield _chunk(model, {"role": "assistant", "content": ""})
    if reply.extra:
        yield _chunk(model, reply.extra)
    for start in range(0, len(reply.text or ""), reply.piece):
        yield _chunk(model, {"content": (reply.text or "")[start : start + reply.piece]})
    for i, (name, arguments) in enumerate(reply.calls):
        yield _chunk(model, {"tool_calls": [{"index": i, **_call(i, name, "")}]})
        for start in range(0, len(arguments), reply.piece):
            part = {"index": i, "function": {"arguments": arguments[start : start + reply.piece]}}
            yield _chunk(model, {"tool_calls": [part]})
    yield _chunk(model, {}, _finish(reply))
    if include_usage and reply.usage is not None:
        yield _head(model, "chat.completion.chunk") | {"choices": [], "usage": dict(reply.usage)}


def _head(model: str, kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1_700_000_000, "model": model}


def _chunk(model: str, delta: Mapping[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": dict(delta), "finish_reason": finish_reason}
    return _head(model, "chat.completion.chunk") | {"choices": [choice]}


def _call(index: int, name: str, arguments: str) -> dict[str, Any]:
    return {"id": f"call_{index + 1}", "type": "function", "function": {"name": name, "arguments": arguments}}


def _finish(reply: Reply) -> str:
    return reply.finish_reason or ("tool_calls" if reply.calls else "stop")


def _hang_up(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


def _peek(connection: socket.socket) -> bytes:
    try:
        return connection.recv(1, socket.MSG_PEEK)
    except OSError:
        return b""
