"""Looking around: why, wire, comparison, find, filter, copy, tabs, the mouse."""

from __future__ import annotations

import base64
import re
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from textual import events
from textual.widgets import Input

from tests.ui.bench import Bench, bench, screen_text
from tests.ui.support import LOG_TEXT, Story, entry, triage_story
from workbench.context.assembly import Kind
from workbench.context.message import Message
from workbench.engine.contracts import Notice
from workbench.tui import clipboard
from workbench.tui.screens.editor import EditorScreen
from workbench.tui.screens.settings import SettingsScreen
from workbench.tui.screens.sheet import Sheet
from workbench.tui.widgets.line import SpanLine
from workbench.tui.widgets.rowview import RowView


def run_story(tmp_path: Path, *, finished: bool = False) -> AbstractAsyncContextManager[Bench]:
    return bench(tmp_path, events=triage_story(finished=finished).events)


async def go_back(it: Bench) -> None:
    """To the Bench, with the last call as it was at first."""
    while len(it.app.screen_stack) > 1:
        await it.press("escape")
    it.app.notices.clear()
    if it.presenter.state.full:
        await it.press("m")
    it.screen.focus_pane("context")
    await it.press(*["right_square_bracket"] * 4)
    it.screen.context_pane.move_to(it.presenter.home_row() or 0)
    it.app.notices.clear()
    await it.pilot.pause()


def cursor_line(it: Bench, pane: str = "context") -> str:
    return next(line for line in it.pane(pane).split("\n") if line.lstrip("│").startswith(("▌", "▏")))


async def test_a_call_is_looked_at_from_every_side(tmp_path: Path) -> None:
    async with run_story(tmp_path) as it:
        await p_shows_why_with_the_line_of_the_file_and_p_again_the_message(it)
        await go_back(it)
        await m_shows_a_masked_message_in_full_and_back(it)
        await go_back(it)
        await enter_opens_full_and_sent_side_by_side_and_escape_comes_back(it)
        await go_back(it)
        await d_marks_what_differs_from_the_call_before(it)
        await go_back(it)
        await find_moves_to_the_match_and_again_to_the_next(it)
        await go_back(it)
        await filter_shows_only_rows_that_hold_the_text_and_keeps_their_numbers(it)
        await go_back(it)
        await w_shows_the_wire_before_and_after_it_is_sent(it)


async def p_shows_why_with_the_line_of_the_file_and_p_again_the_message(it: Bench) -> None:
    await it.press("k", "k", "p")
    assert "masked: age 2 > 1" in it.pane("detail")
    assert "22       mask_observations_after: 1" in it.pane("detail")
    assert "log_triage.yaml:22" in it.pane("detail")
    await it.press("p")
    assert "[read_log result" in it.pane("detail")


async def m_shows_a_masked_message_in_full_and_back(it: Bench) -> None:
    await it.press("k", "k")
    assert LOG_TEXT.split("\n")[1] not in it.pane("detail")
    await it.press("m")
    assert LOG_TEXT.split("\n")[1] in it.pane("detail")
    await it.press("m")
    assert LOG_TEXT.split("\n")[1] not in it.pane("detail")


async def enter_opens_full_and_sent_side_by_side_and_escape_comes_back(it: Bench) -> None:
    await it.press("k", "k", "enter")
    await it.until(lambda: isinstance(it.app.screen, Sheet), "the screen did not open")
    assert isinstance(it.app.screen, Sheet)
    assert "in full · 984 tokens" in it.text()
    assert "as sent · masked · 15 tokens" in it.text()
    await it.press("slash")
    await it.type("09:14:59")
    await it.press("enter")
    assert "09:14:59Z" in it.text()
    await it.press("escape")
    assert isinstance(it.app.screen, Sheet), "the first escape takes the marks away"
    await it.press("escape")
    assert len(it.app.screen_stack) == 1


async def d_marks_what_differs_from_the_call_before(it: Bench) -> None:
    await it.press("d")
    assert "against turn 2: +2 new ±1 altered" in it.pane("context")
    await it.press("d")
    assert "against" not in it.pane("context")


