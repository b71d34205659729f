"""Requests without an answer: failed tries, and calls that were repeated after a stop."""

from __future__ import annotations

from typing import Any

from workbench.context.place import Place
from workbench.dollars import money
from workbench.engine.journal.event import Event


class Unanswered:
    """Give it the events of a run in order. No sum of the run has these numbers: an answer has a bill, a try may."""

    def __init__(self) -> None:
        self.tries = 0
        """Failed tries whose tokens the provider reported."""
        self.tokens_in = 0
        self.tokens_out = 0
        self.cost: float | None = 0.0
        """US dollars of those tokens; None where a price is not known."""
        self.again = 0
        """Calls that were under way when the run was stopped or killed, and were sent once more: they may be billed
        twice."""
        self._running: set[Place] = set()

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
                self.again += len(self._running)
                self._running.clear()
            case _:
                pass

    def to_json(self) -> dict[str, Any]:
        """The numbers by name."""
        names = ("tries", "tokens_in", "tokens_out", "cost", "again")
        return {name: getattr(self, name) for name in names}

    def _failed(self, usage: Any, cost: Any) -> None:
        if not isinstance(usage, dict):
            return
        self.tries += 1
        self.tokens_in += _count(usage.get("input"))
        self.tokens_out += _count(usage.get("output"))
        self.cost = self.cost + cost if self.cost is not None and isinstance(cost, int | float) else None

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


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0
