"""The app: paints first, opens the session behind the first frame, and ends without leaving a trace on the terminal."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, work
from textual.binding import BindingType
from textual.dom import DOMNode
from textual.screen import Screen
from textual.signal import Signal
from textual.worker import Worker, WorkerState

from workbench import terminal
from workbench.files import write_whole
from workbench.language.clean import clean
from workbench.themes import DEFAULT
from workbench.tui.bench.preview import preview
from workbench.tui.bench.screen import BenchScreen
from workbench.tui.bindings import bindings
from workbench.tui.clipboard import osc52, save_copy, system_copy
from workbench.tui.commands import Commands
from workbench.tui.early_keys import EarlyKeys, KeyPassed
from workbench.tui.screens.base import WorkbenchScreen
from workbench.tui.screens.dialog import ChoiceDialog, Dialog
from workbench.tui.screens.help import HelpRows, HelpSheet
from workbench.tui.screens.too_small import TooSmall, too_small
from workbench.tui.theming import ThemedApp
from workbench.tui.widgets.prompt import PromptClosed, PromptReady
from workbench.views.keys import KEYS, ON_DIALOGS, ON_SHEETS, Key, command_of, display, resolve, take_keys, told
from workbench.views.tab_line import CLOSE, SHOW
from workbench.views.value import folded
from workbench.workspace.folders import at_home

if TYPE_CHECKING:
    from workbench.context.place import Place
    from workbench.engine.journal.parts import CallState
    from workbench.tools.capabilities import Capability
    from workbench.tui.navigation import Navigator
    from workbench.tui.sessions import Sessions
    from workbench.views.tab_line import TabLabel
    from workbench.workspace.session import Reload, Session, Workspace
    from workbench.workspace.settings import Settings


KEEP_EVERY = 3.0
"""Seconds between two looks whether the view is another: what a killed app forgets at most."""
DRAIN_EVERY = 0.2
"""Seconds between two looks at what the engines of hidden tabs sent."""
LOST = 0.5
"""Seconds after which nothing waits for a frame any more."""
LONG_OPENING = 0.4
"""Seconds after which the screen says that something is being opened."""
OPENING = "Opening … Keys wait until it shows."
ROOMS = frozenset({"home", "runs", "snapshots", "sql", "settings"})
"""Actions that open a screen over a workspace."""
SWITCH_S = 0.0005
"""Seconds after which a busy thread gives way to the one that draws. With Python's five milliseconds a key took twice
as long while an answer streamed in (``python -m bench stream``)."""


class WorkbenchApp(ThemedApp):
    """Holds the services of the screens together. ``make`` is called in a thread after the first frame; sessions and
    navigation are made there, too."""

    TITLE = "Cascade Workbench"
    BINDINGS: ClassVar[list[BindingType]] = bindings("app")
    COMMANDS: ClassVar[set[Any]] = {Commands}
    ENABLE_COMMAND_PALETTE = True
    CSS_PATH: ClassVar[Any] = ["app.tcss", "bench/bench.tcss"]

    def __init__(
        self,
        make: Callable[[], Session | Workspace],
        *,
        file: Path | None = None,
        theme: str = DEFAULT,
        themes: Sequence[Path] | None = None,
        keys: Mapping[str, str] | None = None,
        keys_from: Callable[[str], str] | None = None,
        given: Mapping[str, Any] | None = None,
        fresh: bool = False,
        at: Place | None = None,
        adapts: bool = False,
    ) -> None:
        """``file`` is the cascade that ``make`` will open, for a first look at its phases; where ``make`` gives a
        workspace, one chooses from it. ``themes`` are folders; ``keys`` a user's keys by command id, and ``keys_from``
        gives the place where those of a command were set; ``given`` inputs for the run; ``fresh``: what was open last
        stays closed; ``at``: the call to begin at; ``adapts``: colours are those that the terminal can show."""
        super().__init__(theme, themes, adapts=adapts)
        self._make = make
        self._file = file
        self.fresh = fresh
        self._at = at
        self.keys: tuple[Key, ...]
        self.keys, problems = resolve(keys or {})
        take_keys(self.keys)
        self.early_notices += [f"{keys_from(command_of(it))}: {it}" if keys_from else it for it in problems]
        self.last_words = ""
        """Messages for stderr once the screen is gone."""
        self.given: dict[str, Any] = dict(given or {})
        self.asked_to_allow: frozenset[Capability] = frozenset()
        """Capabilities that the user was asked to allow since the app began, whatever the answer was."""
        self.file_saved: Signal[Path] = Signal(self, "file-saved")
        """A watched file has new content, or is gone."""
        self._navigation: Navigator | None = None
        self._early_keys = EarlyKeys(self)
        self._cover: TooSmall | None = None
        self._left = threading.Event()
        self._is_left = False
        self._is_signalled = False
        """Whether a key or a signal ended the app."""
        if keys:
            self.set_keymap({key.id: key.keys for key in self.keys if key.id in keys})

    # -- life --------------------------------------------------------------------------------------------------------

    def get_default_screen(self) -> Screen[Any]:
        return BenchScreen()

    @property
    def bench(self) -> BenchScreen:
        """The main screen, whatever is on top of it."""
        screen = self.screen_stack[0]
        assert isinstance(screen, BenchScreen)
        return screen

    def on_mount(self) -> None:
        loop = asyncio.get_running_loop()
        terminal.on_signals(loop, self._signalled)
        if not (self.is_headless or self.is_web):
            terminal.watch(loop, lambda: self._signalled(signal.SIGHUP), self._left)
        self.set_interval(KEEP_EVERY, self._keep_view_soon)
        self.set_interval(DRAIN_EVERY, self._drain_hidden)
        self._after_frame(self._begin)

    def _after_frame(self, callback: Callable[[], object]) -> None:
        """Call something once, after the next frame. What waits for a frame of a screen that closes before it is drawn
        would never be called, as where the help is opened and closed while all else loads: then it is called later."""
        waits = [callback]

        def call() -> None:
            if waits:
                waits.pop()()

        self.call_after_refresh(call)
        self.set_timer(LOST, call)

    def _begin(self) -> None:
        """After the first frame: a quick look at the file, then the session in a thread."""
        if self._file is not None:
            self.bench.show_preview(preview(self._file))
            self._after_frame(self._open)
        else:
            self._open()

    @work(thread=True, exit_on_error=False, exclusive=True, group="open")
    def _open(self) -> None:
        """Import all the rest and open the session. What shows the file comes first: the controllers and all other
        screens take as long to import again, and keys wait for them."""
        made = self._make()
        # The lazy imports of the app, both in this thread: the rest of the program comes behind the first frame.
        from workbench.tui.bench.opening import opened_first

        opened, presenter = opened_first(made, fresh=self.fresh)
        if presenter is not None:
            self.call_later(self.bench.show_file, presenter)
        from workbench.tui.navigation import Navigator

        navigation = self._navigation = Navigator(self)
        navigation.sessions.open(opened, navigation.open_home, self._go_to_call)

    def _go_to_call(self) -> None:
        """Show the call that the app was opened at."""
        if self._at is not None and self.session is not None:
            self.bench.controllers.inspecting.go_to_call(self.session.run_id, self._at)

    def on_unmount(self) -> None:
        self._left.set()
        take_keys(KEYS)
        terminal.off_signals(asyncio.get_running_loop())
        if self._navigation is not None:
            # A page that is closed ends the app without a key or a signal; signals come from the server alone.
            server_ended = self.is_web and self._is_signalled
            page_closed = self.is_web and not self._is_left
            self._navigation.sessions.close(
                asked=not self.return_code, page_closed=page_closed, server_ended=server_ended
            )

    def _signalled(self, number: int) -> None:
        self._is_signalled = True
        self.exit(128 + number, return_code=128 + number)

    def exit(self, *arguments: Any, **options: Any) -> None:
        """Leave the app, and remember how it looked."""
        self._is_left = True
        if self._navigation is not None and self.screen_stack:
            self._navigation.sessions.keep_view()
        super().exit(*arguments, **options)

    def _keep_view_soon(self) -> None:
        if self._navigation is not None and self.screen_stack:  # While the app closes, its screens are gone first.
            self._navigation.sessions.keep_view_soon()

    def _drain_hidden(self) -> None:
        if self._navigation is not None:
            self._navigation.sessions.drain()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if event.state is not WorkerState.ERROR:
            return
        fault = event.worker.error
        words = clean(str(fault)) or type(fault).__name__
        if event.worker.group == "switch":
            self.press_early_keys()
        if event.worker.group == "open":
            self.last_words = words
            self.exit(2, return_code=2)
        elif event.worker.group == "switch" or type(fault).__module__.startswith("workbench."):
            self.say(words, "error")
        else:
            self.say(f"{type(fault).__name__}: {fault}", "error")

    # -- services for screens ----------------------------------------------------------------------------------------

    @property
    def navigation(self) -> Navigator:
        """Opens screens, runs and files. There is none before the first session or workspace is open."""
        if self._navigation is None:
            raise RuntimeError("nothing is open yet")
        return self._navigation

    @property
    def is_told_of_saves(self) -> bool:
        return self._navigation is not None and self._navigation.sessions.watcher is not None

    @property
    def sessions(self) -> Sessions:
        """The open session, and how another one takes its place."""
        return self.navigation.sessions

    @property
    def session(self) -> Session | None:
        """The open session."""
        return self._navigation.sessions.session if self._navigation is not None else None

    @property
    def workspace(self) -> Workspace | None:
        """The workspace, once it is open."""
        return self._navigation.sessions.workspace if self._navigation is not None else None

    @property
    def tab_labels(self) -> Sequence[TabLabel]:
        """The label of each open tab."""
        return self._navigation.sessions.labels if self._navigation is not None else ()

    @property
    def calls(self) -> Sequence[CallState]:
        """The model calls of the run that the Bench shows, in their order."""
        presenter = self.bench.presenter
        return presenter.state.shown.calls if presenter is not None else ()

    def look_at_call(self, place: Place) -> None:
        """Look at a call of that run."""
        if (presenter := self.bench.presenter) is not None:
            self.bench.controllers.inspecting.go_to_call(presenter.state.shown.run_id, place)

    @property
    def draws_pictures(self) -> bool:
        """Whether images can be shown: a session is open, and the terminal has the colours."""
        presenter = self.bench.presenter
        return self.session is not None and presenter is not None and presenter.gallery.enabled

    @property
    def sizes(self) -> Mapping[str, int]:
        """Sizes of panes that the user chose, by the name of the border."""
        return self.sessions.sizes

    def choose_size(self, name: str, size: int | None) -> None:
        """Keep a size for all workspaces, or None for the size that the pane has by itself."""
        self.sessions.choose_size(name, size)

    def take_reload(self, reload: Reload) -> None:
        """Show what a second look at the cascade file found."""
        self.sessions.take_reload(reload)

    def take_settings(self, settings: Settings) -> None:
        """Apply the settings that count at once: the theme and the keys. The rest is read when a run or the app
        starts."""
        theme = self.fitting(settings.theme)
        if theme != self.theme and theme in self.available_themes:
            self.theme = theme
        self.keys = resolve(settings.keys)[0]
        take_keys(self.keys)
        self.set_keymap({key.id: key.keys for key in self.keys if key.id in settings.keys})
        self.refresh_bindings()
        self.bench.forget()
        self.bench.settle()

    def show_notices(self) -> None:
        """Draw the messages on the uppermost screen that has a last line for them."""
        for screen in reversed(self.screen_stack):
            if isinstance(screen, WorkbenchScreen | Dialog):
                screen.show_notices()
                return

    def to_bench(self, then: Callable[[], object] | None = None) -> None:
        """Go back to the Bench, whatever is on top of it, but for the cover of a terminal that is too small; then call
        ``then``."""
        while len(self.screen_stack) > 1 and not isinstance(self.screen, TooSmall):
            self.pop_screen()
        if then is not None:
            self.call_later(then)

    def in_background(self, work: Callable[[], None], group: str) -> None:
        """Run work in a thread; other work of the group is given up."""
        self.run_worker(work, thread=True, group=group, description=group, exclusive=True, exit_on_error=False)

    def later(self, callback: Callable[..., object], *arguments: Any) -> None:
        """Call something on the screen's side; may be called in any thread."""
        self.call_later(callback, *arguments)

    def copy(self, text: str, what: str) -> None:
        """Copy text by OSC 52 and the system's clipboard; what is too long for both goes to a file. Control characters
        are copied as they are shown: pasted into a shell, they would act."""
        text = clean(text)
        if sent := osc52(text) is not None:
            self.copy_to_clipboard(text)
        self._copy_further(text, what, sent=sent)

    @work(thread=True, exit_on_error=False, group="copy")
    def _copy_further(self, text: str, what: str, *, sent: bool) -> None:
        tool = system_copy(text)
        where = [*(["the terminal's clipboard"] if sent else []), *([tool] if tool else [])]
        if not where:
            where = [str(save_copy(text))]
        self.call_later(self.say, f"copied {what}, {len(text):,} characters, to {' and '.join(where)}")

    async def run_command(self, command: str) -> None:
        """Run a command of the key table by its id, ``theme:name``, or ``tab:`` and ``close-tab:`` with a number."""
        if command.startswith("theme:"):
            self.theme = command.removeprefix("theme:")
            return
        if command.startswith(SHOW):
            self.sessions.show_at(int(command.removeprefix(SHOW)))
            return
        if command.startswith(CLOSE):
            self.sessions.close_tab(int(command.removeprefix(CLOSE)))
            return
        if command == "app.quit":  # By its name it quits wherever it is asked for; its key leads back first.
            self._leave()
            return
        key = next(key for key in self.keys if key.id == command)
        await self.run_action(key.action, default_namespace=self if key.context == "app" else self._taker(command))

    def _taker(self, command: str) -> DOMNode:
        """Returns the widget that takes the key of a command: the one with the focus, another one that is shown, or the
        screen."""
        focused = [self.screen.focused] if self.screen.focused is not None else []
        widgets = (widget for widget in (*focused, *self.screen.query("*")) if widget.display)
        return next((widget for widget in widgets if _binds(widget, command)), self.screen)

    # -- keys --------------------------------------------------------------------------------------------------------

    async def on_event(self, event: events.Event) -> None:
        """Keys that the Bench will have an answer to wait until it is open; those of the app work at once."""
        if isinstance(event, events.Key):
            self.notices.seen()
        typed = event if isinstance(event, events.Key) and not event.is_forwarded else None
        if not self._early_keys.holds(event):
            await super().on_event(event)
            if typed is not None:
                self._early_keys.forwarded(typed)

    async def on_key(self, event: events.Key) -> None:
        is_for_this = await self._early_keys.unhandled(event)
        if is_for_this and event.is_printable and isinstance(self.screen, WorkbenchScreen | Dialog):
            bound = self.screen.active_bindings
            if bound.keys().isdisjoint((event.key, *event.aliases)):
                self.say(told("{key} does nothing here; {app.help} lists the keys.", key=display(event.key)))

    async def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        await self._early_keys.focused(event.widget)

    async def on_key_passed(self, event: KeyPassed) -> None:
        await self._early_keys.passed(event)

    async def on_prompt_ready(self, event: PromptReady) -> None:
        await self._early_keys.release()

    async def on_prompt_closed(self, event: PromptClosed) -> None:
        await self._early_keys.release()

    @property
    def is_stepping(self) -> bool:
        """Whether the run that is shown is on its way to its next pause, or to its end."""
        return self._navigation is not None and bool(self.screen_stack) and self.bench.is_stepping

    def hold_keys(self) -> None:
        """A file or a run is about to be shown: keys wait for it until ``press_early_keys``. The screen says so where
        that takes long, as for a run of thousands of turns."""
        self._early_keys.hold()
        self.set_timer(LONG_OPENING, self._say_opening)

    def _say_opening(self) -> None:
        if self._early_keys.is_opening:
            self.say(OPENING)

    def press_early_keys(self) -> None:
        """There is something now that takes the keys pressed before: press them again."""
        self.notices.take_back(OPENING)
        self._early_keys.press_early()

    def say_at_end(self, text: str) -> None:
        """Say something on the terminal when the app has ended, too."""
        self.last_words = text

    def push_unasked(self, screen: Screen[Any], answered: Callable[[Any], None] | None = None) -> None:
        """Open a screen that no key asked for: it takes no key that was typed before it could be seen."""
        self._early_keys.expect(screen)
        self.push_screen(screen, answered)

    # -- commands of the app -----------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Nothing opens over a workspace before that is open."""
        return action not in ROOMS or self.workspace is not None

    def action_runs(self) -> None:
        self._over_workspace(self.navigation.open_runs)

    def action_home(self) -> None:
        self._over_workspace(self.navigation.open_home)

    def action_snapshots(self) -> None:
        self._over_workspace(self.navigation.open_snapshots)

    def action_sql(self) -> None:
        self._over_workspace(self.navigation.open_sql)

    def action_settings(self) -> None:
        self._over_workspace(self.navigation.open_settings)

    def _over_workspace(self, open_screen: Callable[[Workspace], None]) -> None:
        if self.workspace is not None:
            open_screen(self.workspace)

    def action_help(self) -> None:
        if not isinstance(self.screen, HelpSheet):
            below = ON_DIALOGS if isinstance(self.screen, Dialog) else ON_SHEETS if self.screen.is_modal else None
            self.push_screen(HelpSheet(HelpRows(self.keys, getattr(self.screen, "PALETTE", ()), below)))

    def action_save_screen(self) -> None:
        """Save a picture of the screen in the folder of the workspace."""
        folder = self.workspace.project.root if self.workspace is not None else Path.cwd()
        svg, name = self.export_screenshot(), f"workbench-{datetime.now():%Y%m%d-%H%M%S}.svg"
        try:
            write_whole(folder / name, svg.encode("utf-8", "replace"))
        except OSError as fault:
            self.say(f"{name} cannot be written: {fault.strerror}", "error")
        else:
            self.say(f"Screen saved: {at_home(folder / name)}")

    def action_suspend_process(self) -> None:
        """Ctrl+Z: back to the shell. The import of the SQL engine in another thread takes the signal for a moment; so
        the handler that gives the terminal back is set again before."""
        handler = signal.getsignal(signal.SIGTSTP)
        if callable(handler) and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTSTP, handler)
        super().action_suspend_process()

    def action_interrupt(self) -> None:
        """Ctrl+C: a selection is copied, a run is stopped, an app ends that is idle or whose run was stopped."""
        selected = self.screen.get_selected_text()
        if selected:
            self.copy(selected, "the selection")
        elif self.session is not None and self.session.running and not self.session.stopping:
            self.session.stop()
        else:
            self._leave()

    async def action_leave(self) -> None:
        """Go back from what lies above the Bench, as every sheet does on this key; from the Bench, quit."""
        above = self.screen is not self.bench and self.session is not None
        if above and isinstance(self.screen, WorkbenchScreen):
            await self.screen.run_action("close")
        else:
            self._leave()

    def _leave(self) -> None:
        """Quit; while a run is going, or a file is not saved, only after asking."""
        active = self._navigation.sessions.running if self._navigation is not None else ()
        running = [tab for tab in active if not tab.session.stopping]
        unsaved = self._navigation.unsaved() if self._navigation is not None else ()
        if not running and not unsaved:
            self.exit(0)
            return
        reasons = [f"{file} has changes that are not saved." for file in unsaved]
        names = ", ".join(tab.label(current=False).name for tab in running)
        if len(running) == 1:
            reasons.append(f"A run is active: {names}. {running[0].session.if_stopped}")
        elif running:
            reasons.append(f"{len(running)} runs are active: {names}. Their journals are complete so far.")
        text = "\n".join(reasons)
        stop = "Stop the run and quit" if len(running) == 1 else "Stop all runs and quit"
        leave = stop if running else "Discard the changes and quit"
        answers = (("stay", "s", "Stay"), ("leave", "q", leave))

        def answered(answer: str | None) -> None:
            if answer == "leave":
                self.navigation.drop_unsaved()
                self.exit(0)

        dialog = ChoiceDialog("Quit?", text, answers)
        dialog.interrupted = "leave"
        self.push_screen(dialog, answered)

    async def on_resize(self, event: events.Resize) -> None:
        """Cover everything while there is no room for it; a burst of sizes leaves what the last one needs, because each
        cover is there, or gone, before the next size is looked at."""
        if too_small(event.size) and self._cover is None:
            self._cover = TooSmall()
            await self.push_screen(self._cover)
        elif not too_small(event.size) and self._cover is not None:
            cover, self._cover = self._cover, None
            await cover.dismiss()


