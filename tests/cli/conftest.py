"""A workspace of its own for each test of the command line, and the command line itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import Cli, run_cli
from tests.support.workspaces import GREETING, filled


@pytest.fixture
def workspace(folder: Path) -> Path:
    """A folder with one cascade, as the current folder."""
    return filled(folder, GREETING)


@pytest.fixture
def cli(workspace: Path) -> Cli:
    """Runs a command in the workspace: ``cli("run", "greet.yaml")``."""
    return run_cli
