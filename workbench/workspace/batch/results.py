"""The results of stored batches: read with the annotations of their runs, and written to files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import ValidationError
from msgspec.structs import replace

from workbench.analysis.batch.matrix import BatchPlan, CellResult, Matrix, folded
from workbench.analysis.batch.scoring import Score
from workbench.files import replacing, write_whole
from workbench.store.batches import BatchFolder
from workbench.store.faults import StoreError, UnknownRun
from workbench.workspace.batch.inputs import Records

if TYPE_CHECKING:
    from workbench.store.store import Store

WRITTEN = (".json", ".jsonl", ".csv", ".parquet", ".html")
"""The suffixes that a file of results may have."""


class StoredBatch:
    """A batch that may be going on in another process: what is new is read, and not the rest again."""

    def __init__(self, store: Store, name: str, plan: BatchPlan | None = None) -> None:
        """``plan`` replaces the stored one. Raises StoreError for what cannot be a name."""
        self.name = name
        self._store, self._folder = store, BatchFolder(store.root, name)
        self._given, self._plan = plan, plan
        self._seen: tuple[Any, ...] = ()
        """When the plan was written, the size of the records, and who ran it, when it was read."""
        self._end = 0
        """Bytes of the records that were read."""
        self._results: dict[str, CellResult] = {}
        self._judged: dict[str, CellResult] = {}
        """The same with what people said."""

    def read(self, *, again: bool = False) -> Matrix | None:
        """The batch as it is now, or None where nothing is new. ``again``: also where only annotations may be. Raises
        StoreError, UnknownRun."""
        holder = self._folder.runs_in()
        changed = (self._folder.changed(), self._folder.size(), holder)
        if changed == self._seen and not again:
            return None
        start = self._end if self._end <= changed[1] else 0
        try:
            if self._plan is None or not self._seen or self._seen[0] != changed[0]:
                self._plan = self._given or BatchPlan.from_json(self._folder.plan())
                again = True
            records, self._end = self._folder.records_from(start)
            new = folded(records, self._results if start else None)
        except (ValidationError, KeyError, TypeError) as fault:
            raise StoreError(f"batch {self.name} cannot be read: {fault}") from fault
        self._seen = changed
        self._results = {**self._results, **new} if start else new
        people = [scorer.name for scorer in self._plan.scorers if scorer.kind == "person"]
        if not people:
            self._judged = self._results
        else:
            asked = new if start and not again else self._results
            self._judged = {**self._judged, **{key: _judged(self._store, one, people) for key, one in asked.items()}}
        return Matrix(self._plan, self._judged, runs_in=str(holder or ""))


def stored_matrix(store: Store, name: str, plan: BatchPlan | None = None) -> Matrix:
    """A batch as it is stored, in the shape of ``plan`` if one is given. Raises StoreError, UnknownRun."""
    found = StoredBatch(store, name, plan).read(again=True)
    assert found is not None
    return found


def names_by_id(store: Store, name: str) -> bool:
    """Whether the sessions of a batch are named by the ids of its rows. One of 0.1.0, and of before this was kept, goes
    on by their numbers, so that no two runs of it have one name."""
    try:
        return BatchPlan.from_json(BatchFolder(store.root, name).plan()).by_id
    except (StoreError, UnknownRun, ValidationError):
        return True


def kept_rows(store: Store, name: str, source: str, asked: int) -> Records | None:
    """The rows that a stored batch has of the same query, the first ``asked`` (0: all); None where it has none, or was
    asked for fewer. Asked anew, a query gives the runs of the batch itself, too."""
    try:
        plan = BatchPlan.from_json(BatchFolder(store.root, name).plan())
    except (StoreError, UnknownRun, ValidationError):
        return None
    if plan.source != source or plan.asked is None:
        return None
    has_all = not plan.asked or len(plan.rows) < plan.asked
    if not has_all and not 0 < asked <= plan.asked:
        return None
    return Records(tuple((row.where, row.columns) for row in plan.rows[: asked or None]))


def _judged(store: Store, one: CellResult, names: Sequence[str]) -> CellResult:
    """With what a person said of the run: its score, else a thumb as 1 or 0."""
    if not one.run:
        return one
    with suppress(StoreError):
        said = store.annotations(one.run).run
        value = said.score if said.score is not None else {"up": 1.0, "down": 0.0}.get(said.thumb)
        if value is not None:
            score = Score(value, "; ".join(said.notes))
            return replace(one, scores={**one.scores, **dict.fromkeys(names, score)})
    return one


def write_results(file: Path, records: Iterable[Mapping[str, Any]], body: Any) -> None:
    """Write results as the name of the file ends: ``body`` as one JSON document, ``records`` as anything else. Raises
    OSError, and ValueError for another ending."""
    ending = file.suffix.lower()
    if ending == ".parquet":
        pyarrow: Any = import_module("pyarrow")
        parquet: Any = import_module("pyarrow.parquet")
        rows = list(records)
        columns = {name: [row[name] for row in rows] for name in rows[0]} if rows else {}
        with replacing(file) as fresh:
            parquet.write_table(pyarrow.table(columns), fresh)
        return
    match ending:
        case ".json":
            text = json.dumps(body, ensure_ascii=False, indent=2, default=str) + "\n"
        case ".jsonl":
            text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in records)
        case ".csv":
            out = io.StringIO()
            rows = list(records)
            writer = csv.DictWriter(out, list(rows[0]) if rows else [], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
            text = out.getvalue()
        case _:
            raise ValueError(f"results are written to a file that ends in {', '.join(WRITTEN)}")
    write_whole(file, text.encode("utf-8", "backslashreplace"))
