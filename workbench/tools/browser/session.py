"""One browser session: a Chromium of its own with one page in it, from its start to its end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import Awaitable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct

from workbench.engine.contracts import ToolImage
from workbench.tools.browser.commands import Command
from workbench.tools.browser.gate import Gate

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page, Playwright, Route

T = TypeVar("T")

WIDTH, HEIGHT = 1280, 800
"""Pixels of the page that shows; coordinates are in these."""
START_S, PAGE_S, STEP_S = 30.0, 30.0, 15.0
"""Seconds for the browser to start, a page to load, anything else."""
CLOSE_S = 5.0
SETTLE_MS = 1500
"""Longest wait after a command until the page is quiet."""
SHOTS, SHOT_S = 10, 0.2
"""How often a picture is asked for, and the seconds in between."""
NOTCH = 100
"""Pixels of one step of the wheel."""
MAX_TEXT = 40_000
MAX_CONTROLS = 80
QUALITY = 80
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    *("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-breakpad", "--mute-audio"),
    *("--force-webrtc-ip-handling-policy=disable_non_proxied_udp", "--disable-features=HttpsUpgrades"),
)
_SCRIPT = Path(__file__).with_name("page.js")
_SCHEMES = ("http", "https")
_ERROR_PAGE = "chrome-error:"
_INNER = ("data", "blob", "about")
"""Schemes that a page may use for its own parts."""


class BrowserError(Exception):
    """An error of the browser, in a sentence for the model."""


class Extract(Struct, frozen=True):
    """The content of a page."""

    url: str
    title: str
    markdown: str
    controls: tuple[str, ...]
    """``button 'Send' at 400, 300``, of what shows."""

    def words(self) -> str:
        """All of it as text."""
        listed = "\n".join(self.controls) or "(none)"
        return f"URL: {self.url}\nTitle: {self.title}\n\n{self.markdown}\n\nControls in view:\n{listed}"


def allowed(url: str) -> str:
    """The address, with https if it names no scheme. Raises BrowserError for an address that may not be opened."""
    text = url.strip()
    if "://" not in text and not text.lower().startswith(("javascript:", "data:", "file:", "about:", "view-source:")):
        text = f"https://{text}"
    try:
        parts = urlsplit(text)
        host = parts.hostname
    except ValueError as fault:
        raise BrowserError(f"'{url[:200]}' is not an address: {fault}") from fault
    if parts.scheme.lower() not in _SCHEMES or not host:
        raise BrowserError(f"'{url[:200]}' cannot be opened: only http and https addresses can")
    return text


def _closed(url: str) -> bool:
    """Returns whether nothing on a page may be read from an address either. Which hosts may be reached is asked by the
    gate: the browser follows redirects by itself."""
    try:
        return urlsplit(url).scheme not in (*_SCHEMES, *_INNER)
    except ValueError:
        return True


def program() -> str | None:
    """The system's Chromium; None if Playwright's own is to be used, if installed."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


def library() -> ModuleType:
    """playwright, of the extra ``browser``."""
    # It takes 190 ms to import, and few runs have a browser.
    import playwright.async_api

    return playwright.async_api


