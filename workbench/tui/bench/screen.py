"""The Bench: the tree, the context of the selected call, its detail, and what happened, driven by the fold."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.geometry import Region

from workbench.tui.bench.panes import Panes
from workbench.tui.bench.tabs import TABS, WATCHED, Tab, tab_at
from workbench.tui.bindings import bindings
from workbench.tui.screens.base import WorkbenchScreen
from workbench.tui.screens.borders import Border, BorderDragging, Sizes
from workbench.tui.screens.jump import JumpScreen
from workbench.tui.widgets.prompt import Prompt, PromptClosed
from workbench.tui.widgets.rowview import RowView
from workbench.tui.widgets.tree import TreePane
from workbench.views.keys import ALWAYS, FOOTERS, KEYS, PANE_FOOTERS, hints
from workbench.views.numbers import OVERHEAD

if TYPE_CHECKING:
    from workbench.engine.debugger.stepper import Mode
    from workbench.tui.bench.controllers import Controllers
    from workbench.tui.bench.panes import PanesLook
    from workbench.tui.bench.presenter import Detail, Presenter
    from workbench.tui.screens.annotator import What
    from workbench.tui.widgets.line import Hint
    from workbench.views.tree import TreeRows
    from workbench.workspace.session import Session
    from workbench.workspace.view_states import ViewState

COMMANDS = frozenset(key.action.partition("(")[0] for key in KEYS if key.context in ("bench", "found", "annotate"))
"""The names of the actions of the Bench."""
FRAME = 0.05
"""Seconds between two looks at the engine's queues: 20 repaints a second, however fast a model streams."""
LONG_FRAME, RESTS, LONGEST_REST = 0.03, 3.0, 0.5
"""Seconds of a frame from which on keys come first: the next one waits for so many times as long, and at most so many
seconds. With 200 streams on their way each frame had work to do, and a key waited for several of them."""
FOLLOW = 0.5
"""Seconds between two looks at the journal of a run that another process writes."""
SOON = (0.008, 0.025)
"""Seconds after which to look once more when something was asked of the engine: a step answers within milliseconds."""


_DRIVING = frozenset({"run.pause", "run.stop", "run.continue", "run.over", "run.into", "run.out", "run.edit"})
"""Commands that need the run to be made by this process, or by the program that it watches."""
_OF_THE_WRITER = _DRIVING | {"run.feedback", "run.answer"}
"""Commands that need the run to be made by this process."""
_OF_CASCADES = frozenset({"run.start", "run.again", "run.fork", "run.feedback", "run.freeze"})
"""Commands that need a cascade behind the run."""
_OF_ROWS = frozenset({"list.open", "view.find", "view.filter", "view.copy"})
_OF_CALLS = frozenset({"view.why", "view.wire", "view.diff", "view.full"})
"""Commands of the panes about the call that shows."""
_AMONG_CALLS = frozenset({"view.previous", "view.next", "view.strategies", "view.ways"})
"""Commands of the panes that need a run with calls."""


