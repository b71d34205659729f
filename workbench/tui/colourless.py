"""The app where NO_COLOR is set: no colour goes to the terminal, what a background marked is reversed instead."""

from __future__ import annotations

from functools import lru_cache

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

from workbench.tui.palette import contrast

THEME = "ansi-dark"
"""The theme to begin with: its only backgrounds are marks, and what others tint it sets bold, dim or reversed."""
_MARK = 1.5
"""Contrast with the app's ground from which a background marks something; the grounds of panes have less."""
_REVERSED = Style(reverse=True)


class Colourless(LineFilter):
    """Takes the colours out of lines; bold, dim, underlined and reversed text stay so."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The same segments without colours."""
        return [
            Segment(text, style and _without_colour(style, background), control) for text, style, control in segments
        ]


@lru_cache(maxsize=4096)
def _without_colour(style: Style, ground: Color) -> Style:
    marks = style.bgcolor is not None and _stands_out(style.bgcolor, ground)
    return style.without_color + _REVERSED if marks else style.without_color


def _stands_out(back: RichColor, ground: Color) -> bool:
    if back.is_default:
        return False
    return back.triplet is None or contrast(Color.from_rich_color(back), ground) >= _MARK
