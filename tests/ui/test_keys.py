"""The key table: every key resolves, none clashes, and everything that tells about keys is made from it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from textual.binding import Binding
from textual.command import DiscoveryHit
from textual.dom import DOMNode
from textual.screen import ModalScreen, Screen

from tests.ui.bench import Bench, bench
from tests.ui.support import triage_story
from workbench.tui.app import WorkbenchApp
from workbench.tui.bench.screen import BenchScreen
from workbench.tui.commands import CONTEXTS as IN_PALETTE
from workbench.tui.commands import Commands, score_of
from workbench.tui.screens.annotator import NoteDialog
from workbench.tui.screens.batch import BatchScreen
from workbench.tui.screens.breakpoints import BreakpointSheet
from workbench.tui.screens.candidates import CandidatesScreen
from workbench.tui.screens.compare import CompareSheet
from workbench.tui.screens.dialog import Dialog
from workbench.tui.screens.edit import EditScreen, ReviewSheet
from workbench.tui.screens.editor import EditorScreen
from workbench.tui.screens.flow import FlowSheet
from workbench.tui.screens.form import FormDialog
from workbench.tui.screens.help import HelpRows
from workbench.tui.screens.home import HomeScreen
from workbench.tui.screens.message import MessageSheet
from workbench.tui.screens.playground import PlaygroundScreen
from workbench.tui.screens.plot import PlotSheet
from workbench.tui.screens.request import ChangedSheet, RequestSheet
from workbench.tui.screens.runs import RunsScreen
from workbench.tui.screens.settings import SettingsScreen
from workbench.tui.screens.sheet import ChangesSheet, DiffSheet, Sheet
from workbench.tui.screens.sides import SidePicker
from workbench.tui.screens.snapshots import SnapshotsScreen
from workbench.tui.screens.sql import SqlScreen
from workbench.tui.screens.sweep import SweepSheet
from workbench.tui.widgets.choices import Choices
from workbench.tui.widgets.code import CodeArea
from workbench.tui.widgets.prompt import Prompt
from workbench.tui.widgets.rowview import RowView
from workbench.tui.widgets.tree import TreePane
from workbench.views.commands import name_of
from workbench.views.keys import ALWAYS, CONTEXTS, FOOTERS, KEYS, Key, display, hints, never_sent, resolve
from workbench.workspace.session import Session

HOLDERS: dict[str, type[DOMNode]] = {
    "app": WorkbenchApp,
    "bench": BenchScreen,
    "found": BenchScreen,
    "list": RowView,
    "tree": TreePane,
    "sheet": Sheet,
    "message": MessageSheet,
    "diff": DiffSheet,
    "compare": CompareSheet,
    "request": RequestSheet,
    "changed": ChangedSheet,
    "snapshots": SnapshotsScreen,
    "candidates": CandidatesScreen,
    "sweep": SweepSheet,
    "sides": SidePicker,
    "changes": ChangesSheet,
    "breakpoints": BreakpointSheet,
    "flow": FlowSheet,
    "plot": PlotSheet,
    "dialog": Dialog,
    "batch": BatchScreen,
    "runs": RunsScreen,
    "annotate": RunsScreen,
    "note": NoteDialog,
    "home": HomeScreen,
    "find": HomeScreen,
    "borders": RunsScreen,
    "edit": EditScreen,
    "review": ReviewSheet,
    "playground": PlaygroundScreen,
    "editor": EditorScreen,
    "text": CodeArea,
    "sql": SqlScreen,
    "settings": SettingsScreen,
    "form": FormDialog,
    "choices": Choices,
}


def test_every_key_runs_an_action_that_exists() -> None:
    actions = {key: re.match(r"\w+", key.action) for key in KEYS}
    assert [
        key.id
        for key, action in actions.items()
        if action is None or not hasattr(HOLDERS[key.context], f"action_{action.group()}")
    ] == []


def test_every_key_is_bound_where_the_table_says() -> None:
    assert {key.id: bound for key in KEYS if (bound := bindings_of(key)) != [key.action]} == {}


def bindings_of(key: Key) -> list[str]:
    """What the holder of the key's context runs at it."""
    bindings = (one for one in HOLDERS[key.context].BINDINGS if isinstance(one, Binding) and one.id == key.id)
    return [one.action for one in bindings]


def test_ids_are_unique_and_every_context_is_known() -> None:
    ids = [key.id for key in KEYS]
    assert len(ids) == len(set(ids))
    assert {key.context for key in KEYS} == set(CONTEXTS) == set(HOLDERS)


