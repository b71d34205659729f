"""A terminal that is closed, resized to nothing, interrupted: the app as a person would have it end."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.command import WORKBENCH
from tests.support.pseudo_terminal import pseudo_terminal
from tests.support.waiting import PATIENCE
from tests.terminal.conftest import Terminal
from workbench.store.store import Store

SLOW = """\
cascade_id: slow
phases:
  - name: ask
    instructions: Say hello.
"""


@pytest.fixture
def slow(folder: Path) -> Path:
    """A cascade whose only call takes ten minutes."""
    (folder / "slow.yaml").write_text(SLOW)
    (folder / "slow.replies.yaml").write_text("replies: {ask: [{text: Hello., latency: 600}]}\n")
    return folder


@pytest.mark.fault("F4")
def test_the_first_interrupt_stops_the_run_and_the_second_quits(terminal: Terminal, slow: Path) -> None:
    terminal.run("open", "slow.yaml", "--session", "s")
    terminal.until("NOT RUN", "Offline (")
    terminal.press("r")
    terminal.wait(lambda shown: re.search(r"provider \d+ s", shown) is not None, "a call that waits")
    terminal.press("C-c")
    terminal.until("stopped")
    terminal.press("C-c")
    terminal.until("rc=0")
    assert terminal.is_restored
    store = Store(slow / ".workbench")
    assert store.summary(store.find("s")).status == "stopped"


@pytest.mark.fault("F3")
@pytest.mark.parametrize("own", [True, False])
def test_a_terminal_that_vanishes_ends_the_app_in_order_and_without_a_word(slow: Path, own: bool) -> None:
    """Whether it is the terminal of its session, whose end is a signal, or not, so that nobody tells the app; and it is
    in the middle of drawing."""
    start = ["setsid", "--ctty"] if own else ["setsid"]
    command = [*start, *WORKBENCH, "open", "slow.yaml", "--session", "s"]
    with (
        (slow / "said.txt").open("wb") as said,
        pseudo_terminal(command, slow, size=(120, 40), stderr=said.fileno(), own_session=False) as app,
    ):
        app.until("NOT RUN", "Offline (")
        app.type("r")
        app.until("waiting for the provider")
        app.type("?" * 16)
        app.vanish()
        assert app.process.wait(PATIENCE) == 129
    assert (slow / "said.txt").read_text() == ""
    store = Store(slow / ".workbench")
    run_id = store.find("s")
    assert store.summary(run_id).status == "stopped"
    assert store.health(run_id).whole


@pytest.mark.parametrize("command", ["run", "version"])
def test_a_command_whose_terminal_vanished_ends_without_a_word(folder: Path, command: str) -> None:
    master, slave = pty.openpty()
    (folder / "quick.yaml").write_text(SLOW)
    (folder / "quick.replies.yaml").write_text("replies: {ask: [{text: Hello.}]}\n")
    arguments = ["run", "quick.yaml", "--session", "q"] if command == "run" else [command]
    os.close(master)
    with (folder / "said.txt").open("wb") as said:
        done = subprocess.run(
            [*WORKBENCH, *arguments], stdin=slave, stdout=slave, stderr=said, cwd=folder, timeout=PATIENCE, check=False
        )
    os.close(slave)
    assert "Input/output" not in (folder / "said.txt").read_text()
    assert done.returncode == 129
    if command == "run":
        store = Store(folder / ".workbench")
        assert store.summary(store.find("q")).status in ("success", "stopped")


@pytest.mark.fault("F28", "F29")
def test_nothing_hostile_reaches_a_real_terminal(terminal: Terminal, folder: Path) -> None:
    """What tmux holds afterwards is what its terminal was told: title, clipboard, screen, and not one control byte."""
    evil = (
        "\\u001b]0;owned\\u0007\\u001b]52;c;b3duZWQ=\\u0007\\u001b[2J\\u001b[31m[@click=app.quit]x[/]\\u202e\\u0000[/]"
    )
    replies = '{"replies": {"ask": [{"text": "' + evil + 'shown"}]}}'
    (folder / "evil.yaml").write_text(f'cascade_id: evil\nphases:\n  - name: "ask"\n    instructions: "{evil}told"\n')
    (folder / "evil.replies.yaml").write_text(replies)
    terminal.run("open", "evil.yaml", "--session", "e")
    terminal.until("NOT RUN", "Offline (")
    terminal.press("r")
    shown = terminal.until(" DONE ", "@click=app.quit")
    assert "[@click=app.quit]x[/]" in shown
    assert "[/]" in shown
    assert terminal.ask("display-message", "-p", "#{pane_title}").strip() != "owned"
    assert "owned" not in terminal.ask("list-buffers")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)
    terminal.press("q")
    terminal.until("rc=0")
    for command in (("show", "e"), ("context", "e", "--text")):
        terminal.run(*command)
        text = terminal.until("rc=0")
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
    assert terminal.ask("display-message", "-p", "#{pane_title}").strip() != "owned"
