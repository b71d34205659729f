"""A bench to test at: the app over a real session, in a folder of its own, at a size of one's choice."""

from __future__ import annotations

import asyncio
import faulthandler
import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import groupby
from pathlib import Path
from time import monotonic
from typing import Any

from textual import events
from textual.errors import NoWidget
from textual.map_geometry import MapGeometry
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from tests.support.waiting import PATIENCE
from tests.ui.pace import FRAMES, QuickPilot, running
from tests.ui.support import TRIAGE
from workbench.engine.contracts import Notice
from workbench.engine.journal.event import Event
from workbench.tui.app import WorkbenchApp
from workbench.tui.bench.presenter import Presenter
from workbench.tui.bench.screen import BenchScreen
from workbench.tui.notices import Notices
from workbench.workspace.project import Project
from workbench.workspace.session import Session

SAVED = 1_793_628_131
"""When the file of a bench was last saved: 2026-11-02 14:02:11 UTC."""
FIRST_PAUSE, LAST_PAUSE = 0.01, 0.2
"""Seconds between two looks at a condition, at first and after two seconds: a look may draw the screen, and a busy
machine has no time to draw it a hundred times each second."""


def session_at(folder: Path, text: str = TRIAGE, replies: str = "", name: str = "log_triage") -> Session:
    """A session over a cascade file in a folder, with the offline model."""
    file = folder / f"{name}.yaml"
    file.write_text(text)
    os.utime(file, (SAVED, SAVED))
    if replies:
        (folder / f"{name}.replies.yaml").write_text(replies)
    env = {"WORKBENCH_CONFIG_DIR": str(folder / "config"), "WORKBENCH_STATE_DIR": str(folder / "state")}
    return Session(Project.at(folder, env=env), file, model="offline", session="log_triage-7f3a")


class Bench:
    """What a test holds: the pilot, and what it looks at."""

    def __init__(self, app: WorkbenchApp, pilot: QuickPilot) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def screen(self) -> BenchScreen:
        return self.app.bench

    @property
    def session(self) -> Session:
        assert self.app.session is not None
        return self.app.session

    @property
    def presenter(self) -> Presenter:
        assert self.screen.presenter is not None
        return self.screen.presenter

    async def press(self, *keys: str) -> None:
        for chord, group in groupby(keys, lambda key: len(key) == len("alt+x") and key.startswith("alt+")):
            if chord:
                # Terminals send the letter with it, which a place to write in could take for typed.
                for key in group:
                    self.app.post_message(events.Key(key, key[-1]))
                await self.pilot.pause()
            else:
                await self.pilot.press(*group)

    async def type(self, text: str) -> None:
        await self.pilot.type(text)

    async def until(self, condition: Callable[[], object], what: str = "") -> None:
        """Let the app work until a condition holds and its screen is composed. Fails when it does not come true, and
        shows the screen, and on stderr where each thread is: what comes once in a thousand runs is seen once."""
        began = monotonic()
        while not condition() or (self.app.is_running and not self.app.screen.children):
            waited = monotonic() - began
            if waited >= PATIENCE:
                faulthandler.dump_traceback(2)
                failure = self.app.session.failure if self.app.session is not None else ""
                raise AssertionError(f"{what or 'the condition did not come true'}; {failure}\n{self.text()}")
            await asyncio.sleep(min(max(FIRST_PAUSE, waited / 10), LAST_PAUSE))
        await self.pilot.pause()

    async def feed(self, events: Iterable[Event] = (), notices: Iterable[Notice] = ()) -> None:
        """Hand over what an engine would send, and let the app take it."""
        self.session.events.extend(events)
        self.session.notices.extend(notices)
        await self.until(lambda: not self.session.events and not self.session.notices)

    def text(self) -> str:
        """The cells of the screen, line by line."""
        return screen_text(self.app)

    def pane(self, name: str) -> str:
        """The cells of one pane."""
        view = self.screen.query_one(f"#{name}")
        return "\n".join(strip.text.rstrip() for strip in view.render_lines(view.size.region))


def screen_strips(app: WorkbenchApp) -> list[Strip]:
    """What a terminal would show, line by line: a dialog with the screen below it."""
    width, height = app.size
    lines = [Strip.blank(width)] * height
    screens = app.screen_stack
    first = max((at for at, screen in enumerate(screens) if not screen.is_modal), default=0)
    for screen in screens[first:]:
        for widget, place in sorted(_placed(screen), key=lambda found: found[1].order):
            shown = place.region.intersection(place.clip).intersection(app.size.region)
            if not shown or (widget is screen and screen.is_modal):
                continue
            drawn = widget.render_lines(shown.translate(-place.region.offset))
            for y, strip in zip(range(shown.y, shown.bottom), drawn, strict=False):
                before, _, after = lines[y].divide([shown.x, shown.right, width])
                lines[y] = Strip.join([before, strip.adjust_cell_length(shown.width), after])
    return lines


def _placed(screen: Screen[Any]) -> Iterator[tuple[Widget, MapGeometry]]:
    """The widgets that are drawn on a screen and their scroll bars, each with its place."""
    for widget in screen.walk_children(Widget, with_self=True):
        bars = (
            (widget.show_vertical_scrollbar, "vertical_scrollbar"),
            (widget.show_horizontal_scrollbar, "horizontal_scrollbar"),
        )
        for part in (widget, *(getattr(widget, name) for shown, name in bars if shown)):
            with suppress(NoWidget):
                if part.visible and part.display:
                    yield part, screen.find_widget(part)


def screen_text(app: WorkbenchApp) -> str:
    """What a terminal would show, without colours."""
    return "\n".join(strip.text.rstrip() for strip in screen_strips(app)) + "\n"


@asynccontextmanager
async def bench(
    folder: Path,
    *,
    size: tuple[int, int] = (120, 40),
    text: str = TRIAGE,
    replies: str = "",
    events: Iterable[Event] = (),
    notices: Iterable[Notice] = (),
    given: Mapping[str, Any] | None = None,
    session: Session | None = None,
    **options: Any,
) -> AsyncIterator[Bench]:
    """The app at a size, with its session open and everything drawn. Tooltips are on, and messages stay until a key, a
    click or another message takes them away: on a busy machine a test may look later than they last."""
    over = session if session is not None else session_at(folder, text, replies)
    app = WorkbenchApp(lambda: over, given={"log": "night.log"} if given is None else given, **options)
    app.animation_level = "none"
    app.notices = Notices(app.show_notices, lambda seconds, forget: None)
    async with AsyncExitStack() as stack:
        with FRAMES.left_out(app):  # Nobody looks at one before all is there.
            pilot = await stack.enter_async_context(running(app, size))
            it = Bench(app, pilot)
            with app.batch_update():
                await it.until(
                    lambda: app.session is not None and it.screen.presenter is not None, "nothing was opened"
                )
                await app.workers.wait_for_complete()
            await pilot.pause()
            if events or notices:
                await it.feed(events, notices)
        yield it
        await pilot.pause()
        assert not app.palette.unknown, "a view names a colour that there is not"
