"""Compare in the app: two strategies on the run that is shown, in one scroll."""

from __future__ import annotations

import json
import re
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.cli.test_compare import CASCADE, HOSTILE, TURNS
from tests.ui.bench import Bench, bench, screen_text
from tests.ui.snapshot import check_sizes
from workbench.engine.debugger.stepper import Mode
from workbench.tui.screens.compare import CompareSheet
from workbench.tui.screens.dialog import ChoiceDialog
from workbench.tui.screens.sides import SidePicker
from workbench.tui.screens.sweep import LiveSheet, SweepSheet
from workbench.tui.widgets.entry import LineInput
from workbench.views.compare import CompareRows, comparison_html
from workbench.views.live_runs import LiveRunRows

REPLIES = "\n".join(
    [
        "replies:",
        "  dig:",
        *(f"    - calls: [{{tool: read_file, arguments: {{path: f{i}.txt}}}}]" for i in range(1, TURNS)),
        "    - text: Done.",
    ]
)


async def picked(it: Bench) -> SidePicker:
    """Run to the end, and press D: the picker of both sides."""
    await it.press("r")
    await it.until(lambda: it.presenter.state.run.finished, "the run did not end")
    await it.press("D")
    await it.until(lambda: isinstance(it.app.screen, SidePicker), "the picker did not open")
    picker = it.app.screen
    assert isinstance(picker, SidePicker)
    return picker


async def compared(it: Bench, specs: str) -> CompareSheet:
    """Run to the end, press D and name two strategies."""
    picker = await picked(it)
    await it.press("w")
    await it.until(lambda: picker.query(LineInput), "nothing was asked")
    picker.query_one(LineInput).value = specs
    await it.press("enter")
    await it.until(lambda: isinstance(it.app.screen, CompareSheet), "the comparison did not open")
    sheet = it.app.screen
    assert isinstance(sheet, CompareSheet)
    await it.until(lambda: len(sheet.view.rows), "the comparison was not worked out")
    return sheet


def prepared(folder: Path) -> Path:
    for i in range(1, TURNS):
        (folder / f"f{i}.txt").write_text(HOSTILE + f"fact {i} of the matter\n" * 150)
    return folder


def assert_numbers_have_room(sheet: CompareSheet) -> None:
    """Over a million tokens no columns touch; and what costs more, without a paradox, is not a good news."""
    rows = sheet.view.rows
    assert isinstance(rows, CompareRows)
    found = rows.comparison
    assert found.a.totals.cost is not None
    for cost, mark in ((found.a.totals.cost * 2, " "), (found.a.totals.cost / 2, "✓")):
        more = replace(found.b.totals, tokens=12_345_678, cached=1_076_096, cost=cost, cost_low=cost, cost_high=cost)
        grown = CompareRows(replace(found, b=replace(found.b, totals=more)), "big")
        said = grown.row(0, 120).text
        assert said[1] == mark, said
        total = next(row.text for i in range(len(grown)) if "total" in (row := grown.row(i, 120)).text)
        assert {"12,345,678", "≈1,076,096"} <= set(total.split()), total


def assert_it_says_why_there_is_no_difference(sheet: CompareSheet) -> None:
    rows = sheet.view.rows
    assert isinstance(rows, CompareRows)
    found = rows.comparison
    assert rows.no_further(1) == "No further difference."
    apart = CompareRows(replace(found, pairs=tuple(replace(pair, b=None) for pair in found.pairs)), "apart")
    assert apart.step(0, 1) is None
    assert apart.no_further(1).startswith("The two have no call in common")
    equal = CompareRows(replace(found, pairs=tuple(pair for pair in found.pairs if pair.same)), "equal")
    assert equal.no_further(-1) == "Every call that both made saw the same messages."


async def assert_the_middle_moves(it: Bench, sheet: CompareSheet) -> None:
    """By dragging and by keys, for the head and the messages alike."""

    def middles() -> set[int]:
        return {line.find("│") for line in screen_text(it.app).splitlines() if "│" in line}

    await it.until(lambda: len(middles()) == 1, "both sides did not take their places")
    (before,) = middles()
    await it.pilot.mouse_down(offset=(before, 1))
    await it.pilot.hover(offset=(before - 24, 9))
    await it.pilot.mouse_up(offset=(before - 24, 9))
    await it.until(lambda: middles() == {before - 24}, f"{before} {middles()}")
    await it.press("alt+right")
    await it.until(lambda: middles() == {before - 20}, f"{middles()}")
    it.app.choose_size("compare.left", None)
    sheet.apply_sizes()


