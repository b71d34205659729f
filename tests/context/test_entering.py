"""What enters a phase: every form of ``context.from``, ``inject_from`` and the snowball, word for word."""

from __future__ import annotations

from typing import Any

import pytest

from tests.context.support import Conversation, assembled, cascade, image, scope, texts
from tests.context.test_stored_parts import PNG, url
from workbench.context.assembly import Action, Kind, Rule
from workbench.context.message import Image
from workbench.context.place import Place
from workbench.context.scope import PhaseScope, VisitRecord

GATHER = (
    Conversation("gather", native=True)
    .task("Read the log.")
    .calls(("read_log", "12:00 crash"), text="Looking.")
    .turn(2)
    .says("It crashed at noon.")
    .record("It crashed at noon.", {"hour": 12})
)
FIX = Conversation("fix").task("Fix it.").says("First fix.").record("First fix.")
FIX_AGAIN = Conversation("fix", 2).task("Fix it.").says("Second fix.").record("Second fix.")
BROKEN = Conversation("broken").task("Break.").says("Half done").record(status="failed")
TASK = ("user", "Find the failure.")


def entering(visits: tuple[VisitRecord, ...] = (GATHER, FIX, FIX_AGAIN), **phase: Any) -> PhaseScope:
    names = ("gather", "fix", "broken")
    definition = cascade(*({"name": name} for name in names), {"name": "work", **phase})
    return scope(definition, input={"path": "a.log", "who": "Ünal"}, visits=visits)


def sent(where: PhaseScope) -> list[tuple[str, str]]:
    return texts(assembled(where, Conversation().task()))


def selected(*sources: Any, **rules: Any) -> list[tuple[str, str]]:
    """What these sources bring in; the input stays out and the task is left off."""
    found = sent(entering(context={"from": list(sources), "include_input": False, **rules}))
    assert found.pop() == TASK
    return found


def test_a_phase_without_rules_starts_clean() -> None:
    assert sent(entering()) == [TASK]


def test_an_empty_context_still_brings_the_input() -> None:
    text = '[Original Input]:\n{\n  "path": "a.log",\n  "who": "Ünal"\n}'
    assert sent(entering(context={})) == [("user", text), TASK]


def test_a_bare_name_brings_the_output_of_its_latest_visit() -> None:
    assert selected("fix") == [("user", "[Output from fix]:\nSecond fix.")]


def test_a_numbered_name_brings_that_visit() -> None:
    assert selected("fix#1") == [("user", "[Output from fix]:\nFirst fix.")]


@pytest.mark.parametrize(
    ("keyword", "outputs"),
    [
        ("all", ["It crashed at noon.", "First fix.", "Second fix."]),
        ("First", ["It crashed at noon."]),
        ("PREVIOUS", ["Second fix."]),
        ("prev", ["Second fix."]),
    ],
)
def test_keywords_of_any_case_mean_visits_in_run_order(keyword: str, outputs: list[str]) -> None:
    assert [text.split("\n", 1)[1] for _, text in selected(keyword)] == outputs


def test_exclude_takes_phases_out_after_keywords() -> None:
    assert [text for _, text in selected("all", exclude=["fix"])] == ["[Output from gather]:\nIt crashed at noon."]


def test_sources_keep_the_order_of_the_array() -> None:
    assert [text.split("]")[0] for _, text in selected("fix", "gather")] == ["[Output from fix", "[Output from gather"]


def test_parts_of_a_source_come_as_images_output_messages_state() -> None:
    shown = Conversation("gather").task("Draw.").calls(("draw", "done")).shows("draw", image("a")).record("x", {"k": 1})
    where = entering(
        (shown,),
        context={
            "from": [{"phase": "gather", "include": ["state", "messages", "output", "images"]}],
            "include_input": False,
        },
    )
    firsts = [text.split("\n")[0] for _, text in sent(where)]
    assert firsts == [
        "[Images from gather]:",
        "[Output from gather]:",
        "[Conversation from gather]:",
        "Draw.",
        "```json",
        "[Tool result: draw]",
        "[Images from draw]:",
        "[State from gather]:",
        "Find the failure.",
    ]


