"""Version 0.1.0 wrote NULs ahead of the records of a segment: no reader takes them for a part of the run."""

from __future__ import annotations

import os
from pathlib import Path

from tests.store.examples import RUN, chained, plain_run, read_run
from workbench.store.index.health import examine, fix
from workbench.store.journal.journal import Journal
from workbench.store.journal.reading import ROOM, Tail, written
from workbench.store.store import Store
from workbench.store.summary import identity, size_of
from workbench.store.text_search import Phrase, TextSearch

EVENTS = plain_run(turns=8)
LINES = chained(EVENTS)
SEGMENT = "000001.jsonl"


def with_room(lines: list[bytes]) -> bytes:
    """A segment as 0.1.0 left it where its process died."""
    return b"".join(lines).ljust(ROOM, b"\0")


def died(root: Path) -> Store:
    """A store with a run of 0.1.0 that lacks its last record."""
    store = Store(root)
    with store.create(RUN) as journal:
        journal.append(EVENTS[0])
    (store.folder(RUN) / SEGMENT).write_bytes(with_room(LINES[:-1]))
    return store


def test_a_segment_that_is_synced_often_holds_its_records_and_nothing_else(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        for event in EVENTS:
            journal.append(event)
            journal.sync()
            assert (tmp_path / SEGMENT).read_bytes() == b"".join(LINES[: event.seq])


def test_a_segment_with_room_is_read_as_its_records(tmp_path: Path) -> None:
    path, tail = tmp_path / SEGMENT, Tail(tmp_path)
    for event in EVENTS:
        path.write_bytes(with_room(LINES[: event.seq]))
        assert list(tail.poll()) == [event]
        assert not tail.health.torn
        assert size_of(identity(tmp_path)) == written(path) == len(b"".join(LINES[: event.seq]))
    assert read_run(tmp_path)[0] == EVENTS


def test_a_run_whose_process_died_is_whole_and_goes_on(tmp_path: Path) -> None:
    store = died(tmp_path)
    assert store.health(RUN).notices == ()
    assert store.summary(RUN).bytes == sum(map(len, LINES[:-1]))
    assert fix(store) == []
    with store.append_to(RUN) as journal:
        journal.append(EVENTS[-1])
    assert list(store.events(RUN)) == EVENTS
    assert store.health(RUN).notices == ()


def test_room_that_was_half_made_when_the_process_died_is_no_record(tmp_path: Path) -> None:
    store = died(tmp_path)
    os.truncate(store.folder(RUN) / SEGMENT, ROOM - 5000)
    assert store.health(RUN).notices == ()
    assert fix(store) == []


def test_a_torn_record_before_the_room_is_told_and_mended(tmp_path: Path) -> None:
    store = died(tmp_path)
    segment = store.folder(RUN) / SEGMENT
    at = sum(map(len, LINES[:-1]))
    with segment.open("r+b") as file:
        file.seek(at)
        file.write(LINES[-1][:30])
    said = f"run {RUN}: {SEGMENT} ends in a torn record at byte {at} (30 bytes ignored)"
    assert examine(store).notices == (said,)
    fix(store)
    assert segment.with_name(f"{SEGMENT}.torn").read_bytes() == LINES[-1][:30]
    assert list(store.events(RUN)) == EVENTS[:-1]
    assert store.health(RUN).notices == ()


def test_what_stands_behind_a_stretch_that_the_device_did_not_get_is_told_as_lost(tmp_path: Path) -> None:
    """Power was lost before a sync: of what it would have written the device has the end, and not the beginning."""
    store = died(tmp_path)
    at = sum(map(len, LINES[:-1]))
    with (store.folder(RUN) / SEGMENT).open("r+b") as file:
        file.seek(at + 50)
        file.write(LINES[-1][50:])
    assert store.health(RUN).whole
    assert [fault.at for fault in store.health(RUN).torn] == [at]
    with store.append_to(RUN) as journal:
        journal.append(EVENTS[-1])
    assert list(store.events(RUN)) == EVENTS


def test_a_record_that_is_just_being_written_is_read_once_it_is_whole(tmp_path: Path) -> None:
    path, line = tmp_path / SEGMENT, LINES[0]
    path.write_bytes(line[:40] + bytes(20) + line[60:] + bytes(ROOM - len(line)))
    tail = Tail(tmp_path)
    assert list(tail.poll()) == []
    path.write_bytes(with_room(LINES[:1]))
    assert list(tail.poll()) == EVENTS[:1]
    assert not tail.health.damaged


def test_what_was_written_into_the_room_is_found(tmp_path: Path) -> None:
    store = died(tmp_path)
    search = TextSearch(store)
    assert search.find(RUN, Phrase("done")) is None
    (store.folder(RUN) / SEGMENT).write_bytes(with_room(LINES))
    assert search.find(RUN, Phrase("done")) is not None
