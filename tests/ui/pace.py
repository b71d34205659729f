"""What makes apps under test quick: short rests, style sheets that are parsed once, and one frame for each rest of the
pilot (``tests/conftest.py`` slows the clock that would draw others in between)."""

from __future__ import annotations

import asyncio
import os
import unicodedata
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from pathlib import Path
from threading import get_native_id
from time import monotonic, process_time
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from textual import events
from textual.app import App
from textual.css.model import RuleSet
from textual.css.stylesheet import CssSource, Stylesheet
from textual.css.types import CSSLocation
from textual.geometry import Region
from textual.keys import KEY_NAME_REPLACEMENTS, key_to_character
from textual.pilot import Pilot
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

LOOK = 0.004
"""Seconds that one look lasts at whether an app rests; Textual's own looks last 20 ms, two for each key."""
RESTS = 0.05
"""Share of a look for which an app that rests may use the processor, as Textual has it."""
LONGEST = 1.0
"""Seconds of the processor's time, and of looks at threads that wait, after which an app is left to work on. A busy
machine does not hurry this clock."""
LONGEST_AT_WORK = 10.0
"""Seconds after which it is left to work, or with messages that it did not take yet."""
TURNS = 3
"""Turns of the event loop from a timer that is due until its message is in a queue."""
LAYOUTS = 10
"""Layouts that may follow from one another, until an app is left to go on by itself."""
TASKS = "/proc/self/task"
"""Where Linux tells of each thread of this process whether it runs."""
_TELLS = Path(TASKS).is_dir()


class Frames:
    """The frames of headless apps, which nobody sees. Textual draws one for each layout, two or three until an app
    rests, and they took a quarter of the processor time of ``tests/ui``. So they are left out while an app works; then
    each widget draws once what it would have drawn in them: whatever is on the screen at rest has been drawn."""

    def __init__(self) -> None:
        self._left: WeakKeyDictionary[App[Any], dict[Widget, Region]] = WeakKeyDictionary()

    @contextmanager
    def left_out(self, app: App[Any]) -> Iterator[None]:
        """Draw nothing of an app within this, and what is still on its screen at the end."""
        if app in self._left:
            yield
            return
        self._left[app] = {}
        try:
            yield
        finally:
            left = self._left.pop(app)
        for widget, crop in left.items():
            if widget.is_attached and (region := crop.intersection(widget.outer_size.region)):
                widget.render_lines(region)

    @contextmanager
    def drawn(self, app: App[Any]) -> Iterator[None]:
        """Draw all the same within this: the app takes a picture of its screen."""
        left = self._left.pop(app, None)
        try:
            yield
        finally:
            if left is not None:
                self._left[app] = left

    def leave_out(self, widget: Widget, crop: Region) -> bool:
        """Whether these lines of a widget are to be drawn later."""
        left = self._left.get(widget.app)
        if left is None:
            return False
        left[widget] = left[widget].union(crop) if widget in left else crop
        return True


FRAMES = Frames()
_render_lines, _export_screenshot = Widget.render_lines, App.export_screenshot


def _render_lines_of_frames(self: Widget, crop: Region) -> list[Strip]:
    return [] if FRAMES.leave_out(self, crop) else _render_lines(self, crop)


def _export_drawn_screenshot(self: App[Any], *arguments: Any, **options: Any) -> str:
    with FRAMES.drawn(self):
        return _export_screenshot(self, *arguments, **options)


Widget.render_lines = _render_lines_of_frames  # type: ignore[method-assign]
App.export_screenshot = _export_drawn_screenshot  # type: ignore[method-assign]


class QuickPilot(Pilot[Any]):
    """A pilot that waits no longer than it must."""

    def __init__(self, app: App[Any]) -> None:
        super().__init__(app)
        self._screens: WeakSet[Screen[Any]] = WeakSet()
        self._laid_out = False

    async def press(self, *keys: str) -> None:
        """Press keys, by their names or characters, and let the app answer each."""
        with FRAMES.left_out(self.app):
            for key in keys:
                self._send(key)
                await self.pause()

    async def type(self, text: Iterable[str]) -> None:
        """Type a text, or keys, faster than the app draws it, and let the app answer it as a whole."""
        for key in text:
            self._send(key)
        await self.pause()

    def _send(self, key: str) -> None:
        name = _named(key)
        self.app.post_message(events.Key(name, key if len(key) == 1 else key_to_character(name)))

    async def pause(self, delay: float | None = None) -> None:
        """Let the app take what was sent, without a delay (seconds) until it rests; then let it draw, as often as one
        layout brings another.

        Textual's own pause sends a message to each widget of the screen and waits for all of them. Most messages of a
        test were such messages, so there is one pause at the end."""
        if delay is not None:
            await super().pause(delay)
            return
        with FRAMES.left_out(self.app):
            await self._rest()
            self._watch_layouts()
            self._laid_out = False
            await super().pause(0)
            for _ in range(LAYOUTS):
                if not self._laid_out and not self._has_messages():
                    return
                await self._rest()
                self._laid_out = False
                await self.wait_for_animation()  # There is none: this lays out now what would be at the next frame.

    def _watch_layouts(self) -> None:
        """Note each layout of the screen on top."""
        screen = self.app.screen
        if screen not in self._screens and self.app.is_running:
            self._screens.add(screen)
            screen.screen_layout_refresh_signal.subscribe(self.app, self._note_layout, immediate=True)

    def _note_layout(self, _screen: Screen[Any]) -> None:
        self._laid_out = True

    async def _rest(self) -> None:
        """Wait until no message is left, no thread works and the processor is hardly used, but see ``LONGEST``."""
        began, used_before, idle = monotonic(), process_time(), 0.0
        while monotonic() - began < LONGEST_AT_WORK:
            used = process_time()
            await asyncio.sleep(LOOK)
            works = process_time() - used >= LOOK * RESTS
            for _ in range(TURNS):
                await asyncio.sleep(0)
            if self._has_messages():
                continue
            works = works or _threads_run()
            if not works and not self._has_workers():
                return
            idle += 0 if works else LOOK
            if process_time() - used_before + idle > LONGEST:
                return

    def _has_workers(self) -> bool:
        return any(not worker.is_finished for worker in self.app.workers)

    def _has_messages(self) -> bool:
        """Whether the app or its screen has something to take: on a busy machine an app also uses no processor when it
        gets none."""
        return any(pump.message_queue_size for pump in (self.app, *self.app.screen.walk_children(with_self=True)))


