"""Checks the names that a phase calls: tools, validators, and models if their abilities matter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from workbench.language.json_schema import bad_pattern
from workbench.language.lint.environment import ToolFacts
from workbench.language.lint.facts import Check, Facts, Finding, bare_model, models_of
from workbench.language.lint.not_run import TOOL_TYPES_NOT_RUN
from workbench.language.lint.place import PhaseAt
from workbench.language.load import load
from workbench.language.model.candidates import Soundings, Validator, Ward
from workbench.language.model.cascade import PHASE_TOOLS, RAG_TOOLS, SCHEMES, Cascade
from workbench.language.model.mcp import bad_server_name, server_of
from workbench.language.problem import Path
from workbench.language.templates.names import names_used
from workbench.language.templates.sandbox import MAPPING_METHODS
from workbench.language.words import INSTEAD, ROUTE_TO

_PLACES = "a function in tools/NAME.py, or a cascade or .tool.json in tackle/"
_ASKED = "until then a phase that asks it fails"
RESEARCH_TOOLS = ("research_query", "research_execute")


def _listed(facts: Facts) -> Iterator[tuple[PhaseAt, Path, str]]:
    """Each tool that a phase names: those of ``tackle``, and a deterministic phase's own."""
    for at in facts.all_phases:
        for i, name in at.phase.listed:
            yield at, (*at.path, "tackle", i), name
        if at.phase.tool is not None and at.phase.tool.partition(":")[0] not in SCHEMES + PHASE_TOOLS:
            yield at, (*at.path, "tool"), at.phase.tool


def known_tools(facts: Facts) -> Iterator[Finding]:
    """L501, L503, L511."""
    for at, path, name in _listed(facts):
        if name == ROUTE_TO and path[-1] != "tool":
            yield facts.report("L503", path, hint="it is offered here" if at.phase.offers_choice else None)
        elif not _known(facts, at, name):
            code, known = "L501", (*(facts.around.tools or ()), *(RAG_TOOLS if at.phase.rag else ()))
            if path[-1] == "tool":
                code, known = "L511", (*known, *PHASE_TOOLS)
            unusable = "the phase has no 'rag'" if name in RAG_TOOLS else facts.around.unusable(name)
            if "{{" in name or "{%" in name:
                unusable = "a template is not rendered here: name the tool itself"
            instead = INSTEAD.get(name, "")
            why = unusable or instead or f"a tool is {_PLACES}"
            near = None if unusable or instead else facts.meant(name, known)
            yield facts.report(code, path, name=name, instead=near, why=why)
    for at in facts.all_phases:
        if at.phase.tool is not None and (why := facts.around.absent(at.phase.tool)):
            yield facts.report("L511", (*at.path, "tool"), name=at.phase.tool, why=why)


def _known(facts: Facts, at: PhaseAt, name: str) -> bool:
    if facts.around.tools is None or name in facts.around.tools or name == facts.cascade.memory:
        return True
    if server_of(name) in (*facts.cascade.mcp, *at.phase.mcp, *facts.around.servers):
        return True
    if name in RAG_TOOLS:
        return at.phase.rag is not None
    return name in RESEARCH_TOOLS and facts.cascade.research_db is not None


def servers(facts: Facts) -> Iterator[Finding]:
    """L512, at the name."""
    for path, mcp in (((), facts.cascade.mcp), *((at.path, at.phase.mcp) for at in facts.all_phases)):
        for name in mcp:
            if reason := bad_server_name(name):
                yield facts.report("L512", (*path, "mcp", name), at_key=True, name=name, reason=reason)


