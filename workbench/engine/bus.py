"""Live events for whoever subscribes, in any thread: bounded queues, so that a slow one never holds up the run."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator
from threading import Condition
from types import TracebackType

from workbench.engine.event import Event
from workbench.engine.lifecycle import told
from workbench.engine.steering import HookEvent

LOST = "events_lost"
"""Type of the event that says how many a subscriber was too slow for."""


class Subscription:
    """One subscriber's queue. Its oldest events give way where it is full; ``events_lost`` then says how many."""

    def __init__(self, bus: EventBus, size: int, types: Collection[str] | None) -> None:
        self.lost = 0
        """Events that this subscriber never got, so far."""
        self._bus = bus
        self._size = max(1, size)
        self._types = None if types is None else frozenset(types)
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
        """No more events; what is in the queue can still be read."""
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
        if self._types is not None and event.type not in self._types:
            return
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

    def subscribe(self, size: int = 1000, *, types: Collection[str] | None = None) -> Subscription:
        """A new queue of at most ``size`` events, of some types or of all."""
        subscription = Subscription(self, size, types)
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
        """What a run calls with each event of its journal."""
        sessions: dict[str, str] = {}

        def observe(event: Event) -> None:
            if event.kind == "run_started":
                sessions[event.run_id] = event.data.get("session_id", "")
            if (found := told(event, sessions.get(event.run_id, ""))) is not None:
                self.publish(found)

        return observe
