"""Every size of terminal: nothing crashes, what has no room says so, and it comes back when there is room."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

from tests.ui.bench import Bench, bench, screen_text
from tests.ui.support import triage_story
from workbench.tui.screens.dialog import ChoiceDialog
from workbench.tui.screens.too_small import TooSmall
from workbench.tui.widgets.rowview import RowView

SIZES = [(1, 1), (200, 2), (39, 12), (40, 11), (40, 12), (41, 13), (79, 24), (100, 32), (160, 20), (240, 70)]


def covered(it: Bench, wanted: bool) -> bool:
    return isinstance(it.app.screen, TooSmall) is wanted


@pytest.mark.fault("F6")
async def test_a_sweep_of_sizes_leaves_the_app_alive_and_its_lines_as_wide_as_the_terminal(tmp_path: Path) -> None:
    async with bench(tmp_path, size=(120, 40), events=triage_story(finished=True).events) as it:
        for width, height in [*SIZES, *reversed(SIZES)]:
            await it.pilot.resize_terminal(width, height)
            await it.pilot.pause()
            small = width < 40 or height < 12
            await it.until(partial(covered, it, small), f"{width}x{height}")
            for view in it.screen.query(RowView):
                lines = view.render_lines(view.size.region)
                assert all(strip.cell_length <= max(view.size.width, 1) for strip in lines), view
        for key in ("p", "w", "z", "z", "tab", "tab", "1", "down"):
            await it.press(key)


@pytest.mark.parametrize("start", [(1, 1), (80, 11)])
async def test_the_app_starts_in_any_terminal_and_waits_for_room(tmp_path: Path, start: tuple[int, int]) -> None:
    async with bench(tmp_path, size=start) as it:
        for size in (start, (39, 12), (20, 5)):
            await it.pilot.resize_terminal(*size)
            await it.until(lambda: isinstance(it.app.screen, TooSmall))
            await it.pilot.resize_terminal(100, 30)
            await it.until(lambda: it.app.screen is it.screen)
            assert "─ Cascade" in screen_text(it.app), size


@pytest.mark.fault("F6")
async def test_a_terminal_that_is_too_small_says_what_it_needs_and_lets_one_leave(tmp_path: Path) -> None:
    async with bench(tmp_path, size=(30, 8)) as it:
        await it.until(lambda: isinstance(it.app.screen, TooSmall))
        assert "terminal too small: 30×8" in screen_text(it.app)
        assert "40×12 at least" in screen_text(it.app)
        await it.press("q")
        await it.until(lambda: it.app.return_code == 0)


async def test_a_narrow_terminal_shows_one_pane_at_a_time_and_tab_cycles_them(tmp_path: Path) -> None:
    async with bench(tmp_path, size=(80, 24), events=triage_story().events) as it:
        assert "✓ intake › ⠋ triage › turn 3" in it.text()
        assert "━ Context" in it.text()
        assert "Cascade ─" not in it.text()
        await it.press("shift+tab")
        assert "━ Cascade" in it.text()
        assert "Context" not in it.text()
        await it.press("tab", "tab", "tab")
        for key, title in (("p", "━ Why"), ("w", "━ Wire"), ("m", "━ 8 tool")):
            assert "━ Log" in it.text()
            await it.press(key)
            assert title in it.text(), "what was asked for stays out of sight"
            await it.press("escape", "tab")
        await it.press("tab")
        assert "━ Cascade" in it.text()
        dialog = ChoiceDialog("Run again?", "It ended.", [("a", "", "Resume this run, and pause before its next call")])
        await it.app.push_screen(dialog)
        await it.pilot.resize_terminal(40, 12)
        await it.until(lambda: "its next call" in screen_text(it.app), "the end of an answer is cut")
        await it.press("escape", "6")
        await it.until(lambda: "━ ‹ " in it.text() and "Timeline" in it.text(), "the name of the open tab is cut")
        await it.press("1")
        await it.until(lambda: "━ Log │ Problems" in it.text())
        await it.press("ctrl+p")
        await it.until(lambda: "Step out or to caller " in screen_text(it.app), "the name of a command is cut")


async def test_a_wide_terminal_puts_the_file_beside_the_card_and_a_masked_message_beside_its_full_text(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path, size=(200, 50)) as it:
        context, detail = it.screen.context_pane.region, it.screen.detail_pane.region
        assert (detail.x, detail.y) == (context.right, context.y)
        await it.feed(triage_story().events)
        await it.press("k", "k")
        context, detail = it.screen.context_pane.region, it.screen.detail_pane.region
        assert (detail.x, detail.y) == (context.x, context.bottom)
        assert re.search(r"in full · 984 tokens +│ as sent · 15 tokens", it.pane("detail"))
        beside = re.compile(r"File  log_triage\.yaml ─+ line 22 ─┤")
        await it.until(lambda: beside.search(it.text()) is not None, "the file is not beside the call")
        assert "mask_observations_after: 1" in it.pane("tree")
        await it.press("g")
        await it.until(lambda: re.search(r"File  log_triage\.yaml ─+ lines \d+–\d+ ─", it.text()) is not None)
        await it.pilot.resize_terminal(120, 40)
        await it.pilot.pause()
        assert "in full · 984 tokens" not in it.pane("detail")
        await it.until(lambda: re.search(r"File  log_triage\.yaml ─+ lines \d+–\d+ ─", it.pane("tree")) is not None)
        await it.press("shift+tab", "G", "k")
        await it.until(lambda: "━ File  log_triage.yaml" in it.pane("detail") or "─ File  " in it.pane("detail"))
        await it.until(lambda: "File  " not in it.pane("tree"), "a phase that did not run shows the file twice")
        await it.press("tab", "g")
        await it.press("left_square_bracket", "p")
        await it.until(lambda: "─ Why  " in it.pane("detail"))
        await it.press("shift+tab", "G", "k")
        await it.until(lambda: "─ File  " in it.pane("detail"))
        await it.until(lambda: "File  " not in it.pane("tree"), "after a look at why it shows the file twice")
        await it.press("tab", "g")
        await it.pilot.resize_terminal(110, 40)


async def test_the_context_is_as_high_as_its_rows_and_the_message_below_has_the_rest(tmp_path: Path) -> None:
    async with bench(tmp_path, size=(200, 50), events=triage_story().events) as it:
        pane = it.screen.context_pane
        await it.until(lambda: pane.size.height == pane.lines_in_all())
        await it.press("left_square_bracket", "left_square_bracket", "left_square_bracket")
        await it.until(lambda: pane.size.height == pane.lines_in_all())
        assert it.screen.detail_pane.size.height > pane.size.height


async def test_zoom_gives_a_pane_the_whole_screen_and_gives_it_back(tmp_path: Path) -> None:
    async with bench(tmp_path, events=triage_story().events) as it:
        # The borders meet when all panes have the sizes that their texts want.
        await it.until(lambda: "├─ 8 tool" in it.text())
        before = it.text()
        for pane in ("tree", "context", "detail", "dock"):
            it.screen.focus_pane(pane)
            await it.press("z")
            view = it.screen.query_one(f"#{pane}")
            await it.until(lambda view=view: view.size == (120, 38), pane)  # type: ignore[misc]
            await it.press("z")
        it.screen.focus_pane("context")
        await it.until(lambda: it.text() == before)


async def test_panes_are_resized_with_alt_and_the_arrows_within_bounds(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        tree, dock = it.screen.tree_pane, it.screen.dock_pane
        width, height = tree.size.width, dock.size.height
        await it.press("alt+right", "alt+up")
        assert (tree.size.width, dock.size.height) == (width + 4, height + 2)
        await it.press(*["alt+left"] * 20, *["alt+down"] * 20)
        assert tree.size.width >= 18
        assert dock.size.height >= 3
