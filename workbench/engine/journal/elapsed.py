"""How long a run ran: the one rule for lists, screens, SQL and exports."""

from __future__ import annotations

from datetime import datetime

from workbench.engine.journal.event import Event


class Elapsed:
    """Adds up the stretches of a run: from its start, and from each resume, to the last event before the next.

    What lies between two stretches is no time of the run, and neither is the recorded past of a fork, whose events are
    older than its start. A stretch that was killed ends with its last event. The times of one stretch are of one
    monotonic clock (``SystemClock``); where an old journal's go back, nothing is taken off.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._before = 0.0
        """Of the stretches before."""
        self._since: datetime | None = None

    def take(self, event: Event) -> None:
        """The next event of the journal; one whose time is none adds nothing."""
        try:
            at = datetime.fromisoformat(event.at)
            if event.kind in ("run_started", "run_resumed") or self._since is None:
                self._before, self._since = self.seconds, at
            self.seconds = max(self.seconds, self._before + (at - self._since).total_seconds())
        except (TypeError, ValueError):
            return

    def whole(self, *, finished: bool, imported: bool) -> float | None:
        """Seconds of the run; None until it has ended, and where an imported file names no times."""
        return self.seconds if finished and (self.seconds or not imported) else None
