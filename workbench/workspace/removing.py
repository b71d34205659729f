"""Deletes stored runs, together with those that ran inside them."""

from __future__ import annotations

from workbench.store.faults import StoreBusy
from workbench.store.store import Store


def remove_run(store: Store, run_id: str) -> int:
    """Delete a run and the runs inside it, innermost first; how many. Forks and re-runs of it stay: they are complete
    by themselves. Raises UnknownRun, StoreBusy where one of them is being written, StoreError."""
    below: dict[str, list[str]] = {}
    for run in store.runs():
        if run.depth:
            below.setdefault(run.parent_run, []).append(run.run_id)
    order, waiting = [run_id], [run_id]
    while waiting:
        found = [child for child in below.get(waiting.pop(), ()) if child not in order]
        order += found
        waiting += found
    for each in order:
        if (holder := store.writer(each)) is not None:
            raise StoreBusy(f"run {each} is being written by {holder}", holder.pid)
    for each in reversed(order):
        store.remove(each)
    return len(order)
