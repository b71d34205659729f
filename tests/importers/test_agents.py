"""Logs of coding agents and teams of agents, each in the shape that its tool writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.importers.whole import read_file
from tests.support.command import run_cli
from workbench.engine.journal.usage import Usage
from workbench.importers.conversation import Conversation, ImportedMessage, Unreadable

ASK, PLAN, RESULT, ANSWER = "How many files are here?", "I look first.", "a.py b.py", "There are two."
AT = "2026-03-01T10:00:00.000Z"


def read(*values: Any, name: str = "session") -> Conversation:
    """The one conversation of a file: a JSON value, or a value on each line."""
    (found,) = read_file("\n".join(json.dumps(value) for value in values).encode())
    assert found.format.name == name
    return found.conversation


def spoken(said: Sequence[ImportedMessage]) -> list[tuple[str, str]]:
    return [(one.role, one.text or ",".join(call.name for call in one.calls)) for one in said]


def counts(conversation: Conversation) -> list[Usage]:
    return [one.call.usage for thread in conversation.threads for one in thread.said if one.call is not None]


THE_STORY = [("user", ASK), ("assistant", PLAN), ("tool", RESULT), ("assistant", ANSWER)]


def gemini_answer(text: str, **more: Any) -> dict[str, Any]:
    return {"id": text, "timestamp": AT, "type": "gemini", "content": text, "model": "gemini-2.5-pro", **more}


def gemini_story() -> list[dict[str, Any]]:
    call = {
        "id": "c1",
        "name": "ls",
        "args": {"path": "."},
        "status": "success",
        "result": [{"functionResponse": {"id": "c1", "name": "ls", "response": {"output": RESULT}}}],
        "resultDisplay": "2 items",
    }
    tokens = {"input": 100, "output": 10, "cached": 60, "thoughts": 5, "tool": 0, "total": 115}
    thoughts = [{"subject": "Look", "description": "List the folder.", "timestamp": AT}]
    return [
        {"id": "u1", "timestamp": AT, "type": "user", "content": [{"text": ASK}]},
        gemini_answer(PLAN, thoughts=thoughts, tokens=tokens, toolCalls=[call]),
        {"id": "i", "timestamp": AT, "type": "info", "content": "a new version is there"},
        gemini_answer(ANSWER, tokens={"input": 130, "output": 8, "cached": 0, "total": 138}),
    ]


GEMINI = {"sessionId": "s1", "projectHash": "p", "startTime": AT, "lastUpdated": AT}


def test_a_session_of_gemini_cli_has_its_tools_thoughts_and_counts() -> None:
    conversation = read({**GEMINI, "messages": gemini_story()})
    (thread,) = conversation.threads
    assert [role for role, _ in spoken(thread.said)] == ["user", "assistant", "tool", "assistant"]
    assert RESULT in thread.said[2].text
    assert thread.said[2].call_id == thread.said[1].calls[0].id == "c1"
    assert thread.said[1].extra == {"reasoning_content": "Look: List the folder."}
    assert counts(conversation) == [
        Usage(input=100, output=15, cached=60, reasoning=5),
        Usage(input=130, output=8, cached=0),
    ]
    assert thread.model == "gemini-2.5-pro"
    assert conversation.title == "s1"
    assert conversation.notes == ("a message of type 'info', which its tool showed, is left out",)


def test_a_session_of_gemini_cli_by_lines_takes_the_last_state_of_each_message() -> None:
    story = gemini_story()
    early = {key: value for key, value in story[1].items() if key != "toolCalls"}
    conversation = read({**GEMINI, "kind": "main"}, story[0], early, story[1], {"$set": {"summary": "x"}}, story[3])
    (thread,) = conversation.threads
    assert [role for role, _ in spoken(thread.said)] == ["user", "assistant", "tool", "assistant"]
    assert thread.calls == 2
    assert conversation.notes == ("a line of type '$set', which is not a message, is left out",)


def test_a_session_of_gemini_cli_that_goes_back_has_a_context_for_each_way() -> None:
    story = gemini_story()
    again = {"id": "u2", "timestamp": AT, "type": "user", "content": "And hidden ones?"}
    conversation = read(GEMINI, *story[:2], {"$rewindTo": PLAN}, again, gemini_answer("None."))
    first, second = conversation.threads
    assert first.calls == 1
    assert spoken(second.said) == [
        ("user", ASK),
        ("user", "And hidden ones?"),
        ("assistant", "None."),
    ]


def test_events_of_copilot_are_messages_with_their_tools_and_counts() -> None:
    request = {"toolCallId": "c1", "name": "view", "arguments": {"path": "."}}
    usage = {"model": "gpt-5", "inputTokens": 100, "outputTokens": 7, "cacheReadTokens": 64, "cost": 1}
    conversation = read(
        {"type": "session.start", "data": {"sessionId": "s", "selectedModel": "gpt-5"}, "timestamp": AT},
        {"type": "user.message", "data": {"content": "files?", "transformedContent": ASK}, "timestamp": AT},
        {
            "type": "assistant.message",
            "data": {"content": PLAN, "reasoningText": "Look.", "toolRequests": [request]},
            "timestamp": AT,
        },
        {"type": "assistant.usage", "data": usage, "timestamp": AT},
        {"type": "tool.execution_start", "data": {"toolCallId": "c1"}, "timestamp": AT},
        {
            "type": "tool.execution_complete",
            "data": {"toolCallId": "c1", "success": True, "result": {"content": RESULT}},
            "timestamp": AT,
        },
        {"type": "assistant.message", "data": {"content": ANSWER}, "timestamp": AT},
    )
    (thread,) = conversation.threads
    assert spoken(thread.said) == THE_STORY
    assert thread.said[1].extra == {"reasoning_content": "Look."}
    assert thread.model == "gpt-5"
    assert counts(conversation)[0] == Usage(input=100, output=7, cached=64)
    assert [one for one in conversation.notes if "tool.execution_start" in one]


def test_a_sub_agent_of_copilot_is_a_context_of_its_own_and_a_failed_tool_is_one() -> None:
    conversation = read(
        {"type": "user.message", "data": {"content": ASK}, "timestamp": AT},
        {
            "type": "assistant.message",
            "data": {"content": "", "toolRequests": [{"toolCallId": "t", "name": "task", "arguments": "{}"}]},
            "timestamp": AT,
        },
        {"type": "assistant.message", "data": {"content": "inner", "parentToolCallId": "t"}, "timestamp": AT},
        {
            "type": "tool.execution_complete",
            "data": {"toolCallId": "t", "success": False, "error": {"message": "too slow"}},
            "timestamp": AT,
        },
        {"type": "assistant.message", "data": {"content": ANSWER}, "timestamp": AT},
    )
    main, inner = conversation.threads
    assert spoken(inner.said) == [("assistant", "inner")]
    assert spoken(main.said)[2:] == [("tool", "too slow"), ("assistant", ANSWER)]
    assert main.said[2].is_error


def opencode_answer(*parts: Any, **info: Any) -> dict[str, Any]:
    return {"info": {"role": "assistant", "modelID": "claude-sonnet-4", "time": {"created": 1}, **info}, "parts": parts}


def test_each_step_of_an_answer_of_opencode_is_a_call() -> None:
    def ended(given: int, read: int, cost: float) -> dict[str, Any]:
        tokens = {"input": given, "output": 9, "reasoning": 2, "cache": {"read": read, "write": 5}}
        return {"type": "step-finish", "tokens": tokens, "cost": cost}

    tool = {
        "type": "tool",
        "callID": "c1",
        "tool": "ls",
        "state": {"status": "completed", "input": {"path": "."}, "output": RESULT},
    }
    conversation = read(
        {
            "info": {"id": "ses", "title": "Files"},
            "messages": [
                {"info": {"role": "user"}, "parts": [{"type": "text", "text": ASK}]},
                opencode_answer(
                    {"type": "step-start"},
                    {"type": "reasoning", "text": "Look."},
                    {"type": "text", "text": PLAN},
                    tool,
                    ended(10, 40, 0.25),
                    {"type": "step-start"},
                    {"type": "text", "text": ANSWER},
                    ended(3, 60, 0.125),
                    {"type": "patch", "files": ["a.py"]},
                ),
            ],
        }
    )
    (thread,) = conversation.threads
    assert spoken(thread.said) == THE_STORY
    assert conversation.title == "Files"
    assert counts(conversation) == [
        Usage(input=55, output=9, cached=40, written=5, reasoning=2),
        Usage(input=68, output=9, cached=60, written=5, reasoning=2),
    ]
    assert [one.call.cost for one in thread.said if one.call] == [0.25, 0.125]
    assert conversation.notes == ("a part of type 'patch', which a model does not see, is left out",)


def test_an_answer_of_opencode_that_failed_is_a_failed_call_and_a_summary_begins_a_context() -> None:
    conversation = read(
        {
            "messages": [
                {"info": {"role": "user"}, "parts": [{"type": "text", "text": ASK}]},
                opencode_answer(error={"name": "APIError", "data": {"message": "overloaded"}}),
                opencode_answer({"type": "text", "text": "Two files were found."}, summary=True),
                {"info": {"role": "user"}, "parts": [{"type": "text", "text": "Go on."}]},
                opencode_answer({"type": "text", "text": ANSWER}),
            ]
        }
    )
    first, second = conversation.threads
    assert [one.call.fault for one in first.said if one.call] == ["overloaded", ""]
    assert spoken(second.said) == [
        ("assistant", "Two files were found."),
        ("user", "Go on."),
        ("assistant", ANSWER),
    ]
    assert second.calls == 1


def pi_line(own: str, parent: str | None, message: Any) -> dict[str, Any]:
    return {"type": "message", "id": own, "parentId": parent, "timestamp": AT, "message": message}


def pi_answer(text: str, **more: Any) -> dict[str, Any]:
    usage = {"input": 10, "output": 4, "cacheRead": 80, "cacheWrite": 6, "totalTokens": 100, "cost": {"total": 0.5}}
    content = [{"type": "text", "text": text}] if text else []
    return {"role": "assistant", "content": content, "model": "claude-opus-4-5", "usage": usage, **more}


def pi_story() -> list[dict[str, Any]]:
    called = pi_answer(PLAN)
    called["content"].append({"type": "toolCall", "id": "c1", "name": "ls", "arguments": {"path": "."}})
    result = {"role": "toolResult", "toolCallId": "c1", "toolName": "ls", "content": [{"type": "text", "text": RESULT}]}
    return [
        {"type": "session", "id": "head", "timestamp": AT, "cwd": "/w"},
        {"type": "model_change", "id": "m", "parentId": None, "modelId": "claude-opus-4-5"},
        pi_line("1", "m", {"role": "user", "content": [{"type": "text", "text": ASK}]}),
        pi_line("2", "1", called),
        pi_line("3", "2", result),
        pi_line("4", "3", pi_answer(ANSWER)),
    ]


def test_a_session_of_pi_has_the_counts_and_costs_of_each_answer() -> None:
    conversation = read(*pi_story())
    (thread,) = conversation.threads
    assert spoken(thread.said) == THE_STORY
    assert counts(conversation) == [Usage(input=96, output=4, cached=80, written=6)] * 2
    assert [one.call.cost for one in thread.said if one.call] == [0.5, 0.5]
    assert conversation.notes == ()
    assert conversation.kept["cwd"] == "/w"


def test_a_session_of_pi_goes_back_is_compacted_and_fails_without_losing_a_call() -> None:
    failed = pi_answer("", stopReason="error", errorMessage="overloaded")
    conversation = read(
        *pi_story(),
        pi_line("5", "1", pi_answer("Another way.")),
        pi_line("6", "5", failed),
        pi_line("7", "6", {"role": "bashExecution", "command": "ls -a", "output": ".git"}),
        {"type": "compaction", "id": "8", "parentId": "7", "summary": "Two files.", "firstKeptEntryId": "7"},
        pi_line("9", "8", pi_answer("Done.")),
    )
    first, second, third = conversation.threads
    assert spoken(first.said) == THE_STORY
    assert spoken(second.said)[:2] == [("user", ASK), ("assistant", "Another way.")]
    assert [one.call.fault for one in second.said if one.call] == ["", "overloaded"]
    assert spoken(third.said) == [
        ("user", "Two files."),
        ("user", "Ran `ls -a`\n.git"),
        ("assistant", "Done."),
    ]
    assert sum(thread.calls for thread in conversation.threads) == 5


def test_a_chat_of_vs_code_has_the_rounds_that_it_holds() -> None:
    rounds = [
        {"response": PLAN, "toolCalls": [{"id": "c1", "name": "ls", "arguments": '{"path":"."}'}]},
        {"response": ANSWER, "toolCalls": []},
    ]
    node = {"node": {"type": 1, "children": [{"type": 2, "text": "a.py "}, {"type": 2, "text": "b.py"}]}}
    results = {"c1": {"content": [{"value": node}]}}
    request = {
        "message": {"text": ASK},
        "response": [{"value": PLAN}, {"kind": "toolInvocationSerialized"}, {"value": ANSWER}],
        "result": {"metadata": {"toolCallRounds": rounds, "toolCallResults": results}},
        "modelId": "copilot/gpt-5",
        "timestamp": 1772359200000,
    }
    conversation = read({"sessionId": "s", "customTitle": "Files", "requests": [request]})
    (thread,) = conversation.threads
    assert spoken(thread.said) == THE_STORY
    assert thread.model == "gpt-5"
    assert conversation.title == "Files"
    shown = read({"requests": [{**request, "result": {}}]})
    assert spoken(shown.threads[0].said) == [("user", ASK), ("assistant", PLAN + ANSWER)]
    assert len(shown.notes) == 2
    failed = read({"requests": [{**request, "response": [], "result": {"errorDetails": {"message": "no quota"}}}]})
    assert "no quota" in str(failed.threads[0].said[-1].call)


def test_the_debug_log_of_vs_code_holds_each_request_as_it_was_sent() -> None:
    def request(messages: list[Any], text: str, at: str) -> dict[str, Any]:
        usage = {"prompt_tokens": 90, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 32}}
        schema = {"type": "function", "function": {"name": "ls", "parameters": {"type": "object"}}}
        told = {"model": "gpt-5", "startTime": at, "duration": 1500, "usage": usage, "tools": [schema]}
        response = {"type": "success", "message": [text]}
        return {"kind": "request", "metadata": told, "requestMessages": {"messages": messages}, "response": response}

    def text(role: int, words: str, **more: Any) -> dict[str, Any]:
        return {"role": role, "content": [{"type": 1, "text": words}], **more}

    begun = [text(0, "Be brief."), text(1, ASK)]
    asked = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    tool = {"kind": "toolCall", "id": "c1__vscode-7", "tool": "ls", "args": "{}", "response": [RESULT]}
    later = [*begun, text(2, PLAN, toolCalls=[asked]), text(3, RESULT, toolCallId="c1")]
    logs = [request(begun, PLAN, AT), tool, request(later, ANSWER, "2026-03-01T10:00:05.000Z")]
    conversation = read({"exportedAt": AT, "prompts": [{"prompt": ASK, "logs": logs}]})
    (thread,) = conversation.threads
    assert spoken(thread.said) == [("system", "Be brief."), *THE_STORY]
    assert counts(conversation) == [Usage(input=90, output=5, cached=32)] * 2
    assert [one.call.duration_s for one in thread.said if one.call] == [1.5, 1.5]
    assert len(thread.tools) == 1


def test_lines_of_claude_code_are_a_session_without_ids_and_roles_too() -> None:
    block = {"type": "tool_use", "id": "c1", "name": "ls", "input": {}}
    lines = [
        {"type": "user", "timestamp": AT, "message": {"content": ASK}},
        {"type": "assistant", "timestamp": AT, "message": {"content": [{"type": "text", "text": PLAN}, block]}},
        {
            "type": "user",
            "timestamp": AT,
            "message": {"content": [{"type": "tool_result", "tool_use_id": "c1", "content": RESULT}]},
        },
        {"type": "assistant", "timestamp": AT, "message": {"content": [{"type": "text", "text": ANSWER}]}},
    ]
    assert spoken(read(*lines).threads[0].said) == THE_STORY
    assert spoken(read({"loglines": lines}).threads[0].said) == THE_STORY


def test_a_prompt_of_claude_code_that_goes_back_begins_a_context_there() -> None:
    def line(kind: str, own: str, parent: str | None, content: Any) -> dict[str, Any]:
        beside = {"sessionId": "s", "timestamp": AT, "isSidechain": False}
        return {
            **beside,
            "type": kind,
            "uuid": own,
            "parentUuid": parent,
            "message": {"role": kind, "content": content},
        }

    call = {"type": "tool_use", "id": "c1", "name": "ls", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": RESULT}
    conversation = read(
        line("user", "1", None, ASK),
        line("assistant", "2", "1", [{"type": "text", "text": PLAN}]),
        line("user", "3", "2", "Use ls."),
        line("assistant", "4", "3", [call]),
        line("user", "5", "4", [result]),
        line("assistant", "6", "5", "Too much."),
        line("user", "7", "2", "Count them only."),
        line("assistant", "8", "7", ANSWER),
    )
    first, second = conversation.threads
    assert [text for _, text in spoken(first.said)][2:] == ["Use ls.", "ls", RESULT, "Too much."]
    assert spoken(second.said) == [
        ("user", ASK),
        ("assistant", PLAN),
        ("user", "Count them only."),
        ("assistant", ANSWER),
    ]
    assert (first.calls, second.calls) == (3, 1)
    assert conversation.notes == ("what was said after a place that the session went back to is a context of its own",)


def test_answers_with_ids_of_their_own_are_calls_of_their_own() -> None:
    def line(own: str, part: dict[str, Any], tokens: int) -> dict[str, Any]:
        usage = {"input_tokens": tokens, "output_tokens": 2}
        message = {"id": own, "role": "assistant", "content": [part], "usage": usage}
        return {"type": "assistant", "sessionId": "s", "timestamp": AT, "message": message}

    call = {"type": "tool_use", "id": "c1", "name": "ls", "input": {}}
    lines = [
        {"type": "user", "sessionId": "s", "timestamp": AT, "message": {"role": "user", "content": ASK}},
        line("m1", {"type": "text", "text": PLAN}, 10),
        line("m1", {"type": "text", "text": "Now."}, 10),
        line("m2", call, 20),
        line("m3", {"type": "text", "text": ANSWER}, 30),
    ]
    conversation = read(*lines)
    wire = [{"direction": "recv", "message": one} for one in lines]
    assert read({"metadata": {}, "messages": wire}).threads == conversation.threads, (
        "as the Claude Agent SDK sends them"
    )
    assert counts(conversation) == [Usage(input=number, output=2) for number in (10, 20, 30)]
    assert [text for _, text in spoken(conversation.threads[0].said)][1] == f"{PLAN}\nNow."


def test_lines_of_qwen_code_have_their_counts_beside_the_message() -> None:
    beside = {"sessionId": "s", "timestamp": AT}
    counted = {"promptTokenCount": 50, "candidatesTokenCount": 6, "totalTokenCount": 56}
    call = {"functionCall": {"id": "c1", "name": "ls", "args": {}}}
    conversation = read(
        {**beside, "uuid": "1", "type": "user", "message": {"role": "user", "parts": [{"text": ASK}]}},
        {
            **beside,
            "uuid": "2",
            "type": "assistant",
            "model": "qwen3-coder-plus",
            "message": {"role": "model", "parts": [{"text": PLAN}, call]},
            "usageMetadata": counted,
        },
        {
            **beside,
            "uuid": "3",
            "type": "tool_result",
            "message": {
                "role": "user",
                "parts": [{"functionResponse": {"id": "c1", "name": "ls", "response": {"output": RESULT}}}],
            },
        },
        {**beside, "uuid": "4", "type": "assistant", "message": {"role": "model", "parts": [{"text": ANSWER}]}},
    )
    (thread,) = conversation.threads
    assert [role for role, _ in spoken(thread.said)] == ["user", "assistant", "tool", "assistant"]
    assert thread.model == "qwen3-coder-plus"
    assert counts(conversation)[0] == Usage(input=50, output=6, cached=0)


def test_a_conversation_of_goose_pairs_calls_and_results() -> None:
    call = {"type": "toolRequest", "id": "c1", "toolCall": {"status": "success", "value": {"name": "ls"}}}
    done = {"status": "success", "value": [{"type": "text", "text": RESULT}]}
    broken = {"status": "error", "error": "no such folder"}
    bodies = [
        {"role": "user", "created": 1, "content": [{"type": "text", "text": ASK}]},
        {"role": "assistant", "created": 2, "content": [{"type": "text", "text": PLAN}, call]},
        {"role": "user", "created": 3, "content": [{"type": "toolResponse", "id": "c1", "toolResult": done}]},
        {"role": "assistant", "created": 4, "content": [{"type": "text", "text": ANSWER}]},
    ]
    (thread,) = read({"conversation": bodies}, name="openai").threads
    assert spoken(thread.said) == THE_STORY
    assert thread.said[2].call_id == "c1"
    bodies[2]["content"] = [{"type": "toolResponse", "id": "c1", "toolResult": broken}]
    (thread,) = read(bodies, name="openai").threads
    assert thread.said[2].is_error
    assert thread.said[2].text == "no such folder"


KERNEL = [
    {"Role": {"Label": "user"}, "Items": [{"$type": "TextContent", "Text": ASK}]},
    {
        "Role": {"Label": "assistant"},
        "ModelId": "gpt-4o",
        "Metadata": {"Usage": {"PromptTokens": 90, "CompletionTokens": 4}},
        "Items": [
            {"$type": "TextContent", "Text": PLAN},
            {"$type": "FunctionCallContent", "Id": "c1", "PluginName": "fs", "FunctionName": "ls", "Arguments": {}},
        ],
    },
    {"Role": {"Label": "tool"}, "Items": [{"$type": "FunctionResultContent", "CallId": "c1", "Result": RESULT}]},
    {"Role": {"Label": "assistant"}, "Items": [{"$type": "TextContent", "Text": ANSWER}]},
]
KERNEL_PYTHON = {
    "messages": [
        {"role": "user", "content_type": "message", "items": [{"content_type": "text", "text": ASK}]},
        {
            "role": "assistant",
            "ai_model_id": "gpt-4o",
            "metadata": {"usage": {"prompt_tokens": 90, "completion_tokens": 4}},
            "items": [
                {"content_type": "text", "text": PLAN},
                {"content_type": "function_call", "id": "c1", "name": "fs-ls", "arguments": "{}"},
            ],
        },
        {"role": "tool", "items": [{"content_type": "function_result", "id": "c1", "result": RESULT}]},
        {"role": "assistant", "items": [{"content_type": "text", "text": ANSWER}]},
    ]
}
AGENT_FRAMEWORK = {
    "messages": [
        {"role": "user", "contents": [{"$type": "text", "text": ASK}]},
        {
            "role": "assistant",
            "authorName": "File helper",
            "contents": [
                {"$type": "text", "text": PLAN},
                {"$type": "functionCall", "callId": "c1", "name": "fs-ls", "arguments": {}},
            ],
        },
        {"role": "tool", "contents": [{"$type": "functionResult", "callId": "c1", "result": RESULT}]},
        {"role": "assistant", "contents": [{"$type": "text", "text": ANSWER}]},
    ]
}


@pytest.mark.parametrize("body", [KERNEL, KERNEL_PYTHON, AGENT_FRAMEWORK])
def test_a_history_of_semantic_kernel_and_agent_framework_is_read(body: Any) -> None:
    conversation = read(body, name="openai")
    (thread,) = conversation.threads
    assert spoken(thread.said) == THE_STORY
    assert conversation.notes == ()
    assert [(call.id, call.name) for call in thread.said[1].calls] == [("c1", "fs-ls")]
    if body is AGENT_FRAMEWORK:
        assert thread.said[1].name == "File_helper"
    else:
        assert thread.model == "gpt-4o"
        assert counts(conversation)[0] == Usage(input=90, output=4)


def test_roles_that_are_names_of_agents_are_answers_of_these_agents() -> None:
    bodies = [
        {"role": "human", "content": ASK},
        {"role": "Planner (thought)", "content": PLAN},
        {"role": "Finder", "content": RESULT},
        {"role": "Planner (thought)", "content": ANSWER},
    ]
    conversation = read({"history": bodies, "question": ASK}, name="openai")
    (thread,) = conversation.threads
    assert [(one.role, one.name) for one in thread.said] == [
        ("user", ""),
        ("assistant", "Planner_thought"),
        ("assistant", "Finder"),
        ("assistant", "Planner_thought"),
    ]
    assert len(conversation.notes) == 2
    assert thread.calls == 3
    (mixed,) = read({"history": [*bodies, {"role": "Assistant", "content": "So?"}]}, name="openai").threads
    assert mixed.calls == 4


def test_a_hidden_prompt_of_any_size_leaves_the_run_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def line(kind: str, content: str, **more: Any) -> dict[str, Any]:
        message = {"role": kind, "content": content, **more}
        return {"type": kind, "sessionId": "s", "timestamp": AT, "message": message}

    def answer(own: str, read: int, written: int) -> dict[str, Any]:
        usage = {"input_tokens": 4, "cache_read_input_tokens": read, "cache_creation_input_tokens": written}
        return line("assistant", ANSWER, id=own, model="claude-sonnet-4-20250514", usage={**usage, "output_tokens": 9})

    lines = [
        line("user", "hi"),
        answer("m1", 0, 90_000),
        line("user", "and?"),
        answer("m2", 90_000, 40),
        line("user", "more"),
        answer("m3", 90_040, 40),
    ]
    Path("chat.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert run_cli("import", "chat.jsonl").code == 0
    shown = run_cli("show", "--plain").out
    assert "damaged" not in shown
    assert "calls    3   in 270,132" in shown


# -- what command-line programs print as they work ---------------------------------------------------------------------


def happened(kind: str, **item: Any) -> dict[str, Any]:
    return {"type": "item.completed", "item": {"id": "i1", "type": kind, **item}}


def test_what_codex_prints_is_a_session_with_the_sums_of_its_turns() -> None:
    counted = {"input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 5}
    found = read(
        {"type": "thread.started", "thread_id": "t"},
        {"type": "turn.started"},
        happened("reasoning", text="hm"),
        {"type": "item.started", "item": {"id": "i1", "type": "command_execution", "command": "ls"}},
        happened("command_execution", command="ls", aggregated_output=RESULT, exit_code=2, status="failed"),
        happened("agent_message", text=ANSWER),
        *[{"type": "turn.completed", "usage": counted}] * 2,
    )

    (thread,) = found.threads
    assert spoken(thread.said) == [("assistant", "command_execution"), ("tool", RESULT), ("assistant", ANSWER)]
    assert (thread.said[0].calls[0].arguments, thread.said[1].is_error) == ('{"command": "ls"}', True)
    assert thread.said[0].extra == {"reasoning_content": "hm"}
    assert found.stated.usage == Usage(200, 10, 80)
    assert found.notes == ("the file does not hold what the agent was asked, and its counts are sums of several calls",)


@pytest.mark.parametrize("result", [{"success": {"content": RESULT}}, {"error": RESULT}])
def test_a_tool_that_cursor_prints_joins_the_answer_before_it(result: Any) -> None:
    def line(role: str, text: str) -> dict[str, Any]:
        return {"type": role, "session_id": "s", "message": {"role": role, "content": [{"type": "text", "text": text}]}}

    call = {"readToolCall": {"args": {"path": "."}}}
    ended = {"readToolCall": {"args": {"path": "."}, "result": result}}
    found = read(
        {"type": "system", "subtype": "init", "model": "gpt-5", "session_id": "s"},
        line("user", ASK),
        line("assistant", PLAN),
        {"type": "tool_call", "subtype": "started", "call_id": "c1", "tool_call": call},
        {"type": "tool_call", "subtype": "completed", "call_id": "c1", "tool_call": ended},
        line("assistant", ANSWER),
    )

    (thread,) = found.threads
    assert spoken(thread.said) == THE_STORY
    assert [(one.id, one.name) for one in thread.said[1].calls] == [("c1", "read")]
    assert thread.said[2].is_error == ("error" in result)
    assert thread.model == "gpt-5"


@pytest.mark.parametrize(
    ("ended", "status", "reason"),
    [
        ({"subtype": "success", "is_error": False}, "success", ""),
        ({"subtype": "error_max_turns", "is_error": True}, "failed", "error_max_turns"),
    ],
)
def test_the_line_that_ends_what_claude_prints_tells_how_the_run_ended(ended: Any, status: str, reason: str) -> None:
    answer = {"role": "assistant", "content": [{"type": "text", "text": ANSWER}]}
    found = read(
        {"type": "user", "session_id": "s", "message": {"role": "user", "content": ASK}},
        {"type": "assistant", "session_id": "s", "message": answer},
        {"type": "result", **ended, "total_cost_usd": 0.5},
    )
    assert (found.status, found.reason, found.stated.cost, found.notes) == (status, reason, 0.5, ())


# -- Aider and CrewAI --------------------------------------------------------------------------------------------------

LLM_HISTORY = f"""TO LLM 2026-03-01T10:00:00
-------
SYSTEM Be brief.
SYSTEM -------
SYSTEM·
SYSTEM Always.
-------
USER {ASK}
LLM RESPONSE 2026-03-01T10:00:02
ASSISTANT {PLAN}
TO LLM 2026-03-01T10:01:00
-------
SYSTEM type: text
SYSTEM text: Be brief.
-------

