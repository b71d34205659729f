"""A run that cannot be saved says so once, and says when it is saved after all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.examples import RUN, FailingDisk, plain_run
from workbench.engine.ports import Notice
from workbench.store.journal import Journal
from workbench.store.reading import read_run
from workbench.workspace.saving import Saving


@pytest.mark.fault("F35")
def test_what_waits_is_told_once_and_once_more_when_it_is_saved(tmp_path: Path) -> None:
    told: list[Notice] = []
    disk = FailingDisk()
    (tmp_path / RUN).mkdir()
    journal = Journal(tmp_path / RUN, disk=disk)
    saving = Saving(journal, told.append, lambda text: None, tmp_path / "elsewhere")
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
def test_what_never_fits_lies_elsewhere_and_counts_once_it_is_copied(tmp_path: Path) -> None:
    notes: list[str] = []
    disk = FailingDisk()
    run = tmp_path / RUN
    run.mkdir()
    with Journal(run, disk=disk) as journal, Saving(journal, lambda notice: None, notes.append, tmp_path / "x"):
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
