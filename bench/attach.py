"""What ``attach`` adds to a call: beside no proxy, mitmproxy and litellm's proxy, in turns, on one provider.

``python -m bench.attach [CALLS]``: p50 and p95 of a call that is answered at once, CPU of the proxy for each call, 200
streams at once, and a request of 10 MB. ``python -m bench.attach memory [CALLS]``: the memory of one session of many
calls, in conversations of 20. ``python -m bench.attach open [CALLS]``: the same with the app open, from four clients,
and the time of keys.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import aiohttp
from aiohttp import web

from bench.measure import PATIENCE, WORKBENCH, Screen, alone, peer

WARM_UP = 50
"""Calls that are not counted: what a proxy loads at its first ones is its start."""
STREAMS = 200
PIECES = 20
PAUSE = 0.05
"""Seconds between two pieces of a stream."""
LITELLM = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MASTER_KEY": "sk-bench-key-of-nothing"}
"""It starts with a key only, and would fetch a list of prices."""
TICKS = os.sysconf("SC_CLK_TCK")
CONFIG = """\
model_list:
  - model_name: m
    litellm_params: {{model: openai/m, api_base: "{url}", api_key: k}}
"""


_numbers = itertools.count(1)


async def _answer(request: web.Request) -> web.StreamResponse:
    body = json.loads(await request.read())
    if not body.get("stream"):
        message = {"role": "assistant", "content": "ok"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}
        name = f"chatcmpl-{next(_numbers)}"  # Real ones differ, and a record may keep what they name.
        return web.json_response({"id": name, "object": "chat.completion", "choices": [choice], "usage": usage})
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for _ in range(PIECES):
        await asyncio.sleep(PAUSE)
        piece = {"id": "1", "choices": [{"index": 0, "delta": {"content": "word "}}]}
        await response.write(f"data: {json.dumps(piece)}\n\n".encode())
    await response.write(b"data: [DONE]\n\n")
    return response


@asynccontextmanager
async def provider() -> AsyncIterator[str]:
    """A provider on this machine that answers at once."""
    application = web.Application(client_max_size=2**28)
    application.router.add_post("/v1/chat/completions", _answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


def _free() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def _process(words: list[str], folder: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """A proxy of its own, once it listens; it ends with the block."""
    with (folder / f"{port}.log").open("wb") as log:
        process = subprocess.Popen(words, cwd=folder, env={**alone(folder), **LITELLM}, stdout=log, stderr=log)
    try:
        until = time.monotonic() + 2 * PATIENCE
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"{words[0]} did not start: {(folder / f'{port}.log').read_text()[-2000:]}")
            time.sleep(0.1)
        yield process
    finally:
        process.terminate()
        process.wait()


def _cpu(pid: int) -> float:
    """Seconds of processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


async def _quiet(pid: int) -> None:
    """Wait until a process has done what its calls left it to do; work that clients do not wait for counts, too."""
    before = -1.0
    while pid and (now := _cpu(pid)) > before:
        before = now
        await asyncio.sleep(0.5)


async def _call(client: aiohttp.ClientSession, url: str, text: str = "Hello") -> float:
    began = time.perf_counter()
    asked = {"model": "m", "messages": [{"role": "user", "content": text}]}
    async with client.post(f"{url}/chat/completions", json=asked) as response:
        body = await response.read()
        assert response.status == 200, body[:300]
    return time.perf_counter() - began


async def _stream(client: aiohttp.ClientSession, url: str) -> float:
    """The longest wait for a piece of a stream, in seconds, without that for the first."""
    asked = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Hello"}]}
    worst, last = 0.0, 0.0
    async with client.post(f"{url}/chat/completions", json=asked) as response:
        async for _ in response.content.iter_any():
            now = time.perf_counter()
            worst, last = max(worst, now - last if last else 0.0), now
    return worst


