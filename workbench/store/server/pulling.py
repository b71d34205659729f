"""Runs of a team's server: listed, and brought here whole, so that they are read like runs of this machine."""

from __future__ import annotations

import base64
import binascii
import os
import shutil
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from workbench.store.faults import StoreError
from workbench.store.index.database import DatabaseError
from workbench.store.journal import annotation_file
from workbench.store.journal.disk import is_digest, is_id, make_root
from workbench.store.server.connection import ServerEngine, ServerHandle
from workbench.store.server.journal_rows import BLOBS
from workbench.store.store import Store
from workbench.store.summary import RunSummary
from workbench.store.team_server import TeamServer

MOST_LISTED = 10_000
"""Runs of a list, the newest."""
_PAGE = 20_000
"""Records that are asked for at once."""
_SILENT_SECONDS = 30.0
"""For which a server that was away is not asked again for a name that is not known here."""
_FRESH_SECONDS = 60
"""A run without an end whose last record is younger than this counts as running."""
_UNKNOWN = (60, 81)
"""Error codes of missing tables and databases: no run was shipped yet."""

_NAMED = """SELECT run_id FROM origins FINAL WHERE run_id = {name:String} OR session_id = {name:String}
ORDER BY started DESC, run_id DESC LIMIT 1"""
_LIKE = """SELECT run_id, session_id FROM origins FINAL
WHERE depth = 0 AND (startsWith(run_id, {name:String}) OR startsWith(session_id, {name:String}))
ORDER BY started DESC, run_id DESC LIMIT 2"""
_INSIDE = "SELECT run_id FROM origins FINAL WHERE parent_run_id = {run:String} AND depth > 0"
_LISTED = """SELECT user, machine, summary, shipped_at > now() - INTERVAL {fresh:UInt32} SECOND FROM origins FINAL
WHERE {seconds:UInt32} = 0 OR shipped_at > now() - INTERVAL {seconds:UInt32} SECOND
ORDER BY started DESC, run_id DESC LIMIT {most:UInt32}"""
_LINES = """SELECT seq, segment, line FROM journal_lines FINAL
WHERE run_id = {run:String} AND seq > {after:UInt32} ORDER BY seq LIMIT {most:UInt32}"""
_FILES = "SELECT name FROM journal_files FINAL WHERE run_id = {run:String}"
_FILE = "SELECT data FROM journal_files FINAL WHERE run_id = {run:String} AND name = {name:String}"

_away_until: dict[str, float] = {}
"""By the address of a server, on the monotonic clock."""
_one = threading.Lock()
"""Two threads that ask for one run bring it once."""


def team_runs(server: TeamServer, seconds: int = 0) -> list[RunSummary]:
    """The newest runs of the server as a list shows them, with user and machine; only those with records shipped in the
    last ``seconds``, unless it is 0. Raises StoreError.
    """
    engine = ServerEngine(server)
    with closing(engine):
        try:
            rows = engine.reader.query(_LISTED, {"most": MOST_LISTED, "seconds": seconds, "fresh": _FRESH_SECONDS}).rows
        except DatabaseError as error:
            if error.code in _UNKNOWN:
                return []
            raise
    found: list[RunSummary] = []
    for user, machine, summary, fresh in rows:
        with suppress(msgspec.DecodeError):  # Of a newer program.
            run = msgspec.json.decode(summary, type=RunSummary)
            status = "running" if fresh and not run.finished else run.status
            found.append(replace(run, user=user, machine=machine, status=status))
    return found


def bring(store: Store, name: str) -> str:
    """Copy a run, found by its run id, session id or the beginning of one, with the runs inside it. Returns its run id;
    empty if the server has none, or is away; ``pull`` says which.
    """
    server = store.server
    if server is None or time.monotonic() < _away_until.get(server.url, 0.0):
        return ""
    try:
        return pull(store, server, name)
    except StoreError:
        _away_until[server.url] = time.monotonic() + _SILENT_SECONDS
        return ""


def pull(store: Store, server: TeamServer, name: str) -> str:
    """The same. Raises StoreError if the server cannot be asked, several runs match, or the copy cannot be written."""
    engine = ServerEngine(server)
    with _one, closing(engine):
        try:
            run_id = _meant(engine.reader, name)
        except DatabaseError as error:
            if error.code in _UNKNOWN:
                return ""
            raise
        if not run_id:
            return ""
        waiting = [run_id]
        while waiting:
            one = waiting.pop()
            waiting += [str(inner) for (inner,) in engine.reader.query(_INSIDE, {"run": one}).rows]
            if is_id(one) and not (store.journals / one).is_dir():  # What was run here is here.
                try:
                    _copy(engine.reader, one, store)
                except OSError as error:
                    raise StoreError(f"cannot write to {store.pulled}: {error.strerror}") from error
        return run_id


def _meant(handle: ServerHandle, name: str) -> str:
    exact = handle.query(_NAMED, {"name": name}).rows
    if exact:
        return str(exact[0][0])
    like = handle.query(_LIKE, {"name": name}).rows if name else ()
    if len(like) > 1:
        raise StoreError(f"'{name[:80]}' names several runs on the server: {', '.join(str(row[1]) for row in like)} …")
    return str(like[0][0]) if like else ""


def _copy(handle: ServerHandle, run_id: str, store: Store) -> None:
    """Write the files of a run, and put them in their place when all are there. Raises DatabaseError, OSError."""
    make_root(store.root)
    store.pulled.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = store.pulled / f".{run_id}.{os.getpid()}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(mode=0o700)
    try:
        _write_lines(handle, run_id, part)
        for (name,) in handle.query(_FILES, {"run": run_id}).rows:
            _write_file(handle, run_id, str(name), part)
        target = store.pulled / run_id
        if target.is_dir():
            old = store.pulled / f".{run_id}.{os.getpid()}.old"
            target.rename(old)
            part.rename(target)
            shutil.rmtree(old)
        else:
            part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _write_lines(handle: ServerHandle, run_id: str, folder: Path) -> None:
    after, more = 0, True
    while more:
        rows = handle.query(_LINES, {"run": run_id, "after": after, "most": _PAGE}).rows
        more = len(rows) == _PAGE
        by_segment: dict[str, list[str]] = {}
        for seq, segment, line in rows:
            after = int(seq)
            by_segment.setdefault(str(segment), []).append(f"{line}\n")
        for segment, lines in by_segment.items():
            if not (segment.endswith(".jsonl") and segment[:-6].isdigit()):
                continue  # A server is no reason to write a file of any name.
            with os.fdopen(os.open(folder / segment, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:
                file.write("".join(lines).encode("utf-8"))


def _write_file(handle: ServerHandle, run_id: str, name: str, folder: Path) -> None:
    if name != annotation_file.FILE and not is_digest(name.removeprefix(f"{BLOBS}/")):
        return
    data = handle.query(_FILE, {"run": run_id, "name": name}).one()
    target = folder / (name if name == annotation_file.FILE else f"{BLOBS}/{name.removeprefix(f'{BLOBS}/')}")
    target.parent.mkdir(mode=0o700, exist_ok=True)
    with suppress(binascii.Error):  # Reading the run says that it is missing.
        target.write_bytes(base64.b64decode(data, validate=True))
        target.chmod(0o600)
