"""The Bench as it looks, at the three sizes and in the situations that matter."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.ui.bench import bench
from tests.ui.snapshot import check
from tests.ui.support import triage_story
from workbench.engine.ports import Notice

SIZES = {"80x24": (80, 24), "120x40": (120, 40), "200x50": (200, 50)}
HELD = Notice("held", triage_story().events[-1].place, {"stop": "before_call", "why": "step over", "tool": ""})


@pytest.mark.parametrize("size", SIZES)
def test_held_before_a_call(tmp_path: Path, size: str) -> None:
    async def scenario() -> None:
        async with bench(tmp_path, size=SIZES[size], events=triage_story().events, notices=[HELD]) as it:
            check(it.app, f"held-{size}", picture=True)

    asyncio.run(scenario())


@pytest.mark.parametrize("size", SIZES)
def test_before_a_run(tmp_path: Path, size: str) -> None:
    async def scenario() -> None:
        async with bench(tmp_path, size=SIZES[size]) as it:
            check(it.app, f"idle-{size}")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("why", ("k", "k", "p")),
        ("full", ("k", "k", "m")),
        ("wire", ("w",)),
        ("compare", ("d",)),
        ("sides", ("k", "k", "enter")),
    ],
)
def test_ways_to_look_at_a_call(tmp_path: Path, name: str, keys: tuple[str, ...]) -> None:
    async def scenario() -> None:
        async with bench(tmp_path, events=triage_story().events, notices=[HELD]) as it:
            await it.press(*keys)
            check(it.app, f"{name}-120x40", picture=name == "compare")

    asyncio.run(scenario())


@pytest.mark.parametrize(("name", "keys"), [("tree", ("shift+tab",)), ("log", ("tab", "tab"))])
def test_the_other_panes_of_a_narrow_terminal(tmp_path: Path, name: str, keys: tuple[str, ...]) -> None:
    async def scenario() -> None:
        async with bench(tmp_path, size=(80, 24), events=triage_story().events, notices=[HELD]) as it:
            await it.press(*keys)
            check(it.app, f"{name}-80x24")

    asyncio.run(scenario())


def test_a_run_that_is_over(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path, events=triage_story(finished=True).events) as it:
            await it.press("4", "G")
            check(it.app, "done-120x40")

    asyncio.run(scenario())


def test_a_question(tmp_path: Path) -> None:
    async def scenario() -> None:
        story = triage_story()
        options = ["team blue", "team green"]
        question = {"question": "Which team owns the queue?", "context": "The log names no team.", "options": options}
        story.emit("human_asked", story.events[-1].place, index=1, **question)
        async with bench(tmp_path, events=story.events) as it:
            await it.until(lambda: it.app.screen is not it.screen)
            check(it.app, "question-120x40", picture=True)

    asyncio.run(scenario())


def test_the_form_for_inputs(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path, given={}) as it:
            await it.press("r")
            await it.until(lambda: it.app.screen is not it.screen)
            check(it.app, "inputs-120x40")

    asyncio.run(scenario())


@pytest.mark.parametrize("theme", ["workbench-ember", "workbench-light", "high-contrast", "ansi-dark", "ansi-light"])
def test_every_other_theme(tmp_path: Path, theme: str) -> None:
    async def scenario() -> None:
        async with bench(tmp_path, theme=theme, events=triage_story().events, notices=[HELD]) as it:
            await it.press("k", "k", "p")
            check(it.app, f"theme-{theme}", picture=True)

    asyncio.run(scenario())
