"""Processes that do shares: one that is lost is replaced, its share done again, and nothing is done twice."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.workers import Doubling, own_pids
from workbench.analysis.shares import split
from workbench.store.journal.lock import FileLock
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


LOADED = """
import colorsys, threading
from tests.support.workers import has_loaded
from workbench.analysis.shares import split
from workbench.workspace.archive.workers import Processes
if beside:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
print(*(found for _, found in Processes(2).results(has_loaded, split(["colorsys", "colorsys"], 1))))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forks on Linux alone")
@pytest.mark.parametrize(("beside", "has"), [(False, "[True]"), (True, "[False]")], ids=["alone", "beside a thread"])
def test_a_process_has_what_its_parent_has_loaded_where_a_fork_is_safe(*, beside: bool, has: str) -> None:
    program = f"beside = {beside}{LOADED}"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert ended.stdout.split() == [has, has], ended.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forks on Linux alone")
def test_a_lock_ends_with_its_process_also_where_a_fork_of_it_goes_on(tmp_path: Path) -> None:
    program = """
import os, sys
from pathlib import Path
from workbench.store.journal.lock import FileLock
lock = FileLock(Path(sys.argv[1]), "it is taken")
if os.fork() == 0:
    os.close(1)
    sys.stdin.read()
    os._exit(0)
os.write(1, b"held")
os._exit(0)
"""
    command = [sys.executable, "-c", program, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read() == b"held"
        process.wait(100)
        FileLock(tmp_path / "lock", "it is taken").release()


def test_this_process_does_the_same(tmp_path: Path) -> None:
    shares = split([1, 2, 4], 2)
    assert list(Here().results(Doubling(tmp_path), shares)) == [(shares[0], [2, 4]), (shares[1], [8])]
