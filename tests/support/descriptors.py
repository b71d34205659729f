"""Waits for descriptors, also in a process that has more than the 1,024 open that ``select`` can take."""

from __future__ import annotations

import select


def is_readable(descriptor: int, seconds: float) -> bool:
    """Returns whether something, or the end, can be read from a descriptor within the seconds."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(seconds * 1000))
