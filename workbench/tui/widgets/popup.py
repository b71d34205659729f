"""A small list that floats below the cursor: what may be written there."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual import events
from textual.geometry import Offset, Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from workbench.language.edit.completion import Item
from workbench.tui.contracts import palette_of
from workbench.tui.widgets.draw import strip_of
from workbench.views.cells import Span, fit, flat

MOST_ROWS = 9
MOST_CELLS = 60

_TOKENS = {
    "key": "code-key",
    "column": "code-key",
    "value": "code-number",
    "filter": "code-template",
    "name": "code-template",
    "function": "accent",
    "table": "name",
    "keyword": "dim",
}


class Popup(Widget):
    """Shows items, one of them chosen. It never has the focus: the area below it hands over its keys."""

    ALLOW_SELECT = False

    class Taken(Message):
        """An item was taken."""

        def __init__(self, item: Item) -> None:
            super().__init__()
            self.item = item

    class Chosen(Message):
        """Another item is under the mark."""

        def __init__(self, item: Item) -> None:
            super().__init__()
            self.item = item

    class Closed(Message):
        """Nothing was taken."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.items: tuple[Item, ...] = ()
        self.chosen = 0
        self._top = 0
        self.display = False

    def open(self, items: Sequence[Item], at: Offset, room: Size) -> None:
        """Show items below a cell of the screen, above it where there is more room."""
        self.items, self.chosen, self._top = tuple(items), 0, 0
        rows = min(len(self.items), MOST_ROWS)
        width = min(MOST_CELLS, room.width, max(cell_len(self._text(item)) for item in self.items) + 2)
        below = room.height - at.y - 2
        y = at.y + 1 if below >= rows or below >= at.y - 1 else at.y - rows
        rows = min(rows, below if y > at.y else at.y)
        self.styles.width, self.styles.height = width, max(1, rows)
        self.styles.offset = (max(0, min(at.x, room.width - width)), max(0, y))
        self.display = True
        self.refresh()
        self.post_message(self.Chosen(self.items[0]))

    def close(self) -> None:
        """Take the list away."""
        if self.display:
            self.display = False
            self.post_message(self.Closed())

    def takes(self, key: str) -> bool:
        """Returns whether a key is for the list; it is then done."""
        if not self.display:
            return False
        steps = {"down": 1, "up": -1, "pagedown": MOST_ROWS, "pageup": -MOST_ROWS, "ctrl+n": 1, "ctrl+p": -1}
        if key in steps:
            self._move(steps[key])
        elif key in ("enter", "tab"):
            self.post_message(self.Taken(self.items[self.chosen]))
        elif key == "escape":
            self.close()
        else:
            return False
        return True

    def _move(self, step: int) -> None:
        last = len(self.items) - 1
        wanted = self.chosen + step
        self.chosen = (wanted % (last + 1)) if abs(step) == 1 else max(0, min(wanted, last))
        height = max(1, self.size.height)
        self._top = max(self.chosen - height + 1, min(self._top, self.chosen))
        self.refresh()
        self.post_message(self.Chosen(self.items[self.chosen]))

    @staticmethod
    def _text(item: Item) -> str:
        return flat(f"{item.text}  {item.detail}")

    def render_line(self, y: int) -> Strip:
        palette = palette_of(self)
        index = self._top + y
        if index >= len(self.items):
            return Strip.blank(self.size.width, self.rich_style)
        item = self.items[index]
        on = index == self.chosen
        name, width = flat(item.text), self.size.width - 2
        detail = fit(item.detail, max(0, width - cell_len(name) - 2), "right") if item.detail else ""
        more = "▼" if index == self._top + self.size.height - 1 and index < len(self.items) - 1 else " "
        gap = " " * max(0, width - cell_len(name) - cell_len(detail))
        spans: list[Span] = [
            ("▌" if on else " ", "cursor"),
            (name, "bold" if on else _TOKENS.get(item.kind, "plain")),
            (gap, "plain"),
            (detail, "dim"),
            (more, "faint"),
        ]
        tone = palette.tone("cursor") if on else None
        base = self.rich_style + tone if tone is not None else self.rich_style
        return strip_of(spans, self.size.width, palette, base, palette.over("cursor") if on else None)

    def on_click(self, event: events.Click) -> None:
        index = self._top + event.y
        if index < len(self.items):
            self.post_message(self.Taken(self.items[index]))
