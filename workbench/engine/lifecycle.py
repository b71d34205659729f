"""The life of a run in the words of hooks and subscribers, and how the journal's events are told in them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from threading import Condition
from types import TracebackType
from typing import Any

from workbench.context.place import Place
from workbench.engine.contracts import HookEvent
from workbench.engine.journal.event import Event

TYPES = (
    "cascade_start",
    "phase_start",
    "turn_start",
    "tool_call",
    "tool_result",
    "phase_complete",
    "cascade_complete",
    "cascade_error",
)
HOOKS = tuple(f"on_{type}" for type in TYPES)
"""Names of hooks; each is told of the events of the type behind ``on_``."""


def told(event: Event, session_id: str) -> HookEvent | None:
    """An event of the journal as subscribers get it; None if it does not belong to the life cycle."""
    reader = _READERS.get(event.kind)
    found = reader(event.place, event.data) if reader is not None else None
    if found is None:
        return None
    type, data = found
    return HookEvent(type, session_id, event.at, {**where(event.place), **data})


def where(place: Place) -> dict[str, Any]:
    """A place in the words of hooks; what does not apply is left out."""
    names = {"phase_name": place.phase, "branch": place.branch}
    numbers = {"visit": place.visit, "attempt": place.attempt, "turn": place.turn, "call": place.call}
    return {key: value for key, value in {**names, **numbers}.items() if value}


_Told = tuple[str, dict[str, Any]] | None


def _only(type: str, *fields: str) -> Callable[[Place, Mapping[str, Any]], _Told]:
    def read(_: Place, data: Mapping[str, Any]) -> _Told:
        return type, {field: data[field] for field in fields if field in data}

    return read


def _turn(place: Place, data: Mapping[str, Any]) -> _Told:
    """The first try of a turn's first call begins the turn."""
    if not place.turn or place.call != 1 or data.get("try", 1) != 1:
        return None
    return "turn_start", {"model": data.get("model", "")}


def _tool_result(_: Place, data: Mapping[str, Any]) -> _Told:
    told = {"tool": data.get("tool", ""), "result": data.get("text", ""), "is_error": data.get("is_error", False)}
    return "tool_result", told


def _end(_: Place, data: Mapping[str, Any]) -> _Told:
    type = "cascade_complete" if data.get("status") == "success" else "cascade_error"
    return type, {field: data.get(field) for field in ("status", "output", "reason")}


_READERS: Mapping[str, Callable[[Place, Mapping[str, Any]], _Told]] = {
    "run_started": _only("cascade_start", "cascade_id", "input"),
    "phase_started": _only("phase_start", "tools", "model"),
    "call_started": _turn,
    "tool_started": _only("tool_call", "tool", "arguments"),
    "tool_finished": _tool_result,
    "phase_finished": _only("phase_complete", "status", "output", "reason"),
    "run_finished": _end,
}


LOST = "events_lost"
"""Type of the event that says how many a subscriber was too slow for."""


class Subscription:
    """One subscriber's queue. When it is full, its oldest events are dropped; ``events_lost`` says how many."""

    def __init__(self, bus: EventBus, size: int) -> None:
        self.lost = 0
        """Events that this subscriber never got, so far."""
        self._bus = bus
        self._size = max(1, size)
        self._queue: deque[HookEvent] = deque()
        self._missing = 0
        self._closed = False
        self._changed = Condition()

    def get(self, timeout: float | None = None) -> HookEvent | None:
        """The next event; None after ``timeout`` seconds without one, and once the subscription is closed and empty."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closed, timeout)
            if self._missing and self._queue:
                missing, self._missing = self._missing, 0
                first = self._queue[0]
                return HookEvent(LOST, first.session_id, first.timestamp, {"count": missing, "total": self.lost})
            return self._queue.popleft() if self._queue else None

    def __iter__(self) -> Iterator[HookEvent]:
        """Events until the subscription is closed."""
        while (event := self.get()) is not None:
            yield event

    def close(self) -> None:
        """End the subscription; queued events can still be read."""
        self._bus.drop(self)
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def offer(self, event: HookEvent) -> None:
        """Put an event into the queue, at the cost of its oldest."""
        with self._changed:
            if self._closed:
                return
            if len(self._queue) >= self._size:
                self._queue.popleft()
                self.lost += 1
                self._missing += 1
            self._queue.append(event)
            self._changed.notify()


class EventBus:
    """Hands the events of runs to all subscribers. Publishing never waits."""

    def __init__(self) -> None:
        self._subscriptions: tuple[Subscription, ...] = ()
        self._lock = Condition()

    def subscribe(self, size: int = 1000) -> Subscription:
        """A new queue of at most ``size`` events."""
        subscription = Subscription(self, size)
        with self._lock:
            self._subscriptions = (*self._subscriptions, subscription)
        return subscription

    def publish(self, event: HookEvent) -> None:
        for subscription in self._subscriptions:
            subscription.offer(event)

    def drop(self, subscription: Subscription) -> None:
        with self._lock:
            self._subscriptions = tuple(each for each in self._subscriptions if each is not subscription)

    def observer(self) -> Callable[[Event], None]:
        """Returns the function that a run calls with each event of its journal."""
        sessions: dict[str, str] = {}

        def observe(event: Event) -> None:
            if event.kind == "run_started":
                sessions[event.run_id] = event.data.get("session_id", "")
            if (found := told(event, sessions.get(event.run_id, ""))) is not None:
                self.publish(found)

        return observe
