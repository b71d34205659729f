"""Any program's model calls become a run, unchanged on their way, and can be given again."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest
from aiohttp import ClientSession, ServerDisconnectedError, WSServerHandshakeError, web
from aiohttp.web import ContentCoding
from msgspec.structs import replace

from tests.attach.support import LOCAL, Session, answer_socket, serving, session, socket_asked
from tests.engine.support import FlatPrices, ListSink, StepClock, Words
from tests.support.command import WORKBENCH, run_cli
from tests.support.loopback import HOSTILE, Loopback, Reply
from tests.support.waiting import PATIENCE, soon, until
from workbench.attach.identity import Drawn, Surroundings
from workbench.attach.providers import BY_NAME, PROVIDERS, addresses, client_variables
from workbench.attach.proxy import TELL_SECONDS, Proxy
from workbench.attach.record_thread import MOST_BEHIND, RecordThread
from workbench.attach.recorder import Recorder
from workbench.attach.replies import rendered
from workbench.attach.traffic import Ask, Placed
from workbench.attach.traffic import Reply as Given
from workbench.context.assembly import Action, Grade, Reason, Rule
from workbench.context.message import Message
from workbench.context.part import DecisionInput, MessageDecision, Part, Role
from workbench.context.reasons import explain, origin
from workbench.context.strategy import Strategy, parse
from workbench.engine.contracts import Answer, Notice
from workbench.engine.debugger.stepper import Stepper
from workbench.engine.journal.event import Event
from workbench.engine.journal.state import RunState
from workbench.importers.journal import JournalServices, Origin
from workbench.models.prices import cost
from workbench.views.call import CallView
from workbench.views.context import ContextRows, View
from workbench.views.tree import PhaseOutline, SettledNodes, TreeRows, TreeView
from workbench.workspace.attach_serving import LOOPBACK, Served, listen, proxy_runner
from workbench.workspace.attached import AttachPlan
from workbench.workspace.attaching import AttachedRun, AttachOptions, attached_run
from workbench.workspace.program_output import ProgramOutput
from workbench.workspace.project import Project
from workbench.workspace.testing import Snapshots

TOOL = {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {"type": "object"}}}


@pytest.fixture
def project(folder: Path) -> Project:
    return Project.at()


def test_bytes_pass_unchanged_and_the_calls_of_a_conversation_are_one_context(project: Project) -> None:
    with Loopback([Reply("one"), Reply("two")]) as provider:
        straight = httpx.post(f"{provider.url}/chat/completions", json={"model": "m", "messages": []}, **LOCAL)
        with session(project, provider.url) as attached:
            first = attached.chat("Hello")
            attached.chat("Hello", "two", "And now?")
        sent = provider.requests[1]
    assert sent.raw == json.dumps(sent.body, separators=(",", ":")).encode()
    assert {*straight.headers} == {*first.headers}
    assert json.loads(straight.content)["choices"] != first.json()["choices"]
    state = attached.state()
    assert [(call.place.visit, call.place.turn) for call in state.calls] == [(1, 1), (1, 2)]
    assert [entry.item.message.text for entry in state.calls[1].entries] == ["Hello", "two", "And now?"]
    assert (state.status, state.output, state.own.tokens_in) == ("success", "two", 22)


def test_a_long_request_passes_while_it_comes_and_is_recorded_whole(project: Project) -> None:
    text = "Some words. " * 30_000
    with Loopback([Reply("one"), Reply("two")]) as provider:
        with session(project, provider.url) as attached:
            attached.chat(text)
            attached.chat(text, "one", "And now?")
        first, second = provider.requests
    assert (first.raw, second.raw) == tuple(
        json.dumps(one.body, ensure_ascii=False, separators=(",", ":")).encode() for one in (first, second)
    )
    state = attached.state()
    assert [(call.place.visit, call.place.turn) for call in state.calls] == [(1, 1), (1, 2)]
    assert [entry.item.message.text for entry in state.calls[1].entries] == [text, "one", "And now?"]
    with session(project) as alone:
        gone = alone.chat(text)
    assert gone.status_code == 502
    (failed,) = alone.state().calls
    assert (failed.status, failed.entries[0].item.message.text) == ("failed", text)


@pytest.mark.parametrize(
    ("provider_name", "path", "body"),
    [
        (
            "openai",
            "/chat/completions",
            {"model": "gpt-4.1", "messages": [{"role": r, "content": "Hi"} for r in ("developer", "system", "user")]},
        ),
        (
            "anthropic",
            "/v1/messages",
            {"model": "c", "max_tokens": 9, "system": "Be brief.", "messages": [{"role": "user", "content": "Hi"}]},
        ),
        ("gemini", "/v1beta/models/g:generateContent", {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}),
        ("ollama", "/api/chat", {"model": "l", "stream": False, "messages": [{"role": "user", "content": "Hi"}]}),
    ],
)
def test_every_protocol_is_read(project: Project, provider_name: str, path: str, body: dict[str, object]) -> None:
    with Loopback([Reply("fine")]) as provider, session(project, provider.url) as attached:
        assert attached.post(provider_name, path, body).status_code == 200
        streamed = path.replace(":generate", ":streamGenerate"), {**body, "stream": True}
        assert attached.post(provider_name, *streamed).status_code == 200
    calls = attached.state().calls
    assert [call.answer and call.answer.text for call in calls] == ["fine", "fine"]
    assert all(call.tokens_in for call in calls)
    system = [entry for call in calls for entry in call.entries if entry.item.message.role == "system"]
    assert {explain(entry, entry.item.place) for entry in system} <= {"system text"}
    assert {origin(entry) for entry in system} <= {"system", "turn 1"}, "it describes no tools"


def test_a_stream_is_passed_on_piece_by_piece_and_a_client_that_leaves_is_said(project: Project) -> None:
    with Loopback() as provider, session(project, provider.url) as attached:
        asked = {"model": "slow", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
        with httpx.stream("POST", f"{attached.url('openai')}/chat/completions", json=asked, **LOCAL) as reply:
            assert next(reply.iter_bytes())
        until(lambda: any(event.kind == "exchange" for event in attached.events()), "the exchange")
    (exchange,) = [event.data for event in attached.events() if event.kind == "exchange"]
    assert "went away" in exchange["fault"] or exchange["status"] == 200


def test_the_client_gets_the_error_of_its_provider_and_one_that_names_the_workbench(project: Project) -> None:
    with Loopback() as provider, session(project, provider.url) as attached:
        refused = attached.chat("Hello", model="openai/429")
        lost = attached.chat("Hello again", model="openai/reset")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "7")
    assert (lost.status_code, "openai gave no answer: the provider reset the connection" in lost.text) == (502, True)
    call, _ = attached.state().calls
    assert call.status == "failed"
    assert "429" in call.failures[0]["error"]["message"]
    with session(project) as alone:
        gone = alone.chat("Hello")
    assert gone.status_code == 502
    words = "openai gave no answer: cannot connect to 127.0.0.1:9 (Connection refused)"
    assert gone.json()["error"]["message"] == f"workbench attach: {words}"
    assert alone.state().calls[0].status == "failed"
    visit = attached.state().visits[-1]
    assert visit.status == "failed"
    assert visit.finished < attached.state().finished, "a context has ended with its last call"


async def test_a_refusal_of_which_a_client_reads_the_status_alone_is_told_by_its_words(project: Project) -> None:
    left = asyncio.Event()

    async def refuse(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=401)
        await response.prepare(request)
        await asyncio.wait([asyncio.create_task(left.wait())], timeout=0.2)
        await response.write(b'{"error": {"message": "no such key"}}')
        return response

    async with serving(refuse) as provider:
        with session(project, provider) as attached:
            asked = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
            url = f"{attached.url('openai')}/chat/completions"
            async with httpx.AsyncClient(trust_env=False) as client, client.stream("POST", url, json=asked) as reply:
                assert reply.status_code == 401
            left.set()
            await soon(lambda: any(event.kind == "exchange" for event in attached.events()), "the exchange")
    (call,) = attached.state().calls
    assert "HTTP status 401: no such key" in call.failures[0]["error"]["message"]


@pytest.mark.parametrize(
    ("length", "told"), [(600_000, "bytes never came. It was answered with status 413"), (99, "it was not")]
)
async def test_a_request_that_breaks_off_is_said(project: Project, length: int, told: str) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}")

    provider = await asyncio.start_server(answer, LOOPBACK, 0)
    with session(project, f"http://{LOOPBACK}:{provider.sockets[0].getsockname()[1]}/v1") as attached:
        host = attached.base.removeprefix("http://")
        reader, writer = await asyncio.open_connection(*host.split(":"))
        head = f"POST /openai/v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n"
        writer.write(head.encode() + b"{".ljust(length // 2))
        if length > 99:
            assert b" 413 " in await reader.readline()
        else:
            await writer.drain()
        writer.close()
        await soon(lambda: any(event.kind == "warning" for event in attached.events()), "the warning")
    provider.close()
    (warning,) = [event.data["message"] for event in attached.events() if event.kind == "warning"]
    assert warning.startswith("a request to /chat/completions broke off")
    assert told in warning


async def test_a_large_request_is_recorded_by_itself_and_before_what_goes_on_from_it(project: Project) -> None:
    large = "word " * 80_000
    with Loopback([Reply("one"), Reply("two"), Reply("three")]) as provider, session(project, provider.url) as attached:

        def answered() -> int:
            return sum(event.kind == "exchange" for event in attached.events())

        await asyncio.to_thread(attached.chat, large)
        await soon(lambda: answered() == 1, "the record of the large request")
        await asyncio.to_thread(attached.chat, large, "one", large)
        await asyncio.to_thread(attached.chat, "Hello")
        await soon(lambda: answered() == 3, "the record of all")
    visits = [[call.answer.text for call in visit.calls if call.answer] for visit in attached.state().visits]
    assert visits == [["one", "two"], ["three"]]


async def test_a_large_request_is_told_while_it_passes_and_waits_less_for_the_record_of_another(
    project: Project,
) -> None:
    usual, during, told = sys.getswitchinterval(), list[float](), list[str]()

    async def answer(request: web.Request) -> web.StreamResponse:
        await request.read()
        during.append(sys.getswitchinterval())
        # This is what a kill would leave now: its messages are read when it is answered.
        await soon(lambda: attached.state().warnings, "a word of the request")
        told.extend(event.data["message"] for event in attached.state().warnings)
        return web.json_response({"choices": [{"message": {"role": "assistant", "content": "one"}}]})

    async with serving(answer) as upstream:
        with session(project, upstream) as attached:
            await asyncio.to_thread(attached.chat, "word " * 80_000)
            await soon(lambda: sys.getswitchinterval() == usual, "the usual interval")
    assert during[0] < usual
    words = "a request of 0.4 MB to openai/chat/completions is not in the record yet: it was on its way"
    assert (told, attached.state().warnings, len(attached.state().calls)) == ([words], [], 1)


class HandClock(asyncio.SelectorEventLoop):
    """A loop whose time goes on only when a test says so."""

    now = 0.0

    def time(self) -> float:
        return self.now

    async def goes_on(self, seconds: float) -> None:
        self.now += seconds
        for _ in range(20):
            await asyncio.sleep(0)


class Listener:
    """A witness that notes what it is told."""

    def __init__(self, late: Future[None] | None = None) -> None:
        """``late``: done when its record has caught up."""
        self.late = late
        self.told: list[Given] = []
        self.warned: list[str] = []

    def asked(self, ask: Ask, *, sent: bool = True) -> Future[Placed | None]:
        placed: Future[Placed | None] = Future()
        placed.set_result(None)
        return placed

    def replied(self, ask: Ask, reply: Given) -> None:
        self.told.append(reply)

    def caught_up(self) -> Future[None] | None:
        return self.late

    def warn(self, message: str, placed: Placed | None, code: str) -> None:
        self.warned.append(message)

    def passing(self, number: int, words: str) -> None: ...

    def secret(self, value: str) -> None: ...


@asynccontextmanager
async def told(heard: Listener, upstream: str) -> AsyncIterator[tuple[web.AppRunner, str]]:
    """A proxy in this event loop, whose requests a listener is told of; the address of its provider for clients."""
    hosts = set[str]()
    runner = proxy_runner(Proxy(addresses({}, {"openai": upstream}), heard, hosts=hosts))
    await runner.setup()
    try:
        listener = listen(LOOPBACK, 0)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)  # A client that does not read is felt soon.
        await web.SockSite(runner, listener).start()
        hosts.add(host := f"{LOOPBACK}:{runner.addresses[0][1]}")
        yield runner, f"http://{host}/{BY_NAME['openai'].prefix}"
    finally:
        await runner.cleanup()


def test_a_large_request_waits_a_tenth_of_a_second_a_megabyte_while_others_are_on_their_way() -> None:
    async def measured(clock: HandClock) -> float:
        came, go, heard = asyncio.Event(), asyncio.Event(), Listener()

        async def answer(request: web.Request) -> web.StreamResponse:
            if len(await request.read()) < 1_000:
                came.set()
                await go.wait()
            return web.json_response({"choices": [{"message": {"role": "assistant", "content": "one"}}]})

        async with serving(answer) as upstream, ClientSession() as client, told(heard, upstream) as (_, base):

            async def ask(text: str) -> None:
                body = {"model": "m", "messages": [{"role": "user", "content": text}]}
                async with client.post(f"{base}/chat/completions", json=body) as reply:
                    assert reply.status == 200, await reply.text()

            other, arrival = asyncio.create_task(ask("Hi")), asyncio.create_task(came.wait())
            await asyncio.wait({other, arrival}, return_when=asyncio.FIRST_COMPLETED)
            assert not other.done(), other
            await clock.goes_on(TELL_SECONDS * 2)
            await ask("word " * 80_000)
            began = clock.now
            while not heard.told and clock.now < began + 5:
                await clock.goes_on(0.01)
            waited = clock.now - began
            go.set()
            await other
        return waited

    with asyncio.Runner(loop_factory=HandClock) as runner:
        clock = runner.get_loop()
        assert isinstance(clock, HandClock)
        waited = runner.run(measured(clock))
    assert 0.059 <= waited <= 0.1


def test_a_recording_ends_at_once_while_a_client_waits_for_an_answer_and_says_so() -> None:
    async def ended(clock: HandClock) -> tuple[bool, list[str]]:
        came, go, heard = asyncio.Event(), asyncio.Event(), Listener()

        async def answer(request: web.Request) -> web.StreamResponse:
            came.set()
            await go.wait()
            return web.Response()

        async with serving(answer) as upstream, ClientSession() as client, told(heard, upstream) as (runner, base):
            body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
            asked = asyncio.ensure_future(client.post(f"{base}/chat/completions", json=body))
            await came.wait()
            ending = asyncio.ensure_future(runner.cleanup())
            await clock.goes_on(0)
            await clock.goes_on(0.25)
            await clock.goes_on(0.25)
            in_time = ending.done()
            await clock.goes_on(60)
            await clock.goes_on(60)
            await ending
            go.set()
            with pytest.raises(ServerDisconnectedError):
                await asked
        return in_time, [reply.fault for reply in heard.told]

    with asyncio.Runner(loop_factory=HandClock) as runner:
        clock = runner.get_loop()
        assert isinstance(clock, HandClock)
        assert runner.run(ended(clock)) == (True, ["the recording ended"])


async def asked(base: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection of a client that has sent its request, and reads no more than a line at once."""
    host = base.split("/")[2]
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    client.connect((LOOPBACK, int(host.rpartition(":")[2])))
    reader, writer = await asyncio.open_connection(sock=client, limit=1_024)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hi"}]})
    head = f"POST /openai/v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write((head + body).encode())
    await writer.drain()
    return reader, writer


