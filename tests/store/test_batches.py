"""The files of a batch: what is read of whole, cut and altered ones, and which faults have which words."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from workbench.store.batches import PLAN, RECORDS, BatchFolder, BatchWriter, batch_names
from workbench.store.faults import StoreBusy, StoreError, UnknownRun


def written(root: Path, name: str = "b", count: int = 2) -> BatchFolder:
    folder = BatchFolder(root, name)
    with BatchWriter(folder) as writer:
        writer.write_plan({"rows": count})
        for number in range(count):
            writer.add({"row": number, "said": "ü"})
    return folder


def said(records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Records without their checksums."""
    return [{name: value for name, value in record.items() if name != "crc"} for record in records]


def test_what_was_written_is_read_and_goes_on_from_any_place(tmp_path: Path) -> None:
    folder = written(tmp_path)
    assert folder.plan() == {"rows": 2}
    assert said(folder.records()) == [{"row": 0, "said": "ü"}, {"row": 1, "said": "ü"}]
    records, end = folder.records_from(0)
    assert (len(list(records)), end) == (2, folder.size())
    with BatchWriter(folder) as writer:
        writer.add({"row": 2})
    more, last = folder.records_from(end)
    assert (said(more), last) == ([{"row": 2}], folder.size())
    assert folder.changed() == (folder.path / PLAN).stat().st_mtime_ns
    assert folder.runs_in() is None
    assert [oct((folder.path / name).stat().st_mode & 0o777) for name in (PLAN, RECORDS)] == ["0o600", "0o600"]


def test_a_line_that_was_cut_or_altered_is_passed_over(tmp_path: Path) -> None:
    folder = written(tmp_path, count=3)
    file = folder.path / RECORDS
    first, second, third = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(first + second.replace(b'"row":1', b'"row":7') + b"\n" + third[:-5])
    assert said(folder.records()) == [{"row": 0, "said": "ü"}]
    with BatchWriter(folder) as writer:  # The cut line ends where the next one begins.
        writer.add({"row": 3})
    assert [record["row"] for record in folder.records()] == [0, 3]


def test_a_batch_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    absent = BatchFolder(tmp_path, "absent")
    assert (batch_names(tmp_path), list(absent.records()), absent.size(), absent.changed()) == ([], [], 0, 0)
    with pytest.raises(UnknownRun, match=r"^no batch is named 'absent'$"):
        absent.plan()
    for number, name in enumerate(("old", "new")):
        folder = written(tmp_path, name)
        for file in (PLAN, RECORDS):
            os.utime(folder.path / file, (number, number))
    (tmp_path / "batches" / "not a name").mkdir()
    (tmp_path / "batches" / "file").write_text("")
    assert batch_names(tmp_path) == ["new", "old"]
    with pytest.raises(UnknownRun, match=r"^no batch is named 'absent'; there are new, old$"):
        absent.plan()


@pytest.mark.parametrize("name", ["", "a/b", "..", "a b", "é"])
def test_what_cannot_be_a_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnknownRun, match=f"^'{name}' is not a name of a batch: letters, digits"):
        BatchFolder(tmp_path, name)


def test_what_cannot_be_read_or_written_says_which_batch(tmp_path: Path) -> None:
    folder = written(tmp_path)
    (folder.path / PLAN).write_text("{")
    with pytest.raises(StoreError, match=r"^the plan of batch b cannot be read: "):
        folder.plan()
    (folder.path / RECORDS).unlink()
    (folder.path / RECORDS).mkdir()
    with pytest.raises(StoreError, match=r"^the records of batch b cannot be read: Is a directory$"):
        list(folder.records())
    with pytest.raises(StoreError, match=r"^cannot write to .*: Is a directory$"), BatchWriter(folder):
        pass
    (tmp_path / "batches" / "file").write_text("")
    with pytest.raises(StoreError, match=r"^cannot write to .*/file: File exists$"):
        BatchWriter(BatchFolder(tmp_path, "file"))


def test_a_batch_is_run_by_one_at_a_time(tmp_path: Path) -> None:
    folder = BatchFolder(tmp_path, "b")
    with BatchWriter(folder), pytest.raises(StoreBusy, match=r"^batch b is being run"):
        BatchWriter(folder)
    with BatchWriter(folder) as writer:
        writer.forget()
        with pytest.raises(StoreError, match=r"^batch b cannot be written: "):
            writer.add({"row": 0})
