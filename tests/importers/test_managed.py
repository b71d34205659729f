"""Events of managed agents: pieces of an answer, usage of a request, threads, compactions and failures."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.importers.examples import ASK, RESULT
from tests.importers.whole import read_file
from workbench.engine.journal.usage import Usage
from workbench.importers.conversation import Conversation


def read(*events: dict[str, Any], lines: bool = False) -> Conversation:
    text = "\n".join(map(json.dumps, events)) if lines else json.dumps({"data": events, "next_page": None})
    (found,) = read_file(text.encode())
    assert found.format.name == "managed-agents"
    return found.conversation


def asked(text: str = ASK, **more: Any) -> dict[str, Any]:
    return {"type": "user.message", "content": [{"type": "text", "text": text}], **more}


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "agent.message", "content": [{"type": "text", "text": text}], **more}


def used(id: str, kind: str = "", **more: Any) -> dict[str, Any]:
    return {"type": f"agent.{kind}tool_use", "id": id, "name": "ls", "input": {}, **more}


def ended(tokens: int, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": tokens, "output_tokens": 5, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 0}
    return {"type": "span.model_request_end", "is_error": False, "model_usage": usage, **more}


START = {"type": "span.model_request_start"}


def test_the_pieces_of_an_answer_are_one_call_with_the_usage_of_its_request() -> None:
    thought = {"type": "agent.thinking", "content": [{"type": "thinking", "thinking": "Which files?"}]}
    result = {"type": "agent.tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": RESULT}]}
    own = {"type": "user.custom_tool_result", "custom_tool_use_id": "b", "content": "no", "is_error": True}
    events = [asked(), START, thought, said("I look."), used("a"), ended(20), used("b", "custom_"), result, own]
    for lines in (False, True):
        (thread,) = read(*events, START, said("Two."), ended(40), lines=lines).threads
        assert [(one.role, one.text, [call.id for call in one.calls], one.is_error) for one in thread.said] == [
            ("user", ASK, [], False),
            ("assistant", "I look.", ["a", "b"], False),
            ("tool", RESULT, [], False),
            ("tool", "no", [], True),
            ("assistant", "Two.", [], False),
        ]
        calls = [one.call for one in thread.said if one.call is not None]
        assert [call.usage for call in calls] == [Usage(27, 5, cached=7, written=0), Usage(47, 5, cached=7, written=0)]
        assert thread.said[1].extra["reasoning"] == thought["content"]


def test_threads_and_what_follows_a_compaction_are_contexts() -> None:
    other = {"session_thread_id": "t2"}
    sent = {"type": "agent.thread_message_received", "content": [{"type": "text", "text": "Count."}], **other}
    compacted = {"type": "agent.thread_context_compacted"}
    run = read(asked(), said("One."), sent, said("Three.", **other), compacted, asked("And now?"), said("Two."))
    assert [[one.text for one in thread.said] for thread in run.threads] == [
        [ASK, "One."],
        ["And now?", "Two."],
        ["Count.", "Three."],
    ]
    assert any("summary of a compaction" in note for note in run.notes)


@pytest.mark.parametrize(
    ("events", "status", "reason", "notes"),
    [
        (["status_idle", "end_turn"], "success", "", ["'session.status_idle'"]),
        (["status_idle", "retries_exhausted"], "failed", "retries exhausted", ["'session.status_idle'"]),
        (["status_terminated", ""], "failed", "terminated", ["'session.status_terminated'"]),
        (["status_terminated", "", "Too busy."], "failed", "Too busy.", ["'session.status_terminated'"]),
        (
            ["status_idle", "terminated", "First.", "status_terminated", "", ""],
            "failed",
            "First.",
            ["'session.status_idle'", "'session.status_terminated'"],
        ),
        (["error", "", "x" * 90], "success", "", [f"({'x' * 80})", "'session.error'"]),
        (["a_kind_with_a_name_that_is_long_indeed", ""], "success", "", ["'session.a_kind_with_a_name_that_is_long_'"]),
    ],
)
def test_an_event_that_is_no_message_is_told_and_may_say_that_the_session_failed(
    events: list[str], status: str, reason: str, notes: list[str]
) -> None:
    """``events``: the kind of each, what stopped it, and its error."""
    told: list[dict[str, Any]] = []
    for at in range(0, len(events), 3):
        kind, stop, *error = events[at : at + 3]
        told.append({"type": f"session.{kind}", "stop_reason": {"type": stop}, "error": {"message": "".join(error)}})
    run = read(asked(), said("One."), *told)
    assert (run.status, run.reason) == (status, reason)
    assert len(run.notes) == len(notes)
    assert all(part in note for part, note in zip(notes, run.notes, strict=True)), run.notes


def test_a_request_that_failed_is_a_failed_call_and_a_session_that_gave_up_a_failed_run() -> None:
    error = {"type": "session.error", "error": {"type": "overloaded_error", "message": "Too busy."}}
    gave_up = {"type": "session.status_idle", "stop_reason": {"type": "retries_exhausted"}}
    run = read(asked(), said("One."), asked("And now?"), START, ended(0, is_error=True), error, gave_up)
    (thread,) = run.threads
    assert thread.said[-1].call is not None
    assert (thread.said[-1].call.fault, run.status, run.reason) == ("the request failed", "failed", "retries exhausted")
    assert any("Too busy." in note for note in run.notes)
