"""The part of a snapshot that people read: phases and turns, what was said, what the tools gave."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workbench.engine.parts import CallState, VisitState
from workbench.engine.recording import Recording


def execution_of(recording: Recording) -> dict[str, Any]:
    """``{"phases": [{"name", "visit", "status", "turns": […]}]}``, those of candidates with their ``branch``."""
    return {"phases": [_phase(visit, recording) for visit in recording.state.visits]}


def _phase(visit: VisitState, recording: Recording) -> dict[str, Any]:
    body: dict[str, Any] = {"name": visit.phase, "visit": visit.visit, "status": visit.status}
    if visit.branch:
        body["branch"] = visit.branch
    return body | {"turns": list(_turns(visit, recording))}


def _turns(visit: VisitState, recording: Recording) -> Iterator[dict[str, Any]]:
    for call in visit.calls:
        if call.answer is not None:
            yield _turn(call, recording)


def _turn(call: CallState, recording: Recording) -> dict[str, Any]:
    assert call.answer is not None
    body: dict[str, Any] = {"turn_number": call.place.turn, "attempt_number": call.place.attempt}
    if call.purpose != "turn":
        body["purpose"] = call.purpose
    asked = [{"tool": tool.tool, "arguments": tool.arguments} for tool in call.tools]
    results = [
        {"tool": name, "arguments": arguments, "result": result.text, "is_error": result.is_error}
        for tool in call.tools
        if (known := recording.tools.get((tool.place, tool.index)))
        for name, arguments, result in [known]
    ]
    return body | {
        "assistant_response": {"content": call.answer.text, "tool_calls": asked},
        "tool_calls": results,
    }
