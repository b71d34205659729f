"""The rules of candidates one by one, and what the fold tells of a contest."""

from __future__ import annotations

import asyncio
import inspect
import json
from typing import Any

import pytest

from tests.engine.contest_cases import PricedModel, many_contests
from tests.engine.support import FlatPrices, ListSink, Played, ScriptedModel, call, play, ports
from tests.engine.test_children import TOOL, Shelf
from tests.engine.test_replay import check_replay, replayed
from tests.engine.test_soundings import cascade, evaluation, fleet, verdict
from tests.support.equal_runs import comparable
from workbench.analysis.ranking import RankedCandidate, evaluator_calls, question_of, ranked_candidates
from workbench.context.assembly import Request
from workbench.context.place import Place
from workbench.engine.candidates.candidates import Candidate, gather
from workbench.engine.candidates.human_choice import read_pick
from workbench.engine.candidates.trade_off import Scored, best_by_weight, with_known_costs
from workbench.engine.contracts import Answer, Question, ValidatorVerdict
from workbench.engine.definition import Definition, Options
from workbench.engine.journal.state import RunState
from workbench.engine.journal.usage import Usage
from workbench.engine.run.run import Run
from workbench.views.candidates import why_text

INPUT = {"what": "it"}


def costing(text: str, cost: float | None) -> Answer:
    return Answer(text, usage=Usage(input=100, output=10), cost=cost)


def rows(played: Played, of: int = 0, contest: int = 0) -> tuple[RankedCandidate, ...]:
    found = played.state.contests.all[contest]
    return ranked_candidates(played.state, found, found.rounds[of])


def sounded(soundings: dict[str, Any], replies: list[Any], **more: Any) -> Played:
    """A phase with candidates one after the other, and a phase that follows."""
    return play(cascade({"max_parallel": 1, **soundings}), replies, **{"input": INPUT, **more})


# -- cost against quality --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("normalization", ["min_max", "z_score", "log_scale"])
def test_a_little_worse_and_much_cheaper_wins_under_every_normalisation(normalization: str) -> None:
    rule = {"cost_normalization": normalization}
    replies = [costing("dear", 0.2), costing("cheap", 0.001), verdict(1, n1=92, n2=85), "end"]
    played = sounded({"factor": 2, "cost_aware_evaluation": rule}, replies)
    assert played.state.outputs["p"] == "cheap"
    found = evaluation(played)
    assert (found["winner"], found["evaluator_pick"], found["decided_by"]) == (1, 0, "quality and cost")
    assert found["costs"] == {"0": 0.2, "1": 0.001}


@pytest.mark.parametrize(("normalization", "index"), [("min_max", 1), ("log_scale", 0), ("z_score", 1)])
def test_the_normalisations_spread_costs_as_the_language_says(normalization: str, index: int) -> None:
    """By hand, q - c: min_max .60 .61 -.10; log_scale .60 .48 -.10; z_score .30 .35 .05."""
    scored = [Scored(0, 60, 1.0), Scored(1, 70, 2.0), Scored(2, 90, 12.0)]
    assert best_by_weight(scored, 1.0, 1.0, normalization).index == index


def test_equal_costs_leave_quality_to_decide() -> None:
    scored = [Scored(0, 60, 1.0), Scored(1, 61, 1.0)]
    for normalization in ("min_max", "z_score", "log_scale"):
        assert best_by_weight(scored, 0.1, 0.9, normalization).index == 1


def test_an_unknown_price_counts_as_the_mean_of_the_known_and_is_marked() -> None:
    assert with_known_costs({0: 1, 1: 1, 2: 1}, {0: 0.1, 1: None, 2: 0.3})[1] == Scored(1, 1, 0.2, assumed=True)
    replies = [costing("a", 0.1), costing("b", None), costing("c", 0.3), verdict(1, n1=50, n2=60, n3=50), "end"]
    played = sounded({"factor": 3, "cost_aware_evaluation": {}}, replies)
    assert evaluation(played)["assumed_costs"] == [1]
    assert [row.assumed_cost for row in rows(played)] == [None, pytest.approx(0.2), None]


def test_where_no_price_is_known_quality_decides_and_the_run_says_so() -> None:
    played = sounded({"factor": 2, "cost_aware_evaluation": {}}, ["a", "b", verdict(1, n1=5, n2=9), "end"])
    assert played.state.outputs["p"] == "b"
    assert evaluation(played)["decided_by"] == "quality"
    assert "L713" in [event.data["code"] for event in played.of_kind("warning")]