async def test_the_comparison_folds_what_is_equal_and_jumps_from_difference_to_difference(tmp_path: Path) -> None:
    async with bench(prepared(tmp_path), text=CASCADE, replies=REPLIES, given={"hint": "Go."}) as it:
        sheet = await compared(it, "whole vs masked")
        await check_sizes(it, "compare", picture=True)
        shown = screen_text(it.app)
        assert "fewer tokens than A and costs" in " ".join(shown.split())
        assert "Breaks even after" in shown
        assert "dig:4" in shown
        assert_numbers_have_room(sheet)
        assert_it_says_why_there_is_no_difference(sheet)
        await assert_the_middle_moves(it, sheet)
        await it.press("right_square_bracket")
        first, had = sheet.view.cursor, it.app.size
        assert "full" not in sheet.view.rows.plain(first)
        assert "masked: age 3 > 2" in sheet.view.rows.plain(first)
        await it.press("right_square_bracket")
        assert sheet.view.cursor > first
        await it.press("left_square_bracket")
        assert sheet.view.cursor == first
        await it.pilot.resize_terminal(80, 24)
        await it.until(lambda: sheet.view.cursor != first, "the lines above it are more now")
        assert "masked: age 3 > 2" in sheet.view.rows.plain(sheet.view.cursor), "the cursor stays on its row"
        await it.pilot.resize_terminal(*had)
        await it.until(lambda: sheet.view.cursor == first, "the lines above it are as many as before")
        rows = len(sheet.view.rows)
        fold = next(i for i in range(rows) if "equal message" in sheet.view.rows.plain(i))
        sheet.view.move_to(fold)
        await it.press("enter")
        await it.until(lambda: len(sheet.view.rows) > rows, "the fold did not open")
        await it.press("enter")
        await it.until(lambda: len(sheet.view.rows) == rows, "the fold did not close")
        sheet.view.move_to(first)
        await it.press("enter")
        await it.until(lambda: "A: full" in screen_text(it.app), "the message did not open")
        assert "fact 1 of the matter" in screen_text(it.app)
        await it.press("escape", "escape")
        assert it.app.screen is it.screen


async def test_what_was_sent_goes_on_in_free_lines(tmp_path: Path) -> None:
    """All messages do where all lines fit on the screen, else that under the cursor, up to eight lines."""
    for i in range(1, TURNS):
        (tmp_path / f"f{i}.txt").write_text("".join(f"fact {i}.{n} of the matter\n" for n in range(12)))
    async with bench(tmp_path, text=CASCADE, replies=REPLIES, given={"hint": "Go."}) as it:
        sheet = await compared(it, "whole vs masked")
        sent = len(sheet.view.rows)
        await it.pilot.resize_terminal(120, 2 * sent + 40)
        await it.until(lambda: "fact 1.11" in screen_text(it.app), "the first message ends before its end")
        shown = [line for line in screen_text(it.app).splitlines() if "fact 2." in line]
        assert len(shown) > 3
        await it.pilot.resize_terminal(120, 40)
        await it.until(lambda: "fact 1.11" not in screen_text(it.app), "there is no room for all")
        await it.press("right_square_bracket", "j")
        await it.until(lambda: "fact 1.11" in screen_text(it.app), "the message under the cursor is cut")


async def test_b_goes_into_the_file_after_a_look(tmp_path: Path) -> None:
    async with bench(prepared(tmp_path), text=CASCADE, replies=REPLIES, given={"hint": "Go."}) as it:
        await compared(it, "whole vs masked")
        file = it.session.file
        before = file.read_text()
        await it.press("a")
        await it.until(lambda: isinstance(it.app.screen, ChoiceDialog), "nobody asked")
        assert "+strategy: selective+mask(after=2)" in screen_text(it.app)
        await check_sizes(it, "apply", picture=True)
        await it.press("k")
        assert file.read_text() == before
        await it.until(lambda: f"{file.name} stays as it is." in screen_text(it.app), "nothing says so")
        await it.press("a")
        await it.until(lambda: isinstance(it.app.screen, ChoiceDialog), "nobody asked")
        await it.press("w")
        assert "strategy: selective+mask(after=2)" in file.read_text()
        assert "a again takes it back" in screen_text(it.app)
        it.app.notices.clear()
        await it.pilot.pause()
        assert "a take B out" in screen_text(it.app).splitlines()[-1]
        await it.press("a")
        await it.until(lambda: isinstance(it.app.screen, ChoiceDialog), "nobody asked")
        assert "-strategy: selective+mask(after=2)" in screen_text(it.app)
        await it.press("w")
        assert file.read_text() == before
        it.app.notices.clear()
        await it.pilot.pause()
        assert "a apply B" in screen_text(it.app).splitlines()[-1]


