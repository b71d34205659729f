"""The program in a terminal that was opened for a command: ``python -m workbench.workspace.terminal_program SOCKET``
asks at the socket for the command and its environment, which so stand in no file and in no list of processes, and tells
there how it ended.

It imports nothing else of the workbench: that would take a second of a core, and many on a busy machine, while somebody
waits for the terminal.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress

PATIENCE = 3.0
"""Seconds that a program gets to end after it was asked to."""


def main(address: str) -> None:
    """Run the command that is told at a socket, in this terminal."""
    line = socket.socket(socket.AF_UNIX)
    line.connect(address)
    with line.makefile("rb") as reading:
        asked = json.loads(reading.readline())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        child = subprocess.Popen(
            asked["command"],
            env=asked["env"],
            cwd=asked["folder"],
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
    except OSError as fault:
        line.sendall(f"fault '{asked['command'][0]}' cannot be run: {fault.strerror}\n".encode())
        return
    threading.Thread(target=_ends_with, args=(line, child), daemon=True).start()
    code = child.wait()
    code = code if code >= 0 else 128 - code
    with suppress(OSError):
        line.sendall(f"code {code}\n".encode())
    with suppress(EOFError, KeyboardInterrupt):
        input(f"\n[ended with exit code {code}; Enter closes this terminal]")


def _ends_with(line: socket.socket, child: subprocess.Popen[bytes]) -> None:
    """End a program whose session of attach has ended."""
    with suppress(OSError):
        line.recv(1)
    if child.poll() is not None:
        return
    child.terminate()
    try:
        child.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        child.kill()


if __name__ == "__main__":
    main(sys.argv[1])