def test_no_key_means_two_things_where_both_work() -> None:
    for key in KEYS:
        assert resolve({key.id: key.keys}) == (KEYS, ()), key.id


def test_no_command_relies_on_a_key_that_terminals_keep_for_themselves() -> None:
    kept = {"ctrl+m", "ctrl+i", "ctrl+h", "ctrl+enter", "ctrl+b", "ctrl+a", "ctrl+q"}
    for key in KEYS:
        assert not set(map(str.strip, key.keys.split(","))) <= kept, key.id
        assert key.keys.split(",")[0] not in kept, f"{key.id} is shown with a key that few terminals send"


def test_footers_name_commands_that_have_a_word_for_them() -> None:
    words = {key.id: key.short for key in KEYS}
    for situation, ids in FOOTERS.items():
        for id in (*ids, *ALWAYS):
            assert words.get(id), f"{situation}: {id}"


def test_a_users_key_replaces_the_one_of_the_table() -> None:
    table, problems = resolve({"run.over": "f6"})
    assert problems == ()
    assert next(key for key in table if key.id == "run.over").keys == "f6"
    assert hints(("run.over",), table) == (("run.over", "f6", "step"),)


def test_a_users_key_that_is_taken_is_reported_and_changes_nothing() -> None:
    table, problems = resolve({"run.over": "c"})
    assert table == KEYS
    assert problems == ("keys.run.over: 'c' already means 'Continue to the next breakpoint or the end' (run.continue)",)


def test_the_app_names_the_file_where_a_key_was_set_that_it_cannot_use() -> None:
    def never() -> Session:
        raise NotImplementedError

    places = {"run.over": "/home/ada/config.yaml:3:5"}
    app = WorkbenchApp(never, keys={"run.over": "c"}, keys_from=places.__getitem__)
    assert [notice.partition(" already")[0] for notice in app.early_notices] == [
        "/home/ada/config.yaml:3:5: keys.run.over: 'c'"
    ]


def test_a_key_for_a_command_that_does_not_exist_is_reported() -> None:
    assert resolve({"run.fly": "f"}) == (KEYS, ("keys.run.fly: there is no such command",))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("crtl+r", "ctrl+r"),
        ("F6", "f6"),
        ("ctrl+A", "ctrl+shift+a"),
        ("shift+a", "A"),
        ("page_down", "pagedown"),
        ("Return", "enter"),
        ("control+x", "ctrl+x"),
        ("f6,questionmark", "question_mark"),
    ],
)
def test_a_key_that_no_terminal_sends_is_reported_with_the_nearest_one(written: str, meant: str) -> None:
    wrong = written.rpartition(",")[2]
    expected = f"keys.run.edit: there is no key '{wrong}' (did you mean '{meant}'?)"
    assert resolve({"run.edit": written}) == (KEYS, (expected,))


@pytest.mark.parametrize(("written", "sent"), [("ctrl+m", "enter"), ("^i", "tab"), ("ctrl+[", "escape")])
def test_a_key_that_terminals_send_as_another_is_reported(written: str, sent: str) -> None:
    _, problems = resolve({"run.edit": written})
    assert problems[0].startswith(f"keys.run.edit: most terminals send {sent} for 'ctrl+")


def test_every_key_of_the_table_can_arrive() -> None:
    assert [name for key in KEYS for name in key.keys.split(",") if never_sent(name)] == []


async def test_a_key_may_be_written_as_its_character(tmp_path: Path) -> None:
    async with bench(tmp_path, keys={"view.find": "!", "pane.zoom": "="}) as it:
        await it.press("equals_sign")
        assert it.screen.has_class("-zoom")
        await it.press("exclamation_mark")
        assert it.screen.query(Prompt)


def test_two_commands_may_change_keys_and_the_later_of_two_that_clash_is_left_out() -> None:
    table, problems = resolve({"run.over": "r", "run.start": "n"})
    assert problems == ()
    assert [key.keys for key in table if key.id in ("run.over", "run.start")] == ["r", "n"]
    table, problems = resolve({"run.over": "f6", "run.start": "f6", "run.stop": "c", "run.continue": "r"})
    assert [key.keys for key in table if key.id in ("run.over", "run.start", "run.stop")] == ["f6", "r", "x"]
    left_out = {f"keys.run.{id}" for id in ("start", "stop", "continue")}
    assert {problem.partition(":")[0] for problem in problems} == left_out


