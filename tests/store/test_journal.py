"""The writing side: what is appended is on disk, whatever the disk does."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.store.examples import RUN, FailingDisk, Writer, extend, files_of, plain_run, read_run
from tests.support.waiting import PATIENCE
from workbench.engine.journal.event import Event
from workbench.engine.journal.memory_sink import MemorySink
from workbench.store.faults import StoreBusy, StoreError
from workbench.store.journal.disk import File, LocalDisk
from workbench.store.journal.journal import Journal
from workbench.store.journal.record import BadRecord, decoded, encoded


def _folder(root: Path) -> Path:
    folder = root / RUN
    folder.mkdir()
    return folder


def _write(folder: Path, events: list[Event], disk: FailingDisk | None = None) -> Journal:
    journal = Journal(folder, disk=disk, next_seq=events[0].seq)
    extend(journal, events)
    return journal


def test_what_is_appended_is_read_back_equal(tmp_path: Path) -> None:
    events = plain_run()
    _write(_folder(tmp_path), events).close()
    read, health = read_run(tmp_path / RUN)
    assert read == events
    assert health.whole
    assert health.finished
    assert not health.notices


def test_a_record_is_on_disk_before_anything_is_synced(tmp_path: Path) -> None:
    events = plain_run()
    journal = _write(_folder(tmp_path), events)
    assert read_run(tmp_path / RUN)[0] == events
    journal.close()


def test_a_line_is_ascii_json_with_version_and_checksum() -> None:
    event = Writer().event("state_set", key="smile", value="\N{GRINNING FACE}\ud83d")
    line = encoded(event)
    assert line.isascii()
    assert line.count(b"\n") == 1
    body = json.loads(line)
    assert body["v"] == 1
    assert len(body["crc"]) == 8
    assert decoded(line[:-1]) == event


def test_numbers_that_json_lacks_are_refused_and_leave_no_trace(tmp_path: Path) -> None:
    events = plain_run()
    with _write(_folder(tmp_path), events[:1]) as journal:
        with pytest.raises(ValueError, match="JSON"):
            journal.append(replace(events[1], data={"value": float("nan")}))
        journal.append(events[1])
    assert read_run(tmp_path / RUN)[0] == events[:2]


def test_a_gap_in_the_numbering_is_refused(tmp_path: Path) -> None:
    events = plain_run()
    with _write(_folder(tmp_path), events[:1]) as journal, pytest.raises(ValueError, match="does not follow"):
        journal.append(events[2])


def test_a_full_segment_gives_way_to_the_next(tmp_path: Path) -> None:
    events = plain_run(turns=20)
    journal = Journal(_folder(tmp_path), segment_bytes=1000)
    extend(journal, events)
    journal.close()
    segments = sorted((tmp_path / RUN).glob("*.jsonl"))
    assert len(segments) > 5
    assert all(segment.stat().st_size <= 1000 for segment in segments)
    assert read_run(tmp_path / RUN)[0] == events


def test_a_long_body_lies_in_a_file_and_comes_back_whole(tmp_path: Path) -> None:
    w = Writer()
    events = [w.event("blob", hash="h1", kind="wire", body="é" * 70_000, size=140_000), w.event("run_finished")]
    _write(_folder(tmp_path), events).close()
    (blob,) = (tmp_path / RUN / "blobs").iterdir()
    assert hashlib.sha256(blob.read_bytes()).hexdigest() == blob.name
    assert (tmp_path / RUN / "000001.jsonl").stat().st_size < 1000
    assert read_run(tmp_path / RUN)[0] == events


def test_a_second_writer_is_told_who_writes(tmp_path: Path) -> None:
    journal = _write(_folder(tmp_path), plain_run())
    with pytest.raises(StoreBusy, match=f"pid {os.getpid()}") as caught:
        Journal(tmp_path / RUN)
    assert caught.value.pid == os.getpid()
    journal.close()
    Journal(tmp_path / RUN).close()


def test_a_closed_journal_takes_nothing(tmp_path: Path) -> None:
    events = plain_run()
    journal = _write(_folder(tmp_path), events)
    journal.close()
    journal.close()
    with pytest.raises(StoreError, match="closed"):
        journal.append(Writer(seq=events[-1].seq).event("warning"))


def test_files_are_the_users_own(tmp_path: Path) -> None:
    w = Writer()
    events = [w.event("blob", hash="h1", kind="wire", body="x" * 70_000, size=70_000)]
    _write(_folder(tmp_path), events).close()
    assert {path.stat().st_mode & 0o777 for path in files_of(tmp_path)} == {0o600}


def test_a_record_is_synced_in_time_without_being_asked(tmp_path: Path) -> None:
    synced = threading.Event()

    class Noticing(LocalDisk):
        def create(self, path: Path) -> File:
            file = super().create(path)
            sync = file.sync

            def noticed() -> None:
                sync()
                synced.set()

            file.sync = noticed  # type: ignore[method-assign]
            return file

    journal = Journal(_folder(tmp_path), disk=Noticing(), sync_seconds=0.01)
    journal.append(plain_run()[0])
    assert synced.wait(PATIENCE)
    journal.close()


def test_others_append_while_the_device_is_waited_for(tmp_path: Path) -> None:
    reached, appended = threading.Event(), threading.Event()

    class Slow(LocalDisk):
        def create(self, path: Path) -> File:
            file = super().create(path)
            sync = file.sync

            def slowly() -> None:
                reached.set()
                assert appended.wait(PATIENCE), "the record behind it had to wait"
                sync()

            file.sync = slowly  # type: ignore[method-assign]
            return file

    first, second = plain_run()[:2]
    with Journal(_folder(tmp_path), disk=Slow()) as journal:
        journal.append(first)
        syncing = threading.Thread(target=journal.sync)
        syncing.start()
        assert reached.wait(PATIENCE)
        journal.append(second)
        appended.set()
        syncing.join()
    assert read_run(tmp_path / RUN)[0] == [first, second]


@pytest.mark.fault("F35")
@pytest.mark.parametrize("way", ["full", "torn", "short", "error"])
def test_no_record_is_lost_whichever_operation_fails(tmp_path: Path, way: str) -> None:
    w = Writer()
    events = [*plain_run(status=""), *[Writer(seq=8).event("warning", text="w")]]
    w.seq = events[-1].seq
    events += [w.event("blob", hash="big", kind="wire", body="b" * 70_000, size=70_000), w.event("run_finished")]
    n = 0
    while True:
        root = tmp_path / str(n)
        root.mkdir()
        disk = FailingDisk({n: way})
        journal = Journal(_folder(root), disk=disk, sync_seconds=3600)
        for event in events:
            journal.append(event)
            if event.seq % 3 == 0:
                journal.sync()
        journal.close()
        assert journal.unsaved == 0
        read, health = read_run(root / RUN)
        assert read == events, f"operation {n} failed by {way}"
        assert health.whole
        n += 1
        if n > disk.operations:
            break
    assert n > 12


@pytest.mark.fault("F35")
@given(failures=st.dictionaries(st.integers(0, 60), st.sampled_from(["full", "torn", "short", "error"]), max_size=25))
def test_no_record_is_lost_by_any_series_of_failures(
    tmp_path_factory: pytest.TempPathFactory, failures: dict[int, str]
) -> None:
    events = plain_run(turns=4)
    disk = FailingDisk(failures)
    folder = _folder(tmp_path_factory.mktemp("failing"))
    journal = Journal(folder, disk=disk, sync_seconds=3600)
    for event in events:
        journal.append(event)
        journal.sync()
    disk.failures.clear()
    journal.close()
    assert journal.unsaved == 0
    assert read_run(folder)[0] == events


@pytest.mark.fault("F8")
def test_a_disk_that_stays_full_shows_and_a_freed_one_catches_up(tmp_path: Path) -> None:
    events = plain_run()
    disk = FailingDisk()
    journal = Journal(_folder(tmp_path), disk=disk)
    journal.append(events[0])
    disk.always = "full"
    extend(journal, events[1:5])
    assert journal.unsaved == 4
    assert journal.fault == os.strerror(28)
    disk.always = ""
    extend(journal, events[5:])
    assert journal.unsaved == 0
    assert journal.fault == ""
    journal.close()
    assert read_run(tmp_path / RUN)[0] == events


@pytest.mark.fault("F8")
def test_a_disk_that_takes_records_and_cannot_sync_keeps_them_all_and_says_so(tmp_path: Path) -> None:
    events = plain_run(turns=20)
    disk = FailingDisk()
    journal = Journal(_folder(tmp_path), disk=disk, sync_seconds=3600)
    half = len(events) // 2
    for event in events[:half]:
        journal.append(event)
        journal.sync()
        disk.syncs = "error"
    assert (journal.unsaved, journal.fault, journal.not_durable) == (0, "", os.strerror(errno.EIO))
    disk.syncs = ""
    journal.append(events[half])
    journal.sync()
    assert journal.not_durable == ""
    disk.syncs = "error"
    extend(journal, events[half + 1 :])
    journal.close()
    assert journal.unsaved == 0
    assert read_run(tmp_path / RUN)[0] == events
    assert len(list((tmp_path / RUN).glob("*.jsonl"))) <= 3


FULL, ERROR = os.strerror(errno.ENOSPC), os.strerror(errno.EIO)


@pytest.mark.fault("F8")
@pytest.mark.parametrize(
    ("segment_bytes", "steps"),
    [
        pytest.param(
            10**6,
            [
                ("", (0, "", "")),
                ("full", (1, FULL, "")),
                ("full", (2, FULL, "")),
                ("", (0, "", "")),
                ("error", (1, ERROR, ERROR)),
                ("full", (2, FULL, ERROR)),
                ("error", (0, "", ERROR)),
                ("error", (0, "", ERROR)),
                ("", (0, "", "")),
            ],
            id="each record is synced",
        ),
        pytest.param(
            1,
            [
                ("", (0, "", "")),
                ("full", (2, FULL, "")),
                ("full", (3, FULL, "")),
                ("", (0, "", "")),
                ("error", (2, ERROR, ERROR)),
                ("error", (0, "", ERROR)),
                ("full", (2, FULL, ERROR)),
                ("", (0, "", ERROR)),
            ],
            id="each record ends a segment, which is synced then",
        ),
    ],
)
def test_after_each_failed_sync_records_wait_or_are_told_not_to_be_durable(
    tmp_path: Path, segment_bytes: int, steps: list[tuple[str, tuple[int, str, str]]]
) -> None:
    """A full disk never counts as written. After an error records are written once more; where that does not help,
    they stay where they are."""
    events, disk = plain_run(turns=4)[: len(steps)], FailingDisk()
    with Journal(_folder(tmp_path), disk=disk, sync_seconds=3600, segment_bytes=segment_bytes) as journal:
        for event, (disk.syncs, expected) in zip(events, steps, strict=True):
            journal.append(event)
            if segment_bytes > 1:
                journal.sync()
            assert (journal.unsaved, journal.fault, journal.not_durable) == expected, event.seq
    assert journal.not_durable == ""
    assert read_run(tmp_path / RUN)[0] == events


def test_an_io_error_that_stays_leaves_no_trail_of_empty_segments(tmp_path: Path) -> None:
    disk = FailingDisk()
    disk.failures = dict.fromkeys(range(4, 200, 5), "error")
    with Journal(_folder(tmp_path), disk=disk, sync_seconds=3600) as journal:
        extend(journal, plain_run(turns=10))
    assert all(path.stat().st_size for path in (tmp_path / RUN).glob("*.jsonl"))


def test_a_memory_sink_keeps_events_and_blobs() -> None:
    sink = MemorySink()
    events = plain_run()
    for event in events:
        sink.append(event)
    sink.blob("d", b"png")
    sink.sync()
    assert sink.events == events
    assert sink.blobs == {"d": b"png"}


def test_a_line_of_another_program_is_no_record() -> None:
    for line in (b"", b"{}", b'{"v":1,"crc":"00000000"}', b'["crc"]'):
        with pytest.raises(BadRecord):
            decoded(line)


ENDS_WITH_OPEN_JOURNALS = """
import atexit, threading
from workbench.store.journal.commits import commits

class Open:
    new_in = None

    def __init__(self):
        self.came = threading.Event()

    def sync(self, named=()):
        self.came.set()

def synced():
    journals = [Open(), Open()]
    for one in journals:
        commits().watch(one, 0.0)
    return all([one.came.wait(20) for one in journals])

assert synced()
atexit.register(lambda: print("kept" if synced() else "lost"))
"""


def test_open_journals_are_synced_to_the_end_of_the_process() -> None:
    command = [sys.executable, "-c", ENDS_WITH_OPEN_JOURNALS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert (done.stdout, done.stderr) == ("kept\n", "")
