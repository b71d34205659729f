"""Edits while they are written: checked one by one, taken back, looked at as a difference, and made all together."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.waiting import until
from tests.workspace.test_session import asked, folder, make
from tests.workspace.test_travel import held, ran
from workbench.context.assembly import Action, Entry, Grade, Item, Kind, Reason, Rule
from workbench.context.edits import AddMessage, DropMessage, EditError, MoveMessage
from workbench.context.message import Message, ToolCall
from workbench.context.place import Place
from workbench.engine.debugger.stepper import Mode
from workbench.engine.edits import SetAnswer, SetModel, SetResult, SetState
from workbench.engine.gate import Stop, StopKind
from workbench.workspace.edit_draft import EditDraft, target_of, target_of_call
from workbench.workspace.session import Session

__all__ = ["folder", "ran"]

PLACE = Place("", "look", 1, 1, 1, 1)


@pytest.fixture
def session(folder: Path) -> Iterator[Session]:
    opened = make(folder)
    yield opened
    opened.close()


def to_stop(session: Session, kind: StopKind, phase: str = "look") -> Stop:
    """Step into the run until it is held at a stop of a kind."""
    session.start({}, Mode.INTO)
    stop = held(session)
    while stop.kind is not kind or stop.place.phase != phase:
        session.go(Mode.INTO)
        stop = held(session, but=stop)
    return stop


def saved(session: Session, draft: EditDraft, stop: Stop) -> Stop:
    """Make the edits of a draft; the stop as it is then."""
    session.edit(*draft.edits)
    return held(session, but=stop)


def test_messages_are_written_added_moved_and_dropped_and_all_of_it_can_be_taken_back(ran: Session) -> None:
    ran.fork(ran.run_id, "look:2", Mode.OVER)
    stop = held(ran)
    draft = EditDraft(target_of(stop))
    texts = [row.message.text for row in draft.rows]
    assert texts == [entry.item.message.text for entry in stop.assembly.entries] if stop.assembly else False
    task = texts.index("Look.")

    assert not draft.write(f"message:{task}", "Look."), "the same text is not an edit"
    draft.write(f"message:{task}", "Look har")
    draft.write(f"message:{task}", "Look harder.")
    draft.add(len(texts), "user", "And be brief.")
    draft.write(f"message:{len(texts)}", "And be very brief.")
    assert [type(edit).__name__ for edit in draft.edits] == ["ChangeMessage", "AddMessage"], (
        "written further is one edit"
    )
    assert [(change.what, change.before, change.after) for change in draft.changes] == [
        ("changed", "Look.", "Look harder."),
        ("added", "", "And be very brief."),
    ]
    assert [row.mark for row in draft.rows][-1] == "added"

    assert draft.undo()
    assert len(draft.rows) == len(texts)
    assert draft.redo()
    assert draft.undo()
    assert draft.undo()
    assert (draft.undo(), draft.edits, draft.changes) == (None, (), ())
    assert draft.redo()
    again = saved(ran, draft, stop)
    assert again.assembly is not None
    assert "Look harder." in [message.text for message in again.assembly.request.messages]


BREAKING: tuple[tuple[str, Callable[[EditDraft, int], None], str], ...] = (
    ("a dropped task", lambda draft, task: draft.do(DropMessage(task)), "rule 11"),
    ("a system message late", lambda draft, task: draft.add(len(draft.rows), "system", "x"), "rule 4: system messages"),
    ("an answer last", lambda draft, task: draft.add(len(draft.rows), "assistant", "x"), "rule 5"),
)


@pytest.mark.parametrize(("what", "edit", "rule"), BREAKING, ids=[case[0] for case in BREAKING])
def test_an_edit_that_breaks_the_request_is_refused_with_the_rule_and_the_run_stays_paused(
    ran: Session, what: str, edit: Callable[[EditDraft, int], None], rule: str
) -> None:
    ran.fork(ran.run_id, "look:2", Mode.OVER)
    stop = held(ran)
    draft = EditDraft(target_of(stop))
    task = [row.message.text for row in draft.rows].index("Look.")
    edit(draft, task)
    with pytest.raises(EditError, match=rule):
        ran.edit(*draft.edits)
    assert ran.stepper.held is stop
    assert draft.edits, "nothing is lost: the draft can be mended"


def test_what_a_person_cannot_write_is_refused_before_it_is_an_edit(session: Session) -> None:
    stop = to_stop(session, StopKind.BEFORE_TOOL)
    draft = EditDraft(target_of(stop))
    for text, fault in (("{", "line 1, column 2"), ("[1]", "must be a JSON object"), ("[" * 9000, "too deeply")):
        with pytest.raises(EditError, match=fault):
            draft.write("arguments", text)
    assert draft.edits == ()
    with pytest.raises(EditError, match="after tool only"):
        draft.do(SetResult("x"))
    with pytest.raises(EditError, match="not there any more"):
        draft.write("message:0", "x")


def test_arguments_a_skip_and_a_result_are_edited_where_the_run_is_paused(session: Session) -> None:
    stop = to_stop(session, StopKind.BEFORE_TOOL)
    draft = EditDraft(target_of(stop))
    part = draft.part("arguments")
    assert part is not None
    assert (part.kind, json.loads(part.text)) == ("json", {"path": "note.txt"})
    draft.write("skip", "not now")
    assert draft.skipped
    draft.write("arguments", '{"path": "c.json"}')
    assert not draft.skipped, "other arguments mean that the tool runs"
    assert [change.label for change in draft.changes] == ["arguments of read_file"]
    stop = saved(session, draft, stop)
    assert json.loads(stop.arguments) == {"path": "c.json"}

    session.go(Mode.INTO)
    stop = held(session, but=stop)
    assert stop.kind is StopKind.AFTER_TOOL
    draft = EditDraft(target_of(stop))
    draft.write("result", "no such file")
    draft.set_error(True)
    assert draft.edits == (SetResult("no such file", True),)
    stop = saved(session, draft, stop)
    assert stop.result == "no such file"
    assert EditDraft(target_of(stop)).result_is_error, "a later edit of its text leaves it an error"
    tool = session.project.store.state(session.run_id).calls[-1].tools[0]
    assert (tool.edited, tool.status) == (True, "failed")


def test_a_resumed_run_does_not_pause_at_the_edits_that_it_repeats(session: Session) -> None:
    stop = to_stop(session, StopKind.BEFORE_TOOL)
    draft = EditDraft(target_of(stop))
    draft.write("arguments", '{"path": "c.json"}')
    saved(session, draft, stop)
    session.stop()
    until(lambda: not session.running, "the end")
    session.resume(session.run_id, Mode.CONTINUE)
    until(lambda: asked(session) is not None or session.stepper.held is not None, "the question of the run")
    assert session.stepper.held is None


def test_an_answer_with_its_calls_is_edited_and_a_blank_one_is_refused(ran: Session) -> None:
    ran.fork(ran.run_id, "look:3", Mode.INTO)
    stop = held(ran)
    while stop.kind is not StopKind.AFTER_CALL:
        ran.go(Mode.INTO)
        stop = held(ran, but=stop)
    draft = EditDraft(target_of(stop))
    assert stop.answer is not None
    with pytest.raises(EditError, match="would be blank"):
        draft.write("answer", " ")
    draft.write("answer", "found more")
    assert draft.edits == (SetAnswer(Message("assistant", "found more")),)
    again = saved(ran, draft, stop)
    assert again.answer is not None
    assert again.answer.text == "found more"
    ran.go(Mode.CONTINUE)
    until(lambda: not ran.running, "the end")
    calls = ran.project.store.state(ran.run_id).calls
    assert [call.answer.text for call in calls if call.answer and call.edited] == ["found more"]


@pytest.mark.parametrize("kind", [StopKind.AFTER_PHASE, StopKind.BEFORE_PHASE])
def test_the_state_is_edited_at_both_ends_of_a_phase_and_a_fork_sets_it_again(ran: Session, kind: StopKind) -> None:
    ran.fork(ran.run_id, "look:3", Mode.INTO)
    stop = held(ran)
    while stop.kind is not kind:
        ran.go(Mode.INTO)
        stop = held(ran, but=stop)
    draft = EditDraft(target_of(stop))
    draft.do(SetState("mood", "calm"))
    draft.write("state:mood", '{"calm": 1}')
    assert draft.edits == (SetState("mood", {"calm": 1}),)
    assert [(change.what, change.label) for change in draft.changes] == [("added", "state.mood")]
    assert saved(ran, draft, stop).state["mood"] == {"calm": 1}
    ran.go(Mode.CONTINUE)
    until(lambda: not ran.running, "the end")
    ran.fork(ran.run_id, "tell:1", Mode.OVER)
    assert held(ran).state["mood"] == {"calm": 1}


def test_model_and_parameters_are_set_changed_and_taken_away(ran: Session) -> None:
    ran.fork(ran.run_id, "look:2", Mode.OVER)
    stop = held(ran)
    draft = EditDraft(target_of(stop))
    assert stop.assembly is not None
    assert not draft.set_request(draft.model, draft.parameters)
    draft.set_request("openai/gpt-4.1", {"temperature": 0, "max_tokens": 50})
    draft.set_request("openai/gpt-4.1", {"temperature": 0})
    stop = saved(ran, draft, stop)
    assert stop.assembly is not None
    assert (stop.assembly.request.model, dict(stop.assembly.request.parameters)) == (
        "openai/gpt-4.1",
        {"temperature": 0},
    )
    with pytest.raises(EditError, match="temperature"):
        draft.set_request("", {"temperature": "hot"})
    assert any(isinstance(edit, SetModel) for edit in draft.edits)


def test_a_move_shows_as_one(ran: Session) -> None:
    ran.fork(ran.run_id, "look:3", Mode.OVER)
    draft = EditDraft(target_of(held(ran)))
    last = len(draft.rows) - 1
    draft.do(MoveMessage(last, last - 1))
    assert ("moved", f"message {last + 1} to {last}") in [(c.what, c.label.partition(" (")[0]) for c in draft.changes]


def entry(message: Message, sent: Message | None) -> Entry:
    action = Action.KEPT if sent is message else Action.MASKED
    return Entry(Item(message, Kind.RESULT, PLACE), sent, action, Reason("always"), Rule(), 9, 9, Grade.EXACT)


def test_in_a_stored_request_roles_of_calls_stay_and_only_what_was_sent_in_full_is_written_anew() -> None:
    calls = Message("assistant", "", (ToolCall("c1", "look", '{"a": 1}'),))
    result, short = Message("tool", "all of it", (), "c1"), Message("tool", "[masked]", (), "c1")
    draft = EditDraft(target_of_call(PLACE, [entry(calls, calls), entry(result, short)], "m", {}))
    for at in (0, 1):
        with pytest.raises(EditError, match="their roles stay"):
            draft.set_role(at, "user")
    with pytest.raises(EditError, match="message 2 is masked"):
        draft.write("message:1", "other")
    draft.write("call:0:0", '{"a":\n 2}')
    assert [part.text for part in draft.parts if part.kind == "json"] == ['{\n  "a": 2\n}']
    draft.do(DropMessage(1))
    assert [(change.what, change.label) for change in draft.changes] == [
        ("changed", "message 1 (assistant)"),
        ("dropped", "message 2 (tool)"),
    ]


def test_an_added_message_that_is_dropped_again_leaves_nothing(ran: Session) -> None:
    ran.fork(ran.run_id, "look:2", Mode.OVER)
    draft = EditDraft(target_of(held(ran)))
    before = draft.rows
    draft.add(1, "user", "x")
    draft.do(DropMessage(1))
    assert (draft.rows, draft.edits) == (before, ())
    draft.do(AddMessage(1, Message("user", "y")))
    assert [c.what for c in draft.changes] == ["added"]


NATIVE = {
    "cascade_id": "c",
    "phases": [
        {
            "name": "look",
            "instructions": "Look.",
            "tackle": ["read_file"],
            "use_native_tools": True,
            "rules": {"max_turns": 3},
        }
    ],
}


def test_a_tool_result_without_its_call_is_refused_and_both_can_go_together(folder: Path) -> None:
    (folder / "c.json").write_text(json.dumps(NATIVE))
    session = make(folder)
    try:
        session.start({}, Mode.OVER)
        first = held(session)
        session.go(Mode.OVER)
        stop = held(session, but=first)
        draft = EditDraft(target_of(stop))
        roles = [row.message.role for row in draft.rows]
        assert roles == ["user", "assistant", "tool"]
        draft.do(DropMessage(1))
        with pytest.raises(EditError, match=r"answers no call .*rule 1: every tool result"):
            session.edit(*draft.edits)
        assert session.stepper.held is stop
        draft.write("call:1:0", '{"path": "c.json"}')
        assert draft.undo()
        draft.do(DropMessage(2))
        again = saved(session, draft, stop)
        assert again.assembly is not None
        assert [message.role for message in again.assembly.request.messages] == ["user"]
    finally:
        session.close()
