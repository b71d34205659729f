"""Reads stored runs over HTTP: the list, one run, and its events as they are written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from aiohttp import web

from workbench.analysis.react_flow import react_flow
from workbench.analysis.tree import execution_tree
from workbench.context.place import Place
from workbench.engine.definition import Definition, DefinitionError
from workbench.engine.past.places import NoSuchPlace
from workbench.store.faults import StoreError, UnknownRun
from workbench.views.run import run_json
from workbench.views.runs import listed_json
from workbench.workspace.annotating import annotation_target
from workbench.workspace.mermaid import RunPath, mermaid

if TYPE_CHECKING:
    from workbench.store.journal.reading import Tail
    from workbench.store.store import Store

LOOK_AGAIN = 0.2
"""Seconds between two looks at a journal that is being written."""
STILL_HERE = 15.0
"""Seconds without an event after which a comment keeps the connection open."""
MOST_RUNS = 1000
T = TypeVar("T")


class ReadApi:
    """Routes below ``/api``. Reading happens in threads; nothing is ever written."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/runs", self.runs),
            web.get("/api/runs/{run}", self.run),
            web.get("/api/runs/{run}/tree", self.tree),
            web.get("/api/runs/{run}/graph", self.graph),
            web.get("/api/runs/{run}/events", self.events),
        ]

    async def runs(self, request: web.Request) -> web.Response:
        """The runs, newest first: one object for each, as ``workbench runs --json`` names its fields."""
        limit = _number(request, "limit", 100, MOST_RUNS)
        found = await in_thread(self._store.runs)
        return web.json_response([listed_json(run) for run in found[:limit]], dumps=_dumps)

    async def run(self, request: web.Request) -> web.Response:
        """One run, as ``workbench show --json`` prints it."""
        run_id = await self.found(request)
        state = await in_thread(lambda: self._store.state(run_id))
        return web.json_response(run_json(state), dumps=_dumps)

    async def tree(self, request: web.Request) -> web.Response:
        """Its execution tree, as ``workbench tree --json`` prints it; ``?format=react-flow``: as nodes and edges."""
        run_id, form = await self.found(request), request.query.get("format", "tree")
        if form not in ("tree", "react-flow"):
            text = _dumps({"error": f"format={form} is not known; expected tree or react-flow"})
            raise web.HTTPBadRequest(text=text, content_type="application/json")
        tree = await in_thread(lambda: execution_tree(self._store.state(run_id)))
        return web.json_response(react_flow(tree) if form == "react-flow" else tree, dumps=_dumps)

    async def graph(self, request: web.Request) -> web.Response:
        """Its phases and the way that it took, as Mermaid, as ``workbench graph --as mermaid`` prints it."""
        run_id = await self.found(request)
        state = await in_thread(lambda: self._store.state(run_id))
        try:
            graph = Definition.of(state.cascade_text, state.cascade_file).graph
        except DefinitionError:
            raise web.HTTPNotFound(
                text=_dumps({"error": "the run keeps no cascade that could be drawn"}), content_type="application/json"
            ) from None
        return web.Response(text=mermaid(graph, RunPath(state)))

    async def events(self, request: web.Request) -> web.StreamResponse:
        """The journal as server-sent events, from the start or after ``Last-Event-ID`` (or ``?after=SEQ``), until the
        run has ended and no process writes it any more."""
        run_id = await self.found(request)
        after = _number(request, "after", 0, 2**53)
        if is_count(last := request.headers.get("Last-Event-ID", "")) and len(last) < 20:
            after = int(last)
        tail = await in_thread(lambda: self._store.tail(run_id))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        with suppress(ConnectionError):  # The reader went away: that is how most streams end.
            await self._follow(response, tail, run_id, after)
        return response

    async def _follow(self, response: web.StreamResponse, tail: Tail, run_id: str, after: int) -> None:
        quiet = 0.0
        while True:
            written = await in_thread(lambda: self._store.writer(run_id)) is not None
            found = [event for event in await in_thread(lambda: list(tail.poll())) if event.seq > after]
            for event in found:
                body = _dumps(event.to_json())
                await response.write(f"id: {event.seq}\nevent: {event.kind}\ndata: {body}\n\n".encode())
            if not written and not found:
                await response.write(b"event: end\ndata: {}\n\n")
                return
            quiet = 0.0 if found else quiet + LOOK_AGAIN
            if quiet >= STILL_HERE:
                quiet = 0.0
                await response.write(b": still here\n\n")
            if written:
                await asyncio.sleep(LOOK_AGAIN)

    async def found(self, request: web.Request) -> str:
        """The id of the run that a request names. Raises HTTPNotFound, HTTPInternalServerError."""
        return await self.named(request.match_info["run"])

    async def opened(self, name: str) -> str:
        """Returns the target that the app opens for ``RUN`` or ``RUN@PLACE``: the run's id, with the call's full place.
        Raises as ``found``."""
        try:
            run_id, place = await in_thread(lambda: annotation_target(self._store, name))
        except NoSuchPlace as fault:
            raise web.HTTPNotFound(text=_dumps({"error": str(fault)}), content_type="application/json") from None
        except StoreError:
            return await self.named(name)
        return f"{run_id}@{place}" if place != Place() else run_id

    async def named(self, name: str) -> str:
        """The id of a run by its session or id. Raises as ``found``."""
        try:
            return await in_thread(lambda: self._store.find(name))
        except UnknownRun as fault:
            raise web.HTTPNotFound(text=_dumps({"error": str(fault)}), content_type="application/json") from None
        except StoreError as fault:
            raise web.HTTPInternalServerError(
                text=_dumps({"error": str(fault)}), content_type="application/json"
            ) from None


def is_count(text: str) -> bool:
    """Returns whether a text is a whole number in digits of ASCII: others, such as a superscript, are digits and no
    number."""
    return text.isascii() and text.isdigit()


def _number(request: web.Request, name: str, default: int, most: int) -> int:
    text = request.query.get(name, "")
    return min(int(text), most) if is_count(text) and len(text) < 20 else default


async def in_thread(work: Callable[[], T]) -> T:
    """Do work in a thread, so that the server keeps answering."""
    return await asyncio.get_running_loop().run_in_executor(None, work)


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, default=str)
