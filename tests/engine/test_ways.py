"""Why this edge: of each edge out of a phase the step of the selection at which it won or lost, and why."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.support import play
from tests.engine.test_pipelines import GATE, dot
from workbench.analysis.ways import WaysOn, ways_on
from workbench.language.graph import Graph

OUT = 'a [prompt="x"] b [prompt="y"] c [prompt="z"] r [shape=diamond]\n start -> a\n b -> done; c -> done; r -> done\n'


def after(phase: str, body: str, said: str = "fine", **more: Any) -> WaysOn:
    played = play(dot(body), {"a": [said], "b": ["b"], "c": ["c"]}, **more)
    graph: Graph = played.definition.graph
    return ways_on(graph, next(visit for visit in played.state.visits if visit.phase == phase))


def told(found: WaysOn) -> list[tuple[str, bool, int | None, str]]:
    return [(way.to, way.taken, way.step, way.why) for way in found.ways]


@pytest.mark.parametrize(
    ("edges", "said", "expected"),
    [
        pytest.param(
            'a -> b [condition="outcome=success"]; a -> c [condition="outcome=fail"]; a -> done',
            "fine",
            [
                ("b", True, 1, "its condition is true"),
                ("c", False, 1, "its condition is false"),
                ("done", False, 1, "it has no condition, and that of another is true"),
            ],
            id="condition",
        ),
        pytest.param(
            'a -> b [condition="outcome=success"]; a -> c [condition="outcome!=fail", weight=3]',
            "fine",
            [
                ("b", False, 1, "weight 0 is less than 3"),
                ("c", True, 1, "its condition is true, the first of 2 by weight"),
            ],
            id="two conditions",
        ),
        pytest.param(
            'a -> b [condition="outcome=success=fail"]; a -> c',
            "fine",
            [
                (
                    "b",
                    False,
                    1,
                    "its condition cannot be read: expected '&&' between clauses, found '=' (character 16)",
                ),
                ("c", True, 4, "the only edge that needs no condition"),
            ],
            id="a condition that cannot be read",
        ),
        pytest.param(
            'a -> b [label="[S] Ship"]; a -> c [label="Again"]',
            '{"outcome": "success", "preferred_label": "ship"}',
            [("b", True, 2, "its label is the preferred one, 'ship'"), ("c", False, 2, "its label is not 'ship'")],
            id="label",
        ),
        pytest.param(
            "a -> b; a -> c",
            '{"outcome": "success", "suggested_next_ids": ["c"]}',
            [("b", False, 3, "'c' was suggested"), ("c", True, 3, "the phase suggested it")],
            id="suggested",
        ),
        pytest.param(
            'a -> c [label="[S] Ship"]; a -> b [label=ship]',
            '{"outcome": "success", "preferred_label": "ship"}',
            [
                ("c", True, 2, "its label is the preferred one, 'ship'"),
                ("b", False, 2, "another edge with this label comes before it"),
            ],
            id="one label twice",
        ),
        pytest.param(
            "a -> b; a -> c",
            '{"outcome": "success", "suggested_next_ids": ["x", "c"]}',
            [("b", False, 3, "'x', 'c' was suggested"), ("c", True, 3, "the phase suggested it")],
            id="several suggested",
        ),
        pytest.param(
            "a -> b; a -> c [weight=2]",
            "fine",
            [("b", False, 4, "weight 0 is less than 2"), ("c", True, 4, "weight 2 is the highest")],
            id="weight",
        ),
        pytest.param(
            "a -> c; a -> b",
            "fine",
            [
                ("c", False, 5, "of equal weight, 'c' comes after 'b' by its id"),
                ("b", True, 5, "of equal weight, 'b' comes first by its id"),
            ],
            id="target id",
        ),
        pytest.param(
            "a -> b; a -> r",
            "no\noutcome=fail",
            [
                (
                    "b",
                    False,
                    None,
                    "after a failure, an edge without a condition counts at a conditional alone",
                ),
                ("r", True, 4, "the only edge that needs no condition"),
            ],
            id="after a failure",
        ),
    ],
)
def test_each_edge_has_the_step_at_which_it_won_or_lost(
    edges: str, said: str, expected: list[tuple[str, bool, int | None, str]]
) -> None:
    said = f"```json\n{said}\n```" if said.startswith("{") else said
    assert told(after("a", OUT + edges, said)) == expected


def test_values_and_lines_stand_with_the_edges() -> None:
    body = OUT + 'a -> b [condition="outcome=success"]\n a -> c [condition="outcome=fail && context.n!=3"]'
    first, second = after("a", body).ways
    assert (first.values, first.line, first.holds) == ({"outcome": "success"}, 7, True)
    assert (second.values, second.line, second.holds) == ({"outcome": "success", "context.n": ""}, 8, False)


def test_a_jump_a_meeting_and_a_choice_are_told() -> None:
    jump = after("a", 'a [prompt="x", retry_target=b] b [prompt="y"] start -> a -> done; b -> done', "outcome=fail")
    assert (jump.to, jump.why) == ("b", "a jump, not an edge: retry_target")
    assert [way.taken for way in jump.ways] == [False]
    nodes = "fan [shape=component] a [prompt=x] b [prompt=y] m [shape=tripleoctagon]"
    fan = f"{nodes} start -> fan -> a -> m; fan -> b -> m; m -> done"
    met = after("fan", fan)
    assert (met.to, [way.taken for way in met.ways]) == ("m", [True, True])
    assert "'m', where the branches meet" in met.why
    chosen = after("ask", GATE, "one", answers=["a"])
    assert told(chosen)[0] == ("done", True, 0, "a person chose it")
    assert told(chosen)[1][2:] == (0, "a person chose another")


def test_a_run_that_no_edge_leads_on_says_so_of_each() -> None:
    found = after("a", 'a [prompt="x"] start -> a; a -> done [condition="outcome=success"]', "outcome=fail")
    assert (found.to, found.why) == ("", "no edge can be taken")
    assert told(found) == [("done", False, 1, "its condition is false")]
