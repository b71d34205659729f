"""A text of several lines to write: the keys of all of them, in the order in which they were typed."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import TextArea

from workbench.tui.bindings import bindings
from workbench.tui.widgets.entry import InOrder

_OTHERS = ("f6", "f7")
"""Keys of Textual's area that mean something else in the whole app."""


class WritingArea(InOrder, TextArea, inherit_bindings=False):
    """Where something is written."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(one for one in TextArea.BINDINGS if not (isinstance(one, Binding) and one.key in _OTHERS)),
        *bindings("text"),
    ]

    def action_text_top(self) -> None:
        """Go to the first character."""
        self.move_cursor((0, 0))

    def action_text_bottom(self) -> None:
        """Go behind the last character."""
        self.move_cursor(self.document.end)
