"""Sweep: many strategies tried on one run or on all that match a filter, at the prices of one provider or of several,
one after the other; it can be stopped, and one can be taken."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event as Flag
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct
from msgspec.structs import replace
from textual import on, work
from textual.binding import BindingType

from workbench.analysis.sweep import RECORDED, Candidate, Sweep, candidates, sweeping
from workbench.context.strategy import SpecError
from workbench.engine.definition import DefinitionError
from workbench.models.encodings import encodings
from workbench.models.repricing import PricesError, lifetime_of
from workbench.store.faults import StoreError
from workbench.store.run_filter import FilterError
from workbench.tui.bindings import bindings
from workbench.tui.screens.sheet import Sheet
from workbench.tui.widgets.rowview import RowView
from workbench.views.sweep import SweepRows
from workbench.workspace.comparing import matching, pricing_of, subjects_of

if TYPE_CHECKING:
    from workbench.workspace.project import Project


class SweepRequest(Struct, frozen=True):
    """What is to be tried on what, at whose prices."""

    specs: tuple[str, ...]
    filter: str = ""
    """Of the stored runs to try them on; empty for the run at hand."""
    providers: tuple[str, ...] = ()
    """Empty for the prices of the runs' own models."""
    cache_ttl: str = ""
    """How long a cache keeps what was sent (``5m``); empty for what providers and marks say."""


def asked_for(text: str) -> SweepRequest:
    """What a person wrote: strategies, ``runs FILTER``, ``provider NAME`` and ``cache-ttl TIME``, with `` ; `` between
    them."""
    parts = [part.strip() for part in text.split(" ; ") if part.strip()]
    filters = [part.removeprefix("runs ").strip() for part in parts if part.startswith("runs ")]
    providers = [part.removeprefix("provider ").strip() for part in parts if part.startswith("provider ")]
    lifetimes = [part.removeprefix("cache-ttl ").strip() for part in parts if part.startswith("cache-ttl ")]
    specs = [part for part in parts if not part.startswith(("runs ", "provider ", "cache-ttl "))]
    return SweepRequest(tuple(specs), " ".join(filters), tuple(providers), next(reversed(lifetimes), ""))


class SweepSheet(Sheet):
    """The strategies as they are tried. Enter takes one, and goes back."""

    PALETTE: ClassVar[tuple[str, ...]] = ("sweep", "sheet", "list")
    BINDINGS: ClassVar[list[BindingType]] = bindings("sweep")
    OFFERED: ClassVar[tuple[str, ...]] = ("list.open", "sweep.stop", "sweep.plot", "sheet.find", "sheet.close")

    def __init__(self, project: Project, run: str, asked: SweepRequest, take: Callable[[str], None]) -> None:
        super().__init__(SweepRows(Sweep((), (), ()), run, 0, is_over=False))
        self.view.selecting = True
        self._project, self._run_name, self._asked = project, run, asked
        self._take = take
        self._tried: tuple[Candidate, ...] = ()
        self._of = 0
        """How often something is tried: each strategy at each provider."""
        self._stopped = Flag()
        self._is_over = False

    @property
    def offered(self) -> tuple[str, ...]:
        return tuple(id for id in self.OFFERED if id != "sweep.stop" or not self._is_over)

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
            wanted = matching(store, asked.filter) if asked.filter else [store.find(self._run_name)]
            if not wanted:
                self.app.call_later(self._failed, f"no stored run matches {asked.filter}")
                return
            subjects, lost = subjects_of(store, wanted)
            definitions = [subject.definition for subject in subjects]
            known = [one for spec in asked.specs for one in candidates((spec,), definitions)]
            self._tried = tuple({one.label: one for one in known}.values())
            prices = self._project.environment.prices
            lasting = lifetime_of(asked.cache_ttl) if asked.cache_ttl else None
            pricings = [pricing_of(prices, name, lasting) for name in dict.fromkeys(asked.providers or (RECORDED,))]
        except (SpecError, DefinitionError, StoreError, FilterError, PricesError) as fault:
            self.app.call_later(self._failed, str(fault))
            return
        self._of = len(self._tried) * len(pricings)
        name = subjects[0].name if len(subjects) == 1 else f"{len(subjects)} runs"
        for found in sweeping(subjects, self._tried, encodings(), pricings):
            if self._stopped.is_set():
                break
            found = replace(found, excluded=(*lost, *found.excluded))
            self.app.call_later(self._show_so_far, found, name, False)
        self.app.call_later(self._show_so_far, found, name, True)

    def _failed(self, reason: str) -> None:
        self.dismiss()
        self.services.say(reason, "error")

    def _show_so_far(self, found: Sweep, name: str, is_over: bool) -> None:
        self._rows = SweepRows(found, name, self._of, is_over=is_over, tick=len(found.rows))
        self.view.show(self._rows)
        if is_over:
            self._is_over = True
            self.offer(self.offered)

    def action_stop(self) -> None:
        """Stop trying; what was tried stays."""
        if self._is_over:
            self.services.say("Nothing is being tried any more.")
        self._stopped.set()

    def action_plot(self) -> None:
        self.app.push_screen(Sheet(self.rows.plot(lambda: self.app.size.height)))

    @on(RowView.Opened)
    def _row_opened(self, event: RowView.Opened) -> None:
        event.prevent_default()
        if event.index < len(self.rows):
            label = self.rows.sweep.rows[event.index].label
            self.dismiss()
            self._take(label)
