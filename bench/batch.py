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


@contextmanager
def _server() -> Iterator[str]:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(TAKES)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
        server.terminate()


def run(rounds: int = 1) -> Iterator[Line]:
    with workspace() as folder, _server() as url:
        (folder / "flow.yaml").write_text(
            "cascade_id: flow\nphases: [{name: p, instructions: 'Write of {{ input.n }}.'}]\n"
        )
        (folder / "rows.jsonl").write_text("".join(f'{{"n": {number}}}\n' for number in range(ROWS)))
        numbers = iter(range(1000))
        ours, theirs = interleaved(
            rounds,
            lambda: _ours(folder, url, f"b{next(numbers)}"),
            lambda: float(python(THEIRS, url, str(ROWS), str(AT_ONCE)).splitlines()[-1]),
        )
    yield Line("21", "batch of 1,000 rows of 200 ms, 100 at a time, bare aiohttp", ours, theirs, "s", 1.3)


def _ours(folder: Path, url: str, name: str) -> float:
    """Seconds of a whole command, its start included."""
    command = [*WORKBENCH, "batch", "flow.yaml", "-i", "rows.jsonl", "-q", "--json", "--name", name]
    command += ["--base-url", url, "-m", "gpt-4o", "-c", str(AT_ONCE)]
    return seconds(
        lambda: subprocess.run(command, cwd=folder, env=alone(folder), stdout=subprocess.DEVNULL, check=True)
    )
