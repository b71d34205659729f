"""Checks and retries: which check fails what, what the model is told, and when a phase gives up."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.support import Played, play
from workbench.engine.contracts import ValidatorVerdict

SCHEMA = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}


def cascade(**phase: Any) -> dict[str, Any]:
    return {"cascade_id": "c", "phases": [{"name": "p", "instructions": "Do.", **phase}]}


def last_user(played: Played) -> str:
    return [text for role, text in played.texts() if role == "user"][-1]


def test_a_schema_is_checked_and_its_failure_names_the_path() -> None:
    played = play(cascade(output_schema=SCHEMA, rules={"max_attempts": 2}), ['{"n": "x"}', '{"n": 1}'])
    assert played.outcome.status == "success"
    assert "at $.n" in last_user(played)
    assert "Required schema:" in last_user(played)
    assert "This is attempt 2 of 2. Revise your answer." in last_user(played)


def test_without_attempts_left_the_phase_fails_and_names_the_check() -> None:
    played = play(cascade(output_schema=SCHEMA), ["no json"])
    assert played.outcome.status == "failed"
    finished = played.of_kind("phase_finished")[-1]
    assert finished.data["check"] == "output_schema"


@pytest.mark.parametrize("text", ['Here:\n```json\n{"n": 1}\n```', 'It is {"n": 1}, I think', '{"n": 1}'])
def test_json_is_found_in_the_text_a_fence_or_the_first_balanced_object(text: str) -> None:
    assert play(cascade(output_schema=SCHEMA), [text]).outcome.status == "success"


def test_loop_until_tells_the_requirement_and_allows_five_attempts() -> None:
    played = play(cascade(rules={"loop_until": "good"}), ["1", "2", "3", "4", "5"], validators={"good": bad})
    first = played.texts(0)[-1][1]
    assert "using 'good' which checks: Checks good" in first
    assert "You have 5 attempt(s)" in first
    assert len(played.model.requests) == 5
    assert played.outcome.status == "failed"


def bad(text: str) -> ValidatorVerdict:
    return ValidatorVerdict(False, "not good")


def test_silent_validation_names_neither_validator_nor_attempts() -> None:
    rules = {"loop_until": "good", "loop_until_silent": True, "max_attempts": 2}
    played = play(cascade(rules=rules), ["a", "b"], validators={"good": bad})
    assert played.texts(0) == [("user", "Do.")]
    assert last_user(played) == "Your answer was not accepted: not good"


def test_retry_instructions_see_the_error_of_the_attempt_that_failed() -> None:
    rules = {"max_attempts": 2, "retry_instructions": "{{ attempt }}/{{ max_attempts }} v={{ validation_error }}"}
    wards = {"post": [{"validator": "good", "mode": "retry"}]}
    played = play(cascade(rules=rules, wards=wards), ["a", "b"], validators={"good": bad})
    assert last_user(played) == "2/2 v=not good"


def test_retry_instructions_without_an_error_are_preceded_by_it() -> None:
    rules = {"max_attempts": 2, "retry_instructions": "Again, please."}
    wards = {"post": [{"validator": "good", "mode": "retry"}]}
    played = play(cascade(rules=rules, wards=wards), ["a", "b"], validators={"good": bad})
    assert last_user(played) == "Your answer was rejected by 'good': not good\n\nAgain, please."


def test_a_ward_has_a_limit_of_its_own() -> None:
    wards = {"post": [{"validator": "good", "mode": "retry", "max_attempts": 3}]}
    played = play(cascade(wards=wards), ["a", "b", "c"], validators={"good": bad})
    assert len(played.model.requests) == 3


def test_a_blocking_ward_ends_the_run_as_blocked() -> None:
    document = cascade(wards={"post": [{"validator": "good"}]})
    document["phases"].append({"name": "later", "instructions": "Never."})
    played = play(document, ["a"], validators={"good": bad})
    assert played.outcome.status == "blocked"
    assert "not good" in played.outcome.reason
    assert [e.place.phase for e in played.of_kind("phase_started")] == ["p"]


def test_an_advisory_ward_warns_and_goes_on() -> None:
    played = play(cascade(wards={"post": [{"validator": "good", "mode": "advisory"}]}), ["a"], validators={"good": bad})
    assert played.outcome.status == "success"
    assert any("not good" in e.data["message"] for e in played.of_kind("warning"))


def test_a_pre_ward_judges_the_input() -> None:
    seen: list[str] = []

    def judge(text: str) -> ValidatorVerdict:
        seen.append(text)
        return ValidatorVerdict(False, "bad input")

    played = play(
        cascade(wards={"pre": [{"validator": "good"}]}), [], input={"b": 1, "a": 2}, validators={"good": judge}
    )
    assert seen == ['{"a":2,"b":1}']
    assert played.outcome.status == "blocked"
    assert played.model.requests == []


def test_an_unknown_validator_fails_the_phase_and_never_passes() -> None:
    played = play(cascade(rules={"loop_until": "nope"}), ["a"])
    assert played.outcome.status == "failed"
    assert "'nope' is not known" in played.outcome.reason


def test_a_passing_attempt_is_final() -> None:
    played = play(cascade(rules={"max_attempts": 3}), ["a"])
    assert len(played.model.requests) == 1


def test_checks_run_in_order_and_the_first_failure_ends_them() -> None:
    wards = {"post": [{"validator": "good", "mode": "retry"}]}
    played = play(
        cascade(output_schema=SCHEMA, wards=wards, rules={"max_attempts": 2}),
        ["x", '{"n": 1}'],
        validators={"good": ok},
    )
    assert [e.data["check"] for e in played.of_kind("check_finished")] == ["output_schema", "output_schema", "post"]


def ok(text: str) -> ValidatorVerdict:
    return ValidatorVerdict(True)


def test_later_phases_read_the_keys_of_a_checked_answer() -> None:
    """The text stays the text; without a schema it has no keys, however it looks."""
    tells = "{{ outputs.p.n }}|{{ outputs.p['n'] }}|{{ state.output_p.n }}|{{ outputs.p }}"
    for schema, told in ((SCHEMA, '1|1|1|Here: {"n": 1}'), (None, '|||Here: {"n": 1}')):
        asking = {"output_schema": schema} if schema else {}
        phases = [{"name": "p", "instructions": "Say.", **asking}, {"name": "q", "instructions": tells}]
        played = play({"cascade_id": "c", "phases": phases}, ['Here: {"n": 1}', "done"])
        assert played.texts(1) == [("user", told)]


def test_the_winner_of_several_hands_on_its_own_value_and_joined_answers_have_none() -> None:
    for mode, told in (("evaluate", "n: 2"), ("aggregate", "n: ")):
        soundings = {"factor": 2, "max_parallel": 1, "mode": mode}
        phases = [
            {"name": "p", "instructions": "Say.", "output_schema": SCHEMA, "soundings": soundings},
            {"name": "q", "instructions": "n: {{ outputs.p.n }}"},
        ]
        verdict = ['{"winner": 2}'] if mode == "evaluate" else []
        played = play({"cascade_id": "c", "phases": phases}, ['{"n": 1}', '{"n": 2}', *verdict, "done"])
        assert played.texts(-1) == [("user", told)]
