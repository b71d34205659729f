"""Runs as pages: a list of them, and each with the context of every call, to be read without the app."""

from __future__ import annotations

import asyncio
from html import escape
from http import HTTPStatus

from aiohttp import web

from workbench.cli.serving.api import ReadApi, in_thread
from workbench.exporters.html import COLOURS
from workbench.language.clean import clean_line
from workbench.store.faults import StoreError
from workbench.store.summary import RunSummary
from workbench.views.numbers import count, day_and_time
from workbench.views.runs import cost_words, given_words, run_status
from workbench.workspace.exporting import text_of
from workbench.workspace.project import Project

MOST = 200
"""Runs of the list."""
STYLE = """
body { font: 14px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 1300px; padding: 0 1rem; }
h1 { font-size: 1.35rem; } a { color: var(--link); } table { border-collapse: collapse; width: 100%; }
td, th { padding: .25rem .8rem .25rem 0; text-align: left; border-bottom: 1px solid var(--line); }
th, .dim { color: var(--dim); font-weight: 500; } .n { text-align: right; font-variant-numeric: tabular-nums; }
.success { color: var(--good); } .failed, .blocked { color: var(--bad); } .stopped, .interrupted { color: var(--warn); }
.n, .when { white-space: nowrap; }
@media (max-width: 700px) { .wide { display: none; } td, th { padding-right: .4rem; } }
"""
"""With ``COLOURS``; where there is little room the cascade, the time, the input and the calls are left out."""


class RunPages:
    """Routes below ``/runs``. Nothing is ever written."""

    def __init__(self, project: Project, api: ReadApi) -> None:
        self._project = project
        self._api = api
        self._drawing = asyncio.Semaphore(2)
        """A page of a long run takes seconds and memory: two are made at a time."""

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/runs", self.runs), web.get("/runs/{run}", self.run)]

    async def runs(self, request: web.Request) -> web.Response:
        """The newest runs, each with a link to its page and one that opens it in the app."""
        found = await in_thread(self._project.store.runs)
        rows = "".join(map(_row, found[:MOST]))
        head = (
            '<tr><th>run<th class="wide">cascade<th>status<th class="wide">started<th class="wide">input'
            '<th class="n wide">calls<th class="n">cost<th></tr>'
        )
        title = escape(f"Runs of {self._project.root.name}")
        body = f"<table>{head}{rows}</table>" if rows else '<p class="dim">There are no runs yet.</p>'
        return web.Response(text=_page(title, body), content_type="text/html")

    async def run(self, request: web.Request) -> web.Response:
        """One run; ``#PHASE/VISIT/ATTEMPT/TURN/CALL`` is the place of a call in it."""
        run_id = await self._api.found(request)
        async with self._drawing:
            try:
                text = await in_thread(lambda: text_of(self._project, run_id, "html"))
            except (StoreError, OSError, ValueError) as fault:
                raise web.HTTPInternalServerError(
                    text=f"the run cannot be shown: {clean_line(str(fault), 300)}\n"
                ) from None
        return web.Response(text=text, content_type="text/html")


def fault_page(status: int, words: str, *, is_guest: bool = False) -> web.Response:
    """The page of a broken link. ``is_guest``: nothing but one run is open to the reader."""
    ways = '<p><a href="/runs">All runs</a> · <a href="/">Open the app</a></p>'
    title = "Not found" if status == HTTPStatus.NOT_FOUND else HTTPStatus(status).phrase
    return web.Response(
        status=status,
        text=_page(title, f"<p>{escape(clean_line(words, 500))}</p>{'' if is_guest else ways}"),
        content_type="text/html",
    )


def _page(title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<style>{STYLE}{COLOURS}</style></head><body><h1>{title}</h1>{body}</body></html>"
    )


def _row(run: RunSummary) -> str:
    name = escape(clean_line(run.session_id or run.run_id, 80))
    status = escape(run_status(run))
    address = escape(run.run_id)
    return (
        f'<tr><td><a href="/runs/{address}">{name}</a><td class="wide">{escape(clean_line(run.cascade_id, 60))}'
        f'<td class="{status}">{status}<td class="when wide">{escape(day_and_time(run.started))}'
        f'<td class="wide">{escape(clean_line(given_words(run), 60))}'
        f'<td class="n wide">{count(run.calls)}<td class="n">{escape(cost_words(run))}'
        f'<td><a href="/?run={address}">open in the app</a></tr>'
    )
