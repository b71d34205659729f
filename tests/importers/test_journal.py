"""An imported run is an ordinary journal: folded, re-assembled, compared; and any readable file becomes one."""

from __future__ import annotations

import base64
import copy
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.support import FlatPrices, Words
from tests.importers.examples import ANSWER, EXAMPLES, OPENAI, RESULT, SYSTEM
from tests.importers.test_reading import JUNK, SINGLE, mutated
from tests.tools.test_images import png
from workbench.analysis.what_if import what_if
from workbench.context.assembly import Grade, Kind
from workbench.context.cache import Price
from workbench.context.message import Message
from workbench.context.strategy import parse
from workbench.context.tokens import Counter
from workbench.engine.definition import Definition
from workbench.engine.journal.event import Event
from workbench.engine.journal.memory_sink import MemorySink
from workbench.engine.journal.state import RunState
from workbench.importers.conversation import Unreadable
from workbench.importers.journal import FileClock, JournalServices, Origin, write_journal
from workbench.importers.reading import read_file
from workbench.models.encodings import encodings
from workbench.models.prices import cost
from workbench.store.summary import Summarizer

FORMATS = list(EXAMPLES)


class Guesses(Words):
    """Counts that a provider's own are held against."""

    def message(self, message: Message, model: str) -> tuple[int, Grade]:
        return super().message(message, model)[0], Grade.ESTIMATE


def imported(
    body: Any, counter: Counter | None = None, prices: FlatPrices | None = None
) -> tuple[RunState, list[Event]]:
    """The first conversation of a file as a run, and its events."""
    found = next(read_file(json.dumps(body).encode()))
    sink = MemorySink()
    clock = FileClock("2026-02-02T00:00:00.000000Z")
    outside = JournalServices(
        sink,
        clock,
        counter or Words(),
        prices or FlatPrices(),
        cost,
        lambda text: (text.replace("hunter2", "[gone]"), 0),
    )
    write_journal(found.conversation, Origin(found.format.name, "file", "0" * 64), "run", "session", outside)
    events = list(sink.events)
    return RunState.of(events), events


def assert_reassembled(state: RunState) -> None:
    """What-if without another strategy gives the recorded contexts again."""
    again = what_if(state, Definition.of(state.cascade_text), None, Words(), FlatPrices())
    assert [r.assembly.request.digest for r in again] == [c.digest for c in state.calls]
    assert [r.assembly.entries for r in again] == [c.entries for c in state.calls]


@pytest.mark.parametrize("name", FORMATS)
def test_an_imported_run_gives_its_recorded_contexts_again(name: str) -> None:
    state, events = imported(EXAMPLES[name])
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert_reassembled(state)


@pytest.mark.parametrize("name", FORMATS)
def test_a_call_saw_every_message_before_its_answer(name: str) -> None:
    state, _ = imported(EXAMPLES[name])
    last = state.calls[-1]
    assert last.answer is not None
    assert last.answer.text == ANSWER
    sent = [entry.sent for entry in last.entries]
    assert next(message.text for message in sent if message is not None) == SYSTEM
    assert len(sent) == 4
    assert last.entries[-1].item.kind is Kind.RESULT
    assert last.entries[-1].item.message.text.endswith(RESULT)
    assert not last.problems
    assert state.output == ANSWER


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in SINGLE])
def test_a_result_is_the_result_of_its_tool(name: str) -> None:
    state, _ = imported(EXAMPLES[name])
    (tool,) = state.calls[0].tools
    assert tool.status == "done"
    assert tool.text.endswith(RESULT)
    assert tool.tool == ("command" if name in ("swe-agent", "mini-swe-agent", "smolagents") else "ls")


def test_masking_reaches_the_results_of_text_protocols() -> None:
    body = copy.deepcopy(EXAMPLES["swe-agent"])
    body["history"][3]["content"] = "word " * 500
    for i in range(3):
        body["history"] += [{"role": "user", "content": f"more {i}"}, {"role": "assistant", "content": f"so {i}"}]
    state, _ = imported(body)
    masked = what_if(state, Definition.of(state.cascade_text), parse("mask(after=1)"), Words(), FlatPrices())
    assert masked[-1].assembly.tokens_sent < state.calls[-1].tokens_sent - 400


def test_an_imported_run_is_marked_and_says_what_was_left_out() -> None:
    state, events = imported(EXAMPLES["langfuse"])
    assert state.ports == {"imported": "langfuse"}
    fold = Summarizer("run")
    for event in events:
        fold.apply(event)
    assert fold.summary().imported
    assert events[0].data["imported"]["kept"]["name"] == "count files"
    assert [event.data["code"] for event in state.warnings] == ["import"]


