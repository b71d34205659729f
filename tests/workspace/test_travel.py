"""The session travels: forks and holds there, edits, re-runs after a save, and keeps its breakpoints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.waiting import until
from tests.workspace.test_session import CASCADE, folder, make
from workbench.context.edits import ChangeMessage, DropMessage, EditError, MoveMessage
from workbench.context.message import Message
from workbench.engine.debugger.stepper import Breakpoint, Mode
from workbench.engine.edits import SetAnswer, SetState
from workbench.engine.gate import Stop
from workbench.engine.journal.state import RunState
from workbench.workspace.session import Session

__all__ = ["folder"]


@pytest.fixture
def ran(folder: Path) -> Iterator[Session]:
    """A session whose first run was stopped by nothing: its question is answered."""
    text = json.loads((folder / "c.json").read_text())
    text["phases"][0]["tackle"] = ["read_file"]
    (folder / "c.json").write_text(json.dumps(text, indent=1))
    session = make(folder)
    session.start({}, Mode.CONTINUE)
    until(lambda: not session.running, "the first run")
    yield session
    session.close()


def held(session: Session, but: Stop | None = None) -> Stop:
    until(lambda: session.stepper.held is not None and session.stepper.held is not but, "a hold")
    assert session.stepper.held is not None
    return session.stepper.held


def ended(session: Session) -> RunState:
    until(lambda: not session.running, "the end")
    return session.project.store.state(session.run_id)


def test_a_fork_is_held_at_its_point_edited_there_and_goes_on(ran: Session) -> None:
    parent = ran.run_id
    ran.fork(parent, "look:2", Mode.OVER)
    first = held(ran)
    assert (first.place.phase, first.place.turn) == ("look", 2)
    ran.edit(ChangeMessage(1, Message("user", "Look harder.")), SetState("k", 1))
    again = held(ran, but=first)
    assert again.edited
    assert again.assembly is not None
    assert "Look harder." in [message.text for message in again.assembly.request.messages]
    with pytest.raises(EditError, match="at after call only"):
        ran.edit(SetAnswer(Message("assistant", "x")))
    ran.go(Mode.CONTINUE)
    state = ended(ran)
    assert (state.status, state.edited, state.parent["run_id"]) == ("success", 2, parent)
    assert [call.recorded for call in state.calls][:2] == [True, False]


def test_an_edit_that_cannot_be_made_is_refused_and_the_run_stays_held(ran: Session) -> None:
    ran.fork(ran.run_id, "look:2", Mode.OVER)
    first = held(ran)
    last = len(first.draft or ())
    drop = DropMessage(last - 1)
    for edits, fault in (
        ((DropMessage(last),), f"no message {last + 1}"),
        ((drop, ChangeMessage(1, Message("user", " "))), "would be blank"),
        ((MoveMessage(last - 1, last + 3),), "can go to places"),
    ):
        with pytest.raises(EditError, match=fault):
            ran.edit(*edits)
        assert ran.stepper.held is first
    ran.go(Mode.CONTINUE)
    state = ended(ran)
    assert (state.status, state.edited) == ("success", 0)


def test_a_rerun_after_a_save_is_held_at_the_first_changed_request_and_says_which_line(
    ran: Session, folder: Path
) -> None:
    text = (folder / "c.json").read_text().replace("Tell {{", "Say {{")
    (folder / "c.json").write_text(text)
    assert ran.reload().changed == {"tell"}
    ran.notices.clear()
    ran.rerun(ran.run_id, Mode.CONTINUE)
    stop = held(ran)
    assert (stop.place.phase, stop.answered_by) == ("tell", "changed")
    until(lambda: any(notice.kind == "held" for notice in ran.notices), "why it is held")
    why = next(notice.data["why"] for notice in ran.notices if notice.kind == "held")
    line = next(n for n, written in enumerate(text.splitlines(), 1) if "Say {{" in written)
    assert f"c.json:{line}" in why
    ran.go(Mode.CONTINUE)
    state = ended(ran)
    assert [call.recorded for call in state.calls] == [True] * (len(state.calls) - 1) + [False]


def test_a_rerun_that_is_paused_in_what_it_repeats_can_be_started_from(ran: Session) -> None:
    """It is stored as soon as a person can want anything of it, though nothing new has happened in it."""
    ran.stepper.breakpoints = [Breakpoint("look", 2)]
    ran.rerun(ran.run_id, Mode.CONTINUE)
    assert held(ran).answered_by == "recorded"
    until(lambda: ran.run_id in ran.project.store.run_ids(), "the run in the store")
    other = ran.workspace.file(ran.file)
    other.stepper.breakpoints.clear()
    other.rerun(ran.run_id, Mode.CONTINUE)
    state = ended(other)
    assert (state.status, state.parent["run_id"]) == ("success", ran.run_id)
    assert [call.recorded for call in state.calls] == [True, False, False, False]
    other.close()


def test_breakpoints_are_kept_for_the_file_and_nonsense_is_left_out(folder: Path) -> None:
    session = make(folder)
    points = [Breakpoint("look", 2), Breakpoint(condition="tokens > 8000"), Breakpoint(tool="read_file")]
    session.stepper.breakpoints += points
    session.close()
    again = make(folder)
    assert again.stepper.breakpoints == points
    file = next((folder / "state" / "breakpoints").iterdir())
    kept = json.loads(file.read_text())
    kept["breakpoints"] += [{"condition": "import os"}, 7, {"phase": 3}]
    file.write_text(json.dumps(kept))
    assert make(folder).stepper.breakpoints == points
    file.write_text("{")
    assert make(folder).stepper.breakpoints == []
    assert CASCADE["cascade_id"] == "c"
