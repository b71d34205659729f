"""A ClickHouse server over HTTP, by clickhouse-connect: the same face as the embedded engine's."""

from __future__ import annotations

import logging
import re
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any
from urllib.parse import parse_qsl

from workbench.extras import missing
from workbench.store.faults import StoreError
from workbench.store.index.database import READS, WRITES, DatabaseError
from workbench.store.index.table import ResultTable
from workbench.store.index.values import ROWS, Value, json_rows, whole_text
from workbench.store.server.tables import on_cluster, stored
from workbench.store.team_server import NATIVE_PORTS, TeamServer

CONNECT_SECONDS = 5
ANSWER_SECONDS = 300
_EXACT = {"insert_deduplicate": "0", "distributed_foreground_insert": "1"}
"""Settings of inserts: a deleted block may come again, which the server's deduplication would drop; keys prevent double
counting. And an insert has arrived when the shard has it.
"""
_UNKNOWN_DATABASE = 81
_OF_A_RUN = frozenset({6, 26, 27, 38, 41, 53, 69, 70, 72, 117, 321, 349})
"""Codes of rows that make no sense. All others are the server's or the network's: the same rows are tried again."""
_URL = re.compile(r"\(for url [^)]*\)")
_REASON = re.compile(
    r"Connection refused|timed out|Name or service not known|Network is unreachable|No route to host|"
    r"Connection reset by peer|Remote end closed connection|Temporary failure in name resolution",
    re.IGNORECASE,
)
"""Reasons in the library's messages for which no server answers."""
_NO_CLUSTER = 701
_REFUSED = frozenset({192, 193, 194, 497, 516})
"""Codes of users and rights."""


class ServerHandle:
    """One client; may be used by one thread at a time."""

    def __init__(self, server: TeamServer, settings: str) -> None:
        """``settings`` as in a URL. No request is made before the first statement."""
        self._server = server
        self._client: Any = None
        self.set(settings)

    def set(self, settings: str) -> None:
        """The settings of later statements, as in a URL."""
        self._settings = dict(parse_qsl(settings))

    def query(self, sql: str, params: Mapping[str, Value] | None = None) -> ResultTable:
        """Answer one statement; values go through ``{name:Type}`` parameters. Raises DatabaseError."""
        try:
            return ResultTable.from_compact_json(self.raw(sql, "JSONCompact", params))
        except (ValueError, TypeError, KeyError) as error:
            raise DatabaseError("the answer has a form of its own (is there a FORMAT in the statement?)") from error

    def raw(self, sql: str, form: str, params: Mapping[str, Value] | None = None) -> bytes:
        """The answer in one of the engine's formats. Raises DatabaseError."""
        values = {name: _whole(value) for name, value in (params or {}).items()}
        # In a header: behind the statement it would be a part of what EXPLAIN explains.
        form_of_answer = {"X-ClickHouse-Format": form}

        def ask(client: Any) -> bytes:
            return bytes(
                client.raw_query(sql, values or None, settings=self._settings, transport_settings=form_of_answer)
            )

        answer: bytes = self._asked(ask)
        return answer

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows, each with a value for every column, as one batch. Raises DatabaseError."""
        if rows:
            self.insert_encoded(table, columns, json_rows(rows))

    def insert_encoded(self, table: str, columns: Sequence[str], rows: bytes) -> None:
        """The same with rows as ``json_rows`` gives them. Raises DatabaseError; its code is 0 unless the rows are to
        blame."""
        settings = self._settings | _EXACT
        send = partial(_insert, table=table, column_names=list(columns), insert_block=rows, settings=settings, fmt=ROWS)
        try:
            self._asked(send)
        except DatabaseError as error:
            raise DatabaseError(str(error), error.code if error.code in _OF_A_RUN else 0) from error

    def command(self, sql: str) -> None:
        """Run a statement that has no answer. Raises DatabaseError."""
        self._asked(lambda client: client.command(sql, settings=self._settings))

    def delete(self, table: str, where: str, params: Mapping[str, Value]) -> None:
        """Delete the rows of a table that a condition holds for. Raises DatabaseError."""
        sql = on_cluster(f"ALTER TABLE {stored(table, self._server)} DELETE WHERE {where}", self._server)
        values = {name: _whole(value) for name, value in params.items()}
        settings = self._settings | {"mutations_sync": "2"}
        self._asked(lambda client: client.command(sql, values, settings=settings))

    def close(self) -> None:
        """Give the connection back."""
        if self._client is not None:
            self._client.close()

    def _asked(self, ask: Any) -> Any:
        """Raises DatabaseError, StoreError."""
        library = _library()
        try:
            if self._client is None:
                self._client = self._connected(library)
            return ask(self._client)
        except (library.driver.exceptions.Error, OSError) as error:
            raise fault_of(error, self._server) from error

    def _connected(self, library: Any) -> Any:
        """The client of the database, made at first use."""
        try:
            return self._client_of(library, self._server.database)
        except library.driver.exceptions.Error as error:
            if DatabaseError.of(error).code != _UNKNOWN_DATABASE:
                raise
        client = self._client_of(library, None)
        try:
            name = self._server.database.replace("`", "\\`")
            client.command(on_cluster(f"CREATE DATABASE IF NOT EXISTS `{name}`", self._server))
        finally:
            client.close()
        return self._client_of(library, self._server.database)

    def _client_of(self, library: Any, database: str | None) -> Any:
        server = self._server
        return library.get_client(
            host=server.host,
            port=server.port,
            username=server.user,
            password=server.password,
            database=database,
            interface="https" if server.secure else "http",
            ca_cert=server.ca_cert or None,
            connect_timeout=CONNECT_SECONDS,
            send_receive_timeout=ANSWER_SECONDS,
            autogenerate_session_id=False,
            client_name="cascade-workbench",
        )


class ServerEngine:
    """The server as an engine: a handle for each thread that asks."""

    def __init__(self, server: TeamServer) -> None:
        """No request is made before the first statement. Raises StoreError if the extra is missing."""
        if reason := missing("server"):
            raise StoreError(reason)
        self.server = server
        self._local = threading.local()
        self._mutex = threading.Lock()
        self._handles: list[ServerHandle] = []
        self._idle: list[ServerHandle] = []

    def handle(self, settings: str = READS) -> ServerHandle:
        """A new handle for the calling thread to keep; closed with the engine at the latest."""
        handle = ServerHandle(self.server, settings)
        with self._mutex:
            self._handles.append(handle)
        return handle

    @contextmanager
    def borrowed(self, settings: str) -> Iterator[ServerHandle]:
        """A handle for one statement with settings of its own; to connect anew would cost two questions, so those that
        are done wait for the next."""
        with self._mutex:
            idle = self._idle.pop() if self._idle else None
        handle = idle or self.handle(settings)
        handle.set(settings)
        try:
            yield handle
        finally:
            with self._mutex:
                self._idle.append(handle)

    def release(self, handle: ServerHandle) -> None:
        """Close a handle before its engine."""
        with self._mutex:
            if handle in self._handles:
                self._handles.remove(handle)
        handle.close()

    @property
    def reader(self) -> ServerHandle:
        """The calling thread's own handle for reading."""
        handle: ServerHandle | None = getattr(self._local, "reader", None)
        if handle is None:
            handle = self._local.reader = self.handle()
        return handle

    def kill(self, mark: str) -> None:
        """End the running statement that holds this mark, from whatever thread."""
        control = self.handle(WRITES)
        try:
            control.query(
                "KILL QUERY WHERE query LIKE concat('%', {mark:String}, '%') AND query NOT LIKE 'KILL%' ASYNC",
                {"mark": mark},
            )
        finally:
            self.release(control)

    def close(self) -> None:
        """Close every handle. May be called twice."""
        with self._mutex:
            handles, self._handles, self._idle = self._handles, [], []
        for handle in handles:
            handle.close()


