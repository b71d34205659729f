"""The health of a store as ``doctor`` shows it, and a repair that loses nothing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from msgspec import Struct

from workbench.store.faults import StoreBusy, StoreError
from workbench.store.index import ddl
from workbench.store.index.database import Engine, Handle
from workbench.store.index.rebuild import VERSION
from workbench.store.index.run_ingest import read_ledger
from workbench.store.journal.annotation_file import FILE, read
from workbench.store.journal.disk import LocalDisk, write_whole
from workbench.store.journal.journal import writer_lock
from workbench.store.journal.lock import Holder, holder_of
from workbench.store.journal.reading import SUMMARY, Health
from workbench.store.restore import rescued, restore
from workbench.store.store import Store

LOW_SPACE = 256 * 1024 * 1024
"""Bytes of free space below which a store is not healthy."""


class RunHealth(Struct, frozen=True):
    """The journal of one run, and its rows."""

    run_id: str
    health: Health
    writer: Holder | None
    ingested: int = 0
    """Records that were sent to the database."""
    rows: int | None = None
    """Records in the database; None if it was not asked."""
    unsaid: int = 0
    """Lines of annotations that are damaged."""

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems, one sentence each."""
        found = [f"run {self.run_id}: {problem}" for problem in self.health.problems]
        if self.unsaid:
            lines = "1 line" if self.unsaid == 1 else f"{self.unsaid} lines"
            found.append(f"run {self.run_id}: {lines} of {FILE} {'is' if self.unsaid == 1 else 'are'} damaged")
        if self.rows is not None and self.rows < self.ingested:
            found.append(f"run {self.run_id}: {self.ingested - self.rows} of {self.ingested} rows are missing")
        return tuple(found)

    @property
    def notices(self) -> tuple[str, ...]:
        """Remains of a crash that no run misses."""
        whole = len(self.health.problems)
        return tuple(f"run {self.run_id}: {notice}" for notice in self.health.notices[whole:])


