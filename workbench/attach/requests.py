"""Admission to the servers of attach: programs of this machine, or with the token, but no web page; and bodies, packed
ones too, up to a limit."""

from __future__ import annotations

import hmac
import zlib
from collections.abc import Set

from aiohttp import web


class Access:
    """Decides by the head of a request."""

    def __init__(self, hosts: Set[str] = frozenset(), token: str = "") -> None:
        """``hosts``: names that clients may call this server by; empty with a token, which is asked for instead."""
        self._hosts = hosts
        self._token = token

    def refusal(self, request: web.Request) -> str:
        """Returns why a request is not for this server; empty where it is. A browser says where its request comes from;
        no client of a provider does."""
        if "Origin" in request.headers or request.headers.get("Sec-Fetch-Site", "none") != "none":
            return "a web page may not ask here"
        if self._token:
            given = request.rel_url.raw_path.lstrip("/").partition("/")[0]
            right = hmac.compare_digest(given.encode(), self._token.encode())
            return "" if right else "the address lacks its token; use the one that 'workbench attach' printed"
        if request.host.lower() not in self._hosts:
            return "this server answers to 127.0.0.1 and localhost alone"
        return ""

    def path(self, request: web.Request) -> str:
        """The path that is asked for, without the token; as it was sent."""
        path = request.rel_url.raw_path
        return path.removeprefix(f"/{self._token}") if self._token else path


class BadBody(Exception):
    """A request that cannot be read: the status, and why in words."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def too_large(most: int) -> BadBody:
    """The refusal of a body with more bytes than that."""
    return BadBody(413, f"the body is larger than {most // 2**20} MB; send less at once")


def unpacked(data: bytes, coding: str, most: int) -> bytes:
    """A body without its content coding, of at most so many bytes. Raises BadBody."""
    coding = coding.strip().lower()
    if coding in ("", "identity"):
        return data
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise BadBody(415, f"the content coding is gzip, deflate or none, not {coding[:40]}")
    packer = zlib.decompressobj(zlib.MAX_WBITS | (16 if "gzip" in coding else 0))
    try:
        found = packer.decompress(data, most)
    except zlib.error:
        raise BadBody(400, f"the body is not {coding}") from None
    if packer.unconsumed_tail:
        raise too_large(most)
    if not packer.eof:
        raise BadBody(400, f"the body ends in the middle of its {coding}")
    return found
