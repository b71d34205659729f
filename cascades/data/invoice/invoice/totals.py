"""From an order to an invoice."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from invoice.discounts import apply_discounts
from invoice.money import Money, total
from invoice.orders import Line, Order, lines_of
from invoice.tax import tax_by_rate


@dataclass(frozen=True)
class Invoice:
    """What the customer gets."""

    order: Order
    lines: tuple[Line, ...]
    tax: dict[Decimal, Money]

    @property
    def net(self) -> Money:
        return total([line.net for line in self.lines])

    @property
    def due(self) -> Money:
        """Net and all taxes."""
        return total([self.net, *self.tax.values()])


@lru_cache(maxsize=256)
def shipping(country: str, heavy: bool) -> Money:
    """Flat rates; tents and ropes are heavy. Safe to cache: nothing here changes while the program runs."""
    base = {"AT": 490, "DE": 590, "CH": 1290}.get(country, 1990)
    return Money(base + (700 if heavy else 0))


def invoice(order: Order) -> Invoice:
    """Lines, then discounts, then tax. Raises what the steps raise."""
    lines = apply_discounts(order, lines_of(order))
    return Invoice(order, tuple(lines), tax_by_rate(order.customer.country, lines))
