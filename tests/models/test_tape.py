from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.dialects import Reply, anthropic, gemini
from tests.support.loopback import chunks
from workbench.context.wire import wire_bytes, wire_style
from workbench.engine.contracts import ModelFault
from workbench.models.faults import build, fault_of, retry_after
from workbench.models.names import resolve
from workbench.models.tape import Tape

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
HERE = resolve("m", "http://127.0.0.1/v1", {})


def played(data: bytes, size: int = 7) -> Tape:
    tape = Tape()
    for start in range(0, len(data), size):
        tape.note(data[start : start + size])
    return tape


def events(bodies: list[Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(body).encode() + b"\n\n" for body in bodies)


@given(st.dictionaries(st.text(max_size=8), JSON, max_size=4), st.sampled_from(["compact", "spaced"]))
def test_a_body_has_its_bytes_again_by_its_style(body: dict[str, Any], style: str) -> None:
    raw = wire_bytes(body, style)
    found = wire_style(raw, json.loads(raw))

    assert wire_bytes(json.loads(raw), found) == raw


def test_bytes_that_no_style_gives_are_said_to_be_of_none() -> None:
    for raw in (b'{ "a": 1}', b'{"a":1.0e2}', b'{"a": "\xc3\xa9", "b":1}'):
        assert wire_style(raw, json.loads(raw)) == ""


@given(st.lists(st.dictionaries(st.sampled_from(["role", "content"]), st.text(max_size=20)), max_size=4), st.booleans())
def test_the_wire_is_the_same_whether_or_not_the_messages_are_at_hand(messages: list[Any], spaced: bool) -> None:
    body = {"model": "m", "messages": messages, "stream": True}
    tape = Tape()
    tape.raw = json.dumps(body).encode() if spaced else wire_bytes(body, "compact")

    assert tape.wire(messages) == tape.wire() == (body, "spaced" if spaced else "compact")
    assert tape.wire([{"role": "user", "content": "something else"}]) == tape.wire()


def test_a_body_that_is_no_object_is_no_wire() -> None:
    for raw in (b"", b"[1]", b"{", b"\xff"):
        tape = Tape()
        tape.raw = raw
        assert tape.wire() == (None, "")


@given(st.integers(1, 200))
def test_what_the_provider_said_is_seen_however_the_bytes_fall(size: int) -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "cost": 0.5, "details": {"reasoning_tokens": 0}}
    data = events(list(chunks("m", Reply("a text", usage=usage), include_usage=True)))

    assert played(data, size).said == {"finish", "usage", "reasoning", "cost"}
    assert played(data + b"data: [DONE]\n\n", size).ended
    assert played(b"data: [DONE]\n\n", size).said == {"end"}


def test_other_dialects_are_understood() -> None:
    usage = {"input_tokens": 1, "output_tokens": 2}
    said = anthropic("m", Reply("hi", usage=usage))
    assert played(events([body for _, body in said.events])).said == {"finish", "end", "usage"}
    counted = {"promptTokenCount": 1, "thoughtsTokenCount": 3}
    assert played(json.dumps(gemini("m", Reply("hi", usage=counted)).body).encode()).said == {
        "finish",
        "usage",
        "reasoning",
    }


def test_text_that_looks_like_an_end_is_none() -> None:
    text = 'it says "finish_reason": "stop", "usage": {"cost": 1}, then\ndata: [DONE] and "done": true'
    half = list(chunks("m", Reply(text), include_usage=False))[:-1]

    assert played(events(half)).said == set()


def test_only_a_bit_of_a_huge_answer_is_kept() -> None:
    tape = played(b"x" * 1_000_000, 65_536)

    assert len(tape.text()) == 4096


@pytest.mark.parametrize(
    ("data", "readable"),
    [
        (b'data: {"a": 1}\n\n', True),
        (b": comment\n\nevent: x\ndata: {}\n\n", True),
        (b'{"a": 1}', True),
        (b'{"a": 1}\n{"a": 2}\n', True),
        (b"", True),
        (b"<html>", False),
        (b'{"a": ', False),
        (b'{"a": "\xff"}', False),
    ],
)
def test_an_answer_is_readable_as_events_or_json(data: bytes, readable: bool) -> None:
    assert played(data).readable() is readable


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "20"}, 20.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "-5"}, None),
        ({"retry-after-ms": "-5"}, None),
        ({"retry-after-ms": "soon", "retry-after": "3"}, 3.0),
        ({"retry-after-ms": "1e400", "retry-after": "3"}, 3.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
    ],
)
def test_the_wait_is_read_in_each_form(headers: dict[str, str], seconds: float | None) -> None:
    tape = Tape()
    tape.headers = headers

    assert retry_after(tape) == seconds


def test_the_wait_may_be_a_date() -> None:
    tape = Tape()
    tape.headers = {"retry-after": format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)}

    wait = retry_after(tape)
    assert wait is not None
    assert 80 < wait <= 90


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (408, "", "timeout"),
        (409, "", "bad_request"),
        (413, "", "context_length"),
        (418, "", "bad_request"),
        (422, "prompt is too long: 9 tokens > 8 maximum", "context_length"),
        (429, '{"error": {"code": "insufficient_quota"}}', "permission"),
        (529, '{"error": {"message": "Overloaded"}}', "server"),
        (599, "", "server"),
    ],
)
def test_a_status_has_a_kind(status: int, body: str, kind: str) -> None:
    tape = played(body.encode())
    tape.status = status

    assert fault_of(RuntimeError("x"), tape, HERE).kind == kind


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (httpx.ConnectError("refused"), "connection"),
        (httpx.ConnectTimeout("late"), "connection"),
        (httpx.ReadTimeout("late"), "timeout"),
        (ValueError("a parameter is wrong"), "bad_request"),
        (RuntimeError("anything"), "server"),
    ],
)
def test_without_a_response_the_innermost_exception_decides(error: Exception, kind: str) -> None:
    try:
        try:
            raise error
        except type(error) as inner:
            raise RuntimeError("wrapped by a library") from inner
    except RuntimeError as outer:
        fault = fault_of(outer if kind in ("connection", "timeout") else error, Tape(), HERE)

    assert isinstance(fault, ModelFault)
    assert fault.kind == kind
    assert str(error) in fault.message


def test_a_fault_without_words_has_some() -> None:
    assert build("server", "no reason", Tape(), HERE).message == "no reason"
    assert fault_of(RuntimeError(), Tape(), HERE).message == "RuntimeError"
