"""A workspace with one cascade and a run of it, frozen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command import run_cli
from tests.support.workspaces import GREETING, filled
from workbench.workspace.project import Project
from workbench.workspace.testing import Snapshots


@pytest.fixture
def greeted(folder: Path) -> Path:
    """The current folder: a workspace where ``greet.yaml`` ran as session ``one``."""
    filled(folder, GREETING)
    ended = run_cli("run", "greet.yaml", "--session", "one", "-q")
    assert ended.code == 0, ended.err
    return folder


@pytest.fixture
def frozen(greeted: Path) -> Path:
    """The snapshot of that run."""
    ended = run_cli("test", "freeze", "one", "--name", "greets", "--description", "says hello")
    assert ended.code == 0, ended.err
    return greeted / "snapshots" / "greets.json"


@pytest.fixture
def snapshots(greeted: Path) -> Iterator[Snapshots]:
    with Snapshots(Project.at(greeted)) as opened:
        yield opened


def edit(file: Path, old: str, new: str) -> None:
    """Change a file; what is changed must be there."""
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new), "utf-8")
