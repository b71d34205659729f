"""The pure rules of routing in a pipeline: outcomes, edges, choices of people, retries."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.engine.routing.choosing import choose_edge, no_way_on, normal_label
from workbench.engine.routing.gates import choices, chosen, is_freeform
from workbench.engine.routing.outcome import PhaseOutcome, read_outcome
from workbench.engine.routing.retries import POLICIES, policy_of
from workbench.language.graph import Edge

VALUES = {"outcome": "success", "n": 1}


def _edge(to: str, label: str = "", condition: str = "", weight: int = 0) -> Edge:
    return Edge("a", to, "routed", label, condition, weight=weight)


_EDGES = st.lists(
    st.builds(
        _edge,
        st.sampled_from("bcde"),
        st.sampled_from(["", "Yes", "[Y] yes", "N) no", "No", "M - maybe"]),
        st.sampled_from(["", "", "outcome=success", "outcome=fail", "n=1 && outcome!=fail", "n=2"]),
        st.integers(-2, 2),
    ),
    max_size=6,
)
_OUTCOMES = st.builds(
    PhaseOutcome,
    preferred_label=st.sampled_from(["", "yes", "NO", " [N] no ", "maybe", "other"]),
    suggested_next_ids=st.lists(st.sampled_from("bcdex"), max_size=3).map(tuple),
)


def _naive(edges: Sequence[Edge], outcome: PhaseOutcome) -> int:
    """The specification, word for word."""
    truth = {"": None, "outcome=success": True, "outcome=fail": False, "n=1 && outcome!=fail": True, "n=2": False}
    true = [i for i, edge in enumerate(edges) if truth[edge.condition]]
    if true:
        heaviest = max(edges[i].weight for i in true)
        return sorted((edges[i].dst, i) for i in true if edges[i].weight == heaviest)[0][1]
    free = [i for i, edge in enumerate(edges) if truth[edge.condition] is None]
    bare = {"": "", "yes": "yes", "[y] yes": "yes", "n) no": "no", "no": "no", "m - maybe": "maybe", "[n] no": "no"}
    wanted = bare.get(outcome.preferred_label.strip().lower(), outcome.preferred_label)
    for i in free:
        if wanted and bare[edges[i].label.lower()] == wanted:
            return i
    for id in outcome.suggested_next_ids:
        for i in free:
            if edges[i].dst == id:
                return i
    if not free:
        return -1
    heaviest = max(edges[i].weight for i in free)
    return sorted((edges[i].dst, i) for i in free if edges[i].weight == heaviest)[0][1]


@given(_EDGES, _OUTCOMES)
def test_the_edge_is_that_of_the_naive_rules(edges: list[Edge], outcome: PhaseOutcome) -> None:
    selection = choose_edge(edges, outcome, VALUES.get)
    assert selection.index == _naive(edges, outcome)
    assert len(selection.verdicts) == len(edges)


@given(_EDGES, _OUTCOMES)
def test_after_a_failure_only_a_true_condition_leads_on(edges: list[Edge], outcome: PhaseOutcome) -> None:
    selection = choose_edge(edges, outcome, VALUES.get, allows=lambda edge: False)
    assert selection.index == -1 or selection.verdicts[selection.index].holds


def test_where_nothing_can_be_taken_each_condition_is_told_with_its_values() -> None:
    edges = [_edge("b", condition="outcome=fail"), _edge("c", condition="context.x=1 && n=2")]
    code, words = no_way_on("a", choose_edge(edges, PhaseOutcome(), VALUES.get))
    assert code == "no_matching_edge"
    assert "to b: outcome=fail is false (outcome is 'success')" in words
    assert "context.x is '', n is '1'" in words
    assert no_way_on("a", choose_edge([], PhaseOutcome(), VALUES.get))[0] == "dead_end"


def test_a_condition_that_cannot_be_read_is_false_and_says_why() -> None:
    selection = choose_edge([_edge("b", condition="n > 1"), _edge("c")], PhaseOutcome(), VALUES.get)
    assert selection.verdicts[0].fault
    assert selection.index == 1


@pytest.mark.parametrize(
    ("text", "status", "word", "by"),
    [
        ("All done.", "success", "success", ""),
        ("Hm.\noutcome=fail", "fail", "fail", "line"),
        ("**outcome: partial_success**", "partial_success", "partial_success", "line"),
        ("outcome=fail\nbut that was not the last line", "success", "success", ""),
        ('```json\n{"outcome": "failed"}\n```\nbye', "fail", "fail", "JSON"),
        ('```json\n{"outcome": "needs_dod", "notes": "n"}\n```', "success", "needs_dod", "JSON"),
        ('```json\n{"outcome": "fail"}\n```\n```json\n{"outcome": "retry"}\n```', "retry", "retry", "JSON"),
        ('```json\n{"outcome": \n```', "success", "success", ""),
        ('```json\n{"result": 1}\n```\noutcome=retry', "retry", "retry", "line"),
    ],
)
def test_an_answer_states_its_outcome(text: str, status: str, word: str, by: str) -> None:
    found = read_outcome(text)
    assert (found.status, found.word, found.stated_by) == (status, word, by)


@given(st.text())
def test_any_answer_has_an_outcome_that_the_journal_can_hold(text: str) -> None:
    json.dumps(read_outcome(text).to_json())


def test_choices_have_a_key_each_and_an_answer_finds_its_edge() -> None:
    edges = [
        _edge("ship", "[A] Approve"),
        _edge("fix", "R) Revise", "outcome=fail"),
        _edge("fix", "Rethink"),
        _edge("x"),
    ]
    given = choices(edges)
    assert [one.key for one in given] == ["A", "R", "E", "X"]
    assert given[1].outcome == "fail"
    for answer, index in {"a": 0, "[A] Approve": 0, "revise": 1, "Rethink": 2, "e": 2, "ship": 0, "4": 3}.items():
        found = chosen(answer, given)
        assert found is not None, answer
        assert found.index == index, answer
    assert chosen("none of these", given) is None
    assert chosen("", given) is None


@given(st.lists(st.builds(_edge, st.sampled_from("bcd"), st.text(max_size=6)), min_size=1, max_size=30))
def test_keys_are_unique_and_find_their_choice(edges: list[Edge]) -> None:
    given = choices(edges)
    keys = [one.key for one in given]
    assert len(set(keys)) == len(keys)
    assert all(keys)


def test_one_edge_without_a_label_asks_for_a_text() -> None:
    assert is_freeform([_edge("b")], asked=False)
    assert not is_freeform([_edge("b", "Go")], asked=False)
    assert is_freeform([_edge("b", "Go")], asked=True)


@pytest.mark.parametrize("label", ["[Y] Yes", "Y) Yes", "Y - Yes", " yes ", "YES"])
def test_labels_are_compared_without_their_accelerator(label: str) -> None:
    assert normal_label(label) == "yes"


def test_waits_grow_and_stay_below_the_longest() -> None:
    assert policy_of("", 2).executions == 3
    assert policy_of("none", 7).executions == 1
    for policy in (*POLICIES.values(), policy_of("", 10_000)):
        waits = [policy.wait(number, 0.5) for number in range(2, 2_000)]
        assert waits == sorted(waits)
        assert max(waits) <= 60
