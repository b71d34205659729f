"""A run that was cut off together with the one that started it, as its journal holds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from workbench.engine.journal.event import Event
from workbench.engine.journal.figures import Figures, FiguresFold
from workbench.engine.journal.repeats import Repeats
from workbench.engine.journal.unanswered import Unanswered

Inside = Callable[[str], Sequence[Event] | None]
"""The events of a run by its id; None if it left no journal."""


class RunTotals:
    """What a run took, with the runs inside it, from its events alone."""

    def __init__(self) -> None:
        self.figures = FiguresFold()
        self.unanswered = Unanswered()
        self._repeats = Repeats()

    def take(self, event: Event) -> None:
        """The next event."""
        if not self._repeats.takes(event):
            self.figures.take(event)
            self.unanswered.take(event)

    def cut_off(self, inside: Inside) -> Figures:
        """The figures of a run that never goes on; its calls that are under way are counted among the unanswered ones.
        The runs inside it that have not ended never go on either."""
        self.unanswered.cut_off()
        known: dict[str, Figures] = {}
        for run_id in self.figures.children.open:
            if (events := inside(run_id)) is not None:
                totals = RunTotals.of(events)
                known[run_id] = totals.cut_off(inside)
                self.unanswered.add(run_id, totals.unanswered.to_json())
        return self.figures.own + self.figures.children.figures(known)

    @classmethod
    def of(cls, events: Sequence[Event]) -> RunTotals:
        """Of all its events so far."""
        totals = cls()
        for event in events:
            totals.take(event)
        return totals


class PastRun(Struct, frozen=True):
    """A run inside one that is resumed."""

    run_id: str
    events: Sequence[Event]
    inside: Inside
    number: int = 0
    """How many runs it took the place of, because their text or input was another one."""

    def began_with(self, sha256: str, includes: Mapping[str, str], input: Mapping[str, Any]) -> bool:
        """Returns whether it runs this text (by its digest) with these included texts and this input."""
        begun = self.events[0].data
        same = begun.get("includes", includes) == includes and begun.get("input") == input
        return same and begun.get("cascade_sha256") == sha256

    def replaced(self) -> dict[str, Any]:
        """The run, when another one is started in its place, for the event that says so: what it took counts beside
        what the new one takes."""
        totals = RunTotals.of(self.events)
        took = totals.cut_off(self.inside)
        unanswered = {"unanswered": totals.unanswered.to_json()} if totals.unanswered.whole else {}
        return {"run_id": self.run_id, "ended": self.events[-1].at, "took": took.to_json(), **unanswered}
