"""Processes that do shares: one that is lost is replaced, its share done again, and nothing is done twice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.workers import Doubling, own_pids
from workbench.analysis.shares import split
from workbench.workspace.archive.workers import Here, Lost, Processes


def test_a_lost_process_costs_what_it_had_not_done_and_an_item_that_ends_each_process_is_told(tmp_path: Path) -> None:
    told: list[str] = []
    shares = split([1, 2, 4, 5, 6, 7, 8, 9], 4)
    found = {share.number: results for share, results in Processes(2, told.append).results(Doubling(tmp_path), shares)}
    assert found[0] == [2, 4, 8, 10]
    before, lost, *after = found[1]
    assert (before, after) == (12, [16, 18])
    assert isinstance(lost, Lost)
    assert lost.reason == "the process that worked on it ended (SIGKILL)"
    assert sum("another one does its share again" in one for one in told) >= 2
    assert [one for one in told if "left out" in one]


def test_what_the_work_raises_ends_the_processes_and_reaches_who_asked(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="3 is refused"):
        list(Processes(1).results(Doubling(tmp_path, refuses=True), split([1, 2, 3], 1)))


def test_a_process_stays_for_further_work() -> None:
    processes = Processes(1)
    first, second = ([found for _, found in processes.results(own_pids, split([1, 2], 1))] for _ in range(2))
    assert first == second != [[os.getpid()], [os.getpid()]]


def test_this_process_does_the_same(tmp_path: Path) -> None:
    shares = split([1, 2, 4], 2)
    assert list(Here().results(Doubling(tmp_path), shares)) == [(shares[0], [2, 4]), (shares[1], [8])]
