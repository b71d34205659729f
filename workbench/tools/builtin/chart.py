"""The tool create_chart: data points as a PNG that the model looks at in its next call. Equal points, equal bytes."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from workbench.engine.contracts import ToolImage, ToolResult
from workbench.extras import missing
from workbench.figures import STYLE, drawable, library, one_at_a_time
from workbench.tools.results import error_of

# Reads the data points of a chart in the forms in which models write them; what is wrong is said point by point.

MAX_POINTS = 2000
"""In all series together: a picture shows no more."""
MAX_SERIES = 12
MAX_SIZE = 1e15
"""Largest absolute value: beyond it neighbouring numbers cannot be told apart on an axis."""
MAX_LABEL = 60

_LABELS = ("label", "name", "category", "key", "x", "date", "time")
_VALUES = ("value", "y", "count", "amount", "total")
_SHOWN = 60


class PointsError(ValueError):
    """Data points that cannot be drawn; the message is for the model."""


class Series(Struct, frozen=True):
    """One row of numbers. ``at`` holds a label for each of them, or all their places on the x axis."""

    name: str
    at: tuple[str, ...] | tuple[float, ...]
    values: tuple[float, ...]

    @property
    def labelled(self) -> bool:
        """Whether the points have names instead of places."""
        return bool(self.at) and isinstance(self.at[0], str)


def read_points(data: Sequence[Any] | Mapping[str, Any]) -> tuple[Series, ...]:
    """A list of numbers, of ``[x or label, value]`` or of objects with a label and a value; an object of values by
    label; or an object of such lists by series name. Raises PointsError."""
    lists = isinstance(data, Mapping) and any(isinstance(value, (list, tuple, Mapping)) for value in data.values())
    if isinstance(data, Mapping) and lists:
        if len(data) > MAX_SERIES:
            raise PointsError(f"{len(data):,} series are too many to tell apart; at most {MAX_SERIES} can be drawn")
        series = tuple(_series(_label(name), points, f"{_label(name)}, ") for name, points in data.items())
    else:
        series = (_series("", data, ""),)
    count = sum(len(one.values) for one in series)
    if count > MAX_POINTS:
        raise PointsError(f"{count:,} points are more than a chart shows; at most {MAX_POINTS:,}: aggregate them first")
    if len({one.labelled for one in series}) > 1:
        raise PointsError("some series have labels and others have numbers as x; give all of them the same form")
    for one in series if len(series) > 1 else ():
        if one.labelled and len(set(one.at)) < len(one.at):
            raise PointsError(f"{one.name}: a label occurs twice, so it cannot be set beside the other series")
    return series


def _series(name: str, data: object, where: str) -> Series:
    pairs: list[tuple[str | float, float]]
    if isinstance(data, Mapping):
        pairs = [(_label(label), _number(value, f"{where}'{_label(label)}'")) for label, value in data.items()]
    elif isinstance(data, (list, tuple)):
        if len(data) > MAX_POINTS:
            raise PointsError(f"{len(data):,} points are more than a chart shows; at most {MAX_POINTS:,}")
        pairs = [_pair(point, index, f"{where}point {index}") for index, point in enumerate(data, 1)]
    else:
        raise PointsError(f"{where}{_cut(data)} is not a list of points")
    if not pairs:
        raise PointsError(f"{where}there are no points to draw" if where else "there are no points to draw")
    values = tuple(value for _, value in pairs)
    places = [at for at, _ in pairs]
    numbers = [at for at in places if isinstance(at, float)]
    if len(numbers) == len(places):
        return Series(name, tuple(numbers), values)
    return Series(name, tuple(at if isinstance(at, str) else f"{at:g}" for at in places), values)


def _pair(point: object, index: int, where: str) -> tuple[str | float, float]:
    """Label or x, and value."""
    if isinstance(point, (list, tuple)):
        if len(point) != 2:
            raise PointsError(f"{where}: {_cut(point)} has {len(point)} parts; it must be [x or label, value]")
        return _place(point[0], where), _number(point[1], where)
    if isinstance(point, Mapping):
        return _from_object(point, index, where)
    return float(index), _number(point, where)


def _from_object(point: Mapping[Any, Any], index: int, where: str) -> tuple[str | float, float]:
    """The fields by their usual names; where those say nothing, the one text and the one number."""
    value = next((name for name in _VALUES if name in point), None)
    label = next((name for name in _LABELS if name in point and name != value), None)
    if value is None:
        numbers = [name for name, one in point.items() if name != label and _is_number(one)]
        value = numbers[0] if len(numbers) == 1 else None
    if label is None:
        texts = [name for name, one in point.items() if name != value and isinstance(one, str)]
        label = texts[0] if len(texts) == 1 else None
    if value is None:
        raise PointsError(f"{where}: {_cut(dict(point))} has no number under {', '.join(_VALUES)}")
    at: str | float = float(index) if label is None else _place(point[label], where)
    return at, _number(point[value], where)


def _place(value: object, where: str) -> str | float:
    if isinstance(value, str):
        return _label(value)
    if value is None or isinstance(value, (list, tuple, Mapping, bool)):
        raise PointsError(f"{where}: {_cut(value)} is neither a label nor a number")
    return _number(value, where)


def _number(value: object, where: str) -> float:
    if not _is_number(value):
        raise PointsError(f"{where}: {_cut(value)} is not a number")
    assert isinstance(value, (int, float))
    if not abs(value) <= MAX_SIZE:
        raise PointsError(f"{where}: {_cut(value)} is not a number that can be drawn; at most {MAX_SIZE:g}")
    return float(value)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _label(text: object) -> str:
    words = " ".join(str(text).split())
    return words if len(words) <= MAX_LABEL else words[: MAX_LABEL - 1] + "…"


def _cut(value: object) -> str:
    text = repr(value) if not isinstance(value, int) or abs(value) < 10**40 else "a number of more than 40 digits"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


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
_STYLE = {**STYLE, "grid.color": "#e3e6ea", "figure.facecolor": "#ffffff"}


def create_chart(title: str, data_points: list[Any] | dict[str, Any]) -> ToolResult:
    """Draw a chart of numbers; you see the picture in the next message.

    Args:
        title: Stands above the chart.
        data_points: [["Mon", 3], ["Tue", 5]] for bars, [[0, 1.5], [1, 2.5]] or [3, 5, 4] for a line, or {"north": [...], "south": [...]} for several series.
    """  # noqa: E501 - one line of a parameter list

    if absent := missing("charts"):
        return ToolResult(absent, True)
    try:
        series = read_points(data_points)
    except PointsError as fault:
        return error_of(fault)
    with one_at_a_time:
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
    matplotlib = library()
    with matplotlib.rc_context(_STYLE):
        shown = drawable()
        labels = _labels(series)
        lying = len(labels) > _LYING or any(len(label) > _LONG for label in labels)
        height = min(TALLEST, max(HEIGHT, 110 + 24 * len(labels) * len(series))) if lying else HEIGHT
        figure = matplotlib.figure.Figure(figsize=(WIDTH / DPI, height / DPI), dpi=DPI, layout="constrained")
        canvas, axes = matplotlib.backends.backend_agg.FigureCanvasAgg(figure), figure.add_subplot()
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
