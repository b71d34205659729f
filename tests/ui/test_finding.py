"""Find and filter mean the same in every list: the rows that show, the cursor among them, and the way back."""

from __future__ import annotations

from pathlib import Path

from tests.ui.bench import Bench, bench, screen_text
from tests.ui.support import TRIAGE, triage_story
from tests.ui.test_editor import desk
from tests.ui.test_home_screen import home
from workbench.engine.journal.state import RunState
from workbench.tui.screens.home import HomeScreen
from workbench.tui.screens.sheet import Sheet
from workbench.views.cells import width_of
from workbench.views.filter_result import FilterResult, Tally
from workbench.views.model import Filtered
from workbench.views.text import TextLine, TextRows
from workbench.views.tree import TreeRows, TreeView


def test_a_filter_that_another_width_wraps_otherwise_still_shows_rows_that_hold_the_text() -> None:
    rows = Filtered(TextRows([TextLine("one two three"), TextLine("four five"), TextLine("five sixteen")]), "five")
    wide = ["four five", "five sixteen"]
    for width, shown in ((80, wide), (7, ["five", "five"]), (80, wide)):
        rows.lay_out(width)
        assert [rows.plain(index).strip() for index in range(len(rows))] == shown


def test_a_long_title_gives_way_to_the_words_of_a_filter_and_of_a_search() -> None:
    rows = TextRows(
        [TextLine("one timeout"), TextLine("two")], (("Compare", "title"), ("  " + "everything vs masked " * 4, "name"))
    )
    tally = Tally(rows, "timeout of the gateway")
    tally.go_on(1)
    for width in (40, 80, 120):
        title, right = FilterResult("a wide filter", 1, 2, tally, 0).beside(rows.title, (("fact", "dim"),), width)
        assert "".join(text for text, _ in right) == "'a wide …': 1 of 2   'timeout…' on no line"
        assert width_of(title) == max(12, width - width_of(right) - 9)
        assert title[0] == ("Compare", "title")
    assert FilterResult("", 2, 2, None, 0).beside(rows.title, (("fact", "dim"),), 80) == (
        rows.title,
        (("fact", "dim"),),
    )
    short = FilterResult("a wide filter", 1, 2, None, 0).beside((("Runs", "title"),), (), 80)
    assert short == ((("Runs", "title"),), (("filter 'a wide filter': 1 of 2", "changed"),))
    _, right = FilterResult("marmalade", 1, 2, None, 0).beside((("Runs", "title"),), (), 40)
    assert right == (("'marmala…': 1 of 2", "changed"),)


def test_a_filter_of_the_tree_keeps_the_branches_that_rows_hang_on() -> None:
    rows = TreeRows(RunState.of(triage_story().events), TreeView(unfolded=True))
    shown = [rows.plain(index) for index in rows.kept("search_files")]
    assert len(shown) == 2
    assert "triage" in shown[0]
    assert "turn 2" in shown[1]


def lines_of(it: Bench, pane: str) -> list[str]:
    return [line for line in it.pane(pane).splitlines()[1:] if line.strip(" │├")]


async def test_every_pane_of_the_bench_is_filtered_for_itself_and_escape_shows_all_again(tmp_path: Path) -> None:
    async with bench(tmp_path, events=triage_story().events) as it:
        screen, tree = it.screen, it.screen.tree_pane
        screen.focus_pane("tree")
        await it.press("g", "h", "g")
        await it.type("jj")
        await it.press("h")
        folded = lines_of(it, "tree")
        await it.press("f")
        await it.type("search_files")
        await it.press("enter")
        assert "'search_files': 2 of" in it.pane("tree")
        assert [line.split()[1] for line in lines_of(it, "tree")[1:]] == ["⠋", "2"], "what is folded is looked into"
        await it.press("G", "enter")
        await it.until(lambda: screen.focused is screen.context_pane)
        assert it.presenter.state.selected is not None
        assert it.presenter.state.selected.turn == 2
        assert "filter" not in it.pane("context")
        screen.focus_pane("tree")
        await it.press("escape")
        assert len(lines_of(it, "tree")) >= len(folded)
        assert screen.panes.tree_rows is not None
        assert screen.panes.tree_rows.nodes[tree.cursor].place == it.presenter.state.selected

        await it.press("1", "1", "f")
        await it.type("call")
        await it.press("enter", "slash")
        await it.type("offline")
        await it.press("enter")
        title = it.pane("dock").splitlines()[0]
        assert "filter 'call'" in title
        assert "'offline' line 1 of" in title, "neither hides the other"
        screen.focus_pane("detail")
        await it.press("f")
        await it.type("no such words")
        await it.press("enter")
        assert "No row holds 'no such words'." in it.pane("detail")
        assert "filter 'call'" in it.pane("dock")
        await it.press("escape")
        assert "filter" not in it.pane("detail")
        assert "filter 'call'" in it.pane("dock"), "the pane with the focus comes first"
        await it.press("escape")
        assert "filter" not in it.text()
        assert "'offline'" in it.text()
        await it.press("escape")
        assert "'offline'" not in it.pane("dock").splitlines()[0]


