"""Child graphs of a pipeline: run once, or supervised: observed, steered and waited for until they end."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec.structs import replace

from workbench.context.place import Place
from workbench.engine.contracts import Divergence, Feedback, ToolResult
from workbench.engine.current import observing
from workbench.engine.definition import Options
from workbench.engine.engine_tools import OBSERVE
from workbench.engine.faults import PhaseFailed
from workbench.engine.gate import RunStopped
from workbench.engine.human.people import within
from workbench.engine.routing.choosing import compared
from workbench.engine.routing.outcome import PhaseOutcome
from workbench.engine.run.children import ChildRun, options_of_child
from workbench.engine.run.execution import Execution
from workbench.engine.validators import Child
from workbench.language.dot.conditions import ConditionFault, Lookup, parse
from workbench.language.graph import Graph, Node

PIPELINE = "pipeline"
"""Kind of a run that a node of a pipeline starts."""
STEER = "steer"
Set = Callable[[str, Any], None]
"""Puts a value into the context."""
Guide = Callable[[str], Awaitable[str]]
"""Asks the node's model for guidance to the child; empty for none."""


class Steering:
    """Messages of a manager to the phases of its child, between their calls."""

    def __init__(self) -> None:
        self._said: deque[str] = deque()

    def say(self, text: str) -> None:
        self._said.append(text)

    async def hear(self, place: Place, *, redo: bool, tool: int = 0) -> Feedback | None:
        return Feedback(self._said.popleft()) if self._said and not redo and not tool else None


class ChildGraph:
    """The child of one node."""

    def __init__(self, execution: Execution, graph: Graph, node: Node, put: Set) -> None:
        self._execution = execution
        self._node = node
        self._put = put
        self._file = node.rules.child or graph.rules.child

    def _definition(self) -> Any:
        if not self._file:
            raise PhaseFailed(f"child_missing: '{self._node.id}' names no child graph (stack.child_dotfile)", "child")
        return self._execution.parts.children.found(self._file)

    def _options(self) -> Options:
        options = options_of_child(self._execution.engine.options)
        return replace(options, folder=self._node.rules.child_workdir or options.folder)

    async def once(self) -> PhaseOutcome:
        """Run it to its end."""
        parts, run = self._execution.parts, self._execution.engine
        place = self._execution.place()
        child = await parts.children.run(self._definition(), run.world.input, PIPELINE, place, options=self._options())
        return self._ended(child)

    async def supervised(self, lookup: Lookup, guide: Guide) -> PhaseOutcome:
        """Look at it again and again, until it ends, the stop condition holds or no cycle is left."""
        rules, execution = self._node.rules, self._execution
        if not rules.child_autostart:
            raise PhaseFailed(f"'{self._node.id}' starts no child (stack.child_autostart), so there is none to watch")
        try:
            stops = compared(parse(rules.stop_condition)) if rules.stop_condition.strip() else None
        except ConditionFault as fault:
            raise PhaseFailed(f"manager.stop_condition: {fault} (character {fault.at + 1})", "condition") from fault
        steering = Steering()
        started = ChildRun(
            execution.parts.children,
            self._definition(),
            execution.engine.world.input,
            PIPELINE,
            execution.place(),
            options=self._options(),
            audibles=steering,
        )
        task = asyncio.ensure_future(started.execute())
        try:
            for cycle in range(1, rules.max_cycles + 1):
                seen = await self._observed(started, task, cycle)
                if seen.get("ended"):
                    child = await task
                    execution.parts.children.paid(child, execution.place())
                    started.finished(child)
                    return self._ended(child)
                if stops is not None and stops.holds(lookup):
                    await self._stop(started, task, "manager.stop_condition holds")
                    return PhaseOutcome(notes=f"stopped in cycle {cycle}: {rules.stop_condition} holds")
                if STEER in rules.actions and (said := await guide(json.dumps(seen, ensure_ascii=False))):
                    steering.say(said)
            await self._stop(started, task, "manager.max_cycles is reached")
            raise PhaseFailed(f"max_cycles: the child had not ended after {rules.max_cycles:,} cycles", "max_cycles")
        finally:
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _observed(self, started: ChildRun, task: asyncio.Task[Child], cycle: int) -> Mapping[str, Any]:
        """The child's state after the poll interval, or at its end. Journaled as an effect, so that a replay sees the
        same in each cycle.
        """
        engine, place = self._execution.engine, self._execution.place(cycle)

        async def look() -> ToolResult:
            with contextlib.suppress(TimeoutError):
                await within(engine.ports.clock, _done(task), self._node.rules.poll_interval)
            return ToolResult(json.dumps({"ended": task.done(), **started.seen()}, ensure_ascii=False))

        arguments = {"cycle": cycle}
        about: dict[str, Any] = {"index": 1, "call_id": "", "tool": OBSERVE}
        engine.journal.emit(
            "tool_started", place, **about, arguments=json.dumps(arguments), native=False, side_effects=False
        )
        with observing(look):
            result = await engine.ports.tools.call(OBSERVE, arguments, place, 1)
        text, _ = engine.ports.redact(result.text)
        engine.journal.emit(
            "tool_finished",
            place,
            **about,
            is_error=result.is_error,
            added=[],
            images=[],
            duration_s=round(result.duration_s, 6),
            sandbox=result.sandbox,
            text=text,
        )
        seen = json.loads(text) if not result.is_error else {}
        self._put("stack.cycle", cycle)
        for key in ("status", "current_node", "outcome"):
            if key in seen:
                self._put(f"stack.child.{key}", seen[key])
        return seen

    async def _stop(self, started: ChildRun, task: asyncio.Task[Child], why: str) -> None:
        task.cancel()
        ended = (await asyncio.gather(task, return_exceptions=True))[0]
        if isinstance(ended, Child):
            self._execution.parts.children.paid(ended, self._execution.place())
        started.stopped(why)
        self._put("stack.child.status", "stopped")

    def _ended(self, child: Child) -> PhaseOutcome:
        outcome = child.outcome
        if outcome.status == "stopped":
            raise RunStopped(outcome.reason)
        if outcome.status == "diverged":
            raise Divergence(self._execution.place(), f"in {child.session_id}: {outcome.reason}")
        self._put("stack.child.status", outcome.status)
        self._put("stack.child.output", outcome.output)
        self._execution.output = outcome.output
        if outcome.status == "success":
            return PhaseOutcome(notes=outcome.output)
        return replace(PhaseOutcome("fail"), failure_reason=f"the child graph {outcome.words}")


async def _done(task: asyncio.Task[Child]) -> None:
    await asyncio.wait({task})
