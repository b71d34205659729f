"""Waits that end: until a condition holds, or with an error that says what did not come true."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 100.0
"""Seconds that a condition or a process may take on a busy machine; on an idle one none takes a tenth of it."""
PAUSE = 0.01
"""Seconds between two looks."""


def until(condition: Callable[[], T], what: str, patience: float = PATIENCE) -> T:
    """Look until the condition holds; what it returned. Raises AssertionError when the patience (seconds) ends."""
    give_up = time.monotonic() + patience
    while not (found := condition()):
        assert time.monotonic() < give_up, f"waited {patience:g} s for {what}"
        time.sleep(PAUSE)
    return found


async def soon(condition: Callable[[], T], what: str, patience: float = PATIENCE, pause: float = PAUSE) -> T:
    """The same in an event loop, whose other tasks go on; a ``pause`` of 0 looks after each turn of the loop."""
    give_up = time.monotonic() + patience
    while not (found := condition()):
        assert time.monotonic() < give_up, f"waited {patience:g} s for {what}"
        await asyncio.sleep(pause)
    return found
