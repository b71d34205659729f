"""What one more turn costs, in operations: it must not grow with the history."""

from __future__ import annotations

from functools import cache

import pytest
from msgspec.structs import asdict

from tests.context.support import Conversation, WordCounter, alone, cascade, scope
from workbench.context.assembler import Assembler
from workbench.context.assembly import Assembly, Item
from workbench.context.place import Place
from workbench.context.scope import VisitRecord
from workbench.context.strategy import parse

STRATEGIES = (
    "snowball",
    "selective+mask(after=5)",
    "selective+mask(after=5,window=5,step=5)",
    "selective+slide(turns=5)",
    "selective+clear(trigger=500,keep=3)",
    "selective+mask(after=5)+loop(limit=3)",
    "selective+budget(max=900,reserve=0)",
    "selective+mask(after=5)+budget(max=900,reserve=0,mode=prune_oldest)",
)
RESULT = " ".join(["a line of the log"] * 20)


@cache
def turn(number: int) -> tuple[Item, ...]:
    """The messages of a turn: an answer that calls a tool, and its result; turn 0 is the task."""
    talk = Conversation(native=True).turn(max(number, 1))
    return tuple((talk.calls(("read_log", RESULT)) if number else talk.task()).items)


def place(number: int) -> Place:
    return Place("", "work", 1, 1, number, 1)


def grown(spec: str, turns: int, *, assembles: bool = True) -> Assembler:
    assembler = Assembler(alone(), parse(spec), WordCounter())
    for number in range(turns + 1):
        if assembles and number:
            assembler.assemble(place(number))
        for item in turn(number):
            assembler.add(item)
    return assembler


def cost_of_more(spec: str, turns: int) -> dict[str, int]:
    """Operations of twenty more turns after this many."""
    assembler = grown(spec, turns, assembles=False)
    assembler.assemble(place(turns + 1))
    before = asdict(assembler.work)
    for number in range(turns + 1, turns + 21):
        for item in turn(number):
            assembler.add(item)
        assert not assembler.assemble(place(number + 1)).problems
    return {name: count - before[name] for name, count in asdict(assembler.work).items()}


@pytest.mark.parametrize("spec", STRATEGIES)
def test_twenty_more_turns_cost_the_same_after_100_and_after_2_000_messages(spec: str) -> None:
    few, many = cost_of_more(spec, 50), cost_of_more(spec, 1000)
    for name in few:
        assert many[name] <= 2 * few[name] + 2, (name, few, many)


def test_a_turn_changes_its_own_entries_and_the_one_that_is_masked() -> None:
    assembler = grown("selective+mask(after=2)", 10)
    assembler.assemble(place(11))
    before = asdict(assembler.work)
    for item in turn(11):
        assembler.add(item)
    assembly = assembler.assemble(place(12))
    assert assembler.work.entries - before["entries"] == 3
    assert [(splice.remove, len(splice.entries)) for splice in assembly.splices] == [(1, 1), (0, 2)]


def test_the_splices_of_a_run_hold_each_message_once_and_once_more_when_it_is_masked() -> None:
    assembler, journaled = Assembler(alone(), parse("mask(after=3)"), WordCounter()), 0
    for number in range(201):
        if number:
            journaled += sum(len(splice.entries) for splice in assembler.assemble(place(number)).splices)
        for item in turn(number):
            assembler.add(item)
    assert journaled == 1 + 2 * 199 + 196


def test_a_new_phase_under_a_snowball_is_spliced_against_the_last_one() -> None:
    """What was carried in already is not journaled again, even where the system text differs."""
    definition = cascade(*({"name": f"p{i}"} for i in range(6)), context_default="snowball")
    visits: list[VisitRecord] = []
    previous: Assembly | None = None
    journaled: list[int] = []
    for index in range(6):
        where = scope(definition, f"p{index}", visits=tuple(visits), tool_text=f"Tools of p{index}.")
        talk = Conversation(f"p{index}").task()
        for number in range(1, 11):
            talk.turn(number).says(f"Answer {number}.")
        assembler = Assembler(where, parse("snowball"), WordCounter(), previous)
        for item in talk.items[:1]:
            assembler.add(item)
        previous = assembler.assemble(Place("", f"p{index}", 1, 1, 1, 1))
        journaled.append(sum(len(splice.entries) for splice in previous.splices))
        visits.append(talk.record("done"))
    assert isinstance(previous, Assembly)
    assert len(previous.entries) == 1 + 5 * 11 + 1
    assert journaled == [2, *[1 + 11 + 1] * 5]
