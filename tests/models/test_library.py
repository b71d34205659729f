"""The one door to litellm, in a process that has not loaded it yet."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.dialects import Reply
from tests.support.loopback import Loopback
from tests.support.waiting import PATIENCE

SCRIPT = """
import asyncio, gc, os, socket, sys

attempts = []
connect, connect_ex, getaddrinfo = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo
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

# A loop that is closed in the middle of a call holds up no other, and no encoding is loaded by a call.
socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo = connect, connect_ex, getaddrinfo
from workbench.context.assembly import Request
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.models import calls
from workbench.models.tape import Tape

lost = asyncio.new_event_loop()
message = {"role": "user", "content": "a"}
call = calls.completion({"DEEPSEEK_API_KEY": "lost"}, Tape(held=True), model="deepseek/m", messages=[message])
task = lost.create_task(call)
lost.run_until_complete(asyncio.sleep(0))
assert os.environ["DEEPSEEK_API_KEY"] == "lost"
lost.close()
env = {"DEEPSEEK_API_BASE": sys.argv[1], "DEEPSEEK_API_KEY": "found"}
model = llm.LiteLLM(lambda name: resolve(name, "", env), PriceTable(), env=env, timeout_s=100.0)
request = Request("deepseek/m", {}, (), (Message("user", "hi"),), "d")
asyncio.run(model.complete(request, Place(), {}, lambda text: None))
assert not task.done()
assert "default_encoding" not in "".join(sys.modules)
assert len(litellm.main.encoding.encode("a word")) == 2
os._exit(0)
"""


def test_litellm_loads_late_without_the_network_and_without_a_dotenv_file_and_no_lost_call_holds_it_up(
    tmp_path: Path,
) -> None:
    (tmp_path / ".env").write_text("FROM_THE_DOTENV=1\nOPENAI_BASE_URL=http://elsewhere\n")
    root = Path(__file__).parents[2]

    with Loopback([Reply("ok")]) as provider:
        done = subprocess.run(
            [sys.executable, "-W", "error::ResourceWarning", "-c", SCRIPT, provider.url],
            cwd=tmp_path,
            env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE,
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [request.headers["authorization"] for request in provider.requests] == ["Bearer found"]
