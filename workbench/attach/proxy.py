"""The proxy that clients talk to: bytes go to the provider and back as they are, and the recorder sees both."""

from __future__ import annotations

import asyncio
import json
import math
import os
import sys
import time
import zlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Set
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from errno import ECONNRESET, errorcode
from functools import partial
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorError,
    ClientError,
    ClientHttpProxyError,
    ClientPayloadError,
    ClientProxyConnectionError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    ClientWebSocketResponse,
    DummyCookieJar,
    ServerDisconnectedError,
    TCPConnector,
    WSMsgType,
    WSServerHandshakeError,
    web,
)
from msgspec.structs import replace
from multidict import CIMultiDict
from yarl import URL

from workbench.attach.offline import COUNTS, request_to_count
from workbench.attach.providers import PROVIDERS, Provider, split_path
from workbench.attach.replies import asks_model, error_body
from workbench.attach.requests import Access, BadBody, unpacked
from workbench.attach.traffic import Answers, Ask, Control, Made, Outgoing, Placed, Reply, Witness
from workbench.engine.gate import ClientWait
from workbench.importers.exchanges import given_of
from workbench.importers.values import mapping

MOST_REQUEST = 256 * 1024 * 1024
"""Bytes of a request's body; a larger one is refused."""
MOST_KEPT = 64 * 1024 * 1024
"""Bytes of a reply that are kept for the record; all of it goes to the client."""
LARGE = 256 * 1024
"""Bytes of a request from which on it is passed on while it comes, if nothing on the way may change it."""
CONNECT_SECONDS = 30.0
"""How long a connection to a provider may take. An answer may take as long as the client waits."""
TELL_SECONDS = 0.01
"""How long a request is on its way before the record begins with it: both share the interpreter's lock, and most of the
record of a call that is answered sooner is made when its client has got the answer."""
TELL_LARGE_SECONDS = 1.0
"""The same for a large one, after its provider has it: 10 MB take 40 ms to read, in which nothing else passes."""
IDLE_A_MB, LATEST_A_MB = 0.015, 0.1
"""Seconds for each megabyte of a large request whose client has its answer: how long nothing is on its way before it is
read for the record, and how long that waits at most for such a moment. The record of 10 MB takes 0.2 s, in which the
next request would wait; a client needs 0.05 s to write it. A kill within that time leaves a warning in its place."""
MOST_IDLE, MOST_LATEST = 0.25, 1.0
"""Seconds: both at most."""
LOOKS, RECORD_A_MB = 0.02, 0.03
"""Seconds between two looks for such a moment; and those for each megabyte of a request that is read, before the next
one is."""
CROWD, CROWD_SWITCH_SECONDS = 16, 0.0001
"""From so many requests at once on, and while a large one comes, the recorder gives the interpreter's lock back so
soon: each read and write of a stream gives it away, and waits for it. With few, the changes cost more than they
help."""
_HOP = frozenset(
    (
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "host",
        "content-length",
    )
)
"""Headers of one connection (RFC 9110, 7.6.1), and those that are made anew."""
_READABLE = ("gzip", "deflate", "identity")
"""Content codings that the record can unpack."""
_CREDENTIALS = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
_IN_QUERY = ("key", "api_key", "api-key", "access_token", "token")