async def test_a_large_refusal_is_told_before_its_client_leaves_at_the_status() -> None:
    heard, refusal = Listener(), json.dumps({"error": {"message": "not like this", "input": "x" * 200_000}})

    async def refuse(request: web.Request) -> web.StreamResponse:
        return web.Response(status=422, text=refusal)

    async with serving(refuse) as upstream, told(heard, upstream) as (_, base):
        reader, writer = await asked(base)
        assert b" 422 " in await reader.readline()
        writer.transport.abort()
        await soon(lambda: heard.told, "the refusal")
    assert [(reply.status, reply.body.decode() == refusal, reply.fault) for reply in heard.told] == [(422, True, "")]


async def test_a_client_that_leaves_while_it_waits_for_the_record_is_said() -> None:
    heard = Listener(late=Future())
    async with told(heard, f"http://{LOOPBACK}:9/v1") as (_, base):
        _, writer = await asked(base)
        writer.close()
        await soon(lambda: heard.warned, "the warning", patience=10)
    assert heard.warned == ["a request to /chat/completions broke off while the record was not ready: it was not sent"]


def test_the_first_request_waits_until_calls_can_be_recorded_so_that_a_kill_takes_none() -> None:
    class Loading(Words):
        """A counter that takes long to load, as that of a provider does."""

        loaded = threading.Event()

        def message(self, message: Message, model: str) -> tuple[int, Grade]:
            assert self.loaded.wait(PATIENCE)
            return super().message(message, model)

    counter = Loading()
    services = JournalServices(ListSink(), StepClock(), counter, FlatPrices(), cost)
    recorder = Recorder(Origin("attach", "program", "0" * 64), "run", "seen", services)
    waits = recorder.caught_up()
    assert waits is not None
    assert not waits.done()
    counter.loaded.set()
    waits.result(PATIENCE)
    assert recorder.caught_up() is None
    recorder.close("success")