def test_costs_are_shown_to_the_evaluator_only_where_the_file_lets_them() -> None:
    for shown in (True, False):
        rule = {"show_costs_to_evaluator": shown}
        replies = [costing("a", 0.1), costing("b", None), verdict(1, n1=5, n2=9), "end"]
        played = sounded({"factor": 2, "cost_aware_evaluation": rule}, replies)
        request = played.model.requests[2][1].messages[1].text
        assert ("Cost: $0.100000" in request) is shown
        assert ("Cost: unknown" in request) is shown


def test_missing_scores_are_asked_for_once_and_then_assumed() -> None:
    replies = [costing("a", 0.1), costing("b", 0.2), verdict(2), verdict(2, n1=40), "end"]
    played = sounded({"factor": 2, "cost_aware_evaluation": {}}, replies)
    found = evaluation(played)
    assert (found["scores"], found["assumed_scores"]) == ({"0": 40.0, "1": 100.0}, [1])
    assert [row.assumed_score for row in rows(played)] == [False, True]


@pytest.mark.parametrize(
    ("policy", "output"), [("prefer_cheap", "cheap"), ("prefer_quality", "dear"), ("balanced", "cheap")]
)
def test_a_pareto_policy_picks_from_the_frontier(policy: str, output: str) -> None:
    replies = [costing("cheap", 0.001), costing("beaten", 0.09), costing("dear", 0.09), verdict(3, n1=60, n2=70, n3=95)]
    played = sounded({"factor": 3, "pareto_frontier": {"enabled": True, "policy": policy}}, [*replies, "end"])
    assert played.state.outputs["p"] == output
    assert evaluation(played)["frontier"] == [0, 2]
    assert [row.on_front for row in rows(played)] == [True, False, True]


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ({}, ([0, 2], {"1": 2})),
        ({"include_dominated": False}, ([0, 2], None)),
        ({"show_frontier": False}, ([], None)),
    ],
)
def test_the_frontier_and_who_is_beaten_are_journaled_as_far_as_the_file_asks(rule: Any, found: Any) -> None:
    replies = [costing("cheap", 0.001), costing("beaten", 0.09), costing("dear", 0.09), verdict(3, n1=60, n2=70, n3=95)]
    pareto = {"enabled": True, "policy": "prefer_cheap", **rule}
    played = sounded({"factor": 3, "pareto_frontier": pareto}, [*replies, "end"])
    assert (evaluation(played)["frontier"], evaluation(played).get("dominated")) == found
    assert played.state.outputs["p"] == "cheap"


def test_a_validators_score_can_be_the_quality_and_is_journaled() -> None:
    rule = {"enabled": True, "policy": "prefer_quality", "quality_metric": "validator:long"}
    replies = [costing("aaaa", 0.1), costing("bb", 0.1), verdict(2, n1=1, n2=99), "end"]
    validators = {"long": lambda text: ValidatorVerdict(True, "", float(len(text)))}
    played = sounded({"factor": 2, "pareto_frontier": rule}, replies, validators=validators)
    assert played.state.outputs["p"] == "aaaa"
    assert evaluation(played)["qualities"] == {"0": 4.0, "1": 2.0}
    judged = [event.data for event in played.of_kind("check_finished") if event.data["check"] == "quality"]
    assert [data["score"] for data in judged] == [4.0, 2.0]


def test_a_person_picks_from_the_frontier_and_balanced_stands_in_for_nobody() -> None:
    rule = {"enabled": True, "policy": "interactive"}
    replies = [costing("cheap", 0.001), costing("beaten", 0.09), costing("dear", 0.09), verdict(3, n1=60, n2=70, n3=95)]
    played = sounded({"factor": 3, "pareto_frontier": rule}, [*replies, "end"], answers=["2: worth it"])
    assert played.state.outputs["p"] == "dear"
    found = evaluation(played)
    assert (found["decided_by"], found["reason"]) == ("a person, from the frontier", "worth it")
    assert found["evaluator_reason"] == "because"
    why = why_text(played.state.contests.all[0].rounds[0], rows(played))
    assert why == 's2 wins: "worth it" (a person, from the frontier; the evaluator said "because")'
    assert played.of_kind("human_asked")[0].data["candidates"] == [0, 2]
    asked = next(i for i, event in enumerate(played.events) if event.kind == "human_asked") + 1
    seen = RunState.of(played.events[:asked])
    contest = seen.contests.all[0]
    shown = ranked_candidates(seen, contest, contest.rounds[0])
    assert [row.score for row in shown] == [60.0, 70.0, 95.0], "the person sees what the evaluator said"
    assert [row.on_front for row in shown] == [True, False, True]
    assert not any(row.won for row in shown)
    alone = sounded({"factor": 3, "pareto_frontier": rule}, [*replies, "end"])
    assert alone.state.outputs["p"] == "cheap"
    assert "pareto" in [event.data["code"] for event in alone.of_kind("warning")]
    assert alone.state.questions == [], "nobody is asked any more"
    assert replayed(alone)[1] == "success"


