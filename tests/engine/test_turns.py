"""What happens within an attempt: which turns there are, what opens them, when the closing call is made."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.support import Played, call, native, play
from workbench.engine.contracts import Answer, ToolImage, ToolResult, ValidatorVerdict

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40


def cascade(**phase: Any) -> dict[str, Any]:
    return {"cascade_id": "c", "phases": [{"name": "look", "instructions": "Look at it.", **phase}]}


def users(played: Played, of: int = -1) -> list[str]:
    return [text for role, text in played.texts(of) if role == "user"]


def test_a_phase_without_tools_and_one_turn_makes_one_call() -> None:
    played = play(cascade(), ["Done."])
    assert played.outcome.status == "success"
    assert played.outcome.output == "Done."
    assert played.texts() == [("user", "Look at it.")]


def test_a_phase_without_tools_refines_until_its_turns_are_used_up() -> None:
    played = play(cascade(rules={"max_turns": 3}), ["a", "b", "c"])
    assert users(played) == ["Look at it."] + ["Continue/Refine based on previous output."] * 2
    assert played.outcome.output == "c"


def test_turn_prompt_opens_later_turns_and_counts_from_two() -> None:
    rules = {"max_turns": 3, "turn_prompt": "Turn {{ turn }} of {{ max_turns }}"}
    played = play(cascade(rules=rules), ["a", "b", "c"])
    assert users(played) == ["Look at it.", "Turn 2 of 3", "Turn 3 of 3"]


def test_tool_results_ask_for_the_next_turn_by_themselves() -> None:
    played = play(
        cascade(tackle=["search"], rules={"max_turns": 5}),
        [call("search", x="a"), "Found."],
        tools={"search": lambda x: f"hit {x}"},
    )
    assert users(played) == ["Look at it.", "[Tool result: search]\nhit a"]
    assert played.outcome.output == "Found."
    assert len(played.model.requests) == 2


def test_the_last_turn_with_tools_is_followed_by_one_closing_call() -> None:
    played = play(cascade(tackle=["search"]), [call("search"), "Final."], tools={"search": lambda x="": "hit"})
    place = played.model.requests[-1][0]
    assert (place.turn, place.call) == (1, 2)
    assert users(played)[-1].startswith("No more tool calls are possible.")
    assert played.outcome.output == "Final."


def test_a_call_in_the_closing_answer_is_not_run() -> None:
    played = play(
        cascade(tackle=["search"]), [call("search"), "Text\n" + call("search")], tools={"search": lambda x="": "hit"}
    )
    assert len(played.tools.called) == 1
    assert played.outcome.output == "Text"


def test_native_calls_are_answered_in_role_tool_with_their_ids() -> None:
    played = play(
        cascade(tackle=["search"], use_native_tools=True, rules={"max_turns": 3}),
        [native("Let me see", search={"x": "a"}), "Found."],
        tools={"search": lambda x: f"hit {x}"},
    )
    messages = played.model.requests[-1][1].messages
    assert [m.role for m in messages] == ["user", "assistant", "tool"]
    assert messages[1].tool_calls[0].id == messages[2].tool_call_id
    assert messages[2].text == "hit a"
    assert played.model.requests[0][1].tools[0]["function"]["name"] == "search"


def test_a_native_closing_call_keeps_the_tools_and_forbids_their_use() -> None:
    played = play(
        cascade(tackle=["search"], use_native_tools=True),
        [native("", search={}), "End."],
        tools={"search": lambda: "hit"},
    )
    request = played.model.requests[-1][1]
    assert request.tools
    assert request.parameters["tool_choice"] == "none"


def test_a_tool_that_the_phase_does_not_list_is_refused_and_the_run_goes_on() -> None:
    played = play(
        cascade(tackle=["search"], rules={"max_turns": 3}),
        [call("delete_all"), "Fine."],
        tools={"search": lambda x="": "hit", "delete_all": lambda: "gone"},
    )
    assert played.tools.called == []
    assert users(played)[-1] == (
        "[Tool error: delete_all]\ndelete_all is not available in this phase. Available: search."
    )
    assert played.outcome.output == "Fine."


@pytest.mark.fault("F30")
def test_an_unreadable_call_is_answered_with_the_problem() -> None:
    broken = '```json\n{"tool": "search", "arguments": {"x": 1,}}\n```'
    played = play(
        cascade(tackle=["search"], rules={"max_turns": 3}), [broken, "ok"], tools={"search": lambda x="": "h"}
    )
    assert users(played)[-1].startswith("[Tool error: search]\nThe call could not be read: ")


@pytest.mark.fault("F30")
def test_unreadable_native_arguments_are_answered_in_role_tool() -> None:
    from workbench.engine.contracts import NativeCall

    played = play(
        cascade(tackle=["search"], use_native_tools=True, rules={"max_turns": 3}),
        [Answer("", (NativeCall("i1", "search", "{oops"),)), "ok"],
        tools={"search": lambda x="": "h"},
    )
    result = played.model.requests[-1][1].messages[-1]
    assert (result.role, result.tool_call_id) == ("tool", "i1")
    assert "could not be read" in result.text


def test_images_follow_the_results_as_one_user_message() -> None:
    def draw(x: str = "") -> ToolResult:
        return ToolResult("drawn", images=(ToolImage(PNG, "image/png", 4, 4),))

    played = play(cascade(tackle=["draw"], rules={"max_turns": 2}), [call("draw"), "Nice."], tools={"draw": draw})
    last = played.model.requests[-1][1].messages[-1]
    assert last.role == "user"
    assert last.text == "[Images from draw]:"
    assert [image.media_type for image in last.images] == ["image/png"]
    assert played.blobs[last.images[0].digest] == PNG


def test_set_state_keeps_the_json_type_and_later_phases_read_it() -> None:
    document = {
        "cascade_id": "c",
        "phases": [
            {"name": "a", "instructions": "Set.", "tackle": ["set_state"]},
            {"name": "b", "instructions": "Got {{ state.n + 1 }} and {{ outputs.a }}"},
        ],
    }
    played = play(document, {"a": [call("set_state", key="n", value=41), "done"], "b": ["end"]})
    assert played.outcome.state == {"n": 41}
    assert played.texts() == [("user", "Got 42 and done")]


def test_an_early_check_ends_the_turns_when_it_passes() -> None:
    played = play(
        cascade(rules={"max_turns": 4, "loop_until": "long"}),
        ["no", "yes yes"],
        validators={"long": lambda text: ValidatorVerdict(len(text) > 3, "too short")},
    )
    assert played.outcome.output == "yes yes"
    assert users(played)[-1] == "Not accepted yet: too short"
    assert [e.data["valid"] for e in played.of_kind("check_finished")] == [False, True]


def test_a_turn_ward_opens_the_next_turn_with_its_reason() -> None:
    wards = {"turn": [{"validator": "polite", "mode": "retry"}]}
    played = play(
        cascade(rules={"max_turns": 2}, wards=wards),
        ["rude", "kind"],
        validators={"polite": lambda text: ValidatorVerdict(text == "kind", "be kind")},
    )
    assert users(played)[-1] == "be kind"
    assert played.outcome.status == "success"


def test_an_undefined_name_renders_empty_and_is_a_warning_with_its_line() -> None:
    text = "cascade_id: c\nphases:\n  - name: a\n    instructions: |\n      One\n      Two {{ inptu.x }}\n"
    played = play(text, ["done"])
    warning = next(e for e in played.of_kind("warning") if e.data["code"] == "undefined")
    assert warning.data["line"] == 6
    assert played.outcome.status == "success"


def test_no_text_at_all_fails_the_phase() -> None:
    played = play(cascade(tackle=["search"]), [call("search"), call("search")], tools={"search": lambda x="": "hit"})
    assert played.outcome.status == "failed"
    assert "text" in played.outcome.reason


@pytest.mark.parametrize("condition", ["state.nope", "'{{ state.nope }}'", "1 and state.nope"])
def test_an_undefined_name_in_a_condition_is_found_where_it_is_written(condition: str) -> None:
    """With braces or without: the column is the file's."""
    text = f"""\
cascade_id: c
phases:
  - name: a
    instructions: x
  - name: b
    instructions: y
    context:
      from:
        - phase: a
          condition: {condition}
"""
    warning = next(e for e in play(text, ["one", "two"]).of_kind("warning") if e.data["code"] == "undefined")
    assert (warning.data["line"], warning.data["column"]) == (10, text.splitlines()[9].index("state.nope") + 1)


