"""The proxy of a session of attach while it listens, and the program that it watches, if it started one."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies_environment

from aiohttp import web
from msgspec import Struct

from workbench.attach.otlp import OtlpServer, otlp_variables
from workbench.attach.providers import PROVIDERS, client_variables
from workbench.attach.proxy import Proxy
from workbench.attach.span_runs import SpanRuns
from workbench.attach.traffic import Control
from workbench.models.encodings import environment
from workbench.workspace.attaching import AttachedRun
from workbench.workspace.terminal_program import PATIENCE

LOOPBACK = "127.0.0.1"
STAND_IN = "workbench"
"""The key of clients that refuse to start without one, if no provider is asked."""
SWITCH_SECONDS = 0.001
"""How long the recorder may compute while a client waits: Python's own 5 ms would be added to every other call. For
``sys.setswitchinterval`` of a process that serves."""
LEAVE_SECONDS = 0.2
"""How long requests that are on their way may go on when the proxy ends, twice: before and after aiohttp ends their
bodies. It is enough to tell of an answer that has come, and hardly felt after Ctrl+C."""


class CannotListen(Exception):
    """An address that no server can take; the message names it and says why."""


class CannotStart(Exception):
    """A command that cannot be run; the message names it and says why."""


class Served(Struct, frozen=True):
    """The address of a session, and the task that serves it."""

    listener: socket.socket
    where: Mapping[str, str]
    """The address of each provider."""
    command: tuple[str, ...] = ()
    token: str = ""


def listen(address: str, port: int) -> socket.socket:
    """A socket that clients can connect to; port 0 takes a free one. Raises CannotListen."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((address, port))
        bound.listen(256)
    except OSError as fault:
        bound.close()
        raise CannotListen(f"{address}:{port} cannot be used: {fault.strerror or fault}") from None
    return bound


@asynccontextmanager
async def serving(run: AttachedRun, served: Served, control: Control | None = None) -> AsyncIterator[dict[str, str]]:
    """Serve until the block ends; it gets the variables that lead clients here."""
    token = served.token
    proxy = Proxy(served.where, run.recorder, run.answers, control, hosts=_names(served), token=token)
    runner = proxy_runner(proxy)
    await runner.setup()
    variables = client_variables(_base(served)) | _straight(served)
    if run.answers is not None and run.answers.alone:
        keys = (key for one in PROVIDERS for key in one.keys)
        variables |= {key: STAND_IN for key in keys if not os.environ.get(key)}
    try:
        await web.SockSite(runner, served.listener).start()
        yield variables
    finally:
        await runner.cleanup()


def proxy_runner(proxy: Proxy) -> web.AppRunner:
    """Returns the runner of a proxy: a client that goes away ends its request, and no body is unpacked on its way."""
    return web.AppRunner(
        proxy.application(),
        access_log=None,
        shutdown_timeout=LEAVE_SECONDS,
        handler_cancellation=True,
        auto_decompress=False,
    )


@asynccontextmanager
async def collecting(runs: SpanRuns, served: Served) -> AsyncIterator[dict[str, str]]:
    """Take spans until the block ends; it gets the variables that lead exporters here."""
    server = OtlpServer(runs.take, runs.refuse, hosts=_names(served), token=served.token)
    runner = web.AppRunner(server.application(), access_log=None, shutdown_timeout=2.0, auto_decompress=False)
    await runner.setup()

    async def settling() -> None:
        while True:
            await asyncio.sleep(1.0)
            runs.settle()

    settles = asyncio.ensure_future(settling())
    try:
        await web.SockSite(runner, served.listener).start()
        yield otlp_variables(_base(served), os.environ) | _straight(served)
    finally:
        settles.cancel()
        await runner.cleanup()


def _base(served: Served) -> str:
    """Returns the address that clients are given."""
    host, port = served.listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):  # All of its addresses: that is none to connect to.
        host = socket.gethostname()
    return f"http://{f'[{host}]' if ':' in host else host}:{port}" + (f"/{served.token}" if served.token else "")


def _straight(served: Served) -> dict[str, str]:
    """Returns the variables by which clients come here past a proxy that the environment names for plain HTTP: hardly
    one reaches this machine."""
    proxies = getproxies_environment()
    if not (proxies.get("http") or proxies.get("all")) or proxies.get("no") == "*":
        return {}
    here = urlsplit(_base(served)).hostname or LOOPBACK
    hosts = ",".join(filter(None, (proxies.get("no"), here, "localhost" if here == LOOPBACK else "")))
    return {"NO_PROXY": hosts, "no_proxy": hosts}


def _names(served: Served) -> frozenset[str]:
    """Returns the names by which clients may call the server; empty with a token."""
    port = served.listener.getsockname()[1]
    return frozenset() if served.token else frozenset({f"{LOOPBACK}:{port}", f"localhost:{port}"})


async def started(command: Sequence[str], variables: Mapping[str, str], **how: Any) -> asyncio.subprocess.Process:
    """Run a command with the variables set. ``how``: as ``create_subprocess_exec`` takes it. Raises CannotStart."""
    try:
        return await asyncio.create_subprocess_exec(*command, env=environment() | dict(variables), **how)
    except OSError as fault:
        raise CannotStart(f"'{command[0]}' cannot be run: {fault.strerror}") from None


async def run_beside(command: Sequence[str], variables: Mapping[str, str], output: Path, folder: Path) -> int:
    """Run a command in a folder until it ends, without a terminal; what it prints goes to a file. Cancelled, it is
    ended. Its exit code; that of a signal as shells have it. Raises CannotStart, OSError."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("wb") as log:
        how = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": subprocess.STDOUT, "start_new_session": True}
        child = await started(command, variables, cwd=folder, **how)
    try:
        code = await child.wait()
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            child.terminate()
        try:
            await asyncio.wait_for(child.wait(), PATIENCE)
        except TimeoutError:
            with suppress(ProcessLookupError):
                child.kill()
        raise
    return code if code >= 0 else 128 - code
