"""Ships records of stored runs to a server that is killed and started again meanwhile, and counts what arrived.

``python -m bench.ship [RECORDS] [KILLS]`` (100,000 and 5) prints a line of numbers. It exits 1 when a record is
missing, counted twice, or another than the one in its journal. The server is the one of the tests: ClickHouse's
HTTP interface with the embedded engine behind it, in a process of its own, killed with SIGKILL when it has taken its
share.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path

from tests.store.examples import plain_run, save
from tests.support.clickhouse import ClickHouse
from workbench.store.faults import StoreError
from workbench.store.server.server_index import ServerIndex
from workbench.store.store import Store

TURNS = 160
"""Of each run."""
PATIENCE = 600.0


def shipped(folder: Path, records: int, kills: int) -> str:
    """Raises AssertionError where what the server has is not what the journals have."""
    made, runs = 0, 0
    with ClickHouse(folder / "clickhouse", "team", "secret") as clickhouse:
        server = clickhouse.address("bench", who="ana", machine="lab3")
        store = Store(folder / "store", server=server)
        while made < records:
            events = plain_run(f"0190a000-0000-7000-8000-{runs:012d}", TURNS, session=f"run {runs}")
            save(store, events)
            made, runs = made + len(events), runs + 1
        began, faults = time.monotonic(), 0
        with ServerIndex(store, server) as index:
            for number in range(1, kills + 1):
                faults += _killed(index, clickhouse, made * number // (kills + 1))
            index.catch_up(PATIENCE)
            took = time.monotonic() - began
            count = "SELECT count(), uniqExact(run_id, seq) FROM {} WHERE run_id LIKE '0190a000%'"
            for table in ("events", "journal_lines"):
                found = tuple(map(int, index.sql(count.format(table)).rows[0]))
                assert found == (made, made), f"{table}: {found[0]} rows of {found[1]} records, {made} were written"
            lines = "SELECT line FROM journal_lines WHERE run_id = {run:String} ORDER BY seq"
            for run_id in store.run_ids():
                there = "".join(f"{line}\n" for (line,) in index.sql(lines, params={"run": run_id}).rows)
                here = b"".join(path.read_bytes() for path in sorted(store.folder(run_id).glob("0*.jsonl")))
                assert sha256(there.encode()).digest() == sha256(here).digest(), f"{run_id} is another there"
    return (
        f"{made:,} records of {runs} runs, {kills} kills of the server ({faults} faults seen): none lost, none twice, "
        f"all journals equal, {took:.1f} s"
    )


def _killed(index: ServerIndex, clickhouse: ClickHouse, at: int) -> int:
    """Kill the server when it has taken so many records, and start it again; 1 where a fault was seen."""
    deadline = time.monotonic() + PATIENCE
    while index.progress.records < at and time.monotonic() < deadline:
        time.sleep(0.005)
    clickhouse.kill()
    seen = 0
    try:
        index.catch_up(PATIENCE)
    except StoreError:
        seen = 1
    clickhouse.start()
    return seen


def main(arguments: list[str]) -> int:
    records, kills = (int(value) for value in (*arguments, *("100000", "5")[len(arguments) :]))
    os.environ["NO_PROXY"] = "*"
    with tempfile.TemporaryDirectory() as folder:
        try:
            print(shipped(Path(folder), records, kills))
        except AssertionError as difference:
            print(difference)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
