"""Answers worked out ahead, in processes forked off this one, so that they take other cores than what goes on here."""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

_WORKERS = 4
"""At most so many: each takes memory."""
_SHARE = 40
"""Files for which another worker is worth what it has to get ready: a process that renders templates, perhaps."""
_PAUSE_S = 0.02
"""Seconds between two times that answers are told: who awaits each one by itself is woken more often than it works."""
_LAST = 16
"""Files, the answers for which are told at once: who awaits them has nothing else to do, and all else is done."""
_ALL = -1
"""Stands for the number of a file where all have been answered."""


class Ahead:
    """A process that gets ready at once, and is then asked about files, a row at a time; it shares them out.

    It ends with this process, whatever ends that, and never later than ``stop``.
    """

    def __init__(self, child: int, questions: int, answers: int) -> None:
        self._child = child
        self._questions = questions
        self._answers = answers
        self._parent = os.getpid()
        self._modules = _own_modules()
        self._row = 0
        self._asked: set[Path] = set()
        self._waiting: dict[Path, int] = {}
        self._known: dict[int, str | None] = {}
        self._unread = b""

    @classmethod
    def start(cls, prepare: Callable[[], None], answer: Callable[[Path], str]) -> Ahead | None:
        """None where a fork is not safe, gains nothing, or would not be seen by who is watching this process."""
        if not _may_fork():
            return None
        parent, pipes = os.getpid(), list[int]()
        try:
            pipes += os.pipe()
            pipes += os.pipe()
            gc.freeze()  # What was imported by now stays; neither side need look through it again.
            child = os.fork()
        except OSError:
            _close(pipes)
            return None
        questions, asking, answers, telling = pipes
        if not child:
            try:
                _leave(parent, questions, telling)
                prepare()
                _serve(questions, telling, answer)
            finally:
                os._exit(0)  # What began in the parent ends there, and what goes wrong here is no answer.
        os.setpgid(child, child)  # For its end, and so that Ctrl-C in a terminal is the parent's alone.
        _close([questions, telling])
        return cls(child, asking, answers)

    def asked(self, file: Path) -> bool:
        """Whether the process was ever asked about a file: it has one answer for each."""
        return file in self._asked

    def ask(self, files: Sequence[Path]) -> None:
        """Have the answers for these files made. Not if they might be others here by now: where more of this package
        has been imported, somebody uses it in this process, and a tracer wants to see what happens."""
        self._asked.update(files)
        self._waiting = {}
        if os.getpid() != self._parent or _own_modules() != self._modules or _watched():
            return
        try:
            question = {
                "row": self._row + 1,
                "files": [str(file) for file in files],
                "folder": str(Path.cwd()),
                "environment": dict(os.environ),
                "path": [str(entry) for entry in sys.path],
            }
            _write(self._questions, json.dumps(question).encode() + b"\n")
        except OSError:
            return  # Nobody is there to be asked any more, or the current folder is gone.
        self._row += 1
        self._known = {}
        self._waiting = {file: number for number, file in enumerate(files)}

    def take(self, file: Path) -> str | None:
        """The answer for a file, awaited; None where there is none."""
        if os.getpid() != self._parent or threading.current_thread() is not threading.main_thread():
            return None
        if (number := self._waiting.pop(file, None)) is None:
            return None
        while number not in self._known and _ALL not in self._known:
            self._read()
        return self._known.pop(number, None)

    def _read(self) -> None:
        arrived = os.read(self._answers, 1 << 16)
        *lines, self._unread = (self._unread + arrived).split(b"\n")
        for row, number, text in map(json.loads, lines):
            if row == self._row:
                self._known[number] = text
        if not arrived:
            self._known[_ALL] = None

    def stop(self) -> None:
        """End the process and those that it began."""
        if os.getpid() != self._parent:
            return
        _close([self._questions, self._answers])
        with suppress(ChildProcessError):  # Somebody waited for any child whatever.
            if os.waitpid(self._child, os.WNOHANG) == (0, 0):
                os.killpg(self._child, signal.SIGKILL)
                os.waitpid(self._child, 0)


