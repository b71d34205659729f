"""A folder of work: its settings, its store, its trust, and the files opened in it."""

from __future__ import annotations

import getpass
import hashlib
import os
import socket
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from workbench.store.team_server import TeamServer
from workbench.workspace.folders import Folders, workspace_root
from workbench.workspace.settings import Settings, SettingsError, load_settings

if TYPE_CHECKING:
    from workbench.engine.journal.redact import Redactor
    from workbench.language.load import Loaded
    from workbench.store.store import Store
    from workbench.workspace.environment import Environment
    from workbench.workspace.opened_cascade import OpenedCascade


@dataclass
class Project:
    """A workspace. Making one reads two small settings files and nothing else.

    Its methods import what they need: a list of runs and the first frame need the settings alone, and the language,
    the engine and the tools would add a second of CPU to them (measured: `workbench runs` 0.24 s, with all 1.2 s).
    """

    root: Path
    settings: Settings
    env: Mapping[str, str]
    folders: Folders
    notes: list[str] = field(default_factory=list)
    """What the user should know: that the store lies elsewhere, say."""

    @classmethod
    def at(
        cls,
        root: Path | None = None,
        *,
        env: Mapping[str, str] | None = None,
        flags: Mapping[str, Any] | None = None,
    ) -> Project:
        """The workspace at ``root``, else ``WORKBENCH_ROOT`` (``WINDLASS_ROOT``), else the current folder.

        Raises SettingsError.
        """
        environment = dict(os.environ if env is None else env)
        try:
            folder = root.expanduser().resolve() if root is not None else workspace_root(environment)
        except FileNotFoundError:
            raise SettingsError("the current folder was deleted; change to one that is there") from None
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
        from workbench.store.store import Store

        server = self.team_server
        if server is None:
            return Store(place, fixed=fixed)
        return Store(place, fixed=fixed, server=server, bring=bring_run)

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
        """``store.root``, for those who only keep out of it: a replay has no use for a store."""
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

    @cached_property
    def environment(self) -> Environment:
        """What lies around the cascades of this workspace: tools, validators, trust."""
        from workbench.workspace.environment import Environment

        return Environment(self)

    def open(self, file: Path, allow: Collection[str] = ()) -> OpenedCascade:
        """Read and check a cascade file; ``allow``: errors of a pipeline that count as warnings. Raises CannotOpen when
        it cannot be read."""
        from workbench.workspace.opened_cascade import read_bytes

        return self.check(file, self.load(file, read_bytes(file, self.shown(file))), allow)

    def load(self, file: Path, text: bytes | str) -> Loaded:
        """Read a text as if it were the file's, without the checks that take longer."""
        from workbench.language.load import load

        return load(text, self.shown(file))

    def check(self, file: Path, loaded: Loaded, allow: Collection[str] = ()) -> OpenedCascade:
        """Check the content read from a file."""
        from workbench.workspace.opened_cascade import opened

        real = file.resolve()
        around = self.environment.surroundings(real)
        around = replace(around, allow=tuple(allow)) if allow else around
        return opened(real, self.shown(file), loaded, self.root, around)

    def variables(self, *, trusted: bool) -> Mapping[str, str]:
        """The process's variables, over those of the workspace's ``.env`` where a person has trusted the folder."""
        file = self.root / ".env"
        if not trusted or not os.path.lexists(file):
            return self.env
        from workbench.models.env import load

        return load(file).over(self.env)

    def redactor(self, *, base_url: str = "", shapes: bool | None = None) -> Redactor:
        """What replaces secrets in texts of runs. The values of ``.env`` are secrets in any folder: only setting them
        as variables takes trust."""
        from workbench.engine.journal.redact import Redactor

        env = self.variables(trusted=True)
        return Redactor({**env, "BASE_URL": base_url}, self.settings.redact == "all" if shapes is None else shapes)

    def is_pinned(self, text: str, pinned: str) -> bool:
        """Whether a file's text is the one that a run was started with, secrets aside: the run has labels for them."""
        from workbench.engine.definition import Definition, DefinitionError
        from workbench.engine.journal.own_secrets import without_secrets

        text, pinned = text.removeprefix("\ufeff"), pinned.removeprefix("\ufeff")
        if text == pinned or "[redacted " not in pinned:
            return text == pinned
        try:
            return without_secrets(Definition.of(text), self.redactor()).source.text == pinned
        except DefinitionError:
            return False

    def shown(self, file: Path) -> str:
        """A file as messages name it: relative to the workspace if it lies inside."""
        real = Path(os.path.realpath(file))  # Path.resolve() raises where links lead in a circle.
        return str(real.relative_to(self.root)) if real.is_relative_to(self.root) else str(file)


def bring_run(store: Store, name: str) -> str:
    """Copy a run of that name from the server of a store. Returns its run id, empty if there is none."""
    from workbench.store.server.pulling import bring  # Who has no server needs none of it.

    return bring(store, name)


def login_name() -> str:
    """Name of this process's user; empty if the system knows none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def new_session_id(cascade_id: str, digits: str = "") -> str:
    """A session id for a run without one: the cascade's name and eight digits, random unless they are given."""
    slug = "".join(c if c.isalnum() or c in "._-" else "-" for c in cascade_id if c.isascii())[:60].strip("-._")
    return f"{slug or 'run'}-{digits or uuid.uuid4().hex[:8]}"
