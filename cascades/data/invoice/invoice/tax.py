"""Tax by country and class, worked out per rate (rule 4)."""

from __future__ import annotations

from decimal import Decimal

from invoice.money import Money, total
from invoice.orders import Line

RATES = {
    "AT": {"standard": Decimal(20), "books": Decimal(10), "food": Decimal(10)},
    "DE": {"standard": Decimal(19), "books": Decimal(7), "food": Decimal(7)},
    "CH": {"standard": Decimal("8.1"), "books": Decimal("2.6"), "food": Decimal("2.6")},
}


class UnknownCountry(ValueError):
    """We do not sell there."""


def rate_for(country: str, tax_class: str) -> Decimal:
    """The rate in per cent. Raises UnknownCountry."""
    try:
        return RATES[country][tax_class]
    except KeyError:
        raise UnknownCountry(f"no rate for {tax_class} in {country}") from None


def tax_by_rate(country: str, lines: list[Line]) -> dict[Decimal, Money]:
    """Rate to amount. The base of a rate is the sum of its rounded lines, so a cent is lost at most once per rate."""
    bases: dict[Decimal, list[Money]] = {}
    for line in lines:
        bases.setdefault(rate_for(country, line.product.tax_class), []).append(line.net)
    return {rate: total(amounts).percent(rate) for rate, amounts in sorted(bases.items())}
