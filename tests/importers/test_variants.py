"""The same few messages as different tools and versions write them: missing, null, nested, or spelled otherwise."""

from __future__ import annotations

import base64
import io
import json
import re
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from tests.importers.examples import ANSWER, ARGUMENTS, ASK, EXAMPLES, RESULT, SCHEMA, SYSTEM, TEXT_PROTOCOL
from tests.importers.whole import read_file
from workbench.importers.conversation import Conversation, Unreadable

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\nr\xfb\xff\xbf").decode()
URL = f"data:image/png;base64,{PIXEL}"
CALL: dict[str, Any] = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": {"path": "."}}}
VERCEL = {"toolCallId": "c1", "toolName": "ls"}
VALUE = {"type": "text", "value": RESULT}
BLOCK = {"type": "tool_use", "id": "c1", "name": "ls", "input": {}}


def read(body: Any, name: str = "") -> Conversation:
    (found,) = read_file(json.dumps(body).encode())
    assert name in ("", found.format.name)
    return found.conversation


def roles(conversation: Conversation) -> str:
    return " ".join(said.role for said in conversation.threads[0].said)


def said(*bodies: Any) -> list[Any]:
    return [{"role": "user", "content": ASK}, *bodies, {"role": "assistant", "content": ANSWER}]


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ({"role": "assistant", "tool_calls": [CALL], "content": None}, {"role": "tool", "content": RESULT}),
        ({"role": "assistant", "tool_calls": json.dumps([CALL])}, {"role": "tool", "id": "c1", "content": RESULT}),
        (
            {"role": "assistant", "function_call": {"name": "ls", "arguments": ARGUMENTS}},
            {"role": "function", "name": "ls", "content": RESULT},
        ),
        (
            {"role": "model", "parts": [{"functionCall": {"name": "ls", "args": {}}, "thoughtSignature": "x"}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "ls", "response": {"output": RESULT}}}]},
        ),
        (
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "ls", "input": {"path": "."}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": RESULT}]}}]},
        ),
        (
            {"role": "assistant", "content": [{"type": "tool-call", **VERCEL, "input": {}}]},
            {"role": "tool", "content": [{"type": "tool-result", **VERCEL, "output": VALUE}]},
        ),
        (
            {"type": "ai", "data": {"content": [BLOCK], "tool_calls": [{"id": "c1", "name": "ls", "args": {}}]}},
            {"type": "tool", "data": {"content": RESULT, "tool_call_id": "c1"}},
        ),
        (
            {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": ARGUMENTS},
            {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": RESULT}]},
        ),
    ],
)  # fmt: skip
def test_a_call_and_its_result_are_read_in_every_spelling(answer: Any, result: Any) -> None:
    thread = read(said(answer, result)).threads[0]
    assert [one.role for one in thread.said] == ["user", "assistant", "tool", "assistant"]
    (call,) = thread.said[1].calls
    assert call.name == "ls"
    assert isinstance(json.loads(call.arguments), dict)
    assert RESULT in thread.said[2].text or json.dumps(RESULT)[1:-1] in thread.said[2].text
    assert not thread.said[2].is_error


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": URL}},
        {"type": "input_image", "image_url": URL},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
        {"inlineData": {"mimeType": "image/png", "data": PIXEL}},
        {"inline_data": {"mime_type": "image/png", "data": PIXEL.replace("+", "-").replace("/", "_")}},
        {"type": "image", "image": URL, "mediaType": "image/png"},
        {"type": "file", "mediaType": "image/png", "data": PIXEL},
        {"type": "blob", "modality": "image", "mime_type": "image/png", "content": PIXEL},
        {"image": {"format": "png", "source": {"bytes": PIXEL}}},
    ],
)
def test_an_image_is_an_image_in_every_spelling(part: Any) -> None:
    content = [{"type": "text", "text": None}, part, {"text": "see", "type": "text"}]
    first, second = read([{"role": "user", "content": content}, *said()[1:]]).threads[0].said[0].parts
    assert getattr(first, "media_type", "") == "image/png"
    assert second == "see"


