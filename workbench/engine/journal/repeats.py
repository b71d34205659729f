"""Finds events that repeat an earlier one: a resumed run passes over those that its journal holds, and some journals
hold events that a resume wrote again."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Any

from workbench.context.place import Place
from workbench.engine.journal.event import Event

_TOLD_BY = ("hash", "digest", "index", "key", "status", "try", "type", "number", "content_hash")
"""Data that tells two events of one kind and place apart. Times, texts and prices do not: a tool may answer anew."""

_ENDS = frozenset({"run_started", "run_resumed", "run_finished", "call_failed", "blob", "warning"})
"""Kinds that a journal may hold twice in truth, or that no total counts."""


def same_as(kind: str, place: Place, data: Mapping[str, Any]) -> int:
    """Equal for two events that are the same happening; holds within one process."""
    told = tuple(map(data.get, _TOLD_BY)) if data else ()
    try:
        return hash((kind, place, told))
    except TypeError:  # Of a damaged journal.
        return hash((kind, place, str(told)))


class PastEvents:
    """The events of a resumed run, to be found again one by one as the engine repeats them.

    Only the order within a branch means anything: candidates answered from a journal run side by side in another order
    than they did live."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._blobs: dict[str, Event] = {}
        self._branches: dict[str, list[Event]] = {}
        self._resumed = [0]
        """Sequence numbers at which the run went on."""
        self._answered: set[Place] = set()
        self.last_at = ""
        """When the last of them happened."""
        for event in events:
            self.last_at = event.at
            if event.kind == "blob":
                self._blobs[str(event.data.get("hash"))] = event
            elif event.kind == "run_resumed":
                self._resumed.append(event.seq)
            elif event.kind != "paused":  # The engine does not pause again in what it repeats.
                self._branches.setdefault(event.place.branch, []).append(event)
                if event.kind == "call_finished":
                    self._answered.add(event.place)
        for left in self._branches.values():
            left.reverse()

    def find(self, kind: str, place: Place, data: Mapping[str, Any]) -> Event | None:
        """The journaled event that equals this one. None for a new event; after one, no event of its branch is found
        any more.

        Events that a stop or a failure left behind the place where the run resumed are skipped.
        """
        if kind == "blob":
            return self._blobs.pop(str(data.get("hash")), None)
        left = self._branches.get(place.branch)
        if not left:
            return None
        news = kind in ("call_started", "call_failed") and place not in self._answered
        if not news:  # A call without an answer is sent again, which may be billed again, and may fail again.
            wanted = same_as(kind, place, data)
            at = self._position(left, wanted)
            if at is not None and kind == "call_started":
                at = self._last_start(left, at)
            if at is not None:
                found = left[at]
                del left[at:]
                return found
        del self._branches[place.branch]
        return None

    def _position(self, left: list[Event], wanted: int) -> int | None:
        """Index in ``left``, whose next event is its last: that one, or one of those after the next resume."""
        if _key(left[-1]) == wanted:
            return len(left) - 1
        resumed = bisect_left(self._resumed, left[-1].seq)
        if resumed == len(self._resumed):
            return None
        behind = self._resumed[resumed]
        return next((i for i in range(len(left) - 1, -1, -1) if left[i].seq > behind and _key(left[i]) == wanted), None)

    def _last_start(self, left: list[Event], at: int) -> int:
        """Index of the start that led to the answer: a call that a stop cut off is started once more behind each
        resume."""
        first = left[at]
        wanted, resumed = _key(first), bisect_left(self._resumed, first.seq)
        if resumed == len(self._resumed):
            return at
        for index in range(at - 1, -1, -1):
            event = left[index]
            if event.kind == "call_finished" and event.place == first.place:
                break
            if event.seq > self._resumed[resumed] and _key(event) == wanted:
                at = index
        return at


def _key(event: Event) -> int:
    return same_as(event.kind, event.place, event.data)


class Repeats:
    """Finds the events that a resume wrote again, in a journal read from its start.

    Release 0.1.0 journaled, from the second resume of a run on, all events since the first stop again. A
    ``run_resumed`` that says ``after`` is of a later release, and nothing behind it is a repeat.
    """

    def __init__(self) -> None:
        self._branches: dict[str, array[int]] = {}
        self._next: dict[str, int] = {}
        """By branch, the index in its array where the next repeat is looked for; absent once the branch has
        new events.
        """
        self._doubtful = False

    def takes(self, event: Event) -> bool:
        """Returns whether this is a repeat. Give it every event of the journal, in order."""
        kind, place = event.kind, event.place
        if kind == "run_resumed":
            self._doubtful = "after" not in event.data
            self._next = dict.fromkeys(self._branches, 0) if self._doubtful else {}
            return False
        if kind in _ENDS or event.data.get("status") in ("stopped", "failed"):
            return False
        if (known := self._branches.get(place.branch)) is None:
            known = self._branches[place.branch] = array("q")
        key = same_as(kind, place, event.data)
        if self._doubtful and (start := self._next.get(place.branch)) is not None:
            try:
                self._next[place.branch] = known.index(key, start) + 1
            except ValueError:
                del self._next[place.branch]
            else:
                return True
        known.append(key)
        return False
