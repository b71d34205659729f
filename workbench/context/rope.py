"""A sequence in parts, which shares with the one that it was made from all that did not change."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import TypeVar, overload

PART = 32
"""Elements of a part. A change of one element copies at most this many; a sequence of n has n/32 parts."""

T = TypeVar("T")


class Rope(Sequence[T]):
    """Immutable sequence. The contexts of n calls, each some entries longer than the one before, share their parts; as
    tuples they would take n² references.
    """

    __slots__ = ("_ends", "_size", "parts")

    def __init__(self, parts: tuple[tuple[T, ...], ...] = ()) -> None:
        """``parts``: none of them empty."""
        self.parts = parts
        self._ends: list[int] | None = None
        self._size = -1

    @classmethod
    def of(cls, elements: Iterable[T]) -> Rope[T]:
        """The elements of any other sequence."""
        return elements if isinstance(elements, Rope) else cls(tuple(_cut(tuple(elements))))

    def spliced(self, splices: Iterable[tuple[int, int, Sequence[T]]]) -> Rope[T]:
        """Apply splices, given as index, number of elements removed, and elements inserted. Indices refer to this
        sequence and ascend.
        """
        parts: list[tuple[T, ...]] = []
        position = 0
        for at, remove, elements in splices:
            self._copy(parts, position, at)
            _add(parts, elements)
            position = at + remove
        self._copy(parts, position, len(self))
        return Rope(tuple(parts))

    def _copy(self, parts: list[tuple[T, ...]], start: int, stop: int) -> None:
        """Append a stretch of this sequence, sharing whole parts."""
        stop = min(stop, len(self))
        if start >= stop:
            return
        if not parts and not start and stop == len(self):  # The context of one more turn: nothing is cut.
            parts += self.parts
            return
        first, last = bisect_right(self.ends, start), bisect_right(self.ends, stop)
        part, begin = self.parts[first], self.ends[first] - len(self.parts[first])
        if start > begin or first == last or (parts and len(parts[-1]) + len(part) <= PART):
            _add(parts, part[start - begin : stop - begin])  # Also a short part after a short one, or many would stay.
            first += 1
        parts += self.parts[first:last]
        if first <= last < len(self.parts):
            _add(parts, self.parts[last][: stop - self.ends[last] + len(self.parts[last])])

    @property
    def ends(self) -> list[int]:
        """The index behind each part."""
        if self._ends is None:
            self._ends = list(accumulate(map(len, self.parts)))
        return self._ends

    def __len__(self) -> int:
        if self._size < 0:
            self._size = sum(map(len, self.parts))
        return self._size

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self.parts)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                return tuple(self)[index]
            parts: list[tuple[T, ...]] = []
            self._copy(parts, start, stop)
            return tuple(chain.from_iterable(parts))
        size = len(self)
        if index < 0:
            index += size
        if not 0 <= index < size:
            raise IndexError(f"there are {size} elements")
        number = bisect_right(self.ends, index)
        part = self.parts[number]
        return part[index - self.ends[number] + len(part)]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Rope):
            return self.parts == other.parts or (len(self) == len(other) and tuple(self) == tuple(other))
        return isinstance(other, tuple) and tuple(self) == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Rope of {len(self)}"


def _add(parts: list[tuple[T, ...]], elements: Sequence[T]) -> None:
    """Append elements; a last part that is not full is filled up."""
    if parts and elements and len(parts[-1]) < PART:
        elements = (*parts.pop(), *elements)
    parts += _cut(elements)


def _cut(elements: Sequence[T]) -> Iterator[tuple[T, ...]]:
    return (tuple(elements[at : at + PART]) for at in range(0, len(elements), PART))
