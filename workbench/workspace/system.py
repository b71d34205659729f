"""The real clock, ids and chance."""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from workbench.context.place import Place


def _passed() -> float:
    """Seconds of a clock that cannot be set. It runs while the machine sleeps, if the system has such a clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.monotonic()


class SystemClock:
    """The time of a run: the wall clock at its first use, plus the seconds since then by a clock that cannot be set. So
    the times of a run never jump with the wall clock, and their differences are durations.
    """

    def __init__(self, wall: Callable[[], float] = time.time, passed: Callable[[], float] = _passed) -> None:
        """``wall``: seconds since 1970; ``passed``: seconds since any moment."""
        self._wall = wall
        self._passed = passed
        self._began: tuple[datetime, float] | None = None

    def now(self) -> str:
        self._began = self._began or (datetime.fromtimestamp(self._wall(), UTC), self._passed())
        at, passed = self._began
        moment = at + timedelta(seconds=self._passed() - passed)
        return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class SystemIds:
    """UUIDv7: sorted by time, half the size of v4 on disk."""

    def run_id(self) -> str:
        milliseconds = time.time_ns() // 1_000_000
        value = (milliseconds << 80) | int.from_bytes(os.urandom(10), "big")
        value = value & ~(0xF << 76) | (0x7 << 76)
        value = value & ~(0x3 << 62) | (0x2 << 62)
        return str(uuid.UUID(int=value))


class SystemRandom:
    """Chance from the operating system."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def uniform(self) -> float:
        return self._random.random()

    def draw(self, place: Place, index: int) -> float:
        return self._random.random()
