"""The writing side of a run: one unbuffered write per event, and nothing lost when a write fails."""

from __future__ import annotations

import errno
import hashlib
import os
import threading
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from workbench.context.message import canonical
from workbench.engine.journal.event import Event
from workbench.store.faults import StoreError
from workbench.store.journal.commits import commits
from workbench.store.journal.disk import NO_ROOM, Disk, File, LocalDisk, is_digest, write_whole
from workbench.store.journal.lock import WRITER_LOCK, FileLock
from workbench.store.journal.record import START, crc_of, encoded

# The folder of a run that cannot be made now: it is tried again with every record, which wait in memory meanwhile.


class LateFolder(LocalDisk):
    """The disk of such a run's journal, and its writer's lock once there is a folder to lock."""

    def __init__(self, folder: Path, make: Callable[[], None], lock: Callable[[Path], FileLock]) -> None:
        """``make`` makes the folder, or raises OSError."""
        self._folder = folder
        self._make = make
        self._take = lock
        self._lock: FileLock | None = None

    def create(self, path: Path) -> File:
        if self._lock is None:
            try:
                self._make()
            except FileExistsError as error:  # Of a folder; a journal would look for the next free file.
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), error.filename) from error
            try:
                self._lock = self._take(self._folder)
            except StoreError as error:
                raise OSError(errno.EIO, str(error)) from error
        return super().create(path)

    def release(self) -> None:
        """Let go of the run, if it was ever taken."""
        if self._lock is not None:
            self._lock.release()


SEGMENT_BYTES = 64 * 1024 * 1024
"""A segment that has grown to this size gives way to the next."""

INLINE_BYTES = 64 * 1024
"""A ``blob`` record longer than this keeps its body in a file."""

SYNC_SECONDS = 1.0
"""No record waits longer than this for the device."""

BELONGS = "belongs-to"
"""A file beside rescued records that names the folder of their run."""


