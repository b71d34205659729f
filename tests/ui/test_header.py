"""The line above everything: what matters most is there at every width."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from tests.engine.support import play
from tests.ui.support import triage_story
from workbench.engine.definition import Options
from workbench.engine.journal.costs import CostSum
from workbench.engine.journal.state import RunState
from workbench.tui.bench.presenter import Presenter
from workbench.tui.bench.state import BenchState
from workbench.views.cells import Row, Target, target_at
from workbench.views.header import HeaderState, header, run_label, totals, waiting
from workbench.views.numbers import spent_cell

FACTS = HeaderState(
    cascade="log_triage", file="log_triage.yaml", saved="14:02:11", model="offline as openai/gpt-4.1-mini"
)


def text(facts: HeaderState, width: int, run: RunState | None = None) -> str:
    return Row(header(run, facts, width)).text


@pytest.mark.parametrize("width", [1, 12, 40, 60, 80, 100, 120, 200])
def test_it_is_never_wider_than_the_screen(width: int) -> None:
    run = RunState.of(triage_story().events)
    for facts in (
        FACTS,
        HeaderState(errors=3, held="before call"),
        HeaderState(question=True, waiting="provider 34 s"),
    ):
        assert cell_len(text(facts, width, run)) <= width


def test_it_says_that_calls_are_answered_offline_even_on_a_narrow_screen() -> None:
    run = RunState.of(triage_story().events)
    line = text(replace(FACTS, held="before call"), 80, run)
    assert "PAUSED before call" in line
    assert "offline" in line
    assert "3 calls" in line


@pytest.mark.parametrize(
    ("width", "words"),
    [(40, "PAUSED after agent:2, waits 118 s"), (80, "PAUSED after agent:2, client waits 118 s of 600 s")],
)
def test_how_long_a_client_waits_is_never_cut(width: int, words: str) -> None:
    facts = replace(FACTS, held="after agent:2", waits="118 s of 600 s")
    line = text(facts, width, RunState.of(triage_story().events))
    assert f" {words} " in line


@pytest.mark.parametrize("width", [60, 66, 72, 80])
@pytest.mark.parametrize("state", [{"held": "before call"}, {"held": "after evaluation"}, {"question": True}, {}])
def test_offline_and_the_cost_stay_while_a_run_is_held_on_a_narrow_screen(width: int, state: dict[str, Any]) -> None:
    line = text(replace(FACTS, **state), width, RunState.of(triage_story().events))
    assert "offline" in line
    assert "$0.0048" in line


@pytest.mark.parametrize("width", [60, 66, 72, 80])
def test_offline_stays_beside_a_long_name_of_a_held_run(width: int) -> None:
    run = RunState.of(triage_story().events)
    run.session_id = "the_longest_session_of_this_night"
    line = text(replace(FACTS, held="before search_files"), width, run)
    assert "offline" in line
    assert "$0.0048" in line


@pytest.mark.parametrize("held", ["before call", "before investigate_the_failing_tests:9", "after evaluation"])
@pytest.mark.parametrize("errors", [0, 2])
def test_the_calls_stay_beside_a_long_state_and_a_long_name_at_80_columns(held: str, errors: int) -> None:
    run = RunState.of(triage_story().events)
    line = text(replace(FACTS, cascade="the_longest_cascade_of_this_night", held=held, errors=errors), 80, run)
    assert f"PAUSED {held}" in line
    assert "3 calls" in line
    assert "$0.0048" in line


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_why_a_run_failed_is_said_as_far_as_there_is_room(width: int) -> None:
    run = RunState.of(triage_story().events)
    run.status, run.reason = "failed", "unscripted: no reply is scripted for phase 'review'"
    assert "FAILED: unscripted" in text(FACTS, width, run)
    assert "$0.0048" in text(FACTS, width, run)
    run.reason = "context length: the provider answered 400: it takes 8,192 tokens, not 9,000"
    assert (run.reason in text(FACTS, width, run)) == (width >= 200), "it is cut beside empty cells"
    run.reason = f"context length: http://localhost:40000/v1 answered 400: {'it takes 8,192 tokens, not 9,000. ' * 4}"
    assert "FAILED: context length: it ta" in text(FACTS, width, run), "who answered takes the room of what is wrong"
    assert "saved" not in text(FACTS, 120, run), "the time of saving has the room that the reason needs"
    run.status, run.reason = "success", "some words"
    assert "some words" not in text(FACTS, width, run)


def test_a_broken_file_is_told_about_before_the_model_and_the_time_of_saving() -> None:
    run = RunState.of(triage_story().events)
    facts = replace(FACTS, errors=2, held="before call")
    assert "✗ 2 errors in the file; the last good version stays" in text(facts, 160, run)
    assert "✗ 2 errors in the file" in text(facts, 100, run)


def test_a_changed_file_is_marked() -> None:
    assert "● saved 14:02:11" in text(replace(FACTS, changed=True), 120)


def test_costs_that_are_not_known_are_said_to_be_missing() -> None:
    story = triage_story()
    place = story.events[-1].place
    known = RunState.of(story.events)
    assert Row(totals(known)).text == "3 calls  in 1,991  out 145  $0.0048"
    story.answer(place, "done", cost=None)
    run = RunState.of(story.events)
    assert Row(totals(run)).text == "4 calls  in 2,593  out 150  ≥~$0.0051", (
        "the input predicted, where no bill is known"
    )
    run = RunState.of(story.events)
    run.calls[-1].forecast = None
    assert Row(totals(run)).text.endswith("≥~$0.0048")
    known = RunState.of(story.events[:-1])
    known.embedded.append({"keys": ["a"], "cost": 0.5})
    assert Row(totals(known)).text.endswith("$0.5048")
    known = RunState.of(story.events[:-1])
    known.embedded += [{"keys": ["a"], "cost": 0.5}, {"keys": ["b"], "cost": None}]
    assert Row(totals(known)).text.endswith("≥~$0.0048")
    took = known.own.spent
    assert (spent_cell(took, 2), spent_cell(CostSum(), 1)) == (spent_cell(took), ""), "said once"
    whole = RunState.of(story.events[:-1]).own.spent
    assert (spent_cell(whole), spent_cell(whole, 1)) == ("$0.0048", "≥$0.0048"), "a run inside is not in it"


def test_a_run_is_named_by_its_session_without_the_name_of_the_cascade() -> None:
    run = RunState.of(triage_story().events)
    assert run_label(run) == "7f3a"
    run.session_id = "mine"
    assert run_label(run) == "mine"
    run.session_id = ""
    assert run_label(run) == run.run_id[-4:]


def test_what_is_waited_for_counts_retries_not_tries() -> None:
    assert [waiting(0.4, 1), waiting(34.2, 1), waiting(34.2, 3), waiting(34.2, 3, 4.2)] == [
        "",
        "provider 34 s",
        "provider 34 s, retry 2",
        "retry 2 in 4 s",
    ]


def test_what_names_a_file_a_run_a_model_or_a_cost_does_what_its_key_does() -> None:
    run = RunState.of(triage_story(finished=True).events)
    facts = replace(FACTS, base_url="http://localhost:8080", errors=2)
    for width in (80, 120, 200):
        spans = header(run, facts, width)
        shown = Row(spans).text
        for words, command in (
            ("log_triage", "view.edit"),
            ("2 errors", "tab.problems"),
            ("7f3a", "app.runs"),
            ("offline", "app.settings"),
            ("$", "app.runs"),
        ):
            if (at := shown.find(words)) >= 0:
                target = target_at(spans, at)
                assert target is not None, words
                assert target.command == command
        assert target_at(spans, 0) is None, "the rest is not a target"
    (badge,) = [text for text, token in header(run, replace(FACTS, question=True), 120) if token == "waiting-badge"]
    assert isinstance(badge, Target)
    assert badge.command == "run.answer"


def test_it_names_the_model_of_the_run_that_is_shown_and_not_that_of_the_next_one() -> None:
    state = BenchState()
    presenter = Presenter(state, model="acme/next")
    assert "acme/next" in Row(presenter.header(200)).text
    cascade = {"cascade_id": "c", "phases": [{"name": "p", "instructions": "Go."}]}
    state.show_stored(play(cascade, ["Gone."], options=Options("s", "acme/first")).events)
    assert "acme/first" in Row(presenter.header(200)).text
    cascade["phases"] = [{"name": "p", "instructions": "Go.", "model": "acme/own"}]
    state.show_stored(play(cascade, ["Gone."], options=Options("s", "acme/first")).events)
    assert "model acme/own " in Row(presenter.header(200)).text, "a default that no phase asks"
