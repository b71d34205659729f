"""The progress of a run on a terminal: what moves, and when it stands still."""

from __future__ import annotations

import io
import sys

import pytest

from workbench.cli.progress import Progress

HIDDEN, SHOWN = "\x1b[?25l", "\x1b[?25h"
"""The cursor is hidden while a line moves."""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_moving_line_stands_still_while_a_person_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with Progress() as progress:
        with progress.person():
            asked = terminal.getvalue()
        answered = terminal.getvalue().removeprefix(asked)
    assert asked.rfind(SHOWN) > asked.rfind(HIDDEN) >= 0
    assert HIDDEN in answered
