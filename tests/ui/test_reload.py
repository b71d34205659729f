"""Saving the file: the tree marks what changed, a broken save keeps the last good version, nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ui.bench import bench
from tests.ui.snapshot import check_sizes
from tests.ui.support import TRIAGE
from tests.ui.test_bench import CASCADE, REPLIES, step
from workbench.tui.screens.sheet import Sheet
from workbench.tui.screens.sides import SidePicker

TALLY = """\
cascade_id: tally
phases:
  - name: tally
    tool: set_state
    inputs: {key: found, value: "1"}
"""


async def test_a_valid_save_is_taken_over_and_marks_the_phases_that_changed(tmp_path: Path) -> None:
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        await step(it)
        it.session.file.write_text(CASCADE.replace("Find the first failure.", "Find every failure."))
        await it.until(lambda: "triage" in it.presenter.state.changed, "the save was not noticed")
        marked = [line for line in it.pane("tree").split("\n") if "●" in line]
        assert len(marked) == 1
        assert "triage" in marked[0]
        await it.until(
            lambda: "File reloaded: triage changed. This run keeps the version it started with." in it.text()
        )
        assert it.presenter.state.run.cascade_text == CASCADE


async def test_a_file_that_was_never_sound_has_no_good_version_to_stay(tmp_path: Path) -> None:
    async with bench(tmp_path, text="a: [b\n") as it:
        assert "The file cannot run as it is: 2 says why, e opens it." in it.pane("dock")
        assert "r runs" not in it.pane("dock")
        it.session.file.write_text("a: {b\n")
        await it.until(lambda: "1 error in the file: log_triage.yaml:" in it.text(), "no word about the broken file")
        assert "stays" not in it.text()


@pytest.mark.fault("F15")
async def test_a_broken_save_lists_its_problems_and_keeps_what_was_there(tmp_path: Path) -> None:
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        it.session.file.write_text(CASCADE.replace("handoffs: [triage]", "handoffs: [triage"))
        await it.until(lambda: "the last good version stays" in it.text(), "no word about the broken file")
        assert it.screen.tab == "problems"
        assert "report" in it.pane("tree")
        said = " ".join(it.pane("context").replace("│", " ").split())
        assert "r runs the last version without errors" in said, "what r would run"
        await step(it)
        assert it.presenter.state.run.cascade_text == CASCADE
        it.session.file.write_text(CASCADE.replace("Write the report.", "Write a report."))
        await it.until(lambda: "report" in it.presenter.state.changed)
        assert "error" not in it.text().split("\n")[0]


async def test_a_new_run_after_a_save_uses_the_new_text(tmp_path: Path) -> None:
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        await step(it, "r")
        changed = CASCADE.replace("Say in one line what", "Say in two lines what")
        it.session.file.write_text(changed)
        await it.until(lambda: "intake" in it.presenter.state.changed)
        await it.pilot.click("#footer")
        assert "D shows the file's changes, then D compares" in it.pane("context")
        assert "file changed: R re-run  D changes" in it.text()
        await it.press("D")
        assert isinstance(it.app.screen, Sheet)
        assert "− " in it.text()
        assert "Say in two lines what" in it.text()
        await check_sizes(it, "changes")
        await it.press("D")
        await it.until(lambda: isinstance(it.app.screen, SidePicker), "no other comparison can be chosen")
        await it.press("escape")
        await it.press("n")
        assert "Run again?" in it.text(), "a step after the end starts nothing by itself"
        await step(it, "enter")
        assert it.presenter.state.run.cascade_text == changed
        assert not it.presenter.state.changed


async def test_a_phase_that_a_save_renames_or_removes_leaves_the_eye_on_the_row_in_its_place(tmp_path: Path) -> None:
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        it.session.file.write_text(CASCADE.replace("intake", "arrival"))
        await it.until(lambda: "arrival" in it.pane("context"), "the context is about a phase that is gone")
        assert "arrival" in it.pane("tree")
        it.session.file.write_text(
            CASCADE[: CASCADE.index("  - name: intake")] + CASCADE[CASCADE.index("  - name: triage") :]
        )
        await it.until(lambda: "triage" in it.pane("context"), "the context is about a phase that is gone")
        assert "no cascade" not in it.text()


async def test_a_file_that_becomes_sound_shows_its_first_phase(tmp_path: Path) -> None:
    async with bench(tmp_path, text="a: [b\n") as it:
        it.session.file.write_text(CASCADE)
        await it.until(lambda: "intake" in it.pane("context"), "the context still says that there is no cascade")


async def test_a_run_keeps_showing_a_phase_without_a_call_that_a_save_renames(tmp_path: Path) -> None:
    async with bench(tmp_path, text=TALLY) as it:
        await step(it, "r")
        it.session.file.write_text(TALLY.replace("name: tally", "name: sum_up"))
        await it.until(lambda: "sum_up" in it.pane("tree"), "the save was not noticed")
        assert "tally" in it.pane("context")
        assert "made no model call" in it.pane("context")


@pytest.mark.fault("F17")
async def test_a_file_that_goes_away_and_comes_back_is_told_about(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        it.session.file.unlink()
        await it.until(lambda: "no such file" in it.text(), "no word about the lost file")
        assert "triage" in it.pane("tree")
        it.session.file.write_text(TRIAGE)
        await it.until(lambda: "no such file" not in it.pane("dock"))
