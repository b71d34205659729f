"""Access to the servers of attach: programs of this machine, or with the token; no web page."""

from __future__ import annotations

import hmac
from collections.abc import Set

from aiohttp import web


class Access:
    """Decides by the head of a request."""

    def __init__(self, hosts: Set[str] = frozenset(), token: str = "") -> None:
        """``hosts``: names that clients may call this server by; empty with a token, which is asked for instead."""
        self._hosts = hosts
        self._token = token

    def refusal(self, request: web.Request) -> str:
        """Why a request is not for this server; empty where it is. A browser says where its request comes from; no
        client of a provider does."""
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
