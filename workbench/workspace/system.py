"""The real clock, ids and chance."""

from __future__ import annotations

import asyncio
import os
import random
import time
import uuid
from datetime import UTC, datetime

from workbench.context.place import Place


class SystemClock:
    """Wall time in UTC; durations from the monotonic clock."""

    def now(self) -> str:
        return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")

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
