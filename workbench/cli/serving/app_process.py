"""The process behind a page: the app, which ends with the server, however that ends."""

from __future__ import annotations

import os
import signal
import threading
import time

from workbench.__main__ import main as run

LOOK_AGAIN = 1.0
"""Seconds between two looks at whether the server is there."""
LEAVE = 10.0
"""Seconds that the app gets to stop its run and end."""


def main() -> None:
    """Run the command line of this process, as ``workbench`` does."""
    threading.Thread(target=_follow, args=(os.getppid(),), name="server", daemon=True).start()
    run()


def _follow(server: int) -> None:
    """End with the server: if it was killed, it ended no process, and without it the app gets no key."""
    while os.getppid() == server:
        time.sleep(LOOK_AGAIN)
    os.kill(os.getpid(), signal.SIGHUP)
    time.sleep(LEAVE)
    os.killpg(0, signal.SIGKILL)
