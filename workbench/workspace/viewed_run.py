"""A stored run that is shown: its events, changes of its file since, and events still being added."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.engine.journal.event import Event

if TYPE_CHECKING:
    from workbench.language.model.cascade import Cascade
    from workbench.workspace.opened_cascade import OpenedCascade
    from workbench.workspace.project import Project


class ViewedRun:
    """Reads a run, and goes on reading while another process writes it."""

    def __init__(self, project: Project, opened: OpenedCascade, run_id: str) -> None:
        """Raises UnknownRun."""
        self.run_id = run_id
        self._store = project.store
        self._tail = self._store.tail(run_id)
        self.growing = self._store.writer(run_id) is not None
        """Whether another process writes it."""
        self.events = list(self._tail.poll())
        """What there was when it was opened."""
        self.drifted = _drift(project, opened, self.events)
        """The phases of the file that are not what the run is pinned to."""

    def more(self) -> list[Event]:
        """Events added since the last call."""
        if not self.growing:
            return []
        self.growing = self._store.writer(self.run_id) is not None
        return list(self._tail.poll())


def _drift(project: Project, opened: OpenedCascade, events: list[Event]) -> frozenset[str]:
    text = str(events[0].data.get("cascade_text", "")) if events else ""
    if not text or opened.cascade is None or project.is_pinned(opened.text, text):
        return frozenset()
    pinned = project.load(opened.file, text).cascade
    return changed_phases(pinned, opened.cascade) if pinned is not None else frozenset()


def changed_phases(before: Cascade, after: Cascade) -> frozenset[str]:
    """Names of phases of a cascade that differ from another text of it."""
    old = {phase.name: phase for phase in before.phases}
    return frozenset(phase.name for phase in after.phases if old.get(phase.name) != phase)