@pytest.mark.parametrize(
    "failed",
    [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "no", "is_error": True}]},
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "no"}], "status": "error"}}],
        },
        {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "ls", "response": {"error": "no"}}}]},
        {"type": "tool", "content": "no", "tool_call_id": "c1", "status": "error"},
    ],
)
def test_a_result_that_its_tool_calls_an_error_is_one(failed: Any) -> None:
    calls = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    assert read(said(calls, failed)).threads[0].said[2].is_error


def test_reasoning_is_kept_beside_the_answer() -> None:
    for part in ({"type": "thinking", "thinking": "hm", "signature": "s"}, {"text": "hm", "thought": True}):
        (_, answer) = (
            read([{"role": "user", "content": ASK}, {"role": "assistant", "content": [part, "yes"]}]).threads[0].said
        )
        assert (answer.text, len(answer.extra["reasoning"])) == ("yes", 1)  # fmt: skip


def test_a_list_whose_elements_only_have_types_is_no_conversation() -> None:
    with pytest.raises(Unreadable):
        read([{"type": "user", "id": 1}, {"type": "assistant", "x": 1}])


@pytest.mark.parametrize(
    "words", ["Tool Result: a", "Observation: a", "[read_file for 'x'] Result:\na", "<tool_response>"]
)
def test_results_of_text_protocols_are_told_by_how_they_begin(words: str) -> None:
    body = said({"role": "assistant", "content": "ls?"}, {"role": "user", "content": words})
    assert [one.observation for one in read(body).threads[0].said] == [False, False, True, False]
    assert not any(one.observation for one in read([{"role": "user", "content": words}, *said()[1:]]).threads[0].said)
    assert not any(one.observation for one in read(TEXT_PROTOCOL[:2] + TEXT_PROTOCOL[4:]).threads[0].said)


def test_a_schema_with_every_field_that_it_could_have_is_read_as_it_was_meant() -> None:
    city = {"type": "STRING", "enum": None, "anyOf": None, "properties": None, "items": None}
    schema = {"type": "OBJECT", "properties": {"city": city}, "required": None}
    tools = [{"functionDeclarations": [{"name": "ls", "parameters": schema}]}]
    (tool,) = read({"contents": said(), "tools": tools}).threads[0].tools
    parameters = {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}}
    assert tool["function"] == {"name": "ls", "description": "", "parameters": parameters}


@pytest.mark.parametrize("key", ["parametersJsonSchema", "parameters_json_schema"])
def test_a_declaration_of_gemini_keeps_its_json_schema(key: str) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    (tool,) = (
        read({"contents": said(), "tools": [{"functionDeclarations": [{"name": "ls", key: schema}]}]}).threads[0].tools
    )
    assert tool["function"]["parameters"] == schema


# -- spans -------------------------------------------------------------------------------------------------------------

