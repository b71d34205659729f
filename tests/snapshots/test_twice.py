"""A replay is determined: run twice, every frozen example writes the same journal, event by event."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bench.mutations import ROOT, examples
from tests.support.equal_runs import comparable
from workbench.context.place import Place
from workbench.snapshots.recorded_run import RecordedRun
from workbench.workspace.testing import Snapshots

FROZEN = sorted(path.stem for path in (ROOT / "snapshots").glob("*.json"))


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshots]:
    with examples(tmp_path_factory.mktemp("examples")) as opened:
        yield opened


def journal(snapshots: Snapshots, name: str) -> RecordedRun:
    verdict = snapshots.replay(snapshots.path(name))
    assert verdict.passed, verdict.first
    assert verdict.again is not None
    return verdict.again.kept


def told(kept: RecordedRun, run_id: str) -> list[tuple[str, Place, Any]]:
    """What a run did, and each run that it started behind it, without ids and times."""
    events = kept.events if run_id == kept.run_id else kept.children[run_id]
    started = sorted((e.data["key"], e.data["run_id"]) for e in events if e.kind == "child_started")
    return [*comparable(events), *(row for _, child in started for row in told(kept, child))]


@pytest.mark.parametrize("name", FROZEN)
def test_two_replays_of_a_frozen_example_tell_the_same_event_by_event(name: str, snapshots: Snapshots) -> None:
    first, second = (journal(snapshots, name) for _ in range(2))
    before, after = told(first, first.run_id), told(second, second.run_id)
    assert len(before) > 10
    for old, new in zip(before, after, strict=True):
        assert old == new
