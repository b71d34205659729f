"""The expectations of a snapshot, and how they are read off a run: phases, routes, checks, tools, state, requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from workbench.engine.journal.candidate_rounds import walk_of
from workbench.engine.journal.event import Event
from workbench.snapshots.faults import SnapshotError

Row = Mapping[str, Any]


class Expectations(Struct, frozen=True):
    """The expectations of one run. The first three are those of the first format of snapshots."""

    phases_executed: tuple[str, ...] = ()
    final_state: Mapping[str, Any] = field(default_factory=dict)
    completion_status: str = ""
    routes: tuple[Row, ...] = ()
    """``{"at": "triage/1", "to": "fix_now", "rule": "route_to"}``; ``to`` is empty if the run ends."""
    checks: tuple[Row, ...] = ()
    tool_calls: tuple[Row, ...] = ()
    outputs: Mapping[str, str] = field(default_factory=dict)
    requests: tuple[Row, ...] = ()
    """``{"at": "triage/1/1/1/1", "digest": …, "tokens": 412}``."""
    children: Mapping[str, Expectations] = field(default_factory=dict)
    """Of the runs that this one started, by their key (``sub_0``)."""

    @classmethod
    def of(cls, events: Sequence[Event], children: Mapping[str, Sequence[Event]]) -> Expectations:
        """Read off a run and the runs that it started, which are given by run id."""
        finished = next((event.data for event in reversed(events) if event.kind == "run_finished"), {})
        walk = walk_of(events)
        own = started_in(events)
        return cls(
            phases_executed=tuple(
                e.place.phase for e in events if e.kind == "phase_started" and e.place.branch == walk
            ),
            final_state=dict(finished.get("state", {})),
            completion_status=finished.get("status", ""),
            routes=tuple(row for event in events if (row := route_row(event))),
            checks=tuple(row for event in events if (row := check_row(event))),
            tool_calls=tuple(tool_rows(events)),
            outputs=outputs_of(events),
            requests=tuple(row for event in events if (row := request_row(event))),
            children={key: cls.of(children[run_id], children) for key, run_id in own.items() if run_id in children},
        )

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "phases_executed": list(self.phases_executed),
            "final_state": dict(self.final_state),
            "completion_status": self.completion_status,
            "routes": [dict(row) for row in self.routes],
            "checks": [dict(row) for row in self.checks],
            "tool_calls": [dict(row) for row in self.tool_calls],
            "outputs": dict(self.outputs),
            "requests": [dict(row) for row in self.requests],
        }
        if self.children:
            body["children"] = {key: child.to_json() for key, child in self.children.items()}
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any], where: str = "expectations") -> Expectations:
        """Raises SnapshotError with the place of a missing or mistyped value."""
        return cls(
            tuple(_list(body, "phases_executed", str, where)),
            _map(body, "final_state", where),
            _text(body, "completion_status", where),
            tuple(_rows(body, "routes", where)),
            tuple(_rows(body, "checks", where)),
            tuple(_rows(body, "tool_calls", where)),
            _map(body, "outputs", where),
            tuple(_rows(body, "requests", where)),
            {
                key: cls.from_json(child, f"{where}.children.{key}")
                for key, child in _map(body, "children", where, optional=True).items()
            },
        )


def outputs_of(events: Sequence[Event]) -> dict[str, str]:
    """The output of each phase of the main line and its parallel branches, or of the whole walk that won, of its last
    visit that succeeded."""
    walk = walk_of(events)
    compete = any(event.kind == "candidates_started" and event.data.get("kind") == "cascade" for event in events)
    below = f"{walk}/" if compete else ""
    return {
        event.place.phase: event.data.get("output", "")
        for event in events
        if event.kind == "phase_finished"
        and (event.place.branch == walk or (event.place.branch and event.place.branch.startswith(below)))
        and event.data.get("status") == "success"
    }


def route_row(event: Event) -> Row | None:
    if event.kind != "route_chosen":
        return None
    place, data = event.place, event.data
    at = f"{place.branch}/{place.phase}/{place.visit}" if place.branch else f"{place.phase}/{place.visit}"
    return {"at": at, "to": data.get("to", ""), "rule": data.get("rule", "")}


def check_row(event: Event) -> Row | None:
    if event.kind != "check_finished":
        return None
    data = event.data
    names = ("check", "name", "mode", "valid", "reason")
    return {"at": str(event.place), **{name: data.get(name, "") for name in names}}


def request_row(event: Event) -> Row | None:
    if event.kind != "context_assembled":
        return None
    return {"at": str(event.place), "digest": event.data["digest"], "tokens": event.data.get("tokens_sent", 0)}


def tool_rows(events: Sequence[Event]) -> Iterator[Row]:
    """One row for each tool call that came to an end, in their order."""
    started = {(e.place, e.data["index"]): e.data for e in events if e.kind == "tool_started"}
    for event in events:
        if event.kind == "tool_finished":
            index = event.data["index"]
            asked = started.get((event.place, index), {})
            yield {
                "at": str(event.place),
                "index": index,
                "tool": event.data.get("tool", ""),
                "arguments": asked.get("arguments", ""),
                "is_error": event.data.get("is_error", False),
            }


def _text(body: Mapping[str, Any], name: str, where: str) -> str:
    if not isinstance(value := body.get(name), str):
        raise SnapshotError(f"'{where}.{name}' is missing or no text")
    return value


def _map(body: Mapping[str, Any], name: str, where: str, *, optional: bool = False) -> Mapping[str, Any]:
    if not isinstance(value := body.get(name, {} if optional else None), dict):
        raise SnapshotError(f"'{where}.{name}' is missing or no object")
    return value


def _list(body: Mapping[str, Any], name: str, kind: type, where: str) -> list[Any]:
    value = body.get(name)
    if not isinstance(value, list):
        raise SnapshotError(f"'{where}.{name}' is missing or no list")
    for index, one in enumerate(value):
        if not isinstance(one, kind):
            raise SnapshotError(f"'{where}.{name}[{index}]' is not {'text' if kind is str else 'an object'}")
    return value


def _rows(body: Mapping[str, Any], name: str, where: str) -> list[Row]:
    rows = _list(body, name, dict, where)
    for index, row in enumerate(rows):
        if not isinstance(row.get("at"), str):
            raise SnapshotError(f"'{where}.{name}[{index}].at' is missing")
    return rows


def started_in(events: Sequence[Event]) -> dict[str, str]:
    """Returns the ids of the runs that a run started, by key: one that was cut off and run anew is named at its end."""
    told = (event.data for event in events if event.kind in ("child_started", "child_finished"))
    return {data["key"]: data["run_id"] for data in told}
