"""Makes a run of a program's model calls while they happen: a context for each prefix that calls share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from workbench.attach.contexts import OpenContext, OpenContexts
from workbench.attach.identity import Drawn, Surroundings, canonical_request, digest
from workbench.attach.pricing import OtherStrategy
from workbench.attach.record_thread import RecordThread
from workbench.attach.traffic import BY_HAND, Ask, Placed, Reply
from workbench.context.edits import AddMessage, ChangeMessage
from workbench.context.message import Message, TextPart
from workbench.context.place import Place
from workbench.context.strategy import Strategy
from workbench.engine.edits import Edit, SetAnswer
from workbench.engine.gate import StopKind
from workbench.engine.journal.event import Event
from workbench.engine.journal.journal_writer import Clock
from workbench.engine.journal.redact import Redactor
from workbench.importers.conversation import Call, ImportedMessage, Remarks, Unreadable
from workbench.importers.exchanges import AskedCall, Exchanges, is_response
from workbench.importers.formats.vcr import PackedBodies
from workbench.importers.journal import (
    ContextWriter,
    JournalServices,
    Origin,
    RunJournal,
    begin,
    has_pictures,
    no_one,
)
from workbench.importers.streams import as_messages
from workbench.importers.values import mapping

FORMAT = "attach"
"""The value of ``ports.imported`` in such a run."""
PHASE = "agent"
FIRST_MODEL = "openai/gpt-4.1"
"""Its encoding is loaded before the first call: most models of OpenAI have it, and others are counted by it."""


UNSTATED = 'no tokens: OpenAI states them where the request has "stream_options": {"include_usage": true}'
"""What is said of streamed answers. Their tokens are not counted here: those of hidden reasoning are among them."""


class LiveClock:
    """The clock of this machine; what a call says of its own times changes nothing."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self) -> str:
        return self._clock.now()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)

    def begins(self, at: str) -> None:
        """It begins now."""

    def lasts(self, seconds: float | None) -> None:
        """It has ended now."""


class _Waiting(Struct):
    """A call whose answer has not come yet."""

    asked: AskedCall
    context: OpenContext


def _may_ask_for_usage(ask: Ask) -> bool:
    """Returns whether a request is one for a stream of Chat Completions that does not ask for its usage."""
    body = mapping(ask.body)
    asks = mapping(body.get("stream_options")).get("include_usage")
    return ask.path.endswith("/chat/completions") and bool(body.get("stream")) and not asks


def _placed(writer: ContextWriter) -> Placed:
    assert writer.assembly is not None
    return Placed(writer.at, writer, writer.assembly)