# -- models ----------------------------------------------------------------------------------------------------------


def test_drawn_models_come_through_the_random_port_and_replay() -> None:
    soundings = {"factor": 4, "models": ["gpt-4o", "gpt-4o-mini"], "model_strategy": "random"}
    played = sounded(soundings, ["1", "2", "3", "4", verdict(1), "end"])
    draws = [(index * 0.37) % 1 for index in range(4)]
    expected = ["gpt-4o" if draw < 0.5 else "gpt-4o-mini" for draw in draws]
    assert [request.model for _, request in played.model.requests[:4]] == expected
    assert [row.model for row in rows(played)] == expected
    check_replay(played)


def test_weights_are_shares_of_the_draw() -> None:
    models = {"gpt-4o": {"factor": 1}, "gpt-4o-mini": {"factor": 9, "temperature": 0.3}}
    soundings = {"factor": 3, "models": models, "model_strategy": "weighted"}
    played = sounded(soundings, ["1", "2", "3", verdict(1), "end"])
    requests = [request for _, request in played.model.requests[:3]]
    assert [request.model for request in requests] == ["gpt-4o", "gpt-4o-mini", "gpt-4o-mini"]
    assert [request.parameters.get("temperature") for request in requests] == [None, 0.3, 0.3]


# -- people ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "mode", "winner", "reason"),
    [
        ("2", "pick_one", 1, ""),
        ("attempt 3 – shorter", "pick_one", 2, "shorter"),
        ("3, 1, 2", "rank_all", 2, "ranked 3, 1, 2"),
        ("40 90 90", "rate_each", 1, "rated 40 90 90"),
    ],
)
def test_an_answer_names_an_attempt(answer: str, mode: str, winner: int, reason: str) -> None:
    found = read_pick(answer, range(3), mode)
    assert found is not None
    assert (found.winner, found.reason) == (winner, reason)


@pytest.mark.parametrize(
    ("answer", "mode"), [("4", "pick_one"), ("best", "pick_one"), ("1, 1, 2", "rank_all"), ("40 190 9", "rate_each")]
)
def test_an_answer_that_names_none_is_asked_for_again_and_then_the_first_wins(answer: str, mode: str) -> None:
    assert read_pick(answer, range(3), mode) is None
    soundings = {"factor": 3, "evaluator": "human", "human_eval": {"selection_mode": mode}}
    played = sounded(soundings, ["one", "two", "three", "end"], answers=[answer, answer])
    assert played.state.outputs["p"] == "one"
    assert len(played.of_kind("human_asked")) == 2
    found = evaluation(played)
    assert (found["decided"], found["decided_by"]) == (False, "fallback: the first candidate")
    assert found["reason"] == f"'{answer}' names no candidate"
    assert "evaluator" in [event.data["code"] for event in played.of_kind("warning")]


def test_a_tournament_asks_pair_by_pair() -> None:
    soundings = {"factor": 3, "evaluator": "human", "human_eval": {"selection_mode": "tournament"}}
    played = sounded(soundings, ["one", "two", "three", "end"], answers=["2", "3"])
    assert [event.data["candidates"] for event in played.of_kind("human_asked")] == [[0, 1], [1, 2]]
    assert played.state.outputs["p"] == "three"


def test_a_tie_goes_to_the_lowest_and_a_reason_is_asked_for_where_it_must_be() -> None:
    rule = {"allow_tie": True, "require_reasoning": True}
    soundings = {"factor": 2, "evaluator": "human", "human_eval": rule}
    played = sounded(soundings, ["one", "two", "end"], answers=["tie"])
    assert played.state.outputs["p"] == "one"
    assert (evaluation(played)["decided"], evaluation(played)["reason"]) == (False, "tie")
    played = sounded(soundings, ["one", "two", "end"], answers=["2", "It is shorter."])
    assert evaluation(played)["reason"] == "It is shorter."