def _may_fork() -> bool:
    """One thread is what makes a fork safe, another core is what makes it worth it."""
    if sys.platform != "linux" or _watched():
        return False
    return len(os.sched_getaffinity(0)) > 1 and _is_single()


def _is_single() -> bool:
    """Whether this process has one thread only, native ones included."""
    try:
        return len([*Path("/proc/self/task").iterdir()]) == 1
    except OSError:
        return False


def _watched() -> bool:
    """Whether a debugger, a profiler or a measurement of coverage follows what runs in this process."""
    monitoring = getattr(sys, "monitoring", None)  # Since Python 3.12.
    named = monitoring is not None and any(monitoring.get_tool(number) for number in range(6))
    return named or sys.gettrace() is not None or sys.getprofile() is not None


def _own_modules() -> set[str]:
    return {name for name in sys.modules if name.startswith("workbench.")}


def _close(ends: Sequence[int]) -> None:
    for end in ends:
        os.close(end)


def _write(end: int, lines: bytes) -> None:
    """Raises OSError."""
    while lines:
        lines = lines[os.write(end, lines) :]


# -- in the process ---------------------------------------------------------------------------------------------------


def _leave(parent: int, *ends: int) -> None:
    """Have nothing more to do with the parent but by these ends of pipes: no terminal, no file of its."""
    _stay_while(parent)
    null = os.open(os.devnull, os.O_RDWR)
    for open_one in [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]:
        if open_one in (0, 1, 2):
            os.dup2(null, open_one)
        elif open_one not in ends:
            with suppress(OSError):  # The listing's own is closed already.
                os.close(open_one)
    sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__


def _stay_while(parent: int) -> None:
    """Look once a second whether the parent is still there, in the middle of whatever is going on."""

    def look(*_: object) -> None:
        if os.getppid() != parent:
            os._exit(1)

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, 1, 1)


def _serve(questions: int, telling: int, answer: Callable[[Path], str]) -> None:
    unread = b""
    while arrived := os.read(questions, 1 << 16):
        *lines, unread = (unread + arrived).split(b"\n")
        for question in map(json.loads, lines):
            _answer_all(question, telling, answer)


def _answer_all(question: Mapping[str, Any], telling: int, answer: Callable[[Path], str]) -> None:
    os.chdir(question["folder"])
    os.environ.clear()
    os.environ.update(question["environment"])
    sys.path[:] = question["path"]
    parent, row, files = os.getpid(), question["row"], question["files"]

    def tell(share: Iterable[int]) -> None:
        told, due = b"", time.monotonic() + _PAUSE_S
        for number in share:
            line = _line([row, number, answer(Path(files[number]))])
            if len(told) + len(line) > select.PIPE_BUF:
                _write(telling, told)
                told = b""
            told += line
            if time.monotonic() >= due or number >= len(files) - _LAST:
                _write(telling, told)
                told, due = b"", time.monotonic() + _PAUSE_S
        _write(telling, told)

    tell(range(1))  # What the first one gets ready serves all of them.
    place = os.memfd_create("place")
    gc.freeze()
    count = min(_WORKERS, len(os.sched_getaffinity(0)), 1 + len(files) // _SHARE) if _is_single() else 1
    others = []
    for _ in range(1, count):
        if not (other := os.fork()):
            try:
                _stay_while(parent)
                tell(_untaken(place, len(files)))
            finally:
                os._exit(0)
        others.append(other)
    tell(_untaken(place, len(files)))
    for other in others:
        os.waitpid(other, 0)
    os.close(place)
    _write(telling, _line([row, _ALL, None]))


def _untaken(place: int, count: int) -> Iterator[int]:
    """The numbers from 1 to below ``count``, each for the process that comes first: forks share the position in an open
    file, and the system moves it for one of them at a time."""
    while (number := os.lseek(place, 1, os.SEEK_CUR)) < count:
        yield number


def _line(answer: list[Any]) -> bytes:
    """An answer, or that there is none where it is too long to be told in one piece: several processes tell."""
    line = json.dumps(answer).encode() + b"\n"
    return line if len(line) <= select.PIPE_BUF else _line([*answer[:-1], None])
