"""The database over a store: opened, brought to its schema, kept up to date, asked."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

from workbench.store.faults import StoreError
from workbench.store.index.database import WRITES, Engine
from workbench.store.index.ingest import Ingester, Progress
from workbench.store.index.queries import Queries
from workbench.store.index.rebuild import NewerSchema, Schema, migrate
from workbench.store.journal.lock import holder_of
from workbench.store.store import Store

COPIES = "ch-copies"
"""The folder of the store that holds the copies from which processes read that do not own the index."""
_TRIES = 20
_PAUSE = 0.05
"""Seconds. The owner writes a batch of rows in less."""
_FORGOTTEN = 3600.0
"""Seconds after which a copy that no process has open is deleted: its process was killed."""


class Index(Queries):
    """The database as far as this process owns it, or a copy of its own. Close it in a ``finally``."""

    def __init__(self, store: Store, *, copied: bool = False) -> None:
        """``copied`` reads from a copy of the tables as they are now, and brings the copy up to date from the journals:
        for a process that cannot own the index. Raises StoreBusy, which names the process that owns the index, and
        StoreError with the cause.
        """
        self._copy = _copy_of(store.root) if copied else None
        try:
            self.engine = Engine(store.root if self._copy is None else self._copy)
        except BaseException:
            self._delete_copy()
            raise
        self.notice = ""
        """A notice for people: that the database is only read, or that its last owner crashed."""
        if (last := self.engine.left_by) is not None:
            self.notice = f"the index was not closed by {last}: it is brought up to date from the journals"
        self._ingester: Ingester | None = None
        try:
            handle = self.engine.handle(WRITES)
            try:
                self.schema: Schema = migrate(handle)
            except NewerSchema as newer:
                self.schema, self.notice = newer.schema, str(newer)
            else:
                self._ingester = Ingester(store, self.engine)
                self._ingester.start()
            finally:
                self.engine.release(handle)
        except BaseException:
            self.engine.close()
            self._delete_copy()
            raise
        super().__init__(self.engine)

    def catch_up(self, seconds: float = 600.0) -> None:
        """Return when all that the journals hold now is in the tables. Raises StoreError."""
        if self._ingester is not None:
            self._ingester.catch_up(seconds)

    @property
    def progress(self) -> Progress:
        """How far the tables follow the journals."""
        return self._ingester.progress if self._ingester is not None else Progress()

    def close(self) -> None:
        """Send what was read, then close. May be called twice."""
        if self._ingester is None or self._ingester.stop():
            self.engine.close()  # Never under a writer that is still inside native code.
            self._delete_copy()

    def _delete_copy(self) -> None:
        if self._copy is not None:
            shutil.rmtree(self._copy, ignore_errors=True)

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _copy_of(root: Path) -> Path:
    """A folder with the tables of a store as another process has written them. Raises StoreError.

    The files of a part of a table never change once its folder has its name, so they are linked and not copied. All
    tables have the same state if no part came or went meanwhile.
    """
    copies = root / COPIES
    try:
        copies.mkdir(mode=0o700, exist_ok=True)
        for old in copies.iterdir():
            if time.time() - old.stat().st_mtime > _FORGOTTEN and holder_of(old / "owner.lock") is None:
                shutil.rmtree(old, ignore_errors=True)
        target = Path(tempfile.mkdtemp(dir=copies))
    except OSError as error:
        raise StoreError(f"the index cannot be copied to be read: {copies}: {error.strerror}") from error
    source, reason = root / "ch", "its owner writes to it without a pause"
    if not source.is_dir():
        return target
    for _ in range(_TRIES):
        try:
            before = _parts(source)
            shutil.copytree(source, target / "ch", symlinks=True, ignore=_unfinished, copy_function=_link)
            if _parts(source) == before:
                return target
        except (shutil.Error, OSError) as error:  # A part was merged into another one meanwhile.
            reason = str(error)[:200]
        shutil.rmtree(target / "ch", ignore_errors=True)
        time.sleep(_PAUSE)
    shutil.rmtree(target, ignore_errors=True)
    raise StoreError(f"the index cannot be copied to be read: {reason}; try again")


def _parts(source: Path) -> set[str]:
    """The folders of all parts of all tables."""
    return {str(part) for part in source.glob("store/*/*/*_*_*")}


def _unfinished(_: str, names: list[str]) -> set[str]:
    """Names that are left out: parts that are being written or deleted, and the engine's own lock."""
    return {name for name in names if name.startswith(("tmp", "delete_tmp")) or name == "status"}


def _link(source: str, target: str) -> str:
    """Link a file of a part, copy any other one, which may be written in place."""
    if Path(source).parent.name.count("_") >= 2:
        try:
            os.link(source, target)
        except OSError:  # The file system has no links.
            return str(shutil.copyfile(source, target))
        return target
    return str(shutil.copyfile(source, target))
