"""``workbench serve``: the app in a browser of this machine, and an API that reads the stored runs."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import click

from workbench.cli.errors import Exit, Failure
from workbench.cli.options import CascadeFile, project_here
from workbench.cli.printer import talk
from workbench.cli.serving.api import ReadApi
from workbench.cli.serving.guard import Guard, unfit
from workbench.extras import missing
from workbench.workspace.links import SharedLinks
from workbench.workspace.project import Project

LOCAL = ("127.0.0.1", "localhost")


@click.command(short_help="The app in a browser, and an API that reads the runs.")
@click.argument("file", type=CascadeFile(), required=False)
@click.option("--port", type=click.IntRange(0, 65535), default=8321, show_default=True, help="0 takes any free port.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Only this machine is served: 127.0.0.1.")
@click.option("--model", "-m", help="Model of phases that name none, or 'offline'.")
@click.pass_context
def command(ctx: click.Context, file: Path | None, port: int, host: str, model: str | None) -> None:
    """Serve the app to a browser on this machine until Ctrl+C. The address that is printed holds a token; requests
    without it are refused. WORKBENCH_TOKEN sets the token, else a new one is made each time.

    /runs lists the runs, /runs/SESSION shows one as a page, and /?run=SESSION opens it in the app. 'workbench link'
    makes read-only links to single runs.

    With the same token (as a cookie, or Authorization: Bearer) these can be read:
    /api/runs, /api/runs/SESSION, its tree and graph below that, and /api/runs/SESSION/events as server-sent
    events.

    \b
    Examples:
      workbench serve cascades/log_triage.yaml
      workbench serve --port 0 --model offline
      curl -H "Authorization: Bearer $WORKBENCH_TOKEN" \\
        http://127.0.0.1:8321/api/runs
    """
    if host not in LOCAL:
        raise Failure(
            Exit.USAGE,
            f"'{host}' is not served: the app runs tools on this machine, so only this machine may reach it",
            hint=f"from elsewhere: ssh -L {port}:127.0.0.1:{port} THIS-MACHINE",
        )
    if file is not None and not file.is_file():
        raise Failure(Exit.USAGE, "no such file", file=str(file))
    if absent := missing("serve"):
        raise Failure(Exit.USAGE, absent)
    token = os.environ.get("WORKBENCH_TOKEN", "") or secrets.token_urlsafe(24)
    if wrong := unfit(token):
        raise Failure(Exit.USAGE, f"WORKBENCH_TOKEN {wrong}", hint="unset it, and a new one is drawn")
    project = project_here()
    words = ["open", *(["--model", model] if model else [])]
    opened = [str(file)] if file is not None else []
    start = "from workbench.cli.serving.behind import main; main()"
    ctx.exit(asyncio.run(_serve([sys.executable, "-P", "-c", start, *words], opened, project, token, port)))


async def _serve(words: list[str], opened: list[str], project: Project, token: str, port: int) -> int:
    """Serve until a signal; the exit code."""
    # Of the extra serve, which may be missing; its absence is told above.
    from aiohttp import web

    from workbench.cli.serving.pages import RunPages
    from workbench.cli.serving.server import ADDRESS, WebApplication, request_log

    bound = _listen(ADDRESS, port)
    port = bound.getsockname()[1]
    title, api = f"{project.root.name} · workbench", ReadApi(project.store)
    pages, links = RunPages(project, api), SharedLinks(project)
    served = WebApplication(words, opened, title, Guard(token, port), api, pages, links)
    runner = web.AppRunner(served.application(), access_log=None, shutdown_timeout=1.0, logger=request_log())
    await runner.setup()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    ended: list[int] = []

    def end(number: int) -> None:
        ended.append(number)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end, int(number))
    try:
        await web.SockSite(runner, bound).start()
        with suppress(OSError):  # Without it, 'workbench link' has to be told the port.
            links.serves_at(port)
        _announce(port, token)
        await stop.wait()
    finally:
        await runner.cleanup()
    return 0 if ended[0] == signal.SIGINT else 128 + ended[0]


def _announce(port: int, token: str) -> None:
    print(f"http://127.0.0.1:{port}/?token={quote(token, safe='')}", flush=True)
    talk("Open this address in a browser of this machine. Ctrl+C ends the server and its apps.", "dim")


def _listen(address: str, port: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((address, port))
        bound.listen(64)
    except OSError as fault:
        bound.close()
        raise Failure(
            Exit.USAGE, f"port {port} cannot be used: {fault.strerror}", hint="--port 0 takes a free one"
        ) from None
    return bound
