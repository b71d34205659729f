"""Recorded HTTP traffic: bodies in every packing, streams of every provider, and what is not a model call."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from typing import Any

import pytest
import yaml

from tests.importers.examples import ANSWER, ARGUMENTS, ASK, EXAMPLES, OPENAI, RESULT, SYSTEM
from tests.importers.whole import read_file
from workbench.engine.journal.usage import Usage
from workbench.importers.conversation import Conversation, Picture, Remarks, Unreadable
from workbench.importers.exchanges import Exchanges
from workbench.importers.formats.plain_yaml import NotPlain, plain_yaml
from workbench.importers.formats.vcr import PackedBodies
from workbench.importers.messages import read_message
from workbench.importers.streams import whole_response
from workbench.importers.usage import fuller, usage_of

CASSETTE: dict[str, Any] = EXAMPLES["vcr"]
REQUEST = json.dumps({"model": "gpt-4o", "messages": OPENAI[:4]})
RESPONSE = json.dumps({"model": "gpt-4o", "choices": [{"message": OPENAI[4], "finish_reason": "stop"}]})


def recorded(body: Any, headers: Any = None, url: str = "https://a.test/v1/x", request: Any = REQUEST) -> Conversation:
    """The conversation of a cassette in YAML with one interaction."""
    response = {"status": {"code": 200}, "headers": headers or {}, "body": body}
    one = {"request": {"method": "POST", "uri": url, "body": request}, "response": response}
    (found,) = read_file(yaml.safe_dump({"interactions": [one], "version": 1}).encode())
    assert found.format.name == "vcr"
    return found.conversation


def answer(conversation: Conversation) -> str:
    (thread,) = conversation.threads
    return thread.said[-1].text


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        ({"string": RESPONSE}, ""),
        ({"string": gzip.compress(RESPONSE.encode())}, "gzip"),
        ({"string": RESPONSE}, "gzip"),
        ({"string": zlib.compress(RESPONSE.encode())}, "deflate"),
        ({"base64_string": base64.b64encode(gzip.compress(RESPONSE.encode())).decode()}, "gzip"),
        ({"data": base64.b64encode(RESPONSE.encode()).decode(), "encoding": "base64"}, ""),
        (RESPONSE, ""),
        (gzip.compress(RESPONSE.encode()).decode("latin-1"), "gzip"),
    ],
)
def test_a_body_is_read_however_it_is_packed(body: Any, encoding: str) -> None:
    assert answer(recorded(body, {"Content-Encoding": [encoding]})) == ANSWER


@pytest.mark.parametrize("form", ["whole", "pieces", "raw"])
def test_a_file_may_be_one_request_with_its_response(form: str) -> None:
    """As ReqLLM's: bodies in base64, a stream in pieces beside the response; as claude-trace's: a stream as text."""
    asked = {"method": "post", "url": "https://a.test/v1/x", "headers": {}}
    packed = {"b64": base64.b64encode(REQUEST.encode()).decode()}
    stream = events(*CHAT)
    half = len(stream) // 2
    body: dict[str, Any]
    if form == "whole":
        body = {"request": {**asked, "body": packed}, "response": {"status": 200, "body": json.loads(RESPONSE)}}
    elif form == "pieces":
        pieces = [{"b64": base64.b64encode(part.encode()).decode()} for part in (stream[:half], stream[half:])]
        body = {"request": {**asked, "body": packed}, "response": {"status": 200, "body": None}, "chunks": pieces}
    else:
        raw = {"status_code": 200, "body": None, "body_raw": stream}
        body = {"request": {**asked, "body": json.loads(REQUEST)}, "response": raw}
    (found,) = read_file(json.dumps(body).encode())
    assert answer(found.conversation) == (ANSWER if form == "whole" else "I look.\u2028")


def test_the_lines_of_a_log_of_requests_are_one_conversation() -> None:
    """As claude-trace writes them: each call with its times, and null for a response that never came."""

    def line(messages: list[Any], at: float, response: Any) -> str:
        asked = {"timestamp": at, "method": "POST", "url": "https://a.test/v1/messages", "headers": {}}
        asked["body"] = {"model": "claude-sonnet-4-5", "system": SYSTEM, "max_tokens": 9, "messages": messages}
        return json.dumps({"request": asked, "response": response, "logged_at": "2026-01-31T09:00:09Z"})

    def answered(at: float, chunks: list[Any]) -> Any:
        return {"timestamp": at, "status_code": 200, "headers": {}, "body_raw": events(*chunks)}

    ask = {"role": "user", "content": ASK}
    said = [{"type": "text", "text": "I look.\u2028"}, {"type": "tool_use", "id": "c1", "name": "ls"}]
    said[1]["input"] = json.loads(ARGUMENTS)
    result = {"type": "tool_result", "tool_use_id": "c1", "content": RESULT}
    further = [ask, {"role": "assistant", "content": said}, {"role": "user", "content": [result]}]
    lines = [
        line([ask], 1769850000.5, answered(1769850002.0, CLAUDE)),
        line(further, 1769850003.0, answered(1769850004.0, CLAUDE[:3] + CLAUDE[-1:])),
        line([ask], 1769850005.0, None),
    ]
    (found,) = read_file("\n".join(lines).encode())
    first, second = found.conversation.threads
    assert (found.format.name, first.calls, first.answers, second.calls, second.answers) == ("vcr", 2, 2, 1, 0)
    calls = [said.call for said in first.said if said.call is not None]
    assert [(call.at, call.duration_s) for call in calls] == [
        ("2026-01-31T09:00:00.500000Z", 1.5),
        ("2026-01-31T09:00:03.000000Z", 1.0),
    ]
    fault = next(said.call.fault for said in second.said if said.call is not None)
    assert fault.startswith("no response was recorded")


def events(*chunks: Any) -> str:
    return "".join(f"event: x\ndata: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n"


CHAT = [
    {"choices": [{"delta": {"role": "assistant", "content": "I "}}], "model": "m"},
    {"choices": [{"delta": {"content": "look.\u2028"}}]},
    {"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "ls", "arguments": ""}}]}}]},
    {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": ARGUMENTS[:5]}}]}}]},
    {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": ARGUMENTS[5:]}}]}}]},
    {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
    {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}},
]
CLAUDE = [
    {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 4, "cache_read_input_tokens": 5}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I look.\u2028"}},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "c1", "name": "ls"}},
    {"type": "content_block_delta", "index": 1, "delta": {"partial_json": ARGUMENTS[:5]}},
    {"type": "content_block_delta", "index": 1, "delta": {"partial_json": ARGUMENTS[5:]}},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 4}},
]
PARTS: list[Any] = [{"text": "I "}, {"text": "look.\u2028"}, {"functionCall": {"id": "c1", "name": "ls", "args": {}}}]
GEMINI: list[Any] = [{"candidates": [{"content": {"parts": [part], "role": "model"}}]} for part in PARTS]
GEMINI += [{"candidates": [], "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 4}}]
ITEMS = [
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look.\u2028"}]},
    {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": ARGUMENTS},
]
NUMBERS = {"input_tokens": 9, "output_tokens": 4}
RESPONSES: list[Any] = [{"type": "response.output_item.done", "item": item} for item in ITEMS]
RESPONSES += [{"type": "response.completed", "response": {"output": ITEMS, "usage": NUMBERS}}]


@pytest.mark.parametrize("chunks", [CHAT, CLAUDE, GEMINI, RESPONSES], ids=["chat", "anthropic", "gemini", "responses"])
def test_a_stream_is_the_response_that_it_stands_for(chunks: list[Any]) -> None:
    thread = recorded({"string": events(*chunks)}).threads[0]
    said = thread.said[-1]
    assert said.text == "I look.\u2028"
    ((call_id, name),) = [(call.id, call.name) for call in said.calls]
    assert (call_id, name) == ("c1", "ls")
    assert said.call is not None
    assert (said.call.usage.input, said.call.usage.output) == (9, 4)


@pytest.mark.parametrize("form", ["whole", "increments", "repeated", "prompt"])
def test_dashscopes_calls_stand_one_level_deeper(form: str) -> None:
    def piece(text: str, output: int) -> dict[str, Any]:
        message = {"role": "assistant", "content": text}
        numbers = {"input_tokens": 9, "output_tokens": output, "total_tokens": 9 + output}
        return {"output": {"choices": [{"message": message, "finish_reason": "null"}]}, "usage": numbers}

    inner: Any = {"messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": ASK}]}
    body = json.dumps(piece("I look.", 4))
    if form == "prompt":
        inner, body = {"prompt": ASK}, json.dumps({**piece("", 4), "output": {"text": "I look."}})
    elif form != "whole":
        second = "look." if form == "increments" else "I look."
        body = events(piece("I ", 1), piece(second, 4))
    asked = json.dumps({"model": "qwen-max", "input": inner, "parameters": {"top_p": 0.5}})
    (thread,) = recorded({"string": body}, request=asked).threads
    assert [one.text for one in thread.said] == [*([] if form == "prompt" else [SYSTEM]), ASK, "I look."]
    assert (thread.model, thread.parameters) == ("qwen-max", {"top_p": 0.5})
    call = thread.said[-1].call
    assert call is not None
    assert (call.usage.input, call.usage.output) == (9, 4)


def test_a_stream_that_was_cut_off_gives_what_had_come() -> None:
    assert whole_response(events(*RESPONSES[:1])) == {"output": ITEMS[:1]}
    assert whole_response("no stream") is None
    assert whole_response('data: {"choices": [{"delta": {"content": "a"}}]}\n\ndata: {"choi') is not None


def test_geminis_stream_may_be_a_list_and_its_model_stand_in_the_address() -> None:
    request = json.dumps({"contents": [{"parts": [{"text": ASK}]}], "systemInstruction": {"parts": [{"text": SYSTEM}]}})
    found = recorded({"string": json.dumps(GEMINI)}, url="https://a.test/models/gemini-x:stream?key=1", request=request)
    (thread,) = found.threads
    assert thread.model == "gemini-x"
    at_vertex = "https://a-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google/models/gemini-x:stream"
    assert (
        recorded({"string": json.dumps(GEMINI)}, url=at_vertex, request=request).threads[0].model
        == "vertex_ai/gemini-x"
    )
    assert [one.text for one in thread.said] == [SYSTEM, ASK, "I look.\u2028"]


def test_requests_that_fail_or_ask_no_model_are_kept_beside_the_run() -> None:
    one = CASSETTE["interactions"][0]
    failed = {**one, "response": {"status": {"code": 429}, "body": {"string": '{"error": 1}'}}}
    other = {"request": {"method": "GET", "uri": "https://a.test/models?key=secret"}, "response": {"body": {}}}
    (found,) = read_file(json.dumps({"interactions": [failed, one, other]}).encode())
    assert found.conversation.kept["requests"] == [{"method": "GET", "url": "https://a.test/models", "status": 200}]
    calls = [one.call for thread in found.conversation.threads for one in thread.said if one.call is not None]
    assert [call.fault for call in calls] == ["HTTP status 429: its response holds no answer: 1", ""]
    with pytest.raises(Unreadable, match=r"none of its 1 request is an answered call of a model \(https://a.test/mod"):
        list(read_file(json.dumps({"interactions": [other]}).encode()))


def test_what_a_provider_kept_stands_before_what_the_call_sent() -> None:
    exchanges = Exchanges(Remarks())
    first = exchanges.read({"input": ASK}, {"id": "r1", "output": ITEMS})
    item = {"type": "function_call_output", "call_id": "c1", "output": RESULT}
    second = exchanges.read({"input": [item], "previous_response_id": "r1"}, {"id": "r2", "output": ITEMS[:1]})
    assert first is not None
    assert second is not None
    assert [one.role for one in second.input] == ["user", "assistant", "tool"]
    lost = exchanges.read({"input": ASK, "previous_response_id": "r9"}, {"output": ITEMS[:1]})
    assert lost is not None
    assert any("what the provider kept" in note for note in exchanges.remarks.notes)


def test_what_stands_before_a_compaction_is_not_what_the_call_saw() -> None:
    exchanges = Exchanges(Remarks())
    items = [*ITEMS, {"type": "compaction", "encrypted_content": "c2VjcmV0" * 90}, {"role": "user", "content": "And?"}]
    found = exchanges.read({"input": items, "instructions": "Be brief."}, {"output": ITEMS[:1]})
    assert found is not None
    assert [one.text[:22] for one in found.input] == ["Be brief.", '{"type": "compaction"}', "And?"]
    assert "compaction" in found.unstated
    assert any("before a compaction" in note for note in exchanges.remarks.notes)


def test_images_and_files_that_a_tool_returned_are_read_wherever_they_stand() -> None:
    url = "data:application/pdf;base64," + "JVBERi0x" * 30
    output = [{"type": "input_text", "text": "See"}, {"type": "input_file", "filename": "a.pdf", "file_data": url}]
    items = [
        {"role": "user", "content": ASK},
        *ITEMS,
        {"type": "function_call_output", "call_id": "c1", "output": output},
    ]
    found = Exchanges(Remarks()).read({"input": items}, {"output": ITEMS[:1]})
    assert found is not None
    assert found.input[-1].parts == ("See", "[file: application/pdf, a.pdf, 180 bytes]")
    pixel = base64.b64encode(b"\x89PNG\r\n\x1a\nrest").decode()
    beside = {"name": "ls", "response": {}, "parts": [{"inlineData": {"mimeType": "image/png", "data": pixel}}]}
    contents = [
        {"role": "user", "parts": [{"text": "Look"}]},
        {"role": "user", "parts": [{"functionResponse": beside}]},
    ]
    seen = Exchanges(Remarks()).read({"contents": contents}, {"candidates": [{"content": {"parts": [{"text": "A"}]}}]})
    assert seen is not None
    assert isinstance(seen.input[-1].parts[-1], Picture)


def test_a_video_in_a_data_url_is_a_file_not_text() -> None:
    part = {"type": "video_url", "video_url": {"url": "data:video/mp4;base64," + "AAAAHGZ0" * 20}}
    (said,) = read_message({"role": "user", "content": [part]}, Remarks())
    assert said.text == "[file: video/mp4, 120 bytes]"


def test_a_har_file_is_a_recording_too() -> None:
    took = {"startedDateTime": "2026-01-01T09:00:00Z", "time": 1500}
    request = {"method": "POST", "url": "https://a.test/v1", "postData": {"text": REQUEST}}
    packed = base64.b64encode(RESPONSE.encode()).decode()
    response = {"status": 200, "headers": [], "content": {"text": packed, "encoding": "base64"}}
    entry = {**took, "request": request, "response": response}
    (found,) = read_file(json.dumps({"log": {"entries": [entry]}}).encode())
    call = found.conversation.threads[0].said[-1].call
    assert call is not None
    assert (call.at, call.duration_s) == ("2026-01-01T09:00:00.000000Z", 1.5)


def test_a_cassette_with_python_tags_is_read_and_runs_nothing() -> None:
    text = f"interactions:\n- request:\n    body: !!python/unicode '{REQUEST}'\n"
    text += "    uri: !!python/object/apply:os.abort []\n"
    text += f"  response:\n    body: {{string: !!python/unicode '{RESPONSE}'}}\n"
    (found,) = read_file(text.encode())
    assert answer(found.conversation) == ANSWER


ALIASES = "a0: &a0 lots\n" + "".join(f"a{i + 1}: &a{i + 1} [{', '.join([f'*a{i}'] * 10)}]\n" for i in range(9))
MERGES = "a0: &a0 {k: 1}\n" + "".join(f"a{i + 1}: &a{i + 1} {{<<: [*a{i}, *a{i}], k: *a{i}}}\n" for i in range(40))


@pytest.mark.parametrize(
    ("hostile", "told"),
    [
        (f"{ALIASES}interactions: *a9\n", "aliases stand for more"),
        (f"{MERGES}interactions: *a40\n", "aliases stand for more"),
        (f"interactions: {'[' * 100_000}", "nested more than 100 deep"),
        ("interactions:\n- &a {request: *a}\n", "'a' names nothing that is whole, line 3"),
        ("interactions:\n- {? [a] : b}\n", "a key is a list"),
        ("interactions:\n- {request: ]\n", "node content, line 3"),
    ],
)
def test_a_cassette_that_would_grow_without_end_is_refused(hostile: str, told: str) -> None:
    with pytest.raises(Unreadable, match=told):
        list(read_file(f"version: 1\n{hostile}".encode()))


@pytest.mark.parametrize(("pack", "encoding"), [(gzip.compress, ""), (zlib.compress, "deflate")])
def test_a_body_that_unpacks_to_too_much_is_left_out_and_a_file_of_them_refused(pack: Any, encoding: str) -> None:
    remarks = Remarks()
    bodies = PackedBodies(remarks, most=1_000, total=2_500)

    def read(size: int) -> Any:
        return bodies.read({"body": pack(b"a" * size), "headers": {"content-encoding": encoding}})

    assert (read(100_000), read(1_000)) == (None, "a" * 1_000)
    assert remarks.notes == ("a packed body that cannot be unpacked (it is larger than 1,000 bytes) is left out",)
    with pytest.raises(Unreadable, match="its bodies unpack to more than 2,500 bytes"):
        read(500)


def test_a_cassette_holds_what_json_holds() -> None:
    text = "[{2026-01-01: 2026-01-02, 1: .nan, a: &a [1, yes, ~, 1.5], b: *a, c: !!binary aGk=, d: 0x1}]"
    expected = {"2026-01-01": "2026-01-02", "1": ".nan", "a": [1, True, None, 1.5], "b": [1, True, None, 1.5]}
    assert plain_yaml(text) == [expected | {"c": b"hi", "d": 1}]
    # Ruby's tag for bytes, and what Python writes for a header's name that is a class of its own.
    of_others = "[{c: !binary aGk=, ? !!python/object/apply:multidict._multidict.istr [Content-Type] : [text/plain]}]"
    assert plain_yaml(of_others) == [{"c": b"hi", "Content-Type": ["text/plain"]}]
    with pytest.raises(NotPlain, match="a key is a list or a mapping"):
        plain_yaml("{? [a, b] : 1}")


def test_an_alias_counts_what_it_repeats_and_nothing_before_it() -> None:
    before = "x" * 100_000
    repeated = ", ".join(["*small"] * 1_000)
    whole = plain_yaml(f"[{{long: {before}, small: &small [1, 2], more: [{repeated}]}}]")
    assert whole[0]["more"] == [[1, 2]] * 1_000
    bomb = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))
    with pytest.raises(NotPlain, match="its aliases stand for more"):
        plain_yaml(f"a0: &a0 [{'y' * 100}]\n{bomb}")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"promptTokenCount": 20, "candidatesTokenCount": 5, "thoughtsTokenCount": 3}, (20, 8, 0)),
        ({"promptTokenCount": 20, "candidatesTokenCount": 5, "cachedContentTokenCount": 16}, (20, 5, 16)),
        ({"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 28, "reasoning_tokens": 3}, (20, 8, None)),
        ({"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25, "reasoning_tokens": 3}, (20, 5, None)),
        ({"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25, "reasoning_tokens": 9}, (20, 14, None)),
        ({"input_tokens": 4, "output_tokens": 5, "cache_read_input_tokens": 16}, (20, 5, 16)),
        ({"inputTokens": 4, "outputTokens": 5, "cacheReadInputTokens": 16, "totalTokens": 25}, (20, 5, 16)),
        ({"prompt_tokens": 20, "completion_tokens": 5, "cache_read_input_tokens": 16}, (20, 5, 16)),
        ({"input_tokens": 20, "output_tokens": 5, "total_tokens": 25, "cache_read_input_tokens": 16}, (36, 5, 16)),
        ({"input_tokens": 4, "output_tokens": 5, "cache_creation": {"ephemeral_5m_input_tokens": 16}}, (20, 5, None)),
        ({"input_tokens": 20, "cache_read_tokens": 16, "details": {"cache_read_input_tokens": 16}}, (20, None, 16)),
        ({"request_tokens": 20, "details": {"cache_read_input_tokens": 16}}, (20, None, 16)),
        ({"input": 4, "output": 5, "cache_read_input_tokens": 16}, (20, 5, 16)),
        ({"prompt_tokens": 20, "completion_tokens": 5, "prompt_cache_hit_tokens": 16}, (20, 5, 16)),
        ({"promptTokens": 20, "completionTokens": 5, "cachedInputTokens": 16}, (20, 5, 16)),
        ({"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}, (None, None, None)),
    ],
)
def test_usage_of_each_provider_counts_what_was_cached_as_input(
    body: dict[str, int], expected: tuple[Any, ...]
) -> None:
    usage = usage_of(body)
    assert (usage.input, usage.output, usage.cached) == expected


SPELLINGS = {
    "input": (
        *("prompt_tokens", "input_tokens", "inputTokens", "promptTokens", "input", "prompt", "prompt_token_count"),
        *("promptTokenCount", "prompt_eval_count", "total_input_tokens", "input_token_count", "inputTextTokenCount"),
        *("num_tokens_prompt_total", "request_tokens"),
    ),
    "output": (
        *("completion_tokens", "output_tokens", "outputTokens", "completionTokens", "output", "completion"),
        *("candidates_token_count", "candidatesTokenCount", "eval_count", "total_output_tokens"),
        *("generation_token_count", "generated_token_count", "num_tokens_generated", "response_tokens"),
    ),
    "cached": (
        *("cache_read_input_tokens", "input_tokens_cache_read", "cacheReadInputTokens", "cacheReadTokens"),
        *("cachedInputTokens", "cache_read_tokens", "prompt_details.cache_read", "input_cached_tokens"),
        *("cached_input_tokens", "input_cache_read", "cache_read", "cacheReads", "cached_content_token_count"),
        *("cachedContentTokenCount", "prompt_cache_hit_tokens", "cached_prompt_text_tokens", "total_cached_tokens"),
    ),
    "written": (
        *("cache_creation_input_tokens", "input_tokens_cache_write", "cacheWriteInputTokens"),
        *("cacheCreationInputTokens", "cacheWriteTokens", "cache_write_tokens", "prompt_details.cache_write"),
        *("input_cache_creation", "input_cache_write", "cache_creation", "cacheWrites"),
    ),
    "reasoning": (
        *("reasoning_tokens", "reasoningTokens", "completion_details.reasoning", "output_reasoning_tokens"),
        *("output_reasoning", "reasoning"),
    ),
}


@pytest.mark.parametrize(("field", "name"), [(field, name) for field, names in SPELLINGS.items() for name in names])
def test_every_spelling_of_a_count_is_read(field: str, name: str) -> None:
    beside = {} if field in ("input", "output") else {"prompt_tokens": 90, "completion_tokens": 30}
    usage = usage_of({**beside, name: 7}, beside=False)
    assert getattr(usage, field) == 7


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # What Anthropic calls the input leaves out what was read from the cache and what was written to it.
        ({"cache_read_input_tokens": 90, "cache_creation_input_tokens": 5}, (105, 90, 5)),
        ({"cache_read_input_tokens": 90}, (100, 90, None)),
        ({"cache_creation_input_tokens": 5}, (15, None, 5)),
        ({"cacheReadInputTokens": 90, "cacheWriteInputTokens": 5}, (105, 90, 5)),
        ({"cache_creation": {"ephemeral_5m_input_tokens": 16, "ephemeral_1h_input_tokens": 4}}, (30, None, 20, 4)),
        ({"cache_creation_input_tokens": 5, "cacheDetails": [{"ttl": "1h", "inputTokens": 5}]}, (15, None, 5, 5)),
        ({"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}, (10, 0, 0)),
        # A framework's input includes them.
        ({"input_token_details": {"cache_read": 4, "cache_creation": 3}}, (10, 4, 3)),
        ({"details": {"cache_read_input_tokens": 4}, "cache_read_input_tokens": 4}, (10, 4, None)),
    ],
)
def test_cached_and_written_tokens_of_anthropic_are_part_of_the_input(body: Any, expected: Any) -> None:
    usage = usage_of({"input_tokens": 10, "output_tokens": 1, **body})
    assert (usage.input, usage.cached, usage.written, *filter(None, [usage.written_hour])) == expected


@pytest.mark.parametrize(
    ("told", "reported", "expected"),
    [
        (Usage(), Usage(20, 5, cached=16), Usage(20, 5, cached=16)),
        (Usage(output=5), Usage(20, 5), Usage(output=5)),
        (Usage(4, 5, reasoning=3), Usage(20, 5, cached=16), Usage(20, 5, cached=16, reasoning=3)),
        (Usage(4, 5, reasoning=3), Usage(20, 5, written=16, reasoning=2), Usage(20, 5, written=16, reasoning=2)),
        (Usage(4, 5, cached=1), Usage(20, 5, cached=16), Usage(4, 5, cached=1)),
        (Usage(4, 5, written=1), Usage(20, 5, cached=16), Usage(4, 5, written=1)),
        (Usage(4, 5), Usage(20, 5), Usage(4, 5)),
    ],
)
def test_of_two_counts_of_a_call_the_one_that_tells_the_cache_is_taken(
    told: Usage, reported: Usage, expected: Usage
) -> None:
    assert fuller(told, reported) == expected


def test_a_recording_of_httpmock_is_a_document_for_each_request() -> None:
    pairs = [
        {
            "when": {"path": "/v1/chat/completions", "method": "POST", "body": REQUEST},
            "then": {"status": 200, "header": [{"name": "content-type", "value": "application/json"}], "body": body},
        }
        for body in (RESPONSE, RESPONSE.replace(ANSWER, "Another."))
    ]
    (found,) = read_file("---\n".join(yaml.safe_dump(one, sort_keys=False) for one in pairs).encode())
    assert found.format.name == "vcr"
    assert [thread.said[-1].text for thread in found.conversation.threads] == [ANSWER, "Another."]


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Be brief."}},
            "Be brief.",
        ),
        ({"inlineData": {"mimeType": "text/markdown", "data": base64.b64encode(b"# A").decode()}}, "# A"),
        ({"inlineData": {"mimeType": "text/plain", "data": base64.b64encode(b"\xff\xfe").decode()}}, "[file: "),
    ],
)
def test_a_text_file_in_a_message_is_its_text(part: Any, text: str) -> None:
    remarks = Remarks()
    (said,) = read_message({"role": "user", "content": [part]}, remarks)
    assert said.text.startswith(text)
    assert bool(remarks.all) is (text == "[file: ")


@pytest.mark.parametrize(
    ("pdf", "told"),
    [
        (b"<< /Type /Pages /Count 2 >> << /Type /Page >> << /Type /Page >>", "2 pages"),
        (b"%PDF-1.7 << /Type /Pages /Kids [] /Count 12 >>", "12 pages"),
        (b"<< /Type/Page >>", "1 page"),
    ],
)
def test_a_pdf_tells_how_many_pages_it_has(pdf: bytes, told: str) -> None:
    source = {"type": "base64", "media_type": "application/pdf", "data": base64.b64encode(pdf).decode()}
    (said,) = read_message({"role": "user", "content": [{"type": "document", "source": source}]}, Remarks())
    assert said.text.endswith(f", {told}]")
