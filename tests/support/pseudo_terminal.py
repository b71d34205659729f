"""A process on a terminal of its own, without tmux: what it writes is kept as bytes."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.descriptors import is_readable
from tests.support.waiting import PATIENCE

ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


class PseudoTerminal:
    """What a process wrote to its terminal, and the keys it gets."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process = process
        self.output = b""
        self._master = master

    @property
    def text(self) -> str:
        """What was written so far, without the sequences that move and colour."""
        return ESCAPES.sub(b"", self.output).decode("utf-8", "replace")

    def until(self, *texts: str, patience: float = PATIENCE) -> str:
        """Read until all texts were written; the text so far. Raises AssertionError when they do not come."""
        give_up = time.monotonic() + patience
        while not all(text in self.text for text in texts):
            assert self._read(give_up), f"{texts} never came:\n{self.text[-4000:]}"
        return self.text

    def drain(self, patience: float = PATIENCE) -> int:
        """Read until the process closes the terminal; its exit code."""
        give_up = time.monotonic() + patience
        while self._read(give_up):
            pass
        return self.process.wait(max(give_up - time.monotonic(), 1))

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def vanish(self) -> None:
        """Close the terminal under the process; once."""
        if self._master >= 0:
            os.close(self._master)
        self._master = -1

    def _read(self, give_up: float) -> bool:
        """Whether something came before the time (of the monotonic clock) was over."""
        if not is_readable(self._master, max(give_up - time.monotonic(), 0)):
            return False
        try:
            part = os.read(self._master, 65536)
        except OSError:  # Linux says so where every process has closed the terminal.
            return False
        self.output += part
        return bool(part)


@contextmanager
def pseudo_terminal(
    command: Sequence[str],
    folder: Path,
    *,
    size: tuple[int, int] = (100, 30),
    env: Mapping[str, str] = {},
    stderr: int | None = None,
    own_session: bool = True,
) -> Iterator[PseudoTerminal]:
    """Start a command in a folder, on a terminal of ``size`` columns and rows; it is killed at the end."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (size[1], size[0]))
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": str(size[0]), "LINES": str(size[1]), **env},
        stdin=slave,
        stdout=slave,
        stderr=slave if stderr is None else stderr,
        start_new_session=own_session,
    )
    os.close(slave)
    terminal = PseudoTerminal(process, master)
    try:
        yield terminal
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        terminal.vanish()
