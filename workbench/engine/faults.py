"""How a phase ends early, inside the engine. None of these leaves it: each becomes an event and a status."""

from __future__ import annotations

TRUST = "trust"
"""As ``check``: what the phase needs may not run in a folder that is not trusted."""


class PhaseFailed(Exception):
    """The phase fails, and with it the run."""

    def __init__(self, reason: str, check: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.check = check
        """The check that failed: ``output_schema``, the name of a validator, or ``TRUST``."""


class PhaseBlocked(PhaseFailed):
    """A blocking ward ended the run."""
