"""A process that is killed in the middle of a record has lost nothing that it acknowledged."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.kill_loop import killed


@pytest.mark.fault("F1")
@pytest.mark.parametrize("rounds", [6, pytest.param(60, marks=pytest.mark.proof)])
def test_no_acknowledged_record_is_lost_when_the_writer_is_killed(tmp_path: Path, rounds: int) -> None:
    survived = killed(tmp_path, rounds=rounds, seed=20260131)
    assert survived.records >= rounds
