"""The playground in the app: answers side by side, a budget, forks and prompts made of it; the run stays as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.widgets import Input

from tests.cli.test_hostile import EVIL
from tests.support.loopback import Loopback, Reply
from tests.ui.bench import Bench, bench
from tests.ui.snapshot import check_sizes
from tests.ui.test_bench import CASCADE, REPLIES, step
from tests.ui.test_edit import paused, review, top
from tests.ui.test_hostile import assert_harmless
from workbench.tui.screens.dialog import ChoiceDialog
from workbench.tui.screens.edit import EditScreen, ReviewSheet
from workbench.tui.screens.playground import Arrived, PlaygroundForm, PlaygroundScreen
from workbench.workspace.project import Project
from workbench.workspace.session import Session

PRICES = {"prices": {"openai/dear": {"input": 1000, "output": 2000}}}


async def opened(it: Bench) -> PlaygroundScreen:
    """Press P; the playground, its calls priced."""
    await it.press("P")
    screen = await top(it, PlaygroundScreen)
    await it.until(lambda: "pricing" not in it.text())
    return screen


async def sent(it: Bench, screen: PlaygroundScreen) -> None:
    await it.press("r")
    await it.until(lambda: "answered, cost" in it.text() and not screen.sending, "nothing was answered")


async def edited(it: Bench, screen: PlaygroundScreen, text: str) -> None:
    """Write a text before the first message of the request."""
    await it.press("e")
    await top(it, EditScreen)
    await it.press("g", "enter")
    await it.type(text)
    await it.press("escape")
    await review(it)
    await it.press("ctrl+s")
    await it.until(lambda: it.app.screen is screen, "the edits were not taken")


def online(folder: Path, provider: Loopback) -> Session:
    """A session whose run was answered offline, with a provider for everything else."""
    (folder / "config").mkdir(exist_ok=True)
    (folder / "config" / "config.yaml").write_text(json.dumps(PRICES | {"base_url": provider.url}))
    (folder / "log_triage.yaml").write_text(CASCADE)
    (folder / "log_triage.replies.yaml").write_text(REPLIES)
    env = {"WORKBENCH_CONFIG_DIR": str(folder / "config"), "WORKBENCH_STATE_DIR": str(folder / "state")}
    return Session(Project.at(folder, env=env), folder / "log_triage.yaml", model="offline")


async def test_a_request_is_sent_again_and_neither_the_run_nor_its_journal_notices(tmp_path: Path) -> None:
    async with paused(tmp_path, "n", "n") as it:
        await it.press("left_square_bracket")
        events = len(it.presenter.state.events)
        screen = await opened(it)
        assert "Nothing sent yet." in it.text()
        assert "offline · " in it.text(), "the model that the request goes to is not named"
        assert "1 call, free" in it.text()
        assert "1 user" in it.text(), "the request as it stands does not show"
        assert "copy" not in it.text().splitlines()[-1], "a key is offered for an answer that is not there"
        await sent(it, screen)
        assert "Ingest workers time out." in it.text()
        await it.press("escape")
        await it.until(lambda: it.app.screen is it.screen)
        assert len(it.presenter.state.events) == events
        await opened(it)
        assert "Ingest workers time out." in it.text(), "answers stay for the next look"


async def test_an_edited_request_becomes_a_fork_that_pauses_before_the_call(tmp_path: Path) -> None:
    async with paused(tmp_path, "n", "n") as it:
        await it.press("left_square_bracket")
        first = it.presenter.state.run.run_id
        screen = await opened(it)
        await edited(it, screen, "In short: ")
        await it.until(lambda: "1 edit" in it.text(), "the header does not count the edit")
        await it.press("F")
        await it.until(lambda: it.app.screen is it.screen)
        await it.until(lambda: it.presenter.state.run.run_id != first and it.session.stepper.held is not None)
        held = it.session.stepper.held
        assert held is not None
        assert str(held.kind) == "before_call"
        assert held.assembly is not None
        assert held.assembly.request.messages[0].text.startswith("In short: Say in one line")


async def test_an_answer_becomes_a_fork_that_goes_on_with_it(tmp_path: Path) -> None:
    async with paused(tmp_path, "n", "n") as it:
        await it.press("left_square_bracket")
        first = it.presenter.state.run.run_id
        screen = await opened(it)
        await sent(it, screen)
        await it.press("F")
        await top(it, ChoiceDialog)
        await it.press("a")
        await it.until(lambda: it.app.screen is it.screen)
        await it.until(lambda: it.presenter.state.run.run_id != first and it.session.stepper.held is not None)
        held = it.session.stepper.held
        assert held is not None
        assert (str(held.kind), held.edited) == ("after_call", True)
        assert held.answer is not None
        assert held.answer.text == "Ingest workers time out."


async def test_a_call_that_was_not_made_yet_becomes_a_fork_that_pauses_before_it(tmp_path: Path) -> None:
    """Its run holds no answer that another one could stand in for."""
    async with paused(tmp_path, "n") as it:
        first = it.presenter.state.run.run_id
        screen = await opened(it)
        await sent(it, screen)
        await it.press("F")
        await it.until(lambda: it.app.screen is it.screen)
        await it.until(lambda: it.presenter.state.run.run_id != first and it.session.stepper.held is not None)
        held = it.session.stepper.held
        assert held is not None
        assert str(held.kind) == "before_call"


async def test_a_small_budget_is_said_in_full(tmp_path: Path) -> None:
    async with paused(tmp_path, "n", "n") as it:
        await opened(it)
        await it.press("m")
        await it.type("openai/gpt-4.1-mini")
        await it.press("tab", "tab", "tab")
        await it.type("0.0000001")
        await it.press("enter")
        await it.until(lambda: "the budget of $0.00000010 is too small" in it.text(), "the budget is not refused")


async def test_what_a_round_costs_and_edits_have_room_beside_the_names_of_models(tmp_path: Path) -> None:
    with Loopback([Reply("hello")]) as provider:
        async with bench(tmp_path, session=online(tmp_path, provider), size=(80, 24)) as it:
            await step(it)
            screen = await opened(it)
            await edited(it, screen, "In short: ")
            await it.press("m")
            form = await top(it, PlaygroundForm)
            form.query_one("#names", Input).value = "openai/dear, openai/gpt-4.1-mini"
            form.query_one("#number", Input).value = "3"
            await it.press("enter")
            await it.until(lambda: it.app.screen is screen)
            await it.until(lambda: "6 calls" in it.text().splitlines()[0])
            assert "expected" in it.text().splitlines()[0]
            assert "✎ 1 edit" in it.text().splitlines()[0]


async def test_an_edited_prompt_is_written_into_the_file_as_a_change_of_its_words(tmp_path: Path) -> None:
    async with paused(tmp_path, "n", "n") as it:
        await it.press("left_square_bracket")
        screen = await opened(it)
        await it.press("w")
        assert "the instructions are not edited: edit message 1 first" in it.text()
        await edited(it, screen, "In short: ")
        await it.press("w")
        await top(it, ReviewSheet)
        assert "In short: Say in one line what {{ input.log }}" in it.text()
        await it.press("ctrl+s")
        await it.until(lambda: it.app.screen is screen)
        text = it.session.file.read_text()
        assert "In short: Say in one line what {{ input.log }} is about." in text
        assert len(text.splitlines()) == len(CASCADE.splitlines())


async def test_a_budget_that_is_too_small_is_said_before_anything_is_sent(tmp_path: Path) -> None:
    with Loopback([Reply("hello")]) as provider:
        async with bench(tmp_path, session=online(tmp_path, provider)) as it:
            await step(it)
            screen = await opened(it)
            await it.press("m")
            form = await top(it, PlaygroundForm)
            form.query_one("#names", Input).value = "openai/dear, offline"
            form.query_one("#number", Input).value = "3"
            form.query_one("#budget", Input).value = "much"
            await it.press("enter")
            await it.until(lambda: "budget: US dollars" in str(form.query_one("#objection").render()))
            form.query_one("#budget", Input).value = "$0.01"
            await it.press("enter")
            await it.until(lambda: it.app.screen is screen)
            await it.until(
                lambda: "the budget of $0.01 is too small" in " ".join(it.text().split()), "nothing was said"
            )
            await it.press("r")
            await it.pilot.pause()
            assert provider.requests == []
            screen.state.max_cost = None
            await sent(it, screen)
            assert len(provider.requests) == 3
            assert "hello" in it.text()
            assert "Ingest workers time out." in it.text()


@pytest.mark.parametrize("how", ["x", "escape"])
async def test_calls_under_way_are_ended_and_what_came_stays(tmp_path: Path, how: str) -> None:
    with Loopback([Reply("hello")]) as provider:
        async with bench(tmp_path, session=online(tmp_path, provider)) as it:
            await step(it)
            screen = await opened(it)
            screen.state.models = ("openai/hang", "offline")
            await it.press("r")
            await it.until(lambda: "Ingest workers time out." in it.text(), "the other model did not answer")
            assert screen.sending
            await it.press(how)
            await it.until(lambda: not screen.sending, "the calls were not ended")
            assert it.app.screen is screen
            assert "Ingest workers time out." in it.text()
            assert "1 of 2 answered" in it.text()


async def test_a_hostile_answer_is_shown_as_it_is(tmp_path: Path) -> None:
    with Loopback([Reply(EVIL)]) as provider:
        async with bench(tmp_path, session=online(tmp_path, provider)) as it:
            await step(it)
            screen = await opened(it)
            screen.state.models = ("openai/any",)
            await sent(it, screen)
            assert_harmless(it)
            await it.press("enter")
            assert_harmless(it)


async def test_without_a_call_there_is_nothing_to_play_with(tmp_path: Path) -> None:
    async with bench(tmp_path, text=CASCADE, replies=REPLIES) as it:
        await it.press("P")
        assert it.app.screen is it.screen
        assert "No call yet" in it.text()


async def test_the_playground_looks_as_stored(tmp_path: Path) -> None:
    async with paused(tmp_path, "n", "n") as it:
        await it.press("left_square_bracket")
        screen = await opened(it)
        screen.state.samples = 2
        await sent(it, screen)
        for sample in tuple(screen.state.answers.values()):
            screen.post_message(Arrived(replace(sample, seconds=0.4)))
        await it.until(lambda: "0.4s" in it.text())
        await check_sizes(it, "playground", picture=True)
        await it.press("m")
        await top(it, PlaygroundForm)
        await it.app.workers.wait_for_complete()
        await check_sizes(it, "playground-models")
