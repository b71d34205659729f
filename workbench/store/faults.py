"""Errors of a store, each with a sentence for a person."""

from __future__ import annotations


class StoreError(Exception):
    """The store cannot do what was asked; the message says why and what to do."""


class StoreBusy(StoreError):
    """Another process holds a lock. ``pid`` is None when the lock file does not name its holder."""

    def __init__(self, message: str, pid: int | None = None) -> None:
        super().__init__(message)
        self.pid = pid


class SessionTaken(StoreError):
    """A new run was given the session id of a stored one."""


class UnknownRun(StoreError):
    """No run has this name, or several have it; ``candidates`` are their run ids."""

    def __init__(self, message: str, candidates: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.candidates = candidates
