"""How many tokens a message is. The protocol; what reads encoding files is made in ``models/`` and handed in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from workbench.context.assembly import Grade
from workbench.context.message import Message

T = TypeVar("T")


class SentBack(NamedTuple):
    """What an answer has as part of later requests, by the tokens that its provider counted when it made it."""

    beside: int
    """Tokens beyond those of the answer, with what the results of its calls have more or less than by our count."""
    low: float
    """The fewest tokens that were counted if it goes back whole."""
    high: float
    """The most, without reasoning that goes back."""
    keeps: bool = False
    """Whether its reasoning goes back and is counted also where it calls no tools."""
    told: bool = False
    """Whether its reasoning is counted again as the text that goes back with its calls."""
    held: bool = False
    """Whether the provider keeps its reasoning by the ids of its calls, and counts it again although no client sends
    it."""
    stays: bool = False
    """Whether its reasoning counts also after a person has written again."""
    shown: int | None = None
    """Tokens of the part of it that is no reasoning, where we count them better than its provider tells reasoning from
    the rest; else None."""

    @classmethod
    def usual(cls, own: int) -> SentBack:
        """For a model of which no more is known. ``own``: our count of the answer."""
        return cls(4, 0.5 * own - 14, 2.0 * own + 60)


class Tally(Protocol):
    """Counts many messages, as ``Counter.message`` would one after the other."""

    def add(self, message: Message) -> None:
        """The next message."""
        ...

    def counts(self) -> list[tuple[int, Grade]]:
        """Of all messages since the last time, in their order."""
        ...

    def beside(self, work: Callable[[], T]) -> T:
        """Runs ``work``, which adds messages; they may be counted meanwhile in another thread, which ends before this
        returns. Returns the result of ``work``, and raises what it raises.
        """
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
    """Counts tokens as the provider of a model would. Caches by encoding and message.

    A method with a body says what holds for a model of which no more is known."""

    def message(self, message: Message, model: str) -> tuple[int, Grade]:
        """Tokens of one message with its overhead (3 + role + content for OpenAI encodings)."""
        ...

    def tally(self, model: str) -> Tally:
        """Counts many messages in fewer steps. Loads nothing before there is one to count."""
        return OneByOne(self, model)

    def tools(
        self, tools: Sequence[Mapping[str, Any]], model: str, *, forced: bool = False, responses: bool = False
    ) -> tuple[int, Grade]:
        """Tokens of the tool definitions as the provider renders them, with its own text about tools; 0 for none.
        ``forced``: the model has to call one. ``responses``: the request is one to OpenAI's Responses API.
        """
        ...

    def chosen(
        self, tools: Sequence[Mapping[str, Any]], model: str, choice: str, *, forced: bool, responses: bool
    ) -> int:
        """Tokens of the tools under a ``tool_choice``, in the words of any provider: which of them the model sees, and
        what is said of them, may depend on it."""
        return self.tools(tools, model, forced=forced, responses=responses)[0]

    def overhead(self, model: str, schema: str = "", *, thinking: bool = False, as_json: bool = False) -> int:
        """Tokens per request beside its messages and tools. ``schema``: the JSON Schema of the answer as text, which
        providers show to the model; its tokens are included. ``thinking``: the request has a budget for reasoning.
        ``as_json``: the answer has to be JSON, of any form (``json_object``).
        """
        ...

    def range(self, model: str) -> tuple[float, float]:
        """Between which shares of a count that is not exact the provider's own lies."""
        ...

    def unseen(self, model: str, *, tools: int, beside: int) -> tuple[int, int]:
        """Returns how many tokens less and more than counted a first request may have, because of text that
        providers add and do not show. ``tools``: our count of the tools; ``beside``: of all beside the messages,
        these included."""
        return 0, 0

    def recounts(self, model: str) -> bool:
        """Returns whether the reasoning that goes back with an answer counts while its tools run, as far as the model
        tells."""
        return True

    def sent_back(self, answer: Message, model: str, *, forced: bool = False) -> SentBack:
        """Returns what is known of an answer as part of later requests. ``forced``: it had to call a tool."""
        return SentBack.usual(self.message(answer, model)[0])

    def text(self, text: str, model: str) -> int:
        """Tokens of a bare text, for budgets."""
        ...