def test_in_a_hybrid_the_model_keeps_the_best_and_a_person_picks() -> None:
    soundings = {
        "factor": 4,
        "evaluator": "hybrid",
        "llm_prefilter": 2,
        "llm_prefilter_instructions": "Keep what is short.",
    }
    replies = ["one", "two", "three", "four", verdict(1, n1=90, n2=10, n3=80, n4=20), "end"]
    played = sounded(soundings, replies, answers=["Attempt 2"])
    assert "Keep what is short." in played.model.requests[4][1].messages[1].text
    assert played.of_kind("human_asked")[0].data["candidates"] == [0, 2]
    assert played.state.outputs["p"] == "three"
    assert evaluation(played)["scores"] == {"0": 90.0, "1": 10.0, "2": 80.0, "3": 20.0}


@pytest.mark.parametrize(
    ("answers", "tied", "output"),
    [
        (["tie", "1"], True, "one"),
        (["tie", "3"], False, "three"),
        (["2", "tie"], True, "two"),
        (["2", "3"], False, "three"),
    ],
)
def test_a_tie_in_a_tournament_counts_where_what_was_taken_for_the_better_wins(
    answers: list[str], tied: bool, output: str
) -> None:
    rule = {"selection_mode": "tournament", "allow_tie": True}
    soundings = {"factor": 3, "evaluator": "human", "human_eval": rule}
    played = sounded(soundings, ["one", "two", "three", "end"], answers=answers)
    assert (played.state.outputs["p"], evaluation(played)["decided"]) == (output, not tied)


def test_where_a_person_names_no_attempt_the_evaluators_choice_stands() -> None:
    soundings = {"factor": 3, "evaluator": "hybrid", "llm_prefilter": 2}
    replies = ["one", "two", "three", verdict(3, n1=10, n2=60, n3=90), "end"]
    played = sounded(soundings, replies, answers=["7", "none"])
    found = evaluation(played)
    assert (played.state.outputs["p"], found["winner"], found["decided"]) == ("three", 2, True)
    assert found["decided_by"] == "evaluator, because a person named no candidate: 'none' names no candidate"


@pytest.mark.parametrize("factor", [2, 3])
def test_a_person_is_offered_all_where_the_evaluator_gave_nothing_to_filter_by(factor: int) -> None:
    soundings = {"factor": factor, "evaluator": "hybrid", "llm_prefilter": 1}
    replies = [*["one", "two", "three"][:factor], "hm", "hm", "end"]
    played = sounded(soundings, replies, answers=[f"{factor}: best"])
    assert played.of_kind("human_asked")[0].data["candidates"] == list(range(factor))
    found = evaluation(played)
    assert (found["winner"], found["decided"], found["decided_by"]) == (factor - 1, True, "a person")
    assert (found["evaluator_pick"], found["scores"]) == (None, {})


@pytest.mark.parametrize(
    "soundings",
    [
        {},
        {"cost_aware_evaluation": {}},
        {"pareto_frontier": {"enabled": True, "policy": "prefer_cheap"}},
        {"pareto_frontier": {"enabled": True, "policy": "interactive"}},
        {"evaluator": "human", "human_eval": {"timeout_seconds": 5}},
    ],
)
def test_where_nobody_judged_nothing_is_weighed_and_the_record_says_so(soundings: dict[str, Any]) -> None:
    replies = [costing("dear", 0.7), costing("cheap", 0.001), "hm", "still hm", "end"]
    human = Absent() if soundings.get("evaluator") == "human" else None
    played = sounded({"factor": 2, **soundings}, replies, human=human)
    found = evaluation(played)
    assert (played.state.outputs["p"], found["decided"], found["evaluator_pick"]) == ("dear", False, None)
    assert (found["scores"], found["frontier"]) == ({}, [])
    assert "could not be used" in found["reason"]
    assert not played.state.contests.all[0].rounds[0].decided
    assert "stands, undecided" in why_text(played.state.contests.all[0].rounds[0], rows(played))
    assert replayed(played)[1] == "success"


