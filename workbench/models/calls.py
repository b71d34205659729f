"""Calls through litellm's public functions: every route sends with one client of ours, and finds keys and addresses in
the variables of the project."""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

from workbench.models.connections import BlockingClient, RecordingClient
from workbench.models.library import imported
from workbench.models.tape import NotSent, Tape, current, leaving

DIRECT = "EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER"
"""litellm's switch between its own route to servers of OpenAI's kind and the one through OpenAI's SDK. The latter takes
300 ms of CPU for a request of 1,000 messages, the former 20, and no key is answered meanwhile."""

_PROVIDERS_OWN = re.compile(
    r".*_(API_KEY|KEY|TOKEN|SECRET|API_BASE|BASE_URL|API_HOST|ENDPOINT|API_VERSION|PROJECT|LOCATION|REGION|PROFILE)"
    r"|AWS_.*|AZURE_.*|GOOGLE_.*|VERTEX.*|WATSONX_.*|WX_.*|OCI_.*",
)
"""Variables in which litellm looks for keys and addresses."""

ONLY_TEXTS = "this way to the provider completes texts, and cannot be given a conversation"
_OURS = ("max_retries", "stream_options")
"""Arguments that no cascade sets."""

_LOOK_AGAIN = 1.0
"""Seconds after which a call that waits for the variables of others looks whether these calls still live."""

_client: RecordingClient | None = None
_client_lock = threading.Lock()


def client() -> RecordingClient:
    """Returns the client that every route of litellm sends with. The first call imports litellm."""
    with _client_lock:
        return send_with(RecordingClient()) if _client is None else _client


async def ready() -> None:
    """Make the client, in a thread if that imports litellm."""
    if _client is None:
        await asyncio.to_thread(client)


def send_with(recording: RecordingClient) -> RecordingClient:
    """Let every route of litellm send with this client: those through OpenAI's SDK take ``aclient_session``, all others
    ask the cache of clients for a handler, some for one that blocks a thread."""
    global _client
    litellm = imported()
    handler = litellm.llms.custom_httpx.http_handler.AsyncHTTPHandler()
    handler.client = recording
    blocking = litellm.llms.custom_httpx.http_handler.HTTPHandler(client=BlockingClient(recording))

    cache: Any = litellm.caching.llm_caching_handler.LLMClientCache

    class Clients(cache):  # type: ignore[misc]
        def get_cache(self, key: str, **more: Any) -> Any:
            if key.startswith("httpx_client"):
                return blocking
            return handler if key.startswith("async_httpx_client") else super().get_cache(key, **more)

    litellm.aclient_session = recording
    litellm.module_level_aclient = handler
    litellm.module_level_client = blocking
    litellm.in_memory_llm_clients_cache = Clients()
    _client = recording
    return recording