async def find_moves_to_the_match_and_again_to_the_next(it: Bench) -> None:
    await it.press("g", "slash")
    await it.type("search_files")
    await it.press("enter")
    first = cursor_line(it)
    await it.press("n")
    assert cursor_line(it) != first
    await it.press("N")
    assert cursor_line(it) == first, "N goes back up"
    assert "n next match  N previous" in it.text()
    assert not it.session.running, "as long as matches are marked, n steps nothing"
    await it.press("escape")
    assert "x stop" in it.text()
    assert it.screen.focused is it.screen.context_pane
    await it.press("slash")
    await it.press(*["backspace"] * 12)
    await it.type("nowhere")
    await it.press("enter")
    assert "'nowhere' is not in this pane" in it.text()
    await it.press("escape")
    assert it.screen.context_pane.needle == ""


async def filter_shows_only_rows_that_hold_the_text_and_keeps_their_numbers(it: Bench) -> None:
    await it.press("f")
    await it.type("tool")
    await it.press("enter")
    pane = it.pane("context")
    assert "filter 'tool'" in pane
    assert "assistant" not in pane
    assert re.search(r" 1 read_log .*masked: age 2", pane)
    await it.press("g", "p")
    assert "Why" in it.pane("detail")
    await it.press("p", "f")
    await it.press("escape")
    assert "assistant" in it.pane("context")


async def w_shows_the_wire_before_and_after_it_is_sent(it: Bench) -> None:
    await it.press("w")
    assert "not sent yet" in it.pane("detail")
    await it.press("left_square_bracket")
    assert "the body as it was sent" in it.pane("detail")
    assert '"model": "openai/gpt-4.1-mini",' in it.pane("detail")


async def test_the_tabs_and_keys_of_a_finished_run(tmp_path: Path) -> None:
    async with run_story(tmp_path, finished=True) as it:
        await tabs_are_chosen_by_number_and_by_a_click(it)
        await go_back(it)
        await a_key_that_changes_nothing_says_why(it)


async def tabs_are_chosen_by_number_and_by_a_click(it: Bench) -> None:
    await it.press("5")
    assert "run_finished" in it.pane("dock")
    title = it.pane("dock").split("\n")[0]
    await it.pilot.click("#dock", offset=(title.index("State") + 1, 0))
    await it.pilot.pause()
    assert "component" in it.pane("dock")
    await it.press("5", "5", "G", "up", "up", "up")
    top = it.pane("dock").split("\n")[1]
    await it.press("3", "5")
    assert it.pane("dock").split("\n")[1] == top, "a tab comes back as it was left"


async def a_key_that_changes_nothing_says_why(it: Bench) -> None:
    said: list[str] = []
    it.app.say = lambda text, severity="information": said.append(text)  # type: ignore[method-assign]
    await it.press("g", "m", "m", "right_square_bracket", *["left_square_bracket"] * 9, "u", "space")
    assert said[0] == "Messages show in full; this one is the same either way."
    assert said[2] == "This is the last call."
    assert said[3] == "This is the first call."
    assert said[-2:] == ["Nothing was dropped here.", "No run is active."]
    await it.press("G", "p")
    assert said[-1] == "No rule decided about this row."
    assert it.presenter.detail_mode == "message", "what was refused does not show on the next row"
    await it.press("z", "alt+left")
    assert said[-1] == "One pane has the whole screen: there is no border to move."


async def test_a_press_beside_the_thumb_scrolls_where_no_border_is(tmp_path: Path) -> None:
    phases = "".join(f"  - {{name: p{number}, instructions: hi}}\n" for number in range(60))

    async with bench(tmp_path, size=(80, 24), text=f"cascade_id: x\nphases:\n{phases}") as it:
        tree = it.screen.tree_pane
        it.screen.focus_pane("tree")
        await it.until(lambda: tree.thumb() and not tree.edge, "all of the tree is in view")
        await it.pilot.mouse_down("#tree", offset=(tree.size.width - 1, tree.size.height - 1))
        assert tree.scroll_y > 0
        await it.pilot.mouse_up("#tree")


async def test_a_problem_shows_its_line_in_the_file(tmp_path: Path) -> None:
    text = "cascade_id: x\nphases:\n  - name: a\n    instructions: hi\n    handoffs: [nowhere]\n"

    async with bench(tmp_path, text=text) as it:
        assert "✗" in it.pane("tree")
        await it.press("2", "2", "enter")
        assert "handoffs: [nowhere]" in it.pane("detail")
        assert it.screen.focused is it.screen.detail_pane
        await it.press("r")
        assert "it cannot run" in it.text()


