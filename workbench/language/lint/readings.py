"""Which phases read which others, by sources, templates and tables, and the way out where that cannot work."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from workbench.language.lint.facts import Facts
from workbench.language.lint.place import PhaseAt
from workbench.language.lint.strategies import read_by_strategy
from workbench.language.model.context import SOURCE_KEYWORDS, ContextSource
from workbench.language.problem import Path
from workbench.language.tables import owner_of, table_uses

OUTPUT = "output_"
"""``state.output_<phase>`` is the output of that phase."""
_VISIT = re.compile(r"(.*)#(\d+)", re.DOTALL)
_LONGEST_CIRCLE = 6
"""Phases of a circle that a hint names; what leads round by more of them is told as a reading of a later phase."""


class PhaseReference(NamedTuple):
    """A place that names a phase whose parts are wanted."""

    at: PhaseAt
    path: Path
    name: str
    conditional: bool


class TableReference(NamedTuple):
    """A place of a data phase that reads the output of a phase, or of none that there is."""

    at: PhaseAt
    path: Path
    written: str
    phase: str
    """Empty if no phase makes that table."""
    offset: int
    """Of the phase's name in the text of the value."""


def listed_sources(facts: Facts, at: PhaseAt) -> Iterator[tuple[Path, ContextSource]]:
    """The sources in effect, with their paths: those of ``context``, else, or if the strategy reads them instead, those
    of ``inject_from``.
    """
    context = None if "inject_from" in read_by_strategy(facts, at) else at.phase.context
    path: Path = (*at.path, "inject_from") if context is None else (*at.path, "context", "from")
    for i, source in enumerate((at.phase.inject_from or ()) if context is None else context.from_):
        yield (*path, i), source


def named_sources(facts: Facts) -> Iterator[PhaseReference]:
    """Each place that names a phase as a source."""
    for at in facts.phases:
        yield from _sources_of(facts, at)


def _sources_of(facts: Facts, at: PhaseAt) -> Iterator[PhaseReference]:
    for path, source in listed_sources(facts, at):
        yield PhaseReference(at, (*path, "phase"), source.phase, source.condition is not None)
    anchors = at.phase.context.anchors if at.phase.context else None
    if anchors is not None and "from_phases" in anchors.model_fields_set:
        for i, name in enumerate(anchors.from_phases):
            yield PhaseReference(at, (*at.path, "context", "anchors", "from_phases", i), name, False)


def split_visit(facts: Facts, name: str) -> tuple[str, int]:
    """A phase name and the visit it asks for; 0 is the latest."""
    match = None if name in facts.by_name or name in facts.stand_ins else _VISIT.fullmatch(name)
    return (match[1], int(match[2][:6])) if match else (name, 0)


def named_tables(facts: Facts) -> Iterator[TableReference]:
    """Each place of a data phase that reads an output as a table, or by its code."""
    known = (*facts.names, *facts.stand_ins)
    for at in facts.all_phases:
        for name, value in at.phase.inputs.items() if at.phase.tool is not None else ():
            if isinstance(value, str):
                for use in table_uses(at.phase.tool or "", name, value, known):
                    yield TableReference(at, (*at.path, "inputs", name), use.written, use.phase, use.start)
        if at.phase.for_each_row is not None:
            table = at.phase.for_each_row.table
            yield TableReference(at, (*at.path, "for_each_row", "table"), table, owner_of(table, known), 0)


class Readings:
    """The readings of one cascade."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    @cached_property
    def _graph(self) -> Mapping[str, Mapping[str, None]]:
        """By phase, the phases whose parts it wants."""
        facts = self._facts
        found: dict[str, dict[str, None]] = {name: {} for name in facts.names}
        for at, _, name, _ in named_sources(facts):
            if name.lower() not in SOURCE_KEYWORDS:
                self._add(found, at, split_visit(facts, name)[0])
        for text, names in facts.read_texts:
            if text.phase is None or text.after:
                continue
            for use in names.uses:
                key = use.path[1] if len(use.path) > 1 else 0
                if isinstance(key, str) and use.root in ("outputs", "state"):
                    self._add(found, text.phase, key if use.root == "outputs" else key.removeprefix(OUTPUT))
        for table in named_tables(facts):
            self._add(found, table.at, table.phase)
        return found

    def _add(self, found: dict[str, dict[str, None]], at: PhaseAt, name: str) -> None:
        name = self._facts.stand_ins.get(name, name)
        if name in found and at.name in found:
            found[at.name][name] = None

    def way_out(self, source: str, phase: str, visit: int = 0) -> str:
        """Advises on a phase ``source`` that cannot have run before ``phase``, which reads it. ``visit``: the visit of
        it that is wanted, 0 for the latest.
        """
        facts, reach = self._facts, self._facts.reach
        if visit > 1 and reach.can_precede(source, phase):
            return f"no loop leads back to '{source}': write '{source}', or hand off to it again"
        if source == phase:
            return "a phase cannot read its own output before it has run: remove it, or hand off to the phase again"
        circle = self._circle(source, phase)
        if len(circle) == 2:
            both = f"'{phase}' and '{source}' read each other"
            return f"{both}, and one has to run first: let only the other one read"
        if circle:
            chain = ", ".join(
                f"'{one}' reads '{other}'" for one, other in zip(circle, (*circle[1:], phase), strict=True)
            )
            return f"the phases read each other in a circle, and one has to run first: {chain}; remove one of these"
        if source not in reach.reachable:
            return f"no walk visits '{source}': add it to the handoffs of a phase before '{phase}'"
        if reach.can_precede(phase, source):
            first = "read it in a later phase" if source in facts.branches else f"define it before '{phase}'"
            return f"'{source}' runs after '{phase}': {first}, or let it hand off to '{phase}'"
        return f"'{source}' is on another branch: let it hand off to a phase that leads to '{phase}'"

    def _circle(self, source: str, phase: str) -> tuple[str, ...]:
        """The phases from ``phase`` by ``source`` on, each read by the one before it, if the last reads ``phase``."""
        before: dict[str, str] = {source: phase}
        queue = deque([(source, 2)])
        while queue:
            here, length = queue.popleft()
            if phase in self._graph.get(here, ()):
                chain = [here]
                while chain[-1] != phase:
                    chain.append(before[chain[-1]])
                return tuple(reversed(chain))
            for name in self._graph.get(here, ()) if length < _LONGEST_CIRCLE else ():
                if name not in before:
                    before[name] = here
                    queue.append((name, length + 1))
        return ()
