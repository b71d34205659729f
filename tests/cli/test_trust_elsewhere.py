"""Cascades outside the workspace pass the same gate, whoever starts them: what they name, and what their folder brings,
is refused until a person has allowed it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_trust_gate import ACT, DECLARED, EVIL, HOOK, acted
from tests.support.command import Cli

OUTER = "cascade_id: outer\nphases:\n  - {name: n, instructions: x, %s}\n"
WAYS = {
    "sub": 'sub_cascades: [{ref: "below/act.yaml"}]',
    "async": 'async_cascades: [{ref: "below/act.yaml", trigger: on_start}]',
    "spawn": "tackle: [spawn_cascade], rules: {max_turns: 2}",
    "tool": "tackle: [act], rules: {max_turns: 2}",
    "ward": "wards: {post: [{validator: judge, mode: advisory}]}",
}
REPLIES = """\
replies:
  first:
    - calls: [{tool: evil, arguments: {}}]
    - calls: [{tool: declared, arguments: {}}]
    - text: done
  n:
    - %s
    - text: done
"""
CALLS = {
    "spawn": 'calls: [{tool: spawn_cascade, arguments: {cascade_ref: "below/act.yaml", input_data: {word: x}}}]',
    "tool": "calls: [{tool: act, arguments: {word: x}}]",
}
JUDGE = ACT.replace("cascade_id: act", "cascade_id: judge")


@pytest.fixture
def marks(workspace: Path, tmp_path: Path) -> Path:
    """Where whatever acts leaves a mark; beside the workspace lies a folder ``away``, whose files all can."""
    marks = tmp_path / "marks"
    marks.mkdir()
    texts = {f"{way}.yaml": OUTER % how for way, how in WAYS.items()}
    texts |= {f"{way}.replies.yaml": REPLIES % CALLS.get(way, "text: said") for way in WAYS}
    texts |= {"below/act.yaml": ACT, "cascades/act.yaml": ACT, "cascades/judge.yaml": JUDGE}
    texts |= {"tools/evil.py": EVIL, "tools/listen.py": HOOK, "cascades/declared.tool.json": json.dumps(DECLARED)}
    for name, text in texts.items():
        file = tmp_path / "away" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("MARK", str(marks)))
    return marks


def wipe(marks: Path) -> None:
    for mark in marks.iterdir():
        mark.unlink() if mark.is_file() else mark.rmdir()


def test_what_another_folder_brings_acts_only_once_a_person_has_allowed_it(cli: Cli, marks: Path) -> None:
    for way in WAYS:
        cli("run", f"../away/{way}.yaml", "--session", f"before-{way}")
        assert acted(marks) == set(), way
        assert f"before-{way}_{way}_0" in cli("runs", "--all", "--json").out, (
            "nothing was started, so nothing was tried"
        )
    assert cli("trust", "../away/sub.yaml", "--yes").code == 0
    cli("run", "../away/sub.yaml")
    assert acted(marks) >= {"called", "declared", "function", "hook"}


def test_a_function_allowed_to_the_workspace_is_not_allowed_to_other_folders(
    cli: Cli, marks: Path, workspace: Path
) -> None:
    text = f'cascade_id: o\nphases:\n  - {{name: p, tool: "python:os.mkdir", inputs: {{path: "{marks}/function"}}}}\n'
    far = workspace.parent / "far"
    far.mkdir()
    for folder in (workspace, far):
        (folder / "own.yaml").write_text(text)
    (workspace / "link").symlink_to(far)
    assert cli("trust", "own.yaml", "--yes").code == 0
    for file in ("../far/own.yaml", far / "own.yaml", "link/own.yaml"):
        assert cli("run", file).code == 3
        assert acted(marks) == set()
    asked = cli("trust", "../far/own.yaml").out
    assert f"not allowed  python: python:os.mkdir, in cascades of {far}" in asked
    assert cli("trust", "../far/own.yaml", "--yes").code == 0
    assert cli("run", "../far/own.yaml").code == 0
    wipe(marks)
    assert cli("run", "own.yaml").code == 0


def test_a_folder_of_tools_that_the_settings_name_elsewhere_is_asked_for(
    cli: Cli, marks: Path, workspace: Path
) -> None:
    (workspace / "workbench.yaml").write_text("tackle_dirs: [../away/cascades]\n")
    (workspace / "inner.yaml").write_text(OUTER % "tackle: [declared, act], rules: {max_turns: 3}")
    (workspace / "inner.replies.yaml").write_text(
        REPLIES % f"calls: [{{tool: declared, arguments: {{}}}}]\n    - {CALLS['tool']}"
    )
    cli("run", "inner.yaml")
    assert acted(marks) == set()
    assert cli("trust", "inner.yaml", "--yes").code == 0
    cli("run", "inner.yaml")
    assert acted(marks) == {"declared", "function"}


@pytest.mark.parametrize("ref", ["../away/below/act.yaml", "link/below/act.yaml", "AWAY/below/act.yaml"])
def test_a_cascade_of_the_workspace_starts_no_file_outside_it(cli: Cli, marks: Path, workspace: Path, ref: str) -> None:
    named = ref.replace("AWAY", str(workspace.parent / "away"))
    (workspace / "link").symlink_to(workspace.parent / "away")
    for way in ("sub", "async", "spawn"):
        (workspace / f"{way}.yaml").write_text(OUTER % WAYS[way].replace("below/act.yaml", named))
        (workspace / f"{way}.replies.yaml").write_text(
            REPLIES % CALLS.get(way, "text: said").replace("below/act.yaml", named)
        )
        cli("run", f"{way}.yaml")
    assert acted(marks) == set()
    started = [run["cascade_file"] for run in cli("runs", "--all", "--json").json]
    assert started == ["spawn.yaml"], "a file that is named must be there; only the model names it too late for a check"
