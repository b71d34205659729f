"""The one list widget: a title, fixed heads and rows that are drawn on demand, with a cursor, a thumb and the mouse."""

from __future__ import annotations

from collections import OrderedDict
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from workbench.tui.keys import bindings
from workbench.tui.palette import Palette
from workbench.tui.rows.cells import Row
from workbench.tui.rows.model import Rows
from workbench.tui.widgets.draw import row_strip, selected, thumb, title_strip

CACHED_STRIPS = 1024
WHEEL_LINES = 3


class RowView(ScrollView, can_focus=True):
    """Draws a ``Rows``. With ``selecting`` false there is no cursor: the keys scroll."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("list")

    class Chosen(Message):
        """The cursor moved to another row."""

        def __init__(self, view: RowView, index: int) -> None:
            super().__init__()
            self.view = view
            self.index = index

        @property
        def control(self) -> RowView:
            return self.view

    class Opened(Chosen):
        """Enter, or a double click, on a row."""

    class TitleClicked(Message):
        """A click on the title line, at a cell from the left."""

        def __init__(self, view: RowView, x: int) -> None:
            super().__init__()
            self.view = view
            self.x = x

        @property
        def control(self) -> RowView:
            return self.view

    def __init__(
        self, rows: Rows, *, id: str, selecting: bool = True, follows: bool = False, edge: bool = False
    ) -> None:
        super().__init__(id=id)
        self.rows = rows
        self.cursor = 0
        self.selecting = selecting
        self.follows = follows
        """Whether a cursor on the last row stays on the last row while rows are added."""
        self.edge = edge
        """Whether a line divides this pane from the one to its right."""
        self.needle = ""
        """What is searched for: marked wherever it shows."""
        self.joints: dict[int, str] = {}
        """Where a line of a neighbour meets the title line, by cell."""
        self.edge_joints: dict[int, str] = {}
        """Where a title line of the right neighbour meets the edge, by line."""
        self._count = 0
        self._strips: OrderedDict[tuple[object, ...], Strip] = OrderedDict()
        self._dragging = False

    # -- content -----------------------------------------------------------------------------------------------------

    def show(self, rows: Rows | None = None, cursor: int | None = None) -> None:
        """Draw other rows, or the same ones after they changed; the cursor stays where it can."""
        if rows is not None:
            self.rows = rows
        self._measure(cursor)
        if cursor is not None and not self.selecting:
            self.scroll_to(y=cursor, animate=False, force=True)
        self.refresh()

    @property
    def inner_width(self) -> int:
        """Cells for rows: all but the edge."""
        return max(1, self.size.width - 1)

    @property
    def head_count(self) -> int:
        """Lines above the rows, the title included."""
        return 1 + len(self.rows.heads(self.inner_width))

    @property
    def page(self) -> int:
        """Rows that show at once."""
        return max(1, self.size.height - self.head_count)

    def _measure(self, cursor: int | None = None) -> None:
        """Count the rows for the width there is, and put the cursor where it belongs."""
        at_end = self.follows and self.cursor >= self._count - 1
        self.rows.lay_out(self.inner_width)
        self._count = len(self.rows)
        size = Size(self.size.width, self._count + self.head_count)
        if size != self.virtual_size:
            self.virtual_size = size
        wanted = cursor if cursor is not None else self._count - 1 if at_end else self.cursor
        self.cursor = max(0, min(wanted, self._count - 1))
        if self.selecting:
            self.keep_in_view()

    def on_resize(self) -> None:
        self._measure()

    def forget(self) -> None:
        """Drop drawn lines: the theme changed."""
        self._strips.clear()
        self.refresh()

    # -- cursor ------------------------------------------------------------------------------------------------------

    @property
    def at(self) -> int:
        """The row that a command means: the one under the cursor, else the first in view."""
        return self.cursor if self.selecting else round(self.scroll_y)

    def move_to(self, index: int) -> None:
        """Put the cursor on a row, and say so."""
        index = max(0, min(index, self._count - 1))
        if not self.selecting or not self._count:
            self.scroll_to(y=index, animate=False, force=True)
            return
        changed, self.cursor = index != self.cursor, index
        self.keep_in_view()
        self.refresh()
        if changed:
            self.post_message(self.Chosen(self, index))

    def keep_in_view(self) -> None:
        """Scroll no more than needed to show the cursor."""
        top, page = round(self.scroll_y), self.page
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False, force=True)
        elif self.cursor >= top + page:
            self.scroll_to(y=self.cursor - page + 1, animate=False, force=True)

    def _step(self, lines: int) -> None:
        if self.selecting:
            self.move_to(self.cursor + lines)
        else:
            self.scroll_to(y=round(self.scroll_y) + lines, animate=False, force=True)

    def action_down(self) -> None:
        self._step(1)

    def action_up(self) -> None:
        self._step(-1)

    def action_page(self, pages: int) -> None:
        self._step(pages * max(1, self.page - 1))

    def action_first(self) -> None:
        self._step(-self._count)

    def action_last(self) -> None:
        self._step(self._count)

    def action_open(self) -> None:
        self.post_message(self.Opened(self, self.at))

    def mark(self, needle: str) -> None:
        """Mark a text wherever it shows, without moving."""
        self.needle = needle
        self.refresh()

    def search(self, needle: str, step: int, *, again: bool) -> bool:
        """Move to the next row that holds the needle; False when none does."""
        self.needle = needle
        found = self.rows.find(needle, self.at + step if again else self.at, step)
        self.refresh()
        if found is not None:
            self.move_to(found)
        return found is not None or not needle

    # -- mouse -------------------------------------------------------------------------------------------------------

    def _on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, WHEEL_LINES)

    def _on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, -WHEEL_LINES)

    def _wheel(self, event: events.MouseEvent, lines: int) -> None:
        event.stop()
        event.prevent_default()
        self.scroll_to(y=round(self.scroll_y) + lines, animate=False, force=True)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if event.x == self.size.width - 1 and event.y > 0 and self._count > self.page:
            self._dragging = True
            self.capture_mouse()
            self._drag_to(event.y)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._dragging:
            self._drag_to(event.y)

    def on_mouse_up(self) -> None:
        if self._dragging:
            self._dragging = False
            self.release_mouse()

    def _drag_to(self, y: int) -> None:
        track = max(1, self.size.height - 1)
        self.scroll_to(y=round((y - 1) / track * self._count - self.page / 2), animate=False, force=True)

    def on_click(self, event: events.Click) -> None:
        if event.y == 0:
            self.post_message(self.TitleClicked(self, event.x))
            return
        index = round(self.scroll_y) + event.y - self.head_count
        if event.x == self.size.width - 1 or event.y < self.head_count or not 0 <= index < self._count:
            return
        if self.selecting:
            self.move_to(index)
        if event.chain >= 2:
            self.action_open()

    # -- selection of text with the mouse ----------------------------------------------------------------------------

    @property
    def allow_select(self) -> bool:
        return True

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text, as it stands on the screen."""
        total = self.head_count + self._count
        first = 0 if selection.start is None else selection.start.y
        last = total - 1 if selection.end is None else min(selection.end.y, total - 1)
        lines = [self._line_text(y) for y in range(first, last + 1)]
        if not lines:
            return None
        if selection.end is not None and last == selection.end.y:
            lines[-1] = lines[-1][: selection.end.x]
        if selection.start is not None:
            lines[0] = lines[0][selection.start.x :]
        return "\n".join(line.rstrip() for line in lines), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()

    def _line_text(self, y: int) -> str:
        heads = self.rows.heads(self.inner_width)
        if y == 0:
            return "".join(text for text, _ in self.rows.title)
        if y <= len(heads):
            return heads[y - 1].text
        return self.rows.row(y - 1 - len(heads), self.inner_width).text

    # -- drawing -----------------------------------------------------------------------------------------------------

    @property
    def palette(self) -> Palette:
        palette: Palette = self.app.palette  # type: ignore[attr-defined]
        return palette

    def render_line(self, y: int) -> Strip:
        """One line of the pane as it stands on the screen."""
        if y == 0:
            return title_strip(
                self.rows.title,
                self.rows.title_right,
                self.size.width,
                self.palette,
                self.rich_style,
                focus=self.has_focus,
                joints=self.joints,
            )
        width = self.inner_width
        # A pane may be drawn at a new width before it is told of it.
        self.rows.lay_out(width)
        heads = self.rows.heads(width)
        if y <= len(heads):
            return self._with_edge(self._strip(heads[y - 1], width, "bar", y, ""), y)
        index = round(self.scroll_y) + y - 1 - len(heads)
        line = index + 1 + len(heads)
        if index < len(self.rows):
            row = self.rows.row(index, width)
            tone, marker = self._cursor_tone(index, row)
            return self._with_edge(self._strip(row, width, tone, line, marker), y)
        words = self.rows.empty if not len(self.rows) else ()
        text = words[index - 1] if 0 < index <= len(words) else ""
        return self._with_edge(self._strip(Row(((f"  {text}", "dim"),)), width, "", line, ""), y)

    def _cursor_tone(self, index: int, row: Row) -> tuple[str, str]:
        if not self.selecting or index != self.cursor:
            return row.tone, ""
        return ("cursor", "▌") if self.has_focus else ("cursor-blurred", "▏")

    def _strip(self, row: Row, width: int, tone: str, line: int, marker: str) -> Strip:
        chosen = self.text_selection
        span = chosen.get_span(line) if chosen is not None else None
        palette = self.palette
        key = (row, width, tone, marker, self.needle, palette.name, span)
        strip = self._strips.get(key)
        if strip is None:
            background = palette.tone(tone)
            base = self.rich_style + background if background is not None else self.rich_style
            over = palette.over(tone)
            strip = row_strip(row, width, palette, base, over=over, marker=marker, needle=self.needle)
            if span is not None:
                strip = selected(strip, span, self.screen.get_component_rich_style("screen--selection"))
            self._strips[key] = strip
            if len(self._strips) > CACHED_STRIPS:
                self._strips.popitem(last=False)
        else:
            self._strips.move_to_end(key)
        return strip.apply_offsets(0, line)

    def _with_edge(self, strip: Strip, y: int) -> Strip:
        glyph, token = ("│", "rule") if self.edge else (" ", "plain")
        if self.edge:
            glyph = self.edge_joints.get(y, glyph)
        if y in thumb(self.size.height, self._count, self.page, round(self.scroll_y)):
            glyph, token = "┃", "title-focus" if self.has_focus else "dim"
        return Strip([*strip, Segment(glyph, self.rich_style + self.palette[token])], strip.cell_length + 1)
