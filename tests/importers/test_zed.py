"""Threads of Zed: both forms of messages, what they attach, resumed and compacted threads, usage."""

from __future__ import annotations

import base64
import json
from typing import Any

from tests.importers.examples import ANSWER, ASK, RESULT
from tests.importers.whole import read_file
from workbench.importers.conversation import Conversation, Picture

MODEL = {"provider": "zed.dev", "model": "claude-sonnet-4-5"}


def read(*messages: Any, **more: Any) -> Conversation:
    (found,) = read_file(json.dumps({"version": "0.3.0", "model": MODEL, "messages": messages, **more}).encode())
    assert found.format.name == "zed"
    return found.conversation


def user(text: str, id: str = "u") -> dict[str, Any]:
    return {"User": {"id": id, "content": [{"Text": text}]}}


def agent(*content: Any, **results: Any) -> dict[str, Any]:
    return {"Agent": {"content": list(content), "tool_results": results}}


def test_what_a_message_holds_is_read_in_its_order() -> None:
    pixel = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(20)).decode()
    mention = {"Mention": {"uri": {"File": {"abs_path": "/a.py"}}, "content": "x = 1"}}
    asked = {"User": {"id": "u", "content": [{"Text": ASK}, mention, {"Image": {"source": pixel}}]}}
    call = {"ToolUse": {"id": "c", "name": "ls", "raw_input": "{}", "input": {}, "is_input_complete": True}}
    result = {"tool_use_id": "c", "tool_name": "ls", "is_error": True, "content": [{"Text": RESULT}], "output": 1}
    answer = agent({"Thinking": {"text": "Hm.", "signature": "s"}}, {"Text": "I look."}, call, c=result)
    (thread,) = read(asked, answer, "Resume", agent({"Text": ANSWER})).threads
    assert [(one.role, one.text) for one in thread.said] == [
        ("user", f'{ASK}\n{{"File": {{"abs_path": "/a.py"}}}}\nx = 1'),
        ("assistant", "I look."),
        ("tool", RESULT),
        ("user", "Continue where you left off"),
        ("assistant", ANSWER),
    ]
    assert isinstance(thread.said[0].parts[2], Picture)
    assert thread.said[1].extra["reasoning"][0]["thinking"] == "Hm."
    assert (thread.said[2].call_id, thread.said[2].is_error) == ("c", True)


def test_a_compaction_begins_a_context_with_its_summary() -> None:
    summary = {"Compaction": {"Summary": "They asked for files."}}
    first, second = read(user(ASK), agent({"Text": "One."}), summary, user("And now?"), agent({"Text": ANSWER})).threads
    assert [one.text for one in first.said] == [ASK, "One."]
    assert [one.text for one in second.said] == ["They asked for files.", "And now?", ANSWER]


def test_usage_under_a_message_is_of_the_last_request_before_the_next_one() -> None:
    numbers = {"u": {"input_tokens": 9, "output_tokens": 4}, "v": {"input_tokens": 20, "cache_read_input_tokens": 5}}
    turns = [user(ASK), agent({"Text": "One."}), agent({"Text": "Two."}), user("And?", "v"), agent({"Text": "Three."})]
    run = read(*turns, request_token_usage=numbers, cumulative_token_usage={"input_tokens": 99, "output_tokens": 9})
    calls = [one.call for one in run.threads[0].said if one.call is not None]
    assert [call.usage.input for call in calls] == [None, 9, 25]
    assert run.stated.usage.input == 99


def test_messages_of_earlier_versions_are_read() -> None:
    use = {"id": "c", "name": "ls", "input": {"path": "."}}
    result = {"tool_use_id": "c", "is_error": False, "content": {"Text": RESULT}, "output": None}
    asked = {"id": 0, "role": "user", "context": "<context>a.py</context>", "tool_uses": [], "tool_results": []}
    asked["segments"] = [{"type": "text", "text": ASK}]
    thought = {"type": "thinking", "text": "Hm.", "signature": "s"}
    answer = {"id": 1, "role": "assistant", "segments": [thought, {"type": "text", "text": "I look."}]}
    last = {"id": 2, "role": "assistant", "segments": [{"type": "text", "text": ANSWER}]}
    beside = [asked, {**answer, "tool_uses": [use], "tool_results": [result]}, last]
    behind = [asked, {**answer, "tool_uses": [use]}, {"role": "user", "segments": [], "tool_results": [result]}, last]
    for messages in (beside, behind):
        (thread,) = read(*messages, version="0.2.0").threads
        assert [(one.role, one.text) for one in thread.said] == [
            ("user", f"<context>a.py</context>\n{ASK}"),
            ("assistant", "I look."),
            ("tool", RESULT),
            ("assistant", ANSWER),
        ]
        assert thread.said[1].extra["reasoning"][0]["thinking"] == "Hm."
