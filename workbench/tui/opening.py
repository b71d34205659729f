"""What is imported and made in the thread behind the first frame: the presenter of an opened session."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.tui.presenter import FileView, Presenter
from workbench.tui.rows.numbers import clock, plural
from workbench.tui.state import BenchState

if TYPE_CHECKING:
    from workbench.workspace.opened import Opened
    from workbench.workspace.session import Session


def presenter_of(session: Session) -> Presenter:
    """The presenter of a session that was just opened."""
    facts = session.header
    presenter = Presenter(BenchState())
    presenter.file = file_view(session.opened, saved_at(session.opened))
    presenter.model = facts.model
    presenter.base_url = facts.base_url
    presenter.notes = facts.notes
    replies = session.file.with_name(session.file.stem + ".replies.yaml")
    if facts.why:
        said = f"replies come from {replies.name}" if replies.exists() else "replies are made up, and say so"
        presenter.state.log.explain(f"No model is called ({facts.why}): {said}.")
    for note in facts.notes:
        presenter.state.log.explain(note)
    return presenter


def file_view(opened: Opened, saved: str, gone: str = "") -> FileView:
    """An opened file as the panes show it."""
    return FileView(opened.shown, opened.cascade, opened.source, opened.problems, saved, gone)


def saved_at(opened: Opened) -> str:
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
    newest = next((run for run in session.project.store.runs() if run.cascade_file == shown), None)
    if newest is None or newest.status not in ("interrupted", "stopped"):
        return None
    where = f" in {newest.phases[-1]}" if newest.phases else ""
    at = clock(newest.finished or newest.started)[:8]
    label = f"{newest.session_id} was {newest.status}{where} after {plural(newest.calls, 'call')}, at {at}."
    return newest.run_id, label + (f"\n{newest.reason}" if newest.reason else "")


def warm_up() -> None:
    """Import what the first run and the first dialog will need, so that no keystroke waits for it."""
    import workbench.tui.screens.inputs
    import workbench.tui.screens.question
    import workbench.tui.screens.sheet
    import workbench.workspace.live
    import workbench.workspace.wiring  # noqa: F401
