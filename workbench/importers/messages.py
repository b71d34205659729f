"""One message in any of the shapes in use: OpenAI chat and responses, Anthropic blocks, Gemini parts, OTel parts,
LangChain; read into ``ImportedMessage``."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from workbench.context.marks import PARAMETER
from workbench.context.message import STAND_INS, Role, ToolCall
from workbench.importers.conversation import ImportedMessage, Picture, Remarks, Unreadable
from workbench.importers.parts import (
    CALL_EXTRA,
    REASONING,
    SIGNATURE,
    file_of,
    is_call,
    is_mark,
    is_result,
    mark_of,
    part_call,
    parts_of,
    picture_of,
    plain_part,
    reference_of,
    result_id,
    result_value,
    tool_call,
)
from workbench.importers.values import array, as_text, decoded, mapping, string

# Items of OpenAI's responses that are no messages: calls, outputs, reasoning, and what the provider ran itself.


def is_item(body: Mapping[str, Any]) -> bool:
    """Returns whether it is a piece of a response's output: an item that is no message, or a message of output
    texts."""
    content = body.get("content")
    if "role" in body or not body.get("type"):
        return isinstance(content, list) and any(mapping(part).get("type") == "output_text" for part in content)
    return response_item(body, Remarks()) is not None


def response_item(body: Mapping[str, Any], remarks: Remarks) -> ImportedMessage | None:
    """The item as a message; None if it already is a message, or its type is unknown."""
    kind = string(body.get("type"))
    if "role" in body or not kind:
        return None
    if kind == "reasoning":
        return ImportedMessage("assistant", extra={"reasoning": [dict(body)]})
    call_id = string(body.get("call_id")) or string(body.get("id"))
    if kind in ("function_call", "custom_tool_call") or (kind.endswith("_call") and "call_id" in body):
        name = string(body.get("name")) or kind.removesuffix("_call")
        arguments = next((body[key] for key in ("arguments", "input", "action") if body.get(key) is not None), None)
        return ImportedMessage("assistant", calls=(tool_call(name, arguments, call_id),))
    if kind.endswith("_output") and "call_id" in body:
        value = next((body[key] for key in ("output", "tools", "result") if body.get(key) is not None), "")
        parts = _parts(value, remarks)
        failed = body.get("status") in ("failed", "incomplete") or body.get("is_error") is True
        return ImportedMessage("tool", parts, call_id=call_id, name=string(body.get("name")), is_error=failed)
    if kind.endswith(("_call", "_list_tools", "_approval_request")) or kind in ("item_reference", "compaction"):
        remarks.add(f"an item of type {kind[:40]!r}, which the provider ran or keeps, stands as JSON text")
        return ImportedMessage("assistant", (as_text({k: v for k, v in body.items() if k != "encrypted_content"}),))
    return None


def _parts(value: Any, remarks: Remarks) -> tuple[str | Picture, ...]:
    """Returns the parts of a call's result: text, or texts, images and files; anything else as JSON."""
    if not isinstance(value, list) or not all("type" in mapping(one) for one in value):
        return (as_text(value),)
    pieces = _Pieces()
    _read_content(value, pieces, remarks)
    return tuple(pieces.parts)


ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
    "environment": "user",
    "exit": "user",
    "gpt": "assistant",
    "chatbot": "assistant",
    "agent": "assistant",
    "observation": "tool",
    "tool_result": "tool",
    "toolresult": "tool",
    "tool_response": "tool",
    "systemmessage": "system",
    "usermessage": "user",
    "assistantmessage": "assistant",
    "functionexecutionresultmessage": "tool",
    "toolcallrequestevent": "assistant",
    "toolcallexecutionevent": "tool",
}
"""Roles by the names in use."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Valid names of speakers at OpenAI."""
_NOT_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_TEXTS = ("", "text", "input_text", "output_text", "refusal", "text-delta", "Text")


