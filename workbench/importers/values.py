"""Reads unvalidated JSON values: a value of an unexpected type counts as absent."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from workbench.engine.journal.event import seconds_between


def mapping(value: object) -> Mapping[str, Any]:
    """An object; empty for anything else."""
    return value if isinstance(value, dict) else {}


def array(value: object) -> Sequence[Any]:
    """An array; empty for anything else."""
    return value if isinstance(value, list) else ()


def string(value: object) -> str:
    """A text; empty for anything else."""
    return value if isinstance(value, str) else ""


def as_text(value: object) -> str:
    """A text unchanged, null as the empty text, and every other value as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, default=str)


def count(value: object) -> int | None:
    """A number of tokens: a whole number from 0 on; None for other values."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None


def number(value: object) -> float | None:
    """A number from 0 on that a quantity can be; None for other values."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return None
    return float(value)


def decoded(value: object) -> Any:
    """A value that may have been stored as JSON text, once or twice."""
    for _ in range(2):
        if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
            break
        try:
            value = loads(value)
        except ValueError:
            break
    return value


def loads(text: str) -> Any:
    """JSON in which NaN and infinities become null. Raises ValueError, also for nesting that is too deep."""
    try:
        return DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


DECODER = json.JSONDecoder(parse_constant=lambda name: None, parse_float=_finite)
"""Reads JSON as ``loads`` does, also from within a text."""


def moment(value: object) -> str:
    """A time as UTC, ISO 8601 with microseconds and ``Z``; empty where it cannot be read.

    Takes ISO 8601, and seconds, milliseconds or nanoseconds since 1970, told apart by their size.
    """
    try:
        if isinstance(value, str) and not value.isdigit():
            at = datetime.fromisoformat(value)
            at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        else:
            seconds = float(value) if isinstance(value, str | int | float) else 0.0
            seconds /= 1e9 if seconds > 1e16 else 1e3 if seconds > 1e11 else 1.0
            if seconds <= 0:
                return ""
            at = datetime.fromtimestamp(seconds, UTC)
        return at.isoformat(timespec="microseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return ""


def duration_between(start: str, end: str) -> float | None:
    """Seconds from one moment to another; None if one is unknown or they are out of order."""
    passed = seconds_between(start, end)
    return passed if passed is not None and passed >= 0 else None
