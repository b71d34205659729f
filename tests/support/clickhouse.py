"""A ClickHouse server for tests: its HTTP interface on loopback, with the embedded engine behind it.

``python -m tests.support.clickhouse FOLDER PORT USER PASSWORD`` serves until its standard input ends, so it never
outlives the process that started it. Port 0 takes a free one; the port is the first line of the output.
``ClickHouse(folder)`` starts one in a process of its own, which can be killed and started again on the same port.

It forwards every setting of a request to the session of its statement, checks user and password, binds parameters, and
answers faults with ClickHouse's codes. It has one process, no replicas, no TLS and no quotas; the engine itself knows
no users, so those of dictionaries are left out.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import subprocess
import sys
import threading
from email import message_from_bytes
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from workbench.store.team_server import TeamServer

_NAMES = """query database default_format user password session_id query_id compress enable_http_compression role
wait_end_of_query send_progress_in_http_headers http_headers_progress_interval_ms session_timeout
client_protocol_version cancel_http_readonly_queries_on_client_close mutations_sync distributed_foreground_insert"""
_OURS = frozenset(_NAMES.split())
"""Parameters of a request that are no settings, or not of the embedded engine."""
_EXACT = {("insert_deduplicate", "0"), ("distributed_foreground_insert", "1")}
_INSERT = re.compile(r"\s*INSERT\s+INTO\b(.*?)\bFORMAT\s+(\w+)\s*$", re.IGNORECASE | re.DOTALL)
_CREDENTIALS = re.compile(r"CLICKHOUSE\(HOST 'localhost' (?:(?:USER|PASSWORD) '(?:[^'\\]|\\.)*' )+")
"""Of a dictionary: the engine has no users of its own."""
_CODE = re.compile(r"Code: (\d+)")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("content-length", 0))))

    def _answer(self, body: bytes) -> None:
        given = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))
        kind = self.headers.get("content-type", "")
        if kind.startswith("multipart/form-data"):  # Parameters that are too long for an address.
            form = message_from_bytes(f"content-type: {kind}\r\n\r\n".encode() + body, policy=HTTP)
            for part in form.iter_parts():
                data = part.get_payload(decode=True)
                assert isinstance(data, bytes)
                given[str(part.get_param("name", header="content-disposition"))] = data.decode()
            body = b""
        if not self._known(given):
            self._fault(403, 516, "Authentication failed: password is incorrect, or there is no user with such name.")
            return
        try:
            said = self.server.asked(given, body, self.headers.get("x-clickhouse-format", ""))
        except RuntimeError as error:
            text = str(error)
            found = _CODE.findall(text)
            code = int(found[-1]) if found else 1000
            self._fault(404 if code in (60, 81) else 500, code, text if found else f"DB::Exception: {text}")
            return
        self._send(200, said, {"X-ClickHouse-Summary": "{}"})

    def _known(self, given: dict[str, str]) -> bool:
        scheme, _, words = self.headers.get("authorization", "").partition(" ")
        if scheme == "Basic":
            try:
                return base64.b64decode(words).decode() == self.server.credentials
            except (binascii.Error, UnicodeDecodeError):
                return False
        return f"{given.get('user', 'default')}:{given.get('password', '')}" == self.server.credentials

    def _fault(self, status: int, code: int, text: str) -> None:
        text = text if text.startswith("Code:") else f"Code: {code}. DB::Exception: {text}"
        self._send(status, text.encode(), {"X-ClickHouse-Exception-Code": str(code)})

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None: ...


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, folder: Path, port: int, user: str, password: str) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        import chdb  # 0.2 s and 300 MB: only in the process that serves.

        self._connect: Any = chdb.connect
        self._folder = folder
        self.credentials = f"{user}:{password}"
        self._keeps = chdb.connect(str(folder))  # The engine ends with its last connection.

    def asked(self, given: dict[str, str], body: bytes, form: str) -> bytes:
        settings = [
            f"{name}={value}" for name, value in given.items() if name not in _OURS and not name.startswith("param_")
        ]
        params = {name.removeprefix("param_"): value for name, value in given.items() if name.startswith("param_")}
        sql = given.get("query", "")
        database = given.get("database") or "default"
        connection = self._connect("&".join((f"{self._folder}?database={database}", *settings)))
        try:
            if sql and (insert := _INSERT.fullmatch(sql)) is not None:
                if _EXACT - given.items():  # A cluster would drop rows that come again, or lose some on their way.
                    raise RuntimeError("Code: 36. DB::Exception: rows may be lost with these settings")
                with connection.send_insert(f"INSERT INTO {insert[1].strip()}", insert[2]) as sending:
                    sending.append(body)
                    sending.finish()
                return b""
            statement = _CREDENTIALS.sub("CLICKHOUSE(", "\n".join(filter(None, (sql, body.decode()))))
            answer = connection.query(statement, form or given.get("default_format", "TabSeparated"), params=params)
            return bytes(answer.bytes())
        finally:
            connection.close()


def main() -> None:
    folder, port, user, password = sys.argv[1:]
    server = _Server(Path(folder), int(port), user, password)
    print(server.server_port, flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()
    os._exit(0)


class ClickHouse:
    """The server in a process of its own."""

    def __init__(self, folder: Path, user: str = "default", password: str = "") -> None:
        self._arguments = (str(folder), user, password)
        self.port = 0
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Serve, on the port of the last time."""
        folder, user, password = self._arguments
        command = [sys.executable, "-m", "tests.support.clickhouse", folder, str(self.port), user, password]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def kill(self) -> None:
        """End it in the middle of what it does."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def address(self, database: str, **changed: Any) -> TeamServer:
        """Of one of its databases."""
        _, user, password = self._arguments
        return TeamServer("127.0.0.1", self.port, database, user, password, **changed)

    def __enter__(self) -> ClickHouse:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()


if __name__ == "__main__":
    main()