class _Pieces(Struct):
    """The content of the parts of one message."""

    parts: list[str | Picture] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    results: list[ImportedMessage] = field(default_factory=list)
    reasoning: list[Any] = field(default_factory=list)
    thought: str = ""
    """Reasoning that stood beside the content, as this program exports it."""
    mark: str = ""
    """Of the last part that is marked for the cache."""
    signature: str = ""
    """Of the last text that has one."""


def read_messages(bodies: object, remarks: Remarks, where: str = "messages") -> list[ImportedMessage]:
    """All messages of a list. Raises Unreadable, which names the message."""
    if not isinstance(bodies, list):
        raise Unreadable(f"{where} is not a list of messages")
    said: list[ImportedMessage] = []
    items: set[int] = set()
    called: set[str] = set()
    speakers = _speakers(bodies)
    for i, body in enumerate(bodies):
        if isinstance(body, dict) and isinstance(role := body.get("role"), str) and role in called:
            body = {**body, "role": "tool", "name": role}  # LangChain's tracing puts the tool's name there
        elif isinstance(body, dict) and string(body.get("role")) in speakers:
            remarks.add(f"the role {body['role'][:40]!r} names an agent, whose messages are read as answers")
            body = {**body, "role": "assistant", "name": _NOT_NAME.sub("_", body["role"]).strip("_")[:64]}
        found = read_message(body, remarks, f"{where}[{i}]")
        called |= {call.name for one in found for call in one.calls if call.name.lower() not in ROLES}
        if is_item(mapping(body)):
            items |= set(range(len(said), len(said) + len(found)))
        said += found
    return joined(said, items)


def _speakers(bodies: Sequence[object]) -> set[str]:
    """The roles that are names of agents, as logs of teams of agents write them (Magentic-One's): those of a list in
    which several roles are unknown, or no role is a model's."""
    roles = {string(body.get("role")) for body in map(mapping, bodies) if string(body.get("content"))}
    known = {ROLES[role.lower()] for role in roles if role.lower() in ROLES}
    named = {one for one in roles if one and one.lower() not in ROLES}
    return named if "user" in known and ("assistant" not in known or len(named) > 1) else set()


def read_message(body: object, remarks: Remarks, where: str = "message") -> list[ImportedMessage]:
    """A message, or several if it holds tool results. Raises Unreadable."""
    if not isinstance(body, dict):
        raise Unreadable(f"{where} is not a message: expected an object with a role")
    body = plain_message(body)
    if (item := response_item(body, remarks)) is not None:
        return [item]
    if body.get("role") == "assistant" and any(map(_ui_call, array(body.get("parts")))):
        return [one for step in _ui_steps(body) for one in read_message(step, remarks, where)]
    role = ROLES.get(string(body.get("role") or body.get("type")).lower())
    if role is None:
        told = as_text(body.get("role") or body.get("type"))[:40]
        if not (string(body.get("role")) and string(body.get("content"))):
            raise Unreadable(f"{where} has no role that is known: {told!r}")
        remarks.add(f"a message of the role {told!r} is read as a user's")
        role = "user"
    pieces = _Pieces()
    content = next(
        (found for key in ("content", "parts", "refusal", "text") if (found := body.get(key)) is not None), None
    )
    _read_content(content, pieces, remarks)
    _read_beside(body, pieces, remarks)
    known = {call.id for call in pieces.calls if call.id}  # LangChain repeats the calls of Anthropic's blocks
    pieces.calls += [call for call in _native_calls(body, remarks) if call.id not in known]
    extra: dict[str, Any] = {}
    if reasoning := [*array(body.get("thinking_blocks")), *array(body.get("reasoning")), *pieces.reasoning]:
        extra["reasoning"] = reasoning
    if details := array(body.get("reasoning_details")):  # As gateways give it and take it back.
        extra["reasoning_details"] = list(details)
    thoughts = (string(body.get(name)) for name in ("reasoning_content", "reasoning", "thinking"))  # at last Ollama's
    if text := next(filter(None, thoughts), "") or pieces.thought:
        extra["reasoning_content"] = text
    if pieces.signature:
        extra[SIGNATURE] = pieces.signature
    said = list(pieces.results)
    if len(said) == 1 and not said[0].call_id:
        said = [replace(said[0], call_id=_call_id(body), name=said[0].name or string(body.get("name")))]
    if not said or pieces.parts or pieces.calls:
        said.append(_message(body, role, pieces, extra))
    return said


