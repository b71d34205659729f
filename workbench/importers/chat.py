"""Lists of chat messages, OpenAI's and Anthropic's; and one logged request with its response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from workbench.importers.conversation import Call, Conversation, Remarks, Said, Unreadable
from workbench.importers.messages import ROLES, read_message, read_messages, tool_schemas
from workbench.importers.threads import Observed, linear, threads_of
from workbench.importers.usage import usage_of
from workbench.importers.values import array, as_text, decoded, mapping, moment, number, string

_PARAMETERS = (
    "temperature",
    "top_p",
    "max_tokens",
    "max_completion_tokens",
    "reasoning_effort",
    "tool_choice",
    "stop",
    "seed",
    "thinking",
)
_BLOCKS = ("tool_use", "tool_result", "thinking", "redacted_thinking")


def messages_in(body: Any) -> list[Any] | None:
    """The list of messages of a file, where it is one or holds one."""
    found = body if isinstance(body, list) else mapping(body).get("messages")
    if not isinstance(found, list) or not found or not all(isinstance(one, dict) for one in found):
        return None
    known = sum(1 for one in found if string(one.get("role") or one.get("type")).lower() in ROLES)
    return found if known and ("role" in found[0] or "type" in found[0]) else None


def is_openai(body: Any) -> bool:
    """Any list of messages with roles."""
    return messages_in(body) is not None


def is_anthropic(body: Any) -> bool:
    """Messages with Anthropic's content blocks, or its ``system`` beside them."""
    found = messages_in(body)
    if found is None:
        return False
    outer = mapping(body)
    blocks = [mapping(part).get("type") for one in found for part in array(mapping(one).get("content"))]
    beside = outer.get("system") is not None or outer.get("system_prompt") is not None
    return beside or any(kind in _BLOCKS for kind in blocks)


def read_chat(body: Any) -> list[Conversation]:
    """A list of messages, bare or inside an object with the model, tools and system text beside it."""
    remarks, outer = Remarks(), mapping(body)
    bodies = messages_in(body)
    if bodies is None:
        raise Unreadable("it holds no list of messages with roles")
    said = [*_system(outer, remarks), *_with_calls(bodies, outer, remarks)]
    thread = linear(
        said,
        model=string(outer.get("model")),
        tools=tool_schemas(outer.get("tools")),
        parameters={name: outer[name] for name in _PARAMETERS if outer.get(name) is not None},
    )
    kept = {key: value for key, value in outer.items() if key not in ("messages", "tools", "system", "system_prompt")}
    title = string(outer.get("title") or outer.get("sessionId") or outer.get("id"))
    return [Conversation((thread,), title, notes=remarks.notes, kept=kept)]


def _system(outer: Mapping[str, Any], remarks: Remarks) -> list[Said]:
    text = outer.get("system", outer.get("system_prompt"))
    return read_message({"role": "system", "content": text}, remarks) if text else []


def _with_calls(bodies: Sequence[Any], outer: Mapping[str, Any], remarks: Remarks) -> list[Said]:
    """The messages; an answer that carries its own usage, model and time has them as its call."""
    if not any(_says_more(mapping(body)) for body in bodies):
        return read_messages(list(bodies), remarks)
    said: list[Said] = []
    for i, body in enumerate(bodies):
        for one in read_message(body, remarks, f"messages[{i}]"):
            is_call = one.role == "assistant" and _says_more(body)
            said.append(replace(one, call=_call(body, string(outer.get("model")))) if is_call else one)
    return said


def _says_more(body: Mapping[str, Any]) -> bool:
    return any(isinstance(body.get(key), dict) for key in ("usage", "metrics", "usage_metadata", "response_metadata"))


def _call(body: Mapping[str, Any], model: str) -> Call:
    numbers = next(
        (found for key in ("usage", "metrics", "usage_metadata") if (found := mapping(body.get(key)))),
        mapping(mapping(body.get("response_metadata")).get("token_usage")),
    )
    told = mapping(body.get("modelInfo")) or mapping(body.get("response_metadata"))
    return Call(
        usage_of(numbers),
        number(numbers.get("cost")),
        string(body.get("model")) or string(told.get("id")) or string(told.get("model_name")) or model,
        string(told.get("provider")),
        string(body.get("stop_reason")) or string(told.get("finish_reason")),
        at=moment(body.get("ts") or body.get("timestamp") or body.get("created_at")),
    )


def is_log(body: Any) -> bool:
    """A request and its response in one object."""
    outer = mapping(body)
    request, response = _exchange(outer)
    return messages_in(request) is not None and _is_response(response)


def read_log(body: Any) -> list[Conversation]:
    """One model call: the request's messages, then the response's."""
    remarks, outer = Remarks(), mapping(body)
    request, response = _exchange(outer)
    said = [*_system(request, remarks), *read_messages(messages_in(request), remarks, "messages")]
    answer = answer_of(response, remarks)
    kwargs = {**mapping(outer.get("kwargs")), **mapping(request.get("kwargs")), **request}
    at = moment(outer.get("timestamp") or response.get("created"))
    call = Call(
        usage_of(response.get("usage"), beside=response.get("type") == "message"),
        number(outer.get("cost")),
        string(response.get("model")),
        finish_reason=finish_of(response),
        duration_s=number(outer.get("latency_sec")),
        at=at,
    )
    observed = Observed(
        tuple(said),
        answer,
        call,
        string(request.get("model")) or call.model,
        tool_schemas(kwargs.get("tools")),
        {name: kwargs[name] for name in _PARAMETERS if kwargs.get(name) is not None},
    )
    kept = {key: value for key, value in outer.items() if key not in ("messages", "tools", "request", "response")}
    return [Conversation(threads_of([observed], remarks), notes=remarks.notes, kept=kept)]


def _exchange(outer: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    request = mapping(decoded(outer.get("request"))) or outer
    return request, mapping(decoded(outer.get("response")))


def _is_response(response: Mapping[str, Any]) -> bool:
    return bool(array(response.get("choices"))) or response.get("role") == "assistant"


def answer_of(response: Mapping[str, Any], remarks: Remarks) -> Said:
    """The answer in a response of chat completions or of Anthropic. Raises Unreadable."""
    choices = array(response.get("choices"))
    if len(choices) > 1:
        remarks.add("further choices of a response are left out", len(choices) - 1)
    body = mapping(mapping(choices[0]).get("message")) if choices else response
    found = [one for one in read_message({"role": "assistant", **body}, remarks, "response") if one.role == "assistant"]
    if not found:
        raise Unreadable("the response holds no answer")
    return found[-1]


def finish_of(response: Mapping[str, Any]) -> str:
    """Why the answer ended, as the provider says."""
    choices = array(response.get("choices"))
    reason = mapping(choices[0]).get("finish_reason") if choices else response.get("stop_reason")
    return as_text(reason)