class Proxy:
    """Serves the paths of all providers below ``/``, or below ``/TOKEN/`` where there is a token."""

    def __init__(
        self,
        addresses: Mapping[str, str],
        witness: Witness,
        answers: Answers | None = None,
        control: Control | None = None,
        *,
        hosts: Set[str] = frozenset(),
        token: str = "",
    ) -> None:
        """``addresses``: where each provider is. ``hosts`` and ``token``: as for ``Access``."""
        self._addresses = addresses
        self._proxies = {name: _proxy_for(address) for name, address in addresses.items()}
        self._witness = witness
        self._answers = answers
        self._control = control
        self._access = Access(hosts, token)
        self._session: ClientSession | None = None
        self._count = 0
        self._large = 0
        self._on_the_way = 0
        """Requests whose replies are not handed on yet."""
        self._left = 0.0
        """When the last one was, by the clock of the loop."""
        self._switch = sys.getswitchinterval()
        """The interval that holds while there is no hurry."""
        self._hurries = 0
        """Reasons to be in a hurry: a crowd, and each large request that comes."""
        self._untold: deque[_Arrived] = deque()
        self._put_off: deque[tuple[int, Callable[[], None]]] = deque()
        """What tells the witness of large requests that were answered, and the bytes that wait with each."""
        self._timer: asyncio.TimerHandle | None = None
        self._ends = False
        """Whether the server ends, and with it the requests that are on their way."""

    def application(self) -> web.Application:
        """The server's application, for ``web.AppRunner``."""
        application = web.Application(client_max_size=MOST_REQUEST)
        application.router.add_route("*", "/{path:.*}", self._handle)
        application.cleanup_ctx.append(self._connections)
        application.on_shutdown.append(self._end)
        return application

    async def _end(self, _: web.Application) -> None:
        self._ends = True

    @property
    def _cut(self) -> str:
        """Why a request is cancelled."""
        return "the recording ended" if self._ends else "the client went away"

    async def _upgraded(self, request: web.Request, provider: Provider, rest: str) -> web.StreamResponse:
        """Pass a WebSocket on, frame by frame. Responses of OpenAI over it are calls like those over HTTP; what else it
        carries is not recorded, which is said."""
        if request.headers.get("Upgrade", "").lower() != "websocket":
            return _error(501, "connections that change to another protocol than WebSocket are not passed on")
        carries_calls, alone = rest.endswith("/responses"), self._answers is not None and self._answers.alone
        if alone and not carries_calls:
            return _error(501, f"{rest[:200]} is a WebSocket, which no recording and no offline model answers")
        assert self._session is not None
        names = [name.strip() for name in request.headers.get("Sec-WebSocket-Protocol", "").split(",") if name.strip()]
        headers = [(n, v) for n, v in self._headers(request) if not n.lower().startswith("sec-websocket-")]
        upstream: ClientWebSocketResponse | None = None
        try:
            if not alone:
                upstream = await self._session.ws_connect(
                    self._url(request, provider, rest),
                    headers=headers,
                    protocols=names,
                    proxy=self._proxies[provider.name],
                    autoping=False,
                    max_msg_size=0,
                )
        except WSServerHandshakeError as fault:
            return _error(fault.status, f"{provider.name} refused the WebSocket: {fault.message}")
        except (ClientError, TimeoutError, OSError) as fault:
            return _error(502, f"{provider.name} gave no answer: {_words(fault)}")
        client = web.WebSocketResponse(protocols=names, autoping=False, compress=False, max_msg_size=0)
        calls: _SocketCalls | None = None
        if carries_calls:
            self._keep_secrets(request)
            decide = self._decided if self._control is not None or self._answers is not None else None
            numbered = partial(self._numbered, provider, rest)
            calls = _SocketCalls(client, upstream, self._witness, numbered, decide, self._control)
        else:
            self._witness.warn(f"a WebSocket to {rest[:100]} is passed on: its calls are not recorded", None, "unseen")
        try:
            await client.prepare(request)
            pumps = [asyncio.ensure_future(_pump(client, upstream, calls.asked if calls else None))]
            if upstream is not None:
                came, left = (calls.came, calls.left) if calls else (None, None)
                pumps.append(asyncio.ensure_future(_pump(upstream, client, came, left)))
            _, still = await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            for pump in still:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
        finally:
            if calls is not None:
                await calls.closed()
            if upstream is not None:
                await upstream.close()
            if client.prepared:
                await client.close()
        return client

    async def _connections(self, _: web.Application) -> AsyncIterator[None]:
        """Connections to providers, as long as the server runs."""
        timeout = ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
        # Cookies are between a client and its provider: those of one client must not go out with another's requests.
        how: dict[str, Any] = {"timeout": timeout, "auto_decompress": False, "cookie_jar": DummyCookieJar()}
        async with ClientSession(connector=TCPConnector(limit=0), **how) as self._session:
            yield
        self._tell()

    # -- one request ---------------------------------------------------------------------------------------------------

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self._on_the_way += 1
        if self._on_the_way == CROWD:
            self._hurry(1)
        try:
            return await self._answered(request)
        finally:
            if self._on_the_way == CROWD:
                self._hurry(-1)
            self._on_the_way -= 1
            self._left = asyncio.get_running_loop().time()

    def _hurry(self, by: int) -> None:
        """Take a reason to be in a hurry, or give one back (-1)."""
        if not self._hurries:
            self._switch = sys.getswitchinterval()
            sys.setswitchinterval(CROWD_SWITCH_SECONDS)
        self._hurries += by
        if not self._hurries:
            sys.setswitchinterval(self._switch)

    async def _answered(self, request: web.Request) -> web.StreamResponse:
        if refused := self._access.refusal(request):
            return _error(403, refused)
        path = self._access.path(request)
        found = split_path(path)
        if found is None:
            known = ", ".join(f"/{one.prefix}" for one in PROVIDERS)
            return _error(404, f"no provider is at {path[:200]}; there are {known}")
        provider, rest = found
        if (late := self._witness.caught_up()) is not None:
            try:
                await asyncio.shield(asyncio.wrap_future(late))  # Others wait for the same.
            except asyncio.CancelledError:
                self._broke_off(rest, "while the record was not ready")
                raise
        if "upgrade" in request.headers.get("Connection", "").lower():
            return await self._upgraded(request, provider, rest)
        size = request.content_length or 0
        if size > MOST_REQUEST:
            return _error(413, f"the request is larger than {MOST_REQUEST // 2**20} MB")
        if size >= LARGE and self._busy_control is None and self._answers is None:
            self._hurry(1)
            try:
                return await self._streamed(request, provider, rest)
            finally:
                self._hurry(-1)
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return _error(413, f"the request is larger than {MOST_REQUEST // 2**20} MB")
        except (asyncio.CancelledError, OSError):
            self._broke_off(rest, "before it was whole")
            raise
        ask = self._ask(provider, rest, request, body)
        if ask is None:
            return await self._unseen(request, provider, rest, body)
        return await self._seen(request, provider, rest, body, ask)

    @property
    def _busy_control(self) -> Control | None:
        """What may pause or change a request that comes now."""
        return None if self._control is None or self._control.is_idle else self._control

    def _ask(self, provider: Provider, rest: str, request: web.Request, body: bytes) -> Ask | None:
        """The request as one that asks a model, or for a number of tokens; None for every other."""
        if not _may_ask(request, rest):
            return None
        try:
            asked = _loaded(unpacked(body, request.headers.get("Content-Encoding", ""), MOST_REQUEST))
        except BadBody as fault:
            self._unread(rest, str(fault))
            return None
        except (ValueError, RecursionError):
            if "json" in request.headers.get("Content-Type", "").lower():
                self._unread(rest, "its body cannot be read as JSON")
            return None
        counts = rest.endswith(COUNTS)
        if given_of(request_to_count(asked) if counts else mapping(asked)) is None:
            if asks_model(rest):
                self._unread(rest, "it holds no messages that can be read")
            return None
        self._keep_secrets(request)
        return self._numbered(provider, rest, asked, counts, len(body))

    def _broke_off(self, rest: str, when: str) -> None:
        self._witness.warn(f"a request to {rest[:100]} broke off {when}: it was not sent", None, "client")

    def _unread(self, rest: str, why: str) -> None:
        self._witness.warn(f"a request to {rest[:100]} is passed on unseen: {why}", None, "unseen")

    def _numbered(self, provider: Provider, rest: str, asked: Any, counts: bool = False, size: int = 0) -> Ask:
        self._count += 1
        return Ask(self._count, provider.name, rest, asked, counts, size)

    def _keep_secrets(self, request: web.Request) -> None:
        """Tell the witness of the credentials of a request."""
        for name in _CREDENTIALS:
            if value := request.headers.get(name, "").removeprefix("Bearer ").strip():
                self._witness.secret(value)
        for name in _IN_QUERY:
            if value := request.query.get(name, ""):
                self._witness.secret(value)

    async def _unseen(self, request: web.Request, provider: Provider, rest: str, body: bytes) -> web.StreamResponse:
        """Pass on what asks no model: lists of models, embeddings."""
        if self._answers is not None and self._answers.alone:
            return _error(501, f"{request.method} {rest[:200]} is not a model call, and no provider is asked here")
        passing = _Passing(request)
        try:
            async with self._sent(request, provider, rest, body) as upstream:
                return await passing.through(upstream)
        except (ClientError, TimeoutError, OSError) as fault:
            return await passing.broken(provider, fault)

    async def _seen(
        self, request: web.Request, provider: Provider, rest: str, body: bytes, ask: Ask
    ) -> web.StreamResponse:
        began = time.monotonic()
        if self._answers is not None or (self._busy_control is not None and not ask.counts):
            client = ClientWait(began, _patience(request))
            outgoing = await self._decided(ask, body, client)
            if outgoing.made is not None:
                return await _given(request, outgoing.made)
            if outgoing.watched:
                return await self._watched(request, provider, replace(ask, path=outgoing.path), outgoing, client)
            known, began = _Arrived(lambda: ask, told=True), time.monotonic()
            return await self._passed(request, provider, outgoing.path, outgoing.body, known, began)
        arrived = _Arrived(lambda: ask)
        self._untold.append(arrived)
        asyncio.get_running_loop().call_later(TELL_SECONDS, self._tell)
        return await self._passed(request, provider, rest, body, arrived, began)

    async def _streamed(self, request: web.Request, provider: Provider, rest: str) -> web.StreamResponse:
        """Pass a long request on while it comes. It is read for the record when its client has the answer, or if that
        takes long, soon after its provider has all of it."""
        began, body = time.monotonic(), bytearray()
        length = request.content_length or 0
        self._large, number = self._large + 1, self._large + 1
        may_ask = _may_ask(request, rest) and "json" in request.content_type.lower()
        if may_ask:
            what = f"a request of {length / 1e6:.1f} MB to {provider.name}{rest[:100]}"
            self._witness.passing(number, f"{what} is not in the record yet: it was on its way")

        def over() -> None:
            if may_ask:
                self._witness.passing(number, "")

        read = partial(self._ask, provider, rest, request)
        arrived = _Arrived(lambda: read(bytes(body)), lambda: length - len(body), over)

        async def pieces() -> AsyncIterator[bytes]:
            async for piece in request.content.iter_any():
                body.extend(piece)
                yield piece
            asyncio.get_running_loop().call_later(TELL_LARGE_SECONDS, arrived.tell, self._witness)

        async def whole() -> None:
            """Take what its provider did not wait for."""
            with suppress(ClientError, OSError):
                async for piece in request.content.iter_any():
                    body.extend(piece)

        return await self._passed(request, provider, rest, pieces(), arrived, began, whole)

    def _tell_when_idle(self) -> None:
        """Tell the witness of large requests that were answered, one after the other, when nothing is on its way, or
        if that does not come, soon."""
        if self._timer is None:
            self._look_again(LOOKS)

    def _look_again(self, seconds: float) -> None:
        """Look after so many seconds, from when on the oldest request waits."""
        loop = asyncio.get_running_loop()
        latest = min(self._put_off[0][0] / 1e6 * LATEST_A_MB, MOST_LATEST)
        self._timer = loop.call_later(seconds, self._look, loop.time() + seconds + latest)

    def _look(self, latest: float) -> None:
        """Tell the witness of the oldest request now, or look again, but not after the time ``latest``."""
        self._timer = None
        if not self._put_off:
            return
        loop, waiting = asyncio.get_running_loop(), sum(size for size, _ in self._put_off)
        busy = self._on_the_way or loop.time() - self._left < min(waiting / 1e6 * IDLE_A_MB, MOST_IDLE)
        if busy and waiting < MOST_KEPT and loop.time() < latest:
            self._timer = loop.call_later(LOOKS, self._look, latest)
            return
        size, tell = self._put_off.popleft()
        tell()
        if self._put_off:
            self._look_again(size / 1e6 * RECORD_A_MB)

    def _tell(self) -> None:
        """Tell the witness of the requests that it does not know yet, in the order in which they came."""
        while self._put_off:
            self._put_off.popleft()[1]()
        while self._untold:
            self._untold.popleft().tell(self._witness)

    async def _decided(self, ask: Ask, body: bytes, client: ClientWait) -> Outgoing:
        """What becomes of a request that may be paused, changed or answered here. If the reply is ``made``, it is
        recorded."""
        control = None if ask.counts else self._busy_control
        if control is not None:
            self._tell()  # Those that came before are placed before it.
            outgoing = await control.outgoing(ask, body, client)
            placed: Future[Placed | None] = Future()
            placed.set_result(outgoing.placed)
        else:
            outgoing, placed = Outgoing(ask.path, body), self._witness.asked(ask)
        began, made = time.monotonic(), outgoing.made
        if made is None and self._answers is not None:
            made = await self._answers.answer(ask, placed)
            if made is not None and control is not None and outgoing.watched and made.status < 400:
                reply = made.reply(time.monotonic() - began)
                return replace(outgoing, made=await control.incoming(ask, reply, outgoing, client) or made)
        if made is not None:
            self._witness.replied(ask, made.reply(time.monotonic() - began))
        return replace(outgoing, made=made)

    async def _watched(
        self,
        request: web.Request,
        provider: Provider,
        ask: Ask,
        outgoing: Outgoing,
        client: ClientWait,
    ) -> web.StreamResponse:
        """Ask the provider, and hand its answer on as a whole, once it may go."""
        assert self._control is not None
        began, passing, told = time.monotonic(), _Passing(request, MOST_KEPT), False
        fault, status = "", 0
        try:
            async with self._sent(request, provider, outgoing.path, outgoing.body) as upstream:
                status = upstream.status
                raw = await passing.gathered(upstream)
            if status >= 400:
                return await passing.whole(upstream, raw)
            told = True
            reply = passing.reply(status, began)
            made = await self._control.incoming(ask, reply, outgoing, client)
            return await (passing.whole(upstream, raw) if made is None else _given(request, made))
        except (ClientError, TimeoutError, OSError) as broken:
            fault = passing.fault or _words(broken)
            return await passing.broken(provider, broken)
        except asyncio.CancelledError:
            fault = self._cut
            raise
        finally:
            if not told:
                self._witness.replied(ask, passing.reply(status or (502 if fault else 499), began, fault))

    async def _passed(
        self,
        request: web.Request,
        provider: Provider,
        rest: str,
        body: bytes | AsyncIterator[bytes],
        arrived: _Arrived,
        began: float,
        whole: Callable[[], Awaitable[None]] | None = None,
    ) -> web.StreamResponse:
        """Ask the provider, and hand its answer on as it comes. ``whole`` waits for the rest of a ``body`` that still
        comes."""
        passing, fault, status, told = _Passing(request, MOST_KEPT), "", 0, False

        def tell(code: int, fault: str = "", *, over: bool = False) -> None:
            nonlocal told
            if told or ((missing := arrived.missing()) and not over):
                return
            told = True
            if missing:
                self._tell()
                words = f"a request to {rest[:100]} broke off: its last {missing:,} bytes never came"
                self._witness.warn(f"{words}. It was answered with status {code}", None, "client")
                arrived.over()
                return
            reply = passing.reply(code, began, fault)

            def record() -> None:
                if (ask := arrived.tell(self._witness)) is not None:
                    self._witness.replied(ask, reply)

            if whole is not None and not arrived.told:
                self._put_off.append((request.content_length or 0, record))
                self._tell_when_idle()
            else:
                self._tell()
                record()

        try:
            async with self._sent(request, provider, rest, body) as upstream:
                status = upstream.status
                response = await passing.through(upstream, lambda: tell(status))
            if whole is not None:
                await whole()
            return response
        except (ClientError, TimeoutError, OSError) as broken:
            fault = passing.fault or _words(broken)
            status = status or 502
            if whole is not None:
                await whole()
            return await passing.broken(provider, broken)
        except asyncio.CancelledError:
            fault = self._cut
            raise
        finally:
            tell(status or 499, fault, over=True)

    @asynccontextmanager
    async def _sent(
        self, request: web.Request, provider: Provider, rest: str, body: bytes | AsyncIterator[bytes]
    ) -> AsyncIterator[ClientResponse]:
        """The request at the provider: same method, query, headers and body."""
        assert self._session is not None
        if isinstance(body, bytes):
            headers = self._headers(request, rewritten=body is not await request.read())
        else:
            headers = [*self._headers(request), ("Content-Length", str(request.content_length))]
        sending = self._session.request(
            request.method,
            self._url(request, provider, rest),
            headers=headers,
            data=body or None,
            allow_redirects=False,
            proxy=self._proxies[provider.name],
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
        )
        async with sending as upstream:
            yield upstream

    def _url(self, request: web.Request, provider: Provider, rest: str) -> URL:
        query = request.rel_url.raw_query_string
        return URL(self._addresses[provider.name] + rest + (f"?{query}" if query else ""), encoded=True)

    @staticmethod
    def _headers(request: web.Request, *, rewritten: bool = False) -> list[tuple[str, str]]:
        """The headers that go on. ``rewritten``: the body is another, which is not packed."""
        left_out = _HOP | {"content-encoding"} if rewritten else _HOP
        return [
            (name, _readable(value) if lower == "accept-encoding" else value)
            for name, value in request.headers.items()
            if (lower := name.lower()) not in left_out
        ]