def test_a_key_may_be_written_as_the_help_shows_it() -> None:
    table, problems = resolve({"run.over": "f6, pgdn", "view.next": "]", "view.find": "?", "run.out": " , "})
    assert [key.keys for key in table if key.id == "view.next"] == ["right_square_bracket"]
    assert set(problems) == {
        "keys.run.over: 'f6,pagedown' already means 'One page down' (list.page_down)",
        "keys.view.find: 'question_mark' already means 'Keys and signs' (app.help)",
        "keys.run.out: at least one key, as in f5 or ctrl+r",
    }


def test_keys_read_as_people_write_them() -> None:
    written = ("ctrl+p", "slash", "question_mark,f1", "alt+left", "G", "left_square_bracket")
    assert [display(keys) for keys in written] == [
        "^p",
        "/",
        "?",
        "alt+←",
        "G",
        "[",
    ]


def test_the_help_lists_every_key_and_every_sign() -> None:
    rows = HelpRows(KEYS)
    for key in KEYS:
        assert key.help in rows.copy
    for words in ("masked: the content", "the cache breaks here", "answered from a recording"):
        assert words in rows.copy


async def test_a_rebound_key_works_and_the_old_one_does_not(tmp_path: Path) -> None:
    async with bench(tmp_path, keys={"app.help": "ctrl+l", "pane.zoom": "Z"}) as it:
        assert "^l help" in it.text()
        await it.press("question_mark")
        assert it.app.screen is it.screen
        await it.press("ctrl+l")
        assert it.app.screen is not it.screen
        await it.press("escape", "Z")
        assert it.screen.has_class("-zoom")


