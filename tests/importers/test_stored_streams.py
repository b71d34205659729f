"""Streams of every provider, whole and cut off; steps and completions as the chats they stand for."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

from tests.importers.test_names import check, told
from workbench.importers.conversation import Remarks
from workbench.importers.streams import as_messages, messages_of, streamed, text_of, whole_list, whole_response

STREAMS: dict[str, tuple[Any, ...]] = {
    "chat": (
        {"id": "x", "model": "m", "choices": [{"delta": {"role": "assistant", "reasoning_content": "th"}}]},
        {"id": None, "choices": [{"delta": {"content": "a", "reasoning": "r", "reasoning_details": [1]}}]},
        {
            "choices": [
                {"index": 1, "delta": {"content": "another choice"}},
                {"delta": {"content": "b", "refusal": "n"}},
            ]
        },
        {"choices": [{"delta": {"tool_calls": [{"index": 1, "id": "c1", "function": {"name": "lo"}}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 1, "id": "c9", "function": {"name": "ok"}}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 1, "function": {"arguments": '{"a"'}}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 1, "function": {"arguments": ": 1}"}}]}}]},
        {
            "choices": [
                {"delta": {"tool_calls": [{"index": "?", "function": {"name": "first", "arguments": {"b": 2}}}]}}
            ]
        },
        {"choices": [{"message": {"reasoning_details": [2]}, "finish_reason": "tool_calls"}]},
        {"choices": [{"text": " of a completion"}], "usage": {"prompt_tokens": 3}},
    ),
    "places": ({"choices": [{"delta": {"tool_calls": [{"function": {"name": n}} for n in ("one", "two")]}}]},),
    "dashscope": (
        {"output": {"choices": [{"message": {"content": "a"}}]}, "request_id": "r"},
        {
            "output": {"choices": [{"message": {"content": "ab"}, "finish_reason": "stop"}]},
            "usage": {"input_tokens": 1},
        },
    ),
    "dashscope that adds": (
        {"output": {"choices": [{"message": {"content": "a"}}]}},
        {"output": {"choices": [{"message": {"content": "b"}}]}},
    ),
    "anthropic": (
        {
            "type": "message_start",
            "message": {"id": "x", "model": "m", "usage": {"input_tokens": 3, "output_tokens": 1}},
        },
        {"type": "content_block_start", "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "delta": {"thinking": "th"}},
        {"type": "content_block_delta", "index": "0", "delta": {"thinking": "ink", "signature": "sig"}},
        {"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "c", "name": "look"}},
        {"type": "content_block_delta", "index": 2, "delta": {"partial_json": '{"a"'}},
        {"type": "content_block_delta", "index": 2, "delta": {"partial_json": ": 1}"}},
        {"type": "content_block_delta", "index": 1, "delta": {"text": "never begun"}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": {"x": None}},
        {"type": "message_delta", "usage": {"output_tokens": 9}},
    ),
    "responses": (
        {"type": "response.created", "response": {"id": "x", "output": []}},
        {"type": "response.output_item.added", "item": {"type": "message"}},
        {"type": "response.output_item.done", "item": {"type": "message", "content": "a"}},
        {
            "type": "response.completed",
            "response": {"output": [{"type": "message", "content": "all"}], "usage": {"i": 1}},
        },
    ),
    "cohere": (
        {"type": "message-start", "id": "x"},
        {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "I will "}}},
        {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "look"}}},
        {
            "type": "tool-call-start",
            "index": 1,
            "delta": {"message": {"tool_calls": {"id": "c", "function": {"name": "l"}}}},
        },
        {
            "type": "tool-call-delta",
            "index": 1,
            "delta": {"message": {"tool_calls": {"function": {"arguments": "{}"}}}},
        },
        {"type": "tool-call-start", "delta": {"message": {"tool_calls": {"id": "b", "function": {"name": "first"}}}}},
        {"type": "content-delta", "delta": {"message": {"content": {"text": "a"}}}},
        {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": {"tokens": {"input_tokens": 1}}}},
    ),
    "converse": (
        {"messageStart": {"role": "assistant"}},
        {"contentBlockDelta": {"delta": {"text": "a"}}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "b"}}},
        {"contentBlockStart": {"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "c", "name": "look"}}}},
        {"contentBlockDelta": {"contentBlockIndex": 2, "delta": {"toolUse": {"input": '{"a"'}}}},
        {"contentBlockDelta": {"contentBlockIndex": 2, "delta": {"toolUse": {"input": ": 1}"}}}},
        {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"reasoningContent": {"text": "th", "n": 1}}}},
        {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"reasoningContent": {"text": "ink"}}}},
        {"messageStop": {"stopReason": "tool_use"}},
        {"metadata": {"usage": {"inputTokens": 1}}},
    ),
    "steps": (
        {"event_type": "interaction.start", "interaction": {"id": "x", "model": ""}},
        {"event_type": "step.start", "index": 0, "step": {"type": "thought"}},
        {"event_type": "step.delta", "index": 0, "delta": {"type": "thought_signature", "signature": "sig"}},
        {"event_type": "step.start", "index": 1, "step": {"type": "model_output"}},
        {"event_type": "step.delta", "index": 1, "delta": {"text": "a"}},
        {"event_type": "step.delta", "index": 1, "delta": {"text": "b"}},
        {"event_type": "step.start", "index": 2, "step": {"type": "function_call", "id": "c", "name": "look"}},
        {"event_type": "step.delta", "index": 2, "delta": {"arguments": '{"a"'}},
        {"event_type": "step.delta", "index": 2, "delta": {"arguments": ": 1}"}},
        {"event_type": "interaction.complete", "interaction": {"model": "m", "usage": {"total_input_tokens": 1}}},
    ),
    "gemini": (
        {"candidates": [{"content": {"parts": [{"text": "th", "thought": True}]}}], "modelVersion": "m"},
        {"candidates": [{"content": {"parts": [{"text": "ink", "thought": True}, {"text": "a"}]}}]},
        {"candidates": [{"content": {"parts": [{"text": "b"}, {"functionCall": {"name": "look"}}]}}]},
        {"candidates": [{"content": {"parts": [{"text": "c"}]}, "finishReason": "STOP"}], "usageMetadata": {"x": 1}},
        {"candidates": []},
    ),
    "ollama": (
        {"model": "m", "message": {"content": "a", "tool_calls": [{"function": {"name": "one"}}]}, "done": False},
        {"model": "m", "message": {"content": "b", "tool_calls": [{"function": {"name": "two"}}]}, "done": False},
        {"model": "m", "response": "c", "done": True, "eval_count": 3},
    ),
    "completion": ({"generation": "a", "stop_reason": None}, {"generation": "b", "stop_reason": "stop"}),
    "cohere's first": ({"text": "a"}, {"is_finished": True, "text": "left", "response": {"text": "ab"}}),
    "no answer": ({"error": "no"},),
}
STEPS: tuple[Any, ...] = (
    [{"type": kind} for kind in ("text", "image", "audio", "video", "document")],
    [{"type": "text", "role": "user", "text": "t"}],
    [{"type": "text"}, {"type": "user_input", "content": "u"}],
    [{"type": "model_output", "content": [{"type": "text"}]}, {"type": "thought", "summary": "s"}, {"type": "other"}],
    [{"type": "function_call", "id": "c", "name": "n"}, {"type": "function_call", "id": "i", "call_id": "c"}],
    [{"type": "function_result", "name": "n", "call_id": "c", "result": "r"}, "a text"],
    [],
)
ASKED: tuple[tuple[Any, Any], ...] = (
    *(({key: "p"}, {"text": "t"}) for key in ("prompt", "inputText", "inputs", "input", "other")),
    ({"prompt": ["one", "two", "three"], "system": "s"}, [{"generated_text": "t"}]),
    ({"prompt": [], "inputs": "p"}, {"completion": "t", "stop_reason": "s", "done_reason": "d"}),
    ({"prompt": [1]}, {"completion": "t"}),
    ({"message": "m", "role": "user"}, {"text": "t"}),
    (
        {
            "message": "m",
            "preamble": "p",
            "chat_history": [{"role": "USER", "message": "e", "tool_calls": [{"name": "n"}]}],
            "tool_results": [{"call": {"name": "n"}, "outputs": [{"o": 1}]}],
        },
        {"text": "t", "tool_calls": [{"name": "n"}, 3], "finish_reason": "COMPLETE", "meta": {"tokens": 1}},
    ),
    ({"message": ""}, {"text": "", "usage": {"a": 1}, "meta": {"b": 2}}),
    ({"inputText": "p"}, {"results": [{"outputText": "t", "tokenCount": 2}], "done_reason": "d"}),
    (
        {"model": "m", "input": {"prompt": "p"}, "parameters": {"top_p": 1}},
        {"output": {"text": "t", "finish_reason": "f"}},
    ),
    (
        {"input": {"messages": [{"role": "user"}]}, "model": "m"},
        {"output": {"choices": [{"message": {}}]}, "usage": {}},
    ),
    ({"input": {"prompt": "p"}}, {"output": {}}),
)
TEXTS: tuple[Any, ...] = (
    *({key: "t"} for key in ("completion", "generation", "generated_text", "outputText", "text", "response", "value")),
    *({key: [{"text": "t"}]} for key in ("generations", "results", "outputs", "completions", "choices", "others")),
    {"completions": [{"data": {"text": "t"}}]},
    {"text": 3, "choices": []},
)


def frame(kind: str, payload: bytes, before: bytes = b"") -> bytes:
    """A message of Amazon's binary stream with its type among its headers."""
    headers = before + b"\x0b:event-type\x07" + struct.pack(">H", len(kind)) + kind.encode()
    return struct.pack(">III", 16 + len(headers) + len(payload), len(headers), 0) + headers + payload + b"\0\0\0\0"


