"""Puts records back that did not fit into the store when their run was made (``Journal.rescue``)."""

from __future__ import annotations

import shutil
from pathlib import Path

from msgspec import Struct

from workbench.store.faults import StoreBusy, StoreError
from workbench.store.journal.disk import LocalDisk, is_id, write_whole
from workbench.store.journal.journal import BELONGS, writer_lock
from workbench.store.journal.reading import JournalLine, Tail, segments
from workbench.store.store import Store


class RescuedRecords(Struct, frozen=True):
    """Records of one run of a store that lie outside it."""

    run_id: str
    folder: Path
    records: int

    def __str__(self) -> str:
        return f"run {self.run_id}: {self.records} of its records lie in {self.folder}"


def rescued(store: Store, elsewhere: Path) -> list[RescuedRecords]:
    """Returns the records below ``elsewhere`` of runs of this store; those of other stores are passed over."""
    try:
        folders = sorted(path for path in elsewhere.iterdir() if is_id(path.name) and path.is_dir())
    except OSError:
        return []
    found = [(folder, _lines(folder)) for folder in folders if _is_of(store, folder)]
    return [RescuedRecords(folder.name, folder, len(lines)) for folder, (lines, _) in found]


def restore(store: Store, one: RescuedRecords) -> str:
    """Move the records into the run's journal, read it again, and only then remove the originals. Returns what was
    done.

    Raises StoreError and leaves the originals if they do not fit onto the run (it continued without them), are damaged,
    or there is still no space.
    """
    lines, damage = _lines(one.folder)
    if damage or not lines:
        raise StoreError(f"{one}; they are damaged ({damage or 'nothing can be read'}), and stay there")
    target = store.journals / one.run_id
    try:
        store.make_folder(one.run_id)
        lock = writer_lock(target)
    except OSError as error:
        raise StoreError(f"{one}, and cannot be put back: {error.strerror}") from error
    try:
        added = _put_back(one, lines, target)
    except StoreBusy:
        raise
    except OSError as error:
        raise StoreError(f"{one}, and cannot be put back: {error.strerror}") from error
    finally:
        lock.release()
    try:
        shutil.rmtree(one.folder)
    except OSError as error:
        raise StoreError(f"{one}; they were put back, and cannot be removed there: {error.strerror}") from error
    return f"run {one.run_id}: {added} records put back from {one.folder}"


def _put_back(one: RescuedRecords, lines: list[JournalLine], target: Path) -> int:
    there = {line.seq: line.raw for line in Tail(target, skip_blobs=True).lines()}
    missing = [line for line in lines if line.seq not in there]
    if any(there.get(line.seq, line.raw) != line.raw for line in lines):
        raise StoreError(f"{one}; they do not fit onto the run, which went on without them, and stay there")
    if missing and missing[0].seq != max(there, default=0) + 1:
        raise StoreError(f"{one}; records before them are missing, and they stay there")
    disk = LocalDisk()
    for blob in (one.folder / "blobs").glob("*"):
        if not blob.name.startswith("."):
            write_whole(disk, target / "blobs" / blob.name, blob.read_bytes())
    if missing:
        number = max((int(name[:-6]) for name in segments(target)), default=0) + 1
        file = target / f"{number:06d}.jsonl"
        write_whole(disk, file, b"".join(line.raw for line in missing))
        _verify(one, target, file, missing[-1].seq)
    return len(missing)


def _verify(one: RescuedRecords, target: Path, file: Path, last: int) -> None:
    """Raises StoreError and removes the new segment, if the journal cannot be read to its end with it."""
    tail = Tail(target)
    for _ in tail.poll():
        pass
    if tail.health.last_seq != last or not tail.health.whole:
        file.unlink()
        raise StoreError(f"{one}; the run is not whole with them ({'; '.join(tail.health.problems)}): they stay there")


def _is_of(store: Store, folder: Path) -> bool:
    try:
        return Path((folder / BELONGS).read_text("utf-8", "surrogateescape")) == store.journals / folder.name
    except OSError:
        return (store.journals / folder.name).is_dir()


def _lines(folder: Path) -> tuple[list[JournalLine], str]:
    """The records, and the problems of their files."""
    tail = Tail(folder, skip_blobs=True)
    try:
        lines = list(tail.lines())
    except OSError as error:
        return [], error.strerror or "cannot be read"
    faults = (*tail.health.damaged, *tail.health.torn)
    return lines, "; ".join(f"{fault.segment} at byte {fault.at}: {fault.reason}" for fault in faults)
