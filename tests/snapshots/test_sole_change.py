"""A snapshot that fails after a single edit names the line that was edited, not the one that carries the text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.snapshots.conftest import edit
from tests.support.command import PLACEHOLDERS, run_cli
from tests.support.workspaces import alone
from workbench.workspace.project import Project
from workbench.workspace.testing import Snapshots

CASCADE = """\
cascade_id: title
phases:
  - name: look
    instructions: Look around.
    tackle: [list_files, set_state]
    use_native_tools: true
    rules: {max_turns: 3}
    handoffs:
      - {target: choose, description: it is good}
      - {target: stop, description: it is not}
  - name: choose
    instructions: Propose a title.
    soundings:
      factor: 3
      mutation_mode: augment
      mutations: [Be brief., Be warm.]
      evaluator_instructions: Take the shorter one.
  - name: stop
    instructions: Say why.
"""
REPLIES = """\
replies:
  look:
    - calls: [{tool: set_state, arguments: {key: a, value: b}}]
    - calls: [{tool: route_to, arguments: {target: choose}}]
"""


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("sole") / "work"
    with pytest.MonkeyPatch.context() as patch:
        alone(patch, folder.parent, folder)
        (folder / "title.yaml").write_text(CASCADE)
        (folder / "title.replies.yaml").write_text(REPLIES)
        assert run_cli("run", "title.yaml", "--session", "one", "-q", *PLACEHOLDERS).code == 0
        ended = run_cli("test", "freeze", "one", "--name", "title")
        assert ended.code == 0, ended.err
        yield folder


def first(folder: Path, *edits: tuple[str, str]) -> str:
    (folder / "title.yaml").write_text(CASCADE)
    for old, new in edits:
        edit(folder / "title.yaml", old, new)
    with Snapshots(Project.at(folder)) as snapshots:
        return snapshots.replay(folder / "snapshots" / "title.json").first


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("factor: 3", "factor: 2", "(phases[1].soundings.factor, title.yaml:14)"),
        ("Be brief.", "Be short.", "(phases[1].soundings.mutations[0], title.yaml:16)"),
        ("the shorter", "the longer", "(phases[1].soundings.evaluator_instructions, title.yaml:17)"),
        ("it is good", "it is fine", "(phases[0].handoffs[0].description, title.yaml:9)"),
        ("max_turns: 3", "max_turns: 1", "(phases[0].rules.max_turns, title.yaml:7)"),
        ("    use_native_tools: true\n", "", "(phases[0].use_native_tools, title.yaml:6 as frozen)"),
        ("Look around.", "Look.", "(phases[0].instructions, title.yaml:4)"),
        ("list_files, ", "", "(phases[0].tackle, title.yaml:5)"),
    ],
)
def test_the_first_difference_after_one_edit_names_its_line(frozen: Path, old: str, new: str, where: str) -> None:
    assert first(frozen, (old, new)).endswith(where)


def test_after_two_edits_the_rule_is_named_that_the_text_comes_from(frozen: Path) -> None:
    said = first(frozen, ("Be brief.", "Be short."), ("Say why.", "Say how."))
    assert said.endswith("(phases[1].instructions, title.yaml:12)")
