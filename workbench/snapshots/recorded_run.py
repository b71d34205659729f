"""A run and the runs that it started, as a snapshot keeps them: the events a replay needs, in JSON."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from workbench.context.assembly import Grade
from workbench.context.place import Place
from workbench.engine.journal.event import Event
from workbench.engine.past.recording import Recording, unmarked
from workbench.snapshots.faults import SnapshotError

_LEFT_OUT = frozenset({"call_started", "run_resumed", "cost_known"})
_MOVING: Mapping[str, frozenset[str]] = {
    "run_started": frozenset({"cascade_text", "includes", "ports", "version", "parent"}),
    "context_assembled": frozenset({"forecast", "price", "scale", "beyond"}),
    "call_finished": frozenset({"wire", "residual", "first_token_s", "duration_s", "provider_id", "recorded"}),
    "call_failed": frozenset({"wire", "retry_in"}),
    "embedded": frozenset({"duration_s", "recorded"}),
    "tool_finished": frozenset({"duration_s", "sandbox", "cached", "whole"}),
}
"""The fields that differ from run to run, or are written elsewhere in the file."""


class RecordedRun(Struct, frozen=True, dict=True):
    """The recording of a run. ``children``: the runs that it started, by run id; theirs are here too."""

    run_id: str
    events: tuple[Event, ...]
    children: Mapping[str, tuple[Event, ...]] = field(default_factory=dict)
    images: Mapping[str, bytes] = field(default_factory=dict)
    """Bytes by digest."""
    counts: Mapping[tuple[str, str], tuple[int, Grade]] = field(default_factory=dict)
    """Tokens by model and body hash of messages that no request held: last answers, mostly."""

    @cached_property
    def recording(self) -> Recording:
        """The answers of the run, and what its fold says."""
        return Recording(self.events, self.images)

    def child(self, run_id: str) -> Recording | None:
        """The answers of a run that it started."""
        events = self.children.get(run_id)
        return None if events is None else Recording(events, self.images)

    def lean(self) -> RecordedRun:
        """The same without what no replay reads: times of calls, bodies on the wire, prices."""
        children = {run_id: _lean(events) for run_id, events in self.children.items()}
        return replace(self, events=_lean(self.events), children=children)

    def to_json(self) -> dict[str, Any]:
        """``recording``, and if there are any, ``children`` and ``images`` (base64)."""
        body: dict[str, Any] = {"run_id": self.run_id, "recording": [_row(event) for event in self.events]}
        if self.children:
            body["children"] = {run_id: [_row(e) for e in events] for run_id, events in self.children.items()}
        if self.images:
            body["images"] = {digest: base64.b64encode(data).decode() for digest, data in self.images.items()}
        if self.counts:
            body["counts"] = [[*key, tokens, str(grade)] for key, (tokens, grade) in self.counts.items()]
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any], where: str = "workbench") -> RecordedRun:
        """Raises SnapshotError with the place of a missing value or an invalid event."""
        run_id = str(body.get("run_id", ""))
        events = _events(body.get("recording"), run_id, f"{where}.recording")
        children = {
            str(child): _events(rows, str(child), f"{where}.children.{child}")
            for child, rows in _object(body.get("children", {}), f"{where}.children").items()
        }
        return cls(run_id, events, children, _images(body.get("images", {}), f"{where}.images"), _counts(body))


def _lean(events: Sequence[Event]) -> tuple[Event, ...]:
    kept = [
        e
        for e in events
        if e.kind not in _LEFT_OUT and not (e.kind == "blob" and e.data.get("kind") in ("wire", "text"))
    ]
    return tuple(
        Event(seq, event.at, event.run_id, event.kind, event.place, _data(event)) for seq, event in enumerate(kept, 1)
    )


def _data(event: Event) -> Mapping[str, Any]:
    moving = _MOVING.get(event.kind)
    name = (event.data.get("parent") or {}).get("prompt_id") if event.kind == "run_started" else ""
    if name and moving:  # Under this id, prompts name the run.
        kept = {k: v for k, v in event.data.items() if k not in moving}
        return kept | {"parent": {"prompt_id": name}}
    return {k: v for k, v in unmarked(event).items() if k not in moving} if moving else event.data


def _row(event: Event) -> list[Any]:
    """One line of the file: time, kind, place, data."""
    return [event.at, event.kind, list(event.place), dict(event.data)]


def _events(rows: object, run_id: str, where: str) -> tuple[Event, ...]:
    if not isinstance(rows, list):
        raise SnapshotError(f"'{where}' is missing or no list")
    events: list[Event] = []
    for index, row in enumerate(rows):
        if not isinstance(row, list) or [*map(type, row)] != _ROW or [*map(type, row[2])] != _PLACE:
            raise SnapshotError(f"'{where}[{index}]' is not an event: [time, kind, place, data] is expected")
        at, kind, place, data = row
        events.append(Event(index + 1, at, run_id, kind, Place(*place), data))
    if not events or (events[-1].kind != "run_finished" and not any(e.kind == "run_finished" for e in events)):
        raise SnapshotError(f"'{where}' ends before the run does: the recording is truncated")
    return tuple(events)


_ROW = [str, str, list, dict]
_PLACE = [str, str, int, int, int, int]


def _object(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise SnapshotError(f"'{where}' is not an object")
    return value


def _counts(body: Mapping[str, Any]) -> dict[tuple[str, str], tuple[int, Grade]]:
    counts: dict[tuple[str, str], tuple[int, Grade]] = {}
    for row in body.get("counts", ()):
        match row:
            case [str(model), str(digest), int(tokens), str(grade)] if grade in tuple(Grade):
                counts[model, digest] = (tokens, Grade(grade))
            case _:
                raise SnapshotError("'workbench.counts' holds a row that is not a [model, hash, tokens, grade]")
    return counts


def _images(value: object, where: str) -> dict[str, bytes]:
    try:
        return {digest: base64.b64decode(data, validate=True) for digest, data in _object(value, where).items()}
    except (binascii.Error, TypeError, ValueError):
        raise SnapshotError(f"'{where}' holds something that is not base64") from None