def refused_tools(facts: Facts) -> Iterator[Finding]:
    """L504, L507, L802 and L717 for the file of a tool: once for each tool, at its first use. L507 for
    validators, too.
    """
    told: set[str] = set()
    for _, path, name in _listed(facts):
        tool = facts.around.tool(name)
        if tool is None or name in told:
            continue
        told.add(name)
        if tool.hides_builtin:
            yield facts.report("L504", path, name=name)
        if needs := facts.around.needs(name):
            yield facts.report("L507", path, name=name, needs=needs)
        yield from _tool_file(facts, path, name, tool)
    for path, written in _named_validators(facts):
        name = written.removeprefix("validator:")
        needs = "" if name in told or name in facts.cascade.validators else facts.around.needs(name)
        if needs:
            told.add(name)
            yield facts.report("L507", path, name=name, needs=needs, hint=_ASKED)
    for path, validator in _validators(facts):
        name = "" if isinstance(validator, str) else validator.data_tool
        if name not in told and (needs := facts.around.needs(name)):
            told.add(name)
            yield facts.report("L507", path, name=name, needs=needs, hint=_ASKED)
    for at in facts.all_phases:
        tool_name = at.phase.tool or ""
        scheme, named, _ = tool_name.partition(":")
        refused = facts.around.refused
        needs = refused.get(tool_name, "") or refused.get(scheme, "") if named else ""
        if needs:
            yield facts.report("L507", (*at.path, "tool"), name=tool_name, needs=needs)


def _tool_file(facts: Facts, path: Path, name: str, tool: ToolFacts) -> Iterator[Finding]:
    if tool.kind != "declarative" or tool.text is None:
        return
    body = _object(tool.text)
    if body.get("type") in TOOL_TYPES_NOT_RUN:
        yield facts.report("L802", path, type=body["type"], name=name)
    problem = bad_pattern(body.get("error_pattern"))
    if problem is not None:
        yield facts.report("L717", path, field="error_pattern", problem=problem[0], hint=f"of tool '{name}'")


def _object(text: str) -> dict[str, Any]:
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        # The tool's own loader reports a file that cannot be read; here it only has no type and no pattern.
        return {}
    return body if isinstance(body, dict) else {}


def _named_validators(facts: Facts) -> Iterator[tuple[Path, str]]:
    """Each place that names a validator."""
    return ((path, validator) for path, validator in _validators(facts) if isinstance(validator, str))


def _validators(facts: Facts) -> Iterator[tuple[Path, Validator]]:
    """Each place that names a validator, or holds one."""
    yield from ((("validators", name), inline) for name, inline in facts.cascade.validators.items())
    for at in facts.all_phases:
        rules, wards = at.phase.rules, at.phase.wards
        if rules.loop_until is not None:
            yield (*at.path, "rules", "loop_until"), rules.loop_until
        for when, listed in (("pre", wards.pre), ("post", wards.post), ("turn", wards.turn)):
            for i, ward in enumerate(listed):
                yield from _ward((*at.path, "wards", when, i), ward)
        yield from _of_soundings((*at.path, "soundings"), at.phase.soundings)
    yield from _of_soundings(("soundings",), facts.cascade.soundings)


def _ward(path: Path, ward: Ward) -> Iterator[tuple[Path, Validator]]:
    yield (*path, "validator"), ward.validator


def _of_soundings(path: Path, soundings: Soundings | None) -> Iterator[tuple[Path, Validator]]:
    if soundings is None:
        return
    if soundings.validator is not None:
        yield (*path, "validator"), soundings.validator
    if soundings.reforge is not None and soundings.reforge.threshold is not None:
        yield from _ward((*path, "reforge", "threshold"), soundings.reforge.threshold)
    pareto = soundings.pareto_frontier
    if pareto is not None and pareto.quality_metric.startswith("validator:"):
        yield (*path, "pareto_frontier", "quality_metric"), pareto.quality_metric


_RENDERED = "a template is not rendered here; write the condition as code: {python: …}"


def known_validators(facts: Facts) -> Iterator[Finding]:
    """L502, L510."""
    registered = {name for name, tool in (facts.around.tools or {}).items() if tool.kind != "builtin"}
    if facts.around.validators is None:
        return
    known = (*facts.cascade.validators, *facts.around.validators)
    for path, written in _named_validators(facts):
        prefix = "validator:" if path[-1] == "quality_metric" else ""
        name = written.removeprefix(prefix)
        if name not in known and name not in registered:
            why = facts.around.unusable(name) or (_RENDERED if "{{" in name or "{%" in name else "")
            near = None if why else facts.meant(name, known)
            yield facts.report("L502", path, name=name, instead=prefix + near if near else None, hint=why or None)
        elif name not in facts.cascade.validators and (found := facts.around.validator(name)) and found.hides:
            yield facts.report("L510", path, name=name, file=found.hides)


