"""A pipe that nobody writes to, and an end to waiting for it: a test of who waits then fails instead of hanging."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PATIENCE = 20.0
"""Seconds until whoever has opened the pipe is let go."""


@contextmanager
def unattended(pipe: Path) -> Iterator[None]:
    """Make the pipe. Raises AssertionError at the end where somebody waited for it."""
    os.mkfifo(pipe)
    waited_for, over = list[int](), threading.Event()

    def let_go() -> None:
        while not over.wait(PATIENCE):
            with suppress(OSError):  # Nobody has it open.
                os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
                waited_for.append(1)

    watching = threading.Thread(target=let_go)
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join()
    assert not waited_for, f"{pipe} was waited for"
