"""Goal 3: the worst stall of an event loop while litellm loads in a thread, ours against a plain import."""

from __future__ import annotations

from collections.abc import Iterator

from bench.measure import Line, interleaved, python

TICKING = """
import asyncio, sys, time
worst = 0.0
async def ticks():
    global worst
    while True:
        begin = time.perf_counter()
        await asyncio.sleep(0.002)
        worst = max(worst, time.perf_counter() - begin)
async def main():
    ticking = asyncio.ensure_future(ticks())
    await asyncio.sleep(0.05)
    await load()
    await asyncio.sleep(0.05)
    ticking.cancel()
    print(worst)
"""
PLAIN = """
import os
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
async def load():
    await asyncio.to_thread(__import__, "litellm")
asyncio.run(main())
"""
OURS = """
from workbench.models.litellm import LiteLLM
from workbench.models.names import resolve
from workbench.models.prices import PriceTable
async def load():
    await LiteLLM(lambda name: resolve(name, "", {}), PriceTable()).warm()
asyncio.run(main())
"""


def run(rounds: int = 3) -> Iterator[Line]:
    ours, theirs = interleaved(rounds, lambda: float(python(TICKING + OURS)), lambda: float(python(TICKING + PLAIN)))
    yield Line("3", "worst stall while litellm loads, plain import in a thread", ours * 1e3, theirs * 1e3, "ms", 0.25)
