"""Several runs open at once: tabs beside each other, hidden ones go on without being drawn, each keeps its place."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tests.store.examples import Writer
from tests.support.waiting import PATIENCE, soon
from tests.ui.bench import Bench, bench, session_at
from tests.ui.support import RUN, Story, triage_story
from tests.ui.test_bench import CASCADE, REPLIES, step
from tests.ui.test_hostile import ALL, assert_harmless
from workbench.context.place import Place
from workbench.engine.debugger.stepper import Breakpoint, Mode
from workbench.language.clean import clean
from workbench.tui.bench.state import BenchState
from workbench.tui.notices import SECONDS
from workbench.tui.screens.dialog import ChoiceDialog
from workbench.tui.screens.sides import SidePicker
from workbench.views.cells import width_of
from workbench.views.tab_line import TabLabel, tab_line
from workbench.workspace.imports import import_file
from workbench.workspace.project import Project
from workbench.workspace.session import Session, Workspace

OTHER = CASCADE.replace("cascade_id: night", "cascade_id: morning")


def beside(folder: Path) -> Path:
    """Another cascade in the folder, with replies."""
    file = folder / "morning.yaml"
    file.write_text(OTHER)
    (folder / "morning.replies.yaml").write_text(REPLIES)
    return file


async def opened(it: Bench, file: Path) -> None:
    """Open a cascade in a tab of its own."""
    before = it.app.session
    it.app.navigation.show_file(file)
    await it.until(lambda: it.app.session is not before, "no tab was opened")


def tabs(it: Bench) -> str:
    return it.text().split("\n")[0]


async def test_a_held_run_stays_held_while_another_file_is_stepped_beside_it(tmp_path: Path) -> None:
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        await step(it)
        await step(it)
        first, place = it.session, it.presenter.state.selected
        assert "morning" not in it.text()
        await opened(it, beside(tmp_path))
        assert "night › 7f3a" in tabs(it)
        assert "morning" in tabs(it)
        await step(it)
        assert it.presenter.state.run.cascade_id == "morning"
        assert first.running
        await it.press("left_curly_bracket")
        assert it.session is first
        assert it.presenter.state.selected == place
        assert "PAUSED before triage:1" in it.text()
        await step(it)
        assert it.presenter.state.selected != place


async def test_a_hidden_run_goes_on_to_its_end_undrawn_and_its_tab_tells_it(tmp_path: Path) -> None:
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        await step(it)
        first, state = it.session, it.presenter.state
        await opened(it, beside(tmp_path))
        panes = [it.pane(name) for name in ("tree", "context", "detail", "dock")]
        first.go(Mode.CONTINUE)
        await it.until(lambda: state.run.finished, "the hidden run was not drained")
        await it.until(lambda: "✓ night › 7f3a" in tabs(it), "the tab does not tell the end")
        assert [it.pane(name) for name in ("tree", "context", "detail", "dock")] == panes
        assert " night › 7f3a: success\n" in it.text(), it.text()[-300:]
        assert "✗" not in it.text().splitlines()[-1]
        await it.press("right_curly_bracket")
        assert it.presenter.state is state
        assert "The queue timed out at 09:14." in it.text()


async def test_each_tab_keeps_its_rows_its_filter_and_its_lower_pane(tmp_path: Path) -> None:
    async with bench(tmp_path, events=triage_story().events) as it:
        await it.press("5", "5", "g", "j", "j", "j")
        cursor, call = it.screen.dock_pane.cursor, it.presenter.state.selected
        await opened(it, beside(tmp_path))
        assert it.screen.dock_pane.cursor != cursor
        await it.press("left_curly_bracket")
        assert (it.screen.tab, it.screen.dock_pane.cursor) == ("events", cursor)
        assert it.presenter.state.selected == call


async def test_closing_a_tab_with_a_live_run_asks_and_stops_it(tmp_path: Path) -> None:
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        await it.press("X")
        assert "This is the only tab" in it.text()
        await step(it)
        first = it.session
        await opened(it, beside(tmp_path))
        await it.press("left_curly_bracket", "X")
        assert isinstance(it.app.screen, ChoiceDialog)
        await it.press("escape")
        assert first.running
        await it.press("X", "t")
        await it.until(lambda: not first.running, "the run was not stopped")
        assert it.presenter.file is not None
        assert it.presenter.file.shown == "morning.yaml"
        assert "night" not in tabs(it)
        stored = first.project.store.summary(first.run_id)
        assert stored.status == "stopped"


async def test_a_run_that_is_open_is_shown_in_its_tab_and_not_twice(tmp_path: Path) -> None:
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        await step(it, "r")
        run_id = it.presenter.state.run.run_id
        await opened(it, beside(tmp_path))
        it.app.sessions.show_run(run_id)
        await it.pilot.pause()
        assert it.presenter.state.run.run_id == run_id
        it.app.navigation.show_file(tmp_path / "morning.yaml")
        await it.pilot.pause()
        assert len(it.app.tab_labels) == 2


async def test_a_run_that_is_asked_for_twice_while_it_is_opened_gets_one_tab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SECONDS, "information", 600.0)  # No message goes by itself.
    begun, may_end = threading.Event(), threading.Event()

    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        await step(it, "r")
        run_id, told = it.presenter.state.run.run_id, list[str]()
        await it.until(lambda: not it.session.running)
        await step(it, "r")
        sessions, workspace = it.app.sessions, it.session.workspace

        def slowly(workspace: Workspace) -> Session:
            begun.set()
            may_end.wait(PATIENCE)
            return workspace.run(run_id)

        sessions.open_beside(workspace, slowly, lambda: told.append("first"), lambda tab: tab.shows(run_id))
        await it.until(begun.is_set)
        await it.until(lambda: "Opening … Keys wait" in it.text(), "nothing says that a run is being opened")
        sessions.show_run(run_id, lambda: told.append("second"))
        await it.until(lambda: told == ["second"])
        may_end.set()
        await it.until(lambda: told == ["second", "first"])
        assert "Opening" not in it.text(), "it is open, and the screen says that it is being opened"
        assert len(it.app.tab_labels) == 2


async def test_a_fork_opens_beside_the_run_that_it_begins_as(tmp_path: Path) -> None:
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        await step(it, "r")
        run_id = it.presenter.state.run.run_id
        await it.press("F")
        await it.until(lambda: it.presenter.state.held is not None, "the fork is not held")
        assert it.presenter.state.run.run_id != run_id
        await it.press("left_curly_bracket")
        assert it.presenter.state.run.run_id == run_id
        assert it.presenter.state.run.status == "success"
        it.screen.controllers.editing.fork_at(run_id, "nowhere:1")
        await it.until(lambda: "The run did not start: " in it.text(), "a fork without a place says nothing")
        assert "nowhere" in it.pane("context")


async def test_a_fork_of_an_imported_run_is_refused_in_words_and_leaves_no_tab(tmp_path: Path) -> None:
    chat = tmp_path / "chat.jsonl"
    chat.write_text('{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}\n')
    env = {"WORKBENCH_CONFIG_DIR": str(tmp_path / "config"), "WORKBENCH_STATE_DIR": str(tmp_path / "state")}
    project = Project.at(tmp_path, env=env)
    (imported,) = import_file(project, chat)
    async with bench(tmp_path, session=Workspace(project, "offline").run(imported.run_id)) as it:
        await it.until(lambda: it.presenter.state.run.finished)
        await it.press("left_square_bracket", "F")
        await it.until(lambda: "it can be shown and compared, not run again" in " ".join(it.text().split()))
        assert "CannotOpen" not in it.text()
        assert len(it.app.tab_labels) == 1


async def test_r_on_a_live_run_offers_one_beside_it(tmp_path: Path) -> None:
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        await step(it)
        first = it.session
        await it.press("r")
        assert "Run beside this one?" in it.text()
        await it.press("enter")
        await it.until(lambda: it.session is not first and it.presenter.state.run.finished, "nothing ran beside it")
        assert first.running


async def test_a_rerun_of_a_live_run_opens_beside_it(tmp_path: Path) -> None:
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        await step(it)
        await step(it)
        first = it.session
        await it.press("R")
        await it.until(lambda: it.session is not first, "nothing opened beside it")
        await it.until(lambda: it.presenter.state.run.finished, "it did not run again")
        assert it.presenter.state.run.parent["kind"] == "rerun"
        assert first.running
        await it.press("D")
        await it.until(lambda: isinstance(it.app.screen, SidePicker), "the picker did not open")
        picker = it.app.screen
        assert isinstance(picker, SidePicker)
        run = it.presenter.state.run
        parent, here = run.parent["run_id"], run.run_id
        await it.until(lambda: (picker.a.run, picker.b.run) == (here, parent), "the run before is not proposed")
        rows = picker.view.rows
        assert run.parent["session_id"] in rows.plain(picker.view.cursor)


async def test_a_second_rerun_of_one_that_has_made_nothing_new_takes_the_same_answers(tmp_path: Path) -> None:
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        await it.press("c")
        await it.until(lambda: it.presenter.state.run.finished and not it.session.running, "it did not run")
        run_id = it.presenter.state.run.run_id
        it.session.stepper.breakpoints = [Breakpoint("triage", 2)]
        await it.press("R")
        await it.until(lambda: it.presenter.state.held is not None, "it was not paused in what it repeats")
        first = it.session
        await it.press("R")
        await it.until(lambda: it.session is not first and it.presenter.state.held is not None, "nothing opened")
        await it.press("c")
        await it.until(lambda: it.presenter.state.run.finished and not it.session.running, "it did not go on")
        run = it.presenter.state.run
        assert run.parent["run_id"] == run_id
        assert all(call.recorded for call in run.calls)


async def test_a_save_reaches_the_hidden_tabs_of_the_file(tmp_path: Path) -> None:
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        await step(it)
        state, first = it.presenter.state, it.session
        await opened(it, beside(tmp_path))
        first.file.write_text(CASCADE.replace("Find the first failure.", "Find every failure."))
        await it.until(lambda: state.changed, "the save did not reach the hidden tab")
        assert state.changed == {"triage"}
        assert not it.presenter.state.changed


async def test_a_click_shows_a_tab_and_closes_one(tmp_path: Path) -> None:
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        first = it.session
        await opened(it, beside(tmp_path))
        await it.pilot.click("#tabs", offset=(tabs(it).index("night"), 0))
        await it.until(lambda: it.session is first, "the click did not show the tab")
        await it.pilot.click("#tabs", offset=(tabs(it).rindex("×"), 0))
        await it.until(lambda: len(it.app.tab_labels) == 1, "the click did not close the tab")
        assert it.session is first


@pytest.mark.parametrize("kind", ["async", "sub", "tool"])
def test_a_child_that_begins_after_the_end_does_not_take_the_place_of_the_run(kind: str) -> None:
    story = triage_story()
    story.finish("Done.")
    child = Story("0190c6f2-7f3a-7000-8000-00000000c001")
    child.emit(
        "run_started",
        session_id="late",
        cascade_id="late",
        cascade_file="late.yaml",
        cascade_text="",
        cascade_sha256="",
        input={},
        options={},
        ports={},
        parent={"run_id": RUN, "session_id": "x", "kind": kind, "depth": 1},
    )
    state = BenchState()
    state.absorb([*story.events, *child.events], (), 0.0)
    assert state.run.run_id == RUN
    assert state.run.status == "success"


@pytest.mark.parametrize("width", [1, 12, 40, 80, 120, 200])
def test_the_line_of_tabs_fits_and_always_shows_the_current_one(width: int) -> None:
    labels = [TabLabel(f"cascade_{n}", "ab12", "held" if n % 2 else "", current=n == 7) for n in range(20)]
    spans = tab_line(labels, width)
    text = "".join(part for part, _ in spans)
    assert "cascade_7" in text
    assert width < 40 or width_of(spans) <= width
    assert width < 40 or ("‹" in text and "›" in text)


@pytest.mark.parametrize("payload", ALL)
def test_a_hostile_name_is_clean_in_the_line_of_tabs(payload: str) -> None:
    text = "".join(part for part, _ in tab_line([TabLabel(payload, payload, payload, current=True)], 200))
    assert text == clean(text)
    assert "\n" not in text


async def test_tabs_of_hostile_names_show_at_every_size(tmp_path: Path) -> None:
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        for number in range(3):
            file = tmp_path / f"case_{number}.yaml"
            file.write_text(CASCADE.replace("cascade_id: night", f"cascade_id: '[@click=app.quit]{number}[/]'"))
            await opened(it, file)
        await it.press("n")
        for size in ((40, 12), (80, 24), (120, 40), (200, 50)):
            await it.pilot.resize_terminal(*size)
            await it.pilot.pause()
            assert "[@click=app.quit]2" in tabs(it), size
            assert_harmless(it, size)


async def test_a_run_that_asks_in_another_window_says_so_here(tmp_path: Path) -> None:
    session = session_at(tmp_path, CASCADE, REPLIES, "night")
    run_id = "01890000-0000-7000-8000-00000000wait"
    w, place = Writer(run_id), Place("", "intake", 1)
    with session.project.store.create(run_id) as journal:
        for event in (
            w.event("run_started", session_id="asked", cascade_id="night", cascade_file="night.yaml"),
            w.event("phase_started", place, kind="llm"),
            w.event("human_asked", place, index=1, question="How good?"),
        ):
            journal.append(event)
        async with bench(tmp_path, session=session.workspace.run(run_id)) as it:
            await it.until(lambda: "WAITING FOR YOU, in another window" in it.text())
            await it.press("a")
            await it.until(lambda: f"Process {os.getpid()} is running this" in it.text())
            assert "The window that runs it asks." in it.text()
            assert "opens the question" not in it.text()


async def test_a_run_that_another_window_has_paused_is_paused_here_and_offers_what_works_here(tmp_path: Path) -> None:
    writer = session_at(tmp_path, CASCADE, REPLIES, "night")
    writer.start({"log": "night.log"}, Mode.OVER)
    await soon(lambda: writer.stepper.waits, "the run did not pause")
    try:
        async with bench(tmp_path, session=writer.workspace.run(writer.run_id)) as it:
            await it.until(lambda: "PAUSED before intake:1, in another window" in it.text())
            footer = it.text().split("\n")[-2]
            assert "F fork" in footer
            assert not any(word in footer for word in ("n step", "x stop", "E edit", "S say")), footer
            await it.press("S")
            await it.until(lambda: f"Process {os.getpid()} is running this: you can view it here" in it.text())
            writer.go(Mode.OVER)
            await it.until(lambda: "PAUSED before triage:1, in another window" in it.text())
            writer.stop()
            await it.until(lambda: "STOPPED" in it.text())
    finally:
        writer.close()
