"""One small file of each format, telling the same story: a question, a tool call, its result, an answer."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from typing import Any

SYSTEM, ASK, RESULT, ANSWER = "Be brief.", "How many files are there?", "a.txt\nb.txt", "There are two."
ARGUMENTS = '{"path": "."}'
SCHEMA = {"type": "function", "function": {"name": "ls", "description": "Lists.", "parameters": {"type": "object"}}}
OPENAI_CALL = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": ARGUMENTS}}
OPENAI: list[dict[str, Any]] = [
    {"role": "system", "content": SYSTEM},
    {"role": "user", "content": ASK},
    {"role": "assistant", "content": None, "tool_calls": [OPENAI_CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": RESULT},
    {"role": "assistant", "content": ANSWER},
]
ANTHROPIC: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "system": SYSTEM,
    "messages": [
        {"role": "user", "content": ASK},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "ls", "input": {"path": "."}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": RESULT}]},
        {"role": "assistant", "content": [{"type": "text", "text": ANSWER}]},
    ],
}
TEXT_PROTOCOL: list[dict[str, Any]] = [
    {"role": "system", "content": SYSTEM},
    {"role": "user", "content": ASK},
    {"role": "assistant", "content": "I look.\n```bash\nls\n```"},
    {"role": "user", "content": f"<returncode>0</returncode>\n{RESULT}"},
    {"role": "assistant", "content": ANSWER},
]
SWE_AGENT: dict[str, Any] = {
    "environment": "repo",
    "trajectory": [{"action": "ls", "observation": RESULT}],
    "history": [
        *TEXT_PROTOCOL[:2],
        {"role": "assistant", "content": "I look.", "action": "ls"},
        {"role": "user", "content": RESULT},
        {"role": "assistant", "content": ANSWER, "action": "submit"},
    ],
    "info": {"exit_status": "submitted", "model_stats": {"tokens_sent": 99}},
}


def _openhands() -> list[dict[str, Any]]:
    def metadata(answer: dict[str, Any], number: int) -> dict[str, Any]:
        usage = {"prompt_tokens": 20 * number, "completion_tokens": 5}
        response = {"id": f"r{number}", "model": "gpt-4o", "choices": [{"message": answer}], "usage": usage}
        return {"function_name": "ls", "tool_call_id": "c1", "model_response": response}

    first, last = metadata(OPENAI[2], 1), metadata(OPENAI[4], 2)
    return [
        {"source": "agent", "action": "system", "args": {"content": SYSTEM, "tools": [SCHEMA]}},
        {"source": "user", "action": "message", "args": {"content": ASK}},
        {
            "source": "agent",
            "action": "run",
            "args": {},
            "tool_call_metadata": first,
            "timestamp": "2026-01-01T09:00:00",
        },
        {"source": "agent", "observation": "run", "content": RESULT, "tool_call_metadata": first},
        {"source": "environment", "observation": "recall", "content": "context"},
        {"source": "agent", "action": "message", "args": {}, "tool_call_metadata": last},
    ]


def _model_event(number: int) -> dict[str, Any]:
    call = {"id": "c1", "function": "ls", "arguments": {"path": "."}}
    messages = [*OPENAI[:2], {"role": "assistant", "content": "", "tool_calls": [call]}, OPENAI[3]]
    answer = messages[2] if number == 1 else OPENAI[4]
    return {
        "event": "model",
        "timestamp": f"2026-01-01T09:00:0{number}+00:00",
        "completed": f"2026-01-01T09:00:0{number}.5+00:00",
        "model": "openai/gpt-4o",
        "input": messages[: 2 * number],
        "tools": [{"name": "ls", "description": "Lists.", "parameters": {"type": "object"}}],
        "config": {"temperature": 0},
        "output": {
            "model": "gpt-4o",
            "choices": [{"message": answer, "stop_reason": "stop"}],
            "usage": {"input_tokens": 20, "output_tokens": 5, "total_tokens": 25},
        },
    }


INSPECT: dict[str, Any] = {
    "version": 2,
    "status": "success",
    "eval": {"task": "count", "model": "openai/gpt-4o"},
    "plan": {},
    "samples": [{"id": 1, "epoch": 1, "messages": OPENAI, "events": [_model_event(1), _model_event(2)]}],
}


def inspect_zip(sample: bytes | None = None) -> bytes:
    """The same log as Inspect's zip."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        header = {key: value for key, value in INSPECT.items() if key != "samples"}
        archive.writestr("header.json", json.dumps(header))
        archive.writestr("samples/1_epoch_1.json", sample or json.dumps(INSPECT["samples"][0]).encode())
    return packed.getvalue()


