"""Traces of LangFuse: observations, whose generations hold the input and output of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from workbench.importers.conversation import Call, Conversation, Remarks, Unreadable
from workbench.importers.exchanges import finish_of, parameters_of, whole
from workbench.importers.formats.otel import messages_of_attributes, tools_of_attributes
from workbench.importers.messages import read_messages, tool_schemas
from workbench.importers.threads import ObservedCall, attempted, threads_of, unanswered
from workbench.importers.usage import usage_of
from workbench.importers.values import array, as_text, decoded, duration_between, mapping, moment, number, string


def is_langfuse(body: Any) -> bool:
    """Observations with types, beside their trace or inside it."""
    found = _observations(body)
    told = set(map(_kind, found))
    # Opik, whose spans have times of the same names, tells tools from "llm" and "general".
    return bool(told & {"GENERATION", "SPAN", "EVENT", "AGENT", "TOOL", "CHAIN"}) and not told & {"LLM", "GENERAL"}


def _observations(body: Any) -> Sequence[Mapping[str, Any]]:
    outer = mapping(body)
    found = (
        body if isinstance(body, list) else outer.get("observations") or mapping(outer.get("trace")).get("observations")
    )
    return [one for one in array(found) if isinstance(one, dict) and _start(one) is not None]


def _start(observation: Mapping[str, Any]) -> Any:
    return observation.get("startTime", observation.get("start_time"))


def read_langfuse(body: Any) -> list[Conversation]:
    """The generations of each trace."""
    outer = mapping(body)
    return read_observations(_observations(body), mapping(outer.get("trace")) or outer)


def read_observations(observations: Sequence[Mapping[str, Any]], trace: Mapping[str, Any]) -> list[Conversation]:
    """The generations of each trace. ``trace``: what the file says of the trace. Raises Unreadable."""
    traces = dict.fromkeys(_trace_id(one) for one in observations)
    found = [one for name in traces if (one := _trace(trace, [o for o in observations if _trace_id(o) == name]))]
    if not found:
        raise Unreadable(f"none of its {len(observations)} spans is a model call with its messages")
    return found


def _trace_id(observation: Mapping[str, Any]) -> str:
    return string(observation.get("traceId") or observation.get("trace_id"))


def _trace(trace: Mapping[str, Any], observations: Sequence[Mapping[str, Any]]) -> Conversation | None:
    remarks, calls = Remarks(), list[ObservedCall]()
    for one in observations:
        if _kind(one) == "GENERATION" and (observed := attempted(partial(_generation, one, remarks), remarks)):
            calls.append(observed)
    if not calls:
        return None
    kept = {key: trace[key] for key in ("id", "name", "scores", "metadata", "tags", "userId") if trace.get(key)}
    others = [{k: v for k, v in one.items() if v is not None} for one in observations if _kind(one) != "GENERATION"]
    if others:
        remarks.left_out("a span that is not a model call", count=len(others), kept=True)
    title = string(trace.get("name")) or string(mapping(observations[0]).get("traceName"))
    return Conversation(threads_of(calls), title, remarks=remarks.all, kept=kept | {"observations": others})


def _kind(observation: Mapping[str, Any]) -> str:
    return string(observation.get("type")).upper()


def is_expected(body: Any) -> bool:
    """Messages by observation, each input and output with whether it could be read: LangFuse's test cases."""
    found = list(mapping(body).values())
    return bool(found) and all("success" in mapping(mapping(one).get("output")) for one in found)


def read_expected(body: Any) -> list[Conversation]:
    """The observations whose input and output were both read."""
    remarks, calls = Remarks(), list[ObservedCall]()
    for name, one in mapping(body).items():
        if (observed := attempted(partial(_expected, name, mapping(one), remarks), remarks)) is not None:
            calls.append(observed)
    if not calls:
        raise Unreadable(f"none of its {len(mapping(body))} observations has both an input and an answer")
    return [Conversation(threads_of(calls), remarks=remarks.all)]


def _expected(name: str, one: Mapping[str, Any], remarks: Remarks) -> ObservedCall | None:
    """An observation as a call. Raises Unreadable."""
    given, answered = (array(mapping(one.get(side)).get("data")) for side in ("input", "output"))
    bodies = [_called({"role": "assistant", **body}) for body in map(mapping, answered)]
    said = [a for a in read_messages(bodies, remarks, f"{name}, output") if a.role == "assistant"]
    if not given:
        remarks.left_out("an observation without its input", name[:40])
        return None
    shown, defined = _without_tools([_called(body) for body in given])
    tools = next((found for body in map(mapping, given) if (found := body.get("tools"))), defined)
    asked = read_messages(shown, remarks, f"{name}, input")
    if not said:
        return ObservedCall(
            tuple(asked), *unanswered(Call(), "its observation holds no answer"), tools=tool_schemas(tools)
        )
    return ObservedCall(tuple(asked), whole(said), Call(), tools=tool_schemas(tools))