Always.
SYSTEM cache_control: {{'type': 'ephemeral'}}
-------
USER {ASK}
-------
ASSISTANT {PLAN}
-------
USER And now?
LLM RESPONSE 2026-03-01T10:01:03
ASSISTANT {ANSWER}
ASSISTANT # Files
TO LLM 2026-03-01T10:02:00
-------
USER Stop
LLM RESPONSE 2026-03-01T10:02:01

""".replace("·", " ")
CHAT_HISTORY = f"""
# aider chat started at 2026-03-01 10:00:00

> aider --model gpt-4o --message one
two··
> Main model: openai/gpt-4o with diff edit format··

#### /add a.py··

#### {ASK}··

{PLAN}

# A heading

> a quote

> Tokens: 2.3k sent, 12 received. Cost: $0.0061 message, $0.0061 session.··
> Applied edit to a.py··

#### /ask and now?··
#### please··

{ANSWER}

#### /clear··

#### Hello··

Hi.
""".replace("·", " ")


def test_aiders_history_of_its_requests_gives_each_context_as_it_was_sent() -> None:
    (found,) = read_file(LLM_HISTORY.encode())
    assert found.format.name == "session"
    first, second = found.conversation.threads
    system = "Be brief.\n-------\n\nAlways."
    assert spoken(first.said) == [
        *(("system", system), ("user", ASK), ("assistant", PLAN)),
        *(("user", "And now?"), ("assistant", f"{ANSWER}\n# Files")),
    ]
    calls = [one.call for one in first.said if one.call is not None]
    assert [(call.at[11:19], call.duration_s) for call in calls] == [("10:00:00", 2.0), ("10:01:00", 3.0)]
    assert [call.marks and call.marks.at for call in calls] == [None, ("system",)]
    assert second.said[-1].call is not None
    assert second.said[-1].call.fault == "the history holds no text of an answer"


def test_aiders_chat_is_what_was_said_and_its_commands_are_named() -> None:
    (found,) = read_file(CHAT_HISTORY.encode())
    first, second = found.conversation.threads
    assert spoken(first.said) == [
        *(("user", ASK), ("assistant", f"{PLAN}\n\n# A heading\n\n> a quote")),
        *(("user", "and now?\nplease"), ("assistant", ANSWER)),
    ]
    assert spoken(second.said) == [("user", "Hello"), ("assistant", "Hi.")]
    call = first.said[1].call
    assert call is not None
    assert (call.model, call.cost, call.cost_grade) == ("openai/gpt-4o", 0.0061, "estimate")
    assert "files that it sends" in first.unstated
    assert "a command of Aider" in str(found.conversation.remarks[0])


@pytest.mark.parametrize("trace", [False, True])
def test_events_of_crewai_state_each_request_with_its_usage(trace: bool) -> None:
    asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": ASK}]
    tools = [{"type": "function", "function": {"name": "ls", "parameters": {"type": "object", "properties": {}}}}]
    usage = {"prompt_tokens": 40, "completion_tokens": 7, "total_tokens": 47}
    wanted = [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]
    later = [*asked, {"role": "assistant", "content": "", "tool_calls": wanted}]
    later += [{"role": "tool", "tool_call_id": "c1", "content": RESULT}]
    events: list[dict[str, Any]] = [
        {"type": "crew_kickoff_started", "timestamp": AT},
        {"type": "llm_call_started", "timestamp": AT, "call_id": "1", "model": "gpt-4o", "messages": asked},
        {"type": "llm_call_completed", "call_id": "1", "model": "gpt-4o", "response": wanted, "usage": usage},
        {"type": "llm_call_started", "timestamp": AT, "call_id": "2", "model": "gpt-4o", "messages": later},
        {"type": "llm_call_completed", "call_id": "2", "model": "gpt-4o", "response": ANSWER, "usage": usage},
        {"type": "llm_call_started", "timestamp": AT, "call_id": "3", "model": "gpt-4o", "messages": "And now?"},
        {"type": "llm_call_failed", "call_id": "3", "model": "gpt-4o", "error": "rate limit"},
    ]
    for event in events:
        if event["type"] == "llm_call_started":
            event["tools"] = tools
    wrapped = [{"type": one.pop("type"), "timestamp": AT, "event_data": one} for one in json.loads(json.dumps(events))]
    found = read({"batch_id": "b", "events": wrapped}) if trace else read(*events)
    first, second = found.threads
    assert spoken(first.said)[1:] == [("user", ASK), ("assistant", "ls"), ("tool", RESULT), ("assistant", ANSWER)]
    assert [usage.input for usage in counts(found)] == [40, 40, None]
    assert second.said[-1].call is not None
    assert second.said[-1].call.fault == "rate limit"
    assert [tool["function"]["name"] for tool in first.tools] == ["ls"]
    assert any("crew_kickoff_started" in str(one) for one in found.remarks)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([{"timestamp": AT, "task_name": "t", "agent": "a", "status": "completed", "output": "o"}], "CrewAI's tasks"),
        ({"event": "launched", "properties": {}, "user_id": "u", "time": 1}, "Aider's log of its use"),
    ],
)
def test_logs_without_messages_are_refused_by_name(body: Any, words: str) -> None:
    with pytest.raises(Unreadable, match=words):
        list(read_file(json.dumps(body).encode()))


def test_early_sessions_of_claude_code_state_cost_and_time_beside_their_messages() -> None:
    beside = {"sessionId": "s", "timestamp": AT, "costUSD": 0.25, "durationMs": 1500}
    answer = {"role": "assistant", "model": "claude-opus-4", "content": [{"type": "text", "text": ANSWER}]}
    found = read(
        {"type": "user", "sessionId": "s", "message": {"role": "user", "content": ASK}},
        {"type": "assistant", "message": answer, **beside},
    )
    call = found.threads[0].said[-1].call
    assert call is not None
    assert (call.model, call.cost, call.duration_s) == ("claude-opus-4", 0.25, 1.5)
