"""How fast snapshots replay: a run of ten turns, calls per second, a hundred under pytest; and a fork of 1,000 calls.

``python -m bench.replay [--rounds N] [--peer PYTHON]`` prints a table. PYTHON is an interpreter that has vcrpy and
httpx; it plays ten recorded requests back, in the same rounds. Exits 1 when a goal that was measured is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.measure import Line
from workbench.engine.fork import find_point
from workbench.engine.gate import Decision, RunStopped, Stop, StopKind
from workbench.snapshots.freeze import Label
from workbench.workspace.choice import choose_model
from workbench.workspace.live import Attached, Start, new_options, run_new
from workbench.workspace.project import Project
from workbench.workspace.testing import Snapshots
from workbench.workspace.travel import fork, past_of, restart

if TYPE_CHECKING:
    from workbench.workspace.choice import ModelChoice

TURNS = 10
PAGE = "A line of the page that is read, long enough to look like one.\n" * 8
FORKED = 10
"""Phases of a hundred turns each, in the run that is forked at its last call."""
PEER = """\
import json, sys, tempfile, threading, time, http.server
import httpx, vcr

class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        body = json.dumps({"choices": [{"message": {"role": "assistant", "content": "Page read. " * 20}}]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}/v1/chat/completions"
player = vcr.VCR(match_on=("method", "uri", "body"))
cassette = tempfile.mkdtemp() + "/ten.yaml"
page = "A line of the page that is read, long enough to look like one.\\n" * 8

def play():
    with player.use_cassette(cassette, record_mode="once"), httpx.Client() as client:
        messages = []
        for turn in range(10):
            messages.append({"role": "user", "content": page})
            answer = client.post(url, json={"model": "m", "messages": messages}).json()
            messages.append(answer["choices"][0]["message"])

play()
server.shutdown()
for line in sys.stdin:
    started = time.perf_counter()
    play()
    print(time.perf_counter() - started, flush=True)
"""


def workspace(root: Path, turns: int = TURNS) -> Project:
    """A workspace with one cascade, and its run frozen as ``ten``."""
    project = ran(root, 1, turns)
    with Snapshots(project) as snapshots:
        snapshots.freeze(project.store.runs()[0].run_id, Label("ten"))
    return project


def ran(root: Path, phases: int, turns: int) -> Project:
    """A workspace with one cascade of so many phases and turns each, and its run."""
    turn = {"say": "Once more.", "calls": [{"tool": "read_file", "arguments": {"path": "page.txt"}}]}
    definitions, replies = [], {}
    for number in range(phases):
        phase: dict[str, Any] = {
            "name": f"read{number}",
            "instructions": "Read the page {{ input.page }} again and again.",
            "tackle": ["read_file"],
            "rules": {"max_turns": turns},
            "intra_context": {"mask_observations_after": 3, "min_masked_size": 100},
        }
        end: dict[str, Any] = {"text": "It says so."}
        if number + 1 < phases:
            phase["handoffs"] = [f"read{number + 1}"]
            end = {"say": "Done.", "calls": [{"tool": "route_to", "arguments": {"target": f"read{number + 1}"}}]}
        definitions.append(phase)
        replies[phase["name"]] = [turn] * (turns - 1) + [end]
    (root / "reader.json").write_text(json.dumps({"cascade_id": "reader", "phases": definitions}, indent=1))
    (root / "page.txt").write_text(PAGE)
    (root / "reader.replies.yaml").write_text(json.dumps({"defaults": {"latency": 0}, "replies": replies}))
    project = Project.at(root, env=surroundings(root))
    start = _start(project)
    asyncio.run(run_new(project, start, Attached()))
    return project


def _start(project: Project) -> Start:
    opened = project.open(project.root / "reader.json")
    assert opened.definition is not None, opened.problems
    choice = choose_model(project, opened.cascade, "offline")
    return Start(opened.definition, opened.file, {"page": "page.txt"}, choice, new_options(project, "reader", choice))


def fork_point(rounds: int = 3) -> float:
    """Best seconds from nothing to a fork that is held before the last call of a run of 1,000."""
    with tempfile.TemporaryDirectory() as folder:
        project = ran(Path(folder).resolve(), FORKED, 100)
        run_id, choice = project.store.runs()[0].run_id, _start(project).choice
        return min(_forked(project, run_id, choice) for _ in range(rounds))


def _forked(project: Project, run_id: str, choice: ModelChoice) -> float:
    held: list[float] = []

    async def gate(_: Stop) -> Decision:
        held.append(time.perf_counter())
        raise RunStopped("here")

    started = time.perf_counter()
    past = past_of(project, run_id)
    point = find_point(past.recording, StopKind.BEFORE_CALL, f"read{FORKED - 1}:100", 0)
    start = restart(project, past, lambda definition, options: choice)
    asyncio.run(fork(project, past, start, Attached(gate=gate), point=point))
    return held[0] - started


def surroundings(root: Path) -> dict[str, str]:
    return {**os.environ, "WORKBENCH_CONFIG_DIR": str(root / "config"), "WORKBENCH_STATE_DIR": str(root / "state")}


def replays(project: Project, rounds: int, peer: str) -> tuple[list[float], list[float]]:
    """Seconds of one replay, file read and compared included; and of the peer's, in turns."""
    ours: list[float] = []
    theirs: list[float] = []
    command = [peer, "-c", PEER]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) if peer else None
    with Snapshots(project) as snapshots:
        (file,) = snapshots.files()
        for warm_up in (True, False):
            for _ in range(3 if warm_up else rounds):
                started = time.perf_counter()
                verdict = snapshots.replay(file)
                took = time.perf_counter() - started
                assert verdict.passed, verdict.first
                assert verdict.calls == TURNS
                if not warm_up:
                    ours.append(took)
                if process is not None and process.stdin is not None and process.stdout is not None:
                    process.stdin.write("\n")
                    process.stdin.flush()
                    answer = float(process.stdout.readline())
                    if not warm_up:
                        theirs.append(answer)
    if process is not None:
        process.communicate()
    return ours, theirs


