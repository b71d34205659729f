"""Counts the tokens of many texts in few long calls of the tokenizer, while a thread makes more of them.

Texts are joined by a special token: it cuts what stands before it from what stands behind before any rule of the
encoding is applied, so between two of its numbers is what each text alone gives. The tokenizer lets other threads run
meanwhile, but where two count at once, both take more than twice as long, and one that is not the first that ever did
takes a third longer. So the caller's thread counts, and another thread makes the texts.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from threading import Event
from typing import Any, Final, TypeVar

T = TypeVar("T")
Counted = tuple[int, bool]
"""Tokens of a text, and whether it was counted whole."""
LEAST: Final = 50_000
"""Characters that are counted in one call while more may come."""
MOST: Final = 1_000_000
"""Characters that are counted in one call: some 40 ms. After each, Python may let it wait 5 ms until it can go on."""
CUT: Final = "<|endoftext|>"
"""A special token of every encoding that we have."""


def counted_together(texts: list[str], encoding: Any, alone: Callable[[str], Counted], longest: int) -> list[Counted]:
    """The count that ``alone`` gives for each text; ``alone`` itself counts texts beyond a length.

    ``encoding`` is one of tiktoken.
    """
    joined = iter(_joined([text for text in texts if len(text) <= longest], encoding, alone))
    return [alone(text) if len(text) > longest else next(joined) for text in texts]


def _joined(texts: list[str], encoding: Any, alone: Callable[[str], Counted]) -> list[Counted]:
    """In one call, unless a text has a lone surrogate or holds what cuts."""
    if len(texts) > 1:
        try:
            numbers = encoding.encode(CUT.join(texts), allowed_special={CUT}, disallowed_special=())
        except ValueError:
            pass
        else:
            cut = encoding.eot_token
            cuts = [at for at, number in enumerate(numbers) if number == cut]
            if len(cuts) == len(texts) - 1:
                ends = zip([-1, *cuts], [*cuts, len(numbers)], strict=True)
                return [(end - start - 1, True) for start, end in ends]
    return [alone(text) for text in texts]


class BatchCounter:
    """Give it texts, then ask for all counts."""

    def __init__(self, counted: Callable[[list[str]], list[Counted]]) -> None:
        """``counted`` counts some at once."""
        self._counted = counted
        self._texts: list[str] = []
        self._size = 0
        self._waiting: SimpleQueue[list[str] | Event | None] = SimpleQueue()
        """Texts to be counted, and events to set once the texts before them are counted; None ends the queue."""
        self._counts: list[Counted] = []
        self._is_beside = False

    def add(self, text: str) -> None:
        """The next text."""
        self._texts.append(text)
        self._size += len(text) + len(CUT)
        if self._size > LEAST:
            self._hand_over()

    def counts(self) -> list[Counted]:
        """Of all texts since the last time, in their order."""
        self._hand_over()
        if self._is_beside:
            self._waiting.put(counted := Event())
            counted.wait()
        else:
            self._waiting.put(None)
            self._count()
        counts, self._counts = self._counts, []
        return counts

    def beside(self, work: Callable[[], T]) -> T:
        """Do the work in a thread, which ends before this returns, and count here what it adds meanwhile. Raises what
        the work raises. If the system gives no thread, all is done here.
        """
        with ThreadPoolExecutor(1, "beside the tokenizer") as executor:
            self._is_beside = True
            try:
                done = executor.submit(work)
            except RuntimeError:
                self._is_beside = False
                return work()
            done.add_done_callback(lambda _: self._waiting.put(None))
            try:
                self._count()
            except BaseException:
                self._let_go()
                raise
            finally:
                self._is_beside = False
        return done.result()

    def _let_go(self) -> None:
        """Release the waiters for counts that will not come."""
        while (it := self._waiting.get()) is not None:
            if isinstance(it, Event):
                it.set()

    def _hand_over(self) -> None:
        self._waiting.put(self._texts)
        self._texts, self._size = [], 0

    def _count(self) -> None:
        """Count what waits, as much at once as there is, until no more will come."""
        it: list[str] | Event | None = []
        while it is not None:
            texts, size = list[str](), 0
            while isinstance(it := self._waiting.get(), list):
                texts += it
                size += sum(map(len, it))
                if size > MOST or self._waiting.empty():
                    break
            try:
                self._counts += self._counted(texts)
            except BaseException:
                if not isinstance(it, list):
                    self._waiting.put(it)
                raise
            if isinstance(it, Event):
                it.set()
