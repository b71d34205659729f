"""Makes a snapshot of a run: secrets replaced, a part that people read, and replayed once to know that it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from workbench.engine.contracts import Ports
from workbench.engine.definition import Definition, DefinitionError
from workbench.engine.journal.event import Event
from workbench.engine.journal.parts import CallState, VisitState
from workbench.engine.past.recording import Recording
from workbench.snapshots.differences import PLUMBING, differences
from workbench.snapshots.expectations import Expectations
from workbench.snapshots.faults import SnapshotError
from workbench.snapshots.recorded_run import RecordedRun
from workbench.snapshots.rerun import rerun
from workbench.snapshots.snapshot import NAME, Mode, Snapshot

Redact = Callable[[str], tuple[str, int]]


class Label(Struct, frozen=True):
    """The name of a snapshot."""

    name: str
    description: str = ""
    mode: Mode = "strict"

    def __post_init__(self) -> None:
        """Raises SnapshotError for a name that is not a file name."""
        if not NAME.fullmatch(self.name):
            raise SnapshotError(f"'{self.name}' is not a name", hint="letters, digits, '.', '_' and '-', at most 100")


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
        if (known := recording.result(tool.place, tool.index))
        for name, arguments, result in [known]
    ]
    return body | {
        "assistant_response": {"content": call.answer.text, "tool_calls": asked},
        "tool_calls": results,
    }


async def freeze(kept: RecordedRun, label: Label, captured_at: str, redact: Redact, base: Ports) -> Snapshot:
    """The snapshot of a run. Raises SnapshotError if it has not ended, or does not replay to the same end."""
    kept = _settled(kept)
    cleaned, secrets = _redacted(kept, redact)
    started = _started(cleaned)
    file, input = started.data.get("cascade_file", ""), started.data.get("input", {})
    definition = _definition(started.data, file, secrets)
    again = await rerun(definition, input, cleaned, base)
    found = differences(Expectations.of(kept.events, kept.children), cleaned, again.kept, definition)
    # Where a secret was replaced, the requests that held it cannot be what they were.
    if wrong := [one for one in found if not secrets or one.kind in PLUMBING]:
        raise SnapshotError(
            f"this run cannot be frozen, it does not replay: {wrong[0].sentence(file)}",
            hint="it was edited while it ran, or tools of the workspace have changed since",
        )
    return Snapshot(
        name=label.name,
        description=redact(label.description)[0],
        captured_at=captured_at,
        session_id=started.data.get("session_id", ""),
        cascade_file=file,
        input=input,
        execution=execution_of(again.kept.recording),
        expectations=Expectations.of(again.kept.events, again.kept.children),
        cascade_text=definition.source.text,
        cascade_sha256=definition.sha256,
        mode=label.mode,
        kept=again.kept.lean(),
        includes=definition.includes,
        redacted=secrets,
    )


WATCHED = "attach"
"""The format of runs that other programs made while they were watched: their traffic is recorded."""


def is_session(events: Sequence[Event]) -> bool:
    """Returns whether a run is a session of a program that was watched."""
    return bool(events) and (events[0].data.get("imported") or {}).get("format") == WATCHED


def command_of(events: Sequence[Event]) -> str:
    """The command of such a session, in shell syntax. Raises SnapshotError if it had none."""
    command = str((events[0].data.get("imported") or {}).get("file", ""))
    if not command:
        raise SnapshotError("this session had no command that could be run again", hint="workbench attach -- COMMAND")
    return command


def freeze_session(kept: RecordedRun, label: Label, captured_at: str, redact: Redact) -> Snapshot:
    """The snapshot of such a session: its test runs the command again. Raises SnapshotError where it has not ended, or
    nothing of it can be given again."""
    cleaned, secrets = _redacted(_settled(kept), redact)
    command_of(cleaned.events)
    if label.mode != "strict":
        raise SnapshotError("a session of a program is compared strictly: there is nothing else to compare")
    if cleaned.events[-1].data.get("status") == "diverged":
        raise SnapshotError("this session is a replay that has diverged: it cannot be frozen")
    if not any(event.kind == "exchange" for event in cleaned.events):
        raise SnapshotError("this session holds no replies that could be given again")
    definition = _definition(cleaned.events[0].data, "", secrets)
    return Snapshot(
        name=label.name,
        description=redact(label.description)[0],
        captured_at=captured_at,
        session_id=cleaned.events[0].data.get("session_id", ""),
        cascade_file="",
        input={},
        execution=execution_of(cleaned.recording),
        expectations=Expectations.of(cleaned.events, cleaned.children),
        cascade_text=definition.source.text,
        cascade_sha256=definition.sha256,
        mode=label.mode,
        kept=cleaned.lean(),
        redacted=secrets,
    )


def _started(kept: RecordedRun) -> Event:
    if not kept.events or kept.events[0].kind != "run_started":
        raise SnapshotError("the journal of this run has lost its beginning: it cannot be frozen")
    return kept.events[0]


def _settled(kept: RecordedRun) -> RecordedRun:
    """The run as it came to its end: faults that a resumed run went past do not count. Raises SnapshotError."""
    ends = [e for e in kept.events if e.kind == "run_finished"]
    hint = "workbench resume continues it"
    if is_session(kept.events):
        hint = "attach to the program again, and let it end"
    if not ends or kept.events[-1].kind == "run_resumed":
        raise SnapshotError("this run has not ended: it cannot be frozen", hint=hint)
    if ends[-1].data.get("status") == "stopped":
        raise SnapshotError("this run was stopped: it cannot be frozen", hint=hint)
    resumed = max((e.seq for e in kept.events if e.kind == "run_resumed"), default=0)
    if not resumed:
        return kept
    past = ("call_failed", "run_finished")
    events = tuple(e for e in kept.events if e.seq > resumed or e.kind not in past)
    return replace(kept, events=events)


def _definition(data: Mapping[str, Any], file: str, secrets: int) -> Definition:
    try:
        return Definition.of(data.get("cascade_text", ""), file, data.get("includes"))
    except DefinitionError as fault:
        because = "; a secret in it was replaced: take it out of the file" if secrets else ""
        raise SnapshotError(f"the cascade of this run cannot be loaded: {fault}{because}") from fault


class _Cleaner:
    def __init__(self, redact: Redact) -> None:
        self._redact = redact
        self.count = 0

    def clean(self, value: Any) -> Any:
        """A JSON value without secrets, in its keys too."""
        if isinstance(value, str):
            text, found = self._redact(value)
            self.count += found
            return text
        if isinstance(value, Mapping):
            return {self.clean(key): self.clean(one) for key, one in value.items()}
        if isinstance(value, Sequence) and not isinstance(value, bytes):
            return [self.clean(one) for one in value]
        return value


def _redacted(kept: RecordedRun, redact: Redact) -> tuple[RecordedRun, int]:
    cleaner = _Cleaner(redact)

    def cleaned(events: Sequence[Event]) -> tuple[Event, ...]:
        return tuple(
            replace(event, data=cleaner.clean(event.data))
            for event in events
            if not (event.kind == "blob" and event.data.get("kind") == "wire")
        )

    events = cleaned(kept.events)
    children = {run_id: cleaned(rows) for run_id, rows in kept.children.items()}
    return RecordedRun(kept.run_id, events, children, kept.images), cleaner.count