async def measure(calls: int) -> None:
    """Prints a table: milliseconds of a call and of processor time, and the worst wait within streams."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with provider() as straight:
            sides: dict[str, tuple[str, int]] = {"no proxy": (straight, 0)}
            with contextmanager(_proxies)(folder, straight) as found:
                sides |= found
                await _table(sides, calls)


def _proxies(folder: Path, straight: str) -> Iterator[dict[str, tuple[str, int]]]:
    port = _free()
    words = [sys.executable, "-m", "workbench", "attach", "--port", str(port), "--upstream", f"openai={straight}"]
    with _process(words, folder, port) as ours:
        found = {"attach": (f"http://127.0.0.1:{port}/openai/v1", ours.pid)}
        mitm = peer("mitmproxy", ("mitmproxy",), "mitmproxy")
        lite = peer("litellm-proxy", ("litellm[proxy]",), "litellm.proxy.proxy_cli")
        with _mitm(mitm, folder, straight) as one, _litellm(lite, folder, straight) as other:
            yield {**found, **one, **other}


@contextmanager
def _mitm(python: str | None, folder: Path, straight: str) -> Iterator[dict[str, tuple[str, int]]]:
    if python is None:
        yield {}
        return
    port, bare = _free(), straight.removesuffix("/v1")
    words = [str(Path(python).parent / "mitmdump"), "-q", "--mode", f"reverse:{bare}", "-p", str(port)]
    with _process([*words, "--set", "stream_large_bodies=1", "-w", str(folder / "flows")], folder, port) as process:
        yield {"mitmproxy": (f"http://127.0.0.1:{port}/v1", process.pid)}


@contextmanager
def _litellm(python: str | None, folder: Path, straight: str) -> Iterator[dict[str, tuple[str, int]]]:
    if python is None:
        yield {}
        return
    port = _free()
    (folder / "litellm.yaml").write_text(CONFIG.format(url=straight))
    words = [
        str(Path(python).parent / "litellm"),
        "--config",
        "litellm.yaml",
        "--port",
        str(port),
        "--host",
        "127.0.0.1",
    ]
    with _process(words, folder, port) as process:
        yield {"litellm proxy": (f"http://127.0.0.1:{port}/v1", process.pid)}


async def _table(sides: dict[str, tuple[str, int]], calls: int) -> None:
    taken: dict[str, list[float]] = {name: [] for name in sides}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(
        connector=connector, headers={"Authorization": f"Bearer {LITELLM['LITELLM_MASTER_KEY']}"}
    ) as client:
        for url, pid in sides.values():
            for _ in range(WARM_UP):
                await _call(client, url)
            await _quiet(pid)
        before = {name: _cpu(pid) for name, (_, pid) in sides.items() if pid}
        for _ in range(calls):
            for name, (url, _) in sides.items():
                taken[name].append(await _call(client, url))
        for _, pid in sides.values():
            await _quiet(pid)
        cpu = {name: (_cpu(sides[name][1]) - begun) / calls for name, begun in before.items()}
        print(
            f"{'':14} {'p50 ms':>8} {'p95 ms':>8} {'CPU ms':>8} {'10 MB ms':>9} {'worst piece of 200 streams, ms':>31}"
        )
        base = median(taken["no proxy"])
        for name, (url, _) in sides.items():
            large = median([await _call(client, url, "x" * 10_000_000) for _ in range(3)])
            await _quiet(sides[name][1])
            streams = await asyncio.gather(*(_stream(client, url) for _ in range(STREAMS)))
            p50, p95 = median(taken[name]), quantiles(taken[name], n=20)[-1]
            told = f"{name:14} {p50 * 1e3:8.2f} {p95 * 1e3:8.2f} {cpu.get(name, 0) * 1e3:8.2f} {large * 1e3:9.0f}"
            print(f"{told} {max(streams) * 1e3:31.0f}   added p50 {(p50 - base) * 1e3:.2f} ms", flush=True)


TURNS = 20
"""Calls of one conversation."""


def _memory(pid: int) -> float:
    """Megabytes that a process holds."""
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _children(pid: int) -> list[int]:
    """The processes that a process has started."""
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def _converse(client: aiohttp.ClientSession, url: str, number: int, over: Callable[[], object]) -> None:
    """The calls of one conversation; ``over`` is called after each."""
    said = [{"role": "user", "content": f"Task {number}: " + "some words to read " * 20}]
    for turn in range(TURNS):
        async with client.post(url, json={"model": "m", "messages": said}) as response:
            answer = (await response.json())["choices"][0]["message"]
        said = [*said, answer, {"role": "user", "content": f"Go on with {number}, {turn}."}]
        over()


async def memory(calls: int) -> None:
    """Prints the memory of the recording process at ten points of a session, and its growth in the first and in the
    last quarter."""
    held: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), _free()
        async with provider() as straight:
            words = [sys.executable, "-m", "workbench", "attach", "--port", str(port), "--upstream"]
            with _process([*words, f"openai={straight}"], folder, port) as ours:
                counted = itertools.count(1)

                def over() -> None:
                    number = next(counted)
                    if number % max(calls // 4, 1) == 0 or number == WARM_UP:
                        held[number] = _memory(ours.pid)
                    if number % max(calls // 10, 1) == 0:
                        print(f"{number:8,} calls {_memory(ours.pid):8.0f} MB", flush=True)

                url = f"http://127.0.0.1:{port}/openai/v1/chat/completions"
                async with aiohttp.ClientSession() as client:
                    for conversation in range(calls // TURNS):
                        await _converse(client, url, conversation, over)

    points = list(held.items())
    for name, ((since, before), (until, after)) in {"first": points[:2], "last": points[-2:]}.items():
        print(f"{name} quarter: {(after - before) * 1e6 / (until - since):,.0f} bytes for each call")


CLIENTS = 4
OPEN_AT = (40, 1_000, 4_000, 10_000)
"""Calls after which the app is looked at."""


async def opened(calls: int) -> None:
    """Prints the memory of the app that shows a session, how much of it is no file, that of the process that serves
    and records, and how long keys take."""
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), _free()
        async with provider() as straight:
            words = [*WORKBENCH, "attach", "--bench", "--port", str(port), "--upstream", f"openai={straight}"]
            with Screen(words, folder, alone(folder)) as screen:
                await _drawn(screen, _listening(port))
                url, last = f"http://127.0.0.1:{port}/openai/v1/chat/completions", 0
                for point in sorted({min(one, calls) for one in OPEN_AT}):
                    begun = time.perf_counter()
                    await _drawn(screen, _converse_all(url, range(last // TURNS, point // TURNS)))
                    took, made, last = time.perf_counter() - begun, point - last, point
                    await _drawn(screen, asyncio.sleep(1.0))  # It never rests: it shows that it waits.
                    keys = [await asyncio.to_thread(screen.key, key) for key in (b"k", b"j") * 10]
                    pages = int(Path(f"/proc/{screen.process.pid}/statm").read_text().split()[2])
                    files = pages * os.sysconf("SC_PAGE_SIZE") / 1e6
                    held, others = _memory(screen.process.pid), _children(screen.process.pid)
                    print(
                        f"{point:8,} calls {held:6.0f} MB, {held - files:4.0f} without files, "
                        f"{sum(map(_memory, others)):4.0f} beside; "
                        f"{made / took:4.0f} calls/s; "
                        f"keys {median(keys) * 1e3:.0f} ms, the slowest {max(keys) * 1e3:.0f}",
                        flush=True,
                    )


async def _listening(port: int) -> None:
    """Wait until something listens at a port."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        await asyncio.sleep(0.1)
    raise TimeoutError(f"nothing listens at port {port}")


async def _converse_all(url: str, conversations: Iterable[int]) -> None:
    left = iter(conversations)
    async with aiohttp.ClientSession() as client:

        async def some() -> None:
            for number in left:
                await _converse(client, url, number, lambda: None)

        await asyncio.gather(*(some() for _ in range(CLIENTS)))


async def _drawn(screen: Screen, work: Coroutine[Any, Any, None]) -> None:
    """Wait for work while somebody reads the terminal."""
    task = asyncio.ensure_future(work)
    while not task.done():
        await asyncio.to_thread(screen.read, 0.1)
    await task


if __name__ == "__main__":
    given = sys.argv[1:]
    if given[:1] in (["memory"], ["open"]):
        asyncio.run((memory if given[0] == "memory" else opened)(int(given[1]) if len(given) > 1 else 10_000))
    else:
        asyncio.run(measure(int(given[0]) if given else 300))