ASKED, SAID = {"role": "user", "content": ASK}, {"role": "assistant", "content": ANSWER}
REQUEST = json.dumps({"messages": [ASKED], "tools": [SCHEMA], "temperature": 0})
RESPONSE = json.dumps({"choices": [{"message": SAID}], "usage": {"prompt_tokens": 20, "completion_tokens": 5}})
MODEL = {"gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 20, "gen_ai.usage.output_tokens": 5}


@pytest.mark.parametrize(
    "attributes",
    [
        {**MODEL, "gen_ai.prompt": json.dumps([ASKED]), "gen_ai.completion": json.dumps([SAID])},
        {**MODEL, "gen_ai.input.messages": [ASKED], "gen_ai.output.messages": [SAID]},
        {
            **MODEL,
            "gen_ai.prompt.0.role": "user",
            "gen_ai.prompt.0.content": ASK,
            "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.content": ANSWER,
        },
        {
            **MODEL,
            "events": json.dumps(
                [
                    {"event.name": "gen_ai.user.message", "content": ASK, "role": "user"},
                    {"event.name": "gen_ai.choice", "index": 0, "message": SAID},
                ]
            ),
        },
        {"gen_ai.request.model": "m", "request_data": REQUEST, "response_data": RESPONSE},
        {**MODEL, "ai.prompt.messages": json.dumps([ASKED]), "ai.response.text": ANSWER},
        {
            "openinference.span.kind": "LLM",
            "llm.model_name": "m",
            "input.value": REQUEST,
            "output.value": RESPONSE,
        },
        {
            "openinference": {"span": {"kind": "LLM"}},
            "llm": {
                "model_name": "m",
                "input_messages": [{"message": ASKED}],
                "output_messages": [{"message": SAID}],
                "token_count": {"prompt": 20, "completion": 5},
            },
        },
        {
            "openinference.span.kind": "LLM",
            "llm.model_name": "m",
            "llm.input_messages": [{"message.role": "user", "message.content": ASK}],
            "llm.output_messages": [{"message.role": "assistant", "message.content": ANSWER}],
            "llm.token_count.prompt": 20.0,
            "llm.token_count.completion": 5.0,
        },
    ],
)
def test_a_span_is_a_call_whoever_wrote_it(attributes: Any) -> None:
    span = {
        "name": "chat",
        "context": {"trace_id": "t"},
        "start_time": "2026-01-01T09:00:00Z",
        "attributes": attributes,
    }
    (thread,) = read([span]).threads
    call = thread.said[1].call
    assert call is not None
    assert ([one.text for one in thread.said], thread.model) == ([ASK, ANSWER], "m")
    assert (call.usage.input, call.usage.output) == (20, 5)


def test_events_that_were_exported_as_log_records_are_messages() -> None:
    def value(text: str) -> Any:
        return {"kvlistValue": {"values": [{"key": "content", "value": {"stringValue": text}}]}}

    records = [
        {"traceId": "t", "spanId": "s", "timeUnixNano": "1767258000000000000", "eventName": name, "body": value(text)}
        for name, text in (("gen_ai.user.message", ASK), ("gen_ai.choice", ANSWER))
    ]
    found = read({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}, "otel")
    assert [one.text for one in found.threads[0].said] == [ASK, ANSWER]


def test_rows_of_a_parquet_file_are_spans_or_conversations() -> None:
    def packed(rows: list[Any]) -> bytes:
        file = io.BytesIO()
        parquet.write_table(pyarrow.Table.from_pylist(rows), file)
        return file.getvalue()

    spans = [
        {key: value for key, value in span.items() if key != "attributes"}
        | {f"attributes.{key}": value for key, value in span["attributes"].items()}
        for span in EXAMPLES["openinference"][:2]
    ]
    spans = [{key: span.get(key) for key in spans[0] | spans[1]} for span in spans]
    (one,) = read_file(packed(spans))
    assert (one.format.name, one.conversation.threads[0].calls) == ("openinference", 2)
    chats = list(read_file(packed([{"messages": said()}, {"messages": said()}])))
    assert [one.format.name for one in chats] == ["openai", "openai"]
    with pytest.raises(Unreadable, match="Parquet file, but cannot be read"):
        list(read_file(packed(spans)[:-20]))


@pytest.mark.parametrize("name", ["otel", "openinference", "langfuse", "langsmith", "vcr", "inspect"])
def test_a_call_that_cannot_be_read_does_not_take_the_others_with_it(name: str) -> None:
    text = json.dumps(EXAMPLES[name]).replace("ToolMessage", "Message")
    (found,) = read_file(re.sub(r'(role\\*": \\*")tool', r"\1", text).encode())
    assert sum(thread.calls for thread in found.conversation.threads) == 1
    assert any("a model call that cannot be read (" in note for note in found.conversation.notes)


def test_a_role_that_nobody_knows_is_a_users_and_said() -> None:
    conversation = read(said({"role": "critic", "content": "hm"}))
    assert roles(conversation) == "user user assistant"
    assert conversation.notes == ("a message of the role 'critic' is read as a user's",)


def test_a_sample_without_messages_is_left_out_and_said() -> None:
    body = EXAMPLES["inspect"] | {"samples": [*EXAMPLES["inspect"]["samples"], {"id": 2}]}
    assert read(body, "inspect").notes == (
        "a sample that holds no conversation is left out (sample 2 holds neither model events nor messages)",
    )


# -- agents ------------------------------------------------------------------------------------------------------------


def test_items_of_codex_are_a_session_with_the_usage_behind_them() -> None:
    item = {"type": "function_call", "name": "ls", "arguments": ARGUMENTS, "call_id": "c1"}
    items = [ASKED | {"type": "message"}, item, {"type": "function_call_output", "call_id": "c1", "output": RESULT}]
    lines: list[Any] = [{"type": "response_item", "payload": one} for one in (*items, SAID | {"type": "message"})]
    count = {"info": {"last_token_usage": {"input_tokens": 20, "cached_input_tokens": 16, "output_tokens": 5}}}
    lines.insert(3, {"type": "event_msg", "payload": count})
    thread = read([{"type": "session_meta", "payload": {}}, *lines], "session").threads[0]
    assert [one.role for one in thread.said] == ["user", "assistant", "tool", "assistant"]
    call = thread.said[1].call
    assert call is not None
    assert (call.usage.input, call.usage.cached) == (20, 16)


def test_every_context_of_codex_begins_with_the_instructions_of_its_session() -> None:
    meta = {"type": "session_meta", "payload": {"id": "s", "base_instructions": {"text": SYSTEM}}}
    asked, said = ({"type": "response_item", "payload": one | {"type": "message"}} for one in (ASKED, SAID))
    found = read([meta, asked, said, {"type": "compacted", "payload": {"message": "So far."}}, said], "session")
    assert [[one.text for one in thread.said] for thread in found.threads] == [
        [SYSTEM, ASK, ANSWER],
        [SYSTEM, "So far.", ANSWER],
    ]
    assert all(thread.said[0].role == "system" for thread in found.threads)


def test_what_a_sub_agent_said_is_a_context_of_its_own() -> None:
    lines = [one | {"isSidechain": i > 3} for i, one in enumerate([*EXAMPLES["session"], *EXAMPLES["session"]])]
    assert [thread.calls for thread in read(lines, "session").threads] == [1, 3]


def test_events_of_openhands_sdk_name_their_kind() -> None:
    def act(number: int) -> Any:
        call = {"id": f"c{number}", "name": "ls", "arguments": ARGUMENTS}
        return {"kind": "ActionEvent", "source": "agent", "thought": [], "tool_call": call, "llm_response_id": "r1"}

    def seen(number: int) -> Any:
        result = {"content": [{"type": "text", "text": RESULT}], "is_error": number == 2}
        return {
            "kind": "ObservationEvent",
            "source": "environment",
            "tool_call_id": f"c{number}",
            "observation": result,
        }

    told: list[Any] = [
        {"kind": "SystemPromptEvent", "source": "agent", "system_prompt": {"text": SYSTEM}, "tools": [SCHEMA]},
        {"kind": "MessageEvent", "source": "user", "llm_message": ASKED},
    ]  # fmt: skip
    thread = read([*told, act(1), act(2), seen(1), seen(2), *told[1:]], "openhands").threads[0]
    assert [one.role for one in thread.said] == ["system", "user", "assistant", "tool", "tool", "user"]
    assert (thread.calls, len(thread.said[2].calls), len(thread.tools)) == (1, 2, 1)
    assert [one.is_error for one in thread.said[3:5]] == [False, True]


def test_simulations_of_the_second_tau_bench_are_results() -> None:
    calls = [{"id": "c1", "name": "ls", "arguments": {"path": "."}, "requestor": "assistant"}]
    answer = {"role": "assistant", "content": None, "tool_calls": calls, "usage": {"prompt_tokens": 20}, "cost": 0.5}
    body = {"messages": said(answer, {"role": "tool", "id": "c1", "content": RESULT}), "reward_info": {"reward": 0.0}}
    found = read({"simulations": [body | {"task_id": "3"}], "tasks": []}, "tau-bench")
    call = found.threads[0].said[1].call
    assert call is not None
    assert (call.usage.input, call.cost, found.threads[0].said[2].call_id, found.status) == (20, 0.5, "c1", "failed")


def test_a_trajectory_may_name_its_model_in_json_text() -> None:
    body = EXAMPLES["swe-agent"] | {"replay_config": json.dumps({"agent": {"model": {"name": "gpt-4o"}}})}
    assert read(body, "swe-agent").threads[0].model == "gpt-4o"


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("request_data", "response_data"),
        ("mlflow.spanInputs", "mlflow.spanOutputs"),
        ("langfuse.observation.input", "langfuse.observation.output"),
        ("input.value", "output.value"),
    ],
)
def test_a_request_without_a_response_and_a_response_without_a_request_are_calls(asked: str, answered: str) -> None:
    def texts(**sides: str) -> list[tuple[str, str]]:
        span = {
            "name": "chat",
            "context": {"trace_id": "t"},
            "start_time": "2026-01-01T09:00:00Z",
            "attributes": {"gen_ai.request.model": "m", **sides},
        }
        (thread,) = read([span]).threads
        return [(said.role, "".join(part for part in said.parts if isinstance(part, str))) for said in thread.said]

    assert texts(**{asked: REQUEST, answered: RESPONSE}) == [("user", ASK), ("assistant", ANSWER)]
    assert texts(**{asked: REQUEST}) == [("user", ASK), ("assistant", "")]
    assert texts(**{answered: RESPONSE}) == [("assistant", ANSWER)]
    assert texts(**{asked: ASK, answered: ANSWER}) == [("user", ASK), ("assistant", ANSWER)]


