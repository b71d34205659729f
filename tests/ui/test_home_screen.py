"""The home screen: what a folder holds, opened with a key; and what to do where it holds nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from textual import events

from tests.support.waiting import PATIENCE
from tests.ui.bench import Bench, screen_text
from tests.ui.pace import running
from tests.ui.snapshot import check_sizes
from tests.ui.stored import FAILED, stored_runs
from tests.ui.support import TRIAGE
from workbench.store.catalog import Member
from workbench.tui.app import WorkbenchApp
from workbench.tui.screens.dialog import ChoiceDialog
from workbench.tui.screens.home import HomeScreen
from workbench.tui.screens.inputs import InputForm
from workbench.tui.widgets.entry import LineInput
from workbench.tui.widgets.rowview import Spread
from workbench.views.home import CascadeRows
from workbench.views.runs import RunRows
from workbench.workspace.home import CheckedCascade, ListedCascade
from workbench.workspace.project import Project
from workbench.workspace.runs_poller import Listing, RunsRequest
from workbench.workspace.session import Workspace
from workbench.workspace.starting import create

BROKEN = "cascade_id: broken\nphases:\n  - name: a\n    instructions: Hello.\n    handoffs: [nowhere]\n"


@asynccontextmanager
async def home(
    folder: Path, size: tuple[int, int] = (120, 40), proposed: str = ""
) -> AsyncIterator[tuple[Bench, HomeScreen]]:
    """The app without a file, with everything looked at."""
    env = {"WORKBENCH_CONFIG_DIR": str(folder / "config"), "WORKBENCH_STATE_DIR": str(folder / "state")}
    app = WorkbenchApp(lambda: Workspace(Project.at(folder, env=env), model="offline", proposed=proposed))
    app.animation_level = "none"
    async with running(app, size) as pilot:
        it = Bench(app, pilot)
        await it.until(lambda: any(isinstance(one, HomeScreen) for one in app.screen_stack), "home did not open")
        screen = next(one for one in app.screen_stack if isinstance(one, HomeScreen))
        assert isinstance(screen, HomeScreen)
        await app.workers.wait_for_complete()
        await it.until(lambda: not screen._listing.searching, "the runs were not read")
        yield it, screen
        await pilot.pause()


@pytest.mark.parametrize(("width", "more"), [(120, 1), (70, 2), (40, 4)])
def test_the_file_under_the_cursor_says_all_that_is_wrong_with_it(tmp_path: Path, width: int, more: int) -> None:
    words = (
        "6:16: handoff target 'nowhere', which a phase names as the next, is not a phase (did you mean 'now'?) [L302]"
    )
    listed = [ListedCascade(tmp_path / "a.yaml", "a.yaml", "a"), ListedCascade(tmp_path / "b.yaml", "b.yaml", "b")]
    found = CheckedCascade(tmp_path / "a.yaml", phases=1, errors=1, first=words)
    rows = CascadeRows(listed, {"a.yaml": found}, {})
    lines = [row.text for row in rows.whole(0, width)]
    assert len(lines) == 1 + more
    assert max(map(len, lines)) <= width
    assert " ".join("".join(line.ljust(width) for line in lines).split()[4:]) == words
    assert rows.whole(1, width) == ()


def test_a_folder_has_no_problems_only_if_its_files_have_none() -> None:
    listed = [ListedCascade(Path("a.yaml"), "a.yaml", "a")]
    for infos, words in ((0, "no problems"), (2, "1 file with info")):
        rows = CascadeRows(listed, {"a.yaml": CheckedCascade(Path("a.yaml"), phases=1, infos=infos)}, {})
        assert [text for text, _ in rows.title_right] == [words]


async def test_a_folder_shows_its_cascades_with_their_problems_and_its_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "night"
    (folder / "flows").mkdir(parents=True)
    (folder / "log_triage.yaml").write_text(TRIAGE)
    (folder / "flows" / "broken.yaml").write_text(BROKEN)
    stored_runs(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    async with home(folder) as (it, _):
        await check_sizes(it, "home", picture=True)
        lines = [line.split() for line in screen_text(it.app).splitlines()]
        assert "1 file with errors · 1 file with warnings" in screen_text(it.app)
        assert lines[3][:4] == ["▌", "log_triage.yaml", "⚠", "1"]
        assert lines[3][5] == "■", "the newest run of the file was interrupted"
        assert lines[4][:7] == ["flows/broken.yaml", "✗", "1", "error", "5:16:", "handoff", "target"]
        runs = next(i for i, line in enumerate(lines) if line[:2] == ["─", "Runs"])
        assert lines[runs + 2][:4] == ["▏", "✓", "▸", "log_triage-7f3a"]


async def test_what_the_cascades_are_about_is_whole_where_there_is_room(tmp_path: Path) -> None:
    about = "Answers a question about a CSV file with SQL, and explains the answer to somebody who was not there at all"
    phases = "phases: [{name: a, instructions: Go.}]"
    for number in range(8):
        (tmp_path / f"c{number}.yaml").write_text(f"cascade_id: c\ndescription: {number} {about}\n{phases}\n")
    async with home(tmp_path) as (it, screen):
        await it.until(lambda: it.text().count("not there at all") == 8, "they are cut beside empty lines")
        await it.pilot.resize_terminal(120, 14)
        await it.until(lambda: it.text().count("not there at all") < 8)
        assert screen.recent.size.height >= 4


@pytest.mark.parametrize("width", [80, 120, 200])
def test_columns_of_the_cascades_stand_below_their_titles_and_none_is_cut_at_the_edge(
    tmp_path: Path, width: int
) -> None:
    names = ("a_cascade_with_a_name.yaml", "other.yaml")
    listed = [ListedCascade(tmp_path / name, name, "c") for name in names]
    checked = {
        name: CheckedCascade(tmp_path / name, phases=2, description="Reads the log of a service and says what failed.")
        for name in names
    }
    store = stored_runs(tmp_path)
    run = replace(next(run for run in store.runs() if run.resumable), at="investigate:2", cost=0.012345)
    rows = CascadeRows(listed, checked, {names[0]: run})
    (head,), ran, new = rows.heads(width), rows.row(0, width).text, rows.row(1, width).text
    assert ran[: head.text.index("cost") + 4].endswith("$0.0123"), "the cost does not stand below its title"
    if "about" in head.text and width > 80:
        at = head.text.index("about")
        assert (ran[at:][:9], new[at:][:9]) == ("Reads the",) * 2
        assert "never" in new[:at]


async def test_what_a_cascade_without_a_run_is_about_takes_the_columns_of_its_run(tmp_path: Path) -> None:
    stored_runs(tmp_path)
    (tmp_path / "log_triage.yaml").write_text(TRIAGE)
    for number in range(30):
        text = f"cascade_id: c\ndescription: Orders of day {number}\nphases: [{{name: a, instructions: Go.}}]\n"
        (tmp_path / f"with_a_long_name_{number}.yaml").write_text(text)
    async with home(tmp_path, (80, 24)) as (it, _):
        await it.until(
            lambda: "log_triage" in it.text() and "Orders of day 12" in it.text(), "cut beside blank columns"
        )
        assert "after" in it.text(), "no run shows"
        assert not any("Orders" in line and "…" in line for line in it.text().splitlines())


async def test_enter_opens_a_cascade_or_a_run_and_h_leads_back(tmp_path: Path) -> None:
    (tmp_path / "log_triage.yaml").write_text(TRIAGE)
    (tmp_path / "other.yaml").write_text(TRIAGE.replace("log_triage", "other"))
    stored_runs(tmp_path)
    async with home(tmp_path) as (it, _):
        await it.press("j", "enter")
        await it.until(lambda: it.app.session is not None, "the file did not open")
        assert it.session.file == tmp_path / "other.yaml"
        assert it.app.screen is it.screen
        await it.press("H")
        await it.until(lambda: isinstance(it.app.screen, HomeScreen), "there is no way back")
        again = it.app.screen
        assert isinstance(again, HomeScreen)
        await it.until(lambda: len(again.recent.rows) == 5, "the runs were not read")
        await it.press("tab", "j", "j", "enter")
        await it.until(lambda: it.screen.shows(FAILED), "the run does not show")
        assert it.session.file == tmp_path / "log_triage.yaml"


async def test_keys_typed_behind_enter_are_for_the_file_that_it_opens(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("cascade_id: one\nphases:\n  - {name: a, instructions: Hello.}\n")
    async with home(tmp_path) as (it, _):
        for key in ("enter", "n"):
            it.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await it.until(lambda: "PAUSED before a:1" in it.text(), "n went to the list of files")


async def test_an_empty_folder_says_how_to_begin_and_d_opens_the_tour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "tour").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tour"))
    monkeypatch.setenv("HOME", str(tmp_path))
    async with home(tmp_path / "empty") as (it, _):
        assert "No cascades in this folder." in screen_text(it.app)
        await check_sizes(it, "home-empty")
        await it.press("escape")
        assert isinstance(it.app.screen, HomeScreen), "there is nothing below it"
        await it.press("d")
        await it.until(lambda: it.app.session is not None, "the tour did not open")
        assert it.session.file.name == "log_triage.yaml"
        assert it.session.file.is_relative_to(tmp_path / "tour")
        assert it.app.given["service"]


async def test_in_a_folder_of_runs_alone_the_cursor_starts_in_them(tmp_path: Path) -> None:
    stored_runs(tmp_path)
    async with home(tmp_path) as (it, screen):
        await it.until(lambda: screen.recent.has_focus, "the keys go to an empty list")


async def test_the_snapshots_of_a_folder_without_a_cascade_can_be_looked_at(tmp_path: Path) -> None:
    (tmp_path / "snapshots").mkdir()
    (tmp_path / "snapshots" / "torn.json").write_text('{"snapshot_name": "torn",')
    async with home(tmp_path) as (it, _):
        await it.press("T")
        await it.until(lambda: "✗ torn" in screen_text(it.app), "the snapshots did not open")
        assert "the file is truncated" in screen_text(it.app)
        await it.press("a", "o", "d", "escape")
        await it.until(lambda: isinstance(it.app.screen, HomeScreen), "the screen did not open")
        assert isinstance(it.app.screen, HomeScreen)


async def test_keys_pressed_before_the_folder_was_looked_at_choose_in_its_list_and_step(tmp_path: Path) -> None:
    phases = "".join(f"  - {{name: {name}, instructions: Hello.}}\n" for name in "abcd")
    for name in ("log_triage", "other"):
        (tmp_path / f"{name}.yaml").write_text(f"cascade_id: {name}\nphases:\n{phases}")
    replies = "".join(f"  {name}: [{{text: Hello.}}]\n" for name in "abcd")
    (tmp_path / "other.replies.yaml").write_text(f"replies:\n{replies}")
    opened = threading.Event()
    env = {"WORKBENCH_CONFIG_DIR": str(tmp_path / "config"), "WORKBENCH_STATE_DIR": str(tmp_path / "state")}

    def make() -> Workspace:
        opened.wait(PATIENCE)
        return Workspace(Project.at(tmp_path, env=env), model="offline")

    app = WorkbenchApp(make)
    app.animation_level = "none"
    async with running(app, (120, 40)) as pilot:
        it = Bench(app, pilot)
        assert "n step" not in it.text(), "a list of files opens: its n is another"
        await pilot.type(("j", "enter", "n", "n", "n"))
        opened.set()
        await it.until(lambda: app.session is not None, "nothing was chosen")
        assert it.session.file.name == "other.yaml"
        await it.until(lambda: "PAUSED before c:1" in it.text(), "a step was lost")
        await it.press("n")
        await it.until(lambda: "PAUSED before d:1" in it.text(), "keys are still held")


async def test_a_file_that_cannot_be_opened_is_said_and_the_app_stays(tmp_path: Path) -> None:
    (tmp_path / "log_triage.yaml").write_text(TRIAGE)
    async with home(tmp_path) as (it, _):
        (tmp_path / "log_triage.yaml").unlink()
        await it.press("enter")
        await it.until(lambda: "no such file" in screen_text(it.app), "nothing was said")
        assert isinstance(it.app.screen, HomeScreen)


async def test_n_makes_a_cascade_from_a_template_asks_for_its_inputs_and_opens_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / "desk"
    folder.mkdir()
    async with home(folder) as (it, screen):
        await it.press("n")
        await it.until(lambda: isinstance(it.app.screen, ChoiceDialog), "no template was asked for")
        await check_sizes(it, "new")
        await it.press("2")
        await it.until(lambda: screen.query(LineInput), "no file was asked for")
        assert screen.query_one(LineInput).value == "agent.yaml"
        (folder / "taken.yaml").write_text("mine")
        screen.query_one(LineInput).value = "taken.yaml"
        await it.press("enter")
        assert screen.query(LineInput), "a file that is there is not taken"
        screen.query_one(LineInput).value = "flow"
        await it.press("enter")
        await it.until(lambda: isinstance(it.app.screen, InputForm), "no inputs were asked for")
        assert [entry.value for entry in it.app.screen.query(LineInput)][1] == "flow.notes.txt"
        await it.type("Really?")
        await it.press("enter", "enter")
        await it.until(lambda: it.app.session is not None, "it did not open")
        assert it.session.file == folder / "flow.yaml"
        question = "Really?"
        assert json.loads((folder / "flow.input.json").read_text())["question"] == question
        assert it.app.given["question"] == question
        await it.press("r")
        await it.until(lambda: it.presenter.state.run.finished, "it did not run")
        assert it.presenter.state.run.status == "success"
        assert it.presenter.state.run.input["question"] == question
        assert (folder / "taken.yaml").read_text() == "mine"


async def test_a_filter_shows_what_holds_its_text_in_both_lists(tmp_path: Path) -> None:
    """A word of a run alone goes to the runs, and escape shows all again."""
    (tmp_path / "greeting.yaml").write_text(TRIAGE)
    stored_runs(tmp_path)
    async with home(tmp_path) as (it, screen):
        await it.press("f")
        await it.type("log_triage-7f3a")
        await it.press("enter")
        lines = screen_text(it.app)
        assert "greeting.yaml" not in lines
        assert screen.recent.has_focus
        await it.press("escape")
        assert "greeting.yaml" in screen_text(it.app)
        assert not screen.recent.filter


async def test_n_goes_to_the_next_match_while_a_search_is_marked(tmp_path: Path) -> None:
    for name in ("a", "b", "a2"):
        (tmp_path / f"{name}.yaml").write_text(TRIAGE)
    async with home(tmp_path) as (it, screen):
        await it.press("slash")
        await it.type("a")
        await it.press("enter", "n")
        assert screen.cascades.cursor > 0
        assert it.app.screen is screen
        await it.press("escape", "n")
        await it.until(lambda: isinstance(it.app.screen, ChoiceDialog), "no template was asked for")


async def test_inputs_are_changed_where_a_file_has_them_already_at_home_and_in_the_bench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / "desk"
    folder.mkdir()
    create("call", folder / "sum.yaml", "sum.yaml")
    kept = folder / "sum.input.json"

    def reader() -> object:
        return json.loads(kept.read_text()).get("reader")

    async with home(folder) as (it, _):
        await it.press("I")
        await it.until(lambda: isinstance(it.app.screen, InputForm), "no inputs were shown")
        await check_sizes(it, "inputs-kept")
        it.app.screen.query(LineInput)[1].value = "Ada"
        await it.press("enter", "enter")
        await it.until(lambda: reader() == "Ada", "nothing was saved")
        await it.press("enter")
        await it.until(lambda: it.app.session is not None, "the file did not open")
        await it.until(lambda: it.app.given.get("reader") == "Ada", "it opens with other inputs")
        await it.press("I")
        await it.until(lambda: isinstance(it.app.screen, InputForm), "no inputs were shown")
        entry = it.app.screen.query(LineInput)[1]
        entry.value = ""
        entry.post_message(events.Paste("y" * 200_000))
        await it.until(lambda: "200,000 characters" in screen_text(it.app), "nothing said that it is too long")
        entry.post_message(events.Paste("Grace\r\nHopper"))
        await it.until(lambda: entry.value, "the lines were not taken")
        await it.press("enter", "enter")
        assert it.app.given["reader"] == reader() == "Grace\nHopper"
        assert not it.presenter.state.run.run_id, "nothing was started"
        await it.press("I", "escape")
        assert reader() == "Grace\nHopper"


async def test_a_file_that_is_not_there_is_offered_to_be_made(tmp_path: Path) -> None:
    async with home(tmp_path, proposed="ticket.yaml") as (it, screen):
        await it.until(lambda: isinstance(it.app.screen, ChoiceDialog), "nothing was offered")
        assert "New cascade ticket.yaml" in screen_text(it.app)
        await it.press("1")
        await it.until(lambda: screen.query(LineInput), "no file was asked for")
        assert screen.query_one(LineInput).value == "ticket.yaml"
        await it.press("enter")
        await it.until(lambda: isinstance(it.app.screen, InputForm), "no inputs were asked for")
        await it.press("escape")
        await it.until(lambda: it.app.session is not None, "it did not open")
        assert it.session.file == tmp_path / "ticket.yaml"


def test_a_run_that_waits_for_a_person_is_told_from_one_that_runs(tmp_path: Path) -> None:
    store = stored_runs(tmp_path)
    stored = replace(store.summary(FAILED), status="running", asking=True)
    listed = [ListedCascade(tmp_path / "a.yaml", "a.yaml", "a")]
    waits, runs = (
        CascadeRows(listed, {}, {"a.yaml": replace(stored, asking=asking)}).row(0, 100).text for asking in (True, False)
    )
    assert "? 11-04 14:02 waits for you" in waits
    assert "waits" not in runs
    assert "? " not in runs


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_the_input_and_output_of_a_run_show_whole_in_several_lines(tmp_path: Path, width: int) -> None:
    given = "the log of the night, and that of the night before, both from the second rack of the old building"
    said = "The first failure is the queue: it timed out after 30 s, and all the workers behind it were restarted"
    run = replace(
        stored_runs(tmp_path).summary(FAILED), input=f"log: {given}", output=said, reason="", status="success"
    )
    rows = RunRows(Listing(RunsRequest(), members=(Member(run),), total=1))
    lines = [row.text for row in rows.whole(0, width)]
    shown = " ".join(lines[1:] if width < 200 else lines).split()
    assert all(shown.count(word) for word in (*given.split(), *said.split()))
    assert all(cell_len(line) <= width for line in lines)


def test_a_row_of_a_run_beside_a_card_shows_whole_only_in_free_lines(tmp_path: Path) -> None:
    run = replace(stored_runs(tmp_path).summary(FAILED), output="many words " * 12)
    listing = Listing(RunsRequest(), members=(Member(run),) * 5, total=5)
    for beside_card in (True, False):
        rows = RunRows(listing, beside_card=beside_card)
        lines = len(rows.whole(2, 80))
        assert lines > 2
        for page in (5, 5 + lines - 1, 5 * lines - 1, 5 * lines):
            spread = Spread(rows, 80, page, 2)
            assert len(spread) == (page if beside_card or page >= 5 + lines - 1 else 5 + lines - 1)
            assert len(spread.lines_of(2)) == (1 if beside_card and page == 5 else lines)


def test_several_models_without_room_are_counted_and_one_is_cut_in_its_middle(tmp_path: Path) -> None:
    run = stored_runs(tmp_path).summary(FAILED)
    for model, shown in (
        ("google/gemini-2.5-flash-lite, openai/gpt-4.1-mini, anthropic/claude-sonnet-4.5", "-lite +2"),
        ("google/gemini-2.5-flash-lite-preview-09-2025", "-2025"),
    ):
        listing = Listing(RunsRequest(), members=(Member(replace(run, model=model)),), total=1)
        text = RunRows(listing).row(0, 120).text
        assert "gemini-" in text
        assert f"{shown} " in text


def test_the_list_of_runs_has_no_column_for_times_that_no_run_states(tmp_path: Path) -> None:
    run = stored_runs(tmp_path).summary(FAILED)
    for passed, named in ((4.2, True), (None, False)):
        listing = Listing(RunsRequest(), members=(Member(replace(run, seconds=passed)),), total=1)
        (head,) = RunRows(listing).heads(200)
        assert ("took" in head.text.split()) is named


async def test_home_says_when_a_file_ran_last_and_for_how_much(tmp_path: Path) -> None:
    (tmp_path / "log_triage.yaml").write_text(TRIAGE)
    stored_runs(tmp_path)
    async with home(tmp_path) as (it, _):
        await it.until(lambda: "after triage:3" in screen_text(it.app), "the runs were not read")
        line = next(line for line in screen_text(it.app).splitlines() if "log_triage.yaml" in line)
        assert line.split()[5:11] == ["■", "11-05", "14:02", "after", "triage:3", "$0.0074"]
