"""Goal 20: 100 candidates of 200 ms each, all at once and a few at a time, against bare aiohttp to the same server."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from bench.measure import Line, interleaved, python

COUNT = 100
TAKES = 0.2
"""Seconds until the server answers."""
FEW = (10, 25)
"""How many run at once, where not all do."""

SERVER = """
import asyncio, json, sys
takes = float(sys.argv[1])
def event(delta, **more):
    body = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o",
            "choices": [{"index": 0, "delta": delta, "finish_reason": more.pop("finish", None)}], **more}
    return b"data: " + json.dumps(body).encode() + b"\\n\\n"
usage = {"prompt_tokens": 20, "completion_tokens": 2, "total_tokens": 22}
BODY = event({"role": "assistant", "content": "A text."}) + event({}, finish="stop", usage=usage)
BODY += b"data: [DONE]\\n\\n"
HEAD = b"HTTP/1.1 200 OK\\r\\ncontent-type: text/event-stream\\r\\ncontent-length: %d\\r\\n\\r\\n" % len(BODY)
async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            size = next(int(l.split(b":")[1]) for l in head.split(b"\\r\\n") if l.lower().startswith(b"content-length"))
            await reader.readexactly(size)
            await asyncio.sleep(takes)
            writer.write(HEAD + BODY)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
asyncio.run(main())
"""
OURS = """
import asyncio, json, sys, time
from pathlib import Path
from workbench.engine.definition import Definition
from workbench.workspace.model_choice import ModelChoice
from workbench.workspace.run_builder import RunAttachments, Start, new_options, run_new
from workbench.workspace.project import Project
url, count, at_once = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
project = Project.at(Path.cwd())
async def run(count):
    soundings = {"factor": count, "max_parallel": at_once, "mode": "aggregate"}
    phase = {"name": "p", "instructions": "Write a text.", "soundings": soundings}
    definition = Definition.of(json.dumps({"cascade_id": "c", "phases": [phase]}), "c.json")
    choice = ModelChoice(False, "gpt-4o", base_url=url)
    start = Start(definition, None, {}, choice, new_options(project, "c", choice))
    begin = time.perf_counter()
    outcome = await run_new(project, start, RunAttachments())
    took = time.perf_counter() - begin
    assert outcome.status == "success", outcome.reason
    return took
async def main():
    await run(2)
    print(await run(count))
asyncio.run(main())
"""
THEIRS = """
import asyncio, sys, time
import aiohttp
url, count = sys.argv[1], int(sys.argv[2])
body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Write a text."}], "stream": True}
async def run(count):
    begin = time.perf_counter()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        async def one():
            async with session.post(url + "/chat/completions", json=body) as answer:
                async for line in answer.content:
                    pass
        await asyncio.gather(*(one() for _ in range(count)))
    return time.perf_counter() - begin
async def main():
    await run(2)
    print(await run(count))
asyncio.run(main())
"""


@contextmanager
def provider() -> Iterator[str]:
    """A server in a process of its own, which ends with its standard input."""
    command = [sys.executable, "-c", SERVER, str(TAKES)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
        process.stdin.close()


def run(rounds: int = 3) -> Iterator[Line]:
    with provider() as url:
        ours, theirs = interleaved(
            rounds,
            lambda: float(python(OURS, url, str(COUNT), str(COUNT)).splitlines()[-1]),
            lambda: float(python(THEIRS, url, str(COUNT)).splitlines()[-1]),
        )
        yield Line("20", f"{COUNT} candidates of 200 ms at once, bare aiohttp", ours, theirs, "s", 2.5)
        for few in FEW:
            took = median(float(python(OURS, url, str(COUNT), str(few)).splitlines()[-1]) for _ in range(rounds))
            ideal = math.ceil(COUNT / few) * TAKES
            yield Line(
                "20", f"{COUNT} candidates of 200 ms, {few} at once, nothing but waiting", took, ideal, "s", 1.25
            )
