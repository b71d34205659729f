"""Calls that are recorded otherwise than as messages in JSON: completions, binary streams, other recorders."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import pytest
import yaml

from tests.importers.examples import ANSWER, ARGUMENTS, ASK, RESULT, SYSTEM
from tests.importers.test_recordings import REQUEST, RESPONSE, answer, events, recorded
from tests.importers.whole import read_file
from workbench.importers.conversation import Conversation, Thread, Unreadable
from workbench.importers.streams import events_of, streamed

COHERE: dict[str, Any] = {
    "preamble": SYSTEM,
    "chat_history": [{"role": "USER", "message": "Hi."}, {"role": "CHATBOT", "message": "Hello."}],
    "message": ASK,
}


def exchanged(request: Any, response: Any, **given: Any) -> Thread:
    body = response if isinstance(response, str | bytes) else json.dumps(response)
    (thread,) = recorded({"string": body}, request=json.dumps(request), **given).threads
    return thread


@pytest.mark.parametrize(
    ("request_", "response"),
    [
        ({"prompt": ASK}, {"completion": ANSWER, "stop_reason": "stop_sequence"}),
        ({"prompt": [ASK]}, {"choices": [{"text": ANSWER, "finish_reason": "stop"}]}),
        ({"prompt": ASK}, {"model": "m", "response": ANSWER, "done": True}),
        ({"prompt": ASK}, {"generations": [{"text": ANSWER}]}),
        ({"inputText": ASK}, {"results": [{"outputText": ANSWER}], "inputTextTokenCount": 9}),
        ({"input": ASK}, {"results": [{"generated_text": ANSWER, "input_token_count": 9}]}),
        ({"prompt": ASK}, {"generation": ANSWER, "prompt_token_count": 9}),
        ({"prompt": ASK}, {"outputs": [{"text": ANSWER}]}),
        ({"prompt": ASK}, {"completions": [{"data": {"text": ANSWER}}]}),
        ({"inputs": ASK}, [{"generated_text": ANSWER}]),
        ({"message": ASK}, {"text": ANSWER, "meta": {"tokens": {"input_tokens": 9}}}),
        ({"prompt": ASK}, events({"completion": ANSWER[:5]}, {"completion": ANSWER[5:]})),
        ({"prompt": ASK}, events({"value": ANSWER[:5]}, {"value": ANSWER[5:]})),
        ({"input": ASK}, {"steps": [{"type": "model_output", "content": [{"type": "text", "text": ANSWER}]}]}),
        ({"input": [{"type": "text", "text": ASK}]}, {"steps": [{"type": "model_output", "content": ANSWER}]}),
    ],
)
def test_a_completion_is_a_call_with_a_users_message(request_: Any, response: Any) -> None:
    thread = exchanged(request_, response)
    assert [(one.role, one.text) for one in thread.said] == [("user", ASK), ("assistant", ANSWER)]
    call = thread.said[-1].call
    assert call is not None
    assert call.usage.input == (9 if "9" in json.dumps(response) else None)


def test_further_prompts_of_a_request_are_told() -> None:
    found = recorded(
        {"string": json.dumps({"choices": [{"text": ANSWER}]})}, request=json.dumps({"prompt": [ASK, "?"]})
    )
    assert "a further prompt of a request is left out" in found.notes
    (thread,) = found.threads
    assert "further prompts of the same request" in thread.unstated, "so its count is none to call exact"
    assert not exchanged({"prompt": [ASK]}, {"choices": [{"text": ANSWER}]}).unstated


@pytest.mark.parametrize(
    "response",
    [
        json.dumps({"text": ANSWER}),
        "\n".join(json.dumps({"is_finished": False, "text": text}) for text in (ANSWER[:5], ANSWER[5:])),
        "\n".join(
            json.dumps(one)
            for one in ({"is_finished": False, "text": "?"}, {"is_finished": True, "response": {"text": ANSWER}})
        ),
    ],
)
def test_coheres_chats_are_read_with_what_was_said_before(response: str) -> None:
    thread = exchanged(COHERE, response)
    assert [one.text for one in thread.said] == [SYSTEM, "Hi.", "Hello.", ASK, ANSWER]
    assert [one.role for one in thread.said] == ["system", "user", "assistant", "user", "assistant"]


def test_coheres_stream_grows_a_text_and_a_call() -> None:
    def piece(**call: Any) -> dict[str, Any]:
        return {"type": "tool-call-delta", "index": 0, "delta": {"message": {"tool_calls": call}}}

    def words(text: str) -> dict[str, Any]:
        return {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": text}}}}

    first = piece(id="c1", function={"name": "ls", "arguments": ""})
    rest = [piece(function={"arguments": part}) for part in (ARGUMENTS[:5], ARGUMENTS[5:])]
    last = {"type": "message-end", "delta": {"usage": {"tokens": {"input_tokens": 9}}}}
    stream = events({"type": "message-start"}, words(ANSWER[:5]), words(ANSWER[5:]), first, *rest, last)
    said = exchanged({"messages": [{"role": "user", "content": ASK}]}, stream).said[-1]
    assert said.text == ANSWER
    assert [(one.id, one.name, one.arguments) for one in said.calls] == [("c1", "ls", ARGUMENTS)]
    assert said.call is not None
    assert said.call.usage.input == 9


def message(kind: str, body: Any) -> bytes:
    """One message of Amazon's binary stream."""
    header = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for name, value in ((":event-type", kind), (":content-type", "application/json"))
    )
    payload = json.dumps(body).encode()
    return struct.pack(">III", 16 + len(header) + len(payload), len(header), 0) + header + payload + b"\0\0\0\0"


