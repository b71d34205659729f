"""Candidates: what ran side by side, who won and why; a person picks here. Live, and for stored runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container

from workbench.context.place import Place
from workbench.engine.candidates.human_choice import REJECT
from workbench.engine.journal.candidate_rounds import CandidateRounds
from workbench.tui.bindings import bindings
from workbench.tui.screens.dialog import ChoiceDialog
from workbench.tui.screens.sheet import DiffSheet, Sheet
from workbench.tui.screens.sized import Grip, SizedScreen
from workbench.tui.widgets.rowview import RowView
from workbench.views.candidate_docs import beside, candidate_doc, choosing_doc, evaluation_doc
from workbench.views.candidates import CandidateRows, Stops
from workbench.views.keys import ALWAYS
from workbench.views.model import Rows
from workbench.views.picture import Gallery
from workbench.views.plot import Drawn
from workbench.views.text import TextRows, drawn_line

if TYPE_CHECKING:
    from workbench.analysis.ranking import RankedCandidate
    from workbench.engine.journal.event import Event
    from workbench.engine.journal.state import RunState

LOOK = 0.1
"""Seconds between two looks at a run that goes on."""
PLOT = 64
"""Cells of the plot beside the text, unless the user chose others."""
WIDE = 150
"""Cells from which on the plot shows without being asked for."""


class Ask(Protocol):
    """Shows a dialog for what the run asks besides a choice among candidates."""

    def __call__(self, *, unasked: bool) -> None:
        """``unasked``: only for a question that was not shown yet, where no key asked for it."""
        ...


class CandidatesScreen(Sheet, SizedScreen[None]):
    """All contests of a run, one at a time; where the run asks for it, the user chooses among them."""

    CSS_PATH: ClassVar[Any] = ["sheet.tcss", "candidates.tcss"]
    PALETTE: ClassVar[tuple[str, ...]] = ("candidates", "borders", "sheet", "list")
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("candidates"), *bindings("borders")]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (130, "-normal")]  # noqa: RUF012 - declared by Textual without ClassVar
    OFFERED: ClassVar[tuple[str, ...]] = (
        "list.open",
        "candidates.outputs",
        "candidates.prompts",
        "candidates.mark",
        "candidates.why",
        "candidates.plot",
        "candidates.context",
        "candidates.next",
    )

    def __init__(
        self,
        look: Callable[[], RunState],
        place: Place | None = None,
        *,
        answer: Callable[[Event, str], bool],
        ask: Ask,
        go_to: Callable[[Place], None],
        stops: Callable[[], Stops],
        gallery: Gallery | None = None,
    ) -> None:
        """``look`` gives the run, again and again while it goes on; ``place`` is a contest, or inside of one.

        ``answer`` gives a person's choice to the run, False when the run no longer waits.
        ``ask`` shows a dialog for what else the run asks.
        ``go_to`` shows a call in the Bench. ``stops`` says where the run is paused or waits.
        ``gallery`` draws the pictures of the run, where it has them.
        """
        state = look()
        found = state.contests.at(place) if place is not None else None
        self._look, self._go_to, self._stops, self._gallery = look, go_to, stops, gallery
        self._number = state.contests.all.index(found) if found is not None else max(0, len(state.contests) - 1)
        self._marked: int | None = None
        self._seen: object = None
        self._here: tuple[int, int] | None = None
        self._drawn_at = 0
        """The width for which the cursor was put: at another one there may be more or fewer lines above its row."""
        self._height = 5
        """Lines of the list, as they were asked for: it has them a frame later."""
        super().__init__(self._made())
        self._answer, self._ask = answer, ask
        self.view.selecting = True
        self.preview = RowView(TextRows([]), id="preview", selecting=False)
        self.plot = RowView(TextRows([]), id="plot", selecting=False)
        self.preview.scrolls_at_edge = False
        self._wants_plot: bool | None = None

    def compose(self) -> ComposeResult:
        yield self.view
        with Container(id="below"):
            yield self.preview
            yield self.plot
        yield self.footer

    def on_mount(self) -> None:
        self.set_interval(LOOK, self._follow_run)

    def _show(self) -> None:
        wanted: int | None = self.rows.offered[0] if self.rows.offered else self.rows.contest.winner
        self.rows.lay_out(self.view.inner_width)
        row = self.rows.row_of(wanted) if wanted is not None else None
        first = next((at for at in range(len(self.rows)) if self.rows.candidate(at) is not None), 0)
        self._draw(first if row is None else row)

    def on_resize(self) -> None:
        self.call_after_refresh(lambda: self._draw(self._row_of(self._here)))

    # -- what is shown -----------------------------------------------------------------------------------------------

    @property
    def contest(self) -> CandidateRounds | None:
        """The one that is shown."""
        found = self._look().contests.all
        return found[min(self._number, len(found) - 1)] if found else None

    def _made(self, tick: int = 0) -> CandidateRows:
        state, contest = self._look(), self.contest
        rows = CandidateRows(state, contest or CandidateRounds(Place()), tick, self._marked, self._stops())
        if len(state.contests) > 1:
            rows.title = (*rows.title, (f"  {self._number + 1} of {len(state.contests)}", "dim"))
        return rows

    def _follow_run(self) -> None:
        """Redraw when the run went on, or a spinner turns."""
        state = self._look()
        seen = (id(state), state.seq, len(state.questions), self._stops())
        turning = self.rows.turning and self.app.animation_level != "none"
        if seen != self._seen or turning:
            fresh = seen != self._seen
            self._seen = seen
            here, asked = self._identity(), self.rows.question
            self._rows = self._made(int(monotonic() * 8) if turning else 0)
            row = self._row_of(here)
            if self.rows.offered and self.rows.question is not asked:
                row = self.rows.row_of(self.rows.offered[0])
            self._draw(row, below=fresh)
            if fresh and self.app.screen is self:
                self._ask(unasked=True)

    def _identity(self) -> tuple[int, int] | None:
        """The round and the number of the candidate that was chosen."""
        if self.view.inner_width != self._drawn_at:
            return self._here
        ref, one = self.rows.refs[self.view.cursor] if self.rows.refs else None, self.candidate
        return None if ref is None or one is None else (ref.round, one.entrant.index)

    def _row_of(self, here: tuple[int, int] | None) -> int | None:
        self.rows.lay_out(self.view.inner_width)
        for row, ref in enumerate(self.rows.refs):
            one = self.rows.candidate(row)
            if here is not None and one is not None and (ref.round, one.entrant.index) == here:
                return row
        return None

    def _draw(self, cursor: int | None = None, *, below: bool = True) -> None:
        room = self.size.height - 1
        chosen = self.size_of("candidates.below")
        width = max(1, self.size.width - 1)  # The list may not have it yet.
        lines = sum(len(self.rows.whole(row, width)) or 1 for row in range(len(self.rows)))
        wanted = min(lines + 2, room - max(6, room * 2 // 5)) if chosen is None else room - chosen
        self._height = max(5, wanted)
        self.view.styles.height = self._height
        self._drawn_at = self.view.inner_width
        self.view.show(self.rows, cursor)
        self.offer(self._offered(), (*ALWAYS[1:2], "sheet.close"))
        if below:
            self.call_after_refresh(self._draw_below)

    def _draw_below(self) -> None:
        self._here = self._identity()
        lines = self._plot_lines()
        shown = self.size.width >= WIDE if self._wants_plot is None else self._wants_plot
        self.set_class(shown and (bool(lines) or bool(self._wants_plot)), "-plot")
        beside = self.has_class("-plot") and not self.has_class("-narrow")
        width = self._plot_width()
        self.plot.styles.width = width if beside else None
        self.preview.edge = beside
        self.preview.joints = {self.size.width - width - 1: "┬"} if beside else {}
        self.plot.rows = TextRows(
            [drawn_line(spans) for spans in lines],
            (("Plot", "title"), ("  quality against cost", "name")),
            empty=("Nothing to plot yet: at least two", "candidates need a score and a known cost."),
        )
        self.plot.show()
        self.preview.show(self._preview(), 0)

    # -- borders -----------------------------------------------------------------------------------------------------

    def grips(self) -> tuple[Grip, ...]:
        high = self.size.height - 1
        below = partial(
            Grip, "candidates.below", border="title", now=high - self.view.size.height, least=4, most=high - 5
        )
        if not self.preview.edge:
            return (below(view=self.preview if self.preview.display else self.plot),)
        beside = Grip("candidates.plot", self.preview, "edge", self.plot.size.width, 30, self.size.width - 40)
        return below(view=self.preview), below(view=self.plot), beside

    def apply_sizes(self) -> None:
        self._draw()

    def _plot_lines(self) -> list[Drawn]:
        if "metadata" in self.rows.shown.get("hidden", ()):
            return []
        room = self.size.width - 4 if self.has_class("-narrow") else self._plot_width() - 3
        height = max(9, self.size.height - 2 - self._height)
        return self.rows.plot(room, height, self.rows.round_of(self.view.cursor))

    def _plot_width(self) -> int:
        """Cells of the plot where it stands beside the text."""
        return min(self.size_of("candidates.plot") or PLOT, max(30, self.size.width - 40))

    def _preview(self) -> Rows:
        one, of, contest = self.candidate, self.rows.round_of(self.view.cursor), self.contest
        if contest is None or of is None:
            return TextRows([], (("Candidate", "title"),))
        if one is None:
            return evaluation_doc(self._look(), contest, of, self._standings())
        return choosing_doc(contest, one, self.rows, self._gallery)

    def _standings(self) -> tuple[RankedCandidate, ...]:
        number = self.rows.refs[self.view.cursor].round
        return self.rows.rounds[number][1] if number >= 0 else ()

    def _offered(self) -> tuple[str, ...]:
        several = len(self._look().contests) > 1
        ids = tuple(id for id in self.OFFERED if id != "candidates.next" or several)
        if self.rows.question is not None:
            return ("candidates.choose", "candidates.reject", *ids)
        return ("candidates.answer", *ids) if self.rows.asks_more else ids

    @on(RowView.Chosen, "#sheet")
    def _chosen(self) -> None:
        self._draw_below()

    # -- what the keys do --------------------------------------------------------------------------------------------

    @on(RowView.Opened)
    def _row_opened(self, event: RowView.Opened) -> None:
        event.prevent_default()  # A sheet closes on enter.
        one, contest = self.candidate, self.contest
        if event.view is self.plot or contest is None:
            return
        if one is None:
            self.action_evaluation()
        else:
            shown, status = self.rows.shown, self.rows.status(one.entrant)
            whole = candidate_doc(contest, one, whole=True, shown=shown, gallery=self._gallery, status=status)
            self.app.push_screen(Sheet(whole))

    def action_copy(self) -> None:
        if (one := self.candidate) is not None:
            self.services.copy(one.output, f"the output of candidate {one.number}")

    def action_mark(self) -> None:
        """Mark the candidate that others are compared with, or unmark it."""
        if (one := self.candidate) is not None:
            self._marked = None if self._marked == one.entrant.index else one.entrant.index
            here = self.view.cursor
            self._rows = self._made()
            self._draw(here, below=False)

    def action_beside(self, what: str) -> None:
        """Two candidates side by side: the marked one (else the winner, else the first) and the one here."""
        here = self.candidate
        if here is None:
            self.services.say("Select a candidate first.")
            return
        others = [self._marked, self.rows.contest.winner, *(r.entrant.index for r in self._standings())]
        other = next((i for i in others if i is not None and i != here.entrant.index), None)
        against = self.rows.by_index(other) if other is not None else None
        if against is None:
            self.services.say("There is no other candidate to compare with.")
        else:
            self.app.push_screen(DiffSheet(beside(against, here, what, shown=self.rows.shown)))

    def action_evaluation(self) -> None:
        """The evaluator's request and answer."""
        of, contest = self.rows.round_of(self.view.cursor), self.contest
        if of is not None and contest is not None:
            self.app.push_screen(Sheet(evaluation_doc(self._look(), contest, of, self._standings())))

    def action_plot(self) -> None:
        """Show or hide the plot of quality against cost."""
        self._wants_plot = not self.has_class("-plot")
        self._draw_below()

    def action_close(self) -> None:
        """Close the plot that was asked for; else as every sheet does."""
        if self._wants_plot and self.has_class("-plot"):
            self.action_plot()
        else:
            super().action_close()

    def action_contest(self, step: int) -> None:
        """The candidates of another phase or visit."""
        count = len(self._look().contests)
        if count < 2:
            self.services.say("This run has no other candidates.")
            return
        self._number, self._marked = (self._number + step) % count, None
        self._rows = self._made()
        self._show()

    def action_context(self) -> None:
        """Show the candidate's newest call in the Bench."""
        one = self.candidate
        if one is None or not one.calls:
            self.services.say("This row has no call to show.")
            return
        place = next((call.place for call in reversed(one.calls) if call.place.turn), one.calls[-1].place)
        self.dismiss()
        self._go_to(place)

    # -- choosing ----------------------------------------------------------------------------------------------------

    @property
    def rows(self) -> CandidateRows:
        assert isinstance(self._rows, CandidateRows)
        return self._rows

    @property
    def candidate(self) -> RankedCandidate | None:
        """The one under the cursor."""
        return self.rows.candidate(self.view.cursor)

    def _question(self) -> Event | None:
        question = self.rows.question
        if question is None:
            self.services.say("The run does not wait for a choice. With 'evaluator: human' in the file it asks you.")
            return None
        return question

    def action_choose(self) -> None:
        """Give the person's choice, with a reason if there is one."""
        question, here = self._question(), self.candidate
        if question is None:
            return
        offered = list(question.data["candidates"])
        mode = question.data.get("mode", "pick_one")
        if mode != "pick_one":
            listed = " ".join(f"{number}={self._number_of(index)}" for number, index in enumerate(offered, 1))
            example = "2, 1, 3" if mode == "rank_all" else "70, 90, 55"
            words = f"{example}   for the candidates {listed}"
            self.ask("rank" if mode == "rank_all" else "rate", placeholder=words, done=self._sender(question, ""))
            return
        if here is None or here.entrant.index not in offered:
            self.services.say("Go to one of the candidates that are marked with ?")
            return
        number = offered.index(here.entrant.index) + 1
        needs = bool(self.rows.shown.get("reason"))
        why = "your reason (required)" if needs else "your reason (optional)"
        self.ask(
            f"choose {here.number}",
            placeholder=f"{why} · enter chooses it",
            done=self._sender(question, f"Candidate {number}", needs=needs),
        )

    def _number_of(self, index: int) -> str:
        one = self.rows.by_index(index)
        return one.number if one is not None else str(index)

    def _sender(self, question: Event, pick: str, *, needs: bool = False) -> Callable[[str], str | None]:
        def done(text: str) -> str | None:
            said = text.strip()
            if not pick and not said:
                return "Give a number for each candidate."
            if needs and not said:
                return "Say why: the file asks for a reason."
            self._send(question, f"{pick}: {said}" if pick and said else pick or said)
            return None

        return done

    def _send(self, question: Event, text: str) -> None:
        if not self._answer(question, text):
            self.services.say("Too late: the run is no longer waiting for this answer.", "warning")

    def action_reject(self) -> None:
        """Choose none of them, after asking: the phase fails."""
        question = self._question()
        if question is None:
            return
        if REJECT not in question.data.get("options", ()):
            self.services.say("The file does not let you reject all (allow_reject_all).")
            return

        def answered(answer: str | None) -> None:
            if answer == "reject":
                self._send(question, REJECT)

        answers = (("keep", "k", "Keep choosing"), ("reject", "r", "Reject all"))
        self.app.push_screen(ChoiceDialog("Reject all candidates?", "The phase fails then.", answers), answered)

    def action_answer(self) -> None:
        """Answer what else the run asks, the reason of a choice for example."""
        self._ask(unasked=False)
