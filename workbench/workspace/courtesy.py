"""Keys before streams: what an answer brings in waits a moment while the app answers a key. Both run in one
interpreter, and each would take twice as long beside the other."""

from __future__ import annotations

import time
from collections.abc import Callable

from workbench.engine.ports import Notice

MOMENT = 0.03
"""Seconds in which a key is answered, mostly."""


class Courtesy:
    """Hands notices on; the thread that brings a piece of an answer waits after a key. It waits four fifths of the time
    at most, however many keys there are: a key that is held down slows the run, and does not hold it up."""

    def __init__(
        self,
        notify: Callable[[Notice], None],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._notify = notify
        self._clock = clock
        self._sleep = sleep
        self._key_at = self._waited_at = clock() - 2 * MOMENT

    def key(self) -> None:
        """A key came: the app is at work now."""
        self._key_at = self._clock()

    def __call__(self, notice: Notice) -> None:
        """Hand a notice on, from the thread of the run."""
        self._notify(notice)
        now = self._clock()
        left = self._key_at + MOMENT - now
        if notice.kind == "text" and left > 0 and now - self._waited_at >= MOMENT / 4:
            self._sleep(left)
            self._waited_at = self._clock()