def _otlp(value: Any) -> dict[str, Any]:
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


def _gen_ai_span(number: int) -> dict[str, Any]:
    call = {"type": "tool_call", "id": "c1", "name": "ls", "arguments": {"path": "."}}
    said = [
        {"role": "user", "parts": [{"type": "text", "content": ASK}]},
        {"role": "assistant", "parts": [call]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": RESULT}]},
        {"role": "assistant", "parts": [{"type": "text", "content": ANSWER}], "finish_reason": "stop"},
    ]
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": SYSTEM}]),
        "gen_ai.input.messages": json.dumps(said[: 2 * number - 1]),
        "gen_ai.output.messages": json.dumps([said[2 * number - 1]]),
        "gen_ai.usage.input_tokens": 20,
        "gen_ai.usage.output_tokens": 5,
    }
    start = 1_767_258_000_000_000_000 + number * 1_000_000_000
    return {
        "traceId": "t1",
        "name": "chat gpt-4o",
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + 500_000_000),
        "attributes": [{"key": key, "value": _otlp(value)} for key, value in attributes.items()],
    }


OTEL: dict[str, Any] = {"resourceSpans": [{"scopeSpans": [{"spans": [_gen_ai_span(2), _gen_ai_span(1)]}]}]}


def _inference_span(number: int) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "gpt-4o",
        "llm.token_count.prompt": 20,
        "llm.token_count.completion": 5,
        "llm.invocation_parameters": '{"temperature": 0}',
    }
    for i, body in enumerate(OPENAI[: 2 * number]):
        attributes |= _flat(f"llm.input_messages.{i}.message", body)
    attributes |= _flat("llm.output_messages.0.message", OPENAI[2 * number])
    context = {"trace_id": "t1", "span_id": f"s{number}"}
    return {
        "name": "ChatCompletion",
        "context": context,
        "start_time": f"2026-01-01T09:00:0{number}+00:00",
        "end_time": f"2026-01-01T09:00:0{number}.5+00:00",
        "attributes": attributes,
    }


def _flat(prefix: str, body: dict[str, Any]) -> dict[str, Any]:
    flat = {f"{prefix}.{key}": body[key] for key in ("role", "content", "tool_call_id") if body.get(key)}
    for i, call in enumerate(body.get("tool_calls", ())):
        at = f"{prefix}.tool_calls.{i}.tool_call"
        flat |= {f"{at}.id": call["id"], f"{at}.function.name": "ls", f"{at}.function.arguments": ARGUMENTS}
    return flat


OPENINFERENCE: list[dict[str, Any]] = [
    _inference_span(1),
    _inference_span(2),
    {"name": "agent", "attributes": {"a": 1}},
]
LANGFUSE: dict[str, Any] = {
    "trace": {"id": "t1", "name": "count files", "scores": [{"name": "right", "value": 1}]},
    "observations": [
        {
            "type": "GENERATION",
            "name": "chat",
            "model": "gpt-4o",
            "startTime": f"2026-01-01T09:00:0{number}.000Z",
            "endTime": f"2026-01-01T09:00:0{number}.500Z",
            "input": json.dumps(OPENAI[: 2 * number]),
            "output": json.dumps(OPENAI[2 * number]),
            "usageDetails": {"input": 20, "output": 5, "total": 25},
            "costDetails": {"total": 0.001},
        }
        for number in (1, 2)
    ]
    + [{"type": "TOOL", "name": "ls", "startTime": "2026-01-01T09:00:01.600Z"}],
}
LLM_LOG: dict[str, Any] = {
    "messages": OPENAI[:4],
    "kwargs": {"tools": [SCHEMA], "temperature": 0.0},
    "response": {
        "model": "gpt-4o",
        "choices": [{"finish_reason": "stop", "message": OPENAI[4]}],
        "usage": {"prompt_tokens": 40, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 16}},
    },
    "cost": 0.002,
    "timestamp": 1_767_258_000.5,
    "latency_sec": 1.5,
}


