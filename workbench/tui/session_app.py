"""An app over one session at a time: opened behind the first frame, exchanged for another, left as it was found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual import work
from textual.message import Message
from textual.worker import Worker, WorkerState

from workbench.collector import no_collection
from workbench.language.clean import clean
from workbench.tui.key_words import told
from workbench.tui.screens.too_small import TooSmall
from workbench.tui.themes import load_themes
from workbench.tui.typed_ahead import TypedAhead

if TYPE_CHECKING:
    from workbench.tools.manifest import Capability
    from workbench.tui.opening import Found
    from workbench.tui.themes import Themes
    from workbench.workspace.desk import Desk
    from workbench.workspace.session import Session
    from workbench.workspace.views import View

KEEP_EVERY = 3.0
"""Seconds between two looks whether the view is another: what a killed app forgets at most."""


class SessionOpened(Message):
    """A session is open."""

    def __init__(self, found: Found, themes: Themes, then: Callable[[], object] | None = None) -> None:
        super().__init__()
        self.found = found
        self.themes = themes
        self.then = then


class DeskOpened(Message):
    """A workspace is open, and none of its cascades yet."""

    def __init__(self, desk: Desk, themes: Themes) -> None:
        super().__init__()
        self.desk = desk
        self.themes = themes


class SessionApp(TypedAhead):
    """Opens what ``make`` gives: a session, or a workspace to choose one from."""

    _make: Callable[[], Session | Desk]
    _file: Path | None = None
    given: dict[str, Any]
    last_words: str
    fresh: bool = False
    """Whether to leave what was open last as it is."""
    asked_to_allow: frozenset[Capability] = frozenset()
    """What a person was asked to allow since the app began, whatever the answer was."""
    _desk: Desk | None = None
    _kept: tuple[Path, View] | None = None
    """The view that was kept last."""
    _keeping_failed: bool = False
    _sizes: dict[str, int] | None = None

    # -- the first session -------------------------------------------------------------------------------------------

    @property
    def desk(self) -> Desk | None:
        """The workspace, once it is open."""
        return self.session.desk if self.session is not None else self._desk

    def begin(self) -> None:
        """After the first frame: a quick look at the file, then the session in a thread."""
        if self._file is not None:
            from workbench.tui.preview import preview

            self.bench.show_preview(preview(self._file))
            self.call_after_refresh(self._open)
        else:
            self._open()

    @work(thread=True, exit_on_error=False, exclusive=True, group="open")
    def _open(self) -> None:
        """Import the language layer and open the session, with the collector off: it stalls the screen."""
        with no_collection():
            made = self._make()
            from workbench.workspace.session import Session

            if not isinstance(made, Session):
                self.post_message(DeskOpened(made, load_themes(self.theme_folders)))
                return
            from workbench.tui.opening import found_of, unfinished_run, warm_up

            by_name = bool(made.run_id)
            self.post_message(SessionOpened(found_of(made, fresh=self.fresh), load_themes(self.theme_folders)))
            warm_up()
            if not by_name and (run := unfinished_run(made)) is not None:
                self.call_later(self.bench.offer_to_go_on, *run)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if event.state is not WorkerState.ERROR:
            return
        fault = event.worker.error
        words = clean(str(fault)) or type(fault).__name__
        if event.worker.group == "open":
            self.last_words = words
            self.exit(2, return_code=2)
        elif event.worker.group == "switch":
            self.say(words, "error")
        else:
            self.say(f"{type(fault).__name__}: {fault}", "error")

    def on_desk_opened(self, event: DeskOpened) -> None:
        self._desk = event.desk
        self.take_themes(event.themes)
        self.say_early(event.desk.project.notes)
        self.show_home(event.desk)

    def show_home(self, desk: Desk) -> None:
        """Show the cascades and runs of a workspace."""
        from workbench.tui.screens.home import HomeScreen

        self.push_screen(HomeScreen(desk))

    def on_session_opened(self, event: SessionOpened) -> None:
        before, self.session = self.session, event.found.session
        if self.watcher is not None:
            self.watcher.stop()
        if before is not None:
            before.close()
        self.to_bench()
        self.bench.open(event.found.presenter)
        self.take_themes(event.themes)
        self.say_early(event.found.presenter.notes)
        if self.session.gone:
            self.say(self.session.gone, "warning")
        else:
            self.watch_file(self.session)
        self.bench.restore(event.found)
        if event.then is not None:
            event.then()
        self.press_early_keys()

    # -- another session ---------------------------------------------------------------------------------------------

    def show_run(self, run_id: str, then: Callable[[], object] | None = None) -> None:
        """Show a stored run in the Bench, over its own file, and then do something with it."""
        session = self.session
        if self.unsaved():
            self.say(f"{self.unsaved()[0]} is not saved: save it, or leave the editor first.", "warning")
        elif session is not None and session.running:
            if session.run_id != run_id:
                self.say(told("A run is going on in the Bench: {run.stop} stops it there."), "warning")
                return
            self.to_bench(then)
        elif session is not None and session.run_id == run_id and self.bench.shows(run_id):
            self.to_bench(then)
        elif self.desk is not None:
            self._switch(lambda desk: desk.run(run_id), then)

    def show_file(self, file: Path) -> None:
        """Open another cascade in the Bench."""
        session = self.session
        if session is not None and session.file == file.resolve():
            self.to_bench()
        elif session is not None and session.running:
            self.say(told("A run is going on in the Bench: {run.stop} stops it there."), "warning")
        else:
            self._switch(lambda desk: desk.file(file))

    def to_bench(self, then: Callable[[], object] | None = None) -> None:
        """Back to the Bench, whatever is on top of it, but for the cover of a terminal that is too small."""
        while len(self.screen_stack) > 1 and not isinstance(self.screen, TooSmall):
            self.pop_screen()
        if then is not None:
            self.call_later(then)

    def _switch(self, make: Callable[[Desk], Session], then: Callable[[], object] | None = None) -> None:
        desk = self.desk
        if desk is not None:
            self.keep_view()
            self.open_from(desk, make, then)

    @work(thread=True, exit_on_error=False, exclusive=True, group="switch")
    def open_from(self, desk: Desk, make: Callable[[Desk], Session], then: Callable[[], object] | None = None) -> None:
        """Open a session of a workspace in place of the one there is. A fault is said, and the old one stays."""
        from workbench.tui.opening import found_of, unfinished_run, warm_up
        from workbench.workspace.inputs import default_input

        with no_collection():
            session = make(desk)
            by_name = bool(session.run_id)
            given: Mapping[str, Any] = default_input(session.file)
            found = found_of(session, fresh=self.fresh)
            self.post_message(SessionOpened(replace(found, given=given), load_themes(self.theme_folders), then))
            warm_up()
            if not by_name and (run := unfinished_run(session)) is not None:
                self.call_later(self.bench.offer_to_go_on, *run)

    # -- sizes of panes ----------------------------------------------------------------------------------------------

    @property
    def sizes(self) -> dict[str, int]:
        """What the user chose, by border; read when it is first asked for."""
        if self._sizes is None:
            from workbench.workspace.sizes import load_sizes

            self._sizes = load_sizes(self.desk.project.folders) if self.desk is not None else {}
        return self._sizes

    def choose_size(self, name: str, size: int | None) -> None:
        """Take a size, or None for as it is by itself; it is kept as soon as nothing else is to be done."""
        if size is None:
            self.sizes.pop(name, None)
        else:
            self.sizes[name] = size
        if self.desk is not None:
            self._keep_sizes(self.desk, self.sizes)

    @work(thread=True, exit_on_error=False, exclusive=True, group="sizes")
    def _keep_sizes(self, desk: Desk, sizes: dict[str, int]) -> None:
        from workbench.workspace.sizes import keep_sizes

        keep_sizes(desk.project.folders, sizes)

    # -- the view ----------------------------------------------------------------------------------------------------

    def keep_view(self) -> None:
        """Keep how the Bench looks now, if that is not what was kept last."""
        if (due := self._view_due()) is not None:
            self._write_view(*due)

    def keep_view_soon(self) -> None:
        """The same, in a thread."""
        if (due := self._view_due()) is not None:
            self._write_view_later(*due)

    def exit(self, *arguments: Any, **options: Any) -> None:
        """Leave the app, and remember how it looked."""
        self.keep_view()
        super().exit(*arguments, **options)

    def unsaved(self) -> tuple[str, ...]:
        """Files with changes that would be lost."""
        return ()

    def _view_due(self) -> tuple[Session, View] | None:
        session = self.session
        if session is None or session.gone or not self.screen_stack or (view := self.bench.view_now()) is None:
            return None
        return None if self._kept == (session.file, view) else (session, view)

    @work(thread=True, exit_on_error=False, exclusive=True, group="view")
    def _write_view_later(self, session: Session, view: View) -> None:
        self._write_view(session, view)

    def _write_view(self, session: Session, view: View) -> None:
        from workbench.workspace.views import keep_view

        project = session.project
        self._kept = (session.file, view)  # Also when it fails: it is tried again when something changes.
        try:
            keep_view(project.folders, project.root, project.shown(session.file), view)
        except OSError as fault:
            if not self._keeping_failed:
                self._keeping_failed = True
                self.call_later(self.say, f"how this looks is not kept for the next time: {fault.strerror}", "warning")
