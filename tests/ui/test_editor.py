"""The editor of the app: problems as they come, completion, saving, and what happens to the file meanwhile."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from textual import events

from tests.ui.bench import Bench, bench
from tests.ui.snapshot import check_sizes
from workbench.tui.navigation import NoEditor, editor_command
from workbench.tui.screens.dialog import ChoiceDialog
from workbench.tui.screens.editor import EditorScreen

TEXT = """\
cascade_id: small
phases:
  - name: look
    instructions: Find it in {{ input.path }}.
    tackle: [read_file]
"""


class Desk:
    """An open editor."""

    def __init__(self, it: Bench) -> None:
        self.it = it
        screen = it.app.screen
        assert isinstance(screen, EditorScreen)
        self.screen = screen
        self.area = screen.area

    @property
    def text(self) -> str:
        return self.area.plain_text

    async def checked(self) -> None:
        """Wait until what is shown is about the text as it is."""
        await self.it.until(lambda: self.screen.checked == self.text, "the text was not checked")

    async def begin(self, text: str) -> None:
        """Put another text in the place of what was written; the file stays as it is."""
        self.area.load_text(text)
        await self.checked()

    async def put(self, line: int, column: int = 1) -> None:
        self.area.go_to(line, column)
        await self.it.pilot.pause()

    async def answer(self, key: str) -> None:
        assert isinstance(self.it.app.screen, ChoiceDialog)
        await self.it.press(key)


@asynccontextmanager
async def desk(
    folder: Path, text: str = TEXT, *, size: tuple[int, int] = (120, 40), name: str = "small"
) -> AsyncIterator[Desk]:
    async with bench(folder, text=text, size=size) as it:
        await it.press("e")
        await it.until(lambda: isinstance(it.app.screen, EditorScreen))
        found = Desk(it)
        await found.checked()
        yield found


def file_of(folder: Path) -> Path:
    return folder / "log_triage.yaml"


async def test_a_text_is_written_looked_through_and_left(tmp_path: Path) -> None:
    async with desk(tmp_path) as it:
        await a_mistake_shows_while_it_is_typed_and_goes_when_it_is_mended(it)
        await what_is_offered_is_taken_with_enter_and_dropped_with_escape(it)
        await the_field_under_the_cursor_is_explained(it)
        await names_of_this_file_and_its_tools_are_offered_on_demand(it)
        await a_check_is_explained_where_it_is_offered_and_where_it_stands(it)
        await phases_are_offered_in_a_list_that_is_not_closed_yet(it)
        await the_header_counts_what_the_list_says(it)
        await find_go_to_line_undo_and_the_next_problem(it)
        await a_point_in_a_template_offers_the_phases(it)
        await the_field_of_a_line_shows_from_its_indentation_on(it)
        await tab_and_backspace_move_lines_by_a_level(it)
        await keys_lead_to_both_ends_and_take_the_whole_text(it)
        await a_phase_is_renamed_everywhere_after_a_look_and_undo_takes_it_back(it, tmp_path)
        await a_text_is_replaced_everywhere_after_a_look_and_undo_takes_it_back(it)
        await lines_become_comments_and_lines_again(it)
        await models_of_the_price_list_are_offered_with_their_prices(it)
        await what_the_name_under_the_cursor_stands_for_is_explained(it)
        await leaving_and_quitting_ask_before_changes_are_lost(it, tmp_path)


async def a_mistake_shows_while_it_is_typed_and_goes_when_it_is_mended(it: Desk) -> None:
    await it.begin(TEXT)
    await it.put(5, 11)
    await it.it.press("x")
    await it.checked()
    assert [problem.code for problem in it.screen.problems] == ["L201"]
    shown = it.it.text()
    assert "1 warning" in shown
    assert "5⚠" in shown
    assert "unknown key 'tacklex'" in shown
    await it.it.press("backspace")
    await it.checked()
    assert it.screen.problems == ()
    assert "✓ no problems" in it.it.text()


async def the_header_counts_what_the_list_says(it: Desk) -> None:
    await it.begin("inputs_schema: {path: a file}\n" + TEXT.replace("input.path", "input.txt"))
    assert [problem.code for problem in it.screen.problems] == ["L606"]
    assert "1 warning" in it.it.text()
    await it.begin("inputs_schema: {path: a file}\n" + TEXT.replace("input.path", "input.pth or 1"))
    assert [problem.severity for problem in it.screen.problems] == ["info"]
    assert "no problems" not in it.it.text()
    assert "1 info" in it.it.text()


async def what_is_offered_is_taken_with_enter_and_dropped_with_escape(it: Desk) -> None:
    await it.begin(TEXT)
    await it.put(5, 24)
    await it.it.press("enter", "r", "u")
    assert it.screen.popup.display
    assert "▌rules" in it.it.text()
    await it.it.press("enter")
    assert it.text.endswith("    tackle: [read_file]\n    rules:\n      \n")
    await it.it.press("m", "a", "x", "_", "t", "escape")
    assert not it.screen.popup.display
    assert isinstance(it.it.app.screen, EditorScreen)
    assert it.text.endswith("      max_t\n")


async def the_field_under_the_cursor_is_explained(it: Desk) -> None:
    await it.begin(TEXT)
    for line, column, words in ((4, 30, "The task"), (5, 8, "Tools this phase may call")):
        await it.put(line, column)
        await it.it.pilot.pause()
        assert words in it.it.text()


async def names_of_this_file_and_its_tools_are_offered_on_demand(it: Desk) -> None:
    await it.begin(TEXT)
    await it.put(5, 23)
    await it.it.press("comma", "space", "ctrl+@")
    offered = {item.text for item in it.screen.popup.items}
    assert {"search_files", "set_state"} <= offered
    await it.it.press("escape")
    await it.put(4, 23)
    await it.it.type("{{ out")
    await it.it.press("enter")
    assert "{{ outputs" in it.text


async def a_check_is_explained_where_it_is_offered_and_where_it_stands(it: Desk) -> None:
    await it.begin(TEXT)
    await it.put(5, 24)
    await it.it.press("enter")
    await it.it.type("wards: {post: [{validator: len")
    await it.checked()
    shown = ('length_check(content, input?)  input: {"min_length": 200, "max_length": 2000}', "input.max_length")
    assert it.screen.popup.display
    text = " ".join(it.it.text().split())
    assert all(" ".join(words.split()) in text for words in shown), text
    await it.it.press("enter")
    await it.it.type(", mode: retry, ")
    await it.it.press("ctrl+@")
    assert [item.text for item in it.screen.popup.items] == ["max_attempts"]
    await it.it.press("escape")
    await it.it.type("max_attempts: 2}]}")
    await it.checked()
    await it.put(6, 32)
    await it.it.pilot.pause()
    text = " ".join(it.it.text().split())
    assert all(" ".join(words.split()) in text for words in shown), text


async def phases_are_offered_in_a_list_that_is_not_closed_yet(it: Desk) -> None:
    await it.begin(TEXT)
    await it.put(5, 24)
    await it.it.press("enter")
    await it.it.type("handoffs: [l")
    await it.checked()
    assert [problem.code for problem in it.screen.problems] == ["L101"]
    await it.it.press("ctrl+@")
    assert [item.text for item in it.screen.popup.items] == ["look"]
    await it.it.press("escape")


async def find_go_to_line_undo_and_the_next_problem(it: Desk) -> None:
    await it.begin(TEXT + "  - name: more\n    instructions: x\n    tackel: []\n    ruls: {}\n")
    await it.it.press("ctrl+g")
    await it.it.type("4:5")
    await it.it.press("enter")
    assert it.area.cursor_location == (3, 4)
    await it.it.press("ctrl+f")
    await it.it.type("NAME")
    await it.it.press("enter")
    assert it.area.selected_text == "name"
    assert it.area.cursor_location[0] == 5
    assert "2 of 2 " in it.it.text().splitlines()[0], "which place it is was not said"
    await it.it.press("f3")
    assert it.area.cursor_location[0] == 2
    assert "1 of 2 " in it.it.text().splitlines()[0]
    await it.it.press("ctrl+g")
    await it.it.type("mo")
    await it.it.press("tab", "enter")
    assert it.area.cursor_location == (5, 10), "a phase was not gone to by the beginning of its name"
    await it.it.press("alt+left")
    assert it.area.cursor_location[0] == 2
    await it.it.press("f8")
    assert it.area.cursor_location == (7, 4)
    await it.it.press("f8")
    assert it.area.cursor_location == (8, 4)
    await it.it.press("f8")
    assert it.area.cursor_location == (7, 4)
    before = it.text
    await it.it.press("#", "ctrl+z")
    assert it.text == before
    await it.it.press("ctrl+y")
    assert it.text != before


async def a_point_in_a_template_offers_the_phases(it: Desk) -> None:
    await it.begin("cascade_id: x\nphases:\n  - name: look\n    instructions: Look\n")
    await it.it.press("ctrl+end", "up", "end")
    await it.it.type(" {{ outputs.")
    assert it.screen.popup.display
    assert [item.text for item in it.screen.popup.items] == ["look"]
    await it.it.press("tab")
    assert it.text.rstrip().endswith("{{ outputs.look")


async def the_field_of_a_line_shows_from_its_indentation_on(it: Desk) -> None:
    """The editor opens at a line, not at its first word."""
    await it.begin("cascade_id: x\nphases:\n  - name: look\n    rules:\n      max_turns: 3\n")
    for line, field in ((5, "phases[].rules.max_turns"), (4, "phases[].rules"), (3, "phases[].name")):
        await it.it.press("ctrl+g")
        await it.it.type(f"{line}")
        await it.it.press("enter")
        assert it.area.cursor_location == (line - 1, 0)
        await it.it.until(lambda: it.screen.field is not None)
        assert it.screen.field is not None
        assert it.screen.field.path == field


async def tab_and_backspace_move_lines_by_a_level(it: Desk) -> None:
    """Also several lines at once, each as far as it goes, and the focus stays in the text."""
    text = "a:\n  - b:\n      c: 1\n      d: 2\n"
    for first, keys, wanted in (
        ((3, 9), "shift+tab", "a:\n  - b:\n    c: 1\n      d: 2\n"),
        ((1, 1), "shift+tab", text),
        ((3, 7), "backspace", "a:\n  - b:\n    c: 1\n      d: 2\n"),
        ((3, 7), "backspace backspace backspace backspace", "a:\n  - b:c: 1\n      d: 2\n"),
        ((3, 8), "backspace", "a:\n  - b:\n      : 1\n      d: 2\n"),
        ((2, 1), "shift+down shift+down shift+down shift+tab", "a:\n- b:\n    c: 1\n    d: 2\n"),
        ((2, 1), "shift+down shift+down shift+tab shift+tab", "a:\n- b:\n  c: 1\n      d: 2\n"),
        ((3, 1), "shift+down shift+down tab", "a:\n  - b:\n        c: 1\n        d: 2\n"),
        ((3, 1), "shift+down shift+down tab ctrl+z", text),
    ):
        await it.begin(text)
        await it.put(*first)
        await it.it.press(*keys.split())
        assert it.text == wanted, keys
        assert it.area.has_focus


async def keys_lead_to_both_ends_and_take_the_whole_text(it: Desk) -> None:
    await it.begin("cascade_id: x\nphases: []\n")
    await it.it.press("ctrl+end")
    assert it.area.cursor_location == it.area.document.end
    await it.it.press("ctrl+home")
    assert it.area.cursor_location == (0, 0)
    await it.it.press("alt+a")
    assert it.area.selected_text == it.text


async def a_phase_is_renamed_everywhere_after_a_look_and_undo_takes_it_back(at: Desk, tmp_path: Path) -> None:
    await at.begin(LINKED)
    await at.put(10, 21)
    await at.it.press("ctrl+r", *["backspace"] * 4)
    await at.it.type("tell")
    await at.it.press("enter")
    assert "there is a phase tell already" in at.it.text()
    await at.it.press(*["backspace"] * 4)
    await at.it.type("search")
    await at.it.press("enter")
    await at.it.until(lambda: "look → search" in at.it.text(), "the change was not shown")
    assert "outputs.search" in at.it.text()
    assert at.text == LINKED
    await at.it.press("enter")
    renamed = LINKED.replace("name: look", "name: search").replace("outputs.look", "outputs.search")
    assert at.text == renamed.replace("from: [look]", "from: [search]")
    await at.checked()
    assert [problem.code for problem in at.screen.problems] == ["L501"]  # Of the tool, not of a phase.
    await at.it.press("ctrl+z")
    assert at.text == LINKED
    assert file_of(tmp_path).read_text() == TEXT


async def a_text_is_replaced_everywhere_after_a_look_and_undo_takes_it_back(at: Desk) -> None:
    await at.begin(LINKED)
    await at.it.press("alt+r")
    await at.it.type("LOOK")
    await at.it.press("enter")
    await at.it.until(lambda: "'LOOK' is not in this file" in at.it.text(), "it was not refused")
    await at.it.press(*["backspace"] * 4)
    await at.it.type("look")
    await at.it.press("enter")
    await at.it.until(lambda: "replace look with" in at.it.text(), "the other text was not asked for")
    await at.it.type("search")
    await at.it.press("enter")
    count = LINKED.count("look")
    await at.it.until(lambda: f"Replace  {count} places: look → search" in at.it.text(), "the change was not shown")
    assert at.text == LINKED
    await at.it.press("enter")
    assert at.text == LINKED.replace("look", "search")
    await at.it.press("ctrl+z")
    assert at.text == LINKED
    await at.it.press("alt+r", *["backspace"] * 9)
    await at.it.type("look")
    await at.it.press("enter")
    await at.it.until(lambda: "leave empty to delete it" in at.it.text(), "the other text was not asked for")
    await at.it.press("enter")
    await at.it.until(lambda: f"{count} places: look → nothing" in at.it.text(), "the change was not shown")
    await at.it.press("escape")
    assert at.text == LINKED


async def lines_become_comments_and_lines_again(at: Desk) -> None:
    await at.begin(TEXT)
    await at.put(4, 6)
    await at.it.press("shift+down", "ctrl+underscore")
    lines = at.text.splitlines()
    assert lines[3:] == ["    # instructions: Find it in {{ input.path }}.", "    # tackle: [read_file]"]
    await at.put(4, 6)
    await at.it.press("ctrl+underscore")
    assert at.text.splitlines()[3] == TEXT.splitlines()[3]
    assert at.area.cursor_location == (3, 3), "the cursor is not on its letter"


async def models_of_the_price_list_are_offered_with_their_prices(at: Desk) -> None:
    await at.begin(LINKED)
    await at.put(4, 31)
    await at.it.press(*["backspace"] * 5)
    await at.it.type("-na")
    await at.it.until(lambda: "gpt-4.1-nano" in at.it.text(), "no model was offered")
    assert "per million tokens" in at.it.text()


def shows(at: Desk, words: str) -> bool:
    return words in at.it.text()


async def what_the_name_under_the_cursor_stands_for_is_explained(at: Desk) -> None:
    await at.begin(LINKED)
    for line, column, known in NAMES:
        await at.put(line, column)
        await at.it.until(partial(shows, at, known), f"{known!r} is not shown")


async def leaving_and_quitting_ask_before_changes_are_lost(it: Desk, tmp_path: Path) -> None:
    await it.begin(TEXT)
    await it.it.press("#", "escape")
    assert "has changes that are not saved" in it.it.text()
    await it.answer("e")
    assert isinstance(it.it.app.screen, EditorScreen)
    await it.it.app.run_command("app.quit")
    await it.it.pilot.pause()
    assert "Discard the changes and quit" in it.it.text()
    await it.answer("s")
    await it.it.press("escape")
    await it.answer("d")
    assert type(it.it.app.screen).__name__ == "BenchScreen"
    assert file_of(tmp_path).read_text() == TEXT


FAULTY = """\
cascade_id: faulty
phases:
  - name: a
    instructions: Hi {{ state.x }}
    handoffs: [nope]
    tackle: [read_lgo]
  - name: b
    instruction: typo
