"""One key at a time, and none is lost."""

from __future__ import annotations

import os
import pty
import termios

from workbench.cli.snapshot_review import keys_of


def test_a_key_that_is_pressed_before_it_is_asked_for_is_not_lost() -> None:
    ours, theirs = pty.openpty()
    try:
        before = termios.tcgetattr(theirs)
        os.write(ours, b"a")
        with keys_of(theirs) as key:
            os.write(ours, b"d")
            assert key() == "a"
            os.write(ours, b"\x1b[A")
            assert key() == "d"
            assert key() == "\x1b[A"
            os.write(ours, b"\x1b[1;5Ar\x1bOPs\x1b1q")
            for pressed in ("\x1b[1;5A", "r", "\x1bOP", "s", "\x1b1", "q"):
                assert key() == pressed
        assert termios.tcgetattr(theirs) == before
    finally:
        os.close(ours)
        os.close(theirs)
