"""What the engine itself puts before a model, and what it tells hooks: the tools, blocks and refusals, word by word."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.stored import check_stored
from workbench.context.place import Place
from workbench.engine import texts
from workbench.engine.contracts import Parameter, ToolSpec
from workbench.engine.definition import Definition
from workbench.engine.engine_tools import ENGINE_SPECS, RAG_SPECS, BadArguments, asked, bank_spec, cascade_spec
from workbench.engine.journal.event import Event
from workbench.engine.lifecycle import told

STORED = Path(__file__).parent / "stored"
CASCADE = {
    "cascade_id": "child",
    "inputs_schema": {"code": "what to look for"},
    "phases": [{"name": "p", "instructions": "x"}],
}
OF_EACH_TYPE = ToolSpec(
    "typed",
    "Takes one of each type.",
    tuple(
        Parameter(f"a_{type}", type, required, None if required else "ü", "said" if required else "")
        for type, required in (
            *(("int", True), ("integer", True), ("float", True), ("number", False), ("bool", True)),
            *(("boolean", True), ("list", True), ("array", True), ("dict", True), ("object", True), ("any", True)),
        )
    ),
    {"type": "object"},
)


def test_the_tools_of_the_engine_are_told_as_stored() -> None:
    child = cascade_spec(Definition.of(json.dumps(CASCADE), "c.json"))
    bare = cascade_spec(Definition.of(json.dumps(CASCADE | {"description": " Finds it. "}), "c.json"))
    own = [*ENGINE_SPECS.values(), *RAG_SPECS.values(), bank_spec("notes"), child]
    schemas = [json.dumps(texts.native_schema(spec)) for spec in own]
    check_stored(STORED / "told-tools.txt", "\n".join([texts.tool_text([*own, OF_EACH_TYPE]), *schemas]) + "\n")
    assert texts.tool_text([]) == ""
    assert bare.description == "Finds it."
    assert not any(spec.side_effects for spec in own)


def test_what_the_engine_says_to_a_model_is_as_stored() -> None:
    schema = {"type": "object", "properties": {"ä": {"type": "string"}}}
    said = [
        texts.CONTINUE,
        texts.CLOSING,
        texts.routing_block([("b", "if it is done"), ("c", "")]),
        texts.validation_block("short", "at most ten words", 3),
        texts.validation_block("short", "", 1),
        texts.validation_block("short", "at most ten words", 1, "Be short."),
        texts.not_available("x", ["a", "b"]),
        texts.not_available("x", []),
        texts.NOT_RUN,
        texts.unreadable("it ends too early"),
        texts.result_text("t", "said", is_error=False),
        texts.result_text("t", "said", is_error=True),
        texts.rejected("short", "too long"),
        texts.rejected("short", "too long", silent=True),
        texts.schema_rejected("at $.a: no", schema),
        texts.schema_block(schema),
        texts.attempt_line(2, 3),
    ]
    check_stored(STORED / "told-blocks.txt", "\n====\n".join(said) + "\n")


@pytest.mark.parametrize("is_error", [False, True])
def test_the_header_of_a_result_is_taken_off_again(is_error: bool) -> None:
    whole = texts.result_text("t", "said", is_error)
    assert texts.result_body("t", whole, is_error) == "said"
    assert texts.result_body("t", "said", is_error) == "said"
    assert texts.result_body("t", whole, not is_error) == whole


CLOSED: dict[str, Any] = {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (CLOSED, True),
        (CLOSED | {"title": "T", "$defs": {"d": CLOSED}}, True),
        (CLOSED | {"properties": {"a": {"anyOf": [CLOSED, {"type": "null"}]}}}, True),
        (CLOSED | {"properties": {"a": {"type": "array", "items": CLOSED, "minItems": 1}}}, True),
        ({"type": "object", "properties": {}, "required": [], "additionalProperties": False}, True),
        # Providers refuse these in strict mode.
        ({"type": "array", "items": CLOSED}, False),
        (CLOSED | {"anyOf": [CLOSED]}, False),
        (CLOSED | {"additionalProperties": True}, False),
        ({key: value for key, value in CLOSED.items() if key != "additionalProperties"}, False),
        (CLOSED | {"required": []}, False),
        (CLOSED | {"required": ["a", "b"]}, False),
        (CLOSED | {"required": "a"}, False),
        (CLOSED | {"properties": ["a"]}, False),
        (CLOSED | {"minProperties": 1}, False),
        (CLOSED | {"$defs": {"d": CLOSED | {"required": []}}}, False),
        (CLOSED | {"$defs": {"d": True}}, False),
        (CLOSED | {"properties": {"a": {"properties": {"b": {}}}}}, False),
        (CLOSED | {"properties": {"a": {"anyOf": CLOSED}}}, False),
        (CLOSED | {"properties": {"a": {"anyOf": [CLOSED, {"not": {}}]}}}, False),
        (CLOSED | {"properties": {"a": {"type": "array", "items": {"oneOf": []}}}}, False),
        (CLOSED | {"properties": {"a": {"type": "string", "minLength": 1}}}, False),
    ],
)
def test_a_provider_is_asked_to_be_strict_only_about_what_it_can_enforce(schema: dict[str, Any], strict: bool) -> None:
    body = {"name": "a_b-1", "schema": schema} | ({"strict": True} if strict else {})
    assert texts.answer_format("a b-1", schema) == {"type": "json_schema", "json_schema": body}


@pytest.mark.parametrize(("name", "sent"), [("", "answer"), ("ü.x", "__x"), ("n" * 65, "n" * 64)])
def test_the_name_of_a_format_is_one_that_providers_take(name: str, sent: str) -> None:
    assert texts.answer_format(name, CLOSED)["json_schema"]["name"] == sent


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"query": "a"}, ("a", 5)),
        ({"query": "a", "limit": 50}, ("a", 50)),
        ({"query": "a", "limit": "1"}, ("a", 1)),
        ({"query": "a", "k": 3}, "there is no parameter 'k'"),
        ({"query": " "}, "'query' must be a text that is not empty"),
        ({"limit": 3}, "'query' must be a text that is not empty"),
        *(
            ({"query": "a", "limit": limit}, "'limit' must be a whole number from 1 to 50")
            for limit in (0, 51, "51", True, 1.5, "²", None)
        ),
    ],
)
def test_a_search_is_asked_with_a_query_and_a_number(arguments: dict[str, Any], found: object) -> None:
    if isinstance(found, str):
        with pytest.raises(BadArguments, match=re.escape(found)):
            asked(arguments)
        return
    assert asked(arguments) == found
    assert asked({"k" if name == "limit" else name: value for name, value in arguments.items()}, "k") == found


PLACE = Place("s0", "p", 2, 3, 4, 1)
WHERE = {"phase_name": "p", "branch": "s0", "visit": 2, "attempt": 3, "turn": 4, "call": 1}


@pytest.mark.parametrize(
    ("kind", "place", "data", "type", "says"),
    [
        (
            "run_started",
            Place(),
            {"cascade_id": "c", "input": {}, "more": 1},
            "cascade_start",
            {"cascade_id": "c", "input": {}},
        ),
        ("phase_started", PLACE, {"tools": ["t"], "model": "m", "x": 1}, "phase_start", {"tools": ["t"], "model": "m"}),
        ("call_started", PLACE, {"model": "m", "try": 1}, "turn_start", {"model": "m"}),
        ("call_started", PLACE, {}, "turn_start", {"model": ""}),
        ("call_started", PLACE, {"model": "m", "try": 2}, "", {}),
        ("call_started", PLACE._replace(call=2), {"model": "m"}, "", {}),
        ("call_started", PLACE._replace(turn=0), {"model": "m"}, "", {}),
        (
            "tool_started",
            PLACE,
            {"tool": "t", "arguments": {"a": 1}},
            "tool_call",
            {"tool": "t", "arguments": {"a": 1}},
        ),
        (
            "tool_finished",
            PLACE,
            {"tool": "t", "text": "r", "is_error": True},
            "tool_result",
            {"tool": "t", "result": "r", "is_error": True},
        ),
        ("tool_finished", PLACE, {}, "tool_result", {"tool": "", "result": "", "is_error": False}),
        (
            "phase_finished",
            PLACE,
            {"status": "failed", "output": "o", "reason": "r"},
            "phase_complete",
            {"status": "failed", "output": "o", "reason": "r"},
        ),
        ("phase_finished", PLACE, {"status": "success"}, "phase_complete", {"status": "success"}),
        (
            "run_finished",
            Place(),
            {"status": "success", "output": "o"},
            "cascade_complete",
            {"status": "success", "output": "o", "reason": None},
        ),
        (
            "run_finished",
            Place(),
            {"status": "failed", "reason": "r"},
            "cascade_error",
            {"status": "failed", "output": None, "reason": "r"},
        ),
        ("state_changed", PLACE, {"key": "a"}, "", {}),
    ],
)
def test_the_life_of_a_run_is_told_to_hooks(
    kind: str, place: Place, data: dict[str, Any], type: str, says: dict[str, Any]
) -> None:
    event = told(Event(1, "2026-01-01T00:00:00.000000Z", "r", kind, place, data), "session")
    if not type:
        assert event is None
        return
    assert event is not None
    where = WHERE if place == PLACE else {}
    assert event.to_json() == {
        "type": type,
        "session_id": "session",
        "timestamp": "2026-01-01T00:00:00.000000Z",
        "data": where | says,
    }
