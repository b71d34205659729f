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

from workbench.analysis.batch.matrix import CellResult, Matrix, Plan, folded
from workbench.analysis.batch.scoring import Score
from workbench.files import replacing, write_whole
from workbench.store.batches import BatchFolder
from workbench.store.faults import StoreError

if TYPE_CHECKING:
    from workbench.store.store import Store

WRITTEN = (".json", ".jsonl", ".csv", ".parquet", ".html")
"""The suffixes that a file of results may have."""


def stored_matrix(store: Store, name: str, plan: Plan | None = None) -> Matrix:
    """A batch as it is stored, in the shape of ``plan`` if one is given. Raises StoreError, UnknownRun."""
    folder = BatchFolder(store.root, name)
    try:
        plan = plan or Plan.from_json(folder.plan())
        results = folded(folder.records())
    except (ValidationError, KeyError, TypeError) as fault:
        raise StoreError(f"batch {name} cannot be read: {fault}") from fault
    people = [scorer.name for scorer in plan.scorers if scorer.kind == "person"]
    if people:
        results = {key: _judged(store, one, people) for key, one in results.items()}
    return Matrix(plan, results)


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
