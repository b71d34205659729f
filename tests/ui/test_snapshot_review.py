"""Snapshots in the app: freezing the run that is shown, and the review of what changed."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.widgets import Input

from tests.support.waiting import soon
from tests.support.workspaces import CASCADE, NOTES, REPLIES
from tests.ui.bench import Bench, bench, screen_text, session_at
from tests.ui.snapshot import check_sizes
from workbench.snapshots.freeze import Label
from workbench.tui.screens.dialog import ChoiceDialog
from workbench.tui.screens.freeze import FreezeForm
from workbench.tui.screens.request import ChangedSheet, RequestSheet
from workbench.tui.screens.snapshots import SnapshotsScreen
from workbench.views.snapshots import ReviewRows, SnapshotBoard, SnapshotRows
from workbench.workspace.snapshot_files import ListedSnapshot
from workbench.workspace.testing import SnapshotResult, Snapshots


@asynccontextmanager
async def greeted(folder: Path, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Bench]:
    """The app with a run of ``greet.yaml`` that has ended."""
    (folder / "notes.txt").write_text(NOTES)
    session = session_at(folder, CASCADE, REPLIES, "greet")
    async with bench(folder, size=size, session=session, given={"name": "Ada"}) as it:
        await it.press("r")
        await it.until(lambda: it.presenter.state.run.finished and not it.session.running, "the run did not end")
        yield it


async def frozen(it: Bench, *names: str) -> Path:
    """Snapshots of the run that is shown; the path of the last."""

    def freeze() -> Path:
        with Snapshots(it.session.project) as snapshots:
            run_id = it.presenter.state.run.run_id
            return [snapshots.freeze(run_id, Label(name, "hello"))[0] for name in names or ("greets",)][-1]

    return await asyncio.to_thread(freeze)


async def asked_to_freeze(it: Bench, name: str) -> None:
    """Press t, and fill in the form."""
    await it.press("t")
    await it.until(lambda: isinstance(it.app.screen, FreezeForm), "the form did not open")
    it.app.screen.query_one("#freeze-name", Input).value = name
    await it.press("enter", "enter", "enter")


async def reviewed(it: Bench) -> SnapshotsScreen:
    """Open the snapshots, and wait until all are checked."""
    await it.press("T")
    await it.until(lambda: isinstance(it.app.screen, SnapshotsScreen), "the screen did not open")
    screen = it.app.screen
    assert isinstance(screen, SnapshotsScreen)
    await it.until(lambda: not screen.board.busy, "the check did not end")
    return screen


def edit(it: Bench, old: str, new: str) -> None:
    text = it.session.file.read_text()
    assert old in text
    it.session.file.write_text(text.replace(old, new))


async def test_what_changed_is_shown_with_rule_line_was_and_is(tmp_path: Path) -> None:
    async with greeted(tmp_path) as it:
        await frozen(it)
        text = (it.session.project.root / "snapshots" / "greets.json").read_text()
        folder = it.session.project.root / "snapshots"
        body = json.loads(text)
        body["captured_at"] = "2026-11-02T14:02:11+00:00"
        (folder / "greets.json").write_text(json.dumps(body))
        (folder / "broken.json").write_text(text[: len(text) // 2])
        (folder / "lost.json").write_text(text.replace('"greet.yaml"', '"gone.yaml"'))
        (folder / "other.json").write_text("{}")
        edit(it, "mask_observations_after: 1", "mask_observations_after: 2")
        edit(it, "Greet them.", "Greet them warmly.")
        screen = await reviewed(it)
        shown = screen_text(it.app)
        assert "● greets" in shown
        assert "look:3   request changed: 1 message sent in full again" in shown
        assert "greet.yaml:8  was 1, is 2" in shown
        assert [item.status for item in screen.board.items] == ["broken", "changed", "orphaned"]
        await it.press("tab", "j")
        await check_sizes(it, "review", picture=True)


def test_a_test_whose_command_is_not_run_is_neither_broken_nor_to_be_decided() -> None:
    board = SnapshotBoard("snapshots")
    board.listed([ListedSnapshot("agent", "snapshots/agent.json", "strict")])
    board.checked(SnapshotResult("agent", "snapshots/agent.json", skipped="it runs a command: agent.py"))
    assert "".join(text for part in board.counts() for text, _ in part).split(maxsplit=1)[1] == "1 not run"
    assert board.next_open(-1) is None
    document = ReviewRows(board.items[0].listed, board.items[0].verdict)
    assert "Not run: it runs a command: agent.py." in document.copy


def test_what_a_test_is_about_stands_below_its_row_where_it_has_no_room_beside() -> None:
    board = SnapshotBoard("snapshots")
    about = "an agent that looks for the cause of two failing tests"
    board.listed([ListedSnapshot("agent", "snapshots/agent.json", "strict", description=about)])
    rows = SnapshotRows(board)
    lines = [row.text.strip() for row in rows.whole(0, 44)]
    assert " ".join(lines[1:]) == about
    assert not rows.whole(0, 120)


async def test_accepting_writes_and_rejecting_does_not(tmp_path: Path) -> None:
    async with greeted(tmp_path) as it:
        third = await frozen(it, "first", "second", "third")
        first, second = (third.with_name(f"{name}.json") for name in ("first", "second"))
        edit(it, "Greet them.", "Greet them warmly.")
        before = {file: file.read_bytes() for file in (first, second, third)}
        screen = await reviewed(it)
        assert screen.item is not None
        assert screen.item.listed.name == "first"
        await it.press("r")
        await it.until(lambda: screen.item is screen.board.items[1], "the cursor did not go on")
        await it.press("a")
        await it.until(lambda: second.read_bytes() != before[second], "nothing was written")
        assert json.loads(second.read_text())["description"] == "hello"
        await it.until(lambda: screen.item is screen.board.items[2], "the cursor did not go on")
        await it.press("S")
        await it.until(lambda: screen.board.items[2].status == "skipped")
        assert [item.status for item in screen.board.items] == ["rejected", "accepted", "skipped"]
        assert (first.read_bytes(), third.read_bytes()) == (before[first], before[third])
        assert "✓ 1 accepted" in screen_text(it.app)
        await it.press("k", "s")
        await it.until(lambda: screen.board.items[1].status == "skipped", "what was accepted cannot be taken back")
        assert second.read_bytes() == before[second]
        await it.until(lambda: "Restored: snapshots/second.json" in screen_text(it.app))
        await it.press("a")
        await it.until(lambda: screen.board.items[1].status == "accepted", "a decision cannot be changed")
        assert "u undoes it" in screen_text(it.app)
        await it.press("c")
        await it.until(lambda: screen.board.items[1].status == "passed" and not screen.board.busy)
        assert [item.status for item in screen.board.items] == ["changed", "passed", "changed"]
        await it.press("A")
        await it.until(lambda: all(item.status == "accepted" for item in screen.board.items[::2]))
        assert third.read_bytes() != before[third]
        assert "u undo" in screen_text(it.app).splitlines()[-1]
        await it.press("u")
        await it.until(lambda: all(item.status == "changed" for item in screen.board.items[::2]), "nothing was undone")
        assert (first.read_bytes(), third.read_bytes()) == (before[first], before[third])
        await it.press("u")
        assert "There is no decision to undo." in screen_text(it.app)


async def test_what_cannot_be_accepted_says_why_and_stays(tmp_path: Path) -> None:
    async with greeted(tmp_path) as it:
        file = await frozen(it)
        edit(it, "name: answer", "name: reply")
        edit(it, "target: answer", "target: reply")
        before = file.read_bytes()
        screen = await reviewed(it)
        await it.press("a")
        await it.until(lambda: screen.board.items[0].objection, "nobody objected")
        assert "cannot be accepted" in screen.board.items[0].objection
        assert screen.board.items[0].status == "changed"
        assert file.read_bytes() == before


async def test_both_requests_in_full_with_folds_and_the_line_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[tuple[Path, int]] = []

    async with greeted(tmp_path) as it:
        monkeypatch.setattr(it.app.navigation, "edit_outside", lambda file, line: opened.append((file, line)))
        await frozen(it)
        edit(it, "mask_observations_after: 1", "mask_observations_after: 2")
        await reviewed(it)
        await it.press("d")
        await it.until(lambda: isinstance(it.app.screen, RequestSheet), "the requests did not open")
        sheet = it.app.screen
        assert isinstance(sheet, RequestSheet)
        await it.until(lambda: sheet.view.cursor, "the cursor was not led to the difference")
        await check_sizes(it, "requests")
        await it.press("right_square_bracket")
        assert "message 4 (turn 1's result) was masked" in sheet.view.rows.plain(sheet.view.cursor)
        await it.press("o", "home")
        rows = len(sheet.view.rows)
        await it.press("enter")
        assert len(sheet.view.rows) > rows
        await it.press("enter")
        assert len(sheet.view.rows) == rows
        await it.press("escape", "o", "escape")
        assert it.app.screen is it.screen
        assert opened == [(it.session.file, 8), (it.session.file, 8)]


async def test_a_folder_without_snapshots_says_how_to_make_one(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        await reviewed(it)
        for size in ((120, 40), (80, 24)):
            await it.pilot.resize_terminal(*size)
            await it.pilot.pause()
            assert "No snapshots in snapshots/." in screen_text(it.app)
            assert "t on the Bench freezes a run as a test." in screen_text(it.app)
            assert "c check  esc back" in screen_text(it.app)
            assert "open file" not in screen_text(it.app), "there is none to open"
        await it.press("a")
        assert "No snapshots yet." in screen_text(it.app)
        await it.press("d", "o", "n", "x", "escape")
        assert it.app.screen is it.screen


async def test_a_snapshot_is_not_replaced_without_a_yes(tmp_path: Path) -> None:
    async with greeted(tmp_path) as it:
        file = await frozen(it)
        file.write_text(file.read_text().replace("hello", "kept as it is"))
        before = file.read_text()
        for answer in ("k", "r"):
            await asked_to_freeze(it, "greets")
            await it.until(lambda: isinstance(it.app.screen, ChoiceDialog), "nobody asked")
            assert "snapshots/greets.json exists already" in screen_text(it.app)
            assert file.read_text() == before
            await it.press(answer)
            await it.app.workers.wait_for_complete()
        assert file.read_text() != before


async def test_the_form_proposes_a_free_name_and_objects_in_words(tmp_path: Path) -> None:
    async with greeted(tmp_path) as it:
        await frozen(it, "greet")
        await it.press("t")
        await it.until(lambda: isinstance(it.app.screen, FreezeForm), "the form did not open")
        name = it.app.screen.query_one("#freeze-name", Input)
        assert name.value == "greet_2"
        name.value = "../up"
        await it.press("enter", "enter", "enter")
        await it.until(lambda: isinstance(it.app.screen, FreezeForm), "the screen did not open")
        assert isinstance(it.app.screen, FreezeForm)
        await it.pilot.pause()
        shown = screen_text(it.app)
        assert "'../up' is not a name (letters, digits, '.', '_' and '-', at most 100)" in shown
        assert "The file goes to snapshots/NAME.json" in shown
        await it.press("escape")
        assert not list((it.session.project.root / "snapshots").glob("*up*"))


async def test_a_secret_that_was_replaced_is_named(tmp_path: Path) -> None:
    secret = "zq8-Vt7-lamp-Kx42m9"

    replies = REPLIES.replace("Hello, Ada.", f"Hello, {secret}.")
    session = session_at(tmp_path, CASCADE, replies, "greet")
    (tmp_path / "notes.txt").write_text(NOTES)
    async with bench(tmp_path, session=session, given={"name": "Ada"}) as it:
        await it.press("r")
        await it.until(lambda: it.presenter.state.run.finished and not it.session.running, "the run did not end")
        session.project = dataclasses.replace(session.project, env={**session.project.env, "HOUSE_TOKEN": secret})
        await asked_to_freeze(it, "kept")
        await it.until(lambda: "HOUSE_TOKEN" in it.text(), "nobody named the secret")
        file = it.session.project.root / "snapshots" / "kept.json"
        assert "Secrets were replaced: HOUSE_TOKEN (" in " ".join(it.pane("dock").split())
        assert secret not in file.read_text()


async def test_only_a_run_that_ended_is_frozen(tmp_path: Path) -> None:
    session = session_at(tmp_path, CASCADE, REPLIES, "greet")
    (tmp_path / "notes.txt").write_text(NOTES)
    async with bench(tmp_path, session=session, given={"name": "Ada"}) as it:
        await it.press("t")
        assert "No run to freeze yet" in screen_text(it.app)
        await it.press("n")
        await it.until(lambda: it.session.stepper.held is not None)
        await it.press("t")
        assert "A run can be frozen once it has ended" in screen_text(it.app)
        await it.press("x")
        await it.until(lambda: not it.session.running)
        await it.press("t")
        await it.until(lambda: "this run was stopped: it cannot be frozen" in screen_text(it.app))
        assert it.app.screen is it.screen, "no form is filled in for a run that cannot be frozen"
        assert not (it.session.project.root / "snapshots").exists()


async def test_a_check_that_goes_on_is_seen_and_can_be_stopped(tmp_path: Path) -> None:
    async with greeted(tmp_path) as it:
        file = await frozen(it)
        for number in range(30):
            file.with_name(f"copy_{number:02}.json").write_text(file.read_text())
        await it.app.run_command("app.snapshots")  # The pilot would wait until nothing goes on any more.
        await soon(lambda: isinstance(it.app.screen, SnapshotsScreen), "the screen", pause=0)
        screen = it.app.screen
        assert isinstance(screen, SnapshotsScreen)
        await soon(lambda: screen.board.items and screen.board.items[0].verdict, "the first verdict", pause=0)
        assert " of 31: copy_" in "".join(text for text, _ in screen.board.header(120))
        await it.app.run_command("snapshots.stop")
        await it.until(lambda: not screen.board.busy, "the check went on")
        assert "stopped; c checks again" in screen_text(it.app)
        assert screen.board.items[-1].status == "waiting"
        assert screen.board.items[0].status == "passed"
        screen.action_check()
        screen.action_check()
        await it.until(lambda: not screen.board.busy and screen.board.items[-1].verdict, "nothing was checked again")
        assert (screen.board.stopped, {item.status for item in screen.board.items}) == (False, {"passed"})
        await it.press("escape")


# -- R ---------------------------------------------------------------------------------------------------------------


async def run_again(it: Bench) -> ChangedSheet:
    """Press R, and wait until the first changed request is shown."""
    await it.until(lambda: it.presenter.state.changed, "the save was not noticed")
    await it.press("R")
    await it.until(lambda: isinstance(it.app.screen, ChangedSheet), "the change was not shown")
    assert isinstance(it.app.screen, ChangedSheet)
    return it.app.screen


async def test_a_rerun_shows_the_first_changed_request_beside_the_recorded_one(tmp_path: Path) -> None:
    async with greeted(tmp_path) as it:
        edit(it, "mask_observations_after: 1", "mask_observations_after: 2")
        await run_again(it)
        await check_sizes(it, "changed", picture=True)


async def test_going_live_from_the_changed_request_makes_the_calls(tmp_path: Path) -> None:
    async with greeted(tmp_path) as it:
        edit(it, "Greet them.", "Greet them warmly.")
        await run_again(it)
        assert it.session.stepper.held is not None
        await it.press("escape")
        assert it.app.screen is it.screen
        await it.press("R")
        await it.until(lambda: isinstance(it.app.screen, ChangedSheet), "R did not show it again")
        await it.press("c")
        await it.until(lambda: it.presenter.state.run.finished and not it.session.running, "it did not go on")
        assert it.presenter.state.run.status == "success"
        answered = [(call.place.phase, call.recorded) for call in it.presenter.state.run.calls]
        assert answered == [("look", True), ("look", True), ("look", True), ("answer", False)]
        assert it.app.screen is it.screen


async def test_stopping_at_the_changed_request_calls_nothing(tmp_path: Path) -> None:
    async with greeted(tmp_path) as it:
        edit(it, "Greet them.", "Greet them warmly.")
        await run_again(it)
        await it.press("x")
        await it.until(lambda: not it.session.running, "it did not stop")
        await it.until(lambda: it.presenter.state.run.status == "stopped")
        assert all(call.recorded for call in it.presenter.state.run.calls if call.answer is not None)


async def test_a_damaged_run_is_neither_forked_nor_run_again_nor_frozen(tmp_path: Path) -> None:
    async with greeted(tmp_path) as it:
        store = it.session.project.store
        (path,) = store.folder(it.presenter.state.run.run_id).glob("*.jsonl")
        lines = path.read_bytes().splitlines(keepends=True)
        lines[5] = lines[5].replace(b'"kind"', b'"kimd"', 1)
        path.write_bytes(b"".join(lines))
        for key in ("F", "R"):
            await it.press(key)
            await it.until(lambda: "cannot be started from" in screen_text(it.app), f"{key} did not say why")
            await it.until(lambda: not it.session.running)
            it.app.notices.clear()
            await it.pilot.pause()
        await asked_to_freeze(it, "broken")
        await it.until(lambda: "this run cannot be frozen: " in screen_text(it.app), "nobody said why")
        assert path.name in screen_text(it.app)
        assert not (it.session.project.root / "snapshots").exists()
