"""The watcher: every kind of save is seen once it is complete, half a file never."""

from __future__ import annotations

import fcntl
import itertools
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE, until
from workbench.workspace.watch import GONE_SECONDS, LOOK_AGAIN_MS, QUIET_SECONDS, Watcher, lease, read_settled

needs_leases = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="file leases are a Linux call; elsewhere the quiet look is used"
)


class WatchedSaves:
    """What a watcher reported: the content of the file at that moment."""

    def __init__(self) -> None:
        self.contents: list[str | None] = []
        self._changed = threading.Condition()

    def __call__(self, file: Path, content: bytes | None) -> None:
        with self._changed:
            self.contents.append(content.decode() if content is not None else None)
            self._changed.notify_all()

    def wait_for(self, content: str | None) -> None:
        give_up = time.monotonic() + PATIENCE
        with self._changed:
            while content not in self.contents:
                assert self._changed.wait(give_up - time.monotonic()), f"only {self.contents!r} were seen"


@contextmanager
def watching(*files: Path, known: Mapping[Path, bytes] | None = None) -> Iterator[WatchedSaves]:
    seen = WatchedSaves()
    watcher = Watcher(
        lambda: files, seen, known if known is not None else {f: f.read_bytes() for f in files if f.exists()}
    )
    watcher.start()
    try:
        yield seen
    finally:
        watcher.stop()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    target = tmp_path / "a.yaml"
    target.write_text("phases: [one]\n")
    return target


def test_a_plain_write_is_seen(file: Path) -> None:
    with watching(file) as seen:
        file.write_text("phases: [two]\n")
        seen.wait_for("phases: [two]\n")


@pytest.mark.fault("F16")
def test_saves_that_replace_the_file_are_seen_every_time(file: Path) -> None:
    with watching(file) as seen:
        for number in range(5):
            fresh = file.with_name("a.yaml.new")
            fresh.write_text(f"phases: [n{number}]\n")
            fresh.replace(file)
            seen.wait_for(f"phases: [n{number}]\n")


def test_a_save_that_moves_the_old_file_away_first_is_seen(file: Path) -> None:
    with watching(file) as seen:
        file.rename(file.with_name("a.yaml~"))
        file.write_text("phases: [vim]\n")
        seen.wait_for("phases: [vim]\n")


def test_a_link_that_is_turned_to_another_file_is_seen(tmp_path: Path) -> None:
    first, second, link = tmp_path / "1.yaml", tmp_path / "2.yaml", tmp_path / "a.yaml"
    first.write_text("one\n")
    second.write_text("two\n")
    link.symlink_to(first)
    with watching(link) as seen:
        fresh = tmp_path / "fresh"
        fresh.symlink_to(second)
        fresh.replace(link)
        seen.wait_for("two\n")


def test_a_change_of_what_a_link_leads_to_in_another_folder_is_seen(tmp_path: Path) -> None:
    real = tmp_path / "elsewhere" / "real.yaml"
    real.parent.mkdir()
    real.write_text("one\n")
    link = tmp_path / "a.yaml"
    link.symlink_to(real)
    with watching(link) as seen:
        real.write_text("two\n")
        seen.wait_for("two\n")


def test_a_file_that_goes_away_is_told_about_once_it_stays_away(file: Path) -> None:
    with watching(file) as seen:
        file.unlink()
        seen.wait_for(None)
        file.write_text("back\n")
        seen.wait_for("back\n")


@pytest.mark.fault("F17")
def test_a_file_that_is_deleted_and_written_at_once_never_looks_gone(file: Path) -> None:
    for number in itertools.count():
        with watching(file) as seen:
            began = time.monotonic()
            file.unlink()
            file.write_text(f"phases: [again{number}]\n")
            took = time.monotonic() - began
            seen.wait_for(f"phases: [again{number}]\n")
        if took < GONE_SECONDS:  # Otherwise a busy machine held this thread for so long that the file was gone.
            break
    assert None not in seen.contents