def test_each_step_of_reforge_draws_for_itself() -> None:
    rule = {"timeout_seconds": 5, "on_timeout": "random"}
    reforge = {"steps": 1, "factor_per_step": 2, "honing_prompt": "Shorter."}
    definition = cascade({"max_parallel": 1, "factor": 2, "evaluator": "human", "human_eval": rule, "reforge": reforge})
    played = play(definition, ["one", "two", "three", "four", "end"], input=INPUT, human=Absent(), random=Lots())
    assert [event.data["winner"] for event in played.of_kind("evaluation_finished")] == [0, 1001]
    check_replay(played)


class Lots:
    """Draws another number each time."""

    def __init__(self) -> None:
        self.draws = [0.1, 0.9]

    def uniform(self) -> float:
        return 0.5

    def draw(self, place: Any, index: int) -> float:
        return self.draws.pop(0)


class Absent:
    """A person who never answers."""

    async def ask(self, question: Question, place: Any, index: int) -> str:
        raise TimeoutError


@pytest.mark.parametrize(
    ("on_timeout", "output", "decided"),
    [("first", "one", "first"), ("random", "three", "random"), ("llm_fallback", "two", "llm_fallback")],
)
def test_when_nobody_chooses_in_time_the_file_says_who_does(on_timeout: str, output: str, decided: str) -> None:
    rule = {"timeout_seconds": 5, "on_timeout": on_timeout, "fallback_evaluator": "Take the second."}
    replies = ["one", "two", "three", *([verdict(2)] if on_timeout == "llm_fallback" else []), "end"]
    definition = cascade({"max_parallel": 1, "factor": 3, "evaluator": "human", "human_eval": rule})
    played = play(definition, replies, input=INPUT, human=Absent(), random=Chance())
    assert played.state.outputs["p"] == output
    assert evaluation(played)["decided_by"] == f"{decided}, because nobody chose within 5 s"
    assert evaluation(played)["decided"] is (on_timeout == "llm_fallback")
    check_replay(played)


def test_a_time_out_can_end_the_phase() -> None:
    rule = {"timeout_seconds": 5, "on_timeout": "abort"}
    definition = cascade({"max_parallel": 1, "factor": 2, "evaluator": "human", "human_eval": rule})
    played = play(definition, ["one", "two"], human=Absent())
    assert (played.outcome.status, "nobody chose within 5 s" in played.outcome.reason) == ("failed", True)


class Chance:
    def uniform(self) -> float:
        return 0.5

    def draw(self, place: Any, index: int) -> float:
        return 0.9


# -- what is told of it ----------------------------------------------------------------------------------------------


def test_every_candidate_has_a_row_with_what_it_is_and_did() -> None:
    soundings = {
        "factor": 3,
        "models": ["gpt-4o", "gpt-4o-mini"],
        "mutation_mode": "augment",
        "mutations": ["Be brief."],
    }
    replies: list[Any] = [costing("one", 0.1), costing("two", 0.2), costing("{}", 0.3), verdict(1, n1=70, n2=60), "end"]
    validators = {"words": lambda text: ValidatorVerdict(text != "{}", "no words")}
    wards = {"post": [{"validator": "words", "mode": "blocking"}]}
    definition = cascade({"max_parallel": 1, **soundings}, wards=wards)
    played = play(definition, replies, validators=validators)
    one, two, three = rows(played)
    assert [row.number for row in (one, two, three)] == ["s0", "s1", "s2"]
    assert (one.won, one.stands, one.score, one.cost, one.cost_grade) == (True, True, 70.0, 0.1, "billed")
    assert (two.entrant.mutation_template, two.entrant.mutation_applied) == ("Be brief.", "Be brief.\n\nWrite.")
    assert (three.entrant.status, three.failed_checks, three.compared) == ("blocked", ("words",), False)
    assert one.on_front
    assert not two.on_front
    contest = played.state.contests.all[0]
    exchange = evaluator_calls(played.state, contest, contest.rounds[0])
    assert [call.purpose for call in exchange] == ["evaluation"]


def test_a_refinement_shows_the_incumbent_beside_what_was_made_of_it() -> None:
    reforge = {"steps": 1, "factor_per_step": 2, "honing_prompt": "Shorter.", "mutate": True}
    replies = ["aaa", "bbb", verdict(2, n1=10, n2=20), "c", "d", verdict(3, n1=20, n2=5, n3=30), "end"]
    played = sounded({"factor": 2, "reforge": reforge}, replies)
    found = rows(played, 1)
    assert [(row.number, row.incumbent, row.score, row.won) for row in found] == [
        ("s1", True, 20.0, False),
        ("r1.0", False, 5.0, False),
        ("r1.1", False, 30.0, True),
    ]
    assert found[1].entrant.mutation_type == "approach"
    assert played.state.contests.all[0].winner == 1001


