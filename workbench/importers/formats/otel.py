"""Model calls in spans: OpenTelemetry's GenAI conventions, old and new, and OpenInference's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from workbench.engine.journal.span_names import provider_of
from workbench.importers.conversation import Call, Conversation, ImportedMessage, Remarks, Unreadable
from workbench.importers.exchanges import answered_of, given_of, parameters_of
from workbench.importers.messages import read_messages, tool_schemas
from workbench.importers.spans import ImportedSpan, each_span, nested_of, spans_of
from workbench.importers.threads import ObservedCall, attempted, threads_of, unanswered
from workbench.importers.usage import fuller, usage_of
from workbench.importers.values import array, as_text, count, decoded, duration_between, mapping, number, string

# What a model call was given and said, in the attributes and events of its span, as each tool writes them.

_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_PAIRS = (
    ("request_data", "response_data"),
    ("mlflow.spanInputs", "mlflow.spanOutputs"),
    ("langfuse.observation.input", "langfuse.observation.output"),
    ("input.value", "output.value"),
)
"""Attributes that hold a request and its response as JSON: Logfire's, MLflow's, LangFuse's, OpenInference's."""

_CALLS = ("gen_ai.operation.name", "gen_ai.request.model", "ai.model.id", "llm.request.type")

MARKS = ("gen_ai.", "ai.prompt.messages", "mlflow.spanInputs")
"""How names of attributes begin that only a call of a model, or what stands around one, has."""


class SpanMessages(NamedTuple):
    """The messages of a span."""

    given: list[Any]
    answers: list[Any]
    tools: Any = None
    parameters: Mapping[str, Any] = {}
    usage: Any = None


def gen_ai_messages(span: ImportedSpan) -> SpanMessages:
    """By OpenTelemetry's conventions, from the newest to the oldest, then as particular tools do it. What went in and
    what came out are looked for apart: a span may hold one of them in one form and the other in another."""
    told = _told(span)
    nested = mapping(span.nested.get("gen_ai"))
    listed, events = _listed(told.get("gen_ai.input.messages")), list(_events(span))
    asked = max(listed, events, key=len) or _numbered(nested.get("prompt"))
    given = [*_system(told), *asked]
    answers = _listed(told.get("gen_ai.output.messages")) or list(_choices(span))
    answers = answers or _numbered(nested.get("completion"))
    tools = span.attributes.get("gen_ai.tool.definitions") or _functions(span)
    if asked and answers:
        return SpanMessages(given, answers, tools)
    found = _vercel(span) or exchanged(span) or SpanMessages([], [])
    if not asked and not answers and not (found.given and found.answers) and not _names_a_call(span):
        return SpanMessages([], [])
    return found._replace(
        given=given if asked else [*(given if found.given else ()), *found.given] or given,
        answers=answers or found.answers,
        tools=tools or found.tools,
    )


def _names_a_call(span: ImportedSpan) -> bool:
    """Returns whether a span that holds one side alone says that it is a call of a model."""
    return any(span.attributes.get(key) for key in _CALLS)


def exchanged(span: ImportedSpan) -> SpanMessages | None:
    """From a request and a response that are attributes of their own; of a pair that is not whole, the one side."""
    half: SpanMessages | None = None
    for asked, answered in _PAIRS:
        request, response = decoded(span.attributes.get(asked)), decoded(span.attributes.get(answered))
        outer = {"messages": request} if isinstance(request, list) else mapping(request)
        given = given_of(outer) or (
            [{"role": "user", "content": request}] if request and isinstance(request, str) else []
        )
        found = answered_of(mapping(response))
        if not found and isinstance(response, str) and response:
            found = [{"role": "assistant", "content": response}]
        told = SpanMessages(given, found, outer.get("tools"), parameters_of(outer), mapping(response).get("usage"))
        if given and found:
            return told
        half = half or (told if given or found else None)
    return half


def _vercel(span: ImportedSpan) -> SpanMessages | None:
    """The spans of Vercel's AI SDK."""
    names = span.attributes
    given = _listed(names.get("ai.prompt.messages"))
    if not given:
        return None
    calls = _listed(names.get("ai.response.toolCalls"))
    answer = {
        "role": "assistant",
        "content": names.get("ai.response.text") or names.get("ai.response.object"),
        "tool_calls": calls,
    }
    return SpanMessages(given, [answer] if calls or answer["content"] else [], names.get("ai.prompt.tools"))