def test_state_is_the_json_of_the_keys_that_the_visit_set() -> None:
    assert selected({"phase": "gather", "include": ["state"]}) == [("user", '[State from gather]:\n{\n  "hour": 12\n}')]


def test_injected_messages_carry_no_calls() -> None:
    assert selected({"phase": "gather", "include": ["messages"]}) == [
        ("user", "[Conversation from gather]:"),
        ("user", "Read the log."),
        ("assistant", 'Looking.\n[Called read_log with {"path": "a.log"}]'),
        ("user", "[Tool result: read_log]\n12:00 crash"),
        ("assistant", "It crashed at noon."),
    ]


def test_last_turn_takes_the_whole_last_turn() -> None:
    assert selected({"phase": "gather", "include": ["messages"], "messages_filter": "last_turn"}) == [
        ("user", "[Conversation from gather]:"),
        ("assistant", "It crashed at noon."),
    ]


def test_assistant_only_takes_the_answers_of_whole_turns() -> None:
    found = selected({"phase": "gather", "include": ["messages"], "messages_filter": "assistant_only"})
    assert [role for role, _ in found[1:]] == ["assistant", "assistant"]


def test_messages_are_those_of_the_last_attempt() -> None:
    tried = Conversation("fix").task("Fix it.").says("Wrong.").retry("no").says("Right.").record("Right.")
    context = {"from": [{"phase": "fix", "include": ["messages"]}], "include_input": False}
    where = entering((tried,), context=context)
    assert [text for _, text in sent(where)] == [
        "[Conversation from fix]:",
        "Fix it.",
        "Try again.",
        "Right.",
        "Find the failure.",
    ]


def test_what_a_filter_leaves_out_has_an_entry() -> None:
    source = {"phase": "gather", "include": ["messages"], "messages_filter": "last_turn"}
    assembly = assembled(entering(context={"from": [source]}), Conversation().task())
    dropped = [entry for entry in assembly.entries if entry.action is Action.DROPPED]
    assert [entry.item.message.role for entry in dropped] == ["user", "assistant", "tool"]
    assert {entry.reason.code for entry in dropped} == {"filter"}


def test_system_texts_follow_the_tool_text() -> None:
    where = entering(context={"from": ["gather", {"phase": "fix", "as_role": "system"}]}, tackle=["read_file"])
    where = scope(where.cascade, tool_text="Tools.", input=where.input, visits=where.visits)
    assert [role for role, _ in sent(where)] == ["system", "system", "user", "user", "user"]
    assert sent(where)[:2] == [("system", "Tools."), ("system", "[Output from fix]:\nSecond fix.")]


def test_a_conversation_that_an_assistant_would_open_gets_its_header_from_the_user() -> None:
    source = {"phase": "fix", "include": ["messages"], "messages_filter": "assistant_only", "as_role": "system"}
    assert selected(source) == [("user", "[Conversation from fix]:"), ("assistant", "Second fix.")]
    assert [role for role, _ in selected("gather", source)] == ["user", "user", "assistant"]


def test_images_and_messages_keep_their_roles_under_as_role_system() -> None:
    shown = Conversation("gather").task("Draw.").says("Here.").shows("draw", image("a")).record("x")
    source = {"phase": "gather", "include": ["images", "messages"], "as_role": "system"}
    found = sent(entering((shown,), context={"from": [source], "include_input": False}))
    assert found[1] == ("user", "[Conversation from gather]:")
    assert {role for role, _ in found[1:]} == {"user", "assistant"}


