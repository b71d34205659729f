"""Goals 18 and 19: a frozen run of ten calls against vcrpy, and a hundred of them under pytest against trivial tests.
Besides: calls replayed per second, what the plugin costs a project without snapshots, and a fork of 1,000 calls."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from bench.measure import Line, peer, seconds
from workbench.engine.gate import Decision, RunStopped, Stop, StopKind
from workbench.engine.past.fork import find_point
from workbench.snapshots.freeze import Label
from workbench.workspace.model_choice import choose_model
from workbench.workspace.project import Project
from workbench.workspace.recorded_runs import past_of
from workbench.workspace.run_builder import RunAttachments, Start, fork, new_options, restart, run_new
from workbench.workspace.testing import Snapshots

if TYPE_CHECKING:
    from workbench.workspace.model_choice import ModelChoice

TURNS = 10
PAGE = "A line of the page that is read, long enough to look like one.\n" * 8
PLUGIN = "-pworkbench.pytest_plugin"
TRIVIAL = "test_trivial.py"
CALLS = 2_000
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
    asyncio.run(run_new(project, start, RunAttachments()))
    return project


def _start(project: Project) -> Start:
    opened = project.open(project.root / "reader.json")
    assert opened.definition is not None, opened.problems
    choice = choose_model(project, opened.cascade, None, "offline")
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
    past = past_of(project.store, run_id)
    point = find_point(past.recording, StopKind.BEFORE_CALL, f"read{FORKED - 1}:100", 0)
    start = restart(project, past, lambda definition, options: choice)
    asyncio.run(fork(project, past, start, RunAttachments(gate=gate), point=point))
    return held[0] - started


def surroundings(root: Path) -> dict[str, str]:
    return {
        **os.environ,
        "WORKBENCH_CONFIG_DIR": str(root / "config"),
        "WORKBENCH_UNSCRIPTED": "ok",
        "WORKBENCH_STATE_DIR": str(root / "state"),
    }


def replays(project: Project, rounds: int, other: str | None) -> tuple[list[float], list[float]]:
    """Seconds of one replay, file read and compared included; and of the peer's, in turns."""
    ours: list[float] = []
    theirs: list[float] = []
    with Snapshots(project) as snapshots, _player(other) as play:
        (file,) = snapshots.files()

        def once() -> None:
            verdict = snapshots.replay(file)
            assert verdict.passed, verdict.first
            assert verdict.calls == TURNS

        for number in range(rounds + 3):
            mine, peers = seconds(once), play()
            if number >= 3:
                ours.append(mine)
                theirs.append(peers)
    return ours, theirs


@contextmanager
def _player(program: str | None) -> Iterator[Callable[[], float]]:
    """Seconds that vcrpy takes to play ten requests, in a process that stays."""
    if program is None:
        yield lambda: 0.0
        return
    process = subprocess.Popen([program, "-c", PEER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    asked, answers = process.stdin, process.stdout

    def play() -> float:
        asked.write("\n")
        asked.flush()
        return float(answers.readline())

    yield play
    process.communicate()


def run(rounds: int = 100) -> Iterator[Line]:
    other = peer("vcrpy", ("vcrpy", "httpx"), "vcr, httpx")
    with tempfile.TemporaryDirectory() as folder:
        project = workspace(Path(folder).resolve())
        ours, theirs = replays(project, rounds, other)
        if other is not None:
            yield Line("18", "a frozen run of ten calls, vcrpy", median(ours) * 1e3, median(theirs) * 1e3, "ms", 0.2)
        in_a_row = min(sum(replays(project, CALLS // TURNS, None)[0]) for _ in range(3))
        yield Line("-", f"{CALLS:,} replayed calls in a row, against a second", in_a_row, 1, "s", 1)
        yield Line("-", "a fork that is held at the last of 1,000 calls, against a second", fork_point(), 1, "s", 1)
        env = surroundings(project.root)
        tests, bare = under_pytest(project.root, env, [PLUGIN, TRIVIAL], [TRIVIAL])
        yield Line("-", "pytest with the plugin and no snapshots, without the plugin", tests, bare, "s", 1.1)
    for turns, what in ((1, "one call"), (TURNS, "ten calls")):
        with tempfile.TemporaryDirectory() as folder:
            project = workspace(Path(folder).resolve(), turns)
            _hundred(project.root)
            env = surroundings(project.root)
            took, trivial = under_pytest(project.root, env, [PLUGIN, "snapshots"], [PLUGIN, TRIVIAL])
        if turns == TURNS:
            yield Line("19", f"pytest, 100 snapshots of {what}, against five seconds", took, 5, "s", 1)
        yield Line("-", f"pytest, 100 snapshots of {what} against 100 trivial tests", took, trivial, "s", float("inf"))


def _hundred(root: Path) -> None:
    """The snapshot of a workspace a hundred times."""
    text = (root / "snapshots" / "ten.json").read_text("utf-8")
    for number in range(1, 100):
        (root / "snapshots" / f"ten_{number}.json").write_text(text)


def under_pytest(root: Path, env: Mapping[str, str], *sides: Sequence[str], rounds: int = 5) -> list[float]:
    """Best seconds of each run of pytest with a hundred tests, in processes of their own, in turns."""
    trivial = "".join(f"def test_{number}():\n    assert {number} + 1 > {number}\n" for number in range(100))
    (root / TRIVIAL).write_text(trivial)
    plain = {name: value for name, value in env.items() if name != "PYTHONDONTWRITEBYTECODE"}
    plain["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"

    def once(arguments: Sequence[str]) -> float:
        command = [sys.executable, "-m", "pytest", "-q", *arguments]
        started = time.perf_counter()
        ended = subprocess.run(command, cwd=root, env=plain, capture_output=True, text=True, check=False)
        took = time.perf_counter() - started
        assert "100 passed" in ended.stdout, ended.stdout + ended.stderr
        return took

    return [min(took) for took in zip(*([once(side) for side in sides] for _ in range(rounds)), strict=True)]
