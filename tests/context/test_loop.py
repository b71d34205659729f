"""Retries: with loop compression failed attempts are shown as output and reason, and the attempt's own turns whole."""

from __future__ import annotations

from msgspec.structs import replace

from tests.context.support import Conversation, WordCounter, alone, assembled, sent_text, texts
from workbench.context.assembler import Assembler
from workbench.context.assembly import Action
from workbench.context.place import Place
from workbench.context.strategy import Strategy

LOOPED = {"intra_context": {"mask_observations_after": 1, "min_masked_size": 0}}
RESULT = "line " * 50


def place(attempt: int, turn: int = 1) -> Place:
    return Place("", "work", 1, attempt, turn, 1)


def failing() -> Conversation:
    """Two failed attempts, the first with a tool, and a third that has called one."""
    talk = Conversation(native=True).task("Fix it.").calls(("test", RESULT)).turn(2).says("First output.")
    talk.retry("too short", "Again, 2 of 3.").says("Second output.")
    return talk.retry("too long", "Again, 3 of 3.").calls(("test", RESULT)).turn(2).calls(("test", RESULT))


def test_the_context_of_a_retry_word_for_word() -> None:
    talk = failing()
    talk.items[7:] = []
    assert texts(assembled(alone(**LOOPED), talk, place(3))) == [
        ("user", "Fix it."),
        ("assistant", "[Attempt #1]\nFirst output."),
        ("user", "[Validation Failed]\ntoo short"),
        ("assistant", "[Attempt #2]\nSecond output."),
        ("user", "[Validation Failed]\ntoo long\n\nAgain, 3 of 3."),
    ]


def test_the_attempts_own_turns_are_complete() -> None:
    assembly = assembled(alone(**LOOPED), failing(), place(3, 3))
    assert [(role, text) for role, text in texts(assembly)[5:]] == [
        ("assistant", ""), ("tool", RESULT), ("assistant", ""), ("tool", RESULT),
    ]  # fmt: skip
    assert not assembly.problems


def test_only_the_last_failed_attempts_are_shown() -> None:
    where = alone(intra_context={"loop_history_limit": 1})
    assert [text for _, text in texts(assembled(where, failing(), place(3)))[:3]] == [
        "Fix it.",
        "[Attempt #2]\nSecond output.",
        "[Validation Failed]\ntoo long\n\nAgain, 3 of 3.",
    ]


def test_growing_from_attempt_to_attempt_gives_what_starting_over_gives() -> None:
    where = alone(intra_context={"loop_history_limit": 1})
    assembler, talk = Assembler(where, Strategy(), WordCounter()), Conversation().task().says("Output 1.")
    for item in talk.items:
        assembler.add(item)
    for attempt in range(2, 6):
        before = len(talk.items)
        talk.retry(f"reason {attempt - 1}", f"Attempt {attempt}.")
        assembler.add(talk.items[before])
        assert assembler.assemble(talk.place).entries == assembled(where, talk).entries
        talk.says(f"Output {attempt}.")
        assembler.add(talk.items[-1])


def test_a_limit_of_none_shows_the_retry_message_alone() -> None:
    where = alone(intra_context={"loop_history_limit": 0})
    assert [text for _, text in texts(assembled(where, failing(), place(3)))[:2]] == ["Fix it.", "Again, 3 of 3."]


def test_long_outputs_are_cut_at_500_characters() -> None:
    talk = Conversation().task().says("o" * 501).retry("no")
    assert sent_text(assembled(alone(**LOOPED), talk, place(2)), 1) == "[Attempt #1]\n" + "o" * 500 + "..."


def test_calls_are_taken_out_of_the_output() -> None:
    talk = Conversation().task().calls(("route_to", "Routing to x"), text="My answer.").retry("no")
    where = alone(**LOOPED)
    where = replace(where, without_calls=lambda text: text.split("```")[0])
    assert sent_text(assembled(where, talk, place(2)), 1) == "[Attempt #1]\nMy answer."


def test_what_a_person_said_in_a_failed_attempt_stays() -> None:
    talk = Conversation().task().says("One.").hears("Mind the colour.").says("Two.").retry("no")
    assert ("user", "Mind the colour.") in texts(assembled(alone(**LOOPED), talk, place(2)))


def test_every_message_of_a_failed_attempt_has_an_entry() -> None:
    assembly = assembled(alone(**LOOPED), failing(), place(3))
    assert [entry.action for entry in assembly.entries[:7]] == [
        Action.KEPT, Action.DROPPED, Action.DROPPED, Action.SUMMARIZED, Action.SUMMARIZED, Action.SUMMARIZED,
        Action.KEPT,
    ]  # fmt: skip
    assert {entry.rule.path for entry in assembly.entries[1:6]} == {"phases[0].intra_context"}


def test_without_compression_everything_so_far_is_sent() -> None:
    talk = failing()
    assembly = assembled(
        alone(intra_context={"compress_loops": False, "mask_observations_after": 9}), talk, place(3, 3)
    )
    assert [message.text for message in assembly.request.messages] == [item.message.text for item in talk.items]


def test_the_first_attempt_is_not_touched() -> None:
    talk = Conversation().task().says("One.").turn(2, "Go on.")
    assert all(entry.action is Action.KEPT for entry in assembled(alone(**LOOPED), talk).entries)
