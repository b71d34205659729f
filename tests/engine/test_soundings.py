"""Candidates: isolation, evaluation, cost against quality, refinement, and that all of it replays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.support import Played, call, play
from tests.engine.test_replay import check_replay, replayed
from tests.support.equal_runs import comparable
from workbench.engine.candidates.trade_off import Scored, best_by_weight, by_policy, frontier
from workbench.engine.contracts import ModelFault, ValidatorVerdict
from workbench.engine.past.recording import Kind


def cascade(soundings: dict[str, Any], **phase: Any) -> dict[str, Any]:
    first = {"name": "p", "instructions": "Write.", "soundings": soundings, **phase}
    return {"cascade_id": "c", "phases": [first, {"name": "q", "instructions": "Got {{ outputs.p }} {{ state }}"}]}


def verdict(winner: int, **scores: float) -> str:
    numbers = {name.removeprefix("n"): score for name, score in scores.items()}
    return json.dumps({"winner": winner, "scores": numbers, "reason": "because"})


def evaluation(played: Played, of: int = 0) -> dict[str, Any]:
    return dict(played.of_kind("evaluation_finished")[of].data)


def test_the_evaluators_choice_becomes_the_output() -> None:
    played = play(cascade({"factor": 3, "max_parallel": 1}), ["one", "two", "three", verdict(2), "end"])
    assert played.outcome.status == "success", played.outcome.reason
    assert played.state.outputs["p"] == "two"
    assert played.tools.settlements == [("", "s1")]
    request = played.model.requests[3][1].messages
    assert "## Attempt 3\nthree" in request[1].text
    assert evaluation(played)["winner"] == 1


def test_candidates_do_not_see_each_other_and_only_the_winner_changes_the_state() -> None:
    replies = [
        call("set_state", key="k", value="first"),
        "one {{ state }}",
        call("set_state", key="k", value="second"),
        "two",
        verdict(2),
        "end",
    ]
    played = play(cascade({"factor": 2, "max_parallel": 1}, tackle=["set_state"]), replies)
    assert played.outcome.state == {"k": "second"}
    assert played.state.state == {"k": "second"}
    texts = [message.text for message in played.model.requests[2][1].messages]
    assert not any("first" in text for text in texts)


def test_a_candidate_that_fails_its_checks_cannot_win() -> None:
    played = play(
        cascade({"factor": 2, "max_parallel": 1}, output_schema={"type": "object"}), ["no json", '{"a": 1}', "end"]
    )
    assert played.state.outputs["p"] == '{"a": 1}'
    assert evaluation(played)["decided_by"] == "the only one that passed"


def test_when_none_passes_the_phase_fails_with_the_reasons_of_all() -> None:
    played = play(cascade({"factor": 2, "max_parallel": 1}, output_schema={"type": "object"}), ["x", "3"])
    assert played.outcome.status == "failed"
    assert "0: " in played.outcome.reason
    assert "1: " in played.outcome.reason
    assert played.tools.settlements == [("", "")]


def test_the_validator_filters_before_the_evaluation() -> None:
    played = play(
        cascade({"factor": 3, "max_parallel": 1, "validator": "even"}),
        ["a1", "a2", "a4", verdict(2), "end"],
        validators={"even": lambda text: ValidatorVerdict(int(text[-1]) % 2 == 0, "odd")},
    )
    assert played.state.outputs["p"] == "a4"


def test_nonsense_from_the_evaluator_is_repaired_once_then_the_first_wins_with_a_warning() -> None:
    played = play(cascade({"factor": 2, "max_parallel": 1}), ["one", "two", "hm", "still hm", "end"])
    assert played.state.outputs["p"] == "one"
    assert any(event.data["code"] == "evaluator" for event in played.of_kind("warning"))


def test_mutations_leave_the_first_candidate_unchanged_and_vary_the_others() -> None:
    soundings = {"factor": 3, "max_parallel": 1, "mutation_mode": "augment", "mutations": ["Be brief.", "Be kind."]}
    played = play(cascade(soundings), ["1", "2", "3", verdict(1), "end"])
    tasks = [played.texts(i)[-1][1] for i in range(3)]
    assert tasks == ["Write.", "Be brief.\n\nWrite.", "Be kind.\n\nWrite."]


def test_a_rewrite_is_made_by_a_model_and_journaled() -> None:
    soundings = {"factor": 2, "max_parallel": 1, "mutate": True}
    played = play(cascade(soundings), ["1", "Write well.", "2", verdict(2), "end"])
    assert played.texts(2)[-1][1] == "Write well."
    finished = played.of_kind("candidate_finished")[1].data
    assert finished["mutation_applied"] == "Write well."
    assert finished["mutation_type"] == "rewrite"


def test_a_placeholder_for_a_rewrite_is_no_task() -> None:
    soundings = {"factor": 2, "max_parallel": 1, "mutate": True}
    played = play(cascade(soundings), ["1", "[offline] no reply is scripted", "2", verdict(2), "end"])
    assert played.texts(2)[-1][1] == "Write."
    assert "no rewrite is scripted" in str([event.data for event in played.of_kind("warning")])


def test_models_take_turns() -> None:
    soundings = {"factor": 4, "max_parallel": 1, "models": ["gpt-4o", "gpt-4o-mini"]}
    played = play(cascade(soundings), ["1", "2", "3", "4", verdict(1), "end"])
    models = [request.model for _, request in played.model.requests[:4]]
    assert models == ["gpt-4o", "gpt-4o-mini"] * 2


def test_reforge_compares_the_incumbent_too() -> None:
    soundings = {
        "factor": 2,
        "max_parallel": 1,
        "reforge": {"steps": 1, "factor_per_step": 2, "honing_prompt": "Shorter."},
    }
    played = play(cascade(soundings), ["aaa", "bbb", verdict(1), "c", "d", verdict(1), "end"])
    assert played.state.outputs["p"] == "aaa"
    refining = played.texts(3)
    assert refining[-1][1] == "Current best answer:\naaa\n\nRefine it:\nShorter."


def test_aggregate_joins_all_valid_outputs() -> None:
    played = play(cascade({"factor": 2, "max_parallel": 1, "mode": "aggregate"}), ["one", "two", "end"])
    assert played.state.outputs["p"] == "## Output 1\none\n\n---\n\n## Output 2\ntwo"


def test_parallel_candidates_replay_with_an_equal_journal() -> None:
    played = play(
        cascade({"factor": 3, "max_parallel": 3}), ["one", "two", "three", verdict(3), "end"], input={"what": "it"}
    )
    events, status, replay = replayed(played)
    assert status == "success"
    assert replay.asked[Kind.MODEL] == 0
    assert comparable(events) == comparable(played.events)


def test_a_person_may_choose() -> None:
    played = play(
        cascade({"factor": 2, "max_parallel": 1, "evaluator": "human"}), ["one", "two", "end"], answers=["Attempt 2"]
    )
    assert played.state.outputs["p"] == "two"


def test_rejecting_all_fails_the_phase() -> None:
    soundings = {"factor": 2, "max_parallel": 1, "evaluator": "human"}
    played = play(cascade(soundings), ["one", "two"], answers=["reject all"])
    assert played.outcome.status == "failed"


def fleet(**soundings: Any) -> dict[str, Any]:
    phases = [
        {"name": "a", "instructions": "A {{ input.what }}", "tackle": ["set_state"]},
        {"name": "b", "instructions": "B {{ outputs.a }} {{ state.k }}"},
    ]
    return {"cascade_id": "c", "soundings": {"max_parallel": 1, **soundings}, "phases": phases}


WALKS = [call("set_state", key="k", value=1), "a1", "b1", call("set_state", key="k", value=2), "a2", "b2"]


def test_a_whole_cascade_runs_several_times_and_the_best_walk_counts() -> None:
    played = play(fleet(factor=2), [*WALKS, verdict(2)], input={"what": "it"})
    assert played.outcome.status == "success", played.outcome.reason
    assert played.outcome.output == "b2"
    assert played.outcome.state == {"k": 2}
    assert "### a\na2\n\n### b\nb2" in played.model.requests[-1][1].messages[1].text
    sessions = [event.data["session_id"] for event in played.of_kind("candidate_finished")]
    assert sessions == ["test_sounding_0", "test_sounding_1"]


def test_a_whole_cascade_is_refined_by_its_first_phase() -> None:
    reforge = {"steps": 1, "factor_per_step": 1, "honing_prompt": "Better."}
    played = play(fleet(factor=1, reforge=reforge), [*WALKS, verdict(2)], input={"what": "it"})
    assert played.outcome.output == "b2"
    task = played.model.requests[3][1].messages[-1].text
    assert task.startswith("A it\n\nCurrent best answer:\n### a")
    rounds = played.of_kind("candidates_started")
    planned = [plan["model"] for event in rounds for plan in event.data["plans"]]
    assert planned == ["", ""], "the phases of a walk choose their models"


def test_walks_of_a_whole_cascade_replay() -> None:
    played = play(fleet(factor=2), [*WALKS, verdict(1)], input={"what": "it"})
    check_replay(played)


SCORED = st.lists(st.tuples(st.floats(0, 100, allow_subnormal=False), st.floats(0, 10)), min_size=1, max_size=8).map(
    lambda rows: [Scored(i, q, c) for i, (q, c) in enumerate(rows)]
)


@given(SCORED)
def test_no_candidate_of_the_frontier_is_beaten_and_every_other_is(scored: list[Scored]) -> None:
    front = frontier(scored)
    assert front
    for one in scored:
        beaten = any(
            o.quality >= one.quality and o.cost <= one.cost and (o.quality > one.quality or o.cost < one.cost)
            for o in scored
        )
        assert (one in front) != beaten


@given(SCORED, st.sampled_from(["min_max", "z_score", "log_scale"]))
def test_without_weight_on_cost_the_best_quality_wins(scored: list[Scored], normalization: str) -> None:
    best = best_by_weight(scored, 1.0, 0.0, normalization)
    assert best.quality == max(one.quality for one in scored)


@pytest.mark.parametrize(("policy", "index"), [("prefer_cheap", 0), ("prefer_quality", 2), ("balanced", 0)])
def test_policies_pick_from_the_frontier(policy: str, index: int) -> None:
    scored = [Scored(0, 60, 0.001), Scored(1, 80, 0.01), Scored(2, 95, 0.1)]
    assert by_policy(scored, policy).index == index


WHICH = "{{ sounding_index }}/{{ sounding_factor }}/{{ is_sounding }}"


def test_templates_know_which_candidate_they_are_in() -> None:
    soundings = {"factor": 2, "max_parallel": 1, "reforge": {"honing_prompt": "Hone.", "factor_per_step": 1}}
    document = cascade(soundings, instructions=WHICH)
    document["phases"][1]["instructions"] = WHICH
    played = play(document, ["one", "two", verdict(1), "three", verdict(1), "end"])
    tasks = [request.messages[0].text for _, request in played.model.requests if request.messages[0].role == "user"]
    assert tasks == ["0/2/True", "1/2/True", "0/1/True", "0/1/False"]


def test_mutations_are_templates_too() -> None:
    template = "For {{ input.who }} ({{ sounding_index }})."
    soundings = {"factor": 3, "max_parallel": 1, "mutation_mode": "augment", "mutations": [template]}
    played = play(cascade(soundings), ["a", "b", "c", verdict(1), "end"], input={"who": "Ann"})
    assert [played.texts(i)[0][1] for i in range(3)] == ["Write.", "For Ann (1).\n\nWrite.", "For Ann (2).\n\nWrite."]
    assert played.of_kind("candidate_finished")[1].data["mutation_template"] == template


def test_what_follows_the_candidates_changes_the_state_of_the_run() -> None:
    phase = {"output_extraction": {"pattern": r"n=(\d)", "store_as": "n"}, "human_input": {"type": "text"}}
    document = cascade({"factor": 2, "max_parallel": 1}, **phase)
    played = play(document, ["n=1", "n=2", verdict(2), "end"], answers=["fine"])
    assert played.outcome.state == {"n": "2", "human_input": {"p": "fine"}}
    assert played.state.state == played.outcome.state
    assert "'n': '2'" in played.texts()[-1][1]


def test_each_walk_of_a_whole_cascade_may_have_a_model_and_parameters_of_its_own() -> None:
    document = {
        "cascade_id": "c",
        "soundings": {
            "max_parallel": 1,
            "models": {"m/one": {"temperature": 0.5}, "m/two": {}},
            "reforge": {"honing_prompt": "Hone.", "factor_per_step": 1},
        },
        "phases": [{"name": "p", "instructions": WHICH}, {"name": "q", "instructions": WHICH, "model": "m/own"}],
    }
    replies = ["a", "b", "c", "d", verdict(1), "e", "f", verdict(2)]
    played = play(document, replies)
    walks = [request for place, request in played.model.requests if place.turn]
    assert [request.model for request in walks] == ["m/one", "m/one", "m/two", "m/two", "m/one", "m/one"]
    assert [dict(request.parameters).get("temperature") for request in walks] == [0.5, 0.5, None, None, 0.5, 0.5]
    told = [request.messages[0].text.partition("\n")[0] for request in walks]
    assert told == ["0/2/True", "0/2/True", "1/2/True", "1/2/True", "0/1/True", "0/1/True"]
    assert "Model: m/two" in played.model.requests[4][1].messages[1].text
    planned = [plan["model"] for event in played.of_kind("candidates_started") for plan in event.data["plans"]]
    assert planned == ["m/one", "m/two", "m/one"]


def test_what_a_refined_walk_is_told_stands_where_its_templates_ask_for_it() -> None:
    asks = "Then.{% if input._refinement_context %} Mind: {{ input._refinement_context }}{% endif %}"
    second = {"name": "q", "instructions": asks, "context": {"from": []}}
    document = {
        "cascade_id": "c",
        "soundings": {"factor": 2, "max_parallel": 1, "reforge": {"honing_prompt": "Hone.", "factor_per_step": 1}},
        "phases": [{"name": "p", "instructions": "Go."}, second],
    }
    played = play(document, ["a", "b", "c", "d", verdict(1), "e", "f", verdict(2)])
    refined = [request for place, request in played.model.requests if place.branch == "r1.0"]
    assert [message.text for message in refined[0].messages] == ["Go."]
    assert refined[1].messages[-1].text == "Then. Mind: Current best answer:\n### p\na\n\n### q\nb\n\nRefine it:\nHone."
    assert "_refinement_context" not in refined[1].messages[0].text


def test_a_refinement_is_made_with_the_parameters_of_what_it_refines() -> None:
    models = {"m/one": {"temperature": 0.9}, "m/two": {}}
    soundings = {"max_parallel": 1, "models": models, "reforge": {"honing_prompt": "Hone.", "factor_per_step": 1}}
    played = play(cascade(soundings), ["a", "b", verdict(1), "c", verdict(2), "end"])
    request = next(request for place, request in played.model.requests if place.branch == "r1.0")
    assert (request.model, dict(request.parameters)) == ("m/one", {"temperature": 0.9})


def warned(played: Played) -> list[tuple[str, str]]:
    return [(event.data["code"], event.data["message"]) for event in played.of_kind("warning")]


def test_where_no_refinement_passes_the_winner_stays_and_a_warning_says_so() -> None:
    soundings = {
        "factor": 2,
        "max_parallel": 1,
        "reforge": {"steps": 2, "honing_prompt": "Better.", "factor_per_step": 1},
    }
    replies = ['{"a": 1}', '{"a": 2}', verdict(2), "no json", '{"a": 3}', verdict(2), "end"]
    played = play(cascade(soundings, output_schema={"type": "object"}), replies, input={"what": "it"})
    assert played.state.outputs["p"] == '{"a": 3}'
    assert warned(played) == [("reforge", "no candidate of step 1 passed; the winner stays")]
    check_replay(played)


def test_a_threshold_that_cannot_be_asked_refines_and_a_warning_says_why() -> None:
    threshold = {"validator": {"instructions": "Good?"}}
    soundings = {
        "factor": 2,
        "max_parallel": 1,
        "reforge": {"steps": 1, "honing_prompt": "Better.", "factor_per_step": 1, "threshold": threshold},
    }
    fault = ModelFault("bad_request", "no")
    played = play(cascade(soundings), ["one", "two", verdict(1), fault, "three", verdict(2), fault, "end"])
    assert played.state.outputs["p"] == "three", played.outcome.reason
    assert [code for code, _ in warned(played)].count("reforge") >= 1, warned(played)


def test_a_rewrite_that_fails_leaves_the_prompt_as_it_is_and_a_warning_says_so() -> None:
    soundings = {"factor": 2, "max_parallel": 1, "mutate": True, "mutation_mode": "rewrite"}
    played = play(cascade(soundings), ["one", ModelFault("bad_request", "no"), "two", verdict(2), "end"])
    assert played.state.outputs["p"] == "two", played.outcome.reason
    assert warned(played) == [("rewrite", "the prompt runs unchanged: bad request: no")]


@pytest.mark.parametrize(
    ("blocking", "status"),
    [("retry", "failed"), ("blocking", "blocked")],
)
def test_a_walk_of_a_whole_cascade_that_does_not_end_well_cannot_win(blocking: str, status: str) -> None:
    ward = {"validator": "even", "mode": blocking, "max_attempts": 1}
    document = {
        "cascade_id": "c",
        "soundings": {"factor": 2, "max_parallel": 1},
        "phases": [{"name": "p", "instructions": "Write.", "wards": {"post": [ward]}}],
    }
    played = play(
        document, ["a1", "a2"], validators={"even": lambda text: ValidatorVerdict(int(text[-1]) % 2 == 0, "odd")}
    )
    assert (played.outcome.status, played.outcome.output) == ("success", "a2")
    ended = [event.data["status"] for event in played.of_kind("candidate_finished")]
    assert ended == [status, "success"]
    assert evaluation(played)["decided_by"] == "the only one that passed"
