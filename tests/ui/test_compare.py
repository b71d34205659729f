"""Compare in the app: two strategies on the run that is shown, in one scroll."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.cli.test_compare import CASCADE, HOSTILE, TURNS
from tests.ui.bench import Bench, bench, screen_text
from workbench.tui.screens.compare import CompareSheet
from workbench.tui.screens.dialog import Choice
from workbench.tui.widgets.entry import LineInput

REPLIES = "\n".join(
    [
        "replies:",
        "  dig:",
        *(f"    - calls: [{{tool: read_file, arguments: {{path: f{i}.txt}}}}]" for i in range(1, TURNS)),
        "    - text: Done.",
    ]
)


async def compared(it: Bench, specs: str) -> CompareSheet:
    """Run to the end, press D and name two strategies."""
    await it.press("r")
    await it.until(lambda: it.presenter.state.run.finished, "the run did not end")
    await it.press("D")
    await it.until(lambda: it.screen.query(LineInput), "nothing was asked")
    it.screen.query_one(LineInput).value = specs
    await it.press("enter")
    await it.until(lambda: isinstance(it.app.screen, CompareSheet), "the comparison did not open")
    sheet = it.app.screen
    assert isinstance(sheet, CompareSheet)
    return sheet


def prepared(folder: Path) -> Path:
    for i in range(1, TURNS):
        (folder / f"f{i}.txt").write_text(HOSTILE + f"fact {i} of the matter\n" * 150)
    return folder


def test_the_comparison_folds_what_is_equal_and_jumps_from_difference_to_difference(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(prepared(tmp_path), text=CASCADE, replies=REPLIES, given={"hint": "Go."}) as it:
            sheet = await compared(it, "whole vs masked")
            shown = screen_text(it.app)
            assert "fewer tokens and costs" in shown
            assert "It pays from" in shown
            assert "dig:4" in shown
            await it.press("right_square_bracket")
            first = sheet.view.cursor
            assert "full" not in sheet.view.rows.plain(first)
            assert "masked: age 3 > 2" in sheet.view.rows.plain(first)
            await it.press("right_square_bracket")
            assert sheet.view.cursor > first
            await it.press("left_square_bracket")
            assert sheet.view.cursor == first
            rows = len(sheet.view.rows)
            fold = next(i for i in range(rows) if "equal message" in sheet.view.rows.plain(i))
            sheet.view.move_to(fold)
            await it.press("enter")
            assert len(sheet.view.rows) > rows
            await it.press("enter")
            assert len(sheet.view.rows) == rows
            sheet.view.move_to(first)
            await it.press("enter")
            assert "A: full" in screen_text(it.app)
            assert "fact 1 of the matter" in screen_text(it.app)
            await it.press("escape", "escape")
            assert it.app.screen is it.screen

    asyncio.run(scenario())


def test_b_goes_into_the_file_after_a_look(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(prepared(tmp_path), text=CASCADE, replies=REPLIES, given={"hint": "Go."}) as it:
            await compared(it, "whole vs masked")
            file = it.session.file
            before = file.read_text()
            await it.press("a")
            await it.until(lambda: isinstance(it.app.screen, Choice), "nobody asked")
            assert "+strategy: selective+mask(after=2)" in screen_text(it.app)
            await it.press("k")
            assert file.read_text() == before
            await it.press("a")
            await it.until(lambda: isinstance(it.app.screen, Choice), "nobody asked")
            await it.press("w")
            assert "strategy: selective+mask(after=2)" in file.read_text()

    asyncio.run(scenario())
