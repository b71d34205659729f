"""What a store of many short runs costs: ``python -m bench.many_runs [RUNS...]``.

A line for each number of runs (100, 1,000, 3,000 by default): records, seconds of the first index and records a second,
of a look when nothing is new, of a list of all runs first and again.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import uuid
from pathlib import Path

from bench.long_runs import command, indexed, long_run, size
from workbench.store.journal.record import decoded, encoded
from workbench.store.store import Store

RUNS = (100, 1_000, 3_000)
TURNS = 6


def measured(runs: int) -> str:
    """One line."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        store = Store(folder / ".workbench")
        first_id = long_run(folder, TURNS, words=40)
        events = [decoded(line) for line in (store.folder(first_id) / "000001.jsonl").read_bytes().splitlines()]
        for number in range(1, runs):
            run_id = f"{first_id[:-12]}{uuid.uuid4().hex[:12]}"
            copy = store.journals / run_id
            copy.mkdir()
            started = {**events[0].data, "session_id": f"s{number}"}
            lines = [
                encoded(type(e)(e.seq, e.at, run_id, e.kind, e.place, started if e is events[0] else e.data))
                for e in events
            ]
            (copy / "000001.jsonl").write_bytes(b"".join(lines))
        listed, again = command(folder, "runs", "-n", "1")[0], command(folder, "runs", "-n", "1")[0]
        records, first, cpu, nothing, query, memory = indexed(folder)
        question = command(folder, "sql", "SELECT count() FROM runs")[0]
        shutil.rmtree(store.root / "ch", ignore_errors=True)
        return (
            f"{runs:>6} runs  {records:>8,} records  journals {size(store.journals):6.1f} MB"
            f"  first index {first:5.1f} s ({records / first:6,.0f}/s, {records / cpu:6,.0f} per s of CPU,"
            f" {memory:4.0f} MB)"
            f"  nothing new {nothing * 1e3:4.0f} ms  question {query * 1e3:3.0f} ms  sql {question:4.1f} s"
            f"  runs {listed:4.1f} s, again {again:4.1f} s"
        )


if __name__ == "__main__":
    for number in [int(argument) for argument in sys.argv[1:]] or RUNS:
        print(measured(number), flush=True)
