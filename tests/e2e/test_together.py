"""Two workbenches on one folder, and one that is killed in the middle of its work."""

from __future__ import annotations

import fcntl
import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import DEADLINE, started
from tests.support.command import run_cli
from tests.support.equal_runs import comparable
from tests.support.workspaces import REPLIES as GREETINGS
from workbench.store.journal.lock import FileLock
from workbench.store.store import Store

TURNS = 6
CASCADE = f"""\
cascade_id: ledger
phases:
  - name: count
    instructions: Note each step.
    tackle: [set_state, read_file]
    rules: {{max_turns: {TURNS + 1}}}
    intra_context: {{mask_observations_after: 2, min_masked_size: 10}}
    handoffs: [total]
  - name: total
    instructions: "Say the total: {{{{ state }}}}"
    context: {{from: [{{phase: count, include: [messages]}}]}}
    handoffs: []
"""


def prepare(folder: Path, latency: float = 0.0) -> None:
    """The ledger, whose every turn reads a file and sets a value."""
    (folder / "ledger.yaml").write_text(CASCADE)
    (folder / "notes.txt").write_text("one\n" * 40)
    turns: list[dict[str, Any]] = [
        {
            "say": f"Step {number}.",
            "calls": [
                {"tool": "set_state", "arguments": {"key": f"step_{number}", "value": number}},
                {"tool": "read_file", "arguments": {"path": "notes.txt"}},
            ],
        }
        for number in range(1, TURNS + 1)
    ]
    replies = {"count": [*turns, {"text": "All noted."}], "total": [{"text": "Twenty-one."}]}
    (folder / "ledger.replies.yaml").write_text(json.dumps({"defaults": {"latency": latency}, "replies": replies}))


def killed_after(folder: Path, session: str, records: int) -> list[int]:
    """Start a run and kill it when it has told this many records; the numbers of those it told.

    The pipe is small and is not read on: the run cannot get further ahead than what fits in it.
    """
    process = started(folder, "run", "ledger.yaml", "--session", session, "--json", "-q")
    assert process.stdout is not None
    fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
    with process, process.stdout:
        told = [process.stdout.readline() for _ in range(records)]
        process.kill()
        told += process.stdout.readlines()
    return [json.loads(line)["seq"] for line in told if line.endswith(b"\n")]


@pytest.mark.fault("F1")
@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=pytest.mark.proof)])
def test_a_run_that_is_killed_anywhere_goes_on_to_the_same_end(folder: Path, kills: int) -> None:
    prepare(folder)
    assert run_cli("run", "ledger.yaml", "--session", "whole", "-q").out == "Twenty-one.\n"
    store = Store(folder / ".workbench")
    whole = list(store.events(store.find("whole")))
    chance = random.Random(20260214)
    for number, records in enumerate(sorted(chance.sample(range(2, len(whole) - 12), kills))):
        session = f"killed-{number}"
        told = killed_after(folder, session, records)
        assert told[:records] == list(range(1, records + 1))
        kept = list(store.events(store.find(session)))
        assert [event.seq for event in kept[: len(told)]] == told, "a record that was told is missing"
        listed = {run["session_id"]: run["status"] for run in run_cli("runs", "--json").json}
        assert listed[session] == "interrupted"
        resumed = run_cli("resume", session, "-q")
        assert (resumed.code, resumed.out) == (0, "Twenty-one.\n"), (records, resumed.err)
        after = list(store.events(store.find(session)))
        assert after[: len(kept)] == kept, "resuming only appends"
        assert outcome(store, session) == outcome(store, "whole"), records


def outcome(store: Store, session: str) -> object:
    """What a run came to: its state, output, and what each call saw and answered."""
    state = store.state(store.find(session))
    calls = [(call.place, call.digest, call.answer, [tool.text for tool in call.tools]) for call in state.calls]
    return state.status, state.output, state.state, calls


@pytest.mark.fault("F10")
def test_two_runs_at_once_and_the_database_in_other_hands(folder: Path) -> None:
    prepare(folder, latency=600)
    waits = started(folder, "run", "ledger.yaml", "--session", "waits", "--json", "-q")
    assert waits.stdout is not None
    while b'"call_started"' not in waits.stdout.readline():
        assert waits.poll() is None
    (folder / "ledger.replies.yaml").write_text(GREETINGS)
    prepare(folder)
    try:
        owner = FileLock(folder / ".workbench" / "owner.lock", "the index is open")
        try:
            ran = run_cli("run", "ledger.yaml", "--session", "beside", "-q")
            rows = run_cli("sql", "SELECT session_id, status FROM runs ORDER BY session_id", "--format", "json")
        finally:
            owner.release()
        assert (ran.code, ran.out) == (0, "Twenty-one.\n"), ran.err
        assert rows.json == [
            {"session_id": "beside", "status": "success"},
            {"session_id": "waits", "status": "running"},
        ]
    finally:
        waits.terminate()
        with waits.stdout:
            waits.wait(DEADLINE)
    assert waits.returncode == 143
    store = Store(folder / ".workbench")
    waited, beside = ([*store.events(store.find(name))] for name in ("waits", "beside"))
    assert {event.run_id for event in waited}.isdisjoint(event.run_id for event in beside)
    assert waited[-1].data["status"] == "stopped"
    resumed = run_cli("resume", "waits", "-q")
    assert (resumed.code, resumed.out) == (0, "Twenty-one.\n")
    assert len(comparable(beside)) > 50
    assert isinstance(waits, subprocess.Popen)
