"""Brings the server to the schema of this program. Rows that others shipped are dropped only on request."""

from __future__ import annotations

from workbench.store.faults import StoreError
from workbench.store.index.database import Database, DatabaseError
from workbench.store.index.rebuild import VERSION
from workbench.store.server.tables import create_statements, drop_statements, retention_statements
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
        raise OtherSchema(f"{said}: they are only read; 'workbench push --upgrade' makes them anew from the journals")
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
