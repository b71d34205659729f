"""One execution of a cascade: walks the graph, visit by visit, and journals all that happens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import asdict, replace

from workbench import __version__
from workbench.context.message import Image
from workbench.context.place import Place
from workbench.engine.candidates.cascade_soundings import CascadeSoundings
from workbench.engine.contracts import Divergence, Model, Ports
from workbench.engine.definition import Definition, Options, Outcome, Parent
from workbench.engine.faults import PhaseBlocked, PhaseFailed
from workbench.engine.gate import RunStopped, Stop, StopKind
from workbench.engine.journal.event import Event, stop_reason
from workbench.engine.journal.journal_writer import JournalWriter
from workbench.engine.journal.own_secrets import input_without_secrets, labels_in, without_secrets
from workbench.engine.mutation import Mutation
from workbench.engine.run.children import Children
from workbench.engine.run.dataflow import DataflowWalk
from workbench.engine.run.execution import Execution, RunParts
from workbench.engine.run.flow import next_phase
from workbench.engine.run.graph_walk import GraphWalk, PipelineRun, RestartAsked, Restarted
from workbench.engine.run.visit import Visit
from workbench.engine.selection.context_selection import ContextSelection
from workbench.engine.selection.remembering import remember
from workbench.engine.services import Services
from workbench.engine.world import ToolCache, World
from workbench.language.clean import clean_line
from workbench.language.nearest import nearest


class Run:
    """Runs one cascade once. Its only result is events, and how it ended."""

    def __init__(
        self,
        definition: Definition,
        input: Mapping[str, Any],
        options: Options,
        ports: Ports,
        *,
        run_id: str = "",
        observe: Callable[[Event], None] = lambda event: None,
        parent: Parent | None = None,
        journaled: Sequence[Event] = (),
        chain: tuple[str, ...] = (),
        observe_child: Callable[[Event], None] = lambda event: None,
    ) -> None:
        """``journaled``: the events of this very run, when it is resumed (``JournalWriter``). ``chain``: the ids of
        the cascades that this one runs inside. ``observe_child`` sees the events of the runs that this one starts.

        Raises DefinitionError for a secret in the text that cannot be replaced."""
        definition = without_secrets(definition, ports.redact)
        run_id = run_id or ports.ids.run_id()
        journal = JournalWriter(
            run_id,
            ports.clock,
            ports.sink,
            observe,
            journaled or ports.journaled,
            recorded_at=ports.recorded_at,
        )
        journal.ports = _ports(ports.model)
        journal.ran_until = ports.ran_until
        world = World(input_without_secrets(input, ports.redact), cache=ToolCache(definition.cascade.tool_caching))
        depth = parent.depth if parent and parent.kind not in ("fork", "replay", "rerun", "checkpoint") else 0
        prompt_id = (parent.prompt_id if parent is not None else "") or journal.run_id
        self.parent = parent
        self.journal = journal
        self.services = services = Services(
            definition, options, ports, journal, world, depth=depth, prompt_id=prompt_id
        )
        chain = (*chain, definition.cascade.cascade_id)
        self._anew = ""
        """The node at which the run that began this one is to begin the next."""
        self._selection = ContextSelection(services)
        self._children = Children(services, Run, observe_child, chain)
        self._parts = RunParts(services, self._children, self._selection)

    # -- the walk ----------------------------------------------------------------------------------------------------

    async def execute(self) -> Outcome:
        """Run to an end. Cancelling the task stops the run: it is journaled as ``stopped``, and returned as such."""
        try:
            return await self._execute()
        finally:
            self.journal.rest()

    async def _execute(self) -> Outcome:
        self._start()
        status, output, reason = "success", "", ""
        try:
            output = await self._run()
        except PhaseBlocked as fault:
            status, reason = "blocked", fault.reason
        except PhaseFailed as fault:
            status, reason = "failed", fault.reason
        except RunStopped as stop:
            status, reason, output = "stopped", str(stop), stop.output
        except Divergence as fault:
            status, reason = "diverged", fault.message
        except asyncio.CancelledError as cancelled:
            status, reason = "stopped", stop_reason(cancelled)
            if (task := asyncio.current_task()) is not None:
                task.uncancel()
        if status == "stopped":
            self._selection.vectors.cancel()
            self._selection.summaries.cancel()
        await self._selection.vectors.close()
        await self._selection.summaries.settle()
        await remember(self.services, status)
        if status != "diverged":
            type = "cascade_complete" if status == "success" else "cascade_error"
            await self.services.fire(type, Place(), {"status": status, "output": output, "reason": reason})
        ended = await self._end(status, output, reason)
        await self._children.join_async(status)
        if self.journal.resumed_at > ended.seq:  # It had ended, but not those that it had started beside itself.
            await self._end(status, output, reason)
        return Outcome(status, output, dict(self.services.world.state), reason, self._anew)

    async def _end(self, status: str, output: str, reason: str) -> Event:
        """Journal the end, and wait until it is durable."""
        state = self.services.world.state
        ended = self.journal.emit("run_finished", status=status, output=output, state=state, reason=reason)
        try:
            await self.journal.durable()
        except asyncio.CancelledError:  # It has ended before that.
            self.journal.sync()
            if (task := asyncio.current_task()) is not None:
                task.uncancel()
        return ended

    async def _run(self) -> str:
        about = {"cascade_id": self.services.definition.cascade.cascade_id, "input": dict(self.services.world.input)}
        await self.services.fire("cascade_start", Place(), about)
        soundings = self.services.definition.cascade.soundings
        if soundings is not None and (soundings.candidates > 1 or soundings.reforge):
            output = await CascadeSoundings(self.services, self).run()
        else:
            output = await self.walk(self.services.world)
        await self.services.gate(Stop(StopKind.RUN_END, Place(), self.services.depth, state=self.services.world.state))
        return output

    def conversation(self, world: World, branch: str) -> Execution:
        """Returns the execution that stands for a whole walk among candidates: it renders templates and asks, and runs
        no phase."""
        return Visit(self._parts, world, 0, 0, branch).execution()

    async def walk(
        self,
        world: World,
        branch: str = "",
        mutation: Mutation | None = None,
        refine: str = "",
        given: tuple[Image, ...] = (),
    ) -> str:
        """Visit phases from the first one until the flow rules end the walk; the last one's output.

        ``mutation`` and ``refine`` vary the first phase's task (soundings of a whole cascade), ``given`` are images of
        what it refines.
        """
        if self.services.definition.graph.format == "dot":
            return await self._pipeline(world, branch)
        self.services.begin_walk(branch)
        if self.services.definition.graph.scheduling == "dataflow":
            return await DataflowWalk(self._parts, world).run()
        phases = {phase.name: index for index, phase in enumerate(self.services.definition.cascade.phases)}
        name, output = self.services.definition.graph.start, ""
        while name:
            visits = world.visits[name] + 1
            if visits > self.services.options.max_visits:
                chain = " > ".join(entry["phase"] for entry in world.lineage[-6:])
                raise PhaseFailed(
                    f"phase '{name}' was visited {self.services.options.max_visits} times (… {chain} > {name})"
                )
            world.visits[name] = visits
            visit = Visit(self._parts, world, phases[name], visits, branch)
            if not world.lineage:
                setup = visit.setup
                setup.mutation, setup.refine, setup.given = mutation, refine, given
            output = await visit.run()
            name = await self._route(visit)
        return output

    async def _pipeline(self, world: World, branch: str) -> str:
        """Walk a pipeline from its start, or from where the run that it continues stopped; the last text."""
        services, graph = self.services, self.services.definition.graph
        rules = graph.rules
        for key, value in {"goal": rules.goal, "label": rules.label, **rules.raw}.items():
            if value:
                world.wrote(services.journal.emit("state_set", key=f"graph.{key}", value=value, by="graph"))
                world.state[f"graph.{key}"] = value
        for key, value in services.options.context.items():
            world.wrote(services.journal.emit("state_set", key=key, value=value, by="checkpoint"))
            world.state[key] = value
        walk = GraphWalk(PipelineRun(self._parts, self._restart), world, branch)
        begins, edge = services.options.start or graph.start, None
        if services.options.done:
            begins, edge = walk.after(begins)
        try:
            await walk.walk(begins, edge=edge)
        except RestartAsked as asked:
            self._anew = asked.to
        return walk.output

    async def _restart(self, to: str, visit: Visit) -> Restarted:
        """Run the pipeline anew from a node, as often as a run asks for it; how the last one ended."""
        services, number = self.services, 0
        while True:
            number += 1
            options = replace(services.options, start=to, done=False, context={}, restarts=number)
            child = await self._children.run(
                services.definition, services.world.input, "restart", visit.place(), options=options
            )
            outcome = child.outcome
            if not outcome.restart:
                return Restarted(outcome.status, outcome.output, outcome.reason)
            to = outcome.restart

    async def _route(self, visit: Visit) -> str:
        targets = [target for target, _ in visit.setup.targets]
        route = next_phase(
            self.services.definition.graph, visit.phase.name, visit.route, visit.setup.route_rule, targets
        )
        self.journal.emit(
            "route_chosen", visit.place(), to=route.to, rule=route.rule, candidates=list(route.candidates)
        )
        if visit.world.lineage:
            visit.world.lineage[-1]["route"] = route.to
        stop = Stop(StopKind.AFTER_ROUTE, visit.place(), self.services.depth, state=visit.world.state)
        taken = (route.to,) if route.to else ()
        await self.services.gate(
            replace(stop, taken=taken, considered=tuple(route.candidates), outcome=visit.outcome.word)
        )
        return route.to

    def _start(self) -> None:
        definition, parent = self.services.definition, self.parent
        self.journal.emit(
            "run_started",
            session_id=self.services.options.session_id,
            cascade_id=definition.cascade.cascade_id,
            cascade_file=definition.source.file,
            cascade_text=definition.source.text,
            cascade_sha256=definition.sha256,
            includes=dict(definition.includes),
            input=self.services.world.input,
            options=self.services.options.to_json(),
            ports=_ports(self.services.ports.model),
            parent=None if parent is None else asdict(parent),
            version=__version__,
        )
        if secrets := labels_in(definition):
            told = "1 secret in the file is" if secrets == 1 else f"{secrets} secrets in the file are"
            words = f"{told} replaced: neither models nor tools get the value, name a variable instead"
            self.services.warn("secret", words)
        for problem in definition.not_run:
            self.services.warn(problem.code, problem.message, problem.path)
        if not self.services.depth:
            for code, text in self.services.ports.remarks([phase.name for phase in definition.cascade.phases]):
                self.services.warn(code, text)
        given = self.services.world.input.keys() - definition.cascade.inputs_schema.keys()
        for name in definition.cascade.inputs_schema:
            if name not in self.services.world.input:
                near = nearest(name, given)
                meant = f" (did you mean it by '{clean_line(near, 60)}'?)" if near else ""
                self.services.warn("input", f"input '{name}' was not given{meant}", ("inputs_schema", name))


def _ports(model: Model) -> dict[str, str]:
    """Names the ports that answer calls, for the journal; and why no provider does."""
    why = getattr(model, "why", "")
    return {"model": model.name, **({"why": why} if why else {})}
