"""Runs the shares of work over an archive: in this process, in processes of this machine, or in a cluster."""

from __future__ import annotations

import gc
import pickle
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, Protocol, TypeVar
from weakref import finalize

from msgspec import Struct, field

from workbench.analysis.shares import Share, halves
from workbench.child_process import deaf_to_interrupts, exit_words, follow_parent, may_fork


class WorkProgress(Struct):
    """Counts what is done of a piece of work that goes on over several commands."""

    total: int
    done: int = 0
    """With what earlier commands did."""
    earlier: int = 0
    """Done by earlier commands."""
    began: float = field(default_factory=time.monotonic)
    """This command, on the monotonic clock."""

    @property
    def left(self) -> int:
        """Not done."""
        return self.total - self.done

    @property
    def rate(self) -> float | None:
        """A second, of this command; None before the first."""
        took, ended = time.monotonic() - self.began, self.done - self.earlier
        return ended / took if took > 0 and ended else None

    @property
    def remaining(self) -> float | None:
        """Seconds until the end at this rate."""
        return None if self.rate is None else self.left / self.rate


class ArchiveProgress(WorkProgress):
    """The progress of work over an archive."""

    noun: str = "run"
    """The noun that is counted."""


T = TypeVar("T")
R = TypeVar("R")
Work = Callable[[tuple[T, ...]], list[R]]
"""Does the items of a share, and gives a result for each. It and its results can be pickled."""
TRIES = 2
"""Processes that may end while they do the same share, before it is halved."""
MOST_LOST = 20
"""Processes that may end one after the other without a result between them: one bad item of a share costs some 14."""
_FORK, _SPAWN = get_context("fork"), get_context("spawn")


class WorkersFault(Exception):
    """Why no worker can go on, in a sentence that says what to do."""


class Lost(Struct, frozen=True):
    """In the place of a result: every process that did this item ended before it was done."""

    reason: str


class Workers(Protocol):
    """Does shares in any order."""

    def results(self, work: Work[T, R], shares: Iterable[Share[T]]) -> Iterator[tuple[Share[T], list[R | Lost]]]:
        """Each share once, as it is done, with a result for each of its items. Raises what the work raises, and
        WorkersFault."""
        ...


class Here:
    """This process alone."""

    def results(self, work: Work[T, R], shares: Iterable[Share[T]]) -> Iterator[tuple[Share[T], list[R | Lost]]]:
        for share in shares:
            yield share, list(work(share.items))


class Splitting(Generic[T, R]):
    """Puts the results of halves of a share together again."""

    def __init__(self, share: Share[T]) -> None:
        self.share = share
        self._found: dict[int, list[R | Lost]] = {}
        """By the place of its first item in the share."""

    def add(self, at: int, results: Sequence[R | Lost]) -> list[R | Lost] | None:
        """Take the results of the items from ``at`` on; those of the whole share once there are all."""
        self._found[at] = list(results)
        if sum(map(len, self._found.values())) < len(self.share.items):
            return None
        return [one for _, part in sorted(self._found.items()) for one in part]


class Part(Struct, Generic[T]):
    """A share, or a piece of one, on its way to a worker."""

    of: Splitting[T, Any]
    at: int
    items: tuple[T, ...]
    tries: int = 0

    def after_loss(self) -> list[Part[T]]:
        """Returns the shares to do again once their worker was lost: the same, then its halves; nothing for a single
        item."""
        if self.tries + 1 < TRIES:
            return [Part(self.of, self.at, self.items, self.tries + 1)]
        if len(self.items) == 1:
            return []
        first, second = halves(self.items)
        return [Part(self.of, self.at, first), Part(self.of, self.at + len(first), second)]