def chunk(body: Any) -> bytes:
    return message("chunk", {"bytes": base64.b64encode(json.dumps(body).encode()).decode()})


TOOL_USE = {"name": "ls", "toolUseId": "c1"}
CONVERSE: list[tuple[str, Any]] = [
    ("messageStart", {"role": "assistant"}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": ANSWER[:5]}}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": ANSWER[5:]}}),
    ("contentBlockStart", {"contentBlockIndex": 1, "start": {"toolUse": TOOL_USE}}),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"toolUse": {"input": ARGUMENTS[:5]}}}),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"toolUse": {"input": ARGUMENTS[5:]}}}),
    ("messageStop", {"stopReason": "tool_use"}),
    ("metadata", {"usage": {"inputTokens": 9, "outputTokens": 4}}),
]


@pytest.mark.parametrize("wrapped", [False, True])
def test_amazons_binary_stream_is_the_response_that_it_stands_for(wrapped: bool) -> None:
    data = b"".join(chunk({kind: body}) if wrapped else message(kind, body) for kind, body in CONVERSE)
    said = exchanged({"messages": [{"role": "user", "content": [{"text": ASK}]}]}, data).said[-1]
    assert said.text == ANSWER
    assert [(one.id, one.name, one.arguments) for one in said.calls] == [("c1", "ls", ARGUMENTS)]
    assert said.call is not None
    assert (said.call.usage.input, said.call.finish_reason) == (9, "tool_use")


def test_a_binary_stream_that_was_cut_off_gives_what_had_come() -> None:
    data = b"".join(message(kind, body) for kind, body in CONVERSE)
    whole = len(list(events_of(data)))
    assert whole == len(CONVERSE)
    counts = [len(list(events_of(data[:at]))) for at in range(len(data))]
    assert counts == sorted(counts)
    assert max(counts) == whole - 1


def test_a_long_binary_stream_is_read_in_time_that_grows_with_it() -> None:
    piece = message("contentBlockDelta", {"delta": {"text": "a" * 50}})
    reads = 0

    class Counted(bytes):
        def __getitem__(self, at: Any) -> Any:
            nonlocal reads
            found = super().__getitem__(at)
            reads += len(found) if isinstance(at, slice) else 1
            return found

    data = Counted(piece * 50)
    assert len(list(events_of(data))) == 50
    assert reads < 3 * len(data)


def test_a_piece_of_another_kind_than_those_before_it_takes_their_place() -> None:
    pieces = [message("contentBlockDelta", {"delta": {"toolUse": one}}) for one in ("a", {"input": "b"})]
    found = streamed(b"".join(pieces))
    assert found is not None
    assert found["output"]["message"]["content"] == [{"toolUse": {"input": "b"}}]