class _Arrived:
    """A request that has come, and is told to the witness later."""

    def __init__(
        self,
        read: Callable[[], Ask | None],
        missing: Callable[[], int] = lambda: 0,
        over: Callable[[], None] = lambda: None,
        *,
        told: bool = False,
    ) -> None:
        """``read`` gives what it asks, None where that is no model; ``missing`` how many bytes of it have not come
        yet; ``over`` is called once the witness knows it, or never will. ``told``: the witness knows it."""
        self._read = read
        self.missing = missing
        self.over = over
        self.told = told

    def tell(self, witness: Witness) -> Ask | None:
        """Tell the witness of it, once; what it asks."""
        if not self.told:
            self.told, ask = True, self._read()
            self._read = lambda: ask
            if ask is not None:
                witness.asked(ask)
            self.over()
        return self._read()


def _may_ask(request: web.Request, rest: str) -> bool:
    """Returns whether a request may be one that asks a model, by its head."""
    return request.method == "POST" and "embedding" not in rest


def _loaded(body: bytes) -> Any:
    """The JSON of a body. Raises ValueError, RecursionError."""
    # Given bytes, ``json.loads`` decodes them with 'surrogatepass', which takes longer than all else that it does.
    plain = body[:1] == b"{" and 0 not in body[:4]
    try:
        return json.loads(body.decode() if plain else body)
    except UnicodeDecodeError:
        return json.loads(body)


