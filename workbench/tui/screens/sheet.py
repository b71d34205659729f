"""A sheet: one thing over the whole screen, to read, search and copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import ModalScreen
from textual.widget import Widget

from workbench.tui.keys import bindings, hints
from workbench.tui.rows.model import Rows
from workbench.tui.screens.finding import FindingScreen
from workbench.tui.widgets.rowview import RowView

if TYPE_CHECKING:
    from workbench.tui.app import WorkbenchApp


class Sheet(FindingScreen[None], ModalScreen[None]):
    """Shows rows of any kind."""

    OFFERED: ClassVar[tuple[str, ...]] = ("sheet.close", "sheet.find", "sheet.again", "sheet.filter", "sheet.copy")
    """What its footer shows."""

    CLEARS: ClassVar[str] = "sheet.close"
    SEARCHED: ClassVar[str] = "text"
    CSS_PATH: ClassVar[Any] = "sheet.tcss"
    needs_focus: ClassVar[bool] = True
    PALETTE: ClassVar[tuple[str, ...]] = ("sheet", "list")
    BINDINGS: ClassVar[list[BindingType]] = bindings("sheet")

    app: WorkbenchApp

    def __init__(self, rows: Rows) -> None:
        super().__init__()
        self._rows = rows
        self.view = RowView(rows, id="sheet", selecting=False)

    @property
    def offered(self) -> tuple[str, ...]:
        """What the footer shows of this one."""
        return self.OFFERED

    def compose(self) -> ComposeResult:
        yield self.view
        yield self.footer

    def on_mount(self) -> None:
        self.view.focus()
        self.footer.offer(hints(self.offered, self.app.keys))
        self.app.theme_changed_signal.subscribe(self, lambda _: self.view.forget())
        self.call_after_refresh(self._show)

    def _show(self) -> None:
        self.view.show(self._rows)
        focus = getattr(self._rows, "focus", 0)
        if focus and hasattr(self._rows, "first_row"):
            self.view.scroll_to(y=max(0, self._rows.first_row(focus) - self.view.size.height // 3), animate=False)

    def pane(self) -> RowView:
        return self.focused if isinstance(self.focused, RowView) else self.view

    def resting(self) -> Widget:
        return self.view

    def action_close(self) -> None:
        """Drop the filter, else the marks of a search; without either, back."""
        if not self.clear_found():
            self.dismiss()

    def action_copy(self) -> None:
        whole = getattr(self._rows, "copy", None)
        self.app.copy(_drawn(self._rows, self.view.inner_width) if whole is None else whole, "the text")

    @on(RowView.Opened)
    def _opened(self, event: RowView.Opened) -> None:
        self.opened(event.index)

    def opened(self, row: int) -> None:
        """Enter on a row: back."""
        self.dismiss()


def _drawn(rows: Rows, width: int) -> str:
    """All rows as they are drawn, with the lines above them."""
    lines = (*rows.heads(width), *(rows.row(at, width) for at in range(len(rows))))
    return "\n".join(line.text.rstrip() for line in lines)
