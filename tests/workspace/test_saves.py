"""Fifty saves in each of four ways: every one is noticed, none is seen empty or half."""

from __future__ import annotations

import itertools
import os
import queue
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE
from workbench.workspace.watch import Watcher

SAVES = 50
Save = Callable[[Path, bytes], None]
_numbers = itertools.count()


def version(number: int) -> bytes:
    """A file of 40 kB that tells every version from every other, from the first line to the last."""
    return b"".join(b"%d: line %d of version %d\n" % (number, line, number) for line in range(1200))


def in_pieces(file: Path, data: bytes, size: int) -> None:
    with file.open("wb", buffering=0) as out:
        for start in range(0, len(data), size):
            out.write(data[start : start + size])
        os.fsync(out.fileno())


def truncating(file: Path, data: bytes) -> None:
    """Over the old content."""
    in_pieces(file, data, 8192)


def atomic(file: Path, data: bytes) -> None:
    """A new file takes the name of the old one."""
    beside = file.with_name(f".{file.name}.{next(_numbers)}")
    beside.write_bytes(data)
    beside.replace(file)


def like_vim(file: Path, data: bytes) -> None:
    """The old file moves away, a new one is made and filled, the old one is removed."""
    backup = file.with_name(f"{file.name}~")
    file.rename(backup)
    in_pieces(file, data, 4096)
    backup.unlink()


def linked(file: Path, data: bytes) -> None:
    """The file is a link, which is turned to a new version."""
    target = file.with_name(f"version-{next(_numbers)}")
    target.write_bytes(data)
    link = file.with_name(".link")
    link.symlink_to(target)
    link.replace(file)


@contextmanager
def watching(file: Path) -> Iterator[queue.Queue[bytes]]:
    """What each save is reported to hold; nothing for a file that is gone."""
    seen: queue.Queue[bytes] = queue.Queue()
    watcher = Watcher(lambda: (file,), lambda _, content: seen.put(content or b""), {file: file.read_bytes()})
    watcher.start()
    try:
        yield seen
    finally:
        watcher.stop()


@pytest.mark.fault("F16")
@pytest.mark.parametrize("save", [truncating, atomic, like_vim, linked])
def test_each_of_fifty_saves_is_noticed_whole(tmp_path: Path, save: Save) -> None:
    file = tmp_path / "flow.yaml"
    file.write_bytes(version(0))
    with watching(file) as seen:
        for number in range(1, SAVES + 1):
            save(file, version(number))
            assert seen.get(timeout=PATIENCE) == version(number)
        assert seen.empty(), "one report for each save"