class _SocketCalls:
    """The calls of a WebSocket that carries Responses of OpenAI: a request is a message ``response.create``, and its
    answer the events that a stream over HTTP would have, up to one that ends it. Several may be on their way, each with
    a ``stream_id``."""

    def __init__(
        self,
        client: web.WebSocketResponse,
        upstream: ClientWebSocketResponse | None,
        witness: Witness,
        numbered: Callable[..., Ask],
        decide: Callable[[Ask, bytes, ClientWait], Awaitable[Outgoing]] | None,
        control: Control | None,
    ) -> None:
        """``upstream``: None if no provider is asked. ``numbered`` makes a request of its JSON. ``decide``: what
        becomes of it; None if nothing pauses, changes or answers requests."""
        self._client = client
        self._upstream = upstream
        self._witness = witness
        self._numbered = numbered
        self._decide = decide
        self._control = control
        self._open: dict[str, _SocketCall] = {}
        self._tasks = set[asyncio.Future[None]]()

    async def asked(self, text: str) -> None:
        """A message of the client."""
        body = _message(text)
        if body.get("type") == "response.create":
            asked = {key: value for key, value in body.items() if key not in ("type", "stream_id")} | {"stream": True}
            if given_of(asked) is not None:
                call = _SocketCall(self._numbered(asked, size=len(text)), body)
                if self._decide is None:
                    self._witness.asked(call.ask)
                    await self._send(call, text)
                else:
                    self._begin(self._decided(call, text, self._decide))
                return
        if self._upstream is not None:
            await self._upstream.send_str(text)
        else:
            said = f"no recording and no offline model answers {str(body.get('type', 'such a message'))[:60]}"
            await self._client.send_str(_in_lane(body, _refusal(501, error_body(said))))

    async def came(self, text: str) -> None:
        """An event of the provider."""
        event = _message(text)
        kind, call = str(event.get("type", "")), self._open.get(str(event.get("stream_id")))
        if call is None:
            if kind == "response.created":
                self._witness.warn("an answer that no request asked for is passed on unrecorded", None, "unseen")
            await self._client.send_str(text)
            return
        if kind == "error":
            await self._client.send_str(text)
            status = event.get("status")
            reply = Reply(status if isinstance(status, int) else 500, _JSON, text.encode(), call.seconds)
            self._witness.replied(self._open.pop(call.lane).ask, reply)
            return
        call.keep(kind, text)
        ends = kind in ("response.completed", "response.incomplete", "response.failed")
        if call.watched is None:
            if ends:
                self._witness.replied(self._open.pop(call.lane).ask, call.reply())
            await self._client.send_str(text)
        else:
            call.held.append(text)
            if ends:
                self._begin(self._handed(self._open.pop(call.lane), call.watched))

    async def left(self) -> None:
        """The provider is gone: what came of answers that are handed on as a whole is handed on."""
        for text in [text for call in self._open.values() for text in call.held]:
            await self._client.send_str(text)

    async def closed(self) -> None:
        """The connection is over."""
        for task in (tasks := list(self._tasks)):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for call in self._open.values():
            self._witness.replied(call.ask, call.reply("the WebSocket was closed"))
        self._open.clear()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Do what may wait for a person, while other messages pass."""

        def over(task: asyncio.Future[None]) -> None:
            self._tasks.discard(task)
            if not task.cancelled():
                task.exception()  # The client may be gone, which the record says.

        self._tasks.add(task := asyncio.ensure_future(work))
        task.add_done_callback(over)

    async def _decided(
        self, call: _SocketCall, text: str, decide: Callable[[Ask, bytes, ClientWait], Awaitable[Outgoing]]
    ) -> None:
        body = text.encode("utf-8", "surrogatepass")
        outgoing = await decide(call.ask, body, call.client)
        if outgoing.made is not None:
            await self._give(call, outgoing.made)
            return
        call.watched = outgoing if outgoing.watched else None
        if outgoing.body is not body:
            own = {key: call.asked[key] for key in ("type", "stream_id", "stream") if key in call.asked}
            made = {key: value for key, value in json.loads(outgoing.body).items() if key != "stream"}
            text = json.dumps({**made, **own}, ensure_ascii=False)
        await self._send(call, text)

    async def _send(self, call: _SocketCall, text: str) -> None:
        assert self._upstream is not None
        call.began = time.monotonic()
        self._open[call.lane] = call
        await self._upstream.send_str(text)

    async def _handed(self, call: _SocketCall, outgoing: Outgoing) -> None:
        """Hand an answer on that is whole, once it may go."""
        assert self._control is not None
        made = await self._control.incoming(call.ask, call.reply(), outgoing, call.client)
        if made is not None:
            await self._give(call, made)
            return
        for text in call.held:
            await self._client.send_str(text)

    async def _give(self, call: _SocketCall, made: Made) -> None:
        """Hand on a reply that no provider gave, or not so."""
        if made.status >= 400:
            await self._client.send_str(_in_lane(call.asked, _refusal(made.status, made.body)))
            return
        for line in made.body.decode("utf-8", "replace").split("\n"):
            if line.startswith("data: {"):
                await self._client.send_str(_in_lane(call.asked, _message(line[6:])))


class _SocketCall:
    """A call over a WebSocket, and what came of its answer."""

    def __init__(self, ask: Ask, asked: Mapping[str, Any]) -> None:
        """``asked``: the message of the client."""
        self.ask = ask
        self.asked = asked
        self.lane = str(asked.get("stream_id"))
        self.began = time.monotonic()
        self.client = ClientWait(self.began, None)
        self.watched: Outgoing | None = None
        """How it was sent, if its answer may be paused."""
        self.held: list[str] = []
        """Events that the client has not got yet."""
        self._kept = bytearray()
        self._first: float | None = None

    @property
    def seconds(self) -> float:
        """Since it was sent."""
        return time.monotonic() - self.began

    def keep(self, kind: str, text: str) -> None:
        """Keep an event for the record, as it would come over HTTP."""
        self._first = self.seconds if self._first is None else self._first
        self._kept += f"event: {kind}\ndata: {text.translate(_ONE_LINE)}\n\n".encode()

    def reply(self, fault: str = "") -> Reply:
        """Returns its answer as the record keeps it."""
        kept = bytes(self._kept[:MOST_KEPT])
        return Reply(200, "text/event-stream", kept, self.seconds, self._first, fault)


_ONE_LINE = {10: " ", 13: " "}
"""JSON has line ends between its values alone, where a space does as well."""


def _refusal(status: int, body: bytes) -> Mapping[str, Any]:
    """An error as an event of a WebSocket."""
    return {"status": status, **_message(body.decode("utf-8", "replace")), "type": "error"}


def _in_lane(asked: Mapping[str, Any], event: Mapping[str, Any]) -> str:
    """An event for the stream of a request."""
    lane = {"stream_id": asked["stream_id"]} if "stream_id" in asked else {}
    return json.dumps({key: value for key, value in event.items() if key != "stream_id"} | lane, ensure_ascii=False)


_JSON = "application/json"


def _message(text: str) -> Mapping[str, Any]:
    try:
        return mapping(json.loads(text))
    except (ValueError, RecursionError):
        return {}


async def _pump(
    here: _Socket,
    there: _Socket | None,
    told: Callable[[str], Awaitable[None]] | None = None,
    left: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Hand on every frame, until one side closes. ``there``: None if nobody is. ``told`` gets the texts, and hands them
    on. ``left`` is called at the end."""
    async for message in here:
        match message.type:
            case WSMsgType.TEXT if told is not None:
                await told(message.data)
            case WSMsgType.PING if there is None:
                await here.pong(message.data)
            case _ if there is None:
                pass
            case WSMsgType.TEXT:
                await there.send_str(message.data)
            case WSMsgType.BINARY:
                await there.send_bytes(message.data)
            case WSMsgType.PING:
                await there.ping(message.data)
            case WSMsgType.PONG:
                await there.pong(message.data)
    if left is not None:
        await left()
    if there is not None:
        code = here.close_code
        await there.close(code=code if code is not None and (code == 1000 or code >= 3000) else 1001)


