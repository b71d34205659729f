"""Questions with forms: what the model sees of the answer, what the journal holds, and what happens without one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.engine.support import Answers, FunctionTools, ListSink, Played, ScriptedModel, StepClock, call, play, ports
from tests.engine.test_replay import check_replay
from workbench.context.place import Place
from workbench.engine.contracts import Question, ToolImage, ToolResult
from workbench.engine.definition import Definition, Options
from workbench.engine.run.run import Run

CHART = b"\x89PNG chart"


def chart(x: str = "") -> ToolResult:
    return ToolResult("chart.png", images=(ToolImage(CHART, "image/png", 40, 20),))


def table(x: str = "") -> str:
    return json.dumps([{"task": "parse", "open": 3}, {"task": "store", "open": 0}])


def asks(*calls: str, answers: Sequence[str] = (), more: Sequence[str] = (), turns: int = 3, **phase: Any) -> Played:
    """A phase whose model makes these calls, and then says ``done``."""
    document = {
        "cascade_id": "c",
        "phases": [
            {
                "name": "p",
                "instructions": "Ask.",
                "tackle": ["ask_human_custom", "ask_human", "chart", "table"],
                "rules": {"max_turns": turns},
                **phase,
            }
        ],
    }
    replies = [*calls, *more, "done"]
    return play(document, replies, input={"what": "it"}, answers=answers, tools={"chart": chart, "table": table})


def custom(**arguments: Any) -> str:
    return call("ask_human_custom", **{"question": "All right?", **arguments})


def form_of(played: Played) -> dict[str, Any]:
    found: dict[str, Any] = played.of_kind("human_asked")[0].data["form"]
    return found


def result(played: Played) -> str:
    return str(played.of_kind("tool_finished")[-1].data["text"])


def test_the_model_sees_values_and_comment_as_json() -> None:
    played = asks(
        custom(options=["ship", "hold"]), answers=['{"values": {"answer": "hold"}, "comment": "not on a Friday"}']
    )
    assert json.loads(result(played)) == {"values": {"answer": "hold"}, "comment": "not on a Friday"}
    assert played.of_kind("human_asked")[0].data["made"]["by"] == "template"


def test_the_last_answer_to_a_form_is_the_state_of_its_phase_as_that_to_a_question_is() -> None:
    given = ['{"values": {"answer": "hold"}}', '{"values": {"answer": "ship"}, "comment": "now"}']
    played = asks(custom(options=["ship", "hold"]), custom(options=["ship", "hold"]), answers=given)
    written = [(event.data["key"], event.data["value"]["values"]["answer"]) for event in played.of_kind("state_set")]
    assert written == [("p", "hold"), ("p", "ship")]
    assert played.state.state["p"] == json.loads(result(played)) == {"values": {"answer": "ship"}, "comment": "now"}
    check_replay(played)


def test_a_question_is_shown_with_the_latest_images_and_the_last_table_of_the_visit() -> None:
    played = asks(call("chart"), call("table"), custom(), answers=["1"], turns=4)
    sections = form_of(played)["sections"]
    assert [section["type"] for section in sections] == ["image", "data_table"]
    assert (sections[0]["width"], sections[0]["size"]) == (40, len(CHART))
    assert json.loads(result(played))["values"] == {"rows": [{"task": "parse", "open": "3"}]}


def test_auto_detect_can_be_switched_off_and_gives_way_to_what_is_given() -> None:
    off = asks(call("chart"), custom(auto_detect=False), answers=["yes"])
    assert [section["type"] for section in form_of(off)["sections"]] == ["input"]
    own = asks(call("chart"), custom(images=["other.png"]), answers=["yes"])
    assert [section.get("path") for section in form_of(own)["sections"]] == ["other.png", None]


SPEC = {"sections": [{"type": "rating", "id": "stars", "required": True}], "layout": "two-column"}


def test_a_model_writes_the_form_where_the_rules_say_that_it_takes_one() -> None:
    played = asks(custom(ui_hint="dashboard"), more=[json.dumps(SPEC)], answers=["4"])
    assert form_of(played)["sections"] == [{"type": "rating", "id": "stars", "required": True}]
    assert played.of_kind("human_asked")[0].data["made"]["by"] == "model"
    assert "## Hints\ndashboard" in played.texts(1)[-1][1]
    assert played.state.visits[0].calls[1].purpose == "form"


def test_a_form_that_cannot_be_used_gives_way_to_the_template_and_says_so() -> None:
    played = asks(custom(ui_hint="dashboard"), more=['{"sections": [{"type": "select", "id": "x"}]}'], answers=["fine"])
    assert [section["type"] for section in form_of(played)["sections"]] == ["input"]
    warning = next(event for event in played.of_kind("warning") if event.data["code"] == "form")
    assert "cannot be used: sections.0.options" in warning.data["message"]
    assert "the model's form" in played.of_kind("human_asked")[0].data["made"]["why"]
    check_replay(played)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"question": " "}, "'question' must be a text"),
        ({"images": "a.png"}, "'images' must be a list"),
        ({"options": "a|b"}, "'options' must be a list"),
        ({"options": [{}]}, "an option needs an id or a label"),
    ],
)
def test_wrong_arguments_are_an_error_that_the_model_sees(arguments: dict[str, Any], reason: str) -> None:
    played = asks(custom(**arguments))
    assert reason in result(played)
    assert played.of_kind("tool_finished")[0].data["is_error"]
    assert played.of_kind("human_asked") == []


def test_an_answer_that_does_not_fit_is_journaled_with_the_reason_and_the_question_stays() -> None:
    played = asks(custom(options=["ship", "hold"]), answers=["later", "hold"])
    refused, taken = played.of_kind("human_answered")
    assert refused.data["refused"] == "answer: choose one of ship, hold"
    assert "refused" not in taken.data
    check_replay(played)


def test_answers_that_never_fit_stop_the_run_and_say_why() -> None:
    played = asks(custom(options=["ship", "hold"]), answers=["a", "b", "c", "d"])
    assert played.outcome.status == "stopped"
    assert "choose one of ship, hold" in played.outcome.reason


def test_nobody_to_ask_stops_the_run_resumable() -> None:
    played = asks(custom(options=["ship", "hold"]))
    assert played.outcome.status == "stopped"
    assert "no one is there" in played.outcome.reason
    assert played.state.questions == [], "a run that is over waits for nobody"


@pytest.mark.parametrize(
    ("hint", "answer", "seen"),
    [
        ("red | green", "green", "green"),
        ("multi: a | b | c", "1,3", "a, c"),
        ("rating:3", "2", "2"),
        ("date", "2026-02-01", "2026-02-01"),
        ("confirmation", "yes", "yes"),
        ("", "whatever", "whatever"),
    ],
)
def test_the_hint_of_ask_human_says_what_sort_of_answer_is_wanted(hint: str, answer: str, seen: str) -> None:
    played = asks(call("ask_human", question="Which?", ui_hint=hint), answers=[answer])
    assert result(played) == seen
    assert played.outcome.state == {played.of_kind("phase_started")[0].place.phase: seen}
    asked = played.of_kind("human_asked")[0].data
    if asked["type"] == "form":
        assert asked["made"] == {"level": "low", "why": f"ui_hint {hint}", "by": "template"}


def test_the_answers_of_earlier_phases_are_read_as_state_of_their_names() -> None:
    """As the language's own example does: a confirmation, then a rating, then a summary of both."""
    asking = {"tackle": ["ask_human"], "rules": {"max_turns": 2}}
    phases = [
        {"name": "explicit_confirmation", "instructions": "Ask.", **asking},
        {"name": "explicit_rating", "instructions": "They said {{ state.explicit_confirmation }}.", **asking},
        {"name": "result", "instructions": "{{ state.explicit_confirmation }} and {{ state.explicit_rating }}"},
    ]
    ask = [call("ask_human", question="Approve?", ui_hint=hint) for hint in ("confirmation", "rating")]
    replies = [ask[0], "1", ask[1], "2", "3"]
    played = play({"cascade_id": "c", "phases": phases}, replies, input={"what": "it"}, answers=["yes", "4"])
    assert played.texts(2)[-1][1].endswith("They said yes.")
    assert played.texts(4) == [("user", "yes and 4")]
    assert played.outcome.state == {"explicit_confirmation": "yes", "explicit_rating": "4"}
    check_replay(played)


