"""The one list widget: a title, fixed heads and rows that are drawn on demand, with a cursor, a thumb and the mouse."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar, NamedTuple

from textual import events
from textual.binding import BindingType
from textual.geometry import Offset, Region, Size
from textual.message import Message
from textual.strip import Strip

from workbench.tui.bindings import bindings
from workbench.tui.widgets.draw import thumb
from workbench.tui.widgets.line import SpanLine
from workbench.tui.widgets.lineview import LineView, ScreenLine
from workbench.views.cells import Row, Span, crop, target_at
from workbench.views.filter_result import FilterResult, Tally
from workbench.views.model import Filtered, Rows
from workbench.views.text import explained

WHEEL_LINES = 3
SLICE, PAUSE = 0.008, 0.02
"""Seconds of work at a time on what takes longer than a frame, and until the next slice."""


SHARE = 6
"""Lines that a row may go on for, however many rows are cut."""


class Spread:
    """Rows and lines count from 0."""

    def __init__(self, rows: Rows, width: int, page: int, selected: int) -> None:
        """Rows that are cut go on in further lines: the selected one if the ``page`` has lines for it, or free ones
        where it is told beside, then, if they may spread, as many from the top as there are free lines for. Where these
        are not enough for all, a long row has its share of them, and ends with an ellipsis. ``selected`` is -1 for
        none."""
        self._whole: dict[int, tuple[Row, ...]] = {}
        self._count = len(rows)
        if 0 <= selected < self._count:
            free = page - (self._count if rows.told_beside else 1)
            lines = rows.whole(selected, width) if free > 0 else ()
            self._show(selected, lines, free if len(lines) <= free + 1 else min(free, max(SHARE, page // 2)), width)
        if rows.spreads and self._count <= page:
            self._share_out(rows, width, page)
        self._whole = dict(sorted(self._whole.items()))

    def _share_out(self, rows: Rows, width: int, page: int) -> None:
        """Give the free lines to the rows that are cut, from the top: to those first that are whole by no more than
        their share."""
        if page <= len(self):
            return
        wholes = ((at, rows.whole(at, width)) for at in range(self._count))
        cut = {at: lines for at, lines in wholes if len(lines) > self._height(at)}
        share = self._share(cut, page)
        for position, lines in cut.items():
            if len(lines) <= min(share, page - len(self) + self._height(position) - 1) + 1:
                self._whole[position] = lines
        cut = {at: lines for at, lines in cut.items() if len(lines) > self._height(at)}
        for most in (self._share(cut, page), page):
            for position, lines in cut.items():
                more = self._height(position) - 1
                self._show(position, lines, max(more, min(most, page - len(self) + more)), width)

    def _share(self, cut: Collection[int], page: int) -> int:
        return max(SHARE, (page - len(self)) // max(1, len(cut)))

    def _height(self, position: int) -> int:
        return len(self._whole.get(position, (None,)))

    def _show(self, position: int, lines: tuple[Row, ...], more: int, width: int) -> None:
        """Show a row in its lines, if it has several: at most so many besides the first."""
        if more > 0 and len(lines) > more + 1:
            last = Row(crop((*lines[more].spans, ("…", "dim")), width), lines[more].tone)
            lines = (*lines[:more], last)
        if more > 0 and len(lines) > 1:
            self._whole[position] = lines

    def __len__(self) -> int:
        """Lines in all."""
        return self._count + sum(len(lines) - 1 for lines in self._whole.values())

    def lines_of(self, position: int) -> range:
        """The lines that a row takes."""
        before = sum(len(lines) - 1 for other, lines in self._whole.items() if other < position)
        first = position + before
        return range(first, first + self._height(position))

    def at(self, line: int) -> tuple[int, Row | None]:
        """The row that a line belongs to, and what stands there; None for a row in one line, drawn as ever."""
        position = line
        for other, lines in self._whole.items():
            taken = self.lines_of(other)
            if line in taken:
                return other, lines[line - taken.start]
            if line >= taken.stop:
                position -= len(lines) - 1
        return position, None


class Frame(NamedTuple):
    """What all lines of a pane have in common."""

    width: int
    """Cells for rows."""
    top: int
    """The number of the first line in view, from 0."""
    heads: Sequence[Row]
    """The lines between the title and the rows."""
    thumb: range
    """The lines of the edge that show which part of the rows is in view."""
    focus: bool


class RowView(LineView, can_focus=True):
    """Draws a ``Rows``, or those of them that a filter shows. With ``selecting`` false there is no cursor: the keys
    scroll. Whatever the filter, an index that goes in or out is that of a row among all."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("list")
    scrolls_at_edge = True
    """Whether a press beside the thumb scrolls also where an edge is; not where that can be dragged."""

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
        """The row under it; -1 where the filter shows none."""
        self.filter = ""
        self._shown = rows
        """The rows that the filter leaves."""
        self.selecting = selecting
        self.follows = follows
        """Whether a cursor on the last row stays on the last row while rows are added."""
        self.edge = edge
        """Whether a line divides this pane from the one to its right."""
        self.needle = ""
        """The text that is searched for; marked wherever it shows."""
        self.joints: dict[int, str] = {}
        """Where a line of a neighbour meets the title line, by cell."""
        self.edge_joints: dict[int, str] = {}
        """Where a title line of the right neighbour meets the edge, by line."""
        self.lit = ""
        """The border that the mouse can take here: ``edge``, ``title`` or none."""
        self._count = 0
        self._spread = Spread(rows, 1, 0, -1)
        self._dragging = False
        self._pressed: Offset | None = None
        """Where the button went down, on the screen: what ends elsewhere is not a click."""
        self._aimed = False
        """Whether the first of two clicks chose a row. Shown whole, that may move another one under the second."""
        self._tally: Tally | None = None
        self._found = -1
        """The row that the last search found."""
        self._jumping = False
        """Whether the first hit that the count finds is to be shown."""
        self._working = False
        self._renders = False
        """Whether Textual draws the lines of this pane just now."""
        self._common: Frame | None = None
        """What those lines have in common."""

    # -- content -----------------------------------------------------------------------------------------------------

    def show(self, rows: Rows | None = None, cursor: int | None = None) -> None:
        """Draw other rows, or the same ones after they changed; the cursor stays where it can."""
        if rows is not None:
            self.rows = rows
        self._shown = Filtered(self.rows, self.filter, self._clears) if self.filter else self.rows
        self._measure(cursor)
        if cursor is not None and not self.selecting:
            self.scroll_to(y=self._position(cursor), animate=False, force=True)
        self._count_hits()
        self.redraw()

    def filter_by(self, text: str) -> None:
        """Show only rows with a text; all of them again for an empty one."""
        before, self.filter = self.cursor, text
        self.show()
        if self.selecting and self.cursor not in (before, -1):
            self.post_message(self.Chosen(self, self.cursor))

    @property
    def _clears(self) -> str:
        """The command that takes a filter away on this screen."""
        return getattr(self.screen, "CLEARS", "view.clear")

    def _position(self, index: int) -> int:
        """Returns where a row stands among those that show, or the last one before it."""
        return self._shown.nearest(index) if isinstance(self._shown, Filtered) else index

    def _origin(self, position: int) -> int:
        """The row that stands there; -1 where none shows."""
        if not isinstance(self._shown, Filtered):
            return position
        return self._shown.origin(max(0, min(position, len(self._shown) - 1))) if len(self._shown) else -1

    @property
    def inner_width(self) -> int:
        """Cells for rows: all but the edge."""
        return max(1, self.size.width - 1)

    @property
    def head_count(self) -> int:
        """Lines above the rows, the title included."""
        return 1 + len(self._shown.heads(self.inner_width))

    @property
    def wanted(self) -> int:
        """Lines that show all of it, the title and what an empty list says included."""
        rows = len(self.rows)
        return self.head_count + (rows or len(explained(self.rows.empty, self.inner_width - 3)) + 1)

    @property
    def wanted_whole(self) -> int:
        """The same with no row cut, unless there are more rows than the screen has lines."""
        rows, width = self.rows, self.inner_width
        if len(rows) > self.screen.size.height:
            return self.wanted
        return self.wanted + sum(max(0, len(rows.whole(row, width)) - 1) for row in range(len(rows)))

    @property
    def page(self) -> int:
        """Rows that show at once."""
        return max(1, self.size.height - self.head_count)

    def _measure(self, cursor: int | None = None) -> None:
        """Count the rows for the width there is, and put the cursor where it belongs."""
        at_end = self.follows and self._position(self.cursor) >= self._count - 1
        self._shown.lay_out(self.inner_width)
        self._count = len(self._shown)
        wanted = self._position(self.cursor if cursor is None else cursor)
        wanted = self._count - 1 if cursor is None and at_end else wanted
        self.cursor = self._origin(max(0, min(wanted, self._count - 1)))
        self._spread_out()

    def _spread_out(self) -> None:
        """Give each row its lines, and keep those of the cursor in view."""
        self._spread = Spread(self._shown, self.inner_width, self.page, self._position(self.cursor))
        self.virtual_size = Size(self.size.width, len(self._spread) + self.head_count)
        if self.selecting:
            self.keep_in_view()

    def on_resize(self) -> None:
        self._measure()
        self._tally = None
        self._count_hits()

    # -- cursor ------------------------------------------------------------------------------------------------------

    @property
    def at(self) -> int:
        """The row that a command means: the one under the cursor, else the first in view."""
        return self.cursor if self.selecting else self._origin(round(self.scroll_y))

    @property
    def _looked_at(self) -> int:
        """Where a search goes on from: in a pane without a cursor the last find, as long as it is in view."""
        top = round(self.scroll_y)
        if self.selecting:
            return self._position(self.cursor)
        return self._found if top <= self._found < top + self.page else top

    def line_of_row(self, index: int) -> int:
        """The first line of a row, from 0: rows above it may show in several lines."""
        return self._spread.lines_of(self._position(index)).start

    def row_at(self, y: int) -> int | None:
        """The row that stands at a line of the widget; None for none."""
        line = y - self.head_count + round(self.scroll_y)
        return (
            self._origin(self._spread.at(line)[0]) if self.head_count <= y and 0 <= line < len(self._spread) else None
        )

    def move_to(self, index: int) -> None:
        """Put the cursor on a row, and say so."""
        self._move_to(self._position(index))

    def _move_to(self, position: int) -> None:
        position = max(0, min(position, self._count - 1))
        if not self.selecting or not self._count:
            self.scroll_to(y=position, animate=False, force=True)
            return
        index = self._origin(position)
        changed, self.cursor = index != self.cursor, index
        self._spread_out()
        self.redraw()
        if changed:
            self.post_message(self.Chosen(self, index))

    def keep_in_view(self) -> None:
        """Scroll no more than needed to show the cursor, and no rows away that there is room for."""
        now, page, lines = round(self.scroll_y), self.page, self._spread.lines_of(self._position(self.cursor))
        top = min(now, max(0, len(self._spread) - page))
        if (wanted := min(lines.start, max(top, lines.stop - page))) != now:
            self.scroll_to(y=wanted, animate=False, force=True)

    def _step(self, lines: int) -> None:
        if self.selecting:
            self._move_to(self._position(self.cursor) + lines)
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
        if self._count or not self.filter:
            self.post_message(self.Opened(self, self.at))

    def mark(self, needle: str) -> None:
        """Mark a text wherever it shows, without moving."""
        self.needle = needle
        self._count_hits()
        self.redraw()

    def search(self, needle: str, step: int, *, again: bool) -> bool:
        """Move to the next row that holds the needle; False when none does. In a very long text the count that goes on
        behind the scenes may find the first one later."""
        self.needle = needle
        found = self._shown.find(needle, self._looked_at + step if again else self._looked_at, step)
        self._measure()
        self._count_hits()
        if found is not None:
            self._found = found
            self._move_to(found)
        self._jumping = found is None and self._tally is not None and not self._tally.done
        self.redraw()
        return found is not None or not needle or self._jumping

    # -- work that takes longer than a frame -------------------------------------------------------------------------

    def _count_hits(self) -> None:
        """Count what the search finds, anew where rows or needle are others."""
        tally = self._tally
        if not self.needle:
            self._tally, self._jumping = None, False
        elif tally is None or (tally.rows, tally.needle, tally.length) != (self._shown, self.needle, self._count):
            self._tally = Tally(self._shown, self.needle)
            self._tally.go_on(SLICE)
        self._go_on_soon()

    def _go_on_soon(self) -> None:
        counting = self._tally is not None and not self._tally.done
        if (counting or self._shown.growing) and not self._working and self.is_attached:
            self._working = True
            self.set_timer(PAUSE, self._go_on)

    def _go_on(self) -> None:
        self._working = False
        if self._shown.growing:
            self._shown.go_on(SLICE)
            self._measure()
        tally = self._tally
        if tally is not None and not tally.done:
            tally.length = self._count
            tally.go_on(SLICE)
            if self._jumping and tally.hits:
                self._jumping = False
                self._found = tally.hits[0]
                self._move_to(self._found)
        self.redraw()
        self._go_on_soon()

    def _title(self) -> ScreenLine:
        found = FilterResult(self.filter, len(self._shown), len(self.rows), self._tally, self._looked_at)
        title, right = found.beside(self.rows.title, self.rows.title_right, self.size.width)
        return ScreenLine(Row(title), right=right, joints=tuple(self.joints.items()), lit=self.lit == "title")

    # -- mouse -------------------------------------------------------------------------------------------------------

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, WHEEL_LINES)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, -WHEEL_LINES)

    def _wheel(self, event: events.MouseEvent, lines: int) -> None:
        event.stop()
        event.prevent_default()
        self.scroll_to(y=round(self.scroll_y) + lines, animate=False, force=True)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._pressed = event.screen_offset
        on_track = event.x == self.size.width - 1 and event.y > 0 and len(self._spread) > self.page
        if on_track and (self.scrolls_at_edge or not self.edge or event.y in self.thumb()):
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

    def focus_on_click(self) -> bool:
        """An edge that is taken to drag it leaves the focus where it is."""
        return super().focus_on_click() and self.lit != "edge"

    def _drag_to(self, y: int) -> None:
        share = (y - 1) / max(1, self.size.height - 1)
        self.scroll_to(y=round(share * len(self._spread) - self.page / 2), animate=False, force=True)

    def on_click(self, event: events.Click) -> None:
        if event.screen_offset != self._pressed:
            return
        if event.y == 0:
            self.post_message(self.TitleClicked(self, event.x))
            return
        heads = self._shown.heads(self.inner_width)
        if event.y <= len(heads) and (target := target_at(heads[event.y - 1].spans, event.x)) is not None:
            self.post_message(SpanLine.Pressed(target.command))
        inside = event.y > len(heads) and event.x < self.size.width - 1
        if inside and event.chain < 2:
            line = round(self.scroll_y) + event.y - 1 - len(heads)
            self._aimed = line < len(self._spread)
            if self._aimed and self.selecting:
                self._move_to(self._spread.at(line)[0])
        elif inside and self._aimed:
            self.action_open()

    # -- lines -------------------------------------------------------------------------------------------------------

    def line(self, y: int) -> ScreenLine:
        return self._line(y, self._frame())

    def lines(self, height: int) -> list[ScreenLine]:
        frame = self._frame()
        return [self._line(y, frame) for y in range(height)]

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw these lines. What they have in common is worked out once: to do it for each took a third of the time in
        which the whole bench is drawn."""
        self._renders = True
        try:
            return super().render_lines(crop)
        finally:
            self._renders, self._common = False, None

    def _frame(self) -> Frame:
        """What all lines have in common."""
        frame = self._common or self._framed()
        if self._renders:
            self._common = frame
        return frame

    def _framed(self) -> Frame:
        """The same, worked out anew, as Textual does it with a size and a place each time it is asked."""
        size, top = self.size, round(self.scroll_y)
        width = max(1, size.width - 1)
        # A pane may be drawn at a new width before it is told of it.
        self._shown.lay_out(width)
        heads = self._shown.heads(width)
        bar = thumb(size.height, len(self._spread), max(1, size.height - 1 - len(heads)), top)
        return Frame(width, top, heads, bar, self.has_focus)

    def _line(self, y: int, frame: Frame) -> ScreenLine:
        if y == 0:
            return self._title()
        width, heads = frame.width, frame.heads
        edge = self._edge(y, frame)
        if y <= len(heads):
            return ScreenLine(heads[y - 1], "bar", edge=edge, needle=self.needle)
        index, row = self._spread.at(frame.top + y - 1 - len(heads))
        if index < len(self._shown):
            row = row or self._shown.row(index, width)
            tone, marker = self._cursor_tone(index, row, frame.focus)
            return ScreenLine(row, tone, marker, edge, needle=self.needle)
        words = explained(self._shown.empty, width - 3) if not len(self._shown) else ()
        above = min(1, max(0, self.page - len(words)))  # A free line, where there is one.
        text = words[index - above] if above <= index < len(words) + above else ""
        return ScreenLine(Row(((f"  {text}", self._shown.empty_token),)), edge=edge)

    def number(self, y: int) -> int:
        frame = self._frame()
        return y if y <= len(frame.heads) else y + frame.top

    def lines_in_all(self) -> int:
        return self.head_count + len(self._spread)

    def line_text(self, number: int) -> str:
        heads = self._shown.heads(self.inner_width)
        if number == 0:
            return "".join(text for text, _ in self.rows.title)
        if number <= len(heads):
            return heads[number - 1].text
        index, row = self._spread.at(number - 1 - len(heads))
        return (row or self._shown.row(index, self.inner_width)).text

    def _cursor_tone(self, index: int, row: Row, focus: bool) -> tuple[str, str]:
        if not self.selecting or index != self._position(self.cursor):
            return row.tone, ""
        return ("cursor", "▌") if focus else ("cursor-blurred", "▏")

    def thumb(self) -> range:
        """The lines of the edge that show which part of the rows is in view; none when all of them are."""
        return thumb(self.size.height, len(self._spread), self.page, round(self.scroll_y))

    def _edge(self, y: int, frame: Frame) -> Span:
        """The last cell of a line."""
        if y in frame.thumb:
            return "┃", "title-focus" if frame.focus else "dim"
        if self.lit == "edge":
            return "║", "rule-focus"
        return (self.edge_joints.get(y, "│"), "rule") if self.edge else (" ", "plain")
