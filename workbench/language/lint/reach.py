"""Finds which phases can come before which in the walks of a cascade."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

from msgspec import Struct

# Algorithms on directed graphs given as a successor function, each near linear: orders, components, dominators.

N = TypeVar("N", bound=Hashable)


def closure(roots: Iterable[N], successors: Callable[[N], Iterable[N]]) -> set[N]:
    """The roots and every node that can be reached from them."""
    seen: set[N] = set()
    queue = list(roots)
    while queue:
        here = queue.pop()
        if here not in seen:
            seen.add(here)
            queue += successors(here)
    return seen


def postorder(roots: Iterable[N], successors: Callable[[N], Iterable[N]]) -> list[N]:
    """The reachable nodes, each after what a depth-first search finds below it."""
    seen: set[N] = set()
    order: list[N] = []
    for root in roots:
        if root in seen:
            continue
        seen.add(root)
        stack: list[tuple[N, Iterator[N]]] = [(root, iter(successors(root)))]
        while stack:
            node, rest = stack[-1]
            below = next((n for n in rest if n not in seen), None)
            if below is None:
                order.append(node)
                stack.pop()
            else:
                seen.add(below)
                stack.append((below, iter(successors(below))))
    return order


def final_components(nodes: Sequence[N], successors: Callable[[N], Iterable[N]]) -> list[set[N]]:
    """The strongly connected components that no edge leaves (Kosaraju's algorithm)."""
    back: dict[N, list[N]] = {}
    for node in nodes:
        for follower in successors(node):
            back.setdefault(follower, []).append(node)
    taken: set[N] = set()
    found: list[set[N]] = []

    def untaken(node: N) -> list[N]:
        return [other for other in back.get(node, ()) if other not in taken]

    for node in reversed(postorder(nodes, successors)):
        if node in taken:
            continue
        members = closure([node], untaken)
        taken |= members
        if all(follower in members for member in members for follower in successors(member)):
            found.append(members)
    return found


class Dominators:
    """For each node that ``root`` reaches, the nodes that every path from ``root`` passes.

    The iterative algorithm of Cooper, Harvey and Kennedy (2001); afterwards each question costs O(1).
    """

    def __init__(self, root: N, successors: Callable[[N], Iterable[N]]) -> None:
        order = postorder([root], successors)
        rank: dict[Hashable, int] = {node: at for at, node in enumerate(order)}
        before: list[list[int]] = [[] for _ in order]
        for node in order:
            for follower in successors(node):
                before[rank[follower]].append(rank[node])
        top = len(order) - 1
        parent = [-1] * len(order)
        parent[top] = top
        changed = True
        while changed:
            changed = False
            for at in range(top - 1, -1, -1):
                known = [p for p in before[at] if parent[p] >= 0]
                nearest = known[0]
                for other in known[1:]:
                    nearest = _meet(parent, nearest, other)
                if parent[at] != nearest:
                    parent[at] = nearest
                    changed = True
        self._rank = rank
        self._enter, self._leave = _intervals(parent)

    def dominates(self, node: Hashable, later: Hashable) -> bool:
        """Returns whether every path to ``later`` passes ``node``; false if one of them cannot be reached."""
        a, b = self._rank.get(node), self._rank.get(later)
        if a is None or b is None:
            return False
        return self._enter[a] <= self._enter[b] and self._leave[b] <= self._leave[a]


def _meet(parent: list[int], a: int, b: int) -> int:
    while a != b:
        while a < b:
            a = parent[a]
        while b < a:
            b = parent[b]
    return a


def _intervals(parent: list[int]) -> tuple[list[int], list[int]]:
    """Entry and exit times in the dominator tree: an ancestor's interval holds its descendants'."""
    top = len(parent) - 1
    children: list[list[int]] = [[] for _ in parent]
    for at in range(top):
        children[parent[at]].append(at)
    enter, leave = [0] * len(parent), [0] * len(parent)
    clock = 0
    stack: list[tuple[int, bool]] = [(top, False)]
    while stack:
        at, done = stack.pop()
        clock += 1
        if done:
            leave[at] = clock
            continue
        enter[at] = clock
        stack.append((at, True))
        stack += ((child, False) for child in children[at])
    return enter, leave


class Reach(Struct, frozen=True, dict=True):
    """The walks that begin at ``start``.

    ``steps`` are pairs of phases, from one to the next; ``may_end`` are the phases after which a run can be over.
    """

    start: str
    steps: tuple[tuple[str, str], ...]
    may_end: frozenset[str]

    @cached_property
    def _following(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for src, dst in self.steps:
            found.setdefault(src, []).append(dst)
        return found

    def _next(self, name: str) -> Sequence[str]:
        return self._following.get(name, ())

    @cached_property
    def reachable(self) -> frozenset[str]:
        """Every phase that some run visits."""
        return frozenset(closure([self.start], self._next))

    @cached_property
    def _leading(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for src, dst in dict.fromkeys(self.steps):
            if src in self.reachable:
                found.setdefault(dst, []).append(src)
        return found

    def just_before(self, phase: str) -> Sequence[str]:
        """The phases that a run can visit right before ``phase``."""
        return self._leading.get(phase, ())

    @cached_property
    def _before(self) -> dict[str, frozenset[str]]:
        return {}

    def before(self, phase: str) -> frozenset[str]:
        """The phases that some run visits before ``phase``; ``phase`` itself if a loop leads back to it."""
        if phase not in self._before:
            self._before[phase] = frozenset(closure(self.just_before(phase), self.just_before))
        return self._before[phase]

    @cached_property
    def _dominators(self) -> Dominators:
        return Dominators(self.start, self._next)

    def must_precede(self, name: str, phase: str) -> bool:
        """Returns whether every run that visits ``phase`` has visited ``name`` before: ``name`` dominates ``phase``."""
        return name != phase and self._dominators.dominates(name, phase)

    def can_precede(self, name: str, phase: str) -> bool:
        """Returns whether some run visits ``name`` and later ``phase``."""
        return self.must_precede(name, phase) or name in self.before(phase)

    def endless(self, order: Sequence[str]) -> list[tuple[str, ...]]:
        """The cycles that no run can leave, the phases of each in the given order."""
        ending = closure((name for name in self.may_end if name in self.reachable), self.just_before)
        trapped = [name for name in order if name in self.reachable and name not in ending]
        return [tuple(n for n in trapped if n in cycle) for cycle in final_components(trapped, self._next)]
