"""Checks the flow of a run: unknown targets, unreachable phases, ends, endless cycles, missing and
recursive children.
"""

from __future__ import annotations

from collections.abc import Iterator

from workbench.language.lint.facts import Check, Facts, Finding
from workbench.language.model.flow import END


def targets(facts: Facts) -> Iterator[Finding]:
    """L302, L303: names that are no phase; L308: a handoff listed twice."""
    listed = facts.listed
    for at in facts.phases:
        seen: set[str] = set()
        for i, handoff in enumerate(at.phase.handoffs):
            path = (*at.path, "handoffs", i, "target")
            if handoff.target not in facts.by_name and handoff.target != END:
                near = END if handoff.target.lower() == END else facts.meant(handoff.target, facts.names)
                yield facts.report("L302", path, name=handoff.target, instead=near, phases=listed)
            elif handoff.target in seen:
                yield facts.report("L308", path, name=handoff.target)
            seen.add(handoff.target)
        for path, name in facts.routed(at):
            if name not in facts.by_name:
                yield facts.report("L303", path, name=name, instead=facts.meant(name, facts.names), phases=listed)


def unreachable(facts: Facts) -> Iterator[Finding]:
    """L301, with what leads to the phase if that cannot be reached either."""
    for at in facts.phases:
        if at.name in facts.reach.reachable:
            continue
        before = facts.leading_to[at.name]
        reason = f"only '{before[0]}' leads to it, and is unreachable too" if before else "nothing leads to it"
        yield facts.report("L301", (*at.path, "name"), name=at.name, reason=reason)


def silent_ends(facts: Facts) -> Iterator[Finding]:
    """L304: no handoffs, and the next phase in the list is a branch. ``handoffs: []`` says that the end is meant."""
    for at, below in zip(facts.phases, facts.phases[1:], strict=False):
        phase = at.phase
        routes = phase.deterministic and phase.routing
        if phase.handoffs or "handoffs" in phase.model_fields_set or routes or at.name not in facts.reach.reachable:
            continue
        if below.name in facts.branches:
            yield facts.report("L304", (*at.path, "name"), name=at.name, branch=below.name)


def endless(facts: Facts) -> Iterator[Finding]:
    """L305, once for each cycle, at its first phase."""
    for cycle in facts.reach.endless(facts.names):
        at = facts.by_name[cycle[0]]
        yield facts.report("L305", (*at.path, "name"), name=at.name, cycle=", ".join(f"'{name}'" for name in cycle))


def children(facts: Facts) -> Iterator[Finding]:
    """L306: files that are not there; L307: cascades that lead back to one that already runs."""
    for at in facts.phases:
        for path, ref in facts.refs(at):
            if facts.family.missing(ref):
                near = facts.family.elsewhere(ref) or None
                yield facts.report("L306", path, kind="cascade", ref=ref, instead=near)
            elif chain := facts.family.recursion(ref):
                yield facts.report("L307", path, chain=" > ".join(chain))
        for i, name in at.phase.listed:
            if chain := facts.family.called_by_tool(name):
                yield facts.report("L307", (*at.path, "tackle", i), chain=" > ".join(chain))
        scheme, _, file = (at.phase.tool or "").partition(":")
        kinds = {"sql": "SQL", "shell": "script"}
        if scheme in kinds and facts.family.missing(file):
            near = facts.family.elsewhere(file)
            instead = f"{scheme}:{near}" if near else None
            yield facts.report("L306", (*at.path, "tool"), kind=kinds[scheme], ref=file, instead=instead)


LOCAL: tuple[Check, ...] = (targets, children)
WHOLE: tuple[Check, ...] = (unreachable, silent_ends, endless)