class Journal:
    """Appends the events of one run; a ``Sink``.

    A failing disk never raises here: records wait in memory (``unsaved``, ``fault``) and are written to a new segment
    as soon as one can be had. Safe to use from several threads.
    """

    def __init__(
        self,
        folder: Path,
        *,
        lock: FileLock | LateFolder | None = None,
        next_seq: int = 1,
        first_segment: int = 1,
        last_crc: str = "",
        disk: Disk | None = None,
        on_append: Callable[[Event], None] = lambda event: None,
        on_close: Callable[[Journal], None] = lambda journal: None,
        sync_seconds: float = SYNC_SECONDS,
        segment_bytes: int = SEGMENT_BYTES,
        new_in: Path | None = None,
    ) -> None:
        """``folder`` exists and is the run's own; ``lock`` is its writer's lock if the caller has taken it already;
        ``last_crc`` is the checksum of the record before, which the next one names. ``new_in`` is the folder that the
        run's own was made in, where that name was not synced yet.

        Raises StoreBusy when another process writes this run.
        """
        self.folder = folder
        self.run_id = folder.name
        self.fault = ""
        """Why records are waiting; empty if none is."""
        self.not_durable = ""
        """Why written records may not survive a power cut; empty while syncs work."""
        self._disk = disk or LocalDisk()
        self._writer_lock = lock or writer_lock(folder)
        self._next_seq = next_seq
        self._last_crc = last_crc or (START if next_seq == 1 else "")
        self._number = first_segment
        self._segment: File | None = None
        self._named = False
        """Whether the name of the segment is durable."""
        self.new_in = new_in
        self._size = 0
        self._segment_bytes = segment_bytes
        self._waiting: deque[tuple[str, bytes]] = deque()
        """(name of a blob file, or "" for a record; bytes), in the order in which they must reach the disk."""
        self._unsynced: list[bytes] = []
        self._on_append = on_append
        self._on_close = on_close
        self._mutex = threading.RLock()
        self._one_sync = threading.Lock()
        """Taken before the mutex, and held while the device is waited for."""
        self._closed = False
        self._commits = commits()
        self._commits.watch(self, sync_seconds)

    # -- the Sink ----------------------------------------------------------------------------------------------------

    def append(self, event: Event) -> None:
        """Write one record. Raises ValueError for a gap in ``seq``, TypeError or ValueError for data beyond JSON."""
        with self._mutex:
            self._must_be_open()
            if event.seq != self._next_seq:
                raise ValueError(f"event {event.seq} does not follow event {self._next_seq - 1}")
            line = encoded(event, self._last_crc)
            if event.kind == "blob" and len(line) > INLINE_BYTES and "body" in event.data:
                line = self._moved_out(event)
            self._next_seq += 1
            self._last_crc = crc_of(line)
            self._waiting.append(("", line))
            self._write_waiting()
            self._on_append(event)

    def blob(self, digest: str, data: bytes) -> None:
        """Keep bytes under their sha256, durably, before the record that names them."""
        if not is_digest(digest):
            raise ValueError(f"{digest[:80]!a} is not a sha256 digest")
        with self._mutex:
            self._must_be_open()
            self._waiting.append((digest, data))
            self._write_waiting()

    def sync(self, named: Collection[Path] = ()) -> None:
        """Make everything appended so far durable; what cannot be saved now stays ``unsaved``. Names in the folders
        ``named`` are durable already."""
        with self._one_sync:
            with self._mutex:
                if self._closed:
                    return
                self._write_waiting()
                segment, count = self._segment, len(self._unsynced)
            if segment is None or not count:
                return
            fault: OSError | None = None
            try:
                self._name(named)
                segment.sync()  # the longest step by far: others append meanwhile
            except OSError as error:
                fault = error
            with self._mutex:
                if self._segment is segment:  # else it was synced when it was left
                    self._synced(count, fault)

    async def committed(self) -> None:
        """The same without holding up the event loop, together with other journals."""
        await self._commits.synced(self)

    @property
    def unsaved(self) -> int:
        """How many records are in memory only."""
        with self._mutex:
            return sum(1 for name, _ in self._waiting if not name)

    @property
    def seq(self) -> int:
        """Of the last event appended."""
        return self._next_seq - 1

    def rescue(self, elsewhere: Path) -> Path:
        """Write the waiting records below another folder, as the missing segment of this run. Returns its file.

        ``restore`` puts it into the run's own folder. Raises OSError.
        """
        with self._mutex:
            folder, disk = elsewhere / self.run_id, LocalDisk()
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(disk, folder / BELONGS, str(self.folder).encode("utf-8", "surrogateescape"))
            for name, data in self._waiting:
                if name:
                    write_whole(disk, folder / "blobs" / name, data)
            target = folder / f"{self._number + 1:06d}.jsonl"
            write_whole(disk, target, b"".join(data for name, data in self._waiting if not name))
            return target

    def close(self) -> None:
        """Sync, try once more to save what waits, and let go of the run. May be called twice."""
        if self._closed:
            return
        self.sync()
        if self._waiting:
            self.sync()
        with self._one_sync, self._mutex:
            if self._closed:
                return
            for _ in range(2):  # A first failed sync makes records wait, which are written once more.
                with suppress(OSError):
                    self._end_segment()
                    break
                self._write_waiting()
            self._closed = True
        self._commits.forget(self)
        try:
            self._on_close(self)
        finally:
            self._writer_lock.release()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # -- inside ------------------------------------------------------------------------------------------------------

    def _must_be_open(self) -> None:
        if self._closed:
            raise StoreError(f"the journal of run {self.run_id} is closed")

    def _moved_out(self, event: Event) -> bytes:
        """The record of a long body, whose canonical JSON goes to a file named by its sha256."""
        body = canonical(event.data["body"]).encode("ascii")
        name = hashlib.sha256(body).hexdigest()
        self._waiting.append((name, body))
        data = {key: value for key, value in event.data.items() if key != "body"} | {"file": name}
        return encoded(replace(event, data=data), self._last_crc)

    def _write_waiting(self) -> None:
        while self._waiting:
            name, data = self._waiting[0]
            try:
                if name:
                    self._write_blob(name, data)
                else:
                    self._write_line(data)
            except OSError as error:
                self.fault = error.strerror or str(error)
                return
            self._waiting.popleft()
        self.fault = ""

    def _write_blob(self, name: str, data: bytes) -> None:
        path = self.folder / "blobs" / name
        if not (path.is_file() and path.stat().st_size == len(data)):
            self.not_durable = write_whole(self._disk, path, data) or self.not_durable

    def _write_line(self, line: bytes) -> None:
        if self._size and self._size + len(line) > self._segment_bytes:
            self._end_segment()
        segment = self._segment or self._new_segment()
        try:
            written = segment.write(line)
            if written != len(line):
                raise OSError(errno.EIO, f"the disk took only {written} of {len(line)} bytes")
        except OSError as error:
            if error.errno not in NO_ROOM:  # Else the segment may hold a part of the record.
                with suppress(OSError):
                    self._end_segment()
            raise
        self._size += written
        self._unsynced.append(line)

    def _name(self, named: Collection[Path]) -> None:
        """Make the names of the segment and of its folder durable. Raises OSError where there is no room for them."""
        folders = [] if self._named else [self.folder]
        folders += [self.new_in] if self.new_in is not None and self.new_in not in named else []
        for folder in folders:
            try:
                self._disk.sync_folder(folder)
            except OSError as error:
                if error.errno in NO_ROOM:
                    raise
                self.not_durable = error.strerror or str(error)
        self._named, self.new_in = True, None

    def _new_segment(self) -> File:
        while True:
            try:
                self._segment = self._disk.create(self._path)
            except FileExistsError:
                self._number += 1
                continue
            self._size, self._named = 0, False
            return self._segment

    @property
    def _path(self) -> Path:
        return self.folder / f"{self._number:06d}.jsonl"

    def _end_segment(self) -> None:
        """Sync and leave this segment for good. Raises OSError when the sync fails and what the segment held waits
        again."""
        if self._segment is not None and self._unsynced:
            try:
                self._segment.sync()
            except OSError as error:
                if self._sync_failed(error):
                    raise
            else:
                self._unsynced.clear()
        self._leave_segment()

    def _sync_failed(self, error: OSError) -> bool:
        """Returns whether the unsynced records wait again.

        After a failed sync the kernel may have dropped accepted data, so the records are repeated in the next segment.
        If that cannot be synced either, the written data stays: it can be read, and ``not_durable`` says so.
        """
        again = error.errno in NO_ROOM or not self.not_durable
        if error.errno not in NO_ROOM:
            self.not_durable = error.strerror or str(error)
        if again:
            self._leave_segment()
        else:
            self._unsynced.clear()
        return again

    def _leave_segment(self) -> None:
        """Close this segment; records that were not synced wait for the next one."""
        segment, self._segment = self._segment, None
        if segment is None:
            return
        segment.close()
        if self._size == 0:
            with suppress(OSError):
                self._disk.remove(self._path)
        self._size = 0
        self._waiting.extendleft(("", line) for line in reversed(self._unsynced))
        self._unsynced.clear()

    def _synced(self, count: int, fault: OSError | None) -> None:
        if fault is None:
            del self._unsynced[:count]
            self.not_durable = ""
        elif self._sync_failed(fault):
            self.fault = fault.strerror or str(fault)


def writer_lock(folder: Path) -> FileLock:
    """The lock of the one process that appends to a run. Raises StoreBusy, StoreError."""
    return FileLock(folder / WRITER_LOCK, f"run {folder.name} is being written")
