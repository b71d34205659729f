"""A command beside the app gets a pane of tmux where both have room."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from workbench.tui.screens.too_small import SMALLEST
from workbench.workspace.attach_serving import CannotStart
from workbench.workspace.own_terminal import SHARE, opens_unasked, run_in_terminal


@pytest.mark.parametrize("lines", range(10, 60))
def test_a_pane_opens_unasked_only_where_the_app_keeps_the_lines_that_it_needs(lines: int) -> None:
    left = lines - lines * SHARE // 100 - 1
    assert opens_unasked({"TMUX": "/tmp/tmux-0/default,1,0"}, lines) is (left >= SMALLEST.height)
    assert not opens_unasked({}, lines)


async def test_a_terminal_that_does_not_open_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "term"
    program.write_text("#!/bin/sh\necho starting >&2\necho cannot open display: $DISPLAY >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.delenv("TMUX", raising=False)
    monkeypatch.setenv("DISPLAY", ":99")
    monkeypatch.setenv("TERMINAL", str(program))
    with pytest.raises(CannotStart, match=r"^no terminal came up: \S+/term -e: cannot open display: :99$"):
        await run_in_terminal(["true"], {}, tmp_path)


async def test_a_command_has_its_folder_and_variables_in_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "term"
    program.write_text('#!/bin/sh\nshift\n"$@" &\n')
    program.chmod(0o755)
    monkeypatch.delenv("TMUX", raising=False)
    monkeypatch.setenv("DISPLAY", ":99")
    monkeypatch.setenv("TERMINAL", str(program))
    assert await run_in_terminal(["sh", "-c", 'echo "$SAID" > said; exit 3'], {"SAID": "here"}, tmp_path) == 3
    assert (tmp_path / "said").read_text() == "here\n"


def test_what_a_new_terminal_runs_loads_nothing_else_of_the_workbench() -> None:
    code = "import sys, workbench.workspace.terminal_program; print([*filter(lambda m: 'workbench' in m, sys.modules)])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told == "['workbench', 'workbench.workspace', 'workbench.workspace.terminal_program']\n"
