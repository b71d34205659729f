"""What a call cost, by the tokens that the provider counted."""

from __future__ import annotations

from workbench.context.cache import Price
from workbench.engine.journal.usage import Usage


def cost(usage: Usage, price: Price) -> float | None:
    """US dollars: fresh·p + cached·p_read + written·p_write + output·p_out.

    None when input, output or a needed price is unknown. Cached or written tokens without a price of their own cost as
    much as fresh ones; output includes reasoning.
    """
    if usage.input is None or usage.output is None or price.input is None or price.output is None:
        return None
    cached, written = usage.cached or 0, usage.written or 0
    read = price.input if price.cache_read is None else price.cache_read
    write = price.input if price.cache_write is None else price.cache_write
    fresh = max(usage.input - cached - written, 0)
    return fresh * price.input + cached * read + written * write + usage.output * price.output
