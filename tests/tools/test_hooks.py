"""Hooks of a workspace and of a program: who registers them, what they may answer, and who hears of a run's life."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

import workbench
from tests.support.waiting import PATIENCE, soon
from workbench import hooks
from workbench.context.place import Place
from workbench.engine.contracts import HookAction, HookEvent, HookResult
from workbench.engine.lifecycle import LOST, EventBus
from workbench.tools.hook_registry import HookRegistration, hooks_of, register_hook
from workbench.tools.hooks import RegisteredHooks, read_answer
from workbench.tools.trust import Trust
from workbench.workspace.input_file import CannotOpen
from workbench.workspace.model_choice import choose_model
from workbench.workspace.project import Project
from workbench.workspace.run_builder import RunAttachments, resume, start_of

EVENT = HookEvent("phase_start", "s", "2026-01-01T00:00:00.000000Z", {"phase_name": "p"})
CASCADE = "cascade_id: c\nphases: [{name: p, instructions: Go.}]\n"
REPLIES = "replies: {p: [{text: Gone.}]}\n"
HOOKS = """
from workbench import register_hook
from workbench.hooks import inject

def mind(event):
    return inject("Mind " + event.data["phase_name"], "house rule")

register_hook("on_phase_start", mind)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WORKBENCH_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("WORKBENCH_STATE_DIR", str(tmp_path / "state"))
    work = tmp_path / "work"
    work.mkdir()
    (work / "c.yaml").write_text(CASCADE)
    (work / "c.replies.yaml").write_text(REPLIES)
    return work


def run(folder: Path, **options: Any) -> Any:
    return workbench.run_cascade(folder / "c.yaml", {}, model="offline", folder=folder, **options)


def stored(folder: Path, run_id: str) -> list[Any]:
    return list(Project.at(folder).store.events(run_id))


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (None, HookResult("h")),
        (hooks.CONTINUE, HookResult("h")),
        (hooks.PAUSE, HookResult("h", HookAction.PAUSE)),
        (hooks.pause("why"), HookResult("h", HookAction.PAUSE, reason="why")),
        (hooks.inject("text"), HookResult("h", HookAction.INJECT, "text")),
        (hooks.inject("text", "why"), HookResult("h", HookAction.INJECT, "text", "why")),
    ],
)
def test_what_a_hook_may_answer(answer: object, result: HookResult) -> None:
    assert read_answer("h", answer) == result


@pytest.mark.parametrize("answer", [3, "inject", (HookAction.INJECT,), hooks.inject(" "), {"action": "pause"}])
def test_another_answer_is_an_error_in_words(answer: object) -> None:
    assert "return CONTINUE, PAUSE, pause(reason) or inject(text)" in read_answer("h", answer).error


def test_hooks_may_be_plain_or_async_and_one_that_raises_or_hangs_is_an_error() -> None:
    async def later(event: HookEvent) -> object:
        return hooks.inject("later")

    def bad(event: HookEvent) -> None:
        raise ValueError("no")

    async def hangs(event: HookEvent) -> None:
        await asyncio.Event().wait()

    registrations = [HookRegistration("phase_start", function) for function in (later, bad, hangs)]
    results = asyncio.run(RegisteredHooks(registrations, timeout_s=0.05).call(EVENT, Place("", "p", 1), 0))
    assert [(result.text, result.error.partition(":")[0]) for result in results] == [
        ("later", ""),
        ("", "ValueError"),
        ("", "TimedOut"),
    ]


async def test_a_coroutine_that_comes_after_the_time_limit_is_closed() -> None:
    given, over = list[Coroutine[Any, Any, None]](), threading.Event()

    async def answer() -> None: ...

    def late(event: HookEvent) -> object:
        assert over.wait(PATIENCE)
        given.append(answer())
        return given[0]

    hook = RegisteredHooks([HookRegistration("phase_start", late)], timeout_s=0.01)
    (result,) = await hook.call(EVENT, Place("", "p", 1), 0)
    assert result.error.startswith("TimedOut")
    over.set()
    await soon(lambda: given and inspect.getcoroutinestate(given[0]) == inspect.CORO_CLOSED, "the coroutine to close")


@pytest.mark.parametrize("name", ["on_phase_started", "phase_start", "on_"])
def test_an_unknown_hook_is_named_with_those_that_there_are(name: str) -> None:
    with pytest.raises(ValueError, match=r"there is no hook .*on_cascade_start, on_phase_start"):
        register_hook(name, lambda event: None)


def test_methods_of_an_object_are_hooks() -> None:
    class Mine:
        def on_turn_start(self, event: HookEvent) -> None: ...

        def helper(self) -> None: ...

    assert [registration.type for registration in hooks_of(Mine())] == ["turn_start"]


def test_a_program_runs_a_cascade_with_hooks_and_a_subscriber(folder: Path) -> None:
    bus = workbench.EventBus()
    with bus.subscribe() as events:
        result = run(folder, hooks={"on_turn_start": lambda event: hooks.inject("Mind.")}, bus=bus)
    assert (result.status, result.output) == ("success", "Gone.")
    told = list(events)
    assert [event.type for event in told] == [
        *("cascade_start", "phase_start", "turn_start", "phase_complete", "cascade_complete"),
    ]
    assert {event.session_id for event in told} == {result.session_id}
    assert told[-1].to_json()["data"] == {"status": "success", "output": "Gone.", "reason": ""}
    requests = [event for event in stored(folder, result.run_id) if event.kind == "hook"]
    assert [event.data["text"] for event in requests] == ["Mind."]


