"""A file opens as it was left; a run that did not end is offered; keys pressed too early are not lost."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE
from tests.ui.bench import Bench, bench, session_at
from tests.ui.pace import running
from tests.ui.stored import FORK, PARENT, stored_runs
from tests.ui.support import TRIAGE
from workbench.tui.app import WorkbenchApp
from workbench.tui.bench.opening import opened_session
from workbench.tui.screens.dialog import ChoiceDialog
from workbench.tui.screens.settings import SettingsScreen
from workbench.tui.screens.sheet import Sheet
from workbench.workspace.folders import Folders
from workbench.workspace.session import Session
from workbench.workspace.view_states import load_views, views_file


def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path / "config", tmp_path / "state")


async def left(tmp_path: Path) -> str:
    """Look at a stored run in a way of one's own, and quit; the run."""
    store = stored_runs(tmp_path)
    store.remove(FORK)
    async with bench(tmp_path) as it:
        it.app.navigation.show_run(PARENT)
        await it.until(lambda: it.screen.shows(PARENT), "the run does not show")
        await it.press("left_square_bracket", "left_square_bracket", "left_square_bracket")
        await it.press("k", "p", "alt+right", "alt+up", "3", "shift+tab")
        it.presenter.state.folding["phase", "intake"] = False
        await it.press("q")
    return PARENT


async def test_the_run_call_pane_tab_folds_and_sizes_are_as_they_were_left(tmp_path: Path) -> None:
    run_id = await left(tmp_path)
    kept = load_views(folders(tmp_path), tmp_path).by_file["log_triage.yaml"]
    async with bench(tmp_path) as it:
        assert it.screen.shows(run_id)
        assert it.presenter.state.run.status == "success"
        await it.until(lambda: it.screen.view_now() == kept, f"{it.screen.view_now()} is not {kept}")
        assert (kept.tab, kept.pane, kept.tree_width, kept.dock_height) == ("state", "detail", 51, 11)
        assert (kept.call, kept.detail, kept.folded) == ("triage/1/1/1/1", "why", (("phase", "intake"),))
        assert "state" in it.text().lower()


def test_a_stored_run_is_folded_before_the_screen_gets_it(tmp_path: Path) -> None:
    stored_runs(tmp_path)
    session = session_at(tmp_path)
    session.view(PARENT)
    opened = opened_session(session)
    assert not session.events, "5,000 turns take two seconds, in which no key is answered"
    assert opened.presenter.state.run.status == "success"
    assert len(opened.presenter.timeline.bars) > len(opened.presenter.state.run.calls) > 0


async def test_a_file_that_changed_in_between_opens_there_too_and_says_what_changed(tmp_path: Path) -> None:
    run_id = await left(tmp_path)
    text = TRIAGE.replace("Read before you judge.", "Judge at once.").replace("- name: noise", "- name: quiet")
    async with bench(tmp_path, text=text.replace("crash, noise", "crash, quiet")) as it:
        assert it.screen.shows(run_id)
        assert it.presenter.state.changed == {"triage", "quiet"}
        assert "log_triage.yaml has changed since this run: quiet, triage" in " ".join(it.text().split())
        assert str(it.presenter.state.selected) == "triage/1/1/1/1"


async def test_fresh_begins_anew_and_so_does_a_run_that_was_deleted(tmp_path: Path) -> None:
    run_id = await left(tmp_path)
    async with bench(tmp_path, fresh=True) as it:
        assert not it.presenter.state.started
        assert it.screen.tab == "log"
        it.session.project.store.remove(run_id)
        # Killed: nothing of this view is kept over the other one.
        it.app.sessions._kept = (it.session.file, it.screen.view_now() or pytest.fail("no view"))
    async with bench(tmp_path) as it:
        assert not it.presenter.state.started
        assert it.screen.tab == "state", "the layout is restored all the same"


@pytest.mark.parametrize(
    "damage", ["{", '{"format": 1, "files": {"log_triage.yaml": {"call": 5, "node": 3, "pane": "x"}}}']
)
async def test_a_damaged_state_file_never_stands_in_the_way(tmp_path: Path, damage: str) -> None:
    await left(tmp_path)
    views_file(folders(tmp_path), tmp_path).path.write_text(damage)
    async with bench(tmp_path) as it:
        assert not it.presenter.state.started
        assert ("what was open last is forgotten" in " ".join(it.text().split())) is (damage == "{")


async def test_an_interrupted_run_is_shown_and_offered_at_the_next_start(tmp_path: Path) -> None:
    stored_runs(tmp_path)
    async with bench(tmp_path) as it:
        assert isinstance(it.app.screen, ChoiceDialog), "nothing was offered"
        await it.press("down", "enter")
        assert it.screen.shows(FORK)
        await it.press("q")
    async with bench(tmp_path) as it:
        assert it.screen.shows(FORK)
        assert isinstance(it.app.screen, ChoiceDialog), "nothing was offered"
        assert "was interrupted in triage" in it.text()
        await it.press("escape")
        assert it.presenter.state.run.status == "interrupted"
        await it.press("c")
        assert isinstance(it.app.screen, ChoiceDialog), "what was declined is not taken by the next key"
        assert not it.session.running


async def test_keys_pressed_before_the_session_is_open_are_not_lost(tmp_path: Path) -> None:
    opened = threading.Event()

    def make() -> Session:
        opened.wait(PATIENCE)
        return session_at(tmp_path)

    app = WorkbenchApp(make, given={"log": "night.log"})
    app.animation_level = "none"
    async with running(app, (120, 40)) as pilot:
        it = Bench(app, pilot)
        await pilot.type(("3", "tab", "z", "comma", "escape", "comma"))
        assert app.session is None
        await pilot.press("f2")
        assert app.current_theme.name != "workbench-dark", "keys of the app work at once"
        opened.set()
        await it.until(lambda: app.session is not None and it.screen.has_class("-zoom"), "the keys were dropped")
        assert (it.screen.tab, it.screen.last_pane) == ("state", "tree")
        await it.until(lambda: isinstance(app.screen, SettingsScreen), "a key of a room was dropped")


async def test_help_that_is_read_while_the_session_opens_stays(tmp_path: Path) -> None:
    opened = threading.Event()

    def make() -> Session:
        opened.wait(PATIENCE)
        return session_at(tmp_path)

    app = WorkbenchApp(make, given={"log": "night.log"})
    async with running(app, (120, 40)) as pilot:
        it = Bench(app, pilot)
        await pilot.press("question_mark")
        await it.until(lambda: isinstance(app.screen, Sheet), "no help")
        opened.set()
        await it.until(lambda: app.session is not None, "no session")
        shown = app.screen
        assert isinstance(shown, Sheet)
        await pilot.press("escape")
        assert app.screen is it.screen
