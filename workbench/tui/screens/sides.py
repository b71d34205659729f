"""The picker of what is compared: this run, the strategies of its file, built-in ones, one's own, and other runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import ClassVar

from textual import on, work
from textual.binding import BindingType
from textual.timer import Timer

from workbench.context.strategy import SpecError, completed
from workbench.engine.definition import DefinitionError
from workbench.store.faults import StoreError
from workbench.store.summary import RunSummary
from workbench.tui.bindings import bindings
from workbench.tui.screens.sheet import ListSheet
from workbench.tui.screens.sweep import SweepChoice, ask_for_sweep
from workbench.tui.widgets.rowview import RowView
from workbench.views.compare_words import ComparisonNote, sentences
from workbench.views.model import Rows
from workbench.views.runs import CardRows
from workbench.views.sides import FILE_CHANGES, SideChoices
from workbench.workspace.comparing import ComparedRun, SideChoice, compare_sources, pricing_of, source_of, spec_fault
from workbench.workspace.project import Project
from workbench.workspace.runs_poller import Listing, RunsRequest

LATER = 0.1
"""Seconds on a row after which it is weighed against A."""
WEIGHED = 200
"""Calls of a run, at most, that are weighed unasked: of more it takes seconds."""


class SidePicker(ListSheet):
    """Enter takes a row as B; A is chosen beside it, and both can be written. What B would send and cost stands below
    its parts."""

    OFFERED: ClassVar[tuple[str, ...]] = (
        "list.open",
        "sides.first",
        "sides.sweep",
        "sides.write",
        "sides.swap",
        "sheet.close",
        "sheet.find",
    )
    WORDS: ClassVar[Mapping[str, str]] = {"list.open": "compare with A"}
    PALETTE: ClassVar[tuple[str, ...]] = ("sides", "sheet", "list")
    SEARCHED: ClassVar[str] = "list"
    BINDINGS: ClassVar[list[BindingType]] = bindings("sides")

    def __init__(
        self,
        project: Project,
        choices: Sequence[SideChoice],
        a: ComparedRun,
        b: ComparedRun,
        chosen: Callable[[ComparedRun, ComparedRun], object],
        swept: Callable[[SweepChoice], object],
        changes: Callable[[], object] | None = None,
        *,
        is_settled: bool = False,
    ) -> None:
        """``chosen`` is called with both sides once B is taken, and ``swept`` once B is taken from a sweep, which stays
        open below. ``changes`` shows what was changed in the file: a row
        of its own, with the cursor on it. Another run is compared with the run that is shown until a person chooses A;
        ``is_settled``: one has."""
        self._choices = (*((FILE_CHANGES,) if changes is not None else ()), *choices)
        super().__init__(SideChoices(self._choices, a, b))
        self._project, self._chosen, self._changes, self._swept = project, chosen, changes, swept
        self.a, self.b = a, b
        self._is_settled, self._usual = is_settled, a
        self._weighed: dict[tuple[ComparedRun, ComparedRun], Sequence[ComparisonNote]] = {}
        """What is said of two sides; nothing of those that cannot be compared."""
        self._timer: Timer | None = None

    def on_mount(self) -> None:
        super().on_mount()
        at = next((i for i, one in enumerate(self._choices) if one.side == self.b), 0)
        self.call_after_refresh(self.view.move_to, 0 if self._changes is not None else at)

    def about(self, row: int) -> Rows:
        """The card of a run; of a strategy its parts, and what is said of it against A."""
        one = self._choices[row] if 0 <= row < len(self._choices) else None
        run = self._runs.get(one.side.run) if one is not None and one.kind in ("record", "run") else None
        assert isinstance(self._rows, SideChoices)
        if run is not None:
            return CardRows(Listing(RunsRequest("")), run)
        pair = self._pair(one) if one is not None and one.side.spec else None
        if pair is not None and pair not in self._weighed and self._is_short(pair):
            if self._timer is not None:
                self._timer.stop()
            self._timer = self.set_timer(LATER, partial(self._weigh, pair))
        return self._rows.about(row, self._weighed.get(pair, ()) if pair is not None else ())

    def _pair(self, one: SideChoice) -> tuple[ComparedRun, ComparedRun]:
        """A and B if a row is taken: what is A becomes B, and the two change places."""
        return (self.b if one.side == self.a else self.a), one.side

    def _is_short(self, pair: tuple[ComparedRun, ComparedRun]) -> bool:
        runs = [self._runs.get(side.run) for side in pair]
        return all(run is not None and run.answers <= WEIGHED for run in runs)

    @work(thread=True, exclusive=True, group="weigh", exit_on_error=False)
    def _weigh(self, pair: tuple[ComparedRun, ComparedRun]) -> None:
        try:
            prices = pricing_of(self._project.environment.prices, None).prices
            said = tuple(sentences(compare_sources(self._project, *pair, prices).comparison))
        except (SpecError, DefinitionError, StoreError):
            said = ()  # Taking the row says why.
        self.app.call_later(self._told, pair, said)

    def _told(self, pair: tuple[ComparedRun, ComparedRun], said: Sequence[ComparisonNote]) -> None:
        self._weighed[pair] = said
        if self.is_attached and (one := self._at()) is not None and self._pair(one) == pair:
            self.below.show(self.about(self.view.cursor))

    @cached_property
    def _runs(self) -> Mapping[str, RunSummary]:
        return {run.run_id: run for run in self._project.store.runs()}

    def _at(self) -> SideChoice | None:
        at = self.view.cursor
        return self._choices[at] if 0 <= at < len(self._choices) else None

    @on(RowView.Chosen, "#sheet")
    def _row_chosen(self) -> None:
        """Beside a run, A is the run that is shown; beside a strategy, what it was."""
        one = self._at()
        if one is None or self._is_settled:
            return
        shown = next((each.side for each in self._choices if each.kind == "record"), self._usual)
        if (a := shown if one.kind == "run" else self._usual) != self.a:
            self._mark(a, self.b)

    def action_first(self) -> None:
        """Make the row side A; what was A becomes B where the row was B."""
        one = self._at()
        if one is not None and one.kind != "changes":
            self._is_settled = True
            self._mark(one.side, self.a if one.side == self.b else self.b)

    def action_swap(self) -> None:
        """A becomes B, and B becomes A."""
        self._is_settled = True
        self._mark(self.b, self.a)

    def _mark(self, a: ComparedRun, b: ComparedRun) -> None:
        self.a, self.b = a, b
        self._rows = SideChoices(self._choices, a, b)
        self.view.show(self._rows)

    def action_write(self, value: str = "") -> None:
        """Ask for a strategy, which becomes B, or for both sides. What is wrong is said while it is written."""

        def side(text: str) -> ComparedRun:
            known = next((one.side for one in self._choices if one.name == text.strip()), None)
            return known if known is not None else source_of(self._project, text, self.a.run)

        def check(text: str) -> str:
            parts = [part for part in text.split(" vs ") if "(" in part or "+" in part]
            try:
                return next(filter(None, (spec_fault(self._project, self.a.run, part) for part in parts)), "")
            except (StoreError, DefinitionError) as fault:
                return str(fault)

        def done(text: str) -> str | None:
            first, both, second = text.partition(" vs ")
            if not first.strip() or (both and not second.strip()):
                return "A strategy, as in: selective+mask(after=3), or two sides: file vs OTHER-RUN"
            try:
                sides = [side(part) for part in ((first, second) if both else (first,))]
            except SpecError as fault:
                return check(text) or str(fault)
            except (StoreError, DefinitionError) as fault:
                return str(fault)
            self._take(sides[0] if both else self.a, sides[-1])
            return None

        words = [one.name for one in self._choices if one.kind != "changes"]
        placeholder = "selective+mask(after=3), or: file vs masked"
        self.ask(
            "sides",
            value=value,
            placeholder=placeholder,
            words=lambda: words,
            between=" vs ",
            completed=completed,
            check=check,
            done=done,
        )

    def action_sweep(self) -> None:
        """Ask for strategies and try them all on the run of side A; the one that is taken becomes B, and A what the
        sweep compares it with."""
        ask_for_sweep(self, self._project, self.a.run, self._swept)

    def _take(self, a: ComparedRun, b: ComparedRun) -> None:
        self.dismiss()
        self._chosen(a, b)

    @on(RowView.Opened)
    def _row_opened(self, event: RowView.Opened) -> None:
        event.prevent_default()
        one = self._at()
        if one is None:
            return
        if one.kind == "changes" and self._changes is not None:
            self.dismiss()
            self._changes()
        else:
            self._take(*self._pair(one))
