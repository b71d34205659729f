"""What comparing strategies takes on long stored runs: two on 500 calls and 2,000 messages, twenty on 28 runs, twice
the calls against once, and keys on the screen.

Where a limit in seconds is promised, it stands in the place of theirs; ours is then time of the CPU, which is what a
person waits where nothing else runs. Twice the calls take twice the time where only what changes is worked out, and
four times where every context is: the copies of each context's list of messages make it a little more than twice.
"""

from __future__ import annotations

import json
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from bench.keys import latencies
from bench.measure import WORKBENCH, Line, alone, python, workspace
from bench.traces import chat
from bench.view import SHOW

CALLS = 500
RESULTS = 3
"""Tool results of each call: four messages with the answer."""
RUNS = 28
LONGEST, SHORTEST = 150, 10
"""Calls of the runs that are swept over."""
SPECS = ("file", "mask(after=3)")
GRID = "mask(after=1..9,step=[1,5])"
"""Eighteen strategies; ``snowball`` and what the file says come of themselves."""
LOADED = """
import json, resource, sys, time
from pathlib import Path
from workbench.analysis.compare import compare, under
from workbench.views.compare import CompareRows
from workbench.workspace.comparing import definition_of, strategy_of
from workbench.workspace.project import Project
from workbench.models.encodings import encodings
project = Project.at(Path.cwd())
state = project.store.state(project.store.find(sys.argv[1]))
definition, counter, prices = definition_of(state), encodings(), project.environment.prices
strategies = [strategy_of(definition, spec) for spec in sys.argv[2:]]
def compared():
    return compare(*(under("x", state, definition, each, counter, prices) for each in strategies))
found = compared()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
assert len(found.differing) > len(found.pairs) / 2
taken, shown = [], []
for _ in range(5):
    begin = time.process_time()
    found = compared()
    middle = time.process_time()
    rows = CompareRows(found, "run")
    page = [rows.row(rows.step(0, 1) + number, 120) for number in range(40)]
    taken.append((middle - begin) / len(strategies))
    shown.append(time.process_time() - middle)
print(json.dumps({"each": min(taken), "shown": min(shown), "peak": peak}))
"""
COMPARED = """
import sys
from pathlib import Path
from workbench.views.compare import CompareRows
from workbench.tui.theming import ThemedApp
from workbench.tui.widgets.rowview import RowView
from workbench.workspace.comparing import compare_strategies
from workbench.workspace.project import Project
project = Project.at(Path(sys.argv[1]))
state = project.store.state(project.store.find(sys.argv[2]))
rows = CompareRows(compare_strategies(state, tuple(sys.argv[3:]), project.environment.prices), "run")
class Shown(ThemedApp):
    def compose(self):
        yield RowView(rows, id="rows")
    def on_mount(self):
        view = self.query_one(RowView)
        view.show()
        view.focus()
        view.move_to(len(rows) // 2)
Shown().run()
"""


def command(folder: Path, *words: str) -> str:
    """What a command of the workbench prints, run in a process of its own."""
    done = subprocess.run([*WORKBENCH, *words], cwd=folder, env=alone(folder), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def cpu(folder: Path, *words: str) -> float:
    """Seconds of the CPU that a command takes from start to end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command(folder, *words)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def stored(folder: Path, name: str, calls: int, results: int, seed: int = 0) -> str:
    """The session of a run that has been imported into the folder's journal."""
    file = folder / f"{name}.json"
    file.write_text(json.dumps(chat(calls, results, seed)))
    return str(json.loads(command(folder, "import", file.name, "--json"))[0]["session_id"])


def long_runs(folder: Path) -> Iterator[Line]:
    run, twice = (stored(folder, name, calls, RESULTS) for name, calls in (("one", CALLS), ("two", 2 * CALLS)))
    cold = min(cpu(folder, "diff", run, "--strategies", *SPECS) for _ in range(3))
    yield Line("C1", "workbench diff, two strategies, 500 calls, its limit", cold, 2.0, "s", 1.0)
    one, two = (json.loads(python(LOADED, each, *SPECS, folder=folder)) for each in (run, twice))
    yield Line("C2", "one strategy of a comparison once all is loaded, its limit", one["each"], 0.2, "s", 1.0)
    yield Line("C2", "the same, 1,000 calls against 500", two["each"] * 1e3, one["each"] * 1e3, "ms", 3.0)
    yield Line("C3", "peak memory of the comparison, 1,000 calls against 500", two["peak"], one["peak"], "MB", 1.6)
    yield Line("C4", "comparison to first page and first difference, its limit", one["shown"] * 1e3, 50.0, "ms", 1.0)
    ours = latencies(COMPARED, b"look", str(folder), run, *SPECS)
    theirs = latencies(SHOW, b"turn", "one")
    keys = median(ours) * 1e3, median(theirs) * 1e3
    yield Line("C5", "key to last byte, comparison of 500 calls, one context", *keys, "ms", 2.2)


def many_runs(folder: Path) -> Iterator[Line]:
    step = (LONGEST - SHORTEST) / (RUNS - 1)
    runs = [stored(folder, f"run{i}", SHORTEST + round(i * step), 1, seed=i) for i in range(RUNS)]
    took = min(cpu(folder, "sweep", *runs, "--strategy", GRID) for _ in range(2))
    yield Line("C6", "sweep, 20 strategies on 28 runs of 10 to 150 calls, its limit", took, 10.0, "s", 1.0)


def run() -> Iterator[Line]:
    with workspace() as folder:
        yield from long_runs(folder)
    with workspace() as folder:
        yield from many_runs(folder)
