"""The ways from the Bench into the rooms beside it: the editor in the app and the one outside, SQL, settings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from workbench.tui.key_words import take_keys, told
from workbench.tui.keys import resolve
from workbench.tui.session_app import SessionApp

if TYPE_CHECKING:
    from workbench.tui.key import Key
    from workbench.workspace.project import Project
    from workbench.workspace.settings import Settings


class Rooms(SessionApp):
    """Opens screens. Each is imported when it is first asked for."""

    keys: tuple[Key, ...]
    """The table with the user's own keys."""

    def open_editor(self, file: Path, line: int = 1, column: int = 1) -> None:
        """Open a cascade file in the app's editor, at a place."""
        from workbench.tui.screens.editor import EditorScreen
        from workbench.workspace.drafts import Draft
        from workbench.workspace.looking import Looker

        if self.session is None:
            return
        if self.session.gone:
            self.say(self.session.gone, "warning")
            return
        project = self.session.project
        draft = Draft(project.folders.state / "drafts", file)
        self.push_screen(EditorScreen(file, project.shown(file), Looker(project, file), draft, line, column))

    @property
    def project(self) -> Project | None:
        """The workspace, once it is open."""
        return self.desk.project if self.desk is not None else None

    def action_sql(self) -> None:
        """Open the SQL console."""
        from workbench.tui.screens.sql import SqlScreen
        from workbench.workspace.asking import Asking, History

        project = self.project
        if project is None or isinstance(self.screen, SqlScreen):
            return
        history = History(project.folders.state / "sql_history.jsonl")
        self.push_screen(SqlScreen(project.root, Asking(project.store), history))

    def action_settings(self) -> None:
        """Open the settings."""
        from workbench.tui.screens.settings import SettingsScreen

        project = self.project
        if project is not None and not isinstance(self.screen, SettingsScreen):
            self.push_screen(SettingsScreen(project))

    def take_settings(self, settings: Settings) -> None:
        """Show what counts at once: the theme and the keys. The rest is read when a run or the app starts."""
        if settings.theme != self.theme and settings.theme in self.available_themes:
            self.theme = settings.theme
        self.keys = resolve(settings.keys)[0]
        take_keys(self.keys)
        self.set_keymap({key.id: key.keys for key in self.keys if key.id in settings.keys})
        self.refresh_bindings()
        self.bench.forget()
        self.bench.settle()

    def edit_file(self, file: Path, line: int, column: int = 1) -> None:
        """Open a file in $VISUAL or $EDITOR, at a place; the run goes on meanwhile."""
        from workbench.tui.external_editor import NoEditor, editor_command

        here = told(": {view.edit} opens the file here") if self.screen is self.bench else ""
        try:
            command = editor_command(os.environ, file, line, column)
            with self.suspend():
                done = subprocess.run(command, check=False, stdout=sys.__stderr__, stderr=sys.__stderr__)
        except NoEditor as fault:
            self.say(f"{fault}{here}.", "error")
        except SuspendNotSupported:
            self.say(f"No other program can take this screen over{here}.", "warning")
        except OSError as fault:
            self.say(f"{command[0]}: {fault.strerror}", "error")
        else:
            if done.returncode:
                self.say(f"{Path(command[0]).name} ended with {done.returncode}", "warning")

    def unsaved(self) -> tuple[str, ...]:
        """The files that have changes in an editor of the app which are not saved."""
        return tuple(getattr(screen, "shown", "") for screen in self.screen_stack if getattr(screen, "unsaved", False))

    def drop_unsaved(self) -> None:
        """Forget the changes that are not saved: the user wants to leave without them."""
        for screen in self.screen_stack:
            if hasattr(screen, "drop_draft"):
                screen.drop_draft()
