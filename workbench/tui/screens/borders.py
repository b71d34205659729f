"""Borders between panes that the mouse can drag: what is the same on every screen that has some."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from textual import events
from textual.screen import Screen, ScreenResultType
from textual.timer import Timer

from workbench.tui.widgets.rowview import RowView

FRAME = 1 / 30
"""Seconds between two layouts while a border is dragged, however often the terminal tells where the mouse is."""

Border = Literal["edge", "title", "middle"]
"""The last column of a pane, its title line, or a line between two columns of its rows."""
Sizes = tuple[int | None, ...]
"""Sizes that the user chose for each border of a screen; None for its own."""


class _Drag(Struct):
    """A border under the button: of which pane, where it was taken, and the sizes before."""

    view: RowView
    border: Border
    before: Sizes
    to: tuple[int, int]
    """Where the mouse is, in cells of the screen."""
    placed: tuple[int, int]
    """The place that the panes have followed it to."""


class BorderDragging(Screen[ScreenResultType]):
    """Follows the mouse within the limits of the keys; escape puts the panes back."""

    _drag: _Drag | None = None
    _pace: Timer | None = None

    def border_at(self, x: int, y: int) -> tuple[RowView, Border] | None:
        """The border at a cell of the screen; None where there is none that can be dragged."""
        raise NotImplementedError

    def place_border(self, view: RowView, border: Border, x: int, y: int) -> None:
        """Put a border at a cell of the screen, or as near to it as leaves room for both panes."""
        raise NotImplementedError

    def chosen_sizes(self) -> Sizes:
        """The sizes as they are chosen now."""
        raise NotImplementedError

    def choose_sizes(self, sizes: Sizes) -> None:
        """Back to sizes that were chosen before."""
        raise NotImplementedError

    def on_mouse_down(self, event: events.MouseDown) -> None:
        found = self.border_at(event.screen_x, event.screen_y)
        if found is None or event.button != 1 or self._drag is not None:
            return
        at = (event.screen_x, event.screen_y)
        self._drag = _Drag(*found, self.chosen_sizes(), at, at)
        found[0].capture_mouse()
        self.clear_selection()
        self._light(found)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        drag = self._drag
        if drag is None:
            self._light(self.border_at(event.screen_x, event.screen_y))
            return
        if self.app.mouse_captured is not drag.view:  # A dialog that opened has taken the mouse.
            self._end_drag()
            return
        drag.to = (event.screen_x, event.screen_y)
        if self._pace is None:
            self._follow()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        if self._drag is not None:
            self._drag.to = (event.screen_x, event.screen_y)
            self._place()
            self._end_drag()
            self._light(self.border_at(event.screen_x, event.screen_y))

    def on_key(self, event: events.Key) -> None:
        if event.key == "escape" and (drag := self._drag) is not None:
            event.stop()
            self._end_drag()
            self.choose_sizes(drag.before)

    def _follow(self) -> None:
        """Lay out for where the mouse is, and not again before the next frame."""
        self._pace = self.set_timer(FRAME, self._follow) if self._place() else None

    def _place(self) -> bool:
        """Put the border where the mouse is; False when it is there already."""
        drag = self._drag
        if drag is None or drag.to == drag.placed:
            return False
        drag.placed = drag.to
        self.place_border(drag.view, drag.border, *drag.to)
        return True

    def _end_drag(self) -> None:
        drag, self._drag = self._drag, None
        if self._pace is not None:
            self._pace.stop()
            self._pace = None
        if drag is not None:
            drag.view.release_mouse()
        self._light(None)

    def _light(self, found: tuple[RowView, Border] | None) -> None:
        """Show which border the mouse would take, and no other."""
        for view in self.query(RowView):
            lit = found[1] if found is not None and found[0] is view else ""
            if view.lit != lit:
                view.lit = lit
                view.styles.pointer = "default" if not lit else "ns-resize" if lit == "title" else "ew-resize"
                view.redraw()
