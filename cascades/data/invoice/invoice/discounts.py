"""Which discount a line gets: the larger of tier and campaign (rule 3)."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from invoice.catalog import CAMPAIGNS, TIER_DISCOUNT, Customer
from invoice.orders import Line, Order

Rule = Callable[[Line], tuple[Decimal, str]]


def tier_rule(customer: Customer) -> Rule:
    """Every line of this customer gets the discount of the tier."""
    rate = TIER_DISCOUNT[customer.tier]
    return lambda line: (rate, f"{customer.tier} customer")


def campaign_rule(code: str) -> Rule:
    """Lines with the campaign's products get its discount. An unknown code gives nothing."""
    rate, skus = CAMPAIGNS.get(code, (Decimal(0), ()))
    return lambda line: (rate if line.product.sku in skus else Decimal(0), f"campaign {code}")


def rules_for(order: Order, rules: list[Rule] = []) -> list[Rule]:
    """The rules that apply to an order, extra ones first."""
    rules.append(tier_rule(order.customer))
    if order.campaign:
        rules.append(campaign_rule(order.campaign))
    return rules


def apply_discounts(order: Order, lines: list[Line]) -> list[Line]:
    """Set the best discount on each line and note where it came from."""
    rules = rules_for(order)
    for line in lines:
        rate, why = max((rule(line) for rule in rules), key=lambda found: found[0])
        if rate > 0:
            line.discount = rate
            line.notes.append(f"{rate} % {why}")
    return lines
