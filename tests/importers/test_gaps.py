"""What a file leaves out or holds half of: answers alone, results without ids, files by their size."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import pytest

from tests.importers.examples import ANSWER, ASK, EXAMPLES, OPENAI, RESULT, SCHEMA, SYSTEM
from tests.importers.test_variants import read, said
from tests.importers.whole import read_file
from workbench.context.assembly import Grade
from workbench.context.message import Message, TextPart
from workbench.importers import reading
from workbench.importers.conversation import ImportedMessage, Unreadable
from workbench.importers.journal import CallIds
from workbench.models.encodings import Encodings


@pytest.mark.parametrize(
    "body",
    [
        {"id": "r", "object": "chat.completion", "choices": [{"message": {"role": "assistant", "content": ANSWER}}]},
        {"id": "r", "output": [{"type": "message", "role": "assistant", "content": ANSWER}]},
        {"id": "r", "type": "message", "role": "assistant", "content": [{"type": "text", "text": ANSWER}]},
        {"candidates": [{"content": {"role": "model", "parts": [{"text": ANSWER}]}}]},
    ],
)
def test_an_answer_without_its_request_is_no_run(body: Any) -> None:
    with pytest.raises(Unreadable, match="an answer of a model, but the file does not hold its request"):
        list(read_file(json.dumps(body).encode()))


def test_an_answer_from_a_cache_took_no_time() -> None:
    def read_with(**response: Any) -> tuple[float | None, tuple[str, ...]]:
        body = json.loads(json.dumps(EXAMPLES["promptfoo"]))
        body["results"]["results"][0]["response"] |= response
        (found,) = read_file(json.dumps(body).encode())
        call = found.conversation.threads[0].said[-1].call
        assert call is not None
        return call.duration_s, found.conversation.notes

    assert read_with(latencyMs=900) == (0.9, ())
    said = "the answer came from promptfoo's own cache: no time was taken"
    assert read_with(latencyMs=900, cached=True) == (None, (said,))


def without_secrets(text: str) -> tuple[str, int]:
    return text, 0


def test_results_without_ids_answer_the_open_calls_before_them_by_name_and_then_by_order() -> None:
    calls = [{"id": f"c{i}", "function": {"name": name, "arguments": "{}"}} for i, name in enumerate(("a", "b", "b"))]
    results = [{"role": "tool", "name": "b", "content": "1"}, {"role": "tool", "content": "2"}]
    turn = [{"role": "assistant", "tool_calls": calls}, *results, {"role": "tool", "name": "b", "content": "3"}]
    later = [{"role": "assistant", "tool_calls": [{**calls[0], "id": "d"}]}, {"role": "tool", "content": "4"}]
    found = [*map(CallIds(without_secrets).named, read(said(*turn, *later)).threads[0].said)]
    assert [one.call_id for one in found if one.role == "tool"] == ["c1", "c0", "c2", "d"]


def test_a_result_without_any_call_keeps_its_want_of_an_id() -> None:
    assert CallIds(without_secrets).named(ImportedMessage("tool", ("?",))).call_id == ""


@pytest.mark.parametrize(
    "part",
    [
        {"type": "input_audio", "input_audio": {"data": "A" * 4000, "format": "wav"}},
        {"type": "file", "file": {"file_data": "A" * 4000, "filename": "wav"}},
        {"type": "document", "source": {"type": "base64", "media_type": "wav", "data": "A" * 4000}},
        {"inlineData": {"mimeType": "wav", "data": "A" * 4000}},
        {"inlineData": {"mimeType": "audio/wav", "data": "UklGRgAAAABXQVZF" + "A" * 3984}},
        {"document": {"format": "wav", "source": {"bytes": "A" * 4000}}},
    ],
)
def test_a_file_inside_a_message_stands_by_its_size(part: Any) -> None:
    found = read([{"role": "user", "content": [{"type": "text", "text": ASK}, part]}, *said()[1:]])
    text, file = found.threads[0].said[0].parts
    assert text == ASK
    assert isinstance(file, str)
    assert file.startswith("[file: ")
    assert "wav" in file
    assert file.endswith("3,000 bytes]")
    assert "the content of a file inside a message, which stands by its name and size, is left out" in found.notes


@pytest.mark.parametrize(
    ("part", "stand_in"),
    [
        ({"type": "input_audio", "input_audio": "A" * 4000}, "[file: input_audio, 3,000 bytes]"),
        ({"type": "document_url", "document_url": "https://a.test/b.pdf"}, "[file: https://a.test/b.pdf]"),
    ],
)
def test_files_as_mistral_takes_them_stand_by_what_is_known_of_them(part: Any, stand_in: str) -> None:
    found = read([{"role": "user", "content": [{"type": "text", "text": ASK}, part]}, *said()[1:]])
    assert found.threads[0].said[0].parts == (ASK, stand_in)


@pytest.mark.parametrize("text", ["[file: wav, 3,000 bytes]", "[image: https://a.test/b.png]"])
def test_what_stands_for_a_file_is_never_counted_exactly(text: str) -> None:
    counter = Encodings()
    assert counter.message(Message("user", ASK), "gpt-4o")[1] is Grade.EXACT
    assert counter.message(Message("user", text), "gpt-4o")[1] is Grade.ESTIMATE
    assert counter.message(Message("user", (TextPart(ASK), TextPart(text))), "gpt-4o")[1] is Grade.ESTIMATE


def test_the_name_of_who_speaks_is_a_part_of_the_request() -> None:
    found = read([{"role": "user", "name": "ann", "content": ASK}, {"role": "assistant", "content": ANSWER}])
    assert found.threads[0].said[0].name == "ann"
    odd = read([{"role": "user", "name": "Ann of X", "content": ASK}, {"role": "assistant", "content": ANSWER}])
    assert odd.threads[0].said[0].name == ""


def test_the_events_of_openhands_first_releases_have_no_source() -> None:
    history = [
        {"action": "message", "content": ASK, "wait_for_response": False},
        {"action": "run", "command": "ls", "thought": "I look."},
        {"observation": "run", "command": "ls", "content": RESULT, "exit_code": 0},
        {"action": "message", "content": "Half way.", "wait_for_response": False},
        {"action": "finish", "outputs": {}, "thought": ANSWER},
    ]
    found = read({"issue": {}, "history": history, "git_patch": "x"}, "openhands")
    thread = found.threads[0]
    assert [(one.role, one.observation) for one in thread.said] == [
        ("user", False),
        ("assistant", False),
        ("user", True),
        ("assistant", False),
        ("assistant", False),
    ]
    assert thread.said[1].text.startswith("I look.")
    assert thread.said[-1].text == ANSWER
    assert found.kept["git_patch"] == "x"


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"source": "agent", "action": "system", "message": "Count."}, ("system", "Count.", None, "")),
        ({"source": "user", "action": "message", "message": "Look."}, ("user", "Look.", None, "")),
        ({"source": "user", "action": "message", "args": {"content": "Look."}}, ("user", "Look.", None, "")),
        ({"source": "agent", "action": "message", "args": {"content": "Two."}}, ("assistant", "Two.", "call", "")),
        ({"source": "agent", "action": "think", "args": {"thought": "Hm."}}, ("assistant", "Hm.", "call", "")),
        ({"source": "agent", "action": "finish", "message": "Done."}, ("assistant", "Done.", "call", "")),
        (
            {"source": "agent", "action": "run", "args": {"thought": "I look.", "command": "ls"}},
            ("assistant", 'I look.\n\n[run] {"thought": "I look.", "command": "ls"}', "call", ""),
        ),
        (
            {"source": "agent", "observation": "run", "content": RESULT}
            | {"extras": {"metadata": {"exit_code": 2}}}
            | {"tool_call_metadata": {"tool_call_id": "c", "function_name": "ls"}},
            ("tool", RESULT, None, "ls failed"),
        ),
        (
            {"source": "agent", "observation": "run", "content": RESULT, "extras": {"metadata": {"exit_code": -1}}},
            ("user", RESULT, None, "run"),
        ),
        ({"source": "agent", "observation": "error", "content": "no"}, ("user", "no", None, "error failed")),
        ({"source": "agent", "observation": "recall", "content": "x"}, None),
        ({"source": "agent", "action": "recall"}, None),
        ({"kind": "SystemPromptEvent", "system_prompt": {"text": "Count."}}, ("system", "Count.", None, "")),
        ({"kind": "MessageEvent", "llm_message": {"role": "user", "content": "Look."}}, ("user", "Look.", None, "")),
        (
            {"kind": "MessageEvent", "llm_message": {"role": "assistant", "content": "Two."}},
            ("assistant", "Two.", "call", ""),
        ),
        (
            {"kind": "ObservationEvent", "tool_call_id": "c", "tool_name": "ls", "observation": {"content": RESULT}},
            ("tool", RESULT, None, "ls"),
        ),
        (
            {"kind": "ObservationEvent", "tool_call_id": "c", "observation": {"content": "no", "is_error": True}},
            ("tool", "no", None, " failed"),
        ),
        (
            {"kind": "AgentErrorEvent", "tool_call_id": "c", "tool_name": "ls", "error": "no"},
            ("tool", "no", None, "ls failed"),
        ),
        ({"kind": "PauseEvent"}, None),
    ],
)
def test_an_event_of_openhands_is_this_message(event: dict[str, Any], expected: tuple[Any, ...] | None) -> None:
    before = {"source": "agent", "action": "message", "args": {"content": "Begin."}}
    found = read([before, {"source": "agent", **event}], "openhands")
    said = [
        (one.role, one.text, one.call and "call", f"{one.name} failed" if one.is_error else one.name)
        for one in found.threads[0].said
    ]
    assert said == [("assistant", "Begin.", "call", ""), *([expected] if expected else [])]
    assert any("not a message" in note for note in found.notes) == (expected is None)


def test_a_batch_of_langsmith_is_read_with_what_was_sent_when_its_runs_ended() -> None:
    name = "018f0000-0000-7000-8000-000000000001"
    inputs = {"messages": OPENAI[:2]}
    began = {"id": name, "trace_id": name, "run_type": "llm", "name": "chat", "inputs": inputs}
    end: dict[str, Any] = {"trace_id": name, "dotted_order": f"20260101T090000000000Z{name}", "inputs": None}
    end |= {"outputs": {"choices": [{"message": {"role": "assistant", "content": ANSWER}}]}}
    found = read({"post": [began], "patch": [end]}, "langsmith")
    assert [one.text for one in found.threads[0].said] == [SYSTEM, ASK, ANSWER]


def test_a_trace_of_langsmith_has_the_title_the_end_and_the_other_runs_of_what_began_first() -> None:
    """The runs of a trace by their beginning, whatever their order in the file; a trace without answers is none."""
    at = "2026-01-01T09:00:0"
    call = EXAMPLES["langsmith"][1] | {"trace_id": "t", "start_time": f"{at}5"}
    began: dict[str, Any] = {
        "run_type": "chain",
        "name": "Agent",
        "trace_id": "t",
        "start_time": f"{at}1",
        "error": "x" * 600,
    }
    began |= {"inputs": {}, "tags": ["a"], "extra": {"metadata": {"k": 1}}, "outputs": None}
    tool = {"run_type": "tool", "name": "ls", "trace_id": "t", "start_time": f"{at}3", "inputs": {}}
    unanswered = {"run_type": "llm", "name": "lost", "trace_id": "t", "start_time": f"{at}4", "inputs": {}}
    other = {**tool, "trace_id": "u"}
    found = read([call, unanswered, tool, began, other], "langsmith")
    assert (found.title, found.status, found.reason) == ("Agent", "failed", "x" * 500)
    kept = {key: began[key] for key in ("name", "run_type", "error", "tags", "extra")}
    others = [kept, {"name": "ls", "run_type": "tool"}, {"name": "lost", "run_type": "llm"}]
    assert found.kept == {"trace": "t", "runs": others}
    assert [one.call is not None for one in found.threads[0].said] == [False, False, True]
    assert [(one.text, one.count, one.left_out, one.kept) for one in found.remarks] == [
        ("a model call without its messages", 1, True, False),
        ("a traced run that is not a model call", 3, True, True),
    ]
    assert (whole := read(EXAMPLES["langsmith"], "langsmith")).kept == {"trace": "t1", "runs": []}
    assert (whole.title, whole.status, whole.reason, whole.notes) == ("ChatOpenAI", "success", "", ())
    with pytest.raises(Unreadable, match="none of its 1 runs is an answered call of a model"):
        read([tool], "langsmith")


def test_a_schema_that_the_answer_has_to_follow_and_functions_are_not_lost() -> None:
    schema = {"name": "found", "schema": {"type": "object", "properties": {"n": {"type": "integer"}}}}
    answer = {"choices": [{"message": {"role": "assistant", "content": ANSWER}}]}
    asked = {"messages": OPENAI[:2], "functions": [SCHEMA["function"]]}
    for form in (
        {"response_format": {"type": "json_schema", "json_schema": schema}},
        {"text": {"format": {"type": "json_schema", **schema}}},
    ):
        thread = read({"request": {**asked, **form}, "response": answer}).threads[0]
        assert thread.parameters["response_format"]["json_schema"] == schema
        assert [one["function"]["name"] for one in thread.tools] == ["ls"]


def test_a_member_of_an_archive_without_a_name_is_passed_over() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(zipfile.ZipInfo(""), "no name")
        archive.writestr("chat.json", json.dumps(OPENAI))
    (found,) = read_file(packed.getvalue())
    assert found.conversation.threads[0].said[-1].text == ANSWER


def test_items_of_a_response_that_follow_each_other_are_one_answer() -> None:
    searched = {"type": "web_search_call", "id": "w1", "status": "completed"}
    told = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]}
    asked = {"role": "user", "content": ASK}
    again = {"role": "user", "content": "And now?"}
    calls = [
        {
            "request": {"uri": "https://a.test", "body": json.dumps({"input": given})},
            "response": {"body": {"string": out}},
        }
        for given, out in (
            ([asked], json.dumps({"output": [searched, told]})),
            ([asked, searched, told, again], json.dumps({"output": [told]})),
        )
    ]
    (thread,) = read({"interactions": calls}, "vcr").threads
    assert [one.role for one in thread.said] == ["user", "assistant", "user", "assistant"]
    assert thread.calls == 2
    apart = read([asked, {"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}])
    assert [one.text for one in apart.threads[0].said] == [ASK, "a", "b"]


def test_sub_agents_in_one_another_are_read_to_a_depth_and_the_rest_is_said() -> None:
    def agent(depth: int) -> dict[str, Any]:
        inner = [agent(depth + 1)] if depth < 23 else []
        steps = [{"step_id": 1, "source": "user", "message": f"level {depth}"}, EXAMPLES["atif"]["steps"][-1]]
        return {**EXAMPLES["atif"], "steps": steps, "subagent_trajectories": inner}

    (found,) = reading.read_file(json.dumps(agent(0)).encode())
    assert [one.said[0].text for one in found.conversation.threads] == [f"level {depth}" for depth in range(21)]
    assert "a sub-agent below more than 20 others is left out" in found.conversation.notes
