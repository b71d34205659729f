"""Bounds what is remembered of a run that may go on for days."""

from __future__ import annotations

from itertools import islice
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def remember(known: dict[K, V], key: K, value: V, most: int) -> None:
    """Put an entry last, and forget the oldest ones if there are more than ``most``."""
    known.pop(key, None)
    known[key] = value
    forget_oldest(known, most)


def forget_oldest(known: dict[K, V], most: int) -> None:
    """Remove a quarter of the entries, the first ones, if there are more than ``most``. One at a time would take
    longer: a dict looks for its first entry among the places of those that are gone."""
    if len(known) > most:
        for key in list(islice(known, most // 4)):
            del known[key]
