"""Answers that came in pieces, put together: server-sent events and JSON lines of every provider's stream."""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from workbench.importers.conversation import Remarks
from workbench.importers.values import array, as_text, loads, mapping, string

# Amazon's binary event stream, in which Bedrock answers piece by piece, as the JSON of its events.

_PRELUDE, _TAIL = 12, 4
"""Bytes of a message before its headers (both lengths and a checksum), and behind its payload (a checksum)."""
_TEXT = 7
"""The type of a header whose value is a text."""


def is_event_stream(data: bytes, at: int = 0) -> bool:
    """Returns whether bytes begin with a message of such a stream, or have one at an offset."""
    if len(data) < at + _PRELUDE + _TAIL:
        return False
    total, headers = struct.unpack_from(">II", data, at)
    head = at + _PRELUDE
    return bool(_PRELUDE + headers + _TAIL <= total) and b"-type" in data[head : head + headers]


def events_of(data: bytes) -> Iterator[Mapping[str, Any]]:
    """The events, each under its type's name; a piece of another provider's stream is that provider's event.

    A stream that was cut off gives what had come.
    """
    at = 0
    while is_event_stream(data, at):
        total, size = struct.unpack_from(">II", data, at)
        if at + total > len(data):
            return
        payload = data[at + _PRELUDE + size : at + total - _TAIL]
        kind = _headers(data[at + _PRELUDE : at + _PRELUDE + size]).get(":event-type", "")
        at += total
        try:
            body = mapping(loads(payload.decode("utf-8", "replace")))
            inner = loads(base64.b64decode(packed).decode("utf-8", "replace")) if (packed := _packed(body)) else None
        except (ValueError, binascii.Error):
            continue
        yield mapping(inner) if inner is not None else {kind: body}


def _packed(body: Mapping[str, Any]) -> str:
    return string(body.get("bytes"))


def _headers(data: bytes) -> dict[str, str]:
    """The headers with text values, up to the first of another type."""
    found: dict[str, str] = {}
    at = 0
    while at < len(data):
        name_end = at + 1 + data[at]
        if data[name_end : name_end + 1] != bytes([_TEXT]) or name_end + 3 > len(data):
            break
        (length,) = struct.unpack_from(">H", data, name_end + 1)
        found[data[at + 1 : name_end].decode("utf-8", "replace")] = data[name_end + 3 : name_end + 3 + length].decode(
            "utf-8", "replace"
        )
        at = name_end + 3 + length
    return found


# Gemini's interactions: requests and answers as steps, whole or as a stream.

_ROLES = {"user_input": "user", "model_output": "assistant"}
_PARTS = ("text", "image", "audio", "video", "document")


def messages_of(steps: Sequence[Any]) -> list[Any]:
    """Steps as messages and items; parts of a content by themselves are one message of the user."""
    if steps and all(mapping(one).get("type") in _PARTS and "role" not in mapping(one) for one in steps):
        return [{"role": "user", "content": [dict(one) for one in steps]}]
    return [_message(mapping(one)) if mapping(one).get("type") in _STEPS else one for one in steps]


def _message(step: Mapping[str, Any]) -> dict[str, Any]:
    kind, call_id = string(step.get("type")), step.get("call_id") or step.get("id")
    if kind in _ROLES:
        return {"role": _ROLES[kind], "content": step.get("content")}
    if kind == "thought":
        return {**step, "type": "reasoning"}
    if kind == "function_result":
        return {"role": "tool", "name": step.get("name"), "tool_call_id": call_id, "content": step.get("result")}
    return {**step, "call_id": call_id}


_STEPS = (*_ROLES, "thought", "function_call", "function_result")