def test_stated_costs_are_kept_and_others_follow_from_usage() -> None:
    stated, _ = imported(EXAMPLES["langfuse"])
    assert [call.cost for call in stated.calls] == [0.001, 0.001]
    counted, _ = imported(EXAMPLES["otel"])
    assert counted.calls[0].cost is not None
    unknown, _ = imported(EXAMPLES["openai"])
    assert (unknown.calls[0].cost, unknown.calls[0].usage.input) == (None, None)
    assert (unknown.calls[0].duration_s, unknown.calls[0].tools[0].duration_s) == (None, None)
    assert counted.calls[0].duration_s == 0.5


def test_what_a_file_leaves_out_of_its_requests_is_taken_to_stay_in_what_follows() -> None:
    assert imported(EXAMPLES["otel"], Guesses())[0].calls[1].scale == pytest.approx(20 / 16, abs=0.1)
    text = json.dumps(EXAMPLES["otel"])
    many = json.loads(re.sub(r'("(?:intValue|gen_ai.usage.input_tokens)": "?)20\b', r"\g<1>2000", text))
    beyond, _ = imported(many, Guesses())
    assert beyond.calls[0].usage.input == 2000
    second = beyond.calls[1]
    assert second.scale is not None
    grown = second.tokens_sent - beyond.calls[0].tokens_sent
    assert second.scale * second.tokens_sent == pytest.approx(2000 + grown, abs=5)


def test_threads_are_visits_whose_contexts_begin_anew() -> None:
    body = copy.deepcopy(EXAMPLES["langfuse"])
    body["observations"][1]["input"] = json.dumps([{"role": "user", "content": "summary"}])
    state, _ = imported(body)
    assert [visit.visit for visit in state.visits] == [1, 2]
    assert [entry.item.message.text for entry in state.calls[1].entries] == ["summary"]
    assert_reassembled(state)
    for spec in ("snowball", "mask(after=9)", "mask(after=9,step=5)"):
        again = what_if(state, Definition.of(state.cascade_text), parse(spec), Words(), FlatPrices())
        assert [one.assembly.request.digest for one in again] == [call.digest for call in state.calls]


def test_examples_given_to_the_model_are_no_calls() -> None:
    body = {**EXAMPLES["llm-log"], "messages": [*OPENAI, {"role": "user", "content": "and now?"}]}
    state, _ = imported(body)
    assert len(state.calls) == 1
    assert len(state.calls[0].entries) == 6
    assert_reassembled(state)


def test_what_follows_the_last_answer_is_kept() -> None:
    state, _ = imported([*OPENAI, {"role": "user", "content": "thanks"}])
    (warning,) = state.warnings
    assert [state.bodies[one["m"]].text for one in warning.data["messages"]] == ["thanks"]


def test_calls_without_ids_find_their_results_by_order() -> None:
    calls: list[Any] = [{"function_call": {"name": name, "args": {}}} for name in ("a", "b")]
    results = [{"function_response": {"name": name, "response": {"out": name}}} for name in ("a", "b")]
    body = [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": calls},
        {"role": "user", "parts": results},
        {"role": "model", "parts": [{"text": "done"}]},
    ]
    state, _ = imported(body)
    assert [(tool.tool, tool.text) for tool in state.calls[0].tools] == [("a", '{"out": "a"}'), ("b", '{"out": "b"}')]
    assert not state.calls[1].problems


def test_images_become_blobs_and_secrets_do_not_enter() -> None:
    url = "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\nrest").decode()
    content = [{"type": "text", "text": "my hunter2"}, {"type": "image_url", "image_url": {"url": url}}]
    state, events = imported([{"role": "user", "content": content}, {"role": "assistant", "content": "hunter2?"}])
    (image,) = state.calls[0].entries[0].item.message.images
    assert (image.media_type, image.size) == ("image/png", 12)
    assert "hunter2" not in json.dumps([dict(event.data) for event in events])
    assert_reassembled(state)


def test_secrets_in_ids_and_names_of_tool_calls_do_not_enter_and_results_find_their_calls() -> None:
    calls: list[dict[str, Any]] = [
        {"id": key, "type": "function", "function": {"name": name, "arguments": "{}"}}
        for key, name in (("call_hunter2", "hunter2"), ("call_hunter2 ", "look"))
    ]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": call["id"][12:] + "seen"} for call in calls]
    state, events = imported([{"role": "user", "content": "Go."}, {"role": "assistant", "tool_calls": calls}, *results])
    assert [(tool.tool, tool.text) for tool in state.calls[0].tools] == [("[gone]", "seen"), ("look", " seen")]
    assert "hunter2" not in json.dumps([dict(event.data) for event in events])


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=12)
@given(path=st.integers(0, 10_000), junk=st.one_of(JUNK, st.just("drop")))
def test_whatever_can_be_read_becomes_a_run_that_can_be_reassembled(name: str, path: int, junk: Any) -> None:
    with suppress(Unreadable):
        state, _ = imported(mutated(EXAMPLES[name], path, junk))
        assert_reassembled(state)


