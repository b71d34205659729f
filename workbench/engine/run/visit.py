"""One visit of a phase: what it may see and do, its execution, and what it leaves for the phases that follow."""

from __future__ import annotations

import asyncio
import json
import re
from textwrap import indent
from typing import Any, Protocol

import regex

from workbench.context.assembly import Item, Kind
from workbench.context.edits import remaining
from workbench.context.place import Place
from workbench.context.scope import Arrival, VisitRecord
from workbench.context.strategy import Strategy, parse
from workbench.engine.candidates.candidates import factor_of, varied_task
from workbench.engine.candidates.soundings import sound
from workbench.engine.contracts import Divergence, ToolSpec
from workbench.engine.conversation import Attempting, Conversation, VisitSetup
from workbench.engine.definition import Definition, DefinitionError
from workbench.engine.engine_tools import ENGINE_SPECS, RAG_SPECS, REPORT_OUTCOME, engine_spec
from workbench.engine.faults import PhaseBlocked, PhaseFailed
from workbench.engine.gate import RunStopped, Stop, StopKind
from workbench.engine.human.decisions import decide
from workbench.engine.human.human_input import PhaseQuestion
from workbench.engine.journal.event import seconds_told
from workbench.engine.model_name import split_effort
from workbench.engine.routing.outcome import PhaseOutcome
from workbench.engine.run.checks import checked_json
from workbench.engine.run.deterministic import ToolFailed, ToolPhase
from workbench.engine.run.execution import Execution, RunParts
from workbench.engine.run.flow import offers_choice
from workbench.engine.selection.tool_selection import ToolSelection
from workbench.engine.servers import ServedTools
from workbench.engine.tables import shaped, unwrapped
from workbench.engine.texts import answer_format
from workbench.engine.world import World
from workbench.language.model.candidates import Soundings
from workbench.language.model.cascade import LLM_DATA, Cascade, Phase
from workbench.language.model.context import ContextSource
from workbench.language.model.parameters import laid_over, named_parameters
from workbench.language.problem import Path, path_text
from workbench.language.templates.sandbox import CheckedText
from workbench.language.words import ROUTE_TO


class NodeWork(Protocol):
    """Does the work of a pipeline's node in one visit."""

    @property
    def kind(self) -> str:
        """Of the node, as the graph names it."""
        ...

    @property
    def asks_model(self) -> bool: ...

    @property
    def check(self) -> str:
        """The check that it failed at, as ``PhaseFailed`` names it."""
        ...

    @property
    def reports(self) -> bool:
        """Whether the model may state an outcome by a tool."""
        ...

    async def run(self, execution: Execution) -> PhaseOutcome:
        """Run the work in an execution of the node's phase. Raises PhaseFailed if that ends the run, RunStopped."""
        ...


