"""Watches a process from outside while a function of its user's runs in it: one that never lets Python go on (a regular
expression, a library in C) keeps every signal and every time limit of that process waiting.

It is a program of its own (run by path, standard library only), started by ``calling.py``. Lines on stdin:

``+ID LIMIT LABEL``  a call has begun; ``LIMIT`` in seconds
``=ID``              Python goes on
``-ID``              the call is over

Where Python has not gone on for five seconds, or for two when Ctrl+C was pressed, it says which call keeps it, and that
Ctrl+C ends the process: by SIGKILL, the only thing that does. Where nobody presses it, the process is ended after the
limit of the call: ten seconds after it if no terminal could send a Ctrl+C, else ten minutes.
"""

import contextlib
import fcntl
import os
import select
import signal
import sys
import termios
import time
from typing import Any

SILENT_S, ASKED_S, LATE_S, ABSENT_S = 5.0, 2.0, 10.0, 600.0
LOOK_S = 0.25
PLAIN_KEYS, FORMER_KEYS = "\x1b[>0u", "\x1b[<u"
"""Has a terminal that encodes keys send Ctrl+C as ever, and takes that back."""
LEAVE = "".join(f"\x1b[?{mode}l" for mode in (1000, 1002, 1003, 1006, 1015, 1004, 2004, 2048, 1049)) + "\x1b[?25h"
"""What an app that could not end in order leaves on in a terminal, off: mouse, focus, paste, sizes, keys, screen."""


class Terminal:
    """The terminal of this group of processes, if there is one and it is theirs at the moment."""

    def __init__(self) -> None:
        self.file = -1
        with contextlib.suppress(OSError):
            self.file = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)

    @property
    def is_ours(self) -> bool:
        with contextlib.suppress(OSError):
            return self.file >= 0 and os.tcgetpgrp(self.file) == os.getpgrp()
        return False

    @property
    def is_drawn_on(self) -> bool:
        """Returns whether an app reads each key itself, Ctrl+C too."""
        with contextlib.suppress(termios.error):
            return self.is_ours and not termios.tcgetattr(self.file)[3] & termios.ISIG
        return False

    def keys(self, *, interrupt: bool) -> None:
        """Have Ctrl+C sent as a signal, or leave it to the app."""
        with contextlib.suppress(termios.error):
            mode = termios.tcgetattr(self.file)
            mode[3] = mode[3] | termios.ISIG if interrupt else mode[3] & ~termios.ISIG
            termios.tcsetattr(self.file, termios.TCSANOW, mode)
        self.write(PLAIN_KEYS if interrupt else FORMER_KEYS)

    def restore(self) -> None:
        """Make it fit for a shell."""
        self.write(FORMER_KEYS + LEAVE)
        with contextlib.suppress(termios.error):
            mode = termios.tcgetattr(self.file)
            mode[0] |= termios.ICRNL | termios.IXON
            mode[1] |= termios.OPOST | termios.ONLCR
            mode[3] |= termios.ISIG | termios.ICANON | termios.ECHO | termios.ECHOE | termios.ECHOK | termios.IEXTEN
            termios.tcsetattr(self.file, termios.TCSANOW, mode)

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            os.write(self.file, text.encode())

    def last_line(self, text: str) -> None:
        """Write over the last line of what is drawn."""
        columns = 80
        with contextlib.suppress(OSError):
            columns = os.get_terminal_size(self.file).columns
        self.write(f"\x1b7\x1b[999;1H\x1b[0;7m{text[:columns]:{columns}}\x1b[0m\x1b8")


class Watch:
    """The calls of one process."""

    def __init__(self, process: int) -> None:
        self.process = process
        self.calls: dict[str, dict[str, Any]] = {}
        self.terminal = Terminal()
        self.asked = 0.0
        """When Ctrl+C was pressed last; 0 where Python has gone on since."""
        self.told = False
        self.drawn = False
        """Whether it was told over an app."""

    def line(self, text: str) -> None:
        now = time.monotonic()
        identity, _, rest = text[1:].partition(" ")
        if text.startswith("+"):
            limit, _, label = rest.partition(" ")
            shown = "".join(letter if letter.isprintable() else "?" for letter in label)
            self.calls[identity] = {"label": shown, "began": now, "limit": float(limit)}
        elif text.startswith("-"):
            self.calls.pop(identity, None)
        for call in self.calls.values():  # One line of whichever call: Python goes on.
            call["heard"] = now
        self.asked = 0.0
        if self.told:
            self.told = False
            if self.drawn:
                self.terminal.keys(interrupt=False)

    def look(self) -> None:
        """Say that a call keeps Python, and end what nobody can."""
        now = time.monotonic()
        allowed = ASKED_S if self.asked else SILENT_S
        kept = [call for call in self.calls.values() if now - call["heard"] >= allowed]
        if not kept:
            return
        names = ", ".join(call["label"] for call in kept)
        if not self.told:
            self.told, self.drawn, self.asked = True, self.terminal.is_drawn_on, 0.0
            if self.drawn:
                self.terminal.last_line(f"{names} keeps Python busy, nothing else can go on: Ctrl+C ends the app")
                self.terminal.keys(interrupt=True)
            else:
                how = "Ctrl+C ends this program" if self.terminal.is_ours else "it ends this program after its limit"
                say(f"{names} keeps Python busy, so that nothing else can go on: {how}")
        elif self.asked or all(now > one["began"] + one["limit"] + self.late for one in kept):
            os.kill(self.process, signal.SIGKILL)
            why = f"ended, because {names} kept Python busy; what was recorded is kept, see workbench runs"
            if self.drawn:
                self.terminal.restore()
                self.terminal.write(f"\n{why}\n")
            else:
                say(why)
            os._exit(0)

    @property
    def late(self) -> float:
        """Seconds after its limit at which a call is ended that nobody ends."""
        return ABSENT_S if self.terminal.is_ours else LATE_S

    def interrupted(self, *_: object) -> None:
        if self.calls:
            self.asked = time.monotonic()


def say(text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"\n{text}\n".encode())


def main() -> None:
    watch = Watch(int(sys.argv[1]))
    for number in (signal.SIGTTOU, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # It ends with the process that it watches.
    signal.signal(signal.SIGINT, watch.interrupted)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])  # Blocked so far by whoever started this.
    fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_NONBLOCK)
    pending = b""
    while os.getppid() == watch.process:
        if select.select([0], [], [], LOOK_S if watch.calls else 60.0)[0]:
            data = os.read(0, 1 << 16)
            if not data:
                return
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                watch.line(line.decode(errors="replace"))
        watch.look()


if __name__ == "__main__":
    main()
