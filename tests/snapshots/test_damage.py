"""Snapshots that cannot be replayed: a clear error with the place, and nothing is written."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.snapshots.conftest import edit
from workbench.snapshots.faults import SnapshotError
from workbench.snapshots.snapshot import Snapshot, parsed
from workbench.workspace.testing import Snapshots

Body = dict[str, Any]

LONG = "a" * 300


def newer(body: Body) -> None:
    body["workbench"]["format"] = 99


def no_recording(body: Body) -> None:
    del body["workbench"]["recording"]


def ends_early(body: Body) -> None:
    del body["workbench"]["recording"][-3:]


def lost_a_phase(body: Body) -> None:
    rows = body["workbench"]["recording"]
    body["workbench"]["recording"] = [row for row in rows if row[2][1] != "look"]


def lost_a_call(body: Body) -> None:
    rows = body["workbench"]["recording"]
    place = ["", "look", 1, 1, 2, 1]
    body["workbench"]["recording"] = [r for r in rows if not (r[1] == "context_assembled" and r[2] == place)]


def a_row_is_no_event(body: Body) -> None:
    body["workbench"]["recording"][4] = {"kind": "blob"}


def a_body_is_lost(body: Body) -> None:
    rows = body["workbench"]["recording"]
    del next(row for row in rows if row[1] == "blob")[3]["body"]


def a_mode_of_tomorrow(body: Body) -> None:
    body["workbench"]["mode"] = "loose"


def no_expectations(body: Body) -> None:
    body["expectations"] = []


def a_route_without_place(body: Body) -> None:
    del body["expectations"]["routes"][0]["at"]


def outside(body: Body) -> None:
    body["cascade_file"] = "../elsewhere.yaml"


def a_path_that_no_system_takes(body: Body) -> None:
    body["cascade_file"] = LONG


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (newer, "format 99 is not known, the newest known is 1 (a newer workbench wrote it)"),
        (no_recording, "'workbench.recording' is missing or no list"),
        (ends_early, "'workbench.recording' ends before the run does: the recording is truncated"),
        (lost_a_phase, "'workbench.recording' has no call look/1/1/1/1, which is expected: it is damaged"),
        (lost_a_call, "'workbench.recording' has no call look/1/1/2/1, which is expected: it is damaged"),
        (a_row_is_no_event, "'workbench.recording[4]' is not an event: [time, kind, place, data] is expected"),
        (a_body_is_lost, "'workbench.recording[2]' is damaged: it has no 'body'"),
        (a_mode_of_tomorrow, "'workbench.mode' is 'loose', not one of strict, plumbing"),
        (no_expectations, "'expectations' is missing or no object"),
        (a_route_without_place, "'expectations.routes[0].at' is missing"),
        (outside, "the cascade ../elsewhere.yaml lies outside the workspace"),
        (
            a_path_that_no_system_takes,
            f"orphaned: the cascade {LONG} does not exist any more (delete the snapshot, or move it with the file)",
        ),
    ],
)
def test_a_damaged_snapshot_says_what_and_where(
    frozen: Path, snapshots: Snapshots, damage: Callable[[Body], None], words: str
) -> None:
    body = json.loads(frozen.read_text("utf-8"))
    damage(body)
    frozen.write_text(json.dumps(body), "utf-8")
    before = frozen.read_bytes()
    verdict = snapshots.replay(frozen)
    assert verdict.first == f"snapshots/greets.json: error: {words}"
    with pytest.raises(SnapshotError, match="cannot be accepted"):
        snapshots.accept(verdict)
    assert frozen.read_bytes() == before


def test_a_file_that_ends_anywhere_is_called_truncated(frozen: Path, snapshots: Snapshots) -> None:
    text = frozen.read_text("utf-8")
    for length in {0, *range(24, len(text) - 3, len(text) // 80), text.index("false") + 2, text.index("\\n") + 1}:
        frozen.write_text(text[:length], "utf-8")
        assert snapshots.files() == [frozen]
        assert ": error: the file is truncated" in snapshots.replay(frozen).first, text[:length][-40:]


def test_a_truncated_file_names_the_line(frozen: Path, snapshots: Snapshots) -> None:
    text = frozen.read_text("utf-8")
    lines = text.count("\n")
    frozen.write_text(text[: len(text) // 2], "utf-8")
    first = snapshots.replay(frozen).first
    assert "error: " in first
    line = int(first.split(":")[1])
    assert 1 < line <= lines


def test_a_cascade_that_cannot_run_any_more_names_its_own_line(frozen: Path, snapshots: Snapshots) -> None:
    edit(Path("greet.yaml"), "tackle: [read_file]", "tackle: [read_file")
    first = snapshots.replay(frozen).first
    assert first.startswith("snapshots/greets.json: error: the cascade cannot run: greet.yaml:")


def test_a_handoff_to_nowhere_names_its_own_line(frozen: Path, snapshots: Snapshots) -> None:
    edit(Path("greet.yaml"), "name: answer", "name: reply")
    first = snapshots.replay(frozen).first
    assert "the cascade cannot run: greet.yaml:9:" in first
    assert "handoff target 'answer' is not a phase" in first


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_damage_ends_in_anything_but_a_snapshot_error(frozen: Path, data: st.DataObject) -> None:
    text = frozen.read_text("utf-8")
    at = data.draw(st.integers(0, len(text) - 1))
    length = data.draw(st.integers(1, 400))
    with_what = data.draw(st.sampled_from(["", "null", "[]", "{}", '"x"', "1e9", "\x00"]))
    damaged = text[:at] + with_what + text[at + length :]
    with contextlib.suppress(SnapshotError):
        assert Snapshot.from_json(parsed(damaged)).kept.events


def paths(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The place of every value in a JSON document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(each for key, one in inner for each in paths(one, (*path, key)))]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_value_of_another_type_gives_a_verdict_and_never_a_crash(
    frozen: Path, snapshots: Snapshots, data: st.DataObject
) -> None:
    text = frozen.read_text("utf-8")
    body = json.loads(text)
    *path, last = data.draw(st.sampled_from(paths(body)[1:]))
    inner = body
    for key in path:
        inner = inner[key]
    inner[last] = data.draw(st.sampled_from([None, "x", -1, [], {}, [[]], True]))
    frozen.write_text(json.dumps(body), "utf-8")
    try:
        verdict = snapshots.replay(frozen)
        assert verdict.passed or verdict.first
        assert "\n" not in verdict.first
    finally:
        frozen.write_text(text, "utf-8")


def test_a_value_that_breaks_the_engine_is_named(frozen: Path, snapshots: Snapshots) -> None:
    body = json.loads(frozen.read_text("utf-8"))
    body["workbench"]["recording"][0][3]["options"] = -1
    frozen.write_text(json.dumps(body), "utf-8")
    first = snapshots.replay(frozen).first
    assert first.startswith("snapshots/greets.json: error: the replay broke: TypeError: ")
    assert first.endswith("(the file holds a value that no run writes; freeze it again)")
