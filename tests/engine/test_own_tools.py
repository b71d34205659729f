"""What the tools of the engine itself answer to a model: to sound arguments, and to those that make no sense."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.support import native, play
from tests.engine.test_children import CHILD, Shelf

TOOLS = ["set_state", "route_to", "spawn_cascade", "search_context", "child", "look"]


def answered(tool: str, **arguments: Any) -> tuple[str, bool]:
    """The result of one call in the first turn of a phase, and whether it is an error."""
    cascade = {
        "cascade_id": "c",
        "phases": [
            {
                "name": "p",
                "instructions": "Look for the needle.",
                "tackle": TOOLS,
                "use_native_tools": True,
                "rules": {"max_turns": 2},
                "handoffs": [{"target": "q", "description": "then"}],
            },
            {"name": "q", "instructions": "End."},
        ],
    }
    played = play(
        cascade,
        {"p": [native("", **{tool: arguments}), "done"], "q": ["end"], "inner": ["inner done"]},
        tools={"look": lambda x="": f"saw {x}"},
        library=Shelf({"child": CHILD}),
    )
    event = next(event for event in played.events if event.kind == "tool_finished")
    bodies = {event.data["hash"]: event.data["body"] for event in played.events if event.kind == "blob"}
    return bodies[event.data["added"][0]["m"]]["content"], event.data["is_error"]


@pytest.mark.parametrize(
    ("tool", "arguments", "answer", "is_error"),
    [
        ("set_state", {"key": "n", "value": [1]}, "State 'n' is set.", False),
        ("set_state", {"key": "", "value": 1}, "TypeError: 'key' must be a text that is not empty", True),
        ("set_state", {"key": 3, "value": 1}, "TypeError: 'key' must be a text that is not empty", True),
        ("set_state", {"key": "n"}, "TypeError: 'value' is missing", True),
        ("set_state", {"key": "n", "value": None}, "State 'n' is set.", False),
        ("route_to", {"target": "q"}, "Routing to q", False),
        ("route_to", {"target": "r"}, "Unknown target 'r'. Valid targets: q.", True),
        ("route_to", {}, "Unknown target ''. Valid targets: q.", True),
        ("spawn_cascade", {"cascade_ref": "child.json"}, "Started test_spawn_0.", False),
        (
            "spawn_cascade",
            {"cascade_ref": "child.json", "input_data": [1]},
            "TypeError: 'input_data' must be an object",
            True,
        ),
        ("spawn_cascade", {"cascade_ref": "nope.json"}, "cascade file 'nope.json' not found", True),
        ("child", {"code": "x"}, "inner done", False),
        ("search_context", {"query": "needle"}, "", False),
        ("search_context", {"query": " "}, "ValueError: 'query' must be a text that is not empty", True),
        (
            "search_context",
            {"query": "needle", "limit": 0},
            "ValueError: 'limit' must be a whole number from 1 to 50",
            True,
        ),
        ("search_context", {"query": "needle", "k": 1}, "ValueError: there is no parameter 'k'", True),
        ("look", {"x": "a"}, "saw a", False),
        ("nope", {}, "nope is not available in this phase. Available: ", True),
    ],
)
def test_a_tool_of_the_engine_answers(tool: str, arguments: dict[str, Any], answer: str, is_error: bool) -> None:
    text, failed = answered(tool, **arguments)
    assert failed is is_error, text
    assert text == answer or (answer.endswith(" ") and text.startswith(answer)) or (not answer and "needle" in text)
