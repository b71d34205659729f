"""The tree pane: a list whose rows fold."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.binding import BindingType
from textual.message import Message

from workbench.tui.bindings import bindings
from workbench.tui.widgets.rowview import RowView

FOLDS = {"▸": True, "▾": False}
"""The signs of branches, and whether a click on them unfolds."""


class TreePane(RowView):
    """Says which node should fold or unfold; what that means is the state's business."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("tree")
    scrolls_at_edge = False

    class Fold(Message):
        """Unfold (True) or fold the node of a row."""

        def __init__(self, index: int, unfold: bool) -> None:
            super().__init__()
            self.index = index
            self.unfold = unfold

    def action_fold(self) -> None:
        self.post_message(self.Fold(self.cursor, False))

    def action_unfold(self) -> None:
        self.post_message(self.Fold(self.cursor, True))

    def on_click(self, event: events.Click) -> None:
        """A click on the sign of a branch folds or unfolds it, and chooses no other row."""
        row = round(self.scroll_y) + event.y - self.head_count
        if event.screen_offset != self._pressed or event.y < self.head_count or not 0 <= row < self._count:
            return
        at = 0
        for text, token in self._shown.row(row, self.inner_width).spans:
            sign = text.strip()
            if token == "faint" and sign in FOLDS and event.x == at + text.index(sign):
                event.prevent_default()
                self.post_message(self.Fold(self._origin(row), FOLDS[sign]))
                return
            at += cell_len(text)
