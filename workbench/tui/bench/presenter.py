"""From the state of a session to the rows of each pane. No Textual, so that it can be tested without a screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

from msgspec.structs import replace

from workbench.context.place import Place
from workbench.engine.debugger.stepper import Breakpoint
from workbench.engine.definition import Definition, DefinitionError
from workbench.engine.journal.parts import CallState, VisitState
from workbench.engine.model_name import split_effort
from workbench.language.problem import Problem, Severity, TextSpan
from workbench.tui.bench.state import BenchState, HeldRun
from workbench.tui.bench.tabs import Tab, tab_title
from workbench.views import documents, failed, problems, reasons, viewer, wire
from workbench.views.answer import LiveCall
from workbench.views.cells import Span, flat
from workbench.views.context import ContextRows, View
from workbench.views.definition import Card, CardRows, Fact, budget_of, outline, phase_lines
from workbench.views.header import HeaderState, header, waiting
from workbench.views.keys import told
from workbench.views.log import EventRows, state_rows
from workbench.views.model import Lines, Rows
from workbench.views.node import WAYS_ON, NodeCard
from workbench.views.picture import Gallery
from workbench.views.side_by_side import SideRows
from workbench.views.summary import SummaryRows
from workbench.views.text import TextRows, text_lines
from workbench.views.timeline import Timeline, TimelineRows, place_words
from workbench.views.tree import (
    PhaseOutline,
    SettledNodes,
    TreeRows,
    TreeView,
    breadcrumb,
    inside_it,
    nested_title,
    visit_status,
    watched_status,
)
from workbench.views.ways import ways_doc
from workbench.views.what_if import WhatIfRows

if TYPE_CHECKING:
    from workbench.engine.journal.state import RunState
    from workbench.language.graph import Graph
    from workbench.language.model.cascade import Cascade
    from workbench.language.read.source import Source
    from workbench.tui.bench.file_view import FileView
    from workbench.workspace.program_output import ProgramOutput

_NO_PROGRAM = (
    "No program output yet.",
    "A program that workbench attach runs in its own terminal prints there.",
)
Detail = Literal["message", "why", "wire", "raw", "problem", "ways"]


@dataclass(slots=True)
class Presenter:
    """Makes rows; keeps what is costly to make for as long as it is true."""

    state: BenchState
    file: FileView | None = None
    breakpoints: Sequence[Breakpoint] = ()
    model: str = ""
    base_url: str = ""
    notes: tuple[str, ...] = ()
    given: Mapping[str, Any] = field(default_factory=dict)
    """Inputs of the next run."""
    stepping: bool = False
    starting: bool = False
    """Whether a run was begun whose first event is not there yet."""
    phase: str = ""
    """The phase that the tree's cursor is on."""
    detail_mode: Detail = "message"
    typeset: bool = True
    """Whether Markdown of outputs is drawn; else it shows as it is written."""
    problem: int = 0
    tick: int = 0
    program: Callable[[], ProgramOutput | None] = lambda: None
    """Output of the watched program, if it has no terminal."""
    elsewhere: Callable[[], bool] = lambda: False
    """Whether another process runs what is shown."""
    gallery: Gallery = field(default_factory=Gallery)
    """Images made small."""
    _context: tuple[object, ContextRows] | None = None
    _outline: tuple[object, tuple[PhaseOutline, ...]] | None = None
    _problems: tuple[object, tuple[Problem, ...]] | None = None
    _timeline: Timeline = field(default_factory=Timeline)
    _settled: SettledNodes = field(default_factory=SettledNodes)
    _what_if: WhatIfRows = field(default_factory=WhatIfRows)
    _summary: tuple[object, SummaryRows] | None = None
    _definitions: dict[str, Definition | None] = field(default_factory=dict)
    """By run; None where its text can no longer be read."""
    _beside: dict[object, TextRows] = field(default_factory=dict)
    """The file at each of the places that the cursor came by."""
    _outputs: tuple[object, TextRows] | None = None

    def drop_drawn(self) -> None:
        """Forget what was made to be drawn: it is not shown now."""
        self._context = self._outline = self._problems = self._outputs = None

    # -- the cascade -------------------------------------------------------------------------------------------------

    @property
    def outline(self) -> tuple[PhaseOutline, ...]:
        """The phases of the file."""
        if self.file is None:
            return ()
        if self._outline is None or self._outline[0] is not self.file:
            base = self.file.kept or self.file
            made = outline(base.cascade, base.source, () if self.file.kept else self.file.problems, base.graph)
            self._outline = (self.file, made)
        return self._outline[1]

    def keep_outline(self, before: FileView) -> None:
        """The new text cannot be shown as a cascade: the phases of the last one that could stay in the tree."""
        assert self.file is not None
        self.file = replace(self.file, cascade=before.cascade, kept=before.kept or before)

    def tree_view(self) -> TreeView:
        state = self.state
        return TreeView(
            outline=self.outline,
            changed=state.changed,
            broken=tuple(f"{point} (disabled)" if point.disabled else str(point) for point in self.breakpoints),
            stopped_at=frozenset(point.phase for point in self.breakpoints if not point.disabled),
            held=state.held.place if state.held else None,
            selected=state.selected,
            selected_run=state.selected_run,
            held_run=state.held_run,
            children=state.children,
            busy=frozenset(state.waiting),
            folding=state.folding,
            tick=self.tick,
            timeline=self.timeline if state.started else None,
            shows_total=self.shows_summary,
        )

    def tree(self, *, unfold: bool = False, lines: int = 0) -> TreeRows:
        """The left pane, in which rows have so many ``lines``; with ``unfold`` all of it, whatever is folded."""
        view = replace(self.tree_view(), unfolded=unfold, lines=lines)
        rows = TreeRows(self.state.run if self.state.started else None, view, self._settled)
        cascade = self.file.cascade if self.file else None
        name = cascade.cascade_id if cascade else self.state.run.cascade_id
        rows.title_right = ((flat(name, 40), "dim"),) if name else ()
        return rows

    def crumb(self, width: int) -> tuple[Span, ...]:
        """The tree in one line, for narrow screens."""
        return breadcrumb(self.state.run if self.state.started else None, self.tree_view(), width)

    # -- the context -------------------------------------------------------------------------------------------------

    def context(self, *, compact: bool, divided: bool = False) -> Rows:
        """The middle pane: the selected call, or what the file says of a phase that did not run. See ``View``."""
        call = self.state.call
        if self.shows_summary:
            return self._summary_rows()
        if call is None:
            return self._card()
        state = self.state
        before = state.before if state.compare else None
        done = sum(tool.status != "running" for tool in call.tools)
        key = (
            id(call),
            call.seq,
            call.status,
            len(call.tools),
            done,
            len(call.failures),
            state.unfold,
            state.compare,
            compact,
            id(before),
            self.file and id(self.file),
            state.looks_elsewhere,
            asking := state.shown.asked_by(call.place),
            over := state.shown.status != "running",
        )
        if self._context is None or self._context[0] != key:
            visit = state.shown.visit_of(call.place)
            cascade = self.file.cascade if self.file and not state.selected_run else None
            view = View(
                compact=compact,
                unfold=state.unfold,
                compare=state.compare,
                before=before,
                budget=budget_of(cascade, call.place.phase),
                max_turns=visit.max_turns if visit else 0,
                divided=divided,
                filed="imported" not in state.shown.ports,
                asking=asking,
                over=over,
            )
            rows = ContextRows(call, view)
            if state.selected_run:
                rows.title = nested_title(state.shown, rows.title, goes_back=state.looks_elsewhere)
            self._context = (key, rows)
        rows = self._context[1]
        rows.set_live(self._live(call))
        return rows

    def _live(self, call: CallState) -> LiveCall | None:
        state = self.state
        if state.held is not None and (state.held_run, state.held.place) == (state.selected_run, call.place):
            anyway = "; continuing sends it anyway" if call.problems and call.answer is None else ""
            return LiveCall("held", f"{state.held.reason}{anyway}") if state.held.reason else None
        wait = state.waiting.get(call.place)
        if wait is None:
            return None
        now = monotonic()
        if wait.text:
            return LiveCall("answering", wait.text, now - wait.since, self.tick)
        if wait.pause_until is not None and wait.pause_until > now:
            words = f"tries again in {wait.pause_until - now:.0f} s (try {wait.tries}); has waited"
            return LiveCall("waiting", words, now - wait.since, self.tick)
        tries = f" (try {wait.tries})" if wait.tries > 1 else ""
        return LiveCall("waiting", f"waiting for the provider{tries}", now - wait.since, self.tick)

    @property
    def graph(self) -> Graph | None:
        """The graph of the run that is looked at, before a run that of the file; None where the text has none."""
        run = self.state.shown
        if not (self.state.started and run.cascade_text):
            return self.file.graph if self.file is not None else None
        definition = self._pinned()
        return definition.graph if definition is not None else None

    def _pinned(self, of: RunState | None = None) -> Definition | None:
        """Returns the definition that a run began with, the shown one if not told; None where its text can no longer be
        read."""
        run = of if of is not None else self.state.shown
        if run.run_id not in self._definitions:
            if len(self._definitions) >= _PLACES:
                self._definitions.clear()
            try:
                self._definitions[run.run_id] = Definition.of(run.cascade_text, run.cascade_file)
            except DefinitionError:
                self._definitions[run.run_id] = None
        return self._definitions[run.run_id]

    def _visit(self) -> VisitState | None:
        """The visit that is selected without a call, else the last one of the phase that the tree's cursor is on."""
        run, key = self.state.shown, self.state.visited
        if key is not None and key[1] == self.phase:
            return run.visit_of(Place(*key))  # None where the run is held before it.
        return next((visit for visit in reversed(run.visits) if visit.phase == self.phase), None)

    def _ways_doc(self) -> TextRows:
        """Returns why the run went on where it did after the visit that is looked at; while it has not gone on from
        there, why it came there."""
        run, graph, call = self.state.shown, self.graph, self.state.call
        visit = run.visit_of(call.place) if call is not None else self._visit()
        if visit is None or visit.status == "running":
            here = visit.phase if visit is not None else self.phase
            visit = next((before for before in reversed(run.visits) if before.route == here), visit)
        if graph is None or visit is None:
            return TextRows([], (("Why this edge", "title"),), empty=("Nothing has run here yet.",))
        return ways_doc(graph, visit, *self.pinned_text(), self._text_now)

    def _card(self) -> Rows:
        of_file = cascade = self.file.cascade if self.file else None
        # A run shows the phases that it began with, also those that the file has no longer.
        gone = self.state.started and (cascade is None or cascade.phase(self.phase) is None)
        if (gone or self.state.selected_run) and (definition := self._pinned()) is not None:
            cascade = definition.cascade
        source = self._card_source() if cascade is of_file else None
        phase = cascade.phase(self.phase) if cascade else None
        if cascade is None or phase is None:
            none = f"The file has no phase {flat(self.phase)}." if cascade else "The file has no cascade to show."
            rows = Lines((), ("Opening …",) if self.file is None else (none,))
            rows.title = (("Context", "title"),)
            return rows
        visit, graph = self._visit(), self.graph
        status = visit_status(self.state.shown, visit) if visit is not None else ""
        node = graph.node(self.phase) if graph is not None and graph.format != "cascade" else None
        if graph is not None and node is not None:
            hint = self._hint() if visit is None else told("{view.ways} tells why each edge was taken or not.")
            return NodeCard(graph, node, visit, hint, status, definition=(cascade, phase), default_model=self.model)
        if visit is not None:
            asks = "The window that runs it asks." if self.elsewhere() else told("{run.answer} opens the question.")
            said = {"running": "No model call yet.", "waiting": asks}
            hint = said.get(status, "It made no model call.")
            return CardRows(cascade, phase, hint, self.model, status, source=source)
        if "imported" in self.state.run.ports:  # The file that stands for a program decides nothing about its calls.
            return Card(phase.name, " · no call", self._hint(), ())
        given = None if self.state.alive else self.given
        return CardRows(cascade, phase, self._hint(), self.model, source=source, given=given)

    @property
    def no_call(self) -> str:
        """What is said to a person who asks for a call where there is none."""
        if "imported" in self.state.run.ports:
            return "This run has no call."
        return told("No call yet: {run.over} runs to the first one.")

    def _hint(self) -> str:
        """Returns the advice where a phase has not run."""
        if self.state.alive:
            watched = "imported" in self.state.run.ports
            return "The program has made no model call yet." if watched else "This phase has not run yet."
        if self.state.failure and not self.state.started:
            return f"The run did not start: {self.state.failure}"
        if "imported" in self.state.run.ports:
            return "The program made no call in this phase."
        if self.file is not None and any(problem.severity is Severity.ERROR for problem in self.file.problems):
            if self.file.good:
                return told(
                    "The file has errors, {tab.problems} lists them. {run.start} runs the last version without errors."
                )
            return told("The file has errors: it opens, but it does not run. {tab.problems} lists them.")
        if self.file is not None and self.file.graph is not None and self.file.graph.format != "cascade":
            return told("{run.over} runs to the first node and pauses, {run.start} runs to the end.")
        return told("{run.over} runs to the first call and pauses, {run.start} runs to the end.")

    def _card_source(self) -> Source | None:
        """The text that the shown cascade comes from; None where the file has a newer one that cannot be shown."""
        return self.file.source if self.file is not None and self.file.kept is None else None

    def _fact(self, row: int) -> Fact | None:
        """The line of the card of a phase that has not run."""
        card = self._card()
        return card.fact(row) if isinstance(card, Card) else None

    def is_input(self, row: int) -> bool:
        """Returns whether the row of the context pane is an input of the next run."""
        if self.state.call is not None or self.shows_summary:
            return False
        fact = self._fact(row)
        return fact is not None and fact.is_input

    @property
    def shows_summary(self) -> bool:
        """Whether the context pane shows the summary of the run."""
        return self.state.summary and self.state.started

    def _summary_rows(self) -> SummaryRows:
        state = self.state
        key = (id(state.run), state.run.seq, len(state.children), state.compares_file)
        if self._summary is None or self._summary[0] != key:
            self._summary = (key, SummaryRows(state.run, state.children, file_changed=state.compares_file))
        return self._summary[1]

    def home_row(self) -> int:
        """The row of the context to look at by itself: what happened last in a call that is followed, else the newest
        message that was sent."""
        if self._context is None or self.state.call is None or self.shows_summary:
            return 0
        rows = self._context[1]
        return rows.newest() if self.state.following else rows.last_entry()

    # -- the detail --------------------------------------------------------------------------------------------------

    def detail(self, row: int, *, whole: bool = False, beside: bool = False) -> TextRows | SideRows:
        """Returns the detail of the selected row, in the way that was asked for; with ``beside`` a message that was
        sent in another form stands beside it."""
        call = self.state.call
        if self.detail_mode == "problem" and self.problems:
            return self._problem_doc()
        if self.shows_summary:
            outputs = self.outputs(whole=whole)
            outputs.copy = self.state.run.output
            return outputs
        if self.detail_mode == "ways":
            return self._ways_doc()
        if call is None:
            visit = self._visit()
            if visit is None or self._is_about_file(row):
                return self._file_doc(row)
            return documents.visit_doc(visit, self.state.shown)
        rows = self._context[1] if self._context else None
        if self.detail_mode in ("wire", "raw"):
            return wire.wire_doc(
                call, self.state.shown, entry=self.entry_at(row), whole=whole, raw=self.detail_mode == "raw"
            )
        if rows is None or not 0 <= row < len(rows.refs):
            return TextRows([], (("Message", "title"),), empty=("Select a message.",))
        ref = rows.refs[row]
        if ref.kind in ("entry", "fold", "part"):
            if self.detail_mode == "why":
                return reasons.why_doc(call, ref.index, *self.pinned_text(), self._text_now)
            sides = documents.sides_doc(call, ref.index, gallery=self.gallery) if beside else None
            if sides is not None:
                return sides
            return documents.message_doc(
                call, ref.index, full=self.state.full, whole=whole, gallery=self.gallery, typeset=self.typeset
            )
        if ref.kind in ("answer", "back", "residual"):
            return documents.answer_doc(call, whole=whole, typeset=self.typeset)
        if ref.kind == "tool":
            asks, over = rows.view.asking, rows.view.over
            return documents.tool_doc(call.tools[ref.index], whole=whole, gallery=self.gallery, asking=asks, over=over)
        if ref.kind == "failure":
            return failed.failure_doc(call, ref.index, self.state.shown)
        if ref.kind == "tools":
            return documents.tools_doc(call, self.state.shown)
        if ref.kind == "break":
            return reasons.break_doc(call)
        wait = self.state.waiting.get(call.place)
        if wait is not None and wait.text:
            return documents.streaming_doc(wait.text, self.tick)
        return wire.wire_doc(call, self.state.shown, whole=whole)

    def is_drawn(self, row: int) -> bool:
        """Returns whether the detail of a row is an answer of the model, or outputs, with Markdown to be drawn."""
        if self.shows_summary:
            return documents.is_typeset(self.state.run)
        call, rows = self.state.call, self._context[1] if self._context else None
        if call is None or rows is None or self.detail_mode != "message" or not 0 <= row < len(rows.refs):
            return False
        ref = rows.refs[row]
        if ref.kind in ("answer", "back", "residual"):
            return call.answer is not None and documents.is_markdown(call.answer.text)
        return ref.kind in ("entry", "fold", "part") and documents.is_drawn(call.entries[ref.index])

    def row_of_entry(self, entry: int | None, otherwise: int) -> int:
        """The row of an entry of the selected call; another row where no row shows it."""
        refs = self._context[1].refs if self._context else ()
        return next((row for row, ref in enumerate(refs) if ref.kind == "entry" and ref.index == entry), otherwise)

    def entry_at(self, row: int) -> int | None:
        """The entry of the selected call that a row of the context shows; None for any other row."""
        rows = self._context[1] if self._context else None
        return rows.refs[row].index if rows is not None and rows.entry(row) is not None else None

    def answer_now(self, place: Place) -> TextRows:
        """The answer of a call of the run, as far as it has come in; whole once it is there."""
        wait, call = self.state.waiting.get(place), self.state.run.call_at(place)
        if wait is not None and wait.text:
            return documents.streaming_doc(wait.text, self.tick)
        return TextRows([], (("Answer", "title"),)) if call is None else documents.answer_doc(call, whole=True)

    @property
    def streaming(self) -> bool:
        """Whether an answer is coming in for the selected call."""
        wait = self.state.waiting.get(self.state.selected) if self.state.selected is not None else None
        return bool(wait and wait.text)

    def leave_problem(self) -> None:
        """The eye went elsewhere: the detail is about messages again."""
        if self.detail_mode == "problem":
            self.detail_mode = "message"

    def detail_key(self, row: int) -> tuple[object, ...]:
        """Values that the detail depends on; as long as it is equal, the pane stays as it is."""
        state, call = self.state, self.state.call
        wait = state.waiting.get(call.place) if call else None
        results = tuple((tool.status, hash(tool.text)) for tool in call.tools) if call else ()
        answer = call.answer.body_hash if call is not None and call.answer is not None else ""
        return (
            id(call),
            (call.seq, call.status, answer, results) if call else (self.phase, id(self._visit()), state.run.seq),
            row,
            self.shows_summary,
            self.detail_mode,
            self.problem,
            state.full,
            self.typeset,
            id(self.file),
            len(wait.text) if wait else 0,
        )

    def place_in_view(self, row: int) -> tuple[int, int]:
        """Line and column of the file that matter for what is selected, for an editor."""
        rows, call = self._context[1] if self._context else None, self.state.call
        if self.detail_mode == "problem" and self.problems:
            span = self.problems[min(self.problem, len(self.problems) - 1)].span
            return span.line, span.column
        entry = rows.entry(row) if rows is not None and call is not None else None
        if entry is not None and entry.rule.line:
            text, _ = self.pinned_text()
            return reasons.line_now(entry.rule.line, text, self._text_now or text)[0], 1
        if self.file is None:
            return 1, 1
        fact = self._fact(row) if call is None and not self.shows_summary else None
        if fact is not None and fact.line:
            return fact.line, 1
        name = call.place.phase if call is not None else self.phase
        return phase_lines(self.file.cascade, self.file.source, name)[0], 1

    def viewed(self, row: int) -> viewer.ViewedMessage | None:
        """The message of a row, for the viewer; None for a row that is none."""
        call, run = self.state.call, self.state.shown
        rows = self._context[1] if self._context else None
        if self.shows_summary or call is None or rows is None or not 0 <= row < len(rows.refs):
            return None
        ref = rows.refs[row]
        if ref.kind == "entry":
            return viewer.viewed_entry(call, ref.index, run, self.gallery)
        if ref.kind in ("answer", "back") and call.answer is not None:
            return viewer.viewed_answer(call, self.gallery)
        if ref.kind == "tool" and call.tools[ref.index].status != "running":
            return viewer.viewed_tool(call, ref.index, self.gallery)
        return None

    def pinned_text(self) -> tuple[str, str]:
        """The text that the run is pinned to, and its file."""
        run = self.state.shown
        if run.cascade_text:
            return run.cascade_text, run.cascade_file
        return (self.file.source.text, self.file.shown) if self.file else ("", "")

    @property
    def _text_now(self) -> str:
        """The text of the file that is open; empty where a run of another file is shown, or none is open."""
        return self.file.source.text if self.file is not None and self.shows_own_file else ""

    @property
    def shows_own_file(self) -> bool:
        """Returns whether the shown run is one of the file that is open, not a run inside it of another file."""
        return self.file is None or self.state.shown.cascade_file in ("", self.file.shown)

    def _is_about_file(self, row: int) -> bool:
        """Whether a row of a phase's card is explained by the file: all of a phase that did not run are."""
        fact = self._fact(row)
        return self._visit() is None or (fact is not None and fact.label in ("", WAYS_ON) and bool(fact.line))

    def _file_doc(self, row: int) -> TextRows:
        """The file at the line behind a row of the card; at the phase where there is none."""
        if self.file is None:
            return TextRows([], (("File", "title"),))
        first, last = phase_lines(self.file.cascade, self.file.source, self.phase)
        fact = self._fact(row)
        marked = (fact.line, fact.line) if fact is not None and fact.line else (first, last)
        title: tuple[Span, ...] = (("File", "title"), (f"  {flat(self.file.shown)}", "name"))
        right = ((_line_words(first, last), "dim"),) if self.phase else ()
        return reasons.with_file((), self.file.source.text, marked[0], title, right, marked[1])

    def file_beside(self, row: int) -> TextRows | None:
        """The file as the run began with it: at the line that decided about the selected message, else at the phase of
        the selected call. None before a run, of a program that is watched, for a text that cannot be read, and where
        the detail shows the file itself."""
        run, call = self.state.shown, self.state.call
        shows_file = self.detail_mode in ("message", "why") and not self.shows_summary
        if call is None and shows_file and self._is_about_file(row):
            return None
        definition = self._pinned() if self.state.started and "imported" not in run.ports else None
        if definition is None:
            return None
        rows = self._context[1] if self._context else None
        entry = rows.entry(row) if rows is not None and call is not None and not self.shows_summary else None
        first, last = phase_lines(
            definition.cascade, definition.source, call.place.phase if call is not None else self.phase
        )
        if entry is not None and entry.rule.line:
            first = last = entry.rule.line
        ran = " as it ran" if self._text_now not in ("", definition.source.text) else ""
        key = (run.run_id, first, last, ran)
        if (found := self._beside.get(key)) is None:
            title: tuple[Span, ...] = (("File", "title"), (f"  {flat(run.cascade_file)}", "name"))
            right: tuple[Span, ...] = ((_line_words(first, last) + ran, "dim"),)
            found = reasons.with_file((), definition.source.text, first, title, right, last)
            if len(self._beside) >= _PLACES:
                self._beside.clear()
            self._beside[key] = found
        return found

    def breakpoint_doc(self, point: Breakpoint | None) -> TextRows:
        """The file at the phase that a breakpoint is about; of a tool alone, at the first phase that has it."""
        title: tuple[Span, ...] = (("File", "title"),)
        if self.file is None:
            return TextRows([], title)
        title = (*title, (f"  {flat(self.file.shown)}", "name"))
        cascade, name = self.file.cascade, point.phase if point is not None else ""
        if point is not None and not name and point.tool and cascade is not None:
            users = (phase.name for phase in cascade.phases if point.tool in phase.tools or point.tool == phase.tool)
            name = next(users, "")
        first, last = phase_lines(cascade, self.file.source, name) if name else (0, 0)
        right = ((_line_words(first, last), "dim"),) if first else ()
        return reasons.with_file((), self.file.source.text, first, title, right, last)

    def _problem_doc(self) -> TextRows:
        problem = self.problems[min(self.problem, len(self.problems) - 1)]
        return reasons.problem_doc(problem, self.file.source.text if self.file else "")

    # -- below -------------------------------------------------------------------------------------------------------

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Of the file, then what the run warned of, then broken rules of the selected call."""
        run, call = self.state.run, self.state.call
        key = (self.file and id(self.file), len(run.warnings), id(call), run.run_id, run.status)
        if self._problems is None or self._problems[0] != key:
            found = list(self.file.problems) if self.file else []
            if self.file and self.file.gone:
                found.insert(0, Problem(Severity.ERROR, "file", self.file.gone, self.file.shown))
            wanted = run.status in ("failed", "blocked") or run.warnings or (call is not None and call.problems)
            pinned = self._pinned(run) if wanted and run.cascade_text and "imported" not in run.ports else None
            of_run = list(problems.of_run(run, pinned))
            of_run += problems.of_call(call, self.state.shown.cascade_file) if call is not None else ()
            found += (self._as_file_is(problem, pinned) for problem in of_run)
            self._problems = (key, tuple(found))
        return self._problems[1]

    def _as_file_is(self, problem: Problem, pinned: Definition | None) -> Problem:
        """A problem of a run at the line of the file as it is now: the file may have changed since the run began."""
        file, span = self.file, problem.span
        if file is None or pinned is None or problem.file != file.shown or not span.line:
            return problem
        line, same = reasons.line_now(span.line, pinned.source.text, file.source.text)
        return problem if same and line == span.line else replace(problem, span=TextSpan(line, 1, line, 1))

    def dock(self, tab: Tab) -> Rows:
        """The lower pane under one of its tabs."""
        state = self.state
        rows: Rows
        if tab == "log":
            rows = state.log
            state.log.can_run = self.file is None or self.file.good
        elif tab == "problems":
            rows = problems.ProblemRows(self.problems)
        elif tab == "state":
            rows = Lines(state_rows(state.run), ("The state is empty.", "set_state and output_extraction write to it."))
        elif tab == "output":
            rows = self._outputs_below()
        elif tab == "timeline":
            rows = TimelineRows(self.timeline)
        elif tab == "what_if":
            rows = self.what_if
        elif tab == "program":
            program = self.program()
            rows = TextRows(text_lines(program.tail() if program is not None else "", whole=True), empty=_NO_PROGRAM)
        else:
            rows = EventRows(state.events)
        rows.title = self.tabs(tab)
        if tab != "output":
            rows.title_right = self.what_if.sums if tab == "what_if" else ()
        return rows

    def outputs(self, *, whole: bool = False) -> TextRows:
        """The outputs of the run, drawn or as they are written."""
        run = self.state.run if self.state.started else None
        return documents.outputs_doc(run, typeset=self.typeset, whole=whole)

    def _outputs_below(self) -> TextRows:
        """The same for the lower pane, laid out once while they stay the same."""
        run = self.state.run
        key = (run.run_id, self.state.started, self.typeset, run.finished, run.output, tuple(run.outputs.items()))
        if self._outputs is None or self._outputs[0] != key:
            self._outputs = (key, self.outputs())
        return self._outputs[1]

    def prepare(self) -> None:
        """Make what the first frame of a stored run would wait for; in any thread, before it is shown."""
        self._timeline.absorb(self.state.run, self.state.children)
        self.state.run.figures()

    @property
    def timeline(self) -> Timeline:
        """The run and its children on one axis of time, as they are now."""
        if self.state.started:
            self._timeline.absorb(self.state.run, self.state.children)
        return self._timeline

    @property
    def what_if(self) -> WhatIfRows:
        """The messages that the strategy of ``--what-if`` would send, and those that are sent, call by call."""
        run = self.state.run
        # Most runs have none, and to look through all events of a long one takes a tenth of a second.
        self._what_if.absorb(run.run_id, self.state.events if run.other_strategy else ())
        return self._what_if

    def tabs(self, current: Tab) -> tuple[Span, ...]:
        """The tabs of the lower pane, with how much each holds."""
        state = self.state
        counts: dict[Tab, int] = {
            "problems": len(self.problems),
            "state": len(state.run.state),
            "events": len(state.events),
        }
        if len(self.what_if):
            counts["what_if"] = len(self.what_if)
        if (program := self.program()) is not None and program.size:
            counts["program"] = 0
        return tab_title(current, counts, alarm="error" if self._errors() else "warning")

    def _errors(self) -> bool:
        return any(problem.severity is Severity.ERROR for problem in self.problems)

    # -- header and footer -------------------------------------------------------------------------------------------

    def header(self, width: int) -> tuple[Span, ...]:
        """The first line."""
        state, file = self.state, self.file
        awaited = ""
        now = monotonic()
        if (doing := state.doing(now)) is not None and doing[0] == "waiting":
            pause = doing[2].pause_until
            awaited = waiting(doing[1], doing[2].tries, pause - now if pause is not None else 0.0)
        cascade = file.cascade if file else None
        watched = "imported" in state.run.ports
        facts = HeaderState(
            cascade=cascade.cascade_id if cascade else state.run.cascade_id,
            file=file.shown if file else state.run.cascade_file,
            saved=file.saved if file else "",
            changed=bool(state.changed),
            errors=sum(p.severity is Severity.ERROR for p in file.problems) if file else 0,
            good=file.good if file else True,
            model=_model_of(state.run) if watched else self._models(cascade),
            base_url="" if watched else self.base_url,
            held=_pause_words(state.held, state.held_at) if state.held else "",
            waits=state.held.waits(now) if state.held else "",
            at=_running_at(state),
            question=state.current_question() is not None,
            elsewhere=self.elsewhere(),
            waiting=awaited,
            stepping=self.stepping,
            starting=self.starting,
            unsaved=state.unsaved,
            inside=inside_it(state.children),
            tick=self.tick,
        )
        return header(state.run if state.started else None, facts, width)

    def _models(self, cascade: Cascade | None) -> str:
        """The models that the phases of the run asked, the newest first; before there are any, those of the file."""
        run, graph, offline = self.state.run, self.file.graph if self.file else None, self.model.startswith("offline")
        default = str(run.options.get("default_model") or self.model.partition(" as ")[2] or self.model)
        phases = [phase for phase in (cascade.phases if cascade is not None else ()) if not phase.deterministic]
        if graph is not None and graph.format != "cascade":
            phases = [one for one in phases if (node := graph.node(one.name)) is not None and node.asks_model]
        names = list(reversed(run.models))
        names = names or [split_effort(phase.model or default)[0] for phase in phases] or [default]
        return _model_words(names, offline=offline)

    def situation(self) -> str:
        """Returns which keys matter: ``asked``, ``held``, ``running``, ``unfinished`` (it can go on), ``done`` or
        ``idle``."""
        state = self.state
        if state.current_question() is not None:
            return "asked"
        if state.held is not None:
            return "held"
        if state.alive or self.starting:
            return "running"
        if state.resumable:
            return "unfinished"
        return "done" if state.started else "idle"


def _pause_words(held: HeldRun, where: str) -> str:
    """Returns where it is paused, and at which breakpoint if that says more."""
    word, _, point = held.why.partition(" ")
    here = (held.place.phase, f"{held.place.phase}:{held.place.turn}", place_words(held.place))
    words = f"{where} ({held.why})" if word == "breakpoint" and point not in here else where
    return f"{words}, in another window" if held.elsewhere else words


def _line_words(first: int, last: int) -> str:
    """``lines 10–18``; ``line 35`` for a node that is one line."""
    return f"lines {first}–{last}" if last > first else f"line {first}"


def _model_of(run: RunState) -> str:
    """The models that a run of another program asked, the newest first."""
    names = [visit.model for visit in reversed(run.visits) if visit.model]
    return _model_words(names, offline=bool(run.calls) and run.calls[-1].scripted)


def _model_words(names: Iterable[str], *, offline: bool) -> str:
    """The first of some models, and how many others there are: ``offline as acme/large +1``; empty without any."""
    first, *others = dict.fromkeys(names) or ("",)
    if offline and first in ("", "offline"):
        return "offline"
    return f"{'offline as ' if offline else ''}{first}{f' +{len(others)}' if others else ''}"


def _running_at(state: BenchState) -> str:
    """The newest call of a run that is active: ``investigate:9``; of a watched program the newest that has no answer
    yet."""
    if not state.alive or not state.run.calls:
        return ""
    if "imported" not in state.run.ports:
        return place_words(state.run.calls[-1].place)
    contexts = islice(reversed(state.run.visits), _LOOKED_AT)
    open_call = next((one.calls[-1] for one in contexts if one.calls and watched_status(one) == "running"), None)
    return place_words(open_call.place) if open_call is not None else "between calls"


_PLACES = 16
"""Places of the file that are kept laid out, and definitions of runs that are kept."""
_LOOKED_AT = 200
"""Contexts among which an open call is looked for: the newest, as a session may have thousands."""
