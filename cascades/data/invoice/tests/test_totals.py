from decimal import Decimal

import pytest

from invoice.catalog import Customer
from invoice.money import Money
from invoice.orders import Order
from invoice.tax import UnknownCountry
from invoice.totals import invoice

ADA = Customer("K-1001", "Ada Lindqvist", "AT", "gold")
BEN = Customer("K-1002", "Ben Okafor", "DE", "bronze")
CLEO = Customer("K-1003", "Cleo Marti", "CH", "silver")


def test_lines_are_rounded_before_tax():
    result = invoice(Order("A-1", BEN, (("BAR-12", 3), ("MAP-ALP", 1))))
    assert result.net == Money.of("67.00")
    assert result.tax == {Decimal(7): Money.of("4.69")}


def test_a_gold_customer_gets_ten_per_cent():
    result = invoice(Order("A-2", ADA, (("TENT-3", 1),)))
    assert result.net == Money.of("260.10")


def test_the_larger_discount_wins():
    result = invoice(Order("A-3", ADA, (("LAMP-1", 2),), campaign="SPRING26"))
    assert result.net == Money.of("67.83")


def test_a_bronze_customer_pays_the_full_price():
    result = invoice(Order("A-4", BEN, (("LAMP-1", 1), ("ROPE-60", 1))))
    assert result.net == Money.of("209.85")


def test_a_campaign_ends_with_its_order():
    result = invoice(Order("A-5", CLEO, (("LAMP-2", 1),)))
    assert result.lines[0].discount == Decimal(5)


def test_we_do_not_sell_everywhere():
    with pytest.raises(UnknownCountry):
        invoice(Order("A-6", Customer("K-9", "Nobody", "XX"), (("MAP-ALP", 1),)))
