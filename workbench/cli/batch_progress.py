"""How long work is going, on stderr: one moving line in a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from workbench.cli.printer import talk
from workbench.views.batch import spent_sum
from workbench.views.numbers import seconds

if TYPE_CHECKING:
    from workbench.workspace.batch.running import BatchProgress

P = TypeVar("P")
_MOVES, _EVERY = 0.1, 10.0
"""Seconds between two states of the moving line, and between two lines of a log."""


class ProgressLine(Generic[P]):
    """Takes the progress of a piece of work as it comes. A context manager."""

    def __init__(self, plain: bool, words: Callable[[P], str], *, quiet: bool) -> None:
        """``words`` makes the line of the progress."""
        self._words = words
        self._moving = sys.stderr.isatty() and not plain and not quiet
        self._quiet = quiet
        self._next = 0.0 if self._moving else time.monotonic() + _EVERY
        self._width = 0

    def __enter__(self) -> ProgressLine[P]:
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()

    def say(self, words: str) -> None:
        """A line of its own, also where there is no moving one."""
        self._clear()
        talk(words, "warning")

    def _clear(self) -> None:
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
            self._width = 0

    def __call__(self, progress: P) -> None:
        now = time.monotonic()
        if self._quiet or now < self._next:
            return
        self._next = now + (_MOVES if self._moving else _EVERY)
        words = self._words(progress)
        if not self._moving:
            talk(words, "dim")
            return
        sys.stderr.write("\r" + words.ljust(self._width))
        sys.stderr.flush()
        self._width = len(words)


class BatchLine(ProgressLine["BatchProgress"]):
    """The same for a batch."""

    def __init__(self, plain: bool, *, quiet: bool) -> None:
        super().__init__(plain, progress_words, quiet=quiet)


def progress_words(progress: BatchProgress) -> str:
    """``312/1,000 runs · 2 failed · 41.2/s · $0.12 · 17s left``, with the sum of money that the table shows."""
    parts = [f"{progress.done:,}/{progress.total:,} runs"]
    if progress.failed:
        parts.append(f"{progress.failed:,} failed")
    if progress.rate is not None:
        parts.append(f"{progress.rate:.1f}/s")
    parts.append(spent_sum(progress.spent, progress.predicted, progress.unpriced, estimated=progress.estimated))
    if progress.remaining is not None and progress.done < progress.total:
        parts.append(f"{seconds(progress.remaining)} left")
    return " · ".join(parts)
