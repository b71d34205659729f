"""Numbers over many runs in little memory are those that holding all of them gives; intervals hold what they say."""

from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.analysis.over_runs import EXACT, Middle, RatioSum
from workbench.analysis.shares import halves, split


def middle_of(values: list[float]) -> Middle:
    found = Middle()
    for value in values:
        found.add(value)
    for value in reversed(values) if found.is_open else ():
        found.look(value)
    return found


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=60), st.integers(0, 3))
def test_the_median_of_many_values_is_exact(values: list[float], more: int) -> None:
    values = values * (more * EXACT // len(values) + 1)
    found = middle_of(values)
    assert (found.median(), found.low, found.high) == (statistics.median(values), min(values), max(values))


def test_the_median_of_different_values_is_exact_beyond_what_is_held() -> None:
    chance = random.Random(7)
    for size in (EXACT + 1, 2 * EXACT):
        values = [chance.lognormvariate(0, 2) for _ in range(size)]
        assert middle_of(values).median() == statistics.median(values)


def test_the_interval_of_a_sample_holds_the_ratio_of_all_runs_as_often_as_it_says() -> None:
    chance = random.Random(1)
    bases = [chance.lognormvariate(0, 0.4) for _ in range(3000)]
    runs = [(base * chance.uniform(0.5, 1.1), base) for base in bases]
    value, base = (sum(column) for column in zip(*runs, strict=True))
    held = total = 0
    for _ in range(400):
        found = RatioSum()
        for one in chance.sample(runs, 200):
            found.add(*one)
        interval = found.interval(200, len(runs))
        assert interval is not None
        held += interval.low <= value / base <= interval.high
        total += interval.total_low <= value <= interval.total_high
    assert 0.92 <= held / 400 <= 0.98
    assert 0.91 <= total / 400 <= 0.98


def test_a_sample_of_all_runs_knows_the_ratio() -> None:
    found = RatioSum()
    for one in ((1.0, 2.0), (3.0, 3.0), (0.5, 4.0)):
        found.add(*one)
    interval = found.interval(3, 3)
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((4.5 / 9, 4.5 / 9))
    assert found.interval(1, 3) is None


@given(st.lists(st.integers(0, 50), max_size=80), st.integers(1, 9), st.floats(1, 200))
def test_shares_hold_each_item_once_in_order_and_within_their_room(items: list[int], most: int, room: float) -> None:
    shares = split(items, most, float, room)
    assert [item for share in shares for item in share.items] == items
    assert [share.number for share in shares] == list(range(len(shares)))
    assert all(len(share.items) <= most for share in shares)
    assert all(sum(share.items) <= room or len(share.items) == 1 for share in shares)
    assert all(sum(halves(share.items), ()) == share.items for share in shares)
