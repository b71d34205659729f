"""The batch screen: what it shows, and what can be done with a cell."""

from __future__ import annotations

import json
from pathlib import Path

from msgspec import to_builtins

from tests.store.examples import plain_run
from tests.ui.bench import Bench, bench, screen_text
from tests.ui.snapshot import check_sizes
from workbench.analysis.batch.matrix import CellResult, Plan, PlannedVariant
from workbench.analysis.batch.rows import Row
from workbench.analysis.batch.scoring import Score, Scorer
from workbench.store.batches import BatchFolder, BatchWriter
from workbench.store.store import Store
from workbench.tui.screens.batch import BatchScreen
from workbench.tui.screens.runs import RunsScreen
from workbench.tui.widgets.entry import LineInput

TEXTS = ("great jacket", "the zip broke on the second day", "warm, light", "too short", "[b]nice[/b]", "late")
RUN = "0190c6f2-7f3a-7000-8000-00000000c001"


def stored_batch(folder: Path) -> None:
    """A batch of six rows and two variants, of which one run failed, one is open and one is stored."""
    store = Store(folder / ".workbench")
    events = plain_run(RUN, session="reviews-1.r1.v1")
    with store.create(RUN) as journal:
        for event in events:
            journal.append(event)
    rows = tuple(
        Row(at, f"rows.jsonl:{at}", {"review": text}, {"review": text, "expected": "good"})
        for at, text in enumerate(TEXTS, 1)
    )
    variants = (PlannedVariant("model=openai/gpt-4.1-mini", "flow.yaml"), PlannedVariant("model=x/b", "flow.yaml"))
    cells = {f"{row}.{variant}": (row, variant, 0) for row in range(len(rows)) for variant in range(2)}
    scorers = (Scorer.parse("exact"), Scorer.parse("person"))
    plan = Plan("reviews-1", "rows.jsonl", rows, variants, cells, 1, scorers)
    with BatchWriter(BatchFolder(store.root, plan.name)) as writer:
        writer.write_plan(json.loads(json.dumps(plan.to_json())))
        for number, (key, (row, variant, _)) in enumerate(cells.items()):
            if number == len(cells) - 1:
                continue
            good = (row + variant) % 2 == 0
            output = "good" if good else "bad: it is\ntoo short"
            cost = 0.001 * (number + 1)
            scores = {"exact": Score(float(good), "" if good else "another word")}
            run = RUN if not number else f"r{number}"
            session = f"reviews-1.r{row + 1}.v{variant + 1}"
            done = CellResult("success", "", output, run, session, cost, cost, 100 + number, 5, 0.5 + number, 1, scores)
            failed = CellResult("failed", "no answer within 300 s", "", run, session, None, 0.0, 0, 0, 300.0, 1)
            result = failed if number == 5 else done
            writer.add({"kind": "ended", "cell": key, "result": to_builtins(result)})


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
        await it.press("down", "space", "left", "D")
        await it.until(lambda: "Two cells" in screen_text(it.app), "nothing was compared")
        assert "- good" in screen_text(it.app)
        assert "+ too short" in screen_text(it.app)
        await check_sizes(it, "batch-diff")
        await it.press("escape", "p")
        await it.until(lambda: "95 % interval" in screen_text(it.app), "no comparison")
        await it.press("escape", "f")
        await it.until(lambda: screen.query(LineInput), "nothing was asked")
        screen.query_one(LineInput).value = "zip"
        await it.until(lambda: "the zip broke" in screen_text(it.app) and "warm, light" not in screen_text(it.app))
        await it.press("enter", "escape", "s")
        await it.until(lambda: "by score" in screen_text(it.app), "it was not sorted")
        await it.press("escape", "home", "enter")
        await it.until(lambda: it.app.screen is it.screen and it.session.run_id == RUN, "the run did not open")


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
        await it.press("down", "enter", "s", "v", "D", "p", "escape", "escape")
        await it.until(lambda: isinstance(it.app.screen, RunsScreen), "it did not close")