async def test_the_mouse_folds_selects_scrolls_and_does_what_keys_do(tmp_path: Path) -> None:
    async with run_story(tmp_path) as it:
        await a_click_on_the_sign_of_a_branch_folds_it_and_leaves_the_call_that_shows(it)
        await go_back(it)
        await a_click_selects_a_row_and_a_second_opens_it(it)
        await go_back(it)
        await the_wheel_scrolls_and_the_thumb_drags(it)
        await go_back(it)
        await a_click_in_the_header_does_what_the_key_does_and_shows_where(it)


async def a_click_on_the_sign_of_a_branch_folds_it_and_leaves_the_call_that_shows(it: Bench) -> None:
    call, shown = it.presenter.state.selected, it.pane("tree").splitlines()
    line, x = next((y, text.index("▾")) for y, text in enumerate(shown) if "▾" in text)
    await it.pilot.click("#tree", offset=(x, line))
    await it.until(lambda: "▸" in it.pane("tree").splitlines()[line])
    assert len(it.presenter.state.folding) == 1
    await it.pilot.click("#tree", offset=(x, line))
    await it.until(lambda: "▾" in it.pane("tree").splitlines()[line])
    assert it.presenter.state.selected == call


async def a_click_selects_a_row_and_a_second_opens_it(it: Bench) -> None:
    await it.pilot.click("#context", offset=(20, 7))
    assert it.screen.context_pane.cursor == 2
    await it.pilot.click("#context", offset=(20, 7), times=2)
    await it.until(lambda: isinstance(it.app.screen, Sheet))


async def the_wheel_scrolls_and_the_thumb_drags(it: Bench) -> None:
    await it.press("k", "k", "m")
    detail = it.screen.detail_pane
    await it.pilot.hover("#detail", offset=(5, 5))
    detail.post_message(_wheel(detail))
    await it.until(lambda: detail.scroll_y == 3)
    right = detail.size.width - 1
    await it.pilot.mouse_down("#detail", offset=(right, detail.size.height - 1))
    await it.pilot.mouse_up("#detail", offset=(right, detail.size.height - 1))
    await it.until(lambda: detail.scroll_y > 30)


async def a_click_in_the_header_does_what_the_key_does_and_shows_where(it: Bench) -> None:
    line = it.text().splitlines()[0]
    await it.pilot.hover("#header", offset=(line.index("offline"), 0))
    before = it.screen.query_one("#header", SpanLine).render_line(0)
    await it.pilot.hover("#header", offset=(0, 0))
    assert it.screen.query_one("#header", SpanLine).render_line(0) != before, "it does not show what can be clicked"
    await it.pilot.click("#header", offset=(0, 0))
    assert it.app.screen is it.screen
    await it.pilot.click("#header", offset=(line.index("offline"), 0))
    await it.until(lambda: isinstance(it.app.screen, SettingsScreen))
    await it.press("escape")
    await it.pilot.click("#header", offset=(line.index("log_triage") + 2, 0))
    await it.until(lambda: isinstance(it.app.screen, EditorScreen))


def _wheel(view: RowView) -> events.MouseScrollDown:
    return events.MouseScrollDown(view, 5, 5, 0, 0, 0, False, False, False, 5, 5)


async def test_panes_and_the_log_are_walked_through(tmp_path: Path) -> None:
    async with run_story(tmp_path) as it:
        await jump_puts_a_letter_on_each_pane_and_goes_there(it)
        await go_back(it)
        await enter_on_a_line_of_the_log_goes_to_its_call(it)
        await go_back(it)
        await a_line_of_the_log_that_belongs_to_no_turn_opens_in_full(it)
        await go_back(it)
        await the_tree_folds_unfolds_and_selects_calls(it)
        await go_back(it)
        await keys_typed_faster_than_a_prompt_opens_are_written_into_it(it)


async def jump_puts_a_letter_on_each_pane_and_goes_there(it: Bench) -> None:
    await it.press("ctrl+o")
    assert "\nt Cascade ─" in it.text(), "the letter leaves the title to be read"
    await it.press("l")
    assert it.screen.focused is it.screen.dock_pane


async def enter_on_a_line_of_the_log_goes_to_its_call(it: Bench) -> None:
    it.screen.focus_pane("dock")
    await it.press("g", "j", "j", "j", "enter")
    assert "Context  intake · turn 1" in it.pane("context")
    assert it.screen.focused is it.screen.context_pane


async def a_line_of_the_log_that_belongs_to_no_turn_opens_in_full(it: Bench) -> None:
    await it.press("1", "1", "g", "enter")
    await it.until(lambda: isinstance(it.app.screen, Sheet), "the screen did not open")
    assert isinstance(it.app.screen, Sheet)
    assert "started log_triage" in it.text()


