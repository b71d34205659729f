"""The session behind the app: a run in its own thread, stepped, stopped, resumed, viewed, reloaded."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import until
from workbench.engine.debugger.stepper import Mode
from workbench.engine.gate import Stop
from workbench.engine.journal.event import Event
from workbench.engine.journal.state import RunState
from workbench.workspace.project import Project
from workbench.workspace.session import Session

CASCADE: dict[str, Any] = {
    "cascade_id": "c",
    "phases": [
        {"name": "look", "instructions": "Look.", "tackle": ["read_file", "ask_human"], "rules": {"max_turns": 4}},
        {"name": "tell", "instructions": "Tell {{ outputs.look }}."},
    ],
}
REPLIES = {
    "replies": {
        "look": [
            {"calls": [{"tool": "read_file", "arguments": {"path": "note.txt"}}]},
            {"calls": [{"tool": "ask_human", "arguments": {"question": "Which?"}}]},
            {"text": "found"},
        ],
        "tell": [{"text": "told"}],
    }
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "c.json").write_text(json.dumps(CASCADE), "utf-8")
    (tmp_path / "c.replies.yaml").write_text(json.dumps(REPLIES), "utf-8")
    (tmp_path / "note.txt").write_text("a note", "utf-8")
    return tmp_path


@pytest.fixture
def session(folder: Path) -> Iterator[Session]:
    opened = make(folder)
    yield opened
    opened.close()


def make(folder: Path) -> Session:
    env = {"WORKBENCH_STATE_DIR": str(folder / "state"), "WORKBENCH_CONFIG_DIR": str(folder / "config")}
    return Session(Project.at(folder, env=env), folder / "c.json")


def asked(session: Session) -> Event | None:
    return next((event for event in list(session.events) if event.kind == "human_asked"), None)


def let_go(session: Session, held: Stop) -> bool:
    return session.stepper.held is not held


def finish(session: Session) -> RunState:
    until(lambda: not session.running, "the end of the run")
    return RunState.of(session.events)


def test_a_run_is_held_at_each_turn_and_goes_on_when_told(session: Session) -> None:
    session.start({}, Mode.OVER)
    for place in ("look:1", "look:2"):
        until(lambda: session.stepper.held, f"the hold at {place}")
        held = session.stepper.held
        assert held is not None
        assert f"{held.place.phase}:{held.place.turn}" == place
        assert held.assembly is not None
        session.go(Mode.OVER if place == "look:1" else Mode.CONTINUE)
        until(partial(let_go, session, held), "the release")
    until(lambda: asked(session), "the question")
    question = asked(session)
    assert question is not None
    assert session.answer(question, "that one")
    state = finish(session)
    assert (state.status, state.output) == ("success", "told")
    assert any("that one" in tool.text for call in state.calls for tool in call.tools)


def test_a_run_has_its_id_from_its_beginning_to_the_beginning_of_the_next(session: Session) -> None:
    """What runs in the other thread asks for it; what cannot begin changes nothing."""
    session.start({}, Mode.OVER)
    until(lambda: session.stepper.held, "the first hold")
    run_id = session.run_id
    for begin in (partial(session.start, {}), partial(session.rerun, run_id), partial(session.resume, run_id)):
        with pytest.raises(RuntimeError, match="a run is going on"):
            begin(Mode.OVER)
        assert session.run_id == run_id
    assert {event.run_id for event in session.events} == {run_id}


def test_stopping_ends_the_run_as_stopped_and_it_can_be_resumed(session: Session) -> None:
    session.start({}, Mode.OVER)
    until(lambda: session.stepper.held, "the first hold")
    session.stop()
    assert finish(session).status == "stopped"
    stopped = session.run_id
    session.events.clear()
    session.resume(stopped, Mode.CONTINUE)
    until(lambda: asked(session), "the question")
    question = asked(session)
    assert question is not None
    session.answer(question, "x")
    until(lambda: not session.running, "the end of the run")
    stored = session.project.store.state(stopped)
    assert (stored.status, stored.output) == ("success", "told")


def test_closing_in_the_middle_leaves_a_complete_journal(folder: Path) -> None:
    session = make(folder)
    session.start({}, Mode.OVER)
    until(lambda: session.stepper.held, "the first hold")
    session.close()
    state = session.project.store.state(session.run_id)
    assert state.status == "stopped"
    assert session.project.store.health(session.run_id).whole


def test_a_stored_run_is_viewed_without_running_anything(session: Session) -> None:
    session.start({}, Mode.OVER)
    until(lambda: session.stepper.held, "the first hold")
    session.stop()
    before = finish(session)
    session.events.clear()
    session.view(session.run_id)
    assert not session.running
    viewed = RunState.of(session.events)
    assert [call.digest for call in viewed.calls] == [call.digest for call in before.calls]


def test_an_invalid_save_keeps_the_last_good_definition(session: Session, folder: Path) -> None:
    file = folder / "c.json"
    file.write_text("{", "utf-8")
    broken = session.reload()
    assert not broken.valid
    assert broken.opened.errors
    assert session.runnable is not None
    changed = {**CASCADE, "phases": [CASCADE["phases"][0], {"name": "tell", "instructions": "Say it."}]}
    file.write_text(json.dumps(changed), "utf-8")
    good = session.reload()
    assert good.valid
    assert good.changed == frozenset({"tell"})
    file.unlink()
    assert "no such file" in session.reload().gone
    assert session.runnable is not None


def test_a_reload_takes_the_text_that_the_watcher_found_complete(session: Session, folder: Path) -> None:
    file = folder / "c.json"
    whole = json.dumps({**CASCADE, "phases": [CASCADE["phases"][0], {"name": "tell", "instructions": "Say it."}]})
    file.write_text(whole[: len(whole) // 2], "utf-8")
    reload = session.reload(session.project.load(file, whole.encode()))
    assert reload.valid
    assert reload.changed == frozenset({"tell"})


def test_inputs_that_the_file_no_longer_declares_are_known(session: Session, folder: Path) -> None:
    given = ["text", "date", "more"]
    told = []
    for declared in ({"text": "A text."}, {"text": "", "date": ""}, {"date": "A day."}, None, {"text": ""}):
        text = CASCADE if declared is None else {**CASCADE, "inputs_schema": declared}
        (folder / "c.json").write_text(json.dumps(text), "utf-8")
        assert session.reload().valid
        told.append(session.outdated(given))
    assert told == [[], [], ["text"], [], ["date"]], "what was never declared may be given"


def test_replies_that_cannot_be_read_are_named_by_their_place_alone(session: Session) -> None:
    session.file.with_name(f"{session.file.stem}.replies.yaml").write_text("replies: {a: [\n")
    session.start({}, Mode.CONTINUE)
    until(lambda: session.failure, "the fault")
    assert session.failure.startswith(f"{session.file.stem}.replies.yaml:2:1: error: ")


def test_the_header_says_why_it_is_offline(session: Session) -> None:
    assert session.header.model.startswith("offline as ")
    assert session.header.why == "no provider key is set"


def test_a_run_that_another_process_writes_is_followed_to_its_end(folder: Path) -> None:
    writing, looking = make(folder), make(folder)
    try:
        writing.start({}, Mode.OVER)
        until(lambda: writing.stepper.held is not None, "the first stop")
        looking.view(writing.run_id)
        assert looking.follows
        kinds = [event.kind for event in looking.events]
        assert kinds[0] == "run_started"
        assert "call_finished" not in kinds
        looking.follow()
        assert [event.kind for event in looking.events] == kinds, "nothing was added"

        held = writing.stepper.held
        assert held is not None
        writing.stepper.go(Mode.OVER)
        until(lambda: writing.stepper.held not in (None, held), "the second stop")
        looking.follow()
        assert [event.kind for event in looking.events].count("call_finished") == 1
        assert looking.follows
        writing.stop()
        until(lambda: not writing.running, "the end of the run")
    finally:
        writing.close()
    until(lambda: looking.follow() or not looking.follows, "the end of what is followed")  # type: ignore[func-returns-value]
    seen = list(looking.events)
    assert seen == list(looking.project.store.events(looking.run_id))
    assert seen[-1].kind == "run_finished"
    looking.follow()
    assert list(looking.events) == seen
    looking.close()


def test_a_stored_run_that_nobody_writes_is_not_followed(session: Session) -> None:
    session.start({}, Mode.OVER)
    until(lambda: session.stepper.held is not None, "the first stop")
    session.stop()
    until(lambda: not session.running, "the end of the run")
    looking = make(session.file.parent)
    looking.view(session.run_id)
    assert not looking.follows
    assert looking.viewed is not None
    assert looking.viewed.drifted == frozenset()
    looking.close()
    text = json.loads(session.file.read_text("utf-8"))
    text["phases"][1]["instructions"] = "Tell it twice."
    session.file.write_text(json.dumps(text), "utf-8")
    changed = make(session.file.parent)
    changed.view(session.run_id)
    assert changed.viewed is not None
    assert changed.viewed.drifted == {"tell"}
    changed.close()


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_run_that_is_stopped_while_it_ends_has_ended_as_it_did(folder: Path) -> None:
    cascade = {"cascade_id": "c", "phases": [{"name": "tell", "instructions": "Tell."}]}
    (folder / "c.json").write_text(json.dumps(cascade), "utf-8")
    for turns in range(30):
        session = make(folder)
        session.events = StopsAtTheEnd(session, turns)
        session.start({}, Mode.CONTINUE)
        assert finish(session).status == "success"
        assert session.project.store.summary(session.run_id).status == "success"
        assert session.failure == ""
        session.stop()
        session.go(Mode.OVER)


class StopsAtTheEnd(deque[Event]):
    """Takes the events of a session, and stops its run some turns of the engine's loop after the last one."""

    def __init__(self, session: Session, turns: int) -> None:
        super().__init__()
        self._session = session
        self._turns = turns

    def append(self, event: Event) -> None:
        super().append(event)
        if event.kind == "run_finished":
            self._stop(self._turns)

    def _stop(self, turns: int) -> None:
        if turns:
            asyncio.get_running_loop().call_soon(self._stop, turns - 1)
        else:
            self._session.stop()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"instructions": "Say {{ outputs.look }}."}, "c.json:1: message 1 (the task) was reworded"),
        ({"instructions": "Tell {{ outputs.look }}.", "model": "other"}, "c.json:1: the model was "),
    ],
)
def test_a_run_that_is_run_again_pauses_at_the_first_changed_call_and_says_what_changed(
    folder: Path, change: dict[str, Any], said: str
) -> None:
    phases = [{"name": "look", "instructions": "Look."}, {"name": "tell", "instructions": "Tell {{ outputs.look }}."}]
    (folder / "c.json").write_text(json.dumps({"cascade_id": "c", "phases": phases}), "utf-8")
    (folder / "c.replies.yaml").write_text("replies: {look: found, tell: told}\n", "utf-8")
    first = make(folder)
    first.start({}, Mode.CONTINUE)
    run = finish(first).run_id
    first.close()
    phases[1] |= change
    (folder / "c.json").write_text(json.dumps({"cascade_id": "c", "phases": phases}), "utf-8")
    again = make(folder)
    again.rerun(run, Mode.CONTINUE)
    until(lambda: again.stepper.held, "the changed call")
    held = next(one for one in again.notices if one.kind == "held")
    assert held.place.phase == "tell"
    assert said in held.data["why"]
    assert again.changed is not None
    assert again.changed.place == held.place
    again.go(Mode.CONTINUE)
    assert finish(again).status == "success"
    assert again.changed is None
    again.close()
