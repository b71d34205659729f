"""The Bench's commands about tests: freeze the run that is shown, show the request that changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual import work

from workbench.tui.key_words import told
from workbench.tui.screens.bench_travel import TravelActions

if TYPE_CHECKING:
    from pathlib import Path

    from textual.notifications import SeverityLevel as Severity

    from workbench.engine.changed import ChangedCall
    from workbench.snapshots.freeze import Label
    from workbench.snapshots.snapshot import Snapshot
    from workbench.workspace.project import Project
    from workbench.workspace.testing import Snapshots


class FreezeActions(TravelActions):
    """What t does, and R where it is held."""

    _seen: ChangedCall | None = None
    """The changed request that was shown, so that a sheet that was closed does not come back by itself."""

    # -- freeze ------------------------------------------------------------------------------------------------------

    def action_freeze(self) -> None:
        """Write the run that is shown as a test."""
        if (live := self._live()) is None:
            return
        session, presenter = live
        run = presenter.state.run
        if not run.run_id:
            self.app.say(told("There is no run to freeze yet: {run.start} makes one."))
        elif presenter.state.alive or session.running:
            words = told("A run is frozen when it has ended: {run.continue} lets it go on, {run.stop} stops it.")
            self.app.say(words, "warning")
        else:
            self._propose(session.project, run.run_id, run.cascade_id)

    @work(thread=True, exclusive=True, group="freeze", exit_on_error=False)
    def _propose(self, project: Project, run_id: str, cascade_id: str) -> None:
        from workbench.tui.screens.freeze import FreezeForm
        from workbench.workspace.snapshot_files import SnapshotFolder

        folder = SnapshotFolder(project)
        form = FreezeForm(folder.proposed_name(cascade_id), f"{project.shown(folder.folder)}/")

        def labelled(label: Label | None) -> None:
            if label is not None:
                self._prepare(project, run_id, label)

        self.app.call_later(self.app.push_screen, form, labelled)

    @work(thread=True, exclusive=True, group="freeze", exit_on_error=False)
    def _prepare(self, project: Project, run_id: str, label: Label) -> None:
        """Replay the run once; ask before a file is replaced."""
        from workbench.snapshots.faults import SnapshotError
        from workbench.store.faults import StoreError
        from workbench.workspace.testing import Snapshots

        try:
            with Snapshots(project) as snapshots:
                path, snapshot = snapshots.prepare(run_id, label)
                if path.exists():
                    self.app.call_later(self._ask_to_replace, project, path, snapshot)
                else:
                    self._write(snapshots, path, snapshot)
        except (SnapshotError, StoreError) as fault:
            self.app.call_later(self.app.say, str(fault), "error")

    def _ask_to_replace(self, project: Project, path: Path, snapshot: Snapshot) -> None:
        from workbench.tui.screens.dialog import Choice

        shown = project.shown(path)
        text = f"{shown} is there already. Replaced, what it expects now is lost."
        answers = (("keep", "k", "Leave it as it is"), ("replace", "r", "Replace it"))

        def answered(answer: str | None) -> None:
            if answer == "replace":
                self._replace(project, path, snapshot)
            else:
                self.app.say(f"Nothing is written: {shown} stays as it is.")

        self.app.push_unasked(Choice("Replace the snapshot?", text, answers), answered)

    @work(thread=True, exclusive=True, group="freeze", exit_on_error=False)
    def _replace(self, project: Project, path: Path, snapshot: Snapshot) -> None:
        from workbench.snapshots.faults import SnapshotError
        from workbench.workspace.testing import Snapshots

        try:
            with Snapshots(project) as snapshots:
                self._write(snapshots, path, snapshot)
        except SnapshotError as fault:
            self.app.call_later(self.app.say, str(fault), "error")

    def _write(self, snapshots: Snapshots, path: Path, snapshot: Snapshot) -> None:
        """In a worker: write the file and say what is in it."""
        from workbench.workspace.freezing import passing_words, redacted_words, written_words

        snapshots.write(path, snapshot)
        self.app.call_later(self._say_frozen, f"Frozen as {written_words(snapshots, path, snapshot)}.", "information")
        for words in (redacted_words(snapshot), passing_words(snapshots, path, snapshot)):
            if words:
                self.app.call_later(self._say_frozen, f"{words[0].upper()}{words[1:]}", "warning")

    def _say_frozen(self, words: str, severity: Severity) -> None:
        """In a toast, and in the log, where it stays."""
        from datetime import UTC, datetime

        from workbench.context.place import Place
        from workbench.tui.rows.log import LogLine

        self.app.say(words, severity)
        if self.presenter is not None:
            token = "warning" if severity == "warning" else "ok"
            at = datetime.now(UTC).isoformat(timespec="milliseconds")
            self.presenter.state.log.add(LogLine(at, Place(), "frozen", words, token))
            self.refresh_all()

    # -- the request that changed ------------------------------------------------------------------------------------

    def action_rerun(self) -> None:
        """Run the file again; while it is held at a changed request, show that again."""
        live = self._live()
        if live is not None and live[0].changed is not None and live[0].stepper.held is not None:
            self._seen = None
            self.show_change(self.app.push_screen)
        else:
            super().action_rerun()

    def ask_if_asked(self) -> None:
        super().ask_if_asked()
        self.show_change(self.app.push_unasked)

    def show_change(self, show: Callable[..., object]) -> None:
        """Where a re-run is held at the first changed request: both side by side, unless another screen is open, or
        something is being written."""
        if (live := self._live()) is None or self.app.screen is not self or self.is_writing:
            return
        session, presenter = live
        changed, held = session.changed, presenter.state.held
        if changed is None or changed is self._seen or held is None or held.place != changed.place:
            return
        from workbench.engine.stepper import Mode
        from workbench.tui.rows.compare_words import call_name
        from workbench.tui.rows.requests import RequestRows, Texts
        from workbench.tui.screens.request import ChangedSheet

        self._seen = changed
        title = (
            ("First changed request", "title"),
            (f"  {call_name(changed.place)}", "name"),
            ("  held before it is sent", "dim"),
        )
        rows = RequestRows(changed, Texts(session.file.name, *session.changed_texts), title=title)

        def go() -> None:
            presenter.stepping = False
            session.go(Mode.CONTINUE)
            self.soon()

        def stop() -> None:
            session.stop()
            self.soon()

        show(ChangedSheet(rows, session.file, go, stop))
