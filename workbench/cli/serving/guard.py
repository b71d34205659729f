"""Decides which requests are answered: with the token, or with a read-only link to the requested run, from this
machine's own pages. Pure, so that every refusal can be tested.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping

from msgspec import Struct

LEAST_TOKEN, MOST_TOKEN = 16, 512
"""Characters that a token has."""
_NO_TOKEN = re.compile(r"""[^!-~]|[",;\\]""")
"""The characters that no cookie may hold."""

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self' data:; "
        "img-src 'self' data: blob:; connect-src 'self' ws://127.0.0.1:* ws://localhost:*; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Sent with every answer: the page loads nothing from elsewhere, and no other page may frame or read it."""


NO_TOKEN = "the token is missing or wrong; open the address that 'workbench serve' printed"
CLOSED = (
    "this link does not open this page: it has ended, or was not copied whole; ask the person who sent it for a new one"
)
"""The same for a link that ended and for one that never was: a guess learns nothing."""


class Request(Struct, frozen=True):
    """The parts of a request that decide about access."""

    method: str = "GET"
    host: str = ""
    origin: str | None = None
    site: str = ""
    """``Sec-Fetch-Site``, where the browser sends it."""
    cookie: str = ""
    query: str = ""
    """The token in the address."""
    bearer: str = ""
    """The token in ``Authorization: Bearer``."""
    upgrade: bool = False
    """A web socket is asked for."""
    shared: bool = False
    """A valid read-only link allows the request."""
    link: bool = False
    """The address holds what stands in a read-only link, valid or not."""


class Refusal(Struct, frozen=True):
    """Why a request is not answered."""

    status: int
    reason: str


def unfit(token: str) -> str:
    """Returns why a token chosen by the user cannot be used; empty if it can."""
    if len(token) < LEAST_TOKEN:
        return f"has fewer than {LEAST_TOKEN} characters"
    if len(token) > MOST_TOKEN:
        return f"has more than {MOST_TOKEN} characters"
    found = _NO_TOKEN.search(token)
    return f"holds {found[0]!a}, which no cookie may hold" if found is not None else ""


class Guard:
    """Judges requests to one port."""

    def __init__(self, token: str, port: int) -> None:
        self._token = token.encode("utf-8")
        self._hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})
        self.cookie = f"workbench_token_{port}"
        """Name of the cookie: with the port, because browsers hand cookies to every port of a machine."""

    def refusal(self, request: Request) -> Refusal | None:
        """None where the request may be answered.

        The host must be this server's own name, which a rebound DNS name is not; a page of another origin is refused,
        and a web socket needs an origin; the token is compared in constant time.
        """
        if request.method not in ("GET", "HEAD"):
            return Refusal(405, "only GET is answered here")
        if request.host.lower() not in self._hosts:
            return Refusal(403, "this server answers to the names 127.0.0.1 and localhost only")
        if request.origin is not None and request.origin.lower() != f"http://{request.host.lower()}":
            return Refusal(403, "a page of another site may not send this request")
        if request.upgrade and request.origin is None:
            return Refusal(403, "a web socket needs an origin")
        if request.site in ("cross-site", "same-site") and (request.upgrade or not (request.query or request.shared)):
            return Refusal(403, "a page of another site may not send this request")
        if request.shared and not request.upgrade:
            return None
        if not any(self.is_token(given) for given in (request.cookie, request.bearer, request.query)):
            return Refusal(403, CLOSED if request.link else NO_TOKEN)
        return None

    def is_token(self, given: str) -> bool:
        """Returns whether a text is the token; the time does not tell how much of it is right."""
        return hmac.compare_digest(given[:MOST_TOKEN].encode("utf-8", "replace"), self._token)
