"""The server: the page that holds the terminal, and one process of the app for each open page, spoken to through
textual-serve's protocol.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from html import escape
from http import HTTPStatus
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from aiohttp import ClientConnectionResetError, WSMsgType, web
from aiohttp.http_exceptions import HttpProcessingError
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

from workbench.cli.errors import Exit, Failure
from workbench.cli.printer import talk
from workbench.cli.serving.api import ReadApi, in_thread, is_count
from workbench.cli.serving.guard import HEADERS, Guard, Request
from workbench.cli.serving.pages import RunPages, fault_page
from workbench.language.clean import clean_line
from workbench.workspace.links import SharedLinks
from workbench.workspace.project import Project

ADDRESS = "127.0.0.1"
MOST_APPS = 8
"""Pages that may be open at once: each is a process."""
MOST_CELLS = (20, 6, 600, 300)
"""Least columns and rows, most columns and rows of a terminal that a page may ask for."""
STOP_SECONDS = 5.0
"""Seconds that an app gets to end by itself."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class App(AppService):
    """The process of one page: started without a shell, ended for certain."""

    arguments: Sequence[str] = ()

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        self._process = process = await asyncio.create_subprocess_exec(
            *self.arguments,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=self._build_environment(width, height),
            start_new_session=True,
        )
        assert process.stdin is not None
        self._stdin = process.stdin
        return process

    def tell_end(self) -> None:
        """Tell the app that the server ends: to lose its page alone would not say so."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)

    async def stop(self) -> None:
        """Ask the app to end, then end it and what it started."""
        process = self._process
        with suppress(ConnectionError, RuntimeError, asyncio.TimeoutError):
            await asyncio.wait_for(super().stop(), STOP_SECONDS)
        if process is None:
            return
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        transport = getattr(process, "_transport", None)
        if transport is not None:
            transport.close()


STYLE = """
@font-face { font-family: "Roboto Mono"; src: url("/static/fonts/RobotoMono-VariableFont_wght.ttf"); }
@font-face { font-family: "Roboto Mono"; font-style: italic;
             src: url("/static/fonts/RobotoMono-Italic-VariableFont_wght.ttf"); }
