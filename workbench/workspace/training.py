"""Chosen runs of a workspace as training data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from workbench.store.faults import StoreError
from workbench.workspace.batch.results import stored_matrix
from workbench.workspace.recorded_runs import StoredImages
from workbench.workspace.training_data import Sample, TrainingData, samples_of, training_data

if TYPE_CHECKING:
    from workbench.store.store import Store
    from workbench.workspace.project import Project


def scored_by_people(store: Store, run_ids: Sequence[str]) -> dict[str, float | None]:
    """What people said of runs: the score, else a thumb as 1 or 0."""
    found: dict[str, float | None] = {}
    for run_id in run_ids:
        said = store.annotations(run_id).run
        found[run_id] = said.score if said.score is not None else {"up": 1.0, "down": 0.0}.get(said.thumb)
    return found


def scored_by_batch(store: Store, name: str, scorer: str = "") -> dict[str, float | None]:
    """The runs of a batch with the score of a scorer, its first one if none is named. Raises UnknownRun, StoreError."""
    matrix = stored_matrix(store, name)
    names = [one.name for one in matrix.plan.scorers]
    if scorer and scorer not in names:
        raise StoreError(f"batch {name} has no scorer '{scorer}': {', '.join(names) or 'it has none'}")
    wanted = scorer or next(iter(names), "")
    found: dict[str, float | None] = {}
    for _, _, _, one in matrix.all():
        if one.run and one.status == "success":
            score = one.scores.get(wanted)
            found[one.run] = None if score is None else score.value
    return found


def training_of(
    project: Project, scores: Mapping[str, float | None], form: str, *, phase: str = "", least: float | None = None
) -> TrainingData:
    """Runs, by id with their scores, in one form; of one phase, if it is named. Secrets are replaced, key-shaped texts
    too. A run that cannot be read is left out. Raises ValueError for an unknown form."""
    lost: list[str] = []

    def samples() -> Iterator[Sample]:
        for run_id, score in scores.items():
            try:
                state = project.store.state(run_id)
                yield from (
                    one
                    for one in samples_of(state, StoredImages(project.store, run_id), score)
                    if phase in ("", one.phase)
                )
            except StoreError:
                lost.append(run_id)

    made = training_data(samples(), form, project.redactor(shapes=True), least=least)
    if lost:
        made.left_out["a run that cannot be read"] += len(lost)
    return made
