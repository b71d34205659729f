"""Runs as OpenTelemetry spans while they happen: each is sent by the official exporter when it has ended.

The spans are those of ``otel.py``, ids included. A thread of its own folds the events and hands the spans over, so that
a run never waits for it; what cannot be sent is dropped, and said once.
"""

from __future__ import annotations

import logging
import queue
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from msgspec import Struct, field

from workbench import __version__
from workbench.engine.contracts import Images
from workbench.engine.journal.event import Event
from workbench.engine.journal.state import RunState
from workbench.exporters.otel import SCOPE, CallTimes, OtelSpan, RunSpans, service_of
from workbench.extras import missing

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_TEXTS = frozenset(
    {
        "gen_ai.system_instructions",
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.tool.definitions",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
    }
)
"""Attributes with the text of messages; the conventions let a user withhold them."""
_SYSTEM = re.compile(r"\[Errno -?\d+\] ([\w ]+)")
"""The errors of the system, in the exporter's words."""
_EXPORTERS = {
    "http/protobuf": "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "grpc": "opentelemetry.exporter.otlp.proto.grpc.trace_exporter",
}
_DELAY_MS = 1000
"""Delay before ended spans are sent, unless ``OTEL_BSP_SCHEDULE_DELAY`` sets it."""
_BATCH = 32
"""Spans of a request, unless ``OTEL_BSP_MAX_EXPORT_BATCH_SIZE`` sets it: each may hold a whole context."""
_LOOK_SECONDS = 0.05
"""Between two looks whether the endpoint is away."""
_ENDS = ("call_finished", "tool_finished", "phase_finished", "candidate_finished")


def endpoint_of(env: Mapping[str, str]) -> str:
    """The endpoint by the standard variables; empty without one."""
    if env.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" or env.get("OTEL_TRACES_EXPORTER") == "none":
        return ""
    return next((value for name in ENDPOINTS if (value := env.get(name, "").strip())), "")


class LiveRun(Struct):
    """One run as far as it has come, and which of its spans were made."""

    images: Images
    state: RunState = field(default_factory=RunState)
    times: CallTimes = field(default_factory=CallTimes)
    _spans: RunSpans | None = None
    _made: set[str] = field(default_factory=set)

    def take(self, event: Event) -> Iterator[OtelSpan]:
        """The spans of what this event ends; at the end of the run, also of what never ended."""
        self.state.read(event)
        self.times.take(event)
        if event.kind not in _ENDS and event.kind != "run_finished":
            return
        if self._spans is None:
            self._spans = RunSpans(self.state, self.times, self.images)
        self._spans.still = None  # There may be pauses since the last span.
        made = self._spans.all() if event.kind == "run_finished" else self._ended(self._spans, event)
        for span in made:
            if span.span_id not in self._made:
                self._made.add(span.span_id)
                yield span
        if event.kind == "run_finished":
            self._made.clear()  # A run that goes on after its end is sent once more.

    def _ended(self, spans: RunSpans, event: Event) -> Iterator[OtelSpan]:
        visit = self.state.visit_of(event.place)
        if event.kind == "call_finished":
            if (call := self.state.call_at(event.place)) is not None:
                yield spans.call(call)
        elif event.kind == "tool_finished":
            call = self.state.call_at(event.place)
            tools = call.tools if call is not None else visit.tool_tries if visit is not None else ()
            yield from (spans.tool(tool) for tool in tools if tool.index == event.data.get("index", 0))
        elif visit is not None and visit.finished:
            yield spans.visit(visit)