_Socket = web.WebSocketResponse | ClientWebSocketResponse


class _Passing:
    """A reply on its way to the client."""

    def __init__(self, request: web.Request, most_kept: int = 0) -> None:
        self._request = request
        self._response: web.StreamResponse | None = None
        self._kept = bytearray()
        self._most = most_kept
        self._coding = ""
        self._marked = False
        """Whether the mark that ends a stream has come."""
        self.content_type = ""
        self.first_byte: float | None = None
        """By the monotonic clock."""
        self.fault = ""

    @property
    def begun(self) -> bool:
        """Whether the client has got the head of it."""
        return self._response is not None

    def reply(self, status: int, began: float, fault: str = "") -> Reply:
        """Returns it as the record keeps it; ``began`` by the monotonic clock."""
        first = self.first_byte
        return Reply(
            status,
            self.content_type,
            self.unpacked(),
            time.monotonic() - began,
            None if first is None else round(first - began, 6),
            fault,
            "provider" if self.begun or self._kept or fault else "workbench",
        )

    async def gathered(self, upstream: ClientResponse, most: float = math.inf) -> bytes:
        """All pieces, or those until there are more than ``most`` bytes. The client does not get them yet."""
        self.content_type = upstream.headers.get("Content-Type", "")
        self._coding = upstream.headers.get("Content-Encoding", "")
        found = bytearray()
        async for piece in upstream.content.iter_any():
            if self.first_byte is None:
                self.first_byte = time.monotonic()
            found += piece
            if len(found) > most:
                break
        self._kept = found[: self._most]
        return bytes(found)

    async def whole(self, upstream: ClientResponse, raw: bytes) -> web.StreamResponse:
        """Hand on status, headers and all pieces that were gathered, in one write."""
        response = web.Response(body=raw, status=upstream.status, reason=upstream.reason, headers=_end_to_end(upstream))
        await self._to_client(response.prepare(self._request))
        self._response = response
        await self._to_client(response.write_eof())
        return response

    async def through(self, upstream: ClientResponse, ended: Callable[[], None] = lambda: None) -> web.StreamResponse:
        """Hand on status, headers and every piece as it comes. ``ended`` is called at the mark that ends a stream,
        before a client can go on from it: most hang up or ask again then, and do not wait for the connection. A refusal
        has no mark, and a client may hang up at its status: it is handed on once it is whole."""
        if upstream.content.is_eof():
            return await self.whole(upstream, await self.gathered(upstream))
        refusal = await self.gathered(upstream, self._most) if upstream.status >= 400 else b""
        if refusal and upstream.content.at_eof():
            ended()
            return await self.whole(upstream, refusal)
        response = await self._begin(upstream)
        if refusal:
            await self._to_client(response.write(refusal))
        async for piece in upstream.content.iter_any():
            if self.first_byte is None:
                self.first_byte = time.monotonic()
            if len(self._kept) < self._most:
                self._kept += piece[: self._most - len(self._kept)]
                if self._at_end(len(piece)):
                    ended()
            await self._to_client(response.write(piece))
        await self._to_client(response.write_eof())
        return response

    def _at_end(self, new: int) -> bool:
        """Returns whether the stream is whole by its own mark, of which the last piece with ``new`` bytes may hold a
        part."""
        kept, (marks, ends) = self._kept, _ENDS.get(self.content_type.partition(";")[0].strip().lower(), ((), ()))
        since = max(len(kept) - new - _LONGEST_MARK, 0)
        self._marked = self._marked or any(kept.find(mark, since) >= 0 for mark in marks)
        return self._marked and kept.endswith(ends)

    async def _begin(self, upstream: ClientResponse) -> web.StreamResponse:
        """Hand on status and headers."""
        response = web.StreamResponse(status=upstream.status, reason=upstream.reason, headers=_end_to_end(upstream))
        if upstream.content_length is not None and "Transfer-Encoding" not in upstream.headers:
            response.content_length = upstream.content_length
        self.content_type = upstream.headers.get("Content-Type", "")
        self._coding = upstream.headers.get("Content-Encoding", "")
        await self._to_client(response.prepare(self._request))
        self._response = response
        return response

    async def _to_client(self, sending: Awaitable[object]) -> None:
        try:
            await sending
        except OSError:
            self.fault = "the client went away"
            raise

    async def broken(self, provider: Provider, fault: BaseException) -> web.StreamResponse:
        """End a reply whose provider failed: the client sees the stream break, or an error that names the workbench."""
        if self._response is None:
            return _error(502, f"{provider.name} gave no answer: {_words(fault)}")
        transport = self._request.transport
        if transport is not None:
            transport.abort()
        return self._response

    def unpacked(self) -> bytes:
        """Returns the kept bytes without their content coding."""
        data = bytes(self._kept)
        if self._coding in ("gzip", "x-gzip", "deflate") and data:
            wbits = zlib.MAX_WBITS | (16 if "gzip" in self._coding else 0)
            try:
                return zlib.decompressobj(wbits).decompress(data, MOST_KEPT)
            except zlib.error:
                return b""
        return data