def _read_beside(body: Mapping[str, Any], pieces: _Pieces, remarks: Remarks) -> None:
    """What stands beside the content of a message: images as Ollama has them, sound of an answer, attachments."""
    for one in array(body.get("images")):
        shown = {"type": "image_url", "image_url": {"url": one}} if string(one)[:5] in ("https", "http:") else one
        _read_content([{"type": "image", "data": shown} if isinstance(shown, str) else shown], pieces, remarks)
    if sound := mapping(body.get("audio")):
        remarks.left_out("the sound of an answer", as_text(sound.get("id"))[:40])
        if not pieces.parts and (said := string(sound.get("transcript"))):
            pieces.parts.append(said)
    for one in (item for key in _ATTACHED for item in array(body.get(key))):
        name = next(
            (text for key in ("name", "filename", "file_id", "id", "url") if (text := string(mapping(one).get(key)))),
            "",
        )
        remarks.left_out("an attachment beside the content of a message", (name or as_text(one))[:60])


_ATTACHED = ("attachments", "experimental_attachments", "files")
"""Fields in which OpenAI's threads, Vercel's AI SDK and chat servers have files of a message."""


# Vercel's AI SDK keeps all steps of an answer in one message for its interface, a tool's call and result in one part.


def _ui_call(part: object) -> Mapping[str, Any]:
    """The call and result of a part; empty for a part of another kind."""
    body = mapping(part)
    kind = string(body.get("type"))
    if kind == "tool-invocation":  # Up to version 4.
        inner = mapping(body.get("toolInvocation"))
        named = {"input": inner.get("args"), "output": inner.get("result")}
        return {**inner, **named} if "toolCallId" in inner else {}
    if "toolCallId" not in body or "state" not in body or not (kind == "dynamic-tool" or kind.startswith("tool-")):
        return {}
    return {**body, "toolName": string(body.get("toolName")) or kind.removeprefix("tool-")}


