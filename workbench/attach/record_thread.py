"""One thread for the work of a record. A fault there ends the record, not the traffic that it records."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from workbench.language.clean import clean_line


class RecordThread:
    """Does the work of a record in the order in which it comes in."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, name)
        self._closed = False
        self.fault = ""
        """Why nothing is recorded any more; empty while all is well."""

    def record(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Do a piece of work, unless an earlier one has failed. The future gives its result, or None."""
        return self._pool.submit(self._guarded, work, *arguments)

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

    def _guarded(self, work: Callable[..., Any], *arguments: Any) -> Any:
        if self.fault:
            return None
        try:
            return work(*arguments)
        except Exception as fault:  # noqa: BLE001 - whatever it is, the client's call goes on
            self.fault = clean_line(f"{type(fault).__name__}: {fault}", 300)
            return None
