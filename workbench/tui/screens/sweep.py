"""Sweep: many strategies tried on one run or on all that match a filter, at the prices of one provider or of several,
one after the other; it can be stopped, and one can be taken."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from threading import Event as Flag
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct
from msgspec.structs import replace
from textual import on, work
from textual.binding import BindingType

from workbench.analysis.sweep import (
    RECORDED,
    Excluded,
    StrategyResult,
    Subject,
    Sweep,
    TriedStrategy,
    candidates,
    sweeping,
)
from workbench.context.strategy import SpecError, completed
from workbench.durations import lifetime_of
from workbench.engine.definition import DefinitionError
from workbench.models.encodings import encodings
from workbench.store.faults import StoreError
from workbench.store.run_filter import FilterError
from workbench.tui.bindings import bindings
from workbench.tui.screens.base import WorkbenchScreen
from workbench.tui.screens.dialog import ChoiceDialog
from workbench.tui.screens.plot import PlotSheet
from workbench.tui.screens.sheet import ListSheet, Sheet
from workbench.tui.widgets.rowview import RowView
from workbench.views.cells import flat
from workbench.views.keys import told
from workbench.views.live_runs import LiveRunRows, plan_lines
from workbench.views.model import Rows
from workbench.views.sweep import ORDERS, SweepRows, reference_of
from workbench.views.text import TextRows, text_lines
from workbench.workspace.comparing import ComparedRun, matching, pricing_of, subjects_of
from workbench.workspace.live_runs import LivePlan, LiveResult, LiveRunError, plan_live, ran_under, run_live

if TYPE_CHECKING:
    from workbench.workspace.project import Project


class SweepChoice(Struct, frozen=True):
    """A strategy that was chosen in a sweep, and all that a comparison needs to show the numbers of the sweep."""

    a: ComparedRun
    """What the sweep compares the strategy with."""
    b: ComparedRun
    provider: str
    """Whose prices count; ``recorded`` for those of the run's own models."""
    cache_ttl: str
    """As asked for; empty for what providers and marks say."""
    runs: int
    """Over how many runs the sweep sums up."""


class SweepRequest(Struct, frozen=True):
    """The strategies to try, the runs to try them on, and the providers whose prices count."""

    specs: tuple[str, ...]
    filter: str = ""
    """Of the stored runs to try them on; empty for the run at hand."""
    providers: tuple[str, ...] = ()
    """Empty for the prices of the runs' own models."""
    cache_ttl: str = ""
    """How long a cache keeps a prefix (``5m``); empty for what providers and marks say."""


def asked_for(text: str) -> SweepRequest:
    """Reads the text of a person: strategies, ``runs FILTER``, ``provider NAME`` and ``cache-ttl TIME``, with `` ; ``
    between them."""
    parts = [part.strip() for part in text.split(" ; ") if part.strip()]
    filters = [part.removeprefix("runs ").strip() for part in parts if part.startswith("runs ")]
    providers = [part.removeprefix("provider ").strip() for part in parts if part.startswith("provider ")]
    lifetimes = [part.removeprefix("cache-ttl ").strip() for part in parts if part.startswith("cache-ttl ")]
    specs = [part for part in parts if not part.startswith(("runs ", "provider ", "cache-ttl "))]
    return SweepRequest(tuple(specs), " ".join(filters), tuple(providers), next(reversed(lifetimes), ""))


def read_terms(text: str) -> tuple[float | None, str, str]:
    """A budget in US dollars, a model, and what is wrong with the text: ``0.10 ; model openai/gpt-5``."""
    budget, model = None, ""
    for part in filter(None, (part.strip() for part in text.split(";"))):
        if part.startswith("model "):
            model = part.removeprefix("model ").strip()
            continue
        try:
            budget = float(part.lstrip("$"))
        except ValueError:
            budget = -1.0
        if not 0 <= budget < math.inf:
            return None, model, f"'{part}' is not a budget: write US dollars, such as 0.10"
    return budget, model, ""


LEAST_PLOT = 14
"""Lines below the list from which the plot stands there."""


