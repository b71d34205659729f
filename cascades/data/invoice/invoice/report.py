"""Invoices as text, one column per figure."""

from __future__ import annotations

from invoice.money import total
from invoice.totals import Invoice


def as_text(invoice: Invoice) -> str:
    """A plain invoice, 64 columns wide."""
    order = invoice.order
    rows = [f"Invoice for order {order.number}", f"{order.customer.name} ({order.customer.number})", ""]
    for line in invoice.lines:
        rows.append(f"{line.quantity:>3} x {line.product.name:<32} {line.net!s:>14}")
        rows += [f"      {note}" for note in line.notes]
    rows.append("")
    rows.append(f"{'net':<38} {invoice.net!s:>14}")
    for rate, amount in invoice.tax.items():
        rows.append(f"{f'tax {rate} %':<38} {amount!s:>14}")
    rows.append(f"{'due':<38} {invoice.due!s:>14}")
    return "\n".join(rows)


def day_total(invoices: list[Invoice]) -> str:
    """The line at the end of the day."""
    return f"{len(invoices)} invoices, {total([i.due for i in invoices])}"
