"""A run inside another one that is killed with it: it goes on where it was, and what it took is stated once."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from math import isclose
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import WORKBENCH, run_cli
from tests.support.loopback import Loopback, Received, Reply
from tests.support.waiting import PATIENCE

PRICED = "openai/gpt-4.1-mini"
FILES = {
    "sub": """\
cascade_id: sub
phases:
  - {name: first, instructions: First., sub_cascades: [{ref: inner.yaml}]}
  - {name: last, instructions: Last., model: openai/last/hang@LAST}
""",
    "async": """\
cascade_id: async
phases:
  - {name: first, instructions: First., async_cascades: [{ref: inner.yaml, trigger: on_start}]}
  - {name: last, instructions: Last., model: openai/last/hang@LAST}
""",
    "deep": """\
cascade_id: deep
phases:
  - {name: first, instructions: First., sub_cascades: [{ref: between.yaml}]}
  - {name: last, instructions: Last., model: openai/last/hang@LAST}
""",
    "ended": """\
cascade_id: ended
phases:
  - {name: first, instructions: First., sub_cascades: [{ref: beside.yaml}]}
""",
    "beside": """\
cascade_id: beside
phases:
  - {name: own, instructions: Own., async_cascades: [{ref: inner.yaml, trigger: on_start}]}
""",
    "between": """\
cascade_id: between
phases:
  - {name: middle, instructions: Middle., sub_cascades: [{ref: inner.yaml}]}
""",
    "walks": """\
cascade_id: walks
soundings: {factor: 2, evaluator_instructions: Best.}
phases:
  - {name: first, instructions: First., sub_cascades: [{ref: inner.yaml}]}
""",
    "wide": """\
cascade_id: wide
phases:
  - {name: first, instructions: First., sub_cascades: [{ref: between_two.yaml}]}
""",
    "between_two": """\
cascade_id: between_two
phases:
  - name: two
    instructions: Two.
    model: openai/hang@TWO
    soundings: {factor: 2, evaluator_instructions: Best.}
""",
    "inner": """\
cascade_id: inner
phases:
  - {name: one, instructions: One.}
  - {name: two, instructions: Two., model: openai/hang@TWO}
""",
}


@pytest.fixture
def provider(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    """A provider for the cascades of the current folder."""
    with Loopback(_reply) as server:
        monkeypatch.setenv("WORKBENCH_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
        yield server


def _reply(request: Received) -> Reply:
    return Reply('{"winner": 1}')


def write(folder: Path, *, two: int = 0, last: int = 0) -> None:
    """The cascades; the calls of the inner run's second phase and of the last phase hang so often."""
    for name, text in FILES.items():
        (folder / f"{name}.yaml").write_text(text.replace("TWO", str(two)).replace("LAST", str(last)))