def _payload(value: Any) -> dict[str, Any]:
    return {"payloads": [{"data": base64.b64encode(json.dumps(value).encode()).decode()}]}


def _activity(number: int) -> list[dict[str, Any]]:
    """The events of a model's activity, as the OpenAI Agents plugin writes them."""
    item = {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": ARGUMENTS}
    items = [OPENAI[1], item, {"type": "function_call_output", "call_id": "c1", "output": RESULT}]
    request = {"system_instructions": SYSTEM, "input": items[: 2 * number - 1], "model_name": "gpt-4o"}
    answer = item if number == 1 else {"type": "message", "role": "assistant", "content": [{"text": ANSWER}]}
    told = {"activityType": {"name": "invoke_model_activity"}, "input": _payload(request)}
    usage = {"input_tokens": 20, "output_tokens": 5}
    result = {"scheduledEventId": f"{number}", "result": _payload({"output": [answer], "usage": usage})}
    at = f"2026-01-01T09:00:0{number}Z"
    return [
        {"eventId": f"{number}", "eventType": "A", "eventTime": at, "activityTaskScheduledEventAttributes": told},
        {"eventId": "9", "eventType": "B", "eventTime": at, "activityTaskCompletedEventAttributes": result},
    ]


def _langsmith_run(number: int) -> dict[str, Any]:
    return {
        "run_type": "llm",
        "trace_id": "t1",
        "name": "ChatOpenAI",
        "start_time": f"2026-01-01T09:00:0{number}",
        "end_time": f"2026-01-01T09:00:0{number}.5",
        "inputs": {"messages": [[_langchain(one) for one in OPENAI[: 2 * number]]]},
        "outputs": {"generations": [[{"text": "", "message": _langchain(OPENAI[2 * number])}]]},
        "extra": {"invocation_params": {"model": "gpt-4o"}},
        "prompt_tokens": 20,
        "completion_tokens": 5,
    }


def _langchain(body: dict[str, Any]) -> dict[str, Any]:
    kind = {"system": "System", "user": "Human", "assistant": "AI", "tool": "Tool"}[body["role"]]
    calls = [{"id": "c1", "name": "ls", "args": {"path": "."}}] if "tool_calls" in body else []
    kwargs = {"content": body["content"] or "", "tool_calls": calls, "tool_call_id": body.get("tool_call_id")}
    return {"lc": 1, "type": "constructor", "id": ["langchain", "messages", f"{kind}Message"], "kwargs": kwargs}


def _interaction(number: int) -> dict[str, Any]:
    request = {"model": "gpt-4o", "temperature": 0, "messages": OPENAI[: 2 * number]}
    usage = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
    response = {"model": "gpt-4o", "choices": [{"message": OPENAI[2 * number]}], "usage": usage}
    return {
        "request": {"method": "POST", "uri": "https://a.test/v1/chat/completions", "body": json.dumps(request)},
        "response": {
            "status": {"code": 200},
            "headers": {"Date": [f"Thu, 01 Jan 2026 09:00:0{number} GMT"]},
            "body": {"string": json.dumps(response)},
        },
    }


def _step(number: int) -> list[dict[str, Any]]:
    """What Burr's tracker logs of a step."""
    at = f"2026-01-01T09:00:0{number}"
    state = {"chat_history": OPENAI[: 2 * number + 1]}
    return [
        {"type": "begin_entry", "start_time": at, "action": "answer", "sequence_id": number},
        {"type": "end_entry", "end_time": f"{at}.5", "action": "answer", "sequence_id": number, "state": state},
    ]


def _line(body: dict[str, Any], number: int) -> dict[str, Any]:
    """A message as Claude Code logs it."""
    kind = "assistant" if body["role"] == "assistant" else "user"
    usage = {"usage": {"input_tokens": 4, "cache_read_input_tokens": 16, "output_tokens": 5}} if kind != "user" else {}
    at = f"2026-01-01T09:00:0{number}Z"
    return {"type": kind, "uuid": f"{number}", "timestamp": at, "message": {**body, **usage}}


def _kinds() -> list[dict[str, Any]]:
    """The story as Pydantic AI writes its messages."""
    usage = {"model_name": "gpt-4o", "usage": {"input_tokens": 20, "output_tokens": 5}}
    at = [{"timestamp": f"2026-01-01T09:00:0{number}Z"} for number in (1, 2)]
    asked = [{"part_kind": "system-prompt", "content": SYSTEM}, {"part_kind": "user-prompt", "content": ASK}]
    call = {"part_kind": "tool-call", "tool_name": "ls", "args": {"path": "."}, "tool_call_id": "c1"}
    result = {"part_kind": "tool-return", "tool_name": "ls", "content": RESULT, "tool_call_id": "c1"}
    return [
        {"kind": "request", "parts": asked},
        {"kind": "response", "parts": [call], **usage, **at[0]},
        {"kind": "request", "parts": [result]},
        {"kind": "response", "parts": [{"part_kind": "text", "content": ANSWER}], **usage, **at[1]},
    ]


def _memory() -> list[dict[str, Any]]:
    """The story as the steps of smolagents state what their calls saw; the system prompt is no step."""

    def said(role: str, text: str) -> dict[str, Any]:
        return {"role": role, "content": [{"type": "text", "text": text}], "tool_calls": None, "raw": None}

    def action(number: int, text: str, input: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        return {
            "step_number": number,
            "timing": {"start_time": 1767258000.0 + number, "end_time": 1767258009.0, "duration": 9.0 - number},
            "model_input_messages": input,
            "model_output_message": {"role": "assistant", "content": text, "raw": {"model": "gpt-4o"}},
            "model_output": text,
            "token_usage": {"input_tokens": 20, "output_tokens": 5, "total_tokens": 25},
            "is_final_answer": number == 2,
            **more,
        }

    asked = [said("system", SYSTEM), said("user", ASK)]
    call = {"id": "c1", "type": "function", "function": {"name": "python_interpreter", "arguments": "ls()"}}
    left = [said("assistant", "I look."), said("tool-call", f"Calling tools:\n[{call}]")]
    seen = [*asked, *left, said("tool-response", f"Observation:\n{RESULT}")]
    return [
        {"task": ASK, "task_images": None},
        action(1, "I look.", asked, tool_calls=[call], code_action="ls()", observations=RESULT),
        action(2, ANSWER, seen),
    ]


ADK_PARTS: list[tuple[str, dict[str, Any]]] = [
    ("user", {"text": ASK}),
    ("model", {"text": None, "function_call": {"id": "c1", "name": "ls", "args": {"path": "."}}}),
    ("user", {"functionResponse": {"id": "c1", "name": "ls", "response": {"result": RESULT}}, "text": None}),
    ("model", {"text": ANSWER, "function_call": None}),
]
ADK: dict[str, Any] = {
    "app_name": "count",
    "events": [
        {
            "author": "user" if i == 0 else "counter",
            "content": {"role": role, "parts": [part]},
            "timestamp": 1_767_258_000 + i,
            "usage_metadata": {"prompt_token_count": 20, "candidates_token_count": 5} if role == "model" else None,
        }
        for i, (role, part) in enumerate(ADK_PARTS)
    ],
}
"""The story as a session of Google's ADK, which holds no system text."""
ATIF: dict[str, Any] = {
    "schema_version": "ATIF-v1.5",
    "session_id": "s",
    "agent": {"name": "counter", "model_name": "gpt-4o", "tool_definitions": [SCHEMA]},
    "steps": [
        {"step_id": 1, "source": "system", "message": SYSTEM},
        {"step_id": 2, "source": "user", "message": ASK},
        {
            "step_id": 3,
            "source": "agent",
            "timestamp": "2026-01-01T09:00:01Z",
            "message": "",
            "tool_calls": [{"tool_call_id": "c1", "function_name": "ls", "arguments": {"path": "."}}],
            "observation": {"results": [{"source_call_id": "c1", "content": RESULT}]},
            "metrics": {"prompt_tokens": 20, "completion_tokens": 5, "cost_usd": 0.001},
        },
        {"step_id": 4, "source": "agent", "message": ANSWER, "timestamp": "2026-01-01T09:00:02Z"},
    ],
}


def _weave(number: int) -> dict[str, Any]:
    usage = {"prompt_tokens": 20 * number, "completion_tokens": 5}
    return {
        "id": f"call{number}",
        "op_name": "weave:///team/project/op/openai.chat.completions.create:1",
        "trace_id": "t",
        "parent_id": "run",
        "started_at": f"2026-01-01T09:00:0{2 * number}Z",
        "ended_at": f"2026-01-01T09:00:0{2 * number + 1}Z",
        "inputs": {"model": "gpt-4o", "messages": OPENAI[: 2 * number], "tools": [SCHEMA], "temperature": 0.2},
        "output": {"model": "gpt-4o", "choices": [{"message": OPENAI[2 * number], "finish_reason": "stop"}]},
        "summary": {"usage": {"gpt-4o": usage}},
    }


WEAVE: list[dict[str, Any]] = [
    {
        **_weave(2),
        "id": "run",
        "op_name": "weave:///team/project/op/count:1",
        "parent_id": None,
        "inputs": {"question": ASK},
        "output": ANSWER,
    },
    _weave(1),
    _weave(2),
]
RUN_STATE: dict[str, Any] = {
    "$schemaVersion": "1.12",
    "original_input": OPENAI[:2],
    "context": {"usage": {"requests": 2, "input_tokens": 60, "output_tokens": 10}},
    "model_responses": [
        {
            "output": [{"type": "function_call", "call_id": "c1", "name": "ls", "arguments": ARGUMENTS}],
            "usage": {"input_tokens": 20, "output_tokens": 5, "input_tokens_details": [{"cached_tokens": 8}]},
            "response_id": "r1",
        },
        {
            "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]}],
            "usage": {"input_tokens": 40, "output_tokens": 5},
        },
    ],
    "generated_items": [
        {
            "raw_item": {"type": "function_call_output", "call_id": "c1", "output": RESULT},
            "type": "tool_call_output_item",
        }
    ],
    "last_processed_response": {"functions": [{"tool": {"name": "ls", "paramsJsonSchema": {"type": "object"}}}]},
}
EXAMPLES: dict[str, Any] = {
    "openai": OPENAI,
    "anthropic": ANTHROPIC,
    "swe-agent": SWE_AGENT,
    "mini-swe-agent": {"info": {}, "messages": TEXT_PROTOCOL, "trajectory_format": "mini-swe-agent-1.1"},
    "openhands": _openhands(),
    "tau-bench": {"task_id": 3, "trial": 0, "reward": 0.0, "traj": OPENAI},
    "inspect": INSPECT,
    "otel": OTEL,
    "openinference": OPENINFERENCE,
    "langfuse": LANGFUSE,
    "llm-log": LLM_LOG,
    "langfuse-case": {
        f"o{number}": {
            "input": {"success": True, "data": OPENAI[: 2 * number]},
            "output": {"success": True, "data": [OPENAI[2 * number]]},
        }
        for number in (1, 2)
    },
    "langsmith": [_langsmith_run(2), _langsmith_run(1)],
    "temporal": {"events": [*_activity(1), *_activity(2)]},
    "burr": [*_step(1), *_step(2)],
    "toolbench": {"win": True, "answer_generation": {"train_messages": [OPENAI[:3], OPENAI], "query": ASK}},
    "promptfoo": {
        "evalId": "e1",
        "results": {
            "results": [
                {
                    "prompt": {"raw": json.dumps(OPENAI[:4])},
                    "response": {"output": ANSWER, "tokenUsage": {"prompt": 20, "completion": 5, "total": 25}},
                    "provider": {"id": "openai:chat:gpt-4o"},
                    "success": True,
                }
            ]
        },
    },
    "session": [
        {"type": "summary", "summary": "count"},
        *(_line(body, number) for number, body in enumerate(OPENAI)),
    ],
    "managed-agents": {
        "session": {"id": "sesn_1", "agent": {"model": {"id": "claude-sonnet-4-5"}, "system": SYSTEM}},
        "events": [
            {"type": "user.message", "id": "e1", "content": [{"type": "text", "text": ASK}]},
            {"type": "session.status_running", "id": "e2"},
            {"type": "span.model_request_start", "id": "e3", "processed_at": "2026-01-31T09:00:00Z"},
            {
                "type": "agent.tool_use",
                "id": "c1",
                "name": "ls",
                "input": {"path": "."},
                "evaluated_permission": "allow",
            },
            {
                "type": "span.model_request_end",
                "id": "e4",
                "processed_at": "2026-01-31T09:00:01.5Z",
                "model_request_start_id": "e3",
                "is_error": False,
                "model_usage": {"input_tokens": 20, "output_tokens": 5},
            },
            {
                "type": "agent.tool_result",
                "id": "e5",
                "tool_use_id": "c1",
                "is_error": False,
                "content": [{"type": "text", "text": RESULT}],
            },
            {"type": "agent.message", "id": "e6", "content": [{"type": "text", "text": ANSWER}]},
            {"type": "session.status_idle", "id": "e7", "stop_reason": {"type": "end_turn"}},
        ],
    },
    "zed": {
        "version": "0.2.0",
        "summary": "Count the files",
        "messages": [
            {"id": 0, "role": "system", "segments": [{"type": "text", "text": SYSTEM}]},
            {"id": 1, "role": "user", "segments": [{"type": "text", "text": ASK}], "tool_uses": [], "context": ""},
            {
                "id": 2,
                "role": "assistant",
                "segments": [],
                "tool_uses": [{"id": "c1", "name": "ls", "input": {"path": "."}}],
                "tool_results": [{"tool_use_id": "c1", "is_error": False, "content": {"Text": RESULT}, "output": None}],
            },
            {"id": 3, "role": "assistant", "segments": [{"type": "text", "text": ANSWER}], "tool_uses": []},
        ],
        "model": {"provider": "zed.dev", "model": "claude-sonnet-4-5"},
        "cumulative_token_usage": {"input_tokens": 60, "output_tokens": 10},
    },
    "antigravity": [
        {"step_index": 0, "source": "SYSTEM", "type": "SYSTEM_MESSAGE", "status": "DONE", "content": SYSTEM},
        {"step_index": 1, "source": "USER_EXPLICIT", "type": "USER_INPUT", "status": "DONE", "content": ASK},
        {"step_index": 2, "source": "SYSTEM", "type": "CONVERSATION_HISTORY", "status": "DONE"},
        {
            "step_index": 3,
            "source": "MODEL",
            "type": "PLANNER_RESPONSE",
            "status": "DONE",
            "created_at": "2026-01-31T09:00:00Z",
            "thinking": "I list them.",
            "tool_calls": [{"name": "ls", "args": {"path": '"."'}}],
        },
        {"step_index": 4, "source": "MODEL", "type": "LIST_DIRECTORY", "status": "DONE", "content": RESULT},
        {"step_index": 5, "source": "MODEL", "type": "PLANNER_RESPONSE", "status": "DONE", "content": ANSWER},
    ],
    "bfcl": {
        "id": "multi_turn_base_0",
        "result": [[[{"ls": ARGUMENTS}], [ANSWER]]],
        "input_token_count": [[20, 40]],
        "output_token_count": [[5, 5]],
        "latency": [[1.5, 0.5]],
        "inference_log": [
            [{"role": "state_info", "class_name": "Files", "content": {"root": "a.txt"}}],
            {
                "begin_of_turn_query": OPENAI[:2],
                "step_0": [
                    {"role": "assistant", "content": [{"ls": ARGUMENTS}]},
                    {"role": "handler_log", "content": "Decoded.", "model_response_decoded": ["ls(path='.')"]},
                    {"role": "tool", "content": RESULT},
                ],
                "step_1": [{"role": "assistant", "content": ANSWER}],
            },
        ],
    },
    "lm-eval": {
        "doc_id": 3,
        "doc": {"question": ASK},
        "arguments": {"gen_args_0": {"arg_0": json.dumps(OPENAI[:4]), "arg_1": {"until": ["\n"], "max_gen_toks": 64}}},
        "resps": [[ANSWER]],
        "exact_match": 1.0,
    },
    "tracer": WEAVE,
    "run-state": RUN_STATE,
    "pydantic-ai": _kinds(),
    "smolagents": _memory(),
    "atif": ATIF,
    "vcr": {"version": 1, "interactions": [_interaction(1), _interaction(2)]},
}
"""By format; each holds the system text, the question, one call with its result, and the answer."""
