"""A team's server as the index of a store: asked like the embedded one, and shipped to from a thread."""

from __future__ import annotations

import time
from functools import partial

from workbench.store.faults import StoreBusy, StoreError
from workbench.store.index.database import WRITES, Database, DatabaseError
from workbench.store.index.ingest import STOP_SECONDS, Ingester, Progress, Shipment
from workbench.store.index.queries import Queries
from workbench.store.index.rebuild import VERSION
from workbench.store.journal.disk import make_root
from workbench.store.journal.lock import FileLock
from workbench.store.server.connection import ServerEngine
from workbench.store.server.journal_rows import JournalRows
from workbench.store.server.tables import create_statements, drop_statements, retention_statements
from workbench.store.store import Store
from workbench.store.team_server import TeamServer

SERVER_VERSION = VERSION
"""Of the tables; those of the index are the same as in a store."""
_UNKNOWN_TABLE = 60


class OtherSchema(StoreError):
    """The tables have another version: they may be read, and are not written to."""


def version_of(database: Database) -> int:
    """Version of the existing tables; 0 without tables. Raises DatabaseError."""
    try:
        return int(database.query("SELECT max(version) FROM schema_migrations").one() or 0)
    except DatabaseError as error:
        if error.code == _UNKNOWN_TABLE:
            return 0
        raise


def prepare(database: Database, server: TeamServer) -> None:
    """Make the tables on a server without any. Raises OtherSchema, DatabaseError."""
    known = version_of(database)
    if known > SERVER_VERSION:
        said = f"{server.url} has tables of version {known}, this program knows {SERVER_VERSION}"
        raise OtherSchema(f"{said}: they are only read, and runs wait here; update the workbench")
    if 0 < known < SERVER_VERSION:
        said = f"{server.url} has tables of version {known}, this program has {SERVER_VERSION}"
        raise OtherSchema(f"{said}: they are only read; 'workbench push --upgrade' rebuilds them from the journals")
    if not known:
        _make(database, server)
    for statement in retention_statements(server):
        database.command(statement)


def upgrade(database: Database, server: TeamServer) -> bool:
    """Make the tables of an older version anew, keeping only the journals. Returns whether there was anything to do.
    Raises OtherSchema if they are newer, DatabaseError.
    """
    known = version_of(database)
    if known > SERVER_VERSION:
        prepare(database, server)
    if known in (0, SERVER_VERSION):
        return False
    for statement in drop_statements(server):
        database.command(statement)
    _make(database, server)
    return True


def _make(database: Database, server: TeamServer) -> None:
    for statement in create_statements(server):
        database.command(statement)
    # Last: who finds it finds all of them.
    database.insert("schema_migrations", ("version", "name"), [(SERVER_VERSION, "made from the journals")])


class ServerIndex(Queries):
    """Ships the runs of a store while it is open, unless another process does. Close it in a ``finally``."""

    def __init__(self, store: Store, server: TeamServer) -> None:
        """No request is made here: the first query, and ``progress``, find a server that is away. Raises StoreError if
        the extra is missing or the store cannot be written.
        """
        self.engine = ServerEngine(server)
        self.notice = ""
        """A notice for people: that another process ships, or that the server has tables of another version."""
        self.server = server
        self._ingester: Ingester | None = None
        super().__init__(self.engine)
        try:
            make_root(store.root)
            self._lock: FileLock | None = FileLock(store.root / "ship.lock", "the runs of this store are shipped", "")
        except StoreBusy as busy:
            self._lock, self.notice = None, str(busy)
            return
        except OSError as error:
            raise StoreError(f"cannot write to {store.root}: {error.strerror}") from error
        shipment = Shipment(partial(JournalRows, server), self._prepared)
        self._ingester = Ingester(store, self.engine, time.monotonic, shipment)
        self._ingester.start()

    def _prepared(self, database: Database) -> None:
        try:
            prepare(database, self.server)
        except OtherSchema as other:
            self.notice = str(other)
            raise

    def catch_up(self, seconds: float = 600.0) -> None:
        """Return when all that the journals hold now is on the server, or can only be read there. Raises StoreError."""
        if self._ingester is None:
            return
        try:
            self._ingester.catch_up(seconds)
        except StoreError:
            if not self.notice:
                raise

    def upgrade(self) -> bool:
        """Make the tables of an older version anew; whether there was anything to do. They fill again as each machine
        ships its runs. Raises StoreError."""
        handle = self.engine.handle(WRITES)
        try:
            return upgrade(handle, self.server)
        finally:
            self.engine.release(handle)

    @property
    def progress(self) -> Progress:
        """How far the server follows the journals."""
        return self._ingester.progress if self._ingester is not None else Progress()

    def close(self, seconds: float = STOP_SECONDS) -> None:
        """Send what was read, for at most this many seconds, then close. May be called twice."""
        if self._ingester is None or self._ingester.stop(seconds):
            self.engine.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> ServerIndex:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