class Visit:
    """A phase, being run. ``route`` and ``output`` are known when ``run`` returns."""

    def __init__(
        self,
        parts: RunParts,
        world: World,
        index: int,
        visit: int,
        branch: str = "",
        *,
        phase: Phase | None = None,
        work: NodeWork | None = None,
        edge: int | None = None,
    ) -> None:
        """The ``visit``-th of the phase with this ``index``; ``phase`` stands in for that of the file. ``work`` is what
        a node of a pipeline does, reached over the ``edge`` of the graph with that index."""
        services = parts.services
        cascade, options = services.definition.cascade, services.options
        phase = phase or cascade.phases[index]
        arrival = Arrival(world.came_from, services.definition.graph, edge)
        self.parts = parts
        self.engine = services
        self.world = world
        self.setup = VisitSetup(
            phase,
            index,
            ("phases", index),
            Place(branch, phase.name, visit),
            model=world.sounding.model or phase.model or options.default_model,
            parameters=_parameters(cascade, phase),
            strategy=(
                parse(options.strategy) if options.strategy else Strategy.of(cascade, phase, ("phases", index), arrival)
            ),
            targets=[(handoff.target, handoff.description or "") for handoff in phase.handoffs],
            served=ServedTools(services, phase),
            route_rule="routing" if phase.deterministic else ROUTE_TO,
        )
        self.route = ""
        self.output = ""
        self.setup.edge = edge
        self.work = work
        self.outcome = PhaseOutcome()
        """Of a node of a pipeline, when ``run`` returns."""
        self._started_at = ""

    @property
    def phase(self) -> Phase:
        return self.setup.phase

    @property
    def path(self) -> Path:
        return self.setup.path

    def place(self) -> Place:
        return self.setup.place

    def execution(self) -> Execution:
        """An execution in the visit's own world."""
        return Execution(self.parts, self.setup, self.world, branch=self.setup.place.branch)

    async def run(self) -> str:
        """Run the phase to its end; its output. Raises PhaseFailed, PhaseBlocked, RunStopped."""
        run = self.engine
        await self._wait_at(StopKind.BEFORE_PHASE)
        await self.setup.served.ask(self.place())
        self.setup.tools = self._offered_tools()
        self.world.cache.invalidate("phase_start")
        own = self.execution()
        execution: Attempting = own
        try:
            self.setup.conditions.update(self._conditions(own))
            self._started()
            if self.setup.served.fault is not None:
                raise self.setup.served.fault
            await run.fire("phase_start", self.place(), {"tools": self.setup.tool_names, "model": self.setup.model})
            execution = await self._execute(own)
        except RunStopped:
            self._leave(execution, "stopped", "stopped")
            raise
        except PhaseBlocked as fault:
            self._leave(execution, "blocked", fault.reason, fault.check)
            await self._tell(execution, "blocked", fault.reason)
            raise
        except PhaseFailed as fault:
            self._leave(execution, "failed", fault.reason, fault.check)
            await self._tell(execution, "failed", fault.reason)
            # A failed tool has no output, but the file may say where the run goes from there.
            if isinstance(fault, ToolFailed) and (after := self._after_failure())[0]:
                self.route, self.setup.route_rule = after
                self.outcome = PhaseOutcome("fail", failure_reason=fault.reason)
                return ""
            raise
        except (asyncio.CancelledError, Divergence):
            # A branch that another has outrun ends here, in a replay where its recording does; the run goes on.
            if self.work is not None:
                self._leave(execution, "stopped", "stopped")
            raise
        status, reason = ("failed", self.outcome.failure_reason) if self.outcome.status == "fail" else ("success", "")
        self._leave(execution, status, reason, self.work.check if self.work is not None and status == "failed" else "")
        await self._tell(execution, status, reason)
        self.world.cache.invalidate("phase_complete")
        self.output, self.route = execution.output, execution.route
        await self._wait_at(StopKind.AFTER_PHASE)
        return self.output

    def _after_failure(self) -> tuple[str, str]:
        """The phase that follows a failed tool and the rule that says so: ``on_error``, else ``routing.error``."""
        if isinstance(self.phase.on_error, str):
            return self.phase.on_error, "on_error"
        return (target, "routing") if (target := self.phase.routing.get("error", "")) else ("", "")

    async def _tell(self, execution: Attempting, status: str, reason: str = "") -> None:
        told = {"status": status, "output": execution.output, "reason": reason}
        await self.engine.fire("phase_complete", self.place(), told)

    async def _wait_at(self, kind: StopKind) -> None:
        """Wait at the stop before the phase is rendered, or after it has ended: the state may be edited."""
        run = self.engine
        await run.gate_of_state(Stop(kind, self.place(), run.depth, state=self.world.state), self.world)

    async def _execute(self, own: Execution) -> Attempting:
        """Wards, sub-cascades, work, extraction, decisions, questions, callouts; the execution whose result counts."""
        children = self.parts.children
        execution: Attempting = own
        if self.work is not None:
            self.outcome = await self.work.run(own)
            return own
        await own.checks.before()
        children.start_async_cascades(own, "on_start")
        await children.run_sub_cascades(own)
        if self.phase.deterministic:
            await self._run_tool(own)
        else:
            if self.phase.manifest:
                self.setup.tools = (*await ToolSelection(own).choose(), *self.setup.tools)
            execution = await self._run_model(own)
        extract(execution)
        await self._decide(execution)
        if self.phase.human_input is not None:
            await PhaseQuestion(execution, self.phase.human_input).ask()
        call_out(execution)
        children.start_async_cascades(execution, "on_end")
        return execution

    async def _decide(self, execution: Attempting) -> None:
        """A person's decision on the output: another attempt, another phase, or on."""
        for _ in range(self.engine.options.max_visits):
            decision = await decide(execution)
            if decision.route:
                execution.route, self.setup.route_rule = decision.route, "decision"
            if not decision.again:
                return
            await execution.again(decision.inject)
            extract(execution)
        raise PhaseFailed("a person asked for too many attempts", "decision_points")

    async def _run_model(self, execution: Execution) -> Attempting:
        """The phase's attempts, or its candidates; a failure may be put before a person."""
        try:
            soundings = self._counted(execution)
            if soundings is not None and (soundings.candidates > 1 or soundings.reforge):
                return await sound(execution)
            task, _ = await varied_task(execution, self.setup.mutation)
            await execution.run(task, images=self.setup.given)
        except PhaseBlocked:
            raise
        except PhaseFailed as fault:
            decision = await decide(execution, fault)
            execution.route = decision.route
            if decision.route:
                self.setup.route_rule = "decision"
            if decision.again:
                await execution.again(decision.inject)
            elif not execution.output:
                execution.output = fault.reason
        return execution

    def _counted(self, execution: Execution) -> Soundings | None:
        """The phase's soundings, with the number that a template of ``factor`` gives. Raises PhaseFailed."""
        soundings = self.phase.soundings
        if soundings is not None and soundings.template:
            soundings = soundings.counted(factor_of(execution, soundings.template, (*self.path, "soundings", "factor")))
            self.setup.phase = self.phase.model_copy(update={"soundings": soundings})
        return soundings

    async def _run_tool(self, execution: Execution) -> None:
        """A deterministic phase. If its tool fails, ``on_error`` says what follows or replaces it."""
        fallback = self.phase.on_error
        if self.phase.tool in LLM_DATA:
            answer = await self._inner_answer(execution)
            value, _ = checked_json(answer, {})
            execution.value = shaped(answer if value is None else unwrapped(value))
            execution.output = json.dumps(execution.value, indent=2, ensure_ascii=False)
            return
        try:
            await ToolPhase(execution, self.parts.children, execution.feedback).run()
        except ToolFailed as fault:
            self.world.error = fault.error
            if not isinstance(fallback, Phase):
                raise
            self.engine.warn("on_error", fault.reason, (*self.path, "tool"), self.place())
            execution.output = await self._stand_in(fallback)

    async def _inner_answer(self, execution: Execution) -> str:
        """Returns the answer of the step in ``inputs``: a phase as YAML, or the path of a cascade. Raises
        PhaseFailed."""
        text = self.phase.inner_text
        if not text:
            raise PhaseFailed(f"tool '{self.phase.tool}' needs 'phase_yaml' under 'inputs': a phase as YAML")
        if not self.phase.inner_cascade:
            return await self._stand_in(self._inner_phase(text))
        definition = self.parts.children.found(self.phase.inner_cascade)
        given = {**self.world.input, **self.world.state}
        outcome = (await self.parts.children.run(definition, given, "sub", execution.place())).outcome
        if outcome.status != "success":
            raise PhaseFailed(f"cascade '{text.strip()}' {outcome.words}", self.phase.tool or "")
        return outcome.output

    def _inner_phase(self, text: str) -> Phase:
        """The model step that a text in YAML is. Raises PhaseFailed."""
        named = re.search(r"^name\s*:", text, re.MULTILINE)
        document = f"cascade_id: inner\nphases:\n  -{'' if named else ' name: inner'}\n" + indent(text, "    ")
        try:
            inner = Definition.of(document, f"{self.phase.name}.inputs").cascade.phases[0]
        except DefinitionError as fault:
            raise PhaseFailed(f"the phase in 'inputs' cannot run: {fault}") from fault
        if inner.output_schema is None:
            raise PhaseFailed("the phase in 'inputs' needs an 'output_schema': its answer becomes a table")
        return inner.model_copy(update={"name": f"{self.phase.name}_llm"})

    async def _stand_in(self, phase: Phase) -> str:
        """Run an inline phase in place of this one; its output."""
        visits = self.world.visits[phase.name] = self.world.visits[phase.name] + 1
        visit = Visit(self.parts, self.world, self.setup.index, visits, self.setup.place.branch, phase=phase)
        visit.setup.path = (*self.path, "on_error")
        return await visit.run()

    def _started(self) -> None:
        event = self.engine.journal.emit(
            "phase_started",
            self.place(),
            kind=self._kind,
            model="" if self.work is not None and not self.work.asks_model else split_effort(self.setup.model)[0],
            strategy=str(self.setup.strategy),
            conditions=self.setup.conditions,
            max_turns=self.phase.rules.max_turns,
            tools=self.setup.tool_names,
            **({"wave": self.setup.wave} if self.setup.wave else {}),
            **({"edge": self.setup.edge} if self.setup.edge is not None else {}),
        )
        self._started_at = event.at

    def skip(self, reason: str) -> None:
        """Record that the phase does not run."""
        self._started()
        self._leave(self.execution(), "skipped", reason)

    @property
    def _kind(self) -> str:
        if self.work is not None and self.work.kind not in ("llm", "tool"):
            return self.work.kind
        return "deterministic" if self.phase.deterministic else "llm"

    def _leave(self, execution: Attempting, status: str, reason: str = "", check: str = "") -> None:
        """Journal the end of the visit, and hand what it made to the phases that follow."""
        world, passed = self.world, status == "success"
        journal, output = self.engine.journal, execution.output
        # A visit that was stopped came to nothing yet.
        outcome = self.outcome.to_json() if self.work is not None and status != "stopped" else {}
        told: dict[str, Any] = {"outcome": outcome} if outcome else {}
        # A preamble tells how long visits took: a replay says what the replayed run said.
        replayed = self.engine.ports.recorded_seconds(self.place())
        told |= {"seconds": replayed} if replayed is not None else {}
        event = journal.emit(
            "phase_finished", self.place(), status=status, output=output, reason=reason, check=check, **told
        )
        journal.sync_soon()  # Its answer is durable already; a tool that follows syncs first.
        world.records.append(
            VisitRecord(
                branch=self.setup.place.branch,
                phase=self.phase.name,
                visit=self.setup.place.visit,
                status=status,
                output=output if passed else "",
                items=remaining(execution.items),
                state=dict(execution.state_set),
                attempts=max((item.place.attempt for item in execution.items), default=0),
                model=execution.model,
                reason=reason,
                seq=event.seq,
                seconds=seconds_told(self._started_at, event.at) if replayed is None else replayed,
                callouts=frozenset(execution.callouts),
                callout_names=dict(execution.callouts),
                preamble=execution.preamble,
                outcome=outcome,
                edge=self.setup.edge,
            )
        )
        self.parts.selection.vectors.visit_ended(world.records[-1])
        self.parts.selection.summaries.visit_ended(world, world.records[-1])
        entry = {"phase": self.phase.name, "visit": self.setup.place.visit, "output": output, "status": status}
        world.lineage.append(entry | {"route": ""})
        # A node of a pipeline that states its failure has made something all the same: a review, say.
        if passed or (outcome and output):
            text = output if execution.checked is None else CheckedText(output, execution.checked)
            world.outputs[self.phase.name] = text if execution.value is None else execution.value

    def _offered_tools(self) -> tuple[ToolSpec, ...]:
        """The phase's tool list is a boundary: the existing tools that it names, and ``route_to`` if there
        is a choice.
        """
        specs: dict[str, ToolSpec] = {}
        retrieving = RAG_SPECS if self.phase.rag is not None else {}
        for position, name in self.phase.listed:
            if name == ROUTE_TO or name in retrieving:
                continue
            if served := self.setup.served.specs(name):
                specs |= {spec.name: spec for spec in served}
                continue
            spec = self.engine.tool_spec(name)
            if spec is None and self.setup.served.fault is not None:
                continue
            if spec is None:
                path = (*self.path, "tackle", position)
                self.engine.warn("L501", f"tool '{name}' is not known; it is not offered", path)
            else:
                specs[name] = spec
        specs |= retrieving
        route_to = engine_spec(ROUTE_TO)
        if offers_choice(self.setup.targets) and route_to is not None:
            specs[ROUTE_TO] = route_to
        if self.work is not None and self.work.reports:
            specs[REPORT_OUTCOME] = ENGINE_SPECS[REPORT_OUTCOME]
        return tuple(specs.values())

    def _conditions(self, execution: Execution) -> dict[str, bool]:
        """Evaluate the conditions of context sources now: assembling never renders, and which of them are read is for
        the strategy to say, here or in a what-if."""
        selected = self.phase.context.from_ if self.phase.context is not None else ()
        sources: dict[Path, ContextSource] = {
            **{(*self.path, "context", "from", i): source for i, source in enumerate(selected)},
            **{(*self.path, "inject_from", i): source for i, source in enumerate(self.phase.inject_from or ())},
        }
        return {
            path_text(path): execution.holds(source.condition, (*path, "condition"))
            for path, source in sources.items()
            if source.condition
        }


