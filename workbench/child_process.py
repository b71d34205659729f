"""Processes that work for another one of ours: how many, their start, their first steps, and their end in words."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess


def cores() -> int:
    """Returns how many processes run at a time on this machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def may_fork() -> bool:
    """Returns whether this process may be forked now, which is safe while it has one thread; chDB has some that Python
    does not see. A fork has at once what its parent has loaded."""
    return sys.platform == "linux" and threading.active_count() == 1 and "chdb" not in sys.modules


def fork_server(*modules: str) -> ForkServerContext:
    """Returns the context of processes that are forks of a server: a process with one thread, which has loaded
    ``modules`` once. It is for where this one may not be forked: each process that Python spawns loads them anew, which
    takes some 0.7 s. The server starts with the first process and ends with this one."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*modules])
    return context


@contextmanager
def deaf_to_interrupts() -> Iterator[None]:
    """Processes that start in this block inherit that SIGINT is blocked: Ctrl+C at a terminal reaches them too, before
    they can say that they ignore it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def exit_words(code: int) -> str:
    """Returns how a process ended: ``SIGKILL``, or ``exit code 3``."""
    return signal.Signals(-code).name if -code in signal.valid_signals() else f"exit code {code}"


def fault_words(fault: Exception) -> str:
    """Returns what a person is told of a fault: its message where it is one of ours, else its type, too."""
    own = type(fault).__module__.startswith("workbench.") and str(fault)
    return str(fault) if own else f"{type(fault).__name__}: {fault}"


def follow_parent() -> None:
    """Leave Ctrl+C to the parent, and end with it, also where it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)