def blind_validators(facts: Facts) -> Iterator[Finding]:
    """L505: inline validators at their instructions, cascades at their first use."""
    for name, inline in facts.cascade.validators.items():
        if inline.instructions is not None and not _reads_content(inline.instructions):
            yield facts.report("L505", ("validators", name, "instructions"), at_key=True, name=name)
    told = set(facts.cascade.validators)
    for path, written in _named_validators(facts):
        name = written.removeprefix("validator:")
        validator = facts.around.validator(name)
        if name in told or validator is None or validator.text is None:
            continue
        told.add(name)
        cascade = load(validator.text, name).cascade
        if cascade is not None and not _sees_content(cascade):
            yield facts.report("L505", path, name=name)


def _sees_content(cascade: Cascade) -> bool:
    """Returns whether any phase reads ``input.content`` or is given the whole input."""
    for phase in cascade.phases:
        given = phase.context is not None and phase.context.include_input
        children = any(sub.context_in for sub in phase.sub_cascades)
        inputs = (value if isinstance(value, str) else json.dumps(value) for value in phase.inputs.values())
        templates = (phase.instructions or "", *inputs, phase.rules.turn_prompt or "")
        if given or children or templates[0].startswith("@") or any(map(_reads_content, templates)):
            return True
    return False


def _reads_content(template: str) -> bool:
    """Returns whether a template reads ``input.content``, or the input as a whole. One that cannot be parsed is not
    judged."""
    found = names_used(template)
    reads = (use.path for use in found.uses if use.root in ("input", "state", "history"))
    return found.fault is not None or any(path[:2] == ("input", "content") or _whole(path) for path in reads)


def _whole(path: tuple[str | int, ...]) -> bool:
    """``input``, ``input.items()``, ``state.input`` or the like."""
    return path == ("input",) or path[:2] == ("state", "input") or (len(path) == 2 and path[1] in MAPPING_METHODS)


def manifest(facts: Facts) -> Iterator[Finding]:
    """L508."""
    for at in facts.all_phases:
        if at.phase.manifest and facts.around.tools == {}:
            advice = f"a tool is {_PLACES}"
            yield facts.report("L508", (*at.path, "tackle"), what="tackle: manifest finds no tool", advice=advice)
        if not at.phase.manifest and "manifest_context" in at.phase.model_fields_set:
            what = "'manifest_context' has no effect without tackle: manifest"
            path = (*at.path, "manifest_context")
            yield facts.report("L508", path, at_key=True, what=what, advice="write tackle: manifest, or remove it")


def native_models(facts: Facts) -> Iterator[Finding]:
    """L506, for each model that a phase with native tools names."""
    for at in facts.all_phases:
        if not at.phase.use_native_tools:
            continue
        named = list(models_of(at.phase.soundings, at.path))
        if at.phase.model is not None:
            named.append(((*at.path, "model"), False, at.phase.model))
        for path, is_key, name in named:
            if facts.around.native_tools(bare_model(name)) is False:
                yield facts.report("L506", path, at_key=is_key, name=name)


def folders(facts: Facts) -> Iterator[Finding]:
    """L509."""
    for at in facts.all_phases:
        if at.phase.rag is None or facts.around.bad_folder is None:
            continue
        if problem := facts.around.bad_folder(at.phase.rag.directory):
            yield facts.report("L509", (*at.path, "rag", "directory"), problem=problem)


LOCAL: tuple[Check, ...] = (folders, known_tools, known_validators, refused_tools, servers)
WHOLE: tuple[Check, ...] = (blind_validators, manifest, native_models)
