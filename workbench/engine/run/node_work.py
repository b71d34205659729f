"""The work of a pipeline's node in one visit, by its kind, and its outcome."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from msgspec.structs import replace

from workbench.engine.contracts import NODE_TIMEOUT, ModelFault, Question
from workbench.engine.faults import TRUST, PhaseBlocked, PhaseFailed
from workbench.engine.gate import RunStopped
from workbench.engine.human.people import MOST_REFUSED, TimedOut
from workbench.engine.routing.gates import Choice, choices, is_freeform
from workbench.engine.routing.gates import chosen as choice_of
from workbench.engine.routing.outcome import PhaseOutcome, read_outcome, status_of
from workbench.engine.routing.retries import policy_of
from workbench.engine.run.command import AFTER, BEFORE, command_values, hooks_of, run_hook
from workbench.engine.run.deterministic import ToolPhase
from workbench.engine.run.execution import Execution
from workbench.engine.run.manager import ChildGraph
from workbench.engine.run.visit import Visit
from workbench.json_text import as_text
from workbench.language.dot.variables import expand
from workbench.language.graph import COMMAND, Edge, Graph, Node

ENGINE = "pipeline"
"""``by`` of what the engine itself puts into the context."""
EXCERPT = 200
"""Characters of ``last_response``."""
TOOL = "tool_command"
"""The name that hooks are told for the tool of a tool node."""
TIMED_OUT = 124
"""Exit code of a command that ran out of time."""
_REFUSED = "its command does not run, because this folder is not trusted: `workbench trust` shows and allows it"
SKIP = "skip"
"""An answer that skips a gate."""


class Walking(Protocol):
    """The walk that a node is visited by."""

    outcome: PhaseOutcome
    output: str

    @property
    def graph(self) -> Graph: ...

    def lookup(self, key: str) -> Any:
        """The value of a key of a condition."""
        ...

    async def branches(self, node: Node, visit: Visit) -> tuple[Sequence[Any], str]:
        """Walk every edge out of a parallel node; the results, and the node where they meet."""
        ...


class PipelineWork:
    """The work of one visit."""

    def __init__(self, walk: Walking, node: Node) -> None:
        self.walk = walk
        self.node = node
        self.visit: Visit
        self.chosen: int | None = None
        """The edge that a person picked, among those out of the node."""
        self.meets = ""
        """For a parallel node: the node where the walk continues."""
        self.check = ""
        """``TRUST`` if the node needs trust that this workspace lacks."""
        self._terminal = False
        """Whether another execution would fail in the same way."""

    @property
    def kind(self) -> str:
        return self.node.kind

    @property
    def reports(self) -> bool:
        edges = self.walk.graph.out(self.node.id)
        return self.asks_model and (len(edges) > 1 or any(edge.condition for edge in edges))

    @property
    def asks_model(self) -> bool:
        return self.node.asks_model

    async def run(self, execution: Execution) -> PhaseOutcome:
        """Executions until one succeeds or none is left. Returns its outcome, with the engine's keys in the context."""
        self._set(execution, "current_node", self.node.id)
        work: Mapping[str, Callable[[Execution], Awaitable[PhaseOutcome]]] = {
            "llm": self._model,
            "synthesis": self._model,
            "tool": self._tool,
            "human": self._human,
            "join": self._join,
            "parallel": self._parallel,
            "subgraph": self._subgraph,
        }
        once = work.get(self.node.kind)
        if once is None:  # start, exit; a route passes on the outcome before it.
            return self.walk.outcome if self.node.kind == "route" else PhaseOutcome()
        outcome = await self._executions(execution, once)
        self._keep(execution, outcome)
        return outcome

    async def _executions(
        self, execution: Execution, once: Callable[[Execution], Awaitable[PhaseOutcome]]
    ) -> PhaseOutcome:
        rules, ports = self.node.rules, execution.engine.ports
        policy = policy_of(rules.retry_policy, rules.max_retries)
        number = 1
        while True:
            outcome = await self._once(execution, once)
            self._set(execution, f"internal.retry_count.{self.node.id}", number - 1)
            again = outcome.status in ("retry", "fail") and not self._terminal
            if not again or number >= policy.executions:
                break
            number += 1
            await ports.clock.sleep(policy.wait(number, ports.random.uniform()))
        if outcome.status not in ("retry", "fail"):
            return outcome
        reason = outcome.failure_reason or (f"outcome={outcome.word}" if outcome.stated_by else "")
        if number > 1:
            reason = f"{reason or 'no reason given'} (after {number} executions)"
        if rules.allow_partial and not self._terminal:
            return replace(outcome, status="partial_success", outcome="", failure_reason=reason)
        word = outcome.outcome if outcome.status == "fail" else ""
        return replace(
            outcome,
            status="fail",
            outcome=word,
            failure_reason=reason or "it gave no reason",
            failure_class=outcome.failure_class or "deterministic",
        )

    async def _once(self, execution: Execution, once: Callable[[Execution], Awaitable[PhaseOutcome]]) -> PhaseOutcome:
        try:
            return await once(execution)
        except PhaseBlocked:
            raise
        except PhaseFailed as fault:
            cause = fault.__cause__
            retryable = isinstance(cause, ModelFault) and (cause.retryable or cause.kind == NODE_TIMEOUT)
            self.check = fault.check
            self._terminal = fault.check == TRUST or (isinstance(cause, ModelFault) and not retryable)
            transient = retryable or fault.check == "timeout"
            return PhaseOutcome(
                "fail",
                failure_reason=fault.reason,
                failure_class="transient_infra" if transient else "deterministic",
            )

    # -- the context -------------------------------------------------------------------------------------------------

    def _set(self, execution: Execution, key: str, value: Any) -> None:
        """Put a value into the context, if it is not there yet."""
        state = execution.world.state
        if key not in state or state[key] != value:
            execution.set_state(key, execution.engine.redacted_json(value), execution.place(), by=ENGINE)

    def _keep(self, execution: Execution, outcome: PhaseOutcome) -> None:
        for key, value in outcome.context_updates.items():
            self._set(execution, key.removeprefix("context."), value)
        self._set(execution, "outcome", outcome.word)
        self._set(execution, "preferred_label", outcome.preferred_label)
        self._set(execution, "last_stage", self.node.id)
        if outcome.failure_class or "failure_class" in execution.world.state:
            self._set(execution, "failure_class", outcome.failure_class)
        if execution.output and self.node.kind != "parallel":
            self._set(execution, "last_response", execution.output[:EXCERPT])

    def _expanded(self, execution: Execution, text: str) -> str:
        """A text of the file with its variables filled in."""
        if "$" not in text:
            return text
        world, rules = execution.world, self.walk.graph.rules
        known = {name: value for name, value in rules.variables.items() if value is not None}
        for name, value in {**world.input, **world.state}.items():
            known[name] = known[f"context.{name}"] = as_text(value)
        for id, output in world.outputs.items():
            known[f"codergen.{id}.output"] = known[f"{id}.output"] = as_text(output)
        known["goal"] = known["graph.goal"] = rules.goal
        known["label"] = rules.label
        return expand(text, known)

    # -- models ------------------------------------------------------------------------------------------------------

    async def _model(self, execution: Execution) -> PhaseOutcome:
        if self.node.rules.timeout is not None:
            run = execution.engine
            run.deadlines[execution.place().visit_key] = run.ports.clock.monotonic() + self.node.rules.timeout
        return await self._asked(execution, self._task(execution))

    def _task(self, execution: Execution) -> str:
        """The prompt, variables filled in; of a node without one its label."""
        text = execution.phase.instructions or self.node.prompt or self.node.label or self.node.id
        if text.startswith("@") and "\n" not in text:
            text = execution.instructions()
        return self._expanded(execution, text)

    async def _asked(self, execution: Execution, task: str) -> PhaseOutcome:
        execution.system_text = self._expanded(execution, self.node.rules.system_prompt)
        answer = await (execution.anew() if execution.attempt else execution.run(task))
        outcome = execution.reported or read_outcome(answer)
        return replace(outcome, notes=outcome.notes or answer)

    # -- commands ----------------------------------------------------------------------------------------------------

    async def _tool(self, execution: Execution) -> PhaseOutcome:
        # A loop of commands asks no model, before whose calls the limits of the run are looked at otherwise.
        execution.engine.check_limits()
        execution.attempt += 1
        place, (before, after) = execution.place(execution.attempt), hooks_of(self.walk.graph, self.node.id)
        if before and (hook := await run_hook(execution, before, TOOL, place, BEFORE + 1)).is_error:
            self._terminal = hook.needs_trust
            if hook.needs_trust:
                raise PhaseFailed(_REFUSED, TRUST)
            raise PhaseFailed(f"the hook before the command failed: {hook.text}", "hook")
        arguments: dict[str, Any] = {"command": self._expanded(execution, self.node.rules.command)}
        if self.node.rules.timeout is not None:
            arguments["timeout"] = self.node.rules.timeout
        parts = execution.parts
        result = await ToolPhase(execution, parts.children, execution.feedback, tool=COMMAND).call(arguments, place)
        values = command_values(result)
        if after:
            await run_hook(execution, after, TOOL, place, AFTER + 1, values["tool.exit_code"])
        for key, value in values.items():
            self._set(execution, key, value)
        execution.output = result.text if result.is_error else values["tool.output"]
        if not result.is_error:
            return PhaseOutcome(notes=execution.output)
        self._terminal = result.needs_trust
        self.check = TRUST if result.needs_trust else ""
        lines = [_REFUSED] if result.needs_trust else result.text.strip().splitlines()
        return PhaseOutcome(
            "fail",
            notes=execution.output,
            failure_reason=lines[-1] if lines else "the command failed",
            failure_class="transient_infra" if values["tool.exit_code"] == TIMED_OUT else "deterministic",
        )

    # -- people ------------------------------------------------------------------------------------------------------

    async def _human(self, execution: Execution) -> PhaseOutcome:
        node, edges = self.node, self.walk.graph.out(self.node.id)
        text = self._expanded(execution, node.prompt or node.label or node.id)
        if is_freeform(edges, asked=node.rules.freeform):
            return await self._free(execution, text, edges)
        given = choices(edges)
        try:
            choice = await self._chosen(execution, text, given)
        except TimedOut:
            choice = choice_of(node.rules.default_choice, given)
            if choice is None:
                waited = f"nobody answered within {node.rules.timeout or 0:g} s"
                return PhaseOutcome("retry", failure_reason=waited, failure_class="transient_infra")
        if choice is None:
            self._terminal = True
            return PhaseOutcome("fail", failure_reason="the question was skipped", failure_class="deterministic")
        self.chosen = choice.index
        for key, value in {"selected": choice.key, "label": choice.label, "text": choice.text}.items():
            self._set(execution, f"human.gate.{key}", value)
        execution.output = choice.label
        status = status_of(choice.outcome) if choice.outcome else "success"
        return PhaseOutcome(
            status if status in ("success", "partial_success", "fail") else "success",
            "" if choice.outcome in ("", status) else choice.outcome,
            preferred_label=choice.label,
            suggested_next_ids=(choice.target,),
            notes=f"a person chose {choice.label}",
            failure_reason=f"a person chose {choice.label}" if status == "fail" else "",
        )

    async def _chosen(self, execution: Execution, text: str, given: Sequence[Choice]) -> Choice | None:
        """A person's choice; None if the question is skipped. Raises TimedOut, RunStopped."""
        question = Question(text, self.walk.output, tuple(one.text for one in given), "choice")
        tries = 0
        while tries < MOST_REFUSED:
            answer = await execution.ask(question, timeout=self.node.rules.timeout)
            tries += not execution.engine.journal.repeated
            if (choice := choice_of(answer, given)) is not None:
                return choice
            if not answer.strip() or answer.strip().lower() == SKIP:
                return None
            known = ", ".join(one.text for one in given)
            question = replace(question, question=f"{text}\n'{answer}' is none of the choices: {known}")
        raise RunStopped(f"no answer fits the choices of '{self.node.id}'")

    async def _free(self, execution: Execution, text: str, edges: Sequence[Edge]) -> PhaseOutcome:
        try:
            answer = await execution.ask(Question(text, self.walk.output), timeout=self.node.rules.timeout)
        except TimedOut:
            answer = self.node.rules.default_choice
            if not answer:
                return PhaseOutcome("retry", failure_reason="nobody answered in time", failure_class="transient_infra")
        if answer.strip().lower() == SKIP:
            self._terminal = True
            return PhaseOutcome("fail", failure_reason="the question was skipped", failure_class="deterministic")
        for key in ("selected", "label", "text"):
            self._set(execution, f"human.gate.{key}", answer)
        execution.output = answer
        if len(edges) == 1:
            self.chosen = 0
        return PhaseOutcome(preferred_label=answer, notes=answer)

    # -- branches ----------------------------------------------------------------------------------------------------

    async def _parallel(self, execution: Execution) -> PhaseOutcome:
        results, self.meets = await self.walk.branches(self.node, self.visit)
        bodies = [result.to_json() for result in results]
        self._set(execution, "parallel.results", bodies)
        passed = [body for body in bodies if body["status"] in ("success", "partial_success")]
        told = "; ".join(f"{body['id']}: {body['status']}" for body in bodies)
        execution.output = told
        if self.node.rules.join_policy == "first_success":
            if not passed:
                return PhaseOutcome("fail", notes=told, failure_reason=f"no branch succeeded ({told})")
            return PhaseOutcome(notes=told)
        whole = all(body["status"] == "success" for body in bodies)
        return PhaseOutcome("success" if whole else "partial_success", notes=told)

    async def _join(self, execution: Execution) -> PhaseOutcome:
        """Pick the best branch: by a model if the node has a prompt, else by status, score and id."""
        bodies = [body for body in execution.world.state.get("parallel.results") or () if isinstance(body, Mapping)]
        if not bodies:
            return PhaseOutcome(notes="no branches came here")
        ranked = sorted(bodies, key=_rank)
        best, stated_outcome = ranked[0], PhaseOutcome()
        if best.get("status") not in ("success", "partial_success"):
            told = "; ".join(f"{body.get('id')}: {body.get('notes') or body.get('status')}" for body in bodies)
            return PhaseOutcome("fail", failure_reason=f"every branch failed ({told})")
        if self.node.prompt:
            stated_outcome = await self._asked(execution, f"{self._task(execution)}\n\n{_listed(ranked)}")
            best = _picked(execution.output, stated_outcome, ranked) or best
        else:
            execution.output = as_text(best.get("output"))
        self._set(execution, "parallel.fan_in.best_id", best.get("id", ""))
        self._set(execution, "parallel.fan_in.best_outcome", best.get("status", ""))
        return replace(stated_outcome, notes=stated_outcome.notes or f"best branch: {best.get('id', '')}")

    # -- child graphs ------------------------------------------------------------------------------------------------

    async def _subgraph(self, execution: Execution) -> PhaseOutcome:
        child = ChildGraph(execution, self.walk.graph, self.node, partial(self._set, execution))
        if self.node.rules.once:
            return await child.once()

        async def guide(seen: str) -> str:
            task = f"{self._expanded(execution, self.node.prompt)}\n\n## The child now\n\n{seen}"
            return (await self._asked(execution, task)).notes if self.node.prompt else ""

        return await child.supervised(self.walk.lookup, guide)


_RANKS = {"success": 0, "partial_success": 1, "retry": 2, "fail": 3}


def _rank(body: Mapping[str, Any]) -> tuple[int, float, str]:
    """Best first: by status, score and id."""
    score = body.get("score")
    number = float(score) if isinstance(score, int | float) else float("-inf")
    return _RANKS.get(str(body.get("status")), 4), -number, str(body.get("id"))


def _listed(bodies: Sequence[Mapping[str, Any]]) -> str:
    """The results of branches as a model reads them, best first."""
    told = (f"### {body.get('id')}: {body.get('status')}\n{body.get('output') or body.get('notes')}" for body in bodies)
    return "## Branches\n\n" + "\n\n".join(told)


def _picked(answer: str, outcome: PhaseOutcome, bodies: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The branch that a model picked: as it states it, else the first that its answer names."""
    by_id = {str(body.get("id")): body for body in bodies}
    stated_ids = (str(outcome.context_updates.get("best_id", "")), *outcome.suggested_next_ids, outcome.preferred_label)
    found = next((by_id[id] for id in stated_ids if id in by_id), None)
    if found is not None:
        return found
    named = [(answer.find(id), id) for id in by_id if id in answer]
    return by_id[min(named)[1]] if named else None
