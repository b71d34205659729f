"""Values of rows: times, numbers, ids and JSON texts that every column type accepts, whatever a journal holds."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from functools import lru_cache
from math import isfinite
from typing import Any

import msgspec

from workbench.context.message import canonical, sha256
from workbench.engine.journal.annotations import Labels

_EPOCH = "1970-01-01T00:00:00.000000Z"
_IN_FORM = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z").fullmatch
"""Times as runs write them. To bring others in this form takes twice as long as all else here."""
_MAX_COUNT = 2**32 - 1
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_encode_plain = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode


@lru_cache(1024)
def time_of(at: object) -> str:
    """A time in UTC with microseconds; the epoch for an invalid one, because one bad value refuses a whole batch."""
    text = str(at)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return _EPOCH
    if _IN_FORM(text):
        return text if 1970 <= moment.year < 2200 else _EPOCH
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    if not 1970 <= moment.year < 2200:
        return _EPOCH
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def count(value: object) -> int | None:
    """A count that fits its column; None for other values, because unknown is never 0."""
    if type(value) is int:
        return value if 0 <= value <= _MAX_COUNT else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return None
    return int(value) if 0 <= value <= _MAX_COUNT else None


def number(value: object) -> float | None:
    """A finite number or None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return None
    return float(value)


def small(value: int) -> int:
    """A place's count in 16 bits."""
    return value if 0 <= value <= 65_535 else min(max(value, 0), 65_535)


def json_text(value: Any) -> str:
    """JSON that can be searched: characters as they are."""
    try:
        return _encode_plain(value).decode()
    except (ValueError, TypeError):  # Lone surrogates, and keys of a cascade that are no texts.
        return _encode(value)


def sorted_json(value: Any) -> str:
    """The same with keys in their order, so that equal values give equal texts."""
    try:
        return _encode_sorted(value).decode()
    except (ValueError, TypeError):
        return canonical(value)


@lru_cache(4096)
def trace_id(*parts: object) -> str:
    """The id of a node of a run's tree: 32 hex digits that depend only on its place."""
    return sha256("/".join(map(str, parts)))[:32]


def row_id(at: str, index: int, *parts: object) -> str:
    """A UUIDv7 that is always the same for one row: its time, its index, a digest. Ingesting twice gives one row.

    Rows of one event sort by their index.
    """
    bits = sha256("/".join(map(str, (*parts, index))))[:16]
    variant = "89ab"[int(bits[0], 16) & 3]
    return f"{_milliseconds(at)}-7{min(index, 0xFFF):03x}-{variant}{bits[1:4]}-{bits[4:]}"


@lru_cache(64)
def _milliseconds(at: str) -> str:
    """Returns how the ids of rows of a time begin."""
    text = f"{int(datetime.fromisoformat(time_of(at)).timestamp() * 1000):012x}"
    return f"{text[:8]}-{text[8:]}"


VERSION_BITS = 32
"""Of a row's version, for the sequence number; those above count annotations, which are no part of the journal."""


def label_columns(labels: Labels) -> dict[str, Any]:
    """Returns the labels of people, as columns."""
    note = "\n".join(labels.notes)
    return {"tags": labels.tags, "note": note, "score": labels.score, "thumb": labels.thumb}
