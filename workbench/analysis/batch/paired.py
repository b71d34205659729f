"""Two variants compared row by row: the mean difference, and an interval from resampling the rows."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from msgspec import Struct

RESAMPLES = 2000
_DRAWS = 8_000_000
"""Rows drawn in all, at most: with many rows fewer resamples do."""
LEAST = 5
"""Rows below which no interval is stated."""


class Paired(Struct, frozen=True):
    """How B differs from A over the rows that both have a value for. ``low`` and ``high`` are the ends of the 95 %
    interval of the mean (percentile bootstrap: Efron and Tibshirani, chapter 13), None below ``LEAST`` rows."""

    rows: int
    mean_a: float
    mean_b: float
    mean: float
    """B less A."""
    low: float | None
    high: float | None
    better: int
    """Rows in which B is higher."""
    worse: int

    @property
    def equal(self) -> int:
        return self.rows - self.better - self.worse

    @property
    def differs(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def paired(a: Mapping[int, float], b: Mapping[int, float], seed: int = 0) -> Paired | None:
    """Values by row. None where no row has both. The same values and seed give the same interval."""
    both = sorted(a.keys() & b.keys())
    if not both:
        return None
    differences = [b[row] - a[row] for row in both]
    low, high = _interval(differences, seed) if len(both) >= LEAST else (None, None)
    return Paired(
        len(both),
        sum(a[row] for row in both) / len(both),
        sum(b[row] for row in both) / len(both),
        sum(differences) / len(both),
        low,
        high,
        sum(one > 0 for one in differences),
        sum(one < 0 for one in differences),
    )


def _interval(values: Sequence[float], seed: int) -> tuple[float, float]:
    count = len(values)
    if min(values) == max(values):
        return values[0], values[0]
    draw = random.Random(seed)
    times = max(200, min(RESAMPLES, _DRAWS // count))
    means = sorted(sum(draw.choices(values, k=count)) / count for _ in range(times))
    return means[round(0.025 * (times - 1))], means[round(0.975 * (times - 1))]
