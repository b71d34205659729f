"""Nested runs in the Bench: their calls stand in the tree, their contexts open, and one comes back."""

from __future__ import annotations

from pathlib import Path

from tests.ui.bench import Bench, bench, screen_text
from workbench.context.place import Place
from workbench.tui.bench.state import HeldRun

PARENT = """\
cascade_id: outer
phases:
  - name: gather
    instructions: Gather it.
    sub_cascades: [{ref: inner.yaml}]
    handoffs: [tell]
  - name: tell
    instructions: "Tell: {{ outputs.look }}"
"""
CHILD = """\
cascade_id: inner
phases:
  - name: look
    instructions: Look closely at {{ input.log }}.
"""
REPLIES = """\
replies:
  gather: [{text: Gathered.}]
  tell: [{text: Told.}]
  look: [{text: It is a log.}]
"""


def prepared(folder: Path) -> Path:
    (folder / "inner.yaml").write_text(CHILD)
    return folder


async def ended(it: Bench) -> str:
    """Run to the end; the id of the nested run."""
    await it.press("r")
    await it.until(lambda: it.presenter.state.run.finished, "the run did not end")
    await it.until(lambda: it.presenter.state.children, "no nested run was seen")
    return next(iter(it.presenter.state.children))


def row_of(it: Bench, *id: str) -> int:
    assert it.screen.panes.tree_rows is not None
    found = it.screen.panes.tree_rows.index_of(id)
    assert found is not None, id
    return found


async def at_child(it: Bench, child: str) -> None:
    """Put the tree's cursor on the nested run."""
    it.screen.focus_pane("tree")
    it.screen.tree_pane.move_to(row_of(it, "phase", "gather"))
    await it.pilot.pause()
    await it.press("l")
    it.screen.tree_pane.move_to(row_of(it, "child", child))
    await it.pilot.pause()


async def test_the_context_of_a_nested_call_opens_and_o_comes_back(tmp_path: Path) -> None:
    async with bench(prepared(tmp_path), text=PARENT, replies=REPLIES) as it:
        child = await ended(it)
        await at_child(it, child)
        await it.press("i")
        assert "Look closely at night.log." in it.pane("context") + it.pane("detail")
        assert "↳ inner  look" in it.pane("context")
        assert "look" in it.pane("tree")
        assert "✓ 1" in it.pane("tree")
        await it.press("o")
        assert it.presenter.state.selected_run == ""
        assert it.presenter.state.selected is not None
        assert it.presenter.state.selected.phase == "gather"


async def test_a_nested_run_has_the_name_of_its_cascade_in_every_pane(tmp_path: Path) -> None:
    """Before, the tree of a narrow terminal and the summary named the cascade, all else the session."""
    async with bench(prepared(tmp_path), text=PARENT, replies=REPLIES, size=(200, 50)) as it:
        child = await ended(it)
        await at_child(it, child)
        await it.press("i")
        assert "↳ inner  sub_0" in it.pane("tree")
        assert "↳ inner  look" in it.pane("context")
        await it.press("6")
        assert "↳ inner" in it.pane("dock")
        assert "_sub_0" not in it.pane("dock")
        await it.pilot.resize_terminal(80, 24)
        it.screen.focus_pane("context")
        await it.pilot.pause()
        assert "↳ inner › look › turn 1" in screen_text(it.app)


async def test_the_total_is_there_while_only_a_run_inside_has_made_calls(tmp_path: Path) -> None:
    """The header counts the calls of a nested run at once; the tree had no row that agreed with it."""
    async with bench(prepared(tmp_path), text=PARENT, replies=REPLIES, size=(120, 40)) as it:
        for _ in range(9):
            await it.press("i")
            await it.until(lambda: it.presenter.state.held is not None, "the run did not pause")
            if "1 call" in screen_text(it.app).splitlines()[0]:
                break
        assert it.presenter.state.held_run
        assert not it.presenter.state.run.calls
        assert "Σ total" in it.pane("tree")


async def test_enter_unfolds_a_nested_run_and_its_turn_shows_what_it_saw(tmp_path: Path) -> None:
    async with bench(prepared(tmp_path), text=PARENT, replies=REPLIES) as it:
        child = await ended(it)
        await at_child(it, child)
        it.presenter.state.folding[("child", child)] = True
        it.screen.redraw()
        it.screen.tree_pane.move_to(row_of(it, "in", child, "visit", "", "look", "1"))
        await it.pilot.pause()
        await it.press("l")
        it.screen.tree_pane.move_to(row_of(it, "in", child, "call", str(Place("", "look", 1, 1, 1, 1))))
        await it.press("enter")
        assert it.screen.focused is it.screen.context_pane
        assert "Look closely at night.log." in it.pane("context") + it.pane("detail")
        await it.press("w")
        assert "o goes back" in it.text()


async def test_stepping_into_a_nested_run_shows_what_it_is_about_to_send(tmp_path: Path) -> None:
    async with bench(prepared(tmp_path), text=PARENT, replies=REPLIES) as it:
        seen: list[HeldRun | None] = [None]

        def is_held_anew() -> bool:
            return it.presenter.state.held not in seen and not it.screen.is_stepping

        while (held := seen[-1]) is None or (held.place.phase, held.kind) != ("look", "before_call"):
            await it.press("i")
            await it.until(is_held_anew, "it is not held anew")
            seen.append(it.presenter.state.held)
        assert it.presenter.state.held_run
        assert it.presenter.state.selected_run == it.presenter.state.held_run
        assert "Look closely at night.log." in it.pane("context") + it.pane("detail")
        assert "PAUSED before look:1" in it.text()
        assert "goes back" not in it.text(), "where the run is paused, that key steps"
        signs = [line.split()[1] for line in it.pane("tree").splitlines() if "▾" in line]
        assert signs == ["‖"] * 3, "something turns while the run is paused inside of it"
        await it.press("c")
        await it.until(lambda: it.presenter.shows_summary, "no summary of the finished run")


async def test_the_nested_runs_of_a_stored_run_can_be_opened_too(tmp_path: Path) -> None:
    async with bench(prepared(tmp_path), text=PARENT, replies=REPLIES) as it:
        child = await ended(it)
        run_id = it.presenter.state.run.run_id
        it.presenter.state.run.run_id = ""
        it.session.view(run_id)
        it.screen.show_what_is_stored()
        await it.until(lambda: child in it.presenter.state.children, "the nested run was not read")
        await at_child(it, child)
        await it.press("i")
        assert "Look closely at night.log." in it.pane("context") + it.pane("detail")
        assert any("▾ ✓ ↳ inner" in line for line in it.pane("tree").splitlines())
