"""What nobody looks at leaves the memory of a watched session, and nobody sees a difference."""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.workspaces import alone
from workbench.attach.replies import rendered
from workbench.attach.traffic import Ask
from workbench.attach.traffic import Reply as Given
from workbench.context.assembly import Entry
from workbench.context.message import Message
from workbench.engine.contracts import Answer, NativeCall
from workbench.engine.journal.event import Event
from workbench.engine.journal.parts import BODIES_OF_A_PAGE, MOST_BODIES
from workbench.engine.journal.state import NEAR_VISITS, SPARE_VISITS, RunState
from workbench.tui.bench.state import BenchState
from workbench.workspace.attaching import AttachOptions, attached_run
from workbench.workspace.project import Project

CONTEXTS = 2 * (NEAR_VISITS + SPARE_VISITS)


@pytest.fixture
def project(folder: Path) -> Project:
    return Project.at()


class Watched:
    """A program in whose contexts calls are made, each with its events."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self.events: list[Event] = []

    def __enter__(self) -> Watched:
        self._run = attached_run(self._project, AttachOptions(), self.events.append)
        self._recorder = self._run.__enter__().recorder
        self._number = 0
        return self

    def __exit__(self, *_: object) -> None:
        self._recorder.close("success")
        self._run.__exit__(None, None, None)

    def call(self, said: Sequence[Mapping[str, Any]], answer: Answer) -> None:
        self._number += 1
        asked = Ask(self._number, "openai", "/chat/completions", {"model": "gpt-4.1-mini", "messages": list(said)})
        body = rendered(asked.path, {}, answer, f"chatcmpl-{self._number}")
        assert body is not None
        self._recorder.asked(asked)
        self._recorder.replied(asked, Given(200, *body, 0.1))

    def begin(self, context: int) -> None:
        """A call of a new context that asks for a tool, and one with the result."""
        said: list[dict[str, Any]] = [{"role": "user", "content": f"Task {context}"}]
        self.call(said, Answer("", (NativeCall(f"c{context}", "look", f'{{"at": {context}}}'),)))
        asked = {"id": f"c{context}", "type": "function"}
        asked["function"] = {"name": "look", "arguments": f'{{"at": {context}}}'}  # type: ignore[assignment]
        said += [{"role": "assistant", "content": "", "tool_calls": [asked]}]
        said += [{"role": "tool", "tool_call_id": f"c{context}", "content": f"Seen {context}"}]
        self.call(said, Answer(f"Done {context}"))


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Event, ...]:
    """The events of a program with as many contexts, the first of which goes on after all others: in a context of its
    own, as it is known no more."""
    home = tmp_path_factory.mktemp("paging")
    with pytest.MonkeyPatch.context() as patch:
        alone(patch, home, home / "work")
        with Watched(Project.at()) as program:
            for context in (*range(CONTEXTS), 0):
                program.begin(context)
    return tuple(program.events)


def shown(run: RunState) -> list[object]:
    """What a person can see of each call."""
    return [
        (
            [(visit.visit, visit.status, visit.output, [(item.kind, item.message) for item in visit.items])],
            [
                (call.place, list(call.entries), len(call.entries), call.answer, call.figures, call.parameters)
                for call in visit.calls
            ],
            [(tool.tool, tool.arguments, tool.text, tool.status) for call in visit.calls for tool in call.tools],
        )
        for visit in run.visits
    ]


def taken(events: Sequence[Event]) -> BenchState:
    """The state of an app that takes events out of memory after each one."""
    state = BenchState()
    for event in events:
        state.absorb((event,), (), 0.0)
        state.page_out()
    return state


def test_a_run_whose_old_contexts_are_on_disk_looks_the_same(told: tuple[Event, ...]) -> None:
    whole, state = RunState.of(told), taken(told)
    gc.collect()
    state.absorb((), (), 0.0)
    assert shown(state.run) == shown(whole)
    assert state.run.own == whole.own
    assert len(whole.visits) > CONTEXTS
    assert tuple(state.events) == told
    assert tuple(state.events[3:5]) == told[3:5]
    assert state.events[-1] == told[-1]


def test_old_contexts_leave_the_memory(project: Project) -> None:
    with Watched(project) as program:
        for context in range(CONTEXTS):
            program.begin(context)
    run, told = program.events[0].run_id, program.events[-1].seq
    state = taken(program.events)
    program.events.clear()
    gc.collect()
    entries = sum(isinstance(one, tuple) and type(one) is Entry for one in gc.get_objects())
    events = sum(type(one) is Event and one.run_id == run for one in gc.get_objects())
    assert len(state.run.visits) == CONTEXTS
    assert entries < 6 * (NEAR_VISITS + SPARE_VISITS)
    assert events < told / 2


def test_a_context_that_goes_on_after_long_is_as_if_it_had_stayed(project: Project) -> None:
    said = [{"role": "user", "content": "Begin"}]
    with Watched(project) as program:
        program.call(said, Answer("Begun"))
        for context in range(CONTEXTS):
            program.call([{"role": "user", "content": f"Beside {context}"}], Answer("ok"))
        said += [{"role": "assistant", "content": "Begun"}, {"role": "user", "content": "More"}]
        program.call(said, Answer("Continued"))
    whole, state = RunState.of(program.events), taken(program.events)
    shown(state.run)  # Reads so much back that nothing of the first context is remembered.
    assert [call.answer.text for call in state.run.visits[0].calls if call.answer] == ["Begun", "Continued"]
    assert shown(state.run) == shown(whole)


def test_bodies_on_disk_are_found_again(told: tuple[Event, ...]) -> None:
    count = MOST_BODIES + 2 * BODIES_OF_A_PAGE
    first, blob = told[0], next(event for event in told if event.kind == "blob")
    state = taken(told)
    messages = [Message("user", f"Body {number}") for number in range(count)]
    for message in messages:
        data = {**blob.data, "hash": message.body_hash, "body": message.to_json()}
        state.absorb((Event(state.run.seq + 1, first.at, first.run_id, "blob", first.place, data),), (), 0.0)
    state.page_out()
    assert len(state.run.bodies) < count
    assert [state.run.bodies[message.body_hash] for message in messages] == messages
    assert state.run.bodies.known("0" * 64) is None


def test_a_disk_that_takes_nothing_leaves_all_in_memory(
    told: tuple[Event, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = RunState.of(told)
    monkeypatch.setenv("TMPDIR", "/nowhere")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    assert "TMPDIR" in os.environ
    state = taken(told)
    assert shown(state.run) == shown(whole)
    assert tuple(state.events) == told
