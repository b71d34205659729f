"""The way out of a browser: a proxy on this machine that asks for each connection whether it may be made.

A browser follows redirects, loads parts of pages and looks names up by itself. Here all of that comes by as a request
for a host, and the connection is made to the address that was looked at.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hmac
import secrets
from collections import deque
from urllib.parse import urlsplit

from workbench.tools.addresses import NetworkReach, NotPublic

_HEAD_BYTES = 65_536
_HEAD_S, _CONNECT_S = 30.0, 20.0
_CHUNK = 1 << 16
_KEPT = 100
"""Refusals that are remembered."""


class Gate:
    """One proxy. Only holders of ``key`` may use it. ``refused`` lists refused requests in words."""

    def __init__(self, reach: NetworkReach) -> None:
        self._reach = reach
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self.key = secrets.token_urlsafe(24)
        self.refused: deque[str] = deque(maxlen=_KEPT)
        self.refusals = 0
        """How many there were."""

    @property
    def address(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def open(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=_HEAD_BYTES)

    async def close(self) -> None:
        """End it, with all that goes through it."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
            for task in self._open:
                task.cancel()
            await asyncio.gather(*self._open, return_exceptions=True)

    async def why_not(self, host: str, port: int) -> str:
        """Returns why a host may not be reached; empty if it may, or the name does not exist."""
        try:
            await self._reach.addresses(host, port)
        except NotPublic as fault:
            return str(fault)
        except (OSError, UnicodeError):
            return ""
        return ""

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # Whoever asked, or was asked, has gone or speaks no HTTP: the browser sees an ended connection.
        finally:
            self._open.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_HEAD_S):
            head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head[:-4].split(b"\r\n")
        method, target, version = first.split(b" ")
        headers = [(name, value.strip()) for name, _, value in (line.partition(b":") for line in lines)]
        if not self._knows(headers):
            ask = b'HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="gate"\r\n'
            writer.write(ask + b"Content-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
            return
        tunnel = method == b"CONNECT"
        parts = urlsplit(f"//{target.decode('ascii')}" if tunnel else target.decode("ascii"))
        if not parts.hostname or (not tunnel and parts.scheme != "http"):
            return
        far = await self._connected(parts.hostname, parts.port or 80)
        if far is None:
            return
        far_reader, far_writer = far
        try:
            if tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                path = parts._replace(scheme="", netloc="").geturl() or "/"
                # One request for each connection: the next one may be for another host.
                own = (b"proxy-", b"connection")
                kept = [b"%s: %s" % pair for pair in headers if not pair[0].lower().startswith(own)]
                sent = [b"%s %s %s" % (method, path.encode("ascii"), version), *kept, b"Connection: close"]
                far_writer.write(b"\r\n".join(sent) + b"\r\n\r\n")
            await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer, last=True))
        finally:
            far_writer.close()

    def _knows(self, headers: list[tuple[bytes, bytes]]) -> bool:
        given = next((value for name, value in headers if name.lower() == b"proxy-authorization"), b"")
        return hmac.compare_digest(given, b"Basic " + base64.b64encode(f"gate:{self.key}".encode()))

    async def _connected(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """A connection to the first address that answers; None if none is allowed, or none answers."""
        try:
            addresses = await self._reach.addresses(host, port)
        except NotPublic as fault:
            self.refused.append(str(fault))
            self.refusals += 1
            return None
        for address in addresses:
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(_CONNECT_S):
                    return await asyncio.open_connection(address, port)
        return None


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, last: bool = False) -> None:
    """Hand on what comes, then that nothing more comes; after the ``last`` of it the connection is over."""
    try:
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    finally:
        with contextlib.suppress(OSError, RuntimeError):
            if last:
                writer.close()
            elif writer.can_write_eof():
                writer.write_eof()
