"""Writes a conversation as the journal of a run: the engine's own writer, assembler and records, and no model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import takewhile
from types import MappingProxyType
from typing import Any, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from workbench import __version__
from workbench.context.assembler import Assembler, is_forced
from workbench.context.assembly import Assembly, Item, Kind
from workbench.context.cache import Price, Prices
from workbench.context.edits import AddMessage, Draft, MessageEdit, MoveMessage, difference, edited
from workbench.context.marks import NO_MARKS, PARAMETER
from workbench.context.message import Image, Message, TextPart, ToolCall
from workbench.context.place import Place
from workbench.context.scope import PhaseScope
from workbench.context.strategy import Strategy
from workbench.context.tokens import Counter
from workbench.engine.calls.call_records import record_answer, record_context
from workbench.engine.contracts import Answer, NativeCall
from workbench.engine.definition import Definition, Options
from workbench.engine.edits import Edit, SetAnswer, SetModel, laid, name_of, to_json
from workbench.engine.forecasting import Forecaster, Prediction
from workbench.engine.gate import StopKind, newly_broken
from workbench.engine.journal.event import Event, timestamp
from workbench.engine.journal.journal_writer import Clock, JournalWriter, Sink
from workbench.engine.journal.usage import Usage
from workbench.importers.conversation import (
    Call,
    Conversation,
    ImportedMessage,
    Picture,
    Remark,
    Thread,
    marks_of_messages,
)
from workbench.language.clean import clean

# Messages of a conversation as the history of a run holds them: secrets replaced, images by digest, ids for all.

COMMAND = "command"
"""The tool's name if a text protocol runs commands without naming one."""

Redact = Callable[[str], tuple[str, int]]


def item_of(one: ImportedMessage, kind: Kind, place: Place, journal: JournalWriter, redact: Redact) -> Item:
    """A message and the place where it was made; the journal keeps its images."""
    found, parts, calls = 0, list[TextPart | Image](), list[ToolCall]()
    for part in one.parts:
        if isinstance(part, Picture):
            parts.append(replace(journal.image(part.data, part.media_type), detail=part.detail))
            continue
        text, count = redact(part)
        parts.append(TextPart(text))
        found += count
    for call in one.calls:
        arguments, count = redact(call.arguments)
        calls.append(replace(call, arguments=arguments))
        found += count
    content = tuple(parts) if len(parts) > 1 or has_pictures(one) else _text(parts)
    message = Message(one.role, content, tuple(calls), one.call_id, one.name, redacted_json(one.extra, redact))
    tool = COMMAND if one.observation else one.name
    return Item(message, kind, place, tool if kind is Kind.RESULT else "", one.is_error, redacted=found)


def redacted_json(value: Any, redact: Redact) -> Any:
    """JSON without secrets, text by text: across values, a match could take the JSON's own signs with it."""
    if isinstance(value, str):
        return redact(value)[0]
    if isinstance(value, Mapping):
        return {redact(str(key))[0]: redacted_json(one, redact) for key, one in value.items()}
    if isinstance(value, list):
        return [redacted_json(one, redact) for one in value]
    return value


def has_pictures(one: ImportedMessage) -> bool:
    """Returns whether a message holds images."""
    return any(isinstance(part, Picture) for part in one.parts)


