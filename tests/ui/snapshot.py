"""Pictures of the app beside their text: one changed cell changes much of an SVG, so the text is what one reads."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from time import monotonic

from textual.widgets import Input, TextArea

from tests.support.stored import UPDATE, check_stored
from tests.ui.bench import Bench, screen_text
from workbench.tui.app import WorkbenchApp
from workbench.tui.screens.base import WorkbenchScreen
from workbench.tui.screens.help import HelpSheet

FOLDER = Path(__file__).parent / "snapshots"
SIZES = {"80x24": (80, 24), "200x50": (200, 50), "120x40": (120, 40)}
"""The terminals at which every screen is looked at; the last one is that of most tests."""

SCREENS: Mapping[str, str] = {
    "BatchScreen": "batch",
    "BenchScreen": "held",
    "BreakpointSheet": "breakpoints",
    "CandidatesScreen": "candidates",
    "ChangedSheet": "changed",
    "ChangesSheet": "changes",
    "ChoiceDialog": "unfinished",
    "CompareSheet": "compare",
    "DiffSheet": "batch-diff",
    "EditScreen": "edit",
    "EditorScreen": "editor",
    "FeedbackDialog": "feedback",
    "FlowSheet": "flow",
    "FormDialog": "form",
    "FreezeForm": "freeze",
    "HelpSheet": "help",
    "HomeScreen": "home",
    "InputForm": "inputs",
    "JumpScreen": "jump",
    "LiveSheet": "live-runs",
    "MessageSheet": "sides",
    "NoteDialog": "note",
    "PlaygroundForm": "playground-models",
    "PlaygroundScreen": "playground",
    "PlotSheet": "compare-plot",
    "QuestionDialog": "question",
    "RequestForm": "edit-model",
    "RequestSheet": "requests",
    "ReviewSheet": "edit-review",
    "RunsScreen": "runs",
    "SettingsScreen": "settings",
    "Sheet": "batch-variants",
    "SidePicker": "compare-sides",
    "SnapshotsScreen": "review",
    "SqlScreen": "sql",
    "SweepSheet": "sweep",
}
"""The picture that is there of every class of screen, at each of the sizes."""

LAID_OUT = 10.0
"""Seconds that a busy machine may take to lay out a screen anew; an idle one takes a hundredth of one."""

STILL = 8
"""Looks at a screen that is to be stored which must show the same, a twentieth of a second apart: what a timer draws
comes within two of them."""

_FONTS = re.compile(r"\s*@font-face \{.*?\}\n", re.DOTALL)
_IDS = re.compile(r"terminal-\d+")


def normalised(svg: str) -> str:
    """The picture without what differs from run to run, and without fonts from the network."""
    return _IDS.sub("terminal", _FONTS.sub("", svg)).rstrip() + "\n"


def check(app: WorkbenchApp, name: str, *, picture: bool = False, text: str | None = None) -> None:
    """Compare the screen, whose ``text`` may have been drawn before, with the stored text, and with the stored
    ``picture`` where colours matter too."""
    shown = type(app.screen).__name__
    claimed = [screen for screen, base in SCREENS.items() if base == name.rpartition("-")[0]]
    assert not claimed or shown in claimed, f"{name} is to show a {claimed[0]}, and this is a {shown}"
    text = screen_text(app) if text is None else text
    check_stored(FOLDER / f"{name}.txt", text)
    check_help(app, text)
    if picture:
        check_stored(FOLDER / f"{name}.svg", normalised(app.export_screenshot()))


def check_help(app: WorkbenchApp, text: str) -> None:
    """Every screen names the key of the help in its last line, by one that its text does not take, unless a message or
    a prompt stands there."""
    screen = app.screen
    if not isinstance(screen, WorkbenchScreen) or isinstance(screen, HelpSheet) or screen.is_writing:
        return
    last = text.rstrip().splitlines()[-1]
    writes = isinstance(screen.focused, Input | TextArea)
    if not app.notices.all:
        assert ("f1 help" if writes else "? help") in last, f"{type(screen).__name__}: {last}"


async def check_at_rest(it: Bench, name: str, *, picture: bool = False) -> None:
    """Compare the screen as :func:`check` does, once what the last key or size began has come to its end."""
    check(it.app, name, picture=picture, text=await _at_rest(it, name))


async def _at_rest(it: Bench, name: str) -> str:
    """Panes are laid out, then joined, then drawn: let them, as long as the screen is not the one that is kept; for one
    that is to be kept, until it stays the same. Its text, as it is at the end."""
    file, give_up = FOLDER / f"{name}.txt", monotonic() + LAID_OUT
    if os.environ.get(UPDATE) or not file.exists():
        return await _once_still(it, give_up)
    while (text := screen_text(it.app)) != file.read_text("utf-8") and monotonic() < give_up:
        await it.pilot.pause(0.02)
    return text


async def _once_still(it: Bench, give_up: float) -> str:
    """The text of the screen once ``STILL`` looks in a row showed the same."""
    await it.pilot.pause()
    text, looks = screen_text(it.app), 1
    while looks < STILL and monotonic() < give_up:
        await it.pilot.pause(0.05)
        now = screen_text(it.app)
        text, looks = now, looks + 1 if now == text else 1
    return text


async def check_sizes(it: Bench, name: str, *, picture: bool = False) -> None:
    """The screen as it is, in a terminal that takes each of the sizes, and goes back to the one it had; with a
    ``picture`` of the middle one, where colours matter."""
    had = it.app.size
    it.app.notices.clear()
    for size, cells in SIZES.items():
        await it.pilot.resize_terminal(*cells)
        await check_at_rest(it, f"{name}-{size}", picture=picture and size == "120x40")
    if it.app.size != had:
        await it.pilot.resize_terminal(*had)