def test_an_answer_in_a_candidate_that_loses_is_not_in_the_state() -> None:
    soundings = {"factor": 2, "max_parallel": 1}
    phase = {"name": "p", "instructions": "Ask.", "tackle": ["ask_human"], "soundings": soundings}
    ask = call("ask_human", question="Which?")
    replies = [ask, "a", ask, "b", '{"winner": 1}']
    played = play({"cascade_id": "c", "phases": [phase]}, replies, answers=["red", "green"])
    assert played.outcome.state == {"p": "red"}


class NeverAnswers:
    """A person who is there, and says nothing."""

    async def ask(self, question: Question, place: Place, index: int) -> str:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


def waits(**human_input: Any) -> Played:
    document = {
        "cascade_id": "c",
        "phases": [
            {
                "name": "p",
                "instructions": "P",
                "human_input": {"type": "choice", "options": [{"label": "A"}], **human_input},
            },
            {"name": "q", "instructions": "Q {{ state.human_input.p | default('-') }}"},
            {"name": "late", "instructions": "L"},
        ],
    }
    definition, options = Definition.of(json.dumps(document), "test.yaml"), Options("test", "gpt-4o-mini")
    sink, model = ListSink(), ScriptedModel(["p", "next", "last"])
    outside = ports(model, human=NeverAnswers(), sink=sink)
    outcome = asyncio.run(Run(definition, {"what": "it"}, options, outside).execute())
    clock = outside.clock
    assert isinstance(clock, StepClock)
    return Played(outcome, sink.events, model, FunctionTools(), clock, [], definition, options, sink.blobs)


