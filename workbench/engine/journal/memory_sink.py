"""A journal in memory, for runs that have no store: replays, and new runs until they are worth a journal."""

from __future__ import annotations

from workbench.engine.journal.event import Event


class MemorySink:
    """Implements ``Sink``: keeps the events and blobs of a run."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.blobs: dict[str, bytes] = {}

    def append(self, event: Event) -> None:
        self.events.append(event)

    def blob(self, digest: str, data: bytes) -> None:
        self.blobs[digest] = data

    def sync(self) -> None:
        """Does nothing: a memory sink ends with the process."""
