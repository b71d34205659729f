"""A cascade as the engine walks it: the flow rules, read off the graph."""

from __future__ import annotations

from typing import Any

from workbench.language.graph import ESCALATION, Graph, lower
from workbench.language.lint.linter import check
from workbench.language.load import load
from workbench.language.model.cascade import Cascade


def graph_of(*phases: dict[str, Any]) -> Graph:
    body = [{"instructions": "x", **phase} if "tool" not in phase else phase for phase in phases]
    return lower(Cascade.model_validate({"cascade_id": "c", "phases": body}))


def edges(graph: Graph) -> set[tuple[str, str, str, str]]:
    return {(edge.src, edge.dst, edge.kind, edge.label) for edge in graph.edges}


def test_without_handoffs_the_next_phase_in_the_list_follows() -> None:
    graph = graph_of({"name": "a"}, {"name": "b"})
    assert edges(graph) == {("a", "b", "routed", "next")}
    assert graph.start == "a"
    assert graph.out("b") == ()


def test_a_target_anywhere_is_a_branch_that_the_list_does_not_lead_to() -> None:
    graph = graph_of({"name": "a", "handoffs": ["c"]}, {"name": "b"}, {"name": "c"}, {"name": "d"})
    assert edges(graph) == {("a", "c", "handoff", ""), ("c", "d", "routed", "next")}


def test_handoffs_keep_their_order_and_their_descriptions() -> None:
    handoffs = [{"target": "c", "description": "why"}, "b"]
    graph = graph_of({"name": "a", "handoffs": handoffs}, {"name": "b"}, {"name": "c"})
    assert [(edge.dst, edge.label) for edge in graph.out("a")] == [("c", "why"), ("b", "")]


def test_a_deterministic_phase_routes_by_its_result_and_on_error() -> None:
    graph = graph_of(
        {"name": "a", "tool": "t", "routing": {"ok": "c"}, "on_error": "d"},
        {"name": "b"},
        {"name": "c"},
        {"name": "d"},
    )
    assert [node.kind for node in graph.nodes] == ["tool", "llm", "llm", "llm"]
    assert edges(graph) == {
        ("a", "c", "routed", "routing"),
        ("a", "d", "routed", "on_error"),
        ("a", "b", "routed", "next"),
    }
    assert [edge.condition for edge in graph.out("a")] == ["ok", "", ""]


def test_a_decision_leads_to_the_phases_it_names() -> None:
    routing = {"x": "c", "y": "next", "z": "self", "w": {"to": "b"}}
    graph = graph_of({"name": "a", "decision_points": {"routing": routing}}, {"name": "b"}, {"name": "c"})
    assert {(e.dst, e.condition) for e in graph.out("a") if e.label == "decision"} == {("c", "x"), ("b", "w")}


def test_edges_lead_only_to_phases_that_exist() -> None:
    graph = graph_of({"name": "a", "handoffs": ["nowhere"]}, {"name": "b"})
    assert graph.edges == ()


def test_of_two_phases_with_one_name_the_first_counts() -> None:
    graph = graph_of({"name": "a", "model": "one"}, {"name": "a", "model": "two"}, {"name": "b"})
    assert [(node.id, node.model) for node in graph.nodes] == [("a", "one"), ("b", None)]


def test_nodes_and_edges_know_their_place_in_the_file() -> None:
    text = "cascade_id: c\nphases:\n  - name: a\n    instructions: x\n    handoffs:\n      - a\n    odd: 1\n"
    loaded = load(text)
    assert loaded.cascade is not None
    graph = lower(loaded.cascade, loaded.source)
    assert graph.nodes[0].span.line == 3
    assert graph.out("a")[0].span[:2] == (6, 9)


def test_a_question_that_escalates_to_a_phase_leads_there() -> None:
    text = (
        "cascade_id: c\nphases:\n"
        "- {name: a, instructions: x, human_input: {on_timeout: escalate, escalate_to: c}}\n"
        "- {name: b, instructions: x}\n"
        "- {name: c, instructions: x}\n"
        "- {name: d, instructions: x, human_input: {on_timeout: escalate, escalate_to: the editor}}\n"
    )
    loaded = load(text, "c.yaml")
    assert loaded.cascade is not None
    graph = lower(loaded.cascade, loaded.source)
    assert [(e.src, e.dst, e.label) for e in graph.edges if e.label == ESCALATION] == [("a", "c", ESCALATION)]
    assert graph.out("b") == (), "what is a target somewhere is not reached by the order of the list"
    assert "L301" not in {problem.code for problem in check(loaded)}
