"""A recorded request and today's over the whole screen; where a re-run is paused at it, keys to go on from there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.binding import BindingType

from workbench.tui.bindings import bindings
from workbench.tui.screens.sheet import NO_DIFFERENCE, Sheet
from workbench.tui.widgets.rowview import RowView
from workbench.views.requests import RequestRows


class RequestSheet(Sheet):
    """Two requests. Brackets lead from difference to difference, enter opens what is folded."""

    CSS_PATH = "sheet.tcss"
    PALETTE: ClassVar[tuple[str, ...]] = ("request", "sheet", "list")
    BINDINGS: ClassVar[list[BindingType]] = bindings("request")
    OFFERED: ClassVar[tuple[str, ...]] = (
        "request.next",
        "request.previous",
        "sheet.close",
        "request.edit",
        "list.open",
        "sheet.find",
        "sheet.copy",
    )

    def __init__(self, rows: RequestRows, file: Path) -> None:
        """``file`` is the cascade that ``o`` opens."""
        super().__init__(rows)
        self.view.selecting = True
        self._compared = rows
        self._file = file

    def _show(self) -> None:
        super()._show()
        self.view.move_to(self._compared.step(-1, 1) or 0)

    def action_difference(self, step: int) -> None:
        """Go to the next difference, or the one before."""
        found = self._compared.step(self.view.cursor, step)
        if found is None:
            self.services.say(NO_DIFFERENCE[step])
        else:
            self.view.move_to(found)
            top = self.view.line_of_row(found) - self.view.page // 3
            self.view.scroll_to(y=max(0, top), animate=False, force=True)

    def action_edit(self) -> None:
        """Open the cascade file at the line behind the difference."""
        self.services.navigation.edit_outside(self._file, max(1, self._compared.line_at(self.view.cursor)))

    @on(RowView.Opened)
    def _row_opened(self, event: RowView.Opened) -> None:
        event.prevent_default()  # A sheet closes on enter.
        if self._compared.toggle(event.index):
            self.view.forget()
            self.view.show(self._compared, event.index)


class ChangedSheet(RequestSheet):
    """The first changed request of a run that is paused there."""

    PALETTE: ClassVar[tuple[str, ...]] = ("changed", "request", "sheet", "list")
    BINDINGS: ClassVar[list[BindingType]] = bindings("changed")
    OFFERED: ClassVar[tuple[str, ...]] = ("changed.live", "changed.stop", *RequestSheet.OFFERED)

    def __init__(self, rows: RequestRows, file: Path, go: Callable[[], None], stop: Callable[[], None]) -> None:
        super().__init__(rows, file)
        self._go = go
        self._stop = stop

    def action_live(self) -> None:
        """Make this call and what follows."""
        self.dismiss()
        self._go()

    def action_stop(self) -> None:
        """End the run here."""
        self.dismiss()
        self._stop()