def steps_of_stream(chunks: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The interaction that a stream stands for: steps begin, grow by deltas, and end."""
    body: dict[str, Any] = {}
    steps: dict[Any, dict[str, Any]] = {}
    for chunk in chunks:
        body |= {key: value for key, value in mapping(chunk.get("interaction")).items() if value}
        if chunk.get("event_type") not in ("step.start", "step.delta"):
            continue
        step = steps.setdefault(chunk.get("index"), {})
        step |= mapping(chunk.get("step"))
        delta = mapping(chunk.get("delta"))
        if "text" in delta:
            written = "".join(string(mapping(part).get("text")) for part in array(step.get("content")))
            step["content"] = [{"type": "text", "text": written + string(delta["text"])}]
        elif "arguments" in delta:
            step["arguments"] = string(step.get("arguments")) + as_text(delta["arguments"])
        else:
            step |= {key: value for key, value in delta.items() if key != "type"}
    return {"steps": list(steps.values())} | body


# Requests and responses that hold a text where others hold messages: text completions, and Cohere's first chat.

_PROMPTS = ("prompt", "inputText", "inputs", "input")
_TEXTS = ("completion", "generation", "generated_text", "outputText", "text", "response", "value")
_LISTS = ("generations", "results", "outputs", "completions", "choices")


def as_messages(
    request: Mapping[str, Any], response: object, remarks: Remarks
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """A completion as the chat that it stands for, in OpenAI's form; anything else as it is."""
    request, response = _of_dashscope(request, response)
    asked, body = _asked(request, remarks), _first(response) if isinstance(response, list) else mapping(response)
    text = text_of(body)
    if asked is None or text is None:
        return request, mapping(response)
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls := [mapping(one) for one in array(body.get("tool_calls"))]:
        message["tool_calls"] = calls
    finish = next((body[key] for key in ("finish_reason", "stop_reason", "done_reason") if body.get(key)), None)
    choice = {"index": 0, "message": message, "finish_reason": finish}
    usage = mapping(body.get("usage")) or mapping(body.get("meta")) or mapping(_first(body.get("results")))
    return {**request, "messages": asked}, {**body, "usage": {**body, **usage}, "choices": [choice]}


def _of_dashscope(request: Mapping[str, Any], response: object) -> tuple[Mapping[str, Any], object]:
    """A call of Alibaba's DashScope, whose messages, parameters and answers stand one level deeper, in OpenAI's form;
    anything else as it is. Source: its API reference, "Text generation"."""
    inner, output = mapping(request.get("input")), mapping(mapping(response).get("output"))
    if not (inner.get("messages") or inner.get("prompt")) or not output:
        return request, response
    said = {"role": "assistant", "content": output.get("text")}
    choices = output.get("choices") or [{"message": said, "finish_reason": output.get("finish_reason")}]
    outer = {key: value for key, value in request.items() if key not in ("input", "parameters")}
    asked = {**mapping(request.get("parameters")), **outer, **inner}
    if not inner.get("messages"):
        asked["messages"] = [{"role": "user", "content": inner["prompt"]}]
    return asked, {**mapping(response), "choices": choices}


def text_of(body: Mapping[str, Any]) -> str | None:
    """The text of a completion, wherever its provider puts it; None if there is none."""
    for key in _TEXTS:
        if isinstance(found := body.get(key), str):
            return found
    for key in _LISTS:
        if inner := _first(body.get(key)):
            return text_of(mapping(inner.get("data")) or inner)
    return None


def grown(chunks: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The completion that the pieces of a stream form; None if they hold no text."""
    texts = [text for chunk in chunks if chunk.get("is_finished") is not True and (text := text_of(chunk)) is not None]
    if not texts:
        return None
    last = mapping(chunks[-1].get("response"))  # Cohere's last event holds the whole response.
    return {**chunks[-1], **last} if last else {**chunks[-1], "completion": "".join(texts)}


def _asked(request: Mapping[str, Any], remarks: Remarks) -> list[Any] | None:
    """The messages that a prompt stands for; None if there is none."""
    if isinstance(request.get("message"), str) and "role" not in request:
        preamble = string(request.get("preamble"))
        system = [{"role": "system", "content": preamble}] if preamble else []
        earlier = [_turn(mapping(one)) for one in array(request.get("chat_history"))]
        results = [_result(mapping(one)) for one in array(request.get("tool_results"))]
        asked = [{"role": "user", "content": request["message"]}] if request["message"] else []
        return [*system, *earlier, *asked, *results]
    system = [{"role": "system", "content": text}] if (text := string(request.get("system"))) else []
    for key in _PROMPTS:
        found = request.get(key)
        if isinstance(found, list) and found and all(isinstance(one, str) for one in found):
            if len(found) > 1:
                remarks.left_out("a further prompt of a request", count=len(found) - 1)
            found = found[0]
        if isinstance(found, str):
            return [*system, {"role": "user", "content": found}]
    return None


def _turn(one: Mapping[str, Any]) -> dict[str, Any]:
    """A message of Cohere's first chat."""
    return {"role": string(one.get("role")), "content": one.get("message"), "tool_calls": one.get("tool_calls")}


def _result(one: Mapping[str, Any]) -> dict[str, Any]:
    called = mapping(one.get("call"))
    return {"role": "tool", "name": string(called.get("name")), "content": as_text(one.get("outputs"))}


def _first(value: object) -> Mapping[str, Any]:
    return mapping(next(iter(array(value)), None))


def whole_response(text: str) -> Mapping[str, Any] | None:
    """The body that the stream forms, as a response without streaming would have it; None if the text is no stream.

    A stream that was cut off gives the part that arrived.
    """
    chunks = list(_chunks(text))
    return _whole(chunks) or grown(chunks)


def streamed(data: bytes) -> Mapping[str, Any] | None:
    """The body that Amazon's binary stream forms; None if the bytes are no such stream."""
    chunks = list(events_of(data))
    return _whole(chunks) or grown(chunks)


def _whole(chunks: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The body by the shape of its pieces; None if they hold only text, or no answer."""
    kinds = {string(chunk.get("type")) for chunk in chunks}
    if any(kind.startswith("response.") for kind in kinds):
        return _responses(chunks)
    if "message_start" in kinds or "content_block_delta" in kinds:
        return _anthropic(chunks)
    if "message-start" in kinds or "content-delta" in kinds:
        return _cohere(chunks)
    if any("messageStart" in chunk or "contentBlockDelta" in chunk for chunk in chunks):
        return _converse(chunks)
    if any(chunk.get("event_type") == "step.start" for chunk in chunks):
        return steps_of_stream(chunks)
    if any("candidates" in chunk for chunk in chunks):
        return _gemini(chunks)
    if any("choices" in chunk for chunk in chunks):
        return _chat(chunks)
    if any(mapping(chunk.get("output")).get("choices") for chunk in chunks):
        return _dashscope(chunks)
    if any("done" in chunk and ("message" in chunk or "response" in chunk) for chunk in chunks):
        return _ollama(chunks)
    return None


def whole_list(chunks: Sequence[Any]) -> Mapping[str, Any] | None:
    """The body that a list of pieces stands for: a stream without server-sent events, as Gemini has it."""
    found = [mapping(chunk) for chunk in chunks]
    return _whole(found) if any("candidates" in chunk or "choices" in chunk for chunk in found) else None


def _chunks(text: str) -> Iterator[Mapping[str, Any]]:
    """The JSON objects of ``data:`` lines, or of lines; others are skipped."""
    events = "data:" in text
    for line in text.replace("\r", "\n").split("\n"):  # not splitlines: JSON may hold further line ends as they are
        line = line.strip()
        if events:
            if not line.startswith("data:"):
                continue
            line = line[5:].strip()
        if line.startswith("{"):
            try:
                yield mapping(loads(line))
            except ValueError:
                continue


def _chat(chunks: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Chat completions: text, reasoning and arguments grow by deltas; calls are told apart by their index."""
    texts: dict[str, str] = {}
    calls: dict[int, dict[str, Any]] = {}
    body: dict[str, Any] = {}
    finish = ""
    details: list[Any] = []
    for chunk in chunks:
        body |= {key: value for key, value in chunk.items() if key != "choices" and value is not None}
        for choice in map(mapping, array(chunk.get("choices"))):
            if choice.get("index", 0) != 0:
                continue
            delta = mapping(choice.get("delta")) or mapping(choice.get("message"))
            for key in ("content", "reasoning_content", "reasoning", "refusal"):
                if part := string(delta.get(key)):
                    texts[key] = texts.get(key, "") + part
            if part := string(choice.get("text")):
                texts["content"] = texts.get("content", "") + part
            details += array(delta.get("reasoning_details"))
            for place, piece in enumerate(map(mapping, array(delta.get("tool_calls")))):
                _grow(calls, piece, place)
            finish = string(choice.get("finish_reason")) or finish
    message: dict[str, Any] = {"role": "assistant", "content": None, **texts}
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    if details:
        message["reasoning_details"] = details
    return body | {"choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def _dashscope(chunks: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """DashScope: pieces as OpenAI has them, one level deeper; unless a request asks for increments, each holds all that
    came before."""
    last: Mapping[str, Any] = {}
    texts: list[str] = []
    for chunk in chunks:
        last = {**last, **chunk}
        message = mapping(_first(mapping(chunk.get("output")).get("choices")).get("message"))
        if text := string(message.get("content")):
            texts.append(text)
    repeated = len(texts) > 1 and all(now.startswith(before) for before, now in pairwise(texts))
    kept = chunks[-1:] if repeated else chunks
    grown_up = _chat([{"choices": mapping(chunk.get("output")).get("choices")} for chunk in kept])
    return {**last, "output": {"choices": grown_up["choices"]}}


def _grow(calls: dict[int, dict[str, Any]], piece: Mapping[str, Any], place: int) -> None:
    index = piece.get("index", place)
    function = mapping(piece.get("function"))
    call = calls.setdefault(
        index if isinstance(index, int) else place, {"id": "", "function": {"name": "", "arguments": ""}}
    )
    call["id"] = call["id"] or string(piece.get("id"))
    call["function"]["name"] += string(function.get("name"))
    call["function"]["arguments"] += as_text(function.get("arguments"))


def _anthropic(chunks: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Anthropic's messages: blocks begin, grow by deltas of their kind, and end; usage comes first and last."""
    body: dict[str, Any] = {"type": "message", "role": "assistant"}
    blocks: dict[int, dict[str, Any]] = {}
    typed: dict[int, str] = {}
    for chunk in chunks:
        index = chunk.get("index", 0)
        index = index if isinstance(index, int) else 0
        match chunk.get("type"):
            case "message_start":
                body |= mapping(chunk.get("message"))
            case "content_block_start":
                blocks[index] = dict(mapping(chunk.get("content_block")))
            case "content_block_delta":
                _grow_block(blocks.setdefault(index, {"type": "text", "text": ""}), typed, index, chunk)
            case "message_delta":
                body |= {key: value for key, value in mapping(chunk.get("delta")).items() if value is not None}
                known = {key: value for key, value in mapping(chunk.get("usage")).items() if value is not None}
                body["usage"] = {**mapping(body.get("usage")), **known}
    for index, text in typed.items():
        blocks[index]["input"] = text
    return body | {"content": [blocks[index] for index in sorted(blocks)]}


def _grow_block(block: dict[str, Any], typed: dict[int, str], index: int, chunk: Mapping[str, Any]) -> None:
    delta = mapping(chunk.get("delta"))
    for key in ("text", "thinking", "signature"):
        if part := string(delta.get(key)):
            block[key] = string(block.get(key)) + part
    if "partial_json" in delta:
        typed[index] = typed.get(index, "") + string(delta.get("partial_json"))


def _responses(chunks: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """OpenAI's responses: the last event holds it all; of a stream that was cut off, the items that were done."""
    body: dict[str, Any] = {}
    items: list[Any] = []
    for chunk in chunks:
        body |= mapping(chunk.get("response"))
        if chunk.get("type") == "response.output_item.done":
            items.append(chunk.get("item"))
    return body if body.get("output") else body | {"output": items}


def _cohere(chunks: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Cohere's second chat: text, plan and arguments grow by deltas, calls and texts told apart by their index."""
    body: dict[str, Any] = {}
    texts: dict[str, str] = {}
    calls: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        delta = mapping(chunk.get("delta"))
        piece = mapping(delta.get("message"))
        body |= {key: delta[key] for key in ("finish_reason", "usage") if delta.get(key)}
        for key, found in (("content", mapping(piece.get("content")).get("text")), ("plan", piece.get("tool_plan"))):
            texts[key] = texts.get(key, "") + string(found)
        if call := mapping(piece.get("tool_calls")):
            _grow(calls, {**call, "index": chunk.get("index", 0)}, 0)
    message: dict[str, Any] = {"role": "assistant", "content": texts.get("content") or texts.get("plan")}
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    return body | {"message": message}


def _converse(chunks: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Bedrock's Converse: blocks grow by deltas of their kind; usage comes last."""
    body: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        body |= {**mapping(chunk.get("messageStop")), **mapping(chunk.get("metadata"))}
        for inner in (mapping(chunk.get("contentBlockStart")), mapping(chunk.get("contentBlockDelta"))):
            index = inner.get("contentBlockIndex", 0)
            block = blocks.setdefault(index if isinstance(index, int) else 0, {}) if inner else {}
            for key, piece in {**mapping(inner.get("start")), **mapping(inner.get("delta"))}.items():
                _grow_converse(block, key, piece)
    content = [blocks[index] for index in sorted(blocks)]
    return body | {"output": {"message": {"role": "assistant", "content": content}}}


def _grow_converse(block: dict[str, Any], key: str, piece: Any) -> None:
    """A text grows, and so do the texts inside an object: the arguments of a call, a thought and its signature."""
    if isinstance(piece, str):
        block[key] = string(block.get(key)) + piece
    elif isinstance(piece, dict):
        inner = block[key] = dict(mapping(block.get(key)))
        for name, value in piece.items():
            _grow_converse(inner, name, value)
    else:
        block[key] = piece


def _gemini(chunks: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Gemini: each chunk holds further parts; texts of one kind that follow each other are one part."""
    body: dict[str, Any] = {}
    parts: list[dict[str, Any]] = []
    finish = ""
    for chunk in chunks:
        body |= {key: value for key, value in chunk.items() if key != "candidates"}
        candidate = mapping(next(iter(array(chunk.get("candidates"))), None))
        finish = string(candidate.get("finishReason")) or finish
        for part in map(mapping, array(mapping(candidate.get("content")).get("parts"))):
            last = parts[-1] if parts else {}
            if "text" in part and "text" in last and part.get("thought") == last.get("thought"):
                last["text"] += string(part.get("text"))
            else:
                parts.append(dict(part))
    content = {"role": "model", "parts": parts}
    return body | {"candidates": [{"content": content, "finishReason": finish}]}


def _ollama(chunks: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Ollama: one JSON object a line; the last one counts."""
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    body: dict[str, Any] = {}
    for chunk in chunks:
        body |= chunk
        piece = mapping(chunk.get("message"))
        message["content"] += string(piece.get("content")) or string(chunk.get("response"))
        if calls := array(piece.get("tool_calls")):
            message["tool_calls"] = [*array(message.get("tool_calls")), *calls]
    return body | {"message": message}
