"""Speaking to a running phase from the app."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual import events
from textual.widgets import Input

from tests.ui.bench import Bench, bench, screen_text
from workbench.context.place import Place
from workbench.engine.contracts import Feedback
from workbench.tui.screens.feedback import FeedbackDialog
from workbench.workspace.people import AppAudibles

ESSAY = """cascade_id: essay
phases:
- name: draft
  instructions: Write about tides.
  rules: {max_turns: 2}
  audibles: {budget: 2, timeout_seconds: 30}
- name: title
  instructions: Find a title.
"""
REPLIES = """replies:
  draft:
  - {text: Tides come., redo: ["Les marées viennent."]}
  - {text: And go.}
  title: [{text: Tides}]
"""


async def held(it: Bench, *, turn: int) -> None:
    await it.until(lambda: it.presenter.state.held is not None and it.presenter.state.held.place.turn == turn)


async def test_feedback_is_seen_by_the_next_call_and_the_budget_goes_down(tmp_path: Path) -> None:
    async with bench(tmp_path, text=ESSAY, replies=REPLIES, given={}) as it:
        assert "may speak to it 2 times (S)" in it.pane("context")
        await it.press("n")
        await held(it, turn=1)
        for key in "Sx":
            it.app.post_message(events.Key(key, key))
        await it.until(lambda: isinstance(it.app.screen, FeedbackDialog))
        await it.until(lambda: it.app.screen.query_one(Input).value == "x", "what was typed meanwhile is written")
        await it.press("backspace")
        assert "2 of 2 left in this visit" in screen_text(it.app)
        await it.type("Shorter")
        await it.press("enter", "n")
        await it.until(lambda: it.presenter.state.held is not None and it.presenter.state.held.why == "feedback added")
        assert "feedback of a" in it.pane("context")
        await it.press("S")
        assert "1 of 2 left in this visit" in screen_text(it.app)
        await it.press("escape", "x")
        await it.until(lambda: not it.session.running)


async def test_a_turn_is_taken_again(tmp_path: Path) -> None:
    async with bench(tmp_path, text=ESSAY, replies=REPLIES, given={}) as it:
        await it.press("n")
        await held(it, turn=1)
        await it.press("S")
        await it.type("In French")
        await it.press("tab", "tab", "enter", "c")
        await it.until(lambda: not it.session.running and not it.session.events)
        answers = [call.answer.text for call in it.presenter.state.run.calls if call.answer]
        assert answers == ["Tides come.", "Les marées viennent.", "And go.", "Tides"]


async def test_a_phase_without_audibles_says_so(tmp_path: Path) -> None:
    text = ESSAY.replace("  audibles: {budget: 2, timeout_seconds: 30}\n", "")
    async with bench(tmp_path, text=text, replies=REPLIES, given={}) as it:
        await it.press("S")
        assert "No run is active." in screen_text(it.app)
        await it.press("n")
        await held(it, turn=1)
        await it.press("S")
        assert "'draft' takes no feedback" in screen_text(it.app)
        await it.press("x")
        await it.until(lambda: not it.session.running)


async def test_what_came_too_late_is_told(tmp_path: Path) -> None:
    async with bench(tmp_path, text=ESSAY, replies=REPLIES, given={}) as it:
        await it.press("n")
        await held(it, turn=1)
        await it.press("n")
        await held(it, turn=2)
        await it.press("S")
        await it.type("Again")
        await it.press("enter", "x")
        await it.until(lambda: not it.session.running)
        await it.until(lambda: "came after the last call: Again" in screen_text(it.app))


PLACE = Place("", "p", 1, 1, 1, 1)


@pytest.mark.parametrize("say", [True, False])
async def test_with_a_hand_raised_the_run_waits_for_what_is_said_or_not_said(say: bool) -> None:
    audibles = AppAudibles()
    assert await audibles.hear(PLACE, redo=False) is None
    audibles.raise_hand()
    waiting = asyncio.ensure_future(audibles.hear(PLACE, redo=False))
    await asyncio.sleep(0)
    assert not waiting.done()
    await asyncio.to_thread(lambda: audibles.say("now") if say else audibles.lower_hand())
    assert await waiting == (Feedback("now") if say else None)


async def test_what_is_said_is_heard_once_and_where_it_belongs() -> None:
    audibles = AppAudibles()
    audibles.say("again", redo=True)
    assert await audibles.hear(PLACE, redo=False) is None
    assert await audibles.hear(PLACE, redo=True) == Feedback("again", True)
    assert await audibles.hear(PLACE, redo=True) is None


async def test_who_is_no_longer_waited_for_is_not_waited_for_again() -> None:
    audibles = AppAudibles()
    audibles.raise_hand()
    waiting = asyncio.ensure_future(audibles.hear(PLACE, redo=False))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert await audibles.hear(PLACE, redo=False) is None
    audibles.say("late")
    assert audibles.unheard == (Feedback("late"),)
