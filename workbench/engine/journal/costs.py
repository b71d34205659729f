"""What a run cost: its answered calls, as billed where a bill is known and as predicted for their input where none is,
and its embeddings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

EXACT = frozenset({"exact", "billed"})
"""Grades of a bill: by the provider's own price list, or stated by the provider."""


class CallCost(NamedTuple):
    """One answered call, in US dollars; None where a number is not known."""

    billed: float | None
    grade: str = "unknown"
    """Of the bill, one of ``EXACT`` where the provider or its price list says so."""
    predicted: float | None = None
    """What the forecast said of its input."""


class CostSum(Struct, frozen=True):
    """Money of answered calls and of embeddings, in US dollars."""

    billed: float = 0.0
    predicted: float = 0.0
    """For the input of calls whose cost is not known: what the forecast said."""
    exact: bool = True
    """No part is predicted or estimated."""
    unknown: int = 0
    """Calls with neither, and one more where a price of embeddings is not known."""
    unbilled: int = 0
    """Calls without a bill, predicted or not, and one more where a price of embeddings is not known."""
    calls: int = 0
    embedded: int = 0
    """1 for each run that embedded texts: all embeddings of a run count as one request."""

    @classmethod
    def sum(cls, paid: Iterable[CallCost], embeddings: Embeddings | None = None) -> CostSum:
        """Of calls one by one, and of embeddings, which nobody predicts."""
        calls = list(paid)
        made = embeddings is not None and bool(embeddings.texts)
        cost = embeddings.cost if embeddings is not None and made else 0.0
        unbilled = [call.predicted for call in calls if call.billed is None]
        return cls(
            sum(call.billed for call in calls if call.billed is not None) + (cost or 0.0),
            sum(cost for cost in unbilled if cost is not None),
            not unbilled and cost is not None and all(call.grade in EXACT for call in calls),
            sum(1 for cost in unbilled if cost is None) + (cost is None),
            len(unbilled) + (cost is None),
            len(calls),
            int(made),
        )

    def __add__(self, other: CostSum) -> CostSum:
        return CostSum(
            self.billed + other.billed,
            self.predicted + other.predicted,
            self.exact and other.exact,
            self.unknown + other.unknown,
            self.unbilled + other.unbilled,
            self.calls + other.calls,
            self.embedded + other.embedded,
        )

    def as_stated(self, cost: float | None) -> CostSum:
        """The same, or where no call has a bill and the source states one of the whole run, US dollars, that one."""
        if not cost or self.billed or not self.calls:
            return self
        return replace(self, billed=cost, predicted=0.0, exact=True, unknown=0, unbilled=0)

    @property
    def total(self) -> float | None:
        """All that is known or predicted; None where nothing is."""
        return None if self.calls + self.embedded == self.unknown else self.billed + self.predicted


class Embeddings(Struct, frozen=True):
    """What the embeddings of a run took; they belong to no call."""

    texts: int = 0
    by: str = ""
    """Who made them, as it names itself."""
    tokens: int | None = 0
    """None where a provider did not say."""
    cost: float | None = 0.0
    """US dollars; None where a price is not known."""
    failed: int = 0
    """Requests that gave none."""

    @classmethod
    def of(cls, embedded: Iterable[Mapping[str, Any]]) -> Embeddings | None:
        """Of ``embedded`` data, of events and of searches in folders; None for a run that embedded nothing."""
        events = list(embedded)
        made = [data for data in events if not data.get("fault")]
        tokens = [data.get("tokens") for data in made]
        costs = [data.get("cost") for data in made]
        if not events:
            return None
        return cls(
            sum(data.get("texts", len(data.get("keys", ()))) for data in made),
            next((str(data["by"]) for data in reversed(made) if data.get("by")), ""),
            None if None in tokens else sum(number for number in tokens if number is not None),
            None if None in costs else sum(cost for cost in costs if cost is not None),
            len(events) - len(made),
        )
