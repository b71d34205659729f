"""One small file of each format, telling the same story: a question, a tool call, its result, an answer."""

from __future__ import annotations

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
}
"""By format; each holds the system text, the question, one call with its result, and the answer."""