class _SharedEnvironment:
    """The process's variables, as a project has them, while litellm makes requests of them.

    litellm looks for keys and addresses in ``os.environ``, and a trusted ``.env`` is not part of it. Calls with equal
    variables share them; a call with others waits until the last of these requests has left, which takes milliseconds.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users: list[asyncio.AbstractEventLoop] = []
        """The event loop of each call that has these variables."""
        self._wanted: Mapping[str, str] = {}
        self._before: dict[str, str | None] = {}
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    async def enter(self, wanted: Mapping[str, str]) -> None:
        """Have these variables until ``leave``."""
        loop = asyncio.get_running_loop()
        while (left := self._taken(wanted, loop)) is not None:
            # A loop that is closed in the middle of a call notifies no one: look again after a while.
            await asyncio.wait([left], timeout=_LOOK_AGAIN)

    def leave(self, loop: asyncio.AbstractEventLoop) -> None:
        """The last call to leave restores the variables."""
        with self._lock:
            if loop not in self._users:
                return
            self._users.remove(loop)
            if self._users:
                return
            self._restore()
            waiting, self._waiting = self._waiting, []
        for other, left in waiting:
            if not other.is_closed():
                other.call_soon_threadsafe(partial(_tell, left))

    def _taken(self, wanted: Mapping[str, str], loop: asyncio.AbstractEventLoop) -> asyncio.Future[None] | None:
        """None if the variables are as wanted now; else a future to wait for before another try."""
        with self._lock:
            if self._users and all(user.is_closed() for user in self._users):
                self._users.clear()
                self._restore()
            if self._users and self._wanted != wanted:
                left = loop.create_future()
                self._waiting.append((loop, left))
                return left
            if not self._users:
                self._change(wanted)
            self._users.append(loop)
            return None

    def _restore(self) -> None:
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    def _change(self, wanted: Mapping[str, str]) -> None:
        changed = {name: value for name, value in wanted.items() if os.environ.get(name) != value}
        absent = [name for name in os.environ if name not in wanted and _PROVIDERS_OWN.fullmatch(name)]
        self._wanted = wanted
        self._before = {name: os.environ.get(name) for name in (*changed, *absent)}
        os.environ.update(changed)
        for name in absent:
            del os.environ[name]


def _tell(left: asyncio.Future[None]) -> None:
    if not left.done():
        left.set_result(None)


_environment = _SharedEnvironment()


@asynccontextmanager
async def _until_sent(env: Mapping[str, str], tape: Tape) -> AsyncIterator[None]:
    """The variables of a call, until its request leaves or the block ends."""
    await _environment.enter(env)
    loop = asyncio.get_running_loop()
    has_left = False

    def leave() -> None:
        nonlocal has_left
        if not has_left:
            has_left = True
            _environment.leave(loop)
            leaving.get()()

    tape.on_leaving = leave
    try:
        yield
    finally:
        leave()


async def _sent(arguments: Mapping[str, Any]) -> Any:
    # Without ``_skip_mcp_handler`` each call with tools imports the package ``mcp``, which need not be installed.
    return await imported().acompletion(_skip_mcp_handler=True, **arguments)


async def completion(env: Mapping[str, str], tape: Tape, *, direct: bool = True, **arguments: Any) -> Any:
    """litellm's answer to a request, or its stream of pieces.

    ``env`` holds the keys and addresses that litellm reads. ``direct`` uses its own route to OpenAI-compatible servers.
    Raises what litellm raises, NotSent and Unreached.
    """

    async def answered() -> Any:
        asked = {"max_retries": 0, **arguments}
        try:
            response = await _sent(asked)
        except Exception as error:
            # Some routes refuse an argument that only we set. litellm's ``drop_params`` would also drop what the
            # cascade says.
            refused = [name for name in _OURS if name in asked and name in str(error)]
            if tape.sent or not refused:
                raise
            response = await _sent({name: value for name, value in asked.items() if name not in refused})
        if arguments.get("stream"):
            if not hasattr(response, "completion_stream"):  # It would send later, and nobody would note it.
                raise ValueError(ONLY_TEXTS)
            if response.completion_stream is None:
                await response.fetch_stream()
        return response

    return await _asked(answered, env, tape, direct)


async def embedding(env: Mapping[str, str], tape: Tape, *, direct: bool = True, **arguments: Any) -> Any:
    """litellm's embeddings of texts. Raises what litellm raises, NotSent and Unreached."""
    return await _asked(lambda: imported().aembedding(max_retries=0, **arguments), env, tape, direct)


async def _asked(ask: Callable[[], Awaitable[Any]], env: Mapping[str, str], tape: Tape, direct: bool) -> Any:
    """Ask litellm; on cancellation end the call where that leaves nothing behind.

    Before the request is sent litellm works in a thread that cannot be stopped and returns a coroutine: cancelling
    there would drop it unawaited. So the request is refused at the client, and the call ends by itself.
    """
    client()
    tape.loop = asyncio.get_running_loop()
    token = current.set(tape)
    try:
        async with _until_sent({**env, DIRECT: "true" if direct else "false"}, tape):
            task = asyncio.ensure_future(ask())
            try:
                return await asyncio.shield(task)
            except asyncio.CancelledError:
                tape.cancelled = True
                if tape.sent:
                    task.cancel()
                await asyncio.wait([task])
                if not task.cancelled():
                    task.exception()
                raise
    finally:
        current.reset(token)


async def pieces(response: Any) -> AsyncIterator[Any]:
    """The pieces of an answer as litellm's parser for the provider gives them.

    They are read from the stream inside of litellm's wrapper: the wrapper takes seven times as long for each piece,
    ends an answer that repeats a piece a hundred times, and makes up a finish reason and usage where there were none.
    """
    try:
        stream = aiter(response.completion_stream)
    except (AttributeError, TypeError):  # A route that blocks a thread: its answer has been read, and its pieces are
        for piece in response:  # of a kind that only the wrapper knows.
            yield piece
        return
    async for piece in stream:
        yield piece


def rehearse(env: Mapping[str, str] = {}) -> None:
    """Make one request that never leaves: litellm loads 0.3 s worth of modules for its first one.

    ``env`` holds the variables of the calls that follow: with others, the process's variables would change beside
    whoever reads them."""
    client()
    asyncio.run(_rehearsal(env))


async def _rehearsal(env: Mapping[str, str]) -> None:
    with suppress(NotSent):
        await completion(
            env,
            Tape(held=True),
            model="openai/gpt-4o",
            messages=[{"role": "user", "content": "a"}],
            api_key="none",
            stream=True,
        )
