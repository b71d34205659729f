"""The app in a real terminal, as a person meets it: few walks, each a long way."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path

import pytest

from tests.terminal.conftest import PROMPT, Terminal
from workbench.store.store import Store

ATTRIBUTES = {"", *map(str, range(10)), *map(str, range(21, 30)), "39", "49"}
"""Codes of a terminal that set no colour: bold, dim, underlined, reversed, and their ends."""

SIZES = ((60, 20), (80, 24), (200, 50))

TAKES_SIGNAL = """
import ctypes, signal, threading, time
def take():
    while not callable(signal.getsignal(signal.SIGTSTP)):
        time.sleep(0.01)
    ctypes.pythonapi.PyOS_setsig.argtypes = [ctypes.c_int, ctypes.c_void_p]
    ctypes.pythonapi.PyOS_setsig(signal.SIGTSTP, 1)
threading.Thread(target=take, daemon=True).start()
from workbench.__main__ import main
main()
"""
"""``workbench`` where native code ignores Ctrl+Z from when the app handles it, as the import of the SQL engine does."""


def step(terminal: Terminal, *texts: str) -> str:
    """Press n and wait for the next hold."""
    terminal.press("n")
    return terminal.until("PAUSED before", *texts)


@pytest.mark.fault("F3", "F5")
def test_saves_are_seen_and_signals_leave_a_whole_terminal_and_a_run_that_can_go_on(
    terminal: Terminal, folder: Path
) -> None:
    terminal.run("open", "log_triage.yaml", "--session", "s", env="TERM=dumb")
    terminal.until("cannot draw the app; use `workbench run log_triage.yaml`", "rc=2")
    terminal.execute(sys.executable, "-c", TAKES_SIGNAL, "open", "log_triage.yaml", "--session", "s")
    terminal.until("NOT RUN", "noise")
    step(terminal, "intake · turn 1/3")
    save_in_every_way(terminal, folder / "log_triage.yaml")
    step(terminal, "intake · turn 2/3")

    terminal.press("C-z")
    terminal.until("Stopped", PROMPT)
    assert terminal.is_restored
    terminal.type("clear; fg")
    terminal.press("Enter")
    step(terminal, "triage · turn 1/8")
    terminal.press("q")
    terminal.until("A run is active")

    terminal.kill(signal.SIGTERM)
    terminal.until(PROMPT, gone="intake · turn")
    terminal.type("echo code=$?")
    terminal.press("Enter")
    terminal.until("code=143")
    assert terminal.is_restored
    store = Store(folder / ".workbench")
    ended = store.summary(store.find("s"))
    assert (ended.status, ended.reason) == ("stopped", "the app was ended")


def save_in_every_way(terminal: Terminal, file: Path) -> None:
    """Save an open file however an editor saves: in place, renamed over, broken, and moved away and written slowly."""
    good = file.read_text("utf-8")
    file.write_text(good.replace("At most eight lines.", "At most nine lines."), "utf-8")
    terminal.until("●", "File reloaded: intake changed")

    beside = file.with_name(".log_triage.yaml.new")
    beside.write_text(good.replace("  - name: noise", "  - name: quiet").replace("target: noise", "target: quiet"))
    beside.replace(file)
    terminal.until("○ quiet ●")

    file.write_text(good.replace("handoffs:", "handoffs: [", 1), "utf-8")
    terminal.until("the last good version stays", "○ quiet")

    file.rename(file.with_name("log_triage.yaml~"))
    with file.open("w", encoding="utf-8") as slow:
        for start in range(0, len(good), 512):
            slow.write(good[start : start + 512])
            slow.flush()
        os.fsync(slow.fileno())
    terminal.until("○ noise ●", gone="○ quiet")


@pytest.mark.fault("F1")
def test_a_killed_app_offers_its_run_and_goes_on_where_it_stopped(terminal: Terminal, folder: Path) -> None:
    terminal.run("open", "log_triage.yaml", "--session", "s")
    terminal.until("NOT RUN")
    step(terminal, "intake · turn 1/3")
    step(terminal, "intake · turn 2/3")
    terminal.kill(signal.SIGKILL)
    terminal.until("Killed", PROMPT)
    terminal.type("reset")
    terminal.press("Enter")
    store = Store(folder / ".workbench")
    run_id = store.find("s")
    before = list(store.events(run_id))
    assert store.summary(run_id).status == "interrupted"

    terminal.run("open", "log_triage.yaml")
    terminal.until("Resume it")
    terminal.read()
    terminal.press("Enter")
    terminal.until("PAUSED before", "intake · turn 2/3")
    terminal.press("c")
    terminal.until(" DONE ")
    terminal.press("q")
    terminal.until("rc=0")
    after = list(store.events(run_id))
    assert after[: len(before)] == before
    assert [event.kind for event in after].count("run_resumed") == 1
    assert store.state(run_id).output.startswith("# checkout down for six seconds")


def test_an_example_is_stepped_edited_and_run_to_its_end_at_every_size_and_without_colours(
    terminal: Terminal, folder: Path
) -> None:
    editor = editor_of(folder)
    terminal.resize(*SIZES[0])
    terminal.run("open", "log_triage.yaml", env=f"NO_COLOR=1 VISUAL= EDITOR={editor}")
    for columns, lines in SIZES:
        terminal.resize(columns, lines)
        fits(terminal, columns, "intake · not run yet", "n step", "help", "quit")
    assert all(name in terminal.text() for name in ("NOT RUN", "triage", "crash"))
    step(terminal, "intake · turn 1/3")
    edit_in_the_editor(terminal, folder)
    step(terminal, "intake · turn 2/3")
    for columns, lines in reversed(SIZES):
        terminal.resize(columns, lines)
        spent = ("1 call",) if columns > 60 else ("offline", "~$0.00004")
        fits(
            terminal,
            columns,
            *spent,
            "PAUSED before intake:2",
            "sends ~",
            "Tool result: read_file",
            "n step",
            "q quit",
        )
        coloured = terminal.text(colours=True)
        codes = {code for found in re.findall(r"\x1b\[([\d;]*)m", coloured) for code in found.split(";")}
        assert codes <= ATTRIBUTES, "NO_COLOR leaves no colour"
        assert {"1", "7"} <= codes, "bold and reversed text stay"
    terminal.resize(120, 40)
    for turn in range(1, 5):
        step(terminal, f"triage · turn {turn}/8")
    masked = terminal.until("◌", "age")
    assert "masked" in masked
    terminal.press("g", "p")
    terminal.until("Why")
    terminal.press("w")
    terminal.until('"messages"')
    terminal.press("c")
    terminal.until(" DONE ")
    terminal.press("4")
    terminal.until("checkout down for six seconds")
    terminal.press("q")
    terminal.until("rc=0", PROMPT)
    assert terminal.is_restored


def editor_of(folder: Path) -> Path:
    """A program that an editor is: it replaces the file that it is given."""
    program = folder / "editor.sh"
    lines = (
        "#!/bin/sh",
        "for file; do :; done",
        'printf "By hand: %s\\n" "$(cat "$file")" > "$file.new"',
        'mv "$file.new" "$file"',
    )
    program.write_text("\n".join(lines) + "\n")
    program.chmod(0o755)
    return program


def edit_in_the_editor(terminal: Terminal, folder: Path) -> None:
    """Edit a message of the call that is held in the editor of the environment, which has the terminal meanwhile."""
    terminal.press("E")
    terminal.until("Edit  before intake:1", "You prepare the triage")
    terminal.press("C-e")
    terminal.until("By hand: You prepare the triage", "1 edit")
    terminal.press("C-s")
    terminal.until("+ By hand: You prepare the triage", "− You prepare the triage")
    terminal.press("C-s")
    terminal.until("PAUSED before", "changed by hand")
    assert not any((folder / "state").rglob("edit-*")), "the file that the editor had is gone"


def fits(terminal: Terminal, columns: int, *texts: str) -> None:
    """Wait until the app is drawn over a whole width, and no further, with all the texts."""

    def is_drawn(shown: str) -> bool:
        width = max(map(len, shown.splitlines()))
        return columns - 2 <= width <= columns and all(text in shown for text in texts)

    terminal.wait(is_drawn, (columns, *texts))


def test_attach_opens_the_app_and_its_program_has_a_pane_of_its_own(terminal: Terminal, folder: Path) -> None:
    (folder / "ask.py").write_text(
        "import json, os, urllib.request\n"
        "body = {'model': 'm', 'messages': [{'role': 'user', 'content': input('Your question? ')}]}\n"
        "url = os.environ['OPENAI_BASE_URL'] + '/chat/completions'\n"
        "asked = urllib.request.Request(url, json.dumps(body).encode(), {'Content-Type': 'application/json'})\n"
        "print('It said:', json.load(urllib.request.urlopen(asked))['choices'][0]['message']['content'])\n"
        "raise SystemExit(3)\n"
    )
    (folder / "said.yaml").write_text("replies: {agent: [{text: scripted words}]}\n")

    def program() -> str:
        return terminal.ask("capture-pane", "-p", "-t", ":.1")

    terminal.run("attach", "--offline", "--replies", "said.yaml", "--", sys.executable, "ask.py")
    terminal.wait(lambda _: len(terminal.ask("list-panes").splitlines()) == 2, "the pane of the program")
    terminal.wait(lambda _: bool(program().strip()), "the program")
    assert "Your question?" in program()
    terminal.until("The program has made no model call yet.", gone="the default:")
    terminal.ask("send-keys", "-t", ":.1", "Who goes there?", "Enter")
    terminal.wait(lambda _: "It said: scripted words" in program() and "exit code 3" in program(), "its answer")
    terminal.until("FAILED", "agent", gone="x stop")
    terminal.press("4")
    terminal.until("scripted words")
    terminal.press("n")
    terminal.until("workbench attach runs the program again", gone="Run again?")
    terminal.press("q")
    terminal.until("rc=0", PROMPT)
    terminal.ask("send-keys", "-t", ":.1", "Enter")
    terminal.wait(lambda _: len(terminal.ask("list-panes").splitlines()) == 1, "the pane closed")