def _told(span: ImportedSpan) -> Mapping[str, Any]:
    """The span's attributes, and those of the events that carry the messages."""
    told: dict[str, Any] = dict(span.attributes)
    for name, attributes in span.events:
        if name not in _ROLES and name != "gen_ai.choice":
            told |= {key: value for key, value in attributes.items() if key.startswith("gen_ai.")}
    for new, old in (("gen_ai.input.messages", "gen_ai.prompt"), ("gen_ai.output.messages", "gen_ai.completion")):
        if new not in told and told.get(old):
            told[new] = told[old]
    return told


def _system(told: Mapping[str, Any]) -> list[Any]:
    parts = decoded(told.get("gen_ai.system_instructions"))
    return [{"role": "system", "content": parts}] if parts else []


def _listed(value: object) -> list[Any]:
    found = decoded(value)
    found = found if isinstance(found, list) else [found] if isinstance(found, dict) else []
    return [decoded(one) for one in found]


def _numbered(value: object) -> list[Any]:
    """Messages whose fields are attributes of their own; their calls may be, too."""
    return [{**mapping(one), "content": decoded(mapping(one).get("content"))} for one in array(value) if mapping(one)]


def _functions(span: ImportedSpan) -> Any:
    """Tools whose fields are attributes of their own."""
    request = mapping(mapping(span.nested.get("llm")).get("request"))
    return [
        {**mapping(one), "parameters": decoded(mapping(one).get("parameters"))}
        for one in array(request.get("functions"))
    ]


