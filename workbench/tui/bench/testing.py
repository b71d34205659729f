"""Runs as tests: freeze the run that is shown, show the request that changed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from workbench.context.place import Place
from workbench.engine.debugger.stepper import Mode
from workbench.snapshots.faults import SnapshotError
from workbench.snapshots.freeze import Label
from workbench.store.faults import StoreError
from workbench.tui.screens.dialog import ChoiceDialog
from workbench.tui.screens.freeze import FreezeForm
from workbench.tui.screens.request import ChangedSheet
from workbench.views.keys import told
from workbench.views.log import LogLine
from workbench.views.requests import RequestRows, Texts
from workbench.workspace.reviewing import passing_words, redacted_words, written_words
from workbench.workspace.snapshot_files import SnapshotFolder
from workbench.workspace.testing import Snapshots

if TYPE_CHECKING:
    from pathlib import Path

    from workbench.analysis.changed import ChangedCall
    from workbench.snapshots.snapshot import Snapshot
    from workbench.tui.bench.stage import Stage
    from workbench.tui.contracts import Severity
    from workbench.workspace.project import Project


class Testing:
    """The actions of the key t, and of R if the run is held at a changed request."""

    __test__ = False
    """No class of pytest's."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._seen: ChangedCall | None = None
        """The changed request that was shown, so that a sheet that was closed does not come back by itself."""

    # -- freeze ------------------------------------------------------------------------------------------------------

    def freeze(self) -> None:
        """Write the run that is shown as a test."""
        if (live := self._stage.live()) is None:
            return
        session, presenter = live
        run, say = presenter.state.run, self._stage.services.say
        if not run.run_id:
            say(told("No run to freeze yet: {run.start} starts one."))
        elif presenter.state.alive or session.running:
            say(
                told("A run can be frozen once it has ended: {run.continue} continues it, {run.stop} stops it."),
                "warning",
            )
        else:
            doubtful = run.edited > 0 or run.status == "stopped"
            self._work(partial(self._propose, session.project, run.run_id, run.cascade_id, doubtful))

    def _work(self, work: Callable[[], None]) -> None:
        self._stage.in_background(work, "freeze")

    def _later(self, callback: Callable[..., object], *arguments: object) -> None:
        self._stage.later(callback, *arguments)

    def _propose(self, project: Project, run_id: str, cascade_id: str, doubtful: bool) -> None:
        """In a thread: ask for a label. Where a refusal is likely, as for a run that was edited, the run is replayed
        before, so that nobody fills in the form in vain."""
        folder = SnapshotFolder(project)
        proposed = folder.proposed_name(cascade_id)
        if doubtful:
            try:
                with Snapshots(project) as snapshots:
                    snapshots.prepare(run_id, Label(name=proposed))
            except (SnapshotError, StoreError) as fault:
                self._later(self._stage.services.say, str(fault), "error")
                return
        form = FreezeForm(proposed, f"{project.shown(folder.folder)}/")

        def labelled(label: Label | None) -> None:
            if label is not None:
                self._work(partial(self._prepare, project, run_id, label))

        self._later(self._stage.services.push_screen, form, labelled)

    def _prepare(self, project: Project, run_id: str, label: Label) -> None:
        """In a thread: replay the run once; ask before a file is replaced."""
        try:
            with Snapshots(project) as snapshots:
                path, snapshot = snapshots.prepare(run_id, label)
                if path.exists():
                    self._later(self._ask_to_replace, project, path, snapshot)
                else:
                    self._write(snapshots, path, snapshot)
        except (SnapshotError, StoreError) as fault:
            self._later(self._stage.services.say, str(fault), "error")

    def _ask_to_replace(self, project: Project, path: Path, snapshot: Snapshot) -> None:
        shown = project.shown(path)
        text = f"{shown} exists already. Replacing it discards what it expects now."
        answers = (("keep", "k", "Cancel"), ("replace", "r", "Replace it"))

        def answered(answer: str | None) -> None:
            if answer == "replace":
                self._work(partial(self._replace, project, path, snapshot))
            else:
                self._stage.services.say(f"Nothing written: {shown} stays as it is.")

        self._stage.services.push_unasked(ChoiceDialog("Replace the snapshot?", text, answers), answered)

    def _replace(self, project: Project, path: Path, snapshot: Snapshot) -> None:
        try:
            with Snapshots(project) as snapshots:
                self._write(snapshots, path, snapshot)
        except SnapshotError as fault:
            self._later(self._stage.services.say, str(fault), "error")

    def _write(self, snapshots: Snapshots, path: Path, snapshot: Snapshot) -> None:
        """In a thread: write the file and say what is in it."""
        snapshots.write(path, snapshot)
        self._later(self._say_frozen, f"Frozen as {written_words(snapshots, path, snapshot)}.", "information")
        for words in (redacted_words(snapshot), passing_words(snapshots, path, snapshot)):
            if words:
                self._later(self._say_frozen, f"{words[0].upper()}{words[1:]}", "warning")

    def _say_frozen(self, words: str, severity: Severity) -> None:
        """In a toast, and in the log, where it stays."""
        self._stage.services.say(words, severity)
        if self._stage.presenter is not None:
            token = "warning" if severity == "warning" else "ok"
            at = datetime.now(UTC).isoformat(timespec="milliseconds")
            self._stage.presenter.state.log.add(LogLine(at, Place(), "frozen", words, token))
            self._stage.redraw()

    # -- the request that changed ------------------------------------------------------------------------------------

    def show_again(self) -> bool:
        """Show the changed request again at which the run is held; False where it is held at none."""
        live = self._stage.live()
        if live is None or live[0].changed is None or live[0].stepper.held is None:
            return False
        self._seen = None
        self.show_change(unasked=False)
        return True

    def show_change(self, *, unasked: bool = True) -> None:
        """Where a re-run is held at the first changed request: both side by side, unless another screen is open, or
        something is being written."""
        if (live := self._stage.live()) is None or not self._stage.is_free:
            return
        session, presenter = live
        changed, held = session.changed, presenter.state.held
        if changed is None or changed is self._seen or held is None or held.place != changed.place:
            return
        self._seen = changed
        title = (
            ("First changed request", "title"),
            (f"  {changed.place.words}", "name"),
            ("  paused before it is sent", "dim"),
        )
        rows = RequestRows(changed, Texts(session.file.name, *session.changed_texts), title=title)

        def go() -> None:
            presenter.stepping = False
            session.go(Mode.CONTINUE)
            self._stage.soon()

        def stop() -> None:
            session.stop()
            self._stage.soon()

        services = self._stage.services
        show: Callable[..., object] = services.push_unasked if unasked else services.push_screen
        show(ChangedSheet(rows, session.file, go, stop))
