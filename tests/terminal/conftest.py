"""A real terminal: tmux on a socket of its own, whose screen and keys a test has."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.command import WORKBENCH
from tests.support.waiting import PATIENCE
from workbench.resources import folder as resources
from workbench.tui.early_keys import REACTION

PAUSE = 0.04
"""Seconds between two looks at the screen: each is a process, which takes 3 ms."""
PROMPT = "ready>"


class Terminal:
    """A shell with job control in a tmux pane."""

    def __init__(self, socket: Path, folder: Path, columns: int, lines: int) -> None:
        self._tmux = ["tmux", "-u", "-f", "/dev/null", "-S", str(socket)]
        self.folder = folder
        shell = f"exec env PS1='{PROMPT}' bash --norc --noprofile -i"
        env = {**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}
        env.pop("TMUX", None)
        size = ("-x", str(columns), "-y", str(lines))
        subprocess.run([*self._tmux, "new-session", "-d", *size, "-c", str(folder), shell], env=env, check=True)
        self.ask("set-option", "-g", "status", "off")

    def ask(self, *command: str) -> str:
        """What a command of tmux prints."""
        done = subprocess.run([*self._tmux, *command], capture_output=True, text=True, check=True)
        return done.stdout

    def close(self) -> None:
        """End the server and all that runs in it."""
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, check=False)

    # -- the person --------------------------------------------------------------------------------------------------

    def run(self, *arguments: str, env: str = "") -> None:
        """Type a ``workbench`` command, which tells its exit code when it ends."""
        self.execute(*WORKBENCH, *arguments, env=env)

    def execute(self, *command: str, env: str = "") -> None:
        """Type any command, which tells its exit code when it ends."""
        self.type(f"clear; {env} {shlex.join(command)}; echo rc=$?")
        self.press("Enter")

    def press(self, *keys: str) -> None:
        """Keys in tmux's names."""
        self.ask("send-keys", *keys)

    def read(self) -> None:
        """Take as long as a person needs to see what opened by itself: before that it takes no keys."""
        time.sleep(REACTION)

    def type(self, text: str) -> None:
        self.ask("send-keys", "-l", text)

    def resize(self, columns: int, lines: int) -> None:
        self.ask("resize-window", "-x", str(columns), "-y", str(lines))

    # -- the screen --------------------------------------------------------------------------------------------------

    def text(self, *, colours: bool = False) -> str:
        """What the screen shows."""
        return self.ask("capture-pane", "-p", *(["-e"] if colours else []))

    def until(self, *texts: str, gone: str = "") -> str:
        """The screen, as soon as it shows all the texts and no longer shows another."""
        return self.wait(lambda shown: all(text in shown for text in texts) and not (gone and gone in shown), texts)

    def wait(self, condition: Callable[[str], bool], what: object) -> str:
        give_up = time.monotonic() + PATIENCE
        while not condition(shown := self.text()):
            assert time.monotonic() < give_up, f"{what} never came:\n{shown}"
            time.sleep(PAUSE)
        return shown

    @property
    def is_restored(self) -> bool:
        """Whether the screen is the shell's again: no alternate screen, no mouse reports, a cursor."""
        wanted = "#{alternate_on}#{mouse_any_flag}#{cursor_flag}"
        return self.ask("display-message", "-p", wanted).strip() == "001"

    @property
    def app(self) -> int:
        """The process id of what the shell runs."""
        shell = self.ask("display-message", "-p", "#{pane_pid}").strip()
        return int(Path(f"/proc/{shell}/task/{shell}/children").read_text().split()[0])

    def kill(self, number: signal.Signals) -> None:
        os.kill(self.app, number)


@pytest.fixture
def folder(folder: Path) -> Path:
    """A workspace with the examples, whose replies come at once."""
    shutil.copytree(resources("cascades"), folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".workbench"))
    for replies in folder.glob("*.replies.yaml"):
        text = replies.read_text("utf-8")
        replies.write_text(text.replace("defaults: {latency: 0.4}", "defaults: {latency: 0}"), "utf-8")
    return folder


@pytest.fixture
def terminal(folder: Path) -> Iterator[Terminal]:
    """A terminal of 120 x 40 in the workspace."""
    if shutil.which("tmux") is None:
        reason = "tmux is not installed"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="tmux-") as place:
        it = Terminal(Path(place) / "socket", folder, 120, 40)
        try:
            it.until(PROMPT)
            yield it
        finally:
            it.close()
