"""A view made of lines: each is drawn once for what it holds, and drawn again only when that changes."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from workbench.tui.contracts import palette_of
from workbench.tui.palette import Palette
from workbench.tui.widgets.draw import row_strip, selected, title_strip
from workbench.views.cells import Row, Span

CACHED_STRIPS = 128
"""Drawn lines that a pane keeps at least, each with some 5 KB; at most it keeps those of ``CACHED_HEIGHTS``. While a
program is watched, lines change all the time, and those of before are never drawn again."""
CACHED_HEIGHTS = 2


class ScreenLine(NamedTuple):
    """All that a line of the screen depends on: equal lines look the same."""

    row: Row
    tone: str = ""
    marker: str = ""
    """Takes the place of the first cell: the cursor."""
    edge: Span = (" ", "plain")
    """The last cell."""
    right: tuple[Span, ...] | None = None
    """The right side of a title; None for what is not a title."""
    joints: tuple[tuple[int, str], ...] = ()
    needle: str = ""
    lit: bool = False
    """Whether the mouse is on a title that can be dragged."""


class LineView(ScrollView):
    """Draws what ``line`` says. ``redraw`` looks which lines changed, and refreshes those alone."""

    @property
    def allow_horizontal_scroll(self) -> bool:
        """Never: lines are made for the width. Between two sizes Textual would take the arrow keys for scrolling."""
        return False

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._strips: OrderedDict[tuple[object, ...], Strip] = OrderedDict()
        self._drawn: dict[int, ScreenLine] = {}
        self._placed: dict[int, tuple[Strip, int, Strip]] = {}
        """Of each line of the pane: its strip, its number, and the strip with the offsets that selecting text needs."""

    @property
    def palette(self) -> Palette:
        return palette_of(self)

    def line(self, y: int) -> ScreenLine:
        """Returns the line of the pane at an index from 0."""
        raise NotImplementedError

    def lines(self, height: int) -> list[ScreenLine]:
        """Returns as many lines of the pane, from the first one on."""
        return [self.line(y) for y in range(height)]

    def number(self, y: int) -> int:
        """The number of that line among all lines, for selecting text: it stays with the line when it scrolls."""
        return y

    def line_text(self, number: int) -> str:
        """The text of a line by its number."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Refresh the lines that are not what was drawn last."""
        width, height = self.size
        lines = enumerate(self.lines(height))
        changed = [Region(0, y, width, 1) for y, line in lines if self._drawn.get(y) != line]
        if changed:  # Textual takes many at once in the time of one.
            self.refresh(*changed)

    def forget(self) -> None:
        """Drop drawn lines: the theme changed."""
        self._strips.clear()
        self._placed.clear()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """One line of the pane as it stands on the screen."""
        line, number = self.line(y), self.number(y)
        self._drawn[y] = line
        chosen = self.text_selection
        span = chosen.get_span(number) if chosen is not None else None
        focus = line.right is not None and self.has_focus
        width = self.size.width
        key = (line, width, focus, self.palette.name, span)
        strip = self._strips.get(key)
        if strip is None:
            strip = self._draw(line, width, focus=focus)
            if span is not None:
                strip = selected(strip, span, self._selection())
            self._strips[key] = strip
            while len(self._strips) > max(CACHED_STRIPS, CACHED_HEIGHTS * self.size.height):
                self._strips.popitem(last=False)
        else:
            self._strips.move_to_end(key)
        placed = self._placed.get(y)
        if placed is None or placed[0] is not strip or placed[1] != number:
            self._placed[y] = placed = strip, number, strip.apply_offsets(0, number)
        return placed[2]

    def _selection(self) -> Style:
        """Returns how selected text looks: in the colours of the theme, and where it names no colour of the text, in
        one that can be read."""
        style = self.screen.get_component_rich_style("screen--selection")
        if style.color != style.bgcolor:
            return style
        return self.palette.on("plain", style.bgcolor) + Style(bgcolor=style.bgcolor)

    def _draw(self, line: ScreenLine, width: int, *, focus: bool) -> Strip:
        palette, base = self.palette, self.rich_style
        if line.right is not None:
            joints = dict(line.joints)
            return title_strip(
                line.row.spans, line.right, width, palette, base, focus=focus, joints=joints, lit=line.lit
            )
        background = palette.tone(line.tone)
        strip = row_strip(
            line.row,
            max(1, width - 1),
            palette,
            base + background if background is not None else base,
            over=palette.over(line.tone),
            marker=line.marker,
            needle=line.needle,
        )
        glyph, token = line.edge
        return Strip([*strip, Segment(glyph, base + palette.on(token, base.bgcolor))], strip.cell_length + 1)

    # -- selection of text with the mouse ----------------------------------------------------------------------------

    @property
    def allow_select(self) -> bool:
        return True

    def lines_in_all(self) -> int:
        """Returns how many numbered lines there are."""
        raise NotImplementedError

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text, as it stands on the screen."""
        total = self.lines_in_all()
        first = 0 if selection.start is None else selection.start.y
        last = total - 1 if selection.end is None else min(selection.end.y, total - 1)
        lines = [self.line_text(number) for number in range(first, last + 1)]
        if not lines:
            return None
        if selection.end is not None and last == selection.end.y:
            lines[-1] = lines[-1][: selection.end.x]
        if selection.start is not None:
            lines[0] = lines[0][selection.start.x :]
        return "\n".join(line.rstrip() for line in lines), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()
