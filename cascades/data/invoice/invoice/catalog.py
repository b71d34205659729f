"""Products and customers: what the shop knows before an order arrives."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from invoice.money import Money


@dataclass(frozen=True)
class Product:
    """Something that can be sold."""

    sku: str
    name: str
    price: Money
    tax_class: str = "standard"


@dataclass(frozen=True)
class Customer:
    """Somebody who buys. ``tier`` is bronze, silver or gold."""

    number: str
    name: str
    country: str
    tier: str = "bronze"


PRODUCTS = {
    p.sku: p
    for p in (
        Product("LAMP-1", "Trail lamp", Money.of("39.90")),
        Product("LAMP-2", "Trail lamp, wide beam", Money.of("54.50")),
        Product("TENT-3", "Tent for three", Money.of("289.00")),
        Product("MAP-ALP", "Map of the Alps", Money.of("14.80"), tax_class="books"),
        Product("BAR-12", "Oat bar, box of 12", Money.of("17.40"), tax_class="food"),
        Product("ROPE-60", "Rope, 60 m", Money.of("169.95")),
    )
}

TIER_DISCOUNT = {
    "bronze": Decimal(0),
    "silver": Decimal(5),
    "gold": Decimal(10),
}

CAMPAIGNS = {
    # campaign code: (per cent, products it names)
    "SPRING26": (Decimal(15), ("LAMP-1", "LAMP-2")),
    "CLUB": (Decimal(8), ("TENT-3", "ROPE-60")),
}


def product(sku: str) -> Product:
    """Raises KeyError with the article number that nobody knows."""
    try:
        return PRODUCTS[sku]
    except KeyError:
        raise KeyError(f"unknown article {sku}") from None
