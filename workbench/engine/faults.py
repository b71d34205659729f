"""How a phase ends early, inside the engine. None of these leaves it: each becomes an event and a status."""

from __future__ import annotations


class PhaseFailed(Exception):
    """The phase fails, and with it the run."""

    def __init__(self, reason: str, check: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.check = check
        """The check that failed: ``output_schema``, or the name of a validator."""


class PhaseBlocked(PhaseFailed):
    """A blocking ward ended the run."""
