"""One process owns the index; the others say who it is, and their runs are journaled and indexed all the same."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.store.cases import opening as case
from tests.store.conftest import ROOT, Observed
from tests.store.examples import RUN, extend, plain_run, save
from tests.support.waiting import PATIENCE, until
from workbench.store.faults import StoreError
from workbench.store.index.index import COPIES
from workbench.store.store import Store
from workbench.workspace.batch.inputs import query_inputs
from workbench.workspace.sql_queries import Indexing, open_index

COUNT = "SELECT count() FROM events\n"


class Owner:
    """A process that owns the index."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def answer(self, line: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()


@contextmanager
def owner_of(folder: Path) -> Iterator[Owner]:
    command = [sys.executable, "-m", "tests.store.cases.owner", str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield Owner(process)


def opening(*folders: Path) -> Observed:
    command = [sys.executable, "-m", "tests.store.cases.opening", *map(str, folders)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=True)
    found: Observed = json.loads(done.stdout)
    return found


def test_the_app_loads_the_index_only_when_what_it_shows_first_is_made() -> None:
    def store() -> Store:
        raise StoreError("no store")

    with Indexing(store, after=0) as indexing:
        assert "indexing" not in {thread.name for thread in threading.enumerate()}
        indexing.begin()
        until(lambda: indexing.notice, "the word of the index")
    assert indexing.notice == "runs are not indexed here: no store"


def test_the_app_does_not_load_the_index_while_a_run_goes_on() -> None:
    """Loading it stops all threads, and with them what answers a key."""
    loaded, asked, running = threading.Event(), threading.Event(), threading.Event()

    def store() -> Store:
        loaded.set()
        raise StoreError("no store")

    def busy() -> bool:
        asked.set()
        return running.is_set()

    running.set()
    with Indexing(store, after=0) as indexing:
        indexing.begin(busy)
        assert asked.wait(PATIENCE)
        asked.clear()
        assert asked.wait(PATIENCE), "it asks again"
        assert not loaded.is_set()
        running.clear()
        assert loaded.wait(PATIENCE)


@pytest.mark.fault("F10")
def test_a_second_process_is_told_the_pid_still_journals_and_reads_a_copy(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with owner_of(tmp_path) as owner:
        refused = opening(tmp_path)
        assert refused["pid"] == owner.process.pid
        assert refused["says"].startswith(f"the index is open by pid {owner.process.pid} since 20")
        assert refused["says"].endswith("): ask there (in the app: Q), or close it"), "after the command that has it"
        assert refused["imported"] is False
        events = plain_run()
        save(store, events)
        assert owner.answer(COUNT) == str(len(events))
        save(store, plain_run("later"))
        with open_index(store) as copy:
            copy.catch_up()
            assert copy.sql(COUNT).one() == 2 * len(events), "what the owner has, and what it has not indexed yet"
            assert copy.progress.records == len(events), "what the owner has is not read again"
        rows = query_inputs(store, "SELECT run_id, calls FROM runs ORDER BY run_id", 5)
        assert [row for _, row in rows.found] == [{"run_id": RUN, "calls": 2}, {"run_id": "later", "calls": 2}]
        assert not list((tmp_path / COPIES).iterdir())
        assert owner.answer(COUNT) == str(2 * len(events)), "the owner's own files are as they were"


@pytest.mark.fault("F34")
def test_after_a_native_crash_the_next_owner_has_every_record(tmp_path: Path) -> None:
    store = Store(tmp_path)
    save(store, plain_run())
    with owner_of(tmp_path) as owner:
        assert owner.answer(COUNT) == "9"
        journal = store.create("later")
        extend(journal, plain_run("later"))
        owner.answer("crash\n")
        assert owner.process.wait(PATIENCE) == -signal.SIGSEGV
        journal.close()
        crashed = owner.process.pid
    opened = case.main(tmp_path)
    assert opened["events"] == 18
    assert opened["notice"].startswith(f"the index was not closed by pid {crashed} since ")
    assert case.main(tmp_path)["notice"] == "", "it is told once"
    assert store.state(RUN).status == store.state("later").status == "success"


def test_a_folder_the_engine_would_misread_is_refused_before_the_engine_is_loaded(tmp_path: Path) -> None:
    folder = tmp_path / "what?"
    folder.mkdir()
    save(Store(folder), plain_run())
    refused = opening(folder)
    assert "'?' in its path" in refused["says"]
    assert refused["imported"] is False
    assert Store(folder).state(RUN).status == "success"


@pytest.mark.fault("F5")
def test_ctrl_z_means_the_same_before_and_after_the_engine_is_loaded(tmp_path: Path) -> None:
    """Where its handlers were merely turned off, Ctrl+Z stopped the app without giving the screen back."""
    command = [sys.executable, "-m", "tests.store.cases.handlers", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert json.loads(done.stdout) == {"counts": [1, 2, 3], "engine": True}


def test_runs_that_can_only_be_read_are_in_the_tables_and_stay_as_they_are(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    save(Store(old), plain_run())
    save(Store(new), plain_run("run-2"))
    before = {path: path.stat().st_mtime_ns for path in old.rglob("*")}
    found = case.main(new, old)
    assert (found["events"], found["sent"] > 0) == (2 * len(plain_run()), True)
    assert {path: path.stat().st_mtime_ns for path in old.rglob("*")} == before
    assert case.main(new, old)["sent"] == 0
