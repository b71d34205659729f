"""The Bench driven by keys, over real runs with the offline model."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.command import run_cli
from tests.ui.bench import Bench, bench, session_at
from tests.ui.support import Story
from workbench.engine.debugger.stepper import Mode

CASCADE = """\
cascade_id: night
phases:
  - name: intake
    instructions: Say in one line what {{ input.log }} is about.
    handoffs: [triage]
  - name: triage
    instructions: Find the first failure.
    tackle: [set_state]
    context:
      from: [intake]
    rules:
      max_turns: 4
    intra_context:
      mask_observations_after: 1
      min_masked_size: 10
    handoffs: [report]
  - name: report
    instructions: Write the report.
    context:
      from: [triage]
"""

REPLIES = """\
replies:
  intake:
    - text: Ingest workers time out.
  triage:
    - say: Noting the component.
      calls: [{tool: set_state, arguments: {key: component, value: ingest}}]
    - say: Noting the team.
      calls: [{tool: set_state, arguments: {key: team, value: blue}}]
    - text: The queue timed out first.
  report:
    - text: The queue timed out at 09:14.
"""

ASKING = """\
cascade_id: asking
phases:
  - name: ask
    instructions: Find the owner.
    tackle: [ask_human]
    rules: {max_turns: 2}
"""

ASKING_REPLIES = """\
replies:
  ask:
    - say: I have to ask.
      calls: [{tool: ask_human, arguments: {question: "Which team owns the queue?"}}]
    - text: Owned by blue.