def test_nobody_who_answers_in_time_fails_the_phase_with_the_time() -> None:
    played = waits(timeout_seconds=90)
    assert (played.outcome.status, played.outcome.reason) == ("failed", "nobody answered within 90 s")
    assert played.clock.slept == [90]
    assert played.of_kind("human_answered")[0].data == {"index": 1, "answer": None, "timed_out": True}


def test_after_a_time_out_the_default_counts_or_nothing_does() -> None:
    assert waits(timeout_seconds=1, on_timeout="default", default_value="A").outcome.state == {
        "human_input": {"p": "A"}
    }
    assert waits(timeout_seconds=1, on_timeout="continue").outcome.state == {}


def test_escalation_goes_to_the_phase_that_it_names() -> None:
    played = waits(timeout_seconds=1, on_timeout="escalate", escalate_to="late")
    route = played.of_kind("route_chosen")[0].data
    assert (route["to"], route["rule"]) == ("late", "escalation")
    check_replay(played)


def test_escalation_to_a_person_asks_once_more_by_name_and_then_fails() -> None:
    played = waits(timeout_seconds=30, on_timeout="escalate", escalate_to="the editor")
    first, second = played.of_kind("human_asked")
    assert "to" not in first.data
    assert second.data["to"] == "the editor"
    assert played.outcome.reason == "nobody answered within 30 s, nor did the editor"


FIELDS = [
    {"name": "team", "type": "radio", "options": ["blue", "green"], "required": True},
    {"name": "days", "type": "int", "label": "Days", "min": 1},
    {"name": "urgent", "type": "checkbox"},
]


def phase_asks(answers: list[str], output: str = "text", **human_input: Any) -> Played:
    document = {"cascade_id": "c", "phases": [{"name": "p", "instructions": "P", "human_input": human_input}]}
    return play(document, [output, "x"], answers=answers)


def test_a_form_of_a_phase_is_made_of_its_fields() -> None:
    played = phase_asks(['{"team": "2", "days": "3", "urgent": true}'], type="form", fields=FIELDS)
    assert played.outcome.state == {"human_input": {"p": {"team": "green", "days": 3, "urgent": True}}}


def test_a_field_that_cannot_be_shown_fails_the_phase_with_its_name() -> None:
    played = phase_asks([], type="form", fields=[{"name": "team", "type": "select"}])
    assert played.outcome.status == "failed"
    assert "options" in played.outcome.reason


def test_why_and_how_sure_are_kept_beside_the_answer() -> None:
    answer = '{"values": {"answer": "yes", "reasoning": "it adds up", "confidence": 4}, "comment": "good"}'
    played = phase_asks([answer], capture_reasoning=True, capture_confidence=True)
    assert played.outcome.state == {
        "human_input": {"p": "yes"},
        "human_notes": {"p": {"reasoning": "it adds up", "confidence": 4, "comment": "good"}},
    }


def test_auto_takes_the_form_that_fits_and_a_model_where_it_is_told_how() -> None:
    plain = phase_asks(["good"], type="auto", prompt="How is it?")
    assert plain.outcome.state == {"human_input": {"p": {"answer": "good"}}}
    document = {
        "cascade_id": "c",
        "phases": [
            {"name": "p", "instructions": "P", "human_input": {"type": "auto", "generator_prompt": "Ask for stars."}}
        ],
    }
    written = play(document, ["text", json.dumps(SPEC)], answers=["5"])
    assert written.outcome.state == {"human_input": {"p": {"stars": 5}}}
    assert "## Instructions\nAsk for stars." in written.texts(1)[-1][1]


def test_a_decision_that_nobody_makes_in_time_fails_the_phase() -> None:
    block = '<decision>{"question": "Which?", "options": [{"id": "a"}]}</decision>'
    document = {
        "cascade_id": "c",
        "phases": [{"name": "p", "instructions": "P", "decision_points": {"timeout_seconds": 5}}],
    }

    class Late(Answers):
        async def ask(self, question: Question, place: Place, index: int) -> str:
            raise TimeoutError

    run = Run(
        Definition.of(json.dumps(document), "test.yaml"),
        {},
        Options("test", "gpt-4o-mini"),
        ports(ScriptedModel([block]), human=Late()),
    )
    outcome = asyncio.run(run.execute())
    assert (outcome.status, outcome.reason) == ("failed", "nobody decided within 5 s")
