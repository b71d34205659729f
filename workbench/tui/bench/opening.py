"""Imports and makes, in the thread behind the first frame, the presenter of an opened session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from workbench.garbage import not_searched
from workbench.store.faults import StoreError
from workbench.tui.bench.file_view import file_view
from workbench.tui.bench.presenter import Presenter
from workbench.tui.bench.state import BenchState
from workbench.views.numbers import day_and_time, plural
from workbench.views.words import reason_words
from workbench.workspace.session import Session
from workbench.workspace.view_states import load_views

if TYPE_CHECKING:
    from workbench.store.store import Store
    from workbench.store.summary import RunSummary
    from workbench.workspace.opened_cascade import OpenedCascade
    from workbench.workspace.session import Workspace
    from workbench.workspace.view_states import ViewState


class OpenedSession(Struct, frozen=True):
    """All that the Bench needs to show a session."""

    session: Session
    presenter: Presenter
    by_name: bool = False
    """Whether its run was asked for, and is not only the one that was looked at last."""
    view: ViewState | None = None
    """How the file was looked at last, if that is to be restored."""
    given: Mapping[str, Any] | None = None
    """Inputs for its next run; None where those that are given stay."""


def opened_first(made: Session | Workspace, *, fresh: bool) -> tuple[OpenedSession | Workspace, Presenter | None]:
    """Returns the session that the app was started with, ready to be shown; and the presenter that shows its file until
    the controllers are imported. That is None for a workspace, and where a run will be shown: its file alone would
    flash by."""
    if not isinstance(made, Session):
        return made, None
    opened = opened_session(made, fresh=fresh)
    return opened, None if made.run_id else opened.presenter


def opened_session(session: Session, *, fresh: bool = False) -> OpenedSession:
    """A session that was just opened, with how its file was looked at last: unless ``fresh``, or where another run was
    asked for, the same run is shown again."""
    presenter, by_name = presenter_of(session), bool(session.run_id)
    view = None if fresh else _last_view(session, presenter, by_name=by_name)
    if session.viewed is not None:
        # Here, not on the screen's side: 5,000 turns take two seconds.
        take_stored(session, presenter.state)
        presenter.prepare()
    return OpenedSession(session, presenter, by_name, view)


def _last_view(session: Session, presenter: Presenter, *, by_name: bool) -> ViewState | None:
    """How the file of a session was looked at last, whose run it shows unless one was asked for ``by_name``."""
    project = session.project
    views = load_views(project.folders, project.root)
    view = views.by_file.get(project.shown(session.file))
    if views.notice:
        presenter.notes = (*presenter.notes, views.notice)
    if view is not None and view.run_id and not by_name:
        try:
            session.view(view.run_id)
        except (StoreError, OSError):
            view = replace(view, run_id="", call="")  # It was deleted; the rest of the view stands.
    return view


def take_stored(session: Session, state: BenchState) -> None:
    """Take the events of the stored run that a session has read, all at once; one without an end was interrupted."""
    stored = [session.events.popleft() for _ in range(len(session.events))]
    with not_searched():
        state.absorb(stored, (), monotonic())
    store = session.project.store
    with suppress(StoreError):  # Removed since it was read.
        state.run.annotations = store.annotations(state.run.run_id)
    if not session.running and store.writer(state.run.run_id) is None:
        state.end_unfinished()


def presenter_of(session: Session) -> Presenter:
    """The presenter of a session that was just opened."""
    facts = session.header
    presenter = Presenter(BenchState())
    presenter.file = file_view(session, session.opened, saved_at(session.opened))
    presenter.model = facts.model
    presenter.base_url = facts.base_url
    presenter.notes = facts.notes
    presenter.program = lambda: session.program
    presenter.elsewhere = lambda: session.follows
    replies = session.file.with_name(session.file.stem + ".replies.yaml")
    if facts.why:
        if replies.exists():
            said = f"replies come from {replies.name}"
        elif session.project.settings.unscripted == "ok":
            said = "placeholders answer, and say so"
        else:
            said = f"calls fail until {replies.name} answers them"
        presenter.state.log.explain(f"Offline ({facts.why}): {said}.")
    for note in facts.notes:
        presenter.state.log.explain(note)
    return presenter


def saved_at(opened: OpenedCascade) -> str:
    """Local time of day of the file's last change; empty when it cannot be told."""
    try:
        return f"{datetime.fromtimestamp(opened.file.stat().st_mtime):%H:%M:%S}"
    except OSError:
        return ""


def watched_files(session: Session, themes: Sequence[Path]) -> tuple[Path, ...]:
    """The cascade, the templates that it includes, and the theme files."""
    opened = session.runnable or session.opened
    names = opened.definition.includes if opened.definition is not None else {}
    bases = (session.file.parent, session.project.root)
    included = [file for name in names for base in bases if (file := (base / name)).is_file()]
    colours = [file for folder in themes for file in sorted(folder.glob("*.yaml"))]
    return (session.file, *included, *colours)


def unfinished_run(session: Session) -> tuple[str, str] | None:
    """Id and description of the newest run of the file, if it did not end."""
    shown = session.project.shown(session.file)
    store = session.project.store
    summaries = (known for run_id in reversed(store.run_ids()) if (known := _summary(store, run_id)) is not None)
    newest = next((run for run in summaries if run.cascade_file == shown and not run.depth), None)
    if newest is None or newest.status not in ("interrupted", "stopped"):
        return None
    where = f" in {newest.phases[-1]}" if newest.phases else ""
    at = day_and_time(newest.finished or newest.started)
    label = f"{newest.session_id} was {newest.status}{where} after {plural(newest.calls, 'call')}, {at}."
    reason = reason_words(newest.reason)
    reason = reason[:1].upper() + reason[1:]
    return newest.run_id, label + (f"\n{reason.rstrip('.')}." if reason else "")


def _summary(store: Store, run_id: str) -> RunSummary | None:
    """None for a run that cannot be read, or was removed meanwhile."""
    try:
        return store.summary(run_id)
    except (OSError, ValueError, LookupError):
        return None
