"""Starts the app for ``open`` and ``demo``. Imports only what the first frame needs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from workbench.resources import theme_folders
from workbench.workspace.folders import Folders, workspace_root
from workbench.workspace.settings import load_settings
from workbench.workspace.stored import StoredWorkspace

if TYPE_CHECKING:
    from workbench.context.place import Place
    from workbench.store.store import Store
    from workbench.workspace.attached import AttachPlan
    from workbench.workspace.session import Session, Workspace
    from workbench.workspace.settings import Settings


class Opening(Struct, frozen=True):
    """The file, run or call to open; empty texts leave the choice to the settings."""

    file: Path | None
    """None to choose from the files of the folder."""
    root: Path | None = None
    """The workspace; None for the one of the current folder."""
    input: Mapping[str, Any] | None = None
    model: str = ""
    base_url: str = ""
    session: str = ""
    sandbox: str = ""
    view: str = ""
    """Run id of a stored run to show."""
    fresh: bool = False
    """Not as the file was left."""
    proposed: str = ""
    """A file that is not there yet, to be made."""
    place: Place | None = None
    """The call of the stored run to begin at."""
    attach: AttachPlan | None = None
    """A program to record."""

    def store(self) -> Store:
        """The store of the runs. Raises SettingsError."""
        return StoredWorkspace.at(self.root).store

    def make(self) -> Session | Workspace:
        """The session, or the workspace to choose from; made in a thread behind the first frame. Raises CannotOpen,
        SettingsError, UnknownRun."""
        # The engine and the language: over a second, in the thread behind the first frame.
        from workbench.workspace.project import Project
        from workbench.workspace.session import Session, Workspace

        project = Project.at(self.root, flags={"base_url": self.base_url or None})
        workspace = Workspace(project, self.model, self.sandbox, self.proposed)
        if self.attach is not None:
            return workspace.attach(self.attach)
        if self.view:
            return workspace.run(self.view)
        if self.file is None:
            return workspace
        return Session(project, self.file, model=self.model, session=self.session, sandbox=self.sandbox)


def start(opening: Opening, given: Mapping[str, Any], instead: str) -> int:
    """Run the app on this terminal; its exit code. Raises SettingsError."""
    # Behind the function, so that a mistake in the arguments is told without textual.
    from workbench.tui.app import run_app
    from workbench.workspace.sql_queries import Indexing  # It loads the store, which the first frame does without.

    root = opening.root or workspace_root(os.environ)
    folders = Folders.of(os.environ)
    settings = load_settings(root, os.environ, folders.config)
    with Indexing(opening.store) as indexing:

        def make() -> Session | Workspace:
            made = opening.make()
            indexing.begin(lambda: made.running)
            return made

        return run_app(
            make,
            log=folders.state / "app.log",
            file=opening.file,
            theme=settings.theme,
            themes=theme_folders(folders.config),
            keys=settings.keys,
            keys_from=partial(_place_of_keys, settings),
            given=given,
            fresh=opening.fresh,
            at=opening.place,
            instead=instead,
        )


def _place_of_keys(settings: Settings, command: str) -> str:
    from workbench.workspace.config_file import place_of  # Only a mistake needs it; the first frame does without.

    return place_of(settings, "keys", command)
