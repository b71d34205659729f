"""The finished shares of work over an archive, on disk: the same command resumes an interrupted one."""

from __future__ import annotations

import hashlib
import json
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar

import msgspec

from workbench.store.faults import StoreError
from workbench.store.journal.disk import LocalDisk, make_root, write_whole
from workbench.store.journal.lock import FileLock

P = TypeVar("P")
R = TypeVar("R")


class WorkFolder(Generic[P, R]):
    """A folder for one command's work: its plan, and a file for each share that is done. A context manager that keeps
    other processes out and makes the plan, unless an earlier command made it; the folder stays until ``remove``."""

    plan: P
    """The decisions that were made when the work began."""
    began: str
    """When that was, in UTC."""

    def __init__(
        self,
        root: Path,
        kind: str,
        about: Mapping[str, Any],
        plan: type[P],
        made: Callable[[], P],
        result: type[R],
        *,
        anew: bool = False,
    ) -> None:
        """``root`` is the store's; ``about`` tells this work from other work of its kind: with another value it has
        another folder. ``made`` makes the plan. ``result`` is what a share gives for each of its items. ``anew``
        forgets what earlier commands did."""
        told = json.dumps({"kind": kind, **about}, sort_keys=True, default=str)
        self._root = root
        self.path = root / "work" / f"{kind}-{hashlib.sha256(told.encode()).hexdigest()[:16]}"
        self._decoder = msgspec.msgpack.Decoder(list[result])  # type: ignore[valid-type]
        self._kind, self._plan, self._made, self._anew = kind, plan, made, anew
        self._lock: FileLock | None = None

    def __enter__(self) -> WorkFolder[P, R]:
        """Raises StoreBusy where another process does this work, StoreError, and what making the plan raises."""
        try:
            if not self._root.is_dir():
                make_root(self._root)
            self._done.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as fault:
            raise StoreError(f"cannot write to {self._root}: {fault.strerror}") from fault
        self._lock = FileLock(self.path / "lock", f"this {self._kind} is already being done")
        try:
            if self._anew:
                self._clear()
            body = self._read()
            if body is None:
                self.began = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
                body = {"began": self.began, **msgspec.to_builtins(self._made())}
                self._write(self.path / "plan.json", json.dumps(body).encode())
            self.began, self.plan = str(body["began"]), msgspec.convert(body, self._plan)
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lock is not None:
            self._lock.release()

    @property
    def _done(self) -> Path:
        return self.path / "done"

    def _read(self) -> Any:
        """The plan as it was written; None if the work has not begun. Raises StoreError where it is damaged."""
        try:
            body = (self.path / "plan.json").read_bytes()
        except FileNotFoundError:
            return None
        try:
            return json.loads(body)
        except ValueError:
            raise StoreError(f"{self.path / 'plan.json'} is damaged: --anew begins the work again") from None

    def done(self) -> set[int]:
        """The numbers of the shares that are done."""
        return {int(file.stem) for file in self._done.glob("*.part") if file.stem.isdecimal()}

    def keep(self, number: int, results: Sequence[R]) -> None:
        """Write the results of a share down, whole or not at all. Raises StoreError."""
        body = zlib.compress(msgspec.msgpack.encode(results), 1)
        self._write(self._done / f"{number:08d}.part", zlib.crc32(body).to_bytes(4, "big") + body)

    def forget(self, number: int) -> None:
        """Have a share done again."""
        (self._done / f"{number:08d}.part").unlink(missing_ok=True)

    def results(self, number: int) -> list[R]:
        """Of a share that is done. Raises StoreError where its file is damaged."""
        file = self._done / f"{number:08d}.part"
        try:
            body = file.read_bytes()
            if zlib.crc32(body[4:]) != int.from_bytes(body[:4], "big"):
                raise ValueError("its checksum is another one")
            return self._decoder.decode(zlib.decompress(body[4:]))
        except (OSError, ValueError, zlib.error, msgspec.DecodeError) as fault:
            raise StoreError(f"{file} cannot be read ({fault}): --anew begins the work again") from fault

    def all_results(self, count: int) -> Iterator[R]:
        """Those of the shares 0 to ``count`` - 1, in order, a share at a time."""
        for number in range(count):
            yield from self.results(number)

    def _clear(self) -> None:
        """Forget everything."""
        for entry in self.path.iterdir():
            if entry.name == "lock":
                continue
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
        self._done.mkdir(mode=0o700, exist_ok=True)

    def remove(self) -> None:
        """Take the folder away, as far as it can be."""
        shutil.rmtree(self.path, ignore_errors=True)
        with suppress(OSError):
            self.path.parent.rmdir()

    def _write(self, file: Path, body: bytes) -> None:
        try:
            write_whole(LocalDisk(), file, body)
        except OSError as fault:
            raise StoreError(f"{file} cannot be written: {fault.strerror}") from fault