async def test_two_runs_are_compared_and_the_prompt_completes_their_names(tmp_path: Path) -> None:
    async with bench(prepared(tmp_path), text=CASCADE, replies=REPLIES, given={"hint": "Go."}) as it:
        await it.press("r")
        await it.until(lambda: it.presenter.state.run.finished and not it.session.running, "the run did not end")
        it.app.given["hint"] = "Go on."
        it.session.start({"hint": "Go on."}, Mode.CONTINUE, session="other-1a2b")
        await it.until(lambda: it.presenter.state.run.session_id == "other-1a2b", "no second run")
        await it.until(lambda: it.presenter.state.run.finished, "the run did not end")
        await it.press("D")
        await it.until(lambda: isinstance(it.app.screen, SidePicker), "the picker did not open")
        picker = it.app.screen
        assert isinstance(picker, SidePicker)
        usual = picker.a
        await it.press("G")
        await it.until(lambda: picker.a.spec == "" and picker.a.run == picker.b.run, "a run stands beside a strategy")
        await it.press("g")
        await it.until(lambda: picker.a == usual, "A does not come back")
        await it.press("w")
        await it.until(lambda: picker.query(LineInput), "nothing was asked")
        await it.type("this vs log_")
        await it.until(lambda: "log_triage-7f3a" in screen_text(it.app), "nothing was offered")
        await it.press("right", "enter")
        await it.until(lambda: isinstance(it.app.screen, CompareSheet), "the comparison did not open")
        sheet = it.app.screen
        assert isinstance(sheet, CompareSheet)
        await it.until(lambda: len(sheet.view.rows), "the comparison was not worked out")
        shown = screen_text(it.app)
        assert "other-1a2b and log_triage-7f3a  as recorded" in shown
        assert "task: reworded" in shown
        await it.press("right_square_bracket")
        assert "Dig. Go on." in screen_text(it.app)
        await it.press("a")
        assert "no strategy" in screen_text(it.app)
        await assert_other_sides_are_picked(it, sheet)


async def test_a_side_that_is_neither_strategy_nor_run_is_named(tmp_path: Path) -> None:
    async with bench(prepared(tmp_path), text=CASCADE, replies=REPLIES, given={"hint": "Go."}) as it:
        picker = await picked(it)
        await it.press("w")
        await it.until(lambda: picker.query(LineInput), "nothing was asked")
        for wrong, said in (("file vs mashed(after=3)", "'mashed'"), ("file vs nothing-like-it", "nothing-like-it")):
            picker.query_one(LineInput).value = wrong
            await it.press("enter")
            await it.until(partial(is_said, it, said), f"{wrong}: nothing was said")
            assert picker.query_one(LineInput).value == wrong, "what was written is lost"
        picker.query_one(LineInput).value = "file vs selective+bu"
        await it.until(lambda: "selective+budget" in screen_text(it.app), "nothing was offered")
        await it.press("tab")
        assert picker.query_one(LineInput).value == "file vs selective+budget"


def is_said(it: Bench, text: str) -> bool:
    """Whether the line below the field says so."""
    return text in "\n".join(screen_text(it.app).splitlines()[-3:])


async def test_one_key_and_enter_compare_and_the_cheaper_side_is_swapped_to_be_applied(tmp_path: Path) -> None:
    async with bench(prepared(tmp_path), text=CASCADE, replies=REPLIES, given={"hint": "Go."}) as it:
        await picked(it)
        await it.press("enter")
        await it.until(lambda: isinstance(it.app.screen, CompareSheet), "the comparison did not open")
        sheet = it.app.screen
        assert isinstance(sheet, CompareSheet)
        await it.until(lambda: len(sheet.view.rows), "the comparison was not worked out")
        a, b = sheet.a, sheet.b
        assert b.spec == "file"
        await it.press("v")
        await it.until(lambda: (sheet.a, sheet.b) == (b, a), "the sides did not change places")
        await it.until(lambda: f"B {a.spec}" in screen_text(it.app), "the swap is not shown")
        await it.press("s")
        await it.until(lambda: isinstance(it.app.screen, SidePicker), "the picker did not open")
        picker = it.app.screen
        assert isinstance(picker, SidePicker)
        await it.press("g", *["j"] * [one.name for one in picker._choices].index("file"), "enter")
        await it.until(lambda: (sheet.a, sheet.b) == (a, b), "what is A, taken as B, swaps the two")


