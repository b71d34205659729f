"""A sheet: one thing over the whole screen, to read, search and copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import ModalScreen

from workbench.tui.bindings import bindings
from workbench.tui.screens.base import WorkbenchScreen
from workbench.tui.widgets.rowview import RowView
from workbench.views.model import Rows, difference_from
from workbench.views.text import TextRows


class Sheet(WorkbenchScreen[None], ModalScreen[None]):
    """Shows rows of any kind."""

    OFFERED: ClassVar[tuple[str, ...]] = ("sheet.close", "sheet.find", "sheet.filter", "sheet.copy")
    """The commands in its footer."""

    FIXED: ClassVar[tuple[str, ...]] = ("app.help",)
    """Those at its right end."""
    CLEARS: ClassVar[str] = "sheet.close"
    SEARCHED: ClassVar[str] = "text"
    CSS_PATH: ClassVar[Any] = "sheet.tcss"
    needs_focus: ClassVar[bool] = True
    PALETTE: ClassVar[tuple[str, ...]] = ("sheet", "list")
    BINDINGS: ClassVar[list[BindingType]] = bindings("sheet")

    LOOKS_EVERY: ClassVar[float] = 0.25
    """Seconds between two looks at a text that still grows."""

    def __init__(self, rows: Rows, look: Callable[[], TextRows] | None = None) -> None:
        """With ``look``, which gives a text as it is now, it is drawn anew while it grows."""
        super().__init__()
        self._text_now = look
        self._rows = rows
        self.view = RowView(rows, id="sheet", selecting=False)

    @property
    def offered(self) -> tuple[str, ...]:
        """The keys of this one in the footer."""
        return self.OFFERED

    def compose(self) -> ComposeResult:
        yield self.view
        yield self.footer

    def on_mount(self) -> None:
        self.view.focus()
        self.offer_keys()
        self.call_after_refresh(self._show)
        if self._text_now is not None:
            self.set_interval(self.LOOKS_EVERY, self._read_again)

    def _read_again(self) -> None:
        now, shown = self._text_now() if self._text_now is not None else None, self._rows
        if now is not None and isinstance(shown, TextRows) and (now.title, now.copy) != (shown.title, shown.copy):
            self._rows = now
            self.view.show(now)

    def offer_keys(self) -> None:
        """Show its keys in the footer. One that has other keys first has its way out at the right end, where it stays
        in a narrow terminal."""
        closes = () if self.offered[:1] == ("sheet.close",) else ("sheet.close",)
        self.offer((id for id in self.offered if id not in closes), (*self.FIXED, *closes))

    def _show(self) -> None:
        self.view.show(self._rows)
        focus = getattr(self._rows, "focus", 0)
        if focus and hasattr(self._rows, "first_row"):
            self.view.scroll_to(y=max(0, self._rows.first_row(focus) - self.view.size.height // 3), animate=False)

    def filter(self, view: RowView, text: str) -> None:
        """Lists the columns line by line while they are filtered."""
        list_out = getattr(self._rows, "list_out", None)
        if list_out is not None:
            list_out(listed=bool(text))
        super().filter(view, text)

    def main_list(self) -> RowView:
        return self.view

    def action_close(self) -> None:
        """Drop the filter, else the marks of a search; without either, back."""
        if not self.clear_found():
            self.dismiss()

    def action_copy(self) -> None:
        whole = getattr(self._rows, "copy", None)
        self.services.copy(_drawn(self._rows, self.view.inner_width) if whole is None else whole, "the text")

    @on(RowView.Opened)
    def _opened(self, event: RowView.Opened) -> None:
        self.opened(event.index)

    def opened(self, row: int) -> None:
        """Enter on a row: back."""
        self.dismiss()


class ChangesSheet(Sheet):
    """The changes of a file, with a way on to other comparisons."""

    PALETTE: ClassVar[tuple[str, ...]] = ("changes", "sheet", "list")
    BINDINGS: ClassVar[list[BindingType]] = bindings("changes")
    OFFERED: ClassVar[tuple[str, ...]] = ("sheet.close", "changes.compare", "sheet.find", "sheet.filter", "sheet.copy")

    def __init__(self, rows: Rows, compare: Callable[[], object]) -> None:
        super().__init__(rows)
        self._compare = compare

    def action_compare(self) -> None:
        """Close, and choose what is compared instead."""
        self.dismiss()
        self._compare()


class DiffSheet(Sheet):
    """Two texts compared. Brackets lead from difference to difference."""

    PALETTE: ClassVar[tuple[str, ...]] = ("diff", "sheet", "list")
    BINDINGS: ClassVar[list[BindingType]] = bindings("diff")
    OFFERED: ClassVar[tuple[str, ...]] = ("sheet.close", "diff.next", "sheet.find", "sheet.filter", "sheet.copy")

    def __init__(self, rows: Rows) -> None:
        super().__init__(rows)
        self.view.selecting = True

    def _show(self) -> None:
        super()._show()
        self.view.move_to(difference_from(self._rows, -1, 1, self.view.inner_width) or 0)

    def action_difference(self, step: int) -> None:
        """Go to the next difference, or the one before."""
        found = difference_from(self._rows, self.view.cursor, step, self.view.inner_width)
        if found is None:
            self.services.say(NO_DIFFERENCE[step])
        else:
            self.view.move_to(found)


NO_DIFFERENCE = {1: "No further difference.", -1: "No earlier difference."}
"""What is said at either end."""


class ListSheet(Sheet):
    """A list as high as its rows, and below it what the row under the cursor is about."""

    def __init__(self, rows: Rows) -> None:
        super().__init__(rows)
        self.view.selecting = True
        self.below = RowView(Rows(), id="below", selecting=False)

    def compose(self) -> ComposeResult:
        yield self.view
        yield self.below
        yield self.footer

    def about(self, row: int) -> Rows:
        """What is shown of a row below the list; ``row`` may lie behind the last one of an empty list."""
        raise NotImplementedError

    def _show(self) -> None:
        super()._show()
        self.apply_sizes()

    def apply_sizes(self) -> None:
        """The list has what it needs, at most three fifths of the screen."""
        self.view.styles.height = max(4, min(self.view.wanted + 1, self.size.height * 3 // 5))
        self.call_after_refresh(self._show_below)

    def on_resize(self) -> None:
        self.call_after_refresh(self.apply_sizes)

    @on(RowView.Chosen, "#sheet")
    def _show_below(self) -> None:
        self.below.show(rows := self.about(self.view.cursor), 0)
        self.below.scroll_to(y=max(0, getattr(rows, "focus", 0) - 2), animate=False)


def _drawn(rows: Rows, width: int) -> str:
    """All rows as they are drawn, with the lines above them."""
    lines = (*rows.heads(width), *(rows.row(at, width) for at in range(len(rows))))
    return "\n".join(line.text.rstrip() for line in lines)