def fault_of(error: Exception, server: TeamServer) -> DatabaseError:
    """Describes a failure of the server, and says what to do about it."""
    said = _URL.sub("", " ".join(str(error).split()))
    found = DatabaseError.of(Exception(said))
    # A native port that is mapped to another number answers so.
    if not found.code and (server.port in NATIVE_PORTS or "clickhouse-client program" in said):
        http = 8443 if server.secure else 8123
        told = f"port {server.port} of {server.host} speaks ClickHouse's native protocol, and HTTP is needed"
        return DatabaseError(f"{told}: set WORKBENCH_CLICKHOUSE_PORT to its HTTP port, which is {http} by default")
    if found.code in _REFUSED:
        told = f"{server.url} refuses user '{server.user}'"
        hint = "check WORKBENCH_CLICKHOUSE_USER and WORKBENCH_CLICKHOUSE_PASSWORD, and what this user may do"
        return DatabaseError(f"{told}: {str(found.args[0]).rstrip('.')}; {hint}", found.code)
    if found.code == _NO_CLUSTER:
        told = f"{found.args[0]}; set WORKBENCH_CLICKHOUSE_CLUSTER to one that system.clusters of {server.url} names"
        return DatabaseError(told, found.code)
    if found.code:
        old = (
            f"the ClickHouse of {server.url} is too old, 23.3 or later is needed: " if "e.displayText()" in said else ""
        )
        return DatabaseError(f"{old}{found.args[0]}", found.code)
    if why := _unread_certificates(server):
        return DatabaseError(f"WORKBENCH_CLICKHOUSE_CA_CERT names {server.ca_cert}, which {why}")
    if "CERTIFICATE" in said.upper():
        hint = "WORKBENCH_CLICKHOUSE_CA_CERT names a file with the certificates to trust"
        return DatabaseError(f"the certificate of {server.url} cannot be trusted; {hint}")
    if "SSL" in said.upper():
        return DatabaseError(f"{server.url} does not speak TLS: check WORKBENCH_CLICKHOUSE_TLS and the port")
    reason = _REASON.search(said)
    told = f"the server {server.url} does not answer as a ClickHouse: {reason[0] if reason else said[:300]}"
    where = "WORKBENCH_CLICKHOUSE_HOST and WORKBENCH_CLICKHOUSE_PORT"
    return DatabaseError(f"{told}; check {where} (its HTTP port: 8123, with TLS 8443), or try again later")


def _unread_certificates(server: TeamServer) -> str:
    """Why the file of certificates to trust is none, as the end of a sentence; empty if nothing is wrong with it."""
    if not (server.secure and server.ca_cert):
        return ""
    try:
        ssl.create_default_context(cafile=server.ca_cert)
    except ssl.SSLError:
        return "holds no certificate (PEM)"
    except OSError as fault:
        return f"cannot be read: {fault.strerror or fault}"
    return ""


def _insert(client: Any, **given: Any) -> None:
    client.raw_insert(**given)


def _whole(value: Value) -> Value:
    """Without what the server would refuse."""
    if isinstance(value, str):
        return whole_text(value)
    return [_whole(item) for item in value] if isinstance(value, list | tuple) else value


def _library() -> Any:
    """clickhouse-connect, which takes 0.4 s to import. Its log is off: its errors say the same."""
    logger = logging.getLogger("clickhouse_connect")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    return import_module("clickhouse_connect")
