"""The reading side of a run: events in order, and the health of the files they came from."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

from msgspec import Struct
from msgspec.structs import replace

from workbench.engine.journal.event import Event
from workbench.files import read_plain
from workbench.store.journal import record
from workbench.store.journal.disk import is_digest

ROOM = 256 * 1024
"""Bytes: version 0.1.0 wrote NULs ahead of the records of a segment, up to a multiple of this. They stay where its
process died."""
_CHUNK = 1 << 20
_SHORT = 2048
"""Bytes of a record."""


class Fault(Struct, frozen=True):
    """A stretch of a segment that is not a record."""

    segment: str
    at: int
    """Byte offset of its first byte."""
    size: int
    reason: str


class Health(Struct, frozen=True):
    """The health of a journal's files, as found by reading it."""

    records: int = 0
    last_seq: int = 0
    torn: tuple[Fault, ...] = ()
    """Unterminated ends of segments: what a crash or a full disk leaves."""
    damaged: tuple[Fault, ...] = ()
    missing: tuple[tuple[int, int], ...] = ()
    """Ranges of sequence numbers that are not there, first and last."""
    lost_bodies: tuple[str, ...] = ()
    """Blob files that are missing or altered."""
    shorter: tuple[tuple[str, int], ...] = ()
    """Segments that a summary was made of when they were longer, and by how many bytes. Such a run can go on, as after
    a crash."""
    finished: bool = False
    """The last event ends the run."""

    @property
    def whole(self) -> bool:
        """No record is missing between the first and the last: such a run can be replayed."""
        return not (self.damaged or self.missing or self.lost_bodies)

    @property
    def problems(self) -> tuple[str, ...]:
        """Lost parts, one sentence each."""
        return (
            *(f"{f.segment} damaged at byte {f.at}: {f.reason} ({f.size} bytes)" for f in self.damaged),
            *(f"records {first} to {last} are missing" for first, last in self.missing),
            *(f"blobs/{name[:12]}… is missing or altered" for name in self.lost_bodies),
            *(f"{name} has lost its end ({size} bytes)" for name, size in self.shorter),
        )

    @property
    def notices(self) -> tuple[str, ...]:
        """Messages for a person, lost parts first."""
        torn = (f"{f.segment} ends in a torn record at byte {f.at} ({f.size} bytes ignored)" for f in self.torn)
        return (*self.problems, *torn)


class JournalLine(Struct, frozen=True):
    """One record and its position. ``event`` is None for a skipped ``blob``."""

    segment: str
    start: int
    end: int
    """Offset after the newline."""
    seq: int
    event: Event | None
    raw: bytes


