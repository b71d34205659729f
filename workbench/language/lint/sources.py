"""What enters a phase from others: sources that never come, come twice, or have settings without effect."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from workbench.language.lint.facts import Check, Facts, Finding, PhaseAt, meant
from workbench.language.model import ContextSource
from workbench.language.problem import Path

KEYWORDS = ("all", "first", "previous", "prev")
TTL_CATEGORIES = ("tool_results", "images", "messages")
_VISIT = re.compile(r"(.*)#(\d+)", re.DOTALL)


class Named(NamedTuple):
    """A place that names a phase whose parts are wanted."""

    at: PhaseAt
    path: Path
    name: str
    conditional: bool


def _listed(at: PhaseAt) -> Iterator[tuple[Path, ContextSource]]:
    """The sources that take effect, with their paths: those of ``context``, else those of ``inject_from``."""
    context = at.phase.context
    path: Path = (*at.path, "inject_from") if context is None else (*at.path, "context", "from")
    for i, source in enumerate((at.phase.inject_from or ()) if context is None else context.from_):
        yield (*path, i), source


def _named(facts: Facts) -> Iterator[Named]:
    for at in facts.phases:
        for path, source in _listed(at):
            yield Named(at, (*path, "phase"), source.phase, source.condition is not None)
        anchors = at.phase.context.anchors if at.phase.context else None
        if anchors is not None and "from_phases" in anchors.model_fields_set:
            for i, name in enumerate(anchors.from_phases):
                yield Named(at, (*at.path, "context", "anchors", "from_phases", i), name, False)


def _split(facts: Facts, name: str) -> tuple[str, int]:
    """A phase name and the visit it asks for; 0 is the latest."""
    match = None if name in facts.names else _VISIT.fullmatch(name)
    return (match[1], int(match[2][:6])) if match else (name, 0)


def known_sources(facts: Facts) -> Iterator[Finding]:
    """L402."""
    for _, path, name, _ in _named(facts):
        if name.lower() not in KEYWORDS and _split(facts, name)[0] not in facts.names:
            near = meant(name, (*facts.names, *KEYWORDS))
            yield facts.report("L402", path, name=name, instead=near, phases=", ".join(facts.names))


def order(facts: Facts) -> Iterator[Finding]:
    """L401, L404, L405: whether a source can, or must, have run before the phase that wants it."""
    for at, path, name, conditional in _named(facts):
        base, visit = _split(facts, name)
        if at.name not in facts.reach.reachable:
            continue
        if name.lower() in KEYWORDS:
            if at.name == facts.reach.start and not facts.reach.later(at.name) >= {at.name}:
                yield facts.report("L405", path)
        elif base not in facts.names:
            continue
        elif not facts.reach.can_precede(base, at.name) or (visit > 1 and not facts.reach.can_precede(base, base)):
            yield facts.report("L401", path, name=name, phase=at.name)
        elif base != at.name and not conditional and not facts.reach.must_precede(base, at.name):
            yield facts.report("L404", path, name=name, phase=at.name)


def overruled(facts: Facts) -> Iterator[Finding]:
    """L403: what a stronger field makes void."""
    for at in facts.phases:
        phase, written = at.phase, at.phase.model_fields_set
        winner = "context" if phase.context is not None else "inject_from" if phase.inject_from is not None else ""
        losers = ("inject_from", "fidelity", "thread_id") if winner == "context" else ("fidelity", "thread_id")
        for field in losers if winner else ():
            if field in written:
                yield facts.report("L403", (*at.path, field), at_key=True, field=field, because=f"'{winner}' is set")
        for i, handoff in enumerate(phase.handoffs):
            target = facts.by_name.get(handoff.target)
            if target is None or (target.phase.context is None and target.phase.inject_from is None):
                continue
            for field in ("fidelity", "thread_id"):
                if field in handoff.model_fields_set:
                    because = f"phase '{handoff.target}' says what it sees"
                    yield facts.report(
                        "L403", (*at.path, "handoffs", i, field), at_key=True, field=field, because=because
                    )


def _brings(facts: Facts, at: PhaseAt, name: str) -> bool:
    """Whether the sources of a phase can bring in the phase of that name."""
    context = at.phase.context
    assert context is not None
    before = facts.reach.can_precede(name, at.name)
    if context.mode == "auto" and not context.from_:
        return before
    for source in context.from_:
        word = source.phase.lower()
        if word not in KEYWORDS:
            if _split(facts, source.phase)[0] == name:
                return True
        elif word == "all" or (word == "first" and name == facts.reach.start):
            if before:
                return True
        elif word != "first" and name in facts.reach.just_before(at.name):
            return True
    return False


def exclusions(facts: Facts) -> Iterator[Finding]:
    """L406."""
    for at in facts.phases:
        for i, name in enumerate(at.phase.context.exclude if at.phase.context else ()):
            path = (*at.path, "context", "exclude", i)
            base = _split(facts, name)[0]
            if base not in facts.names:
                near = None if name.lower() in KEYWORDS else meant(name, facts.names)
                reason = "names of phases stand here" if name.lower() in KEYWORDS else "it is no phase"
                yield facts.report("L406", path, name=name, instead=near, reason=reason)
            elif at.name in facts.reach.reachable and not _brings(facts, at, base):
                yield facts.report("L406", path, name=name, reason="'from' does not bring it in")


def idle_settings(facts: Facts) -> Iterator[Finding]:
    """L407, L408, L411: settings without what they act on."""
    for at in facts.phases:
        for path, source in _listed(at):
            written = source.model_fields_set
            idle = {
                "images_filter": "images" not in source.include and "include: images",
                "images_count": source.images_filter != "last_n" and "images_filter: last_n",
                "messages_filter": "messages" not in source.include and "include: messages",
            }
            for field, needs in idle.items():
                if field in written and needs:
                    yield facts.report("L407", (*path, field), at_key=True, field=field, needs=needs)
        context = at.phase.context
        if context is not None and context.mode == "explicit":
            for field in ("anchors", "selection"):
                if field in context.model_fields_set:
                    yield facts.report("L408", (*at.path, "context", field), at_key=True, field=field)
        for category in at.phase.context_ttl:
            if category not in TTL_CATEGORIES:
                yield facts.report(
                    "L411",
                    (*at.path, "context_ttl", category),
                    at_key=True,
                    name=category,
                    instead=meant(category, TTL_CATEGORIES),
                    categories=", ".join(TTL_CATEGORIES),
                )


def native_messages(facts: Facts) -> Iterator[Finding]:
    """L409, once for each source."""
    native = {at.name for at in facts.phases if at.phase.use_native_tools and facts.has_tools(at.phase)}
    for at in facts.phases:
        for path, source in _listed(at):
            if "messages" not in source.include or not native:
                continue
            names = [name for name in facts.names if name in native and name in _candidates(facts, at, source.phase)]
            if names:
                yield facts.report("L409", path, name="', '".join(names))


def _candidates(facts: Facts, at: PhaseAt, name: str) -> frozenset[str]:
    """The phases that a source can stand for."""
    word = name.lower()
    if word not in KEYWORDS:
        wanted = {_split(facts, name)[0]}
    elif word == "all":
        wanted = set(facts.names)
    elif word == "first":
        wanted = {facts.reach.start}
    else:
        wanted = set(facts.reach.just_before(at.name))
    return frozenset(other for other in wanted if facts.reach.can_precede(other, at.name))


def repetitions(facts: Facts) -> Iterator[Finding]:
    """L412. Images are left out, because the same image enters a context once; so are sources with a condition."""
    for at in facts.phases:
        context = at.phase.context
        if context is not None and context.mode == "auto":
            continue
        excluded = set(context.exclude if context else ())
        seen: dict[tuple[str, str, str], str] = {}
        for path, source in _listed(at):
            if source.condition is not None:
                continue
            parts = [(p, source.messages_filter if p == "messages" else "") for p in source.include if p != "images"]
            brought = [(name, *part) for name in _brought(facts, at, source.phase) - excluded for part in parts]
            twice = min((item for item in brought if item in seen), default=None)
            if twice is not None:
                yield facts.report("L412", path, part=twice[1], name=twice[0], first=f"'{seen[twice]}'")
            for item in brought:
                seen.setdefault(item, source.phase)


def _brought(facts: Facts, at: PhaseAt, name: str) -> set[str]:
    """What a source brings, by names that are equal only if the visits are: phases, visits, or the keyword itself."""
    reach, word = facts.reach, name.lower()
    if word == "all":
        before = {other for other in facts.names if reach.can_precede(other, at.name)}
        return before | {"first", "previous"} if before else set()
    if word == "first":
        return {"first"} if reach.can_precede(reach.start, reach.start) else {reach.start}
    if word in KEYWORDS:
        before = set(reach.just_before(at.name))
        return before if len(before) == 1 else {"previous"}
    return {name}


LOCAL: tuple[Check, ...] = (known_sources, idle_settings)
WHOLE: tuple[Check, ...] = (order, overruled, exclusions, native_messages, repetitions)