class _Worker:
    """A process and the pipe to it."""

    def __init__(self, others: Iterable[_Worker]) -> None:
        """``others`` are those whose pipes a fork inherits."""
        self.pipe, theirs = _SPAWN.Pipe()
        self.process: BaseProcess
        if may_fork():
            gc.freeze()  # What is shared stays shared: a collection writes into every object that it looks at.
            inherited = [self.pipe, *(other.pipe for other in others)]
            self.process = _FORK.Process(target=_forked, args=(theirs, inherited), daemon=True)
        else:
            self.process = _SPAWN.Process(target=_work, args=(theirs,), daemon=True)
        with deaf_to_interrupts():
            self.process.start()
        theirs.close()
        self.part: Part[Any] | None = None

    def give(self, work: Work[Any, Any], part: Part[Any]) -> None:
        self.part = part
        with suppress(OSError):  # It has ended: its pipe says so when it is waited for.
            self.pipe.send((work, part.items))

    def end(self) -> None:
        """Stop it, whatever it does."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _end_all(workers: Sequence[_Worker]) -> None:
    for worker in workers:
        worker.end()


def _forked(pipe: Connection, inherited: Iterable[Connection]) -> None:
    """Works in a fork, which has open what its parent had, and its handlers of signals."""
    for one in inherited:
        one.close()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    _work(pipe)


def _work(pipe: Connection) -> None:
    """Works in a process: takes shares until there are no more."""
    follow_parent()
    while True:
        try:
            work, items = pipe.recv()
        except EOFError:
            return
        try:
            answer: tuple[str, Any] = "done", work(items)
        except Exception as fault:  # noqa: BLE001 - the parent raises it
            answer = "failed", _sendable(fault)
        try:
            pipe.send(answer)
        except OSError:
            return  # The caller has stopped waiting.


def _sendable(fault: Exception) -> Exception:
    """The fault itself where it can be sent as it is."""
    try:
        if type(pickle.loads(pickle.dumps(fault))) is type(fault):
            return fault
    except Exception:  # noqa: BLE001 - whatever an exception of a library does when it is pickled
        pass
    return RuntimeError(f"{type(fault).__name__}: {fault}")


class Processes:
    """Processes of this machine, each with one share at a time. One that ends before its share is done is replaced, and
    its share is done again. They are forks where that is safe; elsewhere each takes 0.5 s of a core to start. So they
    stay for further work as long as this does."""

    def __init__(self, count: int, told: Callable[[str], None] = lambda text: None) -> None:
        """``told`` hears of each process that was lost."""
        self._count = count
        self._told = told
        self._losses = 0
        """Since the last result."""
        self._idle: list[_Worker] = []
        finalize(self, _end_all, self._idle)

    def results(self, work: Work[T, R], shares: Iterable[Share[T]]) -> Iterator[tuple[Share[T], list[R | Lost]]]:
        left = (Part(Splitting(share), 0, share.items) for share in shares)
        again: deque[Part[T]] = deque()
        workers: list[_Worker] = []

        def next_part() -> Part[T] | None:
            return again.popleft() if again else next(left, None)

        try:
            while True:
                while len(workers) < self._count and (part := next_part()) is not None:
                    workers.append(self._idle.pop() if self._idle else _Worker([*workers, *self._idle]))
                    workers[-1].give(work, part)
                if not workers:
                    return
                ready = wait([worker.pipe for worker in workers])
                for worker in [one for one in workers if one.pipe in ready]:
                    part = worker.part
                    assert part is not None
                    try:
                        kind, found = worker.pipe.recv()
                    except (EOFError, OSError):
                        workers.remove(worker)
                        found = self._lost(worker, part, again)
                    else:
                        if kind == "failed":
                            raise found
                        self._losses = 0
                        following = next_part()
                        if following is not None:
                            worker.give(work, following)
                        else:
                            workers.remove(worker)
                            self._idle.append(worker)
                    if found is not None and (whole := part.of.add(part.at, found)) is not None:
                        yield part.of.share, whole
        finally:
            _end_all(workers)

    def _lost(self, worker: _Worker, part: Part[Any], again: deque[Part[Any]]) -> list[Lost] | None:
        """Have the share of a process done again; the result of an item that no process can do."""
        worker.process.join()
        assert worker.process.exitcode is not None, "it was waited for"
        why = f"ended ({exit_words(worker.process.exitcode)})"
        worker.pipe.close()
        self._losses += 1
        if self._losses > MOST_LOST:
            raise WorkersFault(f"{self._losses} processes ended before they did anything, the last {why}")
        parts = part.after_loss()
        if not parts:
            self._told(f"a process {why} at one item for the second time: it is left out")
            return [Lost(f"the process that worked on it {why}")]
        self._told(f"a process {why}: another one does its share again")
        again.extend(parts)
        return None
