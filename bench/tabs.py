"""Memory of ten runs that are open as tabs against one, their histories included. The runs are those of an example."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator

from bench.measure import ROOT, WORKBENCH, Line, alone, workspace

TABS = 10
HELD = """
import asyncio, gc, json, sys
from pathlib import Path
from workbench.tui.app import WorkbenchApp
from workbench.workspace.project import Project
from workbench.workspace.session import Workspace

def resident():
    gc.collect()
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024

async def main():
    project = Project.at(Path("."))
    runs = project.store.run_ids()
    app = WorkbenchApp(lambda: Workspace(project, "offline").run(runs[0]))
    async with app.run_test(size=(120, 40)) as pilot:
        found = []
        for count, run_id in enumerate(runs, 1):
            app.navigation.show_run(run_id) if count > 1 else None
            while len(app.tab_labels) < count:
                await pilot.pause(0.01)
            await app.workers.wait_for_complete()
            await pilot.pause(0.2)
            found.append(resident())
        print(json.dumps(found))

asyncio.run(main())
"""
"""In a process of its own: opens every stored run, and prints the memory after each, in MB."""


def run() -> Iterator[Line]:
    with workspace() as folder:
        shutil.copytree(ROOT / "cascades", folder, dirs_exist_ok=True)
        env = alone(folder)
        for number in range(TABS):
            command = [*WORKBENCH, "run", "log_triage.yaml", "--model", "offline", "--session", f"s{number}", "-q"]
            subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True)
        done = subprocess.run([sys.executable, "-c", HELD], cwd=folder, env=env, check=True, capture_output=True)
        held = json.loads(done.stdout)
    yield Line("23", f"memory of {TABS} open runs, against one", held[-1], held[0], "MB", 1.5)