_ENDS: Mapping[str, tuple[tuple[bytes, ...], tuple[bytes, ...]]] = {
    "text/event-stream": (
        (
            b"\ndata: [DONE]",
            b"\ndata:[DONE]",
            b"\nevent: message_stop",
            b"\nevent: response.completed",
            b"\nevent: response.incomplete",
            b"\nevent: response.failed",
        ),
        (b"\n\n", b"\r\n\r\n"),
    ),
    "application/x-ndjson": ((b'"done":true', b'"done": true'), (b"\n",)),
}
"""By content type, what stands in the last event of a stream, and how that ends. Streams of Gemini have no such mark.
No text of an answer can hold one: it is JSON, where line ends and quotation marks are escaped."""
_LONGEST_MARK = 32
"""Bytes of which a piece may hold a part, and the next one the rest."""


def _end_to_end(upstream: ClientResponse) -> CIMultiDict[str]:
    """The headers of a reply that are not those of one connection."""
    return CIMultiDict((name, value) for name, value in upstream.headers.items() if name.lower() not in _HOP)


def _proxy_for(address: str) -> str | None:
    """The proxy that the environment names for an address (``HTTPS_PROXY``, …); None for none. It is looked up
    once: aiohttp's ``trust_env`` would do so in a thread for each request, and add credentials of ``~/.netrc``."""
    parts = urlsplit(address)
    return None if proxy_bypass(parts.netloc.rpartition("@")[2]) else getproxies().get(parts.scheme)


