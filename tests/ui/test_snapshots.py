"""The Bench as it looks, in every situation that matters and at three sizes; and that every screen has pictures."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

from textual.command import CommandList
from textual.screen import ModalScreen, Screen

from tests.ui.bench import Bench, bench
from tests.ui.snapshot import FOLDER, SCREENS, SIZES, check_at_rest, check_sizes
from tests.ui.stored import PARENT, retold
from tests.ui.support import triage_story
from workbench import tui
from workbench.engine.contracts import Notice
from workbench.engine.debugger.stepper import Breakpoint
from workbench.language.model.cascade import Audibles
from workbench.tools.capabilities import Capability, CapabilityKind
from workbench.tui import screens
from workbench.tui.bench.screen import BenchScreen
from workbench.tui.screens.feedback import FeedbackDialog
from workbench.tui.screens.freeze import FreezeForm
from workbench.tui.screens.trust import trust_dialog

HELD = Notice("held", triage_story().events[-1].place, {"stop": "before_call", "why": "step over", "tool": ""})
TOOLS = (
    Capability(CapabilityKind.COMMAND, "night_backup: rsync -a logs/ archive:/nights"),
    Capability(CapabilityKind.ENVIRONMENT, "ARCHIVE_TOKEN"),
    Capability(CapabilityKind.NETWORK, "https://status.example.org"),
)
NOT_SHOWN = {"TooSmall": "covers terminals smaller than any of the sizes; test_sizes.py holds its words"}


def of_package(kind: type[Screen[object]]) -> Iterator[type[Screen[object]]]:
    """Every class of the app's own screens that no other one refines, or that is shown as it is."""
    for below in kind.__subclasses__():
        yield from of_package(below)
        if below.__module__.startswith(tui.__name__) and (not below.__subclasses__() or below.__name__ in SCREENS):
            yield below


def test_every_screen_has_its_picture_at_every_size() -> None:
    for module in pkgutil.iter_modules(screens.__path__, f"{screens.__name__}."):
        importlib.import_module(module.name)
    found = {screen.__name__ for screen in of_package(Screen)}
    assert found - set(NOT_SHOWN) == set(SCREENS), "a screen needs a row in SCREENS and a test that checks its picture"
    missing = [f"{base}-{size}" for base in SCREENS.values() for size in SIZES if not has_picture(f"{base}-{size}")]
    assert missing == []


def test_every_screen_but_the_bench_names_its_own_commands_for_the_palette_and_the_help() -> None:
    whole = [screen for screen in of_package(Screen) if not issubclass(screen, ModalScreen | BenchScreen)]
    assert [screen.__name__ for screen in whole if not hasattr(screen, "PALETTE")] == []


def has_picture(name: str) -> bool:
    return (FOLDER / f"{name}.txt").exists()


async def test_the_bench_before_a_run_and_held_in_it(tmp_path: Path) -> None:
    async with bench(tmp_path, given={}) as it:
        await check_sizes(it, "idle")
        await it.press("r")
        await it.until(lambda: it.app.screen is not it.screen)
        await check_sizes(it, "inputs")
        await it.press("escape")
        await it.feed(triage_story().events, [HELD])
        await check_sizes(it, "held", picture=True)
        await looks_at_a_call(it)
        await looks_elsewhere(it, tmp_path)


async def looks_at_a_call(it: Bench) -> None:
    """The context of the call that is held, and what its keys show of a message."""
    for name, on, off in (("wire", ("w",), ("w", "w")), ("diff", ("d",), ("d",)), ("why", ("k", "k", "p"), ("p",))):
        await it.press(*on)
        await check_sizes(it, name)
        await it.press(*off)
    await it.press("m")
    await check_sizes(it, "full")
    await it.press("m", "enter")
    await check_sizes(it, "sides")
    await it.press("escape")


async def looks_elsewhere(it: Bench, folder: Path) -> None:
    """The other panes, and what opens over them."""
    for name, keys in (("tree", ("shift+tab",)), ("log", ("tab", "tab", "tab"))):
        await it.pilot.resize_terminal(80, 24)
        await it.press(*keys)
        await check_at_rest(it, f"{name}-80x24")
    await it.pilot.resize_terminal(120, 40)
    await it.press("5")
    await check_sizes(it, "events")
    await it.press("question_mark")
    await check_sizes(it, "help")
    await it.press("escape", "ctrl+o")
    await check_sizes(it, "jump")
    for size, cells in SIZES.items():  # Opened anew for each: Textual's own list may keep the height of the last one.
        await it.press("escape")
        await it.pilot.resize_terminal(*cells)
        await it.press("ctrl+p")
        await it.until(lambda: len(it.app.screen.query(CommandList)) == 1, "the palette did not open")
        await it.until(lambda: it.app.screen.query_one(CommandList).option_count > 40, "it lists no commands")
        await check_at_rest(it, f"palette-{size}")
    await it.press("escape", "B")
    await check_sizes(it, "breakpoint")
    await it.press("escape")
    phase = Breakpoint("triage", condition="tokens > 6000")
    it.session.stepper.breakpoints += [Breakpoint("crash", disabled=True), phase, Breakpoint(tool="read_log")]
    await it.press("s")
    await check_sizes(it, "breakpoints")
    await it.press("escape", "v")
    await check_sizes(it, "flow")
    await it.press("escape")
    it.session.stepper.breakpoints.clear()
    it.screen.redraw()
    for name, dialog in (
        ("feedback", FeedbackDialog("triage", Audibles(budget=2), 2)),
        ("freeze", FreezeForm("log_triage_2", "snapshots/")),
        ("trust", trust_dialog(folder, TOOLS)),
    ):
        await it.press("escape")
        it.app.push_screen(dialog)
        await check_sizes(it, name)
    await it.press("escape")


async def test_a_run_that_is_over_and_a_question_of_the_next(tmp_path: Path) -> None:
    story = triage_story()
    options = ["team blue", "team green"]
    question = {"question": "Which team owns the queue?", "context": "The log names no team.", "options": options}
    async with bench(tmp_path, events=triage_story(finished=True).events) as it:
        await it.press("4", "G")
        await check_sizes(it, "done")
        await it.press("1")
        story.emit("human_asked", story.events[-1].place, index=1, **question)
        await it.feed(retold(story.events, PARENT, 3))
        await it.until(lambda: it.app.screen is not it.screen)
        await check_sizes(it, "question", picture=True)


async def test_every_other_theme(tmp_path: Path) -> None:
    async with bench(tmp_path, events=triage_story().events, notices=[HELD]) as it:
        await it.press("k", "k", "p")
        for theme in ("workbench-ember", "workbench-light", "high-contrast", "ansi-dark", "ansi-light"):
            it.app.theme = theme
            await it.pilot.pause()
            await check_at_rest(it, f"theme-{theme}", picture=True)
