"""Lists of chat messages: OpenAI's, Anthropic's, LangChain's, ShareGPT's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from workbench.importers.conversation import Call, Conversation, ImportedMessage, Remarks, Unreadable
from workbench.importers.exchanges import PARAMETERS, marked_beside, system_said
from workbench.importers.formats.chat_exports import OTHER_BRANCHES, plain_chat
from workbench.importers.messages import ROLES, joined, plain_message, read_message, read_messages, tool_schemas
from workbench.importers.parts import parts_of
from workbench.importers.threads import linear
from workbench.importers.usage import usage_of
from workbench.importers.values import array, as_text, decoded, mapping, moment, number, string

# Results of tau-bench: OpenAI messages with a task and a reward around them.


def is_tau_bench(body: Any) -> bool:
    """One result, or a list of them."""
    results = _results(body)
    return bool(results) and all(isinstance(mapping(one).get(_key(one)), list) for one in results)


def _results(body: Any) -> list[Any]:
    """Results of the first version, or simulations of the second."""
    if isinstance(body, list):
        return body
    return list(array(mapping(body).get("simulations"))) or [body]


def _key(result: Any) -> str:
    return "messages" if "reward_info" in mapping(result) else "traj"


def read_tau_bench(body: Any) -> list[Conversation]:
    """A conversation for each result."""
    return [_result(mapping(one)) for one in _results(body)]


def _result(body: Any) -> Conversation:
    remarks = Remarks()
    key = _key(body)
    if not array(body.get(key)):
        raise Unreadable(f"its {key!r} is empty")
    said = read_turns({"messages": body[key]}, remarks)
    reward = number(body.get("reward", mapping(body.get("reward_info")).get("reward")))
    kept = {name: value for name, value in body.items() if name != key}
    title = f"task {as_text(body.get('task_id'))[:40]} trial {as_text(body.get('trial'))[:40]}"
    failed = reward is not None and reward < 1
    reason = f"reward {reward:g}" if failed else ""
    return Conversation((linear(said),), title, "failed" if failed else "success", reason, remarks.all, kept)


_BLOCKS = ("tool_use", "tool_result", "thinking", "redacted_thinking")
_SYSTEMS = ("system", "system_prompt", "systemPrompt", "systemInstruction", "system_instruction")
_NUMBERS = ("usage", "models_usage", "metrics", "usage_metadata", "usageMetadata")
_TIMES = ("ts", "timestamp", "created_at", "createdAt")
_SAID = ("content", "parts", "tool_calls", "refusal")
_LISTS = ("messages", "contents", "conversations", "conversation", "chat_history", "history", "trajectory", "items")
"""Names under which a file may hold its messages. Under names other than "messages", every element has to
be a message.
"""


def messages_in(body: Any) -> list[Any] | None:
    """The list of messages of a file that is one or holds one."""
    if isinstance(body, list):
        return _bodies(body, strict=False)
    outer = plain_chat(mapping(body))
    return _bodies(outer.get(_key_of(outer)), strict=False)


def _key_of(outer: Mapping[str, Any]) -> str:
    """The name under which an object holds its messages; empty if it holds none."""
    return next((key for key in _LISTS if _bodies(outer.get(key), strict=key != "messages")), "")


def _bodies(found: Any, *, strict: bool) -> list[Any] | None:
    found = decoded(found)
    if not isinstance(found, list) or not found or not all(isinstance(one, dict) for one in found):
        return None
    if all(one.get("object") == "thread.message" for one in found):  # OpenAI's Assistants list the newest first.
        found = sorted(found, key=lambda one: number(one.get("created_at")) or 0)
    if all("from" in one and "value" in one for one in found):
        return [_shared(one) for one in found]
    plain = [plain_message(one) for one in found]
    known = sum(1 for one in plain if _is_message(one))
    if not known or (strict and known < len(found)):
        return None
    return found if any(key in plain[0] for key in ("role", "type")) else None


def _is_message(one: Mapping[str, Any]) -> bool:
    """Returns whether it names its speaker and its content; many lists have elements with types such as ``user``."""
    role = "role" in one or any(key in one for key in _SAID)
    return role and string(one.get("role") or one.get("type")).lower() in ROLES


def _shared(one: Mapping[str, Any]) -> dict[str, Any]:
    """A turn in ShareGPT's form, with its speaker, as a message."""
    role, value = string(one.get("from")).lower(), one.get("value")
    if role not in ("function_call", "tool_call"):
        return {"role": role, "content": value}
    calls = [found for one in parts_of(decoded(value)) if (found := mapping(decoded(one)))]
    return {"role": "assistant", "tool_calls": calls} if calls else {"role": "assistant", "content": value}


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
    remarks, outer = Remarks(), plain_chat(mapping(body))
    if messages_in(outer or body) is None:
        raise Unreadable("it holds no list of messages with roles")
    if beside := outer.get(OTHER_BRANCHES):
        remarks.left_out("a message of a branch that is not the one shown", count=beside)
    thread = linear(
        read_turns(outer or {"messages": body}, remarks),
        model=string(outer.get("model")),
        tools=tool_schemas(outer.get("tools") or outer.get("functions")),
        marked=marked_beside(outer),
        parameters={name: outer[name] for name in PARAMETERS if outer.get(name) is not None},
    )
    taken = ("tools", "functions", *_SYSTEMS, _key_of(outer), OTHER_BRANCHES)
    kept = {key: value for key, value in outer.items() if key not in taken}
    keys = ("title", "sessionId", "session_id", "instance_id", "id")
    title = next((as_text(outer[key]) for key in keys if isinstance(outer.get(key), str | int)), "")
    return [Conversation((thread,), title, remarks=remarks.all, kept=kept)]


