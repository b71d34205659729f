"""The execution tree: phases in run order, candidates with their winner, steps of reforge, whole walks, nested runs."""

from __future__ import annotations

import json
from typing import Any

from tests.engine.support import Played, play
from workbench.analysis.react_flow import react_flow
from workbench.analysis.tree import execution_tree
from workbench.workspace.mermaid import RunPath, mermaid


def verdict(winner: int) -> str:
    return json.dumps({"winner": winner, "scores": {}, "reason": "r"})


def tree(replies: list[str], *phases: dict[str, Any], **cascade: Any) -> tuple[dict[str, Any], Played]:
    body = [{"instructions": "x", **phase} for phase in phases]
    played = play({"cascade_id": "c", "phases": body, **cascade}, replies)
    return execution_tree(played.state), played


def shape(found: dict[str, Any]) -> dict[str, Any]:
    """Only the fields whose shape other tools rely on."""
    kept = (
        "name",
        "type",
        "visit",
        "status",
        "soundings",
        "winner_index",
        "reforge_steps",
        "step",
        "index",
        "is_winner",
    )

    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: strip(inner)
                for key, inner in value.items()
                if (key in kept and key != "status") or key == "phases"
            }
        return [strip(inner) for inner in value] if isinstance(value, list) else value

    return strip(found)  # type: ignore[no-any-return]


def test_candidates_and_their_winner() -> None:
    found, _ = tree(
        ["one", "a", "b", "c", verdict(2)], {"name": "p"}, {"name": "q", "soundings": {"factor": 3, "max_parallel": 1}}
    )
    assert found["session_id"] == "test"
    assert shape(found) == {
        "phases": [
            {"name": "p", "type": "simple", "visit": 1},
            {
                "name": "q",
                "type": "soundings",
                "visit": 1,
                "soundings": [
                    {"index": 0, "is_winner": False},
                    {"index": 1, "is_winner": True},
                    {"index": 2, "is_winner": False},
                ],
                "winner_index": 1,
            },
        ]
    }


REFORGE = {"factor": 2, "max_parallel": 1, "reforge": {"steps": 2, "factor_per_step": 2, "honing_prompt": "Better."}}


def test_steps_of_reforge_count_from_1_and_an_incumbent_that_stays_is_no_winner_of_a_step() -> None:
    replies = ["a", "b", verdict(1), "a1", "a2", verdict(3), "a3", "a4", verdict(1)]
    found, _ = tree(replies, {"name": "p", "soundings": REFORGE})
    phase = found["phases"][0]
    assert (phase["type"], phase["winner_index"]) == ("reforge", 0)
    assert [(step["step"], step["winner_index"]) for step in phase["reforge_steps"]] == [(1, 1), (2, None)]
    assert [one["index"] for one in phase["reforge_steps"][1]["soundings"]] == [0, 1]


def test_whole_walks_hold_their_phases() -> None:
    replies = ["a1", "b1", "a2", "b2", verdict(2)]
    soundings = {"factor": 2, "max_parallel": 1}
    found, _ = tree(replies, {"name": "a"}, {"name": "b"}, soundings=soundings)
    assert found["phases"] == []
    assert found["winner_index"] == 1
    assert [[phase["name"] for phase in walk["phases"]] for walk in found["soundings"]] == [["a", "b"], ["a", "b"]]


def test_a_phase_without_a_model_and_one_that_failed() -> None:
    document = {"cascade_id": "c", "phases": [{"name": "t", "tool": "look"}, {"name": "p", "instructions": "x"}]}
    played = play(document, [" "] * 3, tools={"look": lambda x="": "seen"})
    found = execution_tree(played.state)
    assert [(phase["type"], phase["status"]) for phase in found["phases"]] == [
        ("deterministic", "success"),
        ("simple", "failed"),
    ]
    assert found["status"] == "failed"


def test_the_tree_is_plain_json() -> None:
    found, _ = tree(["a", "b", verdict(1)], {"name": "p", "soundings": {"factor": 2}})
    assert json.loads(json.dumps(found)) == found


def test_a_mermaid_graph_of_a_run_shows_the_candidates_and_the_winner() -> None:
    _, played = tree(
        ["one", "a", "b", verdict(2)], {"name": "p"}, {"name": "q", "soundings": {"factor": 2, "max_parallel": 1}}
    )
    lines = mermaid(played.definition.graph, RunPath(played.state)).splitlines()
    assert lines[0] == "flowchart TD"
    assert "  n0 ==> n1" in lines
    assert '  n1 -.-> n1c0(["candidate s0"])' in lines
    assert '  n1 ==> n1c1(["candidate s1, the winner"])' in lines


def test_a_name_cannot_become_mermaid_syntax() -> None:
    _, played = tree(["one"], {"name": 'a"] --> x["<b>'})
    text = mermaid(played.definition.graph, RunPath(played.state))
    assert 'n0["a#quot;] --#gt; x[#quot;#lt;b#gt;"]' in text


def test_react_flow_has_a_node_for_each_phase_and_candidate_and_marks_the_path_that_won() -> None:
    soundings = {"factor": 2, "max_parallel": 1, "reforge": {"honing_prompt": "h", "factor_per_step": 1}}
    found, _ = tree(
        ["one", "a", "b", verdict(2), "c", verdict(2), "end"],
        {"name": "p"},
        {"name": "q", "soundings": soundings},
        {"name": "r"},
    )
    drawn = react_flow(found)
    nodes = {node["id"]: node for node in drawn["nodes"]}
    assert list(nodes)[:2] == ["phase_0", "phase_1_group"], "a group stands before what is in it"
    assert nodes["phase_1_sounding_1"]["parentNode"] == "phase_1_group"
    assert nodes["phase_1_sounding_1"]["data"]["is_winner"] is True
    edges = {(edge["source"], edge["target"]): "style" in edge for edge in drawn["edges"]}
    assert edges == {
        ("phase_0", "phase_1_group"): False,
        ("phase_1_sounding_1", "phase_1_reforge_1_sounding_0"): True,
        ("phase_1_reforge_1_sounding_0", "phase_2"): True,
    }
    columns = [nodes[id]["position"]["x"] for id in ("phase_0", "phase_1_group", "phase_2")]
    assert columns == sorted(columns)
    assert json.loads(json.dumps(drawn)) == drawn


def test_react_flow_of_whole_walks_has_a_group_for_each_with_its_phases() -> None:
    found, _ = tree(
        ["a", "b", "c", "d", verdict(1)], {"name": "p"}, {"name": "q"}, soundings={"factor": 2, "max_parallel": 1}
    )
    drawn = react_flow(found)
    inside = {node["id"]: node.get("parentNode") for node in drawn["nodes"]}
    assert inside["run_sounding_0"] == "run_group"
    assert inside["run_sounding_0_phase_1"] == "run_sounding_0"
    assert len({node["id"] for node in drawn["nodes"]}) == len(drawn["nodes"])
    ends = {end for edge in drawn["edges"] for end in (edge["source"], edge["target"])}
    assert ends <= inside.keys()
