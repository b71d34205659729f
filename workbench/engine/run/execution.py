"""One execution of a phase: its own messages, its attempts and their checks. A visit has one, or one per candidate."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any
from weakref import proxy

from msgspec import Struct
from msgspec.structs import replace

from workbench.context.assembler import Assembler
from workbench.context.assembly import Assembly, Item, Kind
from workbench.context.cards import Choice
from workbench.context.diff import splices_between
from workbench.context.edits import (
    AddMessage,
    ChangeMessage,
    Draft,
    EditError,
    MessageEdit,
    difference,
    edited,
    remaining,
)
from workbench.context.message import Image, Message, Part, TextPart
from workbench.context.part import EnteredMessages
from workbench.context.parts.auto import Auto
from workbench.context.parts.fidelity import preamble_in
from workbench.context.pictured import pictured
from workbench.context.place import Place
from workbench.context.scope import PhaseScope, Summary, Vectors
from workbench.engine import texts
from workbench.engine.calls.auxiliary_calls import ask_model
from workbench.engine.calls.model_call import call_model
from workbench.engine.contracts import Question
from workbench.engine.conversation import VisitSetup
from workbench.engine.edits import Edit, SetAnswer, SetModel, SetState, laid
from workbench.engine.faults import PhaseFailed
from workbench.engine.gate import EditFault, Stop, checked
from workbench.engine.human.feedback import PhaseFeedback
from workbench.engine.human.pages import with_helpers
from workbench.engine.human.people import ask_person
from workbench.engine.model_name import split_effort
from workbench.engine.routing.outcome import PhaseOutcome
from workbench.engine.run.checks import Checks, Failure, FinishedAttempt
from workbench.engine.run.children import Children
from workbench.engine.run.tools import RequestedCall, Tooling, native_calls, prompt_calls
from workbench.engine.selection.context_selection import ContextSelection
from workbench.engine.services import Services
from workbench.engine.toolcalls import read_calls, without_calls
from workbench.engine.validators import Validation
from workbench.engine.world import World
from workbench.language.clean import clean_line
from workbench.language.model.cascade import Phase
from workbench.language.model.parameters import laid_over
from workbench.language.problem import Path
from workbench.language.templates.names import TemplateFault
from workbench.language.templates.template import condition_shift, condition_template, truth
from workbench.language.words import ROUTE_TO

HOOK_HEADER = "[User injection]:"
SUMMARIZER = (
    "You sum up the oldest part of a conversation for the model that goes on with it. Answer with the summary alone."
)


class RunParts(Struct, frozen=True):
    """Values that all executions of a run share."""

    services: Services
    children: Children
    selection: ContextSelection


class Execution:
    """Runs a phase's attempts in a world of its own. ``output`` and ``route`` are known when ``run`` returns."""

    def __init__(self, parts: RunParts, setup: VisitSetup, world: World, *, branch: str = "", model: str = "") -> None:
        self.parts = parts
        self.setup = setup
        self.beside = False
        self.engine = parts.services
        self.world = world
        self.validation = Validation(parts.services, parts.children, world)
        self.items: list[Item] = []
        self.added: list[Item] = []
        """Items that no event has carried yet."""
        self.output = ""
        self.value: Any = None
        """The value of ``outputs.<phase>`` if it is not the text."""
        self.checked: Any = None
        """The JSON value of the output, if ``output_schema`` asked for one: templates read its keys."""
        self.route = ""
        self.reported: PhaseOutcome | None = None
        """The outcome that the model stated by a tool, if it did."""
        self.state_set: dict[str, Any] = {}
        """The values that this execution set in the state."""
        self.model, effort = split_effort(model or setup.model)
        self.parameters = laid_over(setup.parameters, effort, {} if model else world.sounding.parameters)
        self.native: bool = self.phase.use_native_tools
        self.attempt = 0
        self._task = ""
        self.system_text = ""
        """System message before the task, of a node of a graph that has one."""
        self.callouts: dict[str, str] = {}
        """Names of the messages that were called out, by ``body_hash``."""
        self.choices: tuple[Choice, ...] = ()
        """The choices of selectors for this execution."""
        self.vectors: Vectors | None = None
        """Embeddings that its selection compares."""
        self._drafted = False
        self._won = False
        # No circle, here and in the scope: what a visit holds is freed with it.
        self.checks = Checks(proxy(self))
        self.feedback = PhaseFeedback(proxy(self))
        self._place = setup.place._replace(branch=branch)

    @cached_property
    def assembler(self) -> Assembler:
        """Made at the first message: what enters the phase depends on conditions that are rendered before."""
        previous = self.engine.last_assembly.get(self._place.branch)
        return Assembler(self.scope(), self.setup.strategy, self.engine.ports.counter, previous)

    @property
    def phase(self) -> Phase:
        return self.setup.phase

    @property
    def path(self) -> Path:
        return self.setup.path

    def sibling(self, world: World, *, branch: str, model: str = "") -> Execution:
        """Another execution of the same phase, in another world."""
        return Execution(self.parts, self.setup, world, branch=branch, model=model)

    def place(self, attempt: int = 0, turn: int = 0, call: int = 0) -> Place:
        return Place(*self._place.visit_key, attempt, turn, call)

    @property
    def tool_names(self) -> list[str]:
        return self.setup.tool_names

    # -- attempts ----------------------------------------------------------------------------------------------------

    async def run(self, task: str, refine: str = "", images: Sequence[Image] = ()) -> str:
        """Attempts until one passes its checks; its text. Raises PhaseFailed, PhaseBlocked, RunStopped.

        ``refine`` is a message of its own behind the task: the answer to improve, and how (reforge). ``images`` are
        those of that answer; they stand in the last of these messages.
        """
        texts = [task, refine] if refine else [task]
        messages = [Message("user", text) for text in texts]
        if images:
            messages[-1] = Message("user", (TextPart(texts[-1]), *images))
        messages = [pictured(message, self.engine.journal.keep_image) for message in messages]
        self.attempt, self._task = 1, messages[0].text
        await self._select()
        self.join([Item(message, Kind.TASK, self.place(1, 1)) for message in messages])
        return await self._attempts()

    async def _select(self) -> None:
        """Let a selector or embeddings choose what enters the context, if the strategy wants that."""
        enters = self.setup.strategy.enters
        if enters is None or isinstance(enters, Auto):
            chosen = await self.parts.selection.select(self.setup.strategy, self.scope(), self.world, self.path)
            self.choices, self.vectors = chosen

    async def again(self, text: str) -> str:
        """One more attempt (and those that its checks ask for), opened by a message; its text. If candidates ran
        instead and none passed, the message follows the task of the first attempt.
        """
        if not self.attempt:
            return await self.run(self.task(), text)
        self.attempt += 1
        self.add(Kind.RETRY, text, self.place(self.attempt, 1), note=text)
        return await self._attempts()

    async def anew(self) -> str:
        """One more attempt that sees only the task of those before it; its text."""
        self.attempt += 1
        self.output, self.reported = "", None
        return await self._attempts()

    async def _attempts(self) -> str:
        while True:
            attempt = self.attempt
            attempted = await Turns(self, attempt).run()
            if not attempted.text:
                raise PhaseFailed(self._silence())
            self.output = attempted.text
            failure = attempted.failure or await self.checks.judge(attempted, attempt)
            if failure is None:
                self.route = attempted.route
                return attempted.text
            if attempt >= failure.limit:
                raise PhaseFailed(failure.reason, failure.check)
            self.attempt = attempt = attempt + 1
            self.add(Kind.RETRY, self._retry_text(failure, attempt), self.place(attempt, 1), note=failure.reason)

    def _silence(self) -> str:
        """That no answer of the attempt had any text; and what the model called that the phase does not have."""
        answers = (item.message for item in self.items if item.place.attempt == self.attempt)
        called = dict.fromkeys(call.name for answer in answers for call in answer.tool_calls)
        absent = ", ".join(clean_line(name, 60) for name in called if name not in self.tool_names)
        has = f"has only {', '.join(self.tool_names)}" if self.tool_names else "has no tools"
        return "no answer had any text" + (f": the model called {absent}, and this phase {has}" if absent else "")

    def task(self) -> str:
        """The task as the file says it: the instructions, and what follows them."""
        return "\n\n".join(part for part in (self.instructions(), self.blocks()) if part)

    def instructions(self) -> str:
        """The rendered instructions. Raises PhaseFailed."""
        text = self.phase.instructions or ""
        if text.startswith("@"):
            included = self.engine.definition.includes.get(text[1:].strip())
            if included is None:
                raise PhaseFailed(f"template file '{text}' not found")
            text = included
        return self.render(text, (*self.path, "instructions"))

    def blocks(self) -> str:
        """Returns the text that follows the instructions: the routing menu, the validation requirement and the
        schema."""
        rules, parts = self.phase.rules, []
        if ROUTE_TO in self.tool_names:
            parts.append(texts.routing_block(self.setup.targets))
        if rules.loop_until and not rules.loop_until_silent:
            prompt = self.render(rules.loop_until_prompt, (*self.path, "rules", "loop_until_prompt"))
            description = self.checks.describe(rules.loop_until) or ""
            parts.append(texts.validation_block(str(rules.loop_until), description, self.checks.limit, prompt))
        if self.phase.output_schema is not None and self.phase.enforce in ("prompt", "both"):
            parts.append(texts.schema_block(self.phase.output_schema))
        return "\n\n".join(parts)

    def _retry_text(self, failure: Failure, attempt: int) -> str:
        template = self.phase.rules.retry_instructions
        is_schema = failure.kind == "output_schema"
        silent = self.phase.rules.loop_until_silent and failure.kind == "loop_until"
        if is_schema:
            rejection = texts.schema_rejected(failure.reason, self.phase.output_schema)
        else:
            rejection = texts.rejected(failure.check, failure.reason, silent=silent)
        if not template:
            return rejection if silent else f"{rejection}\n\n{texts.attempt_line(attempt, failure.limit)}"
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

    # -- messages ----------------------------------------------------------------------------------------------------

    def add(self, kind: Kind, text: str, place: Place, *, note: str = "") -> None:
        """Put a user message into the history; the next event carries it."""
        message = pictured(Message("user", text), self.engine.journal.keep_image)
        self.join([Item(message, kind, place, note=note)])

    def join(self, items: list[Item], *, carried: bool = False) -> None:
        """Put items into the history. ``carried``: an event already holds them."""
        self.items += items
        if not carried:
            self.added += items
        for item in items:
            self.assembler.add(item)

    @property
    def preamble(self) -> str:
        """The preamble that it was sent; empty without one."""
        if "assembler" not in self.__dict__:
            return ""
        return preamble_in((item, verdict.sent) for item, verdict in self.assembler.entered.rows)

    def reassemble(self, entered: EnteredMessages | None = None) -> None:
        """After an edit: the visit's contexts are put together from its history as it is now."""
        self.assembler = self.assembler.edited(self.scope(), entered or self.assembler.entered, self.items)

    @property
    def history(self) -> Draft:
        """The messages that edits change."""
        return Draft(self.assembler.entered, tuple(self.items))

    def preview(self, place: Place, tool_choice: str, edits: Sequence[Edit]) -> Assembly:
        """Returns the assembly that the call at ``place`` would send after edits; nothing is changed. Raises
        EditError."""
        draft, model, parameters = self.history, self.model, self.parameters
        for edit in edits:
            if isinstance(edit, SetModel):
                model, parameters = edit.model or model, laid(parameters, edit)
            elif isinstance(edit, MessageEdit):
                draft = edited(draft, edit, place)
        scope = replace(self.scope(), model=model, parameters=parameters)
        other = self.assembler.edited(scope, draft.entered, draft.own)
        return other.assemble(place, tool_choice=tool_choice)

    def edit(self, stop: Stop, edits: Sequence[Edit]) -> None:
        """Make edits at a stop of a call. Raises EditFault."""
        checked(edits, stop)
        for edit in edits:
            if isinstance(edit, SetState):
                self.engine.edit_state(self.world, stop, edit)
                self.state_set[edit.key] = self.world.state[edit.key]
            elif isinstance(edit, SetAnswer):
                self._edit_answer(stop, edit)
            elif isinstance(edit, SetModel):
                self._edit_model(stop, edit)
            elif isinstance(edit, MessageEdit):
                self._edit_messages(stop, edit)

    def _edit_model(self, stop: Stop, edit: SetModel) -> None:
        before = {"model": self.model, "parameters": dict(self.parameters)}
        self.model = edit.model or self.model
        self.parameters = laid(self.parameters, edit)
        after = {"model": self.model, "parameters": dict(self.parameters)}
        if edit.default and edit.model:
            self.engine.options = replace(self.engine.options, default_model=edit.model)
        self.engine.journal_edit(stop, edit, before, after)
        self.reassemble()

    def _edit_messages(self, stop: Stop, edit: MessageEdit) -> None:
        if isinstance(edit, ChangeMessage | AddMessage):
            edit = replace(edit, message=self._without_secrets(edit.message))
        before = self.history
        try:
            after = edited(before, edit, stop.place)
        except EditError as fault:
            raise EditFault(f"{stop.place.words}: {fault}") from fault
        own = after.own != before.own
        olds = before.own if own else tuple(item for item, _ in before.entered.rows)
        news = after.own if own else tuple(item for item, _ in after.entered.rows)
        at, old, new = difference(olds, news)
        journal = self.engine.journal
        self.engine.journal_edit(stop, edit, journal.items(old), journal.items(new), own=own, at=at)
        self.items = list(after.own)
        self.reassemble(after.entered)

    def _edit_answer(self, stop: Stop, edit: SetAnswer) -> None:
        """Take the model to have said something else; the turn reads its calls from the history."""
        message = self._without_secrets(edit.message)
        self.edit_newest(stop, SetAnswer(message), Kind.ANSWER, message, is_error=False)

    def _without_secrets(self, message: Message) -> Message:
        """A message as a person wrote it, as it enters the run."""
        redact = self.engine.ports.redact
        if isinstance(message.content, str):
            content: str | tuple[Part, ...] = redact(message.content)[0]
        else:
            parts = message.content
            content = tuple(TextPart(redact(p.text)[0]) if isinstance(p, TextPart) else p for p in parts)
        calls = tuple(replace(call, arguments=redact(call.arguments)[0]) for call in message.tool_calls)
        return replace(message, content=content, tool_calls=calls)

    def edit_newest(self, stop: Stop, edit: Edit, kind: Kind, message: Message, *, is_error: bool) -> None:
        """Put a message in place of the newest of its kind at the stop's place: a model or a tool is taken to have
        given that."""
        journal, items = self.engine.journal, self.items
        at = next(i for i in range(len(items) - 1, -1, -1) if items[i].kind is kind and items[i].place == stop.place)
        old = items[at]
        new = replace(old, message=message, is_error=is_error, edited="changed")
        self.engine.journal_edit(stop, edit, journal.items([old]), journal.items([new]), own=True, at=at)
        items[at] = new
        self.reassemble()

    async def heard(self, place: Place) -> bool:
        """Returns whether a person had something to say before the call of ``place``, which is in the history now."""
        return await self.feedback.hear(place, redo=False)

    def assemble(self, place: Place, *, tool_choice: str = "") -> Assembly:
        """The context of the next call. Raises PhaseFailed if it cannot fit into its budget."""
        assembly = self.assembler.assemble(place, tool_choice=tool_choice)
        if self._drafted:
            before = self.engine.last_assembly.get(place.branch)
            assembly = replace(assembly, splices=splices_between(before.entries if before else (), assembly.entries))
            self._drafted = False
        self.engine.last_assembly[place.branch] = assembly
        self._check_budget(assembly)
        return assembly

    def _check_budget(self, assembly: Assembly) -> None:
        """Record a request near its limit. Raises PhaseFailed for one that cannot be made to fit."""
        fit = assembly.fit
        if fit is None:
            return
        if fit.over > 0:
            reason = f"the request is {fit.over:,} tokens over the limit of {fit.limit:,} (strategy {fit.mode})"
            raise PhaseFailed(reason, "token_budget")
        if fit.warns:
            told = f"'{self.phase.name}' is near its limit of {fit.limit:,} input tokens"
            self.engine.warn("budget", told, ("token_budget",))

    async def make_room(self, place: Place) -> None:
        """Make the summary that the assembly at ``place`` wants, if any; without it the oldest turns are dropped."""
        budget = self.engine.definition.cascade.token_budget
        if budget is None or budget.strategy != "summarize":
            return
        self.draft(place)
        wanted = self.assembler.summary_wanted
        if wanted is None:
            return
        model = (budget.summarizer.model if budget.summarizer else None) or self.engine.options.default_model
        lines = "\n\n".join(f"[{item.message.role}]\n{item.message.text}" for item in wanted.items)
        task = f"Sum up in at most {wanted.target} tokens. Keep facts, names, numbers and decisions.\n\n{lines}"
        request = [Message("system", SUMMARIZER), Message("user", task)]
        text = await ask_model(self.engine, self.world, self.place(), "summary", request, model)
        self.assembler.add_summary(Summary(wanted.covers, text))

    def inject(self, place: Place) -> None:
        """Put what hooks said into the history, before the call of ``place``."""
        for one in self.engine.injections.take(place.branch):
            self.add(Kind.USER, f"{HOOK_HEADER}\n{one.text}", place, note=one.note)

    async def ask(self, question: Question, *, raises: bool = False, timeout: float | None = None) -> str:
        """Ask a person, outside any tool call. Raises RunStopped without a person (NoPersonAttached, if ``raises``);
        TimedOut after ``timeout`` seconds."""
        index = self.engine.side_number(self.place())
        return await ask_person(self.engine, self.place(), question, index, raises=raises, timeout=timeout)

    def draft(self, place: Place) -> None:
        """Assemble without journaling, to see what is wanted. The next assembly is spliced against the last journaled
        one.
        """
        self.assembler.assemble(place)
        self._drafted = True

    def adopted(self, world: World) -> None:
        """It has won: from now on it changes this world, which has taken over what it did to its own."""
        self.world, self._won = world, True

    def set_state(self, key: str, value: Any, place: Place, *, by: str) -> None:
        """Change the state, and journal it."""
        if self._won:
            place = place._replace(branch=self.setup.place.branch)
        self.world.state[key] = value
        self.state_set[key] = value
        self.world.cache.invalidate(f"state:{key}")
        self.world.wrote(self.engine.journal.emit("state_set", place, key=key, value=value, by=by))

    def holds(self, condition: str, path: Path) -> bool:
        """Returns whether a condition of the file holds as things stand. Raises PhaseFailed."""
        return truth(self._rendered(condition_template(condition), path, {}, condition_shift(condition)))

    def render(self, template: str | None, path: Path, **extra: Any) -> str:
        """Render a template of the file; undefined names become warnings with their place. Raises PhaseFailed."""
        return self._rendered(template, path, extra) if template else ""

    def render_page(self) -> str:
        """Render the page of the phase, with the functions that pages may call. Raises PhaseFailed."""
        template, shift = with_helpers(self.phase.htmx or "")
        extra = {"session_id": self.engine.options.session_id, "cascade_id": self.engine.definition.cascade.cascade_id}
        return self._rendered(template, (*self.path, "htmx"), extra | {"checkpoint_id": str(self.place())}, shift)

    def _rendered(self, template: str, path: Path, extra: Mapping[str, Any], shift: int = 0) -> str:
        """``shift``: columns of the template's first line that the file does not have. Only cascades have templates."""
        if self.engine.definition.graph.format != "cascade":
            return template
        run, names = self.engine, self.world.names(remaining(self.items), template, extra)
        source = run.definition.source
        try:
            rendered = run.ports.render(template, names)
        except TemplateFault as fault:
            span = source.inner_span(path, fault.line, fault.column - (shift if fault.line == 1 else 0))
            where = f"{source.file}:{span.line}:{span.column}"
            raise PhaseFailed(f"{where}: template: {fault.message}") from fault
        for expression, line, column in rendered.undefined:
            at = source.inner_span(path, line, column - (shift if line == 1 else 0))
            message = f"'{expression}' is undefined; it renders empty (write default('') if that is meant)"
            run.warn("undefined", message, path, self.setup.place, at)  # Of the phase: its candidates share its text.
        return rendered.text

    def scope(self) -> PhaseScope:
        """Returns the scope in which its contexts are assembled, as things are now."""
        setup, run = self.setup, self.engine
        return PhaseScope(
            cascade=run.definition.cascade,
            phase=self.phase,
            index=setup.index,
            place=self.place(),
            input=self.world.input,
            visits=tuple(self.world.records),
            conditions=setup.conditions,
            tool_text="" if self.native else texts.tool_text(setup.tools),
            system_text=self.system_text,
            tools=tuple(texts.native_schema(spec) for spec in setup.tools) if self.native else (),
            model=self.model,
            parameters=self.parameters,
            line_of=run.definition.line,
            keep_recent_images=run.options.keep_recent_images,
            keep_image=run.journal.keep_image,
            path=setup.path,
            without_calls=lambda text: without_calls(text, read_calls(text, setup.tool_names)),
            writes=tuple(self.world.latest.values()),
            task=self._task,
            choices=self.choices,
            vectors=self.vectors,
            graph=run.definition.graph,
            run_id=run.prompt_id,
            from_checkpoint=bool(run.options.start) and not run.options.restarts,
            edge=setup.edge,
            fresh_retries=run.definition.graph.format == "dot",
        )


