"""The one door to litellm."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import asyncio, gc, os, socket, sys

attempts = []
def refuse(self, address): attempts.append(address); raise OSError("no network")
socket.socket.connect = socket.socket.connect_ex = refuse
def lookup(host, *rest, **named): attempts.append(host); raise OSError("no network")
socket.getaddrinfo = lookup

import workbench.models.litellm as llm
assert not {"litellm", "openai", "tiktoken"} & set(sys.modules), "loaded too early"

from workbench.models.names import resolve
from workbench.models.prices import PriceTable

model = llm.LiteLLM(lambda name: resolve(name, "", {}), PriceTable())
asyncio.run(model.warm())
assert "litellm" in sys.modules
assert gc.isenabled()
assert attempts == [], attempts
assert "FROM_THE_DOTENV" not in os.environ

import litellm
assert litellm.suppress_debug_info and not litellm.drop_params
assert "litellm.proxy.proxy_server" not in sys.modules

assert litellm.model_cost["gpt-4o"]["input_cost_per_token"] > 0
"""


def test_litellm_loads_late_without_the_network_and_without_a_dotenv_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("FROM_THE_DOTENV=1\nOPENAI_BASE_URL=http://elsewhere\n")
    root = Path(__file__).parents[2]

    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", SCRIPT],
        cwd=tmp_path,
        env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
