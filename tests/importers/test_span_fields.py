"""Spans of each tracer with every field that its reader knows: all that comes of them is stored."""

from __future__ import annotations

import json
from typing import Any

from tests.importers.whole import STORED, lines_of
from tests.support.stored import check_stored

AT = "2026-03-01T10:00:00.000Z"
LATER = "2026-03-01T10:00:02.500Z"
ASK = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Look at a.log."}]
CALLS = [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"path": "a.log"}'}}]
SAID = {"role": "assistant", "content": "It is full.", "tool_calls": CALLS}
TOOL = {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}}
REQUEST = {"model": "gpt-4.1", "messages": ASK, "tools": [TOOL], "temperature": 0.5}
CHOICES = [{"message": SAID, "finish_reason": "stop"}]
RESPONSE = {"model": "gpt-4.1-2025", "choices": CHOICES, "usage": {"prompt_tokens": 9}}
OPIK = {"trace_id": "t1", "start_time": AT, "end_time": LATER}
DATADOG = {
    "trace_id": "t1",
    "span_id": "s1",
    "parent_id": "s0",
    "start_ns": 1762000000000000000,
    "duration": 2500000000,
}
BRAINTRUST = {"root_span_id": "t1", "created": AT}
WEAVE = {"trace_id": "t1", "started_at": AT, "ended_at": LATER}
POSTHOG = {
    "$ai_trace_id": "t1",
    "$ai_span_id": "s1",
    "$ai_parent_id": "s0",
    "$ai_span_name": "chat",
    "$ai_input": ASK,
    "$ai_output_choices": [SAID],
    "$ai_model": "gpt-4.1",
    "$ai_provider": "openai",
    "$ai_input_tokens": 20,
    "$ai_output_tokens": 5,
    "$ai_cache_read_input_tokens": 12,
    "$ai_reasoning_tokens": None,
    "$ai_total_cost_usd": 0.25,
    "$ai_model_parameters": {"temperature": 0.5},
    "$ai_tools": [TOOL],
    "$ai_latency": 2.5,
}


def spans(*all: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(all)}]}]}


def span(attributes: dict[str, Any], **more: Any) -> dict[str, Any]:
    about = {"traceId": "t1", "spanId": "s1", "name": "chat", "startTimeUnixNano": "1762000000000000000"}
    return {**about, "endTimeUnixNano": "1762000002500000000", "attributes": typed(attributes), **more}


def event(name: str, **attributes: Any) -> dict[str, Any]:
    return {"name": name, "attributes": typed(attributes)}


