"""The runs screen: what it lists, how a run is found, and what can be done with one."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.test_compare import CASCADE
from tests.store.examples import extend, plain_run, save
from tests.ui.bench import Bench, bench, screen_text
from tests.ui.snapshot import check_sizes
from tests.ui.stored import BROKEN, FAILED, FORK, IMPORTED, INNER, PARENT, retold, stored_runs
from tests.ui.support import triage_story
from tests.ui.test_compare import REPLIES, prepared
from workbench.store.catalog import ORDERS
from workbench.store.store import Store
from workbench.store.summary import RunSummary
from workbench.tui.screens.compare import CompareSheet
from workbench.tui.screens.dialog import ChoiceDialog
from workbench.tui.screens.runs import RunsScreen
from workbench.tui.widgets.entry import LineInput
from workbench.views.numbers import spent_cell
from workbench.views.runs import ORDER_WORDS
from workbench.workspace.home import keep_demo


async def opened(it: Bench, runs: int = 5) -> RunsScreen:
    """Press L, and wait until so many runs are listed. An unfinished run may have been offered before."""
    if isinstance(it.app.screen, ChoiceDialog):
        await it.press("escape")
    await it.press("L")
    await it.until(lambda: isinstance(it.app.screen, RunsScreen), "the screen did not open")
    screen = it.app.screen
    assert isinstance(screen, RunsScreen)
    await it.until(lambda: len(screen.listing.members) == runs, "not all runs are listed")
    return screen


def listed(screen: RunsScreen) -> list[str]:
    return [member.run.run_id for member in screen.listing.members]


async def go_to(it: Bench, screen: RunsScreen, run_id: str) -> None:
    screen.list_pane.move_to(listed(screen).index(run_id))
    await it.pilot.pause()


async def filtered(it: Bench, screen: RunsScreen, text: str) -> None:
    """Open the filter line and write into it."""
    await it.press("f")
    await it.until(lambda: screen.query(LineInput), "nothing was asked")
    screen.query_one(LineInput).value = text
    await it.until(lambda: screen.listing.wanted.text == text and not screen.listing.searching, "nothing was filtered")


async def test_every_stored_run_is_a_line_below_the_run_that_it_came_from(tmp_path: Path) -> None:
    stored_runs(tmp_path)
    async with bench(tmp_path) as it:
        await check_sizes(it, "unfinished", picture=True)
        screen = await opened(it)
        assert listed(screen) == [PARENT, FORK, FAILED, IMPORTED, BROKEN]
        await go_to(it, screen, FORK)
        await check_sizes(it, "runs", picture=True)
        await it.press("delete")
        await check_sizes(it, "delete")
        await it.press("escape", "question_mark")
        assert "\n Runs " in it.text(), "the help begins with the keys of this screen"
        await it.press("escape", "X")
        await check_sizes(it, "export")


async def test_the_list_has_no_more_lines_than_it_shows_however_high_the_screen_is(tmp_path: Path) -> None:
    stored_runs(tmp_path)
    async with bench(tmp_path) as it:
        await opened(it)
        for height in range(24, 42, 3):
            await it.pilot.resize_terminal(120, height)
            await it.pilot.pause()
            lines = screen_text(it.app).splitlines()
            card = next(number for number, line in enumerate(lines) if line.startswith("─"))
            assert sum(not line.strip() for line in lines[:card]) <= 1, height
            cut = [line for line in lines[:card] if line.endswith("…")]
            assert not cut or lines[-2].strip(), f"{height}: {cut} are cut while the card has free lines"


async def test_the_empty_list_of_a_demo_names_the_last_demo_with_runs(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    async with bench(tmp_path / "new") as it:
        project = it.session.project
        await opened(it, 0)
        assert "Each demo" not in screen_text(it.app), "this is no demo"
        await it.press("escape")
        earlier, without = tmp_path / "earlier", tmp_path / "without"
        earlier.mkdir()
        without.mkdir()
        stored_runs(earlier)
        for folder in (earlier, without, project.root):
            keep_demo(project.folders, folder)
        await opened(it, 0)
        assert "Each demo has a folder of its own. The last one with runs opens with:" in screen_text(it.app)
        assert f"cd {earlier} && workbench open" in screen_text(it.app)


async def test_runs_are_filtered_unfolded_and_deleted(tmp_path: Path) -> None:
    store = stored_runs(tmp_path)
    async with bench(tmp_path) as it:
        await a_filter_works_while_it_is_written_and_says_what_is_wrong_with_it(it)
        await a_broken_journal_is_listed_with_its_reason_and_runs_inside_others_unfold(it)
        await a_run_is_deleted_only_when_that_is_confirmed(it, store)


async def a_filter_works_while_it_is_written_and_says_what_is_wrong_with_it(it: Bench) -> None:
    screen = await opened(it)
    await filtered(it, screen, "status:failed or is:fork")
    assert listed(screen) == [FORK, FAILED]
    assert "2 of 5 runs" in screen_text(it.app)
    await filtered(it, screen, "tokns>3")
    assert "column 1: there is no field 'tokns' · did you mean 'tokens'?" in screen_text(it.app)
    await filtered(it, screen, "status:")
    assert "column 8: status needs a value after ':'" in screen_text(it.app), "not said where its hint has no room"
    assert listed(screen) == [FORK, FAILED], "the list stays as it was"
    await it.press("enter")
    assert screen.query(LineInput), "a filter with a mistake is not taken"
    await filtered(it, screen, 'text:"rate limit"')
    assert listed(screen) == [FAILED]
    assert "“rate limit” at intake:1: Rate limit exceeded for this key" in screen_text(it.app)
    await check_sizes(it, "runs-filter", picture=True)
    await it.press("enter", "escape")
    await it.until(lambda: len(screen.listing.members) == 5, "escape did not drop the filter")
    await it.press("escape")
    assert it.app.screen is it.screen


async def a_broken_journal_is_listed_with_its_reason_and_runs_inside_others_unfold(it: Bench) -> None:
    screen = await opened(it)
    await go_to(it, screen, BROKEN)
    assert "damaged: 000001.jsonl damaged at byte 0" in screen_text(it.app)
    assert "– calls · – tool calls · – tokens in · – out" in screen_text(it.app), "unknown is not 0"
    assert "✗ damaged ─" in screen_text(it.app)
    assert "interrupted" not in screen_text(it.app), "nobody knows how it ended"
    await it.press("F")
    await it.until(lambda: "there is no call to fork it at" in screen_text(it.app), "nothing was said")
    assert not screen.query(LineInput)
    await go_to(it, screen, PARENT)
    await it.press("right")
    await it.until(lambda: INNER in listed(screen), "nothing unfolded")
    assert listed(screen)[:3] == [PARENT, INNER, FORK]
    await it.press("left")
    await it.until(lambda: INNER not in listed(screen), "nothing folded")
    await it.press("left")
    await it.until(lambda: FORK not in listed(screen), "forks do not fold")
    await it.press("right", "escape")


async def a_run_is_deleted_only_when_that_is_confirmed(it: Bench, store: Store) -> None:
    screen = await opened(it)
    await go_to(it, screen, PARENT)
    await it.press("delete")
    await it.until(lambda: isinstance(it.app.screen, ChoiceDialog), "nobody asked")
    await it.press("enter")
    assert PARENT in store.run_ids()
    await it.press("delete")
    await it.until(lambda: isinstance(it.app.screen, ChoiceDialog), "nobody asked")
    await it.press("x")
    await it.until(lambda: len(screen.listing.members) == 4, "the run is still listed")
    assert sorted(store.run_ids()) == sorted([FORK, FAILED, IMPORTED, BROKEN])


async def test_runs_of_other_processes_appear_and_the_cursor_stays_on_its_run(tmp_path: Path) -> None:
    store = stored_runs(tmp_path)
    async with bench(tmp_path) as it:
        screen = await opened(it)
        await go_to(it, screen, FAILED)
        events = plain_run("0190c6f2-7f3a-7000-8000-00000000c001", session="elsewhere")
        save(Store(store.root), events)
        screen.poller.look()
        await it.until(lambda: len(screen.listing.members) == 6, "the new run did not appear")
        assert "elsewhere" in screen_text(it.app)
        run = screen.run()
        assert run is not None
        assert run.run_id == FAILED


async def test_enter_shows_a_run_in_the_bench_also_one_that_has_no_file(tmp_path: Path) -> None:
    stored_runs(tmp_path)
    async with bench(tmp_path) as it:
        screen = await opened(it)
        await go_to(it, screen, FORK)
        await it.press("enter")
        await it.until(lambda: it.app.screen is it.screen and it.screen.shows(FORK), "the run does not show")
        assert it.presenter.state.run.status == "interrupted"
        assert it.presenter.state.run.session_id == "log_triage-f0rk"
        screen = await opened(it)
        await go_to(it, screen, IMPORTED)
        await it.press("enter")
        await it.until(lambda: it.app.screen is it.screen and it.screen.shows(IMPORTED), "the run does not show")
        assert it.session.runs is False
        await it.press("r")
        assert "this run was imported" in it.text()


async def test_a_run_is_forked_at_a_place_compared_and_exported_from_the_list(tmp_path: Path) -> None:
    async with bench(prepared(tmp_path), text=CASCADE, replies=REPLIES, given={"hint": "Go."}) as it:
        await it.press("r")
        await it.until(lambda: it.presenter.state.run.finished, "the run did not end")
        parent = it.presenter.state.run.run_id
        screen = await opened(it, 1)
        await it.press("F")
        await it.until(lambda: screen.query(LineInput), "no place was asked")
        screen.query_one(LineInput).value = "dig:2"
        await it.press("enter")
        await it.until(lambda: it.session.stepper.held is not None, "the fork is not held")
        assert it.app.screen is it.screen
        notes = " ".join(note.message for note in it.app.notices.all)
        assert "A fork of the run, paused before dig:2: E edits, n steps." in notes
        assert "The run itself stays open in its own tab: { shows it." in notes
        place = it.session.stepper.held.place if it.session.stepper.held else None
        assert place is not None
        assert (place.phase, place.turn) == ("dig", 2)
        await it.press("c")
        await it.until(lambda: not it.session.running and it.presenter.state.run.finished, "the fork did not end")

        screen = await opened(it, 2)
        assert [member.depth for member in screen.listing.members] == [0, 1]
        assert listed(screen)[0] == parent
        await it.press("g", "space", "D")
        await it.until(lambda: isinstance(it.app.screen, CompareSheet), "nothing was compared")
        await it.press("escape", "X")
        await it.until(lambda: screen.query(LineInput), "no file was asked")
        screen.query_one(LineInput).value = "messages out.jsonl"
        await it.press("enter")
        await it.until((tmp_path / "out.jsonl").exists, "nothing was written")
        assert "fact 1 of the matter" in (tmp_path / "out.jsonl").read_text()
        await it.press("X")
        await it.type("cascade")
        await it.press("enter")
        run = screen.run()
        assert run is not None
        await it.until((tmp_path / f"{run.name}.cascade.yaml").exists, "the usual name is not taken")


async def test_a_found_run_runs_again_with_its_own_input(tmp_path: Path) -> None:
    store = stored_runs(tmp_path)
    (tmp_path / "log_triage.input.json").write_text('{"log": "today.log"}')
    async with bench(tmp_path, given={"log": "today.log"}) as it:
        screen = await opened(it)
        await go_to(it, screen, PARENT)
        await it.press("enter")
        await it.until(lambda: it.app.screen is it.screen and it.screen.shows(PARENT), "the run does not show")
        await it.press("r")
        await it.until(lambda: it.session.run_id != PARENT and it.presenter.state.started, "nothing began")
        started = next(iter(store.events(it.session.run_id)))
        assert started.data["input"] == {"log": "night.log"}
        assert json.loads((tmp_path / "log_triage.input.json").read_text()) == {"log": "today.log"}


async def test_keys_are_offered_that_the_run_under_the_cursor_can_follow(tmp_path: Path) -> None:
    stored_runs(tmp_path)
    async with bench(tmp_path, size=(200, 50)) as it:
        screen = await opened(it)
        for run_id, resumes, forks in ((PARENT, False, True), (FORK, True, True), (IMPORTED, False, False)):
            await go_to(it, screen, run_id)
            last = screen_text(it.app).splitlines()[-1]
            assert ("c resume" in last, "F fork" in last) == (resumes, forks), run_id


async def test_a_click_on_the_title_of_a_column_orders_the_runs_by_it(tmp_path: Path) -> None:
    stored_runs(tmp_path)
    async with bench(tmp_path) as it:
        screen = await opened(it)
        for title, order in (("cost", "cost"), ("tokens", "tokens"), ("started", "newest")):
            head = screen_text(it.app).splitlines()[1]
            await it.pilot.click(screen.list_pane, offset=(head.index(title) + 1, 1))
            await it.until(lambda order=order: screen.listing.wanted.order == order, f"not by {order}")  # type: ignore[misc]


async def test_the_order_is_chosen_by_its_key_turned_round_by_the_same_and_marked_at_its_column(tmp_path: Path) -> None:
    stored_runs(tmp_path)
    async with bench(tmp_path) as it:
        screen = await opened(it)

        async def sorted_by(key: str, title: str, head: str) -> list[RunSummary]:
            await it.press("s", key)
            await it.until(lambda: title in screen_text(it.app).splitlines()[0], f"not {title}")
            assert head in screen_text(it.app).splitlines()[1]
            return [member.run for member in screen.listing.members]

        assert "started↓" in screen_text(it.app), "the order of the list is not marked"
        oldest = [run.run_id for run in await sorted_by("n", "oldest first", "started↑")]
        assert oldest.index(PARENT) < oldest.index(FAILED) < oldest.index(FORK)
        tokens = [run.tokens_in + run.tokens_out for run in await sorted_by("t", "by tokens", "tokens↓")]
        assert tokens == sorted(tokens, reverse=True)
        turned = await sorted_by("t", "by tokens, the fewest first", "tokens↑")
        assert [run.tokens_in + run.tokens_out for run in turned] == sorted(tokens)
        assert (await sorted_by("f", "by status, failures first", "started "))[0].run_id == FAILED
        await it.press("escape")
        await it.until(lambda: "started↓" in screen_text(it.app), "escape does not order by time again")


def test_every_order_has_its_letter_and_its_words() -> None:
    assert list(ORDER_WORDS) == list(ORDERS)
    assert len({key for key, *_ in ORDER_WORDS.values()}) == len(ORDERS)


async def test_the_title_counts_what_failed_and_sums_what_the_listed_runs_cost(tmp_path: Path) -> None:
    store = stored_runs(tmp_path)
    async with bench(tmp_path) as it:
        screen = await opened(it)
        assert "5 runs · 1 failed · " in screen_text(it.app).splitlines()[0]
        await filtered(it, screen, "session:7f3a -is:imported")
        cost = spent_cell(next(run.spent for run in store.runs() if run.run_id == PARENT))
        assert f"1 of 5 runs · {cost} " in screen_text(it.app).splitlines()[0]


async def test_a_filter_is_completed_from_the_runs_and_an_objection_goes_with_the_line(tmp_path: Path) -> None:
    stored_runs(tmp_path)
    async with bench(tmp_path) as it:
        screen = await opened(it)
        await it.press("f", "s", "t", "tab", "f", "tab", "enter")
        await it.until(lambda: listed(screen) == [FAILED], "status:failed was not completed")
        await it.press("f")
        entry = screen.query_one(LineInput)
        entry.value = "sttus:x"
        await it.press("enter")
        await it.until(lambda: "did you mean 'status'" in screen_text(it.app).splitlines()[-1], "no objection")
        entry.value = "status:failed"
        await it.until(
            lambda: "did you mean" not in screen_text(it.app), "the objection stays though the line is right"
        )


async def test_a_stopped_run_goes_on_from_the_list(tmp_path: Path) -> None:
    async with bench(prepared(tmp_path), text=CASCADE, replies=REPLIES, given={"hint": "Go."}) as it:
        await it.press("n", "n")
        await it.until(lambda: it.session.stepper.held is not None, "not held")
        await it.press("x")
        await it.until(lambda: it.presenter.state.run.status == "stopped", "not stopped")
        await opened(it, 1)
        assert "stopped after dig:" in screen_text(it.app)
        await it.press("c")
        await it.until(lambda: it.session.running and it.session.stepper.held is not None, "it does not go on")
        assert it.app.screen is it.screen
        await it.press("L")
        await it.until(lambda: isinstance(it.app.screen, RunsScreen), "the screen did not open")
        await it.press("c")
        assert it.session.running


async def test_a_run_that_another_process_makes_is_followed_in_the_bench_and_left_to_it(tmp_path: Path) -> None:
    store = stored_runs(tmp_path)
    events = triage_story(finished=True).events
    run_id = "0190c6f2-7f3a-7000-8000-00000000c002"
    events = retold(events, run_id, 6, session_id="log_triage-live")
    async with bench(tmp_path) as it:
        with Store(store.root).create(run_id) as journal:
            extend(journal, events[:20])
            await opened(it, 6)
            await it.press("g", "enter")
            await it.until(lambda: it.screen.shows(run_id), "the run does not show")
            assert it.presenter.state.run.status == "running"
            await it.press("n")
            assert not it.session.running
            extend(journal, events[20:-1])
            await it.until(lambda: it.presenter.state.run.seq == events[-2].seq, "what was added does not show")
        await it.until(lambda: it.presenter.state.run.status == "interrupted", "its end was not noticed")