class DatabaseHealth(Struct, frozen=True):
    """The health that the engine reports."""

    engine: str
    schema: int
    detached: tuple[str, ...] = ()
    """Parts that the engine set aside because they are damaged."""
    failed: tuple[str, ...] = ()
    """Tables that do not pass their check, and why."""

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems, one sentence each."""
        newer = [f"the index has schema {self.schema}, this program knows {VERSION}"] if self.schema > VERSION else []
        parts = [f"part {part} is damaged and was set aside; 'doctor --rebuild' restores it" for part in self.detached]
        return (*newer, *parts, *(f"table {failure}; 'doctor --rebuild' restores it" for failure in self.failed))


class Report(Struct, frozen=True):
    """The state of a store."""

    root: Path
    owner: Holder | None
    """The process that owns the index now."""
    free: int
    """Bytes left on the device."""
    runs: tuple[RunHealth, ...]
    database: DatabaseHealth | None
    closed: str = ""
    """Why the database was not looked at."""
    problems: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.problems


def examine(store: Store, elsewhere: Path | None = None) -> Report:
    """Read every journal and, unless another process owns it or there is none, query the database. Changes nothing.

    ``elsewhere`` is the folder with records that did not fit into the store.
    """
    runs = [
        RunHealth(run_id, store.health(run_id), store.writer(run_id), unsaid=read(store.folder(run_id)).damaged)
        for run_id in store.run_ids()
    ]
    left_by: Holder | None = None
    found, closed = None, ""
    if (store.root / "ch").is_dir():
        try:
            with Engine(store.root) as engine:
                left_by = engine.left_by
                found, runs = _ask(engine, runs)
        except StoreBusy as busy:
            closed = str(busy)
        except StoreError as error:
            closed = str(error)
    owner = holder_of(store.root / "owner.lock")
    free = shutil.disk_usage(store.root if store.root.is_dir() else Path.cwd()).free
    problems = [problem for run in runs for problem in run.problems]
    if elsewhere is not None:
        problems += [f"{one}; 'doctor --fix' puts them back" for one in rescued(store, elsewhere)]
    notices = [notice for run in runs for notice in run.notices if run.writer is None]
    if left_by is not None:
        notices.append(f"the index was not closed by {left_by}; the journals bring it up to date")
    if found is not None:
        problems += found.problems
    elif closed and owner is None:
        problems.append(closed)
    if free < LOW_SPACE:
        problems.append(f"only {free // 1024 // 1024} MB are free")
    return Report(store.root, owner, free, tuple(runs), found, closed, tuple(problems), tuple(notices))


def fix(store: Store, elsewhere: Path | None = None) -> list[str]:
    """Put back the records kept ``elsewhere``, move torn ends of segments to ``<segment>.torn``, and remove unfinished
    files. Returns what was done, and what could not be done.

    Runs that are being written are left alone. Raises StoreError, OSError.
    """
    done: list[str] = []
    for one in rescued(store, elsewhere) if elsewhere is not None else ():
        try:
            done.append(restore(store, one))
        except StoreError as error:
            done.append(str(error))
    for run_id in store.own_run_ids():
        folder = store.folder(run_id)
        try:
            lock = writer_lock(folder)
        except StoreBusy:
            continue
        try:
            done += (f"run {run_id}: {what}" for what in _fix_run(folder, store.health(run_id)))
        finally:
            lock.release()
    for gone in store.journals.glob(".*.removed"):
        shutil.rmtree(gone)
        done.append(f"the rest of a removed run deleted: {gone.name[1:-8]}")
    return done


def _fix_run(folder: Path, health: Health) -> list[str]:
    done = []
    for torn in health.torn:
        (folder / SUMMARY).unlink(missing_ok=True)  # It says how long the segment was.
        _move_tail(folder / torn.segment, torn.at)
        done.append(f"{torn.size} bytes of {torn.segment} moved to {torn.segment}.torn")
    for part in [*folder.glob(".*.part"), *folder.glob("blobs/.*.part")]:
        part.unlink()
        done.append(f"unfinished file {part.name} removed")
    return done


def _move_tail(segment: Path, at: int) -> None:
    disk = LocalDisk()
    with segment.open("rb") as file:
        file.seek(at)
        tail = file.read().rstrip(b"\0")
    write_whole(disk, segment.with_name(f"{segment.name}.torn"), tail)
    os.truncate(segment, at)
    disk.sync_folder(segment.parent)


def _ask(engine: Engine, runs: list[RunHealth]) -> tuple[DatabaseHealth, list[RunHealth]]:
    handle = engine.reader
    schema = _schema(handle)
    counted = handle.query("SELECT run_id, count() FROM events GROUP BY run_id") if schema else None
    rows = {str(run_id): int(count) for run_id, count in counted.rows} if counted else {}
    ledger = read_ledger(handle) if schema == VERSION else {}
    compared = [
        RunHealth(
            run.run_id,
            run.health,
            run.writer,
            ledger[run.run_id].records if run.run_id in ledger else 0,
            rows.get(run.run_id, 0),
            run.unsaid,
        )
        for run in runs
    ]
    version = str(handle.query("SELECT version()").one())
    detached = handle.query("SELECT table, name, reason FROM system.detached_parts WHERE database = 'workbench'")
    parts = tuple(f"{table}/{name} ({reason or 'detached'})" for table, name, reason in detached.rows)
    return DatabaseHealth(version, schema, parts, _failed_checks(handle) if schema else ()), compared


def _schema(handle: Handle) -> int:
    """Version of the database; 0 when it has no tables yet."""
    try:
        return int(handle.query("SELECT max(version) FROM schema_migrations").one() or 0)
    except StoreError:
        return 0


def _failed_checks(handle: Handle) -> tuple[str, ...]:
    failed: list[str] = []
    for table in ddl.TABLES:
        try:
            parts = handle.query(f"CHECK TABLE {table} SETTINGS check_query_single_value_result = 0")
        except StoreError as error:
            failed.append(f"{table} cannot be checked: {error}")
            continue
        failed += [
            f"{table}: part {part['part_path']} is damaged: {part['message']}"
            for part in parts.dicts()
            if not part["is_passed"]
        ]
    return tuple(failed)