class CallIds:
    """Gives ids to the calls and results of one context if the source has none: a result answers the first open call
    before it, or the first of its tool if it names a tool. A secret in an id or a name is replaced, in the call as in
    its result; ids stay different from each other."""

    def __init__(self, redact: Redact) -> None:
        self._redact = redact
        self._replaced: dict[str, str] = {}
        """Ids without secrets, by those that hold some."""
        self._made = 0
        self._own = set[str]()
        """Ids that were made here: a result names such a call by an id that its client drew, or by none."""
        self._waiting: list[ToolCall] = []
        """Calls that no result has answered yet."""
        self._before = ""
        """The role of the message before."""

    def named(self, one: ImportedMessage) -> ImportedMessage:
        """The next message, with ids."""
        calls = list[ToolCall]()
        one = self._without_secrets(one)
        for call in one.calls:
            self._made += 1
            calls.append(call if call.id else replace(call, id=f"call_{self._made}"))
            if not call.id:
                self._own.add(calls[-1].id)
        if calls:
            self._waiting = [*self._waiting, *calls] if self._before == "assistant" else list(calls)
        call_id = one.call_id
        if one.role == "tool":
            drawn = all(call.id != call_id for call in self._waiting) and any(c.id in self._own for c in self._waiting)
            if (not call_id or drawn) and self._waiting:
                of_tool = (call.id for call in self._waiting if one.name and call.name == one.name)
                call_id = next(of_tool, self._waiting[0].id)
            self._waiting = [call for call in self._waiting if call.id != call_id]
        self._before = one.role
        return replace(one, calls=tuple(calls), call_id=call_id)

    def _without_secrets(self, one: ImportedMessage) -> ImportedMessage:
        calls = tuple(replace(call, id=self._id(call.id), name=self._redact(call.name)[0]) for call in one.calls)
        return replace(one, calls=calls, call_id=self._id(one.call_id), name=self._redact(one.name)[0])

    def _id(self, text: str) -> str:
        if (known := self._replaced.get(text)) is not None:
            return known
        clean = self._redact(text)[0]
        if clean != text:
            clean = self._replaced[text] = f"{clean}_{len(self._replaced) + 1}"
        return clean


def _text(parts: list[TextPart | Image]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))


PHASE = "imported"
UNANSWERED = "unanswered"
"""The fault of a call whose answer the file lacks."""
_MESSAGES = "the file holds messages, not requests: tools, schemas and hidden prompts are not stated"
UNSTATED = dict.fromkeys(
    (
        "adk",
        "anthropic",
        "antigravity",
        "atif",
        "bfcl",
        "burr",
        "langfuse",
        "langfuse-case",
        "langsmith",
        "lm-eval",
        "managed-agents",
        "openai",
        "openhands",
        "openinference",
        "otel",
        "promptfoo",
        "pydantic-ai",
        "run-state",
        "session",
        "tau-bench",
        "temporal",
        "toolbench",
        "tracer",
        "zed",
    ),
    _MESSAGES,
)
"""By the name of a format: the parts of a request that its files do not state. Formats missing here hold requests as
they were sent (recorded traffic, logs of requests, Inspect), or a text protocol that has only its messages.
"""
_LONGEST = 86_400.0
"""Seconds: no call takes longer than a day."""
MOST_BODIES = 5_000
"""Messages and images that are known to be journaled: a program may be watched for days."""
_KEPT_BYTES = 1024 * 1024
"""Further data of a source is kept up to this size, as JSON."""


class Origin(Struct, frozen=True):
    """The origin of a conversation."""

    format: str
    file: str
    sha256: str


class EventClock(Clock, Protocol):
    """Gives the events of a run their times."""

    def begins(self, at: str) -> None:
        """Start of the next call: UTC, ISO 8601; empty if the source does not say."""
        ...

    def lasts(self, seconds: float | None) -> None:
        """Duration of the call; None if the source does not say."""
        ...


class FileClock(Struct):
    """The times of the file: each event has that of the latest call that says when it was."""

    at: str
    """UTC, ISO 8601 with microseconds and ``Z``."""

    def now(self) -> str:
        return self.at

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        """Never waits: a file has no time to pass."""

    def begins(self, at: str) -> None:
        self.at = at or self.at

    def lasts(self, seconds: float | None) -> None:
        then = datetime.fromisoformat(self.at) + timedelta(seconds=min(seconds or 0.0, _LONGEST))
        self.at = then.isoformat(timespec="microseconds").replace("+00:00", "Z")


class JournalServices(Struct, frozen=True):
    """Services that writing needs beside the conversation."""

    sink: Sink
    clock: Clock
    """Gives the times that the file lacks."""
    counter: Counter
    prices: Prices
    cost: Callable[[Usage, Price], float | None]
    """US dollars of a call whose cost the source does not state."""
    redact: Redact = lambda text: (text, 0)


def cascade_text(title: str, phase: str = PHASE, source: str = "the imported file") -> str:
    """The cascade that such a run is pinned to: one phase, which sends everything that was said in it."""
    described = json.dumps(f"A run of another tool: {title}" if title else "A run of another tool.")
    return (
        f"cascade_id: {phase}\n"
        f"description: {described}\n"
        "phases:\n"
        f"  - name: {phase}\n"
        f"    instructions: The messages are those of {source}.\n"
    )


