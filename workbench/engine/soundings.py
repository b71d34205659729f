"""From candidates to one result: run them, pick or join, refine the winner, and take over its world."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from workbench.context.message import Message
from workbench.engine import judging
from workbench.engine.candidates import Candidate, branch_of, gather, prefilter, run_candidates, run_one
from workbench.engine.execution import Execution
from workbench.engine.faults import PhaseFailed
from workbench.engine.gate import Stop, StopKind
from workbench.engine.mutation import reforge_mutation
from workbench.engine.side import ask_model
from workbench.engine.winner import choose

if TYPE_CHECKING:
    from workbench.engine.visit import Visit
    from workbench.language.model import Reforge

JOINER = "You join several answers to the same task into one. Answer with the joined text and nothing else."


async def sound(visit: Visit, base: Execution) -> Execution:
    """Run the phase's soundings; the execution whose output, route, state and messages count.

    Raises PhaseFailed, PhaseBlocked, RunStopped.
    """
    soundings = visit.phase.soundings
    assert soundings is not None
    candidates = await run_candidates(visit, base)
    passing = [candidate for candidate in candidates if candidate.status == "success"]
    if soundings.mode == "aggregate":
        winner = await _joined(base, passing)
    else:
        compared = await prefilter(passing, soundings.validator) if soundings.validator else passing
        winner = await _evaluate(base, compared, "soundings")
    if soundings.reforge is not None:
        winner = await _reforged(visit, base, winner, soundings.reforge)
    _adopt(visit, winner)
    return winner.execution


async def _evaluate(base: Execution, compared: list[Candidate], kind: str, instructions: str = "") -> Candidate:
    run = base.engine
    choice = await choose(base, compared, instructions)
    winner = compared[choice.winner]
    branch = winner.execution.place().branch
    run.scribe.emit("evaluation_finished", base.place(), kind=kind, branch=branch, **choice.to_json(compared))
    await run.gate(Stop(StopKind.AFTER_EVALUATION, base.place(), run.depth, state=base.world.state))
    return winner


async def _joined(base: Execution, passing: list[Candidate]) -> Candidate:
    """All outputs as sections, or merged by one call; states merge in the order of their index."""
    soundings, first = base.phase.soundings, passing[0]
    assert soundings is not None
    text = "\n\n---\n\n".join(f"## Output {n}\n{c.output}" for n, c in enumerate(passing, 1))
    if soundings.aggregator_instructions:
        path = (*base.path, "soundings", "aggregator_instructions")
        how = base.render(soundings.aggregator_instructions, path)
        request = [Message("system", JOINER), Message("user", f"{how}\n\n{text}")]
        model = soundings.aggregator_model or base.visit.model_name
        text = await ask_model(base.engine, base.world, base.place(), "aggregation", request, model)
    for candidate in passing[1:]:
        for key, value in candidate.execution.state_set.items():
            known = first.execution.state_set
            if key in known and known[key] != value:
                message = f"candidates disagree on state.{key}; candidate {candidate.index} wins"
                base.engine.warn("aggregate", message, base.path)
            first.execution.state_set[key] = value
            first.execution.world.state[key] = value
    first.execution.output = text
    branch = first.execution.place().branch
    base.engine.scribe.emit("evaluation_finished", base.place(), kind="aggregate", branch=branch, winner=None)
    return first


async def _reforged(visit: Visit, base: Execution, incumbent: Candidate, rule: Reforge) -> Candidate:
    """Refine the winner step by step. The incumbent is compared too, so a step can only improve."""
    path = (*base.path, "soundings", "reforge")
    for step in range(1, rule.steps + 1):
        if await _good_enough(base, incumbent, rule, step):
            return incumbent
        honing = base.render(rule.honing_prompt, (*path, "honing_prompt"))
        refined = await _step(visit, base, incumbent, rule, step, honing)
        passing = [candidate for candidate in refined if candidate.status == "success"]
        if not passing:
            base.engine.warn("reforge", f"no candidate of step {step} passed; the winner stays", path)
            continue
        override = base.render(rule.evaluator_override, (*path, "evaluator_override"))
        incumbent = await _evaluate(base, [incumbent, *passing], f"reforge {step}", override)
    await _good_enough(base, incumbent, rule, rule.steps + 1)
    return incumbent


async def _step(
    visit: Visit, base: Execution, incumbent: Candidate, rule: Reforge, step: int, honing: str
) -> list[Candidate]:
    run, soundings = base.engine, base.phase.soundings
    assert soundings is not None
    run.scribe.emit("candidates_started", base.place(), kind="reforge", step=step, factor=rule.factor_per_step)
    limit = asyncio.Semaphore(soundings.max_parallel)

    async def one(attempt: int) -> Candidate:
        async with limit:
            name = f"r{step}.{attempt}"
            branch = branch_of(base.place().branch, name)
            execution = Execution(visit, visit.world.copy(), branch=branch, model=incumbent.execution.model)
            execution.prefix = f"{base.prefix}{name}_"
            mutation = reforge_mutation(step, attempt, rule.factor_per_step) if rule.mutate else None
            refine = f"Current best answer:\n{incumbent.output}\n\nRefine it:\n{honing}"
            if mutation is not None:
                refine = mutation.varied(refine)
            candidate = Candidate(step * 1000 + attempt, execution, None)
            candidate.applied = refine if mutation else None
            await run_one(candidate, base, "reforge", refine)
            return candidate

    return await gather([one(attempt) for attempt in range(rule.factor_per_step)])


async def _good_enough(base: Execution, incumbent: Candidate, rule: Reforge, step: int) -> bool:
    """Whether the threshold accepts the incumbent; it never fails the phase."""
    if rule.threshold is None:
        return False
    name, place = rule.threshold.validator, base.place()
    try:
        verdict = await judging.judge(base, name, incumbent.output, place, 3000 + step, "validator")
    except PhaseFailed as fault:
        base.engine.warn("reforge", f"threshold: {fault.reason}", (*base.path, "soundings", "reforge", "threshold"))
        return False
    base.engine.scribe.emit(
        "check_finished",
        place,
        index=3000 + step,
        check="threshold",
        name=name,
        mode="threshold",
        valid=verdict.valid,
        reason=verdict.reason,
        score=verdict.score,
    )
    return verdict.valid


def _adopt(visit: Visit, winner: Candidate) -> None:
    """The winner's world becomes the visit's; what it set is journaled on the visit's own branch."""
    own, theirs = visit.world, winner.execution.world
    place = visit.place()
    for key, value in winner.execution.state_set.items():
        visit.engine.scribe.emit("state_set", place, key=key, value=value, by=f"candidate {winner.index}")
    own.state.clear()
    own.state.update(theirs.state)
    own.outputs.update(theirs.outputs)
    own.validated = theirs.validated