async def test_the_plot_draws_both_sides_over_the_calls(tmp_path: Path) -> None:
    async with bench(prepared(tmp_path), text=CASCADE, replies=REPLIES, given={"hint": "Go."}) as it:
        await compared(it, "whole vs masked")
        await it.press("P")
        shown = screen_text(it.app)
        assert "tokens sent" in shown
        assert "US dollars for the input" in shown
        assert all(f"dig:{turn}" in shown for turn in range(1, 8))
        await check_sizes(it, "compare-plot", picture=True)
        for name in ("plot.svg", "plot.png"):
            await it.press("X")
            it.app.screen.query_one(LineInput).value = name
            await it.press("enter")
            await it.until((tmp_path / name).is_file, f"{name} was not written")
        assert b"<svg" in (tmp_path / "plot.svg").read_bytes()
        assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


async def test_a_sweep_is_tried_strategy_by_strategy_and_one_is_taken_as_b(tmp_path: Path) -> None:
    async with bench(prepared(tmp_path), text=CASCADE, replies=REPLIES, given={"hint": "Go."}) as it:
        sheet = await compared(it, "whole vs masked")
        await it.press("S")
        await it.until(lambda: sheet.query(LineInput), "nothing was asked")
        sheet.query_one(LineInput).value = "selective+mask(after=1..3)"
        await it.press("enter")
        await it.until(lambda: isinstance(it.app.screen, SweepSheet), "the sweep did not open")
        tried = it.app.screen
        assert isinstance(tried, SweepSheet)
        await it.until(lambda: len(tried.rows) == 7 and "7 strategies tried" in screen_text(it.app), "not all")
        await assert_the_best_strategy_is_said_first_and_chosen(it, tried)
        await check_sizes(it, "sweep")
        await assert_the_way_out_is_offered_in_the_smallest_terminal(it)
        await it.press("P")
        assert "relative to snowball" in screen_text(it.app)
        await check_sizes(it, "sweep-plot", picture=True)
        await it.press("escape", "y")
        await it.until(lambda: "copied the text, " in screen_text(it.app), "nothing was copied")
        assert "copied the text, 0 " not in screen_text(it.app)
        await it.press("x")
        assert "Nothing is running." in screen_text(it.app)
        await assert_a_strategy_runs_live(it, tried)
        await it.press("G", "enter")
        await it.until(lambda: "B selective+mask(after=3" in screen_text(it.app), "B was not taken")
        assert_it_is_compared_with_the_reference(it, tried, "file", "selective+mask(after=3)")
        await it.press("escape")
        assert tried.view.cursor == len(tried.rows) - 1, "back in the list of strategies"
        assert "strategies tried" in screen_text(it.app)
        tried.view.move_to(next(at for at, row in enumerate(tried.rows.sweep.rows) if row.label == "file"))
        await it.press("enter")
        await it.until(lambda: "B file" in screen_text(it.app), "B was not taken")
        assert_it_is_compared_with_the_reference(it, tried, "snowball", "file")
        await it.press("escape", "escape")
        assert "strategies tried" not in screen_text(it.app)


def assert_it_is_compared_with_the_reference(
    it: Bench, tried: SweepSheet, a: str, b: str, at: str = "recorded"
) -> None:
    """The comparison that a sweep opens has both sides as the sweep has them: the file's own strategy on side A, which
    the sweep's sentence is about, or for that one the strategy that the columns are relative to."""
    rows = {row.label: row for row in tried.rows.sweep.at(at)}
    sheet = it.app.screen
    assert isinstance(sheet, CompareSheet)
    shown = sheet.view.rows
    assert isinstance(shown, CompareRows)
    for name, side in ((a, shown.comparison.a), (b, shown.comparison.b)):
        cost = rows[name].cost_sum
        assert cost is not None
        assert (side.label, side.totals.tokens) == (name, rows[name].tokens_sum.value)
        assert side.totals.cost == pytest.approx(cost.value)
    if shown.comparison.differing:
        assert re.search(r"B sends .* (than|as) A", " ".join(screen_text(it.app).split()))


