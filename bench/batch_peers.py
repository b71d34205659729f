"""The same 200 rows, each a call of 200 ms and an exact match, by `workbench batch`, promptfoo and Inspect.

``python -m bench.batch_peers [ROWS] [AT_ONCE]`` (200 and 50) prints wall time, CPU time and memory of each, from the
start of its command to its end, against one server on the loopback interface. All three keep their results on the disk,
as each of them does by itself. A tool that cannot be installed is left out, with a sentence.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.batch import serving
from bench.measure import WORKBENCH, alone, peer, workspace

TAKES = 0.2
EVERY = 0.25
"""Seconds between two looks at the memory."""

SERVER = """
import asyncio, json, sys
takes = float(sys.argv[1])
usage = {"prompt_tokens": 20, "completion_tokens": 2, "total_tokens": 22}
def choice(**more):
    return [{"index": 0, "finish_reason": None, **more}]
def event(choices, **more):
    body = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o", "choices": choices, **more}
    return b"data: " + json.dumps(body).encode() + b"\\n\\n"
STREAM = event(choice(delta={"role": "assistant", "content": "A text."}))
STREAM += event(choice(delta={}, finish_reason="stop"), usage=usage) + b"data: [DONE]\\n\\n"
message = {"role": "assistant", "content": "A text."}
WHOLE = json.dumps({"id": "x", "object": "chat.completion", "created": 1, "model": "gpt-4o", "usage": usage,
                    "choices": choice(message=message, finish_reason="stop")}).encode()
def answer(kind, body):
    return b"HTTP/1.1 200 OK\\r\\ncontent-type: %s\\r\\ncontent-length: %d\\r\\n\\r\\n%s" % (kind, len(body), body)
async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            size = [int(l.split(b":")[1]) for l in head.split(b"\\r\\n") if l.lower().startswith(b"content-length")]
            asked = json.loads(await reader.readexactly(size[0])) if size else {}
            await asyncio.sleep(takes)
            stream = asked.get("stream")
            writer.write(answer(b"text/event-stream", STREAM) if stream else answer(b"application/json", WHOLE))
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
asyncio.run(main())
"""
INSPECT = """
import json, sys
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.scorer import exact
from inspect_ai.solver import generate
url, rows, at_once = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
samples = [Sample(input=f"Write of {n}.", target="A text.") for n in range(rows)]
task = Task(dataset=samples, solver=generate(), scorer=exact())
(log,) = eval(task, model="openai/gpt-4o", model_base_url=url, max_connections=at_once, max_samples=at_once,
              display="none", log_dir="logs")
assert log.status == "success" and len(log.samples) == rows, log.error
assert log.results.scores[0].metrics["mean"].value == 1.0, log.results
"""


def measured(command: Sequence[str], folder: Path, env: Mapping[str, str]) -> tuple[float, float, float]:
    """Wall time and CPU time in seconds, and memory in MB: the most that its processes had together (proportional set
    size: a page that two share counts half for each). Raises RuntimeError where the command fails."""
    began = time.perf_counter()
    output = folder / "output.txt"
    with output.open("wb") as out:
        process = subprocess.Popen(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    most = 0.0
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        most = max(most, _memory(process.pid))
        time.sleep(EVERY)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}: {output.read_text(errors='replace')[-800:]}")
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime, most


def _memory(root: int) -> float:
    """MB of a process and of all that it has started."""
    parents: dict[int, int] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                stat = Path(entry.path, "stat").read_text()
                parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
    family, size = [root], 0
    for pid in family:
        family += [child for child, parent in parents.items() if parent == pid]
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        size += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return size / 1024


def promptfoo() -> str | None:
    """Its program, installed now if it is not yet; None where it cannot be."""
    folder = Path(tempfile.gettempdir()) / "cascade-bench-promptfoo"
    program = folder / "node_modules" / ".bin" / "promptfoo"
    if not program.exists():
        folder.mkdir(exist_ok=True)
        npm = shutil.which("npm")
        install = [npm or "npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "promptfoo"]
        if npm is None or subprocess.run(install, cwd=folder, capture_output=True).returncode:
            print("promptfoo cannot be installed here: no comparison", file=sys.stderr)
            return None
    return str(program)


def main(rows: int, at_once: int) -> int:
    """Exit code 1 when a tool fails."""
    sides: list[tuple[str, list[str], Mapping[str, str]]] = []
    with workspace() as folder, serving(SERVER, TAKES) as url:
        env = alone(folder) | {"OPENAI_API_KEY": "sk-none", "HOME": str(folder)}
        (folder / "flow.yaml").write_text(
            "cascade_id: flow\nphases: [{name: p, instructions: 'Write of {{ input.n }}.'}]\n"
        )
        lines = [json.dumps({"n": n, "expected": "A text."}) + "\n" for n in range(rows)]
        (folder / "rows.jsonl").write_text("".join(lines))
        ours = [*WORKBENCH, "batch", "flow.yaml", "-i", "rows.jsonl", "-q", "--score", "exact", "--base-url", url]
        sides.append(("workbench batch", [*ours, "-m", "gpt-4o", "-c", str(at_once)], env))
        if (program := promptfoo()) is not None:
            config = {
                "prompts": ["Write of {{n}}."],
                "providers": [{"id": "openai:chat:gpt-4o", "config": {"apiBaseUrl": url}}],
                "tests": [{"vars": {"n": n}, "assert": [{"type": "equals", "value": "A text."}]} for n in range(rows)],
            }
            (folder / "promptfooconfig.json").write_text(json.dumps(config))
            eval_ = [program, "eval", "-c", "promptfooconfig.json", "-j", str(at_once), "--no-cache", "--no-table"]
            off = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1"}
            off |= {"PROMPTFOO_CONFIG_DIR": str(folder / "promptfoo"), "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1"}
            sides.append(("promptfoo", [*eval_, "--no-progress-bar"], env | off))
        if (python := peer("inspect", ["inspect-ai", "openai"], "inspect_ai, openai")) is not None:
            (folder / "inspect_rows.py").write_text(INSPECT)
            command = [python, "inspect_rows.py", url, str(rows), str(at_once)]
            sides.append(("inspect", command, {key: value for key, value in env.items() if key != "PYTHONPATH"}))
        print(f"{rows} rows of {TAKES:g} s, {at_once} at a time       wall s    CPU s    MB")
        for name, command, given in sides:
            try:
                wall, cpu, memory = measured(command, folder, given)
            except RuntimeError as fault:
                print(f"{name}: {fault}", file=sys.stderr)
                return 1
            print(f"{name:40} {wall:8.2f} {cpu:8.2f} {memory:5.0f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*(int(text) for text in (*sys.argv[1:], *("200", "50")[len(sys.argv) - 1 :]))))