"""


async def step(it: Bench, key: str = "n") -> None:
    """Press a key that lets the run go on, and wait until it is held again or over."""
    state = it.presenter.state
    before = (state.run.run_id, state.alive, state.held)
    await it.press(key)
    await it.until(
        lambda: (
            (state.run.run_id, state.alive, state.held) != before
            and state.started
            and (not state.alive or state.held is not None)
        ),
        f"after {key} the run neither held nor ended",
    )


async def test_n_goes_turn_by_turn_shows_each_call_before_it_is_sent_and_comes_back_from_earlier_ones(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        await step(it)
        call = it.presenter.state.call
        assert call is not None
        assert call.place.phase == "intake"
        assert call.status == "assembled"
        assert "Say in one line what night.log is about." in it.pane("detail")
        assert "PAUSED before intake:1" in it.text()
        for turn in (1, 2):
            await step(it)
            assert newest(it) == ("triage", turn), "the newest call is not followed"
        await look_back(it)
        await step(it)
        assert newest(it) == ("triage", 3), "a step does not come back from an earlier call"
        pane = it.pane("context")
        assert "masked: age 2" in pane
        line = CASCADE.split("\n").index("      mask_observations_after: 1") + 1
        assert f":{line}" in pane
        await step(it)
        assert newest(it) == ("report", 1)


def newest(it: Bench) -> tuple[str, int]:
    """Phase and turn of the call that shows."""
    selected = it.presenter.state.selected
    assert selected is not None
    return selected.phase, selected.turn


async def look_back(it: Bench) -> None:
    """From the second turn of the second phase to the first call, forward again, and back by one."""
    await it.press("left_square_bracket", "left_square_bracket")
    assert newest(it) == ("intake", 1)
    assert "Context  intake · turn 1" in it.pane("context")
    assert not it.presenter.state.following
    await it.press("right_square_bracket", "right_square_bracket", "right_square_bracket")
    assert it.presenter.state.following
    await it.press("left_square_bracket")


async def test_i_stops_before_the_tool_runs_and_o_at_the_end_of_the_phase(tmp_path: Path) -> None:
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        await step(it)
        await step(it)
        kinds: list[str] = []
        while "before_tool" not in kinds and len(kinds) < 6:
            await step(it, "i")
            assert it.presenter.state.held is not None
            kinds.append(it.presenter.state.held.kind)
        assert "before_tool" in kinds
        assert "PAUSED before set_state in triage:1" in it.text()
        await step(it, "o")
        held = it.presenter.state.held
        assert held is not None
        assert held.kind == "after_phase"
        assert held.place.phase == "triage"


async def test_r_runs_to_the_end_and_the_output_is_there(tmp_path: Path) -> None:
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        await step(it, "r")
        assert it.presenter.state.run.status == "success"
        await it.press("4")
        assert "The queue timed out at 09:14." in it.pane("dock")
        await it.press("3")
        assert "component" in it.pane("dock")
        assert "← triage" in it.pane("dock")


async def test_a_breakpoint_on_a_phase_of_the_tree_holds_a_continued_run(tmp_path: Path) -> None:
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        it.screen.focus_pane("tree")
        await it.press("down", "down", "b")
        assert not it.session.stepper.breakpoints
        await it.press("enter")
        assert "◆ report" in it.pane("tree")
        await it.press("b", "enter")
        assert not it.session.stepper.breakpoints, "the same answer clears it"
        await it.press("f9")
        await step(it, "c")
        held = it.presenter.state.held
        assert held is not None
        assert held.place.phase == "report"
        assert held.why == "breakpoint report"


async def test_a_condition_is_asked_for_checked_and_used(tmp_path: Path) -> None:
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        await it.press("b")
        await it.type("triage turn >")
        await it.press("enter")
        assert not it.session.stepper.breakpoints
        await it.type(" 1")
        await it.press("enter")
        assert [str(point) for point in it.session.stepper.breakpoints] == ["triage turn > 1"]
        await step(it, "c")
        assert it.presenter.state.selected is not None
        assert it.presenter.state.selected.turn == 2


async def test_space_holds_a_running_run_at_its_next_stop(tmp_path: Path) -> None:
    slow = REPLIES.replace("replies:\n", "defaults: {latency: 1}\nreplies:\n", 1)  # Before it, a key must get through.

    async with bench(tmp_path, text=CASCADE, replies=slow) as it:
        await it.press("c")
        await it.until(lambda: it.presenter.state.waiting)
        await it.press("space")
        await it.until(lambda: it.presenter.state.held is not None)
        assert it.presenter.state.held is not None
        assert it.presenter.state.held.why == "paused"


async def test_a_step_that_an_active_run_cannot_take_is_refused_in_words(tmp_path: Path) -> None:
    slow = REPLIES.replace("replies:\n", "defaults: {latency: 300}\nreplies:\n", 1)

    async with bench(tmp_path, text=CASCADE, replies=slow) as it:
        await step(it)
        await it.press("n", "n")
        await it.until(lambda: "Key ignored: the last step is not over yet." in it.text())
        await it.press("c")
        await it.until(lambda: "Continues to the next breakpoint, or to the end." in it.text())
        await it.press("c")
        await it.until(lambda: "The run is active already; space pauses it." in it.text())
        await it.press("n")
        await it.until(lambda: "Pauses before the next call." in it.text())


async def test_a_run_that_was_begun_is_starting_until_its_first_event(tmp_path: Path) -> None:
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        it.screen.action_start()  # Nothing that its engine sends is taken before this test waits.
        assert "STARTING" in "".join(text for text, _ in it.presenter.header(120))
        assert it.presenter.situation() == "running"
        await it.until(lambda: it.presenter.state.run.status == "success")
        assert "STARTING" not in it.text()
        await it.until(lambda: not it.session.running)
        it.screen.action_start()
        assert "STARTING" in "".join(text for text, _ in it.presenter.header(120))
        await it.until(lambda: " DONE " in it.text())


async def test_the_stop_at_a_call_beside_the_turns_names_its_purpose_and_the_edits_screen_too(tmp_path: Path) -> None:
    text = "cascade_id: two\nphases: [{name: write, instructions: Write., soundings: {factor: 2}}]\n"
    replies = """\
replies:
  write:
    - {branch: s0, text: Short.}
    - {branch: s1, text: Long.}
    - {aside: 1, text: '{"winner": 1, "reason": "It is short."}'}
