"""Events of CrewAI, as a listener writes them (``event.model_dump(mode="json")``) or a trace holds them: those of model
calls state the whole request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from workbench.importers.conversation import Call, Remarks, Thread
from workbench.importers.exchanges import parameters_of
from workbench.importers.messages import read_messages, tool_schemas
from workbench.importers.threads import ObservedCall, attempted, threads_of, unanswered
from workbench.importers.usage import usage_of
from workbench.importers.values import array, as_text, duration_between, mapping, moment, string

_STARTED, _COMPLETED, _FAILED = "llm_call_started", "llm_call_completed", "llm_call_failed"
_OTHER = ("llm_stream_chunk", "llm_thinking_chunk")
"""Pieces of an answer that the event of its end holds whole."""


def has_crewai(body: Any) -> bool:
    """Returns whether events of model calls are among the first."""
    return any(one.get("type") in (_STARTED, _COMPLETED) and "call_id" in one for one in _events(body)[:500])


def _events(body: Any) -> list[Mapping[str, Any]]:
    """The events, each with what a trace puts into ``event_data``."""
    listed = [mapping(one) for one in array(body) or array(mapping(body).get("events"))]
    return [{**one, **mapping(one.get("event_data"))} for one in listed]


def read_crewai(body: Any, remarks: Remarks) -> tuple[Thread, ...]:
    """The contexts of the calls."""
    return threads_of(_calls(body, remarks))


def _calls(body: Any, remarks: Remarks) -> Iterator[ObservedCall]:
    started: dict[str, Mapping[str, Any]] = {}
    for event in _events(body):
        kind, name = event.get("type"), as_text(event.get("call_id"))
        if kind == _STARTED:
            started[name] = event
        elif kind in (_COMPLETED, _FAILED):
            begun = started.pop(name, {})
            found = attempted(partial(_call, begun, event, remarks), remarks)
            if found is not None:
                yield found
        elif kind not in _OTHER:
            remarks.left_out(f"an event of type {string(kind)[:60]!r}, which is no model call,")
    for begun in started.values():
        found = attempted(partial(_call, begun, {"error": "the file holds no answer"}, remarks), remarks)
        if found is not None:
            yield found


def _call(begun: Mapping[str, Any], ended: Mapping[str, Any], remarks: Remarks) -> ObservedCall:
    """A call from its first event and its last one. Raises Unreadable."""
    given = begun.get("messages") or ended.get("messages") or []
    bodies = [{"role": "user", "content": given}] if isinstance(given, str) else array(given)
    at = moment(begun.get("timestamp") or ended.get("timestamp"))
    model = string(ended.get("model")) or string(begun.get("model"))
    call = Call(
        usage_of(ended.get("usage")),
        model=model,
        finish_reason=string(ended.get("finish_reason")),
        duration_s=duration_between(at, moment(ended.get("timestamp"))) if begun else None,
        at=at,
    )
    asked = tuple(read_messages(bodies, remarks, "messages"))
    extra = tool_schemas(begun.get("tools")), parameters_of(begun)
    if "response" not in ended:
        return ObservedCall(asked, *unanswered(call, as_text(ended.get("error"))[:2000] or "no answer"), model, *extra)
    response = ended.get("response")
    asks = isinstance(response, list) and all("function" in mapping(one) for one in response)
    body = {"content": "", "tool_calls": response} if asks else {"content": as_text(response)}
    (answer,) = read_messages([{"role": "assistant", **body}], remarks, "response")
    return ObservedCall(asked, answer, call, model, *extra)
