"""Traces of LangFuse: observations, whose generations hold what went into a model and what came out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.importers.conversation import Call, Conversation, Remarks, Said, Unreadable
from workbench.importers.messages import read_messages, tool_schemas
from workbench.importers.threads import Observed, threads_of
from workbench.importers.usage import usage_of
from workbench.importers.values import array, as_text, decoded, mapping, moment, number, seconds_between, string


def is_langfuse(body: Any) -> bool:
    """Observations with types, beside their trace or inside it."""
    found = _observations(body)
    return bool(found) and any(string(one.get("type")) in ("GENERATION", "SPAN", "EVENT", "AGENT") for one in found)


def _observations(body: Any) -> Sequence[Mapping[str, Any]]:
    outer = mapping(body)
    found = (
        body if isinstance(body, list) else outer.get("observations") or mapping(outer.get("trace")).get("observations")
    )
    return [one for one in array(found) if isinstance(one, dict) and "startTime" in one]


def read_langfuse(body: Any) -> list[Conversation]:
    """The generations of one trace."""
    remarks, calls = Remarks(), list[Observed]()
    observations = _observations(body)
    for one in observations:
        if one.get("type") == "GENERATION" and (observed := _generation(one, remarks)) is not None:
            calls.append(observed)
    if not calls:
        raise Unreadable("a LangFuse trace without generations that hold messages")
    outer = mapping(body)
    trace = mapping(outer.get("trace")) or outer
    kept = {key: trace[key] for key in ("id", "name", "scores", "metadata", "tags", "userId") if trace.get(key)}
    others = [
        {k: v for k, v in one.items() if v is not None} for one in observations if one.get("type") != "GENERATION"
    ]
    if others:
        remarks.add("an observation that is no generation is kept beside the run", len(others))
    title = string(trace.get("name"))
    return [Conversation(threads_of(calls, remarks), title, notes=remarks.notes, kept=kept | {"observations": others})]


def _generation(one: Mapping[str, Any], remarks: Remarks) -> Observed | None:
    where = f"generation '{as_text(one.get('name'))[:40]}'"
    given, answered = decoded(one.get("input")), decoded(one.get("output"))
    said = read_messages([*_system(given, answered), *_input(given)], remarks, f"{where}, input")
    answers = [a for a in read_messages(_output(answered), remarks, f"{where}, output") if a.role == "assistant"]
    if not answers:
        remarks.add("a generation without an answer is left out")
        return None
    start = moment(one.get("startTime"))
    call = Call(
        usage_of(one.get("usageDetails") or one.get("usage")),
        number(mapping(one.get("costDetails")).get("total")),
        string(one.get("model")),
        duration_s=seconds_between(start, moment(one.get("endTime"))),
        at=start,
    )
    parameters = {
        k: v for k, v in mapping(one.get("modelParameters")).items() if k in ("temperature", "top_p", "max_tokens")
    }
    tools = tool_schemas(mapping(given).get("tools") or mapping(mapping(given).get("config")).get("tools"))
    return Observed(
        tuple(said), _whole(answers), call, call.model, tools, {k: v for k, v in parameters.items() if v is not None}
    )


def _whole(answers: Sequence[Said]) -> Said:
    """Calls that came as items of their own are one answer."""
    parts = tuple(part for one in answers for part in one.parts)
    calls = tuple(call for one in answers for call in one.calls)
    extra = {key: value for one in answers for key, value in one.extra.items()}
    return Said("assistant", parts, calls, extra=extra)


def _system(given: Any, answered: Any) -> list[Any]:
    text = (
        mapping(given).get("system")
        or mapping(mapping(given).get("config")).get("system_instruction")
        or mapping(answered).get("instructions")
    )
    return [{"role": "system", "content": text}] if text else []


def _input(given: Any) -> list[Any]:
    outer = mapping(given)
    if isinstance(given, list):
        return [one if isinstance(one, dict) else {"role": "user", "content": as_text(one)} for one in given]
    for key in ("messages", "contents"):
        if isinstance(outer.get(key), list):
            return list(outer[key])
    if "role" in outer:
        return [outer]
    text = outer.get("prompt", given) if outer else given
    if isinstance(text, list):
        return text
    return [{"role": "user", "content": as_text(text)}] if text else []


def _output(answered: Any) -> list[Any]:
    outer = mapping(answered)
    for key in ("output", "choices"):
        if isinstance(outer.get(key), list):
            answered = outer[key]
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