"""


@pytest.mark.parametrize(("size", "all_of_them"), [((120, 40), True), ((80, 24), False)])
async def test_the_problems_have_the_lines_that_a_short_text_leaves(
    tmp_path: Path, size: tuple[int, int], *, all_of_them: bool
) -> None:
    async with desk(tmp_path, FAULTY, size=size) as it:
        pane = it.screen.problem_pane
        assert len(it.screen.problems) == 6
        await it.it.until(lambda: pane.size.height > 6, "the list stays as high as ever")
        assert (pane.size.height == pane.wanted_whole) == all_of_them
        assert ("(did you mean 'instructions'?)  [L201]" in it.it.text()) == all_of_them
        await it.begin(FAULTY + "# more\n" * 40)
        usual = pane.styles.base.height
        assert usual is not None
        await it.it.until(lambda: pane.size.height == usual.value, "the text has not got its lines back")


async def test_the_line_that_is_typed_stays_in_sight_when_its_problem_appears_below(tmp_path: Path) -> None:
    async with desk(tmp_path, TEXT + "# more\n" * 30, size=(80, 24)) as it:
        await it.put(36)
        await it.it.type("- name: y")
        await it.checked()
        await it.it.until(lambda: "- name: y" in it.it.text(), "the line is hidden")


async def test_a_save_is_whole_keeps_permissions_and_is_taken_over_by_the_bench(tmp_path: Path) -> None:
    async with desk(tmp_path) as it:
        file_of(tmp_path).chmod(0o640)
        await it.put(3, 15)
        await it.it.press("s")
        assert "● not saved" in it.it.text()
        await it.it.press("ctrl+s")
        assert file_of(tmp_path).read_text() == TEXT.replace("name: look", "name: looks")
        assert file_of(tmp_path).stat().st_mode & 0o777 == 0o640
        assert "not saved" not in it.it.text()
        assert [path.name for path in tmp_path.glob(".*new")] == []
        await it.it.until(lambda: "looks" in str(it.it.presenter.outline))
        await it.it.press("escape")
        assert type(it.it.app.screen).__name__ == "BenchScreen"


async def test_a_file_that_changed_meanwhile_is_not_overwritten_without_a_question(tmp_path: Path) -> None:
    async with desk(tmp_path) as it:
        it.it.app.sessions.watcher.stop()  # type: ignore[union-attr]
        await it.put(1, 18)
        await it.it.press("s")
        file_of(tmp_path).write_text("cascade_id: theirs\nphases: []\n")
        await it.it.press("ctrl+s")
        assert "was changed on disk" in it.it.text()
        await it.answer("s")
        assert file_of(tmp_path).read_text().startswith("cascade_id: theirs")
        await it.it.press("ctrl+s")
        await it.answer("r")
        assert it.text.startswith("cascade_id: theirs")
        await it.it.press("ctrl+z")
        assert it.text.startswith("cascade_id: smalls")
        await it.it.press("ctrl+s")
        assert file_of(tmp_path).read_text().startswith("cascade_id: smalls")


async def test_a_file_that_is_replaced_while_it_is_asked_about_is_asked_about_again(tmp_path: Path) -> None:
    async with desk(tmp_path) as it:
        it.it.app.sessions.watcher.stop()  # type: ignore[union-attr]
        await it.put(1, 18)
        await it.it.press("s")
        file_of(tmp_path).unlink()
        await it.it.press("ctrl+s")
        assert "was deleted on disk since you opened it" in it.it.text()
        file_of(tmp_path).write_text("cascade_id: theirs\nphases: []\n")
        await it.answer("o")
        assert file_of(tmp_path).read_text().startswith("cascade_id: theirs")
        assert "was changed on disk" in it.it.text()
        await it.answer("o")
        assert file_of(tmp_path).read_text().startswith("cascade_id: smalls")


async def test_an_untouched_text_follows_the_file_and_a_changed_one_says_so(tmp_path: Path) -> None:
    async with desk(tmp_path) as it:
        file_of(tmp_path).write_text(TEXT.replace("small", "other"))
        await it.it.until(lambda: "cascade_id: other" in it.text, "the editor did not follow the file")
        await it.put(1, 1)
        await it.it.press("#")
        file_of(tmp_path).write_text(TEXT.replace("small", "third"))
        await it.it.until(lambda: "changed on disk" in it.screen.on_disk)
        assert it.text.startswith("#cascade_id: other")
        file_of(tmp_path).unlink()
        await it.it.until(lambda: "deleted" in it.screen.on_disk)
        await it.it.press("ctrl+s")
        await it.answer("o")
        assert file_of(tmp_path).read_text().startswith("#cascade_id: other")


async def test_a_question_is_answered_once_however_fast_one_types(tmp_path: Path) -> None:
    async with desk(tmp_path) as it:
        await it.it.press("#", "escape")
        asked = it.it.app.screen
        assert isinstance(asked, ChoiceDialog)
        for _ in range(2):  # Both are under way before the first one has closed it.
            asked.post_message(events.Key("s", "s"))
        await it.it.until(lambda: type(it.it.app.screen).__name__ == "BenchScreen")
        await it.it.pilot.pause()
        assert it.it.app.is_running
        assert file_of(tmp_path).read_text() != TEXT


def test_what_was_not_saved_when_the_app_was_killed_is_offered_again(tmp_path: Path) -> None:
    async def killed() -> None:
        async with desk(tmp_path) as it:
            await it.put(1, 18)
            await it.it.press("s")
            await it.checked()

    async def again() -> None:
        async with bench(tmp_path, text=TEXT) as it:
            await it.press("e")
            await it.pilot.pause()
            assert "were saved" in it.text()
            await it.press("t")
            found = Desk(it)
            assert found.text.startswith("cascade_id: smalls")
            await it.press("ctrl+z")
            assert found.text == TEXT
            await it.press("ctrl+y", "ctrl+s", "escape", "e")
            await it.pilot.pause()
            assert isinstance(it.app.screen, EditorScreen)
            assert file_of(tmp_path).read_text().startswith("cascade_id: smalls")

    asyncio.run(killed())
    asyncio.run(again())


CANNOT_BE_KEPT = (
    (b"cascade_id: caf\xe9\n", "not UTF-8 at byte 16"),
    (b"cascade_id: x\r\nphases: []\n", "it mixes several kinds of line ends"),
    (b"a: " + b"x" * 1_000_000, "1,000,003 bytes"),
    (b"a: " + b"x" * 30_000, "a line of 30,003 characters"),
)


async def test_files_that_other_programs_wrote_are_kept_as_they_are(tmp_path: Path) -> None:
    async with bench(tmp_path, text=TEXT) as it:
        await a_file_that_cannot_be_kept_as_it_is_can_only_be_looked_at(it, tmp_path)
        await line_ends_and_a_byte_order_mark_are_kept(it, tmp_path)


async def a_file_that_cannot_be_kept_as_it_is_can_only_be_looked_at(it: Bench, tmp_path: Path) -> None:
    it.app.sessions.watcher.stop()  # type: ignore[union-attr]
    for raw, words in CANNOT_BE_KEPT:
        file_of(tmp_path).write_bytes(raw)
        await it.press("e")
        await it.pilot.pause()
        assert f"read-only: {words}" in it.text()
        shown = it.text()
        await it.press("ctrl+underscore")
        assert "its text stays as it is" in it.text()
        await it.press("alt+r")
        assert "replace " not in it.text().splitlines()[-1]
        assert it.text().splitlines()[1:3] == shown.splitlines()[1:3]
        await it.press("x", "ctrl+s", "enter")
        assert file_of(tmp_path).read_bytes() == raw
        await it.press("escape")
        assert it.app.screen is it.screen


async def line_ends_and_a_byte_order_mark_are_kept(it: Bench, tmp_path: Path) -> None:
    it.app.sessions.watcher.stop()  # type: ignore[union-attr]
    file_of(tmp_path).write_bytes(b"\xef\xbb\xbfcascade_id: x\r\nphases: []\r\n")
    await it.press("e")
    found = Desk(it)
    await found.put(1, 14)
    await it.press("y", "enter", "#", "ctrl+s")
    assert file_of(tmp_path).read_bytes() == b"\xef\xbb\xbfcascade_id: xy\r\n#\r\nphases: []\r\n"


async def test_hostile_characters_of_a_file_are_shown_as_pictures_and_kept(tmp_path: Path) -> None:
    text = TEXT.replace("Find it", "Find \x1b]0;gone\x07 \u202eit [/b]")

    async with desk(tmp_path, text) as it:
        shown = it.it.text()
        assert "␛]0;gone␇" in shown
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        await it.put(1, 18)
        await it.it.press("x", "ctrl+s")
        assert file_of(tmp_path).read_text() == text.replace("small", "smallx")


@pytest.mark.proof
async def test_five_thousand_lines_stay_usable(tmp_path: Path) -> None:
    phase = "  - name: p{0}\n    instructions: |\n      Do {0}\n    rules:\n      max_turns: 3\n"
    phases = "".join(phase.format(number) for number in range(1000))

    async with desk(tmp_path, f"cascade_id: big\nphases:\n{phases}") as it:
        await it.put(5000, 1)
        began = os.times()
        await it.it.press("#", "a", "b", "backspace", "up")
        used = os.times()
        assert (used.user - began.user) / 5 < 0.4
        assert it.area.document.line_count == 5003


async def test_the_editor_as_it_stands(tmp_path: Path) -> None:
    async with desk(tmp_path, TEXT + "    tackel: []\n") as it:
        await it.put(5, 24)
        await it.it.press("enter", "r", "u")
        await it.checked()
        await check_sizes(it.it, "editor", picture=True)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("vim", ["+call cursor(7, 3)", "FILE"]),
        ("vi", ["+7", "FILE"]),
        ("nano", ["+7,3", "FILE"]),
        ("emacs", ["-nw", "+7:3", "FILE"]),
        ("code", ["--wait", "--goto", "FILE:7:3"]),
        ("hx", ["FILE:7:3"]),
        ("zed", ["--wait", "FILE:7:3"]),
        ("unheard-of", ["FILE"]),
    ],
)
def test_each_editor_is_told_the_line_in_its_own_way(tmp_path: Path, name: str, wanted: list[str]) -> None:
    program = tmp_path / name
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    env = {"PATH": str(tmp_path), "EDITOR": f"{name} -nw" if name == "emacs" else name}
    assert editor_command(env, Path("FILE"), 7, 3) == [str(program), *wanted]


def test_an_editor_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoEditor, match=r"\$EDITOR is 'no-such-editor', and there is no program"):
        editor_command({"PATH": str(tmp_path), "EDITOR": "no-such-editor"}, Path("x"), 1)
    with pytest.raises(NoEditor, match="neither"):
        editor_command({"PATH": str(tmp_path)}, Path("x"), 1)
    with pytest.raises(NoEditor, match=r"\$VISUAL is not a command"):
        editor_command({"PATH": str(tmp_path), "VISUAL": "vim '"}, Path("x"), 1)


LINKED = """\
cascade_id: small
phases:
  - name: look
    model: openai/gpt-4.1-mini
    instructions: Find it in {{ input.path }}.
    tackle: [read_file, count_words]
    handoffs: [tell]
  - name: tell
    instructions: |
      Say {{ outputs.look | upper }}.
    context:
      from: [look]
