"""The walk through a pipeline: node by node along the edges that outcomes choose, and into branches side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from workbench.engine.contracts import Divergence
from workbench.engine.faults import TRUST, PhaseBlocked, PhaseFailed
from workbench.engine.gate import Stop, StopKind
from workbench.engine.routing.choosing import AFTER_FAIL, MEETING, Selection, choose_edge, gate_passes, no_way_on
from workbench.engine.routing.outcome import PhaseOutcome, stated
from workbench.engine.run.children import RESTART
from workbench.engine.run.execution import RunParts
from workbench.engine.run.node_work import PipelineWork
from workbench.engine.run.visit import Visit
from workbench.engine.world import World
from workbench.language.dot.conditions import ConditionFault
from workbench.language.graph import Edge, Graph, Node, NodeRules, meeting

MOST_RESTARTS = 20


class RestartAsked(Exception):
    """A run that another began anew is to be begun anew itself."""

    def __init__(self, to: str) -> None:
        super().__init__(to)
        self.to = to


class Restarted(Struct, frozen=True):
    """How a run ended that another one went on for."""

    status: str
    output: str
    reason: str


class PipelineRun(Struct):
    """Values that all walks of one run share."""

    parts: RunParts
    restart: Callable[[str, Visit], Any]
    """Run the pipeline anew from a node; awaited, gives ``Restarted``."""
    gates: dict[str, PhaseOutcome] = field(default_factory=dict)
    """The latest outcome of each goal gate that was visited, on any branch."""
    sent_back: int = 0
    """How often an exit sent the walk back for one."""

    @property
    def graph(self) -> Graph:
        return self.parts.services.definition.graph


class BranchResult(Struct, frozen=True):
    """The outcome of one branch of a parallel node."""

    id: str
    outcome: PhaseOutcome
    output: str = ""
    updates: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """An entry of ``parallel.results``."""
        score = self.updates.get("score")
        return {
            "id": self.id,
            "status": self.outcome.status,
            "score": score if isinstance(score, int | float) and not isinstance(score, bool) else None,
            "notes": self.outcome.notes or self.outcome.failure_reason,
            "output": self.output,
            "context_updates": dict(self.updates),
        }


class _Way(Struct, frozen=True):
    """The next step of a walk."""

    to: str = ""
    """Empty at the end."""
    edge: int | None = None
    """Index in the graph; None for a jump."""


class GraphWalk:
    """One position in a pipeline: that of the run, or of a branch."""

    def __init__(self, run: PipelineRun, world: World, branch: str = "") -> None:
        self.run = run
        self.world = world
        self.branch = branch
        self.outcome = PhaseOutcome()
        """Of the latest phase that was no route."""
        self.output = ""
        """The latest text that a phase gave."""
        self.updates: dict[str, Any] = {}
        """The values that phases of this walk put into the context."""
        self._services = run.parts.services
        self._phases = {phase.name: index for index, phase in enumerate(self._services.definition.cascade.phases)}
        self._edges = {id(edge): index for index, edge in enumerate(run.graph.edges)}

    @property
    def graph(self) -> Graph:
        return self.run.graph

    async def walk(self, start: str, until: str = "", edge: int | None = None) -> PhaseOutcome:
        """Visit nodes from ``start`` to the exit, or up to the node ``until``, which is not visited; the last outcome.

        Raises PhaseFailed if no edge can be taken, PhaseBlocked, RunStopped, Divergence.
        """
        self._services.begin_walk(self.branch)
        way = _Way(start, edge)
        while way.to and way.to != until:
            node = self.run.graph.node(way.to)
            assert node is not None  # Edges lead to nodes that exist, and lint refuses jumps that do not.
            visit = await self._visit(node, way.edge)
            if node.kind == "exit" and until:
                raise PhaseFailed(f"the branch came to the exit '{node.id}' before '{until}', where the branches meet")
            way = await (self._ended(visit) if node.kind == "exit" else self._next(visit, node))
        return self.outcome

    async def _visit(self, node: Node, edge: int | None) -> Visit:
        visits = self.world.visits[node.id] + 1
        if visits > node.rules.max_visits:
            lately = " > ".join(entry["phase"] for entry in self.world.lineage[-6:])
            raise PhaseFailed(
                f"max_visits: '{node.id}' was visited {node.rules.max_visits} times (… {lately} > {node.id})",
                "max_visits",
            )
        self.world.visits[node.id] = visits
        work = PipelineWork(self, node)
        visit = Visit(self.run.parts, self.world, self._phases[node.id], visits, self.branch, work=work, edge=edge)
        work.visit = visit
        before = self.outcome
        output = await visit.run()
        outcome = visit.outcome
        if node.kind != "route":
            self.outcome = outcome
        self.output = output or self.output
        self.updates |= outcome.context_updates
        if node.rules.goal_gate:
            ends = node.kind == "exit" and node.rules.gate_condition
            self.run.gates[node.id] = before if ends else outcome
        return visit

    def after(self, node: str) -> tuple[str, int]:
        """The node behind one that ended before this run, by its context, and the edge to it. Raises PhaseFailed if no
        edge can be taken.
        """
        state, edges = self.world.state, self.run.graph.out(node)
        label = str(state.get("preferred_label") or "")
        self.outcome = stated({"outcome": str(state.get("outcome") or "success"), "preferred_label": label}, "") or (
            PhaseOutcome()
        )
        selection = choose_edge(edges, self.outcome, self.lookup)
        if selection.index < 0:
            code, reason = no_way_on(node, selection)
            raise PhaseFailed(reason, code)
        taken = edges[selection.index]
        return taken.dst, self._edges[id(taken)]

    # -- what follows ------------------------------------------------------------------------------------------------

    def lookup(self, key: str) -> Any:
        """The value of a key of a condition: with or without ``context.``; inside objects by a path. What no phase has
        set is that of the run's input.
        """
        state = self.world.state
        for name in (key, key.removeprefix("context.")):
            if name == "outcome":
                return self.outcome.word
            if name == "preferred_label":
                return self.outcome.preferred_label
            for values in (state, self.world.input):
                if name in values:
                    return values[name]
        path = key.removeprefix("context.")
        found = _inside(state, path)
        return _inside(self.world.input, path) if found is None else found

    async def _next(self, visit: Visit, node: Node) -> _Way:
        """The next step from a node, journaled with the verdict on each edge. Raises PhaseFailed without one."""
        edges, outcome = self.run.graph.out(node.id), visit.outcome
        failed = outcome.status == "fail"
        work = visit.work
        if isinstance(work, PipelineWork) and work.check == TRUST:
            # No way on leads to a trusted folder, and a loop would ask its models up to max_visits times for nothing.
            raise PhaseFailed(f"'{node.id}' failed: {outcome.failure_reason}", TRUST)
        chosen = work.chosen if isinstance(work, PipelineWork) else None
        meets = work.meets if isinstance(work, PipelineWork) else ""
        if meets and not failed:
            return await self._went(visit, Selection(-1, MEETING), meets, edges)
        selection = choose_edge(edges, outcome, self.lookup, chosen=chosen, allows=self._allows(node, outcome))
        if selection.index >= 0:
            return await self._went(visit, selection, edges[selection.index].dst, edges)
        if failed:
            targets = {
                "retry_target": node.rules.retry_target,
                "fallback_retry_target": node.rules.fallback_retry_target,
            }
            for name, target in targets.items():
                if target and self.run.graph.node(target) is not None:
                    return await self._went(visit, replace(selection, step=name), target, edges)
        code, reason = no_way_on(node.id, selection)
        if failed:
            code, reason = "failed", f"'{node.id}' failed: {outcome.failure_reason or 'it gave no reason'}"
        self._journal(visit, selection, "", None, code=code, reason=reason)
        await self._stop(visit, (), edges)
        raise PhaseFailed(reason, code)

    def _allows(self, node: Node, outcome: PhaseOutcome) -> Callable[[Edge], bool]:
        """Returns which edges without a condition count: after a failure those into or out of a route."""
        if outcome.status != "fail" or node.kind == "route":
            return lambda edge: True
        return lambda edge: (target := self.run.graph.node(edge.dst)) is not None and target.kind == "route"

    async def _went(self, visit: Visit, selection: Selection, to: str, edges: tuple[Edge, ...]) -> _Way:
        taken = edges[selection.index] if selection.index >= 0 else None
        index = self._edges[id(taken)] if taken is not None else None
        failed = visit.outcome.status == "fail"
        step = f"{selection.step} ({AFTER_FAIL})" if failed and taken is not None else selection.step
        self._journal(visit, replace(selection, step=step), to, index)
        await self._stop(visit, (to,), edges)
        if taken is not None and taken.kind == RESTART:
            return await self._restart(visit, to)
        return _Way(to, index)

    async def _stop(self, visit: Visit, taken: tuple[str, ...], edges: Iterable[Edge]) -> None:
        """Wait where it is known what follows a node, and nothing of that has begun."""
        considered, outcome = tuple(edge.dst for edge in edges), visit.outcome.word
        depth, state = self._services.depth, self.world.state
        await self._services.gate(
            Stop(
                StopKind.AFTER_ROUTE,
                visit.place(),
                depth,
                state=state,
                taken=taken,
                considered=considered,
                outcome=outcome,
            )
        )

    async def _restart(self, visit: Visit, to: str) -> _Way:
        """A new run goes on in this one's place; it ends as that one does."""
        if self._services.options.restarts >= MOST_RESTARTS:
            raise PhaseFailed(f"loop_restart: the pipeline was begun anew {MOST_RESTARTS} times", "loop_restart")
        if self._services.options.restarts:
            raise RestartAsked(to)  # The run that began this one begins the next, so that they do not nest.
        ended: Restarted = await self.run.restart(to, visit)
        if ended.status == "blocked":
            raise PhaseBlocked(ended.reason)
        if ended.status != "success":
            raise PhaseFailed(ended.reason)
        self.output = ended.output
        return _Way()

    async def _ended(self, visit: Visit) -> _Way:
        """At the exit: the end, or the target of a goal gate that did not pass. Raises PhaseFailed."""
        graph = self.run.graph
        for gate, outcome in self.run.gates.items():
            own = graph.node(gate)
            rules = own.rules if own is not None else NodeRules()
            try:
                if gate_passes(rules.gate_condition, outcome, self.lookup):
                    continue
            except ConditionFault as fault:
                raise PhaseFailed(f"goal_gate: {fault} (character {fault.at + 1})", "condition") from fault
            word = f"{outcome.word} ({rules.gate_condition})" if rules.gate_condition else outcome.word
            targets = {
                "its retry_target": rules.retry_target,
                "its fallback_retry_target": rules.fallback_retry_target,
                "the graph's retry_target": graph.rules.retry_target,
                "the graph's fallback_retry_target": graph.rules.fallback_retry_target,
            }
            most, lacks = graph.rules.most_sent_back, "no retry_target says where to go back to"
            if most is not None and self.run.sent_back >= most:
                targets, lacks = {}, f"max_goal_gate_redirects={most} is used up"
            for name, target in targets.items():
                if target and graph.node(target) is not None:
                    self.run.sent_back += 1
                    self._journal(visit, Selection(-1, f"goal gate '{gate}' is {word}: {name}"), target, None)
                    await self._stop(visit, (target,), ())
                    return _Way(target)
            reason = f"goal_gate: '{gate}' is {word}, and {lacks}"
            self._journal(visit, Selection(-1, "goal gate"), "", None, code="goal_gate", reason=reason)
            raise PhaseFailed(reason, "goal_gate")
        self._journal(visit, Selection(-1, "the exit"), "", None)
        return _Way()

    def _journal(self, visit: Visit, selection: Selection, to: str, edge: int | None, **why: str) -> None:
        self._services.journal.emit(
            "route_chosen",
            visit.place(),
            to=to,
            rule=selection.step,
            candidates=[verdict.to for verdict in selection.verdicts],
            verdicts=[verdict.to_json() for verdict in selection.verdicts],
            **({"edge": edge} if edge is not None else {}),
            **why,
        )
        if self.world.lineage:
            self.world.lineage[-1]["route"] = to

    # -- branches ----------------------------------------------------------------------------------------------------

    async def branches(self, node: Node, visit: Visit) -> tuple[list[BranchResult], str]:
        """Walk every edge out of a parallel node at once, each on a copy of the context, up to the node where they
        meet. Returns their results in the order of the edges, and the meeting node. Raises PhaseFailed if they never
        meet.
        """
        edges = self.run.graph.out(node.id)
        meets = meeting(self.run.graph, node.id)
        if not meets:
            raise PhaseFailed(f"parallel_no_meeting: the branches of '{node.id}' never meet", "parallel_no_meeting")
        limit = asyncio.Semaphore(max(1, node.rules.max_parallel))
        names = _branch_names(node.id, visit.place().visit, [edge.dst for edge in edges])

        async def one(edge: Edge, name: str) -> BranchResult:
            async with limit:
                await self._stop(visit, (edge.dst,), (edge,))
                return await self._branch(edge, name, meets)

        work = [one(edge, name) for edge, name in zip(edges, names, strict=True)]
        if node.rules.join_policy == "first_success":
            found = await _first_success(work)
        else:
            found = await _all(work)
        stopped = BranchResult("", PhaseOutcome("skipped", notes="another branch succeeded first"))
        return [
            replace(result or stopped, id=name.partition(".")[2]) for result, name in zip(found, names, strict=True)
        ], meets

    async def _branch(self, edge: Edge, name: str, meets: str) -> BranchResult:
        branch = f"{self.branch}/{name}" if self.branch else name
        walk = GraphWalk(self.run, self.world.copy(), branch)
        walk.outcome, walk.output = self.outcome, ""
        try:
            outcome = await walk.walk(edge.dst, meets, self._edges[id(edge)])
        except PhaseBlocked:
            raise
        except PhaseFailed as fault:
            if fault.check == TRUST:
                raise
            outcome = replace(walk.outcome, status="fail", outcome="", failure_reason=fault.reason)
        return BranchResult(edge.dst, outcome, walk.output, walk.updates)