def test_a_large_request_is_recorded_when_the_session_ends_behind_it(project: Project) -> None:
    with Loopback([Reply("one")]) as provider, session(project, provider.url) as attached:
        attached.chat("word " * 80_000)
    assert [call.answer.text for call in attached.state().calls if call.answer] == ["one"]


def test_a_record_that_is_far_behind_is_waited_for() -> None:
    thread, go, more = RecordThread("test"), threading.Event(), threading.Event()
    first = thread.record(go.wait, size=MOST_BEHIND)
    soon_enough = thread.caught_up()
    thread.record(more.wait)
    late = thread.caught_up()
    waits = late is not None and not late.done()
    go.set()
    assert (soon_enough, waits) == (None, True)
    assert (first.result(), late and late.result(PATIENCE), thread.caught_up()) == (True, None, None), (
        "not for all of it"
    )
    more.set()
    thread.close(int)


@pytest.mark.parametrize("coding", [ContentCoding.gzip, ContentCoding.deflate])
async def test_a_packed_reply_is_read(project: Project, coding: ContentCoding) -> None:
    async def answer(request: web.Request) -> web.Response:
        response = web.json_response({"choices": [{"message": {"role": "assistant", "content": "ok"}}]})
        response.enable_compression(coding)
        return response

    async with serving(answer) as upstream:
        with session(project, upstream) as attached:
            reply = await asyncio.to_thread(attached.chat, "Hello")
    assert reply.headers["content-encoding"] == coding.value
    assert [call.answer and call.answer.text for call in attached.state().calls] == ["ok"]


async def test_an_empty_error_of_a_provider_is_given_again_in_a_replay(project: Project) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=503)

    async with serving(answer) as upstream:
        with session(project, upstream, AttachOptions(session="live")) as live:
            refused = await asyncio.to_thread(live.chat, "Hello")
    with session(project, options=AttachOptions(replay="live")) as again:
        repeated = await asyncio.to_thread(again.chat, "Hello")
    assert (refused.status_code, repeated.status_code, repeated.content) == (503, 503, b"")


def test_a_stream_that_its_provider_cuts_is_cut_for_the_client_and_said(project: Project) -> None:
    asked = {"model": "scut", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
    with Loopback() as provider, session(project, provider.url) as attached:
        url, got = f"{attached.url('openai')}/chat/completions", list[bytes]()
        sending = httpx.stream("POST", url, json=asked, **LOCAL)
        with sending as reply, pytest.raises(httpx.RemoteProtocolError):
            got.extend(reply.iter_bytes())
    assert b"The first half" in b"".join(got)
    (exchange,) = [event.data for event in attached.events() if event.kind == "exchange"]
    assert (exchange["status"], bool(exchange["fault"])) == (200, True)
    (told,) = attached.state().warnings
    assert told.data["message"].startswith("the answer did not arrive whole: ")
    assert told.data["code"] == "attach", "nothing was imported"


async def test_requests_go_through_the_proxy_of_the_environment(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    got = list[bytes]()

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.append(await reader.readline())
        writer.write(b"HTTP/1.1 403 Not today\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(tunnel, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("NO_PROXY", "localhost")
        with session(project, "https://provider.invalid/v1") as attached:
            refused = await asyncio.to_thread(attached.chat, "Hello")
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")
        with Loopback([Reply("straight")]) as provider:
            monkeypatch.setenv("NO_PROXY", provider.url.removeprefix("http://").removesuffix("/v1"))
            with session(project, provider.url) as attached:
                assert (await asyncio.to_thread(attached.chat, "Hello")).status_code == 200
    assert got == [b"CONNECT provider.invalid:443 HTTP/1.1\r\n"]
    assert refused.status_code == 502
    words = "the proxy of the environment refused the connection (status 403 Not today)"
    assert refused.json()["error"]["message"] == f"workbench attach: openai gave no answer: {words}"


def test_calls_at_once_are_contexts_of_their_own_and_a_compaction_is_one(project: Project) -> None:
    long = ["Task", "ok", "b", "ok", "c", "ok", "d"]
    with Loopback() as provider, session(project, provider.url) as attached:
        attached.chat("Other")
        for end in (1, 3, 5, 7):
            attached.chat(*long[:end])
        attached.chat("Task", "a summary of b and c", "d")
        attached.chat("Task")  # Asked again from its beginning, as for another sample.
        attached.chat("Task", "ok", "b")
    state = attached.state()
    assert [call.place.visit for call in state.calls] == [1, 2, 2, 2, 2, 3, 4, 4]
    (told,) = [event.data for event in state.warnings if event.data["code"] == "compaction"]
    assert told["message"] == (
        "compaction: this context takes the place of context 2; 6 messages are gone (~30 tokens): "
        "assistant 'ok', user 'b', assistant 'ok' and 3 more"
    )
    assert len(told["messages"]) == 6


def test_contexts_that_alternate_keep_their_own_messages(project: Project) -> None:
    with Loopback() as provider, session(project, provider.url) as attached:
        for texts in (("A",), ("B",), ("A", "ok", "A2"), ("B", "ok", "B2"), ("A", "ok", "A2", "ok", "A3")):
            attached.chat(*texts)
    seen = [(call.place.visit, [entry.item.message.text for entry in call.entries]) for call in attached.state().calls]
    assert seen == [
        (1, ["A"]),
        (2, ["B"]),
        (1, ["A", "ok", "A2"]),
        (2, ["B", "ok", "B2"]),
        (1, ["A", "ok", "A2", "ok", "A3"]),
    ]
    running = RunState.of(e for e in attached.events() if e.kind not in ("phase_finished", "run_finished"))
    rows = TreeRows(running, TreeView((PhaseOutline("agent"),)))
    assert [rows.row(i, 60).text.split()[1:4] for i in range(1, 3)] == [["✓", "visit", "1"], ["✓", "visit", "2"]]

    for strategy, filed, words in (
        ("selective", False, "as the program made it"),
        ("selective+mask(after=1)", False, "mask(after=1)"),
        ("selective", True, "selective"),
    ):
        running.calls[0].strategy = strategy
        assert ContextRows(running.calls[0], View(filed=filed)).title_right == ((words, "dim"),)
        told = [str(block) for block in CallView(running.calls[0], filed=filed).blocks()]
        assert repr(words) in told[0]

    followed, settled, view, made = RunState(), SettledNodes(), TreeView((PhaseOutline("agent"),)), dict[str, int]()
    for event in attached.events():
        followed.apply(event)
        kept, anew = TreeRows(followed, view, settled), TreeRows(followed, view)
        assert kept.nodes == anew.nodes, "what is kept of earlier trees changes none"
        assert [kept.row(i, 90).text for i in range(len(kept))] == [anew.row(i, 90).text for i in range(len(anew))]
        made |= {node.phase + str(node.id): id(node) for node in kept.nodes if node.id[:1] == ("visit",)}
    again = [node for node in TreeRows(followed, view, settled).nodes if node.id[:1] == ("visit",)]
    assert [made[node.phase + str(node.id)] for node in again] == list(map(id, again)), "nothing is made twice"
    assert followed.figures_of(followed.visits) is followed.figures_of(followed.visits), "nothing is summed twice"


async def test_a_packed_request_passes_as_it_is_and_is_read(project: Project) -> None:
    got = list[tuple[str, bytes]]()

    async def answer(request: web.Request) -> web.Response:
        got.append((request.headers["Content-Encoding"], await request.read()))
        return web.json_response({"choices": [{"message": {"role": "assistant", "content": "ok"}}]})

    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hello"}]}).encode()
    sent = [("gzip", gzip.compress(body)), ("zstd", b"packed in another way")]
    async with serving(answer) as upstream, httpx.AsyncClient(**LOCAL) as client:
        with session(project, upstream) as attached:
            for coding, packed in sent:
                headers = {"Content-Type": "application/json", "Content-Encoding": coding}
                await client.post(f"{attached.url('openai')}/chat/completions", content=packed, headers=headers)
    assert got == sent
    state = attached.state()
    assert [entry.item.message.text for call in state.calls for entry in call.entries] == ["Hello"]
    assert "passed on unseen" in state.warnings[0].data["message"]


UNSEEN = "a request to /chat/completions is passed on unseen: "


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b'{"model": ', "its body cannot be read as JSON"),
        (b'["model"]', "it holds no messages that can be read"),
        (b'{"model": 5, "messages": "Hello"}', "it holds no messages that can be read"),
    ],
)
async def test_a_request_without_readable_messages_gets_the_error_of_its_provider_and_is_told(
    project: Project, body: bytes, why: str
) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=b"no: " + await request.read(), status=400)

    async with serving(answer) as upstream, httpx.AsyncClient(**LOCAL) as client:
        with session(project, upstream) as attached:
            kind = {"Content-Type": "application/json"}
            got = await client.post(f"{attached.url('openai')}/chat/completions", content=body, headers=kind)
            await client.post(f"{attached.url('openai')}/files", content=b"[]", headers=kind)
    assert (got.status_code, got.content) == (400, b"no: " + body)
    assert [event.data["message"] for event in attached.state().warnings] == [UNSEEN + why]