class SpanSender:
    """Sends the spans of all runs of this process. Safe from any thread."""

    def __init__(self, env: Mapping[str, str]) -> None:
        """``env``: the variables of the process, which the exporter reads, too."""
        self.fault = ""
        """Why nothing is sent; empty while there is no fault."""
        self._env = env
        self._runs: dict[str, LiveRun] = {}
        self._queue: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._say: Callable[[str], None] = lambda text: None
        self._said = False
        self._output: _Output | None = None
        self._open_ended = True
        self._thread = threading.Thread(target=self._work, name="spans", daemon=True)
        self._thread.start()

    def take(
        self, event: Event, images: Images, earlier: Callable[[], Iterable[Event]], say: Callable[[str], None]
    ) -> None:
        """One event, after it is in the journal; returns at once. ``earlier`` gives the events of a run before the
        first that is seen of it here, ``say`` tells a person why nothing arrives."""
        self._queue.put(lambda: self._take(event, images, earlier, say))

    def finish(self, seconds: float) -> None:
        """Wait until all taken events are sent, at most this many seconds, and not at all for an
        unreachable endpoint.
        """
        done = threading.Event()

        def flush() -> None:
            if self._output is not None and not self.fault:
                self._output.flush()
            done.set()

        self._queue.put(flush)
        over = time.monotonic() + seconds
        while not (self.fault or done.wait(_LOOK_SECONDS) or time.monotonic() > over):
            pass

    def close(self, seconds: float) -> None:
        """Wait like ``finish``; then end all threads, and with them what is still on its way or tried again."""
        self.finish(seconds)
        if self._output is not None:
            self._output.give_up()
        self._queue.put(self._end)
        self._thread.join(seconds)

    # -- the thread --------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while self._open_ended:
            self._queue.get()()

    def _end(self) -> None:
        self._open_ended = False
        if self._output is not None:
            self._output.close()

    def _take(
        self, event: Event, images: Images, earlier: Callable[[], Iterable[Event]], say: Callable[[str], None]
    ) -> None:
        self._say = say
        if self._output is None and not self.fault:
            self._open()
        if self._output is None:
            return
        run = self._runs.get(event.run_id)
        if run is None:
            run = self._runs[event.run_id] = LiveRun(images)
            for before in earlier() if event.seq > 1 else ():
                if before.seq < event.seq:
                    for _ in run.take(before):
                        pass  # Sent when it happened.
        for span in run.take(event):
            self._output.send(span, service_of(run.state))
        if event.kind == "run_finished":
            del self._runs[event.run_id]

    def _open(self) -> None:
        protocol = next((value for name in _PROTOCOLS if (value := self._env.get(name))), "http/protobuf")
        if protocol not in _EXPORTERS:
            self._failed(f"the protocol {protocol} is not known (http/protobuf, grpc)")
        elif reason := missing("otel"):
            self._failed(reason)
        else:
            try:
                self._output = _Output(_EXPORTERS[protocol], self._env, self._failed)
            except ImportError as error:
                self._failed(f"{protocol} needs a package that is not installed: {error}")
            except ValueError as error:
                self._failed(str(error))

    def _failed(self, reason: str) -> None:
        if innermost := _SYSTEM.search(reason):  # The exporter tells all layers around it, and how it tries again.
            reason = f"{innermost[1]}; check OTEL_EXPORTER_OTLP_ENDPOINT"
        self.fault = reason
        if reason and not self._said:
            self._said = True
            self._say(f"spans do not arrive at {endpoint_of(self._env)}: {reason}")


