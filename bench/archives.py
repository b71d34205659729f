"""Import and sweep over archives that grow: ``python -m bench.archives [RUNS...]`` (1,000 and 10,000).

A line for each number of runs: seconds, runs a second, CPU time and memory of ``import`` and of ``sweep``, each a whole
command with all of its processes; of 1,000 also the sweep by one process. A run is a conversation of two calls.
100,000 runs take some seven minutes, and room below the temporary folder for 100,000 folders, which are removed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bench.batch_peers import measured
from bench.measure import WORKBENCH, alone, workspace

RUNS = (1_000, 10_000)
SWEEP = ("sweep", "-f", "calls>0", "-s", "mask(after=1)", "--json", "-q")


def write_archive(file: Path, runs: int) -> None:
    """Conversations that call a tool once, each another one."""
    called = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    with file.open("w") as out:
        for number in range(runs):
            messages = [
                {"role": "system", "content": "You look things up."},
                {"role": "user", "content": f"Question {number}: what does the log say?"},
                {"role": "assistant", "content": None, "tool_calls": [called]},
                {"role": "tool", "tool_call_id": "c", "content": f"{number}: " + "nothing to see. " * (number % 7 + 5)},
                {"role": "assistant", "content": f"The log of {number} says nothing."},
            ]
            out.write(json.dumps({"model": "gpt-4o", "messages": messages}) + "\n")


def main(sizes: list[int]) -> None:
    for runs in sizes:
        with workspace() as folder:
            env = alone(folder)
            write_archive(folder / "archive.jsonl", runs)
            told = [_told("import", runs, measured([*WORKBENCH, "import", "archive.jsonl", "-q"], folder, env))]
            for processes in ("1", "2") if runs <= RUNS[0] else ("2",):
                command = [*WORKBENCH, *SWEEP, "--processes", processes]
                told.append(_told(f"sweep by {processes}", runs, measured(command, folder, env)))
            print(f"{runs:>8,} runs  " + "  |  ".join(told), flush=True)


def _told(what: str, runs: int, took: tuple[float, float, float]) -> str:
    wall, cpu, memory = took
    return f"{what}: {wall:6.1f} s, {runs / wall:5.0f}/s, CPU {cpu:6.1f} s, {memory:4.0f} MB"


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or list(RUNS))