async def test_a_cookie_of_the_provider_is_for_the_client_that_got_it(project: Project) -> None:
    got = list[str | None]()

    async def answer(request: web.Request) -> web.Response:
        got.append(request.headers.get("Cookie"))
        response = web.json_response({"choices": [{"message": {"role": "assistant", "content": "ok"}}]})
        response.set_cookie("client", "1")
        return response

    async with serving(answer) as upstream:
        with session(project, upstream.replace("127.0.0.1", "localhost")) as attached:
            for _ in range(2):
                async with httpx.AsyncClient(**LOCAL) as client:
                    asked = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
                    reply = await client.post(f"{attached.url('openai')}/chat/completions", json=asked)
                    assert reply.cookies["client"] == "1"
    assert got == [None, None]


async def test_a_number_of_tokens_is_the_providers_and_offline_the_workbenchs_own(project: Project) -> None:
    asked = {"model": "claude-sonnet-4-5", "messages": [{"role": "user", "content": "How many words are these?"}]}
    contents = {"contents": [{"role": "user", "parts": [{"text": "How many words are these?"}]}]}
    paths: dict[str, tuple[str, dict[str, Any], str]] = {
        "/v1/messages/count_tokens": ("anthropic", asked, "input_tokens"),
        "/v1beta/models/g:countTokens": ("gemini", contents, "totalTokens"),
        "/v1beta/models/h:countTokens": ("gemini", {"generateContentRequest": contents}, "totalTokens"),
    }
    got = list[str]()

    async def answer(request: web.Request) -> web.Response:
        got.append(request.headers.get("anthropic-beta", ""))
        return web.json_response({"input_tokens": 4711, "totalTokens": 4711})

    async with serving(answer) as upstream:
        with session(project, upstream, AttachOptions(session="live")) as live:
            live_counts = await counts_of(live, paths)
    with session(project, options=AttachOptions(replay="live")) as again:
        replayed = await counts_of(again, paths)
    with session(project, options=AttachOptions(offline=True)) as offline:
        own = await counts_of(offline, paths)
    assert live_counts == replayed == [4711] * 3
    assert all(5 < count < 30 for count in own)
    assert own[1] == own[2]
    assert got == ["a-beta-of-theirs"] * 3
    assert (live.state().calls, again.state().status) == ([], "success")


async def counts_of(attached: Session, paths: Mapping[str, tuple[str, dict[str, Any], str]]) -> list[int]:
    """What a session answers to requests for numbers of tokens."""
    found = []
    for path, (provider, body, key) in paths.items():
        headers = {"anthropic-beta": "a-beta-of-theirs"}
        reply = await asyncio.to_thread(attached.post, provider, path, body, **headers)
        found.append(reply.json()[key])
    return found


async def test_ids_that_a_client_draws_for_calls_of_gemini_make_no_difference(project: Project) -> None:
    def body(drawn: str) -> dict[str, Any]:
        call = {"functionCall": {"id": drawn, "name": "look", "args": {}}}
        result = {"functionResponse": {"id": drawn, "name": "look", "response": {"result": "a wall"}}}
        contents = [{"role": "user", "parts": [{"text": "Look"}]}, {"role": "model", "parts": [call]}]
        return {"contents": [*contents, {"role": "user", "parts": [result]}]}

    path = "/v1beta/models/g:generateContent"
    replies, options = [Reply("", calls=[("look", "{}")]), Reply("done")], AttachOptions(session="live")
    with Loopback(replies) as provider, session(project, provider.url, options) as live:
        live.post("gemini", path, {"contents": body("a")["contents"][:1]})
        live.post("gemini", path, body("a"))
    first, second = live.state().calls
    assert (first.place.visit, second.place.visit) == (1, 1)
    assert [tool.tool for tool in first.tools] == ["look"]
    with session(project, options=AttachOptions(replay="live")) as again:
        again.post("gemini", path, {"contents": body("b")["contents"][:1]})
        assert again.post("gemini", path, body("b")).status_code == 200


def test_pictures_and_answers_of_a_long_session_do_not_stay_in_memory(project: Project) -> None:
    half, size, before = 15, 100_000, 0

    def held() -> int:
        """Bytes in blocks of the size of pictures: what another thread imports in the meantime is in small ones."""
        return sum(trace.size for trace in tracemalloc.take_snapshot().traces if trace.size >= size // 2)

    def ask(run: AttachedRun, number: int) -> None:
        data = base64.b64encode(number.to_bytes(2, "big") * (size // 2)).decode()
        said = [
            {"role": "user", "content": f"{number}"},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}]},
        ]
        asked = Ask(number, "openai", "/chat/completions", {"model": "gpt-4.1-mini", "messages": said})
        body = rendered(asked.path, {}, Answer("A wall."), f"chatcmpl-{number}")
        assert body is not None
        run.recorder.asked(asked).result()
        run.recorder.replied(asked, Given(200, *body, 0.1))

    with attached_run(project, AttachOptions()) as run:
        tracemalloc.start()
        try:
            for number in range(2 * half):
                if number == half:
                    before = held()
                ask(run, number)
            after = held()
        finally:
            tracemalloc.stop()
    assert after - before < half * size / 4
    assert RunState.of(project.store.events(run.run_id)).own.calls == 2 * half


def test_ids_that_codex_draws_make_no_difference(project: Project) -> None:
    def body(drawn: str) -> dict[str, Any]:
        message = {"type": "message", "id": f"msg_{drawn}", "role": "user", "content": "Hello"}
        return {"model": "m", "input": [message], "client_metadata": {"turn_id": drawn}, "prompt_cache_key": drawn}

    with session(project, options=AttachOptions(session="live", offline=True)) as live:
        live.post("openai", "/responses", body("a"))
    with session(project, options=AttachOptions(replay="live")) as again:
        assert again.post("openai", "/responses", body("b")).status_code == 200


