"""The JSON Schema accepts what loads, and tells an editor what is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.language.documents import PHASES
from workbench.language.load import load
from workbench.language.model.cascade import Cascade
from workbench.language.model.schema import json_schema
from workbench.language.model.shape import shape
from workbench.language.words import LATER_NAMES

SCHEMA = json_schema()
VALIDATOR = Draft202012Validator(SCHEMA)


def wrong(phase: dict[str, Any], **cascade: Any) -> list[str]:
    data = {"cascade_id": "c", "phases": [{"name": "a", **phase}], **cascade}
    return [error.message for error in VALIDATOR.iter_errors(data)]


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"].endswith("2020-12/schema")


def test_a_good_cascade_is_valid() -> None:
    assert VALIDATOR.is_valid(load(PHASES).source.data)


@pytest.mark.parametrize(
    "phase",
    [
        {"handoffs": ["a", {"target": "b"}]},
        {"context": {"from": ["previous", {"phase": "b", "filter": "all", "if": "x"}]}},
        {"callouts": "tag", "human_input": True, "narrator": False, "wards": {"post": ["v"]}},
        {"tackle": "manifest", "soundings": {"models": {"m": {"factor": 2}}, "reforge": {"honing_prompt": "x"}}},
    ],
)
def test_short_forms_are_valid(phase: dict[str, Any]) -> None:
    assert wrong({"instructions": "x", **phase}) == []


def test_a_deterministic_phase_and_its_inline_fallback_are_valid() -> None:
    fallback = {"instructions": "Say so.", "rules": {"max_turns": 2}}
    assert wrong({"tool": "t", "timeout": "5m", "inputs": {"a": False, "b": 1}, "on_error": fallback}) == []
    assert wrong({"tool": "t", "timeout": 30, "on_error": "a"}) == []


@pytest.mark.parametrize(
    "phase",
    [
        {"instructions": "x", "rules": {"max_turns": "three"}},
        {"instructions": "x", "soundings": {"factor": 0}},
        {"instructions": "x", "wards": {"post": [{"validator": "v", "mode": "block"}]}},
        {"instructions": "x", "tackle": "manifst"},
        {"tool": "t", "timeout": "soon"},
        {},
    ],
)
def test_a_mistake_is_invalid(phase: dict[str, Any]) -> None:
    assert wrong(phase)


def test_the_names_of_later_editions_are_valid_and_one_of_two_names_of_the_phases_is_needed() -> None:
    phase = {"name": "a", "instructions": "x", "skills": ["t"], "takes": {"factor": 2}}
    phase["context"] = {"from": [{"cell": "b"}]}
    assert VALIDATOR.is_valid({"cascade_id": "c", "cells": [phase]})
    assert not VALIDATOR.is_valid({"cascade_id": "c", "cells": [{"name": "a", "cell": "b"}]})
    assert not VALIDATOR.is_valid({"cascade_id": "c"})
    assert not VALIDATOR.is_valid({"cells": [phase]})


def test_every_field_is_described() -> None:
    for name, schema in SCHEMA["properties"].items():
        assert schema["description"], name
    assert set(SCHEMA["properties"]) == {*shape(Cascade), *LATER_NAMES["Cascade"]}
    assert "not run yet" in SCHEMA["properties"]["triggers"]["description"]


@pytest.mark.parametrize("place", [(), ("phases", 0), ("phases", 0, "rules"), ("phases", 0, "soundings", "reforge")])
def test_an_unknown_key_is_marked_at_every_level(place: tuple[str | int, ...]) -> None:
    document: dict[str, Any] = {
        "cascade_id": "c",
        "phases": [{"name": "a", "instructions": "x", "rules": {}, "soundings": {"reforge": {"honing_prompt": "x"}}}],
    }
    validator = VALIDATOR
    assert validator.is_valid(document)
    within: Any = document
    for step in place:
        within = within[step]
    within["tackel"] = []
    assert not validator.is_valid(document)


def test_a_change_of_the_copy_changes_nothing_else() -> None:
    json_schema()["properties"].clear()
    assert json_schema()["properties"]
