"""Predicted beside reported, in words: the same in the context pane and on the command line."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.engine.prediction import Residual
from workbench.tui.rows.numbers import UNKNOWN, count, money

GOOD = 0.02
"""Share up to which a prediction counts as met: message overheads of providers differ by a few tokens."""


def off_by(share: float | None) -> str:
    """``+6.7%``, ``-0.4%``, ``exact``; a dash where nothing can be said."""
    if share is None:
        return UNKNOWN
    return "exact" if share == 0 else f"{100 * share:+.1f}%"


def parts(found: Residual) -> Iterator[str]:
    """``in 1,812≈ → 1,934 +6.7%``, then what was cached, then the cost of the input."""
    predicted = found.predicted
    yield f"in {count(predicted.tokens, str(predicted.grade))} → {count(found.tokens)} {off_by(found.share)}"
    if predicted.cached is not None:
        if found.cached is None:
            yield f"cached {count(predicted.cached)} → not said"
        else:
            change = found.cached - predicted.cached
            yield f"cached {count(predicted.cached)} → {count(found.cached)} " + (f"{change:+,}" if change else "exact")
    if found.cost is not None and predicted.cost is not None:
        yield f"input {money(predicted.cost)} → {money(found.cost, exact=True)}"
    if predicted.scale is not None:
        yield f"≈ scaled {predicted.scale:.2f}x by the call before"
