"""Money in cents. Floats never hold an amount."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal


@dataclass(frozen=True, order=True)
class Money:
    """An amount in cents of one currency."""

    cents: int
    currency: str = "EUR"

    @classmethod
    def of(cls, text: str, currency: str = "EUR") -> "Money":
        """Read ``"19.90"``. More than two digits after the point are an error, not something to round."""
        value = Decimal(text)
        if value != value.quantize(Decimal("0.01")):
            raise ValueError(f"{text} has fractions of a cent")
        return cls(int(value * 100), currency)

    def __add__(self, other: "Money") -> "Money":
        self._same_currency(other)
        return Money(self.cents + other.cents, self.currency)

    def __sub__(self, other: "Money") -> "Money":
        self._same_currency(other)
        return Money(self.cents - other.cents, self.currency)

    def times(self, factor: int | Decimal) -> "Money":
        """Multiply and round half up, as the accountants do by hand."""
        exact = Decimal(self.cents) * Decimal(factor)
        return Money(int(exact.quantize(Decimal(1), rounding=ROUND_HALF_UP)), self.currency)

    def percent(self, rate: Decimal) -> "Money":
        """``rate`` per cent of the amount, rounded half up."""
        return self.times(rate / Decimal(100))

    def _same_currency(self, other: "Money") -> None:
        if self.currency != other.currency:
            raise ValueError(f"cannot mix {self.currency} and {other.currency}")

    def __str__(self) -> str:
        sign = "-" if self.cents < 0 else ""
        whole, part = divmod(abs(self.cents), 100)
        return f"{sign}{whole}.{part:02d} {self.currency}"


ZERO = Money(0)


def total(amounts: list[Money]) -> Money:
    """The sum; zero euros for an empty list."""
    result = amounts[0] if amounts else ZERO
    for amount in amounts[1:]:
        result = result + amount
    return result
