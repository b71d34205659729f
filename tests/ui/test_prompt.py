"""The one-line prompt under fast fingers: one at a time, answered once, and gone when another pane is clicked."""

from __future__ import annotations

import asyncio
from pathlib import Path

from textual.events import Key, Paste
from textual.widgets import Input
from textual.widgets.text_area import Selection

from tests.ui.bench import Bench, bench
from tests.ui.pace import LOOK
from tests.ui.support import triage_story
from tests.ui.test_editor import desk
from workbench.tui.screens.editor import EditorScreen
from workbench.tui.screens.inputs import InputForm
from workbench.tui.screens.runs import RunsScreen
from workbench.tui.widgets.prompt import Prompt


async def type_at_once(it: Bench, *keys: str) -> None:
    """Keys that arrive before the first of them is done."""
    for key in keys:
        it.app.post_message(Key(key, key if len(key) == 1 else None))
    await it.pilot.pause()
    await it.until(lambda: not any(prompt.closed for prompt in it.app.screen.query(Prompt)))


async def test_prompts_that_follow_each_other_at_once_are_one_at_a_time(tmp_path: Path) -> None:
    async with bench(tmp_path, events=triage_story().events) as it:
        for _ in range(3):
            await type_at_once(it, "slash", "escape", "f", "escape", "slash", "escape", "B")
            await it.until(lambda: len(it.screen.query(Prompt)) == 1)
            await it.press("escape")
            await it.until(lambda: not it.screen.query(Prompt))
        assert it.screen.focused is it.screen.context_pane
        assert it.screen.footer.display


async def test_find_escape_and_find_again_do_not_end_the_editor(tmp_path: Path) -> None:
    async with desk(tmp_path) as editor:
        await type_at_once(editor.it, "ctrl+f", "escape", "f3")
        await type_at_once(editor.it, "escape", "ctrl+f", "escape", "ctrl+g")
        await editor.it.press("escape")
        assert editor.it.app.screen is editor.screen


async def test_a_key_that_is_still_on_its_way_stays_before_those_that_were_typed_behind_it(tmp_path: Path) -> None:
    async with bench(tmp_path, events=triage_story().events) as it:
        pane, goes_on = it.screen.context_pane, asyncio.Event()
        it.screen.focus_pane("context")
        await it.pilot.pause()
        it.app.post_message(Key("slash", "/"))
        it.app.call_later(pane.call_later, goes_on.wait)  # The list is busy when the next key comes to it.
        it.app.post_message(Key("t", "t"))
        async with asyncio.timeout(60):  # The pilot would wait for the list.
            while not any(prompt.ready for prompt in it.screen.query(Prompt)):
                await asyncio.sleep(LOOK)
        for key in "ag":
            it.app.post_message(Key(key, key))
        it.app.call_later(goes_on.set)
        await it.until(lambda: len(it.screen.query_one(Input).value) == 3)
        assert it.screen.query_one(Input).value == "tag"


