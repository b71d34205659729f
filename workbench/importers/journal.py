"""Writes a conversation as the journal of a run: the engine's own writer, assembler and records, and no model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from workbench import __version__
from workbench.context.assembler import Assembler, is_forced
from workbench.context.assembly import Assembly, Item, Kind
from workbench.context.cache import Price, Prices
from workbench.context.marks import NO_MARKS, PARAMETER
from workbench.context.message import Image, Message, TextPart, ToolCall
from workbench.context.place import Place
from workbench.context.scope import PhaseScope
from workbench.context.strategy import Strategy
from workbench.context.tokens import Counter
from workbench.engine.calls.call_records import record_answer, record_context
from workbench.engine.contracts import Answer, NativeCall
from workbench.engine.definition import Definition, Options
from workbench.engine.forecasting import Forecaster
from workbench.engine.journal.event import Event
from workbench.engine.journal.journal_writer import Clock, JournalWriter, Sink
from workbench.engine.journal.usage import Usage
from workbench.importers.conversation import Call, Conversation, ImportedMessage, Picture, Remark, Thread
from workbench.language.clean import clean

# Messages of a conversation as the history of a run holds them: secrets replaced, images by digest, ids for all.

COMMAND = "command"
"""The tool's name where a text protocol runs commands and names none."""

Redact = Callable[[str], tuple[str, int]]


def item_of(one: ImportedMessage, kind: Kind, place: Place, journal: JournalWriter, redact: Redact) -> Item:
    """A message and where it was made; its images are kept by the journal."""
    found, parts, calls = 0, list[TextPart | Image](), list[ToolCall]()
    for part in one.parts:
        if isinstance(part, Picture):
            parts.append(journal.image(part.data, part.media_type))
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
    """Whether a message holds images."""
    return any(isinstance(part, Picture) for part in one.parts)


def with_ids(said: Sequence[ImportedMessage]) -> list[ImportedMessage]:
    """The messages, with ids where the source has none: a result without one answers the first call before it that is
    open, one of its tool where it names a tool."""
    made, waiting, found = 0, list[ToolCall](), list[ImportedMessage]()
    for i, one in enumerate(said):
        calls = list[ToolCall]()
        for call in one.calls:
            made += 1
            calls.append(call if call.id else replace(call, id=f"call_{made}"))
        if calls:
            waiting = [*waiting, *calls] if i and said[i - 1].role == "assistant" else list(calls)
        call_id = one.call_id
        if one.role == "tool":
            if not call_id and waiting:
                call_id = next((call.id for call in waiting if one.name and call.name == one.name), waiting[0].id)
            waiting = [call for call in waiting if call.id != call_id]
        found.append(replace(one, calls=tuple(calls), call_id=call_id))
    return found


def _text(parts: list[TextPart | Image]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))


PHASE = "imported"
UNANSWERED = "unanswered"
"""The kind of fault of a call whose answer the file does not hold."""
_MESSAGES = "the file holds messages, not requests: tools, schemas and hidden prompts are not stated"
UNSTATED = dict.fromkeys(
    (
        "adk",
        "anthropic",
        "atif",
        "burr",
        "langfuse",
        "langfuse-case",
        "langsmith",
        "openai",
        "openhands",
        "openinference",
        "otel",
        "promptfoo",
        "pydantic-ai",
        "session",
        "tau-bench",
        "temporal",
        "toolbench",
    ),
    _MESSAGES,
)
"""By the name of a format: which parts of a request its files do not state. Formats that are not here hold requests as
they were sent (recorded traffic, logs of requests, Inspect), or a text protocol that has no more than its messages."""
_LONGEST = 86_400.0
"""Seconds: no call takes longer than a day."""
_KEPT_BYTES = 1024 * 1024
"""What a source says beside its messages is kept up to this size, as JSON."""


class Origin(Struct, frozen=True):
    """Where a conversation came from."""

    format: str
    file: str
    sha256: str


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


