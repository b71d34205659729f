"""The app: paints first, opens the session behind the first frame, and ends without leaving a trace on the terminal."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, work
from textual.binding import BindingType
from textual.dom import DOMNode
from textual.message import Message
from textual.screen import Screen
from textual.worker import Worker, WorkerState

from workbench.language.clean import clean
from workbench.tui import terminal
from workbench.tui.clipboard import osc52, save_copy, system_copy
from workbench.tui.keys import Key, bindings, resolve
from workbench.tui.rooms import Rooms
from workbench.tui.screens.bench import BenchScreen
from workbench.tui.screens.too_small import TooSmall, too_small
from workbench.tui.themes import DEFAULT, Themes, load_themes

if TYPE_CHECKING:
    from textual.command import Provider

    from workbench.tui.presenter import Presenter
    from workbench.workspace.session import Session


def _palette_commands() -> type[Provider]:
    from workbench.tui.commands import Commands

    return Commands


class SessionOpened(Message):
    """The session is open."""

    def __init__(self, session: Session, presenter: Presenter, themes: Themes) -> None:
        super().__init__()
        self.session = session
        self.presenter = presenter
        self.themes = themes


class WorkbenchApp(Rooms):
    """Drives one session. ``make`` is called in a thread after the first frame."""

    TITLE = "Cascade Workbench"
    BINDINGS: ClassVar[list[BindingType]] = bindings("app")
    COMMANDS: ClassVar[set[Any]] = {_palette_commands}
    ENABLE_COMMAND_PALETTE = True
    CSS_PATH: ClassVar[Any] = ["app.tcss", "screens/bench.tcss"]

    def __init__(
        self,
        make: Callable[[], Session],
        *,
        file: Path | None = None,
        theme: str = DEFAULT,
        themes: Sequence[Path] | None = None,
        keys: Mapping[str, str] | None = None,
        given: Mapping[str, Any] | None = None,
    ) -> None:
        """``file`` is the cascade that ``make`` will open, for a first look at its phases; ``themes`` are folders;
        ``keys`` a user's keys by command id; ``given`` inputs for the run."""
        super().__init__(theme, themes)
        self._make = make
        self._file = file
        self.keys: tuple[Key, ...]
        self.keys, clashes = resolve(keys or {})
        self.early_notices += clashes
        self.last_words = ""
        """What is to be said on stderr once the screen is gone."""
        self.given: dict[str, Any] = dict(given or {})
        self._cover: TooSmall | None = None
        if keys:
            self.set_keymap({key.id: key.keys for key in self.keys if key.id in keys})

    # -- life --------------------------------------------------------------------------------------------------------

    def get_default_screen(self) -> Screen[Any]:
        return BenchScreen()

    def on_mount(self) -> None:
        terminal.on_signals(self._signalled)
        if not (self.is_headless or self.is_web):
            self.set_interval(1.0, self._leave_if_alone)
        self.call_after_refresh(self._begin)

    def on_unmount(self) -> None:
        terminal.off_signals()
        if self.watcher is not None:
            self.watcher.stop()
        if self.session is not None:
            self.session.close()

    def _signalled(self, number: int) -> None:
        self.exit(128 + number, return_code=128 + number)

    def _leave_if_alone(self) -> None:
        if terminal.is_gone():
            terminal.end_soon(129)
            self._signalled(signal.SIGHUP)

    def _begin(self) -> None:
        if self._file is not None:
            from workbench.tui.preview import preview

            self.bench.show_preview(preview(self._file))
            self.call_after_refresh(self._open)
        else:
            self._open()

    @work(thread=True, exit_on_error=False, exclusive=True, group="open")
    def _open(self) -> None:
        """Import the language layer and open the session, with the collector off: it stalls the screen (WK4)."""
        collecting = gc.isenabled()
        gc.disable()
        try:
            session = self._make()
            from workbench.tui.opening import presenter_of, unfinished_run, warm_up

            self.post_message(SessionOpened(session, presenter_of(session), load_themes(self.theme_folders)))
            warm_up()
            if not session.run_id and (run := unfinished_run(session)) is not None:
                self.call_later(self.bench.offer_to_go_on, *run)
        finally:
            if collecting:
                gc.enable()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if event.state is not WorkerState.ERROR:
            return
        fault = event.worker.error
        if event.worker.group == "open":
            self.last_words = clean(str(fault)) or type(fault).__name__
            self.exit(2, return_code=2)
        else:
            self.say(f"{type(fault).__name__}: {fault}", "error")

    def on_session_opened(self, event: SessionOpened) -> None:
        self.session = session = event.session
        self.bench.open(event.presenter)
        for theme in event.themes.by_name.values():
            self.register_theme(theme)
        for problem in event.themes.problems:
            self.say(problem, "error")
        self.say_early(event.presenter.notes)
        self.watch_file(session)

    # -- services for screens ----------------------------------------------------------------------------------------

    def copy(self, text: str, what: str) -> None:
        """Copy text by OSC 52 and the system's clipboard; what is too long for both goes to a file."""
        sequence = osc52(text)
        if sequence is not None and self._driver is not None:
            self._driver.write(sequence)
        self._copy_further(text, what, sent=sequence is not None)

    @work(thread=True, exit_on_error=False, group="copy")
    def _copy_further(self, text: str, what: str, *, sent: bool) -> None:
        tool = system_copy(text)
        where = [*(["the terminal's clipboard"] if sent else []), *([tool] if tool else [])]
        if not where:
            where = [str(save_copy(text))]
        self.call_later(self.say, f"copied {what}, {len(text):,} characters, to {' and '.join(where)}")

    async def run_command(self, command: str) -> None:
        """Run a command of the key table by its id, or ``theme:name``."""
        if command.startswith("theme:"):
            self.theme = command.removeprefix("theme:")
            return
        key = next(key for key in self.keys if key.id == command)
        node: DOMNode = self if key.context == "app" else self.screen
        if key.context in ("list", "tree", "text") and self.screen.focused is not None:
            node = self.screen.focused
        await self.run_action(key.action, default_namespace=node)

    # -- commands of the app -----------------------------------------------------------------------------------------

    def action_help(self) -> None:
        from workbench.tui.screens.help import HelpRows
        from workbench.tui.screens.sheet import Sheet

        self.push_screen(Sheet(HelpRows(self.keys)))

    def action_interrupt(self) -> None:
        """Ctrl+C: a selection is copied, a run is stopped, an idle app ends."""
        selected = self.screen.get_selected_text()
        if selected:
            self.copy(selected, "the selection")
        elif self.session is not None and self.session.running:
            self.session.stop()
        else:
            self.action_leave()

    def action_leave(self) -> None:
        """Quit; while a run is going, or a file is not saved, only after asking."""
        running = self.session is not None and self.session.running
        if not running and not self.unsaved():
            self.exit(0)
            return
        from workbench.tui.screens.dialog import Choice

        reasons = [f"{file} has changes that are not saved." for file in self.unsaved()]
        reasons += ["A run is going on. Its journal is complete up to now, and it can be resumed."] if running else []
        text = "\n".join(reasons)
        leave = "Stop the run and quit" if running else "Drop the changes and quit"
        answers = (("stay", "s", "Stay"), ("leave", "q", leave))
        self.push_screen(Choice("Quit?", text, answers), lambda answer: self.exit(0) if answer == "leave" else None)

    def on_resize(self, event: events.Resize) -> None:
        """Cover everything while there is no room for it; a burst of sizes leaves what the last one needs."""
        if too_small(event.size) and self._cover is None:
            self._cover = TooSmall()
            self.push_screen(self._cover)
        elif not too_small(event.size) and self._cover is not None:
            cover, self._cover = self._cover, None
            cover.dismiss()


def run_app(
    make: Callable[[], Session],
    *,
    log: Path,
    file: Path | None = None,
    theme: str = DEFAULT,
    themes: Iterable[Path] | None = None,
    keys: Mapping[str, str] | None = None,
    given: Mapping[str, Any] | None = None,
    instead: str = "workbench run FILE",
) -> int:
    """Run the app on this terminal; the exit code: 0, 2 where it cannot start, 128+n after a signal.

    ``log`` takes what anything but the app writes to stdout or stderr meanwhile. Without a terminal nothing starts:
    the reason and the headless command ``instead`` go to stderr.
    """
    if (reason := terminal.why_not(os.environ, instead)) is not None:
        print(reason, file=sys.stderr)
        return 2
    folders = None if themes is None else tuple(themes)
    app = WorkbenchApp(make, file=file, theme=theme, themes=folders, keys=keys, given=given)
    with terminal.own_screen(log):
        app.run()
    code = app.return_code or 0
    if code == 1 and not app.last_words:
        app.last_words = f"error: the app ended by a fault of its own; its traceback is in {log}"
    if app.last_words:
        print(app.last_words, file=sys.stderr)
    return code