def test_a_stream_whole_or_cut_off_gives_the_stored_body() -> None:
    lines = []
    for name, chunks in STREAMS.items():
        events = [f"data: {json.dumps(one)}\n\n" for one in chunks]
        for count in sorted({1, len(chunks) // 2 + 1, len(chunks)}):
            lines.append(f"{name} {count}: {told(whole_response(''.join(events[:count])))}")
    check("streams", iter(lines))


def test_lines_lists_and_binary_messages_give_what_events_give() -> None:
    for name, chunks in STREAMS.items():
        lines = [json.dumps(one) for one in chunks]
        body = whole_response("".join(f"event: e\rdata:{one}\r\r" for one in (*lines, "{cut", "[DONE]")))
        assert whole_response("\n".join((*lines, "{cut", "and a text"))) == body, name
        packed = (json.dumps({"bytes": base64.b64encode(one.encode()).decode()}).encode() for one in lines)
        assert streamed(b"".join(frame("chunk", one, b"\x02:n\x07\0\x01v") for one in packed)) == body, name
        assert whole_list(chunks) == (body if name in ("chat", "places", "gemini") else None), name
    events = [(kind, json.dumps(inner).encode()) for one in STREAMS["converse"] for kind, inner in one.items()]
    whole = b"".join(frame(kind, payload) for kind, payload in events)
    body = whole_response("\n".join(json.dumps(one) for one in STREAMS["converse"]))
    assert streamed(whole) == streamed(whole + frame("chunk", b"{cut")) == streamed(whole + whole[:40]) == body


def test_steps_and_completions_are_the_stored_chats() -> None:
    lines = [f"steps {told(one)}\n  {told(messages_of(one))}" for one in STEPS]
    for request, response in ASKED:
        remarks = Remarks()
        lines.append(f"asked {told(request)}\n  {told(as_messages(request, response, remarks))} {told(remarks.notes)}")
    lines += [f"text {told(one)}: {text_of(one)}" for one in TEXTS]
    check("completions", iter(lines))
