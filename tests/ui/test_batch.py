"""The batch screen: what it shows, and what can be done with a cell."""

from __future__ import annotations

from pathlib import Path

from rich.cells import cell_len

from tests.support.batches import RUN, stored_batch
from tests.ui.bench import Bench, bench, screen_text
from tests.ui.snapshot import check_sizes
from workbench.analysis.batch.scoring import Score
from workbench.tui.screens.batch import BatchScreen
from workbench.tui.screens.runs import RunsScreen
from workbench.tui.widgets.entry import LineInput
from workbench.views.batch import beside, variant_heads
from workbench.views.side_by_side import SideRows
from workbench.views.text import TextLine


async def opened(it: Bench) -> BatchScreen:
    """From the list of runs to the batches; wait for the table."""
    await it.press("escape", "L", "M")
    await it.until(lambda: isinstance(it.app.screen, BatchScreen), "the screen did not open")
    screen = it.app.screen
    assert isinstance(screen, BatchScreen)
    await it.until(lambda: screen.matrix is not None and len(screen.table.rows), "no batch is shown")
    return screen


async def test_a_batch_is_a_table_that_is_sorted_filtered_compared_and_leads_to_its_runs(tmp_path: Path) -> None:
    stored_batch(tmp_path)
    async with bench(tmp_path) as it:
        screen = await opened(it)
        await it.press("right")
        await check_sizes(it, "batch", picture=True)
        assert isinstance(screen.card.rows, SideRows), "no other variant stands beside the cell"
        await it.press("down", "space", "left", "D")
        await it.until(lambda: "Outputs" in screen_text(it.app), "nothing was compared")
        assert "− good" in screen_text(it.app)
        assert "+ too short" in screen_text(it.app)
        await check_sizes(it, "batch-diff")
        await it.press("escape", "p")
        await it.until(lambda: "against model=openai" in screen_text(it.app), "no comparison")
        await check_sizes(it, "batch-variants")
        await it.press("escape", "f")
        await it.until(lambda: screen.query(LineInput), "nothing was asked")
        screen.query_one(LineInput).value = "zip"
        await it.until(lambda: "the zip broke" in screen_text(it.app) and "warm, light" not in screen_text(it.app))
        await it.press("enter", "escape", "s")
        await it.until(lambda: "by score" in screen_text(it.app), "it was not sorted")
        await it.press("escape", "home", "s", "s", "enter")
        await it.until(lambda: it.app.screen is it.screen and it.session.run_id == RUN, "the run did not open")
        again = await opened(it)
        assert "by worst" in screen_text(it.app), "it is not where it was left"
        assert again.cell() == again.matrix.at(0, 0) if again.matrix is not None else False


async def test_a_person_scores_a_cell(tmp_path: Path) -> None:
    stored_batch(tmp_path)
    async with bench(tmp_path) as it:
        screen = await opened(it)
        await it.press("asterisk")
        await it.until(lambda: screen.query(LineInput), "nothing was asked")
        screen.query_one(LineInput).value = "3"
        await it.press("enter")
        await it.until(lambda: screen.cell()[0].scores.get("person") == Score(3.0), "the score is not there")
        assert "person 3" in screen_text(it.app)


async def test_without_a_batch_the_screen_says_how_to_make_one(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        await it.press("L", "M")
        await it.until(lambda: "workbench batch FILE --inputs ROWS" in screen_text(it.app), "it says nothing")
        assert "sort" not in screen_text(it.app), "keys of a table are offered, and there is none"
        await it.press("down", "enter", "s", "v", "D", "p", "escape", "escape")
        await it.until(lambda: isinstance(it.app.screen, RunsScreen), "it did not close")


def test_the_heads_of_variants_show_where_they_differ() -> None:
    both = ("openai/gpt-4o", "openai/gpt-4o-mini")
    labels = [f"model={model} · judge.instructions={text} it" for model in both for text in ("Rate", "Judge")]
    heads = variant_heads(labels, 22)
    assert heads[0] == "opena…gpt-4o · Rate it"
    assert len(set(heads)) == 4
    assert {cell_len(head) for head in heads} == {22}
    assert variant_heads(["model=openai/gpt-4.1-mini · temperature=0"], 24) == ["openai/gpt-4.1-mini · 0 "]
    assert variant_heads(["as written"], 12) == ["as written  "]
    assert variant_heads(["model=openai/gpt-4.1-mini", "model=x/b"], 22) == ["openai/gpt-4.1-mini   ", f"{'x/b':<22}"]


def test_as_many_cells_as_have_room_stand_beside_each_other_in_the_order_of_the_table() -> None:
    assert beside((2, 3), (2, 0), 4, 4) == [(2, 0), (2, 1), (2, 2), (2, 3)]
    assert beside((2, 3), (2, 0), 4, 2) == [(2, 0), (2, 3)]
    assert beside((2, 3), (1, 1), 4, 3) == [(1, 1), (2, 0), (2, 3)]
    assert beside((2, 3), None, 4, 1) == [(2, 3)]
    texts = ("x" * 80, "x" * 30, "x" * 90, "x" * 60)
    sides = SideRows([[TextLine(text)] for text in texts], "abcd")
    assert [len(part) for part in sides.row(0, 200).text.split("│")] == [55, 32, 55, 55]