def _parameters(cascade: Cascade, phase: Phase) -> dict[str, Any]:
    """Parameters that a phase sends: the cascade's, its own, and the form of the answer if the provider enforces it."""
    form: dict[str, Any] = {}
    if phase.output_schema is not None and phase.enforce in ("provider", "both"):
        form = {"response_format": answer_format(phase.name, phase.output_schema)}
    return laid_over(named_parameters(cascade), named_parameters(phase), form)


SEARCH_SECONDS = 2.0
"""Time limit of an extraction pattern: a pattern from a file may take exponential time."""


def extract(execution: Conversation) -> None:
    """Put the part of the output that the pattern finds into the state. Raises PhaseFailed for a required miss."""
    rule, output = execution.phase.output_extraction, execution.output
    if rule is None:
        return
    can_fail = rule.required or rule.format == "json"
    if can_fail and execution.validation.passes_over(output, execution.place()):
        return
    try:
        found = regex.search(rule.pattern, output, regex.DOTALL | regex.IGNORECASE, timeout=SEARCH_SECONDS)
    except TimeoutError:
        raise PhaseFailed(
            f"output_extraction: the pattern took over {SEARCH_SECONDS:g} s", "output_extraction"
        ) from None
    except regex.error as fault:
        raise PhaseFailed(f"output_extraction: the pattern is not valid: {fault}", "output_extraction") from fault
    if found is None:
        if rule.required:
            raise PhaseFailed(f"output_extraction: nothing matches {rule.pattern!r}", "output_extraction")
        return
    text = found[1] if found.re.groups and found[1] is not None else found[0]
    execution.set_state(rule.store_as, _formatted(text, rule.format), execution.place(), by="output_extraction")