def test_candidates_are_known_before_they_have_run() -> None:
    played = sounded({"factor": 3}, ["one", "two", "three", verdict(1), "end"])
    half = next(i for i, event in enumerate(played.events) if event.kind == "candidate_finished") + 1
    state = RunState.of(played.events[:half])
    contest = state.contests.all[0]
    assert [e.status for e in contest.rounds[0].entrants] == ["success", "pending", "pending"]
    assert [row.won for row in ranked_candidates(state, contest, contest.rounds[0])] == [False] * 3


def test_the_question_to_a_person_is_found_at_its_contest() -> None:
    played = sounded({"factor": 2, "evaluator": "human"}, ["one", "two", "end"], answers=["2"])
    asked = next(i for i, event in enumerate(played.events) if event.kind == "human_asked") + 1
    state = RunState.of(played.events[:asked])
    question = question_of(state, state.contests.all[0])
    assert question is not None
    assert question.data["candidates"] == [0, 1]
    assert question_of(played.state, played.state.contests.all[0]) is None


def test_walks_of_the_whole_cascade_are_one_contest() -> None:
    walks = [call("set_state", key="k", value=1), "a1", "b1", call("set_state", key="k", value=2), "a2", "b2"]
    played = play(fleet(factor=2), [*walks, verdict(2)], input={"what": "it"})
    found = rows(played)
    assert [(row.entrant.session_id, row.output, row.won) for row in found] == [
        ("test_sounding_0", "b1", False),
        ("test_sounding_1", "b2", True),
    ]
    assert [len(row.calls) for row in found] == [3, 3]
    assert played.state.contests.all[0].is_whole
    walked = [visit for visit in played.state.visits if visit.branch.endswith("s1") and visit.status == "success"]
    assert played.state.outputs == {visit.phase: visit.output for visit in walked}, "those of the winner"
    assert "b2" in played.state.outputs.values()


# -- when it fails, and again ----------------------------------------------------------------------------------------


def test_when_every_candidate_is_blocked_so_is_the_run() -> None:
    wards = {"post": [{"validator": "no", "mode": "blocking"}]}
    definition = cascade({"max_parallel": 1, "factor": 2}, wards=wards)
    played = play(definition, ["one", "two"], validators={"no": lambda text: ValidatorVerdict(False, f"not {text}")})
    assert played.outcome.status == "blocked"
    assert "not one" in played.outcome.reason
    assert "not two" in played.outcome.reason


def test_a_validator_that_accepts_none_leaves_the_verdicts_to_the_evaluator() -> None:
    soundings = {"factor": 2, "validator": "no"}
    played = sounded(
        soundings, ["one", "two", verdict(2), "end"], validators={"no": lambda text: ValidatorVerdict(False, "dull")}
    )
    assert "Rejected by the validator: dull" in played.model.requests[2][1].messages[1].text
    assert played.state.outputs["p"] == "two"


def test_one_that_passes_the_filter_wins_without_a_call() -> None:
    soundings = {"factor": 2, "validator": "two"}
    validators = {"two": lambda text: ValidatorVerdict(text == "two", "other")}
    played = sounded(soundings, ["one", "two", "end"], validators=validators)
    assert played.state.outputs["p"] == "two"
    assert len(played.model.requests) == 3


def test_a_winner_out_of_range_is_repaired_by_one_call_that_says_why() -> None:
    played = sounded({"factor": 2}, ["one", "two", verdict(3), verdict(2), "end"])
    assert "'winner' must be a whole number from 1 to 2." in played.model.requests[3][1].messages[-1].text
    assert played.state.outputs["p"] == "two"


@pytest.mark.parametrize("said", ["2", "Attempt 2.", " 2\n"])
def test_a_number_alone_is_a_verdict(said: str) -> None:
    played = sounded({"factor": 2, "evaluator_instructions": "Say only the number."}, ["one", "two", said, "end"])
    assert played.state.outputs["p"] == "two"
    assert len(played.model.requests) == 4


