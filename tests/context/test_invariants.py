"""Each rule that a request must keep, broken once, and named with the message at fault."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.context.support import Conversation, alone, assembled, cascade, check_entries, check_messages, image, scope
from workbench.context.assembly import Action, BrokenInvariant, Entry, Item, Kind, Reason, Rule
from workbench.context.invariants import RULES, check_tools
from workbench.context.message import Image, Message, Role, TextPart, ToolCall
from workbench.context.place import Place

USER = Message("user", "hello")


def asks(*ids: str, arguments: str = "{}", **call: object) -> Message:
    return Message("assistant", "", tuple(ToolCall(identity, "read", arguments, call) for identity in ids))


def result(identity: str, text: str = "ok") -> Message:
    return Message("tool", text, (), identity, "read")


def said(role: Role, text: str) -> Message:
    return Message(role, text)


def numbers(messages: list[Message]) -> list[tuple[int, int]]:
    return [(broken.invariant, broken.entry) for broken in check_messages(messages)]


@pytest.mark.parametrize(
    ("messages", "broken"),
    [
        ([USER], []),
        ([USER, asks("1", "2"), result("2"), result("1")], []),
        ([USER, asks("1"), result("9")], [(1, 1), (1, 2)]),
        ([USER, result("1")], [(1, 1)]),
        ([USER, asks("1"), result("1"), result("1")], [(1, 3)]),
        ([USER, asks("1"), USER], [(1, 1)]),
        ([USER, asks("1"), said("assistant", "x"), result("1")], [(1, 1), (1, 3)]),
        ([USER, asks("1", "1"), result("1")], [(1, 1)]),
        ([USER, asks(""), result("")], [(1, 1)]),
        ([replace(USER, tool_calls=asks("1").tool_calls), result("1")], [(1, 0)]),
        ([USER, asks("1", "2"), result("1"), USER], [(2, 1)]),
        ([said("user", " \n\t")], [(3, 0)]),
        ([Message("user", (TextPart("x"), TextPart(" ")))], [(3, 0)]),
        ([Message("user", ())], [(3, 0)]),
        ([USER, asks("1"), result("1", "  ")], [(3, 2)]),
        ([said("system", "a"), said("system", "b"), USER], []),
        ([USER, said("system", "late")], [(4, 1), (5, 1)]),
        ([said("assistant", "me first"), USER], [(5, 0)]),
        ([USER, said("assistant", "and last")], [(5, 1)]),
        ([said("system", "alone")], [(5, -1)]),
        ([], [(5, -1)]),
        ([USER, said("assistant", "a"), said("assistant", "b"), USER], []),
        ([USER, Message("assistant", "a", extra={"t": 1}), said("assistant", "b"), USER], [(6, 2)]),
        ([Message("user", (Image("", "image/png", 5),))], [(8, 0)]),
        ([Message("user", "x", extra={"_hash": "1"})], [(9, 0)]),
        ([USER, asks("1", _masked=True), result("1")], [(9, 1)]),
        ([USER, asks("1", arguments="{oops"), result("1")], [(10, 1)]),
        ([USER, asks("1", arguments="[1]"), result("1")], [(10, 1)]),
        ([USER, asks("1", arguments='{"n": NaN}'), result("1")], [(10, 1)]),
        ([USER, asks("1", arguments="[" * 5000), result("1")], [(10, 1)]),
    ],
)
def test_bare_messages(messages: list[Message], broken: list[tuple[int, int]]) -> None:
    assert numbers(messages) == broken


def test_every_rule_of_the_design_has_its_words() -> None:
    assert list(RULES) == list(range(1, 14))
    assert all(RULES.values())


def test_every_rule_says_in_words_what_is_wrong() -> None:
    (broken,) = check_messages([USER, asks("c7"), USER])
    assert broken.message == "the call of read ('c7') has no result"


def entry(item: Item, sent: Message | None, action: Action = Action.KEPT) -> Entry:
    return Entry(item, sent, action, Reason("task"), Rule(), 1, 1)


TASK = Item(USER, Kind.TASK, Place("", "work", 1, 1, 1, 1))


def test_metadata_inside_a_live_loop_must_be_verbatim() -> None:
    original = replace(asks("1"), extra={"thinking": "abc"})
    answer = replace(TASK, message=original, kind=Kind.ANSWER)
    reply = replace(TASK, message=result("1"), kind=Kind.RESULT)
    entries = [entry(TASK, USER), entry(answer, asks("1"), Action.TRUNCATED), entry(reply, result("1"))]
    assert [(b.invariant, b.entry) for b in check_entries(entries)] == [(7, 1)]


def test_a_cut_data_url_is_no_image() -> None:
    url = "data:image/png;base64,QUJDREVG"
    answer = replace(TASK, message=said("assistant", url), kind=Kind.ANSWER)
    entries = [entry(TASK, USER), entry(answer, said("assistant", url[:-3]), Action.TRUNCATED), entry(TASK, USER)]
    assert [(b.invariant, b.entry) for b in check_entries(entries)] == [(8, 1)]


def test_the_task_must_be_there_and_sent() -> None:
    assert check_entries([entry(replace(TASK, kind=Kind.USER), USER)]) == (BrokenInvariant(11, "the task is missing"),)
    dropped = [entry(TASK, None, Action.DROPPED), entry(replace(TASK, kind=Kind.USER), USER)]
    assert check_entries(dropped) == (BrokenInvariant(11, "the task is not sent", 0),)


def test_the_tool_text_must_come_first() -> None:
    assert [b.invariant for b in check_entries([entry(TASK, USER)], "## Available Tools")] == [11]


def test_tools_keep_their_order_from_call_to_call() -> None:
    a, b = {"name": "a"}, {"name": "b"}
    assert check_tools([a, b], [a, b]) == check_tools([b], [a, b]) == []
    assert [broken.invariant for broken in check_tools([b, a], [a, b])] == [12]
    assert [broken.invariant for broken in check_tools([a, a], [])] == [12]


def test_a_phase_whose_tools_moved_is_told_so() -> None:
    definition = cascade({"name": "one"}, {"name": "work"})
    tools = ({"name": "a"}, {"name": "b"})
    first = assembled(scope(definition, "one", tools=tools), Conversation("one").task())
    second = assembled(scope(definition, tools=tools[::-1]), Conversation().task(), previous=first)
    assert [broken.invariant for broken in second.problems] == [12]


def test_dropping_calls_while_keeping_results_is_caught() -> None:
    """What naive masking does to a native run."""
    talk = Conversation(native=True).task().calls(("read", "x"), text="Reading.").turn(2).says("ok").turn(3, "go on")
    messages = [replace(item.message, tool_calls=()) for item in talk.items]
    assert numbers(messages) == [(1, 2)]


def test_a_history_that_lost_a_result_is_reported_with_its_entry() -> None:
    talk = Conversation(native=True).task().calls(("read", "x"), ("read", "y")).turn(2, "go on")
    del talk.items[3]
    where = scope(cascade({"name": "work"}), tool_text="Tools.")
    assert [(b.invariant, b.entry) for b in assembled(where, talk).problems] == [(2, 2)]


def test_a_task_that_renders_to_nothing_is_a_broken_request() -> None:
    assembly = assembled(alone(), Conversation().task("  "))
    assert assembly.problems == (BrokenInvariant(3, "the content is blank", 0),)


def test_whole_images_are_fine() -> None:
    assert numbers([Message("user", (TextPart("see"), image("a")))]) == []


IDS = st.sampled_from("ab")
ANYTHING = st.lists(
    st.builds(
        Message,
        st.sampled_from(["user", "user", "assistant", "assistant", "tool", "tool", "system"]),
        st.sampled_from(["a text", "a text", "\u2003\n", ""]),
        st.lists(st.builds(ToolCall, IDS, st.just("read"), st.sampled_from(["{}", "[1]"])), max_size=2).map(tuple),
        tool_call_id=IDS,
        extra=st.sampled_from([{}, {}, {"_private": 1}]),
    ),
    max_size=8,
)


@given(ANYTHING)
def test_a_text_breaks_the_rules_that_it_breaks_as_a_part_of_a_message(messages: list[Message]) -> None:
    """Bare texts are looked at in a shorter way than messages in parts."""
    in_parts = [replace(message, content=(TextPart(message.text),)) for message in messages]
    assert check_messages(messages) == check_messages(in_parts)
