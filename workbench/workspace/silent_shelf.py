"""The cascades of a workspace for replays: what a child run writes goes nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from workbench.engine.event import Event
from workbench.engine.ports import Ports, Sink
from workbench.workspace.shelf import Shelf


class SilentShelf(Shelf):
    """A shelf whose children leave no journal: who replays observes their events."""

    @contextmanager
    def child_ports(self, parent: Ports, run_id: str, key: str) -> Iterator[Ports]:
        yield replace(parent, sink=_Images(parent.sink))


class _Images:
    """Keeps the images of a child run with those of its parent."""

    def __init__(self, parent: Sink) -> None:
        self._parent = parent

    def append(self, event: Event) -> None:
        """Seen by the observer already."""

    def blob(self, digest: str, data: bytes) -> None:
        self._parent.blob(digest, data)

    def sync(self) -> None:
        """Nothing is stored."""