def test_what_programs_draw_anew_at_each_start_makes_no_difference_and_is_said(project: Project) -> None:
    """As Codex and Gemini CLI write the results of shell commands, and what they say of their surroundings."""

    def texts(day: datetime, folder: str, drawn: int) -> list[str]:
        dated = f"Today's date is {day:%A, %B} {day.day}, {day.year}; {day:%Y-%m-%d} 10:0{drawn}:00"
        result = f"Chunk ID: 0a80{drawn}5\nWall time: 0.000{drawn} seconds\nProcess Group PGID: 1077{drawn}"
        more = f"5d3c8be0-6c1f-4a39-8fb8-5f0e1b4a4d0{drawn}, 1 passed in 0.0{drawn}s at 127.0.0.1:4338{drawn}"
        # Claude Code names what it keeps of a project by the project's folder.
        kept = f"~/.claude/projects/{folder.replace('/', '-')}/memory"
        return [f"<cwd>{folder}/a</cwd> {dated} {kept}", "Looked", result, "Read", more]

    now, options = datetime.now(UTC), AttachOptions(session="live", offline=True, folder="/srv/past")
    with session(project, options=options) as live:
        live.chat(*texts(now - timedelta(days=1), "/srv/past", 1))
    replay = AttachOptions(replay="live", folder="/srv/now")
    with session(project, options=replay) as again:
        asked = texts(now, "/srv/now", 2)
        assert again.chat(*asked).status_code == 200
    (told,) = [warning.data["message"] for warning in again.state().warnings]
    assert told.startswith("request 1 is that of agent#1:3 but for what programs draw anew: folder /srv/past, now ")
    asked[2] += "0 files"
    with session(project, options=replay) as changed:
        assert "message 3 is not that of agent#1:3: recorded user" in changed.chat(*asked).json()["error"]["message"]
    past = datetime(2026, 3, 1, 12, tzinfo=UTC)
    before, after = Drawn(Surroundings(past, "/srv/past")), Drawn(Surroundings(now, "/srv/now"))
    assert before.digest(texts(past, "/srv/past", 1)) == after.digest(texts(now, "/srv/now", 2))
    for text in ("process 4 files", "sleep 10 s", "it is 2019-01-02", "/srv/nowhere", "localhost:8000", "task id: 12"):
        assert after.values(text) == []
    top = Drawn(Surroundings(now, "/srv/"))
    assert top.values("in /srv/a and run-srv") == [("folder", "/srv")], "a word of one folder may be any word"


async def test_a_client_may_go_on_at_the_mark_that_ends_a_stream(project: Project) -> None:
    """Many do, and hang up; the connection of the provider stays open for longer."""
    gone = list[asyncio.Event]()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        delta = {"content": 'a text with "data: [DONE]" in it'}
        await response.write(b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode() + b"\n\n")
        end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        await response.write(b"data: " + json.dumps(end).encode() + b"\n\ndata: [DO")
        await response.write(b"NE]\n\n")
        gone.append(asyncio.Event())
        await gone[-1].wait()
        return response

    said: list[dict[str, str]] = [{"role": "user", "content": "Hello"}]
    async with serving(answer) as upstream:
        with session(project, upstream, AttachOptions(session="live")) as attached:
            async with httpx.AsyncClient(**LOCAL) as client:
                for _ in range(2):
                    asked = {"model": "m", "messages": said, "stream": True}
                    url, got = f"{attached.url('openai')}/chat/completions", ""
                    async with client.stream("POST", url, json=asked) as reply:
                        async for piece in reply.aiter_text():
                            got += piece
                            if got.endswith("data: [DONE]\n\n"):
                                break
                    said += [{"role": "assistant", "content": delta_text(got)}, {"role": "user", "content": "Go on"}]
            for one in gone:
                one.set()
        with session(project, options=AttachOptions(replay="live")) as again:
            for end in (1, 3):
                body = {"model": "m", "messages": said[:end], "stream": True}
                reply = await asyncio.to_thread(again.post, "openai", "/chat/completions", body)
                assert reply.status_code == 200
    state = attached.state()
    assert [(call.place.visit, call.place.turn, call.status) for call in state.calls] == [
        (1, 1, "done"),
        (1, 2, "done"),
    ]
    assert [event.data["fault"] for event in attached.events() if event.kind == "exchange"] == ["", ""]


def delta_text(stream: str) -> str:
    """The text of the first event of a stream."""
    return str(json.loads(stream.partition("data: ")[2].partition("\n")[0])["choices"][0]["delta"]["content"])


@pytest.mark.parametrize("code", [1000, 4001])
async def test_a_web_socket_passes_frame_by_frame_and_is_said(project: Project, code: int) -> None:
    async def echo(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=["realtime"])
        await socket.prepare(request)
        async for message in socket:
            await socket.send_str(f"{request.headers['Authorization']}: {message.data}")
            if message.data == "bye":
                await socket.close(code=code)
        return socket

    async with serving(echo) as upstream:
        with session(project, upstream) as attached:
            async with ClientSession() as client:
                where = f"{attached.url('openai')}/realtime"
                headers = {"Authorization": "Bearer key-4711"}
                async with client.ws_connect(where, headers=headers, protocols=["realtime"]) as socket:
                    await socket.send_str("hello")
                    assert await socket.receive_str() == "Bearer key-4711: hello"
                    await socket.send_str("bye")
                    assert await socket.receive_str() == "Bearer key-4711: bye"
                    await socket.receive()
                    assert (socket.close_code, socket.protocol) == (code, "realtime")
                with pytest.raises(WSServerHandshakeError):
                    await client.ws_connect(f"{attached.url('openai')}/elsewhere")
    assert "a WebSocket to /realtime is passed on" in attached.state().warnings[0].data["message"]


