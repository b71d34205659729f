"""The life of a run in the words of hooks and subscribers, and how the journal's events are told in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from workbench.context.place import Place
from workbench.engine.event import Event
from workbench.engine.steering import HookEvent

TYPES = (
    "cascade_start",
    "phase_start",
    "turn_start",
    "tool_call",
    "tool_result",
    "phase_complete",
    "cascade_complete",
    "cascade_error",
)
HOOKS = tuple(f"on_{type}" for type in TYPES)
"""Names of hooks; each is told of the events of the type behind ``on_``."""


def told(event: Event, session_id: str) -> HookEvent | None:
    """An event of the journal as subscribers get it; None for what is no part of the life cycle."""
    reader = _READERS.get(event.kind)
    found = reader(event.place, event.data) if reader is not None else None
    if found is None:
        return None
    type, data = found
    return HookEvent(type, session_id, event.at, {**where(event.place), **data})


def where(place: Place) -> dict[str, Any]:
    """A place in the words of hooks; what does not apply is left out."""
    names = {"phase_name": place.phase, "branch": place.branch}
    numbers = {"visit": place.visit, "attempt": place.attempt, "turn": place.turn, "call": place.call}
    return {key: value for key, value in {**names, **numbers}.items() if value}


_Told = tuple[str, dict[str, Any]] | None


def _only(type: str, *fields: str) -> Callable[[Place, Mapping[str, Any]], _Told]:
    def read(_: Place, data: Mapping[str, Any]) -> _Told:
        return type, {field: data[field] for field in fields if field in data}

    return read


def _turn(place: Place, data: Mapping[str, Any]) -> _Told:
    """The first try of a turn's first call begins the turn."""
    if not place.turn or place.call != 1 or data.get("try", 1) != 1:
        return None
    return "turn_start", {"model": data.get("model", "")}


def _tool_result(_: Place, data: Mapping[str, Any]) -> _Told:
    told = {"tool": data.get("tool", ""), "result": data.get("text", ""), "is_error": data.get("is_error", False)}
    return "tool_result", told


def _end(_: Place, data: Mapping[str, Any]) -> _Told:
    type = "cascade_complete" if data.get("status") == "success" else "cascade_error"
    return type, {field: data.get(field) for field in ("status", "output", "reason")}


_READERS: Mapping[str, Callable[[Place, Mapping[str, Any]], _Told]] = {
    "run_started": _only("cascade_start", "cascade_id", "input"),
    "phase_started": _only("phase_start", "tools", "model"),
    "call_started": _turn,
    "tool_started": _only("tool_call", "tool", "arguments"),
    "tool_finished": _tool_result,
    "phase_finished": _only("phase_complete", "status", "output", "reason"),
    "run_finished": _end,
}