async def test_a_prompt_is_written_answered_and_left(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        await an_answer_is_given_once_however_often_enter_is_pressed(it)
        await it.press("escape")
        await a_prompt_that_is_left_by_a_click_gives_the_keys_their_line_back(it)
        await it.press("escape")
        await what_is_typed_and_corrected_at_once_is_written_in_its_order(it)
        await it.press("escape")
        await all_lines_of_a_pasted_text_are_taken_or_none_with_a_word(it)
        it.app.notices.clear()  # They lie over the line that is written next, for some seconds.
        await tab_completes_what_is_written_and_leaves_the_prompt_open(it)


async def all_lines_of_a_pasted_text_are_taken_or_none_with_a_word(it: Bench) -> None:
    given: list[str] = []
    it.screen.ask("filter", value="old", done=given.append)
    await it.until(lambda: all(prompt.ready for prompt in it.screen.query(Prompt)))
    entry = it.screen.query_one(Prompt).query_one(Input)
    entry.post_message(Paste("x" * 2_000_000))
    await it.until(lambda: "2,000,000 characters are too many for a line: nothing was pasted." in it.text())
    assert entry.value == "old"
    entry.post_message(Paste("ingest workers\r\n  time out\n"))
    await it.until(lambda: "2 lines were pasted as one." in it.text())
    entry.post_message(Paste(" again\n"))
    await it.until(lambda: entry.value.endswith("again"))
    await it.press("enter")
    assert given == ["ingest workers time out again"]


async def tab_completes_what_is_written_and_leaves_the_prompt_open(it: Bench) -> None:
    given: list[str] = []
    it.screen.ask("name", done=given.append, words=lambda: ("intake", "triage"))
    await it.until(lambda: all(prompt.ready for prompt in it.screen.query(Prompt)))
    await it.press("tab", "shift+tab", "t", "r")
    await it.until(lambda: "triage" in it.text().splitlines()[-1])
    await it.press("tab")
    await it.until(lambda: it.screen.query_one(Prompt).query_one(Input).value == "triage")
    await it.press("enter")
    assert given == ["triage"]


async def an_answer_is_given_once_however_often_enter_is_pressed(it: Bench) -> None:
    given: list[str] = []
    it.screen.ask("name", value="x", done=given.append)
    await it.until(lambda: all(prompt.ready for prompt in it.screen.query(Prompt)))
    await type_at_once(it, "enter", "enter", "enter")
    await it.until(lambda: not it.screen.query(Prompt))
    assert given == ["x"]


async def a_prompt_that_is_left_by_a_click_gives_the_keys_their_line_back(it: Bench) -> None:
    await it.press("slash")
    await it.until(lambda: it.screen.query(Prompt))
    assert not it.screen.footer.display
    await it.pilot.click(it.screen.tree_pane, offset=(5, 2))
    await it.until(lambda: not it.screen.query(Prompt))
    await it.until(lambda: it.screen.footer.display)
    assert it.screen.focused is it.screen.tree_pane
    await it.press("L", "slash")
    await it.until(lambda: it.app.screen.query(Prompt))
    runs = it.app.screen
    assert isinstance(runs, RunsScreen)
    await it.pilot.click(runs.card_pane, offset=(5, 1))
    await it.until(lambda: not runs.query(Prompt))
    await it.until(lambda: runs.footer.display)
    assert runs.focused is runs.card_pane


async def what_is_typed_and_corrected_at_once_is_written_in_its_order(it: Bench) -> None:
    it.screen.ask("name", value="x", done=lambda text: None)
    await it.until(lambda: all(prompt.ready for prompt in it.screen.query(Prompt)))
    await type_at_once(it, "a", "b", "backspace", "c", "home", "d")
    assert it.screen.query_one(Prompt).query_one(Input).value == "dac"


async def test_a_prompt_names_its_keys_until_what_is_written_needs_their_room(tmp_path: Path) -> None:
    async with bench(tmp_path, size=(80, 24)) as it:
        await it.press("b")
        await it.until(lambda: "esc cancel" in it.text())
        assert it.text().splitlines()[-1].split() == [
            *("breakpoint", "enter", "sets", "intake", "·", "phase", "·", "phase:turn"),
            *("enter", "ok", "esc", "cancel"),
        ], "the examples that have room show whole"
        it.screen.query_one(Input).value = "tokens > 6000 and state.score < 3 and tool search"
        await it.until(lambda: "esc cancel" not in it.text())
        assert "tool search" in it.text()
        await it.press("escape", "H")
        await it.until(lambda: it.app.screen is not it.screen)
        await it.press("f")
        await it.until(lambda: "esc cancel" in it.text())
        assert it.text().splitlines()[-1].startswith(" filter "), "it has the line of the keys on every screen"


async def test_arrows_and_letters_at_once_change_a_file_in_their_order(tmp_path: Path) -> None:
    async with desk(tmp_path) as editor:
        await editor.put(1)
        await type_at_once(editor.it, "down", "end", "x", "left", "backspace", "down", "home", "z")
        assert editor.text.splitlines()[:3] == ["cascade_id: small", "phasesx", "  z- name: look"]


async def test_what_is_typed_while_the_editor_opens_is_written_in_its_order(tmp_path: Path) -> None:
    async with bench(tmp_path, events=triage_story().events) as it:
        it.app.navigation.open_editor(it.session.file, 3)
        screen = it.app.screen
        assert isinstance(screen, EditorScreen)

        def write_first(selection: Selection) -> None:
            """As a key does that comes between the text and the first frame."""
            if selection.end == (2, 0) and "\na" not in screen.area.text:
                screen.area.insert("a")

        it.app.watch(screen.area, "selection", write_first, init=False)
        await it.until(lambda: "\na" in screen.area.text, "the text is not at its place")
        await type_at_once(it, "b", "c")
        assert screen.area.document.get_line(2).startswith("abc")


async def test_what_is_typed_right_behind_tab_goes_into_the_next_line(tmp_path: Path) -> None:
    taken: list[object] = []
    async with bench(tmp_path) as it:
        form = InputForm({"log": "Path", "team": "Who looks"}, {"log": "old", "team": "old"})
        it.app.push_screen(form, taken.append)
        await it.until(lambda: form.focused is not None)
        await type_at_once(it, *"night", "tab", *"blue", "shift+tab", *"day", "tab")
        await it.until(lambda: [line.value for line in form.query(Input)] == ["day", "blue"])
