"""Work that the main thread waits for without going deaf: it hears signals while native code runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")
_LISTEN = 0.1
"""Seconds. A signal that the kernel gives to one of the engine's threads does not wake a waiting main thread."""


def attended(work: Callable[[], T], stop: Callable[[], None]) -> T:
    """The result of ``work``. On the main thread it is done in another one; Ctrl+C calls ``stop`` and is raised.

    Raises what ``work`` raises.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    with ThreadPoolExecutor(1, thread_name_prefix="query") as pool:
        future = pool.submit(work)
        try:
            while not future.done():
                wait([future], _LISTEN)
        except KeyboardInterrupt:
            stop()
            raise
        return future.result()