async def test_the_palette_knows_every_command_and_runs_it(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        provider = Commands(it.screen)
        found = [str(hit.text) async for hit in provider.discover()]
        for key in KEYS:
            if key.context in IN_PALETTE and key.id != "app.palette":
                assert name_of(key) in found
        assert "Theme workbench-light" in found
        await it.app.run_command("pane.zoom")
        assert it.screen.has_class("-zoom")
        await it.app.run_command("theme:workbench-light")
        assert it.app.current_theme.name == "workbench-light"


@pytest.mark.parametrize("typed", ["triage:1", "tri 1", "triage turn 1"])
async def test_the_palette_goes_to_a_call_by_its_place(tmp_path: Path, typed: str) -> None:
    async with bench(tmp_path, events=triage_story(finished=True).events) as it:
        state = it.presenter.state
        assert state.call is None or state.call.place.words != "triage:1"
        provider = Commands(it.screen)
        hit = max([hit async for hit in provider.search(typed)], key=lambda hit: hit.score)
        assert hit.text == "triage:1"
        await it.press("ctrl+p")
        await it.type(typed)
        await it.until(lambda: "Look at this call" in it.text(), "the call is not offered")
        await it.press("enter")
        await it.until(lambda: state.call is not None and state.call.place.words == "triage:1", "it is not shown")
        assert not [hit async for hit in provider.search("triage:99")]


FINDS = (
    ("help", "app.help"),
    ("step", "run.over"),
    ("fork", "run.fork"),
    ("screenshot", "app.screenshot"),
    ("snapshot", "app.snapshots"),
    ("resume", "run.continue"),
    ("mask", "view.why"),
    ("freeze", "run.freeze"),
    ("step out", "run.step_out"),
    ("zoom", "pane.zoom"),
    ("quit", "app.quit"),
    ("fre tes", "run.freeze"),
    ("brkpt", "run.breakpoint"),
    ("whole screen", "pane.zoom"),
    ("curl", "view.copy"),
    ("new cascade", "app.home"),
    ("sweep", "view.strategies"),
    ("cheaper", "view.strategies"),
    ("export", "app.runs"),
    ("accept", "app.snapshots"),
)


async def test_the_palette_knows_finds_and_runs_commands(tmp_path: Path) -> None:
    async with bench(tmp_path, events=triage_story().events) as it:
        await a_tab_is_found_by_its_name_and_a_picture_of_the_screen_is_saved(it, tmp_path)
        await the_palette_finds_by_name_then_by_search_word_then_by_sentence(it)
        await a_command_of_the_palette_goes_where_its_key_works(it)
        await the_palette_the_help_and_the_themes_are_at_hand_on_a_sheet(it)


async def a_tab_is_found_by_its_name_and_a_picture_of_the_screen_is_saved(it: Bench, tmp_path: Path) -> None:
    hits = [hit async for hit in Commands(it.screen).discover()]
    assert "Tab log_triage › 7f3a (shown)" in [str(hit.text) for hit in hits]
    longest = max(len(name_of(key)) for key in KEYS if key.context in IN_PALETTE)
    step = next(str(hit.display) for hit in hits if isinstance(hit, DiscoveryHit) and hit.text == "Step")
    assert step.index("Step to the next call") <= 11 + longest + 2, "sentences are cut behind blanks"
    await it.press("f7")
    assert f"Screen saved: {tmp_path}/workbench-"[:60] in it.text()
    (picture,) = tmp_path.glob("workbench-*.svg")
    assert "triage" in picture.read_text()


async def the_palette_finds_by_name_then_by_search_word_then_by_sentence(it: Bench) -> None:
    provider = Commands(it.screen)
    for typed, wanted in FINDS:
        scored = [(score_of(entry, typed, provider.matcher(typed)), entry.id) for entry in provider._entries()]
        best = max(score for score, _ in scored)
        assert wanted in [id for score, id in scored if score == best], typed
    assert not [hit async for hit in provider.search("no such command at all")]


async def a_command_of_the_palette_goes_where_its_key_works(it: Bench) -> None:
    unfolded = len(it.screen.tree_pane.rows)
    assert it.app.focused is not it.screen.tree_pane
    await it.app.run_command("tree.fold")
    await it.pilot.pause()
    await it.app.run_command("tree.fold")
    await it.until(lambda: len(it.screen.tree_pane.rows) < unfolded)


async def the_palette_the_help_and_the_themes_are_at_hand_on_a_sheet(it: Bench) -> None:
    from textual.command import CommandPalette

    await it.press("enter")
    sheet, theme = it.app.screen, it.app.current_theme.name
    assert isinstance(sheet, MessageSheet)
    found = [str(hit.text) async for hit in Commands(sheet).discover()]
    assert {"Show as Markdown", "Find in text", "Down", "Help"} <= set(found)
    assert "Runs" not in found, "a room would lie over the sheet"
    assert found[0] == "Next form of the message", "what is the sheet's own comes first"
    await it.press("ctrl+p")
    await it.until(lambda: isinstance(it.app.screen, CommandPalette))
    await it.press("escape", "f2")
    assert it.app.current_theme.name != theme
    await it.press("question_mark", "question_mark")
    assert "keys and signs" in it.text()
    assert " Message" in it.text()
    assert "Freeze" not in it.text(), "keys of other screens stand in the help of this one"
    await it.press("escape")
    assert it.app.screen is sheet


def test_every_command_has_a_name_and_no_name_is_there_for_none() -> None:
    ids = {key.id for key in KEYS}
    assert {key.id for key in KEYS if not name_of(key)} == set()
    for context in CONTEXTS:
        names = [name_of(key) for key in KEYS if key.context == context]
        assert len(names) == len(set(names)), context
    assert "run.over" in ids


def test_the_help_of_the_bench_fits_one_screen_in_columns() -> None:
    rows = HelpRows(KEYS)
    rows.lay_out(119)
    assert len(rows) <= 38, "it has to be scrolled at 120x40"
    shown = "\n".join(rows.plain(index) for index in range(len(rows)))
    assert all(name_of(key)[:20] in shown for key in KEYS if key.context == "bench")
    assert "On other screens" not in shown
    rows.lay_out(199)
    assert len(rows) <= 24, "a wide screen has more columns"
    rows.lay_out(39)
    narrow = [rows.row(index, 39).text for index in range(len(rows))]
    assert all(len(line) <= 39 for line in narrow)
    assert not [line for line in narrow if line.endswith("…")], "a sentence is cut in a narrow terminal"
    rows.list_out(listed=True)
    rows.lay_out(119)
    listed = "\n".join(rows.plain(index) for index in range(len(rows)))
    assert all(key.help in listed for key in KEYS), "a filter looks through the keys of all screens"


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("definition", "editor.definition"),
        ("declaration", "editor.definition"),
        ("refactor", "editor.rename"),
        ("uncomment", "editor.comment"),
        ("substitute", "editor.replace"),
        ("autocomplete", "editor.complete"),
        ("golden", "run.freeze"),
        ("clipboard", "view.copy"),
    ],
)
def test_a_filter_of_the_help_finds_a_key_by_its_name_and_by_what_people_call_it(typed: str, wanted: str) -> None:
    rows = HelpRows(KEYS, ("editor", "find", "text"))
    rows.list_out(listed=True)
    rows.lay_out(60)
    key = next(key for key in KEYS if key.id == wanted)
    shown = [rows.row(index, 60).text for index in rows.kept(typed)]
    assert any(key.help.split()[0] in line for line in shown)
    assert " ".join(" ".join(shown).split()).count(key.help) == 1, "a sentence in two lines is found in part"


