"""What a provider began goes on offline only when a person says so, and says where it does."""

from __future__ import annotations

from pathlib import Path

from tests.store.examples import save
from tests.ui.bench import Bench, bench, session_at
from tests.ui.stored import retold
from tests.ui.test_bench import CASCADE, REPLIES, step
from workbench.engine.debugger.stepper import Mode
from workbench.tui.screens.dialog import ChoiceDialog
from workbench.workspace.session import Session

PROVIDED = "0190c6f2-7f3a-7000-8000-00000000c001"


async def begun_by_a_provider(folder: Path) -> None:
    """A stored run that was stopped before its second call, as if a provider had answered the first."""
    async with bench(folder, text=CASCADE, replies=REPLIES) as it:
        await step(it)
        await step(it)
        await it.press("x")
        await it.until(lambda: it.presenter.state.run.status == "stopped" and not it.session.running)
        store = it.session.project.store
        events = retold(store.events(it.session.run_id), PROVIDED, 5, ports={"model": "openai/gpt-4.1-mini"})
    save(store, events)


def without_a_provider(folder: Path) -> Session:
    """A session that nobody told to be offline, and that knows no provider."""
    asked = session_at(folder, CASCADE, REPLIES)
    return Session(asked.project, asked.file)


def notes(it: Bench) -> str:
    return "\n".join(note.message for note in it.app.notices.all)


async def test_a_run_that_a_provider_began_asks_before_it_goes_on_offline(tmp_path: Path) -> None:
    await begun_by_a_provider(tmp_path)
    async with bench(tmp_path, session=without_a_provider(tmp_path), fresh=True) as it:
        await it.press("escape")
        it.app.navigation.resume_run(PROVIDED)
        await it.until(lambda: isinstance(it.app.screen, ChoiceDialog), "nobody was asked")
        said = str(it.app.screen.query_one("#text").render())
        assert "This run used a provider, and now none is configured: no provider key is set." in said
        await it.press("s")
        assert not it.session.running

        await it.press("c")
        assert isinstance(it.app.screen, ChoiceDialog), "the key that goes on asks, too"
        await it.press("o")
        await it.until(lambda: it.presenter.state.run.status == "success" and not it.session.running)


async def test_a_person_who_asked_for_the_offline_model_is_not_asked_again(tmp_path: Path) -> None:
    await begun_by_a_provider(tmp_path)
    async with bench(tmp_path, text=CASCADE, replies=REPLIES, fresh=True) as it:
        await it.press("escape")
        it.app.navigation.show_run(PROVIDED, lambda: it.screen.resume(PROVIDED, Mode.CONTINUE))
        await it.until(lambda: it.presenter.state.run.status == "success" and not it.session.running)


async def test_a_fork_of_such_a_run_says_that_the_rest_is_offline(tmp_path: Path) -> None:
    await begun_by_a_provider(tmp_path)
    async with bench(tmp_path, session=without_a_provider(tmp_path), fresh=True) as it:
        await it.press("escape")
        it.session.view(PROVIDED)
        it.screen.show_what_is_stored()
        it.screen.redraw()
        await it.press("F")
        await it.until(lambda: it.presenter.state.held is not None)
        assert "what is not recorded is answered offline" in notes(it)
