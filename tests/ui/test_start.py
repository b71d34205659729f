"""Starting and ending: the first frame imports little, a terminal is needed and given back, signals end cleanly."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.support.pseudo_terminal import ESCAPES, PseudoTerminal, pseudo_terminal
from tests.support.waiting import PATIENCE
from tests.ui.support import TRIAGE

ROOT = Path(__file__).resolve().parents[2]

FIRST_FRAME = """
import asyncio, sys, threading
from pathlib import Path
from workbench.tui.app import WorkbenchApp

opened = threading.Event()

def make():
    opened.wait(100)
    raise RuntimeError("not in this test")

async def main():
    app = WorkbenchApp(make, file=Path(sys.argv[1]))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        loaded = set(sys.modules)
        text = app.export_screenshot()
        opened.set()
        assert "triage" in text, text
    heavy = {"litellm", "chdb", "pydantic", "jinja2", "ruamel.yaml", "tiktoken", "httpx", "watchfiles", "click"}
    print(sorted(heavy & loaded))
    ours = (name for name in loaded if name.startswith("workbench."))
    print(sorted(name for name in ours if name.split(".")[1] not in ("tui", "views")))

asyncio.run(main())
"""

APP = """
import os, sys
from pathlib import Path
from workbench.tui.app import run_app

def make():
    os.write(2, b"noise from a native library\\n")
    from workbench.workspace.project import Project
    from workbench.workspace.session import Session
    folder = Path(sys.argv[1])
    env = {"WORKBENCH_CONFIG_DIR": str(folder / "config"), "WORKBENCH_STATE_DIR": str(folder / "state")}
    return Session(Project.at(folder, env=env), folder / sys.argv[2], model="offline")

sys.exit(run_app(make, log=Path(sys.argv[1]) / "app.log"))
"""


def run(code: str, *arguments: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_the_first_frame_and_the_first_tree_import_neither_the_language_nor_the_engine(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(TRIAGE)
    done = run(FIRST_FRAME, str(file))
    assert done.returncode == 0, done.stderr
    heavy, ours = done.stdout.strip().split("\n")[-2:]
    assert heavy == "[]"
    small = (
        "workbench.dollars",
        "workbench.durations",
        "workbench.files",
        "workbench.language",
        "workbench.language.clean",
        "workbench.language.nearest",
        "workbench.resources",
        "workbench.terminal",
        "workbench.themes",
        "workbench.workspace",
        "workbench.workspace.folders",
    )
    assert ours == str(list(small))


def test_rows_and_state_import_no_textual() -> None:
    code = "import sys, workbench.tui.bench.presenter, workbench.tui.bench.preview; print('textual' in sys.modules)"
    assert run(code).stdout.strip() == "False"


@pytest.mark.fault("F7")
def test_without_a_terminal_it_says_what_to_use_instead_and_ends_with_2(tmp_path: Path) -> None:
    done = run(APP, str(tmp_path), "a.yaml", env={**os.environ, "TERM": "dumb"})
    assert done.returncode == 2
    assert "the app needs a terminal; without one use `workbench run FILE`" in done.stderr
    assert done.stdout == ""


def app_on_a_terminal(folder: Path, file: str) -> AbstractContextManager[PseudoTerminal]:
    command = [sys.executable, "-c", APP, str(folder), file]
    return pseudo_terminal(command, ROOT, env={"TEXTUAL_ANIMATIONS": "none"})


LEAVES_ALTERNATE_SCREEN = b"\x1b[?1049l"


@pytest.mark.fault("F3")
def test_what_others_write_goes_to_the_log_and_a_signal_restores_the_screen(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(TRIAGE)
    with app_on_a_terminal(tmp_path, "a.yaml") as terminal:
        terminal.until("not run yet")
        terminal.process.send_signal(signal.SIGHUP)
        assert terminal.drain() == 129
        assert LEAVES_ALTERNATE_SCREEN in terminal.output
        assert b"noise from a native library" not in terminal.output
        assert "noise from a native library" in (tmp_path / "app.log").read_text()


def test_a_file_that_cannot_be_opened_ends_with_2_and_the_reason_on_a_clean_screen(tmp_path: Path) -> None:
    with app_on_a_terminal(tmp_path, "missing.yaml") as terminal:
        assert terminal.drain() == 2
        after = terminal.output.rpartition(LEAVES_ALTERNATE_SCREEN)[2]
        assert b"missing.yaml: error: no such file" in after
        assert b"Traceback" not in terminal.output


def test_the_last_words_are_folded_between_words_as_wide_as_the_terminal(tmp_path: Path) -> None:
    with app_on_a_terminal(tmp_path, f"{'missing ' * 20}file.yaml") as terminal:
        assert terminal.drain() == 2
        after = terminal.output.rpartition(LEAVES_ALTERNATE_SCREEN)[2].decode()
        lines = [ESCAPES.sub(b"", line.encode()).decode() for line in after.splitlines()]
        words = {word for line in lines for word in line.split() if "/" not in word}
        assert words == {"missing", "file.yaml:", "error:", "no", "such", "file"}
        assert max(map(len, lines)) <= 100
