"""One visit of a phase: its tools and context, its attempts, the checks that judge them, and what it leaves behind."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workbench.context.assembler import Assembler
from workbench.context.assembly import Assembly, Item, Kind
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.context.scope import PhaseScope, VisitRecord
from workbench.context.strategy import Strategy, parse
from workbench.engine import texts
from workbench.engine.attempt import Failure
from workbench.engine.checks import Checks
from workbench.engine.engine_tools import ROUTE_TO, engine_spec
from workbench.engine.faults import PhaseBlocked, PhaseFailed
from workbench.engine.flow import offers_choice
from workbench.engine.gate import RunStopped, Stop, StopKind
from workbench.engine.model_name import split_effort
from workbench.engine.ports import TemplateFault, ToolSpec
from workbench.engine.toolcalls import read_calls, without_calls
from workbench.engine.turns import Turns
from workbench.engine.world import World
from workbench.language.model import ContextSource, Phase
from workbench.language.problem import Path, path_text
from workbench.language.template import condition_template, truth

if TYPE_CHECKING:
    from workbench.engine.run import Run


class Visit:
    """A phase, being run. ``route`` and ``output`` are known when ``run`` returns."""

    def __init__(self, run: Run, world: World, index: int, visit: int, branch: str = "") -> None:
        self.engine = run
        self.world = world
        self.phase: Phase = run.definition.cascade.phases[index]
        self.index = index
        self.path: Path = ("phases", index)
        self.items: list[Item] = []
        self.added: list[Item] = []
        """Items that no event has carried yet."""
        self.route = ""
        self.output = ""
        self._place = Place(branch, self.phase.name, visit)
        name = self.phase.model or run.options.default_model
        self.model, self.parameters = split_effort(name)
        self.native = self.phase.use_native_tools
        self.tools: tuple[ToolSpec, ...] = ()
        self.targets = [(handoff.target, handoff.description or "") for handoff in self.phase.handoffs]
        self.assembler: Assembler | None = None
        self.checks = Checks(self)

    def place(self, attempt: int = 0, turn: int = 0, call: int = 0) -> Place:
        return self._place._replace(attempt=attempt, turn=turn, call=call)

    @property
    def tool_names(self) -> list[str]:
        return [spec.name for spec in self.tools]

    # -- the visit ---------------------------------------------------------------------------------------------------

    async def run(self) -> str:
        """Run the phase to its end; its output. Raises PhaseFailed, PhaseBlocked, RunStopped."""
        run = self.engine
        await run.gate(Stop(StopKind.BEFORE_PHASE, self.place(), run.depth, state=self.world.state))
        self.tools = self._offered_tools()
        conditions = self._conditions()
        strategy = parse(run.options.strategy) if run.options.strategy else None
        strategy = strategy or Strategy.of(run.definition.cascade, self.phase)
        run.scribe.emit(
            "phase_started",
            self.place(),
            kind="llm",
            model=self.model,
            strategy=str(strategy),
            conditions=conditions,
            max_turns=self.phase.rules.max_turns,
            tools=self.tool_names,
        )
        self.assembler = Assembler(self._scope(conditions), strategy, run.ports.counter, self._previous())
        try:
            await self.checks.before()
            await self._attempts()
        except RunStopped:
            self._leave("stopped", "stopped")
            raise
        except PhaseBlocked as fault:
            self._leave("blocked", fault.reason, fault.check)
            raise
        except PhaseFailed as fault:
            self._leave("failed", fault.reason, fault.check)
            raise
        self._leave("success")
        await run.gate(Stop(StopKind.AFTER_PHASE, self.place(), run.depth, state=self.world.state))
        return self.output

    async def _attempts(self) -> None:
        attempt = 1
        self.add(Kind.TASK, self._task(), self.place(attempt, 1))
        while True:
            attempted = await Turns(self, attempt).run()
            if not attempted.text:
                raise PhaseFailed("no answer had any text")
            self.output = attempted.text
            failure = attempted.failure or await self.checks.judge(attempted, attempt)
            if failure is None:
                self.route = attempted.route
                return
            if attempt >= failure.limit:
                raise PhaseFailed(failure.reason, failure.check)
            attempt += 1
            self.add(Kind.RETRY, self._retry_text(failure, attempt), self.place(attempt, 1), note=failure.reason)

    def _leave(self, status: str, reason: str = "", check: str = "") -> None:
        """Journal the end of the visit, and hand what it made to the phases that follow."""
        world = self.world
        self.engine.scribe.emit(
            "phase_finished", self.place(), status=status, output=self.output, reason=reason, check=check
        )
        self.engine.scribe.sync()
        passed = status == "success"
        world.records.append(
            VisitRecord(
                branch=self._place.branch,
                phase=self.phase.name,
                visit=self._place.visit,
                status=status,
                output=self.output if passed else "",
                items=tuple(self.items),
                state=dict(self.checks.state_set),
                attempts=max((item.place.attempt for item in self.items), default=0),
                model=self.model,
            )
        )
        entry = {"phase": self.phase.name, "visit": self._place.visit, "output": self.output, "status": status}
        world.lineage.append(entry | {"route": ""})
        if passed:
            world.outputs[self.phase.name] = self.output

    # -- messages ----------------------------------------------------------------------------------------------------

    def add(self, kind: Kind, text: str, place: Place, *, note: str = "") -> None:
        """Put a user message into the history; the next event carries it."""
        self.join([Item(Message("user", text), kind, place, note=note)])

    def join(self, items: list[Item], *, carried: bool = False) -> None:
        """Put items into the history. ``carried``: an event already holds them."""
        self.items += items
        if not carried:
            self.added += items
        assert self.assembler is not None
        for item in items:
            self.assembler.add(item)

    def set_state(self, key: str, value: Any, place: Place, *, by: str) -> None:
        """Change the state, and journal it."""
        self.world.state[key] = value
        self.checks.state_set[key] = value
        self.engine.scribe.emit("state_set", place, key=key, value=value, by=by)

    def assemble(self, place: Place, **override: Any) -> Assembly:
        assert self.assembler is not None
        assembly = self.assembler.assemble(place, **override)
        self.engine.last_assembly[place.branch] = assembly
        return assembly

    def _previous(self) -> Assembly | None:
        return self.engine.last_assembly.get(self._place.branch)

    def _task(self) -> str:
        rules = self.phase.rules
        parts = [self.render(self._instructions(), (*self.path, "instructions"))]
        if ROUTE_TO in self.tool_names:
            parts.append(texts.routing_block(self.targets))
        if rules.loop_until and not rules.loop_until_silent:
            prompt = self.render(rules.loop_until_prompt, (*self.path, "rules", "loop_until_prompt"))
            description = self.checks.describe(rules.loop_until) or ""
            parts.append(texts.validation_block(rules.loop_until, description, self.checks.limit, prompt))
        return "\n\n".join(part for part in parts if part)

    def _instructions(self) -> str:
        text = self.phase.instructions or ""
        if not text.startswith("@"):
            return text
        included = self.engine.definition.includes.get(text[1:].strip())
        if included is None:
            raise PhaseFailed(f"template file '{text}' not found")
        return included

    def _retry_text(self, failure: Failure, attempt: int) -> str:
        template = self.phase.rules.retry_instructions
        silent = self.phase.rules.loop_until_silent and failure.kind == "loop_until"
        if failure.kind == "output_schema":
            rejection = texts.schema_rejected(failure.reason, self.phase.output_schema)
        else:
            rejection = texts.rejected(failure.check, failure.reason, silent=silent)
        if not template:
            return rejection if silent else f"{rejection}\n\n{texts.attempt_line(attempt, failure.limit)}"
        is_schema = failure.kind == "output_schema"
        rendered = self.render(
            template,
            (*self.path, "rules", "retry_instructions"),
            validation_error="" if is_schema else failure.reason,
            schema_error=failure.reason if is_schema else "",
            attempt=attempt,
            max_attempts=failure.limit,
        )
        if re.search(r"\b(validation_error|schema_error)\b", template):
            return rendered
        return f"{rejection}\n\n{rendered}"

    def render(self, template: str | None, path: Path, **extra: Any) -> str:
        """Render a template of the file; undefined names become warnings with their place. Raises PhaseFailed."""
        if not template:
            return ""
        run, names = self.engine, self.world.names(self.items, template, extra)
        source = run.definition.source
        try:
            rendered = run.ports.render(template, names)
        except TemplateFault as fault:
            span = source.inner_span(path, fault.line, fault.column)
            where = f"{source.file}:{span.line}:{span.column}"
            raise PhaseFailed(f"{where}: template: {fault.message}") from fault
        for expression, line, column in rendered.undefined:
            at = source.inner_span(path, line, column)
            run.warn("undefined", f"'{expression}' is undefined; it renders empty", path, self.place(), at.line)
        return rendered.text

    # -- what the phase may see and do -------------------------------------------------------------------------------

    def _offered_tools(self) -> tuple[ToolSpec, ...]:
        listed = [] if isinstance(self.phase.tackle, str) else list(self.phase.tackle)
        specs: dict[str, ToolSpec] = {}
        for position, name in enumerate(listed):
            spec = engine_spec(name) or self.engine.ports.tools.spec(name)
            if name == ROUTE_TO:
                continue
            if spec is None:
                self.engine.warn(
                    "L501", f"tool '{name}' is not known; it is not offered", (*self.path, "tackle", position)
                )
            else:
                specs[name] = spec
        if offers_choice(self.targets):
            route_to = engine_spec(ROUTE_TO)
            assert route_to is not None
            specs[ROUTE_TO] = route_to
        return tuple(specs.values())

    def _conditions(self) -> dict[str, bool]:
        """Evaluate the conditions of context sources now: assembling never renders."""
        sources: dict[Path, ContextSource] = {}
        if self.phase.context is not None:
            sources = {(*self.path, "context", "from", i): s for i, s in enumerate(self.phase.context.from_)}
        elif self.phase.inject_from:
            sources = {(*self.path, "inject_from", i): s for i, s in enumerate(self.phase.inject_from)}
        return {
            path_text(path): truth(self.render(condition_template(source.condition), (*path, "condition")))
            for path, source in sources.items()
            if source.condition
        }

    def _scope(self, conditions: Mapping[str, bool]) -> PhaseScope:
        run = self.engine
        return PhaseScope(
            cascade=run.definition.cascade,
            phase=self.phase,
            index=self.index,
            place=self.place(),
            input=self.world.input,
            visits=tuple(self.world.records),
            conditions=conditions,
            tool_text="" if self.native else texts.tool_text(self.tools),
            tools=tuple(texts.native_schema(spec) for spec in self.tools) if self.native else (),
            model=self.model,
            parameters=self.parameters,
            line_of=run.definition.line,
            keep_recent_images=run.options.keep_recent_images,
            without_calls=lambda text: without_calls(text, read_calls(text, self.tool_names)),
        )
