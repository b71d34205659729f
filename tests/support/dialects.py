"""Scripted answers, and how Anthropic, Gemini and Ollama would say them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

USAGE: Mapping[str, Any] = {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}


@dataclass(frozen=True)
class Reply:
    """One scripted answer. ``calls`` are native tool calls: name and arguments as JSON text."""

    text: str | None = "ok"
    calls: Sequence[tuple[str, str]] = ()
    usage: Mapping[str, Any] | None = field(default_factory=lambda: USAGE)
    extra: Mapping[str, Any] = field(default_factory=dict)
    """More fields of the message: ``reasoning_content``, ``reasoning_details``."""
    finish_reason: str = ""
    """Empty: ``tool_calls`` with calls, else ``stop``."""
    piece: int = 8
    """Characters per chunk of a stream."""


@dataclass(frozen=True)
class DialectAnswer:
    """An answer in a dialect: whole, and as named events of a stream."""

    body: Mapping[str, Any]
    events: Sequence[tuple[str, Mapping[str, Any]]]
    lines: bool = False
    """Events are bare JSON lines."""


def dialect_of(path: str) -> Callable[[str, Reply], DialectAnswer] | None:
    """The dialect that is spoken at a path; None for OpenAI's."""
    if path.partition("?")[0].endswith("/messages"):
        return anthropic
    if path.endswith("/api/chat"):
        return ollama
    return gemini if "enerateContent" in path else None


def anthropic(model: str, reply: Reply) -> DialectAnswer:
    """Usage is Anthropic's own: ``input_tokens`` without what was cached or written."""
    usage = dict(reply.usage or {})
    blocks: list[dict[str, Any]] = [dict(block) for block in reply.extra.get("thinking_blocks", ())]
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    for i, (name, arguments) in enumerate(reply.calls, start=1):
        blocks.append({"type": "tool_use", "id": f"toolu_{i}", "name": name, "input": json.loads(arguments)})
    stop = reply.finish_reason or ("tool_use" if reply.calls else "end_turn")
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": model}
    events: list[tuple[str, Mapping[str, Any]]] = [
        (
            "message_start",
            {"message": head | {"content": [], "stop_reason": None, "usage": usage | {"output_tokens": 1}}},
        )
    ]
    for index, block in enumerate(blocks):
        first, deltas = _opened(block)
        events.append(("content_block_start", {"index": index, "content_block": first}))
        events += [("content_block_delta", {"index": index, "delta": delta}) for delta in deltas]
        events.append(("content_block_stop", {"index": index}))
    end = {"delta": {"stop_reason": stop}, "usage": {"output_tokens": usage.get("output_tokens", 0)}}
    events += [("message_delta", end), ("message_stop", {})]
    named = [(kind, {"type": kind, **body}) for kind, body in events]
    return DialectAnswer(head | {"content": blocks, "stop_reason": stop, "usage": usage}, named)


def _opened(block: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """How a content block begins in a stream, and the deltas that fill it."""
    if block["type"] == "thinking":
        half = len(block["thinking"]) // 2
        pieces = (block["thinking"][:half], block["thinking"][half:])
        deltas: list[Mapping[str, Any]] = [{"type": "thinking_delta", "thinking": piece} for piece in pieces]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
        return {"type": "thinking", "thinking": "", "signature": ""}, deltas
    if block["type"] == "tool_use":
        text = json.dumps(block["input"])
        parts = (text[:5], text[5:])
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": part} for part in parts]
    return {"type": "text", "text": ""}, [{"type": "text_delta", "text": block["text"]}]


def gemini(model: str, reply: Reply) -> DialectAnswer:
    """Usage is Gemini's own (``promptTokenCount``). A call carries ``extra["thought_signature"]``."""
    parts: list[dict[str, Any]] = [{"text": reply.text}] if reply.text else []
    for name, arguments in reply.calls:
        part: dict[str, Any] = {"functionCall": {"name": name, "args": json.loads(arguments)}}
        if signature := reply.extra.get("thought_signature"):
            part["thoughtSignature"] = signature
        parts.append(part)
    head = {"modelVersion": model, "responseId": "resp_1"}
    events: list[tuple[str, Mapping[str, Any]]] = [
        ("", head | {"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]}) for part in parts
    ]
    candidate = {"index": 0, "content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP"}
    usage = {} if reply.usage is None else {"usageMetadata": dict(reply.usage)}
    events.append(("", head | {"candidates": [candidate]} | usage))
    whole = {"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    return DialectAnswer(head | {"candidates": [whole]} | usage, events)


def ollama(model: str, reply: Reply) -> DialectAnswer:
    """Usage is Ollama's own: ``prompt_eval_count``, ``eval_count``."""
    calls = [{"function": {"name": name, "arguments": json.loads(arguments)}} for name, arguments in reply.calls]
    text = reply.text or ""
    pieces = [text[at : at + reply.piece] for at in range(0, len(text), reply.piece)]
    head = {"model": model, "created_at": "2026-01-01T00:00:00Z"}
    events: list[tuple[str, Mapping[str, Any]]] = [
        ("", head | {"message": {"role": "assistant", "content": piece}, "done": False}) for piece in pieces
    ]
    if calls:
        events.append(
            ("", head | {"message": {"role": "assistant", "content": "", "tool_calls": calls}, "done": False})
        )
    end = {"done": True, "done_reason": reply.finish_reason or "stop", **(reply.usage or {})}
    events.append(("", head | {"message": {"role": "assistant", "content": ""}} | end))
    message = {"role": "assistant", "content": text} | ({"tool_calls": calls} if calls else {})
    return DialectAnswer(head | {"message": message} | end, events, lines=True)