def test_a_change_before_the_watch_began_is_seen(file: Path) -> None:
    with watching(file, known={file: b"as it was when it was opened\n"}) as seen:
        seen.wait_for("phases: [one]\n")


def test_other_files_of_the_folder_are_not_looked_at(file: Path) -> None:
    with watching(file) as seen:
        for name in ("b.yaml", ".a.yaml.swp", "journal.jsonl"):
            (file.parent / name).write_text("noise\n")
        file.write_text("phases: [end]\n")
        seen.wait_for("phases: [end]\n")
        assert seen.contents == ["phases: [end]\n"]


def test_saving_the_same_text_again_says_nothing(file: Path) -> None:
    with watching(file) as seen:
        file.write_text("phases: [one]\n")
        file.write_text("phases: [end]\n")
        seen.wait_for("phases: [end]\n")
        assert "phases: [one]\n" not in seen.contents


@pytest.mark.fault("F15")
def test_a_writer_that_takes_its_time_is_never_seen_half_done(file: Path) -> None:
    whole = "".join(f"line {number}\n" for number in range(200))
    with watching(file) as seen:
        with file.open("w") as writer:
            for at in range(0, len(whole), 97):
                writer.write(whole[at : at + 97])
                writer.flush()
                os.fsync(writer.fileno())
        seen.wait_for(whole)
        assert set(seen.contents) == {whole}


@pytest.mark.fault("F16")
def test_a_storm_of_saves_ends_with_the_last_one(file: Path) -> None:
    with watching(file) as seen:
        for number in range(100):
            fresh = file.with_name("fresh")
            fresh.write_text(f"phases: [n{number}]\n")
            fresh.replace(file)
        seen.wait_for("phases: [n99]\n")
        assert len(seen.contents) <= 100


def test_a_folder_that_appears_later_is_watched_from_then_on(tmp_path: Path) -> None:
    late = tmp_path / "late" / "a.yaml"
    with watching(late, known={late: b""}) as seen:
        late.parent.mkdir()
        late.write_text("here\n")
        seen.wait_for("here\n")


@needs_leases
def test_a_folder_that_is_missing_is_looked_for_now_and_then(tmp_path: Path) -> None:
    asked: list[float] = []

    def files() -> list[Path]:
        asked.append(time.monotonic())
        return [tmp_path / "later" / "a.yaml"]

    watcher = Watcher(files, lambda file, content: None)
    watcher.start()
    until(lambda: len(asked) > 1, "a second look")
    watcher.stop()
    assert asked[1] - asked[0] >= 0.9 * LOOK_AGAIN_MS / 1000


def test_a_lease_tells_whether_anybody_writes(file: Path) -> None:
    reader = os.open(file, os.O_RDONLY)
    try:
        assert lease(reader) == "free"
        with file.open("a"):
            assert lease(reader) == "busy"
        assert lease(reader) == "free"
    finally:
        os.close(reader)


@needs_leases
def test_asking_for_a_lease_leaves_none_behind(file: Path) -> None:
    reader = os.open(file, os.O_RDONLY)
    try:
        lease(reader)
        assert fcntl.fcntl(reader, fcntl.F_GETLEASE) == fcntl.F_UNLCK
    finally:
        os.close(reader)


@pytest.mark.fault("F15")
@pytest.mark.parametrize("half", ["", "phases: [o", "phases: [one]"])
def test_what_looks_like_half_a_file_is_believed_only_when_it_stays(file: Path, half: str) -> None:
    before = file.read_bytes() + b"more: text\n"
    file.write_text(half)
    start = time.monotonic()
    assert read_settled(file, before) == half.encode()
    assert time.monotonic() - start >= QUIET_SECONDS


def test_a_whole_file_is_believed_at_once_where_leases_work(file: Path) -> None:
    assert read_settled(file, b"phases: [before]\n") == b"phases: [one]\n"


def test_a_missing_file_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_settled(tmp_path / "none")
