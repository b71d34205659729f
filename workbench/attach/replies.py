"""Replies that no provider made, in the form that the client of each protocol reads, whole or as a stream."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from workbench.engine.contracts import Answer
from workbench.importers.values import mapping

_SSE = "text/event-stream"
_JSON = "application/json"


def error_body(message: str) -> bytes:
    """An error in the form that clients of OpenAI and Anthropic read."""
    told = {"message": f"workbench attach: {message}", "type": "workbench_error", "code": None, "param": None}
    return _dumped({"type": "error", "error": told}).encode()


def rendered(path: str, asked: Mapping[str, Any], answer: Answer, id: str) -> tuple[str, bytes] | None:
    """Content type and body of an answer to a request at a path; None for a protocol that is not known."""
    if (protocol := _protocol_at(path)) is None:
        return None
    kind, pieces = protocol(asked, answer, id)
    return kind, "".join(pieces).encode("utf-8", "replace")


def _chat(asked: Mapping[str, Any], answer: Answer, id: str) -> tuple[str, Iterator[str]]:
    """OpenAI's chat completions."""
    head = {"id": f"chatcmpl-{id}", "created": 0, "model": asked.get("model")}
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in answer.calls
    ]
    finish = "tool_calls" if calls else "stop"
    if not asked.get("stream"):
        message = {"role": "assistant", "content": answer.text or None, **({"tool_calls": calls} if calls else {})}
        choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
        body = {**head, "object": "chat.completion", "choices": [choice], "usage": _openai_usage(answer)}
        return _JSON, iter([_dumped(body)])

    def pieces() -> Iterator[str]:
        chunk = {**head, "object": "chat.completion.chunk"}

        def event(delta: Mapping[str, Any], finish: str | None = None) -> str:
            return _event({**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

        yield event({"role": "assistant", "content": ""})
        for text in _parts(answer.text):
            yield event({"content": text})
        for index, call in enumerate(calls):
            yield event({"tool_calls": [{"index": index, **call}]})
        yield event({}, finish)
        if mapping(asked.get("stream_options")).get("include_usage"):
            yield _event({**chunk, "choices": [], "usage": _openai_usage(answer)})
        yield "data: [DONE]\n\n"

    return _SSE, pieces()


def _responses(asked: Mapping[str, Any], answer: Answer, id: str) -> tuple[str, Iterator[str]]:
    """OpenAI's Responses."""
    items: list[dict[str, Any]] = []
    if answer.text or not answer.calls:
        content = [{"type": "output_text", "text": answer.text, "annotations": []}]
        about = {"id": f"msg_{id}", "type": "message", "status": "completed", "role": "assistant"}
        items.append({**about, "content": content})
    for i, call in enumerate(answer.calls):
        about = {"id": f"fc_{id}_{i}", "type": "function_call", "status": "completed", "call_id": call.id}
        items.append({**about, "name": call.name, "arguments": call.arguments})
    usage = {
        "input_tokens": answer.usage.input or 0,
        "input_tokens_details": {"cached_tokens": answer.usage.cached or 0},
        "output_tokens": answer.usage.output or 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": (answer.usage.input or 0) + (answer.usage.output or 0),
    }
    body = {
        "id": f"resp_{id}",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": asked.get("model"),
        "output": items,
        "parallel_tool_calls": True,
        "tool_choice": asked.get("tool_choice", "auto"),
        "tools": asked.get("tools", []),
        "usage": usage,
        "error": None,
        "incomplete_details": None,
    }
    if not asked.get("stream"):
        return _JSON, iter([_dumped(body)])

    def pieces() -> Iterator[str]:
        number = 0

        def event(kind: str, **data: Any) -> str:
            nonlocal number
            told = {"type": kind, "sequence_number": number, **data}
            number += 1
            return f"event: {kind}\n{_event(told)}"

        yield event("response.created", response={**body, "status": "in_progress", "output": [], "usage": None})
        for index, item in enumerate(items):
            where = {"output_index": index, "item_id": item["id"]}
            emptied: dict[str, Any] = {"content": []} if "content" in item else {"arguments": ""}
            empty = {**item, "status": "in_progress", **emptied}
            yield event("response.output_item.added", output_index=index, item=empty)
            if "content" in item:
                part = item["content"][0]
                inside = {**where, "content_index": 0}
                yield event("response.content_part.added", **inside, part={**part, "text": ""})
                for text in _parts(part["text"]):
                    yield event("response.output_text.delta", **inside, delta=text, logprobs=[])
                yield event("response.output_text.done", **inside, text=part["text"], logprobs=[])
                yield event("response.content_part.done", **inside, part=part)
            else:
                yield event("response.function_call_arguments.delta", **where, delta=item["arguments"])
                yield event(
                    "response.function_call_arguments.done", **where, name=item["name"], arguments=item["arguments"]
                )
            yield event("response.output_item.done", output_index=index, item=item)
        yield event("response.completed", response=body)

    return _SSE, pieces()


def _messages(asked: Mapping[str, Any], answer: Answer, id: str) -> tuple[str, Iterator[str]]:
    """Anthropic's Messages."""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": answer.text}] if answer.text or not answer.calls else []
    blocks += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": _object(call.arguments)}
        for call in answer.calls
    ]
    stop = "tool_use" if answer.calls else "end_turn"
    usage = {"input_tokens": answer.usage.input or 0, "output_tokens": answer.usage.output or 0}
    head = {"id": f"msg_{id}", "type": "message", "role": "assistant", "model": asked.get("model")}
    if not asked.get("stream"):
        body = {**head, "content": blocks, "stop_reason": stop, "stop_sequence": None, "usage": usage}
        return _JSON, iter([_dumped(body)])

    def pieces() -> Iterator[str]:
        def event(kind: str, **data: Any) -> str:
            return f"event: {kind}\n{_event({'type': kind, **data})}"

        begun: dict[str, Any] = {**head, "content": [], "stop_reason": None, "stop_sequence": None}
        yield event("message_start", message={**begun, "usage": {**usage, "output_tokens": 0}})
        for index, block in enumerate(blocks):
            is_text = block["type"] == "text"
            empty = {**block, "text": ""} if is_text else {**block, "input": {}}
            yield event("content_block_start", index=index, content_block=empty)
            for text in _parts(block["text"] if is_text else _dumped(block["input"])):
                delta = (
                    {"type": "text_delta", "text": text}
                    if is_text
                    else {"type": "input_json_delta", "partial_json": text}
                )
                yield event("content_block_delta", index=index, delta=delta)
            yield event("content_block_stop", index=index)
        yield event("message_delta", delta={"stop_reason": stop, "stop_sequence": None}, usage=usage)
        yield event("message_stop")

    return _SSE, pieces()


def _gemini(_: Mapping[str, Any], answer: Answer, id: str) -> tuple[str, Iterator[str]]:
    """Gemini's generateContent."""
    parts: list[dict[str, Any]] = [{"text": answer.text}] if answer.text or not answer.calls else []
    parts += [{"functionCall": {"name": call.name, "args": _object(call.arguments)}} for call in answer.calls]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    counts = {"promptTokenCount": answer.usage.input or 0, "candidatesTokenCount": answer.usage.output or 0}
    usage = {**counts, "totalTokenCount": sum(counts.values())}
    return _JSON, iter([_dumped({"candidates": [candidate], "usageMetadata": usage, "responseId": id})])


def _gemini_stream(asked: Mapping[str, Any], answer: Answer, id: str) -> tuple[str, Iterator[str]]:
    _, whole = _gemini(asked, answer, id)
    return _SSE, (f"data: {piece}\r\n\r\n" for piece in whole)


def _ollama(asked: Mapping[str, Any], answer: Answer, _: str) -> tuple[str, Iterator[str]]:
    """Ollama's chat: a stream of JSON lines unless the request says otherwise."""
    calls = [{"function": {"name": call.name, "arguments": _object(call.arguments)}} for call in answer.calls]
    head = {"model": asked.get("model"), "created_at": "1970-01-01T00:00:00Z"}
    message = {"role": "assistant", "content": answer.text, **({"tool_calls": calls} if calls else {})}
    counts = {"prompt_eval_count": answer.usage.input or 0, "eval_count": answer.usage.output or 0}
    end = {"done": True, "done_reason": "stop", "total_duration": 0, **counts}
    if asked.get("stream") is False:
        return _JSON, iter([_dumped({**head, "message": message, **end})])

    def pieces() -> Iterator[str]:
        for text in _parts(answer.text):
            yield _dumped({**head, "message": {"role": "assistant", "content": text}, "done": False}) + "\n"
        yield _dumped({**head, "message": {**message, "content": ""}, **end}) + "\n"

    return "application/x-ndjson", pieces()


_Protocol = Callable[[Mapping[str, Any], Answer, str], tuple[str, Iterator[str]]]
_PROTOCOLS: Mapping[str, _Protocol] = {
    "/chat/completions": _chat,
    "/responses": _responses,
    "/messages": _messages,
    ":generateContent": _gemini,
    ":streamGenerateContent": _gemini_stream,
    "/api/chat": _ollama,
}


def asks_model(path: str) -> bool:
    """Returns whether models are asked at a path, in one of the protocols."""
    return _protocol_at(path) is not None


def _protocol_at(path: str) -> _Protocol | None:
    plain = path.partition("?")[0]
    return next((protocol for ending, protocol in _PROTOCOLS.items() if plain.endswith(ending)), None)


def _openai_usage(answer: Answer) -> dict[str, Any]:
    given, made = answer.usage.input or 0, answer.usage.output or 0
    return {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}


def _object(text: str) -> Any:
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _parts(text: str) -> Iterator[str]:
    """A text in some pieces, as a model would say it."""
    size = max(1, -(-len(text) // 8))
    for at in range(0, len(text), size):
        yield text[at : at + size]


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _event(value: object) -> str:
    return f"data: {_dumped(value)}\n\n"
