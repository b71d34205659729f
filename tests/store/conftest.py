"""Runs the engine's cases, each once, and hands what they observed to the tests."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import PATIENCE

Observed = dict[str, Any]
ROOT = Path(__file__).parents[2]


APART = ("asking", "damage")
"""Cases that set and look at signals: each runs in a process of its own, which loads the engine anew."""


@pytest.fixture(scope="session")
def observe(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Observed]:
    """What ``tests/store/cases/<name>.py`` observes in an empty folder, as JSON holds it."""
    known: dict[str, Observed] = {}

    def observed_by(name: str) -> Observed:
        if name not in known:
            folder = tmp_path_factory.mktemp(name)
            if name not in APART:
                observed = import_module(f"tests.store.cases.{name}").main(folder)
                known[name] = json.loads(json.dumps(observed, default=str))
                return known[name]
            command = [sys.executable, "-m", f"tests.store.cases.{name}", str(folder)]
            # One case is many steps, some of them processes of their own.
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=2 * PATIENCE, check=False)
            assert done.returncode == 0, done.stderr[-4000:]
            known[name] = json.loads(done.stdout)
        return known[name]

    return observed_by


@pytest.fixture
def free_port() -> int:
    """A port of this machine on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port
