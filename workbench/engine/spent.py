"""What answered calls cost: as billed where a bill is known, as predicted for their input where none is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from workbench.engine.parts import CallState


class Paid(NamedTuple):
    """One answered call, in US dollars; None where a number is not known."""

    billed: float | None
    grade: str = "unknown"
    """Of the bill: ``exact`` where the provider or its price list says so."""
    predicted: float | None = None
    """What the forecast said of its input."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Money of answered calls, in US dollars."""

    billed: float = 0.0
    predicted: float = 0.0
    """For the input of calls whose cost is not known: what the forecast said."""
    exact: bool = True
    """No part is predicted or estimated."""
    unknown: int = 0
    """Calls with neither."""
    calls: int = 0

    @classmethod
    def of(cls, calls: Iterable[CallState]) -> Spent:
        """Of the calls that were answered."""
        answered = (call for call in calls if call.answer is not None)
        return cls.sum(
            Paid(call.cost, call.cost_grade, call.forecast.cost if call.forecast else None) for call in answered
        )

    @classmethod
    def sum(cls, paid: Iterable[Paid]) -> Spent:
        """Of calls one by one."""
        calls = list(paid)
        unbilled = [call.predicted for call in calls if call.billed is None]
        return cls(
            sum(call.billed for call in calls if call.billed is not None),
            sum(cost for cost in unbilled if cost is not None),
            not unbilled and all(call.grade == "exact" for call in calls),
            sum(1 for cost in unbilled if cost is None),
            len(calls),
        )

    @property
    def total(self) -> float | None:
        """All that is known or predicted; None where nothing is."""
        return None if self.calls == self.unknown else self.billed + self.predicted
