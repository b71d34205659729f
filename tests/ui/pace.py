"""What makes apps under test quick: short rests, style sheets that are parsed once, and frames that nobody sees left
undrawn."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from time import monotonic, process_time
from typing import Any

from textual import events
from textual._compositor import Compositor
from textual.app import App
from textual.css.model import RuleSet
from textual.css.stylesheet import CssSource, Stylesheet
from textual.keys import KEY_NAME_REPLACEMENTS, key_to_character
from textual.pilot import Pilot

LOOK = 0.004
"""Seconds that one look lasts at whether an app rests; Textual's own looks last 20 ms, two for each key."""
RESTS = 0.05
"""Share of a look for which an app that rests may use the processor, as Textual has it."""
LONGEST = 1.0
"""Seconds after which an app is left to work on."""


class QuickPilot(Pilot[Any]):
    """A pilot that waits no longer than it must."""

    async def press(self, *keys: str) -> None:
        """Press keys, by their names or characters, and let the app answer each."""
        for key in keys:
            name = _named(key)
            character = key if len(key) == 1 else key_to_character(name)
            self.app.post_message(events.Key(name, character))
            await self.pause()

    async def pause(self, delay: float | None = None) -> None:
        """Let the app take what was sent, and draw; without a delay (seconds) it then rests."""
        await super().pause(delay or 0)
        if delay is None:
            await _rest()
            await super().pause(0)


def _named(key: str) -> str:
    """Textual's name of a key; a character stands for its own."""
    if len(key) == 1 and not key.isalnum():
        key = unicodedata.name(key, key).lower().replace("-", "_").replace(" ", "_")
    return KEY_NAME_REPLACEMENTS.get(key, key)


async def _rest() -> None:
    give_up = monotonic() + LONGEST
    while monotonic() < give_up:
        used = process_time()
        await asyncio.sleep(LOOK)
        if process_time() - used < LOOK * RESTS:
            return


class SharedStylesheet(Stylesheet):
    """A style sheet whose rules are parsed once for all apps: they follow from its texts and variables, and an app
    only reads them."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        super().__init__(variables=dict(variables))
        self._named = dict(variables)
        self._parsed: Stylesheet | None = None

    def set_variables(self, variables: dict[str, str]) -> None:
        super().set_variables(variables)
        self._named, self._parsed = dict(variables), None

    def read(self, *arguments: Any, **options: Any) -> None:
        super().read(*arguments, **options)
        self._parsed = None

    def add_source(self, *arguments: Any, **options: Any) -> None:
        super().add_source(*arguments, **options)
        self._parsed = None

    def parse(self) -> None:
        key = (tuple(self.source.items()), tuple(self._named.items()))
        if key not in _PARSED:
            whole = Stylesheet(variables=dict(self._named))
            whole.source = dict(self.source)
            whole.parse()
            _PARSED[key] = whole
        self._parsed = _PARSED[key]

    reparse = parse

    @property
    def _whole(self) -> Stylesheet:
        if self._parsed is None:
            self.parse()
        assert self._parsed is not None
        return self._parsed

    @property
    def rules(self) -> list[RuleSet]:
        return self._whole.rules

    @property
    def rules_map(self) -> dict[str, list[RuleSet]]:
        return self._whole.rules_map


_PARSED: dict[tuple[tuple[tuple[Any, CssSource], ...], tuple[tuple[str, str], ...]], Stylesheet] = {}


def leave_frames_undrawn() -> None:
    """For the rest of this process. A headless app has no terminal for its frames, and a test looks at few of them:
    ``screen_text`` and pictures draw the whole screen.

    This replaces a method of Textual, the only one that the tests replace: no public way leaves frames out, and drawing
    them takes as long again as all the rest of a test (0.28 s instead of 0.16 s of processor time, 70 s for the suite).
    """
    draw = Compositor.render_update

    def draw_whole(compositor: Compositor, full: bool = False, *arguments: Any, **named: Any) -> Any:
        if full:  # For a picture.
            return draw(compositor, full, *arguments, **named)
        compositor._dirty_regions.clear()
        return None

    Compositor.render_update = draw_whole  # type: ignore[assignment, method-assign]


leave_frames_undrawn()


@asynccontextmanager
async def running(app: App[Any], size: tuple[int, int]) -> AsyncIterator[QuickPilot]:
    """Run a headless app of a size (columns, rows), with toasts and tooltips, and drive it."""
    app.stylesheet = SharedStylesheet(app.get_css_variables())
    async with app.run_test(size=size, notifications=True, tooltips=True):
        yield QuickPilot(app)
