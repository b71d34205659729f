"""Tells work in a thread that its result is no longer wanted: a thread cannot be ended from outside."""

from __future__ import annotations

import threading
from contextvars import ContextVar

STOP: ContextVar[threading.Event | None] = ContextVar("stop", default=None)
"""Set for the work of one call; the event is set when the call is over."""


class Stopped(Exception):
    """The call ran out of time, or was cancelled."""


def check() -> None:
    """Go on, or raise Stopped. Loops over what may be large call it."""
    event = STOP.get()
    if event is not None and event.is_set():
        raise Stopped
