"""Durations as they are shown everywhere. By itself, so that the first frame and exports can say them."""

from __future__ import annotations

import re

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def lifetime_of(text: str) -> float:
    """Seconds of a time as people write it: ``90s``, ``5m``, ``1h``. Raises ValueError."""
    found = re.fullmatch(r"(\d{1,6})([smh])", text.strip())
    if found is None:
        raise ValueError(f"'{text}' is not a time: write 90s, 5m or 1h")
    return int(found[1]) * _UNITS[found[2]]


def duration_words(value: float) -> str:
    """Seconds as all that shows a run writes them: ``1.9s``; below a tenth of a second ``38 ms``; from one minute
    on ``2m 05s``."""
    if value < 0.0005:
        return "<1 ms"
    if value < 0.0995:
        return f"{value * 1000:.0f} ms"
    if value < 59.95:
        return f"{value:.1f}s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes}m {rest:02}s"


def took_with_pauses(took: float, paused: float = 0.0) -> str:
    """Seconds of a run and of its pauses: ``4.2s + 2m 00s paused``."""
    return duration_words(took) + (f" + {duration_words(paused)} paused" if paused >= 0.0005 else "")
