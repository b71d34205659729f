"""Annotates runs and calls by name."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from workbench.context.place import Place
from workbench.engine.past.places import find_call
from workbench.store.faults import UnknownRun

if TYPE_CHECKING:
    from workbench.engine.journal.annotations import Annotations, Change
    from workbench.store.store import Store
    from workbench.workspace.project import Project


def annotated(project: Project, run_id: str, change: Change) -> Annotations:
    """Change the annotations of a run or a call. Returns those in force. Secrets in notes and tags are replaced, as in
    all text that enters a run. Raises UnknownRun, StoreBusy, StoreError, AnnotationError.
    """
    redact = project.redactor()
    tags, notes = (tuple(redact(text)[0] for text in texts) for texts in (change.tags, change.notes))
    return project.store.annotate(run_id, replace(change, tags=tags, notes=notes))


def annotation_target(store: Store, name: str) -> tuple[str, Place]:
    """Run id and place of ``RUN`` or ``RUN@PLACE``, where a place is ``phase:turn`` or in full. Raises UnknownRun,
    NoSuchPlace."""
    run, at, place = name.rpartition("@")
    try:
        return store.find(name), Place()
    except UnknownRun:
        if not at:
            raise
    run_id = store.find(run)
    return run_id, find_call(store.state(run_id), place)


def known_tags(store: Store) -> tuple[str, ...]:
    """All tags of a store, the most used first."""
    counted = Counter(tag for run in store.runs() for labels in run.all_labels for tag in labels.tags)
    return tuple(tag for tag, _ in counted.most_common())
