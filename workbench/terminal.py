"""The terminal around the app: is there one, who may write to it, and what its signals mean."""

from __future__ import annotations

import errno
import io
import os
import select
import signal
import sys
import termios
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from types import FrameType

    from _typeshed import ReadableBuffer

SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def why_not(env: Mapping[str, str] = os.environ, instead: str = "workbench run FILE") -> str | None:
    """Returns why the app cannot draw here, naming the command to use ``instead``; None when it can."""
    if on_web(env):
        return None
    if not (sys.stdin is not None and sys.stdin.isatty() and sys.stdout is not None and sys.stdout.isatty()):
        return f"error: the app needs a terminal; without one use `{instead}`"
    if env.get("TERM", "") in ("", "dumb", "unknown"):
        return f"error: the terminal '{env.get('TERM', '')}' cannot draw the app; use `{instead}`"
    return None


def forget_exported_size() -> None:
    """Drop ``COLUMNS`` and ``LINES`` where the terminal itself knows its size: exported, they would hold the app at one
    size for ever."""
    try:
        known = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        return
    if known.columns and known.lines and not on_web(os.environ):
        for name in ("COLUMNS", "LINES"):
            os.environ.pop(name, None)


def on_web(env: Mapping[str, str]) -> bool:
    """Returns whether a server draws the app in a browser: it reads and writes pipes, and there is no terminal."""
    return env.get("TEXTUAL_DRIVER", "").endswith(":WebDriver")


@contextmanager
def own_screen(log: Path) -> Iterator[None]:
    """Give the app a private way to the terminal; whatever else writes to fd 1 or 2 goes to ``log``.

    Textual draws on ``sys.__stderr__`` and asks ``sys.__stdout__`` for the size; native libraries and child processes
    write to the descriptors themselves.
    """
    kept = {number: os.dup(number) for number in (1, 2)}
    way = io.BufferedWriter(_TerminalOutput(os.dup(kept[1])))
    screen = io.TextIOWrapper(way, encoding="utf-8", errors="replace", newline="")
    before = sys.__stdout__, sys.__stderr__
    sink = _opened(log)
    try:
        sys.stdout.flush()
        sys.stderr.flush()
        for number in (1, 2):
            os.dup2(sink, number)
        sys.__stdout__ = sys.__stderr__ = screen  # type: ignore[misc]
        yield
    finally:
        sys.__stdout__, sys.__stderr__ = before  # type: ignore[misc]
        for number, descriptor in kept.items():
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.close(sink)
        screen.close()


class _TerminalOutput(io.RawIOBase):
    """A descriptor of a terminal to write to. What is written after the terminal has vanished goes nowhere: the thread
    that draws would end at the error, and the app would wait for it for ever instead of ending in order."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return os.write(self._descriptor, data)
        except OSError as fault:
            if fault.errno not in (errno.EIO, errno.ENXIO, errno.EPIPE):
                raise
            return memoryview(data).nbytes

    def close(self) -> None:
        if not self.closed:
            super().close()
            os.close(self._descriptor)


def _opened(log: Path) -> int:
    """The app starts although no log can be written."""
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        return os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)


def is_gone() -> bool:
    """Returns whether the terminal has vanished without a signal: a closed window whose process had no part in its
    session."""
    return any(map(_hung_up, (0, 1, 2)))


def is_unread() -> bool:
    """Returns whether somebody read what this process writes to a pipe, and has gone away."""
    poll = select.poll()
    for descriptor in (1, 2):
        poll.register(descriptor, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def _hung_up(descriptor: int) -> bool:
    """A terminal whose other end was closed answers every question with EIO; what is none, with ENOTTY."""
    try:
        termios.tcgetattr(descriptor)
    except termios.error as fault:
        return bool(fault.args) and fault.args[0] in (errno.EIO, errno.ENXIO)
    return False


def watch(loop: AbstractEventLoop, gone: Callable[[], object], stop: threading.Event) -> None:
    """Look every second whether the terminal has vanished, in a thread of its own: an app that waits for a dead one to
    take its output looks at nothing. Then ``gone`` is called, in the app's loop if that still runs, and the process
    ends soon in any case.

    With SIGHUP comes SIGCONT, at which Textual would begin to read the dead terminal in a second thread, forget the
    first one, and leave it to spin for ever: a terminal that is gone resumes nothing.
    """
    resume = signal.getsignal(signal.SIGCONT)

    def go_on(number: int, frame: FrameType | None) -> None:
        if callable(resume) and not is_gone():
            resume(number, frame)

    def look() -> None:
        while not stop.wait(1.0):
            if is_gone():
                _end_soon()
                with suppress(RuntimeError):  # The loop has ended meanwhile.
                    loop.call_soon_threadsafe(gone)
                return

    signal.signal(signal.SIGCONT, go_on)
    threading.Thread(target=look, name="terminal", daemon=True).start()


def _end_soon() -> None:
    """End the process in eight seconds, even if leaving the screen, which is no longer there, never comes to an end."""
    timer = threading.Timer(8.0, os._exit, (128 + signal.SIGHUP,))
    timer.daemon = True
    timer.start()


def on_signals(loop: AbstractEventLoop, handler: Callable[[int], None]) -> None:
    """Call ``handler`` with the number when the process should end: Textual would leave the terminal broken."""

    def end(number: int) -> None:
        if number == signal.SIGHUP:
            _end_soon()
        handler(number)

    for number in SIGNALS:
        loop.add_signal_handler(number, end, int(number))


def off_signals(loop: AbstractEventLoop) -> None:
    """Take the handlers away again."""
    for number in SIGNALS:
        loop.remove_signal_handler(number)