"""
    async with bench(tmp_path, text=text, replies=replies) as it:
        while "PAUSED before write evaluation" not in it.text():
            await step(it, "i")
            assert it.presenter.state.alive, "the run ended without an evaluation"
        await it.press("E")
        await it.until(lambda: "Edit  before write evaluation" in it.text())
        await it.press("escape")
        await it.press("number_sign")
        await it.until(lambda: "tags of write evaluation" in it.text())


async def test_a_question_opens_a_dialog_and_its_answer_goes_on_with_the_run(tmp_path: Path) -> None:
    async with bench(tmp_path, text=ASKING, replies=ASKING_REPLIES) as it:
        await it.press("r")
        await it.until(lambda: it.app.screen is not it.screen, "no dialog opened")
        assert "Which team owns the queue?" in it.text()
        await it.type("blue")
        await it.press("enter")
        await it.until(lambda: it.presenter.state.run.status == "success")
        answered = [event for event in it.presenter.state.events if event.kind == "human_answered"]
        assert [event.data["answer"] for event in answered] == ["blue"]


async def test_a_closed_question_stays_open_in_the_run_and_a_brings_it_back(tmp_path: Path) -> None:
    async with bench(tmp_path, text=ASKING, replies=ASKING_REPLIES) as it:
        await it.press("r")
        await it.until(lambda: it.app.screen is not it.screen)
        await it.press("escape")
        await it.until(lambda: it.app.screen is it.screen)
        assert "WAITING FOR YOU" in it.text()
        await it.press("E")
        await it.until(lambda: "while the run waits for your answer: a opens the question." in it.text())
        await it.press("a")
        await it.until(lambda: it.app.screen is not it.screen)
        await it.press("escape")


async def test_declared_inputs_that_nobody_gave_are_asked_for_first(tmp_path: Path) -> None:
    declared = CASCADE.replace("phases:", "inputs_schema:\n  log: Path of the log\n  depth: How deep\nphases:", 1)

    async with bench(tmp_path, text=declared, replies=REPLIES, given={}) as it:
        await it.press("n")
        await it.until(lambda: it.app.screen is not it.screen, "no form opened")
        assert "Path of the log" in it.text()
        await it.type("night.log")
        await it.press("enter")
        await it.type("3")
        await it.press("enter")
        await it.until(lambda: it.presenter.state.held is not None)
        assert it.presenter.state.run.input == {"log": "night.log", "depth": 3}


async def test_leaving_while_a_run_is_going_asks_and_escape_stays(tmp_path: Path) -> None:
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        await step(it)
        await it.press("q")
        assert "A run is active: " in it.text()
        await it.press("escape")
        assert it.app.screen is it.screen
        assert it.session.running
        await it.press("q", "q")
        await it.until(lambda: not it.app.is_running or it.app.return_code == 0)


async def test_leaving_an_idle_app_asks_nothing(tmp_path: Path) -> None:
    async with bench(tmp_path, text=CASCADE) as it:
        await it.press("e")
        await it.until(lambda: it.app.screen is not it.screen)
        await it.press("f6", "q")
        assert it.app.screen is it.screen, "above the Bench the key leads back"
        assert it.app.is_running
        await it.press("q")
        await it.until(lambda: it.app.return_code == 0)


async def test_a_stopped_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        await step(it)
        await step(it)
        await it.press("x")
        await it.until(lambda: it.presenter.state.run.status == "stopped" and not it.session.running)
        assert "STOPPED" in it.text()
        run_id = it.presenter.state.run.run_id
        await step(it)
        assert it.presenter.state.run.run_id == run_id
        held = it.presenter.state.held
        assert held is not None
        assert (held.place.phase, held.place.turn) == ("triage", 1)
        await step(it, "c")
        assert it.presenter.state.run.status == "success"
        finished = [event.place.phase for event in it.presenter.state.events if event.kind == "phase_finished"]
        assert finished.count("intake") == 1


async def test_a_phase_says_whether_it_may_still_call_a_model(tmp_path: Path) -> None:
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        story = Story().start(CASCADE)
        place = story.phase("intake")
        it.presenter.phase = "intake"
        await it.feed(story.events)
        assert "No model call yet." in it.text()
        told = len(story.events)
        story.emit("phase_finished", place, status="success", output="", reason="", check="")
        await it.feed(story.events[told:])
        assert "It made no model call." in it.text()


async def test_a_stored_run_does_not_go_on_beside_one_that_is_going_on(tmp_path: Path) -> None:
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        await step(it)
        await it.press("x")
        await it.until(lambda: it.presenter.state.run.status == "stopped" and not it.session.running)
        stopped = it.presenter.state.run.run_id
        it.screen.begin(Mode.OVER)
        await it.until(lambda: it.presenter.state.held is not None and it.presenter.state.run.run_id != stopped)
        going = it.presenter.state.run.run_id
        it.screen.resume(stopped, Mode.OVER)
        assert it.presenter.state.run.run_id == going
        await step(it, "c")
        assert it.presenter.state.run.status == "success"


async def test_a_resumed_run_that_stops_again_at_once_is_not_shown_as_running(tmp_path: Path) -> None:
    (tmp_path / "workbench.yaml").write_text("max_calls: 1\n")
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        await it.press("r")
        await it.until(lambda: it.presenter.state.run.status == "stopped" and not it.session.running)
        held = len(it.presenter.state.events)
        await it.press("c")
        await it.until(lambda: "stopped again" in it.text(), "nothing says that it stopped again")
        assert not it.presenter.state.alive
        assert "STOPPED: the limit of 1 calls" in it.text()
        assert len(it.presenter.state.events) == held
        assert "c resume" in it.text()


async def test_a_run_that_answers_did_not_fit_is_resumed_with_its_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rated = "cascade_id: rated\nphases: [{name: p, instructions: Go., human_input: {type: rating}}]\n"
    (tmp_path / "log_triage.yaml").write_text(rated)
    (tmp_path / "log_triage.replies.yaml").write_text("replies: {p: [{text: Done.}]}\n")
    await asyncio.to_thread(run_cli, "run", "log_triage.yaml", "--session", "s", "-q")
    await asyncio.to_thread(run_cli, "resume", "s", "--answers", '{"p": "9"}', "-q")
    async with bench(tmp_path, text=rated, replies="replies: {p: [{text: Done.}]}\n") as it:
        await it.until(lambda: "An unfinished run" in it.text(), "no offer was made")
        await it.press("enter")
        await it.until(lambda: "WAITING FOR YOU" in it.text(), "the question is not asked")
        assert "p asks" in it.text()
        await it.press("space", "ctrl+s")
        await it.until(lambda: it.presenter.state.run.outputs.get("p") and it.presenter.state.held is not None)
        await step(it, "c")
        assert it.presenter.state.run.status == "success"


async def test_the_next_start_offers_to_go_on_with_a_run_that_did_not_end(tmp_path: Path) -> None:
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        await step(it)
        await step(it)
        await it.press("q", "q")
        await it.until(lambda: it.app.return_code == 0)
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        await it.until(lambda: "An unfinished run" in it.text(), "no offer was made")
        assert "was stopped in triage after" in it.text()
        await it.press("down", "enter")
        await it.until(lambda: it.presenter.state.run.status == "stopped", "the run is not shown")
        assert "n resume, step" in it.text(), "and nothing is offered once more"
        await it.press("n")
        await it.until(lambda: it.presenter.state.held is not None)
        assert it.presenter.state.held is not None
        assert it.presenter.state.held.place.phase == "triage"


async def test_no_offer_to_go_on_comes_between_a_run_and_who_just_started_it(tmp_path: Path) -> None:
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        it.session.start({"hint": "Go."}, Mode.OVER)
        it.screen.offer_to_go_on("stopped-1a2b", "stopped-1a2b was stopped")
        assert it.app.screen is it.screen


async def test_a_stored_run_is_shown_without_running_anything(tmp_path: Path) -> None:
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        await step(it, "r")
        run_id = it.presenter.state.run.run_id
    session = session_at(tmp_path, CASCADE, REPLIES)
    session.view(run_id)
    async with bench(tmp_path, session=session) as it:
        assert "DONE" in it.text()
        assert not it.session.running
        assert "Summary" in it.pane("context")
        await it.press("left_square_bracket", "left_square_bracket")
        assert "Context  triage · turn 3/4" in it.pane("context")