def _inside(state: Mapping[str, Any], path: str) -> Any:
    """The value at a path inside objects, whose keys may hold dots themselves; None if it is missing."""
    parts = path.split(".")
    for end in range(len(parts) - 1, 0, -1):
        inner = state.get(".".join(parts[:end]))
        if isinstance(inner, Mapping):
            rest = ".".join(parts[end:])
            return inner[rest] if rest in inner else _inside(inner, rest)
    return None


def _branch_names(id: str, visit: int, targets: list[str]) -> list[str]:
    """A name for each branch: the node, its visit from the second on, and the target; told apart by numbers."""
    first = id if visit <= 1 else f"{id}#{visit}"
    names: list[str] = []
    for target in targets:
        name, number = f"{first}.{target}", 2
        while name in names:
            name, number = f"{first}.{target}~{number}", number + 1
        names.append(name)
    return names


async def _all(work: list[Any]) -> list[BranchResult | None]:
    """All results. The first exception ends the others, and is raised when they have ended."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        await _end(tasks)
        raise


async def _first_success(work: list[Any]) -> list[BranchResult | None]:
    """The results up to the first that passed; None for branches that were cancelled then. A branch that a recording
    cuts off, because another had won, is None as well.
    """
    tasks = [asyncio.ensure_future(one) for one in work]
    results: list[BranchResult | None] = [None] * len(tasks)
    cut: Divergence | None = None
    try:
        waiting = set(tasks)
        while waiting:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for index, task in enumerate(tasks):
                if task not in done:
                    continue
                try:
                    results[index] = task.result()
                except Divergence as fault:
                    cut = fault
            if any(result is not None and result.outcome.passed for result in results):
                cut = None
                break
    finally:
        await _end(tasks)
    if cut is not None:
        raise cut
    return results


async def _end(tasks: list[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
