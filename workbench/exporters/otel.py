"""A run as OpenTelemetry spans (OTLP JSON) by the GenAI semantic conventions: run, phases, model calls, tools."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from workbench import __version__
from workbench.context.assembly import Entry
from workbench.context.message import Image, Message, TextPart, sha256
from workbench.context.place import Place
from workbench.context.rope import Rope
from workbench.engine.contracts import Images
from workbench.engine.journal.annotations import Labels
from workbench.engine.journal.elapsed import Stretches
from workbench.engine.journal.event import Event
from workbench.engine.journal.parts import CallState, ToolState, VisitState
from workbench.engine.journal.repeats import Repeats
from workbench.engine.journal.span_names import conventional
from workbench.engine.journal.state import RunState

_ERROR = 2
"""OTLP's status code of a span that failed."""
_INTERNAL, _CLIENT = 1, 3
WHOLE = 200
"""Messages of a context up to which each call tells all of it."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_REQUESTED = ("temperature", "top_p", "top_k", "max_tokens", "seed", "frequency_penalty", "presence_penalty")
_FINISHED = {"tool_calls": "tool_call", "function_call": "tool_call", "tool_use": "tool_call", "end_turn": "stop"}
"""Words of providers for the reasons that the conventions name (stop, length, content_filter, tool_call, error)."""


class OtelSpan(Struct, frozen=True):
    """One span. Ids in hex, times in nanoseconds since 1970."""

    trace_id: str
    span_id: str
    parent_id: str
    """Empty for the run itself."""
    name: str
    client: bool
    """Whether something outside answered: a model."""
    start: int
    end: int
    attributes: dict[str, Any]
    """Unknown and empty values are left out."""
    failure: str = ""
    """Why it failed; empty if it did not."""

    def otlp(self) -> dict[str, Any]:
        """As OTLP JSON writes it."""
        body: dict[str, Any] = {
            "traceId": self.trace_id,
            "spanId": self.span_id,
            "parentSpanId": self.parent_id,
            "name": self.name,
            "kind": _CLIENT if self.client else _INTERNAL,
            "startTimeUnixNano": str(self.start),
            "endTimeUnixNano": str(self.end),
            "attributes": _attributes(self.attributes),
        }
        return body | {"status": {"code": _ERROR, "message": self.failure}} if self.failure else body


class CallTimes(Struct):
    """When calls and tools began and ended, by the journal."""

    began: dict[tuple[Any, int], str] = field(default_factory=dict)
    ended: dict[tuple[Any, int], str] = field(default_factory=dict)
    providers: dict[Any, str] = field(default_factory=dict)
    ids: dict[Any, str] = field(default_factory=dict)
    """The provider's own ids of answers."""
    _repeats: Repeats = field(default_factory=Repeats)

    def take(self, event: Event) -> None:
        """The next event of the run."""
        kind, _, what = event.kind.partition("_")
        if self._repeats.takes(event) or kind not in ("call", "tool") or what not in ("started", "finished", "failed"):
            return
        key = (event.place, event.data.get("index", 0))
        if what == "started":
            self.began.setdefault(key, event.at)
            return
        self.ended[key] = event.at
        if told := event.data.get("provider_id"):
            self.ids[event.place] = str(told)
        self.providers[event.place] = str(event.data.get("provider") or self.providers.get(event.place, ""))


SCOPE = "workbench"
"""The instrumentation scope of the spans."""


def service_of(state: RunState) -> str:
    """Returns the name of the resource of a run's spans."""
    return state.cascade_id or SCOPE


def spans_of_run(state: RunState, events: Sequence[Event], images: Images) -> dict[str, Any]:
    """The run as one OTLP JSON document. A span without an end ends where it began."""
    times = CallTimes()
    for event in events:
        times.take(event)
    spans = [span.otlp() for span in RunSpans(state, times, images).all()]
    scope = {"scope": {"name": SCOPE, "version": __version__}, "spans": spans}
    resource = {"attributes": _attributes({"service.name": service_of(state)})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}


