"""Predicts the cost of a program's calls under another context strategy while they happen. Nothing of it is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from workbench.context.assembler import Assembler
from workbench.context.assembly import Assembly
from workbench.context.cache import Prices
from workbench.context.marks import NO_MARKS
from workbench.context.strategy import Strategy
from workbench.context.tokens import Counter
from workbench.engine.forecasting import Forecaster, Prediction
from workbench.importers.journal import ContextWriter


class Sums(Struct):
    """Input of all calls so far: tokens, and US dollars where every price is known."""

    tokens: int = 0
    cost: float | None = 0.0

    def add(self, prediction: Prediction) -> None:
        """Count one more call."""
        forecast = prediction.forecast
        self.tokens += forecast.tokens or 0
        self.cost = None if self.cost is None or forecast.cost is None else self.cost + forecast.cost


class OtherStrategy:
    """Prices each request beside the one that is sent: both by the same counts and the same rules of the cache."""

    def __init__(self, strategy: Strategy, counter: Counter, prices: Prices) -> None:
        self.strategy = strategy
        self._counter = counter
        self._prices = prices
        self._assemblers: dict[ContextWriter, tuple[Assembler, int]] = {}
        self._known: dict[tuple[str, bool], Forecaster] = {}
        self.sent, self.other = Sums(), Sums()

    def priced(self, writer: ContextWriter, now: float) -> Mapping[str, Any]:
        """The data of a ``what_if`` event for the request that a context has just assembled, at ``now`` (seconds)."""
        assert writer.assembly is not None
        assembler, known = self._assemblers.get(writer, (None, 0))
        if assembler is None or known > len(writer.items):
            assembler, known = Assembler(writer.scope, self.strategy, self._counter), 0
        for item in writer.items[known:]:
            assembler.add(item)
        self._assemblers[writer] = assembler, len(writer.items)
        parameters = writer.assembly.request.parameters
        other = assembler.assemble(writer.at, parameters=parameters)
        invalid = other.problems[0].message if len(other.problems) > len(writer.assembly.problems) else ""
        as_is, instead = self._predicted(writer.assembly, now, real=True), self._predicted(other, now, real=False)
        self.sent.add(as_is)
        self.other.add(instead)
        return {
            "strategy": str(self.strategy),
            "tokens": instead.forecast.tokens,
            "cached": instead.forecast.cached,
            "cost": instead.forecast.cost,
            "sent_tokens": as_is.forecast.tokens,
            "sent_cost": as_is.forecast.cost,
            "all_tokens": self.other.tokens,
            "all_cost": self.other.cost,
            "all_sent_tokens": self.sent.tokens,
            "all_sent_cost": self.sent.cost,
            "invalid": invalid,
        }

    def forget(self, writer: ContextWriter) -> None:
        """A context is over."""
        self._assemblers.pop(writer, None)

    def _predicted(self, assembly: Assembly, now: float, *, real: bool) -> Prediction:
        key = assembly.request.model, real
        if (forecaster := self._known.get(key)) is None:
            forecaster = self._known[key] = Forecaster(key[0], self._counter, self._prices, NO_MARKS)
        prediction = forecaster.predict(assembly, now)
        forecaster.sent(assembly, now)
        return prediction
