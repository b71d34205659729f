"""The page on tests shows what the command prints."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.snapshots.conftest import edit
from tests.support.command import run_cli
from tests.support.workspaces import alone
from workbench.workspace.home import copy_examples

ROOT = Path(__file__).parents[2]


def test_the_difference_of_the_guide_is_the_one_that_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone(monkeypatch, tmp_path, tmp_path / "work")
    copy = copy_examples(Path("cascades"))
    shutil.copytree(ROOT / "snapshots", "snapshots")
    edit(copy / "debug_agent.yaml", "mask_observations_after: 3", "mask_observations_after: 2")
    page = (ROOT / "docs" / "guide" / "tests-from-runs.md").read_text("utf-8")
    (shown,) = re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert run_cli("test", "run", "-k", "debug_agent").out == shown
