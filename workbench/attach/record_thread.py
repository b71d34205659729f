"""One thread for the work of a record. A fault there ends the record, not the traffic that it records."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from workbench.language.clean import clean_line

MOST_BEHIND, LEAST = 64 * 1024 * 1024, 16 * 1024
"""Bytes of work that may wait, and those that a piece counts for at least."""


class RecordThread:
    """Does the work of a record in the order in which it comes in."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, name)
        self._closed = False
        self._lock = threading.Lock()
        self._behind = 0
        """Bytes of work that is not done."""
        self._late: list[Future[None]] = []
        """Done when less waits than memory should hold."""
        self.fault = ""
        """Why nothing is recorded any more; empty while all is well."""

    def record(self, work: Callable[..., Any], *arguments: Any, size: int = 0) -> Future[Any]:
        """Do a piece of work, unless an earlier one has failed. The future gives its result, or None. ``size``: bytes
        that wait with it."""
        size = max(size, LEAST)
        with self._lock:
            self._behind += size
        return self._pool.submit(self._guarded, size, work, *arguments)

    def caught_up(self) -> Future[Any] | None:
        """Done when no more work waits than memory should hold; None if that is so now."""
        with self._lock:
            if self._behind <= MOST_BEHIND:
                return None
            late = Future[None]()
            self._late.append(late)
            return late

    def ask(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Do a piece of work whose faults are for the caller: the future raises them."""
        return self._pool.submit(work, *arguments)

    def close(self, last: Callable[..., Any], *arguments: Any) -> None:
        """Do the last piece of work, and end the thread. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self.record(last, *arguments).result()
        self._pool.shutdown()

    def _guarded(self, size: int, work: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return None if self.fault else work(*arguments)
        except Exception as fault:  # noqa: BLE001 - whatever it is, the client's call goes on
            self.fault = clean_line(f"{type(fault).__name__}: {fault}", 300)
            return None
        finally:
            with self._lock:
                self._behind -= size
                late, self._late = (self._late, []) if self._behind <= MOST_BEHIND else ([], self._late)
            for one in late:
                if one.set_running_or_notify_cancel():
                    one.set_result(None)
