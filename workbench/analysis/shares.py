"""Much work, split into shares that any worker may do.

Which items a share has depends on the items alone, never on how many workers there are, and results are put together in
the order of the shares. So one worker and many give the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

T = TypeVar("T")


class Share(Struct, Generic[T], frozen=True):
    """Items that one worker does one after the other."""

    number: int
    """Its place among the shares, from 0."""
    items: tuple[T, ...]


def split(
    items: Sequence[T], most: int, size: Callable[[T], float] = lambda item: 0.0, room: float = 1.0
) -> list[Share[T]]:
    """The items in their order, in shares of at most ``most`` items and of at most ``room`` in all by ``size``; an item
    that is larger is a share by itself. Raises ValueError for ``most`` below 1."""
    if most < 1:
        raise ValueError(f"a share of {most} items does no work")
    shares: list[Share[T]] = []
    taken: list[T] = []
    left = room
    for item in items:
        needs = size(item)
        if taken and (len(taken) == most or needs > left):
            shares.append(Share(len(shares), tuple(taken)))
            taken, left = [], room
        taken.append(item)
        left -= needs
    return [*shares, Share(len(shares), tuple(taken))] if taken else shares


def halves(items: Sequence[T]) -> tuple[tuple[T, ...], tuple[T, ...]]:
    """Two parts of a share that no worker can do whole, in order; the second of a single item is empty."""
    middle = (len(items) + 1) // 2
    return tuple(items[:middle]), tuple(items[middle:])
