"""The JSON body of a call, and the joining of neighbours for providers that want alternating roles."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.context.support import Conversation, alone, assembled, image
from workbench.context.assembly import Grade
from workbench.context.message import Message, TextPart, ToolCall
from workbench.context.wire import MissingImage, merge_neighbours, to_wire


def test_a_native_call_in_the_openai_form() -> None:
    call = ToolCall("c1", "read", '{"a": 1}', {"provider_specific_fields": {"thought": "x"}, "_mine": 1, "type": "no"})
    assert to_wire(
        Message("assistant", " ", (call,), extra={"reasoning_content": "hm", "_hash": "1", "role": "x"}), {}
    ) == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "read", "arguments": '{"a": 1}'},
                "provider_specific_fields": {"thought": "x"},
            }
        ],
        "reasoning_content": "hm",
    }


def test_a_tool_result_names_its_call() -> None:
    assert to_wire(Message("tool", "ok", (), "c1", "read"), {}) == {
        "role": "tool", "content": "ok", "tool_call_id": "c1", "name": "read",
    }  # fmt: skip


def test_images_become_data_urls() -> None:
    picture = image("a")
    body = to_wire(Message("user", (TextPart("See:"), picture)), {picture.digest: b"\x89PNG"})
    assert body["content"] == [
        {"type": "text", "text": "See:"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
    ]


def test_an_image_says_in_which_detail_it_is_wanted() -> None:
    picture = replace(image("a"), detail="low")
    (part,) = to_wire(Message("user", (picture,)), {picture.digest: b"x"})["content"]
    assert part["image_url"]["detail"] == "low"


def test_an_image_without_bytes_is_an_error_that_names_it() -> None:
    with pytest.raises(MissingImage, match="a0000000"):
        to_wire(Message("user", (image("a"),)), {})


def test_neighbours_of_one_role_are_joined() -> None:
    call = Message("assistant", "b", (ToolCall("1", "t", "{}"),))
    merged = merge_neighbours(
        [
            Message("user", "one"),
            Message("user", (TextPart("two"), image("a"))),
            Message("assistant", "a"),
            call,
            Message("tool", "x", (), "1"),
            Message("tool", "y", (), "2"),
            Message("user", "three"),
            Message("user", "four"),
        ]
    )
    assert [message.role for message in merged] == ["user", "assistant", "tool", "tool", "user"]
    assert merged[0].content == (TextPart("one"), TextPart("two"), image("a"))
    assert (merged[1].text, merged[1].tool_calls) == ("a\n\nb", call.tool_calls)
    assert merged[4].text == "three\n\nfour"


def test_what_cannot_be_joined_stays_apart() -> None:
    reasoned = Message("assistant", "a", extra={"thinking": 1})
    assert merge_neighbours([reasoned, Message("assistant", "b")]) == (reasoned, Message("assistant", "b"))


def test_the_schema_of_an_answer_counts_as_an_estimate() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "description": "How many there are."}}}
    asked = {"response_format": {"type": "json_schema", "json_schema": {"name": "found", "schema": schema}}}
    plain = assembled(alone(), Conversation().task("Go."))
    shaped = assembled(replace(alone(), parameters=asked), Conversation().task("Go."))
    assert (plain.overhead_tokens, plain.grade) == (3, Grade.EXACT)
    assert shaped.overhead_tokens > plain.overhead_tokens
    assert shaped.tokens_sent - plain.tokens_sent == shaped.overhead_tokens - plain.overhead_tokens
    assert shaped.grade is Grade.ESTIMATE
    any_json = replace(alone(), parameters={"response_format": {"type": "json_object"}})
    assert assembled(any_json, Conversation().task("Go.")).overhead_tokens == 3
