"""Tags, notes, scores and thumbs by keys: in the list of runs, and on the calls of the Bench."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from textual.widgets import TextArea

from tests.ui.bench import Bench, bench, screen_text
from tests.ui.snapshot import check_sizes
from tests.ui.stored import FAILED, PARENT, stored_runs
from tests.ui.test_runs import filtered, go_to, opened
from workbench.context.place import Place
from workbench.engine.journal.annotations import Annotations, Change, Labels
from workbench.store.store import Store
from workbench.tui.screens.annotator import NoteDialog
from workbench.tui.screens.runs import RunsScreen
from workbench.tui.screens.sheet import Sheet
from workbench.tui.widgets.entry import LineInput
from workbench.views.annotations import call_words
from workbench.workspace.links import SharedLinks


async def answer(it: Bench, key: str, text: str) -> None:
    """Press a key that asks for a line, and write one."""
    await it.press(key)
    await it.until(lambda: it.app.screen.query(LineInput), "nothing was asked")
    it.app.screen.query_one(LineInput).value = text
    await it.press("enter")


async def note(it: Bench, text: str) -> None:
    await it.press("quotation_mark")
    await it.until(lambda: isinstance(it.app.screen, NoteDialog), "no note was asked for")
    it.app.screen.query_one(TextArea).text = text
    await it.press("ctrl+s")


async def test_a_run_is_annotated_in_the_list(tmp_path: Path) -> None:
    store = stored_runs(tmp_path)
    async with bench(tmp_path) as it:
        screen = await opened(it)
        await go_to(it, screen, FAILED)

        async def holds(labels: Labels) -> None:
            def shown() -> bool:
                run = screen.run()
                return run is not None and run.labels == labels

            await it.until(shown, f"{labels} does not show")
            assert store.annotations(FAILED).run == labels

        await answer(it, "number_sign", "good #slow")
        await holds(Labels(("good", "slow")))
        await answer(it, "number_sign", "slow")
        await holds(Labels(("slow",)))
        await answer(it, "asterisk", "much")
        assert screen.query(LineInput), "what is not a score is not taken"
        await it.press("escape")
        await answer(it, "asterisk", "3.5")
        await it.press("plus")
        await holds(Labels(("slow",), (), 3.5, "up"))
        await note(it, "The key was refused.\nAsk Ada for another.")
        await holds(Labels(("slow",), ("The key was refused.\nAsk Ada for another.",), 3.5, "up"))
        await check_sizes(it, "runs-annotated", picture=True)
        await it.press("quotation_mark")
        await it.until(lambda: isinstance(it.app.screen, NoteDialog), "no note was asked for")
        await check_sizes(it, "note")
        await it.press("x", "escape")
        assert "Not saved" in screen_text(it.app), "a changed note is not dropped by one key"
        await it.press("escape")
        assert it.app.screen is screen
        await note(it, "")
        await answer(it, "asterisk", "")
        await it.press("plus")
        await answer(it, "number_sign", "")
        await holds(Labels())


async def test_a_call_and_its_run_are_annotated_on_the_bench(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        await it.press("r")
        await it.until(lambda: it.presenter.state.run.finished, "the run did not end")
        run, store = it.presenter.state.run, it.session.project.store
        place = it.presenter.state.selected
        assert place is not None

        def said() -> Annotations:
            return store.annotations(run.run_id)

        it.presenter.state.summary = False
        await it.press("minus")
        await it.until(lambda: said().at(place).thumb == "down", "the call has no thumb")
        await answer(it, "number_sign", "odd")
        await it.until(lambda: run.annotations.at(place).tags == ("odd",), "the call has no tag")
        assert "#odd ↓" in it.text()
        it.presenter.state.summary = True
        await answer(it, "asterisk", "2")
        await it.until(lambda: said().run.score == 2, "the score is not the run's where its summary shows")
        it.presenter.state.summary = False
        it.screen.tree_pane.focus()
        await it.press("g")
        await answer(it, "number_sign", "whole")
        await it.until(lambda: said().run.tags == ("whole",), "the run has no tag")
        await it.press("L")
        await it.until(
            lambda: isinstance(it.app.screen, RunsScreen) and it.app.screen.listing.members, "no run is listed"
        )
        assert "#whole" in screen_text(it.app)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ask Ben", "The filter fits triage:1."),
        ("tag:odd", "The filter fits triage:1."),
        ("score<2", "The filter fits triage:2."),
        ("score<4", "The filter fits triage:1, and triage:2: 2 calls. This is the first."),
    ],
)
async def test_a_run_that_is_found_by_what_a_call_bears_opens_at_that_call(
    tmp_path: Path, text: str, said: str
) -> None:
    store = stored_runs(tmp_path)
    first, second = Place.parse("triage/1/1/1/1"), Place.parse("triage/1/1/2/1")
    store.annotate(PARENT, Change(first, tags=("odd",), notes=("ask Ben",), score=3))
    store.annotate(PARENT, Change(second, score=1))
    async with bench(tmp_path) as it:
        screen = await opened(it)
        await filtered(it, screen, text)
        await it.press("enter")
        await it.until(lambda: not screen.query(LineInput), "the filter was not taken")
        place = second if text == "score<2" else first
        shown = "\n".join(screen_text(it.app).splitlines()[: screen.list_pane.size.height])
        assert f"{call_words(place)} " in shown, "the row does not name the call"
        await it.press("enter")
        await it.until(lambda: it.app.screen is it.screen, "the run did not open")
        await it.until(lambda: it.presenter.state.selected == place, "the call is not shown")
        assert not it.presenter.state.summary, "the summary hides the call"
        assert said in it.text()


async def test_what_another_window_said_meanwhile_stays(tmp_path: Path) -> None:
    store = stored_runs(tmp_path)
    async with bench(tmp_path) as it:
        screen = await opened(it)
        await go_to(it, screen, FAILED)
        await it.press("number_sign")
        await it.until(lambda: screen.query(LineInput), "nothing was asked")
        await it.type("mine")
        Store(store.root).annotate(FAILED, Change(tags=("theirs",)))
        await it.press("enter")
        await it.until(lambda: set(store.annotations(FAILED).run.tags) == {"mine", "theirs"}, "one of them is lost")
        await it.until(lambda: not screen.query(LineInput), "the prompt stays")
        await it.press("number_sign")
        await it.until(lambda: screen.query(LineInput), "nothing was asked")
        await it.type("more")
        await it.press("enter")
        await it.until(lambda: "more" in store.annotations(FAILED).run.tags, "nothing was added")
        assert {"mine", "theirs"} < set(store.annotations(FAILED).run.tags), "a tag that is typed is added"


async def test_several_marked_runs_are_tagged_at_once(tmp_path: Path) -> None:
    store = stored_runs(tmp_path)
    async with bench(tmp_path) as it:
        screen = await opened(it)
        runs = [member.run.run_id for member in screen.listing.members[:3]]
        await it.press("g", "space", "space", "space")
        await answer(it, "number_sign", "batch")

        def tagged() -> bool:
            return all(store.annotations(run).run.tags == ("batch",) for run in runs)

        await it.until(tagged, "not all were tagged")
        await it.until(lambda: "3 runs" in screen_text(it.app), "nothing says how many were tagged")


async def test_what_another_window_says_shows_on_the_bench_and_a_link_is_copied(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        await it.press("r")
        await it.until(lambda: it.presenter.state.run.finished, "the run did not end")
        run, project = it.presenter.state.run, it.session.project
        taken: list[str] = []
        it.app.copy = lambda text, what: taken.append(text)  # type: ignore[method-assign]
        project.store.annotate(run.run_id, Change(tags=("elsewhere",)))
        await it.until(lambda: run.annotations.run.tags == ("elsewhere",), "the tag does not show")
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
        SharedLinks(project).serves_at(port)
        await it.press("U")
        await it.until(lambda: SharedLinks(project).all(), "no link was made")
        (link,) = SharedLinks(project).all()
        assert link.run_id == run.run_id
        await it.until(lambda: taken, "nothing was copied")
        here = it.presenter.state.call
        assert here is not None
        assert taken[0].endswith(f"#{here.place}"), "it leads to the call that is looked at"
        await it.until(lambda: isinstance(it.app.screen, Sheet), "the address is not shown")
        assert taken[0] in "".join(line.strip(" │┃") for line in screen_text(it.app).splitlines())
        assert f"workbench link --revoke {link.id}" in screen_text(it.app)
        assert f"Nothing answers at port {port} now." in screen_text(it.app)
