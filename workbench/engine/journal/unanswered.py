"""Requests without an answer: failed tries, and calls that were repeated after a stop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from workbench.context.place import Place
from workbench.dollars import money
from workbench.engine.journal.event import Event


class UnansweredCounts(Struct, frozen=True):
    """The numbers of one run, or of several. ``+`` adds two."""

    tries: int = 0
    """Failed tries whose tokens the provider reported."""
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = 0.0
    """US dollars of those tries; None where a price is not known."""
    again: int = 0
    """Calls that were under way when the run was stopped or killed, and were sent once more: they may be billed
    twice."""

    @classmethod
    def from_json(cls, body: object) -> UnansweredCounts:
        """The inverse of ``to_json``; nothing for invalid data, which a journal may hold."""
        try:
            return msgspec.convert(body, cls)
        except msgspec.ValidationError:
            return cls()

    def to_json(self) -> dict[str, Any]:
        """The numbers by name."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found

    def __add__(self, other: UnansweredCounts) -> UnansweredCounts:
        return UnansweredCounts(
            self.tries + other.tries,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            None if self.cost is None or other.cost is None else self.cost + other.cost,
            self.again + other.again,
        )

    def __bool__(self) -> bool:
        return bool(self.tries or self.again)

    def __str__(self) -> str:
        """In words; empty if there is nothing to report."""
        said = []
        if self.tries:
            which = "1 failed try" if self.tries == 1 else f"{self.tries:,} failed tries"
            said.append(f"{which}: {self.tokens_in:,} tokens in, {self.tokens_out:,} out reported, {money(self.cost)}")
        if self.again:
            which = "1 call was" if self.again == 1 else f"{self.again:,} calls were"
            said.append(f"{which} under way at a stop and sent again: the provider may bill both")
        return f"not in the sums: {'; '.join(said)}" if said else ""


class Unanswered:
    """Give it the events of a run in order. No sum of the run has these numbers: an answer has a bill, a try may."""

    def __init__(self) -> None:
        self.own = UnansweredCounts()
        """Of the run itself."""
        self._inside: dict[str, UnansweredCounts] = {}
        """Of the runs that it started, with those inside them, by run id."""
        self._running: set[Place] = set()

    @property
    def whole(self) -> UnansweredCounts:
        """Of the run and of those inside it."""
        return sum(self._inside.values(), self.own)

    def take(self, event: Event) -> None:
        """The next event."""
        match event.kind:
            case "call_started":
                self._running.add(event.place)
            case "call_finished":
                self._running.discard(event.place)
            case "call_failed":
                self._running.discard(event.place)
                self._failed(event.data.get("usage"), event.data.get("cost"))
            case "run_resumed":
                self.cut_off()
            case "child_started":
                if isinstance(before := event.data.get("replaces"), Mapping):
                    self.add(str(before.get("run_id", "")), before.get("unanswered"))
            case "child_finished":
                self.add(str(event.data.get("run_id", "")), event.data.get("unanswered"))
            case _:
                pass

    def cut_off(self) -> None:
        """The calls that are under way get no answer: they are sent again."""
        self.own += UnansweredCounts(again=len(self._running))
        self._running.clear()

    def add(self, run_id: str, counts: object) -> None:
        """The numbers of a run that this one started, as JSON, in the place of those that it had before."""
        if counts:
            self._inside[run_id] = UnansweredCounts.from_json(counts)

    def to_json(self) -> dict[str, Any]:
        """The numbers by name, with those of the runs inside it."""
        return self.whole.to_json()

    def _failed(self, usage: Any, cost: Any) -> None:
        if not isinstance(usage, dict):
            return
        known = float(cost) if isinstance(cost, int | float) else None
        self.own += UnansweredCounts(1, _count(usage.get("input")), _count(usage.get("output")), known)

    def __str__(self) -> str:
        return str(self.whole)


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0