@pytest.mark.parametrize("include", ["output", "state"])
def test_an_image_in_a_system_text_follows_as_one_of_the_user(include: str) -> None:
    """A system message cannot carry an image."""
    drawn = Conversation("gather").task("Draw.").says(f"See {url(PNG)}").record(f"See {url(PNG)}", {"map": url(PNG)})
    source = {"phase": "gather", "include": [include], "as_role": "system"}
    made = assembled(entering((drawn,), context={"from": [source], "include_input": False}), Conversation().task())
    system, pictures, _ = made.request.messages
    assert (system.role, system.images, "base64" in system.text, "[image 1]" in system.text) == (
        "system",
        (),
        False,
        True,
    )
    assert (pictures.role, pictures.text, len(pictures.images)) == ("user", "[Images from gather]:", 1)


@pytest.mark.parametrize("retention", ["full", "output_only"])
def test_the_header_of_a_conversation_stands_beside_its_messages_under_as_role_system(retention: str) -> None:
    phases = [{"name": name, "context_retention": retention} for name in ("gather", "fix")]
    sources = [{"phase": name, "include": ["messages"], "as_role": "system"} for name in ("gather", "fix")]
    work = {"name": "work", "context": {"from": sources, "include_input": False}}
    found = sent(scope(cascade(*phases, work), "work", visits=(GATHER, FIX, FIX_AGAIN)))
    assert {role for role, _ in found} <= {"user", "assistant"}
    heads = [text for _, text in found if text.startswith("[Conversation from")]
    assert heads == ["[Conversation from gather]:", "[Conversation from fix]:"]
    second = [text for _, text in found].index(heads[1])
    assert found[0][1] == heads[0]
    own = "Second fix." if retention == "full" else "[Output from fix]:\nSecond fix."
    assert own in [text for _, text in found[second:]]
    assert own not in [text for _, text in found[:second]]


def test_the_same_image_enters_once() -> None:
    shown = Conversation("gather").task("Draw.").says("Done.").shows("draw", image("a"), image("b")).record("x")
    source = {"phase": "gather", "include": ["images", "messages"], "images_filter": "last"}
    assembly = assembled(entering((shown,), context={"from": [source, "gather"]}), Conversation().task())
    images = [part for message in assembly.request.messages for part in message.images]
    assert images == [image("b"), image("a")]
    assert "[image · 4x3 · 1,000 bytes · ref b0000000]" in assembly.request.messages[5].text


@pytest.mark.parametrize(
    ("source", "names"),
    [({"images_filter": "last"}, "c"), ({"images_filter": "last_n", "images_count": 2}, "bc"), ({}, "abc")],
)
def test_image_filters(source: dict[str, Any], names: str) -> None:
    made = Conversation("gather").task().says("x").shows("draw", image("a"), image("b"), image("a"), image("c"))
    rules = {"from": [{"phase": "gather", "include": ["images"], **source}]}
    assembly = assembled(entering((made.record("x"),), context=rules), Conversation().task())
    found: list[Image] = [part for message in assembly.request.messages for part in message.images]
    assert found == [image(name) for name in names]


def test_sources_that_cannot_be_injected_are_noted() -> None:
    rules = {"from": ["later", "broken", "fix"], "exclude": ["fix"], "include_input": False}
    assembly = assembled(entering((BROKEN, FIX), context=rules), Conversation().task())
    assert assembly.notes == (
        "context.from[0]: 'later' is skipped, nothing of it has run",
        "context.from[1]: 'broken' is skipped, its visit ended as failed",
        "context.from[2]: 'fix' is skipped, it is excluded",
    )
    assert texts(assembly) == [TASK]


def test_a_false_condition_skips_its_source_alone() -> None:
    where = entering(context={"from": ["gather", {"phase": "fix", "condition": "state.x"}], "include_input": False})
    where = scope(where.cascade, visits=where.visits, conditions={"phases[3].context.from[1]": False})
    assembly = assembled(where, Conversation().task())
    assert [text.split("]")[0] for _, text in texts(assembly)] == ["[Output from gather", "Find the failure."]
    assert assembly.notes == ("context.from[1]: 'fix' is skipped, its condition is false",)