class JournalServices(Struct, frozen=True):
    """What writing needs beside the conversation."""

    sink: Sink
    clock: Clock
    """Gives the time of what the file has none for."""
    counter: Counter
    prices: Prices
    cost: Callable[[Usage, Price], float | None]
    """US dollars of a call whose cost the source does not state."""
    redact: Redact = lambda text: (text, 0)


def cascade_text(title: str) -> str:
    """The cascade that an imported run is pinned to: one phase, which sends everything that was said in it."""
    described = json.dumps(f"A run of another tool: {title}" if title else "A run of another tool.")
    return (
        f"cascade_id: {PHASE}\n"
        f"description: {described}\n"
        "phases:\n"
        f"  - name: {PHASE}\n"
        "    instructions: The messages are those of the imported file.\n"
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
    """Journal ``run_started``, which says that nothing ran.

    ``file`` is the cascade's, ``kept`` what else was told, ``left_out`` what of the file is no message of the run, and
    ``stated`` the sums that the file gives for the whole run.
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
    """Nobody watches while a file is read."""


def write_journal(
    conversation: Conversation, origin: Origin, run_id: str, session_id: str, outside: JournalServices
) -> None:
    """Journal a conversation as an ordinary run, marked by ``ports: {imported: FORMAT}``."""
    _Writer(conversation, origin, run_id, session_id, outside).write()


class _Writer:
    """One run being written."""

    def __init__(
        self, conversation: Conversation, origin: Origin, run_id: str, session_id: str, outside: JournalServices
    ) -> None:
        self.conversation = conversation
        self.origin = origin
        self.outside = outside
        title = clean(outside.redact(conversation.title)[0])[:200].encode("utf-8", "replace").decode()
        self.definition = Definition.of(cascade_text(title), "")
        self.clock = FileClock(_first_time(conversation) or outside.clock.now())
        self.journal = JournalWriter(run_id, self.clock, outside.sink, no_one)
        self.options = Options(session_id, next((t.model for t in conversation.threads), ""))
        self.forecasters: dict[str, Forecaster] = {}
        self.last: Assembly | None = None
        self.redact = outside.redact

    def write(self) -> None:
        """All events, from ``run_started`` to ``run_finished``."""
        conversation, output = self.conversation, ""
        self._start()
        for number, thread in enumerate(conversation.threads, 1):
            output = _Visit(self, thread, number).write() or output
        reason = self.redact(conversation.reason)[0]
        self.journal.emit("run_finished", status=conversation.status, output=output, state={}, reason=reason)
        self.journal.sync()

    def _start(self) -> None:
        definition, remarks = self.definition, list(self.conversation.remarks)
        kept = json.dumps(dict(self.conversation.kept), ensure_ascii=False, default=str)
        if len(kept) > _KEPT_BYTES:
            beside = f"what the file says beside its messages, which is larger than {_KEPT_BYTES:,} characters,"
            remarks = [replace(one, kept=False) for one in remarks] + [Remark(beside, left_out=True)]
            kept = "{}"
        begin(
            self.journal,
            definition,
            self.options,
            self.origin,
            kept=redacted_json(json.loads(kept), self.redact),
            left_out=redacted_json([one.to_json() for one in remarks if one.left_out], self.redact),
            stated=self.conversation.stated.to_json(),
        )
        for one in remarks:
            told = {"file": self.origin.file, "path": "", "line": 0, "column": 0}
            self.journal.emit("warning", code="import", message=self.redact(str(one))[0], **told)


class _Visit:
    """One thread as a visit of the phase: its context begins anew, and then only grows."""

    def __init__(self, writer: _Writer, thread: Thread, number: int) -> None:
        self.writer = writer
        self.thread = thread
        self.place = Place("", PHASE, number)
        said = with_ids(thread.said)
        tool_text = ""
        if said and said[0].role == "system" and said[0].text and not has_pictures(said[0]):
            tool_text = writer.redact(said.pop(0).text)[0]
        self.said = said
        scope = PhaseScope(
            cascade=writer.definition.cascade,
            phase=writer.definition.cascade.phases[0],
            index=0,
            place=self.place,
            tool_text=tool_text,
            tools=thread.tools,
            model=thread.model,
            parameters={key: value for key, value in thread.parameters.items() if key != "tool_choice"},
            forced=is_forced(thread.parameters.get("tool_choice")),
            line_of=writer.definition.line,
        )
        strategy = Strategy.of(scope.cascade, scope.phase)
        self.strategy = str(strategy)
        self.assembler = Assembler(scope, strategy, writer.outside.counter, writer.last)
        self.pending: list[Item] = []
        """Messages that the next call's context brings into the journal."""
        self.at = self.place._replace(attempt=1, turn=1, call=1)
        self.last: ImportedMessage | None = None
        """The last answer."""
        self.has_task = False
        self.unstated = thread.unstated or UNSTATED.get(writer.origin.format, "")

    def write(self) -> str:
        """The visit's events; the text of its last answer."""
        journal, thread, turns = self.writer.journal, self.thread, 0
        answers = sum(1 for one in self.said if one.role == "assistant")
        journal.emit(
            "phase_started",
            self.place,
            kind="llm",
            model=thread.model,
            strategy=self.strategy,
            conditions={},
            max_turns=max(answers, 1),
            tools=[],
        )
        for one in self.said:
            if one.role == "assistant":
                turns += 1
                self.at = self.at._replace(turn=turns)
                self._answer(one)
            elif one.role == "tool" or one.observation:
                self._result(one)
            else:
                self._message(one, turns)
        if self.pending:
            single = len(self.pending) == 1
            count = "1 message" if single else f"{len(self.pending)} messages"
            note = f"{count} after the last answer: no call saw {'it' if single else 'them'}"
            told: dict[str, Any] = {"file": self.writer.origin.file, "messages": journal.items(self.pending)}
            journal.emit("warning", self.place, code="import", message=note, **told)
        output = next((one.text for one in reversed(self.said) if one.role == "assistant" and one.text), "")
        output = self.writer.redact(output)[0]
        status = self.writer.conversation.status
        journal.emit("phase_finished", self.place, status=status, output=output, reason="", check="")
        journal.sync()
        return output

    # -- messages ----------------------------------------------------------------------------------------------------

    def _message(self, one: ImportedMessage, turns: int) -> None:
        kind = Kind.USER
        if one.role == "user" and not self.has_task and turns == 0:
            kind, self.has_task = Kind.TASK, True
        self._wait(self._item(one, kind, self.at._replace(turn=turns + 1, call=0)))

    def _answer(self, one: ImportedMessage) -> None:
        self.last = one
        if one.call is None:
            self._wait(self._item(one, Kind.ANSWER, self.at))
        else:
            self._call(one, one.call)
            if one.call.fault:
                self.last = None

    def _item(self, one: ImportedMessage, kind: Kind, place: Place) -> Item:
        return item_of(one, kind, place, self.writer.journal, self.writer.redact)

    def _wait(self, item: Item) -> None:
        self.assembler.add(item)
        self.pending.append(item)

    # -- calls -------------------------------------------------------------------------------------------------------

    def _call(self, one: ImportedMessage, call: Call) -> None:
        writer, journal, model = self.writer, self.writer.journal, self.thread.model
        writer.clock.at = call.at or writer.clock.at
        choice = str(self.thread.parameters.get("tool_choice", ""))
        marks = {PARAMETER: call.marks.to_json()} if call.marks is not None else None
        assembly = writer.last = self.assembler.assemble(self.at, tool_choice=choice, parameters=marks)
        if (forecaster := writer.forecasters.get(model)) is None:
            outside = writer.outside
            forecaster = writer.forecasters[model] = Forecaster(model, outside.counter, outside.prices, NO_MARKS)
        now = datetime.fromisoformat(writer.clock.at).timestamp()
        prediction = forecaster.predict(assembly, now, unknown=bool(self.unstated))
        added, self.pending = self.pending, []
        record_context(
            journal,
            self.at,
            assembly,
            purpose="turn",
            added=added,
            prediction=prediction,
            unstated=self.unstated,
        )
        journal.emit("call_started", self.at, digest=assembly.request.digest, model=model, purpose="turn", **{"try": 1})
        if call.fault:
            error = {"kind": UNANSWERED, "message": self.writer.redact(call.fault)[0]}
            digest = assembly.request.digest
            journal.emit(
                "call_failed", self.at, digest=digest, error=error, purpose="turn", retry_in=None, **{"try": 1}
            )
            writer.clock.at = _later(writer.clock.at, call.duration_s)
            return
        forecaster.sent(assembly, now)
        item = self._item(one, Kind.ANSWER, self.at)
        forecaster.answered(assembly, call.usage, item.message)
        record_answer(journal, self.at, assembly, self._answered(one, call, prediction.price), item, purpose="turn")
        self.assembler.add(item)
        writer.clock.at = _later(writer.clock.at, call.duration_s)

    def _answered(self, one: ImportedMessage, call: Call, price: Price) -> Answer:
        stated = bool(call.cost)  # Sources that know no price write 0.
        cost = call.cost if stated else self.writer.outside.cost(call.usage, price)
        return Answer(
            one.text,
            tuple(NativeCall(c.id, c.name, c.arguments, c.extra) for c in one.calls),
            finish_reason=call.finish_reason,
            usage=call.usage,
            cost=cost,
            cost_grade="exact" if stated else price.grade if cost is not None else "unknown",
            model=call.model,
            provider=call.provider,
            duration_s=call.duration_s,
        )

    # -- tools -------------------------------------------------------------------------------------------------------

    def _result(self, one: ImportedMessage) -> None:
        """A result: with events of its tool where the call that asked for it is in the journal."""
        called = self._called(one)
        if called is None:
            self._wait(self._item(one, Kind.RESULT, self.at))
            return
        index, call = called
        name, journal = call.name, self.writer.journal
        item = replace(self._item(one, Kind.RESULT, self.at), tool=name)
        joins = not self.pending  # Behind a message that waits for the next call, the result has to wait too.
        arguments = self.writer.redact(call.arguments)[0]
        journal.emit(
            "tool_started",
            self.at,
            index=index,
            call_id=call.id,
            tool=name,
            arguments=arguments,
            native=bool(call.id),
            side_effects=True,
        )
        journal.emit(
            "tool_finished",
            self.at,
            index=index,
            call_id=call.id,
            tool=name,
            is_error=one.is_error,
            added=journal.items([item] if joins else []),
            images=[image.to_json() for image in item.message.images],
            duration_s=None,
            sandbox="",
            cached=False,
            text=item.message.text,
        )
        if joins:
            self.assembler.add(item)
        else:
            self._wait(item)

    def _called(self, one: ImportedMessage) -> tuple[int, ToolCall] | None:
        """The tool call of the last answer that this is the result of, and its number; None where it has none."""
        last = self.last
        if last is None or last.call is None:
            return None
        if one.observation and last.command:
            return 1, ToolCall("", COMMAND, json.dumps({"command": last.command}, ensure_ascii=False))
        return next(((i, call) for i, call in enumerate(last.calls, 1) if call.id == one.call_id), None)


def _first_time(conversation: Conversation) -> str:
    times = (one.call.at for thread in conversation.threads for one in thread.said if one.call is not None)
    return min((at for at in times if at), default="")


def _later(at: str, seconds: float | None) -> str:
    then = datetime.fromisoformat(at) + timedelta(seconds=min(seconds or 0.0, _LONGEST))
    return then.isoformat(timespec="microseconds").replace("+00:00", "Z")
