"""How the time of a run or of a visit divides into calls, tools, child runs, questions to people, and the rest."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from msgspec import Struct

from workbench.engine.journal.elapsed import Stretches
from workbench.engine.journal.parts import CallState, VisitState
from workbench.engine.journal.state import RunState


class TimeSplit(Struct, frozen=True):
    """In seconds, pauses left out. ``busy + people + overhead`` is ``total``; what ran side by side counts once."""

    total: float
    busy: float = 0.0
    """Calls, tools, and runs inside this one."""
    people: float = 0.0
    """Seconds in which a person was asked and nothing else ran."""
    overhead: float = 0.0
    """The rest: templates, checks, the journal, and waiting for the machine."""


def time_split(run: RunState, visit: VisitState | None = None) -> TimeSplit | None:
    """Of a run, or of one of its visits; None until it has ended, and if times are unknown."""
    visits, calls = (run.visits, run.calls) if visit is None else ([visit], visit.calls)
    total = run.seconds if visit is None else visit.seconds
    pauses = run.elapsed.pauses if visit is None else visit.pauses
    started = run.started if visit is None else visit.started
    if total is None:
        return None
    away = Stretches()
    away.join(pauses)
    away.between("1970-01-01T00:00:00Z", started)  # The recorded past of a fork is no time of its own.
    busy = _busy(calls, visits)
    for gap in run.gaps:
        away.between(*gap)
    ran = min(busy.without(away), total)
    people = Stretches()
    for wait in run.people:
        if visit is None or wait.place.visit_key == (visit.branch, visit.phase, visit.visit):
            people.between(wait.asked, wait.answered)
    away.join(busy)
    waited = min(people.without(away), total - ran)
    return TimeSplit(total, ran, waited, total - ran - waited)


def _busy(calls: Iterable[CallState], visits: Iterable[VisitState]) -> Stretches:
    known = list(visits)
    busy = Stretches()
    for call in calls:
        busy.between(call.started, call.finished)
    of_calls = (call.tools for call in calls)
    for tool in chain(*of_calls, *(visit.tool_tries for visit in known)):
        busy.between(tool.started, tool.finished)
    for times in (times for visit in known for times in visit.child_times.values()):
        busy.between(*times)
    return busy
