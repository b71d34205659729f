"""A folder of work as it lies on disk: its settings and its stored runs. Listing and showing runs needs no more."""

from __future__ import annotations

import getpass
import hashlib
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from workbench.store.team_server import TeamServer
from workbench.workspace.folders import ROOT_VARIABLES, Folders, workspace_root
from workbench.workspace.settings import Settings, SettingsError, load_settings

if TYPE_CHECKING:
    from workbench.store.store import Store


@dataclass
class StoredWorkspace:
    """The settings and the store of a workspace. Making one reads two small settings files and nothing else.

    It knows nothing of the language, the engine and the tools, whose imports take 0.6 s: `workbench runs` takes 0.24 s
    without them.
    """

    root: Path
    settings: Settings
    env: Mapping[str, str]
    folders: Folders
    notes: list[str] = field(default_factory=list)
    """Remarks for the user: that the store lies elsewhere, say."""

    @classmethod
    def at(
        cls,
        root: Path | None = None,
        *,
        env: Mapping[str, str] | None = None,
        flags: Mapping[str, Any] | None = None,
    ) -> Self:
        """The workspace at ``root``, else ``WORKBENCH_ROOT`` (``WINDLASS_ROOT``), else the current folder.

        Raises SettingsError.
        """
        environment = dict(os.environ if env is None else env)
        try:
            folder = root.expanduser().resolve() if root is not None else workspace_root(environment)
        except FileNotFoundError:
            raise SettingsError("the current folder was deleted; change to one that is there") from None
        variable = next((name for name in ROOT_VARIABLES if environment.get(name)), "")
        if root is None and variable and not folder.is_dir():
            raise SettingsError(f"{variable} names '{environment[variable]}', which is not a folder")
        folders = Folders.of(environment)
        return cls(folder, load_settings(folder, environment, folders.config, flags), environment, folders)

    @cached_property
    def store(self) -> Store:
        """The journals: in the workspace, or in the user's state folder if the workspace cannot be written; runs in the
        workspace can still be read.
        """
        home, place = self.root / ".workbench", self._store_place
        if self.settings.data_dir or place == home:
            return self._store(place)
        old = home if (home / "journal").is_dir() and os.access(home / "journal", os.R_OK | os.X_OK) else None
        and_old = "; those in the workspace can be read" if old else ""
        self.notes.append(f"the workspace cannot be written: runs are kept in {place}{and_old}")
        return self._store(place, old)

    def _store(self, place: Path, fixed: Path | None = None) -> Store:
        # 0.1 s: a replay needs no store, and most stores have no server.
        from workbench.store.store import Store

        server = self.team_server
        if server is None:
            return Store(place, fixed=fixed)
        from workbench.store.server.pulling import bring

        return Store(place, fixed=fixed, server=server, bring=bring)

    @property
    def team_server(self) -> TeamServer | None:
        """The server that runs are shipped to; None without one."""
        settings = self.settings
        if not settings.use_clickhouse_server:
            return None
        secure = settings.clickhouse_tls
        return TeamServer(
            host=settings.clickhouse_host,
            port=settings.clickhouse_port or (8443 if secure else 8123),
            database=settings.clickhouse_database,
            user=settings.clickhouse_user,
            password=settings.clickhouse_password,
            secure=secure,
            ca_cert=settings.clickhouse_ca_cert,
            cluster=settings.clickhouse_cluster,
            retention_days=settings.clickhouse_retention_days,
            who=settings.user or login_name(),
            machine=settings.machine or socket.gethostname(),
            workspace=str(self.root),
        )

    @property
    def store_folder(self) -> Path:
        """``store.root``, without opening the store: a replay needs to know only what it must not touch."""
        return self._store_place.resolve()

    @cached_property
    def _store_place(self) -> Path:
        named = self.settings.data_dir
        if named:
            return Path(named).expanduser()
        home = self.root / ".workbench"
        if os.access(home if home.exists() else self.root, os.W_OK):
            return home
        digest = hashlib.sha256(str(self.root).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        return self.folders.state / "stores" / digest

    @property
    def graphs(self) -> Path:
        """Folder for files of graphs."""
        named = self.settings.graph_dir
        return self.root / Path(named).expanduser() if named else self.store.root / "graphs"

    @property
    def unsaved(self) -> Path:
        """Folder of records that did not fit into a store, of this workspace or another."""
        return self.folders.state / "unsaved"

    def shown(self, file: Path) -> str:
        """A file as messages name it: relative to the workspace if it lies inside."""
        real = Path(os.path.realpath(file))  # Path.resolve() raises where links lead in a circle.
        return str(real.relative_to(self.root)) if real.is_relative_to(self.root) else str(file)


def login_name() -> str:
    """Name of this process's user; empty if the system knows none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