class Tail:
    """Reads a run as it grows; each ``poll`` gives the records completed since the last."""

    def __init__(self, folder: Path, *, skip_blobs: bool = False) -> None:
        """With ``skip_blobs`` bodies are checked but neither parsed nor given."""
        self.folder = folder
        self._skip_blobs = skip_blobs
        self._segment = ""
        self._offset = 0
        self._seq = 0
        self._records = 0
        self._torn: list[Fault] = []
        self._damaged: list[Fault] = []
        self._missing: list[tuple[int, int]] = []
        self._lost: list[str] = []
        self.unread = 0
        """Damaged lines behind the last record read."""
        self._last_kind = ""
        self.last_crc = ""
        """Of the last record read, whatever is wrong with it; empty before the first."""
        self._repeats = True
        """The segment has no new record yet: its first ones may repeat records that a failing disk may have lost."""

    def poll(self) -> Iterator[Event]:
        """New events, in order. Raises OSError when the folder cannot be read."""
        return (line.event for line in self.lines() if line.event is not None)

    def lines(self) -> Iterator[JournalLine]:
        """New records with their places; the same position as ``poll``."""
        names = segments(self.folder)
        for number, name in enumerate(names):
            if name < self._segment:
                continue
            if name != self._segment:
                self._segment, self._offset, self._repeats = name, 0, True
            yield from self._segment_lines(name)
            if number + 1 < len(names):
                self._end_of_segment(name)

    @property
    def waiting(self) -> int:
        """Bytes at the end of the last segment that are no complete record yet."""
        if not self._segment:
            return 0
        try:
            with (self.folder / self._segment).open("rb") as file:
                file.seek(self._offset)
                return len(file.read().rstrip(b"\0"))
        except OSError:
            return 0

    @property
    def health(self) -> Health:
        """Health of what was read so far; an unterminated end counts as torn."""
        torn = list(self._torn)
        if waiting := self.waiting:
            torn.append(Fault(self._segment, self._offset, waiting, "unterminated"))
        return Health(
            self._records,
            self._seq,
            tuple(torn),
            tuple(self._damaged),
            tuple(self._missing),
            tuple(self._lost),
            _shorter(self.folder),
            self._last_kind == "run_finished",
        )

    def _segment_lines(self, name: str) -> Iterator[JournalLine]:
        try:
            with (self.folder / name).open("rb", buffering=_CHUNK) as file:
                file.seek(self._offset)
                for raw in file:
                    if not raw.endswith(b"\n"):
                        return
                    if b"\0" in raw and not (raw := self._settled(name, len(raw))):
                        return  # A record holds no NUL: here begins what version 0.1.0 left.
                    start, self._offset = self._offset, self._offset + len(raw)
                    line = self._read(name, start, raw)
                    if line is not None:
                        yield line
        except OSError as error:
            self._damaged.append(Fault(name, self._offset, 0, f"cannot be read: {error.strerror}"))

    def _settled(self, name: str, size: int) -> bytes:
        """The line that begins here, read again, if a record follows it: then it is complete, and a NUL still in it is
        damage. Empty if none follows.
        """
        with (self.folder / name).open("rb") as file:
            file.seek(self._offset + size)
            behind = file.readline()
            if b"\0" in behind or not behind.endswith(b"\n"):
                return b""
            file.seek(self._offset)
            return file.readline()

    def _read(self, name: str, start: int, raw: bytes) -> JournalLine | None:
        body = raw[:-1]
        try:
            event: Event | None = None
            # A short one may name a file, which is to be checked too.
            seq = record.blob_seq(body) if self._skip_blobs and len(body) > _SHORT else None
            if seq is None:
                event = record.decoded(body)
                seq = event.seq
            else:
                record.check(body)
        except record.BadRecord as error:
            self._damaged.append(Fault(name, start, len(raw), str(error)))
            self.unread += 1
            self.last_crc = ""
            if error.seq == self._seq + 1:
                self._seq, self.last_crc = error.seq, record.crc_of(raw)
            return None
        if seq <= self._seq:
            if not self._repeats:
                self._damaged.append(Fault(name, start, len(raw), f"record {seq} comes after record {self._seq}"))
            return None
        self._repeats, self.unread = False, 0
        if seq > self._seq + 1:
            self._missing.append((self._seq + 1, seq - 1))
        elif (link := record.link_of(raw)) and self.last_crc and link != self.last_crc:
            reason = f"record {seq} does not continue record {seq - 1}: one of them was changed"
            self._damaged.append(Fault(name, start, len(raw), reason))
        self.last_crc = record.crc_of(raw)
        self._seq = seq
        self._records += 1
        self._last_kind = event.kind if event is not None else "blob"
        if event is not None and event.kind == "blob":
            event = self._checked(event)
        return JournalLine(name, start, start + len(raw), seq, event, raw)

    def _checked(self, event: Event) -> Event | None:
        """The event of a body, with the content of its own file if it has one; None for a skipped one."""
        if "file" in event.data:
            event = self._with_body(event)
        elif event.data.get("kind") in ("image", "text") and read_blob(self.folder, event.data.get("hash")) is None:
            self._lost.append(str(event.data.get("hash")))
        return None if self._skip_blobs else event

    def _with_body(self, event: Event) -> Event:
        """A body that was moved to a file, put back; one that is lost gives a ``blob`` of kind ``lost``."""
        name = event.data["file"]
        data = {key: value for key, value in event.data.items() if key != "file"}
        body = read_blob(self.folder, name)
        try:
            if body is not None:
                return replace(event, data=data | {"body": json.loads(body)})
        except ValueError:
            pass  # Whatever was put there under a name that fits, it is no body.
        self._lost.append(name)
        return replace(event, data=data | {"kind": "lost", "of": data.get("kind", "")})

    def _end_of_segment(self, name: str) -> None:
        if waiting := self.waiting:
            self._torn.append(Fault(name, self._offset, waiting, "unterminated"))
            self._offset += waiting


def segments(folder: Path) -> list[str]:
    """Names of a run's segments, in order. Raises OSError."""
    with os.scandir(folder) as entries:
        named = [entry for entry in entries if entry.name.endswith(".jsonl") and entry.name[:-6].isdigit()]
        return sorted(entry.name for entry in named if entry.is_file())  # No pipe and no device: they have no end.


def written(segment: Path) -> int:
    """Bytes of a segment, without the NULs that version 0.1.0 wrote behind its records. Raises OSError."""
    size = segment.stat().st_size
    if not size or size % ROOM:
        return size
    with segment.open("rb", buffering=0) as file:
        file.seek(size - ROOM)
        return size - ROOM + len(file.read(ROOM).rstrip(b"\0"))


SUMMARY = "summary.json"
"""Beside the segments: what they held when they were read last."""


def read_summary(folder: Path) -> dict[str, Any] | None:
    """The content of a run's summary, whatever its format; None if there is none, or it is damaged or of another
    run."""
    try:
        body = json.loads(read_plain(folder / SUMMARY))
        own = body.pop("crc") == summary_checksum(body) and body["summary"]["run_id"] == folder.name
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return body if own else None


def summary_checksum(body: Mapping[str, Any]) -> str:
    """What a summary holds beside ``body``."""
    return f"{crc32(json.dumps(body, sort_keys=True).encode()):08x}"


def _shorter(folder: Path) -> tuple[tuple[str, int], ...]:
    """Segments only grow: one that was longer when a summary was made of it has lost its end, and where that is whole
    lines, nothing else tells."""
    body = read_summary(folder)
    found: list[tuple[str, int]] = []
    try:
        sizes = {name: known[0] for name, known in body["journal"].items() if name != "blobs"} if body else {}
        for name, size in sorted(sizes.items()):
            left = size - written(folder / name) if (folder / name).exists() else size
            if left > 0:
                found.append((name, left))
    except (OSError, KeyError, TypeError, AttributeError, IndexError):
        return ()
    return tuple(found)


def read_blob(folder: Path, name: object) -> bytes | None:
    """The bytes of a blob file, or None if it is missing or does not match its name."""
    if not isinstance(name, str) or not is_digest(name):
        return None
    try:
        data = read_plain(folder / "blobs" / name)
    except OSError:
        return None
    return data if hashlib.sha256(data).hexdigest() == name else None
