"""Prices the calls of a program under another context strategy while they happen. Nothing of it is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from workbench.context.assembler import Assembler
from workbench.context.assembly import Assembly, Grade
from workbench.context.cache import Expected, Forecast, PrefixCache, Prices
from workbench.context.marks import NO_MARKS
from workbench.context.message import Message
from workbench.context.strategy import Strategy
from workbench.context.tokens import Counter
from workbench.engine.forecasting import Calibration, Prediction
from workbench.engine.journal.usage import Usage
from workbench.importers.journal import ContextWriter


class Sums(Struct):
    """Input of all calls so far: tokens, and US dollars where every price is known."""

    tokens: int = 0
    cost: float | None = 0.0

    def add(self, forecast: Forecast) -> None:
        """Count one more call."""
        self.tokens += forecast.tokens or 0
        self.cost = None if self.cost is None or forecast.cost is None else self.cost + forecast.cost


class _Provider(Struct):
    """What is known of the provider of a model: how it counts, and what it caches on either side."""

    calibration: Calibration = field(default_factory=Calibration)
    sent: PrefixCache = field(default_factory=lambda: PrefixCache(NO_MARKS))
    other: PrefixCache = field(default_factory=lambda: PrefixCache(NO_MARKS))


class OtherStrategy:
    """Prices each answered call beside the one that was sent: both on the scale of the provider's count, and by the
    same rules of the cache.
    """

    def __init__(self, strategy: Strategy, counter: Counter, prices: Prices) -> None:
        self.strategy = strategy
        self._counter = counter
        self._prices = prices
        self._assemblers: dict[ContextWriter, tuple[Assembler, int]] = {}
        self._providers: dict[str, _Provider] = {}
        self.sent, self.other = Sums(), Sums()

    def assembled(self, writer: ContextWriter) -> Assembly:
        """The request of the call that a context waits for, under the strategy."""
        assert writer.assembly is not None
        assembler, known = self._assemblers.get(writer, (None, 0))
        if assembler is None or known > len(writer.items):
            assembler, known = Assembler(writer.scope, self.strategy, self._counter), 0
        for item in writer.items[known:]:
            assembler.add(item)
        self._assemblers[writer] = assembler, len(writer.items)
        return assembler.assemble(writer.at, parameters=writer.assembly.request.parameters)

    def priced(
        self, sent: Assembly, prediction: Prediction, other: Assembly, usage: Usage, answer: Message, now: float
    ) -> Mapping[str, Any]:
        """The data of a ``what_if`` event for a call that was answered at ``now`` (seconds), by what its provider
        counted, else by its prediction; and what ``assembled`` gave for it.
        """
        model = sent.request.model
        provider = self._providers.setdefault(model, _Provider())
        calibration, exact = provider.calibration, sent.grade is Grade.EXACT
        beside = sent.tools_tokens + sent.overhead_tokens
        calibration.learn(sent.entries, sent.prefix_digests[0], beside, usage, exact=exact)
        forecast = None if usage.input else prediction.forecast
        tokens = usage.input or prediction.forecast.tokens or sent.tokens_sent
        anchor = calibration.anchor(sent.entries, beside, tokens, prediction.grade, forecast)
        share = self._counter.range(model)

        def expected(assembly: Assembly) -> Expected:
            return calibration.leaning(assembly, anchor, share, 0.0, unknown=False)

        as_is = self._forecast(provider.sent, sent, now, expected(sent))
        instead = self._forecast(provider.other, other, now, expected(other))
        calibration.said(answer, usage)
        reasoned = bool(usage.reasoning)
        provider.sent.answered(sent, usage.cached, usage.written, reasoned=reasoned)
        if other.request.digest == sent.request.digest:
            provider.other.answered(other, usage.cached, usage.written, reasoned=reasoned)
        self.sent.add(as_is)
        self.other.add(instead)
        return {
            "strategy": str(self.strategy),
            "tokens": instead.tokens,
            "cached": instead.cached,
            "cost": instead.cost,
            "sent_tokens": as_is.tokens,
            "sent_cost": as_is.cost,
            "all_tokens": self.other.tokens,
            "all_cost": self.other.cost,
            "all_sent_tokens": self.sent.tokens,
            "all_sent_cost": self.sent.cost,
            "invalid": other.problems[0].message if len(other.problems) > len(sent.problems) else "",
        }

    def forget(self, writer: ContextWriter) -> None:
        """A context is over."""
        self._assemblers.pop(writer, None)

    def _forecast(self, cache: PrefixCache, assembly: Assembly, now: float, expected: Expected) -> Forecast:
        price = self._prices.price(assembly.request.model, expected.tokens)
        forecast = cache.forecast(assembly, price, now, expected)
        cache.sent(assembly, now)
        return forecast
