"""Schemas that a stranger wrote: nothing is fetched for them, and none of them holds up a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.engine.support import play
from workbench.language import json_schema
from workbench.language.json_schema import SchemaFault, mismatch
from workbench.language.lint.linter import check
from workbench.language.load import load

SLOW = r"^(x|x)*(?=y)\1*$"
"""A pattern that takes twice as long for each further letter."""
LETTERS = "x" * 24
"""So many that it takes seconds, not years, where nothing ends it."""
ENDS = r"takes over 0\.05 s|within 0\.05 s"
DOUBLING: dict[str, Any] = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i - 1}"}] * 2} for i in range(1, 18)}
OTHER_DRAFT = {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": SLOW}
ELSEWHERE = "http://127.0.0.1:1/schema.json"


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_schema, "SECONDS", 0.05)


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"patternProperties": {SLOW: {}}}, ENDS),
        ({"additionalProperties": False, "patternProperties": {SLOW: {}}}, ENDS),
        ({"additionalProperties": {"pattern": SLOW}}, ENDS),
        ({"additionalProperties": OTHER_DRAFT}, ENDS),
        ({"$ref": "#/$defs/d17", "$defs": {**DOUBLING, "d0": {"type": "null"}}}, ENDS),
        ({"unevaluatedProperties": False, "allOf": [{"patternProperties": {SLOW: {}}}]}, "unevaluatedProperties"),
    ],
)
def test_a_schema_that_would_take_years_is_given_up(schema: dict[str, Any], told: str) -> None:
    with pytest.raises(SchemaFault, match=told):
        mismatch(schema, {LETTERS: LETTERS})


@pytest.mark.parametrize(
    ("schema", "value", "found"),
    [
        ({"properties": {"a": {"pattern": "^b"}}}, {"a": "c"}, "$.a: 'c' does not match '^b'"),
        (
            {"patternProperties": {"^n_": {"type": "number"}}},
            {"n_x": "1", "m": "1"},
            "$.n_x: '1' is not of type 'number'",
        ),
        (
            {"additionalProperties": False, "properties": {"a": {}}, "patternProperties": {"^n_": {}}},
            {"a": 1, "n_b": 2, "c": 3},
            "$: Additional properties are not allowed ('c' was unexpected)",
        ),
        ({"additionalProperties": False, "patternProperties": {"^n_": {}}}, {"n_b": 2}, ""),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, {"type": "object"}, ""),
        ({"$id": "http://a.example/", "$ref": "#/$defs/one", "$defs": {"one": {"const": 1}}}, 2, "$: 1 was expected"),
    ],
)
def test_a_value_is_held_against_patterns_and_parts_of_the_schema(
    schema: dict[str, Any], value: object, found: str
) -> None:
    error = mismatch(schema, value)
    assert (f"{error.json_path}: {error.message}" if error else "") == found


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # What fetches warns of itself.
def test_nothing_is_fetched_for_a_part_with_an_address_of_its_own_either(tmp_path: Path) -> None:
    (tmp_path / "any.json").write_text("{}")
    part = {"$id": "http://a.example/", "$ref": (tmp_path / "any.json").as_uri()}
    with pytest.raises(SchemaFault, match="nothing is fetched"):
        mismatch({"properties": {"a": part}}, {"a": 1})


@pytest.mark.parametrize("ref", [ELSEWHERE, "file:///etc/hostname", "#/$defs/missing"])
def test_a_reference_that_leads_nowhere_is_told_before_and_ends_the_phase(ref: str) -> None:
    phase = {"name": "p", "instructions": "x", "output_schema": {"properties": {"a": {"$ref": ref}}}}
    text = json.dumps({"cascade_id": "c", "phases": [phase]})
    told = f"'{ref}' leads to nothing in the schema, and nothing is fetched from elsewhere"
    assert any(told in problem.message for problem in check(load(text, "c.yaml")))
    outcome = play(text, ['{"a": 1}']).outcome
    assert (outcome.status, outcome.reason) == ("failed", f"output_schema: {told}")
