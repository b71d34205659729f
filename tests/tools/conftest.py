"""A workspace with files, and the sandbox levels that this machine has."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from workbench.tools.paths import Workspace
from workbench.tools.sandbox import Level, Sandbox


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace folder with a few files, a secret and a store."""
    folder = tmp_path / "work"
    (folder / "data").mkdir(parents=True)
    (folder / "notes.txt").write_text("one\ntwo\nthree\n")
    (folder / "data" / "orders.csv").write_text("id,amount\n1,10\n2,32\n")
    (folder / ".env").write_text("API_KEY=sk-secret\n")
    (folder / ".workbench").mkdir()
    (folder / ".workbench" / "owner.lock").write_text("held")
    return folder


@pytest.fixture
def workspace(root: Path) -> Workspace:
    return Workspace.of(root)


def sandbox_at(level: Level, root: Path) -> Sandbox:
    """A sandbox at one level; skips where this machine has none, and fails there in CI."""
    sandbox = Sandbox(root, level=level)
    probe = asyncio.run(sandbox.probe())
    if not probe.usable:
        if os.environ.get("CI"):
            pytest.fail(f"CI must be able to run this: {probe}")
        pytest.skip(str(probe))
    return sandbox


@pytest.fixture
def bwrap(root: Path) -> Sandbox:
    return sandbox_at("bwrap", root)


@pytest.fixture
def landlock(root: Path) -> Sandbox:
    return sandbox_at("landlock", root)