class Recorder:
    """Implements ``Witness`` in a thread of its own, so that no client waits for a disk or a token count."""

    def __init__(
        self,
        origin: Origin,
        run_id: str,
        session_id: str,
        outside: JournalServices,
        *,
        observe: Callable[[Event], None] = no_one,
        strategy: Strategy | None = None,
        what_if: Strategy | None = None,
        around: Surroundings | None = None,
        elsewhere: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """``origin.file`` is the command. ``strategy``: what is sent of the messages; None for all. ``what_if``: a
        strategy that is priced beside what is sent. ``around``: where the command runs; None if
        that is not known. ``elsewhere``: addresses of providers by name, where they are not the providers' own."""
        self.other = OtherStrategy(what_if, outside.counter, outside.prices) if what_if is not None else None
        self._secrets: dict[str, str] = {}
        self._redactor = Redactor(self._secrets, shapes=False)
        self._outside_redact = outside.redact
        self._run = RunJournal(
            origin,
            run_id,
            session_id,
            replace(outside, redact=self._redact),
            LiveClock(outside.clock),
            title=origin.file,
            phase=PHASE,
            source="the program that was watched",
            code="attach",
            observe=observe,
        )
        around = around or Surroundings(datetime.fromisoformat(outside.clock.now()))
        self._drawn = Drawn(around)
        kept = {"folder": around.folder, "home": around.home, "elsewhere": dict(elsewhere)}
        begin(self._run.journal, self._run.definition, self._run.options, origin, kept=kept)
        self._remarks = Remarks()
        self._exchanges = Exchanges(self._remarks)
        self._contexts = OpenContexts(self._run, strategy, self.other)
        self._waiting: dict[int, _Waiting] = {}
        self._answered: dict[int, _Waiting] = {}
        """Calls whose answers their clients have not got yet."""
        self._thread = RecordThread("recorder")
        # What counts tokens takes up to a second to load. Calls that were answered meanwhile would be lost by a kill.
        self._counts = self._thread.record(outside.counter.message, Message("user", "Hello"), FIRST_MODEL)
        self._unstated = 0
        """Streamed answers without a number of tokens, whose requests could have asked for it."""
        self.calls = 0
        self.rewrites = strategy is not None
        """Whether requests are to be sent otherwise than their clients make them."""

    @property
    def fault(self) -> str:
        """Why nothing is recorded any more; empty while all is well."""
        return self._thread.fault

    # -- what the proxy tells ------------------------------------------------------------------------------------------

    def asked(self, ask: Ask, *, sent: bool = True) -> Future[Placed | None]:
        return self._thread.record(self._asked, ask, sent, size=ask.size)

    def replied(self, ask: Ask, reply: Reply) -> None:
        self._thread.record(self._replied, ask, reply, size=ask.size + len(reply.body))

    def caught_up(self) -> Future[Any] | None:
        return self._thread.caught_up() if self._counts.done() else self._counts

    def sent(self, placed: Placed) -> None:
        """A request that was kept back is sent now."""
        self._thread.record(placed.context.started)

    def edit(self, placed: Placed, edits: Sequence[Edit]) -> Future[Placed]:
        """Make edits of a request that is kept back. The future raises EditError."""
        return self._thread.ask(self._edit, placed, edits)

    def paused(self, placed: Placed, stop: StopKind, seconds: float) -> None:
        """A person paused a call until now."""
        self._thread.record(placed.context.paused, stop, seconds)

    def by_hand(self, placed: Placed, edit: SetAnswer) -> None:
        """A person answers a request, which is not sent."""
        self._thread.record(placed.context.answered_by_hand, edit)

    def answered(self, ask: Ask, reply: Reply) -> Future[ImportedMessage | None]:
        """A reply came that is not handed on yet; the answer in it, None where it holds none."""
        return self._thread.record(self._read_reply, ask, reply)

    def edit_answer(self, ask: Ask, edit: SetAnswer) -> Future[ImportedMessage]:
        """Take the model to have answered otherwise; the answer as it stands now."""
        return self._thread.ask(self._edit_answer, ask, edit)

    def handed(self, ask: Ask, reply: Reply) -> None:
        """Its client has got this for a reply that was ``answered``."""
        self._thread.record(self._handed, ask, reply)

    def warn(self, message: str, placed: Placed | None, code: str) -> None:
        """Journal that something was not done as it was asked for."""
        place = placed.place if placed is not None else Place()
        self._thread.record(lambda: self._run.warn(message, place, code=code))

    def passing(self, number: int, words: str) -> None:
        def told() -> None:
            message = self._redact(words)[0]
            self._run.journal.emit("large_request", number=number, over=not words, code="large", message=message)

        self._thread.record(told)

    def secret(self, value: str) -> None:
        if value not in self._secrets:
            self._secrets[value] = value
            self._redactor = Redactor({f"client_key_{i}": one for i, one in enumerate(self._secrets, 1)}, shapes=False)

    def close(self, status: str, reason: str = "") -> None:
        """Journal the end of the run, once all that was told is journaled. A second call changes nothing."""
        self._thread.close(self._close, status, reason)

    # -- in the thread -------------------------------------------------------------------------------------------------

    def _redact(self, text: str) -> tuple[str, int]:
        text, count = self._outside_redact(text)
        text, more = self._redactor(text)
        return text, count + more

    def _asked(self, ask: Ask, sent: bool) -> Placed | None:
        if ask.counts:
            return None
        try:
            asked = self._exchanges.asked(mapping(ask.body), ask.path)
        except Unreadable as fault:
            self._run.warn(f"request {ask.number} cannot be read: {fault}")
            return None
        if asked is None or not asked.input:
            return None
        context = self._contexts.asked(asked)
        writer = context.writer
        if sent:
            writer.started()
        # Each request repeats the messages before it: the context's own are kept in the place of its copies.
        own = zip(asked.input, context.growing.seen, strict=True)
        asked = replace(asked, input=tuple(one if has_pictures(one) else known for one, known in own))
        self._waiting[ask.number] = _Waiting(asked, context)
        self.calls += 1
        return _placed(writer)

    def _edit(self, placed: Placed, edits: Sequence[Edit]) -> Placed:
        placed.context.edit([self._without_secrets(edit) for edit in edits])
        return _placed(placed.context)

    def _without_secrets(self, edit: Edit) -> Edit:
        if not isinstance(edit, ChangeMessage | AddMessage | SetAnswer):
            return edit
        message = edit.message
        calls = tuple(replace(call, arguments=self._redact(call.arguments)[0]) for call in message.tool_calls)
        content: str | tuple[Any, ...] = message.content
        if isinstance(content, str):
            content = self._redact(content)[0]
        else:
            content = tuple(TextPart(self._redact(p.text)[0]) if isinstance(p, TextPart) else p for p in content)
        return replace(edit, message=replace(message, content=content, tool_calls=calls))

    def _replied(self, ask: Ask, reply: Reply) -> None:
        self._record_exchange(ask, reply)
        self._read_reply(ask, reply)
        self._answered.pop(ask.number, None)

    def _handed(self, ask: Ask, reply: Reply) -> None:
        self._record_exchange(ask, reply)
        self._answered.pop(ask.number, None)

    def _edit_answer(self, ask: Ask, edit: SetAnswer) -> ImportedMessage:
        waiting = self._answered[ask.number]
        edited = self._without_secrets(edit)
        assert isinstance(edited, SetAnswer)
        said = waiting.context.writer.edit_answer(edited)
        waiting.context.growing.seen[-1] = said
        return said

    def _read_reply(self, ask: Ask, reply: Reply) -> ImportedMessage | None:
        """Journal how a call ended; its answer, None without one."""
        body = self._body(reply)
        waiting = self._waiting.pop(ask.number, None)
        if waiting is None:
            return None
        self._answered[ask.number] = waiting
        by = reply.by if reply.by in ("offline", BY_HAND) else ask.provider
        told = Call(duration_s=round(reply.seconds, 6), provider=by, marks=waiting.asked.marks)
        fault = reply.fault
        response: Mapping[str, Any] = {}
        if reply.status >= 400:
            error = mapping(body).get("error")
            said = mapping(error).get("message") or error or (body if isinstance(body, str) else "")
            told_status = f"HTTP status {reply.status}"
            fault = fault or (f"{told_status}: {str(said)[:500]}" if said else told_status)
        else:
            _, response = as_messages(mapping(ask.body), body, self._remarks)
        answer: tuple[ImportedMessage, Call] | None = None
        if is_response(response):
            try:
                answer = self._exchanges.answered(waiting.asked, response, told)
            except Unreadable as unreadable:
                fault = fault or str(unreadable)
        writer = waiting.context.writer
        if reply.remark:
            self._run.warn(reply.remark, writer.at, code="drawn")
        if answer is None:
            failed = Call(duration_s=told.duration_s, fault=fault or "the reply holds no answer of a model")
            kind = "cut" if reply.fault else "status" if reply.status >= 400 else "bad answer"
            self._contexts.failed(waiting.context, failed, kind)
            return None
        said, call = answer
        if call.usage.input == 0:  # No request is empty: a reply that says so was not counted.
            call = replace(call, usage=replace(call.usage, input=None))
        self._contexts.answered(waiting.context, said, call, recorded=reply.by == "recording")
        if fault:
            self._run.warn(f"the answer did not arrive whole: {fault}", writer.at)
        elif call.usage.output is None and reply.by == "provider" and _may_ask_for_usage(ask):
            self._unstated += 1
        return said

    def _record_exchange(self, ask: Ask, reply: Reply) -> None:
        """Journal what went over the wire, so that it can be given again."""
        text, _ = self._redact(reply.body.decode("utf-8", "replace"))
        asked = canonical_request(ask)
        self._drawn.at(datetime.fromisoformat(self._run.clock.now()))
        waiting = self._waiting.get(ask.number) or self._answered.get(ask.number)
        self._run.journal.emit(
            "exchange",
            *((waiting.context.writer.at,) if waiting is not None else ()),
            provider=ask.provider,
            path=ask.path,
            sha256=digest(asked),
            alike=self._drawn.digest(asked),
            status=reply.status,
            content_type=self._redact(reply.content_type)[0],
            body=text,
            by=reply.by,
            first_byte_s=reply.first_byte_s,
            duration_s=round(reply.seconds, 6),
            fault=self._redact(reply.fault)[0],
        )

    def _body(self, reply: Reply) -> Any:
        """The body as JSON or text."""
        if not (text := reply.body.decode("utf-8", "replace")):
            return None
        return PackedBodies(self._remarks).read({"body": text, "headers": {"content-type": reply.content_type}})

    def _close(self, status: str, reason: str) -> None:
        for waiting in self._waiting.values():
            self._contexts.failed(waiting.context, Call(fault="the program ended before the answer came"), "cut")
        self._waiting.clear()
        for remark in self._remarks.all:
            self._run.warn(str(remark))
        if self._unstated:
            which = "1 streamed answer states" if self._unstated == 1 else f"{self._unstated:,} streamed answers state"
            self._run.warn(f"{which} {UNSTATED}", code="usage")
        status, reason = self._contexts.end(status, reason)
        self._run.end(status, self._contexts.output, reason)
