"""What comes after a phase, and which rule chose it."""

from __future__ import annotations

from typing import Any

from tests.engine.support import Played, call, play
from workbench.engine.definition import Options

BRANCHES = {
    "cascade_id": "c",
    "phases": [
        {
            "name": "look",
            "instructions": "Look.",
            "handoffs": [{"target": "crash", "description": "it died"}, "noise"],
        },
        {"name": "crash", "instructions": "Crash."},
        {"name": "noise", "instructions": "Noise."},
    ],
}


def walked(played: Played) -> list[str]:
    return [event.place.phase for event in played.of_kind("phase_started")]


def rules(played: Played) -> list[str]:
    return [event.data["rule"] for event in played.of_kind("route_chosen")]


def test_route_to_chooses_and_the_branches_do_not_fall_through() -> None:
    played = play(BRANCHES, {"look": ["It died.\n" + call("route_to", target="crash")], "crash": ["Bad."]})
    assert walked(played) == ["look", "crash"]
    assert rules(played) == ["route_to", "nothing follows: the run ends"]
    assert played.state.outputs == {"look": "It died.", "crash": "Bad."}


def test_the_menu_ends_the_task_and_route_to_is_offered() -> None:
    played = play(BRANCHES, {"look": [call("route_to", target="noise"), "fine"], "noise": ["n"]})
    system, task = played.texts(0)
    assert "**route_to**" in system[1]
    assert task[1].endswith("- crash: it died\n- noise\n---")


def test_an_unknown_target_is_an_error_with_the_valid_ones() -> None:
    played = play(BRANCHES, {"look": [call("route_to", target="crsh"), "Hm."], "crash": ["x"]})
    result = next(text for _, text in played.texts(1) if "Tool error" in text)
    assert result == "[Tool error: route_to]\nUnknown target 'crsh'. Valid targets: crash, noise."


def test_no_choice_takes_the_first_handoff_and_says_so() -> None:
    played = play(BRANCHES, {"look": ["Hm."], "crash": ["x"]})
    assert walked(played) == ["look", "crash"]
    assert rules(played)[0] == "no route chosen: the first handoff"


def test_a_valid_route_without_text_gets_a_closing_call() -> None:
    played = play(BRANCHES, {"look": [call("route_to", target="noise"), "It is noise."], "noise": ["n"]})
    assert played.state.outputs["look"] == "It is noise."


def test_a_single_plain_handoff_is_taken_without_asking() -> None:
    document: dict[str, Any] = {
        "cascade_id": "c",
        "phases": [
            {"name": "a", "instructions": "A.", "handoffs": ["c"]},
            {"name": "b", "instructions": "B."},
            {"name": "c", "instructions": "C."},
        ],
    }
    played = play(document, {"a": ["1"], "c": ["3"]})
    assert walked(played) == ["a", "c"]
    assert played.texts(0) == [("user", "A.")]


def test_without_handoffs_the_next_phase_follows() -> None:
    document = {"cascade_id": "c", "phases": [{"name": n, "instructions": n} for n in ("a", "b")]}
    assert walked(play(document, ["1", "2"])) == ["a", "b"]


def test_a_loop_is_ended_by_the_visit_limit_and_the_chain_is_named() -> None:
    document = {
        "cascade_id": "c",
        "phases": [
            {"name": "a", "instructions": "A.", "handoffs": ["b"]},
            {"name": "b", "instructions": "B.", "handoffs": ["a"]},
        ],
    }
    played = play(document, ["x"] * 10, options=Options("s", "gpt-4o", max_visits=3))
    assert played.outcome.status == "failed"
    assert "phase 'a' was visited 3 times" in played.outcome.reason
    assert "a > b > a" in played.outcome.reason


def test_outputs_follow_the_latest_visit() -> None:
    document = {
        "cascade_id": "c",
        "phases": [
            {"name": "a", "instructions": "A {{ outputs.b }}.", "handoffs": ["b", "end"]},
            {"name": "b", "instructions": "B.", "handoffs": ["a"]},
            {"name": "end", "instructions": "{{ outputs.a }} {{ lineage | length }}"},
        ],
    }
    played = play(
        document,
        {
            "a": ["first " + "\n" + call("route_to", target="b"), "second\n" + call("route_to", target="end")],
            "b": ["bee"],
            "end": ["."],
        },
    )
    assert played.texts() == [("user", "second 3")]
