"""Orders as they come from the shop, and the lines they become."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from invoice.catalog import Customer, Product, product
from invoice.money import Money


@dataclass(frozen=True)
class Order:
    """An order: article numbers with quantities, and perhaps a campaign code."""

    number: str
    customer: Customer
    items: tuple[tuple[str, int], ...]
    campaign: str = ""


@dataclass
class Line:
    """One line of an invoice. ``discount`` is in per cent and is decided in ``discounts``."""

    product: Product
    quantity: int
    discount: Decimal = Decimal(0)
    notes: list[str] = field(default_factory=list)

    @property
    def gross(self) -> Money:
        """Price times quantity, before any discount."""
        return self.product.price.times(self.quantity)

    @property
    def net(self) -> Money:
        """After the discount, rounded to the cent (rule 1)."""
        return self.gross - self.gross.percent(self.discount)


def lines_of(order: Order) -> list[Line]:
    """One line per article; the same article twice becomes one line."""
    merged: dict[str, int] = {}
    for sku, quantity in order.items:
        if quantity < 1:
            raise ValueError(f"order {order.number}: quantity {quantity} of {sku}")
        merged[sku] = merged.get(sku, 0) + quantity
    return [Line(product(sku), quantity) for sku, quantity in merged.items()]