def test_interactions_stream_step_by_step() -> None:
    found = exchanged(
        {"input": ASK},
        events(
            {"event_type": "step.start", "index": 0, "step": {"type": "thought"}},
            {"event_type": "step.delta", "index": 0, "delta": {"type": "thought_signature", "signature": "s"}},
            {"event_type": "step.start", "index": 1, "step": {"type": "model_output"}},
            {"event_type": "step.delta", "index": 1, "delta": {"type": "text", "text": ANSWER[:5]}},
            {"event_type": "step.delta", "index": 1, "delta": {"type": "text", "text": ANSWER[5:]}},
            {"interaction": {"usage": {"total_input_tokens": 9, "total_output_tokens": 4, "total_thought_tokens": 2}}},
        ),
    )
    said = found.said[-1]
    assert (said.text, said.extra["reasoning"]) == (ANSWER, [{"type": "reasoning", "signature": "s"}])
    assert said.call is not None
    assert (said.call.usage.input, said.call.usage.output, said.call.usage.reasoning) == (9, 6, 2)


@pytest.mark.parametrize("body", [json.loads(RESPONSE), RESPONSE.encode().hex(), [RESPONSE.encode().hex()]])
def test_a_recording_of_nock_is_a_recording(body: Any) -> None:
    one = {"scope": "https://a.test:443", "method": "POST", "path": "/v1/x", "body": json.loads(REQUEST)}
    one |= {"status": 200, "response": body, "rawHeaders": ["Date", "Thu, 01 Jan 2026 09:00:00 GMT"]}
    (found,) = read_file(json.dumps([one]).encode())
    assert found.format.name == "vcr"
    assert answer(found.conversation) == ANSWER
    call = found.conversation.threads[0].said[-1].call
    assert call is not None
    assert call.at == "2026-01-01T09:00:00.000000Z"


def test_a_cassette_may_begin_with_remarks() -> None:
    text = "# Licence: ours\n#\n\n" + yaml.safe_dump(
        {"interactions": [{"request": {"body": REQUEST}, "response": {"body": {"string": RESPONSE}}}]}
    )
    (found,) = read_file(text.encode())
    assert answer(found.conversation) == ANSWER


DELTAS = [{"content": ANSWER[:5]}, {"content": ANSWER[5:]}]


def of_grpc(answered: dict[str, Any]) -> Conversation:
    client, own = "TOOL_CALL_TYPE_CLIENT_SIDE_TOOL", {"type": "TOOL_CALL_TYPE_WEB_SEARCH", "function": {"name": "web"}}
    call = {"id": "c1", "type": client, "function": {"name": "ls", "arguments": ARGUMENTS}}
    turns = [
        {"role": "ROLE_USER", "content": [{"text": ASK}]},
        {"role": "ROLE_ASSISTANT", "content": [{"text": ""}], "tool_calls": [call, own]},
        {"role": "ROLE_TOOL", "content": [{"text": RESULT}]},
    ]
    asked = {"request_sample": {"json": {"model": "m", "messages": turns}}}
    (found,) = read_file(yaml.safe_dump({"version": 1, "interactions": [{**asked, **answered}]}).encode())
    return found.conversation


@pytest.mark.parametrize(
    "answered",
    [
        {"response_sample": {"json": {"outputs": [{"message": {"role": "ROLE_ASSISTANT", "content": ANSWER}}]}}},
        {"response_stream": {"chunks_json": [{"chunk": {"outputs": [{"index": 1, "delta": one}]}} for one in DELTAS]}},
    ],
)
def test_a_recording_over_grpc_is_read_by_its_json(answered: dict[str, Any]) -> None:
    (thread,) = of_grpc(answered).threads
    assert [one.role for one in thread.said] == ["user", "assistant", "tool", "assistant"]
    assert [one.name for one in thread.said[1].calls] == ["ls"]
    assert "WEB_SEARCH" in thread.said[1].text
    assert thread.said[-1].text == ANSWER


def test_of_a_recording_of_failed_requests_what_was_sent_is_kept() -> None:
    one = {"request": {"uri": "https://a.test/v1", "body": REQUEST}, "response": {"status": {"code": 529}, "body": {}}}
    (found,) = read_file(json.dumps({"interactions": [one]}).encode())
    (thread,) = found.conversation.threads
    assert (thread.calls, thread.answers) == (1, 0)
    call = thread.said[-1].call
    assert call is not None
    assert call.fault == "HTTP status 529: its response holds no answer"
    asks_none = {**one, "request": {"uri": "https://a.test/v1", "body": {"purpose": "none"}}}
    with pytest.raises(Unreadable, match=r"\(https://a.test/v1: 529\)"):
        list(read_file(json.dumps({"interactions": [asks_none]}).encode()))