async def the_tree_folds_unfolds_and_selects_calls(it: Bench) -> None:
    it.screen.focus_pane("tree")
    await it.press("k", "k")
    assert "Context  triage · turn 1" in it.pane("context")
    await it.press("h")
    await it.press("h")
    assert "✓ 1 read_log" not in it.pane("tree")
    await it.press("l")
    assert "✓ 1 read_log" in it.pane("tree")
    await it.press("g")
    assert "Context  intake · turn 1" in it.pane("context")
    await it.press("G", "k")
    assert "not run yet" in it.pane("context")
    assert "name: noise" in it.pane("detail")


async def keys_typed_faster_than_a_prompt_opens_are_written_into_it(it: Bench) -> None:
    """``r`` and ``n`` would run the cascade if they went to the bench."""

    for key in "/runner":
        name = "slash" if key == "/" else key
        it.app.post_message(events.Key(name, key))
    await it.until(lambda: it.screen.query("#prompt-input"))
    await it.until(lambda: it.screen.query_one("#prompt-input", Input).value == "runner", "the word came whole")
    assert not it.session.running
    await it.press("escape")
    await it.until(lambda: not it.screen.query("#prompt-input"))
    await it.press("3")
    assert "The state is empty" in it.pane("dock") or "state" in it.pane("dock").lower()


@pytest.mark.fault("F20", "F25")
async def test_what_a_call_waits_for_is_said_in_the_header_and_in_its_row(tmp_path: Path) -> None:
    story = triage_story()
    place = story.events[-1].place
    async with bench(tmp_path, size=(160, 40), events=story.events) as it:
        await it.feed(notices=[Notice("waiting", place, {"try": 2})])
        it.presenter.state.waiting[place].since -= 34
        it.screen.panes.show_live(it.presenter, turned=True)
        await it.pilot.pause()
        assert re.search(r" RUNNING provider 3\d s, retry 1 ", it.text())
        assert re.search(r"waiting for the provider \(try 2\) 3\d\.\ds", it.pane("context"))
        await it.feed(notices=[Notice("retry", place, {"seconds": 60.0, "try": 3})])
        assert re.search(r" RUNNING retry 2 in \d\d s", it.text())
        assert re.search(r"tries again in \d\d s \(try 3\); has waited 3\d\.\ds", it.pane("context"))
        assert "⠋ 3 " in it.pane("tree")
        await it.feed(notices=[Notice("text", place, {"text": "The first failure "})])
        assert "answers  The first failure" in it.pane("context")
        await it.press("G")
        assert "The first failure" in it.pane("detail")


async def test_what_is_under_the_cursor_is_copied_and_edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with run_story(tmp_path) as it:
        await copying_sends_the_message_to_the_terminal_and_to_the_systems_clipboard(it, tmp_path, monkeypatch)
        await go_back(it)
        await an_editor_is_opened_at_the_line_that_decided(it, monkeypatch)


async def copying_sends_the_message_to_the_terminal_and_to_the_systems_clipboard(
    it: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    copied = tmp_path / "copied"
    (tools / "xclip").write_text(f"#!/bin/sh\ncat > '{copied}'\n")
    (tools / "xclip").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    monkeypatch.setenv("DISPLAY", ":9")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)

    written: list[str] = []
    driver = it.app._driver
    assert driver is not None
    monkeypatch.setattr(driver, "write", written.append)
    await it.press("k", "k", "m", "y")
    await it.until(copied.exists)
    await it.app.workers.wait_for_complete()
    sequence = next(part for part in written if part.startswith("\x1b]52;c;"))
    assert base64.b64decode(sequence[7:-1]).decode() == LOG_TEXT
    assert copied.read_text() == LOG_TEXT
    await it.until(lambda: "copied the message, 3,921 characters" in it.text())
    it.app.copy("rm\x1b[2K -rf\u200b\n", "the text")
    await it.app.workers.wait_for_complete()
    assert copied.read_text() == "rm␛[2K -rf�\n"


