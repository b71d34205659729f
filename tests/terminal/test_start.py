"""A start of the app in a terminal of any size: it loads no provider, connects to nobody, and tells so at its end."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.terminal.conftest import Terminal

WITNESS = """\
import atexit, json, sys, threading
asked, stalling = [], []
calls = ("socket.connect", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname")
heavy = ("pydantic", "jinja2", "litellm", "chdb", "openai", "tiktoken", "pyarrow", "ruamel", "jsonschema", "httpx")
def witness(event, args):
    if event in calls:
        asked.append([event, repr(args[1:])])
    elif event == "import" and args[0].partition(".")[0] in heavy:
        if threading.current_thread() is threading.main_thread():
            stalling.append(args[0])
sys.addaudithook(witness)
def tell():
    with open("witness.json", "w") as out:
        json.dump({"asked": asked, "stalling": stalling, "modules": sorted(sys.modules)}, out)
atexit.register(tell)
from workbench.cli.main import main
main()
"""


@pytest.mark.fault("F6")
def test_a_start_loads_no_provider_and_asks_nobody_and_survives_one_cell_and_fast_resizes(
    terminal: Terminal, folder: Path
) -> None:
    (folder / "witness.py").write_text(WITNESS)
    # Some shells export COLUMNS and LINES; they mean nothing.
    env = "OPENAI_API_KEY=sk-none-at-all COLUMNS=120 LINES=40"
    terminal.execute(sys.executable, "witness.py", "open", "log_triage.yaml", env=env)
    terminal.until("NOT RUN", "intake")
    terminal.press("?")
    terminal.until("esc back")
    terminal.press("q")
    terminal.until("NOT RUN")
    for columns, lines in [(1, 1), (200, 2), (2, 60), (39, 11), (300, 80), (1, 1), (20, 5), (80, 24)] * 3:
        terminal.resize(columns, lines)
    terminal.resize(30, 8)
    terminal.until("small")
    terminal.resize(120, 40)
    terminal.until("NOT RUN", "intake", "q quit")
    terminal.press("q")
    terminal.until("rc=0")
    assert terminal.is_restored
    told: dict[str, Any] = json.loads((folder / "witness.json").read_text())
    assert told["asked"] == []
    assert told["stalling"] == [], "the thread that draws imports nothing heavy"
    assert {"litellm", "openai", "aiohttp"}.isdisjoint(told["modules"])
    assert "workbench.workspace.session" in told["modules"]