def exchange(*requests: dict[str, Any], tools: Sequence[Any] = ()) -> list[dict[str, Any]]:
    """Requests to Anthropic with the same answer each, as a log holds them."""
    usage = {"input_tokens": 10, "output_tokens": 3, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    response = {"role": "assistant", "content": [{"type": "text", "text": "Yes."}], "usage": usage}
    more = {"tools": list(tools)} if tools else {}
    return [{"request": {"model": "claude-sonnet-4-5"} | one | more, "response": response} for one in requests]


def test_the_marks_of_a_request_are_kept_and_no_message_is_another_for_them() -> None:
    mark = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    asked = {"role": "user", "content": [{"type": "text", "text": "Well?"} | mark]}
    later = [{"role": "user", "content": "Well?"}, {"role": "assistant", "content": "Yes."}, asked]
    system = [{"type": "text", "text": "Be brief."} | mark]
    first, second = ({"system": system, "messages": messages} for messages in ([asked], later))
    state, _ = imported(exchange(first, second)[0])
    assert state.calls[0].parameters["cache_control"] == {"at": ["system", "last"], "ttl": "1h"}
    unmarked, _ = imported(exchange({"messages": [{"role": "user", "content": "Well?"}]})[0])
    assert "cache_control" not in unmarked.calls[0].parameters
    assert unmarked.calls[0].entries[0].item.message == state.calls[0].entries[1].item.message


def test_the_marks_of_a_list_of_messages_count_for_each_call_that_was_sent_them() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    said: list[dict[str, Any]] = [{"role": "system", "content": [{"type": "text", "text": "Be brief."} | mark]}]
    for i in range(3):
        asked = {"type": "text", "text": f"Well, {i}?"} | (mark if i == 1 else {})
        said += [{"role": "user", "content": [asked]}, {"role": "assistant", "content": "Yes."}]
    state, _ = imported({"model": "claude-sonnet-4-5", "messages": said})
    marked = [call.parameters["cache_control"]["at"] for call in state.calls]
    assert marked == [["system"], ["system", "last"], ["system", 3]]


@pytest.mark.parametrize(
    ("tools", "whole", "at"),
    [
        ([{"name": "f", "input_schema": {}, "cache_control": {"type": "ephemeral", "ttl": "1h"}}], {}, ["tools"]),
        ([{"type": "function", "function": {"name": "f"}, "cache_control": {"type": "ephemeral"}}], {}, ["tools"]),
        ([{"toolSpec": {"name": "f"}}, {"cachePoint": {"type": "default"}}], {}, ["tools"]),
        ([{"name": "f", "input_schema": {}}], {"cache_control": {"type": "ephemeral"}}, ["last"]),
    ],
)
def test_marks_of_tools_and_of_a_whole_request_are_kept(tools: list[Any], whole: dict[str, Any], at: list[str]) -> None:
    """Of a list of messages, a request and a span."""
    asked = {"model": "claude-sonnet-4-5", "tools": tools, **whole}
    listed = {**asked, "messages": [{"role": "user", "content": "Well?"}, {"role": "assistant", "content": "Yes."}]}
    request = {**asked, "messages": [{"role": "user", "content": "Well?"}]}
    if "toolSpec" in tools[0]:
        request["toolConfig"] = {"tools": request.pop("tools")}
    spans = copy.deepcopy(EXAMPLES["langsmith"])
    spans[0]["extra"]["invocation_params"] |= asked
    for body in (listed, exchange(request)[0], spans):
        state, _ = imported(body)
        marked = [call.parameters["cache_control"]["at"] for call in state.calls if "cache_control" in call.parameters]
        assert marked == [at]
        assert "cache_control" not in str(state.tool_schemas)


def test_an_answer_that_calls_a_tool_tells_that_its_request_had_more_than_the_file_shows() -> None:
    """So its count is not exact, and has no upper bound."""
    asked = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Well?"}]}
    called = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    for answer, known in (({"content": "Yes."}, True), ({"content": None, "tool_calls": [called]}, False)):
        message = {"role": "assistant", **answer}
        response = {"object": "chat.completion", "choices": [{"index": 0, "message": message}]}
        (call,) = imported([{"request": asked, "response": response}])[0].calls
        assert call.forecast is not None
        assert (call.grade is Grade.EXACT, call.forecast.high is not None) == (known, known), call.unstated
    assert call.unstated == "the model calls tools, and the file shows none in its request"


LATER = {"name": "f" * 60, "input_schema": {"type": "object"}, "defer_loading": True}


def test_a_tool_that_the_provider_runs_makes_the_request_one_that_is_not_known_whole() -> None:
    search = {"type": "web_search_20250305", "name": "web_search"}
    state, _ = imported(exchange({"messages": [{"role": "user", "content": "Well?"}]}, tools=[search])[0])
    (call,) = state.calls
    assert call.unstated == "tools of the provider add to the request what the file does not show: web_search_20250305"
    assert call.grade is Grade.ESTIMATE
    assert call.forecast is not None
    assert call.forecast.high is None
    (call,) = imported(exchange({"messages": [{"role": "user", "content": "Well?"}]}, tools=[LATER])[0])[0].calls
    assert call.unstated.endswith(f": {'f' * 40}, which it shows when it is searched for")


def test_a_file_of_messages_states_no_requests_so_that_nothing_is_exact() -> None:
    listed, _ = imported([{"role": "user", "content": "Well?"}, {"role": "assistant", "content": "Yes."}])
    logged, _ = imported(exchange({"messages": [{"role": "user", "content": "Well?"}]})[0])
    assert (listed.calls[0].grade, bool(listed.calls[0].unstated)) == (Grade.ESTIMATE, True)
    assert (logged.calls[0].grade, logged.calls[0].unstated) == (Grade.EXACT, "")


def test_the_size_of_an_image_is_read_from_its_bytes() -> None:
    part = {
        "type": "image_url",
        "image_url": {"url": f"data:image/png;base64,{base64.b64encode(png(300, 200)).decode()}"},
    }
    state, _ = imported([{"role": "user", "content": [part]}, {"role": "assistant", "content": "A cat."}])
    (image,) = state.calls[0].entries[0].item.message.images
    assert (image.width, image.height) == (300, 200)


@pytest.mark.parametrize("spelled", ["image_url", "input_image"])
@pytest.mark.parametrize(("written", "kept"), [("low", "low"), ("high", "high"), ("auto", ""), ("odd", "")])
def test_the_detail_of_an_image_is_kept_and_counted(spelled: str, written: str, kept: str) -> None:
    url = f"data:image/png;base64,{base64.b64encode(png(1024, 1024)).decode()}"
    inside = {"image_url": {"url": url, "detail": written}}
    part = {"type": spelled, **(inside if spelled == "image_url" else {"image_url": url, "detail": written})}
    state, _ = imported([{"role": "user", "content": [part]}, {"role": "assistant", "content": "A cat."}])
    (image,) = state.calls[0].entries[0].item.message.images
    assert image.detail == kept


def cassette(rows: Sequence[tuple[Any, Any]]) -> dict[str, Any]:
    """Requests with their responses, as a recording of HTTP."""
    url = "https://a.test/v1/chat/completions"
    return {
        "version": 1,
        "interactions": [
            {
                "request": {"method": "POST", "uri": url, "body": json.dumps(request)},
                "response": {"status": {"code": 200}, "body": {"string": json.dumps(response)}},
            }
            for request, response in rows
        ],
    }


class Unpriced(FlatPrices):
    """Knows no model."""

    def price(self, model: str, input_tokens: int = 0) -> Price:
        return Price()


def test_cached_tokens_that_a_record_states_teach_the_later_calls_of_a_model_without_a_rule() -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "word " * 2_000}]
    rows, sizes = [], [2_010, 2_020, 2_030, 2_040]
    for before, size in zip([0, *sizes], sizes, strict=False):
        usage = {"prompt_tokens": size, "completion_tokens": 6, "prompt_tokens_details": {"cached_tokens": before}}
        answer = {"role": "assistant", "content": "one two three"}
        rows.append(
            ({"model": "lab-1", "messages": list(messages)}, {"choices": [{"message": answer}], "usage": usage})
        )
        messages += [answer, {"role": "user", "content": "Go on."}]
    state, _ = imported(cassette(rows), prices=Unpriced())
    predicted = [call.forecast.cached for call in state.calls if call.forecast is not None]
    assert predicted[:2] == [0, 0], "nothing had been stated before"
    assert predicted[2:] == [pytest.approx(size, rel=0.02) for size in sizes[1:3]]
    again = what_if(state, Definition.of(state.cascade_text), None, Words(), Unpriced())
    assert again[-1].prediction.forecast.cached == pytest.approx(sizes[2], rel=0.02)
    assert again[-1].prediction.price.rule.provider == "the record"


SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}
BEDROCK = {"type": "json_schema", "structure": {"jsonSchema": {"name": "n", "schema": json.dumps(SCHEMA)}}}


@pytest.mark.parametrize(
    "request_body",
    [
        {"model": "gpt-4o", "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}},
        {"model": "gpt-4o", "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}}},
        {"model": "claude-sonnet-4-5", "output_format": {"type": "json_schema", "schema": SCHEMA}},
        {"model": "claude-sonnet-4-5", "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
        {"model": "gemini-2.5-flash", "generationConfig": {"responseSchema": SCHEMA}},
        {"model": "gemini-2.5-flash", "config": {"response_json_schema": SCHEMA}},
        {"model": "us.anthropic.claude-sonnet-4-6", "outputConfig": {"textFormat": BEDROCK}},
    ],
)
def test_the_form_of_the_answer_is_part_of_the_request_wherever_its_provider_has_it(request_body: Any) -> None:
    body = {"messages": [{"role": "user", "content": "Well?"}]}
    plain, shaped = (
        imported({"request": body | more, "response": {"role": "assistant", "content": "Yes."}})[0].calls[0]
        for more in ({"model": request_body["model"]}, request_body)
    )
    assert shaped.parameters["response_format"]["json_schema"]["schema"] == SCHEMA
    assert shaped.tokens_sent > plain.tokens_sent
    assert (plain.grade, shaped.grade) == (Grade.EXACT, Grade.ESTIMATE)


def test_what_differs_between_the_calls_of_a_conversation_is_that_of_each_call() -> None:
    shaped = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
    said = [{"role": "user", "content": "Well?"}]
    answer = {"role": "assistant", "content": "Yes."}
    first = {"model": "gpt-4o", "messages": said, "seed": 1}
    second = {**first, "messages": [*said, answer, {"role": "user", "content": "Go on."}]}
    asked = [
        {**first, "temperature": 0.1, "response_format": shaped, "tool_choice": "none"},
        {**second, "temperature": 0.2},
    ]
    state, _ = imported(cassette([(one, {"choices": [{"message": answer}]}) for one in asked]), encodings())
    with_schema, without = state.calls
    assert dict(with_schema.parameters) == {
        "seed": 1,
        "temperature": 0.1,
        "response_format": shaped,
        "tool_choice": "none",
    }
    assert dict(without.parameters) == {"seed": 1, "temperature": 0.2}
    assert with_schema.overhead_tokens > without.overhead_tokens == encodings().overhead("gpt-4o")
    assert state.imported["left_out"] == []
    again = what_if(state, Definition.of(state.cascade_text), None, encodings(), FlatPrices())
    assert [one.assembly.request.digest for one in again] == [call.digest for call in state.calls]
    assert [one.assembly.tokens_sent for one in again] == [call.tokens_sent for call in state.calls]


@pytest.mark.parametrize("goes_back", [True, False])
def test_reasoning_that_a_client_leaves_out_of_the_next_request_is_not_in_its_context(goes_back: bool) -> None:
    asked = [{"role": "user", "content": "Well?"}]
    thought = {"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "Let me look."}]}
    called = {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c1", "output": RESULT}
    usage = {"input_tokens": 20, "output_tokens": 200, "output_tokens_details": {"reasoning_tokens": 180}}
    done = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]}
    later = [*asked, *([thought] if goes_back else []), called, result]
    rows = [
        ({"model": "gpt-5", "input": asked}, {"output": [thought, called], "usage": usage}),
        ({"model": "gpt-5", "input": later}, {"output": [done], "usage": {"input_tokens": 60, "output_tokens": 9}}),
    ]
    state, _ = imported(cassette(rows), encodings())
    first, second = state.calls
    (said,) = (entry.sent for entry in second.entries if entry.sent is not None and entry.sent.role == "assistant")
    assert ("reasoning" in said.extra) is goes_back
    assert goes_back or said.extra["reasoning_content"] == "Let me look."
    assert first.usage.output == 200
    assert second.forecast is not None
    assert second.forecast.tokens is not None
    assert (second.forecast.tokens > 200) is goes_back


SIGNED = {"text": ANSWER, "thoughtSignature": "c2ln"}


@pytest.mark.parametrize("goes_back", [True, False])
def test_a_signature_that_a_client_leaves_out_of_the_next_request_is_not_in_its_context(goes_back: bool) -> None:
    asked, more = ({"role": "user", "parts": [{"text": text}]} for text in ("Well?", "And?"))
    again = {"role": "model", "parts": [SIGNED if goes_back else {"text": ANSWER}]}
    usage = {"promptTokenCount": 20, "candidatesTokenCount": 9, "thoughtsTokenCount": 300}
    rows = [
        (
            {"model": "gemini-3.5-flash", "contents": contents},
            {"candidates": [{"content": {"parts": [SIGNED]}}], **told},
        )
        for contents, told in (([asked], {"usageMetadata": usage}), ([asked, again, more], {}))
    ]
    forecast = imported(cassette(rows), encodings())[0].calls[1].forecast
    assert forecast is not None
    assert ((forecast.tokens or 0) > 300) is goes_back


@pytest.mark.parametrize("goes_back", [True, False])
def test_reasoning_as_text_is_counted_where_it_goes_back_with_calls(goes_back: bool) -> None:
    """As DeepSeek V4 counts it."""
    call = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    said = {"role": "assistant", "content": "", "tool_calls": [call]}
    thought = {**said, "reasoning_content": "Let me look. " * 20}
    asked, result = {"role": "user", "content": "Well?"}, {"role": "tool", "tool_call_id": "c1", "content": RESULT}
    usage = {"prompt_tokens": 20, "completion_tokens": 130, "completion_tokens_details": {"reasoning_tokens": 100}}
    rows = [
        ({"model": "deepseek-v4-flash", "messages": messages}, {"choices": [{"message": thought}], **told})
        for messages, told in (([asked], {"usage": usage}), ([asked, thought if goes_back else said, result], {}))
    ]
    forecast = imported(cassette(rows), encodings())[0].calls[1].forecast
    assert forecast is not None
    assert ((forecast.tokens or 0) > 140) is goes_back


CALL = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
CALLING = {"role": "assistant", "content": "", "tool_calls": [CALL]}
SEALED = {"type": "reasoning.encrypted", "data": "gAAAAA", "format": "openai-responses-v1"}
BY_GOOGLE = {**SEALED, "format": "google-gemini-v1"}
WRITTEN = {"type": "reasoning.text", "text": "Let me look.", "format": "unknown"}


@pytest.mark.parametrize(
    ("model", "said", "back", "counted"),
    [
        ("openai/gpt-5", SEALED, SEALED, True),
        ("openai/gpt-5", SEALED, None, False),
        ("x-ai/grok-4.1-fast", {**SEALED, "format": "xai-responses-v1"}, WRITTEN, False),
        ("anthropic/claude-sonnet-4", {**WRITTEN, "signature": "s"}, {**WRITTEN, "signature": "s"}, True),
        ("anthropic/claude-sonnet-4", {**WRITTEN, "signature": "s"}, WRITTEN, False),
        ("google/gemini-3-pro-preview", BY_GOOGLE, BY_GOOGLE, False),
        ("grok-4-fast", None, None, True),
        ("grok-3-mini", None, None, False),
    ],
)
def test_reasoning_is_counted_again_where_a_gateway_gets_it_back_or_its_provider_keeps_it(
    model: str, said: dict[str, str] | None, back: dict[str, str] | None, counted: bool
) -> None:
    usage = {"prompt_tokens": 50, "completion_tokens": 320, "completion_tokens_details": {"reasoning_tokens": 300}}
    first, again = (CALLING | ({"reasoning_details": [one]} if one else {}) for one in (said, back))
    asked, result = {"role": "user", "content": "Well?"}, {"role": "tool", "tool_call_id": "c1", "content": RESULT}
    rows = [
        ({"model": model, "messages": messages}, {"choices": [{"message": first}], **told})
        for messages, told in (([asked], {"usage": usage}), ([asked, again, result], {}))
    ]
    forecast = imported(cassette(rows), encodings())[0].calls[1].forecast
    assert forecast is not None
    assert ((forecast.tokens or 0) > 350) is counted


@pytest.mark.parametrize(
    ("model", "how", "counted"),
    [
        ("gemini-2.5-pro", "streamGenerateContent?alt=sse", True),
        ("gemini-2.5-pro", "generateContent", False),
        ("gemini-3-pro-preview", "generateContent", True),
    ],
)
def test_gemini_2_5_counts_again_what_it_thought_in_a_stream(model: str, how: str, counted: bool) -> None:
    signed = {"functionCall": {"name": "ls", "args": {}}, "thoughtSignature": "c2ln"}
    asked = {"role": "user", "parts": [{"text": "Well?"}]}
    result = {"role": "user", "parts": [{"functionResponse": {"name": "ls", "response": {"result": RESULT}}}]}
    usage = {"promptTokenCount": 50, "candidatesTokenCount": 9, "thoughtsTokenCount": 300}
    said = {"candidates": [{"content": {"role": "model", "parts": [signed]}}], "usageMetadata": usage}
    later = [asked, {"role": "model", "parts": [signed]}, result]
    tools = [{"functionDeclarations": [{"name": "ls"}]}]
    recorded = cassette([({"contents": contents, "tools": tools}, said) for contents in ([asked], later)])
    for one in recorded["interactions"]:
        one["request"]["uri"] = f"https://a.test/v1beta/models/{model}:{how}"
    forecast = imported(recorded, encodings())[0].calls[1].forecast
    assert forecast is not None
    assert ((forecast.tokens or 0) > 350) is counted
    assert (forecast.low or 0) < 200
    assert (forecast.high or 0) > 350


@pytest.mark.parametrize("goes_back", [True, False])
def test_thoughts_that_a_client_sends_back_to_gemini_are_counted_as_text(goes_back: bool) -> None:
    thought = {"text": "Let me look at the folder. " * 40, "thought": True}
    asked, more = ({"role": "user", "parts": [{"text": text}]} for text in ("Well?", "And?"))
    said = {"candidates": [{"content": {"role": "model", "parts": [thought, {"text": ANSWER}]}}]}
    usage = {"promptTokenCount": 50, "candidatesTokenCount": 9, "thoughtsTokenCount": 300}
    again = {"role": "model", "parts": [*([thought] if goes_back else []), {"text": ANSWER}]}
    rows: list[tuple[dict[str, Any], Any]] = [
        ({"contents": [asked]}, {**said, "usageMetadata": usage}),
        ({"contents": [asked, again, more]}, said),
    ]
    body = [({"model": "gemini-2.5-flash", **request}, response) for request, response in rows]
    forecast = imported(cassette(body), encodings())[0].calls[1].forecast
    assert forecast is not None
    assert ((forecast.tokens or 0) > 250) is goes_back


@pytest.mark.parametrize("cited", [True, False])
def test_what_citations_add_to_a_request_opens_its_interval(cited: bool) -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "The sky is blue."}
    document = {"type": "document", "source": source, "citations": {"enabled": cited}}
    asked = [{"role": "user", "content": [document, {"type": "text", "text": "Which colour?"}]}]
    row = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": asked}, {"role": "assistant", "content": ANSWER}
    (call,) = imported(cassette([row]), encodings())[0].calls
    assert call.forecast is not None
    assert (call.forecast.high is None) is cited
    assert ("citations" in call.unstated) is cited


def test_what_a_signature_holds_that_no_call_here_made_is_in_the_interval() -> None:
    """A recording may begin in the middle of a conversation."""
    signed = {"functionCall": {"name": "ls", "args": {}}, "thoughtSignature": "c2ln" * 300}
    asked = [{"role": "user", "parts": [{"text": "Well?"}]}, {"role": "model", "parts": [signed]}]
    asked += [{"role": "user", "parts": [{"functionResponse": {"name": "ls", "response": {"result": RESULT}}}]}]
    row = {"model": "gemini-3-flash", "contents": asked}, {"candidates": [{"content": {"parts": [{"text": ANSWER}]}}]}
    forecast = imported(cassette([row]), encodings())[0].calls[0].forecast
    assert forecast is not None
    assert (forecast.high or 0) > (forecast.tokens or 0) + 400


@pytest.mark.parametrize("system", ["Be brief.", ""])
def test_what_a_context_taught_of_a_providers_own_prompt_holds_for_the_next_one(system: str) -> None:
    """The first call of a later context is counted from one with the same tools, whether or not it begins alike."""
    tools = [{"type": "function", "function": {"name": "ls", "parameters": {}}}]
    begin = [{"role": "system", "content": system}] if system else []
    rows = [
        (
            {"model": "deepseek-chat", "messages": [*begin, {"role": "user", "content": text}], "tools": tools},
            {"choices": [{"message": {"role": "assistant", "content": "So."}}], "usage": {"prompt_tokens": stated}},
        )
        for text, stated in (("Well?", 500), ("And what else?", 502))
    ]
    first, second = (call.forecast for call in imported(cassette(rows), encodings())[0].calls)
    assert first is not None
    assert second is not None
    assert first.tokens is not None
    assert second.tokens is not None
    assert first.tokens < 270
    assert second.tokens == pytest.approx(502, abs=25)
    assert (second.low or 0) > (first.low or 0)


def test_a_choice_of_tools_is_counted_for_the_call_that_makes_it() -> None:
    """Anthropic's prompt for tools is longer where the model has to call one; the next call is free."""
    tools = [{"name": "ls", "description": "Lists.", "input_schema": {"type": "object"}}]
    asked = [{"role": "user", "content": "Well?"}]
    called = {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "ls", "input": {}}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": RESULT}]}
    rows = [
        ({"model": "claude-sonnet-4-5", "max_tokens": 9, "tools": tools, "messages": messages, **choice}, called)
        for messages, choice in ((asked, {"tool_choice": {"type": "any"}}), ([*asked, called, result], {}))
    ]
    forced, free = imported(cassette(rows), encodings())[0].calls
    assert forced.tools_tokens - free.tools_tokens == 588 - 496


BUDGET = {"thinking": {"type": "enabled", "budget_tokens": 1024}}


@pytest.mark.parametrize(
    ("more", "tokens"),
    [
        (BUDGET, 29),
        ({"additionalModelRequestFields": BUDGET}, 29),
        ({"reasoning_effort": "low"}, 29),
        ({"thinking": {"type": "adaptive"}}, 0),
        ({"thinking": {"type": "disabled"}}, 0),
    ],
)
def test_what_a_budget_for_reasoning_adds_to_a_request_is_counted(more: dict[str, Any], tokens: int) -> None:
    asked = {"model": "claude-sonnet-4-5", "messages": [{"role": "user", "content": "Well?"}]}
    plain, budgeted = (
        imported({"request": body, "response": {"role": "assistant", "content": "Yes."}}, counter=encodings())[0].calls
        for body in (asked, asked | more)
    )
    assert budgeted[0].tokens_sent - plain[0].tokens_sent == tokens


@pytest.mark.parametrize("host", ["openrouter.ai/api", "ai-gateway.vercel.sh"])
def test_gateways_that_use_the_responses_api_are_counted_by_it(host: str) -> None:
    tools = [{"type": "function", "function": {"name": "ls", "parameters": {}}}]
    asked = {"model": "openai/gpt-5", "messages": [{"role": "user", "content": "Well?"}], "tools": tools}
    body = json.dumps(cassette([(asked, {"choices": [{"message": {"role": "assistant", "content": "Yes."}}]})]))
    found = [imported(json.loads(body.replace("a.test", at)), encodings())[0] for at in ("a.test", host)]
    direct, by_gateway = (state.calls[0].tools_tokens for state in found)
    assert direct - by_gateway == 82


def test_a_request_to_the_responses_api_is_counted_nearly_but_not_exactly() -> None:
    body = {"model": "gpt-4o", "input": [{"role": "user", "content": "Well?"}]}
    answer = {"output": [{"type": "message", "content": [{"type": "output_text", "text": "Yes."}]}]}
    state, _ = imported({"request": body, "response": answer}, counter=encodings())
    (call,) = state.calls
    assert call.grade is Grade.ESTIMATE
    assert call.forecast is not None
    assert (call.forecast.low, call.forecast.high) == (call.expected - 5, call.expected + 5)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"previous_response_id": "r1"}, "messages that the provider keeps"),
        ({"web_search_options": {"search_context_size": "low"}}, "web_search_options"),
        ({"web_search_options": {}}, "web_search_options"),
        ({"data_sources": [{"type": "azure_search", "parameters": {}}]}, "data_sources"),
        ({"transforms": ["middle-out"]}, "transforms"),
        ({"extra_body": {"enable_search": True}}, "enable_search"),
        ({"model": "gpt-4o-search-preview"}, "gpt-4o-search-preview"),
        ({"tools": [{"type": "openrouter:web_search", "parameters": {"max_uses": 1}}]}, "openrouter:web_search"),
        ({"tools": [{"name": "find", "input_schema": {}, "defer_loading": True}]}, "find, which it shows when"),
        ({"messages": [{"role": "user", "content": [{"type": "server_tool_use", "id": "s1"}]}]}, "server_tool_use"),
        ({"conversation": "c1"}, "conversation that the provider keeps"),
        ({"mcp_servers": [{"url": "https://a.test"}]}, "mcp_servers that the provider keeps"),
        ({"config": {"tools": [{"googleSearch": {}}]}}, "googleSearch"),
    ],
)
def test_what_a_request_only_names_makes_it_one_that_is_not_known_whole(more: dict[str, Any], words: str) -> None:
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Well?"}]} | more
    state, _ = imported({"request": body, "response": {"role": "assistant", "content": "Yes."}})
    (call,) = state.calls
    assert words in call.unstated
    assert call.grade is Grade.ESTIMATE
    assert call.forecast is not None
    assert call.forecast.high is None


def test_googles_usage_without_cached_tokens_says_that_there_were_none() -> None:
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 2, "totalTokenCount": 7}
    response = {"candidates": [{"content": {"parts": [{"text": "Yes."}]}}], "usageMetadata": usage}
    asked = {"model": "gemini-2.5-flash", "contents": [{"role": "user", "parts": [{"text": "Well?"}]}]}
    state, _ = imported({"request": asked, "response": response})
    assert state.calls[0].usage.cached == 0


def test_the_marks_of_a_request_in_an_inspect_log_are_kept() -> None:
    """The log holds its own form of the messages, and the request as it was sent."""
    body = copy.deepcopy(EXAMPLES["inspect"])
    mark = {"cache_control": {"type": "ephemeral"}}
    for event in body["samples"][0]["events"]:
        said = [{"type": "text", "text": OPENAI[1]["content"], **mark}]
        event["call"] = {"request": {"system": [{"type": "text", "text": SYSTEM, **mark}], "messages": []}}
        event["call"]["request"]["messages"].append({"role": "user", "content": said})
    state, _ = imported(body)
    assert [call.parameters["cache_control"]["at"] for call in state.calls] == [["system", "last"]] * 2
