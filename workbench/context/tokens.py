"""How many tokens a message is. The protocol; what reads encoding files is made in ``models/`` and handed in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from workbench.context.assembly import Grade
from workbench.context.message import Message

T = TypeVar("T")


class Tally(Protocol):
    """Counts many messages, as ``Counter.message`` would one after the other."""

    def add(self, message: Message) -> None:
        """The next message."""
        ...

    def counts(self) -> list[tuple[int, Grade]]:
        """Of all messages since the last time, in their order."""
        ...

    def beside(self, work: Callable[[], T]) -> T:
        """Do work that adds messages, which may be counted meanwhile: it may be done in another thread, which is over
        when this returns. Gives what the work gives, and raises what it raises."""
        ...


class OneByOne:
    """A ``Tally`` that counts each message when it is added."""

    def __init__(self, counter: Counter, model: str) -> None:
        self._counter = counter
        self._model = model
        self._counts: list[tuple[int, Grade]] = []

    def add(self, message: Message) -> None:
        self._counts.append(self._counter.message(message, self._model))

    def counts(self) -> list[tuple[int, Grade]]:
        counts, self._counts = self._counts, []
        return counts

    def beside(self, work: Callable[[], T]) -> T:
        return work()


class Counter(Protocol):
    """Counts tokens as the provider of a model would. Caches by encoding and message."""

    def message(self, message: Message, model: str) -> tuple[int, Grade]:
        """Tokens of one message with its overhead (3 + role + content for OpenAI encodings)."""
        ...

    def tally(self, model: str) -> Tally:
        """The same for many messages, in fewer steps; nothing is loaded before there is one to count."""
        ...

    def tools(self, tools: Sequence[Mapping[str, Any]], model: str, *, forced: bool = False) -> tuple[int, Grade]:
        """Tokens of the tool definitions as the provider renders them, with what it says about tools itself; 0 for
        none. ``forced``: the model has to call one."""
        ...

    def overhead(self, model: str, schema: str = "", *, thinking: bool = False) -> int:
        """Tokens per request beside its messages and tools. ``schema``: the form that the answer has to have, as text,
        which providers show to the model; its tokens are among them. ``thinking``: the request gives the model a budget
        for reasoning."""
        ...

    def range(self, model: str) -> tuple[float, float]:
        """Between which shares of a count that is not exact the provider's own lies."""
        ...

    def text(self, text: str, model: str) -> int:
        """Tokens of a bare text, for budgets."""
        ...
