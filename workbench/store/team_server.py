"""A ClickHouse server that a team's runs are shipped to: where it is, and who ships from here."""

from __future__ import annotations

from msgspec import Struct

NATIVE_PORTS = (9000, 9440)
"""Of ClickHouse's own protocol, which is not spoken here."""


class TeamServer(Struct, frozen=True):
    """What is needed to reach it. Never print one: it holds the password."""

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
    """For so long rows stay, from when they were shipped; 0 for ever, None as it is."""
    who: str = ""
    """Who runs cascades here."""
    machine: str = ""
    workspace: str = ""
    """The folder whose runs are shipped."""

    @property
    def url(self) -> str:
        """The address, for people."""
        return f"http{'s' if self.secure else ''}://{self.host}:{self.port}"