class LiveSheet(Sheet):
    """Runs of strategies as they go on, one after the other; each is a stored run like any other."""

    PALETTE: ClassVar[tuple[str, ...]] = ("sweep", "sheet", "list")
    BINDINGS: ClassVar[list[BindingType]] = bindings("sweep")

    def __init__(self, project: Project, plan: LivePlan, over: Callable[[], None]) -> None:
        """``over`` is called when the last one has ended."""
        self._results = {index: LiveResult(run) for index, run in enumerate(plan.runs)}
        super().__init__(LiveRunRows(plan, tuple(self._results.values()), is_over=False))
        self.view.selecting = True
        self._project, self._plan, self._over = project, plan, over
        self._stop: Callable[[], object] = lambda: None
        self._is_over = False

    @property
    def offered(self) -> tuple[str, ...]:
        return ("list.open", "sheet.find", "sheet.close") if self._is_over else ("sweep.stop", "sheet.find")

    def on_mount(self) -> None:
        self._run()

    def on_unmount(self) -> None:
        self._stop()

    @work(thread=True, exclusive=True, group="live-runs", exit_on_error=False)
    def _run(self) -> None:
        def changed(result: LiveResult) -> None:
            self.app.call_later(self._show_result, result)

        async def main() -> None:
            task = asyncio.ensure_future(run_live(self._project, self._plan, changed))
            loop = asyncio.get_running_loop()
            self._stop = lambda: loop.is_closed() or loop.call_soon_threadsafe(task.cancel)
            await task

        fault = ""
        try:
            asyncio.run(main())
        except (StoreError, asyncio.CancelledError) as why:
            fault = str(why)
        self.app.call_later(self._ended, fault)

    def _show_result(self, result: LiveResult) -> None:
        at = self._plan.runs.index(result.run)
        self._results[at] = result
        self._draw()

    def _draw(self) -> None:
        self._rows = LiveRunRows(self._plan, tuple(self._results.values()), is_over=self._is_over)
        self.view.show(self._rows)

    def _ended(self, fault: str) -> None:
        self._is_over = True
        if fault:
            self.services.say(fault, "error")
        self._draw()
        self.offer_keys()
        self._over()

    def action_stop(self) -> None:
        """Stop the run that is under way, and start no other."""
        self._stop()

    def action_close(self) -> None:
        if self._is_over:
            super().action_close()
        else:
            self.services.say(told("Runs are active. Press {sweep.stop} to stop them."))

    def action_plot(self) -> None:
        self.services.say("Nothing to plot here.")

    action_mark = action_live = action_sort = action_plot

    @on(RowView.Opened)
    def _row_opened(self, event: RowView.Opened) -> None:
        event.prevent_default()
        result = self._results.get(event.index)
        if result is not None and (result.output or result.reason):
            title = (("Output", "title"), (f"  {flat(result.run.label)}", "name"))
            lines = text_lines(result.output or result.reason, whole=True)
            self.app.push_screen(Sheet(TextRows(lines, title, copy=result.output)))


