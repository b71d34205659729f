"""One thread for the work of a record. A fault there ends the record, not the traffic that it records."""

from __future__ import annotations

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
        self._given = self._done = 0
        """Bytes of work, each number written by one thread."""
        self.fault = ""
        """Why nothing is recorded any more; empty while all is well."""

    def record(self, work: Callable[..., Any], *arguments: Any, size: int = 0) -> Future[Any]:
        """Do a piece of work, unless an earlier one has failed. The future gives its result, or None. ``size``: bytes
        that wait with it."""
        size = max(size, LEAST)
        self._given += size
        return self._pool.submit(self._guarded, size, work, *arguments)

    def caught_up(self) -> Future[Any] | None:
        """When all work that came so far is done, if more waits than memory should hold; None if not."""
        return self._pool.submit(int) if self._given - self._done > MOST_BEHIND else None

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
            self._done += size
