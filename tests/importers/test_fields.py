"""Files that use every field which their readers know: all that comes of them is held against what is stored."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.importers.examples import ANSWER, ASK, EXAMPLES, RESULT
from tests.importers.whole import STORED, read_file, told
from tests.support.stored import check_stored
from workbench.importers.usage import usage_of

AT = "2026-03-01T10:00:00.000Z"
PIXEL = "iVBORw0KGgpyZXN0"


def chat(*answers: dict[str, Any]) -> list[dict[str, Any]]:
    """A conversation in which each answer follows a question."""
    return [one for answer in answers for one in ({"role": "user", "content": ASK}, {"role": "assistant", **answer})]


def spoken(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": ASK}, *parts], **more}


FILES: dict[str, Any] = {
    "answers with their numbers": chat(
        {"content": "1", "response_metadata": {"token_usage": {"prompt_tokens": 3, "completion_tokens": 2}}},
        {"content": "2", "response_metadata": {"usage": {"input_tokens": 4}, "model_name": "a", "finish_reason": "x"}},
        {"content": "3", "meta": {"model": "b", "usage": {"prompt_tokens": 5, "completion_tokens": 1}}},
        {"content": "4", "usage": {"prompt_tokens": 6, "cost": {"total": 0.25}}, "durationMs": 1500, "id": "r4"},
        {"content": "5", "usage": {"prompt_tokens": 7, "cost": 0.5}, "stop_reason": "stop", "timestamp": AT},
        {"content": "6", "model": "c", "usage": {"prompt_tokens": 8}, "cost": 0.75, "created_at": AT},
        {"content": "7", "modelInfo": {"id": "d", "provider": "p"}, "usage": {"prompt_tokens": 9}},
    ),
    "images of every spelling": [
        spoken({"type": "uri", "uri": "https://a.test/a.png", "mediaType": "image/png"}),
        {"role": "assistant", "content": "A."},
        spoken({"type": "image", "data": PIXEL, "mimeType": "image/png"}),
        {"role": "assistant", "content": "B."},
        spoken({"$type": "ImageContent", "DataUri": f"data:image/png;base64,{PIXEL}"}),
        {"role": "assistant", "content": "C."},
        spoken({"$type": "ImageContent", "Data": PIXEL, "MimeType": "image/jpeg"}),
        {"role": "assistant", "content": "D."},
        spoken({"type": "blob", "mime_type": "image/png", "content": PIXEL}),
        {"role": "assistant", "content": "E."},
        spoken({"inline_data": {"mime_type": "image/png", "data": PIXEL}}),
        {"role": "assistant", "content": "F."},
        spoken({"type": "image", "source": {"mimeType": "image/png", "data": PIXEL}}),
        {"role": "assistant", "content": "G."},
        spoken({"type": "blob", "mime_type": "image/bmp", "content": "Qk1hYmNkZWY="}),
        {"role": "assistant", "content": "H."},
        spoken({"type": "blob", "media_type": "text/plain", "content": "YWJjZGVm"}),
        {"role": "assistant", "content": "I."},
    ],
    "items of semantic kernel": [
        {"Role": {"Label": "user"}, "Items": [{"$type": "TextContent", "Text": ASK}]},
        {
            "Role": {"Label": "assistant"},
            "Items": [{"$type": "FunctionCallContent", "Id": "c1", "PluginName": "files", "FunctionName": "ls",
                       "Arguments": {"path": "."}}],
        },
        {
            "Role": {"Label": "tool"},
            "Items": [{"$type": "FunctionResultContent", "CallId": "c1", "FunctionName": "ls", "Result": RESULT}],
        },
        {
            "Role": {"Label": "assistant"},
            "Items": [{"$type": "ReasoningContent", "Text": "Two."}, {"$type": "TextContent", "Text": ANSWER}],
        },
    ],
    "promptfoo": {
        "evalId": "e",
        "results": {
            "version": 3,
            "timestamp": AT,
            "results": [
                {
                    "prompt": {"raw": json.dumps([{"role": "user", "content": ASK}]), "label": "l"},
                    "provider": {"id": "openai:chat:gpt-4o"},
                    "response": {"output": ANSWER, "tokenUsage": {"prompt": 9, "completion": 2},
                                 "finishReason": "stop"},
                    "latencyMs": 750,
                    "cost": 0.25,
                    "testIdx": 1,
                    "promptIdx": 2,
                    "vars": {"a": "b"},
                    "gradingResult": {"pass": False},
                    "score": 0.5,
                    "namedScores": {"n": 1},
                },
                {"prompt": "Alone", "provider": "x", "response": {"output": {"n": 1}}, "tokenUsage": {"total": 3}},
            ],
        },
    },
    "zed": {
        **{key: value for key, value in EXAMPLES["zed"].items() if key != "messages"},
        "messages": [
            {"User": {"id": "u", "content": [{"Text": ASK}, {"Mention": {"uri": "file:///a.txt", "content": RESULT}},
                                             {"Image": {"source": PIXEL}}]}},
            {
                "Agent": {
                    "content": [
                        {"Thinking": {"text": "Hm.", "signature": "s"}},
                        {"RedactedThinking": "xyz"},
                        {"Text": "I look."},
                        {"ToolUse": {"id": "c1", "name": "ls", "input": {"path": "."}}},
                        {"ToolUse": {"id": "c2", "name": "cat", "raw_input": '{"a": 1}', "input": None}},
                    ],
                    "tool_results": {
                        "c1": {"tool_use_id": "c1", "tool_name": "ls", "is_error": False, "content": {"Text": RESULT}},
                        "c2": {"tool_use_id": "c2", "tool_name": "cat", "is_error": True, "content": {"Text": "no"}},
                    },
                }
            },
            {"Agent": {"content": [{"Text": ANSWER}], "tool_results": {}}},
        ],
    },
    "opencode": {
        "info": {"id": "s", "title": "Count", "version": "1"},
        "messages": [
            {"info": {"role": "user", "id": "u", "time": {"created": 1772359200000}},
             "parts": [{"type": "text", "text": ASK}, {"type": "file", "filename": "a.png", "mime": "image/png"}]},
            {
                "info": {"role": "assistant", "id": "a", "modelID": "m", "providerID": "p", "cost": 0.5,
                         "tokens": {"input": 9, "output": 2, "reasoning": 1, "cache": {"read": 4, "write": 3}},
                         "time": {"created": 1772359201000, "completed": 1772359203000}},
                "parts": [
                    {"type": "step-start"},
                    {"type": "step-start"},
                    {"type": "reasoning", "text": "Hm."},
                    {"type": "tool", "callID": "c1", "tool": "ls",
                     "state": {"status": "completed", "input": {"path": "."}, "output": RESULT}},
                    {"type": "step-finish", "cost": 0.25, "tokens": {"input": 5, "output": 1, "cache": {"read": 2}}},
                    {"type": "step-start"},
                    {"type": "patch", "hash": "h"},
                    {"type": "text", "text": ANSWER},
                ],
            },
        ],
    },
    "a log of VS Code": {
        "exportedAt": AT,
        "totalPrompts": 1,
        "prompts": [
            {
                "prompt": ASK,
                "logs": [
                    {"kind": "element", "id": "e"},
                    {
                        "kind": "request",
                        "id": "r1",
                        "name": "panel",
                        "metadata": {"model": "gpt-4o", "startTime": AT, "duration": 1500,
                                     "usage": {"prompt_tokens": 9, "completion_tokens": 2}},
                        "requestMessages": {"messages": [{"role": 0, "content": [{"type": 1, "text": "Be brief."}]},
                                                         {"role": 1, "content": [{"type": 1, "text": ASK}]}]},
                        "response": {"type": "success", "message": ["I look."]},
                    },
                    {"kind": "toolCall", "id": "c1", "tool": "ls", "args": {"path": "."}, "response": [RESULT]},
                    {
                        "kind": "request",
                        "id": "r2",
                        "metadata": {"model": "gpt-4o"},
                        "requestMessages": {"messages": [{"role": 1, "content": ASK}]},
                        "response": {"type": "success", "message": [ANSWER]},
                    },
                ],
            }
        ],
    },
    "a result of openhands": {
        "instance_id": "i",
        "metadata": {"llm_config": {"model": "m"}},
        "error": "out of turns",
        "history": EXAMPLES["openhands"],
        "metrics": {
            "accumulated_cost": 0.5,
            "accumulated_token_usage": {"prompt_tokens": 60, "completion_tokens": 10, "cache_read_tokens": 20},
            "token_usages": [{"response_id": "r1", "prompt_tokens": 20, "cache_read_tokens": 4}],
            "response_latencies": [{"response_id": "r1", "latency": 1.5}],
        },
    },
    "smolagents that call tools": [
        {key: value for key, value in step.items() if key != "code_action"} for step in EXAMPLES["smolagents"]
    ],
    "an answer beside its conversation": [
        {"model": "m", "input": [{"role": "user", "content": ASK}], "output": ANSWER,
         "metrics": {"prompt_tokens": 3, "completion_tokens": 2}},
        {"metadata": {"model": "n"}, "messages": [{"role": "user", "content": ASK}], "response": {"text": ANSWER},
         "usage": {"prompt_tokens": 4, "completion_tokens": 1}},
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_file_with_every_field_gives_what_is_stored(name: str) -> None:
    assert list(read_file(json.dumps(FILES[name]).encode()))


USAGES: tuple[dict[str, Any], ...] = (
    {},
    {"prompt_tokens": 0, "completion_tokens": 0},
    {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
    {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}},
    {"prompt_tokens": 9, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 1}},
    {"prompt_tokens": 9, "completion_tokens": 2, "cache_read_input_tokens": 20},
    {"input_tokens": 9, "output_tokens": 2},
    {"input_tokens": 9, "output_tokens": 2, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 3},
    {"input_tokens": 9, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 4}},
    {"input_tokens": 9, "cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 5}},
    {"input_tokens": 0, "output_tokens": 0, "cache_read_input_tokens": 4},
    {"inputTokens": 9, "outputTokens": 2, "cacheReadInputTokens": 4, "cacheWriteInputTokens": 3, "totalTokens": 18},
    {"input": 9, "output": 2, "cacheRead": 4, "cacheWrite": 3, "total": 18},
    {"input": 9, "output": 2, "cacheRead": 4, "cacheWrite": 3, "total": 11},
    {"input": 9, "output": 0, "cacheRead": 4, "total": 13},
    {"input": 9, "cacheRead": 4, "total": 13},
    {"promptTokenCount": 9, "candidatesTokenCount": 2},
    {"promptTokenCount": 9, "candidatesTokenCount": 2, "thoughtsTokenCount": 5, "totalTokenCount": 16},
    {"promptTokenCount": 9, "candidatesTokenCount": 2, "cachedContentTokenCount": 4, "toolUsePromptTokenCount": 3},
    {"prompt_eval_count": 9, "eval_count": 2},
    {"billed_units": {"input_tokens": 4, "output_tokens": 1}, "tokens": {"input_tokens": 9, "output_tokens": 2}},
    {"input_tokens": 1, "iterations": [{"type": "compaction", "input_tokens": 9, "output_tokens": 2}]},
    {"completion_tokens": 2},
    {"prompt_tokens": 9},
)


def test_tokens_in_each_form_are_these() -> None:
    found = {json.dumps(usage): told(usage_of(usage)) for usage in USAGES}
    check_stored(STORED / "usages.json", json.dumps(found, indent=1) + "\n")
