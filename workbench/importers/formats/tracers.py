"""Spans of tracers that say of each model call what it was given and what it answered: DeepEval, Datadog, Weave,
Braintrust, Opik, Lunary, PostHog and the OpenAI Agents SDK. Each is read as an observation of LangFuse's form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from workbench.importers.conversation import Conversation
from workbench.importers.exchanges import given_of
from workbench.importers.formats.langfuse import read_observations
from workbench.importers.python_text import python_value
from workbench.importers.values import array, as_text, decoded, mapping, number, string

Span = Mapping[str, Any]


def is_tracer(body: Any) -> bool:
    """Returns whether one of the spans is a call of a model."""
    return any(_is_call(_observation(span)) for span in _spans(body))


def read_tracer(body: Any) -> list[Conversation]:
    """The calls of each trace. Raises Unreadable."""
    return read_observations(_observations(body), {})


def _is_call(observation: Span) -> bool:
    return observation.get("type") == "GENERATION"


def _observations(body: Any) -> list[Span]:
    """The spans of a file in LangFuse's form; a call inside of another one stands for both."""
    found = [one for span in _spans(body) if (one := _observation(span))]
    outer = {one["parent"] for one in found if _is_call(one)}
    return [{**one, "type": "SPAN"} if one["id"] and one["id"] in outer else one for one in found]


def _spans(body: Any) -> Iterator[Span]:
    """All spans of a file, from within what the exports of the tracers put around them."""
    for one in map(mapping, body if isinstance(body, list) else [body]):
        if any(name in one for name in _LISTS_OF_KINDS):
            for name in _LISTS_OF_KINDS:
                yield from ({"trace": one, "kind": name.lower()[:3], **mapping(span)} for span in array(one.get(name)))
        elif cases := [mapping(case).get("trace") for case in array(one.get("testCases") or one.get("test_cases"))]:
            yield from _spans(cases)
        elif mapping(mapping(one.get("data")).get("attributes")).get("spans"):
            yield from _spans(one["data"]["attributes"]["spans"])
        elif isinstance(one.get("spans"), list) and "event_type" in one:
            yield from _spans(one["spans"])
        elif "span_kind" in mapping(one.get("attributes")):
            yield one["attributes"]
        elif isinstance(inner := one.get("data", one.get("events")), list):
            yield from _spans(inner)
        else:
            yield one


_LISTS_OF_KINDS = ("llmSpans", "toolSpans", "agentSpans", "retrieverSpans", "baseSpans")
"""DeepEval's: a list of spans for each kind."""


def _observation(span: Span) -> Span:
    """A span in LangFuse's form; empty if it is of no tracer that is known."""
    return next((found for read in _TRACERS if (found := read(span))), {})


def _made(
    span: Span, is_call: bool, trace: object, id: object, parent: object, start: object, end: object, **told: Any
) -> Span:
    """``told``: ``input``, ``output``, ``model``, ``provider``, ``usage``, ``cost`` in US dollars, ``parameters``,
    ``tools``, ``error`` and ``seconds`` of a call. What is no call is kept as it stands in the file."""
    shared = {"traceId": as_text(trace), "id": as_text(id), "parent": as_text(parent), "startTime": start}
    if not is_call:
        return {**span, **shared, "type": "SPAN"}
    request, answered = _request(told["input"]), told["output"]
    given = given_of(request) if request else told["input"]
    counts = {name: value for name, value in mapping(told.get("usage")).items() if value is not None}
    return {
        **shared,
        "type": "GENERATION",
        "name": span.get("name"),
        "endTime": end,
        "seconds": told.get("seconds"),
        "input": {
            "messages": given,
            "tools": told.get("tools") or request.get("tools"),
            "previous_response_id": request.get("previous_response_id"),
        }
        if isinstance(given, list)
        else told["input"],
        "output": answered,
        "model": told.get("model"),
        "provider": told.get("provider"),
        "usageDetails": counts or mapping(answered).get("usage"),
        "totalCost": told.get("cost"),
        "modelParameters": {**mapping(told.get("parameters")), **request},
        "statusMessage": as_text(mapping(told.get("error")).get("message", told.get("error"))),
        "traceName": told.get("title"),
    }


def _request(given: Any) -> Span:
    """The request that the input of a span is, or holds as the first argument of a function; empty for others."""
    outer = mapping(given)
    request = mapping(next(iter(array(outer.get("args"))), None)) or outer
    return request if given_of(request) is not None else {}


# DeepEval: its own counts and prices of a token.