def _formatted(text: str, form: str) -> Any:
    if form == "json":
        try:
            return json.loads(_unfenced(text))
        except (ValueError, RecursionError) as fault:
            why = "nested too deeply" if isinstance(fault, RecursionError) else f"no JSON: {fault}"
            raise PhaseFailed(f"output_extraction: the match is {why}", "output_extraction") from fault
    return _unfenced(text) if form == "code" else text.strip()


def _unfenced(text: str) -> str:
    """The body of a fenced block, if the text is one."""
    fence = re.fullmatch(r"\s*```[^\n]*\n(.*?)\n?```\s*", text, re.DOTALL)
    return fence[1] if fence else text.strip()


def call_out(execution: Attempting) -> None:
    """Tag the final output, or messages, with a name under which they are found again."""
    rule = execution.phase.callouts
    if rule is None:
        return
    answers = [item for item in execution.items if item.kind is Kind.ANSWER]
    if rule.output and answers:
        _tag(execution, answers[-1], rule.output, "output")
    if rule.messages:
        for item in _selected(execution.items, answers, rule.messages_filter):
            _tag(execution, item, rule.messages, "messages")


def _selected(items: list[Item], answers: list[Item], wanted: str) -> list[Item]:
    if wanted == "all":
        return items
    if wanted == "last_turn" and answers:
        return [item for item in items if item.place.turn_key == answers[-1].place.turn_key]
    return answers


def _tag(execution: Attempting, item: Item, template: str, field: str) -> None:
    path = (*execution.path, "callouts", field)
    name = execution.render(template, path, turn=item.place.turn).strip()
    execution.callouts[item.message.body_hash] = name
    execution.engine.journal.emit(
        "callout",
        item.place,
        name=name,
        target=field,
        content_hash=item.message.content_hash,
        body_hash=item.message.body_hash,
    )
