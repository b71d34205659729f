"""How long a run ran, and how long it was paused: the one rule for lists, screens, SQL and exports."""

from __future__ import annotations

from bisect import bisect_left
from datetime import datetime, timedelta
from math import inf

from workbench.engine.journal.event import Event, timestamp


class Stretches:
    """Stretches of time as seconds since 1970, merged where they meet."""

    def __init__(self) -> None:
        self._all: list[tuple[float, float]] = []

    def add(self, start: float, end: float) -> None:
        """Add a stretch; it may overlap others. One without length adds nothing."""
        if end <= start:
            return
        at = bisect_left(self._all, start, key=lambda one: one[1])
        last = at
        while last < len(self._all) and self._all[last][0] <= end:
            last += 1
        met = self._all[at:last]
        start, end = min([start, *(one[0] for one in met)]), max([end, *(one[1] for one in met)])
        self._all[at:last] = [(start, end)]

    @property
    def seconds(self) -> float:
        """Of all of them."""
        return sum(end - start for start, end in self._all)

    def until(self, at: str) -> float:
        """Seconds of them before an ``Event.at``."""
        return self.within(-inf, timestamp(at)) if self._all else 0.0

    def between(self, start: str, end: str) -> None:
        """Add the stretch from one ``Event.at`` to another; nothing if one of them is not a time."""
        try:
            self.add(timestamp(start), timestamp(end))
        except ValueError:
            return

    def join(self, others: Stretches) -> None:
        """All of the others."""
        for start, end in others._all:
            self.add(start, end)

    def outside(self, others: Stretches) -> float:
        """Seconds of them that lie in none of the others."""
        return sum(end - start - others.within(start, end) for start, end in self._all)

    def within(self, start: float, end: float) -> float:
        """Seconds of them between two times."""
        first = bisect_left(self._all, start, key=lambda one: one[1])
        total = 0.0
        for a, b in self._all[first:]:
            if a >= end:
                break
            total += min(b, end) - max(a, start)
        return total


class Elapsed:
    """Adds up the stretches of a run: from its start, and from each resume, to the last event before the next.

    What runs inside it did after that event belongs to the stretch (``run_resumed.until``).
    What lies between two stretches is not part of the run's time, nor is the recorded past of a fork, whose events are
    older than its start, nor the time for which the run was paused. A stretch that was killed ends with its last event.
    The times of one stretch are of one monotonic clock (``SystemClock``); where an old journal's go back, nothing is
    taken off. The events of a run that another program made come in any order: it began with the earliest of them.
    """

    def __init__(self) -> None:
        self._passed = 0.0
        """Seconds with the pauses."""
        self._before = 0.0
        """Of the stretches before."""
        self._since: datetime | None = None
        self._imported = False
        self.pauses = Stretches()
        """When the run was paused, by the clock of the events."""
        self.paused = 0.0
        """Seconds for which it was."""

    @property
    def seconds(self) -> float:
        """How long it ran so far, without its pauses."""
        return max(self._passed - self.paused, 0.0)

    def take(self, event: Event) -> bool:
        """Take the next event of the journal; one without a valid time adds nothing. Returns whether the run began with
        it, although others were told before."""
        earlier = False
        try:
            at = datetime.fromisoformat(event.at)
            if event.kind == "run_started":
                self._imported = "imported" in (event.data.get("ports") or ())
            if event.kind == "run_resumed" and self._since is not None and (until := event.data.get("until")):
                stretch = (datetime.fromisoformat(until) - self._since).total_seconds()
                self._passed = max(self._passed, self._before + stretch)
            if event.kind in ("run_started", "run_resumed") or self._since is None:
                self._before, self._since = self._passed, at
            if earlier := self._imported and at < self._since:
                self._passed, self._since = self._passed + (self._since - at).total_seconds(), at
            self._passed = max(self._passed, self._before + (at - self._since).total_seconds())
            if event.kind == "paused":
                self._pause(at, self._since, event.data.get("seconds"))
        except (TypeError, ValueError, OverflowError):
            return False
        return earlier

    def _pause(self, at: datetime, since: datetime, seconds: object) -> None:
        """Add a pause until ``at``. Candidates can be paused at the same time.

        A run that repeats a recording gives its own pauses the recorded times, which are older than its start: such a
        pause counts in full. Pauses of the recording itself are never repeated.
        """
        if not isinstance(seconds, int | float) or isinstance(seconds, bool):
            return
        began = at - timedelta(seconds=seconds)
        start, end = (began if at <= since else max(began, since)).timestamp(), at.timestamp()
        self.paused += max(end - start, 0.0) - self.pauses.within(start, end)
        self.pauses.add(start, end)

    def whole(self, *, finished: bool, imported: bool) -> float | None:
        """Seconds of the run; None until it has ended, and if an imported file names no times."""
        return self.seconds if finished and (self.seconds or not imported) else None
