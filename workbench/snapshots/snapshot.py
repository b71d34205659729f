"""A frozen run: its recorded answers, and its expectations. Reads and writes its JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct, field

from workbench.engine.journal.event import MALFORMED
from workbench.engine.journal.state import RunState
from workbench.engine.past.recording import Recording
from workbench.snapshots.expectations import Expectations
from workbench.snapshots.faults import SnapshotError
from workbench.snapshots.recorded_run import RecordedRun

FORMAT = 1
"""The version that this program writes, and the newest that it reads."""

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")

Mode = Literal["strict", "plumbing"]
MODES: tuple[Mode, ...] = ("strict", "plumbing")
"""``strict``: requests must match. ``plumbing``: phases, final state and status, as in the first format."""


class Snapshot(Struct, frozen=True):
    """One file of ``snapshots/``."""

    name: str
    description: str
    captured_at: str
    session_id: str
    cascade_file: str
    """Relative to the workspace."""
    input: Mapping[str, Any]
    execution: Mapping[str, Any]
    expectations: Expectations
    cascade_text: str
    cascade_sha256: str
    mode: Mode
    kept: RecordedRun
    includes: Mapping[str, str] = field(default_factory=dict)
    """Texts of ``@file`` templates, by their path as written."""
    redacted: int = 0
    """How many secrets were replaced when it was frozen."""

    def to_text(self) -> str:
        """The file. The recording has one line for each event, so that a change of one is a change of one line."""
        head = {
            "snapshot_name": self.name,
            "description": self.description,
            "captured_at": self.captured_at,
            "session_id": self.session_id,
            "cascade_file": self.cascade_file,
            "input": dict(self.input),
            "execution": self.execution,
            "expectations": self.expectations.to_json(),
        }
        block: dict[str, Any] = {
            "format": FORMAT,
            "cascade_sha256": self.cascade_sha256,
            "cascade_text": self.cascade_text,
            "mode": self.mode,
        }
        if self.includes:
            block["includes"] = dict(self.includes)
        if self.redacted:
            block["redacted"] = self.redacted
        written = json.dumps(head, ensure_ascii=True, indent=1)[:-2]
        return f'{written},\n "workbench": {_block(block | self.kept.to_json())}\n}}\n'

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Snapshot:
        """Raises SnapshotError without the file."""
        block = body.get("workbench")
        if not isinstance(block, dict):
            raise SnapshotError("the file has no 'workbench' block: it holds structure only, and no recording")
        version = block.get("format")
        if not isinstance(version, int) or version < 1:
            raise SnapshotError("'workbench.format' is missing or no version")
        if version > FORMAT:
            hint = "a newer workbench wrote it"
            raise SnapshotError(f"format {version} is not known, the newest known is {FORMAT}", hint=hint)
        mode = _text(block, "mode", "workbench.")
        if mode not in MODES:
            raise SnapshotError(f"'workbench.mode' is '{mode}', not one of {', '.join(MODES)}")
        snapshot = cls(
            name=_text(body, "snapshot_name"),
            description=str(body.get("description", "")),
            captured_at=str(body.get("captured_at", "")),
            session_id=str(body.get("session_id", "")),
            cascade_file=_text(body, "cascade_file"),
            input=_map(body, "input"),
            execution=_map(body, "execution"),
            expectations=Expectations.from_json(_map(body, "expectations")),
            cascade_text=_text(block, "cascade_text", "workbench."),
            cascade_sha256=_text(block, "cascade_sha256", "workbench."),
            mode=mode,
            kept=RecordedRun.from_json(block),
            includes=_map(block, "includes") if "includes" in block else {},
            redacted=block.get("redacted", 0) if isinstance(block.get("redacted", 0), int) else 0,
        )
        _must_be_whole(snapshot)
        return snapshot


def parsed(text: str) -> Mapping[str, Any]:
    """The JSON object of a file. Raises SnapshotError with line and column."""
    try:
        body = json.loads(text)
    except json.JSONDecodeError as error:
        reason = "the file is truncated" if _is_cut_off(error, text) else f"not valid JSON: {error.msg}"
        raise SnapshotError(reason, line=error.lineno, column=error.colno) from None
    except RecursionError:
        raise SnapshotError("nested too deeply") from None
    if not isinstance(body, dict):
        raise SnapshotError("not a JSON object", line=1, column=1)
    return body


def _is_cut_off(error: json.JSONDecodeError, text: str) -> bool:
    """Returns whether a text is invalid because it was cut off: between values, or inside of one."""
    rest = text[error.pos :].rstrip()
    if "string" in error.msg or "escape" in error.msg:
        return error.msg.startswith("Unterminated string") or len(rest) <= _ESCAPE
    return any(word.startswith(rest) for word in ("true", "false", "null", "-"))


_ESCAPE = len("\\u0000")


def _must_be_whole(snapshot: Snapshot) -> None:
    """Every expectation was recorded: a file that lost a part of its recording would fail for the wrong reason."""
    recording = _readable(snapshot.kept)
    known = {str(place) for place, call in recording.calls.items()}
    for row in snapshot.expectations.requests:
        if row["at"] not in known:
            raise SnapshotError(f"'workbench.recording' has no call {row['at']}, which is expected: it is damaged")
        if "digest" not in row or "tokens" not in row:
            raise SnapshotError(f"'expectations.requests' has no digest or tokens for {row['at']}")
    visited = {visit.phase for visit in recording.state.visits}
    for phase in snapshot.expectations.phases_executed:
        if phase not in visited:
            raise SnapshotError(f"'workbench.recording' has no phase '{phase}', which is expected: it is damaged")


def _readable(kept: RecordedRun) -> Recording:
    """The recording. Raises SnapshotError with the first event that is not an event of its kind."""
    try:
        for run_id in kept.children:
            kept.child(run_id)
        return kept.recording
    except MALFORMED as fault:
        senseless = RunState.of(kept.events).senseless
        where = f"recording[{kept.events.index(senseless[0])}]" if senseless else "children"
        reason = f"it has no {fault}" if isinstance(fault, KeyError) else str(fault)
        raise SnapshotError(f"'workbench.{where}' is damaged: {reason}") from fault


def _block(block: Mapping[str, Any]) -> str:
    lines = []
    for key, value in block.items():
        if key == "recording":
            text = _lines(value, "  ")
        elif key == "children":
            inner = ",\n".join(f"   {json.dumps(run)}: {_lines(rows, '   ')}" for run, rows in value.items())
            text = f"{{\n{inner}\n  }}"
        else:
            text = json.dumps(value, ensure_ascii=True)
        lines.append(f"  {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n }"


def _lines(rows: Sequence[Any], indent: str) -> str:
    inner = ",\n".join(f"{indent} {json.dumps(row, ensure_ascii=True)}" for row in rows)
    return f"[\n{inner}\n{indent}]"


def _text(body: Mapping[str, Any], name: str, where: str = "") -> str:
    if not isinstance(value := body.get(name), str):
        raise SnapshotError(f"'{where}{name}' is missing or no text")
    return value


def _map(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    if not isinstance(value := body.get(name), dict):
        raise SnapshotError(f"'{name}' is missing or no object")
    return value