async def test_a_sheet_is_filtered_and_escape_takes_one_step_at_a_time(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        await it.press("question_mark", "slash")
        await it.type("no such words")
        await it.press("enter")
        assert "'no such words' is not in this text" in it.text()
        await it.press("escape", "f")
        await it.type("pane.zoom")
        await it.press("enter")
        assert "Give the pane the whole screen" not in it.text(), "the words of the help are looked at, not ids"
        assert "No row holds 'pane.zoom'." in it.text()
        await it.press("escape", "f")
        await it.type("whole screen")
        await it.press("enter")
        assert "Give the pane the whole screen" in it.text()
        assert "Quit; asks" not in it.text()
        await it.press("escape")
        await it.until(lambda: isinstance(it.app.screen, Sheet), "the screen did not open")
        assert isinstance(it.app.screen, Sheet)
        assert "filter '" not in it.text()
        await it.press("slash")
        await it.type("Zoom pane")
        await it.press("enter")
        assert "'Zoom pane' " in it.text()
        await it.press("escape")
        await it.until(lambda: isinstance(it.app.screen, Sheet), "the screen did not open")
        assert isinstance(it.app.screen, Sheet)
        assert "'Zoom pane' " not in it.text(), "the marks of the search go first"
        await it.press("escape")
        assert len(it.app.screen_stack) == 1


async def test_what_opens_from_a_filtered_list_is_the_row_that_shows(tmp_path: Path) -> None:
    (tmp_path / "aaa.yaml").write_text(TRIAGE)
    (tmp_path / "zzz.yaml").write_text(TRIAGE)
    async with home(tmp_path) as (it, screen):
        await it.press("f")
        await it.type("zzz")
        await it.press("enter")
        assert "aaa.yaml" not in screen_text(it.app)
        assert screen.focused is screen.cascades
        await it.press("escape")
        assert "aaa.yaml" in screen_text(it.app)
        await it.press("f")
        await it.type("nothing of the kind")
        await it.press("enter", "enter")
        assert isinstance(it.app.screen, HomeScreen), "no row, nothing to open"
        await it.press("slash", "escape", "f", *["backspace"] * 30)
        await it.type("zzz")
        await it.press("enter", "enter")
        await it.until(lambda: it.app.session is not None)
        assert it.session.file.name == "zzz.yaml"


async def test_the_problems_of_the_editor_are_filtered_and_the_file_is_not(tmp_path: Path) -> None:
    text = "cascade_id: x\nphases:\n  - name: a\n    instructions: x\n    tackel: []\n    ruls: {}\n"

    async with desk(tmp_path, text) as editor:
        it, before = editor.it, editor.text
        await it.press("f6", "f")
        await it.type("ruls")
        await it.press("enter")
        screen = editor.screen
        assert screen.focused is screen.problem_pane
        assert "tackel" not in "\n".join(screen_text(it.app).splitlines()[-5:])
        assert editor.text == before
        await it.press("enter")
        assert editor.area.cursor_location[0] == 5
        await it.press("escape")
        assert it.app.screen is screen
        assert "filter '" not in screen_text(it.app)


def test_a_search_counts_the_lines_that_hold_a_text_each_of_them_once() -> None:
    rows = TextRows([TextLine("tick tick"), TextLine("tock"), TextLine("a tick that is so long that it wraps, tick")])
    rows.lay_out(12)
    tally = Tally(rows, "tick")
    assert tally.words(0) == "searching"
    tally.go_on(1)
    assert tally.words(0) == "line 1 of 2"
    assert tally.words(1) == "on 2 lines"
    assert tally.words(tally.hits[1]) == "line 2 of 2"
