"""The connections of calls: what is said when there is none, the proxy of the environment, and what is left behind."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import suppress

import httpx
import pytest

from tests.support.dialects import Reply
from tests.support.loopback import Loopback
from tests.support.waiting import PATIENCE
from workbench.context.assembly import Request
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.engine.contracts import Answer, ModelFault
from workbench.models.connections import Bounds, EventStreamResponse, Intake, RecordingClient, TooLarge
from workbench.models.litellm import LiteLLM
from workbench.models.names import resolve
from workbench.models.prices import PriceTable
from workbench.models.tape import Tape, Unreached, current

BOUNDS = Bounds(body=3 << 20, line=2 << 20, lines=3, nodes=4)
FULL = b"x" * (1 << 20)


@pytest.mark.parametrize(
    ("taken", "said"),
    [
        ([FULL, b"\n", FULL, b"\n", FULL], "is longer than 3 MB, the most that is read of one"),
        ([FULL, FULL, b"x"], "has a line of more than 2 MB, the most that is read of one"),
        ([b"x\n" + FULL, FULL, b"x"], "has a line of more than 2 MB, the most that is read of one"),
        ([b"\n\r\n", b"\n\n"], "has more than 3 lines, the most that are read of one"),
        ([b"[{", b'{"a": [['], "has more than 4 objects and lists in one line"),
    ],
)
def test_the_piece_that_passes_a_bound_is_refused_and_none_before(taken: list[bytes], said: str) -> None:
    intake = Intake(BOUNDS)
    *before, last = taken
    for piece in before:
        intake.take(piece)
    with pytest.raises(TooLarge, match=said):
        intake.take(last)


def test_bounds_of_a_line_begin_anew_with_each_line() -> None:
    intake = Intake(BOUNDS)
    for piece in (FULL, b"[[[[\n[[", b"[[\n", FULL):
        intake.take(piece)


def asks(model: str, text: str = "hi") -> Request:
    return Request(model, {}, (), (Message("user", text),), text)


def ask(url: str, model: str = "m") -> Answer:
    async def call() -> Answer:
        llm = LiteLLM(lambda name: resolve(name, url, {}), PriceTable(), timeout_s=PATIENCE)
        try:
            return await llm.complete(asks(model), Place(), {}, lambda text: None)
        finally:
            await llm.aclose()

    return asyncio.run(call())


def test_a_refused_connection_is_said_in_the_systems_words() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: nobody else gets the port, nobody answers
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with pytest.raises(ModelFault) as caught:
            ask(url)

    assert (caught.value.kind, caught.value.message) == ("connection", f"no connection to {url}: Connection refused")


def test_an_address_without_a_host_is_a_fault_like_any_other() -> None:
    with pytest.raises(ModelFault) as caught:
        ask("http://:80/v1")

    assert caught.value.kind in ("connection", "bad_request")


def test_a_password_in_the_address_is_sent_as_one_in_place_of_the_key() -> None:
    with Loopback([Reply("Let in.")]) as provider:
        answer = ask(provider.url.replace("//", "//me:s%40cret@"))

        assert answer.text == "Let in."
        sent = provider.requests[0].headers
        assert b64decode(sent["authorization"].removeprefix("Basic ")) == b"me:s@cret"
        assert "me" not in sent["host"]


def test_the_environments_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with Loopback([Reply("Through it.")]) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        monkeypatch.delenv("no_proxy", raising=False)
        answer = ask("http://model.invalid/v1")

        assert (answer.text, [one.headers["host"] for one in proxy.requests]) == ("Through it.", ["model.invalid"])


def test_connections_of_a_loop_that_is_gone_are_let_go_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    async def call(client: httpx.AsyncClient, url: str) -> int:
        return (await client.post(f"{url}/chat/completions", json={"model": "m", "messages": []})).status_code

    with Loopback() as provider, caplog.at_level(logging.WARNING, "asyncio"):
        client = RecordingClient()
        assert asyncio.run(call(client, provider.url)) == 200
        del client
        gc.collect()

    assert caplog.records == []


async def waves(at_once: int, count: int) -> int:
    """The connections that a server sees of waves of requests, all of a wave open before the first is answered."""
    connections, waiting, full = 0, 0, asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections, waiting
        connections += 1
        with suppress(asyncio.IncompleteReadError):
            while await reader.readuntil(b"\r\n\r\n"):
                waiting += 1
                if waiting == at_once:
                    full.set()
                await full.wait()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=at_once)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    client = RecordingClient()
    for _ in range(count):
        full.clear()
        waiting = 0
        async with asyncio.timeout(20):
            answers = await asyncio.gather(*(client.get(url) for _ in range(at_once)))
        assert [answer.text for answer in answers] == ["ok"] * at_once
    await client.aclose()
    server.close()
    return connections


def test_a_wave_of_many_calls_goes_out_on_the_connections_of_the_wave_before() -> None:
    assert asyncio.run(waves(at_once=60, count=3)) == 60


class Breaks(httpx.AsyncByteStream):
    """A body that ends in a fault."""

    def __init__(self, fault: Exception) -> None:
        self.fault = fault

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"a"
        raise self.fault


@pytest.mark.parametrize("in_body", [False, True], ids=["no answer", "broken answer"])
@pytest.mark.parametrize("on_tape", [False, True], ids=["free", "of a call"])
@pytest.mark.parametrize("fault", [httpx.ConnectError("gone"), httpx.ReadTimeout("late"), RuntimeError("odd")])
async def test_a_request_that_fails_raises_what_happened_and_frees_its_connection(
    fault: Exception, on_tape: bool, in_body: bool
) -> None:
    asked: list[httpx.Request] = []

    async def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        if not in_body:
            raise fault
        return httpx.Response(200, stream=Breaks(fault))

    client = RecordingClient(httpx.MockTransport(answer))
    token = current.set(Tape() if on_tape else None)
    expected = Unreached if on_tape and isinstance(fault, httpx.HTTPError) else type(fault)
    with pytest.raises(expected, match=str(fault)):
        await client.get("http://model.test/")
    current.reset(token)
    assert len(asked) == (2 if isinstance(fault, httpx.ConnectError) and not in_body else 1)
    await client.aclose()


@pytest.mark.parametrize("model", ["closes", "closesunread"])
def test_calls_in_a_row_pass_where_a_connection_announced_as_kept_is_closed(model: str) -> None:
    async def calls(url: str, count: int) -> list[str]:
        llm = LiteLLM(lambda name: resolve(name, url, {}), PriceTable(), timeout_s=PATIENCE)
        try:
            return [
                (await llm.complete(asks(f"{model}", f"call {n}"), Place(), {}, lambda text: None)).text
                for n in range(count)
            ]
        finally:
            await llm.aclose()

    with Loopback() as provider:
        assert asyncio.run(calls(provider.url, 24)) == ["ok"] * 24
        assert len(provider.requests) == 24


def test_a_connection_that_is_lost_at_the_first_request_is_no_second_one() -> None:
    with Loopback() as provider, pytest.raises(ModelFault) as caught:
        ask(provider.url, "reset")

    assert (caught.value.kind, len(provider.requests)) == ("connection", 1)


@pytest.mark.parametrize("kind", ["text/event-stream", "text/plain; charset=utf-8", "text/plain; charset=latin-1"])
@pytest.mark.parametrize("size", [1, 3, 100])
def test_lines_end_where_those_of_an_event_stream_do(kind: str, size: int) -> None:
    text = 'data: {"text": "one\u2028two\u00e9"}\r\n\r\nevent: x\rdata: 2\n: no end'
    encoding = "latin-1" if "latin" in kind else "utf-8"
    raw = text.replace("\u2028", " " if encoding == "latin-1" else "\u2028").encode(encoding)

    class Pieces(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            for at in range(0, len(raw), size):
                yield raw[at : at + size]

    async def lines() -> list[str]:
        answer = EventStreamResponse(
            200, headers={"content-type": kind}, stream=Pieces(), request=httpx.Request("GET", "http://a")
        )
        return [line async for line in answer.aiter_lines()]

    whole = raw.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
    assert asyncio.run(lines()) == whole.split("\n")


def test_a_response_that_was_read_whole_still_gives_its_lines() -> None:
    async def lines() -> list[str]:
        answer = EventStreamResponse(200, stream=httpx.ByteStream(b"a\r\nb"))
        await answer.aread()
        return [line async for line in answer.aiter_lines()]

    assert asyncio.run(lines()) == ["a", "b"]
