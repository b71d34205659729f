"""Keeps the database over the journals up to date while the app is open, in a thread of its own and after its start."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from workbench.collector import no_collection

if TYPE_CHECKING:
    from workbench.store.store import Store

START_AFTER = 3.0
"""Seconds: chDB takes 0.2 s of CPU and 300 MB to load, which the first frames should not feel."""


class Indexing:
    """Owns the index if nobody else does. A context manager; what stops it is in ``notice``."""

    def __init__(self, store: Callable[[], Store], delay: float = START_AFTER) -> None:
        """``store`` is called in the thread: neither it nor what it imports delays the first frame."""
        self.notice = ""
        self._store = store
        self._delay = delay
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="indexing", daemon=True)

    def __enter__(self) -> Indexing:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join(10.0)

    def _run(self) -> None:
        if self._stop.wait(self._delay):
            return
        from workbench.store.faults import StoreError

        shared = ExitStack()
        try:
            with no_collection():
                from workbench.workspace.asking import shared_index

                index = shared.enter_context(shared_index(self._store()))
        except (StoreError, ImportError) as fault:
            self.notice = f"runs are not indexed here: {fault}"
            return
        self.notice = index.notice
        try:
            self._stop.wait()
        finally:
            shared.close()
