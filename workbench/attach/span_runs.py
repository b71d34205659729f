"""Makes runs of the spans of a program while they come: a run for each conversation, trace or process."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from workbench.attach.contexts import OpenContext, OpenContexts, own_parameters
from workbench.attach.pricing import OtherStrategy
from workbench.attach.record_thread import RecordThread
from workbench.context.strategy import Strategy
from workbench.engine.journal.event import Event
from workbench.importers.conversation import ImportedMessage, Remarks
from workbench.importers.exchanges import AskedCall
from workbench.importers.formats.otel import (
    WholeInputs,
    call_of,
    calls_of_agents,
    enclosing,
    tells_of_a_bare_call,
    told_again,
    without_repeats,
)
from workbench.importers.journal import FileClock, JournalServices, Origin, RunJournal, begin, has_pictures
from workbench.importers.spans import ImportedSpan, each_span, logged_span, records_of, with_records
from workbench.importers.threads import ObservedCall, attempted
from workbench.importers.values import as_text

FORMAT = "otlp"
"""The value of ``ports.imported`` in such a run."""
PHASE = "agent"
UNSTATED = "spans hold messages, not requests: hidden prompts are not stated"
SETTLED = 3.0
"""Seconds after which a span is read as it is: its messages may come in log records of their own."""
QUIET = 30.0
"""Seconds without a span after which a trace whose outermost span has come is over, and its run has ended."""
IDLE = 600.0
"""The same where more may come: for a conversation, a process, a trace that is not complete."""
MOST_RUNS = 100
"""That are open at once; beyond, the one that was written last of all ends."""
MOST_TRACES = 2_000
"""That are remembered, those used last."""
MOST_SPANS = 20_000
"""Of a trace, whose places are remembered; of spans and log records that wait for each other."""
_CONVERSATION = (
    "gen_ai.conversation.id",
    "session.id",
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
)
"""Attributes that name a conversation over several traces."""
CAPTURE = (
    "let the instrumentation record them (OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT is 'SPAN_ONLY' or, for "
    "older ones, 'true'; others have an option of their own)"
)
"""The advice where spans come without messages."""


class NewRun(Struct, frozen=True):
    """A run that has begun in the store."""

    run_id: str
    session: str
    outside: JournalServices
    observe: Callable[[Event], None]
    """Gets each event once it is journaled."""
    close: Callable[[], None]
    """Once its journal has ended."""


class Begins(Protocol):
    """Makes runs in the store."""

    def __call__(self) -> NewRun:
        """The next one. Raises StoreError."""
        ...


class SpanClock(FileClock):
    """The times that the spans state; the end of a run is not before any of them."""

    latest: str = ""

    def begins(self, at: str) -> None:
        super().begins(at)
        self.latest = max(self.latest, self.at)

    def lasts(self, seconds: float | None) -> None:
        super().lasts(seconds)
        self.latest = max(self.latest, self.at)


class SpanRun:
    """One run, written call by call."""

    def __init__(self, new: NewRun, origin: Origin, at: str, process: str, what_if: Strategy | None) -> None:
        """``at``: when its first call began. ``process``: that made its first span."""
        self.new = new
        self.process = process
        self.touched = time.monotonic()
        self.complete = False
        """The outermost span of its trace has come."""
        self.calls = 0
        self.remarks = Remarks()
        self._clock = SpanClock(at, at)
        self._run = RunJournal(
            origin,
            new.run_id,
            new.session,
            new.outside,
            self._clock,
            title=origin.file,
            phase=PHASE,
            source="the spans that a program sent",
            code="attach",
            observe=new.observe,
        )
        begin(self._run.journal, self._run.definition, self._run.options, origin)
        outside = new.outside
        self.other = OtherStrategy(what_if, outside.counter, outside.prices) if what_if is not None else None
        self._contexts = OpenContexts(self._run, other=self.other)
        self._beside = dict[tuple[str, ...], ImportedMessage]()
        """Answers with a text beside tool calls, by the ids of the calls."""

    def goes_on(self, call: ObservedCall) -> bool:
        """Returns whether a call begins with what a call of this run saw and said."""
        asked = _asked(call)
        return self._contexts.goes_on(asked) or self._contexts.goes_on(self._completed(asked))

    def _completed(self, asked: AskedCall) -> AskedCall:
        """A call whose messages have the texts that stood beside tool calls: opentelemetry-instrumentation-openai-v2
        leaves these out where an answer is an input of the next call."""

        def completed(one: ImportedMessage) -> ImportedMessage:
            said = self._beside.get(_ids(one)) if one.calls and not one.text.strip() else None
            return one if said is None else replace(one, parts=said.parts)

        return replace(asked, input=tuple(map(completed, asked.input)))

    def _remember(self, answer: ImportedMessage) -> None:
        ids = _ids(answer)
        if answer.text.strip() and ids and all(ids):
            self._beside[ids] = answer
            if len(self._beside) > _REMEMBERED:
                del self._beside[next(iter(self._beside))]

    def write(self, call: ObservedCall) -> None:
        """Journal a call, at its place: one that comes late stands before those that were given its answer."""
        self.calls += 1
        self.touched = time.monotonic()
        asked, answer = _asked(call), replace(call.answer, call=call.call)
        choice, own = own_parameters(asked)
        held = None if call.call.fault else self._holding(asked, answer)
        if held is not None:
            told = partial(held.writer.late, tool_choice=choice, parameters=own)
            if told(len(asked.input), answer, call.call):
                return
        whole = self._completed(asked)
        context = self._contexts.asked(whole if self._contexts.goes_on(whole) else asked, call.call.at)
        self._remember(answer)
        context.writer.started()
        if call.call.fault:
            self._contexts.failed(context, call.call)
        else:
            self._contexts.answered(context, answer, call.call)
        self._run.journal.sync()

    def _holding(self, asked: AskedCall, answer: ImportedMessage) -> OpenContext | None:
        """The context that a late call belongs into, whose messages may lack the text of its answer."""
        found = self._contexts.holding(asked, answer)
        if found is None and all(_ids(answer)) and answer.calls:
            found = self._contexts.holding(asked, replace(answer, parts=()))
        return found

    def end(self, status: str, reason: str = "") -> None:
        """Journal the end."""
        for remark in self.remarks.all:
            self._run.warn(str(remark))
        self._clock.at = self._clock.latest  # The last span may have come late: nothing ends before it has.
        status, reason = self._contexts.end(status, reason)
        self._run.end(status, self._contexts.output, reason)
        self.new.close()


_REMEMBERED = 1_000
"""Answers with a text beside tool calls that a run knows: the newest."""


def _ids(one: ImportedMessage) -> tuple[str, ...]:
    return tuple(call.id for call in one.calls)


def _asked(call: ObservedCall) -> AskedCall:
    unstated = call.unstated or UNSTATED
    return AskedCall(call.input, call.model, call.tools, call.parameters, call.call.marks, unstated)


class _Trace(Struct):
    """The known facts of a trace."""

    parents: dict[str, str] = field(default_factory=dict)
    """The span that each span is inside of, by their ids."""
    answers: dict[str, ImportedMessage] = field(default_factory=dict)
    """Of the calls that are written, by the ids of their spans."""
    others: list[ImportedSpan] = field(default_factory=list)
    """Spans that are no calls, while there is no call."""
    whole: WholeInputs = field(default_factory=WholeInputs)
    conversation: str = ""
    complete: bool = False
    run: SpanRun | None = None
    touched: float = 0.0


class _Waiting(Struct):
    """A span whose messages have not all come."""

    span: ImportedSpan
    since: float


def _lacks(call: ObservedCall, span: ImportedSpan) -> bool:
    """Returns whether messages of a call may still come."""
    return _is_blank(call) or (bool(call.call.fault) and not span.failed)


def _is_blank(call: ObservedCall) -> bool:
    """Returns whether a call has roles of messages, and nothing that was said."""
    return not any(one.text.strip() or one.calls or has_pictures(one) for one in call.input)


class SpanRuns:
    """Takes what exporters send, in a thread of its own, so that no program waits for a disk or a token count."""

    def __init__(self, begins: Begins, source: str, what_if: Strategy | None = None) -> None:
        """``source``: the command whose spans they are; empty where programs come by themselves."""
        self._begins = begins
        self._source = source
        self._what_if = what_if
        self._traces: dict[str, _Trace] = {}
        self._runs: dict[str, SpanRun] = {}
        """The open ones, by what holds them together; those written last at the end."""
        self._records: dict[str, list[Mapping[str, Any]]] = {}
        """Log records whose spans have not come, by span."""
        self._waiting: dict[str, _Waiting] = {}
        self._thread = RecordThread("spans")
        self.sessions: list[str] = []
        """The runs that were begun, by name."""
        self.run_ids: list[str] = []
        self.others: list[OtherStrategy] = []
        """Of each run, what another strategy would have sent, where one is priced."""
        self.calls = 0
        self.spans = 0
        self.refused = 0
        """Requests of exporters that nothing could be taken from."""
        self.refusal = ""
        """Why, for the first of them."""
        self._without = deque[ImportedSpan](maxlen=MOST_SPANS)
        """Spans of calls that came without messages."""
        self._times = deque[tuple[str, str]](maxlen=MOST_SPANS)
        """When the calls that are written began and ended."""

    @property
    def fault(self) -> str:
        """Why nothing is recorded any more; empty while all is well."""
        return self._thread.fault

    @property
    def silent(self) -> int:
        """Calls whose spans hold no messages. SDKs also send such spans for calls that another span describes."""
        return sum(
            not any(one.start <= a <= b <= one.end or a <= one.start <= one.end <= b for a, b in self._times)
            for one in self._without
        )

    def take(self, body: Any) -> None:
        """Spans or log records in the JSON form of OTLP."""
        self._thread.record(self._take, body)

    def refuse(self, why: str) -> None:
        """Count a request of an exporter that cannot be read."""
        self.refused += 1
        self.refusal = self.refusal or why

    @property
    def refusal_words(self) -> str:
        """What exporters sent and nobody could read, as a sentence; empty if all could be."""
        count = "1 request of an exporter was" if self.refused == 1 else f"{self.refused:,} requests of exporters were"
        return f"{count} refused: {self.refusal}" if self.refused else ""

    def settle(self) -> None:
        """Read what has waited long enough, and end runs that are over. To be called about once a second."""
        self._thread.record(self._settle)

    def close(self, status: str, reason: str = "") -> None:
        """Read all that waits, and end all runs. A second call changes nothing."""
        self._thread.close(self._close, status, reason)

    # -- in the thread -------------------------------------------------------------------------------------------------

    def _take(self, body: Any) -> None:
        ready = list[ImportedSpan]()
        for span_id, record in records_of(body):
            if (waiting := self._waiting.get(span_id)) is not None:
                waiting.span = with_records(waiting.span, (record,))
            elif span_id and not self._knows(span_id, record) and len(self._records) < MOST_SPANS:
                self._records.setdefault(span_id, []).append(record)
        spans = body if "resourceLogs" not in body else {}
        for span in each_span(spans):
            trace = self._trace(span)
            if span.id and span.id in trace.parents:
                continue  # An exporter that got no answer sends its spans again.
            self.spans += 1
            if len(trace.parents) < MOST_SPANS:
                trace.parents[span.id] = span.parent
            trace.complete = trace.complete or not span.parent
            ready.append(with_records(span, self._records.pop(span.id, ())))
        self._read(ready, finally_=False)
        if not ready:
            self._read(self._whole_now(), finally_=False)

    def _knows(self, span_id: str, record: Mapping[str, Any]) -> bool:
        """Returns whether the span of a log record has come, and was read."""
        trace = self._traces.get(as_text(record.get("traceId")))
        return trace is not None and span_id in trace.parents

    def _trace(self, span: ImportedSpan) -> _Trace:
        trace = self._traces.pop(span.trace, None) or _Trace()
        self._traces[span.trace] = trace
        trace.touched = time.monotonic()
        named = (as_text(span.attributes.get(name)) for name in _CONVERSATION)
        trace.conversation = next(filter(None, named), trace.conversation)
        if len(self._traces) > MOST_TRACES:
            self._over(next(iter(self._traces)))
        return trace

    def _whole_now(self) -> list[ImportedSpan]:
        """Spans that have waited, and whose log records hold their messages by now."""
        found = list[ImportedSpan]()
        for id, waiting in list(self._waiting.items()):
            call = attempted(partial(call_of, waiting.span, Remarks()), Remarks())
            if call is not None and not _lacks(call, waiting.span):
                found.append(self._waiting.pop(id).span)
        return found

    def _read(self, spans: Iterable[ImportedSpan], *, finally_: bool) -> None:
        """Write the calls of spans, in the order in which they began. ``finally_``: nothing more is to come of them."""
        by_trace: dict[str, list[tuple[ImportedSpan, ObservedCall]]] = {}
        remarks = Remarks()
        for span in sorted(spans, key=lambda one: one.start):
            trace = self._traces.setdefault(span.trace, _Trace())
            span = trace.whole.whole(span)
            call = attempted(partial(call_of, span, remarks), remarks)
            lacks = tells_of_a_bare_call(span) if call is None else _lacks(call, span)
            if lacks and not finally_ and span.id and len(self._waiting) < MOST_SPANS:
                self._waiting[span.id] = _Waiting(span, time.monotonic())
            elif call is not None and not _is_blank(call):
                by_trace.setdefault(span.trace, []).append((span, call))
            elif lacks:
                self._without.append(span)
            else:
                self._other(trace, span)
        found = list[tuple[str, ImportedSpan, ObservedCall]]()
        for name, calls in by_trace.items():
            kept = without_repeats(calls, self._traces[name].parents, remarks)
            found += ((name, span, call) for span, call in kept)
        run = None
        for name, span, call in sorted(found, key=lambda one: one[2].call.at):
            run = self._call(self._traces[name], span, call) or run
        if run is not None:
            run.remarks = Remarks((*run.remarks.all, *remarks.all))

    def _other(self, trace: _Trace, span: ImportedSpan) -> None:
        """A span that is no call."""
        if trace.run is not None:
            trace.run.remarks.left_out("a span that is not a model call")
            trace.run.complete = trace.run.complete or trace.complete
        elif len(trace.others) < MOST_SPANS:
            trace.others.append(span)

    def _call(self, trace: _Trace, span: ImportedSpan, call: ObservedCall) -> SpanRun | None:
        """Write a call into its run, unless it is known from a span inside it, or around it."""
        for id in trace.answers if span.id else ():
            near = id in enclosing(span.id, trace.parents) or span.id in enclosing(id, trace.parents)
            if near and told_again(trace.answers[id], call.answer):
                return None
        run = self._run_of(trace, span, call)
        run.write(call)
        self.calls += 1
        self._times.append((span.start, span.end))
        if span.id:
            trace.answers[span.id] = call.answer
        if trace.others:
            run.remarks.left_out("a span that is not a model call", count=len(trace.others))
            trace.others.clear()
        trace.run = run
        run.complete = run.complete or trace.complete
        return run

    # -- runs ----------------------------------------------------------------------------------------------------------

    def _run_of(self, trace: _Trace, span: ImportedSpan, call: ObservedCall) -> SpanRun:
        """By the conversation that the trace names, else by what the call goes on with, else by its trace; a call that
        is a trace of its own belongs to its process."""
        key = f"trace {span.trace}"
        if trace.conversation:
            key = f"conversation {trace.conversation}"
        elif not span.parent:
            key = f"process {span.process}"
        run = self._runs.pop(key, None)
        if run is None and not trace.conversation:
            near = (one for one in reversed(self._runs.values()) if one.process == span.process)
            if (before := next((one for one in near if one.goes_on(call)), None)) is not None:
                return before
        if run is None:
            run = self._begun(key, span, call)
        self._runs[key] = run
        return run

    def _begun(self, key: str, span: ImportedSpan, call: ObservedCall) -> SpanRun:
        if len(self._runs) >= MOST_RUNS:
            self._end(next(iter(self._runs)))
        new = self._begins()
        named = self._source or " · ".join(filter(None, (span.process, key)))
        run = SpanRun(
            new, Origin(FORMAT, named, ""), call.call.at or new.outside.clock.now(), span.process, self._what_if
        )
        self.sessions.append(new.session)
        self.run_ids.append(new.run_id)
        if run.other is not None:
            self.others.append(run.other)
        return run

    def _end(self, key: str, status: str = "success", reason: str = "") -> None:
        run = self._runs.pop(key)
        run.end(status, reason)
        for trace in self._traces.values():
            if trace.run is run:
                trace.run = None

    def _over(self, name: str) -> None:
        """No span of a trace is awaited any more. One without spans of calls may tell of them in those of agents."""
        trace = self._traces.pop(name)
        others = sorted(trace.others, key=lambda one: one.start)
        trace.others = []
        remarks = Remarks()
        calls = [] if trace.run is not None or not others else calls_of_agents(others, remarks)
        for call in calls:
            self._traces[name] = trace
            if (run := self._call(trace, others[0], call)) is not None:
                run.remarks = Remarks((*run.remarks.all, *remarks.all))
                remarks = Remarks()
        self._traces.pop(name, None)

    def _settle(self) -> None:
        now = time.monotonic()
        old = [id for id, waiting in self._waiting.items() if now - waiting.since > SETTLED]
        self._read([self._waiting.pop(id).span for id in old], finally_=True)
        for name, trace in list(self._traces.items()):
            if now - trace.touched > (QUIET if trace.complete else IDLE):
                self._over(name)
        for key, run in list(self._runs.items()):
            limit = QUIET if run.complete and key.startswith("trace ") else IDLE
            if now - run.touched > limit:
                self._end(key)

    def _close(self, status: str, reason: str) -> None:
        waiting = [one.span for one in self._waiting.values()]
        self._waiting.clear()
        lonely: Sequence[ImportedSpan] = [logged_span(records) for records in self._records.values()]
        self._records.clear()
        self._read([*waiting, *lonely], finally_=True)
        for name in list(self._traces):
            self._over(name)
        for key in list(self._runs):
            self._end(key, status, reason)