def _generation(one: Mapping[str, Any], remarks: Remarks) -> ObservedCall | None:
    where = f"generation '{as_text(one.get('name'))[:40]}'"
    given, answered = decoded(one.get("input")), decoded(one.get("output"))
    attributes = mapping(mapping(decoded(one.get("metadata"))).get("attributes"))
    shown, defined = _without_tools(_with_system(list(map(_called, _input(given))), given, answered))
    if not any(isinstance(body, dict) for body in array(mapping(given).get("messages")) or [{}]):
        shown = messages_of_attributes(attributes) or shown  # texts of objects, whose messages the span tells
    said = read_messages(shown, remarks, f"{where}, input")
    answers = [
        a
        for a in read_messages([_called(body) for body in _output(answered)], remarks, f"{where}, output")
        if a.role == "assistant"
    ]
    start = moment(_start(one))
    costs = decoded(one.get("costDetails") or one.get("cost_details"))
    paid = (mapping(costs).get("total"), one.get("calculatedTotalCost"), one.get("totalCost"))
    call = Call(
        usage_of(decoded(one.get("usageDetails") or one.get("usage_details") or one.get("usage"))),
        next((found for cost in paid if (found := number(cost)) is not None), None),
        string(one.get("model") or one.get("provided_model_name")),
        string(one.get("provider")),
        finish_of(mapping(answered)),
        duration_between(start, moment(one.get("endTime") or one.get("end_time"))) or number(one.get("seconds")),
        start,
    )
    listed = (
        mapping(given).get("tools"),
        mapping(mapping(given).get("config")).get("tools"),
        defined,
        mapping(answered).get("tools"),
        tools_of_attributes(attributes),
    )
    tools = tool_schemas(next((found for found in listed if found), None))
    stated = mapping(decoded(one.get("modelParameters")))
    known = parameters_of({name: value for name, value in stated.items() if value != "null"})
    if len(choices := array(mapping(answered).get("choices")) or array(mapping(answered).get("candidates"))) > 1:
        remarks.left_out("a further choice of a response", where, count=len(choices) - 1)
    if not answers:
        fault = as_text(one.get("statusMessage") or one.get("status_message"))[:500] or "its generation holds no answer"
        return ObservedCall(tuple(said), *unanswered(call, fault), call.model, tools, known) if said else None
    unstated = "messages that the provider keeps" if mapping(given).get("previous_response_id") else ""
    return ObservedCall(tuple(said), whole(answers), call, call.model, tools, known, unstated)


def _without_tools(bodies: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The messages, and apart from them the definitions of tools that LangChain's tracing puts among them."""
    defined = [mapping(one).get("content") for one in bodies if _is_definition(mapping(one))]
    return [one for one in bodies if not _is_definition(mapping(one))], defined


def _called(body: Any) -> Any:
    """A message whose content is a list of calls, read as an answer, whatever its role (Koog writes such)."""
    calls = array(decoded(mapping(body).get("content")))
    if not calls or not all("arguments" in mapping(mapping(one).get("function")) for one in calls):
        return body
    return {**body, "role": "assistant", "content": None, "tool_calls": list(calls)}


def _is_definition(body: Mapping[str, Any]) -> bool:
    function = mapping(mapping(decoded(body.get("content"))).get("function"))
    return body.get("role") == "tool" and not body.get("tool_call_id") and "parameters" in function


def _with_system(said: list[Any], given: Any, answered: Any) -> list[Any]:
    """The messages, with the system text that stands beside them in the input or in the response."""
    text = (
        mapping(given).get("system")
        or mapping(mapping(given).get("config")).get("system_instruction")
        or mapping(answered).get("instructions")
    )
    has_one = mapping(next(iter(said), None)).get("role") in ("system", "developer")
    return [{"role": "system", "content": text}, *said] if text and not has_one else said


def _input(given: Any) -> list[Any]:
    outer = mapping(given)
    if isinstance(given, list):
        return [one if isinstance(one, dict) else {"role": "user", "content": as_text(one)} for one in given]
    for key in ("messages", "contents"):
        if isinstance(outer.get(key), list):
            return list(outer[key])
    if "role" in outer:
        return [outer]
    text = outer.get("prompt", outer.get("contents", given)) if outer else given
    if isinstance(text, list):
        return text
    return [{"role": "user", "content": as_text(text)}] if text else []


def _output(answered: Any) -> list[Any]:
    outer = mapping(answered)
    if choices := array(outer.get("choices")) or array(outer.get("candidates")):
        answered = choices[:1]
    elif isinstance(outer.get("output"), list):
        answered = outer["output"]
    found = answered if isinstance(answered, list) else [answered] if answered else []
    bodies: list[Any] = []
    for one in found:
        body = mapping(one)
        body = mapping(body.get("message")) or body
        if "toolName" in body:
            bodies.append({"role": "assistant", "content": [body]})
        elif "role" in body or body.get("type") in ("function_call", "reasoning"):
            bodies.append(body)
        elif "content" in body:
            inner = body["content"]
            bodies.append({"role": "assistant", "content": inner})
        elif "text" in body:
            bodies.append({"role": "assistant", "content": body["text"]})
        else:
            bodies.append({"role": "assistant", "content": as_text(one)})
    return bodies
