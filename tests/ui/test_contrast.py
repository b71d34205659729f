"""Whatever the theme and the ground, text can be read: measured by the formula of WCAG 2."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.color import Color
from textual.geometry import Region
from textual.selection import Selection
from textual.strip import Strip

from tests.ui.bench import bench, screen_strips
from tests.ui.support import triage_story
from tests.ui.test_forms import REVIEW
from tests.ui.test_snapshots import HELD
from workbench.engine.journal.event import Event
from workbench.exporters.html import COLOURS
from workbench.resources import folder
from workbench.themes import Themes, load_themes, theme_of
from workbench.tui.palette import FAINT, PAINTS, READABLE, TONES, Palette, contrast
from workbench.tui.screens.form import FormDialog
from workbench.tui.screens.freeze import FreezeForm

THEMES = {name: theme for name, theme in load_themes([folder("themes")]).by_name.items() if not theme.ansi}
FAINT_ONE = {
    **{"primary": "#405060", "secondary": "#504060", "warning": "#605040", "error": "#604040", "success": "#406040"},
    **{"accent": "#406060", "foreground": "#707070", "background": "#202020"},
}
"""A theme that somebody wrote without a thought for contrast."""


def palettes() -> Iterator[Palette]:
    for theme in (*THEMES.values(), theme_of(FAINT_ONE, "faint")):
        yield Palette(theme, {**theme.to_color_system().generate(), **theme.variables})


@pytest.mark.parametrize("palette", list(palettes()), ids=lambda palette: palette.name)
def test_every_token_can_be_read_on_every_ground(palette: Palette) -> None:
    generated = palette.theme.to_color_system().generate()
    grounds = [Color.parse(generated[name]) for name in ("background", "surface", "panel")]
    grounds += [Color.from_rich_color(tone.bgcolor) for tone in palette.tones.values() if tone and tone.bgcolor]
    assert len(grounds) == 3 + len(TONES) - 1
    for ground in grounds:
        for token, paint in PAINTS.items():
            style = palette.on(token, ground.rich_color)
            assert style.color is not None
            back = Color.from_rich_color(style.bgcolor) if style.bgcolor else ground
            ratio = contrast(Color.from_rich_color(style.color), back)
            assert ratio >= paint.least, f"{token} on {back.hex} has a contrast of {ratio:.2f}"


def test_what_can_be_read_keeps_its_colour_and_lines_stay_thin() -> None:
    for palette in palettes():
        if palette.name == "workbench-dark":
            back = Color.parse(palette.theme.background or "").rich_color
            for token in ("plain", "key", "cached", "warning", "rule", "separator"):
                assert palette.on(token, back) == palette[token], token


def test_lines_and_bars_of_the_theme_of_high_contrast_can_be_told_from_their_ground() -> None:
    (palette,) = (one for one in palettes() if one.name == "high-contrast")
    ground = Color.parse(palette.theme.panel or "")
    for token, paint in PAINTS.items():
        if not paint.least and not paint.back:
            colour = palette.on(token, ground.rich_color).color
            assert colour is not None
            assert contrast(Color.from_rich_color(colour), ground) >= FAINT, token


async def test_what_stands_on_the_screen_can_be_read_in_every_theme(tmp_path: Path) -> None:
    place = triage_story().events[-1].place
    body = {"question": "How?", "context": "", "options": [], "type": "form", "form": REVIEW}
    question = Event(99, "2026-11-02T14:02:41.204000Z", "r", "human_asked", place, {"index": 1, **body})

    async with bench(tmp_path, events=triage_story().events, notices=[HELD]) as it:

        async def read(least: float) -> None:
            for name in THEMES:
                it.app.theme = name
                await it.pilot.pause()
                box = it.app.screen.query("#box")
                region = box.first().region if box else None
                strips = screen_strips(it.app)
                assert list(unreadable(strips, region, least)) == [], name

        it.app.take_themes(Themes(THEMES))
        await it.press("k", "k", "p")
        await read(FAINT)
        for dialog in (FreezeForm("log_triage_2", "snapshots/"), FormDialog(question)):
            await it.app.push_screen(dialog)
            await it.pilot.pause()
            await read(READABLE)
            await it.press("escape")


def unreadable(strips: Iterable[Strip], region: Region | None, least: float) -> Iterator[str]:
    """Words on the screen, or in a part of it, that have less contrast than they must."""
    for y, strip in enumerate(strips):
        x = 0
        for text, style, _ in strip:
            x, began = x + cell_len(text), x
            inside = region is None or region.contains(began, y)
            if not inside or style is None or style.color is None or not any(c.isalnum() for c in text):
                continue
            assert style.bgcolor is not None
            pair = Color.from_rich_color(style.color), Color.from_rich_color(style.bgcolor)
            color, back = reversed(pair) if style.reverse else pair
            if contrast(color, back) < least:
                yield f"{text.strip()}: {color.hex} on {back.hex} at {began},{y}"


async def test_selected_text_can_be_read_in_every_theme(tmp_path: Path) -> None:
    async with bench(tmp_path, events=triage_story().events) as it:
        pane = it.screen.context_pane
        it.screen.selections = {pane: Selection(None, None)}
        for name in THEMES:
            it.app.theme = name
            await it.pilot.pause()
            styles = [part.style for part in pane.render_line(6) if part.text.strip() and part.style]
            assert styles
            for style in styles:
                assert style.color is not None
                assert style.bgcolor is not None
                ratio = contrast(Color.from_rich_color(style.color), Color.from_rich_color(style.bgcolor))
                assert ratio >= READABLE, f"{name}: {ratio:.2f}"


def test_the_text_of_pages_can_be_read_in_a_light_and_in_a_dark_browser() -> None:
    light, dark = COLOURS.split("@media (prefers-color-scheme: dark)")
    schemes = [dict(re.findall(r"--(\w+): (#\w+);", text)) for text in (light, dark)]
    assert schemes[0].keys() - schemes[1].keys() == {"line"}
    for scheme in schemes:
        for ground in ("ground", "raised"):
            for token in ("text", "dim", "warn", "good", "bad", "link"):
                ratio = contrast(Color.parse(scheme[token]), Color.parse(scheme[ground]))
                assert ratio >= READABLE, f"{token} on {scheme[ground]} has a contrast of {ratio:.2f}"
