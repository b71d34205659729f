"""Imports of many conversations: cut into pieces, read by processes, cut off and gone on with, none twice."""

from __future__ import annotations

import json
import re
import socketserver
import sys
import threading
from collections.abc import Iterable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import fsspec
import pytest

from tests.support.command import Cli
from tests.support.conversations import conversation, write_lines
from workbench.analysis.shares import Share
from workbench.store.store import Store
from workbench.workspace.archive.importing import ArchiveImport, is_large, parts_of
from workbench.workspace.archive.workers import Here, Processes, Workers
from workbench.workspace.project import Project

LONG = 300_000
"""Characters of each conversation: four are more than is read as one piece."""
COUNT = 8


def write_long(file: Path, broken: int = -1) -> Path:
    """A file of several pieces, with a conversation on each line; line ``broken`` is none."""
    lines = []
    for number in range(COUNT):
        one = conversation(number)
        one["messages"][1]["content"] += " and more" * (LONG // 9)
        lines.append("{nothing" if number == broken else json.dumps(one))
    file.write_text("\n".join(lines) + "\n")
    return file


class CutOff(Here):
    """Ends as Ctrl+C does, after some shares."""

    def __init__(self, shares: int) -> None:
        self._shares = shares

    def results(self, work: Any, shares: Iterable[Share[Any]]) -> Iterator[Any]:
        for number, one in enumerate(super().results(work, shares)):
            if number == self._shares:
                raise KeyboardInterrupt
            yield one


def imported(folder: Path, file: Path, workers: Workers) -> Project:
    """The workspace of a folder after an import whose ids do not follow from chance."""
    folder.mkdir(exist_ok=True)
    project = Project.at(folder, env={})
    with ArchiveImport(project, [str(file)], lambda: parts_of([file]), nonce="same") as work:
        work.run(workers)
        work.finish()
    return project


def questions(store: Store) -> list[str]:
    """What each run was asked, in the order of their ids."""
    return [store.state(run_id).calls[0].entries[1].sent.text[:11] for run_id in store.run_ids()]  # type: ignore[union-attr]


def test_processes_give_the_runs_that_one_gives_and_in_the_order_of_the_file(tmp_path: Path) -> None:
    file = write_long(tmp_path / "long.jsonl")
    alone = imported(tmp_path / "a", file, Here())
    several = imported(tmp_path / "b", file, Processes(2))
    assert questions(alone.store) == questions(several.store) == [f"Question {number}:"[:11] for number in range(COUNT)]
    for store in (alone.store, several.store):
        assert not (store.root / "work").exists()
        assert {store.summary(run_id).status for run_id in store.run_ids()} == {"success"}


def test_what_was_cut_off_goes_on_and_no_run_is_there_twice(tmp_path: Path) -> None:
    file = write_long(tmp_path / "long.jsonl")
    folder = tmp_path / "w"
    with pytest.raises(KeyboardInterrupt):
        imported(folder, file, CutOff(1))
    store = Project.at(folder, env={}).store
    first = store.run_ids()
    assert 0 < len(first) < COUNT
    (staged,) = (store.root / "work").glob("*/staging")
    assert list(staged.iterdir())  # The share that was being done: its runs are not in the store.
    imported(folder, file, Here())
    assert len(store.run_ids()) == COUNT
    assert store.run_ids()[: len(first)] == first
    assert sorted(questions(store)) == sorted(set(questions(store)))


def test_one_file_of_many_conversations_is_done_in_shares_that_go_on_after_a_kill(tmp_path: Path) -> None:
    small, large, whole = tmp_path / "small.jsonl", tmp_path / "large.jsonl", tmp_path / "whole.json"
    write_long(small)
    large.write_bytes(small.read_bytes() * 2)
    whole.write_text(json.dumps([json.loads(line) for line in large.read_text().splitlines()]))
    assert [is_large([file]) for file in (small, large, whole)] == [False, True, False]


def test_a_process_that_ended_between_done_and_taken_in_loses_no_run(tmp_path: Path) -> None:
    file = write_long(tmp_path / "long.jsonl")
    folder = tmp_path / "w"
    with pytest.raises(KeyboardInterrupt):
        imported(folder, file, CutOff(1))
    store = Project.at(folder, env={}).store
    runs = store.run_ids()
    (work,) = (store.root / "work").iterdir()
    back = work / "staging" / "0" / "journal"  # As it was before the runs of the first share were moved.
    back.mkdir(parents=True)
    (store.journals / runs[0]).rename(back / runs[0])
    imported(folder, file, Here())
    assert len(store.run_ids()) == COUNT


def test_a_line_that_cannot_be_read_costs_its_piece_and_says_where(workspace: Path, cli: Cli) -> None:
    file = write_long(workspace / "long.jsonl", broken=5)
    ended = cli("import", file, "--processes", "1", "--json")
    assert (ended.code, 0 < len(ended.json) < COUNT) == (2, True)
    assert re.search(r"long\.jsonl:\d: error: [\d,]+ bytes from here on are left out", ended.err)
    assert "line 6" in ended.err
    assert "the same command tries them again" in ended.err
    write_long(file)
    changed = cli("import", file, "--processes", "1")
    assert "was changed since this import began: --anew reads it again" in changed.err


def test_small_files_are_shares_too_and_a_folder_of_many_is_read_at_once(workspace: Path, cli: Cli) -> None:
    (workspace / "logs").mkdir()
    for number in range(51):
        (workspace / "logs" / f"{number}.json").write_text(json.dumps(conversation(number, 2)))
    (workspace / "logs" / "51.json").write_text("nothing")
    ended = cli("import", "logs", "--json", "--processes", "1")
    assert (ended.code, len(ended.json)) == (2, 51)
    assert ended.json[10]["file"] == "logs/10.json"
    assert "51.json: error: looks like" in ended.err
    assert "51 runs, 102 calls" in ended.err


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def test_the_package_of_a_store_is_named_with_its_install_line(
    workspace: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)  # As if it were not installed.
    assert "s3://bucket/a.jsonl: error: 's3://' needs a package of its own: pip install s3fs" in (
        cli("import", "s3://bucket/a.jsonl").err
    )


def test_files_come_from_wherever_fsspec_reads(workspace: Path, cli: Cli, tmp_path: Path) -> None:
    text = write_lines(tmp_path / "a.jsonl", 3).read_bytes()
    with fsspec.open("memory://logs/a.jsonl", "wb") as out:
        out.write(text)
    memory = cli("import", "memory://logs/*.jsonl", "--processes", "1", "--json")
    assert [run["file"] for run in memory.json] == ["memory:///logs/a.jsonl"] * 3 or memory.err
    folder = cli("import", f"file://{tmp_path}/a.jsonl", "--processes", "1", "--json")
    assert len(folder.json) == 3
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(tmp_path))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        at = f"http://127.0.0.1:{server.server_address[1]}"
        assert len(cli("import", f"{at}/a.jsonl", "--processes", "1", "--json").json) == 3
        missing = cli("import", f"{at}/none.jsonl", "--processes", "1")
        server.shutdown()
    assert (missing.code, "none.jsonl: error: cannot be read" in missing.err) == (2, True)
    unknown = cli("import", "nowhere://a", "--processes", "1")
    assert (unknown.code, "nowhere://a: error: " in unknown.err) == (2, True)
