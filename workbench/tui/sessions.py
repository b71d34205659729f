"""The sessions that are open in the app, each a tab: opened behind the first frame or beside the others, followed as
their files are saved, and closed. Imported behind the first frame."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec.structs import replace

from workbench.engine.journal.event import APP_ENDED, PAGE_CLOSED, SERVER_ENDED, STOPPED_BY_USER
from workbench.themes import load_themes
from workbench.tui.bench.controllers import Controllers
from workbench.tui.bench.opening import OpenedSession, opened_session, unfinished_run, watched_files
from workbench.tui.screens.dialog import ChoiceDialog
from workbench.views.header import run_label
from workbench.views.keys import told
from workbench.views.tab_line import RUN, TabLabel
from workbench.workspace.input_file import default_input
from workbench.workspace.recorded_runs import past_of
from workbench.workspace.run_builder import started_here
from workbench.workspace.session import Session, Workspace
from workbench.workspace.view_states import keep_sizes, keep_view, load_sizes
from workbench.workspace.watch import Watcher

if TYPE_CHECKING:
    from textual.screen import Screen
    from textual.signal import Signal

    from workbench.language.load import Loaded
    from workbench.themes import Themes
    from workbench.tui.bench.panes import PanesLook
    from workbench.tui.bench.presenter import Presenter
    from workbench.tui.bench.screen import BenchScreen
    from workbench.tui.contracts import Severity
    from workbench.workspace.session import Reload
    from workbench.workspace.view_states import ViewState


@dataclass(slots=True, eq=False)
class RunTab:
    """A session that is open in the app."""

    session: Session
    presenter: Presenter
    controllers: Controllers
    given: Mapping[str, Any]
    """Inputs for its next run."""
    look: PanesLook | None = None
    """How the panes were left; None while it is shown."""
    was: str = ""
    """Its activity when that was looked at last."""
    news: bool = False
    """Whether something happened in it since it was shown last."""

    @property
    def doing(self) -> str:
        """``held``, ``asked``, ``running``, or how its run ended; empty where there is none."""
        state = self.presenter.state
        if state.current_question() is not None and state.alive:
            return "asked"
        if state.held is not None:
            return "held"
        if self.session.running and not state.started:
            return "running"
        return state.run.status if state.started else ""

    @property
    def is_blank(self) -> bool:
        """Whether it shows a file of which nothing was run here."""
        return not self.presenter.state.started and not self.session.running

    def shows(self, run_id: str) -> bool:
        """Returns whether a run is what it shows."""
        return bool(run_id) and run_id in (self.session.run_id, self.presenter.state.run.run_id)

    def label(self, *, current: bool) -> TabLabel:
        """Its label in the line of tabs."""
        run, file = self.presenter.state.run, self.presenter.file
        cascade = file.cascade.cascade_id if file is not None and file.cascade is not None else run.cascade_id
        named = cascade or self.session.file.stem
        name = run_label(run) if run.run_id else ""
        short = name if len(name) <= RUN else name.rpartition("-")[2]
        return TabLabel(named, short, self.doing, current, self.news and not current)

    def take(self) -> bool:
        """While it is hidden: take what its engine sent, without drawing. Whether it does something else now."""
        self.controllers.running.drain(self.session, self.presenter)
        before, self.was = self.was, self.doing
        self.news = self.news or before != self.was
        return before != self.was


MOST_TABS = 24
"""Tabs that stay open; beyond that, the oldest without a live run is closed."""
Same = Callable[[RunTab], bool] | None
"""Finds the tab that shows already what is being opened."""
PAINT_SECONDS = 0.1
"""The longest that checking a saved file waits until its phases are on the screen."""


class Host(Protocol):
    """The app as sessions need it."""

    file_saved: Signal[Path]
    given: dict[str, Any]
    fresh: bool

    @property
    def theme_folders(self) -> tuple[Path, ...]:
        """Where theme files lie."""
        ...

    @property
    def bench(self) -> BenchScreen:
        """The main screen."""
        ...

    def to_bench(self, then: Callable[[], object] | None = None) -> None:
        """Go back to the Bench, whatever is on top of it, then call ``then``."""
        ...

    def say(self, text: str, severity: Severity = "information") -> None:
        """Show a short message in the last line."""
        ...

    def say_early(self, more: Iterable[str] = ()) -> None:
        """Say what went wrong before there was a screen."""
        ...

    def take_themes(self, themes: Themes) -> None:
        """Register themes that were read."""
        ...

    def reload_themes(self) -> None:
        """Read all theme files again."""
        ...

    def hold_keys(self) -> None:
        """A file or a run is about to be shown: keys wait for it until ``press_early_keys``."""
        ...

    def press_early_keys(self) -> None:
        """Press the keys again that came before there was a session."""
        ...

    def push_screen(self, screen: Screen[Any], callback: Callable[[Any], None] | None = None) -> object:
        """Open a screen; ``callback`` gets what it is dismissed with."""
        ...

    def in_background(self, work: Callable[[], None], group: str) -> None:
        """Run work in a thread; other work of the group is given up."""
        ...

    def later(self, callback: Callable[..., object], *arguments: Any) -> None:
        """Call something on the screen's side; may be called in any thread."""
        ...


