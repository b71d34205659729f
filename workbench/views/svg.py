"""Plots as SVG: points, and lines over the same calls."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from html import escape

from msgspec import Struct

from workbench.language.clean import clean
from workbench.views.plot import Point, spread

COLOURS = ("#3b76f0", "#c2620a")
WRONG, OTHER, TEXT = "#d43a3a", "#808080", "#7a7a7a"
"""Nobody knows on which ground a plot will lie: each of these can be read on white and on black."""
NOTE_CELLS, NOTE_LINE = 112, 16
"""Characters of a line below the plot, and its height in pixels."""


def svg_scatter(points: Sequence[Point], x_title: str, y_title: str, notes: Sequence[str] = ()) -> str:
    """The same as an SVG document, each point named when pointed at; ``notes`` stand below it."""
    x_low, x_high = spread([point.x for point in points])
    y_low, y_high = spread([point.y for point in points])
    below = [line for note in notes for line in textwrap.wrap(clean(note), NOTE_CELLS)]
    frame = _Frame(720, 480 + NOTE_LINE * len(below), bottom=40 + NOTE_LINE * len(below))
    parts = [frame.open(), frame.axes(x_title, y_title, (x_low, x_high), (y_low, y_high))]
    for point in reversed(points):
        x = frame.x((point.x - x_low) / (x_high - x_low))
        y = frame.y((point.y - y_low) / (y_high - y_low))
        name = escape(clean(point.label))
        plain = point.mark in ("·", "x")
        colour = WRONG if point.mark == "x" else OTHER if plain else COLOURS[0]
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{4 if plain else 6}" fill="{colour}"><title>{name}</title></circle>'
        )
        if not plain:
            parts.append(f'<text x="{x + 9:.1f}" y="{y - 6:.1f}">{name}</text>')
    for number, line in enumerate(below, 1):
        at = frame.height - 6 - NOTE_LINE * (len(below) - number)
        parts.append(f'<text x="{frame.left}" y="{at}">{escape(line)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def svg_lines(title: str, names: Sequence[str], lines: Sequence[Sequence[float | None]]) -> str:
    """Two lines over the same calls, A and B; a call without a value breaks its line."""
    frame = _Frame(720, 220)
    values = [value for line in lines for value in line if value is not None]
    high = max(values, default=1.0) or 1.0
    last = max(len(names) - 1, 1)
    parts = [frame.open(), frame.axes("calls", title, None, (0.0, high))]
    for line, colour, name in zip(lines, COLOURS, "AB", strict=False):
        pen, path = "M", []
        for index, value in enumerate(line):
            if value is None:
                pen = "M"
                continue
            x, y = frame.x(index / last), frame.y(value / high)
            path.append(f"{pen}{x:.1f} {y:.1f}")
            pen = "L"
            told = f"{name} {escape(clean(names[index]))}: {value:,.6g}"
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"><title>{told}</title></circle>')
        parts.append(f'<path d="{" ".join(path)}" fill="none" stroke="{colour}" stroke-width="2"/>')
        look = f'fill="{colour}" font-weight="bold"'
        parts.append(f'<text x="{frame.width - 30}" y="{30 + 18 * "AB".index(name)}" {look}>{name}</text>')
    return "\n".join([*parts, "</svg>"])


class _Frame(Struct, frozen=True):
    """The drawing area with its margins, in pixels."""

    width: int
    height: int
    left: int = 80
    bottom: int = 40
    top: int = 24
    right: int = 40

    def x(self, share: float) -> float:
        return self.left + share * (self.width - self.left - self.right)

    def y(self, share: float) -> float:
        return self.height - self.bottom - share * (self.height - self.bottom - self.top)

    def open(self) -> str:
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'width="{self.width}" height="{self.height}" '
            f'font-family="system-ui, sans-serif" font-size="12" fill="{TEXT}">'
        )

    def axes(self, x_title: str, y_title: str, xs: tuple[float, float] | None, ys: tuple[float, float]) -> str:
        x0, x1, y0, y1 = self.x(0), self.x(1), self.y(0), self.y(1)
        parts = [
            f'<path d="M{x0:.1f} {y1:.1f} L{x0:.1f} {y0:.1f} L{x1:.1f} {y0:.1f}" fill="none" stroke="{OTHER}"/>',
            f'<text x="{x0:.1f}" y="{y1 - 8:.1f}">{escape(y_title)}</text>',
            f'<text x="{(x0 + x1) / 2:.1f}" y="{y0 + 34:.1f}" text-anchor="middle">{escape(x_title)}</text>',
        ]
        for share in (0.0, 0.5, 1.0):
            value = ys[0] + share * (ys[1] - ys[0])
            parts.append(f'<text x="{x0 - 8:.1f}" y="{self.y(share) + 4:.1f}" text-anchor="end">{value:,.4g}</text>')
            if xs is not None:
                value = xs[0] + share * (xs[1] - xs[0])
                parts.append(
                    f'<text x="{self.x(share):.1f}" y="{y0 + 16:.1f}" text-anchor="middle">{value:,.4g}</text>'
                )
        return "\n".join(parts)