class RunSpans(Struct):
    """The spans of one run: all of them at once, or one by one while it goes on."""

    state: RunState
    times: CallTimes
    images: Images
    _last: dict[str, CallState] = field(default_factory=dict)
    """By branch, the call before."""
    _sizes: dict[int, int] = field(default_factory=dict)
    still: Stretches | None = None
    """When the run was paused or stopped."""

    def all(self) -> Iterator[OtelSpan]:
        """The run's, then those of each phase, its calls and their tools."""
        yield self.run()
        for visit in self.state.visits:
            yield self.visit(visit)
            for call in visit.calls:
                yield self.call(call)
                for tool in call.tools:
                    yield self.tool(tool)
            for tool in visit.tool_tries:
                yield self.tool(tool)
        for call in self.state.calls:
            if self.state.visit_of(call.place) is None:
                yield self.call(call)

    def run(self) -> OtelSpan:
        """The whole run, as far as it has come, as long as every other place says: with what ended after it."""
        state = self.state
        attributes = {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": state.cascade_id,
            **{f"workbench.{name}": value for name, value in state.figures().brief().items()},
            "workbench.seconds": state.seconds,
            "workbench.paused_s": state.paused or None,
            "gen_ai.conversation.id": state.session_id,
            "workbench.edits": state.edited or None,
            **_said(state.annotations.run),
        }
        name = f"invoke_workflow {state.cascade_id}".strip()
        span = self._span(
            name, "run", "", state.started, state.finished, attributes, failure=_failure(state.status, state.reason)
        )
        return replace(span, end=span.start + round(state.seconds * 1e9)) if state.seconds else span

    def visit(self, visit: VisitState) -> OtelSpan:
        """A visit of a phase."""
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": visit.phase,
            "gen_ai.conversation.id": self.state.session_id,
        }
        failure = _failure(visit.status, visit.reason)
        name, key = f"invoke_agent {visit.phase}", _key(visit)
        return self._span(name, key, "run", visit.started, visit.finished, attributes, failure=failure)

    def _above(self, place: Place) -> str:
        """The key of the span that what happens at a place is a part of."""
        visit = self.state.visit_of(place)
        return "run" if visit is None else _key(visit)

    def call(self, call: CallState) -> OtelSpan:
        """A model call; the context is what was sent, so messages that were left out are not in it.

        A context of more than ``WHOLE`` messages is told by what follows those that the call before it began with too:
        whole ones would take the square of a long run's length."""
        head, sent, kept, before = self._sent(call)
        usage, tools = call.usage, self.state.tool_schemas.get(call.tools_hash)
        system = [part for message in head for part in self._parts(message)]
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": conventional(self.times.providers.get(call.place, "")),
            "gen_ai.conversation.id": self.state.session_id,
            "gen_ai.response.id": self.times.ids.get(call.place, ""),
            "gen_ai.request.model": call.model,
            "gen_ai.response.model": call.answered_by.partition(" ")[0],
            "gen_ai.response.finish_reasons": [call.finish_reason] if call.finish_reason else None,
            "gen_ai.usage.input_tokens": usage.input,
            "gen_ai.usage.output_tokens": usage.output,
            "gen_ai.usage.cache_read.input_tokens": usage.cached,
            "gen_ai.usage.cache_creation.input_tokens": usage.written,
            "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
            "workbench.usage.written_hour": usage.written_hour,
            "workbench.cost": call.paid.own,
            "workbench.cost_grade": None if call.cost is None else call.cost_grade,
            "workbench.recorded": True if call.recorded else None,
            "workbench.recorded_cost": call.cost if call.recorded else None,
            "gen_ai.system_instructions": _json(system),
            "gen_ai.input.messages": _json([self._message(message) for message in sent]),
            "workbench.input.after": before,
            "workbench.input.kept": kept or None,
            "gen_ai.output.messages": _json([self._answer(call.answer, call)] if call.answer is not None else []),
            "gen_ai.output.type": _output_type(call.parameters.get("response_format")),
            "gen_ai.tool.definitions": _json([_definition(tool) for tool in tools or ()]),
            "workbench.place": str(call.place),
            "workbench.strategy": call.strategy,
            "workbench.edited": True if call.place in self.state.edited_places else None,
            **_said(self.state.annotations.at(call.place)),
        }
        attributes |= {f"gen_ai.request.{name}": call.parameters.get(name) for name in _REQUESTED}
        others = {name: value for name, value in call.parameters.items() if name not in _REQUESTED}
        stop = others.get("stop")
        if isinstance(stop, str | list):
            attributes["gen_ai.request.stop_sequences"] = [stop] if isinstance(stop, str) else stop
        if isinstance(stop, list):
            del others["stop"]
        attributes["workbench.parameters"] = json.dumps(others, ensure_ascii=True) if others else None
        key = (call.place, 0)
        began, ended = self.times.began.get(key, call.at), self.times.ended.get(key, "")
        error = call.failures[-1].get("error", {}) if call.failures and call.answer is None else {}
        failure = f"{error.get('kind', '')}: {error.get('message', '')}" if error else ""
        name = f"chat {call.model}".strip()
        parent = self._above(call.place)
        return self._span(name, f"call {call.place}", parent, began, ended, attributes, client=True, failure=failure)

    def _sent(self, call: CallState) -> tuple[list[Message], list[Message], int, str]:
        """Returns the messages that were sent: the system message first, if any, the others as they are told, how many
        of those that an earlier call began with come before them, and the place of that call."""
        parts, branch = Rope.of(call.entries).parts, call.place.branch
        before = None if call.beside else self._last.get(branch)
        if not call.beside:
            self._last[branch] = call
        sizes = [self._size(part) for part in parts]
        first = next((entry.sent for entry in call.entries if entry.sent is not None), None)
        head = [first] if first is not None and first.role == "system" else []  # Further ones are messages, as sent.
        shared = kept = 0
        if before is not None and sum(sizes) > WHOLE:
            old = Rope.of(before.entries).parts
            while shared < min(len(parts), len(old)) and parts[shared] is old[shared]:
                shared += 1
            new, was = _of_parts(parts[shared:]), _of_parts(old[shared:])
            same = next((i for i, (a, b) in enumerate(zip(new, was, strict=False)) if a != b), min(len(new), len(was)))
            kept = sum(sizes[:shared]) + same - len(head)
            if kept > 0:
                return head, new[same:], kept, str(before.place)
        return head, _of_parts(parts)[len(head) :], 0, ""

    def _size(self, part: tuple[Entry, ...]) -> int:
        """Returns how many messages of a part were sent. Contexts share parts, and the run keeps them while this
        looks."""
        known = self._sizes.get(id(part))
        if known is None:
            known = self._sizes[id(part)] = sum(1 for entry in part if entry.sent is not None)
        return known

    def tool(self, tool: ToolState) -> OtelSpan:
        """A call of a tool."""
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool.tool,
            "gen_ai.tool.type": "function",
            "gen_ai.conversation.id": self.state.session_id,
            "gen_ai.tool.call.id": tool.call_id,
            "gen_ai.tool.call.arguments": tool.arguments,
            "gen_ai.tool.call.result": tool.text,
        }
        at = (tool.place, tool.index)
        began, ended = self.times.began.get(at, ""), self.times.ended.get(at, "")
        failure = tool.text[:500] if tool.status == "failed" else ""
        if failure:
            attributes["error.type"] = "tool_error"
        key, parent = f"tool {tool.place} {tool.index}", self._above(tool.place)
        return self._span(f"execute_tool {tool.tool}", key, parent, began, ended, attributes, failure=failure)

    def _span(
        self,
        name: str,
        key: str,
        parent: str,
        began: str,
        ended: str,
        attributes: Mapping[str, Any],
        *,
        client: bool = False,
        failure: str = "",
    ) -> OtelSpan:
        """Ids follow from the run and the place, so the same run exports to the same spans."""
        run = self.state.run_id
        start = self._passed(began or self.state.started)
        known = {name: value for name, value in attributes.items() if value is not None and value != ""}
        if failure:
            known.setdefault("error.type", failure.partition(":")[0])
        return OtelSpan(
            trace_id=sha256(run)[:32],
            span_id=sha256(f"{run} {key}")[:16],
            parent_id=sha256(f"{run} {parent}")[:16] if parent else "",
            name=name,
            client=client,
            start=start,
            end=max(self._passed(ended), start),
            attributes=known,
            failure=failure,
        )

    def _passed(self, at: str) -> int:
        """A time of the journal in nanoseconds since 1970, less the time before it for which the run was paused or
        stopped: a span is as long as what it stands for ran. The recorded past of a fork keeps its times."""
        time, state = _nanoseconds(at), self.state
        if not time or not state.started or at <= state.started:
            return time
        if self.still is None:
            self.still = Stretches()
            self.still.join(state.elapsed.pauses)
            for gap in state.gaps:
                self.still.between(*gap)
        return time - round(self.still.within(_nanoseconds(state.started) / 1e9, time / 1e9) * 1e9)

    # -- messages ----------------------------------------------------------------------------------------------------

    def _message(self, message: Message) -> dict[str, Any]:
        named = {"name": message.name} if message.name and message.role != "tool" else {}
        return {"role": message.role, **named, "parts": self._parts(message)}

    def _answer(self, message: Message, call: CallState) -> dict[str, Any]:
        """An output message: the conventions want each to say why it ended."""
        told = _FINISHED.get(call.finish_reason, call.finish_reason)
        return {**self._message(message), "finish_reason": told or "unknown"}

    def _parts(self, message: Message) -> list[dict[str, Any]]:
        content = (TextPart(message.content),) if isinstance(message.content, str) else message.content
        if message.role == "tool":
            told = message.text if isinstance(message.content, str) else [self._part(part) for part in content]
            named = {"name": message.name} if message.name else {}
            return [{"type": "tool_call_response", "id": message.tool_call_id, **named, "response": told}]
        parts = [*_reasoning(message), *(self._part(part) for part in content if isinstance(part, Image) or part.text)]
        for call in message.tool_calls:
            body = {"type": "tool_call", "id": call.id, "name": call.name, **_arguments(call.arguments)}
            parts.append({**call.extra, **body})
        return parts

    def _part(self, part: TextPart | Image) -> dict[str, Any]:
        if isinstance(part, TextPart):
            return {"type": "text", "content": part.text}
        data = base64.b64encode(self.images[part.digest]).decode()
        return {"type": "blob", "modality": "image", "mime_type": part.media_type, "content": data}


