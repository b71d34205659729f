"""Sweep: many strategies tried on one run, one after the other; it can be stopped, and one can be taken."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event as Flag
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.binding import BindingType

from workbench.context.spec import SpecError
from workbench.engine.definition import DefinitionError
from workbench.engine.sweep import Candidate, Subject, Sweep, candidates, sweeping
from workbench.store.faults import StoreError
from workbench.tui.keys import bindings, hints
from workbench.tui.rows.sweep import SweepRows
from workbench.tui.screens.sheet import Sheet
from workbench.tui.widgets.rowview import RowView
from workbench.workspace.comparing import definition_of
from workbench.workspace.wiring import encodings

if TYPE_CHECKING:
    from workbench.workspace.project import Project


class SweepSheet(Sheet):
    """The strategies as they are tried. Enter takes one, and goes back."""

    PALETTE: ClassVar[tuple[str, ...]] = ("sweep", "sheet", "list")
    BINDINGS: ClassVar[list[BindingType]] = bindings("sweep")
    OFFERED: ClassVar[tuple[str, ...]] = ("list.open", "sweep.stop", "sweep.plot", "sheet.find", "sheet.close")

    def __init__(self, project: Project, run: str, specs: tuple[str, ...], take: Callable[[str], None]) -> None:
        super().__init__(SweepRows(Sweep((), (), ()), run, 0, is_over=False))
        self.view.selecting = True
        self._project, self._run_name, self._specs = project, run, specs
        self._take = take
        self._tried: tuple[Candidate, ...] = ()
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
        store, found = self._project.store, Sweep((), (), ())
        try:
            state = store.state(store.find(self._run_name))
            subject = Subject(state.session_id or state.run_id, state, definition_of(state))
            self._tried = tuple(
                {one.label: one for spec in self._specs for one in candidates((spec,), [subject.definition])}.values()
            )
        except (SpecError, DefinitionError, StoreError) as fault:
            self.app.call_later(self._failed, str(fault))
            return
        for found in sweeping([subject], self._tried, encodings(), self._project.around.prices):
            if self._stopped.is_set():
                break
            self.app.call_later(self._show_so_far, found, subject.name, False)
        self.app.call_later(self._show_so_far, found, subject.name, True)

    def _failed(self, reason: str) -> None:
        self.dismiss()
        self.app.say(reason, "error")

    def _show_so_far(self, found: Sweep, name: str, is_over: bool) -> None:
        self._rows = SweepRows(found, name, len(self._tried), is_over=is_over, tick=len(found.rows))
        self.view.show(self._rows)
        if is_over:
            self._is_over = True
            self.footer.offer(hints(self.offered, self.app.keys))

    def action_stop(self) -> None:
        """Stop trying; what was tried stays."""
        if self._is_over:
            self.app.say("Nothing is being tried any more.")
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
