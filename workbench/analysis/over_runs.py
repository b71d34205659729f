"""Numbers over any number of runs in the same memory: medians, and ratios of sums with the interval of a sample."""

from __future__ import annotations

import struct
from math import sqrt

from msgspec import Struct

EXACT = 4096
"""Values that are held together; the median of more takes a second look at them."""
_BITS = 42
"""Of a float, those that do not count for its bin: 10 bits of the fraction do, so that a bin is a thousandth wide."""
Z95 = 1.959963984540054
"""Of the normal distribution: 95% lie within so many standard deviations."""
METHOD = "ratio estimator with the finite population correction, normal approximation"
"""How ``RatioSum.interval`` is worked out (Cochran, Sampling Techniques, 1977, 2.11 and 6.4)."""


class Middle:
    """The median, the least and the most of values that are not negative: ``add`` each, and where ``is_open`` then says
    so, ``look`` at each once more. The median is exact."""

    def __init__(self) -> None:
        self.count = 0
        self.low = self.high = 0.0
        self._held: list[float] = []
        self._bins: dict[int, int] = {}
        """How many lie in each bin, of more values than are held."""
        self._wanted: dict[int, list[float]] = {}
        """The values of the bins with the middle ones."""

    def add(self, value: float) -> None:
        """Count a value in."""
        self.low, self.high = (min(self.low, value), max(self.high, value)) if self.count else (value, value)
        self.count += 1
        if self.count <= EXACT:
            self._held.append(value)
            return
        if self._held:
            for one in self._held:
                self._bin(one)
            self._held.clear()
        self._bin(value)

    def _bin(self, value: float) -> None:
        key = _bin_of(value)
        self._bins[key] = self._bins.get(key, 0) + 1

    @property
    def is_open(self) -> bool:
        """Whether the values have to be looked at once more."""
        return bool(self._bins) and self.low < self.high

    def look(self, value: float) -> None:
        """A value once more."""
        if not self.is_open:
            return
        if not self._wanted:
            self._wanted = {self._place(rank)[0]: [] for rank in self._ranks}
        if (found := self._wanted.get(_bin_of(value))) is not None:
            found.append(value)

    @property
    def _ranks(self) -> tuple[int, int]:
        return (self.count - 1) // 2, self.count // 2

    def _place(self, rank: int) -> tuple[int, int]:
        """The bin of the value of that rank, and how many values lie in lower ones."""
        below = 0
        for key in sorted(self._bins):
            if below + self._bins[key] > rank:
                return key, below
            below += self._bins[key]
        raise IndexError(rank)

    def median(self) -> float:
        """Of at least one value; the mean of both where two are in the middle."""
        if not self._held and self.low == self.high:
            return self.low
        if not self._bins:
            held = sorted(self._held)
            first, second = (held[rank] for rank in self._ranks)
        else:
            places = [(rank, *self._place(rank)) for rank in self._ranks]
            first, second = (sorted(self._wanted[key])[rank - below] for rank, key, below in places)
        return (first + second) / 2


def _bin_of(value: float) -> int:
    """Bins are in the order of their values: of floats that are not negative, the bits are."""
    bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return bits >> _BITS


class Interval(Struct, frozen=True):
    """Where the ratio over all runs lies with 95% confidence, as far as a sample tells."""

    low: float
    high: float
    total: float
    """The number summed over all runs, as the sample estimates it."""
    total_low: float
    total_high: float


class RatioSum:
    """Two numbers of each run summed up, and their ratio."""

    def __init__(self) -> None:
        self.count = 0
        self.value = self.base = 0.0
        self._squares = self._products = self._base_squares = 0.0

    def add(self, value: float, base: float) -> None:
        """The numbers of the next run."""
        self.count += 1
        self.value += value
        self.base += base
        self._squares += value * value
        self._products += value * base
        self._base_squares += base * base

    def interval(self, size: int, population: int) -> Interval | None:
        """For all ``population`` runs, of which ``size`` were drawn, by ``METHOD``; None for fewer than two runs, and
        where the base is nothing. Drawn runs that are not here, because they cannot be compared, count as runs that add
        nothing to either sum."""
        if size < 2 or not self.base:
            return None
        ratio = self.value / self.base
        unseen = max(0.0, 1 - size / population)
        # The mean of value - ratio * base is 0 over the sample, by the choice of the ratio.
        spread = (self._squares - 2 * ratio * self._products + ratio * ratio * self._base_squares) / (size - 1)
        wide = Z95 * sqrt(max(0.0, spread) * unseen / size) / (self.base / size)
        mean = self.value / size
        variance = max(0.0, self._squares - size * mean * mean) / (size - 1)
        total, wide_total = mean * population, Z95 * population * sqrt(variance * unseen / size)
        return Interval(max(0.0, ratio - wide), ratio + wide, total, max(0.0, total - wide_total), total + wide_total)
