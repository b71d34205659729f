"""A text of several lines to write: the keys of all of them, in the order in which they were typed."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType
from textual.widgets import TextArea

from workbench.tui.bindings import bindings
from workbench.tui.widgets.entry import InOrder


class WritingArea(InOrder, TextArea):
    """Where something is written."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("text")

    def action_text_top(self) -> None:
        """Go to the first character."""
        self.move_cursor((0, 0))

    def action_text_bottom(self) -> None:
        """Go behind the last character."""
        self.move_cursor(self.document.end)
