"""The walk of a task decomposition: wave by wave, the tasks of a wave side by side, each in a world of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.engine.candidates.candidates import gather
from workbench.engine.faults import PhaseFailed
from workbench.engine.gate import RunStopped, Stop, StopKind
from workbench.engine.run.execution import RunParts
from workbench.engine.run.visit import Visit
from workbench.engine.world import World
from workbench.language.decomposition.placeholders import filled, filled_text, same_id
from workbench.language.decomposition.waves import waves_of
from workbench.language.model.cascade import Phase
from workbench.language.model.job import CLARIFICATION, Job


class DataflowWalk:
    """Runs every node of a graph of dependencies once. A wave begins when the one before it has ended."""

    def __init__(self, parts: RunParts, world: World) -> None:
        definition = parts.services.definition
        assert definition.graph.job is not None
        self._parts = parts
        self._services = parts.services
        self._world = world
        self._graph = definition.graph
        self._job: Job = definition.graph.job
        self._phases = {phase.name: (index, phase) for index, phase in enumerate(definition.cascade.phases)}
        self._needs = definition.graph.needs
        self._failed: dict[str, PhaseFailed] = {}
        self._skipped: list[str] = []

    async def run(self) -> str:
        """The output of the synthesis, else of the tasks on which no other depends. Raises PhaseFailed after all
        possible tasks have run, if a task failed; RunStopped.
        """
        for number, wave in enumerate(waves_of(self._graph), 1):
            ready = [name for name in wave if not self._hindered(name)]
            for name in wave:
                if name not in ready:
                    await self._skip(name, number)
            await self._wave(number, ready, alone=len(wave) == 1)
        if self._failed:
            raise self._fault()
        return self._output()

    # -- one wave ----------------------------------------------------------------------------------------------------

    async def _wave(self, number: int, names: Sequence[str], *, alone: bool) -> None:
        """The tasks of a wave, at most ``max_parallel`` at once. Their results join the world in the order of the file,
        whichever ends first. ``alone``: the wave has one task, which runs on the main line.
        """
        if alone:
            for name in names:
                await self._task(name, number, self._world, "")
            return
        limit = asyncio.Semaphore(self._job.max_parallel)
        worlds = [self._world.copy() for _ in names]

        async def one(name: str, world: World) -> None:
            async with limit:
                branch = f"wave{number}.{name}"
                self._services.begin_walk(branch)
                await self._task(name, number, world, branch)

        await gather([one(name, world) for name, world in zip(names, worlds, strict=True)])
        await self._services.journal.synced()
        for world in worlds:
            self._world.join(world)

    async def _task(self, name: str, number: int, world: World, branch: str) -> None:
        index, phase = self._phases[name]
        world.visits[name] += 1
        visit = Visit(self._parts, world, index, world.visits[name], branch, phase=self._filled(phase))
        visit.setup.wave = number
        try:
            await visit.run()
        except RunStopped as stop:
            if name == CLARIFICATION and not stop.output:
                stop.output = self._job.question
            raise
        except PhaseFailed as fault:
            self._failed[name] = fault
        await self._stop(visit, world, "fail" if name in self._failed else "success")

    async def _stop(self, visit: Visit, world: World, outcome: str) -> None:
        """Wait where a task has ended; on success those that depend on it get its result."""
        waiting = tuple(edge.dst for edge in self._graph.out(visit.phase.name))
        taken, depth = waiting if outcome == "success" else (), self._services.depth
        stop = Stop(
            StopKind.AFTER_ROUTE,
            visit.place(),
            depth,
            state=world.state,
            taken=taken,
            considered=waiting,
            outcome=outcome,
        )
        await self._services.gate(stop)

    def _filled(self, phase: Phase) -> Phase:
        """The phase with the results that its placeholders name."""
        if phase.instructions is not None:
            return phase.model_copy(update={"instructions": filled_text(phase.instructions, self._result)})
        if phase.name == CLARIFICATION:
            return phase
        return phase.model_copy(update={"inputs": filled(phase.inputs, self._result)})

    def _result(self, written: str) -> tuple[Any, str] | None:
        """A task's result and its text; None for a node that is no task, or did not succeed."""
        id = same_id(written, self._phases)
        if id not in self._world.outputs:
            return None
        return self._world.outputs[id], self._texts().get(id, "")

    def _texts(self) -> Mapping[str, str]:
        return {record.phase: record.output for record in self._world.records}

    # -- failures ----------------------------------------------------------------------------------------------------

    def _hindered(self, name: str) -> list[str]:
        """The tasks that it depends on and that made no result."""
        gone = {*self._failed, *self._skipped}
        return [other for other in self._needs[name] if other in gone]

    async def _skip(self, name: str, number: int) -> None:
        """Record that a task does not run, and why."""
        gone = self._hindered(name)
        why = ", ".join(f"{other} {'failed' if other in self._failed else 'was skipped'}" for other in gone)
        self._skipped.append(name)
        visit = Visit(self._parts, self._world, self._phases[name][0], 1, "")
        visit.setup.wave = number
        visit.skip(why)
        await self._stop(visit, self._world, "skipped")

    def _fault(self) -> PhaseFailed:
        told = "; ".join(f"{name}: {fault.reason}" for name, fault in self._failed.items())
        skipped = f"; skipped: {', '.join(self._skipped)}" if self._skipped else ""
        checks = {fault.check for fault in self._failed.values()}
        return PhaseFailed(f"{told}{skipped}", checks.pop() if len(checks) == 1 else "")

    # -- the end -----------------------------------------------------------------------------------------------------

    def _output(self) -> str:
        """Of the one node that no other depends on; of several a JSON object with each result by its id."""
        needed = {other for needs in self._needs.values() for other in needs}
        ends = [node.id for node in self._graph.nodes if node.id not in needed]
        texts = self._texts()
        if len(ends) == 1:
            return texts.get(ends[0], "")
        results = {id: self._world.outputs.get(id) for id in ends}
        return json.dumps(results, indent=2, ensure_ascii=False) if results else ""