_PATIENCE = ("x-stainless-read-timeout", "x-stainless-timeout", "x-server-timeout")
"""Headers in which clients say how many seconds they wait: those of OpenAI's and Anthropic's SDKs, and Google's."""


def _patience(request: web.Request) -> float | None:
    for name in _PATIENCE:
        try:
            seconds = float(request.headers.get(name, ""))
        except ValueError:
            continue
        if 0 < seconds < _LONGEST_WAIT:
            return seconds
    return None


_LONGEST_WAIT = 86_400.0
"""Seconds: a client that names more waits for ever."""


def _readable(accepted: str) -> str:
    """The codings that a client accepts and the record can unpack."""
    kept = [one for one in accepted.split(",") if one.strip().partition(";")[0].lower() in _READABLE]
    return ",".join(kept) or "identity"


def _words(fault: BaseException) -> str:
    if isinstance(fault, TimeoutError):
        return "the provider does not answer in time"
    if isinstance(fault, ClientPayloadError | ServerDisconnectedError):
        return "the provider closed the connection before its answer was whole"
    if isinstance(fault, ClientHttpProxyError):
        return f"the proxy of the environment refused the connection (status {fault.status} {fault.message})"
    if isinstance(fault, ClientConnectorCertificateError):
        why = getattr(fault.certificate_error, "verify_message", "") or fault.certificate_error
        return f"the certificate of {fault.host} is not trusted ({why}); SSL_CERT_FILE names a CA of your own"
    if isinstance(fault, ClientConnectorError):
        proxy = "the proxy of the environment, " if isinstance(fault, ClientProxyConnectionError) else ""
        number = fault.errno or 0
        why = os.strerror(number) if number in errorcode else fault.os_error.strerror or fault.os_error
        return f"cannot connect to {proxy}{fault.host}:{fault.port} ({why})"
    if isinstance(fault, OSError) and fault.errno == ECONNRESET:
        return "the provider reset the connection"
    return (str(fault) or type(fault).__name__)[:300]


def _error(status: int, message: str) -> web.Response:
    """An error of the workbench's own, in the form that clients of OpenAI and Anthropic read."""
    return web.Response(body=error_body(message), content_type=_JSON, status=status)


async def _given(request: web.Request, made: Made) -> web.StreamResponse:
    response = web.StreamResponse(status=made.status)
    response.headers["Content-Type"] = made.content_type or "application/json"
    await response.prepare(request)
    await response.write(made.body)
    await response.write_eof()
    return response
