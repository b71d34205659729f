"""Automatic context: what always enters, what is selected by its score, and why the rest stays out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.context.histories import Visit, scopes, stages, visits
from tests.context.support import Conversation, WordCounter, assembled, cascade, scope, texts
from workbench.context.assembler import Assembler, assemble_all
from workbench.context.assembly import Action, Assembly
from workbench.context.scope import PhaseScope, VisitRecord
from workbench.context.scoring import likeness, recency, words
from workbench.context.strategy import Strategy, parse
from workbench.language.lint.not_run import NOT_RUN

OLD = (
    Conversation("gather")
    .task("Collect the database errors.")
    .says("The database refused connections.")
    .turn(2, "Go on.")
    .says("Nothing about weather.")
    .record("Gathered.")
)
NEW = Conversation("fix").task("Repair it.").says("Draft.").turn(2, "More.").says("Repaired.").record("Repaired.")
NO_ANCHORS = {"window": 0, "from_phases": [], "include": []}
TASK = "Explain the database connections."


def choosing(done: tuple[VisitRecord, ...] = (OLD, NEW), top: dict[str, Any] | None = None, **rules: Any) -> PhaseScope:
    context = {"mode": "auto", "include_input": False, **rules}
    definition = cascade({"name": "gather"}, {"name": "fix"}, {"name": "work", "context": context}, **(top or {}))
    return scope(definition, "work", visits=done, input={"who": "me"}, task=TASK)


def seen(where: PhaseScope, spec: str = "") -> Assembly:
    return assembled(where, Conversation().task(TASK), strategy=spec)


def reasons(assembly: Assembly) -> list[tuple[str, str, tuple[str | int, ...]]]:
    """Text, code and numbers of every message of another phase, without the header of a conversation."""
    rows = [(e.item.message.text, e.reason.code, e.reason.args) for e in assembly.entries[:-1]]
    return [row for row in rows if not row[0].startswith("[Conversation from")]


def test_scores_follow_the_formula_and_what_is_sent_keeps_its_order() -> None:
    # 10 x 0.4 for each shared keyword, 50 x 0.3 from the oldest (0) to the newest (1).
    found = seen(choosing(anchors=NO_ANCHORS, selection={"max_messages": 4}))
    assert reasons(found) == [
        ("Collect the database errors.", "not_among", ("4.0", 4)),
        ("The database refused connections.", "selected", ("10.1",)),
        ("Go on.", "not_among", ("4.3", 4)),
        ("Nothing about weather.", "not_among", ("6.4", 4)),
        ("Repair it.", "not_among", ("8.6", 4)),
        ("Draft.", "selected", ("10.7",)),
        ("More.", "selected", ("12.9",)),
        ("Repaired.", "selected", ("15.0",)),
    ]
    assert [text for _, text in texts(found)] == [
        "[Conversation from gather]:",
        "The database refused connections.",
        "Draft.",
        "More.",
        "Repaired.",
        TASK,
    ]


def test_a_budget_lets_in_what_fits_best_first() -> None:
    found = seen(choosing(anchors=NO_ANCHORS, selection={"max_tokens": 10}))
    sent = [e for e in found.entries[:-1] if e.sent is not None]
    assert [e.item.message.text for e in sent] == ["More.", "Repaired."]
    assert sum(e.tokens_sent for e in sent) == 10
    assert {e.reason.code for e in found.entries if e.action is Action.DROPPED} == {"no_room"}
    assert "auto (heuristic): 2 of 8 messages selected, 10 tokens" in found.notes


def test_anchors_are_never_dropped() -> None:
    where = choosing(include_input=True, selection={"max_messages": 0}, anchors={"window": 1})
    found = seen(where)
    assert texts(found) == [
        ("user", '[Original Input]:\n{\n  "who": "me"\n}'),
        ("user", "More."),
        ("user", "[Output from fix]:\nRepaired."),
        ("user", TASK),
    ]
    assert [code for _, code, _ in reasons(found)].count("in_output") == 1


def test_errors_and_callouts_are_anchors_where_they_are_included() -> None:
    talk = Conversation("gather", native=True).task("x").calls(("t", "broke"), ("t", "fine"), errors=[0]).says("Key.")
    visit = replace(talk.record("done"), callouts=frozenset({talk.items[-1].message.body_hash}))
    anchors = {"window": 0, "from_phases": [], "include": ["errors", "callouts"]}
    found = seen(choosing((visit,), anchors=anchors, selection={"max_messages": 0}))
    assert [text for _, text in texts(found)] == [
        "[Tool error: t]\nbroke",
        "Key.",
        TASK,
    ]


def test_a_callout_that_is_no_anchor_scores_higher() -> None:
    visit = replace(OLD, callouts=frozenset({OLD.items[3].message.body_hash}))
    found = seen(choosing((visit,), anchors=NO_ANCHORS, selection={"max_messages": 1}))
    assert [text for text, code, _ in reasons(found) if code == "selected"] == ["Nothing about weather."]


def test_from_lists_candidates_and_exclude_takes_phases_out() -> None:
    rules: dict[str, Any] = {"from": ["gather"], "anchors": {**NO_ANCHORS, "window": 1}}
    listed = seen(choosing(**rules))
    assert {(e.item.source.split(".")[0], e.reason.code) for e in listed.entries[:-1]} == {
        ("gather", "selected"),
        ("fix", "not_listed"),
        ("fix", "anchor"),
    }
    without = seen(choosing(exclude=["fix"], anchors={**NO_ANCHORS, "window": 1}))
    assert {e.item.source.split(".")[0] for e in without.entries[:-1] if e.item.source} == {"gather"}


def test_semantic_keeps_what_is_lexically_alike_and_says_that_it_is_lexical() -> None:
    found = seen(choosing(anchors=NO_ANCHORS, selection={"strategy": "semantic", "similarity_threshold": 0.5}))
    alike = [(text, args) for text, code, args in reasons(found) if code == "alike"]
    assert alike == [("The database refused connections.", ("0.67",))]
    assert "auto (semantic, lexical vectors): 1 of 8 messages selected, 8 tokens" in found.notes


def test_likeness_and_recency_lie_between_0_and_1() -> None:
    one = words("database database connection")
    assert likeness(one, one) == pytest.approx(1)
    assert likeness(one, words("weather")) == likeness(one, words("")) == 0
    assert [recency(i, 3) for i in range(3)] == [0, 0.5, 1]
    assert recency(0, 1) == 1


def test_the_phase_wins_over_the_cascade_and_disabled_leaves_the_anchors_alone() -> None:
    inter = {"strategy": "semantic", "selection": {"max_tokens": 900, "max_messages": 7}}
    both = choosing(top={"auto_context": {"inter_phase": inter}}, selection={"max_messages": 5})
    off = choosing(top={"auto_context": {"inter_phase": {"enabled": False}}})
    assert str(Strategy.of(both.cascade, both.phase)) == "auto(strategy=semantic,max_tokens=900,max_messages=5)"
    assert str(Strategy.of(off.cascade, off.phase)) == "auto(strategy=heuristic,max_messages=0)"


@pytest.mark.parametrize("selector", ["llm", "hybrid"])
def test_a_selector_that_asks_a_model_falls_back_and_the_check_says_so(selector: str) -> None:
    where = choosing(selection={"strategy": selector})
    assert str(Strategy.of(where.cascade, where.phase)) == "auto(strategy=heuristic)"
    rows = [row for row in NOT_RUN if row.only == selector]
    assert {row.field for row in rows} >= {"phases[].context.selection.strategy"}
    assert f"'{selector}' is not run: the heuristic selects" in seen(where).notes


SPECS = st.sampled_from(("auto", "auto(strategy=semantic,similarity_threshold=0.1)", "auto(max_tokens=40)"))


@given(scopes(), visits(), SPECS)
@settings(max_examples=50, deadline=None)
def test_every_request_is_valid_deterministic_and_the_same_from_scratch(
    where: PhaseScope, visit: Visit, spec: str
) -> None:
    assembler = Assembler(where, parse(spec), WordCounter())
    for place, fresh, so_far in stages(visit):
        for item in fresh:
            assembler.add(item)
        grown = assembler.assemble(place)
        assert grown.problems == ()
        assert grown.entries == assemble_all(where, parse(spec), WordCounter(), so_far, place).entries