def kill(provider: Loopback, command: str, *arguments: str, after: int) -> None:
    """Start a command, and kill it with SIGKILL once so many requests have arrived, of which some hang."""
    started = [*WORKBENCH, command, *arguments, "-m", PRICED] if command == "run" else [*WORKBENCH, command, *arguments]
    with subprocess.Popen(started, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        for number in range(after):
            assert provider.arrived.acquire(timeout=PATIENCE), f"request {number + 1}"
        run.kill()
        run.communicate(timeout=PATIENCE)
    assert run.returncode == -9


def shown(session: str) -> dict[str, Any]:
    read: dict[str, Any] = run_cli("show", session, "--json").json
    return read


def query(text: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(run_cli("sql", text, "--format", "json").out)
    return rows


def agrees(session: str, *, calls: int, again: int, runs: int) -> None:
    """Every place that states the figures of a run with those inside it states these."""
    totals = shown(session)["totals"]
    assert (totals["calls"], totals["runs"], totals["missing_runs"]) == (calls, runs, 0)
    assert totals["unanswered"]["again"] == again
    text = run_cli("show", session).out
    assert ("sent again" in text) == bool(again), text
    listed = {run["session_id"]: run for run in run_cli("runs", "--all", "--json").json}
    assert len(listed) == len(run_cli("runs", "--all", "--json").json) == 1 + runs
    assert {run["status"] for run in listed.values()} == {"success"}
    assert listed[session]["calls"] == calls
    inside = [run["seconds"] for name, run in listed.items() if name.startswith(f"{session}_sub")]
    assert sum(inside[:1]) <= listed[session]["seconds"] == shown(session)["seconds"], "it waits for them"
    rows = query("SELECT session_id, status, calls, cost, inside_calls, inside_cost, spent FROM runs")
    assert {row["status"] for row in rows} == {"success"}
    assert len(rows) == 1 + runs
    assert sum(row["calls"] for row in rows) == calls
    (own,) = [row for row in rows if row["session_id"] == session]
    assert own["calls"] + own["inside_calls"] == calls
    paid = sum(row["cost"] or 0.0 for row in rows)
    assert all(isclose(paid, said) for said in (totals["cost"], listed[session]["cost"], own["spent"]))
    answered = query("SELECT count() AS n FROM unified_logs WHERE tokens_out > 0")
    assert answered == [{"n": calls}]


@dataclass(frozen=True)
class Case:
    """A cascade whose nested runs are cut off."""

    outer: str
    inner: str
    """The session of one of them."""
    after: int
    """Requests, the last of which hang."""
    hanging: int
    calls: int
    """In all runs together, once all have ended."""
    runs: int


CASES = [
    Case("async", "s_async_0", 4, 2, 4, 1),
    Case("deep", "s_sub_0_sub_0", 2, 1, 5, 2),
    Case("ended", "s_sub_0_async_0", 3, 1, 4, 2),
    Case("walks", "s_s0_sub_0", 4, 2, 7, 2),
    Case("wide", "s_sub_0", 2, 2, 4, 1),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.outer)
def test_a_call_of_a_nested_run_that_a_kill_cut_off_is_stated_once(
    folder: Path, provider: Loopback, case: Case
) -> None:
    alone = case.outer == "async"
    write(folder, two=1 if alone else case.hanging, last=1 if alone else 0)
    kill(provider, "run", f"{case.outer}.yaml", "--session", "s", after=case.after)
    again = run_cli("resume", "s")
    assert again.code == 0, again.err
    assert "sent again" in again.err
    own = shown(case.inner)["totals"]
    assert own["unanswered"]["again"] == (2 if case.outer == "wide" else 1)
    agrees("s", calls=case.calls, again=case.hanging, runs=case.runs)


def test_two_kills_and_two_resumes_state_each_call_once(folder: Path, provider: Loopback) -> None:
    """The first kill in the nested run, the second behind it: nothing of the nested run happens a third time."""
    write(folder, two=1, last=2)
    kill(provider, "run", "sub.yaml", "--session", "s", after=2)
    kill(provider, "resume", "s", after=3)
    journals = {path.parent.name: path.read_bytes() for path in folder.glob(".workbench/journal/*/*.jsonl")}
    kill(provider, "resume", "s", after=1)
    assert run_cli("resume", "s").code == 0
    agrees("s", calls=4, again=3, runs=1)
    (inner,) = query("SELECT run_id FROM runs WHERE session_id = 's_sub_0'")
    kept = {path.parent.name: path.read_bytes() for path in folder.glob(".workbench/journal/*/*.jsonl")}
    assert kept[inner["run_id"]] == journals[inner["run_id"]], "a run that has ended is not written again"


def test_a_nested_run_that_begins_otherwise_after_a_kill_leaves_what_was_spent_before(
    folder: Path, provider: Loopback
) -> None:
    """What the one that was cut off took counts once, beside what the new one takes: the answers that it has from there
    are billed to the first one alone."""
    write(folder, two=1, last=1)
    kill(provider, "run", "sub.yaml", "--session", "s", after=2)
    (before,) = [run["run_id"] for run in run_cli("runs", "--all", "--json").json if run["session_id"] == "s_sub_0"]
    inner = folder / "inner.yaml"
    inner.write_text(inner.read_text().replace("Two.", "Two, other.") + "  - {name: three, instructions: Three.}\n")
    kill(provider, "resume", "s", after=4)
    assert run_cli("resume", "s").code == 0
    rows = query("SELECT run_id, session_id, status, calls, recorded_calls, cost, spent FROM runs")
    inside = {row["run_id"]: row for row in rows if row["session_id"] == "s_sub_0"}
    first, second = inside.pop(before), *inside.values()
    assert (first["status"], first["calls"], first["recorded_calls"]) == ("interrupted", 1, 0)
    assert (second["status"], second["calls"], second["recorded_calls"]) == ("success", 2, 1)
    (outer,) = [row for row in rows if row["session_id"] == "s"]
    totals = shown("s")["totals"]
    assert (totals["calls"], totals["runs"], totals["missing_runs"]) == (5, 2, 0)
    assert totals["unanswered"]["again"] == 2
    assert totals["recorded_calls"] == 1
    assert isclose(outer["spent"], sum(row["cost"] or 0.0 for row in rows))
    assert isclose(totals["cost"], outer["spent"])
    assert "children s_sub_0 interrupted, s_sub_0 success" in run_cli("show", "s").out