def _threads_run() -> bool:
    """Whether another thread of this process runs, or waits for a processor or a disk. On a busy machine one that works
    may get no processor for longer than a look. Where the system does not tell (macOS), none is said to run."""
    own = str(get_native_id())
    with os.scandir(TASKS) if _TELLS else nullcontext(()) as tasks:
        for task in tasks:
            if task.name != own:
                with suppress(OSError):  # It has just ended.
                    if _state(task.path) in (b"R", b"D"):
                        return True
    return False


def _state(task: str) -> bytes:
    """The letter of what a thread does. Files of pathlib and of Python would take twice as long, at each rest."""
    stat = os.open(f"{task}/stat", os.O_RDONLY)
    try:
        return os.read(stat, 256).rpartition(b")")[2][1:2]
    finally:
        os.close(stat)


def _named(key: str) -> str:
    """Textual's name of a key; a character stands for its own."""
    if len(key) == 1 and not key.isalnum():
        key = unicodedata.name(key, key).lower().replace("-", "_").replace(" ", "_")
    return KEY_NAME_REPLACEMENTS.get(key, key)


class SharedStylesheet(Stylesheet):
    """A style sheet whose texts are parsed once for all apps: rules follow from texts and variables, and an app only
    reads them."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        super().__init__(variables=dict(variables))
        self._parser = _parser(variables)
        self._parsed: _Parsed | None = None

    def set_variables(self, variables: dict[str, str]) -> None:
        super().set_variables(variables)
        self._parser, self._parsed = _parser(variables), None

    def read(self, *arguments: Any, **options: Any) -> None:
        super().read(*arguments, **options)
        self._parsed = None

    def add_source(self, *arguments: Any, **options: Any) -> None:
        super().add_source(*arguments, **options)
        self._parsed = None

    def parse(self) -> None:
        self._parsed = self._parser.parsed(tuple(self.source.items()))

    reparse = parse

    @property
    def _whole(self) -> _Parsed:
        if self._parsed is None:
            self.parse()
        assert self._parsed is not None
        return self._parsed

    @property
    def rules(self) -> list[RuleSet]:
        return self._whole.rules

    @property
    def rules_map(self) -> dict[str, list[RuleSet]]:
        return self._whole.by_name


class _Parsed:
    """The rules of some texts, in their order, and by the names that they select."""

    def __init__(self, rules: list[RuleSet]) -> None:
        self.rules = rules
        self.by_name: dict[str, list[RuleSet]] = {}
        for rule in rules:
            for name in rule.selector_names:
                self.by_name.setdefault(name, []).append(rule)


class _Parser:
    """Parses texts with the same variables, each of them once."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._sheet = Stylesheet(variables=dict(variables))
        self._rules: dict[_Source, list[RuleSet]] = {}
        self._parsed: dict[tuple[_Source, ...], _Parsed] = {}

    def parsed(self, sources: tuple[_Source, ...]) -> _Parsed:
        if sources not in self._parsed:
            self._parsed[sources] = _Parsed([rule for source in sources for rule in self._parse(source)])
        return self._parsed[sources]

    def _parse(self, source: _Source) -> list[RuleSet]:
        if source not in self._rules:
            self._sheet.source = dict([source])
            self._sheet.parse()
            self._rules[source] = self._sheet.rules
        return self._rules[source]


_Source = tuple[CSSLocation, CssSource]
_PARSERS: dict[tuple[tuple[str, str], ...], _Parser] = {}


def _parser(variables: Mapping[str, str]) -> _Parser:
    """The parser of some variables."""
    return _PARSERS.setdefault(tuple(variables.items()), _Parser(variables))


@asynccontextmanager
async def running(app: App[Any], size: tuple[int, int]) -> AsyncIterator[QuickPilot]:
    """Run a headless app of a size (columns, rows), with toasts and tooltips, and drive it."""
    app.stylesheet = SharedStylesheet(app.get_css_variables())
    async with app.run_test(size=size, notifications=True, tooltips=True):
        yield QuickPilot(app)
