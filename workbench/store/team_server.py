"""A ClickHouse server that a team's runs are shipped to: its address, and the shipping user."""

from __future__ import annotations

from msgspec import Struct

NATIVE_PORTS = (9000, 9440)
"""Of ClickHouse's own protocol, which is not spoken here."""


class TeamServer(Struct, frozen=True):
    """The address and credentials. Never print one: it holds the password."""

    host: str
    port: int = 8123
    database: str = "workbench"
    user: str = "default"
    password: str = ""
    secure: bool = False
    """TLS."""
    ca_cert: str = ""
    """A file with the certificates that are trusted; empty for the system's."""
    cluster: str = ""
    """The cluster on which tables are made, replicated and sharded; empty for a server by itself."""
    retention_days: int | None = None
    """Days that rows stay after they were shipped; 0 for ever, None leaves the tables unchanged."""
    who: str = ""
    """The user who runs cascades here."""
    machine: str = ""
    workspace: str = ""
    """The folder whose runs are shipped."""

    @property
    def url(self) -> str:
        """The address, for people."""
        return f"http{'s' if self.secure else ''}://{self.host}:{self.port}"
