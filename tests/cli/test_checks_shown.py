"""Each check of a phase stands with the attempt that it judged: in the tree, in ``show`` and ``tree``, on the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.command import Cli, run_cli
from workbench.views.tree import PhaseOutline, TreeRows, TreeView
from workbench.workspace.project import Project

SUMS = """\
cascade_id: sums
phases:
  - name: sentence
    instructions: Write the sum as JSON.
    output_schema: {type: object, required: [sum]}
    rules: {max_attempts: 3}
    wards:
      pre: [{validator: {python: "result = {'valid': True, 'reason': ''}"}, mode: blocking}]
  - name: once
    instructions: Write it again.
    output_schema: {type: object}
"""
REPLIES = """\
replies:
  sentence: [{text: none}, {attempt: 2, text: '{"total": 1}'}, {attempt: 3, text: '{"sum": 1}'}]
  once: [{text: '{}'}]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checks")
    (folder / "sums.yaml").write_text(SUMS)
    (folder / "sums.replies.yaml").write_text(REPLIES)
    with pytest.MonkeyPatch.context() as patch:
        _at(folder, patch)
        assert run_cli("trust", "--yes").code == 0
        ended = run_cli("run", "sums.yaml", "--session", "sums")
        assert ended.code == 0, ended.err
    return folder


def _at(folder: Path, patch: pytest.MonkeyPatch) -> None:
    patch.chdir(folder)
    for name in ("STATE_DIR", "CONFIG_DIR"):
        patch.setenv(f"WORKBENCH_{name}", str(folder / name.lower()))


@pytest.fixture
def cli(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    _at(folder, monkeypatch)
    return run_cli


WANTED = [
    "inline python passed",
    "turn 1",
    "output_schema failed",
    "turn 1 attempt 2",
    "output_schema failed",
    "turn 1 attempt 3",
    "output_schema passed",
]


@pytest.mark.parametrize("command", ["show", "tree"])
def test_show_and_tree_list_each_check_below_its_attempt(cli: Cli, command: str) -> None:
    lines = cli(command, "sums", "--plain").out.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("sentence "))
    told = [re.sub(r"python \w+", "python", line.strip()) for line in lines[start + 1 : start + 8]]
    names = [re.split(r"  +", line) for line in told]
    assert [name if name.startswith("turn") else f"{name} {status}" for name, status, *_ in names] == WANTED
    assert "'sum' is a required property" in told[4]
    assert lines[start + 8].startswith("once ")
    assert not any("output_schema" in line for line in lines[start + 9 :]), "where none failed, none takes a row"


def test_the_tree_of_the_app_lists_each_check_below_its_attempt(cli: Cli, folder: Path) -> None:
    store = Project.at(folder).store
    state = store.state(store.run_ids()[0])
    outline = (PhaseOutline("sentence"), PhaseOutline("once"))
    rows = TreeRows(state, TreeView(outline, unfolded=True))
    told = [re.sub(r"python \w+", "python", "".join(text for text, _ in node.left)) for node in rows.nodes]
    assert told[:8] == [
        "✓ sentence",
        "✓ inline python",
        "✓ try 1.1",
        "✗ output_schema: at $: the answer holds no JSON",
        "✓ try 2.1",
        "✗ output_schema: at $: 'sum' is a required property",
        "✓ try 3.1",
        "✓ output_schema",
    ]
    assert [node.depth for node in rows.nodes[:8]] == [0, 1, 1, 2, 1, 2, 1, 2]


def test_the_page_of_a_run_lists_each_check_below_its_attempt(cli: Cli) -> None:
    page = cli("export", "sums", "--as", "html").out
    told = re.findall(r"<h[23] id[^>]*>.*?</h[23]>|<p><span class=\"(?:bad|dim)\">.*?</span></p>", page)
    words = [re.sub(r"python \w+", "python", re.sub("<[^>]*>", "", one)).replace("&#x27;", "'") for one in told]
    assert words[:8] == [
        "sentence success",
        "inline python passed",
        "sentence · turn 1",
        "output_schema failed: at $: the answer holds no JSON",
        "sentence · turn 1 attempt 2",
        "output_schema failed: at $: 'sum' is a required property",
        "sentence · turn 1 attempt 3",
        "output_schema passed",
    ]
    listed = re.findall(r"<li><a href=\"#c\d+\">(.*?)</a>", page)
    assert listed == ["turn 1", "turn 1 attempt 2", "turn 1 attempt 3", "turn 1"]
    assert ":target {" in page, "the call that a link points at is marked"