def _deepeval(span: Span) -> Span:
    trace = mapping(span.get("trace"))
    if not trace or "startTime" not in span:
        return {}
    plain = {key: value for key, value in span.items() if key not in ("trace", "kind")}
    counts = {"input": span.get("inputTokenCount"), "output": span.get("outputTokenCount")}
    prices = number(span.get("costPerInputToken")), number(span.get("costPerOutputToken"))
    read, said = number(counts["input"]), number(counts["output"])
    cost = None if None in (*prices, read, said) else prices[0] * read + prices[1] * said  # type: ignore[operator]
    given = span.get("input")
    defined = [_deepeval_tool(mapping(one)) for one in array(given)]
    items = [_deepeval_item(mapping(one)) for one, tool in zip(array(given), defined, strict=True) if not tool]
    return _made(
        plain,
        span.get("kind") == "llm",
        trace.get("uuid"),
        span.get("uuid"),
        span.get("parentUuid"),
        span["startTime"],
        span.get("endTime"),
        input=items or given,
        output=_deepeval_answer(span.get("output")),
        model=span.get("model"),
        provider=span.get("provider"),
        usage=counts,
        cost=cost,
        tools=[tool for tool in defined if tool],
        error=span.get("error"),
        title=trace.get("name"),
    )


def _deepeval_tool(one: Span) -> Span:
    """The definition of a tool, which its handler for LangChain puts among the messages, written as Python writes it;
    empty for a message."""
    if one.get("role") != "Tool Input":
        return {}
    with suppress(ValueError):
        return mapping(python_value(string(one.get("content"))))
    return {}


def _deepeval_item(one: Span) -> Span:
    """A message; a call of a tool and its result as items of OpenAI's responses."""
    if "call_id" not in one:
        return one
    plain = {key: value for key, value in one.items() if key != "role"}
    return {**plain, "type": "function_call_output" if "output" in one else "function_call"}


def _deepeval_answer(answered: Any) -> Any:
    """Calls of tools without ids, as an answer with calls; a call that stands as text, as an item."""
    if "call_id" in mapping(call := decoded(answered)):
        return [_deepeval_item(call)]
    asked = [mapping(one) for one in array(answered)]
    if asked and all("inputParameters" in one for one in asked):
        asked = [{"name": one.get("name"), "arguments": one["inputParameters"]} for one in asked]
    elif not asked or not all("function" in one for one in asked):
        return answered
    return {"role": "assistant", "tool_calls": asked}


# Datadog: as its libraries send spans, and as its interface exports them. Its input includes what the cache read.


def _datadog(span: Span) -> Span:
    meta = mapping(span.get("meta")) or span
    kind = meta.get("span.kind") or meta.get("span_kind") or mapping(meta.get("span")).get("kind") or meta.get("kind")
    start = span.get("start_ns", span.get("start_ms"))
    if not kind or start is None or "span_id" not in span:
        return {}
    unit = 1 if "start_ns" in span else 1e-6  # of a duration in nanoseconds, in the unit of the start
    passed, begun = number(span.get("duration")), start if isinstance(start, int) else 0
    given, answered = mapping(meta.get("input")), mapping(meta.get("output"))
    tools = [
        {"name": one.get("name"), "description": one.get("description"), "parameters": one.get("schema")}
        for one in map(mapping, array(meta.get("tool_definitions")))
    ]
    failed = span.get("status") == "error"
    return _made(
        span,
        kind == "llm",
        span.get("trace_id"),
        span["span_id"],
        span.get("parent_id"),
        begun,
        begun + int(passed * unit) if passed is not None else None,
        input=_datadog_messages(given.get("messages")) or as_text(given.get("value")),
        output=_datadog_messages(answered.get("messages")) or answered.get("value"),
        model=meta.get("model_name"),
        provider=meta.get("model_provider"),
        usage={name: mapping(span.get("metrics")).get(told) for name, told in _DATADOG_COUNTS.items()},
        parameters=meta.get("metadata"),
        tools=tools,
        error=(meta.get("error.message") or meta.get("error") or span.get("status_message")) if failed else None,
    )


_DATADOG_COUNTS = {
    "prompt_tokens": "input_tokens",
    "completion_tokens": "output_tokens",
    "cached_input_tokens": "cache_read_input_tokens",
    "cache_write_tokens": "cache_write_input_tokens",
    "reasoning_tokens": "reasoning_output_tokens",
}


def _datadog_messages(bodies: object) -> list[Span]:
    """The messages, with one for each result of a tool."""
    found: list[Span] = []
    for one in map(mapping, array(bodies)):
        calls = [{**mapping(call), "id": mapping(call).get("tool_id")} for call in array(one.get("tool_calls"))]
        for result in map(mapping, array(one.get("tool_results"))):
            told = {"tool_call_id": result.get("tool_id"), "name": result.get("name")}
            found.append({"role": "tool", **told, "content": as_text(result.get("result"))})
        if calls or one.get("content") or not one.get("tool_results"):
            found.append({**one, "role": one.get("role") or "assistant", "tool_calls": calls})
    return found


# Tracers whose spans have their fields at the top.


def _weave(span: Span) -> Span:
    if "op_name" not in span or "started_at" not in span:
        return {}
    inputs, summary = mapping(span.get("inputs")), mapping(span.get("summary"))
    counts = mapping(summary.get("usage"))
    model = string(inputs.get("model")) or next(iter(counts), "")
    costs = [mapping(one) for one in mapping(mapping(summary.get("weave")).get("costs")).values()]
    money = [found for one in costs for name, paid in one.items() if "total_cost" in name and (found := number(paid))]
    return _made(
        span,
        bool(_request(inputs)) and bool(counts or span.get("exception")),
        span.get("trace_id"),
        span.get("id"),
        span.get("parent_id"),
        span["started_at"],
        span.get("ended_at"),
        input=inputs,
        output=span.get("output"),
        model=model,
        usage=next((one for one in counts.values() if mapping(one)), None),
        cost=sum(money) if money else None,
        error=span.get("exception"),
    )


