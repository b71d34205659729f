"""Two stored runs side by side, one of them without a cascade that loads."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.store.examples import plain_run, save
from workbench.engine.definition import DefinitionError
from workbench.store.store import Store
from workbench.workspace.comparing import ComparedRun, compare_sources, pricing_of, side_choices
from workbench.workspace.project import Project


def stored(folder: Path, run_id: str, session: str, text: str) -> None:
    first, *rest = plain_run(run_id, session=session)
    save(Store(folder / ".workbench"), (replace(first, data={**first.data, "cascade_text": text}), *rest))


@pytest.mark.parametrize(("kind", "first"), [("rerun", "before"), ("fork", "before"), ("sub", "newest")])
def test_the_run_that_a_run_was_made_from_is_the_first_one_to_compare_it_with(
    tmp_path: Path, kind: str, first: str
) -> None:
    """A run that it ran inside of is no other version of it."""
    store = Store(tmp_path / ".workbench")
    text = "cascade_id: triage\nphases:\n  - {name: sort, instructions: Sort., handoffs: []}\n"
    for at, (session, parent) in enumerate((("before", ""), ("newest", ""), ("after", "before"))):
        begun, *rest = plain_run(f"2026010{at + 1}T000000-aaaaaaa{at}", session=session)
        made = {"parent": {"run_id": "20260101T000000-aaaaaaa0", "kind": kind}} if parent else {}
        save(store, (replace(begun, data={**begun.data, "cascade_text": text, **made}), *rest))
    project = Project.at(tmp_path, env={"WORKBENCH_STATE_DIR": str(tmp_path / "state")})
    choices = side_choices(project, project.store.find("after"))
    runs = [one for one in choices if one.kind == "run"]
    assert runs[0].name == first
    assert [one.is_origin for one in runs] == [kind != "sub", False]


def test_a_run_that_a_recording_answered_is_listed_with_what_it_took_over(tmp_path: Path) -> None:
    store = Store(tmp_path / ".workbench")
    for at, recorded in enumerate((0, 1, 2)):
        events = plain_run(f"2026010{at + 1}T000000-aaaaaaa{at}", session=f"with-{recorded}")
        answers = [event for event in events if event.kind == "call_finished"][:recorded]
        made = [replace(e, data={**e.data, "recorded": True}) if e in answers else e for e in events]
        save(store, made)
    project = Project.at(tmp_path, env={"WORKBENCH_STATE_DIR": str(tmp_path / "state")})
    listed = {one.name: one.words for one in side_choices(project, project.store.find("with-0"))}
    assert listed["with-1"].endswith("success, 1 call, 1 answer recorded")
    assert listed["with-2"].endswith("success, 2 answers recorded")


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