class Sessions:
    """Holds the open sessions, each a tab, watches their files, and keeps how the one that is shown looks."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.tabs: list[RunTab] = []
        """All that is open, in the order of the line of tabs."""
        self.tab: RunTab | None = None
        """The one that is shown."""
        self.watcher: Watcher | None = None
        self._workspace: Workspace | None = None
        self._kept: tuple[Path, ViewState] | None = None
        """The view that was kept last."""
        self._keeping_failed = False
        self._sizes: dict[str, int] | None = None
        self._reloading = threading.Lock()
        self._saves: dict[Path, object] = {}
        """By file, what stands for the save of it that was noticed last."""

    @property
    def session(self) -> Session | None:
        """The session that is shown."""
        return self.tab.session if self.tab is not None else None

    @property
    def workspace(self) -> Workspace | None:
        """The workspace, once it is open."""
        return self.session.workspace if self.session is not None else self._workspace

    @property
    def running(self) -> tuple[RunTab, ...]:
        """The tabs with a run that has not ended."""
        return tuple(tab for tab in self.tabs if tab.session.running)

    @property
    def labels(self) -> tuple[TabLabel, ...]:
        """The labels in the line of tabs."""
        return tuple(tab.label(current=tab is self.tab) for tab in self.tabs)

    def close(self, *, asked: bool, page_closed: bool = False, server_ended: bool = False) -> None:
        """Stop watching, and close all sessions. ``asked``: whether a person has quit the app. ``page_closed``: whether
        it ended because the page is gone that showed it; ``server_ended``: because the server of that page is."""
        why = STOPPED_BY_USER if asked else APP_ENDED
        why = SERVER_ENDED if server_ended else PAGE_CLOSED if page_closed else why
        if self.watcher is not None:
            self.watcher.stop()
        for tab in self.tabs:
            tab.session.stop(why)
        for tab in self.tabs:
            tab.session.close(why)

    # -- opening -----------------------------------------------------------------------------------------------------

    def open(
        self,
        made: OpenedSession | Workspace,
        show_home: Callable[[Workspace], None],
        then: Callable[[], object] | None = None,
    ) -> None:
        """In a thread: open what the app was started with, a session, and call ``then``, or a workspace to choose one
        from."""
        if isinstance(made, OpenedSession):
            self._open(made, then)
        else:
            self._host.later(self._take_workspace, made, load_themes(self._host.theme_folders), show_home)

    def _take_workspace(self, workspace: Workspace, themes: Themes, show_home: Callable[[Workspace], None]) -> None:
        self._workspace = workspace
        self._host.take_themes(themes)
        self._host.say_early(workspace.project.notes)
        show_home(workspace)

    def _open(self, opened: OpenedSession, then: Callable[[], object] | None, same: Same = None) -> None:
        """In a thread: show a session that was opened; offer to resume its run, unless a run was asked for, or nothing
        of before is wanted (``--fresh``)."""
        self._host.later(self._take, opened, load_themes(self._host.theme_folders), then, same)
        if opened.by_name or self._host.fresh:
            return
        others = [tab for tab in self.tabs if tab.session is not opened.session]
        if (run := unfinished_run(opened.session)) is not None and not any(tab.shows(run[0]) for tab in others):
            self._host.later(self._host.bench.offer_to_go_on, *run)

    def _take(
        self, opened: OpenedSession, themes: Themes, then: Callable[[], object] | None, same: Same = None
    ) -> None:
        """Show a session that was opened, in a tab of its own; one that shows nothing but the same file gives way. A
        tab that ``same`` finds came while this session was opened: it is shown instead."""
        if same is not None and (found := next(filter(same, self._shown_first()), None)) is not None:
            self._host.in_background(opened.session.close, f"close-{id(opened)}")
            self.show(found, then)
            self._host.press_early_keys()
            return
        host, bench, before = self._host, self._host.bench, self.tab
        if self.workspace is not None:
            host.to_bench()
        # else the app was started with this file: a person may read the help meanwhile.
        given = host.given if opened.given is None else dict(opened.given)
        controllers = Controllers(bench, bench.redraw_all_screens)
        tab = RunTab(opened.session, opened.presenter, controllers, given)
        if before is not None and before.is_blank and before.session.file == opened.session.file:
            self.tabs[self.tabs.index(before)] = tab
            before.session.close()
        else:
            self._hide(before)
            self.tabs.insert(self.tabs.index(before) + 1 if before is not None else len(self.tabs), tab)
            self._close_oldest(tab)
        self.tab = tab
        bench.open(opened.presenter, controllers)
        host.take_themes(themes)
        host.say_early(opened.presenter.notes)
        if tab.session.gone and not tab.session.running:
            host.say(tab.session.gone, "warning")
        self._watch()
        host.given = dict(given)
        controllers.view.restore(opened.view)
        if then is not None:
            then()
        host.press_early_keys()

    # -- tabs --------------------------------------------------------------------------------------------------------

    def show(self, tab: RunTab, then: Callable[[], object] | None = None) -> None:
        """Show a tab that is open, with the Bench on top, then call ``then``."""
        host, bench = self._host, self._host.bench
        if tab is not self.tab and tab in self.tabs:
            self.keep_view()
            self._hide(self.tab)
            self.tab, tab.news = tab, False
            host.given = dict(tab.given)
            look, tab.look = tab.look, None
            bench.show_again(tab.presenter, tab.controllers, look)
        host.to_bench(then)

    def show_at(self, index: int) -> None:
        """Show the tab at a place of the line, from 0; nothing where there is none."""
        if 0 <= index < len(self.tabs):
            self.show(self.tabs[index])

    def step(self, by: int) -> None:
        """Show the tab so many places to the right; after the last one comes the first."""
        if len(self.tabs) < 2 or self.tab is None:
            self._host.say(told("Only this tab is open. {app.home} and {app.runs} open others beside it."))
            return
        self.show_at((self.tabs.index(self.tab) + by) % len(self.tabs))

    def drain(self) -> None:
        """Take what the engines of hidden tabs sent; tell what they do now, where that is something else."""
        for tab in self.tabs:
            if tab is not self.tab and tab.take():
                self._tell(tab)

    def _tell(self, tab: RunTab) -> None:
        name, state = tab.label(current=False).name, tab.presenter.state
        if tab.was == "held" and state.held is not None:
            self._host.say(f"{name}: paused {state.held.words} {state.held.place.phase}")
        elif tab.was == "asked":
            self._host.say(f"{name}: is waiting for your answer", "warning")
        elif not state.alive and state.started:
            self._host.say(f"{name}: {state.run.status}", "error" if state.run.status == "failed" else "information")
        self._host.bench.show_tabs()

    def close_tab(self, index: int | None = None) -> None:
        """Close a tab, the one that is shown where none is named; a live run in it is stopped, after asking."""
        tab = self.tab if index is None else next(iter(self.tabs[index : index + 1]), None)
        if tab is None:
            return
        if len(self.tabs) == 1:
            self._host.say(told("This is the only tab. {app.home} opens another beside it, {app.quit} quits."))
        elif tab.session.running:
            self._ask_to_close(tab)
        else:
            self._close(tab)

    def _ask_to_close(self, tab: RunTab) -> None:
        def answered(answer: str | None) -> None:
            if answer == "close":
                self._close(tab)

        name = tab.label(current=False).name
        text = f"The run of {name} is active. {tab.session.if_stopped}"
        answers = (("stay", "s", "Keep the tab open"), ("close", "t", "Stop the run and close the tab"))
        self._host.push_screen(ChoiceDialog("Close this tab?", text, answers), answered)

    def _close(self, tab: RunTab) -> None:
        if tab not in self.tabs or len(self.tabs) == 1:
            return
        at = self.tabs.index(tab)
        if tab is self.tab:
            self.show_at(at + 1 if at + 1 < len(self.tabs) else at - 1)
        self._drop(tab)

    def _drop(self, tab: RunTab) -> None:
        self.tabs.remove(tab)
        tab.session.stop()
        self._host.in_background(tab.session.close, f"close-{id(tab)}")
        self._watch()
        self._host.bench.show_tabs()

    def _close_oldest(self, fresh: RunTab) -> None:
        """Keep the number of tabs bounded: the first one goes that has no live run."""
        while len(self.tabs) > MOST_TABS:
            oldest = next((tab for tab in self.tabs if tab is not fresh and not tab.session.running), None)
            if oldest is None:
                return
            self._host.say(f"{oldest.label(current=False).name} was closed: at most {MOST_TABS} tabs stay open.")
            self._drop(oldest)

    def _hide(self, tab: RunTab | None) -> None:
        """Remember how a tab looks that another one takes the place of; what was made to draw it is dropped."""
        if tab is not None:
            tab.given = dict(self._host.given)
            tab.look = self._host.bench.leave()
            tab.was = tab.doing
            tab.presenter.drop_drawn()

    # -- another session ---------------------------------------------------------------------------------------------

    def show_run(self, run_id: str, then: Callable[[], object] | None = None) -> None:
        """Show a stored run in the Bench, over its own file, and then do something with it. One that is open already is
        shown in its tab."""
        self._show_once(lambda workspace: workspace.run(run_id), lambda tab: tab.shows(run_id), then)

    def show_file(self, file: Path) -> None:
        """Open a cascade in the Bench; one that is open already is shown in its tab."""
        real = file.resolve()
        self._show_once(lambda workspace: workspace.file(file), lambda tab: tab.session.file == real)

    def _show_once(
        self,
        make: Callable[[Workspace], Session],
        same: Callable[[RunTab], bool],
        then: Callable[[], object] | None = None,
    ) -> None:
        """Show the tab that ``same`` finds, else a new one."""
        if (tab := next(filter(same, self._shown_first()), None)) is not None:
            self.show(tab, then)
        elif self.workspace is not None:
            self.open_beside(self.workspace, make, then, same)

    def _shown_first(self) -> list[RunTab]:
        return sorted(self.tabs, key=lambda tab: tab is not self.tab)

    def open_beside(
        self,
        workspace: Workspace,
        make: Callable[[Workspace], Session],
        then: Callable[[], object] | None = None,
        same: Same = None,
    ) -> None:
        """Open a session of a workspace in a tab of its own, or show the tab that ``same`` finds once it is opened. A
        fault is said, and nothing changes."""
        self.keep_view()
        self._host.hold_keys()
        self._host.in_background(partial(self._make, workspace, make, then, same), "switch")

    def _make(
        self,
        workspace: Workspace,
        make: Callable[[Workspace], Session],
        then: Callable[[], object] | None,
        same: Same,
    ) -> None:
        session = make(workspace)
        opened = opened_session(session, fresh=self._host.fresh)
        given = default_input(session.file) if session.viewed is None else session.viewed.input_for(session.file)
        self._open(replace(opened, given=given), then, same)

    def same_beside(self, then: Callable[[], object], source: str = "") -> None:
        """Open what is shown once more, in a tab of its own, with the same inputs and breakpoints; then call ``then``,
        which starts a run there. Where that begins as the run ``source``, nothing opens if that cannot be read, or
        was imported."""
        if (tab := self.tab) is not None:
            self.keep_view()
            self._host.hold_keys()
            self._host.in_background(partial(self._make_same, tab, dict(self._host.given), then, source), "switch")

    def _make_same(self, tab: RunTab, given: Mapping[str, Any], then: Callable[[], object], source: str) -> None:
        before = tab.session
        if source:
            started_here(before.project, source)
            past_of(before.project.store, source)
        run_id = tab.presenter.state.run.run_id or before.run_id
        session = before.workspace.run(run_id) if before.gone else before.workspace.file(before.file)
        session.stepper.breakpoints = list(before.stepper.breakpoints)
        opened = opened_session(session, fresh=True)
        self._open(replace(opened, given=given, by_name=True), then)

    # -- the file is saved -------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Follow the files of all tabs from what was read of them: the cascades, the texts that they include, and the
        theme files."""
        if self.watcher is not None:
            self.watcher.stop()
        there = [tab.session for tab in self.tabs if not tab.session.gone]
        themes = self._host.theme_folders
        self.watcher = Watcher(
            lambda: dict.fromkeys(file for session in there for file in watched_files(session, themes)),
            lambda path, content: self._host.later(self._saved, path, content),  # Called in the watcher's thread.
            {session.file: _content(session) for session in there},
        )
        self.watcher.start()

    def _saved(self, path: Path, content: bytes | None) -> None:
        self._host.file_saved.publish(path)
        if path.parent in self._host.theme_folders:
            self._host.reload_themes()
            return
        self._saves[path] = token = object()
        tabs = [tab for tab in self._shown_first() if path in watched_files(tab.session, ())]
        self._host.in_background(partial(self._reload, path, content, token, tabs), f"reload-{path}")

    def _reload(self, path: Path, content: bytes | None, token: object, tabs: Sequence[RunTab]) -> None:
        """In a thread: show the phases as soon as the text is read, and the rest when it is checked. Of saves that come
        faster than that, each waits for the one before, and only the last one is read."""
        with self._reloading:
            for tab in tabs:
                if token is self._saves.get(path):
                    self._reload_in(tab, content if path == tab.session.file else None)

    def _reload_in(self, tab: RunTab, content: bytes | None) -> None:
        session = tab.session
        loaded = session.project.load(session.file, content) if content is not None else None
        if loaded is not None and loaded.cascade is not None and tab is self.tab:
            painted = threading.Event()
            self._host.later(self._outline, tab, loaded, painted)
            # Checking is as much work as painting, and the two would take turns of 5 ms.
            painted.wait(PAINT_SECONDS)
        self._host.later(self._reloaded, tab, session.reload(loaded))

    def _outline(self, tab: RunTab, loaded: Loaded, painted: threading.Event) -> None:
        if tab is self.tab:
            tab.controllers.running.outlined(loaded)
        self._host.bench.call_after_refresh(painted.set)

    def _reloaded(self, tab: RunTab, reload: Reload) -> None:
        saved = f"{datetime.now():%H:%M:%S}"
        tab.controllers.running.take_file(tab.session, tab.presenter, reload, saved)
        if tab is self.tab:
            tab.controllers.running.tell_reloaded(reload)

    def take_reload(self, reload: Reload) -> None:
        """Show what a second look at the cascade file found."""
        if self.tab is not None:
            self._reloaded(self.tab, reload)

    # -- sizes of panes ----------------------------------------------------------------------------------------------

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes that the user chose, by border; read when it is first asked for."""
        if self._sizes is None:
            self._sizes = load_sizes(self.workspace.project.folders) if self.workspace is not None else {}
        return self._sizes

    def choose_size(self, name: str, size: int | None) -> None:
        """Keep a size for all workspaces, or None for the size that the pane has by itself."""
        if size is None:
            self.sizes.pop(name, None)
        else:
            self.sizes[name] = size
        if self.workspace is not None:
            self._host.in_background(partial(keep_sizes, self.workspace.project.folders, self.sizes), "sizes")

    # -- the view ----------------------------------------------------------------------------------------------------

    def keep_view(self) -> None:
        """Keep how the Bench looks now, if that is not what was kept last."""
        if (due := self._view_due()) is not None:
            self._write_view(*due)

    def keep_view_soon(self) -> None:
        """The same, in a thread."""
        if (due := self._view_due()) is not None:
            self._host.in_background(partial(self._write_view, *due), "view")

    def _view_due(self) -> tuple[Session, ViewState] | None:
        session = self.session
        if session is None or session.gone or (view := self._host.bench.view_now()) is None:
            return None
        return None if self._kept == (session.file, view) else (session, view)

    def _write_view(self, session: Session, view: ViewState) -> None:
        project = session.project
        self._kept = (session.file, view)  # Also when it fails: it is tried again when something changes.
        try:
            keep_view(project.folders, project.root, project.shown(session.file), view)
        except OSError as fault:
            if not self._keeping_failed:
                self._keeping_failed = True
                words = f"the layout could not be saved: {fault.strerror}"
                self._host.later(self._host.say, words, "warning")


def _content(session: Session) -> bytes:
    """The bytes of the cascade file as they were read."""
    source = session.opened.source
    return (source.bom + source.text).encode("utf-8", "surrogateescape")
