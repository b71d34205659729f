"""The reader of DOT against Graphviz's own parser: ``python -m bench.dot_reader [NODES]``.

The file has 10,000 nodes by default, three attributes each, and an edge from each to the next. Ours is ``read_dot`` in
a warm process: nodes, edges, attributes, and the place of each of them. Theirs is ``gc``, which reads the same file
with Graphviz's parser and counts its nodes and edges, less what ``gc`` needs for a graph of two nodes: its start. Both
are seconds of the processor, the least of several rounds in which they take turns, so that other work on the machine
counts for neither. ``gc`` comes with the package graphviz of the system.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from workbench.language.dot.build import read_pipeline
from workbench.language.load import load
from workbench.language.read.dot import read_dot

NODES, ROUNDS, LIMIT = 10_000, 9, 2.0


def pipeline(nodes: int) -> str:
    """A pipeline of that many nodes in a row, its start and its exit among them."""
    lines = [
        "digraph many {",
        '  graph [goal="Work through many stages", default_fidelity="compact"]',
        '  node [timeout="900s"]',
        "  start [shape=Mdiamond]",
    ]
    for number in range(1, nodes - 1):
        prompt = f"Read file {number} and write down what it says.\\nThen name the next one."
        lines.append(f'  stage_{number} [label="Stage {number}", prompt="{prompt}", class="work,light", max_retries=2]')
    lines.append("  exit [shape=Msquare]")
    names = ["start", *(f"stage_{number}" for number in range(1, nodes - 1)), "exit"]
    for number, (source, target) in enumerate(pairwise(names)):
        when = f' [condition="outcome=success", weight={number % 5}, label="next {number}"]' if number % 3 == 0 else ""
        lines.append(f"  {source} -> {target}{when}")
    return "\n".join([*lines, "}", ""])


def _ours(work: object, *arguments: str) -> float:
    assert callable(work)
    begin = time.process_time()
    work(*arguments)
    return time.process_time() - begin


def _theirs(file: Path) -> float:
    with subprocess.Popen(["gc", str(file)], stdout=subprocess.DEVNULL) as started:
        _, status, used = os.wait4(started.pid, 0)
        started.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Print the seconds of both, and their ratio. 1 where the ratio is above the limit, 2 without Graphviz."""
    if shutil.which("gc") is None:
        print("gc is not installed; it comes with graphviz", file=sys.stderr)
        return 2
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else NODES
    text = pipeline(nodes)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        file, small = Path(folder) / "many.dot", Path(folder) / "small.dot"
        file.write_text(text)
        small.write_text("digraph small { a -> b }\n")
        ours, theirs, start = [], [], []
        for _ in range(ROUNDS):
            ours.append(_ours(read_dot, text))
            theirs.append(_theirs(file))
            start.append(_theirs(small))
    parser = min(theirs) - min(start)
    ratio = min(ours) / parser
    print(f"{nodes:,} nodes, {len(text) / 1e6:.1f} MB")
    print(f"  ours, nodes, edges and attributes with their places   {min(ours) * 1e3:7.0f} ms")
    print(f"  Graphviz's parser (start of {min(start) * 1e3:.0f} ms taken out)           {parser * 1e3:7.0f} ms")
    print(f"  ratio {ratio:.2f}, limit {LIMIT}")
    whole = _ours(read_pipeline, text, "m.dot", "m")
    print(f"  ours, with the graph that runs and its checks of form {whole * 1e3:7.0f} ms")
    return 0 if ratio <= LIMIT else 1


if __name__ == "__main__":
    assert load(pipeline(5), "m.dot").ok
    sys.exit(main())
