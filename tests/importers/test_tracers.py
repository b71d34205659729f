"""Exports of tracers and of chat applications, each with names of its own for the same story."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.importers.examples import ANSWER, ARGUMENTS, ASK, OPENAI, RESULT, SCHEMA, SYSTEM, WEAVE
from tests.importers.whole import read_file
from workbench.importers.conversation import Conversation, Unreadable

CALLED, RESULTED, ANSWERED = OPENAI[2:]
GIVEN = {1: OPENAI[:2], 2: OPENAI[:4]}
SAID = {1: CALLED, 2: ANSWERED}


def read(body: Any) -> Conversation:
    (found,) = read_file(json.dumps(body).encode())
    return found.conversation


def deepeval(number: int) -> dict[str, Any]:
    asked = {"call_id": "c1", "type": "function", "name": "ls", "arguments": {"path": "."}}
    items = [*OPENAI[:2], asked, {"call_id": "c1", "type": "tool", "output": RESULT}]
    return {
        "uuid": f"u{number}",
        "type": "llm",
        "startTime": f"2026-01-01T09:00:0{number}Z",
        "endTime": f"2026-01-01T09:00:0{number + 1}Z",
        "input": items[: 2 * number],
        "output": [{"name": "ls", "type": "FUNCTION", "inputParameters": {"path": "."}}] if number == 1 else ANSWER,
        "model": "gpt-4o",
        "inputTokenCount": 20.0 * number,
        "outputTokenCount": 5.0,
    }


def datadog(number: int) -> dict[str, Any]:
    call = {"name": "ls", "arguments": {"path": "."}, "tool_id": "c1", "type": "function"}
    result = {"role": "tool", "content": "", "tool_results": [{"name": "ls", "result": RESULT, "tool_id": "c1"}]}
    said = [*OPENAI[:2], {"role": "assistant", "content": "", "tool_calls": [call]}, result, ANSWERED]
    return {
        "trace_id": "t",
        "span_id": str(number),
        "parent_id": "9",
        "start_ns": 1_767_258_000_000_000_000 + number * 10**9,
        "duration": 10**9,
        "status": "ok",
        "meta": {
            "span.kind": "llm",
            "model_name": "gpt-4o",
            "input": {"messages": said[: 2 * number]},
            "output": {"messages": [said[2 * number]]},
        },
        "metrics": {"input_tokens": 20 * number, "output_tokens": 5},
    }


def braintrust(number: int) -> dict[str, Any]:
    return {
        "span_id": str(number),
        "root_span_id": "s",
        "span_parents": ["s"],
        "span_attributes": {"name": "call", "type": "llm"},
        "input": GIVEN[number],
        "output": [{"message": SAID[number], "finish_reason": "stop"}],
        "metadata": {"model": "gpt-4o"},
        "metrics": {
            "start": 1_767_258_000 + number,
            "end": 1_767_258_001 + number,
            "prompt_tokens": 20 * number,
            "completion_tokens": 5,
        },
    }


def opik(number: int) -> dict[str, Any]:
    return {
        "id": str(number),
        "trace_id": "t",
        "type": "llm",
        "start_time": f"2026-01-01T09:00:0{number}Z",
        "end_time": f"2026-01-01T09:00:0{number + 1}Z",
        "input": {"args": [{"messages": GIVEN[number]}]},
        "output": {"choices": [{"message": SAID[number]}]},
        "usage": {"prompt_tokens": 20 * number, "completion_tokens": 5},
        "model": "gpt-4o",
    }


def lunary(number: int) -> dict[str, Any]:
    return {
        "id": str(number),
        "type": "llm",
        "name": "gpt-4o",
        "parentRunId": "run",
        "createdAt": f"2026-01-01T09:00:0{number}Z",
        "endedAt": f"2026-01-01T09:00:0{number + 1}Z",
        "input": GIVEN[number],
        "output": SAID[number],
        "tokens": {"prompt": 20 * number, "completion": 5},
    }


def posthog(number: int) -> dict[str, Any]:
    told = {
        "trace_id": "t",
        "model": "gpt-4o",
        "input": GIVEN[number],
        "output_choices": [SAID[number]],
        "input_tokens": 20 * number,
        "output_tokens": 5,
        "latency": 1.0,
    }
    properties = {f"$ai_{name}": value for name, value in told.items()}
    return {"event": "$ai_generation", "timestamp": f"2026-01-01T09:00:0{number}Z", "properties": properties}


def agents_sdk(number: int) -> dict[str, Any]:
    usage = {"input_tokens": 20 * number, "output_tokens": 5}
    data = {"type": "generation", "input": GIVEN[number], "output": [SAID[number]], "model": "gpt-4o", "usage": usage}
    return {
        "object": "trace.span",
        "id": str(number),
        "trace_id": "t",
        "started_at": f"2026-01-01T09:00:0{number}Z",
        "ended_at": f"2026-01-01T09:00:0{number + 1}Z",
        "span_data": data,
    }


TRACERS: dict[str, Any] = {
    "weave": WEAVE,
    "deepeval": {"testCases": [{"trace": {"uuid": "t", "llmSpans": [deepeval(2), deepeval(1)], "baseSpans": []}}]},
    "datadog": {"data": {"type": "span", "attributes": {"ml_app": "count", "spans": [datadog(1), datadog(2)]}}},
    "braintrust": {"events": [braintrust(1), braintrust(2)]},
    "opik": [opik(1), opik(2)],
    "lunary": [lunary(1), lunary(2)],
    "posthog": [posthog(1), posthog(2)],
    "agents-sdk": {"data": [agents_sdk(1), agents_sdk(2)]},
}


@pytest.mark.parametrize("name", TRACERS)
def test_the_calls_of_a_tracer_are_one_conversation(name: str) -> None:
    (thread,) = read(TRACERS[name]).threads
    assert [one.role for one in thread.said] == ["system", "user", "assistant", "tool", "assistant"]
    assert [one.text for one in thread.said if one.text] == [SYSTEM, ASK, RESULT, ANSWER]
    (call,) = thread.said[2].calls
    assert (call.name, json.loads(call.arguments), thread.model) == ("ls", json.loads(ARGUMENTS), "gpt-4o")
    first = thread.said[2].call
    assert first is not None
    assert (first.usage.input, first.usage.output, first.duration_s) == (20, 5, 1.0)
    assert first.at.startswith("2026-01-01T09:00:0")


def test_a_failed_call_a_price_and_what_the_cache_read_are_those_of_the_tracer() -> None:
    failed = {**deepeval(2), "output": None, "error": "RateLimitError: too many"}
    priced = {**deepeval(1), "costPerInputToken": 0.001, "costPerOutputToken": 0.002}
    (thread,) = read({"uuid": "t", "llmSpans": [priced, failed], "toolSpans": []}).threads
    calls = [one.call for one in thread.said if one.call is not None]
    assert [(one.cost, one.fault) for one in calls] == [(0.03, ""), (None, "RateLimitError: too many")]
    counts = {"input_tokens": 20, "output_tokens": 5, "cache_read_input_tokens": 8}
    (thread,) = read([{**datadog(1), "metrics": counts}]).threads
    assert thread.said[2].call is not None
    assert (thread.said[2].call.usage.input, thread.said[2].call.usage.cached) == (20, 8)


def test_exports_that_are_nested_too_deep_are_refused_in_words() -> None:
    text = '{"data":[' * 480 + '{"op_name":1}' + "]}" * 480
    with pytest.raises(Unreadable, match="nested too deep"):
        list(read_file(text.encode()))


def test_each_result_in_a_message_of_datadog_is_one() -> None:
    span = datadog(2)
    span["meta"]["input"]["messages"][3]["tool_results"].append({"name": "ls", "result": "c.txt", "tool_id": "c2"})
    (thread,) = read([span]).threads
    assert [(one.text, one.call_id) for one in thread.said if one.role == "tool"] == [(RESULT, "c1"), ("c.txt", "c2")]


def test_a_call_that_wraps_a_call_is_not_counted_twice() -> None:
    wrapper = {**WEAVE[1], "id": "outer", "op_name": "weave:///team/project/op/litellm.completion:1"}
    inner = {**WEAVE[1], "parent_id": "outer"}
    found = read([WEAVE[0], wrapper, inner])
    assert [thread.calls for thread in found.threads] == [1]
    assert found.notes == ("a span that is not a model call is kept beside the run (2 times)",)


def test_definitions_of_tools_among_the_messages_are_tools() -> None:
    given = [*OPENAI[:2], {"role": "Tool Input", "content": str(SCHEMA)}]
    (thread,) = read({"uuid": "t", "llmSpans": [{**deepeval(1), "input": given}]}).threads
    assert [tool["function"]["name"] for tool in thread.tools] == ["ls"]
    assert [one.role for one in thread.said] == ["system", "user", "assistant"]


# -- chat applications -------------------------------------------------------------------------------------------------

PARTS = {"type": "text", "text": ANSWER}
USE = {"type": "tool_use", "id": "c1", "name": "ls", "input": {"path": "."}}
LIBRECHAT = [
    {"messageId": "1", "text": ASK, "isCreatedByUser": True},
    {"messageId": "2", "parentMessageId": "1", "text": "Wrong.", "isCreatedByUser": False},
    {
        "messageId": "3",
        "parentMessageId": "1",
        "isCreatedByUser": False,
        "model": "gpt-4o",
        "createdAt": "2026-01-01T09:00:01Z",
        "content": [
            {"type": "tool_call", "tool_call": {"id": "c1", "name": "ls", "args": ARGUMENTS, "output": RESULT}},
            PARTS,
        ],
    },
]
NODES = {
    "1": {"parentId": None, "role": "user", "content": ASK},
    "2": {"parentId": "1", "role": "assistant", "content": "Wrong."},
    "3": {"parentId": "1", "role": "assistant", "content": ANSWER, "model": "gpt-4o", "timestamp": 1_767_258_001},
}
STEPS = [
    {
        "type": "contentBlock",
        "content": [{"type": "toolCallRequest", "toolCallRequestId": "c1", "name": "ls", "parameters": {"path": "."}}],
        "genInfo": {"indexedModelIdentifier": "gpt-4o"},
    },
    {"type": "contentBlock", "content": [{"type": "toolCallResult", "toolCallRequestId": "c1", "content": RESULT}]},
    {
        "type": "contentBlock",
        "content": [PARTS],
        "genInfo": {
            "indexedModelIdentifier": "gpt-4o",
            "stats": {"promptTokensCount": 40, "predictedTokensCount": 5},
        },
    },
]
CHATS: dict[str, Any] = {
    "claude": {
        "name": "count",
        "current_leaf_message_uuid": "3",
        "chat_messages": [
            {"uuid": "1", "sender": "human", "text": ASK},
            {"uuid": "2", "sender": "assistant", "text": "Wrong.", "parent_message_uuid": "1"},
            {
                "uuid": "3",
                "sender": "assistant",
                "parent_message_uuid": "1",
                "created_at": "2026-01-01T09:00:01Z",
                "content": [USE, {"type": "tool_result", "tool_use_id": "c1", "content": RESULT}, PARTS],
            },
        ],
    },
    "librechat": {"title": "count", "options": {"promptPrefix": SYSTEM}, "messages": LIBRECHAT},
    "open-webui": [{"title": "count", "chat": {"history": {"currentId": "3", "messages": NODES}}}],
    "lm-studio": {
        "name": "count",
        "systemPrompt": SYSTEM,
        "messages": [
            {"versions": [{"type": "singleStep", "role": "user", "content": [{"type": "text", "text": ASK}]}]},
            {
                "versions": [
                    {"type": "multiStep", "role": "assistant", "steps": STEPS[2:]},
                    {"type": "multiStep", "role": "assistant", "steps": STEPS},
                ],
                "currentlySelected": 1,
            },
        ],
    },
}


@pytest.mark.parametrize("name", CHATS)
def test_a_chat_is_the_branch_that_was_shown(name: str) -> None:
    found = read(CHATS[name])
    (thread,) = found.threads
    said = [one for one in thread.said if one.role != "system"]
    story = [ASK, ANSWER] if name == "open-webui" else [ASK, "", RESULT, ANSWER]
    assert [one.text for one in said] == story
    assert (said[-1].call is not None, found.title) == (True, "count")
    assert found.notes == ("a message of a branch that is not the one shown is left out",)
    if len(said) > 2:
        assert ([call.id for call in said[1].calls], said[2].call_id) == (["c1"], "c1")
    call = said[-1].call
    assert call is not None
    assert (call.model, call.at[:19]) == {
        "claude": ("", "2026-01-01T09:00:01"),
        "lm-studio": ("gpt-4o", ""),
    }.get(name, ("gpt-4o", "2026-01-01T09:00:01"))
    if name == "lm-studio":
        assert (call.usage.input, call.usage.output) == (40, 5)


def test_a_message_says_its_text_model_and_time_in_names_of_its_own() -> None:
    answer = {"role": "assistant", "text": ANSWER, "model": "gpt-4o", "createdAt": 1_767_258_001_000}
    (thread,) = read({"id": "t", "messages": [{"role": "user", "text": ASK}, answer]}).threads
    assert [one.text for one in thread.said] == [ASK, ANSWER]
    call = thread.said[1].call
    assert call is not None
    assert (call.model, call.at[:19]) == ("gpt-4o", "2026-01-01T09:00:01")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"version": 1, "stage": "done", "batch": {}, "results": [{"response": {}}]}, "answers of a batch"),
        ({"custom_id": "r1", "response": {"body": {"output": []}}}, "answers of a batch"),
        ([{"ts": 1, "type": "say", "say": "text", "text": ASK}], "api_conversation_history.json"),
        ({"testCases": [{"input": ASK, "actualOutput": ANSWER}]}, "a test run of DeepEval without traces"),
    ],
)
def test_what_states_no_request_is_refused_by_its_name(body: Any, words: str) -> None:
    with pytest.raises(Unreadable, match=words):
        read(body)
