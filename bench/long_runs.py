"""What a run of many turns costs those who look at it: ``python -m bench.long_runs [TURNS...]``.

A line for each number of turns (500, 1,000, 2,000, 5,000 by default): the journal and the index in MB, seconds and peak
memory of each command in a process of its own, how many records a second the first index takes in, and seconds from
the start of the app until the run shows, with the slowest of 40 keys.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from msgspec.structs import replace

from bench.measure import WORKBENCH, Screen, alone
from tests.engine.support import FunctionTools, ScriptedModel, call, ports
from workbench.engine.definition import Definition, Options
from workbench.engine.run.run import Run
from workbench.store.store import Store
from workbench.workspace.system import SystemIds

TURNS = (500, 1_000, 2_000, 5_000)
SAID, RESULT = 40, 250
"""Words of an answer and of a result: 5,000 turns are about 37 MB."""
WORDS = [f"word{number * 7919 % 100_003:x}" for number in range(5_000)]
MAKE = (
    "import sys; from pathlib import Path; from bench.long_runs import *; long_run(Path(sys.argv[1]), int(sys.argv[2]))"
)
INDEX = """
import json, multiprocessing, resource, sys, time
from pathlib import Path
from workbench.store.index.index import Index
from workbench.store.store import Store
root = Path(sys.argv[1])
with Index(Store(root)) as index:
    begin, cpu = time.perf_counter(), time.process_time()
    index.catch_up()
    first, cpu = time.perf_counter() - begin, time.process_time() - cpu
    records = index.progress.records
for reader in multiprocessing.active_children():
    reader.join()
used = resource.getrusage(resource.RUSAGE_CHILDREN)
cpu += used.ru_utime + used.ru_stime
with Index(Store(root)) as index:
    begin = time.perf_counter()
    index.catch_up()
    again = time.perf_counter() - begin
    begin = time.perf_counter()
    index.sql("SELECT count(), sum(tokens_out) FROM all_data")
    query = time.perf_counter() - begin
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([records, first, cpu, again, query, memory]))
"""


def text(seed: int, words: int) -> str:
    """Words by chance, the same for the same seed."""
    return " ".join(random.Random(seed).choices(WORDS, k=words))


def long_run(folder: Path, turns: int, session: str = "long", words: int = RESULT) -> str:
    """Store a run of one phase that calls a tool in each turn but the last; its id."""
    phase = {"name": "p", "instructions": "x", "tackle": ["look"], "rules": {"max_turns": turns}}
    document = json.dumps({"cascade_id": "c", "phases": [phase]})
    (folder / "c.yaml").write_text(document)
    replies = [*(f"{text(-turn, SAID)}\n{call('look', x=str(turn))}" for turn in range(turns - 1)), "done"]
    run_id = SystemIds().run_id()
    with Store(folder / ".workbench").create(run_id) as journal:
        tools = FunctionTools({"look": lambda x="0": text(int(x), words)})
        outside = replace(ports(ScriptedModel(replies), tools=tools), sink=journal)
        options = Options(session, "gpt-4o")
        asyncio.run(Run(Definition.of(document, "c.yaml"), {}, options, outside, run_id=run_id).execute())
    return run_id


def command(folder: Path, *arguments: str) -> tuple[float, float]:
    """Seconds and peak MB of a command."""
    begin = perf_counter()
    with subprocess.Popen(
        [*WORKBENCH, *arguments], cwd=folder, env=alone(folder), stdout=subprocess.DEVNULL
    ) as started:
        _, status, used = os.wait4(started.pid, 0)
        started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode:
        raise RuntimeError(f"{arguments[0]} ended with {started.returncode}")
    return perf_counter() - begin, used.ru_maxrss / 1024


def indexed(folder: Path) -> tuple[int, float, float, float, float, float]:
    """Records; seconds of the first index, of CPU of all its processes, of a second look, of a question; peak MB."""
    shutil.rmtree(folder / ".workbench" / "ch", ignore_errors=True)
    done = subprocess.run(
        [sys.executable, "-c", INDEX, str(folder / ".workbench")], capture_output=True, text=True, check=True
    )
    records, *rest = json.loads(done.stdout)
    return (records, *rest)


def opened(folder: Path) -> tuple[float, float]:
    """Seconds until the run shows in the app, and of the slowest of 40 keys."""
    begin = perf_counter()
    with Screen([*WORKBENCH, "open", "long"], folder, alone(folder)) as screen:
        screen.until(b"done")
        took = perf_counter() - begin
        screen.settle()
        keys = [screen.key(key) for key in (b"j", b"k") * 20]
    return took, max(keys)


def size(folder: Path) -> float:
    """MB of all files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def measured(turns: int) -> str:
    """One line."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        begin = perf_counter()
        # In a process of its own: what it took in memory would count for each command that is started from here.
        subprocess.run([sys.executable, "-c", MAKE, home, str(turns)], check=True)
        made = perf_counter() - begin
        place = f"p:{turns - 1}"
        looks = {name: command(folder, name, "long", *more) for name, *more in (("show",), ("context", "--at", place))}
        spans = command(folder, "export", "long", "--as", "otel", "-o", "spans.json")
        records, first, cpu, again, query, memory = indexed(folder)
        shown, key = opened(folder)
        journal, index = size(folder / ".workbench" / "journal"), size(folder / ".workbench" / "ch")
        return (
            f"{turns:>6} turns  made {made:5.1f} s  journal {journal:6.1f} MB  index {index:6.1f} MB"
            f"  first {first:5.1f} s ({records / first:6,.0f}/s, {records / cpu:6,.0f} per s of CPU, {memory:4.0f} MB)"
            f"  again {again * 1e3:4.0f} ms  question {query * 1e3:4.0f} ms"
            + "".join(f"  {name} {took:4.1f} s {peak:4.0f} MB" for name, (took, peak) in looks.items())
            + f"  otel {spans[0]:4.1f} s {(folder / 'spans.json').stat().st_size / 1e6:5.1f} MB"
            f"  app {shown:4.1f} s  key {key * 1e3:4.0f} ms"
        )


if __name__ == "__main__":
    for number in [int(argument) for argument in sys.argv[1:]] or TURNS:
        print(measured(number), flush=True)
