"""Where a run asks a person, and what the answers do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.engine.support import Played, call, play
from tests.engine.test_replay import check_replay


def cascade(**phase: Any) -> dict[str, Any]:
    return {
        "cascade_id": "c",
        "phases": [
            {"name": "p", "instructions": "Do {{ input.what }}.", **phase},
            {"name": "q", "instructions": "{{ state.human_input.p | default('-') }}"},
            {"name": "r", "instructions": "R"},
        ],
    }


def phases(played: Played) -> list[str]:
    return [event.place.phase for event in played.of_kind("phase_started")]


def ask(replies: list[str], answers: list[str], **phase: Any) -> Played:
    return play(cascade(**phase), list(replies), input={"what": "it"}, answers=answers)


def test_an_answer_goes_into_the_state() -> None:
    played = ask(["text", "q", "r"], ["B"], human_input={"type": "choice", "options": [{"label": "A"}, {"label": "B"}]})
    assert played.outcome.state == {"human_input": {"p": "B"}}
    assert played.of_kind("human_asked")[0].data["context"] == "text"


def test_no_to_a_confirmation_fails_the_phase_with_the_comment() -> None:
    played = ask(["text"], ["no, too long"], human_input=True)
    assert played.outcome.status == "failed"
    assert "too long" in played.outcome.reason


def test_a_false_condition_asks_nobody() -> None:
    played = ask(["text", "q", "r"], [], human_input={"condition": "{{ state.unsure }}"})
    assert played.outcome.status == "success"
    assert played.of_kind("human_asked") == []


def test_nobody_to_ask_stops_the_run_resumable() -> None:
    assert ask(["text"], [], human_input=True).outcome.status == "stopped"


def test_a_prepared_answer_that_does_not_fit_is_the_reason_and_not_that_nobody_is_there() -> None:
    played = ask(["text"], ["9"], human_input={"type": "rating"})
    assert played.outcome.status == "stopped"
    assert played.outcome.reason.startswith("no answer fits the question")
    assert played.of_kind("human_answered")[0].data["refused"] in played.outcome.reason


def test_a_rating_becomes_a_number() -> None:
    played = ask(["text", "q", "r"], ["4"], human_input={"type": "rating"})
    assert played.outcome.state == {"human_input": {"p": 4}}


DECISION = (
    'Found two.\n<decision>{"question": "Which?", "options": [{"id": "a", "label": "First"}, {"id": "b"}]}</decision>'
)


def test_a_decision_block_asks_and_routes_and_leaves_the_output() -> None:
    played = ask([DECISION, "r"], ["First"], decision_points={"routing": {"a": "r"}})
    assert phases(played) == ["p", "r"]
    assert played.state.outputs["p"] == "Found two."
    chosen = {"choice": "a", "label": "First", "question": "Which?", "custom_text": ""}
    assert played.outcome.state == {"_decision_p": chosen}


@pytest.mark.parametrize(
    ("action", "then"),
    [
        ("r", ["p", "r"]),
        ({"to": "r", "inject": "Mind {{ this }}."}, ["p", "r"]),
        ("_continue", ["p", "q", "r"]),
        ("nowhere", ["p", "q", "r"]),
    ],
)
def test_an_option_may_name_its_own_action(action: object, then: list[str]) -> None:
    block = {"question": "Which?", "options": [{"id": "a", "action": action}, {"id": "b"}]}
    played = ask([f"<decision>{json.dumps(block)}</decision>", *then[1:]], ["a"], decision_points={})
    assert phases(played) == then
    warned = [one.data["message"] for one in played.of_kind("warning") if "names no phase" in one.data["message"]]
    assert len(warned) == (action == "nowhere")
    assert ("Mind {{ this }}." in str(played.texts())) == isinstance(action, dict)


def test_an_option_may_fail_the_phase_by_its_action() -> None:
    block = {"question": "Which?", "options": [{"id": "a", "label": "Stop", "action": {"fail": True}}]}
    played = ask([f"<decision>{json.dumps(block)}</decision>"], ["a"], decision_points={"routing": {"a": "r"}})
    assert played.outcome.status == "failed"


def test_self_makes_another_attempt_with_the_injected_message() -> None:
    routing = {"b": {"to": "self", "inject": "Take b."}}
    played = ask([DECISION, "Took b.", "q", "r"], ["b"], decision_points={"routing": routing})
    assert played.state.outputs["p"] == "Took b."
    assert ("user", "Take b.") in played.texts(1)


def test_what_a_decision_injects_is_seen_by_the_phase_that_it_leads_to() -> None:
    played = ask(
        [DECISION, "r"], ["a"], decision_points={"routing": {"a": {"to": "r", "inject": "Mind {{ input.what }}."}}}
    )
    assert [text for _, text in played.texts()] == ["R", "[User injection]:\nMind it."]


def test_a_decision_without_text_fallback_takes_nothing_but_its_options() -> None:
    rule = {"ui": {"allow_text_fallback": False, "max_options": 2}, "routing": {"b": "r"}}
    played = ask([DECISION, "r"], ["something else", "2"], decision_points=rule)
    first, second = played.of_kind("human_answered")
    assert "choose one of a, b" in first.data["refused"]
    assert "refused" not in second.data
    assert played.of_kind("human_asked")[0].data["form"]["sections"][0]["type"] == "card_grid"
    assert phases(played) == ["p", "r"]


@pytest.mark.parametrize(("answer", "choice"), [("2", "b"), ("First", "a"), ("a", "a"), ("neither", "custom")])
def test_what_a_decision_is_about_and_what_its_options_mean_is_shown(answer: str, choice: str) -> None:
    options = [{"id": "a", "label": "First", "description": "It came first."}, {"id": "b", "label": "Second"}]
    block = {"question": "Which?", "context": "Both are right.", "options": options}
    played = ask([f"Found.<decision>{json.dumps(block)}</decision>", "q", "r"], [answer], decision_points={})
    asked = played.of_kind("human_asked")[0].data
    assert asked["context"] == "Found.\n\nBoth are right."
    (section,) = asked["form"]["sections"]
    assert [one.get("description", "") for one in section["options"]] == ["It came first.", ""]
    assert section["other"] is True
    decided = played.outcome.state["_decision_p"]
    assert (decided["choice"], decided["custom_text"]) == (choice, answer if choice == "custom" else "")


def test_options_may_be_plain_texts_and_a_layout_of_their_own_still_lets_a_person_type() -> None:
    block = '<decision>{"question": "Which?", "options": ["a", "b", 3]}</decision>'
    played = ask([block, "q", "r"], ["neither"], decision_points={"ui": {"layout": "list", "present_output": False}})
    asked = played.of_kind("human_asked")[0].data
    assert (asked["options"], asked["context"]) == (["a", "b"], "")
    typed = {"choice": "custom", "label": "", "question": "Which?", "custom_text": "neither"}
    assert played.outcome.state == {"_decision_p": typed}


def test_after_a_failure_a_decision_may_name_the_phase_that_follows() -> None:
    rule = {"trigger": "error", "on_error_prompt": "Broke: {{ error }}", "routing": {"_continue": "r"}}
    played = ask(["no json", "r"], ["continue"], output_schema={"type": "object"}, decision_points=rule)
    assert played.of_kind("human_asked")[0].data["question"] == "Broke: at $: the answer holds no JSON"
    assert (phases(played), played.of_kind("route_chosen")[0].data["rule"]) == (["p", "r"], "decision")


def test_when_all_candidates_failed_a_person_may_have_one_more_attempt_with_the_task() -> None:
    rule = {"trigger": "error", "routing": {"_retry": {"to": "self", "inject": "JSON, please."}}}
    phase = {"output_schema": {"type": "object"}, "soundings": {"factor": 2}, "decision_points": rule}
    played = ask(["no", "no", "{}", "q", "r"], ["retry"], **phase)
    assert played.outcome.status == "success"
    assert played.texts(2) == [("user", "Do it."), ("user", "JSON, please.")]


def test_after_a_failure_a_person_may_retry() -> None:
    played = ask(
        ["no json", '{"a": 1}', "q", "r"],
        ["retry"],
        output_schema={"type": "object"},
        decision_points={"trigger": "error"},
    )
    assert played.state.outputs["p"] == '{"a": 1}'


def test_answers_replay_without_anybody() -> None:
    played = ask([DECISION, "r"], ["First"], decision_points={"routing": {"a": "r"}})
    check_replay(played)


def test_the_quartermaster_picks_from_all_tools_and_enters_no_context() -> None:
    document = {"cascade_id": "c", "phases": [{"name": "p", "instructions": "Find.", "tackle": "manifest"}]}
    choice = json.dumps({"tools": ["search", "nope"], "reason": "to find"})
    played = play(
        document, [choice, call("search"), "done"], tools={"search": lambda x="": "hit", "other": lambda x="": "no"}
    )
    assert played.outcome.status == "success", played.outcome.reason
    assert played.of_kind("tools_chosen")[0].data["tools"] == ["search"]
    assert "- other (function): The tool other." in played.texts(0)[-1][1]
    system = played.texts(1)[0][1]
    assert "**search**" in system
    assert "**other**" not in system
    assert any("'nope'" in event.data["message"] for event in played.of_kind("warning"))


def test_a_quartermaster_that_cannot_be_read_twice_leaves_the_phase_without_tools() -> None:
    document = {"cascade_id": "c", "phases": [{"name": "p", "instructions": "Find.", "tackle": "manifest"}]}
    played = play(document, ["hm", "hm", "done"], tools={"search": lambda x="": "hit"})
    assert played.outcome.output == "done"
    assert any(event.data["code"] == "manifest" for event in played.of_kind("warning"))
