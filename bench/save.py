"""Goal 8: from a save to the repainted screen, against the event of watchfiles as it comes by default."""

from __future__ import annotations

import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter

from bench.measure import WORKBENCH, Line, Screen, alone, workspace
from bench.start import cascade

DEFAULT = """
import sys, watchfiles
print("watching", flush=True)
for changes in watchfiles.watch(sys.argv[1]):
    print("saved", flush=True)
"""
SAVES = 12


def default(folder: Path, text: str) -> list[float]:
    """Seconds from a save to the line that a bare watcher prints."""
    taken = []
    command = [sys.executable, "-c", DEFAULT, str(folder)]
    file = folder / "flow.yaml"
    with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0, env=alone(folder.parent)) as watcher:
        assert watcher.stdout is not None
        watcher.stdout.readline()
        while not select.select([watcher.stdout], [], [], 0.3)[0]:
            file.write_text(text)  # until the watch has really begun
        for number in range(SAVES):
            while select.select([watcher.stdout], [], [], 0.5)[0]:
                watcher.stdout.readline()
            begin = perf_counter()
            file.write_text(text + f"# {number}\n")
            watcher.stdout.readline()
            taken.append(perf_counter() - begin)
        watcher.kill()
    return taken


def ours(folder: Path, text: str) -> list[float]:
    """Seconds from a save that renames the first phase to its new name on the screen."""
    taken = []
    file = folder / "flow.yaml"
    file.write_text(text)
    with Screen([*WORKBENCH, "open", "flow.yaml"], folder, alone(folder.parent)) as screen:
        screen.until(b"NOT RUN")
        screen.settle(1.5)
        for number in range(SAVES):
            begin = perf_counter()
            file.write_text(text.replace("phase_000", f"saved_{number:03}"))
            taken.append(screen.until(f"saved_{number:03}".encode()) - begin)
            screen.settle()
    return taken


def run(rounds: int = 1) -> Iterator[Line]:
    for phases, limit in ((10, 0.45), (100, 0.6)):
        mine: list[float] = []
        theirs: list[float] = []
        for _ in range(rounds):
            with workspace() as home:
                for name in ("a", "b"):
                    (home / name).mkdir()
                theirs += default(home / "a", cascade(phases))
                mine += ours(home / "b", cascade(phases))
        what = f"save to repaint, {phases} phases, default watchfiles"
        yield Line("8", what, median(mine) * 1e3, median(theirs) * 1e3, "ms", limit)
