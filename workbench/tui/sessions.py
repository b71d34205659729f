"""The session that is open in the app: opened behind the first frame, followed as its file is saved, exchanged for
another, and left as it was found. Imported behind the first frame."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec.structs import replace

from workbench.themes import load_themes
from workbench.tui.bench.controllers import Controllers
from workbench.tui.bench.opening import OpenedSession, opened_session, unfinished_run, watched_files
from workbench.views.keys import told
from workbench.workspace.input_file import default_input
from workbench.workspace.session import Session, Workspace
from workbench.workspace.sizes import keep_sizes, load_sizes
from workbench.workspace.view_states import keep_view
from workbench.workspace.watch import Watcher

if TYPE_CHECKING:
    from textual.signal import Signal

    from workbench.language.load import Loaded
    from workbench.themes import Themes
    from workbench.tui.bench.screen import BenchScreen
    from workbench.tui.contracts import Severity
    from workbench.workspace.facts import Reload
    from workbench.workspace.view_states import ViewState

KEEP_EVERY = 3.0
"""Seconds between two looks whether the view is another: what a killed app forgets at most."""
PAINT_SECONDS = 0.1
"""The longest that checking a saved file waits until its phases are on the screen."""


class Host(Protocol):
    """What sessions need of the app."""

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
        """Show a short message in the corner."""
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

    def press_early_keys(self) -> None:
        """Press the keys again that came before there was a session."""
        ...

    def in_background(self, work: Callable[[], None], group: str) -> None:
        """Run work in a thread; other work of the group is given up."""
        ...

    def later(self, callback: Callable[..., object], *arguments: Any) -> None:
        """Call something on the screen's side; may be called in any thread."""
        ...