class SweepSheet(ListSheet):
    """The strategies as they are tried. Enter compares one, and ``esc`` there comes back."""

    PALETTE: ClassVar[tuple[str, ...]] = ("sweep", "sheet", "list")
    BINDINGS: ClassVar[list[BindingType]] = bindings("sweep")
    WORDS: ClassVar[Mapping[str, str]] = {"list.open": "compare"}
    OFFERED: ClassVar[tuple[str, ...]] = (
        "list.open",
        "sweep.mark",
        "sweep.live",
        "sweep.sort",
        "sweep.stop",
        "sweep.plot",
        "sheet.find",
        "sheet.close",
    )

    def __init__(self, project: Project, run: str, asked: SweepRequest, take: Callable[[SweepChoice], object]) -> None:
        super().__init__(SweepRows(Sweep((), (), ()), run, 0, is_over=False))
        self._project, self._run_name, self._asked = project, run, asked
        self._run_id = ""
        """Found once the sweep begins."""
        self._take = take
        self._tried: tuple[TriedStrategy, ...] = ()
        self._called = ""
        self._of = 0
        """How often something is tried: each strategy at each provider."""
        self._stopped = Flag()
        self._is_over = False
        self._subjects: list[Subject] = []
        self._lost: list[Excluded] = []
        self._marked: tuple[str, ...] = ()
        self._found = Sweep((), (), ())
        """The strategies tried so far, as they were given."""
        self._order = ""

    @property
    def offered(self) -> tuple[str, ...]:
        unfit = ("sweep.stop",) if self._is_over else ("sweep.mark", "sweep.live")
        return tuple(id for id in self.OFFERED if id not in unfit)

    @property
    def rows(self) -> SweepRows:
        assert isinstance(self._rows, SweepRows)
        return self._rows

    def on_mount(self) -> None:
        self._try_all()

    def on_unmount(self) -> None:
        self._stopped.set()

    @work(thread=True, exclusive=True, group="sweep", exit_on_error=False)
    def _try_all(self) -> None:
        store, found, asked = self._project.store, Sweep((), (), ()), self._asked
        try:
            self._run_id = store.find(self._run_name)
            wanted = matching(store, asked.filter) if asked.filter else [self._run_id]
            if not wanted:
                self.app.call_later(self._failed, f"no stored run matches {asked.filter}")
                return
            subjects, lost = subjects_of(store, wanted)
            self._subjects, self._lost = subjects, lost
            definitions = [subject.definition for subject in subjects]
            self._tried = candidates(asked.specs, definitions)
            ran = ran_under(store, subjects, self._tried)
            prices = self._project.environment.prices
            lasting = lifetime_of(asked.cache_ttl) if asked.cache_ttl else None
            pricings = [pricing_of(prices, name, lasting) for name in dict.fromkeys(asked.providers or (RECORDED,))]
        except (SpecError, DefinitionError, StoreError, FilterError, ValueError) as fault:
            self.app.call_later(self._failed, str(fault))
            return
        self._of = len(self._tried) * len(pricings)
        name = subjects[0].name if len(subjects) == 1 else f"{len(subjects)} runs"
        for found in sweeping(subjects, self._tried, encodings(), pricings):
            if self._stopped.is_set():
                break
            found = replace(found.with_lost(lost), ran=ran)
            self.app.call_later(self._show_so_far, found, name, False)
        self.app.call_later(self._show_so_far, found, name, True)

    def _failed(self, reason: str) -> None:
        self.dismiss()
        self.services.say(reason, "error")

    def _show_so_far(self, found: Sweep, name: str, is_over: bool) -> None:
        self._called = name
        self._draw(found, is_over)
        if is_over:
            self._is_over = True
            self.offer_keys()
            self._go_to_cheapest()

    def _go_to_cheapest(self) -> None:
        """Put the cursor on the strategy that the verdict names, unless it was moved already."""
        rows = self.rows.sweep.rows
        least = next((at for at, row in enumerate(rows) if row.is_cheapest), 0)
        if self.view.cursor == 0:
            self.view.move_to(least)

    def _draw(self, found: Sweep, is_over: bool) -> None:
        tick, marked, order = len(found.rows), self._marked, self._order
        self._found = found
        self._rows = SweepRows(found, self._called, self._of, is_over=is_over, tick=tick, marked=marked, order=order)
        self._show()

    def about(self, row: int) -> Rows:
        """The plot of all of them, where there is room for one."""
        return self.rows.plot(lambda: self.below.size.height)

    def apply_sizes(self) -> None:
        super().apply_sizes()
        self.below.display = len(self.rows) > 1 and self.size.height - self.view.wanted >= LEAST_PLOT
        if not self.below.display:
            self.view.styles.height = "1fr"

    # -- run live ----------------------------------------------------------------------------------------------------

    def action_mark(self) -> None:
        """Mark a strategy to run live, or unmark it."""
        if not self._is_over or self.view.cursor >= len(self.rows):
            return
        label = self.rows.sweep.rows[self.view.cursor].label
        rest = tuple(one for one in self._marked if one != label)
        self._marked = rest if label in self._marked else (*self._marked, label)
        self._draw(self._found, True)

    def action_sort(self) -> None:
        """The next order; the cursor stays on its strategy."""
        orders = list(ORDERS)
        self._order = orders[(orders.index(self._order) + 1) % len(orders)]
        rows = self.rows.sweep.rows
        chosen = rows[self.view.cursor] if self.view.cursor < len(rows) else None
        self._draw(self._found, self._is_over)
        if chosen is not None:
            self.view.move_to(self.rows.sweep.rows.index(chosen))

    def action_live(self) -> None:
        """Price runs of what is marked, else of the strategy under the cursor, and ask before they start."""
        if not self._is_over:
            self.services.say("Wait until all strategies have been tried.")
        elif self.view.cursor < len(self.rows):
            self._plan_live()

    def _plan_live(self, max_cost: float | None = None, model: str = "") -> None:
        found = self.rows.sweep
        labels = self._marked or (found.rows[self.view.cursor].label,)
        self._price_live(found, labels, max_cost, model)

    @work(thread=True, exclusive=True, group="live", exit_on_error=False)
    def _price_live(self, found: Sweep, labels: tuple[str, ...], max_cost: float | None, model: str) -> None:
        try:
            plan = plan_live(self._project, self._subjects, found, labels, max_cost, model)
        except LiveRunError as fault:
            self.app.call_later(self._not_live, str(fault))
            return
        self.app.call_later(self._ask_live, plan)

    def _not_live(self, reason: str) -> None:
        self.services.say(reason, "error")
        self._ask_terms()

    def _ask_live(self, plan: LivePlan) -> None:
        def answered(answer: str | None) -> None:
            if answer == "run":
                self.app.push_screen(LiveSheet(self._project, plan, self._ran))
            elif answer == "other":
                self._ask_terms()

        answers = (("run", "r", "Run"), ("other", "b", "Another budget or model"), ("keep", "k", "Do not run"))
        text = "\n".join(plan_lines(plan))
        self.app.push_screen(ChoiceDialog("Run live?", text, answers), answered)

    def _ask_terms(self) -> None:
        """Ask for a budget and a model, and price the runs again."""

        def done(text: str) -> str | None:
            max_cost, model, wrong = read_terms(text)
            if not wrong:
                self._plan_live(max_cost, model)
            return wrong or None

        words = "0.10, US dollars for all runs; or: 0.10 ; model PROVIDER/MODEL"
        self.ask("budget", placeholder=words, done=done, check=lambda text: read_terms(text)[2])

    def _ran(self) -> None:
        """The runs are over: what is known of the strategies now."""
        found = self._found
        self._marked = ()
        self._draw(replace(found, ran=ran_under(self._project.store, self._subjects, self._tried)), True)

    def action_stop(self) -> None:
        """Stop trying; what was tried stays."""
        if self._is_over:
            self.services.say("Nothing is running.")
        self._stopped.set()

    def action_plot(self) -> None:
        plot = self.rows.plot(lambda: self.app.size.height)
        self.app.push_screen(PlotSheet(plot, self._project.root, f"sweep-{self._run_name}"))

    @on(RowView.Opened)
    def _row_opened(self, event: RowView.Opened) -> None:
        event.prevent_default()
        if event.index < len(self.rows):
            self._take(self._choice(self.rows.sweep.rows[event.index]))

    def _choice(self, row: StrategyResult) -> SweepChoice:
        """On the run at hand; where the sweep is of others, on the first of them."""
        names = self.rows.sweep.runs
        used = [one.state.run_id for one in self._subjects if one.name in names]
        run = self._run_id if self._run_id in used else used[0]
        a, b = ComparedRun(run, reference_of(row.label)), ComparedRun(run, row.label)
        return SweepChoice(a, b, row.pricing, self._asked.cache_ttl, self.rows.sweep.count)


def ask_for_sweep(
    screen: WorkbenchScreen[None], project: Project, run: str, take: Callable[[SweepChoice], object]
) -> None:
    """Ask on a screen for strategies, and try them all on a run; ``take`` shows the chosen one above the list."""

    def done(text: str) -> str | None:
        screen.app.push_screen(SweepSheet(project, run, asked_for(text), take))
        return None

    words = "strategies with ranges and lists, ' ; ' between them; also 'runs FILTER', 'provider NAME', 'cache-ttl 1h'"
    screen.ask(
        "sweep",
        value="selective+mask(after=1..6)",
        placeholder=words,
        also="; runs FILTER takes more runs · ; provider NAME · ; cache-ttl 1h",
        between=" ; ",
        completed=completed,
        done=done,
    )