async def assert_the_best_strategy_is_said_first_and_chosen(it: Bench, tried: SweepSheet) -> None:
    """With what it saves beside the file's own; and the list is sorted with the cursor on its strategy."""
    rows = tried.rows.sweep.rows
    await it.until(lambda: rows[tried.view.cursor].is_cheapest, "the cursor is elsewhere")
    best = rows[tried.view.cursor]
    first = screen_text(it.app).splitlines()[1]
    assert first.startswith(f" cheapest overall: {best.label}, ")
    assert re.search(r"% less than file \(.*\$[0-9.]+\), \d+% (fewer|more)", first)
    assert "enter compare" in screen_text(it.app).splitlines()[-1]
    await it.press("s")
    assert ", by dollars" in screen_text(it.app).splitlines()[0]
    dollars = [row.cost_sum.value for row in tried.rows.sweep.rows if row.cost_sum is not None]
    assert dollars == sorted(dollars)
    assert tried.rows.sweep.rows[tried.view.cursor] == best
    await it.press("s", "s")
    assert [row.label for row in tried.rows.sweep.rows] == [row.label for row in rows]


async def assert_the_way_out_is_offered_in_the_smallest_terminal(it: Bench) -> None:
    had = it.app.size
    it.app.notices.clear()
    await it.pilot.resize_terminal(40, 12)
    await it.until(lambda: screen_text(it.app).split("\n")[11].rstrip().endswith("esc back"), "no way out is offered")
    await it.pilot.resize_terminal(*had)


async def assert_other_sides_are_picked(it: Bench, sheet: CompareSheet) -> None:
    """From a list; what is wrong with a strategy is said while it is written. And how long a cache keeps its prefix."""
    await it.press("s")
    await it.until(lambda: isinstance(it.app.screen, SidePicker), "the picker did not open")
    picker = it.app.screen
    await it.until(lambda: "tool calls" in screen_text(it.app), "the card of the run is not below")
    await assert_the_way_out_is_offered_in_the_smallest_terminal(it)
    listed = screen_text(it.app)
    assert all(name in listed for name in ("file", "masked", "snowball", "log_triage-7f3a"))
    await it.press("k", "space", "k")  # Both sides are strategies: how long a run took differs each time.
    await it.until(lambda: "older than after turns" in screen_text(it.app), "what the strategy does is not below")
    await it.until(lambda: "If it is taken" in screen_text(it.app), "what it would send and cost is not below")
    assert re.search(r"If it is taken\n.*B sends .*(tokens|requests)", screen_text(it.app))
    await check_sizes(it, "compare-sides")
    await it.press("g", "space", "w")
    await it.until(lambda: picker.query(LineInput), "nothing was asked")
    await it.type("mask(afte=2)")
    await it.until(lambda: "'afte'" in screen_text(it.app), "the mistake was not said")
    picker.query_one(LineInput).value = "mask(after=2)"
    await it.press("enter")
    await it.until(lambda: it.app.screen is sheet and "B mask(after=2)" in screen_text(it.app), "B was not taken")
    assert "time and answers unknown" in " ".join(screen_text(it.app).split())
    await it.press("T")
    await it.until(lambda: sheet.query(LineInput), "nothing was asked")
    await it.type("1h")
    await it.press("enter")
    await it.until(lambda: "cache kept 1h" in screen_text(it.app), "the time was not taken")


async def assert_a_strategy_runs_live(it: Bench, tried: SweepSheet) -> None:
    """After a look at what it costs; here by scripted replies, which say nothing of quality."""
    assert "never run live" in " ".join(screen_text(it.app).split())
    await it.press("G", "space", "L")
    await it.until(lambda: isinstance(it.app.screen, ChoiceDialog), "nobody asked")
    asked = " ".join(screen_text(it.app).split())
    assert "1 run, offline as" in asked
    assert "Tools run for real" in asked
    await it.press("r")
    await it.until(lambda: isinstance(it.app.screen, LiveSheet), "nothing was run")
    await it.until(lambda: "1 of 1 succeeded" in screen_text(it.app), "it did not end")
    live = it.app.screen
    assert isinstance(live, LiveSheet)
    rows = live.view.rows
    assert isinstance(rows, LiveRunRows)
    ended = [replace(result, session_id="log_triage-0a1b", seconds=1.2) for result in rows.results]
    live.view.show(LiveRunRows(rows.plan, ended, is_over=True))
    await check_sizes(it, "live-runs")
    await it.press("enter")
    assert "Done." in screen_text(it.app)
    await it.press("escape", "escape")
    await it.until(lambda: it.app.screen is tried, "it did not go back")
    await it.until(lambda: screen_text(it.app).count("offline only") == 2, "the run is not counted")


