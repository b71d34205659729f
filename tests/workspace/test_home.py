"""What a folder holds: its cascades, their problems, its families of runs, and runs shown over what is left of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.store.examples import Writer, plain_run, save
from tests.support.waiting import until
from tests.workspace.test_session import folder, make
from workbench.engine.debugger.stepper import Mode
from workbench.store.catalog import ORDERS, by_order, families
from workbench.store.faults import StoreBusy
from workbench.store.store import Store
from workbench.store.summary import RunSummary
from workbench.workspace.exporting import documents_of, export_file
from workbench.workspace.home import cascade_files, checked
from workbench.workspace.project import Project
from workbench.workspace.recorded_runs import remove_run
from workbench.workspace.session import Workspace

__all__ = ["folder"]

CASCADE = "cascade_id: {id}\ndescription: Says hello.\nphases:\n  - name: a\n    instructions: Hello.\n"


def project_at(root: Path) -> Project:
    return Project.at(root, env={"WORKBENCH_STATE_DIR": str(root / "state"), "WORKBENCH_CONFIG_DIR": str(root / "c")})


# -- cascades --------------------------------------------------------------------------------------------------------


def test_the_cascades_of_a_folder_are_listed_nearest_first_also_those_that_are_broken(tmp_path: Path) -> None:
    for name in ("flows/deep.yaml", "one.yaml", "a/b/c/d/too_deep.yaml", ".hidden/x.yaml", "snapshots/x.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(CASCADE.format(id=Path(name).stem))
    (tmp_path / "broken.yaml").write_text('cascade_id: "broken"\nphases: [\n')
    (tmp_path / "one.replies.yaml").write_text("replies: {}\n")
    (tmp_path / "compose.yaml").write_text("services: {}\n")
    (tmp_path / "j.json").write_text('{"cascade_id": "j", "phases": []}')
    project = project_at(tmp_path)
    found = {one.shown: one.cascade_id for one in cascade_files(project)}
    assert list(found) == ["broken.yaml", "j.json", "one.yaml", "flows/deep.yaml"]
    assert found["broken.yaml"] == "broken"
    one, broken = (checked(project, tmp_path / name) for name in ("one.yaml", "broken.yaml"))
    assert (one.description, one.phases, one.errors, one.first) == ("Says hello.", 1, 0, "")
    assert broken.errors == 1
    assert broken.first.startswith("broken.yaml:")
    assert checked(project, tmp_path / "lost.yaml").first == "lost.yaml: error: no such file"


def test_data_of_tests_is_no_cascade_to_open(tmp_path: Path) -> None:
    shown = ("data/mine.yaml", "tests/flow.yaml", "tests/unit/flow.yaml")
    for name in (
        *shown,
        "tests/data/1.0/old.yaml",
        "tests/unit/fixtures/bad.yaml",
        "test/testdata/x.yaml",
        "tests/unit/stored/old.json",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(CASCADE.format(id=Path(name).stem))
    assert [one.shown for one in cascade_files(project_at(tmp_path))] == list(shown)
    (inside,) = cascade_files(project_at(tmp_path / "tests" / "data"))
    assert inside.shown == "1.0/old.yaml", "whoever opens that folder wants them"


# -- runs without their file -----------------------------------------------------------------------------------------


def test_a_run_is_shown_over_its_file_or_over_its_own_text_where_that_is_gone(folder: Path) -> None:
    text = json.loads((folder / "c.json").read_text())
    text["phases"][0]["tackle"] = ["read_file"]
    (folder / "c.json").write_text(json.dumps(text, indent=1))
    session = make(folder)
    session.start({}, Mode.CONTINUE)
    until(lambda: not session.running, "the run")
    session.close()
    run_id, workspace = session.run_id, session.workspace
    there = workspace.run(run_id)
    assert there.viewed is not None
    assert (there.gone, there.viewed.drifted, there.run_id) == ("", frozenset(), run_id)
    assert len(there.events) > 0
    (folder / "c.json").write_text((folder / "c.json").read_text().replace("Tell {{", "Say {{"))
    again = workspace.run(run_id)
    assert again.viewed is not None
    assert again.viewed.drifted == {"tell"}
    (folder / "c.json").unlink()
    gone = workspace.run(run_id)
    assert gone.gone == "c.json is not there any more: this is the text of the run"
    assert gone.opened.cascade is not None
    assert gone.runnable is not None


def test_an_imported_run_can_be_looked_at_and_not_run(tmp_path: Path) -> None:
    from workbench.workspace.imports import import_file

    project = project_at(tmp_path)
    chat = tmp_path / "chat.jsonl"
    chat.write_text('{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}\n')
    (imported,) = import_file(project, chat)
    session = Workspace(project).run(imported.run_id)
    assert session.gone == "this run was imported: it can be looked at and compared, not run"
    assert (session.runs, session.runnable) == (False, None)
    export_file(project, imported.run_id, "messages", tmp_path / "out.jsonl")
    assert "Hello" in (tmp_path / "out.jsonl").read_text()
    with pytest.raises(ValueError, match="there is no format 'csv': messages or otel"):
        documents_of(project, imported.run_id, "csv")


def test_a_file_whose_values_are_nested_too_deep_is_refused_and_leaves_no_run(tmp_path: Path) -> None:
    from workbench.workspace.imports import import_file
    from workbench.workspace.input_file import CannotOpen

    project, chat = project_at(tmp_path), tmp_path / "chat.json"
    said = '[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]'
    chat.write_text(f'{{"messages": {said}, "more": {"[" * 700}{"]" * 700}}}')
    with pytest.raises(CannotOpen, match="nested too deep"):
        import_file(project, chat)
    assert list(project.store.runs()) == []


# -- families --------------------------------------------------------------------------------------------------------


def run(name: str, parent: str = "", *, depth: int = 0, **more: object) -> RunSummary:
    return replace(RunSummary(name, parent_run=parent, depth=depth), **more)


def shown(runs: list[RunSummary], folding: dict[str, bool] | None = None, *, inside: bool = False) -> list[str]:
    return [f"{'.' * m.depth}{m.run.run_id}{'+' * m.hidden}" for m in families(runs, folding, inside=inside)]


def test_forks_stand_below_their_parent_and_the_family_with_the_newest_member_comes_first() -> None:
    runs = [run("fork2", "old"), run("new"), run("inner", "old", depth=1), run("fork1", "old"), run("old")]
    assert shown(runs) == ["old+", ".fork1", ".fork2", "new"]
    assert shown(runs, {"old": True}) == ["old", ".fork1", ".inner", ".fork2", "new"]
    assert shown(runs, {"old": False}) == ["old+++", "new"]
    assert shown(runs, inside=True) == ["old", ".fork1", ".inner", ".fork2", "new"]
    assert shown(runs[:4]) == ["fork2", "new", "inner", "fork1"]


def test_runs_in_another_order_have_no_families() -> None:
    runs = [run("a", calls=1), run("b", "a", calls=5), run("c", calls=3)]
    assert [member.run.run_id for member in by_order(runs, "calls")] == ["b", "c", "a"]
    assert all(len(by_order(runs, order)) == 3 for order in ORDERS)


@given(st.lists(st.tuples(st.integers(0, 7), st.booleans()), max_size=8))
def test_every_run_is_listed_once_whoever_claims_to_be_whose_parent(claims: list[tuple[int, bool]]) -> None:
    runs = [run(str(i), str(parent), depth=int(inner)) for i, (parent, inner) in enumerate(claims)]
    listed = [member.run.run_id for member in families(runs, inside=True)]
    assert sorted(listed) == sorted(run.run_id for run in runs)


# -- removing --------------------------------------------------------------------------------------------------------

PARENT, CHILD, GRANDCHILD, FORK = (f"0190a000-0000-7000-8000-00000000000{i}" for i in range(1, 5))


def test_a_run_is_deleted_with_those_inside_it_and_its_forks_stay(tmp_path: Path) -> None:
    store = Store(tmp_path)
    parents = {PARENT: None, CHILD: (PARENT, "tool", 1), GRANDCHILD: (CHILD, "sub", 2), FORK: (PARENT, "fork", 0)}
    for run_id, parent in parents.items():
        said = None if parent is None else dict(zip(("run_id", "kind", "depth"), parent, strict=True))
        first = Writer(run_id).event("run_started", session_id=run_id, cascade_id="c", parent=said)
        save(store, (first, *plain_run(run_id)[1:]))
    with store.append_to(GRANDCHILD), pytest.raises(StoreBusy):
        remove_run(store, PARENT)
    assert len(store.run_ids()) == 4
    assert remove_run(store, PARENT) == 3
    assert store.run_ids() == [FORK]
