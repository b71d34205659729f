"""Soundings of a whole cascade: its walk runs several times side by side, each in a branch, and one walk wins."""

from __future__ import annotations

import asyncio
import json
from typing import Protocol

from msgspec.structs import replace

from workbench.context.message import Image
from workbench.engine.candidates.candidates import (
    Candidate,
    CandidatePlan,
    CandidateTask,
    factor_of,
    gather,
    mutation_data,
    plan,
)
from workbench.engine.candidates.soundings import adopt, settle
from workbench.engine.conversation import Attempting
from workbench.engine.faults import PhaseBlocked, PhaseFailed
from workbench.engine.journal.candidate_rounds import REFORGE_STEP
from workbench.engine.mutation import Mutation
from workbench.engine.services import Services
from workbench.engine.world import Sounding, World
from workbench.language.model.candidates import REFINEMENT


class Walks(Protocol):
    """Walks a cascade from its first phase to its end."""

    def conversation(self, world: World, branch: str) -> Attempting:
        """Returns the conversation that stands for a whole walk among candidates: it renders templates and asks, and
        runs no phase."""
        ...

    async def walk(
        self, world: World, branch: str, mutation: Mutation | None, refine: str, given: tuple[Image, ...]
    ) -> str:
        """The last phase's output. ``mutation`` and ``refine`` vary the first phase's task, ``given`` are images of
        what it refines. Raises PhaseFailed, PhaseBlocked, RunStopped."""
        ...


class CascadeSoundings:
    """The soundings that a cascade asks for itself."""

    def __init__(self, services: Services, walks: Walks) -> None:
        self._services = services
        self._walks = walks

    async def run(self) -> str:
        """The output of the winning walk. Raises PhaseFailed or PhaseBlocked when no walk reached its end."""
        services, cascade = self._services, self._services.definition.cascade
        soundings = cascade.soundings
        assert soundings is not None
        base = self._walks.conversation(services.world, "")
        if soundings.template:
            soundings = soundings.counted(factor_of(base, soundings.template, ("soundings", "factor")))
        contest = CandidateTask(soundings, base, ("soundings",), self._task(), services.options.default_model)
        plans, draws = plan(base, soundings, ("soundings",))
        services.journal.emit(
            "candidates_started",
            base.place(),
            kind="cascade",
            factor=len(plans),
            max_parallel=soundings.max_parallel,
            draws=draws,
            plans=[planned.to_json() for planned in plans],
        )
        limit = asyncio.Semaphore(soundings.max_parallel)
        session = services.options.session_id

        async def one(planned: CandidatePlan) -> Candidate:
            async with limit:
                index = planned.index
                sounding = Sounding(index, len(plans), True, planned.model, planned.parameters)
                return await self._walk(sounding, f"s{index}", index, f"{session}_sounding_{index}", planned.mutation)

        definition = services.definition
        asks = any(REFINEMENT in text for text in (definition.source.text, *definition.includes.values()))

        async def refine(step: int, attempt: int, text: str, incumbent: Candidate) -> Candidate:
            factor = soundings.reforge.factor_per_step if soundings.reforge else 1
            sounding = replace(incumbent.conversation.world.sounding, index=attempt, factor=factor)
            if asks:
                sounding, text = replace(sounding, refinement=text), ""
            name, index = f"{session}_reforge{step}_{attempt}", step * REFORGE_STEP + attempt
            return await self._walk(sounding, f"r{step}.{attempt}", index, name, None, text, incumbent.images)

        candidates = await gather([one(planned) for planned in plans])
        winner = await settle(contest, candidates, refine)
        await adopt(base, winner)
        services.world.records[:] = winner.conversation.world.records
        services.world.lineage[:] = winner.conversation.world.lineage
        return winner.conversation.output

    def _task(self) -> str:
        """Returns the task of the cascade, as the evaluator reads it."""
        given = json.dumps(self._services.world.input, indent=2, ensure_ascii=False)
        return "\n\n".join(filter(None, (self._services.definition.cascade.description, f"Input:\n{given}")))

    async def _walk(
        self,
        sounding: Sounding,
        branch: str,
        index: int,
        session: str,
        mutation: Mutation | None,
        refine: str = "",
        given: tuple[Image, ...] = (),
    ) -> Candidate:
        """One walk in a world of its own; it is judged by its final output, phase by phase."""
        services, own = self._services, self._services.world
        world = own.copy(sounding)
        last = self._walks.conversation(world, branch)
        candidate = Candidate(index, last, mutation, given=given)
        try:
            last.output = await self._walks.walk(world, branch, mutation, refine, given)
        except PhaseBlocked as fault:
            candidate.status, candidate.reason = "blocked", fault.reason
        except PhaseFailed as fault:
            candidate.status, candidate.reason, candidate.check = "failed", fault.reason, fault.check
        last.state_set = {key: value for key, value in world.state.items() if own.state.get(key) != value}
        candidate.shown = "\n\n".join(f"### {entry['phase']}\n{entry['output']}" for entry in world.lineage)
        cost, tokens, *_ = services.candidate_spent(last.place())
        services.journal.emit(
            "candidate_finished",
            last.place(),
            index=index,
            kind="cascade",
            session_id=session,
            status=candidate.status,
            reason=candidate.reason,
            output=last.output,
            model=sounding.model,
            cost=cost,
            tokens=tokens,
            **mutation_data(mutation),
        )
        services.journal.sync()
        return candidate
