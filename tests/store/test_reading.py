"""The reading side: every loss is noticed, and the rest is read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.store.examples import RUN, Writer, chained, flipped, plain_run, read_run
from workbench.engine.journal.event import Event
from workbench.store.journal.journal import Journal
from workbench.store.journal.reading import Tail, segments
from workbench.store.journal.record import crc_of, encoded
from workbench.store.store import Store

EVENTS = plain_run(turns=1)
LINES = chained(EVENTS)
WHOLE = b"".join(LINES)


def _run(folder: Path, *parts: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(parts, 1):
        (folder / f"{number:06d}.jsonl").write_bytes(part)
    return folder


@pytest.mark.fault("F12")
def test_a_journal_cut_at_any_byte_keeps_every_record_before_the_cut(tmp_path: Path) -> None:
    for cut in range(sum(map(len, LINES[:4])) + 1):
        read, health = read_run(_run(tmp_path, WHOLE[:cut]))
        complete = WHOLE[:cut].count(b"\n")
        assert read == EVENTS[:complete]
        torn = cut - sum(len(line) for line in LINES[:complete])
        assert [fault.size for fault in health.torn] == ([torn] if torn else [])
        assert not health.damaged
        assert health.whole


@pytest.mark.fault("F13")
@given(bit=st.integers(0, len(WHOLE) * 8 - 1))
def test_any_flipped_bit_is_noticed_and_the_other_records_are_read(
    tmp_path_factory: pytest.TempPathFactory, bit: int
) -> None:
    read, health = read_run(_run(tmp_path_factory.mktemp("flip"), flipped(WHOLE, bit)))
    assert health.notices
    assert all(event in EVENTS for event in read)
    assert len(read) >= len(EVENTS) - 2


def test_a_letter_that_became_nul_is_damage_and_not_the_room_behind_the_records(tmp_path: Path) -> None:
    spoilt = LINES[2][:50] + b"\0" + LINES[2][51:]
    read, health = read_run(_run(tmp_path, b"".join([*LINES[:2], spoilt, *LINES[3:]]) + bytes(100)))
    assert len(read) == len(EVENTS) - 1
    assert [fault.at for fault in health.damaged] == [len(LINES[0]) + len(LINES[1])]


@given(start=st.integers(0, len(WHOLE)), size=st.integers(1, 400))
def test_any_stretch_cut_out_is_noticed(tmp_path_factory: pytest.TempPathFactory, start: int, size: int) -> None:
    left = WHOLE[:start] + WHOLE[start + size :]
    read, health = read_run(_run(tmp_path_factory.mktemp("hole"), left))
    if len(read) < len(EVENTS):
        lost_at_the_end_alone = WHOLE.startswith(left) and left.endswith(b"\n")
        assert health.notices or lost_at_the_end_alone or not left
    assert all(event in EVENTS for event in read)


@given(data=st.data())
def test_any_exchange_of_two_records_is_told(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    one = data.draw(st.integers(0, len(LINES) - 2))
    other = data.draw(st.integers(one + 1, len(LINES) - 1))
    lines = list(LINES)
    lines[one], lines[other] = lines[other], lines[one]
    _, health = read_run(_run(tmp_path_factory.mktemp("order"), b"".join(lines)))
    assert "comes after record" in " ".join(health.problems)


def test_a_record_that_was_changed_behind_a_right_checksum_is_told(tmp_path: Path) -> None:
    other = replace(EVENTS[3], at="2026-01-01T00:00:09.000000Z")
    lines = [*LINES[:3], encoded(other, crc_of(LINES[2])), *LINES[4:]]
    _, health = read_run(_run(tmp_path, b"".join(lines)))
    assert [fault.reason for fault in health.damaged] == [
        "record 5 does not continue record 4: one of them was changed"
    ]


def test_a_journal_without_the_chain_still_reads_and_goes_on_with_it(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.create(RUN):
        pass
    (store.folder(RUN) / "000001.jsonl").write_bytes(b"".join(map(encoded, EVENTS[:-1])))
    with store.append_to(RUN) as journal:
        journal.append(EVENTS[-1])
    assert store.health(RUN).whole
    segment = store.folder(RUN) / "000001.jsonl"
    lines = segment.read_bytes().splitlines(keepends=True)
    changed = replace(EVENTS[len(lines) - 1], at="2026-01-01T00:00:09.000000Z")
    segment.write_bytes(b"".join([*lines[:-1], encoded(changed)]))
    assert not store.health(RUN).whole, "the first record of the chain names the last one before it"


def test_damage_names_the_segment_and_the_byte(tmp_path: Path) -> None:
    at = len(LINES[0]) + len(LINES[1])
    _, health = read_run(_run(tmp_path, LINES[0] + LINES[1] + flipped(LINES[2], 300) + LINES[3]))
    assert [(fault.segment, fault.at) for fault in health.damaged] == [("000001.jsonl", at)]
    assert health.missing == ((3, 3),)
    assert not health.whole


def test_a_torn_end_of_an_earlier_segment_does_not_hide_the_next(tmp_path: Path) -> None:
    read, health = read_run(_run(tmp_path, LINES[0] + LINES[1][:40], b"".join(LINES[1:])))
    assert read == EVENTS
    assert [fault.segment for fault in health.torn] == ["000001.jsonl"]
    assert health.whole


def test_records_repeated_in_the_next_segment_count_once(tmp_path: Path) -> None:
    read, health = read_run(_run(tmp_path, b"".join(LINES[:4]), b"".join(LINES[2:])))
    assert read == EVENTS
    assert health.records == len(EVENTS)
    assert health.whole


def test_a_missing_segment_is_a_gap(tmp_path: Path) -> None:
    _run(tmp_path, LINES[0], b"".join(LINES[1:3]), b"".join(LINES[3:]))
    (tmp_path / "000002.jsonl").unlink()
    assert read_run(tmp_path)[1].missing == ((2, 3),)


@pytest.mark.parametrize("harm", ["missing", "altered"])
def test_a_lost_body_is_named_and_the_run_still_reads(tmp_path: Path, harm: str) -> None:
    folder = tmp_path / RUN
    folder.mkdir()
    w = Writer()
    with Journal(folder) as journal:
        journal.append(w.event("blob", hash="h1", kind="wire", body="x" * 70_000, size=70_000))
        journal.append(w.event("run_finished", status="success"))
    (blob,) = (folder / "blobs").iterdir()
    if harm == "missing":
        blob.unlink()
    else:
        blob.write_bytes(flipped(blob.read_bytes(), 99))
    read, health = read_run(folder)
    assert health.lost_bodies == (blob.name,)
    assert [event.kind for event in read] == ["blob", "run_finished"]
    assert read[0].data["kind"] == "lost"
    assert not health.whole


def test_a_tail_gives_each_event_once_while_the_run_grows(tmp_path: Path) -> None:
    path = _run(tmp_path, b"") / "000001.jsonl"
    tail = Tail(tmp_path)
    seen: list[Event] = []
    for start in range(0, len(WHOLE), 97):
        with path.open("ab") as file:
            file.write(WHOLE[start : start + 97])
        seen += tail.poll()
    assert seen == EVENTS
    assert list(tail.poll()) == []
    assert tail.health.finished


def test_a_tail_follows_a_resumed_run_into_its_next_segment(tmp_path: Path) -> None:
    _run(tmp_path, LINES[0] + LINES[1][:30])
    tail = Tail(tmp_path)
    assert list(tail.poll()) == EVENTS[:1]
    (tmp_path / "000002.jsonl").write_bytes(b"".join(LINES[1:]))
    assert list(tail.poll()) == EVENTS[1:]
    assert [fault.size for fault in tail.health.torn] == [30]


def test_blobs_can_be_passed_over_and_are_still_checked(tmp_path: Path) -> None:
    blob = next(i for i, event in enumerate(EVENTS) if event.kind == "blob")
    tail = Tail(_run(tmp_path / "good", WHOLE), skip_blobs=True)
    assert "blob" not in {event.kind for event in tail.poll()}
    assert tail.health.whole
    harmed = [*LINES[:blob], flipped(LINES[blob], 2000), *LINES[blob + 1 :]]
    assert read_run(_run(tmp_path / "bad", b"".join(harmed)), skip_blobs=True)[1].damaged


def test_other_files_in_the_folder_are_no_segments(tmp_path: Path) -> None:
    _run(tmp_path, WHOLE)
    (tmp_path / "ingest.chdb.jsonl").write_text("{}\n")
    (tmp_path / "000001.torn").write_text("x")
    shutil.copy(tmp_path / "000001.jsonl", tmp_path / "copy.jsonl")
    assert segments(tmp_path) == ["000001.jsonl"]
