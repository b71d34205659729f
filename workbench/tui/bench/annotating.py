"""Tags, notes, scores and thumbs on the call that is looked at, or on its run."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from workbench.context.place import Place
from workbench.store.faults import StoreError
from workbench.tui.screens.annotator import AnnotationTarget, Annotator
from workbench.views.annotations import call_words
from workbench.views.cells import flat
from workbench.views.keys import told

if TYPE_CHECKING:
    from workbench.engine.journal.annotations import Annotations
    from workbench.engine.journal.state import RunState
    from workbench.tui.bench.presenter import Presenter
    from workbench.tui.bench.stage import Layout
    from workbench.tui.screens.annotator import What


class Annotating:
    """The actions of the keys of the group "Annotations" on the Bench."""

    def __init__(self, stage: Layout) -> None:
        self._stage = stage
        self._annotator = Annotator(stage)
        self._seen: tuple[str, int] = ("", 0)
        """The run that was looked at, and the bytes of what was said of it."""

    def annotate(self, what: What) -> None:
        """Say something of the selected call; where the summary shows, or in the tree on a row that is no call, of the
        run."""
        if (live := self._stage.live()) is None:
            return
        session, presenter = live
        if (about := self._about(presenter)) is None:
            return
        run, place, name = about
        labels = run.annotations.at(place)
        target = AnnotationTarget(session.project, (run.run_id,), name, labels, partial(self._taken, presenter), place)
        self._annotator.annotate(what, target)

    def link(self) -> None:
        """Copy a read-only link to the selected call or to the run."""
        if (live := self._stage.live()) is not None and (about := self._about(live[1])) is not None:
            run, place, name = about
            self._annotator.link(live[0].project, run.run_id, run.session_id, name, place)

    def _about(self, presenter: Presenter) -> tuple[RunState, Place, str] | None:
        """The run, the place of the call or the empty one, and its name; None after a message: there is no run."""
        run, selected = presenter.state.shown, presenter.state.selected
        if not run.run_id:
            self._stage.services.say(told("No run yet: {run.start} starts one."))
            return None
        place = Place() if selected is None or presenter.shows_summary or self._on_no_call() else selected
        if place == Place():
            return run, place, f"the run {run.session_id or run.run_id}"
        call = run.call_at(place)
        beside = f"{place.phase_words} {flat(call.aside, 40)}" if call is not None and call.aside else ""
        return run, place, beside or call_words(place)

    def follow(self) -> None:
        """Show what was said of the run in another window."""
        if (live := self._stage.live()) is None or not (run_id := live[1].state.shown.run_id):
            return
        store = live[0].project.store
        try:
            now = (run_id, store.annotations_size(run_id))
            if now != self._seen:
                self._seen = now
                self._taken(live[1], run_id, store.annotations(run_id))
        except StoreError:  # Removed meanwhile.
            return

    def _on_no_call(self) -> bool:
        """Returns whether the tree has the focus, with its cursor on a phase, a tool, a nested run."""
        panes = self._stage.panes
        return panes.tree.has_focus and panes.tree_id is not None and "call" not in panes.tree_id[-2:]

    def _taken(self, presenter: Presenter, run_id: str, now: Annotations) -> None:
        """Take what is said of a run, and draw it where it is something else than before."""
        state = presenter.state
        about = [run for run in (state.run, *state.children.values()) if run.run_id == run_id]
        changed = any(run.annotations != now for run in about)
        for run in about:
            run.annotations = now
        if changed:
            self._stage.redraw()
