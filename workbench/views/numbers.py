"""Numbers as they are shown everywhere: thousands separated, money with four digits, seconds with one."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.engine.journal.costs import CostSum

UNKNOWN = "–"

GRADE_SIGN = {"": "", "exact": "", "calibrated": "≈", "estimate": "~"}
"""By the value of ``Grade``."""


def count(value: int | None, grade: str = "exact") -> str:
    """``1,812``; ``≈1,812`` when calibrated, ``~1,812`` when estimated. Nothing is nothing: 0 has no sign."""
    return UNKNOWN if value is None else f"{GRADE_SIGN[grade] if value else ''}{value:,}"


def money(value: float | None, *, exact: bool = False) -> str:
    """US dollars: ``~$0.0041``, without the sign when billed."""
    if value is None:
        return f"${UNKNOWN}"
    if 0 < value < 0.00005:
        return "<$0.0001"
    return f"{'' if exact else '~'}${value:,.4f}"


def spent_words(spent: CostSum) -> str:
    """``$0.0123`` billed, ``~$0.0123`` with a predicted part, ``–`` when nothing is known; nothing without a call."""
    if spent.total is None:
        return UNKNOWN if spent.calls else ""
    more = f" and {spent.unknown} unknown" if spent.unknown else ""
    return money(spent.total, exact=spent.exact) + more


def seconds(value: float | None) -> str:
    """``1.9s``; below a tenth of a second ``38 ms``; from two minutes on ``2m 05s``."""
    if value is None:
        return UNKNOWN
    if value < 0.0005:
        return "<1 ms"
    if value < 0.0995:
        return f"{value * 1000:.0f} ms"
    if value < 120:
        return f"{value:.1f}s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes}m {rest:02}s"


def plural(number: int, noun: str) -> str:
    """``1 call``, ``2 calls``, ``2 entries``."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") else f"{number:,} {noun}s"


@lru_cache(maxsize=16384)
def day_and_time(at: str, *, year: bool = True) -> str:
    """Local date and time of an event, to the minute; nothing for what is no time."""
    try:
        moment = datetime.fromisoformat(at).astimezone()
    except ValueError:
        return ""
    return moment.strftime("%Y-%m-%d %H:%M" if year else "%m-%d %H:%M")


@lru_cache(maxsize=4096)
def clock(at: str) -> str:
    """Local time of day of an event, to the millisecond; nothing for what is no time."""
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return ""
    return moment.astimezone().strftime("%H:%M:%S.") + f"{moment.microsecond // 1000:03}"
