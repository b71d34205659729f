"""Logs of agents with every kind of line and field that their readers know: all that comes of them is stored."""

from __future__ import annotations

import json
from typing import Any

from tests.importers.whole import STORED, lines_of
from tests.support.stored import check_stored

AT = "2026-03-01T10:00:00.000Z"
ASK = {"role": "user", "content": "Look at a.log."}
SAID = {"role": "assistant", "content": [{"type": "text", "text": "It is full."}]}
EMPTY = {"role": "assistant", "content": []}
FILES: dict[str, Any] = {
    "gemini": {
        "sessionId": "s",
        "projectHash": "h",
        "messages": [
            {"type": "user", "content": "Look.", "timestamp": AT},
            {"type": "info", "content": "shown"},
            {
                "type": "gemini",
                "content": "I look.",
                "model": "gemini-2.5-pro",
                "timestamp": AT,
                "thoughts": [{"subject": "Plan", "description": "Read it."}, {"subject": "Go"}],
                "tokens": {"input": 20, "output": 5, "cached": 12, "thoughts": 3, "total": 28},
                "toolCalls": [
                    {"id": "c1", "name": "look", "args": {"a": 1}, "result": [{"text": "r"}], "status": "success"},
                    {"id": "c2", "name": "look", "args": {}, "result": [], "resultDisplay": "shown", "status": "error"},
                    {"id": "c3", "name": "look", "args": {}, "resultDisplay": {"a": 1}, "status": "cancelled"},
                    {"id": "c4", "name": "look", "args": {}},
                ],
            },
        ],
    },
    "copilot": [
        {"type": "session.start", "data": {"selectedModel": "gpt-4.1"}},
        {"type": "system.message", "data": {"content": "Be brief."}},
        {"type": "user.message", "data": {"content": "short", "transformedContent": "Look at a.log."}},
        {"type": "assistant.reasoning", "data": {"content": "First I look."}},
        {
            "type": "assistant.message",
            "timestamp": AT,
            "data": {
                "content": "I look.",
                "reasoningText": "why",
                "outputTokens": 5,
                "toolRequests": [{"toolCallId": "c1", "name": "look", "arguments": {"a": 1}}],
            },
        },
        {"type": "assistant.usage", "data": {"model": "gpt-4.1-2025", "inputTokens": 20, "outputTokens": 6}},
        {"type": "tool.execution_complete", "data": {"toolCallId": "c1", "result": {"content": "r"}, "success": True}},
        {"type": "tool.execution_complete", "data": {"toolCallId": "c2", "error": {"message": "x"}, "success": False}},
        {"type": "assistant.message", "data": {"parentToolCallId": "c1", "content": "of another agent"}},
        {"type": "session.model_change", "data": {"newModel": "o3"}},
        {"type": "session.compaction_complete", "data": {"summaryContent": "What was said."}},
        {"type": "assistant.message", "data": {"content": "It is full."}},
    ],
    "opencode": {
        "messages": [
            {
                "info": {"role": "user"},
                "parts": [{"type": "text", "text": "Look."}, {"type": "file", "ignored": True}, {"type": "x"}],
            },
            {"info": {"role": "assistant", "modelID": "m", "summary": True}, "parts": [{"type": "text", "text": "S"}]},
            {"info": {"role": "user"}, "parts": [{"type": "text", "text": "And now?"}]},
            {"info": {"role": "assistant"}, "parts": [{"type": "text", "text": "Still full."}]},
        ]
    },
    "pi": [
        {"type": "session", "id": "0"},
        {"type": "thinking_level_change", "id": "1"},
        {"type": "message", "id": "2", "parentId": "1", "timestamp": AT, "message": ASK},
        {"type": "message", "id": "3", "parentId": "2", "message": {**SAID, "stopReason": "x", "timestamp": 17620000}},
        {"type": "message", "id": "4", "parentId": "3", "message": {"role": "bashExecution", "command": "l"}},
        {"type": "message", "id": "5", "parentId": "4", "message": {"role": "custom", "content": "own"}},
        {"type": "message", "id": "6", "parentId": "5", "message": {**ASK, "excludeFromContext": True}},
        {"type": "custom_message", "id": "7", "parentId": "6", "content": "told"},
        {"type": "branch_summary", "id": "8", "parentId": "7", "summary": "of a branch"},
        {"type": "label", "id": "9", "parentId": "8"},
        {"type": "message", "id": "10", "parentId": "9", "message": {**EMPTY, "stopReason": "aborted"}},
        {"type": "message", "id": "11", "parentId": "3", "message": {"role": "user", "content": "Another way."}},
        {"type": "message", "id": "12", "parentId": "11", "message": {**SAID, "model": "m"}},
        {"type": "compaction", "id": "13", "parentId": "12", "summary": "All of it.", "firstKeptEntryId": "12"},
        {
            "type": "message",
            "id": "14",
            "parentId": "13",
            "message": {**EMPTY, "stopReason": "error", "errorMessage": "too many", "model": "m"},
        },
    ],
    "what codex prints": [
        {"type": "thread.started", "thread_id": "t"},
        {"type": "item.completed", "item": {"id": "i1", "type": "reasoning", "text": "First"}},
        {"type": "item.completed", "item": {"id": "i2", "type": "reasoning", "text": "then"}},
        {
            "type": "item.completed",
            "item": {"id": "i3", "type": "command_execution", "command": "l", "aggregated_output": "a", "exit_code": 1},
        },
        {"type": "item.updated", "item": {"id": "i4"}},
        {
            "type": "item.completed",
            "item": {"id": "i5", "type": "mcp_tool_call", "tool": "look", "arguments": {"a": 1}, "result": {"b": 2}},
        },
        {
            "type": "item.completed",
            "item": {"id": "i6", "type": "file_change", "changes": [{"path": "a"}], "status": "failed"},
        },
        {"type": "item.completed", "item": {"id": "i7", "type": "web_search", "query": "q"}},
        {"type": "other"},
        {"type": "item.completed", "item": {"id": "i8", "type": "agent_message", "text": "It is full."}},
        {"type": "turn.failed", "error": {"message": "too many"}},
        {"type": "error", "message": "gone"},
    ],
    "what cursor prints": [
        {"type": "system", "model": "gpt-5"},
        {"type": "user", "message": ASK},
        {"type": "tool_call", "subtype": "started", "call_id": "c1", "tool_call": {"readToolCall": {"args": {}}}},
        {
            "type": "tool_call",
            "subtype": "completed",
            "call_id": "c1",
            "tool_call": {"readToolCall": {"args": {"path": "a"}, "result": {"success": {"content": "r"}}}},
        },
        {
            "type": "tool_call",
            "subtype": "completed",
            "call_id": "c2",
            "tool_call": {"lsToolCall": {"args": {}, "result": {"rejected": {"reason": "no"}}}},
        },
        {"type": "thinking", "text": "hm"},
        {"type": "odd"},
        {"type": "assistant", "message": SAID},
        {
            "type": "tool_call",
            "subtype": "completed",
            "call_id": "c3",
            "tool_call": {"lsToolCall": {"args": {}, "result": {"error": "gone"}}},
        },
        {"type": "result", "result": "It is full."},
    ],
}  # fmt: skip


def test_logs_of_agents_with_every_field_give_what_is_stored() -> None:
    lines = [line for name, body in FILES.items() for line in (f"== {name}", *lines_of(json.dumps(body).encode()))]
    check_stored(STORED / "fields-agents.txt", "\n".join(lines) + "\n")
