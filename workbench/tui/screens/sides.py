"""The picker of what is compared: this run, the strategies of its file, built-in ones, one's own, and other runs."""

from __future__ import annotations

from typing import Any, ClassVar

from textual import on
from textual.binding import BindingType

from workbench.engine.definition import DefinitionError
from workbench.store.faults import StoreError
from workbench.tui.bindings import bindings
from workbench.tui.screens.sheet import Sheet
from workbench.tui.widgets.rowview import RowView
from workbench.views.sides_of_comparison import SideRows
from workbench.workspace.comparing import ComparedRun, SideChoice, spec_fault
from workbench.workspace.project import Project


class SidePicker(Sheet):
    """Enter takes a row as B; A is chosen beside it, and a strategy can be written."""

    OFFERED: ClassVar[tuple[str, ...]] = ("list.open", "sides.first", "sides.write", "sheet.find", "sheet.close")
    PALETTE: ClassVar[tuple[str, ...]] = ("sides", "sheet", "list")
    SEARCHED: ClassVar[str] = "list"
    BINDINGS: ClassVar[list[BindingType]] = bindings("sides")

    def __init__(
        self, project: Project, choices: tuple[SideChoice, ...], a: ComparedRun, b: ComparedRun, chosen: Any
    ) -> None:
        """``chosen`` is called with both sides once B is taken."""
        super().__init__(SideRows(choices, a, b))
        self.view.selecting = True
        self._project, self._choices, self._chosen = project, choices, chosen
        self.a, self.b = a, b

    def _at(self) -> SideChoice | None:
        at = self.view.cursor
        return self._choices[at] if 0 <= at < len(self._choices) else None

    def action_first(self) -> None:
        """Make the row side A."""
        if (one := self._at()) is not None:
            self.a = one.side
            self._rows = SideRows(self._choices, self.a, self.b)
            self.view.show(self._rows)

    def action_write(self) -> None:
        """Ask for a strategy, which becomes B. What is wrong with it is said while it is written."""

        def check(text: str) -> str:
            try:
                return spec_fault(self._project, self.a.run, text) if text.strip() else ""
            except (StoreError, DefinitionError) as fault:
                return str(fault)

        def done(text: str) -> str | None:
            if wrong := check(text) or ("" if text.strip() else "A strategy, as in: selective+mask(after=3)"):
                return wrong
            self._take(ComparedRun(self.a.run, text.strip()))
            return None

        words = [one.name for one in self._choices if one.side.spec]
        self.ask("strategy", placeholder="selective+mask(after=3)", words=lambda: words, check=check, done=done)

    def _take(self, side: ComparedRun) -> None:
        self.dismiss()
        self._chosen(self.a, side)

    @on(RowView.Opened)
    def _row_opened(self, event: RowView.Opened) -> None:
        event.prevent_default()
        if (one := self._at()) is not None:
            self._take(one.side)