async def test_a_sweep_of_all_runs_that_match_at_several_providers(tmp_path: Path) -> None:
    async with bench(prepared(tmp_path), text=CASCADE, replies=REPLIES, given={"hint": "Go."}) as it:
        sheet = await compared(it, "whole vs masked")
        await it.press("S")
        await it.until(lambda: sheet.query(LineInput), "nothing was asked")
        asked = "mask(after=1..2) ; runs status:success ; provider recorded ; provider anthropic/claude-sonnet-4.5"
        asked += " ; cache-ttl 1h"
        sheet.query_one(LineInput).value = asked
        await it.press("enter")
        await it.until(lambda: isinstance(it.app.screen, SweepSheet), "the sweep did not open")
        tried = it.app.screen
        assert isinstance(tried, SweepSheet)
        await it.until(lambda: len(tried.rows) == 12 and "12 strategies tried" in screen_text(it.app), "not all")
        assert tried.rows.sweep.pricings == ("recorded", "anthropic/claude-sonnet-4.5")
        shown = " ".join(screen_text(it.app).split())
        assert "mask(after=2) at anthropic/claude-sonnet-4.5" in shown
        assert "cheapest of all: " in shown
        assert "dollars" in shown
        claude = "anthropic/claude-sonnet-4.5"
        rows = tried.rows.sweep.rows
        tried.view.move_to(
            next(at for at, row in enumerate(rows) if (row.label, row.pricing) == ("mask(after=2)", claude))
        )
        await it.press("enter")
        await it.until(lambda: "B mask(after=2)" in screen_text(it.app), "B was not taken")
        assert_it_is_compared_with_the_reference(it, tried, "file", "mask(after=2)", claude)
        assert f"at {claude}  cache kept 1h" in screen_text(it.app).splitlines()[0]
        await it.press("escape", "escape", "S")
        await it.until(lambda: sheet.query(LineInput), "nothing was asked")
        sheet.query_one(LineInput).value = "mask(after=1) ; cache-ttl 1d"
        await it.press("enter")
        await it.until(lambda: "'1d' is not a time" in screen_text(it.app), "the time was not refused")
        await it.press("S")
        await it.until(lambda: sheet.query(LineInput), "nothing was asked")
        sheet.query_one(LineInput).value = "mask(after=1) ; runs staus:x"
        await it.press("enter")
        await it.until(lambda: "staus" in screen_text(it.app), "the mistake was not named")


async def test_a_comparison_is_written_to_a_file_and_none_is_replaced_without_asking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_in: list[int] = []

    def page(*arguments: Any) -> str:
        made_in.append(threading.get_ident())
        return comparison_html(*arguments)

    monkeypatch.setattr("workbench.tui.screens.compare.comparison_html", page)

    async with bench(prepared(tmp_path), text=CASCADE, replies=REPLIES, given={"hint": "Go."}) as it:
        sheet = await compared(it, "whole vs masked")

        async def export(name: str) -> None:
            await it.press("X")
            await it.until(lambda: sheet.query(LineInput), "nothing was asked")
            sheet.query_one(LineInput).value = name
            await it.press("enter")

        await export("both.json")
        await it.until(lambda: (tmp_path / "both.json").exists(), "nothing was written")
        assert json.loads((tmp_path / "both.json").read_text())["b"]["label"] == "masked"
        (tmp_path / "both.html").write_text("mine")
        await export("both.html")
        await it.until(lambda: isinstance(it.app.screen, ChoiceDialog), "nobody asked")
        await it.press("k")
        assert (tmp_path / "both.html").read_text() == "mine"
        await export("both.html")
        await it.until(lambda: isinstance(it.app.screen, ChoiceDialog), "nobody asked")
        await it.press("r")
        await it.until(lambda: "<html" in (tmp_path / "both.html").read_text(), "nothing was written")
        assert made_in
        assert threading.get_ident() not in made_in, "the screen waited for the images"
        await export("both.txt")
        assert not (tmp_path / "both.txt").exists()