def _binds(node: DOMNode, command: str) -> bool:
    """Returns whether a kind of widget, or one that it refines, has the key of a command."""
    tables = (vars(kind).get("BINDINGS", ()) for kind in type(node).__mro__)
    return any(getattr(binding, "id", None) == command for table in tables for binding in table)


def run_app(
    make: Callable[[], Session | Workspace],
    *,
    log: Path,
    file: Path | None = None,
    theme: str = DEFAULT,
    themes: Iterable[Path] | None = None,
    keys: Mapping[str, str] | None = None,
    keys_from: Callable[[str], str] | None = None,
    given: Mapping[str, Any] | None = None,
    fresh: bool = False,
    at: Place | None = None,
    instead: str = "workbench run FILE",
) -> int:
    """Run the app on this terminal; the exit code: 0, 2 where it cannot start, 128+n after a signal.

    ``log`` takes what anything but the app writes to stdout or stderr meanwhile. Without a terminal nothing starts:
    the reason and the headless command ``instead`` go to stderr.
    """
    if (reason := terminal.why_not(os.environ, instead)) is not None:
        print(reason, file=sys.stderr)
        return 2
    terminal.forget_exported_size()
    folders = None if themes is None else tuple(themes)
    app = WorkbenchApp(
        make,
        file=file,
        theme=theme,
        themes=folders,
        keys=keys,
        keys_from=keys_from,
        given=given,
        fresh=fresh,
        at=at,
        adapts=True,
    )
    sys.setswitchinterval(SWITCH_S)
    with terminal.own_screen(log):
        app.run()
    code = app.return_code or 0
    if code == 1 and not app.last_words:
        app.last_words = f"error: the app crashed; the traceback is in {log}"
    if app.last_words:
        in_lines = sys.stderr.isatty()
        room = shutil.get_terminal_size().columns
        for line in app.last_words.split("\n"):
            print(*(folded(line, room) if in_lines else [line]), sep="\n", file=sys.stderr)
    return code
