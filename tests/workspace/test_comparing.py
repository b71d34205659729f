"""Two stored runs side by side, one of them without a cascade that loads."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.store.examples import plain_run, save
from workbench.engine.definition import DefinitionError
from workbench.store.store import Store
from workbench.workspace.comparing import ComparedRun, compare_sources, pricing_of
from workbench.workspace.project import Project


def stored(folder: Path, run_id: str, session: str, text: str) -> None:
    first, *rest = plain_run(run_id, session=session)
    save(Store(folder / ".workbench"), (replace(first, data={**first.data, "cascade_text": text}), *rest))


def test_a_run_whose_cascade_cannot_be_loaded_is_compared_as_stored_and_a_notice_says_why(tmp_path: Path) -> None:
    good = "cascade_id: triage\nphases:\n  - {name: sort, instructions: Sort., handoffs: []}\n"
    stored(tmp_path, "20260101T000000-aaaaaaaa", "good", good)
    stored(tmp_path, "20260101T000001-bbbbbbbb", "bad", "cascade_id: triage\nphases: 7\n")
    project = Project.at(tmp_path, env={"WORKBENCH_STATE_DIR": str(tmp_path / "state")})
    prices = pricing_of(project.environment.prices, None).prices
    both = compare_sources(project, ComparedRun("good"), ComparedRun("bad"), prices)
    (note,) = both.notes
    assert note.startswith("bad: its cascade cannot be loaded, so the stored predictions are shown: ")
    assert "triage.yaml:2:9" in note
    assert compare_sources(project, ComparedRun("good"), ComparedRun("good"), prices).notes == ()
    with pytest.raises(DefinitionError):
        compare_sources(project, ComparedRun("good"), ComparedRun("bad", "selective+mask(after=1)"), prices)
