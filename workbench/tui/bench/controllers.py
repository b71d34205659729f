"""The controllers behind the keys of the Bench. They are imported behind the first frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.tui.bench.annotating import Annotating
from workbench.tui.bench.asking import Asking
from workbench.tui.bench.editing import Editing
from workbench.tui.bench.inspecting import Inspecting
from workbench.tui.bench.pictures import Pictures
from workbench.tui.bench.running import Running
from workbench.tui.bench.saved_view import SavedView
from workbench.tui.bench.testing import Testing

if TYPE_CHECKING:
    from workbench.tui.bench.stage import Layout


class Controllers:
    """One of each kind, for one session."""

    asking: Asking

    def __init__(self, layout: Layout, drawn: Callable[[], None]) -> None:
        """``drawn`` draws the panes of every screen again: a picture is there."""
        self.inspecting = Inspecting(layout, lambda *, unasked: self.asking.answer_over_candidates(unasked=unasked))
        self.asking = Asking(layout, self.inspecting)
        self.running = Running(layout, self.asking.begin_anew)
        self.editing = Editing(layout, self.running)
        self.testing = Testing(layout)
        self.annotating = Annotating(layout)
        self.pictures = Pictures(layout, drawn)
        self.view = SavedView(layout)

    def take_frame(self, screen: object) -> None:
        """Take what the engine sent, and ask what it asks; ``screen`` is the one on top."""
        if self.running.take_frame():
            self.asking.close_settled(screen)
            self.ask_if_asked()
        self.asking.tell_unheard()

    def ask_if_asked(self) -> None:
        """Show what waits for the user, unless another screen is open, or something is being written."""
        self.asking.ask_if_asked()
        self.testing.show_change()