def _ui_steps(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The answers and results of such a message, as the model saw them: an answer ends where a step begins, and before
    what follows a tool's call."""
    parts: list[Any] = []
    calls: list[Mapping[str, Any]] = []
    about = {key: value for key, value in body.items() if key not in ("parts", "content")}
    for part in [*array(body.get("parts")), {"type": "step-start"}]:
        call = _ui_call(part)
        if call:
            calls.append(call)
        elif calls or (mapping(part).get("type") == "step-start" and parts):
            asked = [{"id": one["toolCallId"], "name": one["toolName"], "arguments": one.get("input")} for one in calls]
            yield {**about, "content": parts, "tool_calls": asked}
            for one in calls:
                failed = one.get("state") == "output-error"
                result = one.get("errorText") if failed else one.get("output")
                if result is not None:
                    told = {"tool_call_id": one["toolCallId"], "name": one["toolName"], "is_error": failed}
                    yield {"role": "tool", "content": as_text(result), **told}
            parts, calls = [], []
        if not call and mapping(part).get("type") != "step-start":
            parts.append(part)


def plain_message(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message out of the wrapping that LangChain and others put around it."""
    inner = mapping(body.get("kwargs")) if body.get("type") == "constructor" else mapping(body.get("data"))
    if body.get("type") == "constructor" and inner:
        name = as_text(next(reversed(array(body.get("id"))), "")).removesuffix("Chunk").removesuffix("Message")
        return {**inner, "type": inner.get("type") or name.lower()}
    if inner and "content" in inner and "content" not in body:
        return {**inner, "type": body.get("type"), "role": body.get("role")}
    if "role" not in body and "role" in mapping(body.get("message")):
        return mapping(body["message"])
    if "role" not in body and ("Items" in body or "Contents" in body):
        body = {name[:1].lower() + name[1:]: value for name, value in body.items()}  # Semantic Kernel's in C#
    items = [mapping(one) for name in ("items", "contents") for one in array(body.get(name))]
    if "content" not in body and any("$type" in one or "content_type" in one for one in items):
        return _of_kernel(body)
    if body.get("type") in ("TextMessage", "MultiModalMessage", "StopMessage") and "source" in body:
        return {**body, "role": "user" if body["source"] == "user" else "assistant"}  # AutoGen's agents by their names
    return body


def _of_kernel(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message of Semantic Kernel or of Microsoft's Agent Framework: its content is a list of items."""
    role = body.get("role")
    told = {**body, "role": mapping(role).get("label", mapping(role).get("Label", role))}
    details = mapping(body.get("metadata"))
    usage = mapping(details.get("Usage") or details.get("usage"))
    model = body.get("modelId") or body.get("ai_model_id")
    told["content"] = body.get("items") or body.get("contents")
    named = _NOT_NAME.sub("_", string(body.get("authorName")) or string(body.get("name"))).strip("_")[:64]
    counts = {"usage": {name[:1].lower() + name[1:]: value for name, value in usage.items()}} if usage else {}
    return {**told, **counts, **({"model": model} if model else {}), **({"name": named} if named else {})}


def _message(body: Mapping[str, Any], role: Role, pieces: _Pieces, extra: Mapping[str, Any]) -> ImportedMessage:
    call_id, error = _call_id(body), body.get("error")
    if role == "tool" and error and not "".join(p for p in pieces.parts if isinstance(p, str)).strip():
        pieces.parts = [as_text(mapping(error).get("message", error))]
    return ImportedMessage(
        role,
        tuple(pieces.parts),
        tuple(pieces.calls),
        call_id if role == "tool" else "",
        _name(body, role),
        bool(error) or body.get("status") == "error" or body.get("is_error") is True,
        extra,
        mark=pieces.mark or mark_of(body),
    )


def _name(body: Mapping[str, Any], role: Role) -> str:
    """The name of a tool, or the name beside the role of another message."""
    name = string(body.get("name"))
    if role == "tool":
        return name or string(body.get("function") or body.get("toolName"))
    return name if "role" in body and _NAME.fullmatch(name) else ""


def _call_id(body: Mapping[str, Any]) -> str:
    found = next((body[key] for key in ("tool_call_id", "toolCallId") if body.get(key) is not None), None)
    return as_text(found) or next(map(as_text, array(body.get("tool_call_ids"))), "") or as_text(body.get("id"))


def tool_schemas(bodies: object) -> tuple[Mapping[str, Any], ...]:
    """Tool definitions in OpenAI form, from that form, Anthropic's, Gemini's, Bedrock's or a bare function's.

    One that is marked for the cache has ``cache_control``, which ``unmarked`` takes off.
    """
    found: list[Mapping[str, Any]] = []
    for body in map(decoded, array(decoded(bodies))):
        one = mapping(body)
        if is_mark(one) and found:  # Bedrock's stands behind the tool.
            found[-1] = {**found[-1], PARAMETER: {"ttl": mark_of(one)}}
            continue
        declared = array(one.get("function_declarations")) or array(one.get("functionDeclarations"))
        for function in map(mapping, declared or [mapping(one.get("function")) or mapping(one.get("toolSpec")) or one]):
            if not string(function.get("name")):
                continue
            schema = next((decoded(function[key]) for key in _SCHEMAS if function.get(key)), None)
            schema = _without_nulls(mapping(schema).get("json") or schema or {"type": "object", "properties": {}})
            described = {"name": function["name"], "description": as_text(function.get("description"))}
            ttl = mark_of(one) or mark_of(function)
            mark = {PARAMETER: {"ttl": ttl}} if ttl else {}
            found.append({"type": "function", "function": described | {"parameters": schema}, **mark})
    return tuple(found)


_SCHEMAS = (
    *("parameters", "input_schema", "inputSchema", "params_json_schema", "paramsJsonSchema"),
    *("parametersJsonSchema", "parameters_json_schema"),
)
"""Names under which providers and tools keep the JSON Schema of a function's arguments."""


def _without_nulls(schema: Any) -> Any:
    """A schema without nulls: some tools write every field that it could have."""
    if isinstance(schema, dict):
        return {key: _without_nulls(value) for key, value in schema.items() if value is not None}
    return [_without_nulls(one) for one in schema] if isinstance(schema, list) else schema


def _native_calls(body: Mapping[str, Any], remarks: Remarks) -> list[ToolCall]:
    calls: list[ToolCall] = []
    nested = mapping(body.get("additional_kwargs"))
    listed = decoded(body.get("tool_calls") or body.get("toolCalls")) or nested.get("tool_calls")
    for one in map(mapping, array(listed)):
        one = mapping(one.get("tool_call")) or one
        function = one.get("function")
        inner = mapping(function) or mapping(one.get("custom"))
        name = inner.get("name") or (function if isinstance(function, str) else one.get("name") or one.get("toolName"))
        keys = ("arguments", "args", "input", "parameters")
        arguments = next((outer[key] for outer in (inner, one) for key in keys if key in outer), None)
        if string(name):
            kept = {key: one[key] for key in CALL_EXTRA if one.get(key)}
            call_id = one.get("id") or one.get("call_id") or one.get("toolCallId") or ""
            calls.append(tool_call(name, arguments, call_id, kept))
        else:
            remarks.left_out("a tool call without a name")
    if legacy := mapping(body.get("function_call")) or mapping(nested.get("function_call") if not calls else None):
        calls.append(tool_call(legacy.get("name"), legacy.get("arguments", legacy.get("args"))))
    return calls


def joined(said: Sequence[ImportedMessage], items: Container[int] = ()) -> list[ImportedMessage]:
    """Joins the parts of one answer that came as items of their own: reasoning, then text, then calls.

    ``items``: which are items of a response; consecutive ones are one answer whatever they hold.
    """
    found: list[ImportedMessage] = []
    for i, one in enumerate(said):
        last = found[-1] if found else None
        if (
            last is not None
            and one.role == last.role == "assistant"
            and one.name == last.name  # answers of several agents stay apart
            and _is_same_answer(last, one, in_items=i in items and i - 1 in items)
        ):
            reasoning = [*array(last.extra.get("reasoning")), *array(one.extra.get("reasoning"))]
            extra = {**last.extra, **one.extra} | ({"reasoning": reasoning} if reasoning else {})
            parts, calls = last.parts + one.parts, last.calls + one.calls
            found[-1] = replace(last, parts=parts, calls=calls, extra=extra, call=one.call or last.call)
        else:
            found.append(one)
    return found


def _is_same_answer(last: ImportedMessage, one: ImportedMessage, *, in_items: bool) -> bool:
    """Whether two consecutive messages are pieces of one answer: told by its id, where the file states it for both."""
    if last.call is not None and one.call is not None and last.call.answer_id and one.call.answer_id:
        return last.call.answer_id == one.call.answer_id
    return in_items or _loose(last) or (_loose(one) and bool(one.calls))


def _loose(one: ImportedMessage) -> bool:
    """An answer of calls alone, or of reasoning alone."""
    return not one.parts


def _read_content(content: object, pieces: _Pieces, remarks: Remarks) -> None:
    if isinstance(content, dict) and "parts" in content:
        content = content["parts"]
    for part in parts_of(content):
        if isinstance(part, dict):
            _read_part(plain_part(part), pieces, remarks)
        elif part is not None and part != "":
            pieces.parts.append(as_text(part))
            _tell_references(pieces.parts[-1], remarks)


def _read_part(part: Mapping[str, Any], pieces: _Pieces, remarks: Remarks) -> None:
    kind = string(part.get("type"))
    inner = mapping(part.get("message_content"))
    pieces.mark = mark_of(part) or pieces.mark
    if inner:
        _read_part(plain_part(inner), pieces, remarks)
    elif part.get("workbench.field") == "reasoning_content":
        pieces.thought += string(part.get("content"))
    elif kind in REASONING or part.get("thought") is True or "reasoningContent" in part:
        pieces.reasoning.append(mapping(part.get("workbench.block")) or dict(part))
    elif is_call(part):
        pieces.calls.append(part_call(part))
    elif is_result(part):
        pieces.results.append(_part_result(part, remarks))
    elif (picture := picture_of(part)) is not None:
        pieces.parts.append(picture)
    elif (reference := reference_of(part)) is not None:
        remarks.left_out("the content of an attachment, which stands outside the file,", reference[:80])
        pieces.parts.append(f"[file: {reference[:2000]}]")
    elif is_mark(part):
        if pieces.results and not pieces.parts:
            pieces.results[-1] = replace(pieces.results[-1], mark=pieces.mark)
    elif "image" in kind or "image_url" in part or part.get("modality") == "image":
        url = next((part[key] for key in ("image_url", "image", "source", "uri", "file_id") if key in part), None)
        remarks.left_out("an image outside the file, which is shown by its address,")
        pieces.parts.append(f"[image: {as_text(mapping(url).get('url', url))[:2000]}]")
    elif (file := file_of(part)) is not None:
        if file.startswith(STAND_INS):
            remarks.left_out("the content of a file inside a message, which stands by its name and size,")
        pieces.parts.append(file)
    elif kind in _TEXTS and (text := _text_of(part)) is not None:
        pieces.parts += [text] if text else []
        pieces.signature = string(part.get(SIGNATURE)) or pieces.signature
        _tell_references(text, remarks)
    elif part and not all(value is None for key, value in part.items() if key != "type"):
        remarks.add(f"a message part of type {_kind(part)[:40]!r} is kept as JSON text")
        pieces.parts.append(as_text(dict(part)))


_REFERENCES = re.compile(r"attachment://[0-9a-f]{8,64}|@@@langfuseMedia:[^@\s]{1,300}@@@")
"""Texts by which Inspect and LangFuse refer to long texts and media that they store elsewhere."""


def _tell_references(text: object, remarks: Remarks) -> None:
    """Say what of a text stands outside the file: a reference to it is all that the run has."""
    if isinstance(text, str) and ("attachment://" in text or "@@@langfuseMedia:" in text):
        for found in _REFERENCES.findall(text):
            remarks.left_out("the content of an attachment, which stands outside the file,", found[:80])


def _kind(part: Mapping[str, Any]) -> str:
    return string(part.get("type")) or next((key for key, value in part.items() if value), "") or "unknown"


def _text_of(part: Mapping[str, Any]) -> str | None:
    found = next((part[key] for key in ("text", "content", "refusal") if part.get(key) is not None), None)
    return found if isinstance(found, str) else string(mapping(found).get("value")) or None


def _part_result(part: Mapping[str, Any], remarks: Remarks) -> ImportedMessage:
    body = mapping(part.get("function_response")) or mapping(part.get("tool_result")) or part
    value, failed = result_value(body)
    pieces = _Pieces()
    if isinstance(value, list):
        _read_content(value, pieces, remarks)
    elif value is not None:
        pieces.parts.append(as_text(value))
    if "response" in body and isinstance(beside := body.get("parts"), list):
        _read_content(beside, pieces, remarks)  # Gemini's media
    name = string(body.get("name")) or string(body.get("toolName"))
    mark = mark_of(part) or pieces.mark
    return ImportedMessage("tool", tuple(pieces.parts), (), result_id(body), name, failed, mark=mark)
