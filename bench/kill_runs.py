"""Kills a running cascade at a random record, again and again, goes on with it, and compares with one that never died.

``python -m bench.kill_runs [ROUNDS] [SEED]`` prints a line for each round, which takes some 2 s on an idle machine and
20 s on a busy one, and a line of numbers at the end. It exits 1 when a record that was told is missing, a journal
cannot be read, a resumed run ends differently, or the rebuilt tables differ.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.test_together import killed_after, outcome, prepare
from tests.support.command import WORKBENCH
from workbench.store.store import Store

ROWS = """\
SELECT session_id, arraySort(groupArray(
  concat(phase_name, ' ', node_type, ' ', role, ' ', toString(ifNull(turn_number, 0)), content_json, tool_calls_json)
)) AS rows FROM unified_logs WHERE node_type != 'cascade_resume' GROUP BY session_id"""
"""What a run said, without times and ids, and without the row that tells of its going on."""


@dataclass(frozen=True)
class Survived:
    """What a loop found."""

    rounds: int
    told: int
    """Records that the killed runs had told before they died."""
    torn: int
    """Journals that ended in a torn record."""
    rows: int
    """Rows of one whole run in the rebuilt tables; every other run has the same."""
    seconds: float


def killed(folder: Path, rounds: int, seed: int) -> Survived:
    """Raises AssertionError, which names the round, when something is lost or differs."""
    began, chance = time.monotonic(), random.Random(seed)
    prepare(folder)
    _workbench(folder, "run", "ledger.yaml", "--session", "whole", "-q")
    store = Store(folder / ".workbench")
    length, told_in_all, torn = len(list(store.events(store.find("whole")))), 0, 0
    for number in range(rounds):
        session = f"killed-{number:04}"
        told = killed_after(folder, session, chance.randrange(2, length - 12))
        told_in_all += len(told)
        run_id = store.find(session)
        health = store.health(run_id)
        assert not health.problems, f"round {number}: {health.problems}"
        torn += len(health.torn)
        kept = list(store.events(run_id))
        assert [event.seq for event in kept[: len(told)]] == told, f"round {number}: a record that was told is missing"
        assert store.summary(run_id).status == "interrupted", f"round {number}: it is not listed as interrupted"
        _workbench(folder, "resume", session, "-q")
        assert list(store.events(run_id))[: len(kept)] == kept, f"round {number}: resuming changed the past"
        assert outcome(store, session) == outcome(store, "whole"), f"round {number}: another end"
        told_words = f"killed after {len(told)} of {length} records, went on to the same end"
        print(f"round {number + 1} of {rounds}: {told_words}", flush=True)
    _workbench(folder, "doctor", "--rebuild")
    rows = {row["session_id"]: row["rows"] for row in json.loads(_workbench(folder, "sql", ROWS, "--format", "json"))}
    assert len(rows) == rounds + 1, f"{len(rows)} of {rounds + 1} runs are in the tables"
    differing = [session for session, found in rows.items() if found != rows["whole"]]
    assert not differing, f"the tables of {differing[:3]} differ from those of the run that never died"
    return Survived(rounds, told_in_all, torn, len(rows["whole"]), time.monotonic() - began)


def _workbench(folder: Path, *arguments: str) -> str:
    done = subprocess.run([*WORKBENCH, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"workbench {' '.join(arguments)}: {done.stderr}"
    return done.stdout


def main(arguments: list[str]) -> None:
    rounds, seed = ([int(argument) for argument in arguments] + [60, 1][len(arguments) :])[:2]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "work")
        folder.mkdir()
        lonely: dict[str, Any] = {"WORKBENCH_CONFIG_DIR": f"{place}/config", "WORKBENCH_STATE_DIR": f"{place}/state"}
        for name in [name for name in os.environ if name.startswith("WORKBENCH_") or name.endswith("_API_KEY")]:
            del os.environ[name]
        os.environ.update(lonely)
        print(killed(folder, rounds, seed))


if __name__ == "__main__":
    main(sys.argv[1:])
