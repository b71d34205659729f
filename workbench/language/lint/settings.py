"""Fields of the wrong kind of phase, and values that are no expression, no schema, or no storage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from workbench.language.json_schema import bad_pattern, bad_schema
from workbench.language.lint.facts import Check, Facts, Finding, bare_model, models_of
from workbench.language.lint.place import PhaseAt
from workbench.language.model.candidates import Soundings
from workbench.language.model.cascade import PHASE_TOOLS, RAG_TOOLS, Phase
from workbench.language.model.mcp import server_of
from workbench.language.model.parameters import NAMED, CacheControl, Parameters, reserved
from workbench.language.problem import Path

MODEL_ONLY = (
    *("tackle", "manifest_context", "model", "use_native_tools", "rules", "context", "inject_from", "intra_context"),
    *("output_schema", "enforce", "soundings", "rag", "audibles", "fidelity", "thread_id", "parameters", *NAMED),
)
"""Fields that need a model call."""
TOOL_ONLY = ("inputs", "routing", "on_error", "retry", "timeout")
"""Fields that need a tool that runs by itself."""


def kinds(facts: Facts) -> Iterator[Finding]:
    """L714; a phase with both a tool and instructions is an error of its own."""
    for at in facts.all_phases:
        phase = at.phase
        if phase.deterministic == (phase.instructions is not None):
            continue
        fields, kind = (MODEL_ONLY, "a deterministic") if phase.deterministic else (TOOL_ONLY, "a model")
        for field in fields:
            if field in phase.model_fields_set and getattr(phase, field) not in ((), None, False, {}):
                yield facts.report("L714", (*at.path, field), at_key=True, field=field, kind=kind)
        for when in ("post", "turn") if phase.deterministic else ():
            if getattr(phase.wards, when):
                yield facts.report("L714", (*at.path, "wards", when), at_key=True, field=when, kind=kind)


def idle_native(facts: Facts) -> Iterator[Finding]:
    """L716."""
    for at in facts.all_phases:
        if at.phase.use_native_tools and not facts.has_tools(at.phase) and not at.phase.deterministic:
            yield facts.report("L716", (*at.path, "use_native_tools"), at_key=True)


def patterns(facts: Facts) -> Iterator[Finding]:
    """L717 at the character at which the expression fails."""
    for at in facts.all_phases:
        extraction = at.phase.output_extraction
        problem = bad_pattern(extraction.pattern) if extraction else None
        if problem is None:
            continue
        path, (message, offset) = (*at.path, "output_extraction", "pattern"), problem
        span = None if offset is None else facts.place.inside(path, offset)
        yield facts.report("L717", path, span=span, field="pattern", problem=message)


def schemas(facts: Facts) -> Iterator[Finding]:
    """L718 at the part of the schema that breaks it."""
    for at in facts.all_phases:
        if at.phase.output_schema is None:
            continue
        found = bad_schema(at.phase.output_schema)
        if found is not None:
            yield facts.report("L718", (*at.path, "output_schema", *found[0]), problem=found[1])


def request_parameters(facts: Facts) -> Iterator[Finding]:
    """L724, at the name."""
    holders: list[tuple[Path, Mapping[str, object]]] = [((), facts.cascade.parameters)]
    holders += _of_candidates(facts.cascade.soundings, ())
    for at in facts.all_phases:
        holders.append((at.path, at.phase.parameters))
        holders += _of_candidates(at.phase.soundings, at.path)
    for path, parameters in holders:
        for name in parameters:
            reason = f"write '{name}' beside it" if name in NAMED else reserved(name)
            if reason:
                yield facts.report("L724", (*path, "parameters", name), at_key=True, name=name, reason=reason)


def _of_candidates(soundings: Soundings | None, path: Path) -> Iterator[tuple[Path, Mapping[str, object]]]:
    models = soundings.models if soundings is not None else ()
    for name, share in models.items() if isinstance(models, Mapping) else ():
        if isinstance(share, Parameters):
            yield (*path, "soundings", "models", name), share.parameters


def enforced(facts: Facts) -> Iterator[Finding]:
    """L725."""
    for at in facts.all_phases:
        enforce, reason = at.phase.enforce, ""
        if enforce is None or at.phase.deterministic:
            continue
        if at.phase.output_schema is None:
            reason = "there is no output_schema"
        elif enforce != "prompt" and facts.has_tools(at.phase) and not at.phase.use_native_tools:
            reason = "the model calls tools by writing JSON, which the provider would not let pass; "
            reason += "'use_native_tools: true' tells it the tools another way"
        elif enforce != "prompt" and at.phase.response_format is not None:
            reason = "response_format asks for another form"
        if reason:
            yield facts.report("L725", (*at.path, "enforce"), enforce=enforce, reason=reason)


def idle_marks(facts: Facts) -> Iterator[Finding]:
    """L726, for phases that name their models."""
    whole = facts.cascade.cache_control
    idle: list[bool] = []
    for at in facts.all_phases:
        if at.phase.deterministic:
            continue
        marks = at.phase.cache_control or whole
        sizes = [facts.around.cached_from(bare_model(name)) for name in _models(at.phase)]
        known = [size for size in sizes if size is not None]
        idle.append(bool(sizes) and len(known) == len(sizes) and not any(known))
        if at.phase.cache_control is None or marks is None or not marks.at:
            continue
        reason = ""
        if idle[-1]:
            reason = f"{', '.join(_models(at.phase))} caches by itself or not at all, whatever is marked"
        elif known and all(known) and (size := _most_marked(facts, at, marks)) is not None and size < min(known):
            reason = f"the marked part has fewer than the {min(known):,} tokens from which the provider caches"
        if reason:
            yield facts.report("L726", (*at.path, "cache_control"), at_key=True, reason=reason)
    if whole is not None and whole.at and idle and all(idle):
        reason = "the models of all phases cache by themselves or not at all, whatever is marked"
        yield facts.report("L726", ("cache_control",), at_key=True, reason=reason)


def _models(phase: Phase) -> list[str]:
    named = [name for _, _, name in models_of(phase.soundings, ())]
    return named or ([phase.model] if phase.model else [])


def _most_marked(facts: Facts, at: PhaseAt, marks: CacheControl) -> int | None:
    """An upper bound of the marked tokens: their bytes, as a token has at least one. None if the file does not tell,
    because other text comes in or the conversation grows.
    """
    phase = at.phase
    first = not at.host and bool(facts.phases) and at.phase is facts.phases[0].phase
    plain = phase.instructions is not None and "{{" not in phase.instructions and "{%" not in phase.instructions
    if not first or not plain or facts.has_tools(phase) or facts.cascade.inputs_schema or phase.output_schema:
        return None
    if phase.context is not None or phase.inject_from or set(marks.at) - {"system", "task"}:
        return None
    return len((phase.instructions or "").encode())


def storage(facts: Facts) -> Iterator[Finding]:
    """L720."""
    caching = facts.cascade.tool_caching
    if caching is not None and caching.enabled and caching.storage != "memory":
        yield facts.report("L720", ("tool_caching", "storage"), name=caching.storage, fix="memory")


def escalation(facts: Facts) -> Iterator[Finding]:
    """L722."""
    for at in facts.all_phases:
        asked = at.phase.human_input
        if asked is not None and asked.on_timeout == "escalate" and not asked.escalate_to:
            yield facts.report("L722", (*at.path, "human_input", "on_timeout"))


def no_room(facts: Facts) -> Iterator[Finding]:
    """L723."""
    budget = facts.cascade.token_budget
    if budget is None:
        return
    totals: list[tuple[Path, int]] = [(("token_budget", "max_total"), budget.max_total)]
    totals += [(("token_budget", "phase_overrides", name), size) for name, size in budget.phase_overrides.items()]
    for path, total in totals:
        if total <= budget.reserve_for_output:
            yield facts.report("L723", path, total=f"{total:,}", reserve=f"{budget.reserve_for_output:,}")


def keyed_by_name(facts: Facts) -> Iterator[Finding]:
    """L727: settings for a phase, or a tool, that is not there."""
    budget, caching = facts.cascade.token_budget, facts.cascade.tool_caching
    phases = (*facts.names, *facts.stand_ins)
    for name in budget.phase_overrides if budget is not None else ():
        if name not in phases:
            yield _nothing_of(facts, ("token_budget", "phase_overrides", name), "phase", phases)
    tools = facts.around.tools
    if caching is None or tools is None:
        return
    for name in caching.tools:
        if name not in (*tools, *PHASE_TOOLS, *RAG_TOOLS, facts.cascade.memory) and not server_of(name):
            yield _nothing_of(facts, ("tool_caching", "tools", name), "tool", tools)


def _nothing_of(facts: Facts, path: Path, kind: str, known: Iterable[str]) -> Finding:
    name = str(path[-1])
    near = facts.meant(name, known)
    return facts.report("L727", path, at_key=True, field=path[-2], name=name, kind=kind, instead=near)


LOCAL: tuple[Check, ...] = (patterns, schemas, request_parameters, enforced, idle_marks)
WHOLE: tuple[Check, ...] = (kinds, idle_native, storage, escalation, no_room, keyed_by_name)
