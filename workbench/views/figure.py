"""Plots as pictures, drawn by matplotlib: points, and lines over the same calls, as SVG for pages and as SVG or PNG for
files. They have the axes of ``plot.py``."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Callable, Hashable, Sequence
from typing import Any
from xml.etree import ElementTree

from msgspec import Struct

from workbench.extras import is_installed
from workbench.figures import STYLE, drawable, library, one_at_a_time
from workbench.language.clean import clean_line
from workbench.views.plot import MOST, SIDES, Axis, Point, axis, axis_of, unbroken, visible_names
from workbench.views.value import Form

COLOURS = ("#3b76f0", "#c2620a")
WRONG, OTHER, TEXT = "#d43a3a", "#808080", "#7a7a7a"
"""The background of an exported plot is unknown: each of these colours can be read on white and on black."""
NOTE_CELLS = 110
"""Characters of a line below the plot."""
WIDTH = 720
"""Pixels of an SVG; a PNG has twice as many, to be sharp on any screen."""
_STYLE = {
    **STYLE,
    "font.size": 12.0,
    "svg.fonttype": "none",
    "svg.hashsalt": "workbench",
    "axes.edgecolor": OTHER,
    "axes.facecolor": "none",
    "axes.labelcolor": TEXT,
    "grid.color": "#80808040",
    "text.color": TEXT,
    "xtick.color": TEXT,
    "ytick.color": TEXT,
}
_SVG = "http://www.w3.org/2000/svg"


def can_draw() -> bool:
    """Returns whether the library that draws pictures is installed: the extra ``charts``."""
    return is_installed("charts")


class Lines(Struct, frozen=True):
    """Two lines over the same calls, as ``lines_over_calls`` takes them."""

    title: str
    names: Sequence[str]
    visits: Sequence[Hashable]
    lines: Sequence[Sequence[float | None]]


def scatter_picture(
    points: Sequence[Point], x_title: str, y_title: str, notes: Sequence[str] = (), form: Form = "svg"
) -> bytes:
    """Points with their names; in an SVG each is named when pointed at, too. ``notes`` stand below it."""
    below = [line for note in notes for line in textwrap.wrap(clean_line(note, 2000), NOTE_CELLS)]
    titles = {f"point-{number}": point.label for number, point in enumerate(points)}

    def draw(figure: Any, shown: Callable[[str], str]) -> None:
        axes = figure.add_subplot()
        along = axis_of([point.x for point in points], MOST)
        up = axis_of([point.y for point in points], MOST)
        _scale(axes, along, up)
        axes.set_xlabel("\n".join([shown(x_title), *([""] if below else []), *map(shown, below)]))
        axes.set_ylabel(shown(y_title))
        for number in range(len(points) - 1, -1, -1):
            point = points[number]
            plain = point.mark in ("·", "x")
            colour = WRONG if point.mark == "x" else OTHER if plain else COLOURS[0]
            (dot,) = axes.plot([point.x], [point.y], "o", color=colour, markersize=5 if plain else 8, clip_on=False)
            dot.set_gid(f"point-{number}")
            if not plain:
                at = {"xytext": (8, 5), "textcoords": "offset points"}
                axes.annotate(shown(clean_line(point.label, 60)), (point.x, point.y), **at)

    return _picture(draw, 460 + 15 * len(below), form, titles)


def lines_picture(plots: Sequence[Lines], form: Form = "svg") -> bytes:
    """Plots of A and B over the same calls below each other. A line begins anew with each visit of a phase."""
    titles: dict[str, str] = {}

    def draw(figure: Any, shown: Callable[[str], str]) -> None:
        for row, plot in enumerate(plots):
            _lines(figure.add_subplot(len(plots), 1, row + 1), row, plot, shown, titles)

    return _picture(draw, 240 * max(1, len(plots)), form, titles)


def _lines(axes: Any, row: int, plot: Lines, shown: Callable[[str], str], titles: dict[str, str]) -> None:
    high = max((value for line in plot.lines for value in line if value is not None), default=0.0) or 1.0
    _scale(axes, Axis(-0.5, max(0.5, len(plot.names) - 0.5), 1.0), axis(0.0, high, 5))
    axes.set_title(shown(plot.title), fontsize=12, loc="left")
    ticks = visible_names(plot.names, plot.visits, 90)
    axes.set_xticks(ticks, [shown(clean_line(plot.names[at], 28)) for at in ticks])
    axes.grid(visible=False, axis="x")
    for at in range(1, len(plot.visits)):
        if plot.visits[at] != plot.visits[at - 1]:
            axes.axvline(at - 0.5, color=OTHER, linewidth=0.8, linestyle=":")
    for number, (line, (mark, _), colour) in enumerate(zip(plot.lines, SIDES, COLOURS, strict=False)):
        for part in unbroken(plot.visits, line):
            axes.plot(part, [line[at] for at in part], color=colour, linewidth=1.8)
        for at, value in enumerate(line):
            if value is not None:
                (dot,) = axes.plot([at], [value], "o", color=colour, markersize=4)
                dot.set_gid(f"call-{row}-{number}-{at}")
                titles[f"call-{row}-{number}-{at}"] = f"{mark} {plot.names[at]}: {value:,.6g}"
        axes.text(1.0, 1.02 + 0.08 * (1 - number), mark, color=colour, fontweight="bold", transform=axes.transAxes)


def _scale(axes: Any, along: Axis, up: Axis) -> None:
    axes.set_xlim(along.low, along.high)
    axes.set_ylim(up.low, up.high)
    axes.set_xticks(along.ticks, [along.text(tick) for tick in along.ticks])
    axes.set_yticks(up.ticks, [up.text(tick) for tick in up.ticks])


def _picture(
    draw: Callable[[Any, Callable[[str], str]], None], height: int, form: Form, titles: dict[str, str]
) -> bytes:
    matplotlib = library()
    with one_at_a_time, matplotlib.rc_context(_STYLE):
        figure = matplotlib.figure.Figure(figsize=(WIDTH / 72, height / 72), dpi=144, layout="constrained")
        figure.patch.set_alpha(0.0 if form == "svg" else 1.0)
        draw(figure, drawable())
        made = io.BytesIO()
        nameless = {"Date": None, "Creator": None} if form == "svg" else {"Software": None}
        figure.savefig(made, format=form, metadata=nameless)
    return made.getvalue() if form == "png" else _titled(made.getvalue(), titles)


def _titled(svg: bytes, titles: dict[str, str]) -> bytes:
    """An SVG in which the parts with these ids say a text when they are pointed at; without what would begin a file of
    its own, so that it can stand in a page."""
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    root = ElementTree.fromstring(svg)
    for part in root.iter(f"{{{_SVG}}}g"):
        if (told := titles.get(part.get("id", ""))) is not None:
            title = ElementTree.Element(f"{{{_SVG}}}title")
            title.text = clean_line(told, 400)
            part.insert(0, title)
    for part in list(root):
        style = part.find(f"{{{_SVG}}}style")  # In a page it would hold for all of the page.
        if part.tag == f"{{{_SVG}}}metadata" or (style is not None and len(part) == 1):
            root.remove(part)
    # Points are inches there; a page counts in pixels.
    for side in ("width", "height"):
        root.set(side, re.sub(r"pt$", "", root.get(side, "")))
    return ElementTree.tostring(root, encoding="unicode").encode() + b"\n"
