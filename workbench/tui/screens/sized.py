"""Panes whose sizes the user chooses, by keys and by dragging, on the screens beside the Bench."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from textual.screen import ScreenResultType

from workbench.tui.contracts import services_of
from workbench.tui.screens.borders import Border, BorderDragging, Sizes
from workbench.tui.widgets.rowview import RowView


class Grip(Struct, frozen=True):
    """A border that moves. A size is that of the pane below it or to its right, in cells; of a ``middle`` it is what is
    to its left, in thousandths of the pane."""

    name: str
    """Under which its size is kept."""
    view: RowView
    border: Border
    now: int
    least: int
    most: int

    @property
    def axis(self) -> Literal["height", "width"]:
        return "height" if self.border == "title" else "width"


class SizedScreen(BorderDragging[ScreenResultType]):
    """A screen that names its borders and is told their sizes; they are kept for all workspaces."""

    def grips(self) -> Sequence[Grip]:
        """The borders that can be moved as the panes stand now."""
        raise NotImplementedError

    def apply_sizes(self) -> None:
        """Lay the panes out by what was chosen."""
        raise NotImplementedError

    def size_of(self, name: str) -> int | None:
        """The size that the user chose for a border; None for its own."""
        return services_of(self).sizes.get(name)

    def _set(self, grip: Grip, size: int) -> None:
        size = max(grip.least, min(size, max(grip.least, grip.most)))
        if size != self.size_of(grip.name):
            services_of(self).choose_size(grip.name, size)
            self.apply_sizes()

    def action_resize(self, axis: str, by: int) -> None:
        """Move the border of that axis, in cells."""
        grip = next((one for one in self.grips() if one.axis == axis), None)
        if grip is None:
            services_of(self).say(
                "No panes stand beside each other here." if axis == "width" else "There is one pane here."
            )
        else:
            self._set(grip, grip.now + {"title": by, "edge": -by, "middle": 10 * by}[grip.border])

    # -- the mouse ---------------------------------------------------------------------------------------------------

    def border_at(self, x: int, y: int) -> tuple[RowView, Border] | None:
        for grip in self.grips():
            region, on = grip.view.region, False
            if not region.contains(x, y):
                continue
            if grip.border == "title":
                on = y == region.y
            elif grip.border == "edge":
                on = x == region.right - 1 and y - region.y not in grip.view.thumb()
            else:
                on = self.is_middle(x - region.x, y - region.y)
            if on:
                return grip.view, grip.border
        return None

    def is_middle(self, x: int, y: int) -> bool:
        """Returns whether a cell of the pane with a ``middle`` is on that line."""
        return False

    def place_border(self, view: RowView, border: Border, x: int, y: int) -> None:
        grip = next((one for one in self.grips() if (one.view, one.border) == (view, border)), None)
        if grip is None:
            return
        region = view.region
        if border == "title":
            size = region.bottom - y
        elif border == "edge":
            size = grip.now + region.right - 1 - x
        else:
            size = -(-1000 * (x - region.x) // max(1, view.inner_width - 1))
        self._set(grip, size)

    def chosen_sizes(self) -> Sizes:
        return tuple(self.size_of(grip.name) for grip in self.grips())

    def choose_sizes(self, sizes: Sizes) -> None:
        for grip, size in zip(self.grips(), sizes, strict=False):
            services_of(self).choose_size(grip.name, size)
        self.apply_sizes()