def read_turns(outer: Mapping[str, Any], remarks: Remarks) -> list[ImportedMessage]:
    """The messages of an object, with what each answer says of its call. Raises Unreadable."""
    return [*_system(outer, remarks), *_with_calls(messages_in(outer) or [], outer, remarks)]


def _system(outer: Mapping[str, Any], remarks: Remarks) -> list[ImportedMessage]:
    text = next((found for key in _SYSTEMS if (found := outer.get(key))), None)
    return system_said(text, remarks)


def _with_calls(bodies: Sequence[Any], outer: Mapping[str, Any], remarks: Remarks) -> list[ImportedMessage]:
    """The messages; an answer that carries its own usage, model and time has them as its call."""
    if not any(_says_more(plain_message(body)) for body in bodies):
        return read_messages(list(bodies), remarks)
    said: list[ImportedMessage] = []
    for i, wrapped in enumerate(bodies):
        body = plain_message(wrapped)
        for one in read_message(body, remarks, f"messages[{i}]"):
            is_call = one.role == "assistant" and _says_more(body)
            said.append(replace(one, call=_call(body, string(outer.get("model")))) if is_call else one)
    return joined(said)


def _says_more(body: Mapping[str, Any]) -> bool:
    """Returns whether a message says of the call that made it what counts, which model, or when."""
    numbers = any(isinstance(body.get(key), dict) for key in (*_NUMBERS, "response_metadata")) or bool(_meta(body))
    return numbers or any(body.get(key) for key in ("model", *_TIMES))


def _meta(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """What Haystack keeps beside an answer; empty for what others call so."""
    found = mapping(body.get("meta")) or mapping(body.get("_meta"))
    return found if "model" in found or "usage" in found else {}


def _call(body: Mapping[str, Any], model: str) -> Call:
    outside = mapping(body.get("response_metadata")) or _meta(body)
    listed = [*(body.get(key) for key in _NUMBERS), *(outside.get(key) for key in ("token_usage", "usage"))]
    numbers = next((found for one in listed if (found := mapping(one))), {})
    cost = numbers.get("cost", body.get("cost"))
    told = mapping(body.get("modelInfo")) or outside
    millis = number(body.get("durationMs"))
    return Call(
        usage_of(numbers),
        number(mapping(cost).get("total", cost)),
        string(body.get("model"))
        or string(told.get("id"))
        or string(told.get("model_name"))
        or string(told.get("model"))
        or model,
        string(told.get("provider")),
        string(body.get("stop_reason")) or string(told.get("finish_reason")),
        millis / 1000 if millis else None,
        at=moment(next((body[key] for key in _TIMES if body.get(key)), None)),
        answer_id=string(body.get("id")),
    )
