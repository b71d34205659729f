"""Phases that cannot do what their file says: how each ends, with which words, and what of it is only a warning."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.support import Answers, call, play


def ended(
    phase: dict[str, Any], *replies: str, answers: tuple[str, ...] = (), **more: Any
) -> tuple[str, str, list[str]]:
    """Status and reason of a run of one phase, and its warnings."""
    cascade = {"cascade_id": "c", "phases": [{"name": "p", **phase}], **more}
    played = play(cascade, list(replies), human=Answers(list(answers)))
    warnings = [event.data["message"] for event in played.events if event.kind == "warning"]
    return played.outcome.status, played.outcome.reason, warnings


EXTRACT = {"instructions": "x", "output_extraction": {"pattern": "n=(.*)", "store_as": "n"}}
JSON = {"instructions": "x", "output_extraction": {"pattern": "n=(.*)", "store_as": "n", "format": "json"}}
DECIDES = {"instructions": "x", "decision_points": {"enabled": True}}
INNER = "output_schema: {type: object}\ninstructions: y"


@pytest.mark.parametrize(
    ("phase", "replies", "status", "reason", "warnings"),
    [
        (EXTRACT, ["none"], "success", "", []),
        (
            {**EXTRACT, "output_extraction": {"pattern": "n=(.*)", "store_as": "n", "required": True}},
            ["none"],
            "failed",
            "output_extraction: nothing matches 'n=(.*)'",
            [],
        ),
        (JSON, ["n={]"], "failed", "output_extraction: the match is no JSON: ", []),
        (JSON, [f"n={'[' * 100_000}"], "failed", "output_extraction: the match is ", []),
        (
            {"tool": "windlass_data"},
            [],
            "failed",
            "tool 'windlass_data' needs 'phase_yaml' under 'inputs': a phase as YAML",
            [],
        ),
        (
            {"tool": "windlass_data", "inputs": {"phase_yaml": "instructions: y"}},
            [],
            "failed",
            "the phase in 'inputs' needs an 'output_schema': its answer becomes a table",
            [],
        ),
        (
            {"tool": "windlass_data", "inputs": {"phase_yaml": "instructions: [y"}},
            [],
            "failed",
            "the phase in 'inputs' cannot run: ",
            [],
        ),
        ({"tool": "windlass_data", "inputs": {"phase_yaml": INNER}}, ['{"a": 1}'], "success", "", []),
        (DECIDES, ["Done.\n<decision>{no}</decision>"], "success", "", ["the decision block cannot be read: "]),
        (
            {"instructions": "{{ history | length }} {{ history | map(attribute='content') | join }}"},
            ["a"],
            "success",
            "",
            [],
        ),
    ],
)
def test_a_phase_ends_so(
    phase: dict[str, Any], replies: list[str], status: str, reason: str, warnings: list[str]
) -> None:
    was, why, told = ended(phase, *replies)
    assert was == status, why
    assert why == reason or (reason.endswith(" ") and why.startswith(reason))
    assert len(told) == len(warnings), told
    assert all(one.startswith(start) for one, start in zip(told, warnings, strict=True))


def test_a_template_sees_the_history_of_the_run() -> None:
    look = "{% for m in history %}{{ m.role }} {{ m.phase }}:{{ m.turn }} {{ m.content }}|{% endfor %}"
    cascade = {
        "cascade_id": "c",
        "phases": [
            {"name": "one", "instructions": "First.", "tackle": ["set_state"], "rules": {"max_turns": 2}},
            {"name": "two", "instructions": look},
        ],
    }
    played = play(cascade, [call("set_state", key="k", value=1), "done", "end"])
    said = call("set_state", key="k", value=1)
    result = "[Tool result: set_state]\nState 'k' is set."
    history = ["user one:1 First.", f"assistant one:1 {said}", f"user one:1 {result}", "assistant one:2 done"]
    assert played.texts(-1)[-1] == ("user", "|".join(history) + "|")
