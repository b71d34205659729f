"""Reachability and dominance, against an enumeration that nobody could get wrong."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from workbench.language.lint.reach import Reach

NAMES = "abcdef"


@st.composite
def reaches(draw: st.DrawFn) -> Reach:
    name = st.sampled_from(NAMES)
    steps = draw(st.lists(st.tuples(name, name), max_size=14, unique=True))
    silent = set(NAMES) - {src for src, _ in steps}
    return Reach("a", tuple(steps), frozenset(draw(st.sets(name)) | silent))


def visits(reach: Reach) -> set[tuple[str, frozenset[str]]]:
    """Every phase that a walk can enter, with the phases that were visited by then."""
    seen: set[tuple[str, frozenset[str]]] = set()
    queue: list[tuple[str, frozenset[str]]] = [(reach.start, frozenset())]
    while queue:
        here, done = queue.pop()
        if (here, done) not in seen:
            seen.add((here, done))
            queue += [(dst, done | {here}) for src, dst in reach.steps if src == here]
    return seen


@given(reaches())
def test_what_can_and_must_come_before_agrees_with_all_walks(reach: Reach) -> None:
    walked = visits(reach)
    assert reach.reachable == {phase for phase, _ in walked}
    for phase in NAMES:
        histories = [done for here, done in walked if here == phase]
        for name in NAMES:
            if phase in reach.reachable:
                assert reach.can_precede(name, phase) == any(name in done for done in histories), (name, phase)
            if name != phase:
                must = bool(histories) and all(name in done for done in histories)
                assert reach.must_precede(name, phase) == must, (name, phase)


@given(reaches())
def test_an_endless_cycle_is_a_set_of_phases_that_reach_each_other_and_no_end(reach: Reach) -> None:
    def follow(name: str) -> set[str]:
        found, queue = set[str](), [name]
        while queue:
            here = queue.pop()
            for src, dst in reach.steps:
                if src == here and dst not in found:
                    found.add(dst)
                    queue.append(dst)
        return found

    trapped = {n for n in reach.reachable if not ({n} | follow(n)) & reach.may_end}
    cycles = reach.endless(NAMES)
    assert {n for cycle in cycles for n in cycle} == {n for n in trapped if all(n in follow(m) for m in follow(n))}
    for cycle in cycles:
        assert all(follow(name) == set(cycle) for name in cycle)


def test_only_phases_that_a_run_reaches_come_just_before() -> None:
    reach = Reach("a", (("a", "b"), ("b", "c"), ("d", "c")), frozenset({"c"}))
    assert list(reach.just_before("c")) == ["b"]
    assert list(reach.just_before("a")) == []


def test_a_long_chain_is_walked_without_recursion() -> None:
    names = [f"p{i}" for i in range(5000)]
    reach = Reach("p0", tuple(pairwise(names)), frozenset({"p4999"}))
    assert reach.must_precede("p0", "p4999")
    assert not reach.can_precede("p4999", "p0")
    assert reach.endless(names) == []
