"""What a strict replay must tell first, read off two runs' events without the code that compares them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from workbench.context.place import Place
from workbench.engine.journal.event import Event
from workbench.snapshots.recorded_run import RecordedRun

Key = tuple[str, str, int]
"""Kind, place (none for phases: they have an order), and which one there."""


class Row(NamedTuple):
    """One thing that a run did."""

    key: Key
    at: str
    value: object


@dataclass(frozen=True)
class First:
    """The first thing that is not the same in two runs."""

    kind: str
    at: str
    messages: frozenset[int] = frozenset()
    """Numbers of the first message that differs, where nothing else of the request does."""
    child: str = ""
    """Key of the run that the run started, where it is different in there."""

    def __str__(self) -> str:
        message = f"message {' or '.join(map(str, sorted(self.messages)))}" if self.messages else ""
        return " ".join(filter(None, (self.child and f"in {self.child}", self.kind, self.at, message)))

    def is_told_by(self, kind: str, at: str, words: str) -> bool:
        """Whether a difference says this."""
        if self.child and not words.startswith(f"in {self.child}: "):
            return False
        if self.messages and not any(f"message {number} (" in words for number in self.messages):
            return False
        return (kind, at) == (self.kind, self.at)


def first_difference(old: RecordedRun, new: RecordedRun) -> First | None:
    """None where the runs asked, did and chose the same."""
    before, after = ({row.key: row for row in _rows(kept)} for kept in (old, new))
    for key, row in after.items():
        was = before.get(key)
        if was is None or was.value != row.value:
            numbers = _messages(old, new, row.at) if was is not None and key[0] == "request" else frozenset()
            return First(key[0], row.at, numbers)
    diverged = after["status", "", 1].value == "diverged"
    for key in sorted((key for key in before if key not in after), key=lambda key: _KINDS.index(key[0])):
        if key[0] == "request" or not diverged:
            return First(key[0], key[1])
    if not diverged and (kind := next((k for k in ("state", "output") if _end(old, k) != _end(new, k)), "")):
        return First(kind, "")
    return _in_children(old, new)


_KINDS = ("request", "phases", "check", "tool", "route")
"""What did not happen any more, in the order in which it is told."""


def _in_children(old: RecordedRun, new: RecordedRun) -> First | None:
    before, after = _started(old), _started(new)
    for key, run_id in before.items():
        if after.get(key) not in new.children:
            return First("child", "")
        inner = first_difference(_child(old, run_id), _child(new, after[key]))
        if inner is not None:
            nested = f"{key}: in {inner.child}" if inner.child else key
            return First(inner.kind, inner.at, inner.messages, nested)
    return First("child", "") if after.keys() - before.keys() else None


def _started(kept: RecordedRun) -> dict[str, str]:
    return {e.data["key"]: e.data["run_id"] for e in kept.events if e.kind == "child_started"}


def _child(kept: RecordedRun, run_id: str) -> RecordedRun:
    return RecordedRun(run_id, kept.children[run_id], kept.children, kept.images)


def _rows(kept: RecordedRun) -> Iterator[Row]:
    """What a test sees of a run, in its order. A request that was put together again at a stop counts once."""
    seen: Counter[tuple[str, str]] = Counter()
    for event in kept.events:
        if (row := _row(event)) is None:
            continue
        kind, at, value = row
        counted = (kind, "" if kind == "phases" else at)
        seen[counted] += 1
        if kind != "request" or seen[counted] == 1:
            yield Row((*counted, seen[counted]), at, value)


def _row(event: Event) -> tuple[str, str, object] | None:
    place, data = event.place, event.data
    match event.kind:
        case "phase_started" if not place.branch:
            return "phases", str(place), place.phase
        case "context_assembled":
            return "request", str(place), data["digest"]
        case "tool_started":
            return "tool", str(place), (data["tool"], data["arguments"])
        case "check_finished":
            return "check", str(place), (data["name"], data["mode"], data["valid"], data["reason"])
        case "route_chosen":
            return "route", _visit(place), (data["to"], data["rule"])
        case "run_finished":
            return "status", "", data["status"]
    return None


def _visit(place: Place) -> str:
    return "/".join(filter(None, (place.branch, place.phase, str(place.visit))))


def _end(kept: RecordedRun, what: str) -> object:
    if what == "state":
        return next((e.data["state"] for e in reversed(kept.events) if e.kind == "run_finished"), {})
    ended = [e for e in kept.events if e.kind == "phase_finished" and not e.place.branch]
    return {e.place.phase: e.data["output"] for e in ended if e.data["status"] == "success"}


def _messages(old: RecordedRun, new: RecordedRun, at: str) -> frozenset[int]:
    """What the first message that differs is called: its number among all messages of its context, sent or not, then
    or now. None where the model, its parameters or the tools differ, too."""
    before, after = (kept.recording.state.call_at(Place.parse(at)) for kept in (old, new))
    if before is None or after is None:
        return frozenset()
    if (before.model, before.parameters, before.tools_hash) != (after.model, after.parameters, after.tools_hash):
        return frozenset()
    sent = [[(n, e.sent.body_hash) for n, e in enumerate(c.entries, 1) if e.sent is not None] for c in (before, after)]
    same = 0
    while same < min(map(len, sent)) and sent[0][same][1] == sent[1][same][1]:
        same += 1
    if sorted(digest for _, digest in sent[0]) == sorted(digest for _, digest in sent[1]):
        return frozenset(number for messages in sent for number, _ in messages[same:])  # In another order: any may go.
    return frozenset(messages[same][0] for messages in sent if same < len(messages))