class _Output:
    """The official SDK: a tracer for each service, one queue, one exporter."""

    def __init__(self, module: str, env: Mapping[str, str], failed: Callable[[str], None]) -> None:
        """Raises ImportError, ValueError."""
        # 0.3 s of imports, in the thread of the sender.
        self._trace: Any = import_module("opentelemetry.trace")
        self._sdk: Any = import_module("opentelemetry.sdk.trace")
        self._resources: Any = import_module("opentelemetry.sdk.resources")
        export: Any = import_module("opentelemetry.sdk.trace.export")
        self._env = env
        # Its words come before it gives up, and are kept off the terminal.
        self._words = _Words(failed)
        logging.getLogger("opentelemetry").addHandler(self._words)
        succeeded = export.SpanExportResult.SUCCESS

        class ObservedExporter(export.SpanExporter):  # type: ignore[misc]  # Its base is loaded at run time.
            """The official exporter, which reports each success."""

            def __init__(self, exporter: Any) -> None:
                self._exporter = exporter
                self._is_shut = False

            def export(self, spans: Sequence[Any]) -> Any:
                result = self._exporter.export(spans)
                if result is succeeded:
                    failed("")
                return result

            def shutdown(self) -> None:
                if not self._is_shut:
                    self._is_shut = True
                    self._exporter.shutdown()

        given = {
            "schedule_delay_millis": None if env.get("OTEL_BSP_SCHEDULE_DELAY") else _DELAY_MS,
            "max_export_batch_size": None if env.get("OTEL_BSP_MAX_EXPORT_BATCH_SIZE") else _BATCH,
        }
        self._exporter = ObservedExporter(import_module(module).OTLPSpanExporter())
        self._processor = export.BatchSpanProcessor(self._exporter, **given)
        self._ids = self._own_ids()
        self._tracers: dict[str, Any] = {}
        self._texts = env.get(_CONTENT, "").strip().lower() not in ("false", "no_content")

    def _own_ids(self) -> Any:
        class Ids(self._sdk.IdGenerator):  # type: ignore[name-defined,misc]
            """Gives the next span the ids that it has in a file, too."""

            trace = span = 0

            def generate_trace_id(self) -> int:
                return self.trace

            def generate_span_id(self) -> int:
                return self.span

        return Ids()

    def send(self, span: OtelSpan, service: str) -> None:
        """Put a span into the queue."""
        trace = self._trace
        tracer = self._tracers.get(service) or self._tracer(service)
        self._ids.trace, self._ids.span = int(span.trace_id, 16), int(span.span_id, 16)
        context = trace.set_span_in_context(trace.INVALID_SPAN)
        if span.parent_id:
            flags = trace.TraceFlags(trace.TraceFlags.SAMPLED)
            above = trace.SpanContext(self._ids.trace, int(span.parent_id, 16), is_remote=False, trace_flags=flags)
            context = trace.set_span_in_context(trace.NonRecordingSpan(above))
        kind = trace.SpanKind.CLIENT if span.client else trace.SpanKind.INTERNAL
        made = tracer.start_span(span.name, context, kind=kind, start_time=span.start)
        made.set_attributes(
            {name: value for name, value in span.attributes.items() if self._texts or name not in _TEXTS}
        )
        if span.failure:
            made.set_status(trace.StatusCode.ERROR, span.failure)
        made.end(span.end)

    def _tracer(self, service: str) -> Any:
        named = self._env.get("OTEL_SERVICE_NAME") or "service.name=" in self._env.get("OTEL_RESOURCE_ATTRIBUTES", "")
        resource = self._resources.Resource.create({} if named else {"service.name": service})
        provider = self._sdk.TracerProvider(resource=resource, id_generator=self._ids, shutdown_on_exit=False)
        provider.add_span_processor(self._processor)
        tracer = self._tracers[service] = provider.get_tracer(SCOPE, __version__)
        return tracer

    def flush(self) -> None:
        """Send what waits."""
        self._processor.force_flush()

    def give_up(self) -> None:
        """End what is being sent and tried again, in whatever thread, without a word."""
        self._words.muted = True
        self._exporter.shutdown()

    def close(self) -> None:
        """End the thread of the queue."""
        self.give_up()
        self._processor.shutdown()
        logging.getLogger("opentelemetry").removeHandler(self._words)


class _Words(logging.Handler):
    """Passes on the warnings of the exporter."""

    def __init__(self, failed: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self.muted = False
        self._failed = failed

    def emit(self, record: logging.LogRecord) -> None:
        if not self.muted:
            self._failed(" ".join(record.getMessage().split())[:300])