html, body { margin: 0; height: 100%; background: #10141b; color: #d8dee9; font: 15px "Roboto Mono", monospace; }
.textual-terminal { position: absolute; inset: 0; }
.note { position: absolute; inset: 0; display: flex; align-items: center; justify-content: center; text-align: center; }
body.-first-byte .opening { display: none; }
.closed, .refused { display: none; z-index: 10; background: #10141b; }
body.-closed.-first-byte .closed, body.-closed:not(.-first-byte) .refused { display: flex; }
a { color: #8ab4f8; }
"""

SCRIPT = """
"use strict";
// Keys belong to the app: from its first byte on, and again whenever the page is looked at.
const focus = () => document.querySelector(".xterm-helper-textarea")?.focus();
document.addEventListener("DOMContentLoaded", () =>
  new MutationObserver(focus).observe(document.body, { attributes: true, attributeFilter: ["class"] }));
window.addEventListener("focus", focus);
"""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/static/css/xterm.css">
<style>{style}</style>
<script src="/static/js/textual.js"></script>
<script src="/page.js"></script>
</head>
<body>
<div class="note opening"><p>Opening {title} …</p></div>
<div class="note closed"><p>The app has ended.<br><a href="/">Open it again</a></p></div>
<div class="note refused"><p>No app has come up: {most} pages may be open at once.<br>
Close one, and <a href="/">open it again</a>.</p></div>
<div id="start" hidden></div>
<div id="terminal" class="textual-terminal"
     data-session-websocket-url="{socket}" data-font-size="{size}"></div>
</body>
</html>
"""


def page(title: str, host: str, most: int, size: int = 15, run: str = "") -> str:
    """The page for a host such as ``127.0.0.1:8321``; ``most``: how many may be open; ``size``: of the letters, in
    pixels; ``run``: the id of the run to open, and its call."""
    socket = escape(f"ws://{host}/ws" + (f"/{quote(run, safe='')}" if run else ""))
    return PAGE.format(title=escape(title), style=STYLE, socket=socket, most=most, size=size)


def static_folder() -> Path:
    """Folder of the terminal's script, style and fonts: inside an installed package."""
    found = find_spec("textual_serve")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("textual-serve is not installed")
    return Path(found.origin).parent / "static"


class WebApplication:
    """The web application."""

    def __init__(
        self,
        command: Sequence[str],
        file: Sequence[str],
        title: str,
        guard: Guard,
        api: ReadApi,
        pages: RunPages,
        links: SharedLinks,
    ) -> None:
        """``command`` starts the app with the driver for the web, followed by the ``file`` to open or by a run."""
        self._command, self._file = tuple(command), tuple(file)
        self._pages, self._links = pages, links
        self._title = title
        self._guard = guard
        self._api = api
        self._downloads = DownloadManager()
        self._apps: set[App] = set()
        self._sockets: set[web.WebSocketResponse] = set()

    def application(self) -> web.Application:
        """Routes and guard; ``on_shutdown`` ends every app."""
        app = web.Application(middlewares=[self._guarded])
        app.add_routes(
            [
                web.get("/", self._index),
                web.get("/page.js", self._script),
                web.get("/ws", self._socket),
                web.get("/ws/{run}", self._socket),
                web.get("/download/{key}", self._download),
                web.static("/static", static_folder()),
                *self._api.routes(),
                *self._pages.routes(),
            ]
        )
        app.on_response_prepare.append(self._protect)
        app.on_shutdown.append(self._end)
        return app

    # -- the door ----------------------------------------------------------------------------------------------------

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        asked = _asked(request, self._guard.cookie, shared=await self._is_shared(request))
        refusal = self._guard.refusal(asked)
        if refusal is not None:
            if _reads_pages(request):
                return fault_page(refusal.status, refusal.reason, is_guest=True)
            return web.Response(status=refusal.status, text=refusal.reason + "\n")
        if asked.query and request.path == "/":
            # The token leaves the address: it should be in no history and on no screen.
            run = request.query.get("run", "")
            answer = web.HTTPSeeOther(f"/?run={quote(run, safe='')}" if run else "/")
            if self._guard.is_token(asked.query):
                answer.set_cookie(self._guard.cookie, asked.query, httponly=True, samesite="Lax", path="/")
            return answer
        try:
            return await handler(request)
        except web.HTTPException as fault:
            if fault.status < HTTPStatus.BAD_REQUEST or not _reads_pages(request):
                raise
            return fault_page(fault.status, _said(fault), is_guest=bool(request.query.get("link")))

    async def _is_shared(self, request: web.Request) -> bool:
        """Returns whether a read-only link allows the request: the page of its run, and the API's data of that run."""
        token = request.query.get("link", "") or _bearer(request)
        name = request.match_info.get("run", "")
        if not token or not name or not request.path.startswith(SHARED):
            return False
        link = await in_thread(lambda: self._links.opened_by(token))
        return link is not None and name in (link.run_id, link.session_id)

    async def _protect(self, request: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(HEADERS)

    # -- pages -------------------------------------------------------------------------------------------------------

    async def _index(self, request: web.Request) -> web.Response:
        size = min(40, max(6, int(request.query.get("fontsize", "15")))) if _is_number(request, "fontsize") else 15
        run = await self._api.opened(request.query["run"]) if request.query.get("run") else ""
        return web.Response(text=page(self._title, request.host, MOST_APPS, size, run), content_type="text/html")

    async def _script(self, request: web.Request) -> web.Response:
        return web.Response(text=SCRIPT, content_type="text/javascript")

    async def _download(self, request: web.Request) -> web.StreamResponse:
        key = request.match_info["key"]
        try:
            meta = await self._downloads.get_download_metadata(key)
        except KeyError:
            raise web.HTTPNotFound(text="there is no such download\n") from None
        name = "".join(char for char in meta.file_name if char.isalnum() or char in "._- ") or "download"
        response = web.StreamResponse(
            headers={
                "Content-Type": "application/octet-stream",
                "Content-Disposition": f'attachment; filename="{name}"',
            }
        )
        await response.prepare(request)
        async for chunk in self._downloads.download(key):
            await response.write(chunk)
        return response

    # -- the app behind a page ---------------------------------------------------------------------------------------

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        if len(self._apps) >= MOST_APPS:
            return web.Response(status=503, text=f"{MOST_APPS} pages are open; close one\n")
        run = await self._api.opened(request.match_info["run"]) if "run" in request.match_info else ""
        socket = web.WebSocketResponse(heartbeat=15, max_msg_size=4 * 1024 * 1024)
        await socket.prepare(request)
        app = App(
            "",
            write_bytes=socket.send_bytes,
            write_str=socket.send_str,
            close=socket.close,  # type: ignore[arg-type]
            download_manager=self._downloads,
        )
        app.arguments = (*self._command, *((run,) if run else self._file))
        self._apps.add(app)
        self._sockets.add(socket)
        width, height = _cells(request.query.get("width", ""), request.query.get("height", ""))
        try:
            await app.start(width, height)
            async for message in socket:
                if message.type == WSMsgType.TEXT:
                    await _tell(app, socket, message.data)
        finally:
            self._sockets.discard(socket)
            await app.stop()
            self._apps.discard(app)
        return socket

    async def _end(self, application: web.Application) -> None:
        for app in self._apps:
            app.tell_end()
        for connection in list(self._sockets):
            with suppress(ConnectionError):
                await connection.close(code=1001, message=b"the server ends")
        await asyncio.gather(*(app.stop() for app in list(self._apps)), return_exceptions=True)


def _reads_pages(request: web.Request) -> bool:
    """Returns whether a person reads the answer: a browser that opens an address, not a program that asks the API."""
    return "text/html" in request.headers.get("Accept", "") and not request.path.startswith("/api/")


def _said(fault: web.HTTPException) -> str:
    """The reason of an error, which the API says in JSON."""
    if fault.content_type == "application/json":
        return str(json.loads(fault.text or "{}").get("error", ""))
    return "There is no such page." if fault.status == HTTPStatus.NOT_FOUND else fault.text or fault.reason


def request_log() -> logging.Logger:
    """Logs faults of requests: a line on stderr for a fault of ours, nothing for one of the sender."""
    log = logging.Logger("workbench.serve")
    log.addHandler(_Lines())
    return log


_THEIRS = (HttpProcessingError, web.RequestPayloadError, ClientConnectionResetError)
"""Faults of whoever asks: no HTTP, a body that is not packed as it says, a connection that is gone."""


class _Lines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        fault = record.exc_info[1] if record.exc_info else None
        if not isinstance(fault, _THEIRS):
            kind = f": {type(fault).__name__}: {fault}" if fault is not None else ""
            talk(clean_line(f"{record.getMessage()}{kind}", 500), "warning")


async def _tell(app: App, socket: web.WebSocketResponse, text: str) -> None:
    """Pass a message of the page to the app; an invalid one is dropped."""
    try:
        kind, *rest = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return
    data = rest[0] if rest else None
    if kind == "stdin" and isinstance(data, str):
        await app.send_bytes(data.encode("utf-8", "replace"))
    elif kind == "resize" and isinstance(data, dict):
        await app.set_terminal_size(*_cells(str(data.get("width", "")), str(data.get("height", ""))))
    elif kind == "ping":
        await socket.send_json(["pong", data])
    elif kind == "blur":
        await app.blur()
    elif kind == "focus":
        await app.focus()


SHARED = ("/runs/", "/api/runs/")
"""The paths that a read-only link may open."""


def _bearer(request: web.Request) -> str:
    scheme, _, bearer = request.headers.get("Authorization", "").partition(" ")
    return bearer if scheme.lower() == "bearer" else ""


def _asked(request: web.Request, cookie: str, *, shared: bool) -> Request:
    return Request(
        method=request.method,
        host=request.headers.get("Host", ""),
        origin=request.headers.get("Origin"),
        site=request.headers.get("Sec-Fetch-Site", ""),
        cookie=request.cookies.get(cookie, ""),
        query=request.query.get("token", ""),
        bearer=_bearer(request),
        upgrade="websocket" in request.headers.get("Upgrade", "").lower(),
        shared=shared,
        link=bool(request.query.get("link")),
    )


def _is_number(request: web.Request, name: str) -> bool:
    return is_count(request.query.get(name, "")) and len(request.query[name]) < 5


def _cells(width: str, height: str) -> tuple[int, int]:
    """Columns and rows of a terminal within bounds."""
    least_wide, least_high, most_wide, most_high = MOST_CELLS
    columns = int(width) if is_count(width) and len(width) < 6 else 80
    rows = int(height) if is_count(height) and len(height) < 6 else 24
    return max(least_wide, min(columns, most_wide)), max(least_high, min(rows, most_high))


async def serve(words: list[str], opened: list[str], project: Project, token: str, port: int) -> int:
    """Serve the runs, and the app as the command ``words``, until a signal; the exit code."""
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
