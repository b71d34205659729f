"""Turns, attempts and wards: settings for a second turn or attempt that never comes."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.language.lint.facts import Check, Facts, Finding
from workbench.language.lint.place import PhaseAt
from workbench.language.model.candidates import Ward
from workbench.language.model.cascade import Cascade, Phase
from workbench.language.model.context import IntraContext
from workbench.language.problem import Path


def _limit(phase: Phase, ward: Ward) -> int:
    return ward.max_attempts or phase.rules.max_attempts


def _retrying(phase: Phase) -> list[Ward]:
    """The wards that may ask for another attempt."""
    return [ward for ward in (*phase.wards.post, *phase.wards.turn) if ward.mode == "retry"]


def attempts(phase: Phase) -> int:
    """The most attempts that any check of the phase allows; 0 when none can ask for one."""
    limits = [_limit(phase, ward) for ward in _retrying(phase)]
    if phase.output_schema is not None or phase.rules.loop_until is not None:
        limits.append(phase.rules.max_attempts)
    return max(limits, default=0)


def prompts(facts: Facts) -> Iterator[Finding]:
    """L706, L707."""
    for at in facts.all_phases:
        rules, path = at.phase.rules, (*at.path, "rules")
        if rules.turn_prompt is not None and rules.max_turns == 1:
            yield facts.report("L706", (*path, "turn_prompt"), at_key=True)
        allowed = attempts(at.phase)
        if rules.retry_instructions is not None and allowed < 2:
            reason = "there is one attempt" if allowed else "nothing here can fail"
            advice = "raise max_attempts" if allowed else "add output_schema, loop_until or a ward in mode: retry"
            yield facts.report("L707", (*path, "retry_instructions"), at_key=True, reason=reason, advice=advice)


def loops(facts: Facts) -> Iterator[Finding]:
    """L708, L709."""
    for at in facts.all_phases:
        rules, path = at.phase.rules, (*at.path, "rules")
        if rules.loop_until_prompt is not None and (rules.loop_until is None or rules.loop_until_silent):
            why = "without loop_until" if rules.loop_until is None else "with loop_until_silent"
            yield facts.report("L708", (*path, "loop_until_prompt"), at_key=True, why=why)
        if rules.loop_until is not None and "max_attempts" not in rules.model_fields_set:
            yield facts.report("L709", (*path, "loop_until"))


def wards(facts: Facts) -> Iterator[Finding]:
    """L710, L711."""
    for at in facts.all_phases:
        for when in ("pre", "post", "turn"):
            for i, ward in enumerate(getattr(at.phase.wards, when)):
                yield from _ward(facts, at, when, (*at.path, "wards", when, i), ward)
        yield from _threshold(facts, at.phase, at.path)
    yield from _threshold(facts, facts.cascade, ())


def _ward(facts: Facts, at: PhaseAt, when: str, path: Path, ward: Ward) -> Iterator[Finding]:
    if ward.mode != "retry":
        if ward.max_attempts is not None:
            kind = "a blocking" if ward.mode == "blocking" else "an advisory"
            yield facts.report("L711", (*path, "max_attempts"), at_key=True, where=f"on {kind} ward")
    elif when == "pre":
        what = "a pre-ward cannot retry; it blocks"
        yield facts.report("L710", (*path, "mode"), what=what, advice="write mode: blocking", fix="blocking")
    elif _limit(at.phase, ward) == 1 and (when == "post" or at.phase.rules.max_turns == 1):
        what = "a retry ward with one attempt cannot retry; it fails the phase"
        yield facts.report("L710", (*path, "mode"), what=what, advice="raise max_attempts")


def _threshold(facts: Facts, holder: Phase | Cascade, path: Path) -> Iterator[Finding]:
    reforge = holder.soundings.reforge if holder.soundings else None
    if reforge is not None and reforge.threshold is not None and reforge.threshold.max_attempts is not None:
        at = (*path, "soundings", "reforge", "threshold", "max_attempts")
        yield facts.report("L711", at, at_key=True, where="in a threshold", hint="a threshold is tested once per step")


def masking(facts: Facts) -> Iterator[Finding]:
    """L410: for a phase, and for the cascade when it holds for each of its phases."""
    for at in facts.all_phases:
        if _on(at.phase.intra_context) and _single(at.phase):
            yield facts.report("L410", (*at.path, "intra_context"), at_key=True, field="intra_context")
    auto = facts.cascade.auto_context
    if auto is not None and _on(auto.intra_phase) and all(_single(at.phase) for at in facts.all_phases):
        yield facts.report("L410", ("auto_context", "intra_phase"), at_key=True, field="intra_phase")


def _on(rules: IntraContext | None) -> bool:
    return rules is not None and rules.enabled


def _single(phase: Phase) -> bool:
    asked = phase.decision_points is not None and phase.decision_points.enabled
    return phase.rules.max_turns == 1 and attempts(phase) < 2 and not asked


LOCAL: tuple[Check, ...] = ()
WHOLE: tuple[Check, ...] = (prompts, loops, wards, masking)