def test_outputs_can_be_joined_by_one_call() -> None:
    soundings = {"factor": 2, "mode": "aggregate", "aggregator_instructions": "Merge {{ input.what }}."}
    played = sounded(soundings, ["one", "two", "both", "end"], input={"what": "these"})
    assert played.state.outputs["p"] == "both"
    assert "Merge these.\n\n## Output 1\none" in played.model.requests[2][1].messages[1].text
    assert played.state.contests.all[0].rounds[0].winner is None


def test_joined_states_clash_with_a_warning_and_the_higher_index_wins() -> None:
    replies = [call("set_state", key="k", value=1), "one", call("set_state", key="k", value=2), "two", "end"]
    definition = cascade({"max_parallel": 1, "factor": 2, "mode": "aggregate"}, tackle=["set_state"])
    played = play(definition, replies)
    assert played.outcome.state == {"k": 2}
    assert any("disagree on state.k" in event.data["message"] for event in played.of_kind("warning"))


def test_a_threshold_that_passes_stops_the_refinement() -> None:
    rule = {"steps": 3, "factor_per_step": 1, "honing_prompt": "More.", "threshold": {"validator": "enough"}}
    validators = {"enough": lambda text: ValidatorVerdict(len(text) > 1, "short")}
    played = sounded({"factor": 1, "reforge": rule}, ["a", "bb", verdict(2), "end"], validators=validators)
    assert played.state.outputs["p"] == "bb"
    assert len(played.state.contests.all[0].rounds) == 2


def test_each_candidates_answer_is_durable_before_they_are_compared() -> None:
    definition = Definition.of(json.dumps(cascade({"factor": 20, "max_parallel": 20, "mode": "aggregate"})), "t.yaml")
    sink = ListSink()
    asyncio.run(Run(definition, {}, Options("t", "gpt-4o"), ports(Shuffled({}), sink=sink)).execute())
    kinds = [event.kind for event in sink.events]
    last_answer = max(n for n, event in enumerate(sink.events, 1) if event.kind == "candidate_finished")
    assert kinds.count("candidate_finished") == 20
    assert any(last_answer <= synced <= kinds.index("evaluation_finished") for synced in sink.synced_at)


def test_the_first_request_is_sent_before_the_last_is_made() -> None:
    happened: list[str] = []

    class Slow(ScriptedModel):
        async def complete(self, request: Request, place: Place, *rest: object) -> Answer:
            happened.append("made")
            for _ in range(5):  # turns of the loop, as a connection takes some
                await asyncio.sleep(0)
            happened.append("sent")
            return await super().complete(request, place, *rest)  # type: ignore[arg-type]

    definition = Definition.of(json.dumps(cascade({"factor": 20, "max_parallel": 20, "mode": "aggregate"})), "t.yaml")
    asyncio.run(Run(definition, {}, Options("t", "gpt-4o"), ports(Slow(["one"] * 21))).execute())
    assert happened.index("sent") < 10


async def test_candidates_that_have_not_begun_leave_nothing_behind_when_the_run_is_stopped() -> None:
    begun: list[int] = []

    async def one(number: int) -> Candidate:
        begun.append(number)
        await asyncio.Event().wait()
        raise AssertionError

    work = [one(number) for number in range(5)]

    running = asyncio.create_task(gather(work))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert 0 < len(begun) < 5
    assert all(inspect.getcoroutinestate(each) == inspect.CORO_CLOSED for each in work)


class Shuffled:
    """Answers at once or later, so that candidates end in another order than they began."""

    name = "shuffled"

    def __init__(self, waits: dict[str, int]) -> None:
        self.waits = waits

    async def complete(self, request: Any, place: Any, images: Any, on_text: Any) -> Answer:
        for _ in range(self.waits.get(place.branch, 0)):
            await asyncio.sleep(0)
        if place.turn == 0:
            return Answer(verdict(2), usage=Usage(input=1, output=1))
        return Answer(f"from {place.branch or place.phase}", usage=Usage(input=1, output=1))

    def recorded(self, request: Any, place: Any) -> str:
        return "live"


def test_what_is_undefined_in_the_text_of_candidates_is_told_once() -> None:
    definition = cascade({"factor": 3, "max_parallel": 1}, instructions="Write {{ input.what }}.")
    played = play(definition, ["one", "two", "three", verdict(1), "end"])
    warned = [event for event in played.of_kind("warning") if event.data["code"] == "undefined"]
    assert [(event.place.phase_words, event.data["message"][:12]) for event in warned] == [("p", "'input.what'")]