def _key(visit: VisitState) -> str:
    return f"visit {visit.branch}/{visit.phase}/{visit.visit}"


def _said(labels: Labels) -> dict[str, Any]:
    """Returns the labels that people gave to a run or a call; the conventions have no attributes for them."""
    return {
        "workbench.tags": list(labels.tags) or None,
        "workbench.notes": list(labels.notes) or None,
        "workbench.score": labels.score,
        "workbench.thumb": labels.thumb,
    }


def _arguments(written: str) -> dict[str, Any]:
    """The arguments of a call as an object, and as text if the written text differs."""
    try:
        value = json.loads(written)
    except (ValueError, RecursionError):
        return {"arguments": written}
    if not isinstance(value, dict):
        return {"arguments": written}
    kept = {} if json.dumps(value, ensure_ascii=False) == written else {"workbench.arguments": written}
    return {"arguments": value, **kept}


def _definition(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A tool as the conventions define one: a flat object."""
    function = tool.get("function")
    return {"type": "function", **function} if isinstance(function, Mapping) else dict(tool)


def _output_type(asked: Any) -> str | None:
    """The kind of output that a request sets; None if it sets none."""
    form = asked.get("type") if isinstance(asked, Mapping) else None
    return None if form is None else "json" if str(form).startswith("json") else "text"


def _of_parts(parts: Sequence[Sequence[Entry]]) -> list[Message]:
    return [entry.sent for part in parts for entry in part if entry.sent is not None]


def _reasoning(message: Message) -> Iterator[dict[str, Any]]:
    """The model's reasoning: the text in the conventions' form, with the provider's block, or as beside an answer."""
    blocks = message.extra.get("reasoning")
    for block in blocks if isinstance(blocks, list) else []:
        told = block if isinstance(block, dict) else {"text": str(block)}
        words = next((told[key] for key in ("thinking", "reasoning", "content", "text") if told.get(key)), "")
        content = words if isinstance(words, str) else json.dumps(words)
        yield {"type": "reasoning", "content": content, "workbench.block": told}
    if isinstance(text := message.extra.get("reasoning_content"), str) and text:
        yield {"type": "reasoning", "content": text, "workbench.field": "reasoning_content"}


def _failure(status: str, reason: str) -> str:
    return "" if status in ("success", "running") else f"{status}: {reason}".rstrip(": ")


def _json(value: Any) -> str | None:
    """JSON text of a list; None if it is empty."""
    return json.dumps(value, ensure_ascii=True) if value else None


def _nanoseconds(at: str) -> int:
    """Nanoseconds since 1970; 0 if the journal has no time."""
    if not at:
        return 0
    passed = datetime.fromisoformat(at) - _EPOCH
    return (passed.days * 86_400 + passed.seconds) * 1_000_000_000 + passed.microseconds * 1_000


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """OTLP's list of keys and typed values."""
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(one) for one in value]}}
    return {"stringValue": str(value)}
