"""The borders between the panes of the Bench follow the mouse, within the limits of the keys."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterator
from inspect import isfunction
from pathlib import Path
from threading import Thread
from time import monotonic

from textual.events import MouseDown, MouseEvent, MouseMove, MouseUp

from tests.ui.bench import Bench, bench
from tests.ui.support import triage_story
from workbench.tui.bench.screen import BenchScreen
from workbench.tui.screens.borders import FRAME, BorderDragging
from workbench.tui.screens.candidates import CandidatesScreen
from workbench.tui.screens.compare import CompareSheet
from workbench.tui.screens.home import HomeScreen
from workbench.tui.screens.jump import JumpScreen
from workbench.tui.screens.runs import RunsScreen
from workbench.tui.widgets.prompt import Prompt
from workbench.tui.widgets.rowview import RowView
from workbench.workspace.folders import Folders
from workbench.workspace.view_states import keep_sizes, load_sizes


def edge(it: Bench, line: int = 5) -> tuple[int, int]:
    """A cell of the border between tree and context."""
    tree = it.screen.tree_pane.region
    return tree.right - 1, tree.y + line


def above(it: Bench, column: int = 60) -> tuple[int, int]:
    """A cell of the border over the lower pane."""
    return column, it.screen.dock_pane.region.y


def sizes(it: Bench) -> tuple[int, int]:
    return it.screen.tree_pane.size.width, it.screen.dock_pane.size.height


def send(it: Bench, kind: type[MouseEvent], cell: tuple[int, int]) -> None:
    """What a terminal tells of the mouse; the app makes clicks of it by itself."""
    it.app.post_message(kind(None, *cell, 0, 0, 1, False, False, False, *cell))


async def take(it: Bench, cell: tuple[int, int]) -> None:
    await it.pilot.mouse_down(offset=cell)


async def drag(it: Bench, cell: tuple[int, int], *path: tuple[int, int]) -> None:
    """Press, move along, and let go."""
    await take(it, cell)
    for step in path:
        await it.pilot.hover(offset=step)
    await it.pilot.mouse_up(offset=path[-1])
    await it.pilot.pause()


async def test_the_tree_leaves_the_context_what_its_reasons_need_and_stays_while_calls_change(tmp_path: Path) -> None:
    async with bench(tmp_path, events=triage_story().events) as it:
        await it.until(lambda: sizes(it)[0] == 47, "the tree keeps cells for bars that the reasons need")
        width, _ = sizes(it)
        await it.press("left_square_bracket", "left_square_bracket", "left_square_bracket")
        assert sizes(it)[0] == width, "a call with short reasons moved the border"
        height = sizes(it)[1]
        await it.press("5")
        await it.until(lambda: sizes(it)[1] == 20, "the lower pane is not enlarged while it is read")
        await it.press("tab")
        await it.until(lambda: sizes(it)[1] == height, "it keeps the lines that only reading needs")
        await it.press("alt+left", "right_square_bracket")
        await it.until(lambda: sizes(it)[0] == width - 4, "the user's own width does not win")
        await it.press("alt+up", "5")
        await it.until(lambda: sizes(it)[1] == height + 2, "the user's own height does not win")


async def test_the_borders_go_where_the_mouse_takes_them_and_the_sizes_are_kept(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        width, height = sizes(it)
        x, y = edge(it)
        await drag(it, (x, y), (x + 3, y), (x + 9, y + 2))
        await it.until(lambda: sizes(it) == (width + 9, height), f"{sizes(it)}")
        x, y = above(it)
        await drag(it, (x, y), (x, y - 5))
        await it.until(lambda: sizes(it) == (width + 9, height + 5), f"{sizes(it)}")
        kept = it.screen.view_now()
        assert kept is not None
        assert (kept.tree_width, kept.dock_height) == sizes(it)
        assert it.app.mouse_captured is None
        assert not it.screen.selections


async def as_it_was(it: Bench) -> None:
    """Leave what opened, and give the panes back the sizes of a new app."""
    while len(it.app.screen_stack) > 1:
        await it.press("escape")
    it.screen.choose_sizes((None, None))
    await it.pilot.pause()


async def test_borders_follow_the_mouse_within_limits_and_only_while_it_drags(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        await escape_ends_a_drag_and_puts_the_panes_back(it)
        await as_it_was(it)
        await a_drag_is_no_click_and_a_press_is_no_drag(it)
        await as_it_was(it)
        await a_dialog_that_opens_ends_a_drag(it)
        await as_it_was(it)
        await a_burst_of_moves_is_laid_out_once_a_frame(it)
        await as_it_was(it)
        await the_mouse_has_the_limits_of_the_keys(it)
        await as_it_was(it)
        await the_border_under_the_mouse_shows_that_it_can_be_taken(it)


async def escape_ends_a_drag_and_puts_the_panes_back(it: Bench) -> None:
    before = sizes(it)
    x, y = edge(it)
    await take(it, (x, y))
    await it.pilot.hover(offset=(x + 8, y))
    await it.until(lambda: sizes(it) != before)
    await it.press("escape")
    await it.until(lambda: sizes(it) == before)
    await it.pilot.hover(offset=(x + 12, y))
    await it.pilot.mouse_up(offset=(x + 12, y))
    await it.pilot.pause()
    assert sizes(it) == before
    assert it.screen.view_now().tree_width is None  # type: ignore[union-attr]
    corner = it.screen.tree_pane.region.right - 1
    await it.until(lambda: it.screen.dock_pane.joints == {corner: "┴"}, "the lines meet where the edge is")


async def a_drag_is_no_click_and_a_press_is_no_drag(it: Bench) -> None:
    before, dock = sizes(it), it.screen.dock_pane
    focused, cursor = it.screen.focused, it.screen.tree_pane.cursor
    await it.pilot.hover(offset=edge(it))
    for kind, cell in ((MouseDown, edge(it)), (MouseMove, (5, 4)), (MouseUp, (5, 4))):
        send(it, kind, cell)
    await it.until(lambda: sizes(it)[0] == 18)
    assert (it.screen.focused, it.screen.tree_pane.cursor) == (focused, cursor)
    tab, y = it.pane("dock").lower().index("problems"), dock.region.y
    for kind, cell in ((MouseDown, (tab, y)), (MouseMove, (tab, y - 3))):
        send(it, kind, cell)
    await it.until(lambda: sizes(it)[1] == before[1] + 3)
    send(it, MouseUp, (tab, y - 3))
    await it.until(lambda: it.app.mouse_captured is None)
    assert it.screen.tab == "log"
    for kind in (MouseDown, MouseUp):
        send(it, kind, (tab, y - 3))
    await it.until(lambda: it.screen.tab == "problems")
    assert sizes(it)[1] == before[1] + 3


async def a_dialog_that_opens_ends_a_drag(it: Bench) -> None:
    await take(it, edge(it))
    await it.press("ctrl+o")
    await it.until(lambda: isinstance(it.app.screen, JumpScreen))
    await it.press("escape")
    before = sizes(it)
    await it.pilot.hover(offset=(60, 10))
    await it.pilot.hover(offset=(70, 10))
    await it.pilot.pause()
    assert sizes(it) == before


async def a_burst_of_moves_is_laid_out_once_a_frame(it: Bench) -> None:
    screen, followed = it.screen, list[int]()
    resize = screen.resize_tree

    def counted(width: int) -> None:
        followed.append(width)
        resize(width)

    screen.resize_tree = counted  # type: ignore[method-assign]
    x, y = edge(it)
    send(it, MouseDown, (x, y))
    began = monotonic()
    for step in range(1, 61):
        send(it, MouseMove, (x + step % 30, y))
    send(it, MouseUp, (x + 25, y))
    await it.until(lambda: screen.tree_pane.size.width == x + 26)
    assert len(followed) <= (monotonic() - began) / FRAME + 2


async def the_mouse_has_the_limits_of_the_keys(it: Bench) -> None:
    for axis, by, grip, to in (
        ("width", -400, edge, (0, 20)),
        ("width", 400, edge, (119, 20)),
        ("height", -400, above, (60, 39)),
        ("height", 400, above, (60, 0)),
    ):
        it.screen.action_resize(axis, by)
        await it.pilot.pause()
        wanted = sizes(it)
        it.screen.action_resize(axis, -by // 100)
        await it.until(lambda wanted=wanted: sizes(it) != wanted, f"{wanted} stays")  # type: ignore[misc]
        await drag(it, grip(it), to)
        await it.until(lambda wanted=wanted: sizes(it) == wanted, f"{to}")  # type: ignore[misc]


async def the_border_under_the_mouse_shows_that_it_can_be_taken(it: Bench) -> None:
    await it.pilot.hover(offset=edge(it))
    await it.until(lambda: "║" in it.pane("tree"))
    await it.pilot.hover(offset=above(it))
    await it.until(lambda: "═" in it.pane("dock"))
    assert "║" not in it.pane("tree")
    await it.pilot.hover(offset=(60, 10))
    await it.until(lambda: "═" not in it.pane("dock"))
    await it.press("z")
    for cell in ((0, 5), (60, 1), (119, 9)):
        await it.pilot.hover(offset=cell)
    assert not any(view.lit for view in it.screen.query(RowView))


async def test_the_card_below_the_runs_is_dragged_moved_by_keys_and_stays_so(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        await it.press("L")
        await it.until(lambda: isinstance(it.app.screen, RunsScreen))
        screen = it.app.screen
        assert isinstance(screen, RunsScreen)
        card = screen.card_pane
        await it.until(lambda: card.size.height)
        height, y = card.size.height, card.region.y
        await drag(it, (60, y), (60, y + 3), (60, y + 6))
        await it.until(lambda: card.size.height == height - 6)
        await it.press("alt+down")
        await it.until(lambda: card.size.height == height - 8)
        await take(it, (60, card.region.y))
        await it.pilot.hover(offset=(60, 5))
        await it.until(lambda: card.size.height > height - 8)
        await it.press("escape")
        await it.until(lambda: card.size.height == height - 8)
        assert it.app.screen is screen, "escape ends the drag, and no more"
        await it.pilot.mouse_up(offset=(60, 5))
        for to, wanted in (((60, 0), 40 - 8), ((60, 39), 3)):
            await drag(it, (60, card.region.y), to)
            await it.until(lambda wanted=wanted: card.size.height == wanted, f"{card.size}")  # type: ignore[misc]
        await it.press("escape", "L")
        await it.until(lambda: isinstance(it.app.screen, RunsScreen) and it.app.screen is not screen)
        again = it.app.screen
        assert isinstance(again, RunsScreen)
        await it.press("f")
        await it.until(lambda: again.query(Prompt))
        await it.press("escape")
        await it.until(lambda: not again.query(Prompt))
        assert again.focused is again.list_pane, "the list has the focus again, not its neighbour"
        await it.until(lambda: again.card_pane.size.height == 3, "the size is remembered")
        await it.app.workers.wait_for_complete()
    assert load_sizes(Folders(tmp_path, tmp_path / "state")) == {"runs.card": 3}


def test_of_sizes_that_follow_each_other_at_once_the_last_are_kept(tmp_path: Path) -> None:
    folders = Folders(tmp_path, tmp_path / "state")
    later = Thread(target=keep_sizes, args=(folders, {"runs.card": 2}))

    class Overtaken(UserDict[str, int]):
        def __iter__(self) -> Iterator[str]:
            later.start()
            later.join(0.1)  # It would be over by then, if it did not wait for its turn.
            return super().__iter__()

    keep_sizes(folders, Overtaken({"runs.card": 1}))
    later.join()
    assert load_sizes(folders) == {"runs.card": 2}


def test_sizes_that_were_damaged_are_forgotten(tmp_path: Path) -> None:
    folders = Folders(tmp_path, tmp_path / "state")
    assert load_sizes(folders) == {}
    keep_sizes(folders, {"runs.card": 12})
    assert load_sizes(folders) == {"runs.card": 12}
    for body in ("", "[]", '{"sizes": [1]}', '{"sizes": {"a": "x", "b": true, "c": -1, "d": 1e99}}', "\x00"):
        (tmp_path / "state" / "sizes.json").write_text(body)
        assert load_sizes(folders) == {}
    (tmp_path / "file").write_text("")
    keep_sizes(Folders(tmp_path, tmp_path / "file" / "state"), {"runs.card": 12})


def test_no_screen_takes_a_name_that_dragging_needs_for_itself() -> None:
    own = {name for name, value in vars(BorderDragging).items() if name.startswith("_") and isfunction(value)}
    screens = [BenchScreen, CandidatesScreen, CompareSheet, HomeScreen, RunsScreen]
    assert {screen.__name__: own & set(vars(screen)) for screen in screens if own & set(vars(screen))} == {}