class Turns:
    """Runs an attempt's turns. The message that opens turn 1 is in the history already."""

    def __init__(self, execution: Execution, attempt: int) -> None:
        self.execution = execution
        self.attempt = attempt
        self.rules = execution.phase.rules
        self.text = ""
        """The last non-blank answer, calls removed."""
        self.route = ""
        self.feedback = ""
        """The remark of an early check or a turn-ward; it opens the next turn."""
        self.judged: frozenset[str] = frozenset()
        self._answered_beside_calls = False
        self._calls = 0
        """Of the turn, so far."""

    async def run(self) -> FinishedAttempt:
        wanted: list[RequestedCall] = []
        failure: Failure | None = None
        for turn in range(1, self.rules.max_turns + 1):
            if turn > 1:
                self._open(turn)
            wanted = await self._turns(turn)
            await self._keep(counts=bool(self.execution.phase.wards.turn or self.rules.loop_until))
            failure = await self.execution.checks.after_turn(self._turn_text, self.attempt, turn)
            if not await self._goes_on(turn, wanted, failure):
                break
        if (reported := self.execution.reported) is not None:
            self.text = self.text or reported.notes or reported.word
        elif wanted and (not self.route or not self._answered_beside_calls):
            await self._closing_call(turn)
        # A run among others is told of when it has ended: its last write to the disk holds the answer, too.
        is_shared = self.execution.engine.journal.is_shared
        await self._keep(counts=self._is_judged or not (is_shared or self.execution.place().branch))
        return FinishedAttempt(self.text, self.route, self.judged, failure)

    @property
    def _is_judged(self) -> bool:
        """Whether checks follow the attempt; else a candidate's answer counts when all are there."""
        phase = self.execution.phase
        return bool(phase.output_schema or phase.rules.loop_until or phase.wards.post)

    async def _keep(self, *, counts: bool) -> None:
        """Make the turn durable: at once if something now depends on it (``counts``: a check, the attempt's result);
        else together with what follows, which is on the disk before a tool runs. Branches share a write.
        """
        journal = self.execution.engine.journal
        if not counts:
            journal.sync_soon()
        elif self.execution.place().branch:
            await journal.synced()
        else:
            await journal.durable()

    def _open(self, turn: int) -> None:
        """The message of a later turn, if it needs one: tool results already ask."""
        execution, rules = self.execution, self.rules
        parts = [self.feedback] if self.feedback else []
        self.feedback = ""
        if rules.turn_prompt:
            path = (*execution.path, "rules", "turn_prompt")
            parts.append(execution.render(rules.turn_prompt, path, turn=turn, max_turns=rules.max_turns))
        elif not parts and not self._has_tools:
            parts.append(texts.CONTINUE)
        text = "\n\n".join(part for part in parts if part.strip())
        if text:
            execution.add(Kind.PROMPT, text, execution.place(self.attempt, turn))

    @property
    def _has_tools(self) -> bool:
        return any(name != ROUTE_TO for name in self.execution.tool_names)

    async def _turns(self, turn: int) -> list[RequestedCall]:
        """One turn, again as often as a person asks for it; the calls of its last answer."""
        execution, self._calls, route = self.execution, 0, self.route
        await execution.engine.fire("turn_start", execution.place(self.attempt, turn, 1), {"model": execution.model})
        wanted = await self._turn(turn, "turn")
        while wanted is None or await execution.feedback.hear(
            execution.place(self.attempt, turn, self._calls), redo=True
        ):
            self.route = route
            wanted = await self._turn(turn, "redo")
        return wanted

    async def _turn(self, turn: int, purpose: str) -> list[RequestedCall] | None:
        """One answer and its tools; None if a person asked for the turn again before the tools had run."""
        self._calls += 1
        place = self.execution.place(self.attempt, turn, self._calls)
        self.execution.inject(place)
        await self.execution.make_room(place)
        await call_model(self.execution, place, purpose)
        wanted = self._read()
        if wanted:
            tooling = self._tooling(place)
            await tooling.run(wanted)
            self.route = tooling.route or self.route
            if tooling.left:
                return None
        return wanted

    def _tooling(self, place: Place) -> Tooling:
        return Tooling(self.execution, self.execution.parts.children, self.execution.feedback, place)

    def _read(self) -> list[RequestedCall]:
        """The calls of the answer that joined the history, secrets replaced. Its text without calls becomes the
        attempt's text so far. Native calls are read even if the phase has no native tools, because every call needs its
        result.
        """
        execution = self.execution
        message = execution.items[-1].message
        redacted = message.text
        if execution.native or message.tool_calls:
            wanted, text = native_calls(message), redacted.strip()
        else:
            read = read_calls(redacted, execution.tool_names)
            wanted, text = prompt_calls(read), without_calls(redacted, read)
        self._turn_text = text
        self._answered_beside_calls = bool(text)
        self.text = text or self.text
        return wanted

    async def _goes_on(self, turn: int, wanted: Sequence[RequestedCall], failure: Failure | None) -> bool:
        """Returns whether another turn follows; an early check may say that the attempt is done."""
        rules = self.rules
        if turn >= rules.max_turns or self.route or self.execution.reported is not None:
            return False
        if failure is not None:
            self.feedback = failure.reason
            return True
        if any(call.name != ROUTE_TO for call in wanted) or rules.turn_prompt:
            return True
        if rules.loop_until and not wanted:
            return not await self._passes_early(turn)
        return not self._has_tools and not rules.loop_until

    async def _passes_early(self, turn: int) -> bool:
        early, self.judged = await self.execution.checks.early(self._turn_text, self.attempt, turn)
        if early is None:
            return True
        self.feedback = f"Not accepted yet: {early.reason}"
        return False

    async def _closing_call(self, turn: int) -> None:
        execution = self.execution
        place = execution.place(self.attempt, turn, self._calls + 1)
        execution.inject(place)
        execution.add(Kind.CLOSING, texts.CLOSING, place)
        forbid = "none" if execution.native and execution.tool_names else ""
        await call_model(execution, place, "closing", tool_choice=forbid)
        if (late := self._read()) and execution.items[-1].message.tool_calls:
            self._tooling(place).close(late)