def typed(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    """As OTLP writes them: what is no number or text as JSON."""
    kinds = {bool: "boolValue", int: "intValue", float: "doubleValue", str: "stringValue"}
    return [
        {
            "key": key,
            "value": {kinds.get(type(value), "stringValue"): value if type(value) in kinds else json.dumps(value)},
        }
        for key, value in attributes.items()
    ]


MODEL = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4.1"}
BOTH = {"gen_ai.input.messages": ASK, "gen_ai.output.messages": [SAID]}
SETTINGS = {
    f"gen_ai.request.{name}": value
    for name, value in {
        "temperature": 0.5,
        "top_p": 0.25,
        "top_k": 7,
        "max_tokens": 90,
        "seed": 3,
        "frequency_penalty": 0.125,
        "presence_penalty": 0.0625,
        "stop_sequences": ["END"],
    }.items()
}
ANSWERED = {"gen_ai.response.model": "gpt-4.1-2025", "gen_ai.response.finish_reasons": ["stop"]}
LLM = {"openinference.span.kind": "LLM", "llm.model_name": "gpt-4.1", "llm.provider": "openai", "llm.system": "other"}
FILES: dict[str, Any] = {
    "deepeval": {
        "testCases": [
            {
                "trace": {
                    "uuid": "t1",
                    "name": "a run",
                    "llmSpans": [
                        {
                            "uuid": "s1",
                            "parentUuid": "s0",
                            "name": "chat",
                            "startTime": AT,
                            "endTime": LATER,
                            "input": [
                                *ASK,
                                {"role": "Tool Input", "content": str(TOOL)},
                                {"role": "tool", "call_id": "c0", "name": "look", "arguments": "{}"},
                                {"role": "tool", "call_id": "c0", "output": "r"},
                            ],
                            "output": [{"name": "look", "inputParameters": {"path": "a.log"}}],
                            "model": "gpt-4.1",
                            "provider": "openai",
                            "inputTokenCount": 20,
                            "outputTokenCount": 5,
                            "costPerInputToken": 0.001,
                            "costPerOutputToken": 0.002,
                        },
                        {
                            "uuid": "s2",
                            "name": "chat",
                            "startTime": LATER,
                            "input": ASK,
                            "output": '{"call_id": "c1", "name": "look", "arguments": "{}"}',
                            "error": "it fell",
                        },
                        {"uuid": "s3", "startTime": LATER, "input": ASK, "output": [{"function": {"name": "look"}}]},
                    ],
                    "toolSpans": [{"uuid": "s4", "startTime": AT}],
                    "agentSpans": [{"uuid": "s5", "startTime": AT}],
                    "retrieverSpans": [{"uuid": "s6", "startTime": AT}],
                    "baseSpans": [{"uuid": "s7", "startTime": AT}],
                }
            }
        ]
    },
    "datadog": [
        {
            **DATADOG,
            "name": "chat",
            "meta": {
                "span.kind": "llm",
                "model_name": "gpt-4.1",
                "model_provider": "openai",
                "metadata": {"temperature": 0.5},
                "tool_definitions": [{"name": "look", "description": "Looks.", "schema": {"type": "object"}}],
                "input": {
                    "messages": [
                        *ASK,
                        {"tool_calls": [{"name": "look", "arguments": {}, "tool_id": "c0"}]},
                        {"role": "tool", "tool_results": [{"tool_id": "c0", "name": "look", "result": {"a": 1}}]},
                    ]
                },
                "output": {"messages": [{"content": "It is full."}]},
            },
            "metrics": {
                "input_tokens": 20,
                "output_tokens": 5,
                "cache_read_input_tokens": 12,
                "cache_write_input_tokens": 3,
                "reasoning_output_tokens": 2,
            },
        },
        {
            **DATADOG,
            "span_id": "s2",
            "status": "error",
            "meta": {"span_kind": "llm", "error.message": "too many", "input": {"value": "Look."}, "output": {}},
        },
    ],
    "datadog as its interface exports it": {
        "data": {
            "attributes": {
                "spans": [
                    {
                        "trace_id": "t1",
                        "span_id": "s1",
                        "start_ms": 1762000000000,
                        "duration": 2500000000,
                        "span": {"kind": "llm"},
                        "input": {"value": "Look."},
                        "output": {"value": "It is full."},
                        "status_message": "late",
                        "status": "error",
                    }
                ]
            }
        }
    },
    "weave": [
        {
            **WEAVE,
            "id": "s1",
            "parent_id": "s0",
            "op_name": "openai.chat",
            "inputs": REQUEST,
            "output": RESPONSE,
            "summary": {
                "usage": {"gpt-4.1": {"prompt_tokens": 20, "completion_tokens": 5}},
                "weave": {"costs": {"gpt-4.1": {"prompt_tokens_total_cost": 0.25, "x_total_cost": 0.5}}},
            },
        },
        {**WEAVE, "id": "s2", "op_name": "openai.chat", "inputs": {"args": [REQUEST]}, "exception": "too many"},
        {**WEAVE, "id": "s3", "op_name": "other", "inputs": {"a": 1}},
    ],
    "braintrust": {
        "events": [
            {
                **BRAINTRUST,
                "span_id": "s1",
                "span_parents": ["s0"],
                "span_attributes": {"type": "llm", "name": "chat"},
                "input": ASK,
                "output": [{"message": SAID, "finish_reason": "stop"}],
                "metadata": {"model": "gpt-4.1", "provider": "openai", "temperature": 0.5, "tools": [TOOL]},
                "metrics": {
                    "start": 1762000000.5,
                    "end": 1762000002.5,
                    "prompt_tokens": 20,
                    "completion_tokens": 5,
                    "prompt_cached_tokens": 12,
                    "prompt_cache_creation_tokens": 3,
                    "completion_reasoning_tokens": 2,
                    "estimated_cost": 0.25,
                },
            },
            {**BRAINTRUST, "span_id": "s2", "span_attributes": {"type": "llm"}, "input": ASK, "error": "too many"},
            {**BRAINTRUST, "span_id": "s3", "span_attributes": {"type": "task", "name": "all"}},
        ]
    },
    "opik": [
        {
            **OPIK,
            "id": "s1",
            "parent_span_id": "s0",
            "type": "llm",
            "name": "chat",
            "input": {"messages": ASK},
            "output": RESPONSE,
            "model": "gpt-4.1",
            "provider": "openai",
            "usage": {"prompt_tokens": 20, "completion_tokens": 5},
            "total_estimated_cost": 0.25,
            "metadata": {"temperature": 0.5},
        },
        {**OPIK, "id": "s2", "type": "llm", "input": {"messages": ASK}, "error_info": {"message": "too many"}},
        {**OPIK, "id": "s3", "type": "general", "name": "all"},
        {**OPIK, "id": "s4", "type": "tool", "name": "look"},
    ],
    "lunary": [
        {
            "type": "llm",
            "id": "s1",
            "parentRunId": "t1",
            "name": "gpt-4.1",
            "createdAt": AT,
            "endedAt": LATER,
            "input": ASK,
            "output": SAID,
            "params": {"temperature": 0.5, "tools": [TOOL]},
            "promptTokens": 20,
            "completionTokens": 5,
            "cost": 0.25,
        },
        {
            "type": "llm",
            "id": "s2",
            "createdAt": AT,
            "endedAt": LATER,
            "input": ASK[1],
            "error": {"message": "too many"},
        },
        {"type": "tool", "id": "s3", "parentRunId": "t1", "createdAt": AT, "endedAt": LATER},
    ],
    "posthog": [
        {"event": "$ai_generation", "uuid": "u1", "timestamp": AT, "properties": POSTHOG},
        {
            "event": "$ai_generation",
            "uuid": "u2",
            "timestamp": LATER,
            "properties": {
                "$ai_trace_id": "t1",
                "$ai_input": ASK,
                "$ai_provider": "anthropic",
                "$ai_input_tokens": 8,
                "$ai_cache_read_input_tokens": 12,
                "$ai_is_error": True,
                "$ai_error": "too many",
            },
        },
        {"event": "$ai_span", "uuid": "u3", "timestamp": LATER, "properties": {"$ai_trace_id": "t1"}},
    ],
    "the agents SDK": [
        {
            "object": "trace.span",
            "trace_id": "t1",
            "id": "s1",
            "parent_id": "s0",
            "started_at": AT,
            "ended_at": LATER,
            "span_data": {
                "type": "generation",
                "name": "chat",
                "input": ASK,
                "output": [SAID],
                "model": "gpt-4.1",
                "usage": {"input_tokens": 20, "output_tokens": 5},
                "model_config": {"temperature": 0.5},
            },
        },
        {
            "object": "trace.span",
            "trace_id": "t1",
            "id": "s2",
            "span_data": {"type": "generation", "input": ASK, "output": []},
            "error": {"message": "too many"},
        },
    ],
    "the newest conventions": spans(
        span(
            {
                **MODEL,
                **BOTH,
                **SETTINGS,
                **ANSWERED,
                "gen_ai.system_instructions": [{"type": "text", "content": "Be brief."}],
                "gen_ai.tool.definitions": [TOOL],
                "gen_ai.provider.name": "aws.bedrock",
                "gen_ai.usage.input_tokens": 20,
                "gen_ai.usage.output_tokens": 5,
                "gen_ai.usage.cache_read.input_tokens": 12,
                "gen_ai.usage.cache_creation.input_tokens": 3,
                "gen_ai.usage.reasoning.output_tokens": 2,
                "gen_ai.usage.cost": 0.25,
            }
        )
    ),
    "details of tokens": spans(
        span(
            {
                **MODEL,
                "gen_ai.prompt": ASK,
                "gen_ai.completion": [SAID],
                "gen_ai.system": "openai",
                "gen_ai.usage.input_tokens": 20,
                "gen_ai.usage.output_tokens": 5,
                "gen_ai.usage.details.cache_read_tokens": 12,
                "gen_ai.usage.details.reasoning_tokens": 2,
            }
        )
    ),
    "events": spans(
        span(
            MODEL,
            events=[
                event("gen_ai.system.message", content="Be brief."),
                event("gen_ai.user.message", content="Look."),
                event("gen_ai.assistant.message", tool_calls=CALLS),
                event("gen_ai.tool.message", content="r", id="c1"),
                event("gen_ai.choice", message=SAID),
            ],
        )
    ),
    "numbered attributes": spans(
        span(
            {
                **MODEL,
                "llm.request.type": "chat",
                "gen_ai.prompt.0.role": "user",
                "gen_ai.prompt.0.content": "Look.",
                "gen_ai.completion.0.role": "assistant",
                "gen_ai.completion.0.content": "It is full.",
                "llm.request.functions.0.name": "look",
                "llm.request.functions.0.description": "Looks.",
                "llm.request.functions.0.parameters": {"type": "object"},
            }
        )
    ),
    "vercel": spans(
        span(
            {
                "ai.model.id": "gpt-4.1",
                "ai.prompt.messages": ASK,
                "ai.prompt.tools": [TOOL],
                "ai.response.text": "It is full.",
                "ai.response.toolCalls": [{"toolCallId": "c1", "toolName": "look", "args": {"a": 1}}],
                "ai.usage.promptTokens": 20,
                "ai.usage.completionTokens": 5,
                "ai.response.providerMetadata": {
                    "anthropic": {"usage": {"input_tokens": 8, "cache_read_input_tokens": 12}}
                },
            }
        )
    ),
    "pairs": spans(
        *(
            span({"gen_ai.request.model": "gpt-4.1", asked: REQUEST, told: RESPONSE}, spanId=f"s{at}", traceId=f"t{at}")
            for at, (asked, told) in enumerate(
                (
                    ("request_data", "response_data"),
                    ("mlflow.spanInputs", "mlflow.spanOutputs"),
                    ("langfuse.observation.input", "langfuse.observation.output"),
                    ("input.value", "output.value"),
                )
            )
        )
    ),
    "what is no call, and what is kept elsewhere": spans(
        span({**MODEL, **BOTH}),
        *(
            span({"gen_ai.operation.name": kind, **BOTH}, spanId=f"n{at}")
            for at, kind in enumerate(("execute_tool", "invoke_agent", "create_agent", "embeddings", "invoke_workflow"))
        ),
        span({**MODEL, "gen_ai.input.messages_ref": "s3://a/b", "gen_ai.output.messages": [SAID]}, spanId="s2"),
        span({**MODEL, "gen_ai.input.messages": ASK, "error.type": "timeout"}, spanId="s3", status={"code": 2}),
        span({**MODEL, "gen_ai.output.messages": [SAID]}, spanId="s4"),
        span(MODEL, spanId="s5"),
    ),
    "an agent": spans(
        span({"gen_ai.operation.name": "invoke_agent", "pydantic_ai.all_messages": [*ASK, SAID], **SETTINGS}),
    ),
    "an agent's events": spans(span({"gen_ai.agent.name": "a", "all_messages_events": [*ASK, SAID]})),
    "our own": spans(
        span(
            {
                **MODEL,
                **BOTH,
                "workbench.place": "look/1/1/1/1",
                "workbench.cost": 0.25,
                "workbench.cost_grade": "estimate",
                "workbench.parameters": {"reasoning_effort": "low"},
                "workbench.usage.written_hour": 3,
            }
        ),
        span(
            {
                **MODEL,
                "gen_ai.input.messages": [{"role": "user", "content": "And now?"}],
                "gen_ai.output.messages": [{"role": "assistant", "content": "Still full."}],
                "workbench.place": "look/1/1/2/1",
                "workbench.input.after": "look/1/1/1/1",
                "workbench.input.kept": 2,
                "workbench.recorded_cost": 0.5,
                "workbench.recorded": True,
            },
            spanId="s2",
            startTimeUnixNano="1762000003000000000",
            endTimeUnixNano="1762000004000000000",
        ),
    ),
    "openinference": spans(
        span(
            {
                **LLM,
                "llm.input_messages.0.message.role": "user",
                "llm.input_messages.0.message.contents.0.message_content.type": "text",
                "llm.input_messages.0.message.contents.0.message_content.text": "Look.",
                "llm.input_messages.0.message.contents.1.message_content.type": "image",
                "llm.input_messages.0.message.contents.1.message_content.image.image.url": "https://a.b/c.png",
                "llm.output_messages.0.message.role": "assistant",
                "llm.output_messages.0.message.content": "It is full.",
                "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
                "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "look",
                "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": "{}",
                "llm.token_count.prompt": 20,
                "llm.token_count.completion": 5,
                "llm.token_count.prompt_details.cache_read": 12,
                "llm.token_count.prompt_details.cache_write": 3,
                "llm.token_count.completion_details.reasoning": 2,
                "llm.cost.total": 0.25,
                "llm.finish_reason": "stop",
                "llm.tools.0.tool.json_schema": TOOL,
                "llm.invocation_parameters": {"temperature": 0.5, "model": "m", "tools": []},
            }
        )
    ),
    "openinference as a pair": spans(
        span({**LLM, "input.value": REQUEST, "output.value": RESPONSE}),
        span({"openinference.span.kind": "CHAIN", "input.value": "a"}, spanId="s0"),
    ),
    "langfuse": {
        "trace": {
            "id": "t1",
            "name": "a trace",
            "userId": "u",
            "tags": ["x"],
            "scores": [1],
            "metadata": {"a": 1},
            "observations": [
                {
                    "type": "GENERATION",
                    "traceId": "t1",
                    "name": "chat",
                    "startTime": AT,
                    "endTime": LATER,
                    "input": {"messages": ASK, "tools": [TOOL]},
                    "output": {"choices": [*CHOICES, *CHOICES], "tools": []},
                    "model": "gpt-4.1",
                    "provider": "openai",
                    "usageDetails": {"input": 20, "output": 5, "cache_read_input_tokens": 12},
                    "costDetails": {"total": 0.25},
                    "modelParameters": {"temperature": 0.5, "seed": "null"},
                },
                {
                    "type": "generation",
                    "trace_id": "t1",
                    "start_time": LATER,
                    "end_time": LATER,
                    "input": json.dumps(
                        {"prompt": "Look.", "config": {"system_instruction": "Be brief.", "tools": [TOOL]}}
                    ),
                    "output": {"text": "It is full."},
                    "provided_model_name": "gpt-4.1",
                    "usage_details": {"input": 20, "output": 5},
                    "calculatedTotalCost": 0.5,
                },
                {"type": "GENERATION", "traceId": "t1", "startTime": LATER, "input": "Look.", "status_message": "late"},
                {
                    "type": "GENERATION",
                    "traceId": "t1",
                    "startTime": LATER,
                    "input": {"role": "user", "content": "Look.", "previous_response_id": "r0"},
                    "output": {
                        "output": [{"type": "function_call", "name": "look", "arguments": "{}", "call_id": "c1"}]
                    },
                    "usage": {"input": 3, "output": 1},
                    "totalCost": 0.75,
                },
                {
                    "type": "GENERATION",
                    "traceId": "t1",
                    "startTime": LATER,
                    "input": [*ASK, {"role": "tool", "content": TOOL}, "bare"],
                    "output": [{"toolName": "look", "toolCallId": "c1", "args": {}}],
                    "seconds": 1.5,
                },
                {
                    "type": "GENERATION",
                    "traceId": "t1",
                    "startTime": LATER,
                    "input": {"contents": [{"role": "user", "content": json.dumps(CALLS)}], "system": "Be brief."},
                    "output": {"content": "It is full."},
                },
                {"type": "SPAN", "traceId": "t1", "startTime": AT, "name": "all", "output": None},
                {"type": "EVENT", "traceId": "t1", "startTime": AT, "name": "begun"},
            ],
        }
    },
    "langsmith": {
        "post": [
            {
                "id": "s1",
                "trace_id": "t1",
                "run_type": "llm",
                "name": "chat",
                "start_time": AT,
                "inputs": {"messages": [ASK], "tools": [TOOL]},
                "extra": {
                    "invocation_params": {"model_name": "gpt-4.1", "temperature": 0.5, "tools": [TOOL]},
                    "metadata": {"ls_model_name": "gpt-4.1-2025", "ls_provider": "openai"},
                },
            },
            {
                "dotted_order": f"x{'0' * 8}-0000-0000-0000-{'0' * 12}",
                "trace_id": "t1",
                "run_type": "llm",
                "start_time": LATER,
                "inputs": {"prompts": ["Look."]},
                "error": "too many",
            },
            {"id": "s3", "trace_id": "t1", "run_type": "chain", "name": "all", "start_time": LATER, "tags": ["x"]},
            {"id": "s4", "trace_id": "t1", "run_type": "llm", "name": "silent", "start_time": LATER, "inputs": {}},
        ],
        "patch": [
            {
                "id": "s1",
                "end_time": LATER,
                "total_cost": 0.25,
                "outputs": {
                    "generations": [[{"message": SAID, "generation_info": {"finish_reason": "stop"}}]],
                    "llm_output": {"token_usage": {"prompt_tokens": 20, "completion_tokens": 5}},
                },
            }
        ],
    },
    "runs in runs of langsmith": {
        "id": "s0",
        "run_type": "chain",
        "trace_id": "t1",
        "start_time": AT,
        "error": "it fell",
        "child_runs": [
            {
                "id": "s1",
                "trace_id": "t1",
                "run_type": "llm",
                "start_time": AT,
                "inputs": {"messages": ASK},
                "outputs": {
                    "generations": [[{"text": "It is full."}]],
                    "usage_metadata": {"input_tokens": 20, "output_tokens": 5},
                },
            },
            {
                "id": "s2",
                "trace_id": "t1",
                "run_type": "llm",
                "start_time": LATER,
                "inputs": {"messages": ASK},
                "outputs": {**RESPONSE, "llm_output": {"usage": {"prompt_tokens": 7}}},
            },
        ],
    },
    "events of langchain": [
        {"event": "on_chat_model_start", "run_id": "s1", "name": "chat", "data": {"input": {"messages": [ASK]}}},
        {"event": "on_chat_model_stream", "run_id": "s1", "data": {}},
        {"event": "on_chat_model_end", "run_id": "s1", "metadata": {"ls_provider": "openai"}, "data": {"output": SAID}},
        {"event": "on_llm_start", "run_id": "s2", "name": "text", "data": {"input": {"prompts": ["Look."]}}},
        {"event": "on_llm_error", "run_id": "s2", "data": {"error": "too many"}},
        {"event": "on_chain_end", "run_id": "s3", "name": "all", "data": {"output": {"generations": []}}},
    ],
}


def test_spans_with_every_field_give_what_is_stored() -> None:
    lines = [line for name, body in FILES.items() for line in (f"== {name}", *lines_of(json.dumps(body).encode()))]
    check_stored(STORED / "fields-spans.txt", "\n".join(lines) + "\n")
