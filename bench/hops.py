"""``python -m bench.hops``: how many modules of the workbench run a function on the ways of docs/architecture.md."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from bench.measure import ROOT
from tests.support.command import run_cli
from tests.ui.bench import bench
from tests.ui.test_bench import CASCADE, REPLIES, step

PACKAGE = f"{ROOT / 'workbench'}/"


class Modules:
    """The modules that run a function in a block, in any thread; what is imported there does not count."""

    def __init__(self) -> None:
        self.found: set[str] = set()
        self._on = False
        threading.setprofile(self._called)
        sys.setprofile(self._called)

    def _called(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if self._on and event == "call" and code.co_name != "<module>" and code.co_filename.startswith(PACKAGE):
            self.found.add(code.co_filename)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count those of the block, in place of those before."""
        self.found = set()
        self._on = True
        yield
        self._on = False


async def app(modules: Modules, folder: Path) -> None:
    """The two ways of the app: a call is let go, and a file is saved."""
    async with bench(folder, text=CASCADE, replies=REPLIES) as it:
        await step(it)
        await step(it)
        steps = []
        for _ in range(3):  # Timers of the app may come between; what all steps take is the smallest number.
            with modules.counted():
                await step(it)
                it.text()
            steps.append(len(modules.found))
        print(f"{min(steps):4}  from `n` at a held call to the next held call on the screen", flush=True)
    saved = folder / "saved"
    saved.mkdir()
    async with bench(saved, text=CASCADE, replies=REPLIES) as it:
        with modules.counted():
            it.session.file.write_text(CASCADE.replace("name: report", "name: summary"))
            await it.until(lambda: "summary" in it.pane("tree"))
        print(f"{len(modules.found):4}  from a save to the tree", flush=True)


def commands(modules: Modules, folder: Path) -> None:
    """The two ways of the command line, over the example log_triage."""
    for file in (ROOT / "cascades").glob("log_triage.*"):
        shutil.copy(file, folder)
    os.chdir(folder)
    assert run_cli("run", "log_triage.yaml", "--model", "offline", "--quiet").code == 0
    with modules.counted():
        assert run_cli("diff", "--strategies", "snowball", "slide(turns=2)").code == 0
    print(f"{len(modules.found):4}  in `diff` of two strategies", flush=True)
    os.chdir(ROOT)
    with modules.counted():
        assert run_cli("test", "replay", "log_triage").code == 0
    print(f"{len(modules.found):4}  in `test replay` of one snapshot", flush=True)


def main() -> None:
    modules = Modules()
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"WORKBENCH_CONFIG_DIR": f"{folder}/config", "WORKBENCH_STATE_DIR": f"{folder}/state"}
        asyncio.run(app(modules, Path(folder)))
        commands(modules, Path(folder))


if __name__ == "__main__":
    main()