async def an_editor_is_opened_at_the_line_that_decided(it: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    monkeypatch.setattr(it.app.navigation, "edit_outside", lambda *place: asked.append(place))
    await it.press("k", "k", "f4")
    assert asked == [(it.session.file, 22, 1)]
    await it.press("e")
    await it.until(lambda: isinstance(it.app.screen, EditorScreen), "the screen did not open")
    assert isinstance(it.app.screen, EditorScreen)
    await it.pilot.pause()
    assert it.app.screen.area.cursor_location == (21, 0)
    await it.press("escape")
    await it.until(lambda: it.app.screen is it.screen, "the editor did not close")
    it.session.file.write_text(f"# one\n# two\n{it.session.file.read_text()}")
    await it.press("p")
    await it.until(lambda: "log_triage.yaml:22 as it ran · now :24" in it.pane("detail"), "the line has moved unsaid")
    await it.press("f4")
    assert asked[-1] == (it.session.file, 24, 1)


def test_what_is_too_long_for_the_terminal_and_has_no_clipboard_goes_to_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "x" * (clipboard.OSC52_LIMIT + 1)
    assert clipboard.osc52(text) is None
    assert clipboard.osc52(text[:-1]) is not None
    for variable in ("WAYLAND_DISPLAY", "DISPLAY"):
        monkeypatch.delenv(variable, raising=False)
    assert clipboard.system_copy(text) is None
    file = clipboard.save_copy(text)
    try:
        assert file.read_text() == text
        assert file.stat().st_mode & 0o077 == 0
    finally:
        file.unlink()


async def test_an_answer_that_comes_in_is_followed_until_it_is_there(tmp_path: Path) -> None:
    story = triage_story()
    place = story.events[-1].place
    async with bench(tmp_path, events=story.events) as it:
        await it.feed(notices=[Notice("waiting", place, {"try": 1}), Notice("text", place, {"text": "The first "})])
        assert "Answer  coming in" in it.pane("detail")
        assert "answers  The first" in cursor_line(it)
        await it.press("enter")
        await it.until(lambda: isinstance(it.app.screen, Sheet), "the answer does not open")
        await it.feed(notices=[Notice("text", place, {"text": "failure "})])
        await it.until(lambda: "The first failure" in screen_text(it.app), "the opened answer stands still")
        start = len(story.events)
        story.answer(place, "The first failure is the queue.")
        await it.feed(story.events[start:])
        await it.until(lambda: "failure is the queue." in screen_text(it.app), "the end of the answer is not shown")
        assert "coming in" not in screen_text(it.app)
        await it.press("escape")
        assert "the answer" in cursor_line(it)
        assert "The first failure is the queue." in it.pane("detail")


async def test_a_cursor_that_was_moved_stays_while_an_answer_comes_in(tmp_path: Path) -> None:
    story = triage_story()
    place = story.events[-1].place
    async with bench(tmp_path, events=story.events) as it:
        await it.press("k", "k")
        await it.feed(notices=[Notice("waiting", place, {"try": 1}), Notice("text", place, {"text": "The first "})])
        assert " 1 read_log " in cursor_line(it)
        start = len(story.events)
        story.answer(place, "The first failure is the queue.")
        await it.feed(story.events[start:])
        assert " 1 read_log " in cursor_line(it)


async def test_a_plain_note_takes_the_place_of_the_one_before_but_not_of_a_fault(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        for words, severity in (("one", "information"), ("grave", "error"), ("two", "information")):
            it.app.say(words, severity)  # type: ignore[arg-type]
            await it.until(lambda words=words: f" {words}\n" in it.text(), words)  # type: ignore[misc]
        assert it.text().endswith(" ✗ grave\n two\n")
        assert " one\n" not in it.text()
        await it.pilot.click("#footer")
        assert "n step" in it.text().splitlines()[-1], "a click brings the keys back"
        it.app.say("word " * 18 + "end", "error")
        await it.until(lambda: it.text().endswith(" end\n"), "the message is not there")
        await it.pilot.resize_terminal(60, 24)
        await it.until(lambda: it.text().endswith(" end\n"), "in a narrower terminal the message is cut")


async def test_m_shows_an_answer_with_markdown_as_it_was_written_and_drawn_again(tmp_path: Path) -> None:
    story = Story().start()
    place = story.phase("intake")._replace(attempt=1, turn=1, call=1)
    story.context(place, [entry(Message("user", "ask"), Kind.TASK, place, reason=("task",))])
    story.answer(place, "It is **certain**.")
    async with bench(tmp_path, events=story.events) as it:
        await it.until(lambda: "It is certain." in it.pane("detail"), "the Markdown is not drawn")
        await it.press("m")
        await it.until(lambda: "It is **certain**." in it.pane("detail"), "it is not shown as it was written")
        await it.press("m")
        await it.until(lambda: "It is certain." in it.pane("detail"), "it is not drawn again")
