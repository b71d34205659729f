"""From candidates to one result: filter, pick or join, refine the winner. For a phase, and for a whole cascade."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from workbench.context.message import Message
from workbench.engine.calls.auxiliary_calls import ask_model
from workbench.engine.candidates.candidates import (
    Candidate,
    CandidateTask,
    branch_of,
    gather,
    mutation_data,
    no_winner,
    prefilter,
    run_candidates,
    run_one,
)
from workbench.engine.candidates.winner import WinnerSelection
from workbench.engine.conversation import Attempting
from workbench.engine.faults import PhaseBlocked, PhaseFailed
from workbench.engine.gate import Stop, StopKind
from workbench.engine.journal.candidate_rounds import REFORGE_STEP, candidate_name
from workbench.engine.mutation import reforge_mutation
from workbench.engine.validators import key_of

if TYPE_CHECKING:
    from workbench.language.model.candidates import Reforge

JOINER = "You join several answers to the same task into one. Answer with the joined text and nothing else."

Refine = Callable[[int, int, str, Candidate], Awaitable[Candidate]]
"""Runs attempt k of reforge step s: (s, k, the message that says what to refine, the incumbent)."""


async def sound(base: Attempting) -> Attempting:
    """Run the phase's soundings. Returns the conversation whose output, route, state and messages count.

    Raises PhaseFailed, PhaseBlocked, RunStopped.
    """
    soundings = base.phase.soundings
    assert soundings is not None
    contest = CandidateTask(soundings, base, (*base.path, "soundings"), base.task(), base.setup.model)

    async def refine(step: int, attempt: int, text: str, incumbent: Candidate) -> Candidate:
        name = f"r{step}.{attempt}"
        branch = branch_of(base.place().branch, name)
        factor = soundings.reforge.factor_per_step if soundings.reforge else 1
        world = base.world.copy(replace(base.world.sounding, index=attempt, factor=factor, inside=True))
        conversation = base.sibling(world, branch=branch, model=incumbent.conversation.model)
        conversation.parameters = dict(incumbent.conversation.parameters)
        candidate = Candidate(step * REFORGE_STEP + attempt, conversation, given=incumbent.images)
        await run_one(candidate, "reforge", text)
        return candidate

    branch = base.place().branch
    try:
        winner = await settle(contest, await run_candidates(base), refine)
    except (PhaseFailed, PhaseBlocked):
        await base.engine.ports.tools.settled(branch, branch)
        base.engine.injections.settled(branch, branch)
        raise
    await adopt(base, winner)
    winner.conversation.adopted(base.world)
    return winner.conversation


async def settle(contest: CandidateTask, candidates: list[Candidate], refine: Refine) -> Candidate:
    """The winner among finished candidates. Raises PhaseFailed or PhaseBlocked when none passed."""
    soundings = contest.soundings
    passing = [candidate for candidate in candidates if candidate.status == "success"]
    if not passing:
        raise no_winner(candidates)
    if soundings.mode == "aggregate":
        winner = await _joined(contest, passing)
    else:
        compared = await prefilter(passing, soundings.validator) if soundings.validator else passing
        winner = await _evaluated(contest, compared, "soundings")
    return winner if soundings.reforge is None else await _reforged(contest, winner, soundings.reforge, refine)


async def _evaluated(contest: CandidateTask, compared: list[Candidate], kind: str, instructions: str = "") -> Candidate:
    run = contest.engine
    choice = await WinnerSelection(contest).choose(compared, instructions)
    winner = compared[choice.winner]
    branch = winner.conversation.place().branch
    run.journal.emit("evaluation_finished", contest.place, kind=kind, branch=branch, **choice.to_json(compared))
    # The winner's state becomes that of the phase, and all that it set is journaled once more then.
    world, step = winner.conversation.world, int(kind.partition(" ")[2] or 0)
    stop = Stop(StopKind.AFTER_EVALUATION, contest.place, run.depth, state=world.state, index=step)
    for name in await run.gate_of_state(stop, world):
        winner.conversation.state_set[name] = world.state[name]
    return winner


async def _joined(contest: CandidateTask, passing: list[Candidate]) -> Candidate:
    """All outputs as sections, or merged by one call; states merge in the order of their index."""
    soundings, first = contest.soundings, passing[0]
    text = "\n\n---\n\n".join(f"## Output {n}\n{c.output}" for n, c in enumerate(passing, 1))
    if soundings.aggregator_instructions:
        how = contest.render(soundings.aggregator_instructions, (*contest.path, "aggregator_instructions"))
        request = [Message("system", JOINER), Message("user", f"{how}\n\n{text}")]
        model = soundings.aggregator_model or contest.model
        text = await ask_model(contest.engine, contest.world, contest.place, "aggregation", request, model)
    for candidate in passing[1:]:
        for key, value in candidate.conversation.state_set.items():
            known = first.conversation.state_set
            if key in known and known[key] != value:
                message = f"candidates disagree on state.{key}; candidate {candidate_name(candidate.index)} wins"
                contest.engine.warn("aggregate", message, contest.path)
            first.conversation.state_set[key] = value
            first.conversation.world.state[key] = value
    first.conversation.output, first.conversation.checked = text, None
    branch = first.conversation.place().branch
    contest.engine.journal.emit("evaluation_finished", contest.place, kind="aggregate", branch=branch, winner=None)
    return first


async def _reforged(contest: CandidateTask, incumbent: Candidate, rule: Reforge, refine: Refine) -> Candidate:
    """Refine the winner step by step. The incumbent is compared too, so a step can only improve."""
    path = (*contest.path, "reforge")
    for step in range(1, rule.steps + 1):
        if await _good_enough(contest, incumbent, rule, step):
            return incumbent
        honing = contest.render(rule.honing_prompt, (*path, "honing_prompt"))
        refined = await _step(contest, incumbent, rule, step, honing, refine)
        passing = [candidate for candidate in refined if candidate.status == "success"]
        if not passing:
            contest.engine.warn("reforge", f"no candidate of step {step} passed; the winner stays", path)
            continue
        override = contest.render(rule.evaluator_override, (*path, "evaluator_override"))
        incumbent = await _evaluated(contest, [incumbent, *passing], f"reforge {step}", override)
    await _good_enough(contest, incumbent, rule, rule.steps + 1)
    return incumbent


async def _step(
    contest: CandidateTask, incumbent: Candidate, rule: Reforge, step: int, honing: str, refine: Refine
) -> list[Candidate]:
    factor, parallel = rule.factor_per_step, contest.soundings.max_parallel
    varied = [reforge_mutation(step, attempt, factor) if rule.mutate else None for attempt in range(factor)]
    # The phases of a walk choose their models themselves, unless its soundings assign it one.
    conversation = incumbent.conversation
    model = conversation.model if contest.place.visit else conversation.world.sounding.model
    plans = [
        {"index": step * REFORGE_STEP + attempt, "model": model, **mutation_data(mutation)}
        for attempt, mutation in enumerate(varied)
    ]
    started = {"kind": "reforge", "step": step, "factor": factor, "max_parallel": parallel, "plans": plans}
    contest.engine.journal.emit("candidates_started", contest.place, **started)
    limit = asyncio.Semaphore(parallel)

    async def one(attempt: int) -> Candidate:
        async with limit:
            mutation = varied[attempt]
            text = f"Current best answer:\n{incumbent.output}\n\nRefine it:\n{honing}"
            text = text if mutation is None else mutation.varied(text)
            return await refine(step, attempt, text, incumbent)

    candidates = await gather([one(attempt) for attempt in range(factor)])
    await contest.engine.journal.synced()
    return candidates


async def _good_enough(contest: CandidateTask, incumbent: Candidate, rule: Reforge, step: int) -> bool:
    """Returns whether the threshold accepts the incumbent; it never fails anything."""
    if rule.threshold is None:
        return False
    validator, place, index = rule.threshold.validator, contest.place, 3000 + step
    try:
        verdict = await contest.conversation.validation.judge(validator, incumbent.output, place, index, "validator")
    except PhaseFailed as fault:
        contest.engine.warn("reforge", f"threshold: {fault.reason}", (*contest.path, "reforge", "threshold"))
        return False
    name = key_of(validator)
    contest.conversation.validation.record(place, index, verdict, check="threshold", name=name, mode="threshold")
    return verdict.valid


async def adopt(base: Attempting, winner: Candidate) -> None:
    """The winner's world becomes the base's; what it set is journaled on the base's own branch."""
    branch, won = base.place().branch, winner.conversation.place().branch
    await base.engine.ports.tools.settled(branch, won)
    base.engine.injections.settled(branch, won)
    own, theirs = base.world, winner.conversation.world
    for key, value in winner.conversation.state_set.items():
        by = f"candidate {candidate_name(winner.index)}"
        own.wrote(base.engine.journal.emit("state_set", base.place(), key=key, value=value, by=by))
    own.state.clear()
    own.state.update(theirs.state)
    own.outputs.update(theirs.outputs)
    own.validated, own.error = theirs.validated, theirs.error
    own.cache = theirs.cache
