"""Records that did not fit into the store come back to their run, or stay where they are and say why."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.store.examples import RUN, FailingDisk, Writer, extend, plain_run
from workbench.context.message import Message
from workbench.store.faults import StoreError
from workbench.store.index.health import examine, fix
from workbench.store.restore import rescued, restore
from workbench.store.store import Store

pytestmark = pytest.mark.fault("F8")


def full_after(folder: Path, seq: int) -> tuple[Store, Path]:
    """A store whose disk was full from a record on, and where what did not fit lies."""
    disk, elsewhere = FailingDisk(), folder / "unsaved"
    store = Store(folder / "store", disk)
    with store.create(RUN) as journal:
        for event in plain_run():
            disk.always = "full" if event.seq > seq else ""
            journal.append(event)
        journal.rescue(elsewhere)
    return Store(folder / "store"), elsewhere


@pytest.mark.parametrize("seq", [1, 3, 8])
def test_what_did_not_fit_is_named_by_doctor_and_put_back_by_fix(tmp_path: Path, seq: int) -> None:
    store, elsewhere = full_after(tmp_path, seq)
    left = len(plain_run()) - seq
    (problem,) = examine(store, elsewhere).problems
    assert problem == f"run {RUN}: {left} of its records lie in {elsewhere / RUN}; 'doctor --fix' puts them back"
    assert fix(store, elsewhere) == [f"run {RUN}: {left} records put back from {elsewhere / RUN}"]
    assert list(store.events(RUN)) == plain_run()
    assert store.health(RUN).whole
    assert store.summary(RUN).status == "success"
    assert not (elsewhere / RUN).exists()
    assert examine(store, elsewhere).ok
    assert fix(store, elsewhere) == []


def test_a_folder_whose_name_is_no_utf_8_has_its_records_back(tmp_path: Path) -> None:
    store, elsewhere = full_after(tmp_path / os.fsdecode(b"caf\xe9"), 3)
    (one,) = rescued(store, elsewhere)
    restore(store, one)
    assert list(store.events(RUN)) == plain_run()


def test_a_run_that_went_on_without_them_is_left_as_it_is(tmp_path: Path) -> None:
    store, elsewhere = full_after(tmp_path, 8)
    writer = Writer(seq=8)
    with store.append_to(RUN) as journal:
        journal.append(writer.event("run_resumed", ports={}))
    before = list(store.events(RUN))
    (said,) = fix(store, elsewhere)
    assert "they do not fit onto the run" in said
    assert list(store.events(RUN)) == before
    assert len(list((elsewhere / RUN).glob("*.jsonl"))) == 1


def test_what_is_damaged_or_has_a_gap_before_it_stays(tmp_path: Path) -> None:
    store, elsewhere = full_after(tmp_path, 3)
    (segment,) = (elsewhere / RUN).glob("*.jsonl")
    whole = segment.read_bytes()
    segment.write_bytes(whole[:-5])
    assert "they are damaged (" in fix(store, elsewhere)[0]
    segment.write_bytes(whole.partition(b"\n")[2])
    assert "records before them are missing" in fix(store, elsewhere)[0]
    segment.write_bytes(whole)
    assert "put back" in fix(store, elsewhere)[0]


def test_bodies_and_images_come_back_and_a_lost_one_keeps_all_where_it_is(tmp_path: Path) -> None:
    disk, elsewhere, writer = FailingDisk(), tmp_path / "unsaved", Writer()
    long = Message("assistant", "a long body " * 8_000)
    with Store(tmp_path / "store", disk).create(RUN) as journal:
        journal.append(writer.event("run_started", session_id="s"))
        disk.always = "full"
        journal.append(writer.body(long))
        journal.append(writer.event("run_finished", status="success"))
        journal.rescue(elsewhere)
    store = Store(tmp_path / "store")
    (blob,) = (elsewhere / RUN / "blobs").iterdir()
    data = blob.read_bytes()
    blob.write_bytes(b"x")
    assert "is missing or altered" in fix(store, elsewhere)[0]
    assert len(list(store.events(RUN))) == 1
    blob.write_bytes(data)
    assert "put back" in fix(store, elsewhere)[0]
    assert list(store.events(RUN))[1].data["body"]["content"] == long.text


def test_a_full_disk_at_the_time_of_the_repair_loses_nothing(tmp_path: Path) -> None:
    store, elsewhere = full_after(tmp_path, 3)
    (one,) = rescued(store, elsewhere)
    folder = store.folder(RUN)
    moved = folder.rename(tmp_path / "away")
    folder.write_text("in the way")
    with pytest.raises(StoreError, match="cannot be put back"):
        restore(store, one)
    folder.unlink()
    moved.rename(folder)
    assert "put back" in restore(store, one)


def test_records_of_another_store_are_not_this_ones(tmp_path: Path) -> None:
    _, elsewhere = full_after(tmp_path, 3)
    other = Store(tmp_path / "other")
    assert rescued(other, elsewhere) == []
    assert fix(other, elsewhere) == []


def test_a_folder_that_cannot_be_made_is_tried_again_with_every_record(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("in the way")
    store = Store(tmp_path / "store")
    with pytest.raises(StoreError, match="cannot write to"):
        store.create(RUN)
    with store.create_anyway(RUN) as journal:
        extend(journal, plain_run()[:4])
        assert (journal.unsaved, journal.fault) == (4, "Not a directory")
        (tmp_path / "store").unlink()
        extend(journal, plain_run()[4:])
        assert (journal.unsaved, journal.fault) == (0, "")
        assert store.writer(RUN) is not None
    assert list(store.events(RUN)) == plain_run()
    assert store.writer(RUN) is None


def test_a_whole_run_that_never_had_a_folder_is_put_into_its_store(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("in the way")
    store, elsewhere = Store(tmp_path / "store"), tmp_path / "unsaved"
    with store.create_anyway(RUN) as journal:
        extend(journal, plain_run())
        journal.rescue(elsewhere)
    (tmp_path / "store").unlink()
    assert "put back" in fix(store, elsewhere)[0]
    assert list(store.events(RUN)) == plain_run()
