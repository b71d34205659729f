"""What people say of runs, as columns: before and after later records, taken back, and made anew from the files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.store.examples import RUN, plain_run, save
from workbench.context.place import Place
from workbench.engine.journal.annotations import Change
from workbench.store.index.index import Index
from workbench.store.index.rebuild import rebuild
from workbench.store.store import Store

CALL = Place("", "sort", 1, 1, 2, 1)
RUNS = "SELECT tags, note, score, thumb, input FROM runs"
ROWS = "SELECT node_type, tags, note, score, thumb FROM unified_logs WHERE notEmpty(tags) OR note != '' ORDER BY seq"
RECORDS = (
    "SELECT kind, tag, note, score, thumb, holds, phase_name, turn_number FROM annotations ORDER BY timestamp, tag"
)


def main(folder: Path) -> dict[str, Any]:
    store = Store(folder)
    events = plain_run()
    seen: dict[str, Any] = {}
    save(store, events[:-1])
    with Index(store) as index:

        def look(name: str) -> None:
            index.catch_up()
            seen[name] = {"runs": index.sql(RUNS).rows, "rows": index.sql(ROWS).rows}

        index.catch_up()
        store.annotate(RUN, Change(tags=("good", "slow"), score=4))
        store.annotate(RUN, Change(CALL, tags=("odd",), notes=("read the\nwrong log",), thumb="down"))
        look("said")
        with store.append_to(RUN) as journal:
            journal.append(events[-1])
        look("after the run went on")
        store.annotate(RUN, Change(untag=("good",), drop_score=True, score=None))
        look("taken back")
        seen["records"] = index.sql(RECORDS).rows
    with Index(store) as index:
        look("opened again")
    rebuild(store)
    with Index(store) as index:
        look("rebuilt")
        (store.folder(RUN) / "annotations.jsonl").unlink()
        look("file gone")
    return seen