def run() -> Iterator[Line]:
    """Goal 19, for snapshots of one call, which cost what a snapshot costs at least, and of ten."""
    for turns, what in ((1, "one call"), (TURNS, "ten calls")):
        with tempfile.TemporaryDirectory() as folder:
            project = workspace(Path(folder).resolve(), turns)
            ours, theirs = under_pytest(project.root, surroundings(project.root))
        yield Line("19", f"pytest, 100 snapshots of {what} against 100 trivial tests", ours, theirs, "s", 2)


def under_pytest(root: Path, env: Mapping[str, str], rounds: int = 3) -> tuple[float, float]:
    """Best seconds of 100 snapshots and of 100 trivial tests, each in a process of its own, in turns."""
    text = (root / "snapshots" / "ten.json").read_text("utf-8")
    for number in range(1, 100):
        (root / "snapshots" / f"ten_{number}.json").write_text(text)
    trivial = "".join(f"def test_{number}():\n    assert {number} + 1 > {number}\n" for number in range(100))
    (root / "test_trivial.py").write_text(trivial)
    best: dict[str, float] = {}
    for _ in range(rounds):
        for what in ("snapshots", "test_trivial.py"):
            plain = {**env, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
            command = [sys.executable, "-m", "pytest", "-q", "-p", "workbench.pytest_plugin", what]
            started = time.perf_counter()
            ended = subprocess.run(command, cwd=root, env=plain, capture_output=True, text=True, check=False)
            took = time.perf_counter() - started
            assert "100 passed" in ended.stdout, ended.stdout + ended.stderr
            best[what] = min(best.get(what, took), took)
    return best["snapshots"], best["test_trivial.py"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--peer", default="", help="a Python with vcrpy and httpx")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        project = workspace(Path(folder).resolve())
        ours, theirs = replays(project, given.rounds, given.peer)
        snapshots, trivial = under_pytest(project.root, surroundings(project.root))
    median, rate = statistics.median(ours), TURNS / min(ours)
    missed = [rate < 2000, snapshots > 2 * trivial]
    print(f"replay of {TURNS} turns      median {median * 1000:.2f} ms, best {min(ours) * 1000:.2f} ms")
    print(f"calls per second        {rate:,.0f} at best, {TURNS / median:,.0f} in the median (goal 2,000)")
    if theirs:
        ratio = median / statistics.median(theirs)
        print(
            f"vcrpy, ten requests     median {statistics.median(theirs) * 1000:.2f} ms; ours {ratio:.2f}x (goal 0.2x)"
        )
        missed.append(ratio > 0.2)
    else:
        print("vcrpy                   not measured (give --peer PYTHON)")
    took = fork_point()
    missed.append(took > 1)
    print(f"fork of 1,000 calls     held before the last call after {took:.2f} s (goal 1 s)")
    ratio = snapshots / trivial
    print(f"pytest, 100 snapshots   {snapshots:.2f} s; 100 trivial tests {trivial:.2f} s: {ratio:.2f}x (goal 2x)")
    return int(any(missed))


if __name__ == "__main__":
    sys.exit(main())