def _all_events(span: ImportedSpan) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Those of the span, and those that Logfire keeps in one attribute."""
    yield from span.events
    for one in map(mapping, _listed(span.attributes.get("events"))):
        yield as_text(one.get("event.name")), one


def _events(span: ImportedSpan) -> Iterator[dict[str, Any]]:
    for name, attributes in _all_events(span):
        if name in _ROLES:
            body = {"role": _ROLES[name], **attributes}
            yield {**body, "tool_calls": decoded(body.get("tool_calls")), "tool_call_id": body.get("id", "")}


def _choices(span: ImportedSpan) -> Iterator[dict[str, Any]]:
    for name, attributes in _all_events(span):
        if name == "gen_ai.choice":
            message = mapping(decoded(attributes.get("message"))) or attributes
            yield {**message, "role": "assistant", "tool_calls": decoded(message.get("tool_calls"))}


_MESSAGES = ("gen_ai.input.messages", "gen_ai.output.messages")
_REFERENCES = tuple(f"{name}_ref" for name in (*_MESSAGES, "gen_ai.system_instructions", "gen_ai.tool.definitions"))
_NOT_CALLS = ("execute_tool", "invoke_agent", "create_agent", "embeddings", "invoke_workflow")


def is_otel(body: Any) -> bool:
    """Spans with GenAI attributes or events."""
    return any(
        any(key.startswith(MARKS) for key in span.attributes)
        or any(name.startswith("gen_ai.") for name, _ in span.events)
        for span in each_span(body)
    )


def is_openinference(body: Any) -> bool:
    """Spans with OpenInference attributes. Those that also hold the messages of the GenAI conventions are read by
    these: Phoenix derives its own from them, and leaves out what it has no name for."""
    if any(key in span.attributes for span in each_span(body) for key in _MESSAGES):
        return False
    return any(
        key.startswith(("llm.", "openinference.")) and "llm.request.type" not in span.attributes
        for span in each_span(body)
        for key in span.attributes
    )


def call_of(span: ImportedSpan, remarks: Remarks) -> ObservedCall | None:
    """The model call that a span of any of these conventions tells of; None where it tells of none. Raises
    Unreadable."""
    names = span.attributes
    inference = any(key.startswith(("llm.", "openinference.")) for key in names) and "llm.request.type" not in names
    return (_inference if inference and not any(map(names.get, _MESSAGES)) else gen_ai_call)(span, remarks)


def tells_of_a_bare_call(span: ImportedSpan) -> bool:
    """Returns whether a span says that it is a call of a model, and holds no message of it."""
    names = span.attributes
    kind = string(names.get("openinference.span.kind")).upper()
    named = names.get("gen_ai.operation.name") not in _NOT_CALLS and _names_a_call(span)
    return kind == "LLM" or (named and not kind)


def read_otel(body: Any) -> list[Conversation]:
    """A conversation for each trace with model calls in it."""
    return _read(body, gen_ai_call)


def read_openinference(body: Any) -> list[Conversation]:
    """A conversation for each trace with LLM spans in it."""
    return _read(body, _inference)


def _read(body: Any, read: Any) -> list[Conversation]:
    spans = sorted(spans_of(body), key=lambda span: span.start)
    found = [one for trace in dict.fromkeys(s.trace for s in spans) if (one := _trace(spans, trace, read)) is not None]
    if not found:
        names = ", ".join(dict.fromkeys(span.name[:40] or "unnamed" for span in spans[:5]))
        elsewhere = ", ".join(dict.fromkeys(one for span in spans for one in _elsewhere(span)))
        hint = f"; its messages stand outside the file: {elsewhere[:300]}" if elsewhere else ""
        raise Unreadable(f"none of its {len(spans)} spans is a model call with its messages ({names}){hint}")
    return found


def _trace(spans: Sequence[ImportedSpan], trace: str, read: Any) -> Conversation | None:
    remarks, found, others = Remarks(), list[tuple[ImportedSpan, ObservedCall]](), list[Mapping[str, Any]]()
    bare = list[str]()
    mine = list(map(WholeInputs().whole, (span for span in spans if span.trace == trace)))
    for span in mine:
        observed = attempted(partial(read, span, remarks), remarks)
        if observed is not None:
            found.append((span, observed))
        else:
            others.append({"name": span.name, "start": span.start, "attributes": dict(span.attributes)})
            bare += [span.id] if tells_of_a_bare_call(span) else []
    parents = {span.id: span.parent for span in mine}
    told = without_repeats(found, parents, remarks)
    calls = [call for _, call in told]
    if not calls and read is gen_ai_call:
        calls = calls_of_agents(mine, remarks)
    if not calls:
        return None
    if lost := _told_by_no_other(bare, [span.id for span, _ in found], parents):
        remarks.left_out("a model call whose messages the file does not hold", count=lost, kept=True)
    if len(others) > lost:
        remarks.left_out("a span that is not a model call", count=len(others) - lost, kept=True)
    failed = mine[0].failed
    kept = {"trace": trace, "spans": others}
    reason = "the trace's first span failed" if failed else ""
    title = mine[0].name
    return Conversation(threads_of(calls), title, "failed" if failed else "success", reason, remarks.all, kept)


def _told_by_no_other(bare: Sequence[str], whole: Sequence[str], parents: Mapping[str, str]) -> int:
    """Returns how many spans without messages are calls of their own: a framework and the SDK below it may both tell of
    one call, and only one of them with its messages."""
    around = {id for one in whole for id in (one, *enclosing(one, parents))}
    return sum(not (id in around or around.intersection(whole).intersection(enclosing(id, parents))) for id in bare)


def calls_of_agents(spans: Sequence[ImportedSpan], remarks: Remarks) -> list[ObservedCall]:
    """Returns the calls that the spans of agents describe, of a trace whose calls have no spans of their own."""
    calls = [one for span in spans if (one := attempted(partial(_of_agent, span, remarks), remarks)) is not None]
    if calls:
        remarks.add("read from spans of agents: the calls in them have no spans of their own")
    return calls


def without_repeats(
    found: Sequence[tuple[ImportedSpan, ObservedCall]], parents: Mapping[str, str], remarks: Remarks
) -> list[tuple[ImportedSpan, ObservedCall]]:
    """The calls of a trace without those that tell of a call inside them once more: a framework and the SDK below it
    may both be instrumented. ``parents``: of each span of the trace, by their ids."""
    outer = set[str]()
    answers = {span.id: call.answer for span, call in found if span.id}
    for span, call in found:
        for id in enclosing(span.id, parents):
            if id in answers and told_again(answers[id], call.answer) and not call.call.fault:
                outer.add(id)
    if outer:
        remarks.left_out("a span that tells of the call inside it once more", count=len(outer))
    return [(span, call) for span, call in found if span.id not in outer]


def told_again(one: ImportedMessage, other: ImportedMessage) -> bool:
    """Returns whether the answers of two spans, one inside the other, are of the same call. Ids of tools are no part of
    it: not every instrumentation keeps them."""
    return one.text.split() == other.text.split() and [c.name for c in one.calls] == [c.name for c in other.calls]


def enclosing(id: str, parents: Mapping[str, str]) -> Iterator[str]:
    """The ids of the spans that a span is inside of, the nearest first."""
    seen = {id}
    while (id := parents.get(id, "")) and id not in seen:
        seen.add(id)
        yield id


class WholeInputs:
    """Our own spans of long contexts tell what follows the messages that an earlier call began with too: those of that
    call are put before it. Spans are given in the order of their start."""

    def __init__(self) -> None:
        self._given: dict[str, list[Any]] = {}

    def whole(self, span: ImportedSpan) -> ImportedSpan:
        """The span with all messages of its call."""
        names = span.attributes
        place = string(names.get("workbench.place"))
        listed = decoded(names.get(_MESSAGES[0])) if place else None
        if not isinstance(listed, list):
            return span
        if (before := self._given.get(string(names.get("workbench.input.after")))) is not None:
            listed = [*before[: count(names.get("workbench.input.kept")) or 0], *listed]
            span = replace(span, attributes={**names, _MESSAGES[0]: listed})
        self._given[place] = listed
        return span


# -- GenAI -------------------------------------------------------------------------------------------------------------


def gen_ai_call(span: ImportedSpan, remarks: Remarks) -> ObservedCall | None:
    """The model call of a span; None if it has none. Raises Unreadable."""
    names = span.attributes
    if names.get("gen_ai.operation.name") in _NOT_CALLS:
        return None
    told = gen_ai_messages(span)
    elsewhere = _elsewhere(span)
    for reference in elsewhere:
        remarks.left_out("what a span keeps outside the file", reference)
    if not told.given and not told.answers:
        return None
    if not told.given and not elsewhere:
        remarks.left_out("the request of a call, which the file does not hold,", f"span '{span.name[:40]}'")
    extra = tool_schemas(told.tools), {**told.parameters, **_requested(names)}
    call = _gen_ai_call(span, told.usage)
    return _observed(told.given, told.answers, span, call, _gen_ai_model(names), extra, remarks)


def _elsewhere(span: ImportedSpan) -> list[str]:
    """The addresses of what an SDK has put into a store of its own instead of its span (``…_ref`` beside the name of an
    attribute, as the upload hook of OpenTelemetry's utilities writes it).
    """
    told = _told(span)
    return [found[:200] for key in _REFERENCES if (found := string(told.get(key)))]


def _of_agent(span: ImportedSpan, remarks: Remarks) -> ObservedCall | None:
    """The conversation in an agent's span, as its last call; None if it holds none. Raises Unreadable."""
    names = span.attributes
    whole = array(decoded(names.get("pydantic_ai.all_messages") or names.get("all_messages_events")))
    told = gen_ai_messages(span)
    given, answers = (list(whole[:-1]), list(whole[-1:])) if whole else (told.given, told.answers)
    if not given or not answers or not (whole or names.get("gen_ai.operation.name") in _NOT_CALLS):
        return None
    extra = tool_schemas(told.tools), {**told.parameters, **_requested(names)}
    return _observed(given, answers, span, _gen_ai_call(span, told.usage), _gen_ai_model(names), extra, remarks)


def _gen_ai_model(names: Mapping[str, Any]) -> str:
    keys = ("gen_ai.request.model", "gen_ai.response.model", "ai.model.id", "langfuse.observation.model.name")
    return next((found for key in keys if (found := string(names.get(key)))), "")


def _gen_ai_call(span: ImportedSpan, reported: Any) -> Call:
    """``reported``: the usage in a response that the span holds, for what its attributes leave out."""
    names = span.attributes
    usage = {key.removeprefix("gen_ai.usage."): v for key, v in names.items() if key.startswith("gen_ai.usage.")}
    usage["details"] = {key.removeprefix("details."): v for key, v in usage.items() if key.startswith("details.")}
    usage |= {
        "reasoning": usage.get("reasoning.output_tokens"),
        "cache_read": usage.get("cache_read.input_tokens"),
        "cache_creation": usage.get("cache_creation.input_tokens"),
    }
    told = replace(usage_of(usage, beside=False), written_hour=count(names.get("workbench.usage.written_hour")))
    if told.input is None and told.output is None:
        counts = {key.removeprefix("ai.usage."): v for key, v in names.items() if key.startswith("ai.usage.")}
        told = usage_of(counts)
    told = fuller(told, usage_of(reported or _of_provider(names)))
    reasons = decoded(names.get("gen_ai.response.finish_reasons"))
    return Call(
        told,
        number(names.get("workbench.recorded_cost", names.get("workbench.cost", names.get("gen_ai.usage.cost")))),
        string(names.get("gen_ai.response.model")) or string(names.get("gen_ai.request.model")),
        provider_of(string(names.get("gen_ai.provider.name")) or string(names.get("gen_ai.system"))),
        as_text(next(iter(array(reasons)), "")),
        cost_grade="estimate" if names.get("workbench.cost_grade") == "estimate" else "exact",
        recorded=names.get("workbench.recorded") is True,
    )


def _of_provider(names: Mapping[str, Any]) -> Any:
    """The provider's own usage, which Vercel's SDK keeps beside its own: Anthropic's has the cached tokens."""
    told = mapping(decoded(names.get("ai.response.providerMetadata")))
    return next((found for one in map(mapping, told.values()) if (found := mapping(one.get("usage")))), None)


def _requested(names: Mapping[str, Any]) -> dict[str, Any]:
    wanted = ("temperature", "top_p", "top_k", "max_tokens", "seed", "frequency_penalty", "presence_penalty")
    found = {name: names.get(f"gen_ai.request.{name}") for name in wanted}
    found["stop"] = decoded(names.get("gen_ai.request.stop_sequences"))
    found |= mapping(decoded(names.get("workbench.parameters")))
    return {name: value for name, value in found.items() if value is not None}


# -- OpenInference -----------------------------------------------------------------------------------------------------


def _inference(span: ImportedSpan, remarks: Remarks) -> ObservedCall | None:
    llm = mapping(span.nested.get("llm"))
    kind = string(span.attributes.get("openinference.span.kind")).upper()
    bodies = [_unwrapped(one) for one in array(decoded(llm.get("input_messages")))]
    answers = [_unwrapped(one) for one in array(decoded(llm.get("output_messages")))]
    if kind not in ("LLM", ""):
        return None
    told = exchanged(span) if kind and not (bodies and answers) else None
    if told is not None:
        bodies, answers = bodies or told.given, answers or told.answers
    if not (bodies or answers):
        return None
    counts = mapping(llm.get("token_count"))
    inner, outer = mapping(counts.get("prompt_details")), mapping(counts.get("completion_details"))
    usage = {
        "prompt_tokens": count(counts.get("prompt")),
        "completion_tokens": count(counts.get("completion")),
        "cache_read": inner.get("cache_read"),
        "cache_creation": inner.get("cache_write"),
        "reasoning": outer.get("reasoning"),
    }
    model = string(llm.get("model_name"))
    counted = usage_of(usage, beside=False)
    if told is not None:
        counted = fuller(counted, usage_of(told.usage))
    call = Call(
        counted,
        number(mapping(llm.get("cost")).get("total")),
        model,
        string(llm.get("provider")) or string(llm.get("system")),
        string(llm.get("finish_reason")),
    )
    schemas = _schemas(llm)
    parameters = mapping(decoded(llm.get("invocation_parameters")))
    if told is not None:
        schemas = schemas or list(array(told.tools))
        parameters = {**told.parameters, **parameters}
    small = {k: v for k, v in parameters.items() if k not in ("model", "tools", "messages", "system")}
    return _observed(bodies, answers, span, call, model, (tool_schemas(schemas), small), remarks)


def messages_of_attributes(attributes: Mapping[str, Any]) -> list[Any]:
    """The messages in OpenInference's attributes; empty if there are none."""
    nested = nested_of(attributes)
    return [_unwrapped(one) for one in array(decoded(mapping(nested.get("llm")).get("input_messages")))]


def tools_of_attributes(attributes: Mapping[str, Any]) -> list[Any]:
    """The definitions of tools in attributes of a call's span, by the conventions or by Pydantic AI."""
    found = array(decoded(attributes.get("gen_ai.tool.definitions")))
    asked = mapping(decoded(attributes.get("model_request_parameters")))
    return list(found or array(asked.get("function_tools")) or _schemas(mapping(nested_of(attributes).get("llm"))))


def _schemas(llm: Mapping[str, Any]) -> list[Any]:
    """OpenInference's definitions of tools."""
    return [
        mapping(decoded(mapping(mapping(one).get("tool")).get("json_schema")))
        for one in array(decoded(llm.get("tools")))
    ]


def _unwrapped(body: object) -> Any:
    """A message of OpenInference as one of OpenAI's."""
    message = mapping(mapping(body).get("message")) or mapping(body)
    listed = [mapping(one) for one in array(message.get("contents"))]
    if array(message.get("tool_calls")):  # Newer instrumentations repeat each of them among the contents.
        listed = [one for one in listed if not mapping(one.get("tool_call"))]
    inner = [
        {"type": "function", **mapping(one.get("tool_call"))}
        if mapping(one.get("tool_call"))
        else mapping(one.get("message_content"))
        for one in listed
    ]
    shown = [
        {**one, "image_url": mapping(mapping(one.get("image")).get("image"))} if one.get("type") == "image" else one
        for one in inner
    ]
    return {**message, "content": shown} if shown else dict(message)


def _observed(
    bodies: Sequence[Any],
    answers: Sequence[Any],
    span: ImportedSpan,
    call: Call,
    model: str,
    extra: tuple[tuple[Mapping[str, Any], ...], dict[str, Any]],
    remarks: Remarks,
) -> ObservedCall | None:
    given = read_messages(list(bodies), remarks, f"span '{span.name[:40]}', input")
    timed = replace(call, at=span.start, duration_s=duration_between(span.start, span.end))
    told = read_messages([_assistant(one) for one in answers], remarks, f"span '{span.name[:40]}', output")
    last = next((i for i in range(len(told) - 1, -1, -1) if told[i].role == "assistant"), None)
    if last is None:
        failed = string(span.attributes.get("error.type")) or ("the call failed" if span.failed else "")
        fault = ": ".join(filter(None, ("its span holds no answer", failed)))
        return ObservedCall(tuple(given), *unanswered(timed, fault), model, *extra)
    if any(one.role != "assistant" for one in told) or len({one.name for one in told}) > 1:
        # What an agent's span holds before its last answer was said on the way there.
        return ObservedCall((*given, *told[:last]), told[last], timed, model, *extra)
    if len(told) > 1:
        remarks.left_out("a further choice of a response", count=len(told) - 1)
    return ObservedCall(tuple(given), told[0], timed, model, *extra)


def _assistant(body: object) -> Any:
    return {**body, "role": body.get("role") or "assistant"} if isinstance(body, dict) else body
