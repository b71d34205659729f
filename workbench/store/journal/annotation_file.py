"""The file of annotations beside the segments of a run: appended to by any process, whether the run is going on or not.

A line is a record with a checksum, as in a journal. A writer holds the lock of the file for one write, so it does not
need the lock of the run's writer.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from workbench.engine.journal.annotations import Annotation, Annotations
from workbench.store.faults import StoreBusy, StoreError
from workbench.store.journal.record import VERSION, BadRecord, check, sealed

FILE = "annotations.jsonl"
MOST_BYTES = 16 * 1024 * 1024
"""A larger file is refused: every list of runs reads it."""
_WAIT = 5.0
"""Seconds that a writer waits for another one, which writes a few lines."""
_PAUSE = 0.01


class AnnotationFile(Struct, frozen=True):
    """The content of such a file."""

    annotations: Annotations
    size: int = 0
    """Bytes; it only grows."""
    damaged: int = 0
    """Lines that are no record."""


NONE = AnnotationFile(Annotations())


def size_of(folder: Path) -> int:
    """Bytes of the file of a run; 0 if there is none."""
    try:
        return (folder / FILE).stat().st_size
    except OSError:
        return 0


def read(folder: Path) -> AnnotationFile:
    """The annotations of the run in a folder. Damaged lines are counted and skipped; an unreadable file counts as one
    damaged line.
    """
    try:
        fd = os.open(folder / FILE, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return NONE
    except OSError:
        return AnnotationFile(Annotations(), damaged=1)
    with os.fdopen(fd, "rb") as file:
        return _read(file)


def _read(file: BinaryIO) -> AnnotationFile:
    try:
        data = file.read(MOST_BYTES + 1)
    except OSError:
        return AnnotationFile(Annotations(), damaged=1)
    if len(data) > MOST_BYTES:
        return AnnotationFile(Annotations(), len(data), 1)
    found: list[Annotation] = []
    damaged = 0
    for line in data.split(b"\n"):
        try:
            if line and (record := _decoded(line)) is not None:
                found.append(record)
        except (BadRecord, KeyError, TypeError, ValueError, RecursionError):
            damaged += 1
    return AnnotationFile(Annotations(found), len(data), damaged)


def append(folder: Path, records: Iterable[Annotation], file: BinaryIO | None = None) -> None:
    """Add records, durably. Raises StoreBusy if another process holds the file, and StoreError if it cannot be written;
    then none of them is added.
    """
    if file is None:
        with exclusive(folder) as opened:
            append(folder, records, opened)
        return
    lines = b"".join(map(_encoded, records))
    try:
        size = file.seek(0, os.SEEK_END)
        if size + len(lines) > MOST_BYTES:
            raise OSError(errno.EFBIG, f"annotations of a run take at most {MOST_BYTES:,} bytes")
        if size:
            file.seek(size - 1)
            if file.read(1) != b"\n":  # A write that was cut off: its line ends here.
                lines = b"\n" + lines
        written = os.write(file.fileno(), lines)
        if written != len(lines):
            with suppress(OSError):
                os.ftruncate(file.fileno(), size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(file.fileno())
        os.utime(folder)  # Lists and the index look at a folder again when its time has changed.
    except OSError as error:
        raise StoreError(f"run {folder.name} cannot be annotated: {error.strerror}") from error


@contextmanager
def exclusive(folder: Path) -> Iterator[BinaryIO]:
    """The file, for one process at a time. Raises StoreBusy, StoreError."""
    try:
        fd = os.open(folder / FILE, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise StoreError(f"run {folder.name} cannot be annotated: {error.strerror}") from error
    with os.fdopen(fd, "r+b", buffering=0) as file:
        until = time.monotonic() + _WAIT
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise StoreBusy(f"the annotations of run {folder.name} are held by another process") from None
                time.sleep(_PAUSE)
        yield file


def current(file: BinaryIO) -> AnnotationFile:
    """Returns the present content of the file."""
    file.seek(0)
    return _read(file)


def _encoded(record: Annotation) -> bytes:
    body = {"v": VERSION, **record.to_json()}
    return sealed(json.dumps(body, ensure_ascii=True, allow_nan=False, separators=(",", ":"))[:-1].encode("ascii"))


def _decoded(line: bytes) -> Annotation | None:
    """Raises BadRecord and what ``Annotation.from_json`` does."""
    check(line)
    body = json.loads(line)
    return Annotation.from_json(body) if body["v"] <= VERSION else None
