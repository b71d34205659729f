"""Values that no provider should send: what arrived is used where it can be; what cannot is one clear fault."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.faults import FAULTS
from tests.support.loopback import Handler, Loopback, Received
from tests.support.waiting import PATIENCE
from workbench.context.assembly import Request
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.engine.contracts import Answer, ModelFault
from workbench.engine.journal.usage import Usage
from workbench.models.collect import usage_of
from workbench.models.litellm import LiteLLM
from workbench.models.names import resolve
from workbench.models.prices import PriceTable

GOOD = {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}


@pytest.mark.parametrize(
    ("details", "own", "written", "cached"),
    [
        ({"cache_creation_tokens": 3}, {}, 3, None),
        ({"cache_write_tokens": 4, "cached_tokens": 6}, {}, 4, 6),
        ({"cache_creation_tokens": 3}, {"cache_creation_input_tokens": 5}, 5, None),
        ({}, {"cache_creation_input_tokens": 5, "prompt_cache_hit_tokens": 2}, 5, 2),
        ({"cached_tokens": 12}, {}, None, None),
    ],
)
def test_cached_tokens_are_read_under_each_name(
    details: dict[str, int], own: dict[str, int], written: int | None, cached: int | None
) -> None:
    stated = SimpleNamespace(**GOOD, **own, prompt_tokens_details=SimpleNamespace(**details), cost=0.25)
    usage, billed = usage_of(stated, {"usage", "cost"})
    assert (usage.input, usage.output, usage.written, usage.cached, billed) == (11, 5, written, cached, 0.25)
    assert usage_of(stated, {"usage"})[1] is None
    assert usage_of(stated, {"cost"}) == (Usage(), None)


def streamed(*deltas: Any, usage: Any = GOOD, finish: str = "stop") -> bytes:
    """A stream of OpenAI's kind, each delta as given."""
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    events = [head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    events.append(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    events.append(head | {"choices": [], "usage": usage})
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n"


def whole(message: Mapping[str, Any], usage: Any = GOOD) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    return json.dumps(
        {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
    ).encode()


Ask = Callable[..., Answer]


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Asks a server that answers with these bytes."""

    def asked(
        body: bytes,
        kind: str = "text/event-stream",
        *,
        stream: bool = True,
        status: int = 200,
        headers: Mapping[str, str] = {},
    ) -> Answer:
        def sends(handler: Handler, request: Received) -> None:
            handler.send(status, body, headers, kind=kind)

        monkeypatch.setitem(FAULTS, "raw", sends)

        async def call(url: str) -> Answer:
            llm = LiteLLM(lambda name: resolve(name, url, {}), PriceTable(), timeout_s=PATIENCE, stream=stream)
            try:
                request = Request("raw", {}, (), (Message("user", "hi"),), "d")
                return await llm.complete(request, Place(), {}, lambda text: None)
            finally:
                await llm.aclose()

        with Loopback() as provider:
            return asyncio.run(call(provider.url))

    return asked


@pytest.mark.parametrize("value", ["1e400", "inf", "nan", "-1e400", "Fri, 31 Dec 99999 23:59:59 GMT", "9" * 400])
def test_a_wait_without_end_is_no_wait_that_was_asked_for(ask: Ask, value: str) -> None:
    with pytest.raises(ModelFault) as caught:
        ask(b"{}", "application/json", status=429, headers={"Retry-After": value})
    assert caught.value.retry_after is None or math.isfinite(caught.value.retry_after)


@pytest.mark.parametrize(
    "event",
    [
        {"choices": None},
        {"choices": [None]},
        {"choices": [{"index": 0, "delta": None}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [None, 7]}}]},
    ],
)
def test_an_event_without_a_piece_of_the_answer_is_none(ask: Ask, event: dict[str, Any]) -> None:
    odd = b"data: " + json.dumps({"id": "c"} | event).encode() + b"\n\n"
    assert ask(odd + streamed({"content": "All of it."})).text == "All of it."


ODD = ("NaN", "-Infinity", "1e400", "-1", "9" * 25, "true", "null", "[]", "{}", "[null]", '{"a":{}}', '"\\ud800"')
FIELDS: tuple[tuple[str | int, ...], ...] = (
    *((name,) for name in ("id", "object", "created", "model", "system_fingerprint", "service_tier", "usage")),
    *(("choices", 0, name) for name in ("index", "finish_reason", "logprobs")),
    *(("choices", 0, "part", name) for name in ("role", "reasoning_content", "refusal", "function_call")),
    *(("choices", 0, "part", "tool_calls", 0, name) for name in ("index", "id", "type")),
    *(("usage", name) for name in ("prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details")),
)
"""Of an answer: what stands beside its words, the name of its call and the arguments."""


def _with_odd(fields: Iterable[Sequence[str | int]], odd: str, part: str) -> bytes:
    """An answer with an odd value in each of the fields."""
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    body: Any = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, part: {"content": "All of it.", "tool_calls": [call]}, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8, "prompt_tokens_details": {}},
    }
    for field in fields:
        at = body
        steps = [part if step == "part" else step for step in field]
        for step in steps[:-1]:
            at = at[step]
        at[steps[-1]] = "odd value"
    return json.dumps(body).replace('"odd value"', odd).encode()


def _answers(stream: bool, fields: Iterable[Sequence[str | int]], odd: str) -> tuple[bytes, str]:
    """The bytes of an answer with an odd value in some fields, and their kind."""
    if stream:
        return b"data: " + _with_odd(fields, odd, "delta") + b"\n\ndata: [DONE]\n\n", "text/event-stream"
    return _with_odd(fields, odd, "message"), "application/json"


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("odd", ODD)
def test_odd_values_beside_the_words_take_none_of_them_away(ask: Ask, odd: str, stream: bool) -> None:
    for fields in ([field for field in FIELDS if field != ("usage",)], [("usage",)]):
        answer = ask(*_answers(stream, fields, odd), stream=stream)
        assert answer.text == "All of it."
        assert [(call.name, call.arguments) for call in answer.calls] == [("f", "{}")]


@pytest.mark.proof
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("field", FIELDS, ids=lambda field: ".".join(map(str, field)))
def test_an_odd_value_of_each_field_takes_no_word_away(ask: Ask, field: tuple[str | int, ...], stream: bool) -> None:
    for odd in ODD:
        answer = ask(*_answers(stream, [field], odd), stream=stream)
        assert answer.text == "All of it.", odd
        assert [(call.name, call.arguments) for call in answer.calls] == [("f", "{}")], odd


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [({"a": 1}, '{"a": 1}'), ([1], "[1]"), (5, "5"), (None, ""), (float("nan"), "NaN")],
)
def test_arguments_of_another_type_are_taken_as_their_json(
    ask: Ask, stream: bool, arguments: Any, expected: str
) -> None:
    value = json.dumps(arguments)
    part = "delta" if stream else "message"
    body = _with_odd([("choices", 0, part, "tool_calls", 0, "function", "arguments")], value, part)
    kind = "text/event-stream" if stream else "application/json"
    answer = ask(b"data: " + body + b"\n\n" if stream else body, kind, stream=stream)
    assert [call.arguments for call in answer.calls] == [expected]


@pytest.mark.parametrize("place", ["content", "reasoning_content", "arguments"])
def test_halves_of_a_character_are_joined_and_a_single_one_stays(ask: Ask, place: str) -> None:
    pieces: list[dict[str, Any]] = [
        {"content": "words "},
        *({place: half} for half in ("a \ud83d", "\ude00 b ", "\ud83d.")),
    ]
    if place == "arguments":
        calls = [{"index": 0, "id": "c", "function": {"name": "f", **piece}} for piece in pieces[1:]]
        pieces = [{"tool_calls": [call]} for call in calls]
    answer = ask(streamed(*pieces))
    found = {
        "content": answer.text.removeprefix("words "),
        "reasoning_content": answer.extra.get("reasoning_content"),
        "arguments": answer.calls[0].arguments if answer.calls else "",
    }
    assert found[place] == "a \U0001f600 b \ud83d."


def test_a_byte_order_mark_takes_no_event_away(ask: Ask) -> None:
    assert ask(b"\xef\xbb\xbf" + streamed({"content": "All of it."})).text == "All of it."


def test_ids_of_calls_that_are_numbers_are_texts(ask: Ask) -> None:
    calls = [{"index": i, "id": 5 + i, "function": {"name": "f", "arguments": "{}"}} for i in range(2)]
    assert [call.id for call in ask(streamed({"tool_calls": calls}, finish="tool_calls")).calls] == ["5", "6"]


def test_a_number_as_content_is_text(ask: Ask) -> None:
    assert ask(streamed({"content": 5}, {"content": " apples"})).text == "5 apples"


def test_content_in_parts_is_joined(ask: Ask) -> None:
    assert (
        ask(streamed({"content": [{"type": "text", "text": "in "}, {"type": "text", "text": "parts"}]})).text
        == "in parts"
    )


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("depth", [5_000, pytest.param(100_000, marks=pytest.mark.proof)])
def test_json_that_is_too_deep_is_one_fault(ask: Ask, depth: int, stream: bool) -> None:
    deep = b'{"id": "c", "choices": ' + b"[" * depth + b"]" * depth + b"}"
    with pytest.raises(ModelFault) as caught:
        ask(
            b"data: " + deep + b"\n\n" if stream else deep,
            "text/event-stream" if stream else "application/json",
            stream=stream,
        )
    assert caught.value.kind == "bad_answer"
    assert caught.value.message.endswith(": it is nested too deep")
    assert caught.value.body.startswith(("data: ", "{"))


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": -11, "completion_tokens": 5, "total_tokens": -6}, Usage(output=5)),
        ({"prompt_tokens": 11, "completion_tokens": "many", "total_tokens": 16}, Usage(input=11)),
        ("none of your business", Usage()),
        ([1, 2], Usage()),
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, Usage()),
        ({"prompt_tokens": 1e400, "completion_tokens": 5, "total_tokens": 5}, Usage(output=5)),
        ({"prompt_tokens": 1e308, "completion_tokens": 5, "total_tokens": 5}, Usage(output=5)),
        ({"prompt_tokens": 2**63, "completion_tokens": 5, "total_tokens": 5}, Usage(output=5)),
        ({"prompt_tokens": 11.0, "completion_tokens": 1.5, "total_tokens": 12.5}, Usage(input=11)),
        ({"prompt_tokens": 11, "completion_tokens": 5, "prompt_tokens_details": "x"}, Usage(input=11, output=5)),
        (
            {"prompt_tokens": 11, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": -3}},
            Usage(input=11, output=5),
        ),
        (
            {"prompt_tokens": 11, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 64}},
            Usage(input=11, output=5),
        ),
    ],
)
def test_an_answer_outlives_its_usage(ask: Ask, usage: Any, expected: Usage, stream: bool) -> None:
    body = streamed({"content": "All of it."}, usage=usage) if stream else whole({"content": "All of it."}, usage)
    answer = ask(body, "text/event-stream" if stream else "application/json", stream=stream)

    assert (answer.text, answer.usage) == ("All of it.", expected)
    assert answer.cost is None


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_whole_answer_to_a_request_for_a_stream_is_read(ask: Ask, kind: str, mark: bytes) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    answer = ask(mark + whole({"content": "Not in pieces.", "tool_calls": [call]}), kind)

    assert (answer.text, answer.calls[0].name, answer.usage.input, answer.partial) == ("Not in pieces.", "f", 11, False)


@pytest.mark.parametrize("stream", [True, False])
def test_a_refusal_is_the_answer(ask: Ask, stream: bool) -> None:
    body = (
        streamed({"refusal": "I will "}, {"refusal": "not."})
        if stream
        else whole({"content": None, "refusal": "I will not."})
    )
    answer = ask(body, "text/event-stream" if stream else "application/json", stream=stream)

    assert (answer.text, answer.finish_reason) == ("I will not.", "refusal")


def test_calls_of_the_same_id_get_ids_of_their_own(ask: Ask) -> None:
    calls = [{"index": i, "id": "call_1", "function": {"name": f"f{i}", "arguments": "{}"}} for i in range(3)]
    answer = ask(streamed({"tool_calls": calls}, finish="tool_calls"))

    assert [call.name for call in answer.calls] == ["f0", "f1", "f2"]
    assert len({call.id for call in answer.calls}) == 3
    assert answer.calls[0].id == "call_1"
    assert any("same id" in remark for remark in answer.remarks)


def test_calls_without_an_id_are_numbered(ask: Ask) -> None:
    calls = [{"index": i, "function": {"name": f"f{i}", "arguments": "{}"}} for i in range(2)]
    answer = ask(streamed({"tool_calls": calls}, finish="tool_calls"))

    assert [(call.name, call.id) for call in answer.calls] == [("f0", "call_1"), ("f1", "call_2")]


def test_invalid_utf8_is_shown_and_said(ask: Ask) -> None:
    answer = ask(streamed({"content": "caf\\u"}).replace(b"\\\\u", b"\xe9"))

    assert answer.text == "caf\ufffd"
    assert any("UTF-8" in remark for remark in answer.remarks)


def test_valid_utf8_in_pieces_is_no_fault(ask: Ask) -> None:
    answer = ask(streamed({"content": "XX"}).replace(b"XX", "café – 日本".encode()))

    assert (answer.text, answer.remarks) == ("café – 日本", ())
