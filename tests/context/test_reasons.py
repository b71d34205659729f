"""The WHY and FROM columns."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import workbench.context
from tests.context.support import Conversation, alone, assembled, cascade, scope
from workbench.context.assembly import Action, Entry, Item, Kind, Reason, Rule
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.context.reasons import REASONS, explain, origin, turns_before

LONG = "line " * 100


def bench() -> list[Entry]:
    """Tools, input, an injection, the task, and two turns of which the first is masked."""
    before = Conversation("intake").task().says("Noted.").record("Noted.")
    definition = cascade({"name": "intake"}, {"name": "work", "context": {"from": ["intake"]}})
    where = scope(definition, tool_text="Tools.", visits=(before,), input={"path": "a.log"})
    talk = Conversation(native=True).task().calls(("read_log", LONG)).turn(2).calls(("search", LONG))
    return list(assembled(where, talk, talk.next_place(3), "selective+mask(after=1)").entries)


def test_the_columns_of_a_context() -> None:
    here = Place("", "work", 1, 1, 3, 1)
    assert [(origin(entry), explain(entry, here)) for entry in bench()] == [
        ("tools", "always"),
        ("input", "context.include_input"),
        ("↪ intake.output", "context.from[0]"),
        ("task", "instructions"),
        ("turn 1", "calls read_log"),
        ("turn 1 read_log", "masked: age 2 > 1"),
        ("turn 2", "calls search"),
        ("turn 2 search", "kept: age 1"),
    ]


def test_an_answer_with_calls_in_its_text_says_what_it_called() -> None:
    talk = Conversation().task().calls(("read_log", "x"), ("search", "y")).turn(2).says("Done.").turn(3, "go on")
    entries = assembled(alone(), talk).entries
    here = Place("", "work", 1, 1, 3, 1)
    assert [explain(entries[i], here) for i in (1, 4)] == ["calls read_log, search", "answer"]


def test_messages_of_another_phase_name_their_turn() -> None:
    before = Conversation("intake", 2).task().calls(("read_log", "x")).turn(2).says("ok").record("ok")
    where = scope(cascade({"name": "intake"}, {"name": "work"}, context_default="snowball"), visits=(before,))
    entries = assembled(where, Conversation().task()).entries
    assert [origin(entry) for entry in entries] == [
        "↪ intake#2 turn 1", "↪ intake#2 turn 1", "↪ intake#2 turn 1 read_log", "↪ intake#2 turn 2", "task",
    ]  # fmt: skip
    assert explain(entries[0], Place("", "work", 1, 1, 1, 1)) == "snowball"


def test_ages_across_attempts_need_the_turns_of_earlier_attempts() -> None:
    talk = Conversation(native=True).task().calls(("read_log", LONG)).turn(2).says("No.").retry("bad")
    talk.calls(("read_log", LONG))
    here = talk.next_place(2)
    entries = assembled(alone(), talk, here, "mask(after=1)").entries
    assert turns_before(entries, here) == 2
    assert explain(entries[2], here, turns_before(entries, here)) == "masked: age 3 > 1"
    assert explain(entries[2], here) == "masked: age > 1"
    assert explain(entries[6], here) == "kept: age 1"
    assert origin(entries[5]) == "attempt 2 turn 1"


def test_a_code_of_another_version_is_shown_as_it_is() -> None:
    item = Item(Message("user", "x"), Kind.USER, Place("", "work", 1, 1, 1, 1))
    assert explain(Entry(item, None, Action.DROPPED, Reason("new_code", (3, "x")), Rule(), 1, 0), Place()) == (
        "new_code 3 x"
    )


@pytest.mark.parametrize("code", sorted(REASONS))
def test_every_code_reads_and_is_explained(code: str) -> None:
    words = REASONS[code]
    shown = words.text.format("a", "b", "c", age=1)
    assert 0 < len(shown) <= 50
    assert words.meaning.endswith(".")


def test_every_code_in_use_is_in_the_table() -> None:
    folder = Path(workbench.context.__path__[0])
    used = {
        code for file in folder.rglob("*.py") for code in re.findall(r'Reason\(\s*"(\w+)"', file.read_text("utf-8"))
    }
    assert len(used) > 25
    assert used <= set(REASONS)
    assert {str(kind) for kind in (Kind.TASK, Kind.CLOSING, Kind.RESULT, Kind.IMAGES, Kind.USER)} <= set(REASONS)