class Sessions:
    """Holds the open session, watches its files, and keeps how it looks."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.session: Session | None = None
        self.watcher: Watcher | None = None
        self._workspace: Workspace | None = None
        self._kept: tuple[Path, ViewState] | None = None
        """The view that was kept last."""
        self._keeping_failed = False
        self._sizes: dict[str, int] | None = None
        self._reloading = threading.Lock()

    @property
    def workspace(self) -> Workspace | None:
        """The workspace, once it is open."""
        return self.session.workspace if self.session is not None else self._workspace

    def close(self) -> None:
        """Stop watching, and close the session."""
        if self.watcher is not None:
            self.watcher.stop()
        if self.session is not None:
            self.session.close()

    # -- opening -----------------------------------------------------------------------------------------------------

    def open(self, made: OpenedSession | Workspace, show_home: Callable[[Workspace], None]) -> None:
        """In a thread: open what the app was started with, a session or a workspace to choose one from."""
        if isinstance(made, OpenedSession):
            self._open(made, None)
        else:
            self._host.later(self._take_workspace, made, load_themes(self._host.theme_folders), show_home)

    def _take_workspace(self, workspace: Workspace, themes: Themes, show_home: Callable[[Workspace], None]) -> None:
        self._workspace = workspace
        self._host.take_themes(themes)
        self._host.say_early(workspace.project.notes)
        show_home(workspace)

    def _open(self, opened: OpenedSession, then: Callable[[], object] | None) -> None:
        """In a thread: show a session that was opened; offer to go on with its run, unless a run was asked for."""
        self._host.later(self._take, opened, load_themes(self._host.theme_folders), then)
        if not opened.by_name and (run := unfinished_run(opened.session)) is not None:
            self._host.later(self._host.bench.offer_to_go_on, *run)

    def _take(self, opened: OpenedSession, themes: Themes, then: Callable[[], object] | None) -> None:
        """Show a session that was opened, in the place of the one before."""
        host, bench = self._host, self._host.bench
        before, self.session = self.session, opened.session
        if self.watcher is not None:
            self.watcher.stop()
        if before is not None:
            before.close()
        host.to_bench()
        bench.open(opened.presenter, Controllers)
        host.take_themes(themes)
        host.say_early(opened.presenter.notes)
        if self.session.gone:
            host.say(self.session.gone, "warning")
        else:
            self._watch(self.session)
        if opened.given is not None:
            host.given = dict(opened.given)
        bench.controllers.view.restore(opened.view)
        if then is not None:
            then()
        host.press_early_keys()

    # -- another session ---------------------------------------------------------------------------------------------

    def show_run(self, run_id: str, then: Callable[[], object] | None = None) -> None:
        """Show a stored run in the Bench, over its own file, and then do something with it."""
        session = self.session
        if session is not None and session.running:
            if session.run_id != run_id:
                self._host.say(told("A run is going on in the Bench: {run.stop} stops it there."), "warning")
                return
            self._host.to_bench(then)
        elif session is not None and session.run_id == run_id and self._host.bench.shows(run_id):
            self._host.to_bench(then)
        elif self.workspace is not None:
            self.exchange(self.workspace, lambda workspace: workspace.run(run_id), then)

    def show_file(self, file: Path) -> None:
        """Open another cascade in the Bench."""
        session = self.session
        if session is not None and session.file == file.resolve():
            self._host.to_bench()
        elif session is not None and session.running:
            self._host.say(told("A run is going on in the Bench: {run.stop} stops it there."), "warning")
        elif self.workspace is not None:
            self.exchange(self.workspace, lambda workspace: workspace.file(file))

    def exchange(
        self, workspace: Workspace, make: Callable[[Workspace], Session], then: Callable[[], object] | None = None
    ) -> None:
        """Open a session of a workspace in place of the one there is. A fault is said, and the old one stays."""
        self.keep_view()
        self._host.in_background(partial(self._make, workspace, make, then), "switch")

    def _make(
        self, workspace: Workspace, make: Callable[[Workspace], Session], then: Callable[[], object] | None
    ) -> None:
        session = make(workspace)
        opened = opened_session(session, fresh=self._host.fresh)
        self._open(replace(opened, given=default_input(session.file)), then)

    # -- the file is saved -------------------------------------------------------------------------------------------

    def _watch(self, session: Session) -> None:
        """Follow the files of a session from what was read of them: the cascade, the texts that it includes, and the
        theme files."""
        source = session.opened.source
        self.watcher = Watcher(
            lambda: watched_files(session, self._host.theme_folders),
            lambda path, content: self._host.later(self._saved, path, content),  # Called in the watcher's thread.
            {session.file: (source.bom + source.text).encode("utf-8", "surrogateescape")},
        )
        self.watcher.start()

    def _saved(self, path: Path, content: bytes | None) -> None:
        self._host.file_saved.publish(path)
        if path.parent in self._host.theme_folders:
            self._host.reload_themes()
        else:
            own = content if self.session is not None and path == self.session.file else None
            self._latest = token = object()
            self._host.in_background(partial(self._reload, own, token), "reload")

    _latest: object = None
    """Stands for the save that was noticed last."""

    def _reload(self, content: bytes | None, token: object) -> None:
        """In a thread: show the phases as soon as the text is read, and the rest when it is checked. Of saves that come
        faster than that, each waits for the one before, and only the last one is read."""
        session = self.session
        with self._reloading:
            if session is None or token is not self._latest:
                return
            loaded = session.project.load(session.file, content) if content is not None else None
            if loaded is not None and loaded.cascade is not None:
                painted = threading.Event()
                self._host.later(self._outline, loaded, painted)
                # Checking is as much work as painting, and the two would take turns of 5 ms.
                painted.wait(PAINT_SECONDS)
            self._host.later(self.take_reload, session.reload(loaded))

    def _outline(self, loaded: Loaded, painted: threading.Event) -> None:
        self._host.bench.controllers.running.outlined(loaded)
        self._host.bench.call_after_refresh(painted.set)

    def take_reload(self, reload: Reload) -> None:
        """Show what a second look at the cascade file found."""
        if self.session is not None:
            self._host.bench.controllers.running.reloaded(self.session, reload, f"{datetime.now():%H:%M:%S}")

    # -- sizes of panes ----------------------------------------------------------------------------------------------

    @property
    def sizes(self) -> dict[str, int]:
        """What the user chose, by border; read when it is first asked for."""
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
                words = f"how this looks is not kept for the next time: {fault.strerror}"
                self._host.later(self._host.say, words, "warning")
