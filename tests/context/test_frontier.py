"""How far a budget goes: just far enough, wherever it stood before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workbench.context.fitting import Frontier

GAINS = st.lists(st.integers(0, 9), min_size=1, max_size=8)


@given(GAINS, st.lists(st.tuples(st.integers(-5, 60), st.integers(0, 8), st.integers(0, 3)), min_size=1, max_size=5))
def test_it_stops_at_the_shortest_prefix_that_is_enough(gains: list[int], needs: list[tuple[int, int, int]]) -> None:
    frontier, longest = Frontier(), 0
    frontier.gains = list(gains)
    for need, limit, least in needs:
        longest = max(longest, min(limit, len(gains)))
        bottom = min(least, longest)
        before = frontier.length
        changed = frontier.reach(need, longest, bottom)
        enough = (n for n in range(bottom, longest + 1) if sum(gains[:n]) >= need)
        assert frontier.length == next(enough, longest)
        assert frontier.gained == sum(gains[: frontier.length])
        assert set(changed) == set(range(before)) ^ set(range(frontier.length))


def test_a_gain_that_changes_counts_on_its_side() -> None:
    frontier = Frontier()
    frontier.gains = [3, 4]
    frontier.reach(3, 2)
    frontier.change(0, -2)
    frontier.change(1, 5)
    assert (frontier.gained, frontier.gains) == (1, [1, 9])