def test_candidates_that_end_in_another_order_give_the_same_journal_branch_by_branch() -> None:
    journals = []
    for waits in ({"s0": 9, "s1": 1, "s2": 5}, {"s2": 20}):
        turns = {"max_turns": 2, "turn_prompt": "Again, {{ who }}."}
        definition = Definition.of(json.dumps(cascade({"factor": 3, "max_parallel": 3}, rules=turns)), "test.yaml")
        sink = ListSink()
        outside = ports(Shuffled(waits), sink=sink)
        outcome = asyncio.run(Run(definition, {}, Options("t", "gpt-4o"), outside).execute())
        assert outcome.status == "success"
        assert RunState.of(sink.events).outputs["p"] == "from s1"
        journals.append(comparable(sink.events))
    assert journals[0] == journals[1]


# -- the whole place, not the name of a branch -----------------------------------------------------------------------


@pytest.mark.parametrize("walks", [1, 2])
def test_what_a_candidate_took_is_what_its_own_calls_took(walks: int) -> None:
    played = many_contests(walks=walks)
    assert played.outcome.status == "success"
    assert isinstance(played.model, PricedModel)
    ended = played.of_kind("candidate_finished")
    assert len(ended) == walks * 18 + (walks if walks > 1 else 0), "three contests of two visits each, one with a step"
    for event in ended:
        branch, phase, visit = event.place.visit_key
        own = [
            cost
            for place, cost in played.model.costs.items()
            if f"{place.branch}/".startswith(f"{branch}/")
            and (not visit or (place.phase, place.visit) == (phase, visit))
        ]
        assert event.data["cost"] == pytest.approx(sum(own)), event.place
        assert event.data["tokens"] == 110 * len(own), event.place


def test_a_candidate_with_one_unknown_bill_keeps_the_others_in_its_cost() -> None:
    phase = {
        "name": "p",
        "instructions": "Do.",
        "rules": {"max_turns": 2},
        "soundings": {"factor": 2, "max_parallel": 1},
    }
    replies: list[Any] = [costing("a", 0.5), costing("b", None), costing("c", 0.25), costing("d", 0.25), verdict(1)]
    played = play({"cascade_id": "c", "phases": [phase]}, replies)
    first, second = rows(played)
    forecast = first.calls[1].forecast
    assert forecast is not None
    assert forecast.cost
    output = 10 * (FlatPrices().price("").output or 0)
    assert first.cost == pytest.approx(0.5 + forecast.cost + output)
    assert first.cost_grade == "predicted"
    assert (second.cost, second.cost_grade) == (0.5, "billed")


def test_a_later_phase_weighs_the_costs_of_its_own_candidates() -> None:
    soundings = {"factor": 2, "max_parallel": 1, "pareto_frontier": {"enabled": True, "policy": "prefer_cheap"}}
    shown = {**soundings, "cost_aware_evaluation": {"show_costs_to_evaluator": True}}
    phases = [{"name": name, "instructions": name, "soundings": shown} for name in ("p", "q")]
    first: list[Any] = [costing("dear", 0.7), costing("cheap", 0.001), verdict(2, n1=50, n2=60)]
    second: list[Any] = [costing("cheap", 0.01), costing("dear", 0.35), verdict(1, n1=60, n2=61)]
    played = play({"cascade_id": "c", "phases": phases}, [*first, *second])
    found = [event.data for event in played.of_kind("evaluation_finished")]
    assert [data["costs"] for data in found] == [{"0": 0.7, "1": 0.001}, {"0": 0.01, "1": 0.35}]
    assert played.outcome.output == "cheap"
    assert "Cost: $0.010000" in played.model.requests[5][1].messages[1].text


def test_a_candidate_pays_for_the_cascades_that_it_runs() -> None:
    soundings = {"factor": 2, "max_parallel": 1, "cost_aware_evaluation": {}}
    phase = {"name": "p", "instructions": "Do.", "tackle": ["sum_up"], "soundings": soundings}
    asks = costing(call("sum_up", text="long"), 0.25)
    own: list[Any] = [asks, costing("a", 0.25), costing("b", 0.25), verdict(1, n1=90, n2=90)]
    replies = {"p": own, "s": [costing("s", 1.0)]}
    played = play({"cascade_id": "c", "phases": [phase]}, replies, library=Shelf({"sum_up": TOOL}))
    assert [event.data["cost"] for event in played.of_kind("candidate_finished")] == [1.5, 0.25]
    assert played.outcome.output == "b"
