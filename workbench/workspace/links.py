"""Read-only links to single runs: what each opens, until when, and how it is revoked. Tokens are kept as digests."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from workbench.workspace.state_file import StateFile
from workbench.workspace.stored import StoredWorkspace

DAYS = 7
"""Default lifetime of a link in days."""
PORT = 8321
"""Default port of ``workbench serve``."""
MOST_TOKEN = 200
"""Characters of a token that are looked at."""


class SharedLink(Struct, frozen=True):
    """One link. Times are ISO 8601 in UTC."""

    id: str
    run_id: str
    session_id: str
    digest: str
    """SHA-256 of the token, which is shown once and kept nowhere."""
    made: str
    until: str

    def is_over(self, now: datetime) -> bool:
        """Returns whether the link works no more."""
        try:
            return now >= datetime.fromisoformat(self.until)
        except (ValueError, TypeError):
            return True


class _LinksFile(Struct):
    links: tuple[SharedLink, ...] = ()
    port: int = PORT
    """Where ``workbench serve`` listened last in this workspace."""


class SharedLinks:
    """The links of a workspace, in the user's state folder. Read anew at every look: a link that is revoked stops at
    once, also in a server that runs."""

    def __init__(self, project: StoredWorkspace) -> None:
        self._file: StateFile[_LinksFile] = StateFile.about(project.folders.state / "links", project.root, _LinksFile)

    def all(self) -> Sequence[SharedLink]:
        """The valid links, the newest last. Never raises: an unreadable file holds none."""
        kept = self._file.read_or_none()
        now = datetime.now(UTC)
        return tuple(link for link in (kept.links if kept is not None else ()) if not link.is_over(now))

    @property
    def port(self) -> int:
        """Where the links lead: the port of the server that runs here, or that ran last."""
        kept = self._file.read_or_none()
        return kept.port if kept is not None else PORT

    def serves_at(self, port: int) -> None:
        """Remember where the server listens, for the links that are made from now on. Raises OSError."""
        self._file.write(_LinksFile(tuple(self.all()), port))

    def make(self, run_id: str, session_id: str, days: float = DAYS) -> tuple[SharedLink, str]:
        """A new link to a run, and its token. Raises OSError if it cannot be kept."""
        token, now = secrets.token_urlsafe(24), datetime.now(UTC)
        until = (now + timedelta(days=days)).isoformat(timespec="seconds")
        link = SharedLink(
            f"k{secrets.token_hex(3)}", run_id, session_id, _digest(token), now.isoformat(timespec="seconds"), until
        )
        self._file.write(_LinksFile((*self.all(), link), self.port))
        return link, token

    def revoke(self, ids: Sequence[str]) -> Sequence[SharedLink]:
        """Revoke links by their ids or by the session or run that they open. Returns the revoked ones. Raises OSError
        if they cannot be revoked.
        """
        links = self.all()
        gone = [link for link in links if {link.id, link.session_id, link.run_id} & set(ids)]
        if gone:
            self._file.write(_LinksFile(tuple(link for link in links if link not in gone), self.port))
        return gone

    def opened_by(self, token: str) -> SharedLink | None:
        """The link that a token opens; None for any other text. The comparison takes constant time."""
        given = _digest(token[:MOST_TOKEN])
        found = [link for link in self.all() if hmac.compare_digest(link.digest.encode(), given.encode())]
        return replace(found[0], digest="") if found else None


def address_of(link: SharedLink, token: str, port: int = PORT, place: str = "") -> str:
    """The address that a link opens in a browser, at a call of its run if a place is given."""
    mark = f"#{quote(place, safe='/')}" if place else ""
    return f"http://127.0.0.1:{port}/runs/{quote(link.run_id)}?link={quote(token, safe='')}{mark}"


def answers(port: int) -> bool:
    """Returns whether a server listens at a port of this machine."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0):
            return True
    except OSError:
        return False


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