@pytest.mark.parametrize("here", [(), ("editor", "find", "text"), ("sql", "find", "text", "list"), ("batch", "find")])
def test_the_columns_of_the_help_cut_no_name(here: tuple[str, ...]) -> None:
    rows = HelpRows(KEYS, here)
    for width in (79, 119, 199):
        rows.lay_out(width)
        shown = [rows.row(index, width).text for index in range(len(rows))]
        assert not [line for line in shown if "…" in line]
        assert max(map(len, shown)) <= width


def test_a_key_that_works_on_sheets_cannot_be_taken_by_one() -> None:
    _, problems = resolve({"sheet.copy": "f2"})
    assert problems == ("keys.sheet.copy: 'f2' already means 'The next colour theme' (app.theme)",)


async def test_the_footer_offers_nothing_for_the_rows_of_an_empty_pane(tmp_path: Path) -> None:
    """It offered to open, find, filter and copy where there is nothing."""
    async with bench(tmp_path) as it:
        await it.press("2")
        assert it.presenter.problems
        assert "enter open  / find" in it.text().splitlines()[-1]
        await it.press("3")
        assert "The state is empty." in it.pane("dock")
        footer = it.text().splitlines()[-1]
        assert not [word for word in ("enter open", "find", "filter", "copy") if word in footer]
        assert "zoom" in footer


async def test_choices_and_the_footer_take_keys_and_clicks(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        await a_click_on_the_footer_is_a_press(it)
        await it.press("escape")
        await choices_move_by_the_keys_of_lists(it)


async def a_click_on_the_footer_is_a_press(it: Bench) -> None:
    x = it.text().split("\n")[39].index("help")
    await it.pilot.click("#footer", offset=(x, 0))
    await it.pilot.pause()
    assert it.app.screen is not it.screen


async def choices_move_by_the_keys_of_lists(it: Bench) -> None:
    choices = Choices([(name, [(name, "")]) for name in ("a", "b", "c")])
    await it.app.screen.mount(choices)
    choices.focus()
    await it.press("j", "j")
    assert choices.highlighted == 2
    await it.press("g")
    assert choices.highlighted == 0
    await it.press("G", "k", "space")
    assert choices.chosen == ["b"]


LISTS = ("j", "k", "g", "G", "ctrl+d", "ctrl+u", "pagedown", "home", "end", "enter")
"""What moves in every list and text."""
HABITS: dict[type[DOMNode], tuple[str, ...]] = {
    **dict.fromkeys(
        (HomeScreen, SnapshotsScreen, PlaygroundScreen, EditScreen, Sheet, FlowSheet),
        ("slash", "n", "f", "question_mark", "escape", "ctrl+p", "ctrl+c", *LISTS),
    ),
    **dict.fromkeys((SqlScreen, RunsScreen, SettingsScreen), ("slash", "f", "question_mark", "escape", *LISTS)),
    EditorScreen: ("f1", "escape", "ctrl+f", "f3", "f12"),
    BenchScreen: (
        "f5",
        "f9",
        "f10",
        "f11",
        "shift+f11",
        "slash",
        "n",
        "N",
        "f3",
        "space",
        "y",
        "question_mark",
        *LISTS,
    ),
    Choices: ("j", "k", "g", "G", "space"),
    Dialog: ("escape", "ctrl+c"),
}


@pytest.mark.parametrize("holder", HABITS, ids=lambda holder: holder.__name__)
def test_keys_that_people_press_by_habit_work_on_every_screen(holder: type[DOMNode]) -> None:
    kinds: list[type] = [*holder.__mro__]
    if issubclass(holder, Screen):
        kinds += [*RowView.__mro__, *([] if issubclass(holder, ModalScreen) else WorkbenchApp.__mro__)]
    bound = {name for kind in kinds for binding in vars(kind).get("BINDINGS", ()) for name in binding.key.split(",")}
    assert set(HABITS[holder]) - {name.strip() for name in bound} == set()
