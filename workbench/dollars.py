"""US dollars as they are shown everywhere. By itself, so that the first frame and exports can say them."""

from __future__ import annotations

UNPRICED = "unpriced"
"""Replaces a sum of money without any known price."""
GRADE_SIGN = {"": "", "exact": "", "calibrated": "≈", "estimate": "~"}
"""Stands before a number of tokens or of dollars, by the value of its ``Grade``."""


def recorded_words(value: float, *, exact: bool) -> str:
    """``$0.0031 recorded, not billed again``: what the answers of a recording cost when they were asked for; empty for
    nothing."""
    return f"{money(value, exact=exact)} recorded, not billed again" if value else ""


def recorded_answers(number: int, tokens: str, value: float, *, exact: bool) -> str:
    """``3 answers recorded (in 2,048, out 96, $0.0031), not billed again``: what a recording answered, and what that
    took when it was asked for; the money alone without an answer, and empty for nothing."""
    if not number:
        return recorded_words(value, exact=exact)
    took = f"{tokens}, {money(value, exact=exact)}" if value else tokens
    return f"{number:,} answer{'' if number == 1 else 's'} recorded ({took}), not billed again"


def without_output(halves: int, calls: int) -> str:
    """``, out unpriced``: of how many of some calls a predicted sum holds the input alone; empty for none."""
    of = "" if halves == calls else f" of {halves:,} call{'' if halves == 1 else 's'}"
    return f", out{of} {UNPRICED}" if halves else ""


def money(value: float | None, *, exact: bool = False) -> str:
    """Four decimals, or more for two digits that count: ``$0.0123``, ``$0.00039``. ``~`` stands before what no provider
    and no price list of one states; what has no price is ``unpriced``."""
    return UNPRICED if value is None else _written(value, exact=exact)


def told_apart(one: float, other: float) -> tuple[str, str]:
    """Two costs that are compared: where ``money`` would write both alike, with up to three decimals more."""
    pairs = [(_written(one, more), _written(other, more)) for more in range(4)]
    return next((pair for pair in pairs if pair[0] != pair[1]), pairs[0])


def _written(value: float, more: int = 0, *, exact: bool = False) -> str:
    decimals = 4
    if value and abs(value) < 0.001:  # The exponent of what is written: 0.00099999 is 0.0010.
        decimals = min(1 - int(f"{value:.1e}".partition("e")[2]), 12)
    whole, _, rest = f"{value:,.{min(decimals + more, 12)}f}".partition(".")
    return f"{'' if exact else '~'}${whole}.{rest.rstrip('0').ljust(decimals, '0')}"
