"""Compares the prediction of a call with the provider's report."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from workbench.context.assembly import Grade
from workbench.context.cache import Price
from workbench.engine.journal.costs import stated_input_cost
from workbench.engine.journal.parts import CallState
from workbench.engine.journal.usage import Usage


class PredictedUsage(Struct, frozen=True):
    """Of the request, before its answer, as the provider is expected to count it."""

    tokens: int
    grade: Grade
    scale: float | None
    """Expected tokens divided by estimated ones, by what was reported before; None if nothing was scaled."""
    cached: int | None
    fresh: int | None
    """Tokens that the provider reads at the full price."""
    cost: float | None
    """US dollars of the input."""
    low: int | None = None
    high: int | None = None
    """The upper bound of the tokens; None if a part of the request is unknown."""
    cost_low: float | None = None
    cost_high: float | None = None
    """The same for the cost."""

    @classmethod
    def of(cls, call: CallState) -> PredictedUsage:
        scale = call.scale if call.grade is Grade.CALIBRATED else None
        forecast, tokens = call.forecast, call.expected
        factor = tokens / call.tokens_sent if call.tokens_sent else 1.0
        if forecast is None:
            return cls(tokens, call.grade, scale, None, None, None)
        if forecast.tokens is not None:
            bounds = forecast.low, forecast.high, forecast.cost_low, forecast.cost_high
            return cls(tokens, call.grade, scale, forecast.cached, forecast.fresh, forecast.cost, *bounds)
        # A journal of 0.1.0: its forecast is our own count, and is scaled here.
        cached, written = round(forecast.cached * factor), round(forecast.written * factor)
        cost = None if forecast.cost is None else forecast.cost * factor
        return cls(tokens, call.grade, scale, cached, tokens - cached - written, cost)


class CallInput(NamedTuple):
    """The input of a call in tokens, as every place shows it: as its provider counted it, else as it was predicted."""

    sent: int
    full: int
    """Of the whole history, sent or not: ``sent`` with what masking and dropping saved, as every place counts that."""
    grade: Grade
    cached: int | None
    """None if nothing is known of a cache."""
    fresh: int | None
    """Of ``sent``: neither read from a cache nor written to one."""
    cached_grade: Grade
    """Of ``cached`` and ``fresh``: what the provider states is exact."""

    @classmethod
    def of(cls, call: CallState) -> CallInput:
        sent, usage = call.tokens_in, call.usage
        full = sent + max(call.tokens_full - call.tokens_sent, 0)
        if usage.cached is not None:
            fresh = max(sent - usage.cached - (usage.written or 0), 0)
            return cls(sent, full, call.grade_in, usage.cached, fresh, Grade.EXACT)
        predicted = PredictedUsage.of(call)
        left = None if predicted.fresh is None else max(sent - (predicted.tokens - predicted.fresh), 0)
        return cls(sent, full, call.grade_in, predicted.cached, left, Grade.ESTIMATE)


class Overhead(NamedTuple):
    """The tokens of a call that belong to none of its messages and tool definitions: the framing of the messages, and
    what the provider's count, or a calibrated prediction, adds or takes off. Messages, tools and overhead add up to the
    input of the call."""

    full: int
    sent: int

    @classmethod
    def of(cls, call: CallState) -> Overhead:
        """Takes a pass over the entries of the call."""
        took = CallInput.of(call)
        full = sum(entry.tokens_full for entry in call.entries) + call.tools_tokens
        sent = sum(entry.tokens_sent for entry in call.entries if entry.sent is not None) + call.tools_tokens
        return cls(took.full - full, took.sent - sent)


class Residual(Struct, frozen=True):
    """Reported minus predicted numbers. None is unknown, never 0."""

    predicted: PredictedUsage
    tokens: int
    """Input tokens as the provider counted them."""
    cached: int | None
    cost: float | None
    """US dollars of the input, by the provider's counts and the prices of the prediction."""

    @property
    def share(self) -> float | None:
        """How much more than predicted was reported, relative to the prediction."""
        return (self.tokens - self.predicted.tokens) / self.predicted.tokens if self.predicted.tokens else None

    @property
    def covered(self) -> bool | None:
        """Whether the cost lies in the predicted interval; None if one of the two is unknown."""
        low, high = self.predicted.cost_low, self.predicted.cost_high
        if low is None or self.cost is None:
            return None
        return low * 0.999 <= self.cost and (high is None or self.cost <= high * 1.001)

    @classmethod
    def of(cls, call: CallState) -> Residual | None:
        """None until a provider has counted: the call has no answer, its answer states nothing, or it was not sent."""
        usage = call.usage
        if usage.input is None or call.unsent:
            return None
        known = call.prices
        cost = reported_cost(usage, replace(Price(), **known))
        return cls(PredictedUsage.of(call), usage.input, usage.cached, cost)


def reported_cost(usage: Usage, price: Price) -> float | None:
    """US dollars for the input as the provider counted it; None if a number is unknown.

    A model without a price for cached tokens has no cache to speak of.
    """
    if usage.cached is None and price.cache_read is not None:
        return None
    return stated_input_cost(usage, price)