def begin(
    journal: JournalWriter,
    definition: Definition,
    options: Options,
    origin: Origin,
    *,
    file: str = "",
    input: Mapping[str, Any] = MappingProxyType({}),
    kept: Mapping[str, Any] = MappingProxyType({}),
    left_out: Sequence[Mapping[str, Any]] = (),
    stated: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Journal ``run_started``, marked as imported.

    ``file`` is the cascade's, ``kept`` further data of the source, ``left_out`` the parts of the file that are no
    messages of the run, and ``stated`` the sums that the file gives for the whole run.
    """
    journal.emit(
        "run_started",
        session_id=options.session_id,
        cascade_id=definition.cascade.cascade_id,
        cascade_file=file,
        cascade_text=definition.source.text,
        cascade_sha256=definition.sha256,
        includes={},
        input=dict(input),
        options=options.to_json(),
        ports={"imported": origin.format},
        parent=None,
        version=__version__,
        imported={
            "format": origin.format,
            "file": origin.file,
            "sha256": origin.sha256,
            "kept": dict(kept),
            "left_out": list(left_out),
            "stated": dict(stated),
        },
    )


def no_one(event: Event) -> None:
    """The default observer: does nothing."""


def write_journal(
    conversation: Conversation, origin: Origin, run_id: str, session_id: str, outside: JournalServices
) -> None:
    """Journal a conversation as an ordinary run, marked by ``ports: {imported: FORMAT}``."""
    _Writer(conversation, origin, run_id, session_id, outside).write()


class RunJournal:
    """The journal of a run that another program makes, and what its contexts share while they are written."""

    def __init__(
        self,
        origin: Origin,
        run_id: str,
        session_id: str,
        outside: JournalServices,
        clock: EventClock,
        *,
        title: str = "",
        model: str = "",
        phase: str = PHASE,
        source: str = "the imported file",
        code: str = "import",
        observe: Callable[[Event], None] = no_one,
    ) -> None:
        """``title`` describes the cascade that the run is pinned to; ``source`` names in it the origin of the messages.
        ``code``: of warnings without one of their own. ``observe`` gets each event once it is journaled.
        """
        title = clean(outside.redact(title)[0])[:200].encode("utf-8", "replace").decode()
        self.origin = origin
        self.outside = outside
        self.phase = phase
        self._code = code
        self.definition = Definition.of(cascade_text(title, phase, source), "")
        self.clock = clock
        self.journal = JournalWriter(run_id, clock, outside.sink, observe, bodies=MOST_BODIES)
        self.options = Options(session_id, model)
        self.forecasters: dict[str, Forecaster] = {}
        self.last: Assembly | None = None
        """The newest context of the run, whatever visit it is of."""
        self.last_seq = 0
        """The number of its record; 0 before the first."""
        self.redact = outside.redact

    def warn(self, message: str, place: Place = Place(), *, code: str = "", **more: Any) -> None:
        """Journal that something of the source is not in the run as it stood there."""
        told: dict[str, Any] = {"file": self.origin.file, "path": "", "line": 0, "column": 0}
        self.journal.emit("warning", place, code=code or self._code, message=self.redact(message)[0], **told, **more)

    def end(self, status: str, output: str, reason: str = "") -> None:
        """Journal the end of the run."""
        reason = self.redact(reason)[0]
        self.journal.emit("run_finished", status=status, output=output, state={}, reason=reason)
        self.journal.sync()


class _Writer:
    """One conversation being written."""

    def __init__(
        self, conversation: Conversation, origin: Origin, run_id: str, session_id: str, outside: JournalServices
    ) -> None:
        self.conversation = conversation
        clock = FileClock(_first_time(conversation) or outside.clock.now())
        model = next((t.model for t in conversation.threads), "")
        self.run = RunJournal(origin, run_id, session_id, outside, clock, title=conversation.title, model=model)

    def write(self) -> None:
        """All events, from ``run_started`` to ``run_finished``."""
        conversation, output = self.conversation, ""
        self._start()
        for number, thread in enumerate(conversation.threads, 1):
            output = self._context(thread, number) or output
        self.run.end(conversation.status, output, conversation.reason)

    def _start(self) -> None:
        run, remarks = self.run, list(self.conversation.remarks)
        kept = json.dumps(dict(self.conversation.kept), ensure_ascii=False, default=str)
        if len(kept) > _KEPT_BYTES:
            beside = f"what the file says beside its messages, which is larger than {_KEPT_BYTES:,} characters,"
            remarks = [replace(one, kept=False) for one in remarks] + [Remark(beside, left_out=True)]
            kept = "{}"
        begin(
            run.journal,
            run.definition,
            run.options,
            run.origin,
            kept=redacted_json(json.loads(kept), run.redact),
            left_out=redacted_json([one.to_json() for one in remarks if one.left_out], run.redact),
            stated=self.conversation.stated.to_json(),
        )
        for one in remarks:
            run.warn(str(one))

    def _context(self, thread: Thread, number: int) -> str:
        """The events of one context; the text of its last answer."""
        unstated = thread.unstated or UNSTATED.get(self.run.origin.format, "") or _without_tools(thread)
        parameters = {key: value for key, value in thread.parameters.items() if key != "tool_choice"}
        forced = is_forced(thread.parameters.get("tool_choice"))
        answers = sum(1 for one in thread.said if one.role == "assistant")
        self.run.clock.begins(next((one.call.at for one in thread.said if one.call is not None), ""))
        turns, responses = max(answers, 1), thread.responses
        begun = BegunContext(thread.model, thread.tools, parameters, forced, unstated, turns, responses)
        written = ContextWriter(self.run, number, begun, thread.said[:1])
        choice = str(thread.parameters.get("tool_choice", ""))
        # Where no request states its own marks, a message that is marked was so in each request that it was in.
        stated = any(one.call is not None and one.call.marks is not None for one in thread.said)
        for i, one in enumerate(thread.said[written.taken :], written.taken):
            if one.call is None:
                written.add(one)
                continue
            call = one.call if stated else replace(one.call, marks=marks_of_messages(thread.said[:i], thread.marked))
            own = dict(call.parameters)
            written.asked(call, tool_choice=str(own.pop("tool_choice", choice)), parameters=own)
            if one.call.fault:
                written.failed(one.call)
            else:
                written.answered(one, one.call)
        return written.end(self.conversation.status)


def _without_tools(thread: Thread) -> str:
    """That a record lost the tools of its requests, in words: an answer calls one, and none is declared."""
    calls = any(one.calls for one in thread.said if one.call is not None)
    return "the model calls tools, and the file shows none in its request" if calls and not thread.tools else ""


class BegunContext(Struct, frozen=True):
    """The known facts of a context when it begins."""

    model: str
    tools: tuple[Mapping[str, Any], ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Those that all its calls share, without ``tool_choice``."""
    forced: bool = False
    """Whether the model has to call a tool."""
    unstated: str = ""
    """The parts of its requests that are unknown, in words."""
    turns: int = 1
    """The answers in it, as far as they are known."""
    responses: bool = False
    """Whether its requests are ones to OpenAI's Responses API."""


class ContextWriter:
    """One context as a visit of the phase: it begins anew, and then only grows. Messages are given in their order."""

    def __init__(
        self,
        run: RunJournal,
        number: int,
        begun: BegunContext,
        first: Sequence[ImportedMessage],
        strategy: Strategy | None = None,
    ) -> None:
        """Journals that the visit begins. ``first``: the message that it begins with, if there is one; where it holds
        the instructions alone they are the system text of the context, and ``taken`` is 1. ``strategy``: what is sent
        of the messages; None for all of them."""
        self._run = run
        self._begun = begun
        self._unstated = begun.unstated
        self.place = Place("", run.phase, number)
        system_text, self.taken = "", 0
        if first and first[0].role == "system" and first[0].text and not has_pictures(first[0]):
            system_text, self.taken = run.redact(first[0].text)[0], 1
        scope = PhaseScope(
            cascade=run.definition.cascade,
            phase=run.definition.cascade.phases[0],
            index=0,
            place=self.place,
            system_text=system_text,
            tools=begun.tools,
            model=begun.model,
            parameters=begun.parameters,
            forced=begun.forced,
            responses=begun.responses,
            line_of=run.definition.line,
        )
        self._scope = scope
        self._assembler = Assembler(scope, strategy or Strategy(), run.outside.counter, run.last)
        self._against = run.last_seq
        """The record of the context that the next one is spliced against: contexts may alternate."""
        self._items: list[Item] = []
        """The messages of the visit."""
        self.origins: list[int | None] = list(range(self.taken))
        """For each message of the context, which of those that were given it is, from 0; None for one of an edit."""
        self._given = self.taken
        self._pending: list[Item] = []
        """Messages that the next call's context brings into the journal."""
        self._ids = CallIds(run.redact)
        self._at = self.place._replace(attempt=1, turn=1, call=1)
        self._turns = 0
        """Answers so far."""
        self._asked_turns: set[int] = set()
        """Those that a call is known to have made."""
        self._last: ImportedMessage | None = None
        """The last answer."""
        self._has_task = False
        self._output = ""
        self._sent: tuple[Assembly, Prediction] | None = None
        """The request of the call that waits for its answer."""
        self._by_hand = False
        """Whether a person answers it."""
        self._laid: tuple[str, Mapping[str, Any] | None] = "", None
        """Its ``tool_choice`` and its own parameters."""
        self.settings = SetModel()
        """The edits of the model and the parameters, of this call and all later ones."""
        run.journal.emit(
            "phase_started",
            self.place,
            kind="llm",
            model=begun.model,
            strategy=str(self._assembler.strategy),
            conditions={},
            max_turns=begun.turns,
            tools=[],
        )

    @property
    def assembly(self) -> Assembly | None:
        """The request of the call that waits for its answer."""
        return self._sent[0] if self._sent is not None else None

    @property
    def at(self) -> Place:
        """Where the newest call stands."""
        return self._at

    def add(self, one: ImportedMessage) -> None:
        """The next message, which no call made: the user's, a tool's result, an answer of an earlier context."""
        one = self._ids.named(one)
        if one.role == "assistant":
            self._turn()
            self._last, self._output = one, one.text or self._output
            self._wait(self._item(one, Kind.ANSWER, self._at))
        elif one.role == "tool" or one.observation:
            self._result(one)
        else:
            self._message(one)

    def end(self, status: str, **ended: str) -> str:
        """Journal the end of the visit; the text of its last answer. ``ended``: when it did, if not now."""
        run = self._run
        if self._pending:
            single = len(self._pending) == 1
            count = "1 message" if single else f"{len(self._pending)} messages"
            note = f"{count} after the last answer: no call saw {'it' if single else 'them'}"
            run.warn(note, self.place, messages=run.journal.items(self._pending))
        output = run.redact(self._output)[0]
        run.journal.emit("phase_finished", self.place, status=status, output=output, reason="", check="", **ended)
        return output

    # -- messages ----------------------------------------------------------------------------------------------------

    def _turn(self) -> None:
        self._turns += 1
        self._at = self._at._replace(turn=self._turns)

    def _message(self, one: ImportedMessage) -> None:
        kind = Kind.USER
        if one.role == "user" and not self._has_task and self._turns == 0:
            kind, self._has_task = Kind.TASK, True
        self._wait(self._item(one, kind, self._at._replace(turn=self._turns + 1, call=0)))

    def _item(self, one: ImportedMessage, kind: Kind, place: Place) -> Item:
        return item_of(one, kind, place, self._run.journal, self._run.redact)

    def _wait(self, item: Item) -> None:
        self._join(item)
        self._pending.append(item)

    def _join(self, item: Item) -> None:
        self._items.append(item)
        self.origins.append(self._given)
        self._given += 1
        self._assembler.add(item)

    # -- calls -------------------------------------------------------------------------------------------------------

    def asked(self, call: Call, *, tool_choice: str = "", parameters: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Journal the request of the next call, and that it is sent. ``parameters``: its own, beside those of the
        context."""
        self.assemble(call, tool_choice=tool_choice, parameters=parameters)
        self.started()

    def assemble(
        self, call: Call, *, tool_choice: str = "", parameters: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        """Journal the request of the next call, which is not sent yet."""
        self._turn()
        self._run.clock.begins(call.at)
        marks = {PARAMETER: call.marks.to_json()} if call.marks is not None else {}
        self._laid = tool_choice, laid({**parameters, **marks}, self.settings) or None
        self._assembled()

    def _assembled(self, *, edited: bool = False) -> None:
        run = self._run
        tool_choice, own = self._laid
        assembly = self._assembler.assemble(self._at, tool_choice=tool_choice, parameters=own)
        if assembly.problems and (self._assembler.strategy.survives or self._assembler.strategy.fits):
            assembly = self._valid(assembly)
        run.last = assembly
        prediction = self._predicted(assembly)
        self._asked_turns.add(self._turns)
        added, self._pending = self._pending, []
        record_context(
            run.journal,
            self._at,
            assembly,
            purpose="turn",
            added=added,
            prediction=prediction,
            edited=edited,
            unstated=self._unstated,
            after=self._against if self._against != run.last_seq else None,
        )
        self._against = run.last_seq = run.journal.seq
        self._sent, self._by_hand = (assembly, prediction), False

    def _predicted(self, assembly: Assembly, *, late: bool = False) -> Prediction:
        """``late``: the calls that are known already were made after it, so that they tell nothing of it."""
        run, model = self._run, self._scope.model
        if late or (forecaster := run.forecasters.get(model)) is None:
            forecaster = Forecaster(model, run.outside.counter, run.outside.prices, NO_MARKS)
        if not late:
            run.forecasters[model] = forecaster
        now = timestamp(run.clock.now())
        return forecaster.predict(assembly, now, unknown=bool(self._unstated))

    def _valid(self, assembly: Assembly) -> Assembly:
        """The same, or where the strategy breaks a rule of a valid request, all messages; the context stays so."""
        tool_choice, own = self._laid
        plain = Assembler(self._scope, Strategy(), self._run.outside.counter, self._run.last)
        for item in self._items:
            plain.add(item)
        whole = plain.assemble(self._at, tool_choice=tool_choice, parameters=own)
        if not (broken := newly_broken(whole, assembly)):
            return assembly
        told = f"{self._assembler.strategy} would break a rule ({broken}): this context is sent as it is"
        self._run.warn(told, self._at, code="strategy")
        self._assembler, self._against = plain, self._run.last_seq
        return whole

    def started(self) -> None:
        """Journal that the request is sent."""
        assert self._sent is not None, "no call was assembled"
        self._journal_started(self._at, self._sent[0])

    def _journal_started(self, place: Place, assembly: Assembly) -> None:
        about = {"digest": assembly.request.digest, "model": self._scope.model, "purpose": "turn", "try": 1}
        self._run.journal.emit("call_started", place, **about)

    def failed(self, call: Call, kind: str = UNANSWERED) -> None:
        """Journal that no answer came to that call; ``call.fault`` says why."""
        assembly, _ = self._taken()
        error = {"kind": kind, "message": self._run.redact(call.fault)[0]}
        self._run.journal.emit(
            "call_failed",
            self._at,
            digest=assembly.request.digest,
            error=error,
            purpose="turn",
            retry_in=None,
            **{"try": 1},
        )
        self._last = None
        self._run.clock.lasts(call.duration_s)

    def answered(self, one: ImportedMessage, call: Call, *, recorded: bool = False) -> Usage:
        """Journal the answer to that call, and what the source says of it; its usage as written. ``recorded``: it was
        given before.
        """
        run, (assembly, prediction) = self._run, self._taken()
        forecaster, one = run.forecasters[assembly.request.model], replace(self._ids.named(one), call=call)
        item = self._item(one, Kind.ANSWER, self._at)
        answer = replace(self._answer(one, call, prediction.price), recorded=recorded or call.recorded)
        if self._by_hand:  # Nothing was sent: no provider counts it, bills it or keeps it in a cache.
            answer = replace(answer, usage=Usage(input=0, output=0), cost=0.0, cost_grade="exact")
        else:
            forecaster.sent(assembly, timestamp(run.clock.now()))
            forecaster.answered(assembly, call.usage, item.message)
        record_answer(run.journal, self._at, assembly, answer, item, purpose="turn", redact=run.redact)
        self._join(item)
        self._last, self._output = one, one.text or self._output
        run.clock.lasts(call.duration_s)
        return answer.usage

    def late(
        self, index: int, one: ImportedMessage, call: Call, *, tool_choice: str, parameters: Mapping[str, Any]
    ) -> bool:
        """Journal the call that made the answer at ``index`` of the messages, which later calls were given before this
        one was known. False where a call is known to have made it, or a fault of its own is all that is known."""
        at = index - self.taken
        if call.fault or not 0 <= at < len(self._items) or (old := self._items[at]).place.turn in self._asked_turns:
            return False
        run, place = self._run, old.place
        self._asked_turns.add(place.turn)
        assembler = Assembler(self._scope, Strategy(), run.outside.counter)
        for item in self._items[:at]:
            assembler.add(item)
        assembly = assembler.assemble(place, tool_choice=tool_choice, parameters=parameters or None)
        run.clock.begins(call.at)
        prediction = self._predicted(assembly, late=True)
        told: dict[str, Any] = {"unstated": self._unstated, "after": 0, "late": True}
        record_context(run.journal, place, assembly, purpose="turn", added=(), prediction=prediction, **told)
        run.last, run.last_seq = assembly, run.journal.seq
        self._journal_started(place, assembly)
        answer = self._answer(one, call, prediction.price)
        if one.text.strip() and not old.message.text.strip():  # Later calls were told to hold the answer without it.
            old = replace(old, message=replace(old.message, content=run.redact(one.text)[0]))
        record_answer(run.journal, place, assembly, answer, old, purpose="turn", redact=run.redact, joins=False)
        run.clock.lasts(call.duration_s)
        for item in takewhile(lambda item: item.kind is Kind.RESULT, self._items[at + 1 :]):
            for number, called in enumerate(old.message.tool_calls, 1):
                if called.id == item.message.tool_call_id:
                    self._ran(number, called, item, joins=False)
        return True

    def _taken(self) -> tuple[Assembly, Prediction]:
        assert self._sent is not None, "no call waits for an answer"
        sent, self._sent = self._sent, None
        return sent

    def _answer(self, one: ImportedMessage, call: Call, price: Price) -> Answer:
        stated = bool(call.cost)  # Sources that know no price write 0.
        cost = call.cost if stated else self._run.outside.cost(call.usage, price)
        return Answer(
            one.text,
            tuple(NativeCall(c.id, c.name, c.arguments, c.extra) for c in one.calls),
            finish_reason=call.finish_reason,
            usage=call.usage,
            cost=cost,
            cost_grade=call.cost_grade if stated else price.grade if cost is not None else "unknown",
            model=call.model,
            provider=call.provider,
            duration_s=call.duration_s,
        )

    # -- edits by hand, of the call that is not sent yet or was just answered ------------------------------------------

    @property
    def scope(self) -> PhaseScope:
        """The scope in which the context is assembled."""
        return self._scope

    @property
    def items(self) -> Sequence[Item]:
        """The messages of the visit."""
        return self._items

    @property
    def newest(self) -> Message:
        """The newest message of the context."""
        return self._items[-1].message

    @property
    def prediction(self) -> Prediction | None:
        """Of the call that waits for its answer."""
        return self._sent[1] if self._sent is not None else None

    @property
    def draft(self) -> Draft:
        """The messages that edits change."""
        return Draft(self._assembler.entered, tuple(self._items))

    def preview(self, edits: Sequence[Edit]) -> Assembly:
        """Returns the assembly that the call would send after edits; nothing is changed. Raises EditError."""
        draft, scope = self.draft, self._scope
        tool_choice, own = self._laid
        for edit in edits:
            if isinstance(edit, SetModel):
                scope, own = laid_over(scope, edit), laid(own or {}, edit)
            elif isinstance(edit, MessageEdit):
                draft = edited(draft, edit, self._at)
        other = self._assembler.edited(scope, draft.entered, draft.own)
        return other.assemble(self._at, tool_choice=tool_choice, parameters=own)

    def edit(self, edits: Sequence[Edit]) -> None:
        """Make edits of the messages and the model of the call that is not sent yet, and journal its new request.
        Raises EditError, and what was made before stays."""
        journal, entered = self._run.journal, self._assembler.entered
        for edit in edits:
            if isinstance(edit, SetModel):
                self._edit_settings(edit)
            elif isinstance(edit, MessageEdit):
                after = edited(Draft(entered, tuple(self._items)), edit, self._at)
                own = after.own != tuple(self._items)
                olds = tuple(self._items) if own else tuple(item for item, _ in entered.rows)
                news = after.own if own else tuple(item for item, _ in after.entered.rows)
                at, old, new = difference(olds, news)
                self._told(edit, journal.items(old), journal.items(new), own=own, at=at)
                self._items, entered = list(after.own), after.entered
                self._follow(edit)
        self._assembler = self._assembler.edited(self._scope, entered, self._items)
        self._assembled(edited=True)

    def _follow(self, edit: MessageEdit) -> None:
        if isinstance(edit, AddMessage):
            self.origins.insert(edit.at, None)
        elif isinstance(edit, MoveMessage):
            self.origins.insert(edit.to, self.origins.pop(edit.at))

    def _edit_settings(self, edit: SetModel) -> None:
        def now() -> dict[str, Any]:
            return {"model": self._scope.model, "parameters": {**self._scope.parameters, **(self._laid[1] or {})}}

        before, known = now(), self.settings
        self._scope = laid_over(self._scope, edit)
        self._laid = self._laid[0], laid(self._laid[1] or {}, edit) or None
        self.settings = SetModel(edit.model or known.model, {**known.parameters, **edit.parameters})
        self._told(edit, before, now())

    def edit_answer(self, edit: SetAnswer) -> ImportedMessage:
        """Take the model to have said something else; the answer as it stands now."""
        last, old = self._last, self._items[-1]
        assert last is not None, "there is no answer"
        new = replace(old, message=edit.message, edited="changed")
        journal, at = self._run.journal, len(self._items) - 1
        self._told(edit, journal.items([old]), journal.items([new]), own=True, at=at, stop=StopKind.AFTER_CALL)
        self._items[-1] = new
        self._assembler = self._assembler.edited(self._scope, self._assembler.entered, self._items)
        self._last = replace(last, parts=(edit.message.text,), calls=edit.message.tool_calls)
        self._output = edit.message.text or self._output
        return self._last

    def answered_by_hand(self, edit: SetAnswer) -> None:
        """Journal that a person answers the call that is not sent yet."""
        self._by_hand = True
        self._told(edit, "", edit.message.text)

    def _told(self, edit: Edit, before: Any, after: Any, *, stop: StopKind = StopKind.BEFORE_CALL, **more: Any) -> None:
        about = {"stop": str(stop), "index": 0, "what": name_of(edit), "before": before, "after": after}
        self._run.journal.emit("edited", self._at, **about, edit=to_json(edit), **more)

    def paused(self, stop: StopKind, seconds: float) -> None:
        """Journal that the call was paused until now."""
        self._run.journal.emit("paused", self._at, stop=str(stop), seconds=round(seconds, 6))

    # -- tools -------------------------------------------------------------------------------------------------------

    def _result(self, one: ImportedMessage) -> None:
        """A result: with events of its tool where the call that asked for it is in the journal."""
        item, last = self._item(one, Kind.RESULT, self._at), self._last
        called = self._called(one)
        if called is None:
            self._wait(item)
            return
        item = replace(item, tool=called[1].name)
        if last is None or last.call is None:
            self._wait(item)
            return
        joins = not self._pending  # Behind a message that waits for the next call, the result has to wait too.
        self._ran(*called, item, joins=joins)
        if joins:
            self._join(item)
        else:
            self._wait(item)

    def _ran(self, index: int, call: ToolCall, item: Item, *, joins: bool) -> None:
        """Journal that a call of a tool gave a result. ``joins``: its message is not in the journal yet."""
        journal, place = self._run.journal, item.place
        about = {"index": index, "call_id": call.id, "tool": call.name}
        arguments = self._run.redact(call.arguments)[0]
        journal.emit("tool_started", place, **about, arguments=arguments, native=bool(call.id), side_effects=True)
        journal.emit(
            "tool_finished",
            place,
            **about,
            is_error=item.is_error,
            added=journal.items([item] if joins else []),
            images=[image.to_json() for image in item.message.images],
            duration_s=None,
            sandbox="",
            cached=False,
            text=item.message.text,
        )

    def _called(self, one: ImportedMessage) -> tuple[int, ToolCall] | None:
        """The tool call of the last answer that this is the result of, and its number; None where it has none."""
        last = self._last
        if last is None:
            return None
        if one.observation and last.command:
            return 1, ToolCall("", COMMAND, json.dumps({"command": last.command}, ensure_ascii=False))
        return next(((i, call) for i, call in enumerate(last.calls, 1) if call.id == one.call_id), None)


def laid_over(scope: PhaseScope, edit: SetModel) -> PhaseScope:
    """The scope with the model and the parameters of an edit."""
    return replace(scope, model=edit.model or scope.model, parameters=laid(scope.parameters, edit))


def _first_time(conversation: Conversation) -> str:
    times = (one.call.at for thread in conversation.threads for one in thread.said if one.call is not None)
    return min((at for at in times if at), default="")
