"""What a replay held is freed with its verdict: none of it waits for the collector of garbage."""

from __future__ import annotations

import gc
from pathlib import Path

from workbench.workspace.testing import Snapshots


def test_a_replay_leaves_no_circle_behind(frozen: Path, snapshots: Snapshots) -> None:
    assert snapshots.replay(frozen).passed
    gc.collect()
    gc.freeze()  # Looking again at all that earlier tests left took most of the time of this one.
    assert min(left_by(snapshots, frozen) for _ in range(3)) < 100, "more than the encoder of JSON leaves"


def left_by(snapshots: Snapshots, frozen: Path) -> int:
    """Objects in circles after a replay. What a thread of an earlier test leaves meanwhile counts, too, but not in each
    of several rounds."""
    gc.collect()
    gc.disable()
    try:
        assert snapshots.replay(frozen).passed
        return gc.collect()
    finally:
        gc.enable()
