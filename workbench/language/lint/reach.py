"""What can come before what in the walks of a cascade; a failed phase leaves by steps of its own, without output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from workbench.language.lint.walks import Dominators, closure, final_components


@dataclass(frozen=True, slots=True)
class Step:
    """One way from a phase to the next. ``after_failure``: taken when ``src`` failed, and so has no output."""

    src: str
    dst: str
    after_failure: bool = False


# A visit is two nodes, entered and done: a success step leaves the second, a failure step the first. So "x was done
# before y was entered on every path" is plain dominance.
_Node = tuple[str, bool]


@dataclass(frozen=True)
class Reach:
    """The walks that begin at ``start``. ``may_end``: the phases after which a run can be over."""

    start: str
    steps: tuple[Step, ...]
    may_end: frozenset[str]

    @cached_property
    def _leaving(self) -> dict[_Node, list[str]]:
        found: dict[_Node, list[str]] = {}
        for step in self.steps:
            found.setdefault((step.src, not step.after_failure), []).append(step.dst)
        return found

    def _next(self, name: str) -> Iterable[str]:
        return (*self._leaving.get((name, True), ()), *self._leaving.get((name, False), ()))

    def _successors(self, node: _Node) -> Iterable[_Node]:
        name, done = node
        if not done:
            yield (name, True)
        for target in self._leaving.get(node, ()):
            yield (target, False)

    @cached_property
    def reachable(self) -> frozenset[str]:
        """Every phase that some run visits."""
        return frozenset(closure([self.start], self._next))

    @cached_property
    def _dominators(self) -> Dominators:
        return Dominators((self.start, False), self._successors)

    @cached_property
    def _later(self) -> dict[str, frozenset[str]]:
        return {}

    def later(self, name: str) -> frozenset[str]:
        """The phases that can be visited once ``name`` is done; ``name`` itself if a loop leads back to it."""
        if name not in self._later:
            self._later[name] = frozenset(closure(self._leaving.get((name, True), ()), self._next))
        return self._later[name]

    def must_precede(self, name: str, phase: str) -> bool:
        """Whether ``name`` was done before in every run that visits ``phase``."""
        return name != phase and self._dominators.dominates((name, True), (phase, False))

    def can_precede(self, name: str, phase: str) -> bool:
        """Whether ``name`` was done before in some run that visits ``phase``."""
        return self.must_precede(name, phase) or (name in self.reachable and phase in self.later(name))

    @cached_property
    def _entering(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for step in self.steps:
            if not step.after_failure and step.src in self.reachable:
                found.setdefault(step.dst, set()).add(step.src)
        return found

    def just_before(self, phase: str) -> frozenset[str]:
        """The phases whose end can lead straight to ``phase``."""
        return frozenset(self._entering.get(phase, ()))

    def endless(self, order: Sequence[str]) -> list[tuple[str, ...]]:
        """The cycles that no run can leave, the phases of each in the given order."""
        back: dict[str, list[str]] = {}
        for step in self.steps:
            back.setdefault(step.dst, []).append(step.src)
        ending = closure(self.may_end, lambda name: back.get(name, ()))
        trapped = [name for name in order if name in self.reachable and name not in ending]
        return [tuple(n for n in trapped if n in cycle) for cycle in final_components(trapped, self._next)]
