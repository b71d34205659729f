"""What a replay held is freed with its verdict: none of it waits for the collector of garbage."""

from __future__ import annotations

import gc
from pathlib import Path

from workbench.workspace.testing import Snapshots


def test_a_replay_leaves_no_circle_behind(frozen: Path, snapshots: Snapshots) -> None:
    assert snapshots.replay(frozen).passed
    gc.collect()
    gc.disable()
    try:
        assert snapshots.replay(frozen).passed
        left = gc.collect()
    finally:
        gc.enable()
    assert left < 100, "more than the encoder of JSON leaves"
