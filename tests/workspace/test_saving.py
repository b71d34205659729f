"""A run that cannot be saved says so once, and says when it is saved after all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.examples import RUN, FailingDisk, plain_run, read_run
from tests.support.waiting import PATIENCE, until
from workbench.engine.contracts import Notice
from workbench.engine.debugger.stepper import Mode
from workbench.engine.journal.state import RunState
from workbench.store.journal.journal import Journal
from workbench.workspace.project import Project
from workbench.workspace.saving import JournalWatch
from workbench.workspace.session import Session


@pytest.mark.fault("F35")
def test_what_waits_is_told_once_and_once_more_when_it_is_saved(tmp_path: Path) -> None:
    told: list[Notice] = []
    disk = FailingDisk()
    (tmp_path / RUN).mkdir()
    journal = Journal(tmp_path / RUN, disk=disk)
    saving = JournalWatch(journal, told.append, lambda text: None, tmp_path / "elsewhere")
    for event in plain_run():
        disk.always = "full" if event.seq in (3, 4, 5) else ""
        journal.append(event)
        saving(event)
    with saving:
        pass
    journal.close()
    assert [notice.kind for notice in told] == ["unsaved", "saved"]
    assert "No space left on device" in told[0].data["message"]
    assert read_run(tmp_path / RUN)[0] == plain_run()
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.fault("F8")
def test_a_disk_that_cannot_sync_is_told_once_while_the_run_goes_on(tmp_path: Path) -> None:
    told: list[Notice] = []
    notes: list[str] = []
    disk = FailingDisk()
    disk.syncs = "error"
    (tmp_path / RUN).mkdir()
    journal = Journal(tmp_path / RUN, disk=disk)
    watch = JournalWatch(journal, told.append, notes.append, tmp_path / "elsewhere")
    for event in plain_run():
        journal.append(event)
        journal.sync()
        watch(event)
    journal.close()
    assert [notice.kind for notice in told] == ["told"]
    assert "may not outlive a power cut" in told[0].data["message"]
    assert notes == [told[0].data["message"]]


@pytest.mark.fault("F8")
def test_what_never_fits_lies_elsewhere_and_counts_once_it_is_copied(tmp_path: Path) -> None:
    notes: list[str] = []
    disk = FailingDisk()
    run = tmp_path / RUN
    run.mkdir()
    with Journal(run, disk=disk) as journal, JournalWatch(journal, lambda notice: None, notes.append, tmp_path / "x"):
        for event in plain_run():
            disk.always = "full" if event.seq > 3 else ""
            journal.append(event)
    (rescued,) = (tmp_path / "x" / RUN).glob("*.jsonl")
    assert str(rescued) in notes[0]
    assert len(read_run(run)[0]) == 3
    rescued.rename(run / rescued.name)
    events, health = read_run(run)
    assert events == plain_run()
    assert health.whole


@pytest.mark.fault("F8")
def test_a_session_whose_store_cannot_be_made_runs_in_memory_and_says_where_the_run_lies(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("cascade_id: c\nphases: [{name: p, instructions: Say it.}]\n")
    blocked = tmp_path / "blocked"
    blocked.write_text("in the way")
    env = {name: str(tmp_path / name) for name in ("WORKBENCH_STATE_DIR", "WORKBENCH_CONFIG_DIR")}
    session = Session(
        Project.at(tmp_path, env={**env, "WORKBENCH_DATA_DIR": str(blocked / "store"), "WORKBENCH_UNSCRIPTED": "ok"}),
        tmp_path / "c.yaml",
        model="offline",
    )
    session.start({}, Mode.CONTINUE)
    until(lambda: not session.running, "the end of the run")
    assert RunState.of(session.events).status == "success"
    told = [notice.data["message"] for notice in session.notices if notice.kind == "unsaved"]
    assert "the run is not saved: Not a directory" in told[0]
    assert f"they are in {tmp_path / 'WORKBENCH_STATE_DIR' / 'unsaved'}" in told[-1]
    assert session.project.store.runs() == []
    session.close()


@pytest.mark.fault("F8")
def test_the_app_starts_where_its_log_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "blocked").write_text("in the way")
    noise = "import os; os.write(1, b'noise'); os.write(2, b'noise'); print('drawn', file=__import__('sys').__stderr__)"
    code = "from pathlib import Path\nfrom workbench.terminal import own_screen\n"
    code += f"with own_screen(Path({str(tmp_path / 'blocked' / 'x.log')!r})):\n    {noise}\n"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert (ended.stdout, ended.stderr) == ("drawn\n", "")
