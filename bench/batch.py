"""Goal 21: a batch of 1,000 rows of 200 ms each, 100 at a time, against bare aiohttp to the same server."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.candidates import SERVER, TAKES
from bench.measure import WORKBENCH, Line, alone, interleaved, python, seconds, workspace

ROWS, AT_ONCE = 1000, 100
FEW = 100
"""Rows of a second batch: what more rows take, is theirs."""
THEIRS = """
import asyncio, sys, time
import aiohttp
url, count, at_once = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
async def main():
    begin = time.perf_counter()
    free = asyncio.Semaphore(at_once)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        async def one(number):
            text = f"Write of {number}."
            body = {"model": "gpt-4o", "messages": [{"role": "user", "content": text}], "stream": True}
            async with free, session.post(url + "/chat/completions", json=body) as answer:
                async for line in answer.content:
                    pass
        await asyncio.gather(*(one(number) for number in range(count)))
    print(time.perf_counter() - begin)
asyncio.run(main())
"""
LITELLM = """
import asyncio, os, subprocess, sys
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
url, count, at_once, processes = sys.argv[1], *map(int, sys.argv[2:5])
others = [subprocess.Popen([sys.executable, "-c", sys.argv[5], url, str(count // processes), str(at_once // processes),
                            "1", ""]) for _ in range(processes - 1)]
import litellm
litellm.disable_token_counter = True
async def one(free, number):
    messages = [{"role": "user", "content": f"Write of {number}."}]
    async with free:
        answer = await litellm.acompletion("openai/gpt-4o", messages, api_base=url, api_key="none", stream=True)
        async for piece in answer:
            pass
async def main():
    free = asyncio.Semaphore(at_once // processes)
    await asyncio.gather(*(one(free, number) for number in range(count // processes)))
asyncio.run(main())
sys.exit(any(other.wait() for other in others))
"""
"""The same calls, by litellm's own function: what a batch that keeps nothing would take."""


@contextmanager
def serving(code: str, *arguments: object) -> Iterator[str]:
    """The URL of a server in a process of its own, which prints its port, until the block ends."""
    with subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
        server.terminate()


def run(rounds: int = 1) -> Iterator[Line]:
    with workspace() as folder, serving(SERVER, TAKES) as url:
        (folder / "flow.yaml").write_text(
            "cascade_id: flow\nphases: [{name: p, instructions: 'Write of {{ input.n }}.'}]\n"
        )
        for name, count in (("rows", ROWS), ("few", FEW)):
            rows = [f'{{"n": {number}}}\n' for number in range(count)]
            (folder / f"{name}.jsonl").write_text("".join(rows))
        numbers = iter(range(1000))
        ours, few, theirs, theirs_few, whole, one, two = interleaved(
            rounds,
            lambda: _ours(folder, url, "rows", next(numbers)),
            lambda: _ours(folder, url, "few", next(numbers)),
            lambda: _theirs(url, ROWS),
            lambda: _theirs(url, FEW),
            lambda: seconds(lambda: _theirs(url, ROWS)),
            lambda: _litellm(url, 1),
            lambda: _litellm(url, 2),
        )
    yield Line("21", "batch of 1,000 rows of 200 ms, 100 at a time, a program of aiohttp", ours, whole, "s", 1.3)
    yield Line("21", "the same against its requests alone, without its start", ours, theirs, "s", 1.3)
    what = "its rows alone, without the start of the command"
    yield Line("21", what, (ours - few) / (ROWS - FEW) * 1000, (theirs - theirs_few) / (ROWS - FEW) * 1000, "ms", 1.3)
    yield Line("21", "the whole command, a program that calls litellm and keeps nothing", ours, one, "s", 1.0)
    yield Line("21", "the same, the program divided into two processes", ours, two, "s", 1.2)


def _theirs(url: str, count: int) -> float:
    return float(python(THEIRS, url, str(count), str(AT_ONCE)).splitlines()[-1])


def _litellm(url: str, processes: int) -> float:
    """Seconds of a whole program."""
    return seconds(lambda: python(LITELLM, url, str(ROWS), str(AT_ONCE), str(processes), LITELLM))


def _ours(folder: Path, url: str, rows: str, number: int) -> float:
    """Seconds of a whole command, its start included."""
    command = [*WORKBENCH, "batch", "flow.yaml", "-i", f"{rows}.jsonl", "-q", "--json", "--name", f"b{number}"]
    command += ["--base-url", url, "-m", "gpt-4o", "-c", str(AT_ONCE)]
    return seconds(
        lambda: subprocess.run(command, cwd=folder, env=alone(folder), stdout=subprocess.DEVNULL, check=True)
    )
