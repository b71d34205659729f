"""Counting many messages at once gives what counting each alone gives, whatever they hold and whoever does it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.context.support import Conversation, alone
from workbench.context.assembler import MANY, Assembler
from workbench.context.assembly import Assembly, Grade
from workbench.context.message import Image, Message, TextPart, ToolCall
from workbench.context.strategy import parse
from workbench.context.tokens import OneByOne, Tally
from workbench.models import batch_counter
from workbench.models.batch_counter import CUT, BatchCounter, Counted, counted_together
from workbench.models.encodings import Encodings, load_encoding
from workbench.models.families import Family

MODELS = ("gpt-4", "gpt-4o", "text-davinci-003", "claude-sonnet-4-5")
ODD = (
    CUT,
    CUT[:-1],
    CUT[1:],
    "<",
    "|>",
    "<|fim_prefix|>",
    "",
    " ",
    "\n",
    "\r\n",
    "\0",
    "\ud800",
    "\udc80",
    "é",
    "🙂",
    "'s",
)
texts = st.lists(
    st.one_of(
        st.text(max_size=60),
        st.text(st.characters(categories=["Cs", "Cc", "Zs", "Nd", "Lu"]), max_size=20),
        st.lists(st.sampled_from(ODD), max_size=6).map("".join),
        st.tuples(st.sampled_from(["a", " ", "\n", "=", "€"]), st.integers(0, 400)).map(lambda run: run[0] * run[1]),
    ),
    max_size=12,
)


def at_once(messages: Sequence[Message], model: str) -> list[tuple[int, Grade]]:
    tally = Encodings().tally(model)
    for message in messages:
        tally.add(message)
    return tally.counts()


def one_by_one(messages: Sequence[Message], model: str) -> list[tuple[int, Grade]]:
    counter = Encodings()
    return [counter.message(message, model) for message in messages]


@given(texts, st.sampled_from(MODELS))
@example(["one", f"two {CUT} three", "four"], "gpt-4o")
@example(["one", "two \ud800", "three"], "gpt-4o")
@example(["", f"{CUT[:-1]}", ">", "  ", "  "], "gpt-4")
def test_texts_that_are_counted_together_count_as_each_alone(said: list[str], model: str) -> None:
    messages = [Message("user", text) for text in said]
    assert at_once(messages, model) == one_by_one(messages, model)


@given(texts.filter(lambda said: len(said) > 2), st.sampled_from(MODELS))
def test_messages_of_many_texts_count_as_each_alone(said: list[str], model: str) -> None:
    first, second, third, *others = said
    messages = [
        Message("assistant", first, (ToolCall("1", second, third), ToolCall("2", "look", "{}"))),
        Message("user", (TextPart(first), Image("d" * 64, "image/png", 1000, 1024, 1024), TextPart(second))),
        Message("tool", third, tool_call_id="1", name=second),
        Message("user", (Image("e" * 64, "image/png", 1000),)),
        Message("user", "[image: a.png]"),
        *(Message("assistant", (*(TextPart(other) for other in others),)) for _ in range(2)),
    ]
    assert at_once(messages, model) == one_by_one(messages, model)


def test_a_text_that_is_too_long_is_counted_alone_among_others_too() -> None:
    given = ["before", "x" * 50, "", "between", "y" * 60, "behind"]
    counts = counted_together(given, load_encoding("o200k_base"), lambda text: (len(text), False), longest=20)

    assert counts == [(1, True), (50, False), (0, True), (1, True), (60, False), (1, True)]


def test_a_message_that_comes_twice_counts_twice_and_is_encoded_once() -> None:
    message, encoded = Message("user", "The same words."), list[str]()

    class Watched(Encodings):
        def _encoded_together(self, texts: list[str], kind: Family) -> list[Counted]:
            encoded.extend(texts)
            return super()._encoded_together(texts, kind)

    tally = Watched().tally("gpt-4o")
    for times in (3, 2):
        for _ in range(times):
            tally.add(message)
        assert tally.counts() == [Encodings().message(message, "gpt-4o")] * times
    assert tally.counts() == []
    assert encoded == ["The same words."]


# -- beside other work -----------------------------------------------------------------------------------------------

_IN_VAIN = 20.0
"""Seconds until a wait that should have ended fails its test."""


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Calls of the tokenizer for less than the texts of one test, where nobody waits in vain for ever."""
    overdue: list[str] = []

    class CountedEvent(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            if not (told := super().wait(_IN_VAIN)):
                overdue.append("who asked for counts was not told")
            return told

    class Texts(SimpleQueue[Any]):
        def get(self, block: bool = True, timeout: float | None = None) -> Any:
            try:
                return super().get(timeout=_IN_VAIN)
            except Empty:
                overdue.append("who counts was not told that no more will come")
                raise

    for name, value in (("LEAST", 100), ("MOST", 1_000), ("Event", CountedEvent), ("SimpleQueue", Texts)):
        monkeypatch.setattr(batch_counter, name, value)
    yield
    assert overdue == []


def lengths(given: list[str]) -> list[Counted]:
    return [(len(text), True) for text in given]


def adding(counting: BatchCounter, numbers: range) -> Callable[[], str]:
    def work() -> str:
        for number in numbers:
            counting.add("x" * number)
        return "done"

    return work


@pytest.mark.usefixtures("few")
def test_what_work_adds_is_counted_here_in_its_order_and_the_thread_is_gone() -> None:
    threads: set[str] = set()

    def counted(given: list[str]) -> list[Counted]:
        threads.add(threading.current_thread().name)
        return lengths(given)

    counting, before = BatchCounter(counted), threading.active_count()
    counting.add("xxx")

    assert counting.beside(adding(counting, range(300))) == "done"
    assert threading.active_count() == before
    counting.add("y")
    assert counting.counts() == [(3, True), *((number, True) for number in range(300)), (1, True)]
    assert threads == {threading.current_thread().name}


@pytest.mark.usefixtures("few")
def test_work_may_ask_for_the_counts_so_far() -> None:
    counting = BatchCounter(lengths)

    def work() -> list[list[Counted]]:
        adding(counting, range(50))()
        first = counting.counts()
        adding(counting, range(50, 60))()
        return [first, counting.counts()]

    first, second = counting.beside(work)
    assert first == [(number, True) for number in range(50)]
    assert second == [(number, True) for number in range(50, 60)]


@pytest.mark.usefixtures("few")
def test_what_goes_wrong_in_the_work_is_raised_and_the_thread_is_gone() -> None:
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError):
        BatchCounter(lengths).beside(lambda: 1 // 0)
    assert threading.active_count() == before


@pytest.mark.usefixtures("few")
def test_an_interrupt_while_counting_ends_the_work_that_waits_for_counts() -> None:
    """Ctrl-C comes to the thread that counts; no thread may then keep the process from ending."""

    def interrupted(_: list[str]) -> list[Counted]:
        raise KeyboardInterrupt

    counting, before = BatchCounter(interrupted), threading.active_count()

    def work() -> list[Counted]:
        adding(counting, range(30))()
        return counting.counts()

    with pytest.raises(KeyboardInterrupt):
        counting.beside(work)
    assert threading.active_count() == before


@pytest.mark.usefixtures("few")
def test_where_the_system_gives_no_thread_all_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    counting = BatchCounter(lengths)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        assert counting.beside(adding(counting, range(30))) == "done"
    assert counting.counts() == [(number, True) for number in range(30)]


# -- a first context -------------------------------------------------------------------------------------------------


class Alone(Encodings):
    """Counts one message after the other."""

    def tally(self, model: str) -> Tally:
        return OneByOne(self, model)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize(
    "spec",
    ["snowball", "mask(after=3)", "mask(after=3,clear_at_least=40)", "clear(trigger=500,keep=2)", "budget(max=5000)"],
)
def test_a_first_context_of_many_messages_is_the_one_that_counting_each_gives(spec: str, native: bool) -> None:
    talk = Conversation(native=native).task()
    for turn in range(1, MANY // 2 + 20):
        talk.turn(turn).calls(("look", f"{turn} words of the log, {'and more ' * (turn % 7)}"), text=f"turn {turn}")

    def first(counter: Encodings) -> Assembly:
        assembler = Assembler(alone(model="gpt-4o", rules={"max_turns": MANY}), parse(spec), counter)
        for item in talk.items:
            assembler.add(item)
        return assembler.assemble(talk.next_place(MANY))

    assembly = first(Encodings())
    assert len(assembly.entries) > MANY
    assert assembly == first(Alone())
