"""Phases without a model, extraction, callouts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.engine.support import play
from workbench.engine.contracts import ToolResult
from workbench.engine.tables import shaped


def cascade(**phase: Any) -> dict[str, Any]:
    return {
        "cascade_id": "c",
        "phases": [
            {"name": "fetch", **phase},
            {"name": "after", "instructions": "{{ outputs.fetch.n | default(outputs.fetch) }}"},
            {"name": "other", "instructions": "other"},
        ],
    }


def test_the_result_is_the_output_and_later_phases_see_the_object() -> None:
    played = play(cascade(tool="get", inputs={"x": "{{ input.a }}"}), ["1", "2"], input={"a": "A"}, tools={"get": get})
    assert played.tools.called == [("get", {"x": "A"})]
    assert played.texts(0) == [("user", "A7")]


def get(x: str) -> str:
    return json.dumps({"n": f"{x}7", "status": "odd"})


@pytest.mark.parametrize(
    ("value", "kind"), [({"a": 1}, "dict"), ([1, 2], "list"), ([], "list"), ([{"a": 1}], "dataframe"), (5, "scalar")]
)
def test_the_output_of_a_data_phase_names_its_kind(value: Any, kind: str) -> None:
    assert shaped(value)["type"] == kind


def test_routing_looks_up_the_status() -> None:
    played = play(cascade(tool="get", inputs={"x": ""}, routing={"odd": "other"}), ["o"], tools={"get": get})
    assert [e.place.phase for e in played.of_kind("phase_started")] == ["fetch", "other"]


def test_a_failing_tool_is_tried_again_and_then_fails_the_phase() -> None:
    def bad() -> str:
        raise ValueError("no")

    retry = {"max_attempts": 3, "backoff": "exponential", "backoff_base_seconds": 2}
    played = play(cascade(tool="bad", retry=retry), [], tools={"bad": bad})
    assert len(played.tools.called) == 3
    assert played.clock.slept == [2.0, 4.0]
    assert played.outcome.status == "failed"
    assert "ValueError: no" in played.outcome.reason


def test_on_error_names_the_phase_that_follows() -> None:
    played = play(cascade(tool="bad", on_error="other"), ["o"], tools={"bad": lambda: ToolResult("no", is_error=True)})
    assert [e.place.phase for e in played.of_kind("phase_started")] == ["fetch", "other"]
    assert played.of_kind("phase_finished")[0].data["status"] == "failed"
    assert played.of_kind("route_chosen")[0].data["rule"] == "on_error"
    assert "fetch" not in played.state.outputs


def test_an_inline_fallback_stands_in() -> None:
    fallback = {"instructions": "Guess."}
    played = play(
        cascade(tool="bad", on_error=fallback),
        ["guessed", "x", "y"],
        tools={"bad": lambda: ToolResult("no", is_error=True)},
    )
    assert played.state.outputs["fetch"] == "guessed"
    assert played.model.requests[0][0].phase == "fetch_fallback"
    (task,) = played.state.calls[0].entries
    assert task.rule.path == "phases[0].on_error.instructions"
    assert "Guess." in played.definition.source.text.splitlines()[task.rule.line - 1]


def test_a_given_name_of_the_fallback_is_kept() -> None:
    fallback = {"name": "rescue", "instructions": "Guess."}
    played = play(cascade(tool="bad", on_error=fallback), ["guessed", "x", "y"], tools={"bad": failing})
    assert [place.phase for place, _ in played.model.requests] == ["rescue", "after", "other"]
    assert (played.state.outputs["fetch"], played.state.outputs["rescue"]) == ("guessed", "guessed")


def failing() -> str:
    raise ValueError("no such table: x")


ERROR = "{% set e = state.last_deterministic_error %}{{ [e.phase, e.tool, e.type, e.message, e.error] | join('/') }}"


@pytest.mark.parametrize(
    ("tool", "told"),
    [
        (failing, "fetch/bad/ValueError/ValueError: no such table: x/ValueError: no such table: x"),
        (lambda: ToolResult("note: no", is_error=True), "fetch/bad/ToolError/note: no/note: no"),
    ],
)
def test_what_follows_an_error_can_read_it(tool: Any, told: str) -> None:
    """An inline phase, a phase that is named, and phases behind them."""
    inline = play(cascade(tool="bad", on_error={"instructions": ERROR}), ["g", "x", "y"], tools={"bad": tool})
    assert inline.texts(0) == [("user", told)]
    assert inline.of_kind("warning")[-1].data["code"] != "undefined"
    named = cascade(tool="bad", on_error="other")
    named["phases"][2]["instructions"] = ERROR
    played = play(named, ["o"], tools={"bad": tool})
    assert played.texts(0) == [("user", told)]
    assert "last_deterministic_error" not in played.outcome.state


def extraction(reply: str, **rule: Any) -> Any:
    document = {"cascade_id": "c", "phases": [{"name": "p", "instructions": "x", "output_extraction": rule}]}
    return play(document, [reply])


def test_extraction_puts_group_one_into_the_state() -> None:
    played = extraction("The Score: 42 points", pattern=r"score: (\d+)", store_as="score", format="json")
    assert played.outcome.state == {"score": 42}


def test_a_required_miss_fails_the_phase() -> None:
    assert extraction("nothing", pattern="x+y", store_as="s", required=True).outcome.status == "failed"


def test_a_pattern_that_takes_for_ever_is_ended() -> None:
    played = extraction("a" * 60 + "!", pattern=r"(a+)+$", store_as="s", required=True)
    assert played.outcome.status in ("failed", "success")


def test_callouts_tag_the_output_with_a_rendered_name() -> None:
    document = {"cascade_id": "c", "phases": [{"name": "p", "instructions": "x", "callouts": "key {{ turn }}"}]}
    played = play(document, ["text"])
    (told,) = played.of_kind("callout")
    answer = played.state.calls[-1].answer
    assert answer is not None
    hashes = {"content_hash": answer.content_hash, "body_hash": answer.body_hash}
    assert told.data == {"name": "key 1", "target": "output", **hashes}


DEEP = "[" * 3000 + "]" * 3000


def test_an_answer_nested_too_deeply_is_a_failed_check_and_no_crash() -> None:
    nested = {"$defs": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}}}, "$ref": "#/$defs/n"}
    for depth in (300, 3000):
        phase = {"name": "p", "instructions": "x", "output_schema": nested, "rules": {"max_attempts": 1}}
        played = play({"cascade_id": "c", "phases": [phase]}, ["[" * depth + "]" * depth])
        assert played.outcome.status == "failed"
        assert "nested too deeply" in played.outcome.reason


def test_a_match_nested_too_deeply_is_a_failed_extraction() -> None:
    rule = {"pattern": "(?s)(.*)", "store_as": "v", "format": "json"}
    phase = {"name": "p", "instructions": "x", "output_extraction": rule}
    played = play({"cascade_id": "c", "phases": [phase]}, [DEEP])
    assert (played.outcome.status, played.outcome.reason) == (
        "failed",
        "output_extraction: the match is nested too deeply",
    )
