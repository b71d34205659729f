"""The browser tools under both their names, and the sessions that they drive: one per run, one per candidate."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import time
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from workbench.engine.contracts import ToolImage, ToolResult
from workbench.engine.current import current_call
from workbench.extras import missing
from workbench.language.check import slug
from workbench.tools.addresses import NetworkReach
from workbench.tools.browser.commands import Command, CommandError, read_command
from workbench.tools.browser.gate import Gate
from workbench.tools.browser.session import BrowserError, BrowserSession, Extract, library
from workbench.tools.registry import Function, Kind, Tool
from workbench.tools.results import cut, error_of
from workbench.tools.schema import own_spec_of

if TYPE_CHECKING:
    from playwright.async_api import Playwright

# What a browser session leaves on disk: its commands, pictures, pages as text, places of controls, figures, a video.
# The folder has the form that tools around Rabbitize read: ``commands.json``, ``metrics.json``, ``screenshots/``,
# ``dom_snapshots/``, ``dom_coords/``, ``video.webm``. What cannot be written is left out: a run never fails for it.

MAX_SHOTS = 500
"""Pictures of one session; later ones are not kept."""


class Artefacts:
    """The folder of one session. ``redact`` takes secrets out of every text before it is written."""

    def __init__(self, root: Path, run: str, name: str, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._began = time.monotonic()
        self._commands: list[dict[str, Any]] = []
        self._addresses: list[str] = []
        self._about = {"session_id": run, "session_name": name, "started": _now()}
        self.folder = _fresh(root / slug(run or "run"), slug(name or "session"))
        self.video = self.folder / "recording"
        """Where the browser puts its recording, which has a name of its own there."""
        for part in ("screenshots", "dom_snapshots", "dom_coords"):
            with contextlib.suppress(OSError):
                (self.folder / part).mkdir(parents=True, exist_ok=True)

    def began(self, shot: ToolImage, page: Extract) -> None:
        """The first page is there."""
        self._save("screenshots/start-000.jpg", shot.data)
        self._page(0, page)
        self._figures()

    def acted(
        self, command: str, seconds: float, before: ToolImage, after: ToolImage | None, page: Extract | None, error: str
    ) -> None:
        """One command was carried out, or failed with ``error``."""
        number = len(self._commands) + 1
        try:
            body = json.loads(command)
        except ValueError:
            body = command
        name = slug(str(body[0]).lstrip(":")) if isinstance(body, list) and body else "command"
        self._commands.append(
            {
                "index": number,
                "command": json.loads(self._redact(json.dumps(body, ensure_ascii=False))),
                "at": _now(),
                "duration_ms": round(seconds * 1000),
                "success": not error,
                **({"error": self._redact(error)} if error else {}),
                **({"url": self._redact(page.url), "title": self._redact(page.title)} if page else {}),
            }
        )
        if number <= MAX_SHOTS:
            self._save(f"screenshots/before-{name}-{number:03}.jpg", before.data)
            if after is not None:
                self._save(f"screenshots/after-{name}-{number:03}.jpg", after.data)
            if page is not None:
                self._page(number, page)
        self._json("commands.json", self._commands)
        self._figures()

    def ended(self) -> str:
        """The browser is closed: its recording is complete. The figures of the session in words."""
        figures = self._figures(ended=True)
        with contextlib.suppress(OSError):
            # Each page has a recording of its own; the longest is the one that was driven.
            recordings = sorted(self.video.glob("*.webm"), key=lambda path: path.stat().st_size, reverse=True)
            for recording in recordings[:1]:
                recording.replace(self.folder / "video.webm")
            shutil.rmtree(self.video, ignore_errors=True)
        pages = f"{len(self._addresses)} {'page' if len(self._addresses) == 1 else 'pages'}"
        return f"{pages} in {figures['duration_ms'] / 1000:.1f} s, {figures['failed']} failed"

    def _page(self, number: int, page: Extract) -> None:
        if page.url not in self._addresses:
            self._addresses.append(page.url)
        text = f"# {page.title}\n\n{page.url}\n\n{page.markdown}\n"
        self._save(f"dom_snapshots/snapshot-{number:03}.md", self._redact(text).encode("utf-8", "replace"))
        self._json(f"dom_coords/coords-{number:03}.json", [self._redact(row) for row in page.controls])

    def _figures(self, *, ended: bool = False) -> dict[str, Any]:
        times = [command["duration_ms"] for command in self._commands]
        figures = {
            **self._about,
            "ended": _now() if ended else None,
            "duration_ms": round((time.monotonic() - self._began) * 1000),
            "commands": len(times),
            "failed": sum(not command["success"] for command in self._commands),
            "command_ms_mean": round(sum(times) / len(times)) if times else 0,
            "command_ms_max": max(times, default=0),
            "pages": [self._redact(address) for address in self._addresses],
        }
        self._json("metrics.json", figures)
        return figures

    def _json(self, name: str, value: Any) -> None:
        self._save(name, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "replace"))

    def _save(self, name: str, data: bytes) -> None:
        with contextlib.suppress(OSError):
            (self.folder / name).write_bytes(data)


def _fresh(parent: Path, name: str) -> Path:
    """A folder that no earlier session of the run has."""
    taken = name
    number = 1
    while (parent / taken).exists():
        number += 1
        taken = f"{name}-{number}"
    return parent / taken


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


NOT_ALLOWED = "a browser is not allowed to open pages here yet; `workbench trust FILE` lists it and asks"
TIMEOUT_S = 120.0


class Owner(NamedTuple):
    """The owner of a session: a run (empty for the one that the toolbox was made for) and its branch."""

    run: str = ""
    branch: str = ""


owner: ContextVar[Owner] = ContextVar("owner")
"""Set by the toolbox around each call."""


class BrowserTools:
    """The sessions of one toolbox. ``aclose`` ends all of them. ``reach`` says which hosts pages may be on."""

    def __init__(
        self,
        artefacts: Path | None = None,
        redact: Callable[[str], str] = lambda text: text,
        reach: NetworkReach = NetworkReach(),
    ) -> None:
        """``artefacts`` is the folder where sessions leave what they did, if they do; ``redact`` takes secrets out of
        it."""
        self._gate = Gate(reach)
        self._artefacts = artefacts
        self._redact = redact
        self._left: dict[BrowserSession, Artefacts] = {}
        self._playwright: Playwright | None = None
        self._starting = asyncio.Lock()
        self._sessions: dict[Owner, BrowserSession] = {}

    async def aclose(self, run: str | None = None) -> None:
        """End all sessions, or those of one run that was started by another; the last one ends the driver, too."""
        for mine in [one for one in self._sessions if run is None or one.run == run]:
            await self._closed(self._sessions.pop(mine))
        if run is None and self._playwright is not None:
            driver, self._playwright = self._playwright, None
            await driver.stop()
            await self._gate.close()

    def holds(self, run: str) -> bool:
        """Returns whether a run has a session."""
        return any(one.run == run for one in self._sessions)

    async def settle(self, run: str, branch: str, winner: str) -> None:
        """Let a branch go on where the winner of its candidates stands, if that has a session, and end the others."""
        below = f"{branch}/" if branch else ""
        theirs = [
            one for one in self._sessions if one.run == run and one.branch != branch and one.branch.startswith(below)
        ]
        won = self._sessions.pop(Owner(run, winner), None) if winner != branch else None
        ended = [self._sessions.pop(one) for one in theirs if one.branch != winner]
        if won is not None and not won.closed:
            if (before := self._sessions.pop(Owner(run, branch), None)) is not None:
                ended.append(before)
            self._sessions[Owner(run, branch)] = won
        await asyncio.gather(*(self._closed(session) for session in ended))

    # -- tools -------------------------------------------------------------------------------------------------------

    async def take_screenshot(self, url: str) -> ToolResult:
        """Open a web page in a browser and look at it once.

        Args:
            url: An http or https address.
        """
        session = BrowserSession(await self._driver(), self._gate)
        try:
            await session.start(url)
            return ToolResult(f"Screenshot of {await session.where()}", images=(await session.screenshot(),))
        except BrowserError as fault:
            return error_of(fault)
        finally:
            await _closed(session)

    async def start(self, url: str, session_name: str | None = None) -> ToolResult:
        """Start a browser session and open a page; you see it. One session at a time: an earlier one is closed.

        Args:
            url: An http or https address.
            session_name: What the session is called in its results.
        """
        mine = owner.get(Owner())
        if (before := self._sessions.pop(mine, None)) is not None:
            await self._closed(before)
        session = await self._new_session(session_name or "")
        try:
            await session.start(url)
            shot = await session.screenshot()
            if (left := self._left.get(session)) is not None:
                left.began(shot, await session.extract())
        except BrowserError as fault:
            await self._closed(session)
            return error_of(fault)
        self._sessions[mine] = session
        name = f" '{session_name}'" if session_name else ""
        return ToolResult(f"Session{name} started at {await session.where()}", images=(shot,))

    async def execute(self, command: str, include_metadata: bool = False) -> ToolResult:
        """Do one thing in the browser; you see the page before and after. Move the mouse first, then click.

        Args:
            command: A JSON array: [":move-mouse", ":to", 400, 300], [":click"], [":type", "text"], [":keypress", "Enter"], [":scroll-wheel-down", 5], [":drag", ":from", 1, 2, ":to", 3, 4], [":wait", 2], [":url", "https://..."], [":back"].
            include_metadata: Whether the text of the page and the places of its controls come along.
        """  # noqa: E501 - one line of a parameter list
        try:
            wanted = read_command(command)
            session = await self._session()
            before = await session.screenshot()
            after = await self._acted(session, command, wanted, before)
            text = f":{wanted.name} done, action {session.actions}. Now at {await session.where()}"
            if include_metadata:
                text += f"\n\n{(await session.extract()).words()}"
        except (BrowserError, CommandError) as fault:
            return error_of(fault)
        return _with(text, before, after)

    async def extract(self) -> ToolResult:
        """Read the page: its text as Markdown, where its controls are, and a picture."""
        try:
            session = await self._session()
            said = await session.extract()
            return _with(said.words(), await session.screenshot())
        except BrowserError as fault:
            return error_of(fault)

    async def close(self) -> ToolResult:
        """Close the browser session."""
        session = self._sessions.pop(owner.get(Owner()), None)
        if session is None:
            return ToolResult("There is no browser session to close.")
        figures = await self._closed(session)
        return ToolResult(f"The session is closed after {session.actions} actions{figures and f': {figures}'}.")

    async def status(self) -> ToolResult:
        """Say whether a browser session is open, where it is, and how much was done in it."""
        session = self._sessions.get(owner.get(Owner()))
        if session is None or session.closed:
            return ToolResult("No browser session is open.")
        try:
            return ToolResult(f"A session is open after {session.actions} actions, at {await session.where()}")
        except BrowserError as fault:
            return error_of(fault)

    async def _acted(self, session: BrowserSession, command: str, wanted: Command, before: ToolImage) -> ToolImage:
        """Carry out a command, and keep what it did; the page after it. Raises BrowserError."""
        left, started = self._left.get(session), time.monotonic()
        try:
            await session.act(wanted)
            after = await session.screenshot()
        except BrowserError as fault:
            if left is not None:
                left.acted(command, time.monotonic() - started, before, None, None, str(fault))
            raise
        if left is not None:
            left.acted(command, time.monotonic() - started, before, after, await session.extract(), "")
        return after

    # -- sessions ----------------------------------------------------------------------------------------------------

    async def _driver(self) -> Playwright:
        async with self._starting:
            if self._playwright is None:
                await self._gate.open()
                self._playwright = await library().async_playwright().start()
            return self._playwright

    async def _session(self) -> BrowserSession:
        """The caller's session. A candidate without one starts its own at the page of its parent branch. Raises
        BrowserError.
        """
        mine = owner.get(Owner())
        session = self._sessions.get(mine)
        if session is not None and session.closed:
            del self._sessions[mine]
            session = None
        if session is not None:
            return session
        above = mine.branch
        while above:
            above = above.rpartition("/")[0]
            parent = self._sessions.get(Owner(mine.run, above))
            if parent is not None and not parent.closed:
                session = await self._new_session(mine.branch.replace("/", "_"))
                self._sessions[mine] = session
                await session.start_from(parent)
                return session
        raise BrowserError("no browser session is open; start one first")

    async def _new_session(self, name: str) -> BrowserSession:
        """A session with a folder for its artefacts, if there is one."""
        driver = await self._driver()
        if self._artefacts is None:
            return BrowserSession(driver, self._gate)
        try:
            run = current_call().session_id
        except LookupError:
            run = ""
        left = Artefacts(self._artefacts, run, name, self._redact)
        session = BrowserSession(driver, self._gate, left.video)
        self._left[session] = left
        return session

    async def _closed(self, session: BrowserSession) -> str:
        """End a session, and complete what it leaves; its figures in words, if it leaves any."""
        await _closed(session)
        left = self._left.pop(session, None)
        return left.ended() if left is not None else ""


async def _closed(session: BrowserSession) -> None:
    """End a session; one that does not end in time is left to its driver, which ends it at the latest."""
    with contextlib.suppress(TimeoutError):
        await session.close()


def _with(text: str, *images: ToolImage) -> ToolResult:
    return replace(cut(text), images=images)


def browser_tools(browser: BrowserTools, refusal: str) -> dict[str, Callable[[], Tool]]:
    """Returns the functions that describe ``take_screenshot``, and the session's tools as ``browser_*`` and
    ``rabbitize_*``, by name. ``refusal`` says why they may not run; without the extra they may not either."""
    session = (browser.start, browser.execute, browser.extract, browser.close, browser.status)
    named: dict[str, Function] = {"take_screenshot": browser.take_screenshot}
    named |= {f"{prefix}_{one.__name__}": one for prefix in ("browser", "rabbitize") for one in session}
    refused = cache(lambda: missing("browser") or refusal)  # Looked for once, and not before a tool is described.
    return {name: partial(_tool, name, use, refused) for name, use in named.items()}


def _tool(name: str, use: Function, refused: Callable[[], str]) -> Tool:
    spec = own_spec_of(name, use, side_effects=True)
    return Tool(name, spec, use, Kind.BUILTIN, timeout_s=TIMEOUT_S, refusal=refused())