class BrowserSession:
    """A page that tools drive. Every step has a time limit; one that runs over it ends the session."""

    def __init__(self, playwright: Playwright, gate: Gate, video: Path | None = None) -> None:
        """``gate`` is its way out; ``video`` is the folder of a recording, which is made where the browser can."""
        self._playwright = playwright
        self._gate = gate
        self._video = video
        self._browser: Browser | None = None
        self._context: BrowserContext | None = None
        self._page: Page | None = None
        self._refusals = 0
        """Of the gate, until the page that shows had loaded."""
        self.actions = 0
        self.closed = False

    # -- life --------------------------------------------------------------------------------------------------------

    async def start(self, url: str) -> None:
        """Start the browser and open a page. Raises BrowserError."""
        address = allowed(url)
        parts = urlsplit(address)
        if refusal := await self._gate.why_not(parts.hostname or "", parts.port or 443):
            raise BrowserError(f"'{url[:200]}' cannot be opened: {refusal}")
        await self._launch(None)
        await self._open(address)

    async def start_from(self, other: BrowserSession) -> None:
        """Start the browser where another one stands, with its cookies; on an empty page where that one shows none of
        the web, because it did not load. Raises BrowserError."""
        assert other._context is not None
        url = other.page.url
        await self._launch(await other._within(other._context.storage_state(), STEP_S, "no state"))
        if urlsplit(url).scheme in _SCHEMES:
            await self._open(allowed(url))

    async def _launch(self, cookies: Any) -> None:
        """The browser and an empty page."""
        options = {"args": list(FLAGS), "headless": True, "timeout": START_S * 1000}
        launch = self._playwright.chromium.launch(
            **options,  # type: ignore[arg-type]
            executable_path=program(),
            proxy={
                "server": self._gate.address,
                "username": "gate",
                "password": self._gate.key,
                "bypass": "<-loopback>",  # Which says that this machine is not left out.
            },
            chromium_sandbox=os.geteuid() != 0,
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
        )
        self._browser = await self._within(launch, START_S, "the browser did not start")
        self._context = await self._new_context(self._browser, cookies)
        self._context.set_default_timeout(STEP_S * 1000)
        await self._context.route(_closed, _refuse)
        self._context.on("page", self._took)
        self._page = await self._within(self._context.new_page(), STEP_S, "the page did not open")

    async def _new_context(self, browser: Browser, cookies: Any) -> BrowserContext:
        """A window with a recording, or without one if the browser cannot record."""
        options: dict[str, Any] = {
            "viewport": {"width": WIDTH, "height": HEIGHT},
            "accept_downloads": False,
            "service_workers": "block",
            "storage_state": cookies,
        }
        if self._video is not None:
            context: BrowserContext | None = None
            try:
                context = await browser.new_context(**options, record_video_dir=self._video)
                # What records starts with the first page, which says so when it is missing.
                await (await context.new_page()).close()
                return context
            except library().Error:
                self._video = None
                if context is not None:
                    await context.close()
        return await self._within(browser.new_context(**options), STEP_S, "the browser did not start")

    def _took(self, page: Page) -> None:
        """A page that a page opens is the one to look at, as in a window."""
        self._page = page

    async def close(self) -> None:
        """End the browser, whatever it is doing."""
        self.closed = True
        browser, self._browser, self._page = self._browser, None, None
        if browser is not None:
            await asyncio.wait_for(asyncio.gather(browser.close(), return_exceptions=True), CLOSE_S)

    @property
    def page(self) -> Page:
        if self._page is None or self._page.is_closed():
            raise BrowserError("the page was closed; start a new session")
        return self._page

    async def _within(self, work: Awaitable[T], seconds: float, what: str) -> T:
        """The result in time. Raises BrowserError; after a time-out the session is over."""
        try:
            async with asyncio.timeout(seconds + 1):
                return await work
        except TimeoutError:
            await self.close()
            raise BrowserError(f"{what} within {seconds:g} s; the session was ended") from None
        except library().Error as fault:
            raise BrowserError(_first(fault.message)) from None

    # -- looking -----------------------------------------------------------------------------------------------------

    async def screenshot(self) -> ToolImage:
        """Takes a picture of the visible page. Asked again for a moment: while a page gives way to the next there is no
        picture."""
        for left in range(SHOTS, 0, -1):
            await self._arrived()
            shot = self.page.screenshot(type="jpeg", quality=QUALITY, animations="disabled", caret="hide")
            try:
                data = await self._within(shot, STEP_S, "no picture was taken")
                return ToolImage(data, "image/jpeg", WIDTH, HEIGHT)
            except BrowserError as fault:
                if left == 1 or "Unable to capture" not in str(fault):
                    raise
                await asyncio.sleep(SHOT_S)
        raise AssertionError("the last one returns or raises")

    async def extract(self) -> Extract:
        """Text and controls of the page."""
        await self._arrived()
        script = _SCRIPT.read_text("utf-8")
        said = await self._within(
            self.page.evaluate(script, [MAX_TEXT, MAX_CONTROLS]), STEP_S, "the page did not answer"
        )
        title = await self._within(self.page.title(), STEP_S, "the page did not answer")
        found = said if isinstance(said, dict) else {}
        cut = "\n[… the page goes on …]" if found.get("cut") else ""
        controls = [row for row in found.get("controls") or () if isinstance(row, list) and len(row) == 4]
        return Extract(
            self.page.url[:2000],
            title[:300],
            str(found.get("markdown", ""))[:MAX_TEXT] + cut,
            tuple(f"{kind} '{label}' at {x}, {y}" for kind, label, x, y in controls[:MAX_CONTROLS]),
        )

    async def where(self) -> str:
        """Address and title in one line."""
        title = await self._within(self.page.title(), STEP_S, "the page did not answer")
        return f"{self.page.url[:500]} · {title[:200]}"

    # -- acting ------------------------------------------------------------------------------------------------------

    async def act(self, command: Command) -> None:
        """Carry out one command, and wait until the page is quiet. Raises BrowserError."""
        self.actions += 1
        if command.name == "url":
            await self._open(allowed(command.text))
            return
        limit = STEP_S + (command.numbers[0] if command.name == "wait" else 0)
        await self._within(self._do(command), limit, f":{command.name} did not end")
        await self._settle()

    async def _do(self, command: Command) -> None:
        page, mouse, numbers = self.page, self.page.mouse, command.numbers
        match command.name:
            case "move-mouse":
                self._at = (numbers[0], numbers[1])
                await mouse.move(*self._at)
            case "click" | "double-click" | "right-click" | "middle-click":
                button = {"right-click": "right", "middle-click": "middle"}.get(command.name, "left")
                count = 2 if command.name == "double-click" else 1
                await mouse.click(*self._at, button=button, click_count=count)  # type: ignore[arg-type]
            case "drag":
                await mouse.move(numbers[0], numbers[1])
                await mouse.down()
                await mouse.move(numbers[2], numbers[3], steps=10)
                await mouse.up()
                self._at = (numbers[2], numbers[3])
            case "type":
                await page.keyboard.type(command.text)
            case "keypress":
                await page.keyboard.press(command.text)
            case "scroll-wheel-down" | "scroll-wheel-up":
                sign = 1 if command.name.endswith("down") else -1
                await mouse.wheel(0, sign * numbers[0] * NOTCH)
            case "wait":
                await asyncio.sleep(numbers[0])
            case "back":
                await page.go_back()
            case "forward":
                await page.go_forward()
            case "reload":
                await page.reload()

    _at: tuple[float, float] = (0.0, 0.0)
    """Position of the mouse."""

    async def _open(self, address: str) -> None:
        self._refusals = self._gate.refusals
        going = self.page.goto(address, timeout=PAGE_S * 1000, wait_until="domcontentloaded")
        try:
            await self._within(going, PAGE_S, f"{address[:200]} did not load")
        except BrowserError:
            if self.closed:
                raise
            await self._leave()
            if refusal := self._refusal():
                raise BrowserError(f"{address[:200]} did not load: {refusal}") from None
            raise
        await self._settle()

    async def _settle(self) -> None:
        """Wait until the page is quiet. Raises BrowserError where it has led to one that did not load."""
        await self._rest()
        await self._arrived()

    async def _arrived(self) -> None:
        """Raises BrowserError, and shows an empty page, where a link, a script or a page that goes on by itself has led
        to one that did not load."""
        lost, refusal = self.page.url.startswith(_ERROR_PAGE), self._refusal()
        self._refusals = self._gate.refusals
        if lost:
            await self._leave()
            raise BrowserError(f"the page went on to another, which did not load: {refusal or 'no answer'}")

    def _refusal(self) -> str:
        """Returns what the gate has refused since the page that shows had loaded; empty if nothing."""
        return self._gate.refused[-1] if self._gate.refusals > self._refusals else ""

    async def _leave(self) -> None:
        """An empty page in place of the browser's own page of an error, of which it takes no picture at times."""
        await self._rest()
        with contextlib.suppress(library().Error):
            await self.page.goto("about:blank", timeout=STEP_S * 1000)

    async def _rest(self) -> None:
        """Give the page a moment to load and draw what a command set off; a page that never rests is looked at so."""
        try:
            await self.page.wait_for_load_state("load", timeout=SETTLE_MS)
            await self.page.wait_for_load_state("networkidle", timeout=SETTLE_MS)
        except library().Error:
            return


async def _refuse(route: Route) -> None:
    await route.abort("blockedbyclient")


def _first(message: str) -> str:
    """The first line of a fault: what follows is a log of attempts."""
    line = message.strip().splitlines()[0] if message.strip() else "the browser failed"
    if "Executable doesn't exist" in message:
        return "no Chromium is installed here; install the system's (chromium), or run: playwright install chromium"
    return line.removeprefix("Page.").removeprefix("BrowserType.")[:500]
