"""Jump to a pane: a letter on each, and a key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.geometry import Region
from textual.screen import ModalScreen
from textual.widgets import Static

from workbench.tui.bindings import bindings
from workbench.tui.text import plain

LETTERS = {"tree": ("t", "Cascade"), "context": ("c", "Context"), "detail": ("d", "Message"), "dock": ("l", "Log")}
"""Panes with their letter and what they are called where they do not show."""


class JumpScreen(ModalScreen[str]):
    """Gives the id of the chosen pane, or None. A pane that has no room has its letter and name in the last line."""

    CSS_PATH = "jump.tcss"
    BINDINGS: ClassVar[list[BindingType]] = bindings("dialog")

    def __init__(self, panes: Callable[[], Mapping[str, Region]]) -> None:
        """``panes``: where each is now; one without an area does not show."""
        super().__init__()
        self._panes = panes

    def compose(self) -> ComposeResult:
        yield Static(id="jump-line")
        for name in LETTERS:
            yield Static(id=f"jump-{name}", classes="jump")

    def on_mount(self) -> None:
        self._place()
        # The screen below is laid out again when the terminal has another size, after this one has noticed it.
        self.app.screen_stack[-2].screen_layout_refresh_signal.subscribe(self, lambda _: self._place())

    def _place(self) -> None:
        """Put each letter on its pane."""
        panes, x = self._panes(), 1
        for name, (letter, called) in LETTERS.items():
            label = self.query_one(f"#jump-{name}", Static)
            label.display = name in panes
            region = panes.get(name, Region())
            # Over the rule before a title, so that the title can still be read.
            words = f"{letter} " if region.area else f" {letter} {called} "
            label.styles.width = len(words)
            label.styles.offset = (region.x, region.y) if region.area else (x, self.size.height - 1)
            label.update(plain(words))
            x += 0 if region.area else len(words) + 1
        line = self.query_one("#jump-line", Static)
        line.display = x > 1
        line.styles.offset = (0, self.size.height - 1)

    def on_key(self, event: events.Key) -> None:
        found = next((name for name in self._panes() if LETTERS.get(name, ("",))[0] == event.key), None)
        if found is not None:
            event.stop()
            self.dismiss(found)

    def action_close(self) -> None:
        self.dismiss(None)

    def on_click(self, event: events.Click) -> None:
        label = event.widget.id if event.widget is not None else None
        if label is not None and label.startswith("jump-"):
            self.dismiss(label.removeprefix("jump-"))
            return
        offset = event.screen_offset
        self.dismiss(next((name for name, region in self._panes().items() if region.contains(*offset)), None))
