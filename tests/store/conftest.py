"""Runs the engine's cases, each once, and hands what they observed to the tests."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Observed = dict[str, Any]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def observe(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Observed]:
    """What ``tests/store/cases/<name>.py`` prints when it runs in an empty folder."""
    known: dict[str, Observed] = {}

    def observed(name: str) -> Observed:
        if name not in known:
            folder = tmp_path_factory.mktemp(name)
            command = [sys.executable, "-m", f"tests.store.cases.{name}", str(folder)]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
            assert done.returncode == 0, done.stderr[-4000:]
            known[name] = json.loads(done.stdout)
        return known[name]

    return observed


@pytest.fixture
def free_port() -> int:
    """A port of this machine on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port
