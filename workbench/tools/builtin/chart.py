"""The tool create_chart: data points as a PNG that the model looks at in its next call. Equal points, equal bytes."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from workbench.engine.ports import ToolImage, ToolResult
from workbench.tools.results import error_of

if TYPE_CHECKING:
    from workbench.tools.builtin.chart_points import Series

WIDTH, HEIGHT = 800, 480
"""Pixels. Charts of many labels grow downwards, up to ``TALLEST``."""
TALLEST = 1600
DPI = 100
MAX_TITLE = 120
_LYING = 8
"""More labels than these, or longer ones than ``_LONG`` characters, are bars that lie, so that labels can be read."""
_LONG = 12
_MOST_LYING = 60
"""Above so many bars only some labels are written."""
_MARKED = 60
"""Lines of more points than these have no dots."""
_COLOURS = (
    *("#2f6db5", "#d9822b", "#3d9a50", "#b5403f", "#7b5ea7", "#8c6d46"),
    *("#c66fa8", "#6f7680", "#a5a33a", "#2fa3a8", "#1f3f6b", "#e0b93f"),
)
_STYLE = {
    "font.family": ["DejaVu Sans"],
    "font.size": 10.0,
    "text.parse_math": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e6ea",
    "figure.facecolor": "#ffffff",
}
_one_at_a_time = threading.Lock()
"""The library keeps its style in one place for the whole process."""


def create_chart(title: str, data_points: list[Any] | dict[str, Any]) -> ToolResult:
    """Draw a chart of numbers; you see the picture in the next message.

    Args:
        title: Stands above the chart.
        data_points: [["Mon", 3], ["Tue", 5]] for bars, [[0, 1.5], [1, 2.5]] or [3, 5, 4] for a line, or {"north": [...], "south": [...]} for several series.
    """  # noqa: E501 - one line of a parameter list
    from workbench.tools.builtin.chart_points import PointsError, read_points

    try:
        series = read_points(data_points)
    except PointsError as fault:
        return error_of(fault)
    with _one_at_a_time:
        data, (width, height) = draw(" ".join(title.split())[:MAX_TITLE], series)
    points, form = sum(len(one.values) for one in series), "bars" if series[0].labelled else "a line"
    count = f"{points:,} point{'' if points == 1 else 's'}"
    if len(series) > 1:
        count += f" in {len(series)} series"
        form = form if series[0].labelled else "lines"
    image = ToolImage(data, "image/png", width, height)
    return ToolResult(f"Chart '{title.strip()}': {count}, drawn as {form}.", images=(image,))


def draw(title: str, series: Sequence[Series]) -> tuple[bytes, tuple[int, int]]:
    """A PNG and its size in pixels: bars where the points have labels, else lines."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        shown = _drawable()
        labels = _labels(series)
        lying = len(labels) > _LYING or any(len(label) > _LONG for label in labels)
        height = min(TALLEST, max(HEIGHT, 110 + 24 * len(labels) * len(series))) if lying else HEIGHT
        figure = Figure(figsize=(WIDTH / DPI, height / DPI), dpi=DPI, layout="constrained")
        canvas, axes = FigureCanvasAgg(figure), figure.add_subplot()
        if labels:
            _bars(axes, series, labels, shown, lying=lying)
        else:
            _lines(axes, series, shown)
        if title:
            axes.set_title(shown(title), fontsize=13, fontweight="bold", loc="left", wrap=True)
        if len(series) > 1:
            axes.legend(frameon=False, fontsize=9)
        buffer = io.BytesIO()
        canvas.print_png(buffer, metadata={"Software": None})
    return buffer.getvalue(), (WIDTH, height)


def _labels(series: Sequence[Series]) -> list[str]:
    """Of the bars, in the order given; empty for lines. Several series share theirs."""
    if not series[0].labelled:
        return []
    every = [str(at) for one in series for at in one.at]
    return every if len(series) == 1 else list(dict.fromkeys(every))


def _bars(
    axes: Any, series: Sequence[Series], labels: Sequence[str], shown: Callable[[str], str], *, lying: bool
) -> None:
    thick = 0.8 / len(series)
    for number, one in enumerate(series):
        offset = (number - (len(series) - 1) / 2) * thick
        where = [i + offset for i in (range(len(labels)) if len(series) == 1 else map(labels.index, one.at))]
        bar = axes.barh if lying else axes.bar
        bar(where, one.values, thick, color=_COLOURS[number % len(_COLOURS)], label=shown(one.name) or None)
    step = max(1, -(-len(labels) // _MOST_LYING))
    ticks = range(0, len(labels), step)
    words = [shown(labels[i]) for i in ticks]
    if lying:
        axes.set_yticks(list(ticks), words, fontsize=9)
        axes.set_ylim(len(labels) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
    else:
        axes.set_xticks(list(ticks), words)
        axes.grid(visible=False, axis="x")


def _lines(axes: Any, series: Sequence[Series], shown: Callable[[str], str]) -> None:
    if all(float(at).is_integer() for one in series for at in one.at):
        axes.xaxis.get_major_locator().set_params(integer=True)
    for number, one in enumerate(series):
        points = sorted(zip(map(float, one.at), one.values, strict=True), key=lambda point: point[0])
        axes.plot(
            [at for at, _ in points],
            [value for _, value in points],
            marker="o" if len(points) <= _MARKED else None,
            markersize=4,
            linewidth=1.8,
            color=_COLOURS[number % len(_COLOURS)],
            label=shown(one.name) or None,
        )


def _drawable() -> Callable[[str], str]:
    """Replaces what the font has no glyph for, so that a box stands there and nobody is warned."""
    from matplotlib import font_manager
    from matplotlib.ft2font import FT2Font

    font = FT2Font(font_manager.findfont("DejaVu Sans"))
    known = font.get_charmap()
    return lambda text: "".join(c if ord(c) in known else "\N{WHITE SQUARE}" for c in text)
