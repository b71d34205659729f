"""Looks at a run: calls back and forth, why, wire, differences, other strategies, candidates, rows over the screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from workbench.engine.definition import Definition, DefinitionError
from workbench.models.replies import SUFFIX
from workbench.store.faults import StoreError
from workbench.tui.bench.tabs import Tab
from workbench.tui.screens.candidates import Ask, CandidatesScreen
from workbench.tui.screens.compare import CompareSheet, comparison_of
from workbench.tui.screens.dialog import ChoiceDialog
from workbench.tui.screens.flow import FlowSheet, Shown
from workbench.tui.screens.message import MessageSheet
from workbench.tui.screens.sheet import ChangesSheet, Sheet
from workbench.tui.screens.sides import SidePicker
from workbench.tui.screens.sweep import SweepChoice
from workbench.views import documents
from workbench.views.annotations import call_words
from workbench.views.candidates import Stops, no_candidates, stops_of
from workbench.views.cells import flat
from workbench.views.edits import diff_lines
from workbench.views.failed import UNSCRIPTED
from workbench.views.json_tree import JsonRows
from workbench.views.keys import told
from workbench.views.summary import SummaryRows
from workbench.views.text import TextRows, text_lines
from workbench.views.wire import as_curl, as_python, body_of, destination, entry_at
from workbench.workspace.comparing import ComparedRun, side_choices

if TYPE_CHECKING:
    from workbench.context.place import Place
    from workbench.engine.journal.state import RunState
    from workbench.language.graph import Graph
    from workbench.tui.bench.presenter import Detail, Presenter
    from workbench.tui.bench.stage import Stage
    from workbench.tui.widgets.rowview import RowView
    from workbench.views.cells import Span
    from workbench.views.model import Rows
    from workbench.views.result import FoundPlace
    from workbench.views.timeline import Bar
    from workbench.views.viewer import ViewedMessage
    from workbench.workspace.comparing import SideChoice
    from workbench.workspace.project import Project


def graph_of(run: RunState) -> Graph:
    """The graph of the text that a run began with. Raises DefinitionError."""
    return Definition.of(run.cascade_text, run.cascade_file).graph


class Inspecting:
    """The actions of the keys of the group "Look", and of enter in each pane."""

    def __init__(self, stage: Stage, ask: Ask) -> None:
        """``ask`` shows what waits for the person over the screen of candidates."""
        self._stage = stage
        self._ask = ask
        self._panes = stage.panes

    @property
    def _say(self) -> Callable[..., None]:
        return self._stage.services.say

    # -- calls and their detail --------------------------------------------------------------------------------------

    def move(self, step: int) -> None:
        """Show the previous call or after."""
        if (presenter := self._stage.presenter) is None:
            return
        if not presenter.state.move(step):
            calls = presenter.state.shown.calls
            self._say(f"This is the {'first' if step < 0 else 'last'} call." if calls else presenter.no_call)
            return
        selected = presenter.state.selected
        if selected is not None:
            presenter.phase = selected.phase
        self._stage.redraw()

    def show_detail(self, mode: Detail) -> None:
        """Show why, or the wire, in the detail pane; the same key again shows the raw body of the wire, then the
        message."""
        if (presenter := self._stage.presenter) is None:
            return
        if mode == "ways" and not self._has_ways(presenter):
            return
        if mode == "wire" and presenter.state.call is None:
            self._say(presenter.no_call)
            return
        self._leave_summary(presenter)
        if mode == "why":
            self._explain(presenter)
            if presenter.detail_mode != "message":
                self._bring_up()
            return
        after: dict[tuple[Detail, Detail], Detail] = {("wire", "wire"): "raw", ("wire", "raw"): "message"}
        same: Detail = "message" if presenter.detail_mode == mode else mode
        presenter.detail_mode = after.get((mode, presenter.detail_mode), same)
        self._panes.show_detail(presenter)
        if presenter.detail_mode != "message":
            self._bring_up()

    def _bring_up(self) -> None:
        """Show the detail pane where it is out of sight: in a narrow terminal, and beside a zoomed pane."""
        if not self._panes.detail.region.area:
            self._stage.focus_pane("detail")

    def _explain(self, presenter: Presenter) -> None:
        """Show why the selected row is as it is; in the tree of a request, why the message under the cursor is. The
        same key again shows the message. Where no rule decided, all stays as it was."""
        mode, rows, row = presenter.detail_mode, self._panes.detail.rows, self._panes.context.cursor
        if self._panes.detail.has_focus and isinstance(rows, JsonRows) and (call := presenter.state.call) is not None:
            entry = entry_at(rows, self._panes.detail.cursor, call, presenter.state.shown)
            row = presenter.row_of_entry(entry, row)
        before = presenter.detail(self._panes.context.cursor).copy
        presenter.detail_mode = "message" if mode == "why" else "why"
        if presenter.detail(row).copy == before:
            presenter.detail_mode = mode
            self._say("No rule decided about this row.")
            return
        if row != self._panes.context.cursor:
            self._panes.context.move_to(row)
        self._panes.show_detail(presenter)

    def show_message(self) -> None:
        """Close why, the wire or the differences: the detail pane shows the selected message again."""
        if (presenter := self._stage.presenter) is None:
            return
        if presenter.detail_mode != "message":
            presenter.detail_mode = "message"
            self._panes.show_detail(presenter)
        elif presenter.state.compare:
            self.mark_differences()

    def _has_ways(self, presenter: Presenter) -> bool:
        """Returns whether something has run whose way on can be told; says so where nothing has."""
        if not presenter.state.shown.visits:
            self._say(told("Nothing has run yet: {view.flow} shows the edges of the file."))
            return False
        return True

    def _leave_summary(self, presenter: Presenter) -> None:
        """Replaces the summary of the run by a pane about a call."""
        if presenter.state.summary and presenter.state.call is not None:
            presenter.state.summary = False
            self._panes.show_tree(presenter, keep=True)
            self._panes.show_context(presenter)

    def _detail_text(self, presenter: Presenter) -> str:
        return presenter.detail(self._panes.context.cursor).copy

    def full(self) -> None:
        """Show messages in full, or as they were sent; of outputs and answers, draw the Markdown or show it raw."""
        if (presenter := self._stage.presenter) is None:
            return
        outputs = self._panes.tab == "output" and self._panes.dock.has_focus
        if documents.is_typeset(presenter.state.run) if outputs else presenter.is_drawn(self._panes.context.cursor):
            presenter.typeset = not presenter.typeset
            self._panes.show_detail(presenter)
            self._panes.show_dock(presenter)
            if not outputs:
                self._bring_up()
            return
        self._leave_summary(presenter)
        before, state = self._detail_text(presenter), presenter.state
        state.full = not state.full
        self._panes.show_detail(presenter)
        self._bring_up()
        if before == self._detail_text(presenter):
            shown = "in full" if state.full else "as they were sent"
            self._say(f"Messages show {shown}; this one is the same either way.")

    def unfold(self) -> None:
        """Unfold or fold what was dropped."""
        if (presenter := self._stage.presenter) is None:
            return
        self._leave_summary(presenter)
        before, state = len(self._panes.context.rows), presenter.state
        state.unfold = not state.unfold
        self._panes.show_context(presenter)
        if before == len(self._panes.context.rows):
            self._say("Nothing was dropped here.")

    def mark_differences(self) -> None:
        """Mark what differs from the call before."""
        if (presenter := self._stage.presenter) is None:
            return
        if presenter.state.call is None:
            self._say(presenter.no_call)
            return
        self._leave_summary(presenter)
        state = presenter.state
        state.compare = not state.compare
        if state.compare and state.before is None:
            self._say("This is the first call of its phase: there is nothing to compare it with.")
        self._panes.show_context(presenter)

    def look_at_problem(self, index: int) -> None:
        """Show a problem with its line in the detail pane."""
        if (presenter := self._stage.presenter) is not None:
            presenter.detail_mode, presenter.problem = "problem", index
            self._panes.show_detail(presenter)

    # -- another strategy --------------------------------------------------------------------------------------------

    def compare(self) -> None:
        """Show what has changed in the file since the run; else choose two strategies, or another run."""
        presenter = self._stage.presenter
        if presenter is not None and presenter.state.compares_file:
            self._show_changes(presenter)
        else:
            self._ask_sides()

    def _ask_sides(self) -> None:
        """Choose two strategies, or another run, and compare them on the run that is shown."""
        live = self._stage.live()
        if live is None or not live[1].state.run.calls:
            self._say("No call to compare yet.")
            return
        project, run_id = live[0].project, live[1].state.shown.run_id
        self._stage.in_background(partial(self._find_sides, project, run_id), "compare")

    def _find_sides(self, project: Project, run_id: str) -> None:
        """In a thread: the list names stored runs."""
        try:
            choices = side_choices(project, run_id)
        except StoreError as fault:
            self._stage.later(self._say, str(fault), "error")
            return
        self._stage.later(self._pick_sides, project, run_id, choices)

    def _pick_sides(self, project: Project, run_id: str, choices: Sequence[SideChoice]) -> None:
        if (presenter := self._stage.presenter) is None or not self._stage.is_free:
            return

        def chosen(a: ComparedRun, b: ComparedRun) -> None:
            self._stage.services.push_screen(CompareSheet(project, a, b))

        def swept(chosen: SweepChoice) -> None:
            self._stage.services.push_screen(comparison_of(project, chosen))

        by_kind = {one.kind: one.side for one in reversed(choices)}
        first = by_kind.get("named") or by_kind.get("built-in") or by_kind["record"]
        second = by_kind.get("file") or by_kind.get("run") or by_kind["record"]
        if (origin := next((one.side for one in choices if one.is_origin), None)) is not None:
            first, second = by_kind["record"], origin
        changes = partial(self._show_changes, presenter) if presenter.state.changed else None
        picker = SidePicker(project, choices, first, second, chosen, swept, changes)
        self._stage.services.push_screen(picker)

    def _show_changes(self, presenter: Presenter) -> None:
        """Changes of the file since the run that is shown began."""
        before, after = presenter.pinned_text()[0], presenter.file.source.text if presenter.file is not None else ""
        name = presenter.file.shown if presenter.file is not None else ""
        title: tuple[Span, ...] = (("Changes", "title"), (f"  {flat(name)}", "name"), (" since this run began", "dim"))
        none = ("The file is as it was when this run began.",)
        lines = diff_lines(before, after) if before != after else []
        rows = TextRows(lines, title, copy=after, empty=none)
        self._stage.services.push_screen(ChangesSheet(rows, self._ask_sides))

    # -- candidates --------------------------------------------------------------------------------------------------

    def candidates(self) -> None:
        """Show the candidates of the phase that is looked at, else the last ones of the run."""
        if (presenter := self._stage.presenter) is None:
            return
        node, selected = self._panes.tree_node(), presenter.state.selected
        at = selected if node is None or node.place is None else node.place
        self.show_candidates(presenter.state.run_of_candidates(), at)

    def show_candidates(self, run_id: str, place: Place | None, *, unasked: bool = False) -> None:
        """Open the candidates of a run that is shown, or of one that it started; the screen follows it."""
        if (live := self._stage.live()) is None:
            return
        session, presenter = live
        state = presenter.state
        if not state.run_by_id(run_id).contests.all:
            self._say(no_candidates(state.run))
            return

        def go_to(target: Place) -> None:
            if state.select_in(run_id, target):
                presenter.phase = target.phase
                self._stage.redraw()
                self._stage.focus_pane("context")

        def stops() -> Stops:
            held = state.held.place if state.held is not None else None
            return stops_of(state.run_by_id(run_id), state.children, held, state.held_run)

        gallery = presenter.gallery if run_id == state.shown.run_id else None
        look = partial(state.run_by_id, run_id)
        screen = CandidatesScreen(
            look, place, answer=session.answer, ask=self._ask, go_to=go_to, stops=stops, gallery=gallery
        )
        services = self._stage.services
        (services.push_unasked if unasked else services.push_screen)(screen)

    def go_to(self, run_id: str, found: FoundPlace) -> None:
        """Look at the call of a run that a row of a result names, if it names one."""
        if (presenter := self._stage.presenter) is None:
            return
        if found.is_vague:
            self._say("The row names the run alone: select phase_name and turn_number, too, to open its call.")
        if not found.is_of_call:
            return
        fitting = found.fitting([call.place for call in presenter.state.run_by_id(run_id).calls])
        if not fitting:
            self._say("The run has no model call as the row names it.", "warning")
            return
        self.go_to_call(run_id, fitting[0])
        if len(fitting) > 1:
            number = f"{len(fitting):,}"
            self._say(f"The row fits {number} calls, and this is the first: select branch and call, too.", "warning")

    def go_to_annotated(self, run_id: str, places: Sequence[str]) -> None:
        """Look at the first of the calls whose annotations a filter fits, and say which they are."""
        if (presenter := self._stage.presenter) is None:
            return
        calls = [call.place for call in presenter.state.run_by_id(run_id).calls if str(call.place) in places]
        if not calls:
            self._say("The call that the filter fits is not in the run any more.", "warning")
            return
        self.go_to_call(run_id, calls[0])
        first, *others = map(call_words, calls)
        more = f", and {', '.join(others)}: {len(calls)} calls" if others else ""
        self._say(f"The filter fits {first}{more}. {'This is the first.' if others else ''}".rstrip())

    def go_to_call(self, run_id: str, place: Place) -> None:
        """Look at a call of a run that is shown."""
        presenter = self._stage.presenter
        if presenter is not None and presenter.state.select_in(run_id, place):
            presenter.phase = place.phase
            self._stage.redraw()
            self._stage.focus_pane("context")

    # -- rows over the whole screen ----------------------------------------------------------------------------------

    def open_row(self, view: RowView, tab: Tab) -> None:
        """Does the work of enter in the context, the detail and the lower pane."""
        if (presenter := self._stage.presenter) is None:
            return
        if view is self._panes.context and presenter.state.call is None and not isinstance(view.rows, SummaryRows):
            self._stage.focus_pane("detail")
        elif view is self._panes.context and isinstance(view.rows, SummaryRows):
            self._open_summary(presenter, view.rows.target(view.cursor))
        elif view is self._panes.context:
            self._open_message(presenter)
        elif view is self._panes.detail and isinstance(view.rows, JsonRows):
            view.show(None, view.rows.fold(view.cursor))
        elif view is self._panes.detail and presenter.detail_mode == "message":
            self._open_message(presenter)
        elif view is self._panes.detail:
            self._show(presenter.detail(self._panes.context.cursor, whole=True))
        elif view is self._panes.dock and len(view.rows):
            self._open_dock_row(presenter, tab, view.cursor)

    def _show(self, rows: Rows) -> None:
        self._stage.services.push_screen(Sheet(rows))

    def _open_message(self, presenter: Presenter) -> None:
        """The message under the context's cursor in the viewer; a row that is none in a sheet."""
        row, session, run = self._panes.context.cursor, self._stage.services.session, presenter.state.shown
        viewed = presenter.viewed(row)
        selected = presenter.state.selected
        if viewed is None and presenter.streaming and selected is not None and not presenter.state.selected_run:
            self._stage.services.push_screen(
                Sheet(presenter.answer_now(selected), lambda: presenter.answer_now(selected))
            )
        elif viewed is None or session is None:
            self._show(presenter.detail(row, whole=True))
        else:
            pane = self._panes.context

            def beside(step: int) -> ViewedMessage | None:
                """The pane goes along, so that the way back leads to what was read last."""
                rows = range(pane.cursor + step, len(pane.rows) if step > 0 else -1, step)
                found = next(((at, one) for at in rows if (one := presenter.viewed(at)) is not None), None)
                if found is not None:
                    pane.move_to(found[0])
                return found[1] if found is not None else None

            sheet = MessageSheet(viewed, session.project, (run.run_id, run.session_id), beside)
            self._stage.services.push_screen(sheet)

    def _open_summary(self, presenter: Presenter, target: tuple[Place, str] | None) -> None:
        """To the call that a row of the summary is about; from any other row to the whole output."""
        if target is None:
            self._show(presenter.outputs(whole=True))
        elif presenter.state.select_in(target[1], target[0]):
            presenter.phase = target[0].phase
            self._stage.redraw()

    def _open_dock_row(self, presenter: Presenter, tab: Tab, index: int) -> None:
        state = presenter.state
        if tab == "log":
            line = state.log.lines[index]
            if line.place.turn and state.select(line.place):
                presenter.phase = line.place.phase
                self._stage.redraw()
                self._stage.focus_pane("context")
            else:
                title = (("Log", "title"), (f"  {line.sort}", "name"))
                self._show(TextRows(text_lines(line.text, whole=True), title, copy=line.text))
        elif tab == "problems":
            self.look_at_problem(index)
            self._stage.focus_pane("detail")
        elif tab == "timeline":
            self._go_to_bar(presenter, presenter.timeline.bars[index])
        elif tab == "what_if":
            if state.select(presenter.what_if.calls[index]):
                presenter.phase = presenter.what_if.calls[index].phase
                self._stage.redraw()
                self._stage.focus_pane("context")
        elif tab == "events":
            self._show(documents.event_doc(state.events[index]))
        elif tab == "state":
            key = list(state.run.state)[index]
            text = documents.pretty_value(state.run.state[key])
            self._show(TextRows(text_lines(text, whole=True), (("State", "title"), (f"  {key}", "name"))))
        else:
            self._show(presenter.outputs(whole=True))

    def _go_to_bar(self, presenter: Presenter, bar: Bar) -> None:
        """To the call of a bar of the timeline: of a child run to its newest one."""
        state = presenter.state
        found = state.look_into(bar.run) if bar.kind == "child" else state.select_in(bar.run, bar.place)
        if not found:
            self._say("This bar belongs to no model call.")
            return
        if not bar.run:
            presenter.phase = bar.place.phase
        self._stage.redraw()
        self._stage.focus_pane("context")

    # -- the flow ----------------------------------------------------------------------------------------------------

    def flow(self) -> None:
        """Show the graph of the phases, with what the run did on it."""
        if (live := self._stage.live()) is None:
            return
        session, presenter = live
        state = presenter.state
        try:
            graph = graph_of(state.run) if state.started and state.run.cascade_text else session.opened.graph
        except DefinitionError as fault:
            self._say(str(fault), "error")
            return
        width = self._panes.header.screen.size.width
        if graph is None:
            self._say(told("The file has errors: there is no graph of it. {tab.problems} lists them."), "error")
            return

        def shown() -> Shown:
            run = state.run if state.started else None
            held = state.held.place if state.held is not None and not state.held_run else None
            return (id(run), run.seq if run is not None else 0, held), graph, run, held

        def go_to(phase: str, call: Place | None) -> None:
            presenter.phase = phase
            if call is None or not state.select_in("", call):
                state.selected, state.selected_run, state.following, state.summary = None, "", False, False
            self._stage.redraw()
            self._stage.focus_pane("context")

        self._stage.services.push_screen(FlowSheet(shown, go_to, width))

    # -- copy, edit --------------------------------------------------------------------------------------------------

    def copy(self, view: RowView) -> None:
        """Copy what a pane means."""
        if (presenter := self._stage.presenter) is None:
            return
        services = self._stage.services
        if presenter.detail_mode in ("wire", "raw") and view in (self._panes.context, self._panes.detail):
            self._copy_request(presenter)
            return
        if view is self._panes.context and presenter.state.call is not None:
            document = presenter.detail(view.cursor, whole=True)
            services.copy(document.copy, "the message" if presenter.detail_mode == "message" else "the text")
        elif hasattr(view.rows, "copy"):
            services.copy(view.rows.copy, "the text")
        elif len(view.rows):
            services.copy(view.rows.plain(view.at), "the line")

    def _copy_request(self, presenter: Presenter) -> None:
        """Ask in which form the request of the selected call is to be copied."""
        if (call := presenter.state.call) is None:
            return
        text, _ = body_of(call, presenter.state.shown)
        to = destination(call, presenter.base_url)

        def chosen(form: str | None) -> None:
            if form == "json":
                self._stage.services.copy(text, "the body")
            elif form == "curl":
                self._stage.services.copy(as_curl(text, to), "the curl command")
            elif form == "python":
                self._stage.services.copy(as_python(text, to), "the Python program")

        words = f"{to.url}\nThe key is not copied: it is the variable {to.key}."
        answers = (("json", "j", "As JSON"), ("curl", "c", "As curl"), ("python", "p", "As Python"))
        self._stage.services.push_screen(ChoiceDialog("Copy the request", words, answers), chosen)

    def edit(self, *, outside: bool) -> None:
        """Open the file at the line that the Bench is looking at: in the app's editor, or in $EDITOR. At a call that
        lacks a scripted reply it is the file of the replies."""
        if (live := self._stage.live()) is None:
            return
        session, presenter = live
        file, (line, column) = session.file, presenter.place_in_view(self._panes.context.cursor)
        call = presenter.state.call
        inside = session.project.root / presenter.state.shown.cascade_file
        if not presenter.shows_own_file and inside.is_file():
            file = inside
        replies = file.with_name(file.stem + SUFFIX)
        if call is not None and call.failures and replies.is_file():
            error = call.failures[-1].get("error") or {}
            if call.answer is None and error.get("kind") == UNSCRIPTED:
                file, line, column = replies, replies.read_bytes().count(b"\n") + 1, 1
        navigation = self._stage.services.navigation
        if outside:
            navigation.edit_outside(file, line, column)
        else:
            navigation.open_editor(file, line, column)