"""
TOOL = '''\
from workbench import register_tool


@register_tool
def count_words(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())
'''


NAMES = (
    (4, 14, "in, "),
    (6, 16, "read_file(path"),
    (7, 17, "phase of line 8"),
    (10, 21, "phase of line 3 · openai/gpt-4.1-mini · tools read_file, count_words"),
    (10, 30, "upper: Convert a value to uppercase."),
    (12, 14, "Find it in {{ input.path }}."),
)


async def test_a_definition_is_gone_to_and_one_comes_back(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "words.py").write_text(TOOL)
    async with desk(tmp_path, LINKED) as at:
        await at.checked()
        await at.put(12, 14)
        await at.it.press("f12")
        assert at.area.cursor_location == (2, 10)
        await at.it.press("alt+left")
        assert at.area.cursor_location == (11, 13)
        await at.put(6, 16)
        await at.it.press("f12")
        assert "read_file is built in" in at.it.text()
        await at.put(6, 28)
        await at.it.press("f12")
        screen = at.it.app.screen
        assert isinstance(screen, EditorScreen)
        await at.it.until(lambda: "words.py" in at.it.text() and "not a cascade" in at.it.text())
        assert screen.area.cursor_location[0] + 1 in (4, 5)
        await at.it.press("f12")
        assert "\n Definitions are known in cascades only.\n" in at.it.text()
        await at.it.press("f8")
        assert "being checked" not in at.it.text(), "no check will come"
        assert at.it.text().count("not checked") > 1, "a low pane hides it"
        await at.it.press("escape")
        assert at.it.app.screen is at.screen


async def test_renaming_names_the_files_of_instructions_that_it_leaves_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "tell.md").write_text("Tell {{ outputs.look }}.")
    text = "cascade_id: c\nphases:\n  - {name: look, instructions: x}\n  - {name: tell, instructions: '@tell.md'}\n"
    async with desk(tmp_path, text) as at:
        await at.checked()
        await at.put(3, 14)
        await at.it.press("ctrl+r", *["backspace"] * 4)
        await at.it.type("search")
        await at.it.press("enter")
        await at.it.until(lambda: "tell.md names it too" in at.it.text(), "the other file was not named")


async def test_offline_replies_are_checked_as_they_are_written(tmp_path: Path) -> None:
    """By themselves, and for the cascade beside them."""
    replies = tmp_path / "log_triage.replies.yaml"
    async with desk(tmp_path) as at:
        for text, code, words in (
            ("replies:\n  luk: Seen.\n", "L902", "'luk' is not a phase of this cascade"),
            ("replies:\n  look:\n    - {attemp: 2, text: Seen.}\n", "L901", "did you mean 'attempt'?"),
            ("replies: [\n", "L101", "not valid YAML"),
            ("replies:\n  look: Seen.\n", "", "The file has no problems."),
        ):
            replies.write_text(text)
            at.screen.services.navigation.open_editor(replies)
            await at.it.until(lambda: at.it.app.screen is not at.screen, "the replies are not open")
            opened = Desk(at.it)
            await opened.checked()
            assert [problem.code for problem in opened.screen.problems] == [code] * bool(code)
            await at.it.pilot.pause()
            assert words in " ".join(at.it.text().split())
            await at.it.press("escape")
            await at.it.until(lambda: at.it.app.screen is at.screen, "the replies are not left")
