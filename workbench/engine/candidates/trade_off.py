"""Picks the winner if quality and cost both count: pure arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from msgspec import Struct

_CENT_OF_NOTHING = 1e-12
"""US dollars below which costs are not told apart: their ratios would overflow."""


class Scored(Struct, frozen=True):
    """A candidate as a trade of quality for money."""

    index: int
    quality: float
    """0 to 100."""
    cost: float
    """US dollars."""
    assumed: bool = False
    """The cost is the mean of the known ones."""


def with_known_costs(qualities: dict[int, float], costs: dict[int, float | None]) -> list[Scored]:
    """Candidates with a cost each. An unknown cost is replaced by the mean of the known ones, and marked. Empty when no
    cost is known.
    """
    known = [cost for cost in costs.values() if cost is not None]
    if not known:
        return []
    mean = sum(known) / len(known)
    return [
        Scored(index, quality, mean, assumed=True) if (cost := costs[index]) is None else Scored(index, quality, cost)
        for index, quality in sorted(qualities.items())
    ]


def best_by_weight(candidates: Sequence[Scored], quality: float, cost: float, normalization: str) -> Scored:
    """The highest ``quality * q - cost * c``, q = score / 100, c the normalised cost; the lowest index wins a tie."""
    costs = _NORMALIZED[normalization]([candidate.cost for candidate in candidates])
    values = [quality * s.quality / 100 - cost * c for s, c in zip(candidates, costs, strict=True)]
    return candidates[max(range(len(values)), key=lambda i: (values[i], -candidates[i].index))]


def _min_max(costs: list[float]) -> list[float]:
    low, high = min(costs), max(costs)
    return [0.0 if high == low else (cost - low) / (high - low) for cost in costs]


def _log_scale(costs: list[float]) -> list[float]:
    positive = [cost for cost in costs if cost > 0]
    if not positive:
        return [0.0] * len(costs)
    smallest = max(min(positive), _CENT_OF_NOTHING)
    return _min_max([math.log1p(cost / smallest) for cost in costs])


def _z_score(costs: list[float]) -> list[float]:
    mean = sum(costs) / len(costs)
    deviation = math.sqrt(sum((cost - mean) ** 2 for cost in costs) / len(costs))
    if deviation == 0:
        return [0.0] * len(costs)
    return [(max(-2.0, min(2.0, (cost - mean) / deviation)) + 2) / 4 for cost in costs]


_NORMALIZED: dict[str, Callable[[list[float]], list[float]]] = {
    "min_max": _min_max,
    "log_scale": _log_scale,
    "z_score": _z_score,
}


def frontier(candidates: Sequence[Scored]) -> list[Scored]:
    """Those that no other beats: with quality at least as high and cost at most as high, one of them strictly."""
    return [one for one in candidates if not any(_dominates(other, one) for other in candidates)]


def dominated(candidates: Sequence[Scored]) -> dict[int, int]:
    """Those that are not on the frontier, each with the one of the frontier that beats it by the most quality."""
    front = frontier(candidates)
    beaten: dict[int, int] = {}
    for one in candidates:
        better = [other for other in front if _dominates(other, one)]
        if better:
            beaten[one.index] = max(better, key=lambda other: (other.quality, -other.cost)).index
    return beaten


def _dominates(one: Scored, other: Scored) -> bool:
    no_worse = one.quality >= other.quality and one.cost <= other.cost
    return no_worse and (one.quality > other.quality or one.cost < other.cost)


def by_policy(candidates: Sequence[Scored], policy: str) -> Scored:
    """The winner of a frontier: the cheapest, the best, or the most quality for the money (floor 1e-9 US dollars)."""
    keys: dict[str, Callable[[Scored], tuple[float, ...]]] = {
        "prefer_cheap": lambda s: (-s.cost, s.quality, -s.index),
        "prefer_quality": lambda s: (s.quality, -s.cost, -s.index),
        "balanced": lambda s: (s.quality / max(s.cost, 1e-9), -s.index),
    }
    return max(candidates, key=keys[policy])
