"""The Bench's commands that look: calls back and forth, why, wire, differences, find, filter, copy, edit, jump."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from textual import work

from workbench.tui.key_words import told
from workbench.tui.screens.bench_view import BenchView
from workbench.tui.widgets.prompt import Prompt
from workbench.tui.widgets.rowview import RowView

if TYPE_CHECKING:
    from textual.geometry import Region

    from workbench.context.place import Place
    from workbench.tui.presenter import Detail, Presenter
    from workbench.tui.tabs import Tab

NO_CALL = "There is no call yet: {run.over} runs to the first one."


class LookActions(BenchView):
    """What the keys of the group "Look" do, and the tabs of the lower pane."""

    def __init__(self) -> None:
        super().__init__()
        self._dock_at: dict[str, tuple[int, float]] = {}

    def action_call(self, step: int) -> None:
        """Look at the call before or after."""
        if self.presenter is None:
            return
        if not self.presenter.state.move(step):
            calls = self.presenter.state.shown.calls
            self.app.say(f"This is the {'first' if step < 0 else 'last'} call." if calls else told(NO_CALL))
            return
        selected = self.presenter.state.selected
        if selected is not None:
            self.presenter.phase = selected.phase
        self.refresh_all()

    def action_detail(self, mode: Detail) -> None:
        """Show why, or the wire, in the detail pane; the same key again shows the message."""
        if self.presenter is None:
            return
        if mode == "wire" and self.presenter.state.call is None:
            self.app.say(told(NO_CALL))
            return
        before = self._detail_text(self.presenter)
        self.presenter.detail_mode = "message" if self.presenter.detail_mode == mode else mode
        self.show_detail(self.presenter)
        if mode == "why" and before == self._detail_text(self.presenter):
            self.app.say("No rule decided about this row: there is no why to it.")

    def _detail_text(self, presenter: Presenter) -> str:
        return presenter.detail(self.context_pane.cursor).copy

    def action_full(self) -> None:
        if self.presenter is None:
            return
        before, state = self._detail_text(self.presenter), self.presenter.state
        state.full = not state.full
        self.show_detail(self.presenter)
        if before == self._detail_text(self.presenter):
            shown = "in full" if state.full else "as they were sent"
            self.app.say(f"Messages show {shown}; this one is the same either way.")

    def action_unfold(self) -> None:
        if self.presenter is None:
            return
        before, state = len(self.context_pane.rows), self.presenter.state
        state.unfold = not state.unfold
        self.show_context(self.presenter)
        if before == len(self.context_pane.rows):
            self.app.say("Nothing was dropped here.")

    def action_compare(self) -> None:
        """Mark what differs from the call before."""
        if self.presenter is None:
            return
        if self.presenter.state.call is None:
            self.app.say(told(NO_CALL))
            return
        state = self.presenter.state
        state.compare = not state.compare
        if state.compare and state.before is None:
            self.app.say("This is the first call of its phase: there is nothing to compare it with.")
        self.show_context(self.presenter)

    # -- another strategy --------------------------------------------------------------------------------------------

    def action_strategies(self) -> None:
        """Ask for two strategies, or for another run, and compare them on the run that is shown."""
        self._ask_sides()

    def _ask_sides(self, value: str = "") -> None:
        presenter = self.presenter
        if presenter is None or self.app.session is None or not presenter.state.run.calls:
            self.app.say("There is no call to compare yet.")
            return
        cascade = presenter.file.cascade if presenter.file is not None else None
        first = next(iter(cascade.strategies), "snowball") if cascade is not None else "snowball"

        project, run_id = self.app.session.project, presenter.state.shown.run_id
        strategies = tuple(cascade.strategies) if cascade is not None else ()

        def words() -> list[str]:
            runs = [run.session_id or run.run_id for run in project.store.runs()]
            return ["this", "file", *strategies, "snowball", "selective+mask(after=3)", *runs]

        def done(text: str) -> str | None:
            a, vs, b = text.partition(" vs ")
            if not vs or not a.strip() or not b.strip():
                return "Two strategies or runs, as in: file vs selective+mask(after=3), or: this vs OTHER-RUN"
            self._compare(run_id, (a, b))
            return None

        self.ask("compare", value=value or f"{first} vs file", done=done, words=words, between=" vs ")

    @work(thread=True, exclusive=True, group="compare", exit_on_error=False)
    def _compare(self, run_id: str, sides: tuple[str, str]) -> None:
        from workbench.context.spec import SpecError
        from workbench.engine.definition import DefinitionError
        from workbench.store.faults import StoreError
        from workbench.tui.screens.compare import CompareSheet
        from workbench.workspace.comparing import source_of

        assert self.app.session is not None
        project = self.app.session.project
        try:
            a, b = (source_of(project, side, run_id) for side in sides)
        except (SpecError, DefinitionError, StoreError) as fault:
            self.app.call_later(self._not_compared, " vs ".join(sides), str(fault))
            return
        self.app.call_later(self.app.push_screen, CompareSheet(project, a, b))

    def _not_compared(self, written: str, reason: str) -> None:
        """Say why, and give what was written back to be mended, unless the person went on to something else."""
        self.app.say(reason, "error")
        if self.is_active and self.presenter is not None and not self.query(Prompt):
            self._ask_sides(written)

    # -- candidates --------------------------------------------------------------------------------------------------

    def action_candidates(self) -> None:
        """Show the candidates of the phase that is looked at, else the last ones of the run."""
        presenter = self.presenter
        if presenter is None:
            return
        node, selected = self.tree_node(), presenter.state.selected
        at = selected if node is None or node.place is None else node.place
        self.show_candidates(presenter.state.run_of_candidates(), at)

    def show_candidates(self, run_id: str, place: Place | None, show: Callable[..., object] | None = None) -> None:
        """Open the candidates of a run that is shown, or of one that it started; the screen follows it."""
        from workbench.tui.rows.candidates import no_candidates
        from workbench.tui.screens.candidates import CandidatesScreen

        presenter, session = self.presenter, self.app.session
        if presenter is None or session is None:
            return
        state = presenter.state
        if not state.run_by_id(run_id).contests.all:
            self.app.say(no_candidates(state.run))
            return

        def go_to(target: Place) -> None:
            if state.select_in(run_id, target):
                presenter.phase = target.phase
                self.refresh_all()
                self.focus_pane("context")

        def held() -> str | None:
            here = state.run_by_id(state.held_run) is state.run_by_id(run_id)
            return state.held.place.branch if state.held is not None and here else None

        gallery = presenter.gallery if run_id == state.shown.run_id else None
        look = partial(state.run_by_id, run_id)
        answer = session.answer
        screen = CandidatesScreen(look, place, answer=answer, go_to=go_to, held=held, gallery=gallery)
        (show or self.app.push_screen)(screen)

    # -- rows over the whole screen ----------------------------------------------------------------------------------

    def open_row(self, view: RowView) -> None:
        """What enter does in each pane."""
        from workbench.tui.screens.sheet import Sheet

        if self.presenter is None:
            return
        presenter = self.presenter
        if view is self.context_pane and presenter.state.call is None:
            self.focus_pane("detail")
        elif view is self.context_pane:
            self.open_message(presenter)
        elif view is self.detail_pane:
            self.app.push_screen(Sheet(presenter.detail(self.context_pane.cursor, whole=True)))
        elif view is self.dock_pane:
            self.open_dock_row()

    def open_message(self, presenter: Presenter) -> None:
        """The message under the context's cursor in the viewer; a row that is none in a sheet."""
        from workbench.tui.screens.message import MessageSheet
        from workbench.tui.screens.sheet import Sheet

        row, session, run = self.context_pane.cursor, self.app.session, presenter.state.shown
        viewed = presenter.viewed(row)
        if viewed is None or session is None:
            self.app.push_screen(Sheet(presenter.detail(row, whole=True)))
        else:
            self.app.push_screen(MessageSheet(viewed, session.project, (run.run_id, run.session_id)))

    def open_dock_row(self) -> None:
        from workbench.tui.rows import documents
        from workbench.tui.rows.text import TextRows, text_lines
        from workbench.tui.screens.sheet import Sheet

        presenter, rows = self.presenter, self.dock_pane.rows
        if presenter is None or not len(rows):
            return
        index = self.dock_pane.cursor
        state = presenter.state
        if self.tab == "log":
            line = state.log.lines[index]
            if line.place.turn and state.select(line.place):
                presenter.phase = line.place.phase
                self.refresh_all()
                self.focus_pane("context")
            else:
                title = (("Log", "title"), (f"  {line.sort}", "name"))
                self.app.push_screen(Sheet(TextRows(text_lines(line.text, whole=True), title, copy=line.text)))
        elif self.tab == "problems":
            self.look_at_problem(self.dock_pane.cursor)
            self.focus_pane("detail")
        elif self.tab == "events":
            self.app.push_screen(Sheet(documents.event_doc(state.events[index])))
        elif self.tab == "state":
            key = list(state.run.state)[index]
            text = documents.pretty_value(state.run.state[key])
            self.app.push_screen(
                Sheet(TextRows(text_lines(text, whole=True), (("State", "title"), (f"  {key}", "name"))))
            )
        else:
            lines = documents.output_lines(state.run)
            self.app.push_screen(Sheet(TextRows(lines, (("Output", "title"),))))

    # -- find, filter, copy ------------------------------------------------------------------------------------------

    def search(self, view: RowView, text: str) -> bool:
        """What is looked for in the context is marked in the message, too."""
        if view is self.context_pane:
            self.detail_pane.mark(text)
        return super().search(view, text)

    def filter(self, view: RowView, text: str) -> None:
        """A filter looks into what is folded in the tree, too."""
        super().filter(view, text)
        if view is self.tree_pane and self.presenter is not None:
            self.show_tree(self.presenter, keep=True)

    def action_clear(self) -> None:
        """Show all rows again; else take the marks of a search away."""
        self.clear_found()

    def action_copy(self) -> None:
        """Copy what the focused pane means."""
        if self.presenter is None:
            return
        view = self.pane()
        if view is self.context_pane and self.presenter.state.call is not None:
            document = self.presenter.detail(self.context_pane.cursor, whole=True)
            self.app.copy(document.copy, "the message" if self.presenter.detail_mode == "message" else "the text")
        elif hasattr(view.rows, "copy"):
            self.app.copy(view.rows.copy, "the text")
        elif len(view.rows):
            self.app.copy(view.rows.plain(view.at), "the line")

    def action_edit(self, outside: bool = False) -> None:
        """Open the file at the line that the Bench is looking at: in the app's editor, or in $EDITOR."""
        if self.presenter is None or self.app.session is None:
            return
        line, column = self.presenter.place_in_view(self.context_pane.cursor)
        if outside:
            self.app.edit_file(self.app.session.file, line, column)
        else:
            self.app.open_editor(self.app.session.file, line, column)

    def action_jump(self) -> None:
        from workbench.tui.screens.jump import JumpScreen

        def chosen(name: str | None) -> None:
            if name is not None:
                self.focus_pane(name)

        def panes() -> dict[str, Region]:
            return {view.id or "": view.region for view in self.query(RowView)}

        self.app.push_screen(JumpScreen(panes), chosen)

    # -- the lower pane ----------------------------------------------------------------------------------------------

    def action_tab(self, name: Tab) -> None:
        """Show another tab of the lower pane, at the place where it was left; the same one again gets the focus."""
        if self.presenter is None:
            return
        same = name == self.tab
        if not same:
            self._dock_at[self.tab] = (self.dock_pane.cursor, self.dock_pane.scroll_y)
            self.tab, self.dock_pane.filter = name, ""
        self.show_dock(self.presenter)
        if not same:
            last = len(self.dock_pane.rows) - 1 if self.dock_pane.follows else 0
            cursor, top = self._dock_at.get(name, (last, last))
            self.dock_pane.show(None, cursor)
            self.dock_pane.scroll_to(y=top, animate=False, force=True)
        if same or self.has_class("-narrow"):
            self.focus_pane("dock")

    def look_at_problem(self, index: int) -> None:
        """Show a problem with its line in the detail pane."""
        if self.presenter is None:
            return
        self.presenter.detail_mode, self.presenter.problem = "problem", index
        self.show_detail(self.presenter)
