"""create_chart: the forms of data points, the picture that comes of them, and what is said of points that are none."""

from __future__ import annotations

import asyncio
import io
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from workbench.context.place import Place
from workbench.tools.builtin.chart import (
    HEIGHT,
    MAX_POINTS,
    TALLEST,
    WIDTH,
    PointsError,
    Series,
    create_chart,
    read_points,
)
from workbench.tools.paths import Workspace
from workbench.tools.sandbox import Sandbox
from workbench.tools.toolbox import Toolbox

FORMS: dict[str, tuple[Any, Series]] = {
    "pairs": ([["Mon", 3], ["Tue", 5]], Series("", ("Mon", "Tue"), (3, 5))),
    "numbers": ([3, 5], Series("", (1, 2), (3, 5))),
    "places": ([[0.5, 3], [2, 5]], Series("", (0.5, 2), (3, 5))),
    "objects": ([{"label": "Mon", "value": 3}, {"label": "Tue", "value": 5}], Series("", ("Mon", "Tue"), (3, 5))),
    "x and y": ([{"x": 0.5, "y": 3}, {"x": 2, "y": 5}], Series("", (0.5, 2), (3, 5))),
    "own names": ([{"day": "Mon", "sold": 3}, {"day": "Tue", "sold": 5}], Series("", ("Mon", "Tue"), (3, 5))),
    "by label": ({"Mon": 3, "Tue": 5}, Series("", ("Mon", "Tue"), (3, 5))),
}


@pytest.mark.parametrize("form", FORMS)
def test_points_are_read_in_the_forms_in_which_models_write_them(form: str) -> None:
    data, series = FORMS[form]
    assert read_points(data) == (series,)


def test_an_object_of_lists_is_several_series() -> None:
    assert read_points({"north": [1, 2], "south": [[1, 4]]}) == (
        Series("north", (1, 2), (1, 2)),
        Series("south", (1,), (4,)),
    )


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], "there are no points to draw"),
        ([1, "x"], "point 2: 'x' is not a number"),
        ([[1, 2, 3]], r"point 1: \[1, 2, 3\] has 3 parts; it must be \[x or label, value\]"),
        ([{"a": "b"}], "point 1: .* has no number under value, y"),
        ([float("nan")], "point 1: nan is not a number that can be drawn"),
        ([10**400], "more than 40 digits"),
        ([True], "point 1: True is not a number"),
        ({"a": [1], "b": [["x", 1]]}, "some series have labels"),
        ({"a": [["x", 1], ["x", 2]], "b": [["x", 1]]}, "a: a label occurs twice"),
        (list(range(MAX_POINTS + 1)), "2,001 points are more than a chart shows"),
        ({str(n): [1] for n in range(13)}, "13 series are too many"),
    ],
)
def test_what_cannot_be_drawn_is_told_to_the_model_point_by_point(data: Any, said: str) -> None:
    with pytest.raises(PointsError, match=said):
        read_points(data)
    result = create_chart("Sales", data)
    assert result.is_error
    assert not result.images
    assert result.text.startswith("PointsError: ")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=5) | st.dictionaries(st.text(max_size=5), JSON, max_size=5))
def test_any_json_is_read_or_refused_and_nothing_else_happens(data: Any) -> None:
    try:
        series = read_points(data)
    except PointsError:
        return
    assert all(len(one.at) == len(one.values) > 0 for one in series)


def test_the_chart_is_a_png_of_the_size_that_it_says_with_equal_bytes_each_time() -> None:
    first, again = (create_chart("Sales", [["Mon", 3], ["Tue", 5]]) for _ in range(2))
    (image,) = first.images
    with Image.open(io.BytesIO(image.data)) as picture:
        assert (picture.format, picture.size) == ("PNG", (WIDTH, HEIGHT))
    assert (image.media_type, image.width, image.height) == ("image/png", WIDTH, HEIGHT)
    assert image.data == again.images[0].data
    assert first.text == "Chart 'Sales': 2 points, drawn as bars."


def test_many_long_labels_make_it_higher_up_to_a_limit() -> None:
    result = create_chart("Each", {f"the label number {n}": n for n in range(300)})
    assert (result.images[0].height, result.is_error) == (TALLEST, False)


def test_signs_that_mean_something_to_the_library_or_have_no_glyph_are_drawn_as_text() -> None:
    result = create_chart("$x^ {\\frac \N{CJK UNIFIED IDEOGRAPH-65E5} \x1b[31m", {"$a_$": [1, 2], "\n_b": [2, 1]})
    assert not result.is_error
    assert result.images


def test_the_model_gets_it_by_a_call_with_json_text_as_points(workspace: Workspace) -> None:
    box = Toolbox.of(workspace, Sandbox(workspace.root))
    call = {"title": "Sales", "data_points": '[["Mon", 3]]'}
    result = asyncio.run(box.call("create_chart", call, Place(), 1))
    assert (result.is_error, len(result.images)) == (False, 1)
    wrong = asyncio.run(box.call("create_chart", {"title": "Sales", "data_points": "Mon: 3"}, Place(), 1))
    assert wrong.text == "ArgumentError: 'data_points' must be list | dict, got \"Mon: 3\""


def test_the_library_is_imported_by_the_first_call_only() -> None:
    code = "import sys, workbench.tools.toolbox; print({'matplotlib', 'numpy', 'PIL'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"set()\n"


@pytest.mark.parametrize(
    ("points", "across", "down"),
    [
        ([["Mon", 3], ["Tue", 5]], True, False),
        ([["a name that is long", 3], ["Tue", 5]], False, True),
        ([[f"n{number}", number] for number in range(9)], False, True),
        ([[0, 1], [1, 3], [2, 2]], True, True),
    ],
    ids=["bars", "bars that lie for a label", "bars that lie for their number", "a line"],
)
def test_the_grid_helps_to_read_values_alone(points: list[Any], across: bool, down: bool) -> None:
    (picture,) = create_chart("t", points).images
    image = Image.open(io.BytesIO(picture.data)).convert("RGB")
    grid, (width, height) = (0xE3, 0xE6, 0xEA), image.size
    pixels = image.tobytes()
    colours = [pixels[at : at + 3] == bytes(grid) for at in range(0, len(pixels), 3)]
    is_grid = [colours[y * width : (y + 1) * width] for y in range(height)]
    assert any(sum(row) > width * 0.3 for row in is_grid) == across
    assert any(sum(column) > height * 0.5 for column in zip(*is_grid, strict=True)) == down
