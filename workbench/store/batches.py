"""Batches on disk: for each a folder with its plan and a file of records that is only ever appended to."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from workbench.files import write_whole
from workbench.store.faults import StoreError, UnknownRun
from workbench.store.journal.disk import is_id, make_root, safe_join
from workbench.store.journal.lock import FileLock, Holder, holder_of
from workbench.store.journal.record import BadRecord, check, sealed

FOLDER, PLAN, RECORDS, LOCK = "batches", "plan.json", "records.jsonl", "writer.lock"


def batch_names(root: Path) -> list[str]:
    """The batches of a store (its folder), the one that was written last first."""
    try:
        found = [entry for entry in os.scandir(root / FOLDER) if entry.is_dir() and is_id(entry.name)]
        return [entry.name for entry in sorted(found, key=lambda one: -_changed(Path(one.path)))]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _changed(folder: Path) -> float:
    times = [file.stat().st_mtime for name in (PLAN, RECORDS) if (file := folder / name).is_file()]
    return max(times, default=0.0)


class BatchFolder:
    """One batch. Reading needs no lock."""

    def __init__(self, root: Path, name: str) -> None:
        """``root`` is the folder of the store. Raises UnknownRun for what cannot be a name."""
        if not is_id(name):
            raise UnknownRun(f"'{name[:80]}' is not a name of a batch: letters, digits, '.', '_' and '-'")
        self.name, self._root = name, root
        self.path = safe_join(root / FOLDER, name)

    def plan(self) -> Any:
        """The JSON of the plan. Raises UnknownRun if there is no such batch, StoreError if it cannot be read."""
        try:
            return json.loads((self.path / PLAN).read_bytes())
        except FileNotFoundError:
            known = ", ".join(batch_names(self._root)[:8])
            more = f"; there are {known}" if known else ""
            raise UnknownRun(f"no batch is named '{self.name}'{more}") from None
        except (OSError, ValueError) as fault:
            raise StoreError(f"the plan of batch {self.name} cannot be read: {fault}") from fault

    def records(self) -> Iterator[Mapping[str, Any]]:
        """All whole records in order; a line that was cut off or altered is passed over. Raises StoreError."""
        yield from self.records_from(0)[0]

    def records_from(self, start: int) -> tuple[Iterator[Mapping[str, Any]], int]:
        """The records from a place of the file on, and the place after the last of them. Raises StoreError."""
        try:
            with (self.path / RECORDS).open("rb") as file:
                file.seek(start)
                data = file.read()
        except FileNotFoundError:
            return iter(()), 0
        except OSError as fault:
            raise StoreError(f"the records of batch {self.name} cannot be read: {fault.strerror}") from fault
        whole = data.rfind(b"\n") + 1
        return _records(data[:whole]), start + whole

    def changed(self) -> int:
        """When the plan was written, in nanoseconds of the system's clock; 0 where there is none."""
        try:
            return (self.path / PLAN).stat().st_mtime_ns
        except OSError:
            return 0

    def size(self) -> int:
        """Bytes of the records; 0 where there are none."""
        try:
            return (self.path / RECORDS).stat().st_size
        except OSError:
            return 0

    def runs_in(self) -> Holder | None:
        """The other process that runs the batch now; None if none does."""
        holder = holder_of(self.path / LOCK)
        return holder if holder is not None and holder.pid != os.getpid() else None


def _records(data: bytes) -> Iterator[Mapping[str, Any]]:
    for line in data.split(b"\n"):
        try:
            if line:
                check(line)
                yield json.loads(line)
        except (BadRecord, ValueError, RecursionError):
            continue


class BatchWriter:
    """Writes one batch; one process at a time. A context manager."""

    def __init__(self, folder: BatchFolder) -> None:
        """Raises StoreBusy if another process works on it, StoreError."""
        self.folder = folder
        try:
            if not folder.path.parent.is_dir():
                make_root(folder.path.parent.parent)
            folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot write to {folder.path}: {error.strerror}") from error
        self._lock = FileLock(folder.path / LOCK, f"batch {folder.name} is being run")
        self._fd = -1

    def __enter__(self) -> BatchWriter:
        try:
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._fd = os.open(self.folder.path / RECORDS, flags, 0o600)
            size = os.fstat(self._fd).st_size
            if size and os.pread(self._fd, 1, size - 1) != b"\n":  # A write that was cut off: its line ends here.
                os.write(self._fd, b"\n")
        except OSError as error:
            self.__exit__()
            raise StoreError(f"cannot write to {self.folder.path}: {error.strerror}") from error
        return self

    def __exit__(self, *fault: object) -> None:
        if self._fd >= 0:
            os.fsync(self._fd)
            os.close(self._fd)
            self._fd = -1
        self._lock.release()

    def forget(self) -> None:
        """Close what a fork has inherited: the batch is its parent's."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def write_plan(self, plan: Mapping[str, Any]) -> None:
        """Replace the plan. Raises StoreError."""
        try:
            write_whole(self.folder.path / PLAN, json.dumps(plan, default=str).encode(), 0o600)
        except OSError as error:
            raise StoreError(f"cannot write to {self.folder.path}: {error.strerror}") from error

    def add(self, record: Mapping[str, Any]) -> None:
        """Append a record. It outlives the process at once, and a loss of power from the end of the batch on: the
        journals of the runs hold what it says. Raises StoreError."""
        line = sealed(json.dumps(record, ensure_ascii=True, separators=(",", ":"), default=str)[:-1].encode("ascii"))
        try:
            if os.write(self._fd, line) != len(line):
                raise OSError(28, os.strerror(28))
        except OSError as error:
            raise StoreError(f"batch {self.folder.name} cannot be written: {error.strerror}") from error
