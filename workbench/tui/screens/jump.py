"""Jump to a pane: a letter on each, and a key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.geometry import Region
from textual.screen import ModalScreen
from textual.widgets import Static

from workbench.tui.keys import bindings
from workbench.tui.text import plain

LETTERS = {"tree": "t", "context": "c", "detail": "d", "dock": "l"}


class JumpScreen(ModalScreen[str]):
    """Gives the id of the chosen pane, or None."""

    CSS_PATH = "jump.tcss"
    BINDINGS: ClassVar[list[BindingType]] = bindings("dialog")

    def __init__(self, targets: Mapping[str, Region]) -> None:
        super().__init__()
        self._targets = {LETTERS[name]: (name, region) for name, region in targets.items() if name in LETTERS}

    def compose(self) -> ComposeResult:
        for letter, (_, region) in self._targets.items():
            label = Static(plain(f" {letter} "), classes="jump")
            label.styles.offset = (region.x + 1, region.y)
            yield label

    def on_key(self, event: events.Key) -> None:
        if event.key in self._targets:
            event.stop()
            self.dismiss(self._targets[event.key][0])

    def action_close(self) -> None:
        self.dismiss(None)

    def on_click(self, event: events.Click) -> None:
        offset = event.screen_offset
        name = next((name for name, region in self._targets.values() if region.contains(*offset)), None)
        self.dismiss(name)
