"""The screen for a terminal that is too small for the panes."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widgets import Static

from workbench.tui.text import plain

SMALLEST = Size(40, 12)


def too_small(size: Size) -> bool:
    """Returns whether the panes have no room."""
    return size.width < SMALLEST.width or size.height < SMALLEST.height


class TooSmall(ModalScreen[None]):
    """Covers everything until the app takes it away again. The run goes on beneath it."""

    CSS_PATH = "too_small.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("q", "leave", "quit", show=False)]

    def compose(self) -> ComposeResult:
        yield Static(id="notice")

    def on_mount(self) -> None:
        self._tell(self.app.size)

    def on_resize(self, event: events.Resize) -> None:
        self._tell(event.size)

    def _tell(self, size: Size) -> None:
        words = f"terminal too small: {size.width}×{size.height}\n{SMALLEST.width}×{SMALLEST.height} at least\nq quits"
        self.query_one("#notice", Static).update(plain(words))

    async def action_leave(self) -> None:
        await self.app.run_action("leave")
