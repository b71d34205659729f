"""Rows become strips: tokens to styles, matches and selections marked, titles with their rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from workbench.language.clean import clean_line
from workbench.tui.palette import Palette
from workbench.views.cells import Row, Span, crop, justify, uncut_parts, width_of
from workbench.views.filter_result import TITLE_FRAME, marked


def strip_of(spans: Sequence[Span], width: int, palette: Palette, base: Style, over: Style | None = None) -> Strip:
    """Spans as one strip of exactly ``width`` cells; ``over`` has the last word about how they look.

    The last look at text before a terminal: it is cleaned here, line breaks included, which would move the cursor.
    """
    cleaned = [(clean_line(text), token) for text, token in spans]
    segments = [
        Segment(text, base + palette.on(token, base.bgcolor) + over) for text, token in crop(cleaned, width) if text
    ]
    return Strip(segments).extend_cell_length(width, base)


def row_strip(
    row: Row,
    width: int,
    palette: Palette,
    base: Style,
    *,
    over: Style | None = None,
    marker: str = "",
    needle: str = "",
) -> Strip:
    """A row; a ``marker`` takes the place of its first cell, occurrences of the needle are marked."""
    spans: Sequence[Span] = row.spans
    if marker and spans:
        first, token = spans[0]
        spans = ((marker, "cursor"), (first[1:], token), *spans[1:])
    if needle:
        spans = marked(spans, needle)
    return strip_of(spans, width, palette, base, over)


def title_strip(
    title: Sequence[Span],
    right: Sequence[Span],
    width: int,
    palette: Palette,
    base: Style,
    *,
    focus: bool,
    joints: Mapping[int, str],
    lit: bool = False,
) -> Strip:
    """A title on its rule: heavy where the focus is, double where the mouse can take it, to show without colour."""
    glyph, rule = ("═", "rule-focus") if lit else ("━", "rule-focus") if focus else ("─", "rule")
    named = [(text, "title-focus" if focus and token == "title" else token) for text, token in title]
    left: list[Span] = [(glyph, rule), (" ", "plain"), *named, (" ", "plain")]
    room = width - width_of(named) - TITLE_FRAME
    shown = uncut_parts(right, room) if room >= 8 else ()
    end: list[Span] = [(" ", "plain"), *shown, (" ", "plain"), (glyph * 2, rule)] if shown else []
    spans = justify(left, end, width, (glyph, rule))
    if joints and not focus and not lit:
        spans = _jointed(spans, joints)
    return strip_of(spans, width, palette, base)


def _jointed(spans: Sequence[Span], joints: Mapping[int, str]) -> tuple[Span, ...]:
    """The rule with the lines of the neighbours joined where they meet a plain stretch of it."""
    result: list[Span] = []
    x = 0
    for text, token in spans:
        drawn = "".join(joints.get(x + i, glyph) for i, glyph in enumerate(text)) if token == "rule" else text
        result.append((drawn, token))
        x += cell_len(text)
    return tuple(result)


def selected(strip: Strip, span: tuple[int, int], style: Style) -> Strip:
    """The strip with the characters of a text selection marked."""
    text = strip.text
    start = cell_len(text[: span[0]])
    end = strip.cell_length if span[1] == -1 else cell_len(text[: span[1]])
    middle = strip.crop(start, end)
    lit = Strip([Segment(part.text, style) for part in middle], middle.cell_length)
    return Strip.join([strip.crop(0, start), lit, strip.crop(end, strip.cell_length)])


def thumb(height: int, count: int, page: int, top: int) -> range:
    """The lines of the edge that show which part of the rows is in view; none when all of them are."""
    if count <= page:
        return range(0)
    track = max(1, height - 1)
    length = max(1, round(track * page / count))
    start = 1 + round((track - length) * min(1.0, top / max(1, count - page)))
    return range(start, start + length)
