"""What was predicted of a call, what the provider reported, and by how much the two differ."""

from __future__ import annotations

from workbench.context.assembly import Grade
from workbench.context.cache import Price, input_cost
from workbench.dataclass import dataclass
from workbench.engine.parts import CallState


def factor_of(grade: str, scale: float | None) -> float:
    """What our count of a request is multiplied by before it is shown: 1 unless it is calibrated."""
    return scale or 1.0 if grade == Grade.CALIBRATED else 1.0


@dataclass(frozen=True, slots=True)
class Predicted:
    """Of the request, before its answer. An estimate is scaled by what the provider reported of the call before."""

    tokens: int
    full: int
    """Tokens of the whole history, sent or not."""
    grade: Grade
    scale: float | None
    """Expected over estimated tokens, by what was reported before; None where nothing was scaled."""
    cached: int | None
    fresh: int | None
    """Tokens that the provider reads at the full price."""
    cost: float | None
    """US dollars of the input."""

    @classmethod
    def of(cls, call: CallState) -> Predicted:
        scale = call.scale if call.grade is Grade.CALIBRATED else None
        factor, forecast = factor_of(call.grade, call.scale), call.forecast
        tokens = round(call.tokens_sent * factor)
        cached = None if forecast is None else round(forecast.cached * factor)
        return cls(
            tokens,
            round(call.tokens_full * factor),
            call.grade,
            scale,
            cached,
            None if forecast is None or cached is None else tokens - cached - round(forecast.written * factor),
            None if forecast is None or forecast.cost is None else forecast.cost * factor,
        )


@dataclass(frozen=True, slots=True)
class Residual:
    """Reported beside predicted. None is unknown, never 0."""

    predicted: Predicted
    tokens: int
    """Input tokens as the provider counted them."""
    cached: int | None
    cost: float | None
    """US dollars of the input, by the provider's counts and the prices of the prediction."""

    @property
    def share(self) -> float | None:
        """How much more than predicted was reported, relative to the prediction."""
        return (self.tokens - self.predicted.tokens) / self.predicted.tokens if self.predicted.tokens else None

    @classmethod
    def of(cls, call: CallState) -> Residual | None:
        """None as long as no provider counted: the call is not answered, or its answer says nothing."""
        usage = call.usage
        if usage.input is None:
            return None
        return cls(Predicted.of(call), usage.input, usage.cached, _reported_cost(call))


def _reported_cost(call: CallState) -> float | None:
    usage, known = call.usage, call.prices
    if usage.input is None or usage.cached is None or not known:
        return None
    written = usage.written or 0
    price = Price(known.get("input"), known.get("output"), known.get("cache_read"), known.get("cache_write"))
    return input_cost(price, usage.cached, max(usage.input - usage.cached - written, 0), written)