def _braintrust(span: Span) -> Span:
    kind, metrics = mapping(span.get("span_attributes")), mapping(span.get("metrics"))
    if not kind or "root_span_id" not in span:
        return {}
    about = mapping(span.get("metadata"))
    counts = {
        "prompt_tokens": metrics.get("prompt_tokens"),
        "completion_tokens": metrics.get("completion_tokens"),
        "cached_input_tokens": metrics.get("prompt_cached_tokens"),
        "cache_write_tokens": metrics.get("prompt_cache_creation_tokens"),
        "reasoning_tokens": metrics.get("completion_reasoning_tokens"),
    }
    return _made(
        {**span, "name": kind.get("name")},
        kind.get("type") == "llm",
        span["root_span_id"],
        span.get("span_id"),
        next(iter(array(span.get("span_parents"))), ""),
        metrics.get("start") or span.get("created"),
        metrics.get("end"),
        input=span.get("input"),
        output=span.get("output"),
        model=about.get("model"),
        provider=about.get("provider"),
        usage=counts,
        cost=metrics.get("estimated_cost"),
        parameters=about,
        tools=about.get("tools"),
        error=span.get("error"),
    )


def _opik(span: Span) -> Span:
    if "trace_id" not in span or "start_time" not in span or span.get("type") not in ("llm", "general", "tool"):
        return {}
    return _made(
        span,
        span["type"] == "llm",
        span["trace_id"],
        span.get("id"),
        span.get("parent_span_id"),
        span["start_time"],
        span.get("end_time"),
        input=span.get("input"),
        output=span.get("output"),
        model=span.get("model"),
        provider=span.get("provider"),
        usage=span.get("usage"),
        cost=span.get("total_estimated_cost"),
        parameters=span.get("metadata"),
        error=span.get("error_info"),
    )


def _lunary(span: Span) -> Span:
    if "createdAt" not in span or "endedAt" not in span or "type" not in span:
        return {}
    given, answered = span.get("input"), span.get("output")
    about = mapping(span.get("params"))
    return _made(
        span,
        span["type"] == "llm",
        span.get("parentRunId") or span.get("id"),
        span.get("id"),
        span.get("parentRunId"),
        span["createdAt"],
        span["endedAt"],
        input=[given] if isinstance(given, dict) else given,
        output=answered,
        model=span.get("name"),
        usage=span.get("tokens") or {"input": span.get("promptTokens"), "output": span.get("completionTokens")},
        cost=span.get("cost"),
        parameters=about,
        tools=about.get("tools"),
        error=span.get("error"),
    )


def _posthog(span: Span) -> Span:
    told = mapping(span.get("properties"))
    if not string(span.get("event")).startswith("$ai_") or "timestamp" not in span:
        return {}
    counts = {
        name.removeprefix("$ai_"): value
        for name, value in told.items()
        if name.endswith("_tokens") and value is not None
    }
    if told.get("$ai_provider") != "anthropic":  # Only its input leaves out what the cache read.
        counts = {"cached_input_tokens" if "cache_read" in name else name: value for name, value in counts.items()}
    return _made(
        {**span, "name": told.get("$ai_span_name")},
        span["event"] == "$ai_generation",
        told.get("$ai_trace_id"),
        told.get("$ai_span_id") or span.get("uuid"),
        told.get("$ai_parent_id"),
        span["timestamp"],
        None,
        input=told.get("$ai_input"),
        output=told.get("$ai_output_choices"),
        model=told.get("$ai_model"),
        provider=told.get("$ai_provider"),
        usage=counts,
        cost=told.get("$ai_total_cost_usd"),
        parameters=told.get("$ai_model_parameters"),
        tools=told.get("$ai_tools"),
        error=told.get("$ai_error") if told.get("$ai_is_error") else None,
        seconds=told.get("$ai_latency"),
    )


def _agents_sdk(span: Span) -> Span:
    data = mapping(span.get("span_data"))
    if span.get("object") != "trace.span" or not data:
        return {}
    return _made(
        {**span, "name": data.get("name")},
        data.get("type") == "generation",
        span.get("trace_id"),
        span.get("id"),
        span.get("parent_id"),
        span.get("started_at"),
        span.get("ended_at"),
        input=data.get("input"),
        output=data.get("output"),
        model=data.get("model"),
        usage=data.get("usage"),
        parameters=data.get("model_config"),
        error=span.get("error"),
    )


_TRACERS: Sequence[Callable[[Span], Span]] = (
    _deepeval,
    _datadog,
    _weave,
    _braintrust,
    _opik,
    _lunary,
    _posthog,
    _agents_sdk,
)