async def test_responses_over_a_web_socket_are_recorded_and_given_again(project: Project) -> None:
    """As the SDK of OpenAI and Codex ask for them: one after the other, or side by side."""
    asked = (
        socket_asked("a", "one"),
        socket_asked("a", "one", "To one", "two"),
        socket_asked("b", "other"),
        socket_asked("c", "other", model="unknown"),
    )

    async def ask(attached: Session, *messages: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The events that end the answers."""
        ends: list[dict[str, Any]] = []
        async with ClientSession() as client, client.ws_connect(f"{attached.url('openai')}/responses") as socket:
            for together in (messages[:1], messages[1:]):
                for message in together:
                    await socket.send_json(message)
                count = len(ends) + len(together)
                while len(ends) < count:
                    event = await socket.receive_json()
                    ends += [event] if event["type"] in ("response.completed", "error") else []
        return sorted(ends, key=lambda event: str(event.get("stream_id")))

    async with serving(answer_socket) as upstream:
        with session(project, upstream, AttachOptions(session="live")) as attached:
            live = await ask(attached, *asked)
    calls = attached.state().calls
    told = [(call.place.visit, call.place.turn, call.answer and call.answer.text) for call in calls]
    assert told == [(1, 1, "To one"), (1, 2, "To two"), (2, 1, "To other"), (3, 1, None)]
    assert (calls[0].tokens_in, calls[3].status) == (20, "failed")
    assert "no such model" in calls[3].failures[0]["error"]["message"]

    with session(project, options=AttachOptions(replay="live")) as again:
        assert await ask(again, *asked) == live
        (refused,) = await ask(again, socket_asked("d", "something else"))
    assert (refused["status"], refused["stream_id"]) == (409, "d")
    assert "request 5 is one more than the recording has" in refused["error"]["message"]
    with session(project, options=AttachOptions(offline=True)) as offline:
        (answered,) = await ask(offline, asked[0])
        (steered,) = await ask(offline, {"type": "response.steer", "input": []})
    assert answered["response"]["output"][0]["content"][0]["text"]
    assert "no offline model answers response.steer" in steered["error"]["message"]


@pytest.mark.parametrize(
    ("protocol", "offline", "status", "said"),
    [
        ("h2c", False, 501, "connections that change to another protocol than WebSocket are not passed on"),
        ("websocket", True, 501, "/realtime is a WebSocket, which no recording and no offline model answers"),
        ("WebSocket", False, 502, "openai gave no answer: "),
    ],
)
def test_an_upgrade_that_nobody_takes_is_refused_with_a_sentence(
    project: Project, protocol: str, offline: bool, status: int, said: str
) -> None:
    headers = {"Connection": "Upgrade", "Upgrade": protocol}
    with session(project, options=AttachOptions(offline=offline)) as attached:
        path = "realtime" if offline else "responses"
        reply = httpx.get(f"{attached.url('openai')}/{path}", headers=headers, **LOCAL)
    assert (reply.status_code, said in reply.json()["error"]["message"]) == (status, True), reply.text
    assert attached.state().warnings == []


def test_credentials_go_to_the_provider_and_nowhere_else(project: Project) -> None:
    key = "a-key-that-looks-like-none-4711"
    with (
        Loopback([Reply(f"Your key is {key}.", finish_reason=f"at {key}", calls=[(key, "{}")])]) as provider,
        session(project, provider.url) as attached,
    ):
        attached.post(
            "openai",
            "/chat/completions",
            {"model": "m", "messages": [{"role": "user", "content": f"I use {key}"}]},
            Authorization=f"Bearer {key}",
        )
    assert provider.requests[0].headers["authorization"] == f"Bearer {key}"
    folder = project.store.folder(attached.run.run_id)
    stored = b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())
    assert b"redacted client_key_1" in stored
    assert key.encode() not in stored


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"Origin": "http://evil.test"}, 403), ({"Host": "evil.test"}, 403), ({"Sec-Fetch-Site": "cross-site"}, 403)],
)
def test_a_web_page_reaches_nothing(project: Project, headers: dict[str, str], status: int) -> None:
    with Loopback() as provider, session(project, provider.url) as attached:
        asked = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
        assert attached.post("openai", "/chat/completions", asked, **headers).status_code == status
        upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", **headers}
        opened = httpx.get(f"{attached.url('openai')}/responses", headers=upgrade, **LOCAL)
        assert opened.status_code == status
        assert httpx.get(f"{attached.base}/elsewhere", **LOCAL).status_code == 404
    assert provider.requests == []


def test_elsewhere_than_on_this_machine_the_address_needs_its_token(project: Project) -> None:
    with Loopback() as provider, session(project, provider.url, token="a-token-of-this-test") as attached:
        assert attached.chat("Hi").status_code == 200
        wrong = attached.base.replace("a-token", "b-token")
        assert httpx.post(f"{wrong}/openai/v1/chat/completions", json={}, **LOCAL).status_code == 403
    assert len(provider.requests) == 1


def test_the_sdk_of_openai_runs_a_tool_loop_that_can_be_replayed_strictly(project: Project) -> None:
    import openai  # 0.4 s, which every worker would spend when it collects the tests

    def agent(base: str, question: str) -> str:
        client = openai.OpenAI(base_url=base, api_key="k", max_retries=0)
        messages: list[Any] = [{"role": "user", "content": question}]
        create: Any = client.chat.completions.create
        stream = create(model="gpt-4.1", messages=messages, tools=[TOOL], stream=True)
        call = next(call for one in list(stream) for call in one.choices[0].delta.tool_calls or ())
        called = {"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": "{}"}}
        messages += [{"role": "assistant", "tool_calls": [called]}]
        messages += [{"role": "tool", "tool_call_id": call.id, "content": "a wall"}]
        return str(create(model="gpt-4.1", messages=messages, tools=[TOOL]).choices[0].message.content)

    with Loopback([Reply("", calls=[("look", "{}")]), Reply("A wall.")]) as provider:
        with session(project, provider.url, AttachOptions(session="live")) as live:
            assert agent(live.url("openai"), "What is there?") == "A wall."
        assert [tool.tool for call in live.state().calls for tool in call.tools] == ["look"]
        with session(project, provider.url, AttachOptions(replay="live")) as again:
            assert agent(again.url("openai"), "What is there?") == "A wall."
        assert len(provider.requests) == 2, "a replay asks no provider"
        with session(project, provider.url, AttachOptions(replay="live")) as longer:
            agent(longer.url("openai"), "What is there?")
            with pytest.raises(openai.ConflictError, match="request 3 is one more than the recording has"):
                agent(longer.url("openai"), "What is there?")
        assert all(call.recorded for call in again.state().calls)
        with (
            session(project, provider.url, AttachOptions(replay="live")) as changed,
            pytest.raises(openai.ConflictError, match=r"message 1 is not that of agent#1:1: recorded user 'What is"),
        ):
            agent(changed.url("openai"), "What is behind it?")
        with session(project, provider.url, AttachOptions(reuse="live")) as reused:
            assert reused.chat("Something else").status_code == 200
        assert len(provider.requests) == 3


def test_the_first_difference_is_shown_where_it_is(project: Project) -> None:
    long = "The same words again and again. " * 10
    with session(project, options=AttachOptions(session="live", offline=True)) as live:
        live.chat(long + "It is Monday.")
    with session(project, options=AttachOptions(replay="live")) as again:
        told = again.chat(long + "It is Friday.").json()["error"]["message"]
    assert "recorded user '…in and again. It is Monday.', now user '…in and again. It is Friday.'" in told


@pytest.mark.parametrize(
    ("texts", "more", "told"),
    [
        (["Hello", "x", "More"], {}, "message 2 is not that of agent#2:2: recorded assistant 'Hi', now assistant 'x'"),
        (["Hello", "Hi"], {}, "message 3 is not that of agent#2:2: recorded user 'Go on', now nothing"),
        (["Hello", "Hi", "Go on"], {"temperature": 0.5}, "has the messages of agent#2:2, but other temperature"),
    ],
)
def test_a_difference_is_to_the_recorded_request_with_most_messages_in_common(
    project: Project, texts: list[str], more: dict[str, Any], told: str
) -> None:
    with session(project, options=AttachOptions(session="live", offline=True)) as live:
        live.chat("Something else")
        live.chat("Hello", "Hi", "Go on")
    with session(project, options=AttachOptions(replay="live")) as again:
        assert told in again.chat(*texts, **more).json()["error"]["message"]


def test_the_sdk_of_openai_reads_streams_of_the_offline_model(project: Project) -> None:
    import openai  # as above

    with session(project, options=AttachOptions(offline=True)) as attached:
        client = openai.OpenAI(base_url=attached.url("openai"), api_key="k", max_retries=0)
        with client.responses.stream(model="gpt-4.1", input="Hi") as stream:
            events = list(stream)
            response = stream.get_final_response()
        chat: Any = client.chat.completions.create
        asked: dict[str, Any] = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "Hi"}]}
        first, *pieces, last = [piece.choices[0].delta.content for piece in chat(**asked, stream=True)]
    assert (first, len(pieces) > 1, last) == ("", True, None)
    assert "".join(pieces).startswith("[offline] ")
    assert response.output_text
    assert response.created_at == 0
    done = [event.item.to_dict()["id"] for event in events if event.type == "response.output_item.done"]
    assert done == [item.to_dict()["id"] for item in response.output]
    assert list(dict.fromkeys(event.type for event in events)) == [
        "response.created",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]


def test_every_line_of_the_offline_model_in_the_protocol_of_ollama_has_a_time(project: Project) -> None:
    body = {"model": "l", "messages": [{"role": "user", "content": "Hi"}]}
    with session(project, options=AttachOptions(offline=True)) as attached:
        lines = [json.loads(line) for line in attached.post("ollama", "/api/chat", body).text.splitlines()]
    assert "".join(line["message"]["content"] for line in lines)
    assert {datetime.fromisoformat(line["created_at"]) for line in lines} == {datetime.fromtimestamp(0, UTC)}


def test_a_sweep_of_a_watched_program_names_what_tries_a_strategy_on_it(project: Project) -> None:
    watched = AttachOptions(session="watched")
    with Loopback([Reply("one"), Reply("two")]) as provider, session(project, provider.url, watched) as attached:
        attached.chat("Hello")
        attached.chat("Hello", "one", "More")
    swept = run_cli("sweep", "watched", "--strategy", "slide(turns=1)")
    assert swept.code == 0, swept.err
    assert "workbench attach --strategy 'slide(turns=1)' -- COMMAND" in swept.err
    assert "--live" not in swept.err


def test_hostile_text_of_a_program_acts_nowhere(project: Project) -> None:
    odd = HOSTILE.encode("utf-8", "replace").decode()
    with Loopback([Reply(odd)]) as provider, session(project, provider.url, AttachOptions(session="odd")) as attached:
        attached.chat(odd)
    shown = run_cli("context", "odd", "--text")
    assert shown.code == 0
    assert "\x1b" not in shown.out
    assert "\x9b" not in shown.out


def test_the_command_runs_a_program_and_hands_on_its_exit_code(folder: Path) -> None:
    Path("agent.py").write_text(
        "import json, os, sys, urllib.request\n"
        "body = {'model': 'm', 'messages': [{'role': 'user', 'content': 'Hi'}]}\n"
        "url = os.environ['OPENAI_BASE_URL'] + '/chat/completions'\n"
        "asked = urllib.request.Request(url, json.dumps(body).encode(), {'Content-Type': 'application/json'})\n"
        "print(json.load(urllib.request.urlopen(asked))['choices'][0]['message']['content'])\n"
        "json.dump(dict(os.environ), open('env.json', 'w'))\n"
        "sys.exit(7)\n"
    )
    Path("r.yaml").write_text("replies: {agent: [{text: scripted}]}\n")
    way = ("attach", "--offline", "--replies", "r.yaml", "--session", "s", "--json")
    # A proxy of the user's own, which reaches nothing of this machine, is none for the way to the workbench.
    env = {**os.environ, "HTTP_PROXY": "http://127.0.0.1:9", "no_proxy": "intranet.invalid"}
    env.pop("TIKTOKEN_CACHE_DIR", None)
    words = [*WORKBENCH, *way, "--", sys.executable, "agent.py"]
    ended = subprocess.run(words, capture_output=True, timeout=PATIENCE, env=env)
    assert (ended.returncode, ended.stdout.splitlines()[0]) == (7, b"scripted"), ended.stderr
    found = json.loads(Path("env.json").read_text())
    changed = {name for name, value in found.items() if env.get(name) != value} - client_variables("").keys()
    keys = {key for one in PROVIDERS for key in one.keys}
    assert changed <= keys | {"NO_PROXY", "no_proxy"}  # and nothing that the workbench sets for itself
    project = Project.at()
    told = project.store.summary(project.store.find("s"))
    (said,) = json.loads(ended.stdout.partition(b"\n")[2])
    assert said == {
        "session": "s", "run_id": told.run_id, "status": "failed", "reason": told.reason,
        "calls": 1, "not_asked": 0, "fault": "",
    }  # fmt: skip
    assert (told.status, told.calls, told.output) == ("failed", 1, "scripted")
    assert run_cli("attach", "--replay", "nothing").code == 2
    assert run_cli("attach", "--offline", "--reuse", "s").code == 2
    assert run_cli("attach", "--headless", "--pause", "--", "true").code == 2
    assert run_cli("attach", "--terminal").code == 2


def test_offline_answers_are_scripted_beside_the_program(folder: Path) -> None:
    Path("own").mkdir()
    Path("own/agent.py").write_text(
        "import json, os, urllib.request\n"
        "body = {'model': 'm', 'messages': [{'role': 'user', 'content': 'Hi'}]}\n"
        "url = os.environ['OPENAI_BASE_URL'] + '/chat/completions'\n"
        "asked = urllib.request.Request(url, json.dumps(body).encode(), {'Content-Type': 'application/json'})\n"
        "print(json.load(urllib.request.urlopen(asked))['choices'][0]['message']['content'])\n"
    )

    def said(*more: str) -> str:
        name = f"s{len(more)}{Path('own/agent.replies.yaml').exists():d}"
        ended = run_cli("attach", "--offline", "--session", name, *more, "--", sys.executable, "-u", "own/agent.py")
        assert ended.code == 0, ended.err
        return Project.at().store.summary(Project.at().store.find(name)).output

    assert said() == (
        "[offline] no reply is scripted for phase 'agent', turn 1: --replies FILE scripts what the model says, and so "
        "does a file beside the program, such as agent.replies.yaml"
    )
    Path("own/agent.replies.yaml").write_text("replies: {agent: [{text: from beside}]}\n")
    assert said() == "from beside"
    Path("other.yaml").write_text("replies: {}\n")
    assert said("--replies", "other.yaml").endswith("phase 'agent', turn 1 in other.yaml")


def test_the_playground_asks_no_other_server_than_the_program_unless_told(folder: Path) -> None:
    program = (
        "import json, os, urllib.request\n"
        "body = {'model': 'gpt-4o-mini', 'messages': [{'role': 'user', 'content': 'Hi'}]}\n"
        "url = os.environ['OPENAI_BASE_URL'] + '/chat/completions'\n"
        "asked = urllib.request.Request(url, json.dumps(body).encode(), {'Content-Type': 'application/json'})\n"
        "urllib.request.urlopen(asked).read()\n"
    )
    Path("agent.py").write_text(program)
    with Loopback() as provider:
        upstream = ("--upstream", f"openai={provider.url.replace('//', '//me:secret@')}")
        assert run_cli("attach", *upstream, "--session", "s", "--", sys.executable, "agent.py").code == 0
        refused = run_cli("playground", "s", "--at", "agent:1")
        assert refused.code == 2
        assert f"the program asked openai at {provider.url}, and the playground would ask the provider" in refused.err
        journal = b"".join(path.read_bytes() for path in Path(".workbench/journal").rglob("*.jsonl"))
        assert b"secret@" not in journal
        asked = len(provider.requests)
        told = run_cli("playground", "s", "--at", "agent:1", "--base-url", provider.url)
        assert (told.code, len(provider.requests)) == (0, asked + 1), told.err


def test_a_session_without_an_answer_failed_and_says_why(project: Project) -> None:
    with Loopback([Reply("fine")]) as provider:
        with session(project, provider.url, AttachOptions(session="none")) as none:
            none.chat("Hello", model="openai/401")
            none.chat("Hi", model="openai/429")
        with session(project, provider.url, AttachOptions(session="some")) as some:
            some.chat("Hello")
            some.chat("Hi", model="openai/401")
        with session(project, provider.url, AttachOptions(session="again")) as again:
            again.chat("Hello", model="openai/429@1")
            again.chat("Hello", model="openai/429@1")
    state = none.state()
    assert state.status == "failed"
    assert state.reason.startswith("none of 2 calls was answered; the last: HTTP status 429: ")
    state = some.state()
    assert state.status == "success"
    (told,) = state.warnings
    assert str(told.data["message"]).startswith("1 of 2 contexts ended without an answer; the last: HTTP status 401: ")
    assert told.place.visit == 2
    state = again.state()
    assert [call.status for call in state.calls] == ["failed", "done"]
    assert (state.status, state.warnings) == ("success", []), "the client asked again, and was answered"


def test_streams_without_a_number_of_tokens_are_told_with_the_option_that_brings_it(project: Project) -> None:
    with Loopback([Reply("fine", usage=None)]) as provider, session(project, provider.url) as attached:
        attached.chat("Hello", stream=True)
        attached.chat("Hi", stream=True)
        attached.chat("Hey")
    state = attached.state()
    assert state.own.told_out is None
    assert [str(one.data["message"]) for one in state.warnings] == [
        '2 streamed answers state no tokens: OpenAI states them where the request has "stream_options": '
        '{"include_usage": true}'
    ]


def test_a_program_that_survives_the_failure_of_all_its_calls_can_be_frozen(folder: Path) -> None:
    Path("agent.py").write_text(
        "import json, os, urllib.request, urllib.error\n"
        "body = {'model': 'm/401', 'messages': [{'role': 'user', 'content': 'Hello'}]}\n"
        "url = os.environ['OPENAI_BASE_URL'] + '/chat/completions'\n"
        "asked = urllib.request.Request(url, json.dumps(body).encode(), {'Content-Type': 'application/json'})\n"
        "try: urllib.request.urlopen(asked)\n"
        "except urllib.error.HTTPError as fault: print(fault.code)\n"
    )
    with Loopback() as provider:
        words = ("attach", "--session", "s", "--upstream", f"openai={provider.url}")
        recorded = run_cli(*words, "--", sys.executable, "agent.py")
    assert recorded.code == 0, "the exit code is the command's"
    assert "the call got no answer: HTTP status 401: " in recorded.err
    assert run_cli("runs", "--json").json[0]["status"] == "failed"
    frozen = run_cli("test", "freeze", "s", "--name", "agent")
    assert frozen.code == 0, frozen.err
    assert run_cli("test", "run", "--commands").code == 0


def test_a_frozen_session_is_a_test_that_runs_its_command_again(folder: Path) -> None:
    program = (
        "import json, os, urllib.request\n"
        "body = {'model': 'm', 'messages': [{'role': 'user', 'content': 'QUESTION'}]}\n"
        "url = os.environ['OPENAI_BASE_URL'] + '/chat/completions'\n"
        "asked = urllib.request.Request(url, json.dumps(body).encode(), {'Content-Type': 'application/json'})\n"
        "urllib.request.urlopen(asked).read()\n"
    )
    agent = Path("agent.py")
    agent.write_text(program)
    recorded = run_cli("attach", "--offline", "--session", "s", "--", sys.executable, "agent.py")
    assert recorded.code == 0, recorded.err
    assert run_cli("test", "freeze", "s", "--name", "agent").code == 0
    store = Project.at().store
    with store.create("cut-off") as journal:
        for event in list(store.events(store.find("s")))[:-1]:
            journal.append(replace(event, run_id="cut-off"))
    unended = run_cli("test", "freeze", "cut-off", "--name", "agent")
    assert "has not ended: it cannot be frozen (attach to the program again, and let it end)" in unended.err
    unasked = run_cli("test", "run")
    assert unasked.code == 0
    assert unasked.out.splitlines()[0].split() == ["skipped", "agent"]
    assert "it runs a command: " in " ".join(unasked.out.split())
    assert "0 passed, 0 failed, 1 skipped; 0 calls replayed, 0 made" in unasked.err
    assert '<skipped message="it runs a command: ' in run_cli("test", "run", "--format", "junit").out
    (told,) = run_cli("test", "run", "--json").json
    assert (told["passed"], told["skipped"][:17], told["error"]) == (False, "it runs a command", "")
    assert run_cli("test", "replay", "agent").code == 2, "a test that is named and not run is no success"
    asked = run_cli("test", "run", "--commands")
    assert (asked.code, asked.err.strip()) == (0, "1 passed, 0 failed; 1 call replayed, 0 made")
    with Snapshots(Project.at(), commands=True) as snapshots:
        file = snapshots.path("agent")
        assert snapshots.replay(file).passed
        agent.write_text(program.replace("QUESTION", "Another"))
        changed = snapshots.replay(file)
        assert changed.first.startswith("request 1, message 1 is not that of agent#1:1: recorded user 'QUESTION', now")
        agent.write_text(program + "raise SystemExit(3)\n")
        ended = snapshots.replay(file)
        assert ended.first == "the command ended with exit code 3; when it was frozen: it ended well"
        snapshots.accept(ended)
        assert snapshots.replay(file).passed
        assert snapshots.about(file).kind == "strict"
    agent.write_text(program.replace("'QUESTION'", "str(os.getpid())"))
    assert run_cli("attach", "--offline", "--session", "t", "--", sys.executable, "agent.py").code == 0
    unproven = run_cli("test", "freeze", "t", "--name", "another")
    assert unproven.code != 0
    assert "its command does not do the same again: request 1, message 1 is not that of" in unproven.err
    assert not Path("snapshots/another.json").exists()
    assert run_cli("test", "freeze", "t", "--name", "another", "--no-replay").code == 0


def test_more_interrupts_do_not_break_the_end_of_a_recording_off(project: Project) -> None:
    words = [*WORKBENCH, "attach", "--offline", "--port", "0", "--session", "interrupted"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        process.stderr.readline()

        def over() -> bool:
            process.send_signal(signal.SIGINT)
            return process.poll() is not None

        until(over, "the end of the recording")
        said = process.stderr.read()
    assert " ".join(said.split()) == "no model call was recorded; does the program read the variables?"
    assert project.store.summary(project.store.find("interrupted")).status == "success"


async def test_the_app_is_told_that_a_provider_is_waited_for_and_where_the_program_prints(project: Project) -> None:
    program = (
        "import os, urllib.request as u\n"
        'body = b\'{"model": "m", "messages": [{"role": "user", "content": "Hi"}]}\'\n'
        "u.urlopen(u.Request(os.environ['OPENAI_BASE_URL'] + '/chat/completions', body)).read()\n"
        "print('printed'); raise SystemExit(3)\n"
    )
    served = Served(listen(LOOPBACK, 0), addresses({}), (sys.executable, "-c", program))
    plan = AttachPlan(AttachOptions("python", offline=True), served, project.root, project.root / "printed")
    notices, events = list[Notice](), list[Event]()
    outcome = await plan.record(project, Stepper(), events.append, notices.append)
    assert outcome.status == "failed"
    assert ("waiting", "agent", 1) in [(one.kind, one.place.phase, one.place.turn) for one in notices]
    told = [one.data["message"] for one in notices if one.kind == "told"]
    assert [one.data["message"][:15] for one in notices if one.kind == "hint"] == ["The tab Program"]
    assert "The command ended with exit code 3. The tab Program shows what it printed." in told
    assert ProgramOutput(project.root / "printed").tail() == "printed\n"


class Forgetful(Part, frozen=True):
    """A part with a mistake: it drops answers with calls, and keeps the results."""

    NAME: ClassVar[str] = "forgetful"
    ROLE: ClassVar[Role] = Role.SURVIVES

    def start(self, ground: DecisionInput) -> Forgetting:
        return Forgetting(ground)


class Forgetting:
    def __init__(self, ground: DecisionInput) -> None:
        self._items, self._fresh = ground.history.items, list[int]()

    def added(self, index: int) -> None:
        if self._items[index].message.tool_calls:
            self._fresh.append(index)

    def update(self, turn: int, attempt: int) -> list[tuple[int, MessageDecision]]:
        gone, self._fresh = self._fresh, []
        return [(index, MessageDecision(None, Action.DROPPED, Reason("slide", (1, 1)), Rule())) for index in gone]


def test_a_strategy_that_would_make_a_request_invalid_is_left_out_and_said(project: Project) -> None:
    options = AttachOptions(strategy=Strategy(survives=(Forgetful(),)))
    body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Look around"}], "tools": [TOOL]}
    replies = [Reply("", calls=[("look", "{}")]), Reply("done")]
    with Loopback(replies) as provider, session(project, provider.url, options) as attached:
        message = attached.post("openai", "/chat/completions", body).json()["choices"][0]["message"]
        result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "a wall"}
        asked = {**body, "messages": [*body["messages"], message, result]}
        assert attached.post("openai", "/chat/completions", asked).status_code == 200
    assert provider.requests[-1].body == asked
    (told,) = [event.data["message"] for event in attached.state().warnings]
    assert told.startswith("selective+forgetful would break a rule (message 3: this result answers no call")
    assert told.endswith(": this context is sent as it is")


def test_a_strategy_changes_what_is_sent_and_nothing_else(project: Project) -> None:
    body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Look around"}], "tools": [TOOL]}
    options = AttachOptions(strategy=parse("mask(after=1)"), what_if=parse("mask(after=2)"))
    replies = [Reply("", calls=[("look", "{}")])] * 3 + [Reply("done")]
    with Loopback(replies) as provider, session(project, provider.url, options) as attached:
        for number in range(4):
            message = attached.post("openai", "/chat/completions", body).json()["choices"][0]["message"]
            said = [*body["messages"], message]
            for call in message.get("tool_calls") or ():
                said.append({"role": "tool", "tool_call_id": call["id"], "content": f"wall {number} " * 50})
            body = {**body, "messages": said}
    last = provider.requests[-1].body["messages"]
    assert [len(one["content"] or "") for one in last if one["role"] == "tool"][-1] == len("wall 2 " * 50)
    assert all("wall 0" not in str(one) for one in last)
    assert [one["role"] for one in last] == [one["role"] for one in body["messages"][:-1]]
    assert provider.requests[-1].body["tools"] == [TOOL]
    masked = [entry for entry in attached.state().calls[-1].entries if entry.action == "masked"]
    assert [entry.item.tool for entry in masked] == ["look", "look"]
    priced = [event.data for event in attached.events() if event.kind == "what_if"]
    assert [one["tokens"] == one["sent_tokens"] for one in priced] == [True, True, False, False]
    assert [one["sent_tokens"] for one in priced] == [call.tokens_in for call in attached.state().calls]
    assert priced[-1]["all_tokens"] == sum(one["tokens"] for one in priced)
    assert attached.run.recorder.other is not None
    assert attached.run.recorder.other.other.tokens > attached.run.recorder.other.sent.tokens
