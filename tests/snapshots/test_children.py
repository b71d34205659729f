"""Snapshots of runs that start cascades, sound several candidates and ask a person."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.snapshots.conftest import edit
from tests.support.command import PLACEHOLDERS, run_cli
from tests.support.workspaces import alone
from workbench.workspace.project import Project
from workbench.workspace.testing import Snapshots

PARENT = """\
cascade_id: parent
phases:
  - name: prepare
    instructions: "Prepare {{ input.what }}."
    sub_cascades: [{ref: child.yaml, context_out: true}]
  - name: choose
    instructions: Propose a title.
    context: {from: [prepare]}
    soundings: {factor: 2, evaluator_instructions: Take the shorter one.}
  - name: ask
    instructions: Ask whether it is good.
    tackle: [ask_human]
    rules: {max_turns: 2}
"""
CHILD = """\
cascade_id: child
phases:
  - name: count
    instructions: "Count {{ input.what }}."
"""
REPLIES = """\
replies:
  ask:
    - calls: [{tool: ask_human, arguments: {question: Good?}}]
    - text: They like it.
"""


@pytest.fixture
def frozen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    alone(monkeypatch, tmp_path, folder)
    (folder / "parent.yaml").write_text(PARENT)
    (folder / "child.yaml").write_text(CHILD)
    (folder / "parent.replies.yaml").write_text(REPLIES)
    (folder / "answers.json").write_text('{"ask": "yes"}')
    given = ("--input", '{"what": "pears"}', "--answers", "answers.json", "--session", "one", "-q", *PLACEHOLDERS)
    ended = run_cli("run", "parent.yaml", *given)
    assert ended.code == 0, ended.err
    ended = run_cli("test", "freeze", "one", "--name", "family")
    assert ended.code == 0, ended.err
    return folder / "snapshots" / "family.json"


def test_children_candidates_and_people_replay_from_the_snapshot(frozen: Path) -> None:
    runs = len(run_cli("runs", "--json").json)
    (verdict,) = run_cli("test", "run", "--json").json
    assert verdict["passed"], verdict
    assert len(run_cli("runs", "--json").json) == runs, "a replay stores nothing"
    expected = json.loads(frozen.read_text("utf-8"))["expectations"]
    child = expected["children"]["sub_0"]
    assert child["phases_executed"] == ["count"]
    assert verdict["calls_replayed"] == len(expected["requests"]) + len(child["requests"])
    assert {row["at"].partition("/")[0] for row in expected["requests"]} >= {"prepare", "choose", "ask"}


def test_a_change_of_a_child_is_told_with_the_childs_file_and_line(frozen: Path) -> None:
    edit(Path("child.yaml"), "Count", "Weigh")
    ended = run_cli("test", "replay", "family")
    assert ended.code == 1
    assert "in sub_0: call count:1: message" in ended.out
    assert "(the task) was reworded" in ended.out
    assert "(child.yaml:4)" in ended.out


def test_a_changed_evaluator_and_one_candidate_more_are_found(frozen: Path) -> None:
    edit(Path("parent.yaml"), "Take the shorter one.", "Take the longer one.")
    ended = run_cli("test", "replay", "family")
    assert ended.code == 1
    assert "call choose evaluation: message" in ended.out
    edit(Path("parent.yaml"), "factor: 2", "factor: 3")
    assert "was not made before" in run_cli("test", "replay", "family").out


def test_looking_again_sees_an_edited_template_and_another_cascade(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "work"
    alone(monkeypatch, tmp_path, folder)
    (folder / "tackle").mkdir(parents=True)
    called = 'tackle: [child]\n    instructions: "@task.md"'
    (folder / "parent.yaml").write_text(f"cascade_id: parent\nphases:\n  - name: ask\n    {called}\n")
    (folder / "task.md").write_text("Count the pears.")
    (folder / "tackle" / "child.yaml").write_text(CHILD + "inputs_schema: {what: a thing}\ndescription: Counts.\n")
    assert run_cli("run", "parent.yaml", "--session", "p", "-q", *PLACEHOLDERS).code == 0
    assert run_cli("test", "freeze", "p", "--name", "p").code == 0
    with Snapshots(Project.at(folder)) as snapshots:
        file = snapshots.path("p")
        assert snapshots.replay(file).passed
        edit(folder / "task.md", "pears", "plums")
        snapshots.look_again()
        assert "(the task) was reworded" in snapshots.replay(file).first
        edit(folder / "task.md", "plums", "pears")
        edit(folder / "tackle" / "child.yaml", "Counts.", "Counts all.")
        snapshots.look_again()
        assert "(the tool text)" in snapshots.replay(file).first


WALKS = """\
cascade_id: walks
soundings: {factor: 2, reforge: {steps: 1, factor_per_step: 1, honing_prompt: Better.}}
phases:
  - name: draft
    instructions: Draft.
  - name: finish
    instructions: Finish.
"""


def test_the_walk_that_won_gives_a_snapshot_its_phases_and_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "work"
    alone(monkeypatch, tmp_path, folder)
    (folder / "walks.yaml").write_text(WALKS)
    assert run_cli("run", "walks.yaml", "--session", "one", "-q", *PLACEHOLDERS).code == 0
    assert run_cli("test", "freeze", "one", "--name", "walks").code == 0
    file = folder / "snapshots" / "walks.json"
    body = json.loads(file.read_text("utf-8"))
    assert body["expectations"]["phases_executed"] == ["draft", "finish"]
    assert list(body["expectations"]["outputs"]) == ["draft", "finish"]
    assert run_cli("test", "run", "--json").json[0]["passed"]
    body["expectations"] |= {"phases_executed": [], "outputs": {}}
    file.write_text(json.dumps(body), "utf-8")
    (verdict,) = run_cli("test", "run", "--json").json
    assert verdict["passed"], "as 0.1.0 froze it"
    body["expectations"] |= {"phases_executed": ["finish", "draft"]}
    file.write_text(json.dumps(body), "utf-8")
    (verdict,) = run_cli("test", "run", "--json").json
    assert not verdict["passed"]