def test_a_snowball_is_every_message_of_every_finished_visit() -> None:
    where = entering((GATHER, BROKEN, FIX))
    where = scope(where.cascade.model_copy(update={"context_default": "snowball"}), visits=where.visits)
    assert [text for _, text in sent(where)] == [
        "Read the log.",
        'Looking.\n[Called read_log with {"path": "a.log"}]',
        "[Tool result: read_log]\n12:00 crash",
        "It crashed at noon.",
        "Fix it.",
        "First fix.",
        "Find the failure.",
    ]


def test_inject_from_puts_its_sources_before_the_snowball() -> None:
    found = [text for _, text in sent(entering((FIX,), inject_from=["fix"]))]
    assert found == ["[Output from fix]:\nFirst fix.", "Fix it.", "First fix.", "Find the failure."]


def snowballed(visits: tuple[VisitRecord, ...], **gather: Any) -> PhaseScope:
    definition = cascade({"name": "gather", **gather}, {"name": "fix"}, {"name": "work"}, context_default="snowball")
    return scope(definition, visits=visits)


def test_output_only_retention_leaves_the_output_and_entries_for_the_rest() -> None:
    assembly = assembled(snowballed((GATHER,), context_retention="output_only"), Conversation().task())
    assert texts(assembly) == [("user", "[Output from gather]:\nIt crashed at noon."), TASK]
    dropped = [entry for entry in assembly.entries if entry.sent is None]
    assert len(dropped) == len(GATHER.items)
    assert {entry.rule for entry in dropped} == {Rule("phases[0].context_retention", 30)}


@pytest.mark.parametrize(("phases_since", "is_there"), [(0, True), (1, True), (2, False)])
def test_tool_results_leave_once_more_phases_have_finished(phases_since: int, is_there: bool) -> None:
    since = (FIX, FIX_AGAIN)[:phases_since]
    assembly = assembled(snowballed((GATHER, *since), context_ttl={"tool_results": 1}), Conversation().task())
    assert any("12:00 crash" in text for _, text in texts(assembly)) == is_there
    assert any("[Called read_log" in text for _, text in texts(assembly))


def test_a_null_ttl_never_ends() -> None:
    assembly = assembled(snowballed((GATHER, FIX, FIX_AGAIN), context_ttl={"messages": None}), Conversation().task())
    assert len(assembly.request.messages) == 9


def test_images_that_outlive_their_ttl_leave() -> None:
    shown = Conversation("gather").task("Draw.").says("Done.").shows("draw", image("a")).record("x")
    assembly = assembled(snowballed((shown, FIX), context_ttl={"images": 0}), Conversation().task())
    assert not any(message.images for message in assembly.request.messages)
    assert assembly.entries[2].reason.args == ("images", 0)


def test_entries_name_source_and_rule() -> None:
    assembly = assembled(entering(context={"from": ["gather"], "include_input": True}), Conversation().task())
    first, second, task = assembly.entries
    assert (first.item.kind, first.action, first.rule.path) == (
        Kind.INPUT,
        Action.INJECTED,
        "phases[3].context.include_input",
    )
    assert (second.item.source, second.rule) == ("gather.output", Rule("phases[3].context.from[0]", 50))
    assert second.item.place == Place("", "gather", 1)
    assert (task.item.kind, task.rule) == (Kind.TASK, Rule("phases[3].instructions", 30))


def test_blank_messages_of_a_foreign_phase_are_left_out() -> None:
    blank = Conversation("gather").task("Go.").says("  \n").record("x")
    assembly = assembled(snowballed((blank,)), Conversation().task())
    assert texts(assembly) == [("user", "Go."), TASK]
    assert assembly.entries[1].reason.code == "blank"
    assert not assembly.problems