class BenchScreen(WorkbenchScreen[None], BorderDragging[None]):
    """The main screen: lays the panes out, and hands keys and clicks to the controllers."""

    AUTO_FOCUS = "#context"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("found"), *bindings("bench"), *bindings("annotate")]
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - declared by Textual without ClassVar
        (0, "-narrow"),
        (100, "-normal"),
        (120, "-broad"),
        (160, "-wide"),
        (200, "-full"),
    ]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (32, "-tall"), (46, "-high")]  # noqa: RUF012 - as above

    def __init__(self) -> None:
        super().__init__()
        self.set_class(True, "-idle", update=False)  # A class that comes later lays out everything anew.
        self.panes = Panes(lambda: self.services.given)
        self.tree_pane, self.context_pane, self.detail_pane, self.dock_pane = self.panes.all
        self.presenter: Presenter | None = None
        self._controllers: Controllers | None = None
        self._has_file = False
        """Whether what is being opened is a file: the keys of a run wait for it."""
        self.last_pane = "context"
        self.tree_width: int | None = None
        self.dock_height: int | None = None
        self._settled_at: tuple[Region, ...] | None = None
        """Where the panes were when their lines were joined."""
        self._rests_until = 0.0
        """By the monotonic clock: until when no frame is taken."""
        self._dock_at: dict[Tab, tuple[int, float]] = {}
        """Where each tab of the lower pane was left: the row and the line on top."""

    def compose(self) -> ComposeResult:
        yield self.panes.tabs
        yield self.panes.header
        yield self.panes.crumb
        with Container(id="body"):
            yield self.tree_pane
            with Container(id="main"):
                yield self.context_pane
                yield self.detail_pane
        yield self.dock_pane
        yield self.footer

    def on_mount(self) -> None:
        self.offer_keys()
        self.screen_layout_refresh_signal.subscribe(self, lambda _: self._laid_out())
        self.set_interval(FRAME, self.take_frame)
        self.set_interval(FOLLOW, self._follow_journal)

    # -- the session -------------------------------------------------------------------------------------------------

    def show_preview(self, rows: TreeRows | None) -> None:
        """Show the phases of the file while the rest is still being opened."""
        if rows is not None and self.presenter is None:
            self.tree_pane.show(rows)
        if self.presenter is None:
            self._has_file = True
            self.offer_keys()

    def show_file(self, presenter: Presenter) -> None:
        """Show the checked file while the controllers are still being imported; keys wait until ``open``."""
        self.presenter = presenter
        if presenter.outline:
            presenter.phase = presenter.outline[0].name
        self.redraw()

    def open(self, presenter: Presenter, controllers: Controllers) -> None:
        """Take a session that was just opened; ``controllers`` drive it. It is drawn when its view is restored."""
        self._exchange(presenter, controllers)
        self.panes.begin_anew()
        controllers.pictures.hang(enabled=self.draws_pictures)
        if not presenter.phase and presenter.outline:
            presenter.phase = presenter.outline[0].name
        self.controllers.running.show_stored()

    def _exchange(self, presenter: Presenter, controllers: Controllers) -> None:
        """Stores the text in the prompt for the session that was shown until now."""
        for prompt in self.query(Prompt):
            prompt.vanish()
        self.presenter, self._controllers = presenter, controllers
        self._dock_at.clear()

    def leave(self) -> PanesLook:
        """Returns how the session that is shown looks, before another one is shown."""
        return self.panes.look()

    def show_again(self, presenter: Presenter, controllers: Controllers, look: PanesLook | None) -> None:
        """Show a session that is open, as it was left."""
        self._exchange(presenter, controllers)
        session = self.services.session
        presenter.breakpoints = session.stepper.breakpoints if session is not None else ()
        if look is None:
            self.panes.begin_anew()
        else:
            self.panes.look_again(presenter, look)
            self.call_after_refresh(self.panes.scroll_back, look)
        controllers.pictures.hang(enabled=self.draws_pictures)
        self.redraw()
        self.call_after_refresh(controllers.ask_if_asked)

    def show_tabs(self) -> None:
        """Redraw the line of tabs."""
        self.panes.show_tabs(self.services.tab_labels)

    @property
    def controllers(self) -> Controllers:
        """The controllers that keys are handed to. There is none before a session is open."""
        if self._controllers is None:
            raise RuntimeError("no session is open")
        return self._controllers

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Before a session is open, the commands of the Bench have nothing to act on."""
        if action == "match":  # Its keys step the run where no search is marked.
            return self._controllers is not None and bool(self.pane().needle)
        return self._controllers is not None or action not in COMMANDS

    @property
    def draws_pictures(self) -> bool:
        """Whether the terminal has the colours for pictures: sixteen show none."""
        many = self.app.console.color_system in ("256", "truecolor")
        return many and not self.app.current_theme.ansi and not os.environ.get("NO_COLOR")

    def live(self) -> tuple[Session, Presenter] | None:
        """The session and what shows it, once they are there."""
        session, presenter = self.services.session, self.presenter
        return None if session is None or presenter is None else (session, presenter)

    def shows(self, run_id: str) -> bool:
        """Returns whether a run is what the Bench shows."""
        return self.presenter is not None and bool(run_id) and self.presenter.state.run.run_id == run_id

    def view_now(self) -> ViewState | None:
        """Returns how the Bench looks; None before there is anything to look at."""
        return self._controllers.view.now() if self._controllers is not None else None

    def show_what_is_stored(self) -> None:
        """Take the events of a stored run that the session has read."""
        self.controllers.running.show_stored()

    def begin(self, mode: Mode) -> None:
        """Start a run."""
        self.controllers.running.begin(mode)

    def resume(self, run_id: str, mode: Mode) -> None:
        """Go on with a stored run where it stopped."""
        self.controllers.running.resume(run_id, mode)

    def offer_to_go_on(self, run_id: str, label: str) -> None:
        """A run of this file did not end: ask whether it should go on."""
        self.controllers.running.offer_to_go_on(run_id, label, self.controllers.view.restored)

    # -- for the controllers -----------------------------------------------------------------------------------------

    @property
    def is_free(self) -> bool:
        """Whether the Bench is on top, and nothing is being written in its prompt."""
        return self.app.screen is self and not self.is_writing

    @property
    def is_stepping(self) -> bool:
        """Whether the run is on its way to its next pause, to a question or to its end."""
        if (live := self.live()) is None:
            return False
        session, presenter = live
        state = presenter.state
        waits = state.held is not None and session.stepper.waits
        return session.running and not waits and state.current_question() is None

    def redraw(self) -> None:
        """Draw every pane and the footer from the state."""
        if (presenter := self.presenter) is None:
            return
        session = self.services.session
        presenter.breakpoints = session.stepper.breakpoints if session is not None else ()
        self.panes.show_all(presenter)
        self.show_tabs()
        self.offer_keys()

    def soon(self) -> None:
        """Look at the queues of the engine sooner than at the next frame."""
        for delay in SOON:
            self.set_timer(delay, self.take_frame)

    def take_frame(self) -> None:
        """Take what the engine sent since the last frame."""
        if self._controllers is None or (began := monotonic()) < self._rests_until:
            return
        self._controllers.take_frame(self.app.screen)
        took = monotonic() - began
        if took > LONG_FRAME:
            self._rests_until = began + took + min(RESTS * took, LONGEST_REST)

    def _follow_journal(self) -> None:
        if self._controllers is not None:
            self._controllers.running.follow()
            self._controllers.annotating.follow()

    def after_refresh(self, callback: Callable[..., object], *arguments: Any) -> None:
        """Call something when what changed is laid out and drawn."""
        self.call_after_refresh(callback, *arguments)

    def redraw_all_screens(self) -> None:
        """Draw the lists of every screen again: a picture is there."""
        for screen in self.app.screen_stack:
            for view in screen.query(RowView):
                view.redraw()

    # -- keys, each handed to its controller -------------------------------------------------------------------------

    def offer_keys(self) -> None:
        """The footer: what can be done now, with the run and in the pane with the focus."""
        table, presenter = self.services.keys, self.presenter
        if presenter is None and not self._has_file:  # What opens may be a list of files: no key of a run is for it.
            self.footer.offer((), hints(ALWAYS, table))
            return
        situation = presenter.situation() if presenter is not None else "idle"
        run, note = hints(FOOTERS[situation], table), ""
        if presenter is not None:
            run, note = self._of_the_run(run, presenter)
        if self.pane().needle:
            run = (*hints(("found.next", "found.previous", "view.clear"), table), *run[1:])
        useless = self._useless_keys(presenter)
        if self.last_pane == "dock" and not len(self.dock_pane.rows):
            useless |= _OF_ROWS
        pane = hints((id for id in PANE_FOOTERS.get(self.last_pane, ()) if id not in useless), table)
        if self.is_zoomed:
            ((id, key, _),) = hints(("pane.zoom",), table)
            run = ((id, key, "all panes"), *run)
        self.footer.offer(run, hints(ALWAYS, table), pane, note)

    def _of_the_run(self, offered: Sequence[Hint], presenter: Presenter) -> tuple[tuple[Hint, ...], str]:
        """Returns the possible actions on the run, those that are useful now first, and the reason."""
        state, table = presenter.state, self.services.keys
        words = {"run.out": "back"} if state.looks_elsewhere else {}
        if state.resumable:
            words["run.continue"] = "retry" if state.run.status == "failed" else "resume"
            words["run.over"] = "resume, step"
        first: tuple[str, ...] = ()
        if state.shown.contests.all:
            first = ("view.candidates",)
        note = ""
        if state.compares_file:
            first, note = ("run.again", "view.strategies", "run.start", *first), "file changed:"
            words["view.strategies"] = "changes"
        elif state.looks_elsewhere and state.held is None:
            first = ("run.out", *first)
        void = self._void_keys(presenter)
        offered = [hint for hint in offered if hint[0] not in void]
        ahead = {id for id in first if id != "view.candidates"}
        run = [*(hint for hint in hints(first, table) if hint[0] in ahead)]
        run += [hint for hint in offered if hint[0] not in ahead]
        run[2:2] = [hint for hint in hints(first, table) if hint[0] not in ahead]
        return tuple((id, key, words.get(id, word)) for id, key, word in run), note

    def _useless_keys(self, presenter: Presenter | None) -> frozenset[str]:
        """Returns the keys that have no use in the pane with the focus: those of a call where none shows, of a run
        before its first call."""
        if presenter is None or not presenter.state.shown.calls:
            return _OF_CALLS | _AMONG_CALLS
        if presenter.shows_summary:
            return _OF_CALLS | {"view.next"}
        return _OF_CALLS if presenter.state.call is None else frozenset()

    def _void_keys(self, presenter: Presenter) -> frozenset[str]:
        """Returns the keys that have no use for the run that is shown: another process makes it, or no engine does."""
        session, found = self.services.session, frozenset[str]()
        if session is not None and session.follows:
            found |= _OF_THE_WRITER
        if "imported" in presenter.state.run.ports:
            driven = session is not None and session.running
            found |= _OF_CASCADES if driven else _OF_CASCADES | _DRIVING
        return found

    def action_step(self, mode: str) -> None:
        self.controllers.running.step(mode)

    def action_match(self, step: int) -> None:
        self.action_find_again(step)

    def action_out(self) -> None:
        self.controllers.running.out()

    def action_start(self) -> None:
        self.controllers.running.start()

    def action_inputs(self) -> None:
        self.controllers.running.change_inputs()

    def action_pause(self) -> None:
        self.controllers.running.pause()

    def action_stop(self) -> None:
        self.controllers.running.stop()

    def action_breakpoint(self) -> None:
        self.controllers.running.breakpoint()

    def action_breakpoint_prompt(self) -> None:
        self.controllers.running.ask_for_breakpoint()

    def action_breakpoints(self) -> None:
        self.controllers.running.list_breakpoints()

    def action_answer(self) -> None:
        self.controllers.asking.answer()

    def action_feedback(self) -> None:
        self.controllers.asking.feedback()

    def action_edit_held(self) -> None:
        self.controllers.editing.edit_held()

    def action_playground(self) -> None:
        self.controllers.editing.playground()

    def action_fork(self) -> None:
        self.controllers.editing.fork()

    def action_rerun(self) -> None:
        """Run the file again; while it is held at a changed request, show that again."""
        if not self.controllers.testing.show_again():
            self.controllers.editing.rerun()

    def action_freeze(self) -> None:
        self.controllers.testing.freeze()

    def action_annotate(self, what: What) -> None:
        self.controllers.annotating.annotate(what)

    def action_link(self) -> None:
        self.controllers.annotating.link()

    def action_call(self, step: int) -> None:
        self.controllers.inspecting.move(step)

    def action_detail(self, mode: Detail) -> None:
        self.controllers.inspecting.show_detail(mode)

    def action_full(self) -> None:
        self.controllers.inspecting.full()

    def action_unfold(self) -> None:
        self.controllers.inspecting.unfold()

    def action_compare(self) -> None:
        self.controllers.inspecting.mark_differences()

    def action_strategies(self) -> None:
        self.controllers.inspecting.compare()

    def action_candidates(self) -> None:
        self.controllers.inspecting.candidates()

    def action_copy(self) -> None:
        self.controllers.inspecting.copy(self.pane())

    def action_edit(self, outside: bool = False) -> None:
        self.controllers.inspecting.edit(outside=outside)

    def action_clear(self) -> None:
        """Show all rows again; else take the marks of a search away; else leave the zoom; else show the message."""
        if self.clear_found():
            self.offer_keys()
        elif self.is_zoomed:
            self.zoom()
        else:
            self.controllers.inspecting.show_message()

    def action_flow(self) -> None:
        self.controllers.inspecting.flow()

    def action_jump(self) -> None:
        def chosen(name: str | None) -> None:
            if name is not None:
                self.focus_pane(name)

        def panes() -> dict[str, Region]:
            return {view.id or "": view.region for view in self.panes.all}

        self.app.push_screen(JumpScreen(panes), chosen)

    def action_show_tab(self, by: int) -> None:
        self.services.navigation.step_tab(by)

    def action_close_tab(self) -> None:
        self.services.navigation.close_tab()

    def action_tab(self, name: Tab) -> None:
        self.show_tab(name)
        self.focus_pane("dock")

    def action_watched(self) -> None:
        titled = {text for text, _ in self.presenter.tabs("log")} if self.presenter is not None else set()
        there = [name for name, label in TABS if name in WATCHED and label in titled] or [WATCHED[0]]
        self.action_tab(there[(there.index(self.tab) + 1) % len(there)] if self.tab in there else there[0])

    # -- what happens in the panes -----------------------------------------------------------------------------------

    @on(PromptClosed)
    @on(events.ScreenResume)
    def _has_time(self) -> None:
        """Asks the questions that came up while something else was open, or was being written."""
        if self._controllers is not None:
            self.call_after_refresh(self._controllers.ask_if_asked)

    @on(RowView.Chosen, "#tree")
    def _tree_chosen(self, event: RowView.Chosen) -> None:
        presenter, node = self.presenter, self.panes.node(event.index)
        if presenter is None or node is None:
            return
        self.panes.tree_id = node.id
        presenter.leave_problem()
        presenter.state.summary = node.id[0] in ("total", OVERHEAD)
        if node.phase:
            presenter.phase = node.phase
        if node.place is not None:
            presenter.state.select_in(node.run, node.place)
        elif node.phase and not node.calls:  # Calls that are folded have no call to show in the place of the shown one.
            presenter.state.select_node(node.run, node.visit_key)
        self.panes.show_tree(presenter, keep=True)
        self.panes.show_context(presenter)
        self.panes.show_lines(presenter)

    @on(TreePane.Fold)
    def _tree_fold(self, event: TreePane.Fold) -> None:
        presenter, rows, node = self.presenter, self.panes.tree_rows, self.panes.node(event.index)
        if presenter is None or rows is None or node is None:
            return
        if node.branches and node.unfolded != event.unfold and not self.tree_pane.filter:
            presenter.state.folding[node.id] = event.unfold
            self.panes.show_tree(presenter, keep=True)
        elif not event.unfold:
            self.tree_pane.move_to(rows.parent_of(event.index))
        elif node.branches:
            self.tree_pane.move_to(event.index + 1)

    @on(RowView.Opened)
    def _opened(self, event: RowView.Opened) -> None:
        if event.view is self.tree_pane:
            node = self.panes.node(event.index)
            if node is not None and node.branches and not self.tree_pane.filter:
                self.tree_pane.post_message(TreePane.Fold(event.index, not node.unfolded))
            elif node is not None and node.id[0] == "breakpoint":
                self.action_breakpoints()
            elif node is not None:
                self.focus_pane("context")
        elif self._is_input(event):
            self.action_inputs()
        elif self._controllers is not None:
            self._controllers.inspecting.open_row(event.view, self.tab)

    def _is_input(self, event: RowView.Opened) -> bool:
        presenter = self.presenter
        return event.view is self.context_pane and presenter is not None and presenter.is_input(event.index)

    @on(RowView.Chosen, "#context")
    def _context_chosen(self) -> None:
        if self.presenter is not None:
            self.presenter.leave_problem()
            self.panes.show_detail(self.presenter)

    @on(RowView.Chosen, "#dock")
    def _dock_chosen(self, event: RowView.Chosen) -> None:
        if self.tab == "problems" and self._controllers is not None:
            self.controllers.inspecting.look_at_problem(event.index)

    @on(RowView.TitleClicked, "#dock")
    def _dock_title(self, event: RowView.TitleClicked) -> None:
        if (name := tab_at(self.dock_pane.rows.title, event.x - 2)) is not None:
            self.show_tab(name)

    def search(self, view: RowView, text: str) -> bool:
        """Searches the context, and marks the text in the message, too."""
        if view is self.context_pane:
            self.detail_pane.mark(text)
        return super().search(view, text)

    def filter(self, view: RowView, text: str) -> None:
        """A filter looks into what is folded in the tree, too."""
        super().filter(view, text)
        if view is self.tree_pane and self.presenter is not None:
            self.panes.show_tree(self.presenter, keep=True)

    @property
    def tab(self) -> Tab:
        """The tab of the lower pane that is shown."""
        return self.panes.tab

    def show_tab(self, name: Tab) -> None:
        """Show another tab of the lower pane, at the place where it was left."""
        if self.presenter is None:
            return
        same = name == self.tab
        if not same:
            self._dock_at[self.tab] = (self.dock_pane.cursor, self.dock_pane.scroll_y)
            self.panes.tab, self.dock_pane.filter = name, ""
        self.panes.show_dock(self.presenter)
        if not same:
            last = len(self.dock_pane.rows) - 1 if self.dock_pane.follows else 0
            cursor, top = self._dock_at.get(name, (last, last))
            self.dock_pane.show(None, cursor)
            self.dock_pane.scroll_to(y=top, animate=False, force=True)
        if self.has_class("-narrow"):
            self.focus_pane("dock")
        elif not same:
            self.offer_keys()

    # -- the focus ---------------------------------------------------------------------------------------------------

    def main_list(self) -> RowView:
        """The pane that had the focus last."""
        return self.query_one(f"#{self.last_pane}", RowView)

    def refocus(self) -> None:
        self.focus_pane(self.last_pane)

    def focus_pane(self, name: str) -> None:
        """Put the focus on a pane, and show it where only one shows at a time."""
        if self.is_zoomed and not self.query_one(f"#{name}").has_class("-zoomed"):
            self.zoom()
        # At once, as Textual tells of the focus later: the next key may ask before, and a layout that hides the pane
        # in between would take the focus from it.
        self._show_pane(name)
        # Not for a click: what it is meant for would move from under the mouse.
        self.panes.enlarge(dock=name == "dock")
        self.set_focus(self.query_one(f"#{name}", RowView))

    def _show_pane(self, name: str) -> None:
        self.last_pane = name
        for group in ("tree", "dock"):
            self.set_class(name == group, f"-at-{group}")
        self.offer_keys()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        if isinstance(event.widget, RowView) and event.widget.id is not None and event.widget is self.focused:
            self._show_pane(event.widget.id)

    def action_pane(self, step: int) -> None:
        names = [view.id or "" for view in self.panes.all]
        self.focus_pane(names[(names.index(self.last_pane) + step) % len(names)])

    # -- sizes and places --------------------------------------------------------------------------------------------

    @property
    def is_zoomed(self) -> bool:
        """Whether one pane has the whole screen."""
        return self.has_class("-zoom")

    @property
    def shares(self) -> bool:
        """Whether panes share the screen: in a narrow terminal, and zoomed, one has it all."""
        return not self.is_zoomed and not self.has_class("-narrow")

    def action_zoom(self) -> None:
        self.zoom()

    def zoom(self) -> None:
        """Give the focused pane the whole screen, or give it back."""
        zoomed, pane = self.is_zoomed, self.pane()
        for view in self.panes.all:
            view.set_class(not zoomed and view is pane, "-zoomed")
        self.set_class(not zoomed, "-zoom")
        for name in ("dock", "tree"):
            self.set_class(not zoomed and self.last_pane == name, f"-zoom-{name}")
        self.size_panes()
        self.offer_keys()

    def action_resize(self, axis: str, by: int) -> None:
        """Move the edge of the tree or of the lower pane, in cells."""
        if not self.shares:
            self.services.say("One pane has the whole screen: there is no border to move.")
        elif axis == "width":
            self.resize_tree(self.tree_pane.size.width + by)
        else:
            self.resize_dock(self.dock_pane.size.height + by)

    def resize_tree(self, width: int) -> None:
        """Make the tree so wide, in cells, or as near to it as leaves room for it and for the context."""
        self.choose_sizes((max(18, min(width, self.size.width - 50)), self.dock_height))

    def resize_dock(self, height: int) -> None:
        """Make the lower pane so high, in cells, or as near to it as leaves room for it and for the panes above."""
        self.choose_sizes((self.tree_width, max(3, min(height, self.size.height - 16))))

    def size_panes(self) -> None:
        """Give the panes the sizes that the user chose, where panes share the screen."""
        self.panes.size(self.tree_width, self.dock_height, shares=self.shares)
        self.call_after_refresh(self.settle)

    def on_resize(self) -> None:
        self.call_after_refresh(self.size_panes)

    def _laid_out(self) -> None:
        """A layout may come later than what was to follow it."""
        if self._settled_at is not None and self._settled_at != self.panes.regions:
            self.settle()

    def settle(self) -> None:
        """After a layout: join the lines of neighbouring panes, and redraw what depends on sizes."""
        self._settled_at = self.panes.regions
        self.panes.join()
        if self.presenter is not None:
            self.panes.show_sized(self.presenter)
            self.show_tabs()
        for view in self.panes.all:
            view.refresh()

    # -- borders that the mouse can drag: the edge of the tree, and the title line of the lower pane -----------------

    def border_at(self, x: int, y: int) -> tuple[RowView, Border] | None:
        """The border at a cell of the screen; None where there is none that can be dragged."""
        if not self.shares:
            return None
        tree, dock = self.tree_pane, self.dock_pane
        if dock.region.area and dock.region.y == y:
            return dock, "title"
        if tree.edge and x == tree.region.right - 1 and tree.region.y <= y < tree.region.bottom:
            return None if y - tree.region.y in tree.thumb() else (tree, "edge")
        return None

    def place_border(self, view: RowView, border: Border, x: int, y: int) -> None:
        if border == "edge":
            self.resize_tree(x - self.tree_pane.region.x + 1)
        else:
            self.resize_dock(self.dock_pane.region.bottom - y)

    def chosen_sizes(self) -> Sizes:
        return self.tree_width, self.dock_height

    def choose_sizes(self, sizes: Sizes) -> None:
        if sizes != (self.tree_width, self.dock_height):
            self.tree_width, self.dock_height = sizes
            self.size_panes()
