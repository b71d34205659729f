"""Checks what enters a phase from others: sources that never come, come twice, or have settings without effect."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.language.lint.facts import Check, Facts, Finding
from workbench.language.lint.place import PhaseAt
from workbench.language.lint.readings import Readings, listed_sources, named_sources, named_tables, split_visit
from workbench.language.lint.strategies import read_by_strategy
from workbench.language.model.context import SOURCE_KEYWORDS, TTL_CATEGORIES
from workbench.language.tables import table_name


def known_sources(facts: Facts) -> Iterator[Finding]:
    """L402."""
    known = {*facts.by_name, *facts.stand_ins}
    for _, path, name, _ in named_sources(facts):
        if name.lower() not in SOURCE_KEYWORDS and split_visit(facts, name)[0] not in known:
            near = facts.meant(name, (*facts.names, *facts.stand_ins, *SOURCE_KEYWORDS))
            yield facts.report("L402", path, name=name, instead=near, phases=facts.listed)


def order(facts: Facts) -> Iterator[Finding]:
    """L401, L404, L405: whether a source can, or must, have run before the phase that wants it."""
    readings = Readings(facts)
    for at, path, name, conditional in named_sources(facts):
        written, visit = split_visit(facts, name)
        base = facts.stand_ins.get(written, written)
        if at.name not in facts.reach.reachable:
            continue
        if name.lower() in SOURCE_KEYWORDS:
            if at.name == facts.reach.start and not facts.reach.before(at.name):
                yield facts.report("L405", path)
        elif base not in facts.by_name:
            continue
        elif not facts.reach.can_precede(base, at.name) or (visit > 1 and not facts.reach.can_precede(base, base)):
            hint = readings.way_out(base, at.name, visit)
            yield facts.report("L401", path, name=name, phase=at.name, hint=hint)
        elif not conditional and base == written and not _expected(facts, base, at.name):
            yield facts.report("L404", path, name=name, phase=at.name)


def tables(facts: Facts) -> Iterator[Finding]:
    """L413: the tables of data phases."""
    readings, made = Readings(facts), _made_tables(facts)
    for at, path, written, phase, offset in named_tables(facts):
        if at.name not in facts.reach.reachable or written in made:
            continue
        if not phase:
            if facts.family.readable and not facts.family.returning:
                near = facts.meant(written, [table_name(name) for name in facts.names])
                yield facts.report(
                    "L413", path, name=written, reason="no phase makes this table", instead=near, hint=""
                )
            continue
        host = facts.stand_ins.get(phase, phase)
        if not facts.reach.can_precede(host, at.name):
            reason = f"'{phase}' cannot have run before '{at.name}'"
            span = facts.place.inside(path, offset, len(phase))
            yield facts.report(
                "L413", path, span=span, name=written, reason=reason, hint=readings.way_out(host, at.name)
            )


def _made_tables(facts: Facts) -> frozenset[str]:
    """The tables that phases name themselves."""
    rules = (at.phase.for_each_row for at in facts.all_phases)
    return frozenset(rule.result_table for rule in rules if rule is not None and rule.result_table)


def _expected(facts: Facts, name: str, phase: str) -> bool:
    """Returns whether a source is there on every path, or comes back by a loop through the phase itself."""
    reach = facts.reach
    return name == phase or reach.must_precede(name, phase) or reach.must_precede(phase, name)


def overruled(facts: Facts) -> Iterator[Finding]:
    """L403: what a stronger field makes void."""
    for at in facts.phases:
        phase, written = at.phase, at.phase.model_fields_set
        winner = "context" if phase.context is not None else "inject_from" if phase.inject_from is not None else ""
        losers = ("inject_from", "fidelity", "thread_id") if winner == "context" else ("fidelity", "thread_id")
        for field in losers if winner else ():
            if field in written and field not in read_by_strategy(facts, at):
                yield facts.report("L403", (*at.path, field), at_key=True, field=field, because=f"'{winner}' is set")
        for i, handoff in enumerate(phase.handoffs):
            target = facts.by_name.get(handoff.target)
            if target is None or (target.phase.context is None and target.phase.inject_from is None):
                continue
            for field in ("fidelity", "thread_id"):
                if field in handoff.model_fields_set and field not in read_by_strategy(facts, target):
                    because = f"phase '{handoff.target}' says what it sees"
                    yield facts.report(
                        "L403", (*at.path, "handoffs", i, field), at_key=True, field=field, because=because
                    )


def _brings(facts: Facts, at: PhaseAt, name: str) -> bool:
    """Returns whether the sources of a phase can bring in the phase of that name."""
    context = at.phase.context
    assert context is not None
    before = facts.reach.can_precede(name, at.name)
    if context.mode == "auto" and not context.from_:
        return before
    for source in context.from_:
        word = source.phase.lower()
        if word not in SOURCE_KEYWORDS:
            base = split_visit(facts, source.phase)[0]
            if facts.stand_ins.get(base, base) == name:
                return True
        elif word == "all" or (word == "first" and name == facts.reach.start):
            if before:
                return True
        elif word != "first" and name in facts.reach.just_before(at.name):
            return True
    return False


def exclusions(facts: Facts) -> Iterator[Finding]:
    """L406; keywords are left to the run, which resolves them."""
    for at in facts.phases:
        for i, name in enumerate(at.phase.context.exclude if at.phase.context else ()):
            path = (*at.path, "context", "exclude", i)
            base = split_visit(facts, name)[0]
            if name.lower() in SOURCE_KEYWORDS:
                continue
            base = facts.stand_ins.get(base, base)
            if base not in facts.by_name:
                near = facts.meant(name, facts.names)
                yield facts.report("L406", path, name=name, instead=near, reason="it is not a phase")
            elif at.name in facts.reach.reachable and not _brings(facts, at, base):
                yield facts.report("L406", path, name=name, reason="'from' does not bring it in")


def idle_settings(facts: Facts) -> Iterator[Finding]:
    """L407, L408, L411: settings without what they act on."""
    for at in facts.phases:
        for path, source in listed_sources(facts, at):
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
                    instead=facts.meant(category, TTL_CATEGORIES),
                    categories=", ".join(TTL_CATEGORIES),
                )


def native_messages(facts: Facts) -> Iterator[Finding]:
    """L409, once for each source."""
    native = [at.name for at in facts.phases if at.phase.use_native_tools and facts.has_tools(at.phase)]
    for at in facts.phases:
        for path, source in listed_sources(facts, at):
            if native and "messages" in source.include:
                names = [name for name in native if _stands_for(facts, at, source.phase, name)]
                if names:
                    yield facts.report("L409", path, name="', '".join(names))


def _stands_for(facts: Facts, at: PhaseAt, written: str, name: str) -> bool:
    """Returns whether a source can be the phase of that name."""
    word = written.lower()
    if word not in SOURCE_KEYWORDS:
        fits = split_visit(facts, written)[0] == name
    elif word == "first":
        fits = name == facts.reach.start
    else:
        fits = word == "all" or name in facts.reach.just_before(at.name)
    return fits and facts.reach.can_precede(name, at.name)


def repetitions(facts: Facts) -> Iterator[Finding]:
    """L412. Images are left out, because the same image enters a context once; so are sources with a condition."""
    for at in facts.phases:
        context = at.phase.context
        if context is not None and context.mode == "auto":
            continue
        excluded = {_identity(facts, at, name) for name in (context.exclude if context else ())}
        seen: dict[tuple[str, str], dict[str, str]] = {}
        for path, source in listed_sources(facts, at):
            name = _identity(facts, at, source.phase)
            if source.condition is not None or name in excluded:
                continue
            told = False
            for part in source.include:
                if part == "images":
                    continue
                before = seen.setdefault((part, source.messages_filter if part == "messages" else ""), {})
                twice = _twice(facts, at, name, before)
                if twice is not None and twice not in excluded and not told:
                    told = True
                    first = before.get(twice, before.get("all"))
                    yield facts.report("L412", path, part=part, name=twice, first=f"'{first}'")
                before.setdefault(name, source.phase)


def _identity(facts: Facts, at: PhaseAt, written: str) -> str:
    """A name that two sources share only if they bring the same visits: the phase, if a keyword means just one."""
    reach, word = facts.reach, written.lower()
    if word == "first":
        return word if reach.can_precede(reach.start, reach.start) else reach.start
    if word in SOURCE_KEYWORDS and word != "all":
        before = reach.just_before(at.name)
        return next(iter(before)) if len(before) == 1 else "previous"
    return word if word == "all" else written


def _twice(facts: Facts, at: PhaseAt, name: str, before: dict[str, str]) -> str | None:
    """Names the content that a source brings although a source before it has brought it."""
    if name in before:
        return name
    if name == "all":
        return next((other for other in before if _in_all(facts, at, other)), None)
    return name if "all" in before and _in_all(facts, at, name) else None


def _in_all(facts: Facts, at: PhaseAt, name: str) -> bool:
    return name in ("first", "previous") or facts.reach.can_precede(split_visit(facts, name)[0], at.name)


LOCAL: tuple[Check, ...] = (known_sources, idle_settings)
WHOLE: tuple[Check, ...] = (order, tables, overruled, exclusions, native_messages, repetitions)