def test_a_file_that_cannot_run_is_told_with_its_place(folder: Path) -> None:
    (folder / "c.yaml").write_text("cascade_id: c\nphases: [{name: p}]\n")
    with pytest.raises(CannotOpen, match=r"c\.yaml:2:\d+: error"):
        run(folder)


def test_hooks_of_a_folder_without_trust_are_not_asked_and_the_run_says_so(folder: Path) -> None:
    (folder / "tools").mkdir()
    (folder / "tools" / "hooks.py").write_text(HOOKS)
    refused = stored(folder, run(folder).run_id)
    assert not [event for event in refused if event.kind == "hook"]
    (warning,) = [event.data["message"] for event in refused if event.kind == "warning"]
    assert warning.startswith("the hooks of hooks.py are not asked: this folder is not trusted")
    assert "workbench trust" in warning
    project = Project.at(folder)
    Trust(project.folders.state).grant(folder, project.environment.manifest(folder), "2026-01-01T00:00:00Z")
    trusted = stored(folder, run(folder).run_id)
    (hook,) = [event.data for event in trusted if event.kind == "hook"]
    assert (hook["name"], hook["action"], hook["text"]) == ("mind", "inject", "Mind p")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('register_hook("on_phase", mind)\n', "hooks.py cannot be imported: ValueError: there is no hook 'on_phase'"),
        ("def (\n", "hooks.py is not valid Python: invalid syntax"),
    ],
)
def test_a_run_says_that_hooks_are_not_asked_whose_file_cannot_be_loaded(folder: Path, more: str, said: str) -> None:
    (folder / "tools").mkdir()
    (folder / "tools" / "hooks.py").write_text(HOOKS + more)
    project = Project.at(folder)
    Trust(project.folders.state).grant(folder, project.environment.manifest(folder), "2026-01-01T00:00:00Z")
    events = stored(folder, run(folder).run_id)
    assert not [event for event in events if event.kind == "hook"]
    (warning,) = [event.data["message"] for event in events if event.kind == "warning"]
    assert warning.startswith(f"line {HOOKS.count(chr(10)) + 1} of {said}")
    assert warning.endswith("; its hooks are not asked")


def test_functions_of_a_file_with_hooks_are_no_tools(folder: Path) -> None:
    (folder / "tools").mkdir()
    (folder / "tools" / "hooks.py").write_text(HOOKS)
    project = Project.at(folder)
    assert "mind" not in project.environment.toolbox(folder).names()
    Trust(project.folders.state).grant(folder, project.environment.manifest(folder), "2026-01-01T00:00:00Z")
    assert "mind" not in project.environment.toolbox(folder).names()
    assert [hook.name for hook in project.environment.toolbox(folder).hooks] == ["mind"]


# -- the bus ---------------------------------------------------------------------------------------------------------


def numbered(number: int) -> HookEvent:
    return HookEvent("turn_start", "s", "", {"turn": number})


def test_a_slow_subscriber_loses_the_oldest_events_and_is_told_how_many() -> None:
    bus = EventBus()
    slow, fast = bus.subscribe(3), bus.subscribe(100)
    for number in range(10):
        bus.publish(numbered(number))
    slow.close()
    fast.close()
    heard = list(slow)
    assert (heard[0].type, heard[0].data) == (LOST, {"count": 7, "total": 7})
    assert [event.data["turn"] for event in heard[1:]] == [7, 8, 9]
    assert slow.lost == 7
    assert (len(list(fast)), fast.lost) == (10, 0)


def test_publishing_never_waits_for_a_subscriber() -> None:
    bus = EventBus()
    bus.subscribe(10)
    began = time.monotonic()
    for number in range(20_000):
        bus.publish(numbered(number))
    assert time.monotonic() - began < 20


def test_a_subscriber_in_another_thread_gets_events_as_they_come() -> None:
    bus, heard = EventBus(), list[int | None]()
    subscription = bus.subscribe()
    reader = threading.Thread(target=lambda: heard.extend(event.data.get("turn") for event in subscription))
    reader.start()
    bus.publish(EVENT)
    for number in range(5):
        bus.publish(numbered(number))
    subscription.close()
    reader.join(PATIENCE)
    assert heard == [None, 0, 1, 2, 3, 4]
    assert subscription.get(timeout=0) is None


def test_a_run_that_a_hook_stopped_goes_on_when_it_is_resumed(folder: Path) -> None:
    (folder / "c.yaml").write_text(CASCADE.replace("}]", "}, {name: q, instructions: Then.}]"))
    (folder / "c.replies.yaml").write_text("replies: {p: [{text: Gone.}], q: [{text: Done.}]}\n")
    stopped = run(folder, hooks={"on_phase_complete": lambda event: hooks.pause("look")})
    assert (stopped.status, stopped.reason) == ("stopped", "hook <lambda> pauses the run: look")
    project, told = Project.at(folder), list[str]()
    start = start_of(project, stopped.run_id, lambda definition, options: choose_model(project, None, None, "offline"))

    def watch(event: HookEvent) -> None:
        told.append(event.data["phase_name"])

    attached = RunAttachments(hooks=hooks_of({"on_phase_complete": watch}))
    outcome = asyncio.run(resume(project, stopped.run_id, start, attached))
    assert (outcome.status, outcome.output) == ("success", "Done.")
    assert told == ["q"], "what the hook said of p stands, and nobody asks again"
    assert [event.kind for event in stored(folder, stopped.run_id)].count("run_resumed") == 1