@pytest.mark.parametrize("phase", [{}, {"use_native_tools": True}, {"rules": {"max_turns": 2}}], ids=str)
def test_a_native_call_in_a_phase_without_tools_is_answered_and_named(phase: dict[str, Any]) -> None:
    played = play(cascade(**phase), [native(search={"q": 1})] * 3)
    assert played.outcome.reason == ("no answer had any text: the model called search, and this phase has no tools")
    assert next(event.data["text"] for event in played.of_kind("tool_finished")) == (
        "search is not available in this phase. Available: none."
    )
    assert play(cascade(**phase), [native(search={"q": 1}), "Done."]).outcome.output == "Done."


def test_what_a_silent_model_called_is_set_beside_the_tools_of_the_phase() -> None:
    phase = cascade(tackle=["look"], use_native_tools=True, rules={"max_turns": 1})
    played = play(phase, [native(search={}, look={})] * 2, tools={"look": lambda: "seen"})
    assert played.outcome.reason == "no answer had any text: the model called search, and this phase has only look"


def test_a_native_call_of_the_closing_answer_has_a_result_when_the_answer_is_rejected() -> None:
    phase = cascade(tackle=["look"], use_native_tools=True, rules={"max_attempts": 2, "loop_until": "done"})
    played = play(
        phase,
        [native("a", look={}), native("b", look={}), "Done."],
        tools={"look": lambda: "seen"},
        validators={"done": lambda text: ValidatorVerdict(text == "Done.", "not done")},
    )
    assert played.outcome.output == "Done."
    assert [event.data["text"] for event in played.of_kind("tool_finished")] == [
        "seen",
        "Not run: no more tool calls are possible.",
    ]
    assert [event.kind for event in played.events].count("tool_started") == 1


def test_a_condition_in_inject_from_holds_beside_context_where_the_strategy_reads_it() -> None:
    sources = [{"phase": "a", "condition": condition} for condition in ("{{ input.n > 9 }}", "{{ input.n < 9 }}")]
    own = {"name": "b", "instructions": "Go.", "strategy": "inject", "context": {"from": ["a"]}}
    phases = [{"name": "a", "instructions": "First."}, {**own, "inject_from": sources}]
    played = play({"cascade_id": "c", "phases": phases}, ["one", "two"], input={"n": 1})
    injected = [entry for entry in played.state.calls[1].entries if entry.rule.path.startswith("phases[1].inject_from")]
    assert {entry.rule.path for entry in injected} == {"phases[1].inject_from[1]"}
