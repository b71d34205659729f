"""A recording session in this process: the proxy on a free port, a stored run behind it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx
from aiohttp import web
from msgspec import Struct

from tests.support.waiting import PATIENCE
from workbench.attach.control import Debugging
from workbench.attach.providers import BY_NAME, addresses
from workbench.attach.proxy import Proxy
from workbench.attach.replies import rendered
from workbench.engine.contracts import Answer
from workbench.engine.debugger.stepper import Stepper
from workbench.engine.journal.event import Event
from workbench.engine.journal.state import RunState
from workbench.engine.journal.usage import Usage
from workbench.importers.journal import no_one
from workbench.workspace.attach_serving import proxy_runner
from workbench.workspace.attaching import AttachedRun, AttachOptions, attached_run
from workbench.workspace.project import Project

LOCAL: Mapping[str, Any] = {"trust_env": False, "verify": False}
"""How httpx asks a server on the loopback interface: to read certificates for it takes 20 ms of each request."""


class Session(Struct):
    """What a test asks of a session."""

    project: Project
    run: AttachedRun
    base: str

    def url(self, provider: str) -> str:
        """What a client takes as the address of a provider."""
        return f"{self.base}/{BY_NAME[provider].prefix}"

    def chat(self, *texts: str, model: str = "openai/gpt-4.1-mini", **more: Any) -> httpx.Response:
        """A request of chat completions: texts of the user and of the model by turns."""
        messages = [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)]
        return self.post("openai", "/chat/completions", {"model": model, "messages": messages, **more})

    def post(self, provider: str, path: str, body: Mapping[str, Any], **headers: str) -> httpx.Response:
        return httpx.post(self.url(provider) + path, json=body, headers=headers, **LOCAL, timeout=PATIENCE)

    def events(self) -> list[Event]:
        return list(self.project.store.events(self.run.run_id))

    def state(self) -> RunState:
        """The run as it is stored; after the session is over."""
        return RunState.of(self.events())


@contextmanager
def session(
    project: Project,
    upstream: str = "http://127.0.0.1:9/v1",
    options: AttachOptions = AttachOptions(),
    token: str = "",
    stepper: Stepper | None = None,
    said: list[str] | None = None,
    observe: Callable[[Event], None] = no_one,
) -> Iterator[Session]:
    """Record until the block ends. ``upstream``: the address of a provider of any dialect, with ``/v1``. ``stepper``:
    pauses calls. ``said`` gets what a person is told, ``observe`` each event in the thread of the record."""
    bare = upstream.removesuffix("/v1")
    given = {"openai": upstream, "anthropic": bare, "gemini": bare, "ollama": bare, "openrouter": upstream}
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def wait(coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(60)

    async def begin(run: AttachedRun) -> tuple[web.AppRunner, int]:
        hosts: set[str] = set()
        watched = stepper is not None or options.strategy is not None
        told = said.append if said is not None else lambda words: None
        control = Debugging(run.recorder, stepper, told) if watched else None
        proxy = Proxy(addresses({}, given), run.recorder, run.answers, control, hosts=hosts, token=token)
        runner = proxy_runner(proxy)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        hosts |= {f"127.0.0.1:{port}", f"localhost:{port}"}
        return runner, port

    try:
        with attached_run(project, options, observe) as run:
            runner, port = wait(begin(run))
            try:
                yield Session(project, run, f"http://127.0.0.1:{port}" + (f"/{token}" if token else ""))
            finally:
                wait(runner.cleanup())
                run.recorder.close("success")
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE)
        loop.close()


@asynccontextmanager
async def serving(handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    """A provider that does as the handler says; its address."""
    application = web.Application()
    application.router.add_route(
        "*", "/{rest:.*(chat/completions|responses|realtime|count_tokens|countTokens)}", handler
    )
    runner = web.AppRunner(application, auto_decompress=False, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


async def answer_socket(request: web.Request) -> web.WebSocketResponse:
    """A provider of Responses over a WebSocket: answers ``To TEXT`` to each last text."""
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        asked = json.loads(message.data)
        lane = {"stream_id": asked["stream_id"]} if "stream_id" in asked else {}
        if asked["model"] == "unknown":
            await socket.send_json({"type": "error", "status": 404, "error": {"message": "no such model"}, **lane})
            continue
        said = Answer(f"To {asked['input'][-1]['content']}", (), usage=Usage(input=20, output=3))
        _, body = rendered("/responses", {**asked, "stream": True}, said, asked["stream_id"])  # type: ignore[misc]
        for line in body.decode().splitlines():
            if line.startswith("data: {"):
                await socket.send_json({**json.loads(line[6:]), **lane})
    return socket


def socket_asked(lane: str, *texts: str, model: str = "gpt-4.1") -> dict[str, Any]:
    """A request of Responses as a message of a WebSocket."""
    said = [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)]
    return {"type": "response.create", "stream_id": lane, "model": model, "input": said}