def test_an_export_of_chatgpt_is_the_branch_that_was_shown_last() -> None:
    def node(parent: str | None, role: str = "", *parts: Any, **more: Any) -> dict[str, Any]:
        content = {"content_type": "text", "parts": list(parts)}
        beside = {name: more.pop(name) for name in ("recipient", "create_time") if name in more}
        message = {"author": {"role": role, "name": more.pop("name", None)}, "content": content, "metadata": more}
        return {"parent": parent, "message": {**message, **beside} if role else None}

    code = {"content_type": "code", "text": "ls"}
    tree = {
        "top": node(None),
        "hidden": node("top", "system", ""),
        "asked": node(
            "hidden", "user", ASK, {"content_type": "image_asset_pointer", "asset_pointer": "file-service://a"}
        ),
        "dropped": node("asked", "assistant", "Another answer", model_slug="gpt-4o"),
        "called": node("asked", "assistant", recipient="python", model_slug="gpt-5"),
        "ran": node("called", "tool", RESULT, name="python"),
        "answered": node("ran", "assistant", {"content_type": "text", "text": ANSWER}, create_time=1_702_000_001.5),
    }
    tree["called"]["message"]["content"] = code
    body = [
        {"title": "A title", "mapping": tree, "current_node": "answered"},
        {"title": "Two", "mapping": tree},
        {"title": "Three", "mapping": tree, "current_node": "dropped"},
    ]
    first, second, third = (found.conversation for found in read_file(json.dumps(body).encode()))
    assert [one.text for one in third.threads[0].said][1:] == ["Another answer"]
    for conversation in (first, second):
        (thread,) = conversation.threads
        assert [one.role for one in thread.said] == ["user", "assistant", "tool", "assistant"]
        assert (thread.said[0].text.startswith(ASK), thread.said[2].text, thread.said[3].text) == (True, RESULT, ANSWER)
        assert [(call.name, json.loads(call.arguments)) for call in thread.said[1].calls] == [
            ("python", {"input": "ls"})
        ]
        assert thread.model == "gpt-5"
        assert "a message of a branch that is not the one shown is left out" in conversation.notes
    assert (first.title, "mapping" in first.kept) == ("A title", False)
