"""The cost of a run: its answered calls, as billed if a bill is known and else as predicted for their input and by the
price of their output, and its embeddings. What a recording answered was billed to the run that asked it, and is said
apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import fsum
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from workbench.context.cache import Price, input_cost
from workbench.engine.journal.usage import Usage

EXACT = frozenset({"exact", "billed"})
"""Grades of a bill: by the provider's own price list, or stated by the provider."""


def stated_input_cost(usage: Usage, price: Price) -> float | None:
    """US dollars for the input that a provider counted; None if its count, or the price of the input, is unknown."""
    if usage.input is None:
        return None
    cached, written = usage.cached or 0, usage.written or 0
    return input_cost(price, cached, max(usage.input - cached - written, 0), written, hour=usage.written_hour or 0)


class PredictedCost(NamedTuple):
    """What an answered call without a bill is expected to have cost, in US dollars."""

    cost: float | None
    """None if no price of the input is known."""
    whole: bool = True
    """Whether the output is in it, or there was none."""

    @classmethod
    def of(cls, of_input: float | None, output: int | None, price: float | None) -> PredictedCost:
        """``of_input``: the forecast of its input; ``output``: its counted tokens, at ``price`` each. None for an
        unknown number."""
        if of_input is None or output is None or (output and price is None):
            return cls(of_input, whole=of_input is None)
        return cls(of_input + output * (price or 0.0))


class CallCost(NamedTuple):
    """One answered call, in US dollars; None for an unknown number."""

    billed: float | None
    grade: str = "unknown"
    """Grade of the bill; ``EXACT`` if the provider or its price list states it."""
    predicted: float | None = None
    """The forecast of its input, and its output by its price."""
    recorded: bool = False
    """Answered from a recording: the bill is of the run that asked for the answer, not of this one."""
    whole: bool = True
    """Whether the output is in what was predicted."""

    @property
    def total(self) -> float | None:
        """Its bill, else what was predicted."""
        return self.predicted if self.billed is None else self.billed

    @property
    def exact(self) -> bool:
        """Whether the provider or its price list states the bill."""
        return self.grade in EXACT

    @property
    def own(self) -> float | None:
        """What this run was billed for it: 0 for a recorded answer, None if unknown."""
        return 0.0 if self.recorded else self.billed

    @property
    def spent(self) -> float | None:
        """Likewise, or what was predicted."""
        return 0.0 if self.recorded else self.total

    @property
    def before(self) -> float | None:
        """What a recorded answer cost when it was asked for; None if unknown, and for a call that was made."""
        return self.total if self.recorded else None


class CostSum(Struct, frozen=True):
    """Money of answered calls and of embeddings, in US dollars."""

    billed: float = 0.0
    predicted: float = 0.0
    """Predicted cost of calls without a bill: of their input, and of the output whose tokens and price are known."""
    exact: bool = True
    """No part is predicted or estimated."""
    unknown: int = 0
    """Calls with neither bill nor prediction, and one more if a price of embeddings is unknown."""
    unbilled: int = 0
    """Calls without a bill, predicted or not, and one more if a price of embeddings is unknown."""
    calls: int = 0
    """Calls that a provider answered."""
    embedded: int = 0
    """1 for each run that embedded texts: all embeddings of a run count as one request."""
    recorded: float = 0.0
    """What the recorded answers and embeddings cost when they were asked for, as billed or else as predicted; no part
    of the sums above."""
    recorded_exact: bool = True
    """No part of ``recorded`` is predicted, estimated or unknown."""
    recorded_calls: int = 0
    """Calls that a recording answered: they cost nothing."""
    halves: int = 0
    """Calls of which the input alone is predicted: the tokens of their output, or its price, are unknown."""

    @classmethod
    def sum(cls, paid: Iterable[CallCost], embeddings: Embeddings | None = None) -> CostSum:
        """The sum over calls, and over embeddings, for which no prediction exists. It is the same in whatever order
        they come."""
        calls = list(paid)
        made = embeddings is not None and bool(embeddings.texts)
        cost = embeddings.cost if embeddings is not None and made else 0.0
        made_calls = [call for call in calls if not call.recorded]
        unbilled = [call.predicted for call in made_calls if call.billed is None]
        before = [(call.before, call.exact) for call in calls if call.recorded]
        before += [(embeddings.recorded, True)] if embeddings is not None and embeddings.recorded else []
        return cls(
            fsum(call.billed for call in made_calls if call.billed is not None) + (cost or 0.0),
            fsum(cost for cost in unbilled if cost is not None),
            not unbilled and cost is not None and all(call.exact for call in made_calls),
            sum(1 for cost in unbilled if cost is None) + (cost is None),
            len(unbilled) + (cost is None),
            len(made_calls),
            int(made),
            fsum(cost for cost, _ in before if cost is not None),
            all(exact and cost is not None for cost, exact in before),
            len(calls) - len(made_calls),
            sum(1 for call in made_calls if call.billed is None and call.predicted is not None and not call.whole),
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
            self.recorded + other.recorded,
            self.recorded_exact and other.recorded_exact,
            self.recorded_calls + other.recorded_calls,
            self.halves + other.halves,
        )

    @property
    def worth(self) -> CostSum:
        """The same as if the recorded answers had been asked for: what this work costs, whoever was billed."""
        return replace(
            self,
            billed=self.billed + self.recorded,
            exact=self.exact and self.recorded_exact,
            calls=self.calls + self.recorded_calls,
            recorded=0.0,
            recorded_exact=True,
            recorded_calls=0,
        )

    def as_stated(self, cost: float | None) -> CostSum:
        """This sum, or, if no call has a bill and the source states one of the whole run (US dollars), that bill."""
        if not cost or self.billed or not self.calls:
            return self
        return replace(self, billed=cost, predicted=0.0, exact=True, unknown=0, unbilled=0, halves=0)

    @property
    def partial(self) -> int:
        """How many of its parts have no price, or lack that of their output."""
        return self.unknown + self.halves

    @property
    def total(self) -> float | None:
        """All that is known or predicted, 0 if a recording answered all; None if nothing is known."""
        made = self.calls + self.embedded
        if made == self.unknown and (made or not self.recorded_calls):
            return None
        return self.billed + self.predicted


class Embeddings(Struct, frozen=True):
    """Tokens and cost of the embeddings of a run; they belong to no call."""

    texts: int = 0
    by: str = ""
    """The embedding model, as it names itself."""
    tokens: int | None = 0
    """None if a provider stated none."""
    cost: float | None = 0.0
    """US dollars, without those that a recording held; None if a price is unknown."""
    failed: int = 0
    """Failed requests."""
    recorded: float = 0.0
    """US dollars that those of a recording cost when they were made, as far as known."""

    @classmethod
    def of(cls, embedded: Iterable[Mapping[str, Any]]) -> Embeddings | None:
        """The embeddings in ``embedded`` data, of events and of searches in folders; None for a run that embedded
        nothing.
        """
        events = list(embedded)
        made = [data for data in events if not data.get("fault")]
        tokens = [data.get("tokens") for data in made]
        costs = [data.get("cost") for data in made if not data.get("recorded")]
        before = (data.get("cost") for data in made if data.get("recorded"))
        if not events:
            return None
        return cls(
            sum(data.get("texts", len(data.get("keys", ()))) for data in made),
            next((str(data["by"]) for data in reversed(made) if data.get("by")), ""),
            None if None in tokens else sum(number for number in tokens if number is not None),
            None if None in costs else sum(cost for cost in costs if cost is not None),
            len(events) - len(made),
            sum(cost or 0.0 for cost in before),
        )
