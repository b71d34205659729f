"""Parts, messages, tools, tokens and spans under every name that programs give them, as they are read."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import fields

from tests.support.stored import check_stored
from workbench.importers.conversation import Picture, Remarks, Unreadable
from workbench.importers.exchanges import answered_of, finish_of, given_of, parameters_of, served_by
from workbench.importers.messages import read_message, read_messages, tool_schemas
from workbench.importers.spans import logged_span, records_of, spans_of
from workbench.importers.usage import fuller, sum_of, usage_of

STORED = Path(__file__).parent / "stored"


def check(name: str, lines: Iterator[str]) -> None:
    check_stored(STORED / f"names-{name}.txt", "\n".join(lines) + "\n")


def plain(value: Any) -> Any:
    """A value as JSON; of a struct the fields that are not empty, of an image its type and size."""
    if isinstance(value, Picture):
        return f"<{value.media_type} {len(value.data)} bytes {value.detail}>"
    if isinstance(value, Struct):
        held = {one.name: plain(getattr(value, one.name)) for one in fields(value)}
        return {name: one for name, one in held.items() if one not in ("", None, [], {}, False)}
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def told(value: Any) -> str:
    return json.dumps(plain(value), ensure_ascii=False)


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


PNG, JPEG, GIF = (b64(start + b"rest of it") for start in (b"\x89PNG\r\n", b"\xff\xd8\xff\xe0", b"GIF89a"))
WEBP, WAVE = b64(b"RIFF\0\0\0\0WEBPVP8 "), b64(b"RIFF\0\0\0\0WAVEfmt ")
PDF = b64(b"%PDF /Type /Page x /Type /Page /Type /Pages /Count 9")
PAGES = b64(b"%PDF /Type /Pages /Kids [] /Count 12 >")
TEXT = b64("a text of a file, ä".encode())
CALL = {"id": "c1", "name": "look", "arguments": '{"a": 1}'}
PARTS: tuple[Any, ...] = (
    # Texts, marks and thoughts.
    *("a text", 3, None, {}, {"type": "text", "text": ""}, {"text": {"value": "inner"}}, {"content": "bare"}),
    *({"type": kind, "text": "t"} for kind in ("text", "input_text", "output_text", "text-delta", "Text", "other")),
    {"type": "refusal", "refusal": "no"},
    {"type": "text", "text": "t", "cache_control": {"type": "ephemeral"}},
    {"type": "text", "text": "t", "cache_control": {"ttl": "1h"}, "thoughtSignature": "sign"},
    *({"type": kind, "text": "t"} for kind in ("thinking", "redacted_thinking", "reasoning", "summary_text")),
    {"type": "reasoning_text", "text": "t"},
    {"thought": True, "text": "t"},
    {"reasoningContent": {"reasoningText": {"text": "t"}}},
    {"workbench.field": "reasoning_content", "content": "thought"},
    {"type": "reasoning", "workbench.block": {"type": "thinking", "thinking": "t"}},
    {"type": "message", "message_content": {"type": "text", "text": "inner"}},
    {"type": "text", "text": "see attachment://0123456789abcdef and @@@langfuseMedia:type=image|id=1@@@"},
    # Calls.
    *({"type": kind, **CALL} for kind in ("tool_use", "tool_call", "tool-call", "toolCall", "function_call")),
    {"functionCall": {"name": "look", "args": {"a": 1}}, "thoughtSignature": "s"},
    {"toolUse": {"toolUseId": "c1", "name": "look", "input": {"a": 1}}},
    {"type": "function", "function": {"name": "look", "arguments": "{}"}, "id": "c1"},
    CALL,
    {"toolName": "look", "toolCallId": "c1", "args": {"a": 1}},
    {"type": "tool_use", "call_id": "c1", "name": "look", "workbench.arguments": "{written", "input": {}},
    {"type": "tool_use", "name": "look", "provider_specific_fields": {"a": 1}, "extra_content": {"b": 2}},
    {"type": "toolRequest", "id": "c1", "toolCall": {"value": {"name": "look", "arguments": {"a": 1}}}},
    {"$type": "FunctionCallContent", "Id": "c1", "PluginName": "files", "FunctionName": "look", "Arguments": {"a": 1}},
    {"content_type": "function_call", "call_id": "c1", "plugin_name": "p", "function_name": "f", "arguments": "{}"},
    {"$type": "functionCall", "CallId": "c1", "Name": "look", "Arguments": {}},
    # Results.
    *({"type": kind, "id": "c1", "content": "r"} for kind in ("tool_result", "tool_call_response", "toolResult")),
    *({"type": "tool-result", "toolCallId": "c1", "toolName": "look", key: "r"} for key in ("output", "result")),
    {"functionResponse": {"name": "look", "response": {"error": "gone"}, "parts": [{"inlineData": {"data": PNG}}]}},
    {"toolResult": {"toolUseId": "c1", "content": [{"json": {"a": 1}}, {"text": "t"}], "status": "error"}},
    {"call_id": "c1", "content": "r", "is_error": True},
    {"type": "tool_result", "tool_use_id": "c1", "content": "r", "isError": True, "cachePoint": {"type": "default"}},
    {"type": "tool_result", "tool_call_id": "c1", "output": {"type": "error-text", "value": "gone"}},
    {"type": "tool_result", "tool_call_id": "c1", "output": {"type": "error-json", "value": {"a": 1}}},
    *({"tool_call_id": "c1", "type": "tool_result", "output": {"type": "json", "value": one}} for one in ([1, 2], "a")),
    {"type": "toolResponse", "id": "c1", "toolResult": {"value": {"content": [], "isError": True}}},
    {"type": "toolResponse", "id": "c1", "toolResult": {"status": "error", "error": "gone"}},
    {"$type": "FunctionResultContent", "CallId": "c1", "PluginName": "p", "FunctionName": "f", "Result": "r"},
    {"content_type": "function_result", "id": "c1", "name": "look", "result": {"a": 1}},
    # Images.
    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"}},
    {"type": "input_image", "image_url": f"data:image/jpeg;base64,{JPEG}", "detail": "auto"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": GIF}},
    {"type": "image", "source": {"data": WEBP, "mime_type": "image/x"}},
    {"inlineData": {"mimeType": "image/png", "data": PNG.replace("+", "-").replace("/", "_")}},
    {"image": {"format": "jpeg", "source": {"bytes": JPEG}}},
    {"type": "image", "data": GIF, "mimeType": "image/gif"},
    {"type": "blob", "content": PNG, "mime_type": "image/png", "detail": "high"},
    {"type": "image", "image": PNG * 12, "mediaType": "image/png"},
    {"$type": "ImageContent", "DataUri": f"data:image/png;base64,{PNG}"},
    {"$type": "imageContent", "MimeType": "image/png", "Data": PNG},
    {"content_type": "image", "data_uri": f"data:image/png;base64,{PNG}"},
    {"$type": "uri", "Uri": "https://a.b/c.png", "MediaType": "image/png"},
    {"type": "image_url", "image_url": {"url": "https://a.b/c.png"}},
    {"type": "image", "file_id": "file-1"},
    {"type": "blob", "modality": "image", "uri": "gs://a/b"},
    {"imageUrl": {"url": "https://a.b/d.png"}},
    # Files.
    {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}, "title": "Two"},
    {"type": "file", "file": {"filename": "nine.pdf", "file_data": f"data:application/pdf;base64,{PAGES}"}},
    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "as it is"}},
    {"type": "document", "source": {"type": "base64", "media_type": "text/plain", "data": TEXT}},
    {"type": "document", "source": {"type": "base64", "media_type": "text/plain", "data": b64(bytes([255, 254]))}},
    {"document": {"format": "pdf", "name": "d", "source": {"bytes": PDF}}},
    {"type": "input_audio", "input_audio": {"format": "wav", "data": WAVE}},
    {"type": "input_audio", "input_audio": WAVE},
    {"type": "input_audio", "input_audio": "https://a.b/c.wav"},
    {"inline_data": {"mime_type": "audio/wav", "data": WAVE}},
    {"type": "video", "video": {"url": "data:video/mp4;base64,AAAA", "name": "v"}},
    {"type": "input_file", "file_data": f"data:text/plain;base64,{TEXT}", "filename": "t.txt"},
    {"type": "media", "mime_type": "video/mp4", "file_uri": "gs://a/b.mp4"},
    {"fileData": {"fileUri": "gs://a/c.pdf", "mimeType": "application/pdf"}},
    {"type": "document_url", "document_url": "https://a.b/d.pdf"},
    {"type": "input_file", "file_url": "https://a.b/e.pdf"},
    {"type": "file", "file": {"file_id": "file-2"}},
    {"type": "file", "path": "a.txt", "content": "the text of a file with its path"},
    {"type": "uri", "uri": "https://a.b/f"},
)  # fmt: skip


def read(body: Any) -> str:
    remarks = Remarks()
    try:
        found = read_message(body, remarks)
    except Unreadable as fault:
        return f"refused: {fault}"
    return "; ".join([told(found), *map(str, remarks.all)])


def test_parts_of_messages_are_read_like_the_stored_ones() -> None:
    def lines() -> Iterator[str]:
        for part in PARTS:
            yield f"{str(part)[:50]}\n  {read({'role': 'assistant', 'content': [part]})}"
        mixed = [{"type": "tool_result", "id": "c1", "content": "r"}, {"cachePoint": {"ttl": "1h"}}]
        yield f"a mark behind a result\n  {read({'role': 'user', 'content': mixed})}"
        yield f"a mark behind a text\n  {read({'role': 'user', 'content': ['t', {'type': 'cache_point'}]})}"

    check("parts", lines())


ROLES = """\
system developer user human assistant ai model tool function environment exit gpt chatbot agent observation tool_result
toolresult tool_response SystemMessage UserMessage AssistantMessage FunctionExecutionResultMessage ToolCallRequestEvent
ToolCallExecutionEvent nobody"""
MESSAGES: tuple[Any, ...] = (
    *("text", None, [], {}, {"role": "user"}, {"role": "user", "content": ""}, {"role": "assistant", "refusal": "no"}),
    {"role": "user", "content": "t", "name": "Ada"},
    {"role": "user", "content": "t", "name": "Ada L."},
    {"role": "user", "parts": ["a", {"text": "b"}]},
    {"role": "user", "content": {"content_type": "text", "parts": ["a", "b"]}},
    {"role": "assistant", "text": "t", "tool_calls": [{"id": "c1", "function": {"name": "look", "arguments": "{}"}}]},
    {"role": "assistant", "toolCalls": '[{"toolCallId": "c1", "toolName": "look", "input": {"a": 1}}]'},
    {"role": "assistant", "tool_calls": [{"tool_call": CALL}, {"custom": {"name": "r", "input": "i"}}, {"id": "c"}]},
    {"role": "assistant", "tool_calls": [{"function": "look", "parameters": {"a": 1}, "extra_content": {"x": 1}}]},
    {"role": "assistant", "content": "", "function_call": {"name": "look", "args": {"a": 1}}},
    {"type": "ai", "content": "t", "additional_kwargs": {"tool_calls": [{"name": "look", "args": {}}]}},
    {"type": "ai", "content": "t", "additional_kwargs": {"function_call": {"name": "look", "arguments": "{}"}}},
    {"role": "assistant", "content": "t", "reasoning_content": "why"},
    {"role": "assistant", "content": "t", "reasoning": "why"},
    {"role": "assistant", "content": "t", "thinking": "why", "thinking_blocks": [{"type": "thinking"}]},
    {"role": "assistant", "content": "t", "reasoning": [{"text": "why"}], "reasoning_details": [{"text": "d"}]},
    {"role": "user", "content": "t", "images": [PNG, "https://a.b/c.png", {"type": "image", "data": GIF}]},
    {"role": "assistant", "audio": {"id": "a1", "transcript": "what was said"}},
    {"role": "assistant", "content": "t", "audio": {"id": "a1", "transcript": "what was said"}},
    {"role": "user", "content": "t", "attachments": [{"name": "a"}, "b"], "experimental_attachments": [{"url": "u"}]},
    {"role": "user", "content": "t", "files": [{"filename": "f"}, {"file_id": "i"}, {"id": "j"}], "cache_control": {}},
    {"role": "user", "content": "t", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
    {"role": "tool", "content": "r", "tool_call_id": "c1", "name": "look"},
    {"role": "tool", "content": "r", "toolCallId": "c1", "toolName": "look", "status": "error"},
    {"role": "tool", "content": "r", "tool_call_ids": ["c1", "c2"], "function": "look"},
    {"role": "tool", "content": "", "id": "c1", "error": {"message": "gone"}},
    {"role": "tool", "content": "kept", "id": "c1", "error": "gone"},
    {"role": "tool", "content": [{"type": "tool-result", "toolName": "look", "output": "r"}], "tool_call_id": "c1"},
    {"type": "constructor", "id": ["a", "AIMessageChunk"], "kwargs": {"content": "t"}},
    {"type": "constructor", "id": ["a", "HumanMessage"], "kwargs": {"content": "t", "type": "human"}},
    {"type": "ai", "data": {"content": "t"}},
    {"message": {"role": "user", "content": "t"}},
    {"Role": {"Label": "user"}, "Items": [{"$type": "TextContent", "Text": "t"}], "AuthorName": "Ada L."},
    {"role": {"label": "assistant"}, "items": [{"content_type": "text", "text": "t"}], "name": "Bob"},
    {"role": "assistant", "contents": [{"$type": "text", "text": "t"}], "metadata": {"Usage": {"InputTokens": 3}}},
    *({"type": kind, "source": "user", "content": "t"} for kind in ("TextMessage", "MultiModalMessage", "StopMessage")),
    {"type": "TextMessage", "source": "planner", "content": "t"},
    # Items of OpenAI's responses.
    {"type": "reasoning", "id": "r1", "summary": []},
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
    {"type": "custom_tool_call", "call_id": "c1", "name": "run", "input": "ls"},
    {"type": "local_shell_call", "call_id": "c1", "action": {"command": ["ls"]}},
    {"type": "function_call_output", "call_id": "c1", "output": "r", "status": "incomplete"},
    {"type": "local_shell_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "r"}]},
    {"type": "tool_search_output", "call_id": "c1", "tools": [{"name": "look"}], "is_error": True},
    {"type": "custom_output", "call_id": "c1", "result": {"a": 1}, "status": "failed"},
    *({"type": kind, "id": "i1", "encrypted_content": "x"} for kind in ("web_search_call", "mcp_list_tools")),
    *({"type": kind, "id": "i1"} for kind in ("mcp_approval_request", "item_reference", "compaction", "other")),
    # Vercel's interface.
    {"role": "assistant", "parts": [
        {"type": "step-start"},
        {"type": "text", "text": "I look"},
        {"type": "tool-look", "toolCallId": "c1", "state": "output-available", "input": {"a": 1}, "output": "r"},
        {"type": "dynamic-tool", "toolName": "run", "toolCallId": "c2", "state": "output-error", "errorText": "gone"},
        {"type": "step-start"},
        {"type": "tool-invocation", "toolInvocation": {"toolCallId": "c3", "toolName": "x", "args": {}}},
        {"type": "text", "text": "done"},
    ]},
)  # fmt: skip
LISTS: tuple[list[Any], ...] = (
    [{"role": "user", "content": "q"}, {"role": "Planner", "content": "a"}, {"role": "Web Surfer!", "content": "b"}],
    [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}, {"role": "nobody", "content": "b"}],
    [{"role": "assistant", "tool_calls": [CALL]}, {"role": "look", "content": "r", "tool_call_id": "c1"}],
    [{"type": "reasoning", "id": "r"}, {"role": "assistant", "content": "t"}, {"type": "function_call", **CALL}],
    [{"role": "assistant", "tool_calls": [CALL]}, {"role": "assistant", "content": "t", "name": "other"}],
    [{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}],
    [{"content": [{"type": "output_text", "text": "a"}], "role": "assistant"}] * 2,
)
TOOLS: tuple[Any, ...] = (
    {"type": "function", "function": {"name": "a", "description": "d", "parameters": {"type": "object", "x": None}}},
    {"name": "b", "input_schema": {"type": "object"}, "cache_control": {"ttl": "1h"}},
    {"toolSpec": {"name": "c", "inputSchema": {"json": {"type": "object"}}}},
    {"cachePoint": {"type": "default"}},
    {"function_declarations": [{"name": "d"}, {"name": "e", "parametersJsonSchema": {"type": "array"}}]},
    {"functionDeclarations": [{"name": "f", "parameters_json_schema": '{"type": "string"}'}, {"description": "none"}]},
    '{"name": "g", "params_json_schema": {"a": [null, {"b": null}]}}',
    {"name": "h", "paramsJsonSchema": {"type": "integer"}, "description": {"a": 1}},
    *({"function": {"name": "i", "cache_control": {"type": "ephemeral"}}}, "none", None),
)


def test_messages_are_read_like_the_stored_ones() -> None:
    def lines() -> Iterator[str]:
        for role in ROLES.split():
            yield f"{role}: {read({'role': role, 'content': 't'})} {read({'type': role, 'content': 't'})[:60]}"
        for body in MESSAGES:
            yield f"{str(body)[:50]}\n  {read(body)}"
        for bodies in LISTS:
            remarks = Remarks()
            yield f"{str(bodies)[:50]}\n  {told(read_messages(bodies, remarks))} {' '.join(map(str, remarks.all))}"
        yield from map(told, tool_schemas(list(TOOLS)))
        yield told(tool_schemas(json.dumps([TOOLS[0]])))

    check("messages", lines())


INPUTS = """\
prompt_tokens input_tokens inputTokens input promptTokenCount prompt_token_count prompt_eval_count request_tokens
inputTokenCount promptTokens tokensIn tokens_in total_input_tokens prompt"""
OTHERS = """\
cache_read_input_tokens cached_tokens cacheReadInputTokens cacheRead cachedContentTokenCount prompt_cache_hit_tokens
cached_prompt_text_tokens total_cached_tokens input_cached_tokens cached cache_creation_input_tokens cacheWrite
input_tokens_cache_write cacheWriteInputTokens cacheCreationInputTokens cacheWriteTokens cache_write_tokens cacheWrites
prompt_details.cache_write input_cache_creation input_cache_write reasoning_tokens reasoningTokens output_reasoning
completion_details.reasoning output_reasoning_tokens reasoning thoughts_token_count thoughtsTokenCount
total_thought_tokens total_tokens totalTokens total total_token_count totalTokenCount"""
DETAILS = """\
prompt_tokens_details input_tokens_details input_token_details completion_tokens_details output_tokens_details
output_token_details prompt_token_details completion_token_details details completionDetails tokens"""


def test_tokens_under_each_name_are_the_stored_ones() -> None:
    def lines() -> Iterator[str]:
        for name in INPUTS.split():
            yield f"{name}: {told(usage_of({name: 9, 'output_tokens': 2}))}"
        for name in OTHERS.split():
            both = ({"prompt_tokens": 20, "completion_tokens": 2}, {"input_tokens": 3, "output_tokens": 2})
            yield f"{name}: {' '.join(told(usage_of({**body, name: 7})) for body in both)}"
        for name in DETAILS.split():
            inner = {"cached_tokens": 4, "reasoning_tokens": 1, "cache_write_tokens": 2}
            yield f"{name}: {told(usage_of({'prompt_tokens': 9, 'completion_tokens': 3, name: inner}))}"
        lifetimes = {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 5}
        yield told(usage_of({"input_tokens": 9, "output_tokens": 1, "cache_creation": lifetimes}))
        details = [{"ttl": "1h", "inputTokens": 4}, {"ttl": "5m", "inputTokens": 2}]
        yield told(usage_of({"inputTokens": 9, "outputTokens": 1, "cacheDetails": details}))
        beside = {"input_tokens": 9, "output_tokens": 2, "cache_read_input_tokens": 4}
        yield " ".join(told(usage_of(beside, beside=one)) for one in (None, True, False))
        one, other = usage_of({"prompt_tokens": 9, "completion_tokens": 2}), usage_of(beside)
        yield " ".join(map(told, (sum_of([one, other]), sum_of([]), fuller(one, other), fuller(other, one))))
        yield told(fuller(usage_of({}), one))

    check("tokens", lines())


AT = 1762000000123456789
SERVICE = {"service.name": "s", "service.instance.id": "i", "host.name": "h", "process.pid": 7, "other": "o"}
SPAN = {"name": "chat", "attributes": {"gen_ai.request.model": "m"}}
VALUES = (
    *({"stringValue": "a"}, {"string_value": "a"}, {"boolValue": True}, {"double_value": 1.5}, {"intValue": "12"}),
    *({"int_value": 3}, {"arrayValue": {"values": [{"intValue": "1"}, {"stringValue": "b"}]}}, {"bytesValue": "AA=="}),
    *({"kvlistValue": {"values": [{"key": "k", "value": {"boolValue": False}}]}}, {"values": [{"intValue": 1}]}),
    *({"values": [1]}, {"stringValue": None, "int_value": None}, {"stringValue": "a", "intValue": 1}, {"other": 1}),
)
SPANS: tuple[Any, ...] = (
    {"resourceSpans": [{"scopeSpans": [{"spans": [SPAN]}]}]},
    {"resource_spans": [{"resource": {"attributes": SERVICE}, "scope_spans": [{"spans": [SPAN]}]}]},
    *({key: [SPAN]} for key in ("spans", "data", "trace", "other")),
    *({**SPAN, key: "t"} for key in ("traceId", "trace_id", "context.trace_id")),
    *({**SPAN, key: {"trace_id": "t", "traceId": "u", "span_id": "s"}} for key in ("context", "spanContext")),
    *({**SPAN, key: "p"} for key in ("parentSpanId", "parent_span_id", "parentId", "parent_id", "spanId", "span_id")),
    *({**SPAN, f"{key}TimeUnixNano": AT, f"{key}_id": "x"} for key in ("start", "end")),
    *({**SPAN, f"{key}_time_unix_nano": AT} for key in ("start", "end")),
    *({**SPAN, f"{key}{name}": AT} for key in ("start", "end") for name in ("_time", "Time")),
    *({**SPAN, "status": {key: 2}} for key in ("code", "status_code")),
    *({**SPAN, "status_code": code} for code in ("ERROR", "STATUS_CODE_ERROR", 2, 1, "OK")),
    {**SPAN, "span_kind": "LLM"},
    {**SPAN, "events": [{"name": "e", "attributes": [{"key": "a", "value": {"stringValue": "b"}}], "body": {"c": 1}}]},
    {"name": "row", "attributes.llm.model_name": "m", "attributes.a": {"b": {"c": 1}}},
    {"gen_ai.request.model": "m", "name": "bare"},
    {"name": "typed", "attributes": [{"key": f"v{at}", "value": value} for at, value in enumerate(VALUES)]},
    {"name": "dotted", "attributes": {"a.0.b": 1, "a.1.b.c": 2, "a": 3, "d.99999.e": 4, "f.g": {"h.i": [{"j.k": 5}]}}},
    {"name": "nothing"},
    {"spanId": "s", "name": "no attributes"},
)  # fmt: skip


def test_spans_are_read_like_the_stored_ones() -> None:
    def lines() -> Iterator[str]:
        for body in SPANS:
            yield f"{str(body)[:50]}\n  {' '.join(map(told, spans_of(body)))}"
        record = {
            "spanId": "s1",
            "traceId": "t1",
            "eventName": "gen_ai.choice",
            "body": {"kvlistValue": {"values": []}},
        }
        more = {
            "span_id": "s1",
            "attributes": {"event.name": "e", "a": 1},
            "observedTimeUnixNano": "1762000000123456789",
        }
        logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record, more]}]}]}
        yield f"{[(span_id, sorted(one)) for span_id, one in records_of([logs])]}"
        yield told(logged_span([record, more]))
        yield " ".join(map(told, spans_of([{**SPAN, "spanId": "s1"}, logs])))

    check("spans", lines())


SAID = {"role": "assistant", "content": "a"}
REQUESTS: tuple[dict[str, Any], ...] = (
    *({key: [{"role": "user", "content": "q"}]} for key in ("messages", "contents", "input", "other")),
    {"contents": [{"parts": [{"text": "q"}]}], "systemInstruction": {"parts": [{"text": "s"}]}},
    *({key: "q", "system": "s"} for key in ("input", "prompt", "contents", "messages")),
    *({"prompt": "q", key: "s"} for key in ("system_prompt", "instructions", "system_instructions")),
    *({"prompt": "q", key: "s"} for key in ("system_instruction", "system", "nothing")),
    *({"prompt": "q", "config": {key: "s"}} for key in ("systemInstruction", "system_instruction", "nothing")),
    {"messages": []},
    {"messages": ["q"]},
)
RESPONSES: tuple[dict[str, Any], ...] = (
    {"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}, {}]},
    {"choices": [{"text": "a"}]},
    {"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}]},
    {"output": [{"type": "message", "content": [{"type": "output_text", "text": "a"}]}], "status": "completed"},
    {"output": {"message": {"content": [{"text": "a"}]}}, "stopReason": "end_turn"},
    {"message": {"content": "a"}, "done_reason": "length"},
    {"content": {"parts": ["a"]}},
    {"content": "a", "finish_reason": "stop"},
    {"content": [{"type": "text", "text": "a"}], "stop_reason": "max_tokens"},
    {**SAID, "id": "r1"},
    *({}, {"content": "a"}, {"choices": []}, {"output": "a"}),
)
SCHEMA = {"type": "object"}
PARAMETERS: tuple[dict[str, Any], ...] = (
    {
        name: at
        for at, name in enumerate(("temperature", "top_p", "max_tokens", "max_completion_tokens", "seed", "other"))
    },
    {
        "max_output_tokens": 1,
        "reasoning_effort": "low",
        "reasoning": {"effort": "low"},
        "tool_choice": "auto",
        "stop": "x",
    },
    {"thinking": {"type": "enabled"}, "response_format": {"type": "json_object"}, "temperature": None},
    *({key: {"maxOutputTokens": 1, "topP": 0.5}} for key in ("generationConfig", "generation_config", "config")),
    {"inferenceConfig": {"maxTokens": 2, "temperature": 0.5}, "additionalModelRequestFields": {"seed": 3}},
    {"text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}}},
    {"output_format": {"type": "json_schema", "schema": SCHEMA}},
    {"output_config": {"format": {"schema": SCHEMA, "strict": True}}},
    {"outputConfig": {"textFormat": {"structure": {"jsonSchema": {"name": "n", "schema": '{"type": "array"}'}}}}},
    *({"config": {key: SCHEMA}} for key in ("responseSchema", "responseJsonSchema", "response_schema")),
    *({"config": {key: SCHEMA}} for key in ("response_json_schema", "_responseJsonSchema", "other")),
)
OWN_TOOLS: tuple[list[Any], ...] = (
    [],
    [{"type": "web_search"}, {"type": "web_search"}, {"googleSearch": {}}, {"name": "bash"}, {}],
    [{"type": "custom", "input_schema": {}}, {"type": "b:1", "input_schema": {}}, {"function": {"name": "f"}}],
    [{"name": "late", "defer_loading": True, "input_schema": {}}, {"defer_loading": True}, {"toolSpec": {"name": "t"}}],
    [{"functionDeclarations": [{}]}, {"function_declarations": [{}]}, {"inputSchema": {}}, {"parameters": {}, "x": 1}],
)  # fmt: skip


def test_requests_and_responses_are_read_like_the_stored_ones() -> None:
    def lines() -> Iterator[str]:
        yield from (f"{str(one)[:50]}\n  {told(given_of(one))}" for one in REQUESTS)
        yield from (f"{str(one)[:50]}\n  {told(answered_of(one))} {finish_of(one)!r}" for one in RESPONSES)
        yield from (f"{str(one)[:50]}\n  {told(parameters_of(one))}" for one in PARAMETERS)
        yield from (f"{str(one)[:50]}\n  {served_by(one)!r}" for one in OWN_TOOLS)

    check("exchanges", lines())
