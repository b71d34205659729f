"""Opens the screens beside the Bench, runs and files. Imported behind the first frame, with all screens."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported
from textual.screen import Screen

from workbench.engine.debugger.stepper import Mode
from workbench.tui.screens.editor import EditorScreen
from workbench.tui.screens.home import HomeScreen
from workbench.tui.screens.runs import RunsScreen
from workbench.tui.screens.settings import SettingsScreen
from workbench.tui.screens.snapshots import SnapshotsScreen
from workbench.tui.screens.sql import SqlResult, SqlScreen
from workbench.tui.sessions import Sessions
from workbench.views.batch import BatchPosition
from workbench.views.keys import told
from workbench.workspace.draft_checker import DraftChecker
from workbench.workspace.drafts import Draft
from workbench.workspace.sql_queries import SavedQueries, SqlQueries, StatementHistory

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any, Protocol

    from workbench.engine.edits import Edit
    from workbench.tui.sessions import Host as SessionHost
    from workbench.views.result import FoundPlace
    from workbench.workspace.session import Session, Workspace

    class Host(SessionHost, Protocol):
        """The app as navigation needs it."""

        @property
        def screen(self) -> Screen[Any]:
            """The screen on top."""
            ...

        @property
        def screen_stack(self) -> list[Screen[Any]]:
            """All screens that are open, the Bench first."""
            ...

        def suspend(self) -> AbstractContextManager[None]:
            """Give the terminal to another program meanwhile. Raises SuspendNotSupported."""
            ...

        async def run_command(self, command: str) -> None:
            """Run a command of the key table by its id."""
            ...


# How each family of editors is told the line and the column.
VIM = ("+call cursor({line}, {column})", "{file}")
PLUS = ("+{line}", "{file}")
NANO = ("+{line},{column}", "{file}")
EMACS = ("+{line}:{column}", "{file}")
GOTO = ("--wait", "--goto", "{file}:{line}:{column}")
COLONS = ("{file}:{line}:{column}",)
WAITING = ("--wait", "{file}:{line}:{column}")
KATE = ("--block", "--line", "{line}", "--column", "{column}", "{file}")
JETBRAINS = ("--wait", "--line", "{line}", "--column", "{column}", "{file}")
PLAIN = ("{file}",)

EDITOR_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("vim", "nvim", "gvim", "mvim"), VIM),
    **dict.fromkeys(("vi", "view", "nvi", "elvis", "vis", "mg", "joe", "jed", "ne", "gedit", "xed", "mousepad"), PLUS),
    **dict.fromkeys(("nano", "pico", "rnano"), NANO),
    **dict.fromkeys(("emacs", "emacsclient", "kak", "micro"), EMACS),
    **dict.fromkeys(("code", "code-insiders", "codium", "vscodium", "cursor", "windsurf"), GOTO),
    **dict.fromkeys(("hx", "helix", "mcedit"), COLONS),
    **dict.fromkeys(("subl", "zed", "zeditor"), WAITING),
    "kate": KATE,
    **dict.fromkeys(("idea", "pycharm", "webstorm"), JETBRAINS),
}
"""Arguments by the name of the program; any other one is given the file alone."""


class NoEditor(Exception):
    """There is no editor to start; the message says what to set."""


def editor_command(env: Mapping[str, str], file: Path, line: int, column: int = 1) -> list[str]:
    """The command that opens a file at a place: ``$VISUAL``, else ``$EDITOR``, else ``vi``. Raises NoEditor."""
    variable = next((name for name in ("VISUAL", "EDITOR") if env.get(name, "").strip()), "")
    written = env.get(variable, "").strip() or "vi"
    try:
        words = shlex.split(written)
    except ValueError as fault:
        raise NoEditor(f"${variable} is not a command: {fault}") from None
    found = shutil.which(words[0], path=env.get("PATH"))
    if found is None:
        if not variable:
            raise NoEditor("neither $VISUAL nor $EDITOR is set, and vi is not installed")
        raise NoEditor(f"${variable} is '{written}', and there is no program '{words[0]}'")
    form = EDITOR_ARGUMENTS.get(Path(words[0]).name, PLAIN)
    place = {"file": str(file), "line": str(max(1, line)), "column": str(max(1, column))}
    return [found, *words[1:], *(part.format_map(place) for part in form)]


class Navigator:
    """The navigation of the app, over its sessions."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.sessions = Sessions(host)
        self.batch = BatchPosition()
        """Where the screen of batches was left."""
        self._sql_result: tuple[Path | None, SqlResult | None] = None, None
        """The workspace whose SQL console was left last, and what it showed."""

    # -- the Bench ---------------------------------------------------------------------------------------------------

    def to_bench(self, then: Callable[[], object] | None = None) -> None:
        """Go back to the Bench, whatever is on top of it, then call ``then``."""
        self._host.to_bench(then)

    def show_file(self, file: Path) -> None:
        """Open a cascade in the Bench."""
        self.sessions.show_file(file)

    def show_run(self, run_id: str, then: Callable[[], object] | None = None) -> None:
        """Show a stored run in the Bench, over its own file, then call ``then``."""
        if unsaved := self.unsaved():
            self._host.say(f"{unsaved[0]} is not saved: save it, or leave the editor first.", "warning")
        else:
            self.sessions.show_run(run_id, then)

    def show_call(self, run_id: str, found: FoundPlace) -> None:
        """Show a stored run in the Bench, at the call that ``found`` names, if it names one."""
        self.show_run(run_id, lambda: self._host.bench.controllers.inspecting.go_to(run_id, found))

    def show_annotated(self, run_id: str, places: Sequence[str]) -> None:
        """Show a stored run in the Bench, at the first of the calls at these places, which a filter fits."""
        self.show_run(run_id, lambda: self._host.bench.controllers.inspecting.go_to_annotated(run_id, places))

    def resume_run(self, run_id: str) -> None:
        """Show a stored run, and go on with it; it is held before its next call."""
        self.show_run(run_id, lambda: self._host.bench.resume(run_id, Mode.OVER))

    def fork_run(self, run_id: str, place: str) -> None:
        """Show a stored run, and pause a fork of it before the call at a place, in a tab of its own."""
        self.show_run(run_id, lambda: self._host.bench.controllers.editing.fork_at(run_id, place))

    def fork_here(
        self, run_id: str, place: str, said: str, edits: Sequence[Edit] = (), stop: str = "before_call"
    ) -> None:
        """In what is shown: start a fork of a run that pauses at a stop of the call at a place."""
        self._host.bench.controllers.editing.fork_here(run_id, place, said, edits, stop)

    def rerun_here(self, run_id: str) -> None:
        """In what is shown: run the file again with the recorded answers of a run."""
        self._host.bench.controllers.editing.rerun_here(run_id)

    def freeze_run(self, run_id: str) -> None:
        """Show a stored run, and freeze it as a test."""
        self.show_run(run_id, lambda: self._host.bench.controllers.testing.freeze())

    def open_session(self, workspace: Workspace, make: Callable[[Workspace], Session]) -> None:
        """Open a session of a workspace in a tab of its own."""
        self.sessions.open_beside(workspace, make)

    def beside(self, then: Callable[[], object], source: str = "") -> None:
        """Open what is shown once more in a tab of its own, then call ``then``, which starts a run there. With a run as
        its ``source`` nothing opens where that cannot be read."""
        self.sessions.same_beside(then, source)

    def begin(self, mode: Mode) -> None:
        """Start a run of what is shown."""
        self._host.bench.begin(mode)

    def step_tab(self, by: int) -> None:
        """Show the tab so many places to the right."""
        self.sessions.step(by)

    def close_tab(self) -> None:
        """Close the tab that is shown; asks while its run is active."""
        self.sessions.close_tab()

    # -- screens -----------------------------------------------------------------------------------------------------

    def open_home(self, workspace: Workspace) -> None:
        """The cascades and runs of a workspace."""
        if not isinstance(self._host.screen, HomeScreen):
            self._host.push_screen(HomeScreen(workspace))

    def open_runs(self, workspace: Workspace) -> None:
        """All stored runs of a workspace."""
        if not isinstance(self._host.screen, RunsScreen):
            self._host.push_screen(RunsScreen(workspace))

    def open_snapshots(self, workspace: Workspace) -> None:
        """Check the frozen runs of a workspace, and review those that changed."""
        if not isinstance(self._host.screen, SnapshotsScreen):
            self._host.push_screen(SnapshotsScreen(workspace.project))

    def open_sql(self, workspace: Workspace) -> None:
        """The SQL console."""
        if not isinstance(self._host.screen, SqlScreen):
            project = workspace.project
            history = StatementHistory(project.folders.state / "sql_history.jsonl")
            saved = SavedQueries.of(project.folders)
            root, before = self._sql_result
            self._host.push_screen(
                SqlScreen(
                    project.root,
                    SqlQueries(project.store),
                    history,
                    saved,
                    before if root == project.root else None,
                    partial(self._keep_result, project.root),
                )
            )

    def _keep_result(self, root: Path, result: SqlResult) -> None:
        self._sql_result = root, result

    def open_settings(self, workspace: Workspace) -> None:
        """The settings and the keys."""
        if not isinstance(self._host.screen, SettingsScreen):
            self._host.push_screen(SettingsScreen(workspace.project))

    # -- files -------------------------------------------------------------------------------------------------------

    def open_editor(self, file: Path, line: int = 1, column: int = 1) -> None:
        """Open a cascade file in the app's editor, at a place."""
        session = self.sessions.session
        if session is None:
            return
        if session.gone:
            self._host.say(session.gone, "warning")
            return
        project = session.project
        draft = Draft(project.folders.state / "drafts", file)
        screen = EditorScreen(file, project.shown(file), DraftChecker(project, file), draft, line, column)
        self._host.push_screen(screen)

    def edit_outside(self, file: Path, line: int, column: int = 1) -> bool:
        """Open a file in $VISUAL or $EDITOR, at a place; the run continues. Whether the program could be run."""
        here = told(": {view.edit} opens the file here") if self._host.screen is self._host.bench else ""
        try:
            command = editor_command(os.environ, file, line, column)
            with self._host.suspend():
                done = subprocess.run(command, check=False, stdout=sys.__stderr__, stderr=sys.__stderr__)
        except NoEditor as fault:
            self._host.say(f"{fault}{here}.", "error")
        except SuspendNotSupported:
            self._host.say(f"No other program can take this screen over{here}.", "warning")
        except OSError as fault:
            self._host.say(f"{command[0]}: {fault.strerror}", "error")
        else:
            if done.returncode:
                self._host.say(f"{Path(command[0]).name} ended with {done.returncode}", "warning")
            return True
        return False

    def unsaved(self) -> tuple[str, ...]:
        """The files that have changes in an editor of the app which are not saved."""
        return tuple(screen.shown for screen in self._editors() if screen.unsaved)

    def drop_unsaved(self) -> None:
        """Forget the changes that are not saved: the user wants to leave without them."""
        for screen in self._editors():
            screen.drop_draft()

    def _editors(self) -> list[EditorScreen]:
        return [screen for screen in self._host.screen_stack if isinstance(screen, EditorScreen)]
