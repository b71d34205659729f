"""The real command line, as processes, in a folder of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from subprocess import DEVNULL, PIPE

import pytest

from tests.support.command import WORKBENCH, Ended, run_cli

DEADLINE = 120.0
"""Seconds a command may take on a busy machine."""

Workbench = Callable[..., Ended]


@pytest.fixture
def workbench(folder: Path) -> Workbench:
    """Runs a command in the workspace: ``workbench("run", "a.yaml", OPENAI_API_KEY="...")``."""

    def run(*arguments: str, **env: str) -> Ended:
        done = subprocess.run(
            [*WORKBENCH, *arguments],
            cwd=folder,
            env={**os.environ, **env},
            stdin=DEVNULL,
            capture_output=True,
            timeout=DEADLINE,
        )
        return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Workbench:
    """The same in this process, where litellm is imported once for all tests: two seconds less for a run."""

    def run(*arguments: str, **env: str) -> Ended:
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        return run_cli(*arguments)

    return run


def started(folder: Path, *arguments: str, env: Mapping[str, str] = {}) -> subprocess.Popen[bytes]:
    """A command that goes on; its stdout is a pipe."""
    command = [*WORKBENCH, *arguments]
    return subprocess.Popen(
        command, cwd=folder, env={**os.environ, **env}, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, bufsize=0
    )
