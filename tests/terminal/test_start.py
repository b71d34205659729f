"""What a start of the app loads and whom it asks, told by the app itself at its end."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

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


def test_a_start_loads_no_provider_and_no_database_and_asks_nobody(terminal: Terminal, folder: Path) -> None:
    (folder / "witness.py").write_text(WITNESS)
    terminal.execute(sys.executable, "witness.py", "open", "log_triage.yaml", env="OPENAI_API_KEY=sk-none-at-all")
    terminal.until("NOT RUN", "intake")
    terminal.press("?")
    terminal.until("esc back")
    terminal.press("q")
    terminal.until("NOT RUN")
    terminal.press("q")
    terminal.until("rc=0")
    told: dict[str, Any] = json.loads((folder / "witness.json").read_text())
    assert told["asked"] == []
    assert told["stalling"] == [], "the thread that draws imports nothing heavy"
    assert {"litellm", "openai"}.isdisjoint(told["modules"])
    assert "workbench.workspace.session" in told["modules"]
