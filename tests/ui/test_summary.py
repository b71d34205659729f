"""The summary of a run: what came out, what it cost, and where the rows lead."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.engine.support import play
from tests.ui.bench import Bench, bench
from tests.ui.support import triage_story
from tests.ui.test_candidates import contested
from tests.ui.test_graphs import REVIEW
from workbench.context.place import Place
from workbench.dollars import money
from workbench.durations import duration_words
from workbench.engine.journal.event import Event
from workbench.engine.journal.state import RunState
from workbench.engine.texts import result_text
from workbench.views.cells import flat
from workbench.views.model import Filtered
from workbench.views.numbers import count, spent_words
from workbench.views.run import RunView
from workbench.views.summary import SummaryRows
from workbench.views.tree import TreeRows, TreeView, fitted


def lines(rows: SummaryRows, width: int = 100) -> list[str]:
    rows.lay_out(width)
    return [row.text.rstrip() for row in (*rows.heads(width), *(rows.row(i, width) for i in range(len(rows))))]


def test_the_summary_says_the_output_the_sums_the_dearest_call_and_what_masking_saved() -> None:
    run = RunState.of(triage_story(finished=True).events)
    found = lines(SummaryRows(run, {}))
    text = "\n".join(found)
    assert found[0].split()[0] == "phase"
    assert run.output.split("\n")[0][:20] not in text, "the output stands in the pane below"
    (total,) = (line for line in found if line.strip().startswith("total"))
    assert f"{run.own.tokens_in:,}" in total
    assert spent_words(run.figures().spent) in total
    assert len({len(line) for line in (found[0], total)}) == 1, "the columns stand below their names"
    assert found[0].split() == ["phase", "calls", "in", "cached", "out", "cost", "time"]
    assert sum("most expensive" in line for line in found) == 1
    saved = sum(call.held_back for call in run.calls if call.answer is not None)
    assert f"{saved:,} tokens saved" in text


def test_the_summary_says_what_a_comparison_opens_now() -> None:
    run = RunState.of(triage_story(finished=True).events)
    assert "in one call   D compares" in " ".join(lines(SummaryRows(run, {}), 200))
    changed = " ".join(lines(SummaryRows(run, {}, file_changed=True), 200))
    assert "in one call   D shows the file's changes, then D compares" in changed


def test_placeholders_longer_than_what_they_replace_save_nothing_and_say_so() -> None:
    run = RunState.of(triage_story(finished=True).events)
    for call in run.calls:
        call.shortened, call.held_back = 1, 0
    for saved, said in ((-2, "2 tokens more over"), (-1, "1 token more over"), (0, "0 tokens saved over")):
        run.calls[-1].held_back = saved
        assert said in "\n".join(lines(SummaryRows(run, {}))), said
    run.calls[-1].held_back = 1
    assert "1 token saved over 4 calls, less than 1% of the input; at most 1" in "\n".join(lines(SummaryRows(run, {})))


@pytest.mark.parametrize(
    ("moments", "end", "said"),
    [
        pytest.param([("human_asked", 1), ("human_answered", 8)], 10, "10.0s, 7.0s of it", id="one"),
        pytest.param(
            [("human_asked", 1), ("run_finished", 2), ("run_resumed", 100), ("human_answered", 104)],
            110,
            "12.0s, 5.0s of it",
            id="stopped at the question and resumed",
        ),
        pytest.param([("human_asked", -60), ("human_answered", -50)], 10, "", id="in the recorded past of a fork"),
        pytest.param(
            [("human_asked", 1), ("human_asked", 2, 1), ("human_answered", 5), ("human_answered", 6, 1)],
            10,
            "10.0s, 5.0s of it",
            id="two at once",
        ),
        pytest.param(
            [("human_asked", 1), ("paused", 6, 4), ("human_answered", 7)],
            14,
            "10.0s + 4.0s paused, 2.0s of it",
            id="paused meanwhile",
        ),
    ],
)
def test_the_time_of_waiting_for_a_person_is_a_part_of_the_time_of_the_run(
    moments: list[tuple[str, int] | tuple[str, int, int]], end: int, said: str
) -> None:
    """What lies between a stop and the resume, before the run, and within its pauses is no time of it."""
    state, begun = RunState(), datetime(2026, 1, 1, tzinfo=UTC)
    for seq, (kind, moment, *more) in enumerate([("run_started", 0), *moments, ("run_finished", end)], 1):
        number = more[0] if more else 0
        data = {"seconds": number} if kind == "paused" else {"index": number, "status": "success"}
        place = Place(phase="a", visit=1) if kind.startswith("human") else Place()
        state.apply(Event(seq, (begun + timedelta(seconds=moment)).isoformat(), "r", kind, place, data=data))
    told = [line.split(maxsplit=1)[1] for line in lines(SummaryRows(state, {})) if line.startswith(" time")]
    assert told == ([f"{said} waiting for you"] if said else [])
    shown = " ".join(str(piece) for block in RunView(state).blocks() if isinstance(block, tuple) for piece in block)
    assert ("waiting for you" in shown) == bool(said)
    assert f"took {said}" in shown


@pytest.mark.parametrize("width", range(55, 100, 5))
def test_a_fact_that_takes_several_lines_breaks_between_its_parts(width: int) -> None:
    run = play(REVIEW, {"plan": ["a"], "code": ["b"], "docs": ["c"], "check": ["outcome=success"]}, answers=["a"]).state
    text = "\n".join(lines(SummaryRows(run, {}), width))
    assert re.search(r"check:1   ~?\d+ tokens in( {3}|\n +)~\S+ predicted", text)


def test_a_phase_with_a_call_that_was_edited_is_marked_and_small_costs_stand_apart() -> None:
    run = RunState.of(triage_story(finished=True).events)
    assert not any("✎" in line for line in lines(SummaryRows(run, {}), 78))
    run.edits.append(Event(0, run.started, run.run_id, "edited", run.calls[-1].place))
    for call in run.calls:
        call.cost = 0.0000043
    found = lines(SummaryRows(run, {}), 78)
    (edited,) = (line for line in found if "✎" in line)
    assert run.calls[-1].place.phase in edited
    assert not any("0$" in line or "2$" in line or "8$" in line for line in found)


@pytest.mark.parametrize("width", [40, 78, 120, 160])
@pytest.mark.parametrize("cost", [0.0000004, 0.00000041, 0.0000043, 0.00012, 0.1])
def test_a_cost_is_never_joined_to_the_number_before_it(width: int, cost: float) -> None:
    for text in (money(cost), money(cost, exact=True), *([f"≥{money(cost)}"] if cost > 1e-6 else ())):
        cells = [text for text, _ in fitted({"out": ("12,345", "plain"), "cost": (text, "plain")}, width)]
        assert re.search(r"(^|12,345) +[<≥~$.\d]+", "".join(cells))
        assert "…" not in "".join(cells)


@pytest.mark.parametrize("native", [True, False])
def test_a_tool_that_failed_is_told_with_its_error_and_leads_to_its_call(native: bool) -> None:
    """A run whose tools all failed can still end with success."""
    run = RunState.of(triage_story(finished=True).events)
    assert not any("failed tools" in line for line in lines(SummaryRows(run, {})))
    tools = [tool for call in run.calls for tool in call.tools]
    text = "BrowserError: the page is not public\n(allow_hosts opens it)"
    tools[1].status, tools[1].text = "failed", text if native else result_text(tools[1].tool, text, True)
    rows = SummaryRows(run, {})
    found = lines(rows, 160)
    (said,) = (line for line in found if "failed tools" in line)
    assert said.endswith(f"1 of {len(tools)}   first: {tools[1].tool}: {flat(text)}")
    assert rows.target(found.index(said) - len(rows.heads(160))) == (tools[1].place, "")


def test_the_time_of_a_recorded_answer_is_told_apart_from_that_of_the_run() -> None:
    run = RunState.of(triage_story(finished=True).events)
    assert not any("recorded" in line for line in lines(SummaryRows(run, {})))
    for number, took, words in ((1, 64.2, "it counts its"), (2, 2.1, "them counts their")):
        run = RunState.of(triage_story(finished=True).events)
        for call in run.calls[:number]:
            call.recorded, call.duration_s, call.cost = True, took, 0.0015
        (said,) = (line for line in lines(SummaryRows(run, {}), 200) if "recorded: " in line)
        tokens = (
            sum(call.tokens_in for call in run.calls[:number]),
            sum(c.usage.output or 0 for c in run.calls[:number]),
        )
        money = f"{duration_words(number * took)} and ${number * 0.0015:.4f}, this one does not"
        assert said.endswith(f"the run that asked for {words} {tokens[0]:,} tokens in, {tokens[1]} out, {money}")
    run.calls[0].duration_s = 64.2
    tree = TreeRows(run, TreeView(unfolded=True))
    shown = [tree.row(index, 100).text for index in range(len(tree))]
    assert sum("⟲1m 04s" in line for line in shown) == 1


def test_the_dearest_call_is_the_one_that_cost_most() -> None:
    run = RunState.of(triage_story(finished=True).events)
    run.calls[1].cost = 7.0
    rows = SummaryRows(run, {})
    (at,) = (index for index, line in enumerate(lines(rows)) if "most expensive" in line)
    assert rows.target(at - len(rows.heads(100))) == (run.calls[1].place, "")


def test_failed_checks_are_counted_and_the_last_failure_says_why() -> None:
    story = triage_story()
    place = story.events[-1].place
    for valid, reason in ((False, "2 of 5 failed"), (True, "")):
        story.emit("check_finished", place, check="t", name="t", mode="retry", valid=valid, reason=reason)
    story.finish("done")
    (line,) = (line for line in lines(SummaryRows(RunState.of(story.events), {})) if line.startswith(" checks"))
    assert line.split()[1:] == ["1", "passed", "1", "failed", "last", "failure:", "2", "of", "5", "failed"]


def test_a_phase_counts_its_candidates_as_the_tree_does() -> None:
    run = contested().state
    found = lines(SummaryRows(run, {}))
    (tree,) = (node.sums for node in TreeRows(run, TreeView()).nodes if node.phase == "generate" and node.depth == 0)
    (row,) = (line for line in found if "✓ generate" in line)
    assert tree is not None
    assert tree.calls > 1
    assert f" {count(tree.tokens_in, tree.grade_in)} " in row
    assert sum("candidate " in line for line in found) == len([v for v in run.visits if v.branch])
    parts = [line for line in found if line.strip()[2:].startswith(("candidate ", "evaluation "))]
    numbers = [[word for word in line.replace(",", "").split() if word.isdigit()] for line in parts]
    assert sum(int(each[1]) for each in numbers) == tree.tokens_in, "the evaluator has a row: they add up to the phase"


def test_a_search_and_a_filter_look_at_the_lines_as_they_wrap() -> None:
    run = RunState.of(triage_story(finished=True).events)
    run.status, run.reason = "failed", "the provider refused the request " * 9
    rows = Filtered(SummaryRows(run, {}), "expensive")
    for width in (50, 200, 50):
        rows.lay_out(width)
        assert [rows.plain(index).split()[:2] for index in range(len(rows))] == [["most", "expensive"]]
    assert rows.inner.find("expensive", 0) == rows.indices[0]


def selected(it: Bench) -> list[str]:
    """The rows of the tree that look selected, by the first word of what they are."""
    assert it.screen.panes.tree_rows is not None
    return [node.id[0] for node in it.screen.panes.tree_rows.nodes if node.tone == "selected"]


async def test_a_run_that_ended_shows_its_summary_and_then_its_last_call(tmp_path: Path) -> None:
    story = triage_story(finished=True)
    async with bench(tmp_path, size=(40, 12), events=story.events) as it:
        for size in ((40, 12), (80, 24), (120, 40), (200, 50)):
            await it.pilot.resize_terminal(*size)
            it.presenter.state.summary = True
            it.screen.redraw()
            assert isinstance(it.screen.context_pane.rows, SummaryRows)
            assert selected(it) == ["total"], "the last call looks selected beside the total"
            await it.press("left_square_bracket")
            assert len(selected(it)) == 1
            assert selected(it) != ["total"]
            assert not isinstance(it.screen.context_pane.rows, SummaryRows)
            assert it.presenter.state.selected == it.presenter.state.run.calls[-1].place
            it.presenter.state.following = True
        it.screen.focus_pane("tree")
        await it.press("G")
        assert isinstance(it.screen.context_pane.rows, SummaryRows), "the row of the total leads to it"
        it.screen.focus_pane("context")
        row = next(i for i in range(40) if it.screen.context_pane.rows.target(i) is not None)
        it.screen.context_pane.move_to(row)
        await it.press("enter")
        assert it.presenter.state.selected is not None
        assert it.presenter.state.selected.phase == "intake"


async def test_a_run_that_failed_shows_the_call_at_which_it_did(tmp_path: Path) -> None:
    story = triage_story()
    story.finish("", status="failed", reason="the provider is away")
    async with bench(tmp_path, events=story.events) as it:
        assert not isinstance(it.screen.context_pane.rows, SummaryRows)


async def test_m_shows_an_output_as_it_is_written_and_drawn_again(tmp_path: Path) -> None:
    story = triage_story()
    story.finish("# The cause\n\nA *late* reply.")
    async with bench(tmp_path, events=story.events) as it:
        shown = []
        for key in ("m", "m", ""):
            shown.append(["# The cause" in it.pane("detail"), "A *late* reply." in it.pane("detail")])
            assert "late" in it.pane("detail")
            if key:
                await it.press(key)
        assert shown == [[False, False], [True, True], [False, False]]
