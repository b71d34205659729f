"""Drawings of characters: what stands on their axes, and which point is which."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from workbench.analysis.sweep import Sweep
from workbench.views.plot import Drawn, Point, axis, lines_over_calls, scatter
from workbench.views.runs import RunRows
from workbench.views.sweep import SweepRows
from workbench.workspace.runs_poller import Listing, RunsRequest


def texts(drawn: list[Drawn]) -> list[str]:
    return ["".join(text for text, _ in spans) for spans in drawn]


@pytest.mark.parametrize(
    ("low", "high"),
    [(0.0, 6760.0), (0.32, 1.03), (-1e-5, 0.00114), (48.0, 95.0), (84.0, 90.0), (0.0, 1e-9), (7.0, 7.0)],
)
def test_the_numbers_of_an_axis_are_round_and_begin_where_the_axes_meet(low: float, high: float) -> None:
    found = axis(low, high, 5)
    written = [found.text(tick) for tick in found.ticks]
    assert 2 <= len(written) <= 8
    assert len(set(written)) == len(written)
    assert all(
        abs(float(text.replace(",", "")) - tick) < found.step / 100
        for text, tick in zip(written, found.ticks, strict=True)
    )
    assert found.ticks[0] == pytest.approx(found.low)
    assert found.low <= low + found.step / 100
    assert found.high >= high - found.step / 100
    assert found.low == 0 or low < 0 or low >= high / 4, "what is near 0 is drawn from 0 on"
    assert high - low < found.step / 100 or found.low == 0 or low - found.low < found.step, "no room is given away"


def test_the_zero_of_two_axes_stands_once_and_has_no_digits_behind_it() -> None:
    drawn = texts(scatter([Point(0.0, 0.0, "a", "a"), Point(0.9, 0.8, "b", "b")], "x", "y", 60, 8))
    zeros = [word for line in drawn for word in line.replace("┤", " ").split() if word.strip("0.") == ""]
    assert zeros == ["0"]
    beside = texts(scatter([Point(0.43, 0.6, "a", "a"), Point(1.0, 1.3, "b", "b")], "x", "y", 60, 8))
    assert not any(word == "0" for line in beside for word in line.replace("┤", " ").split()), "room is given away"


def test_a_name_stands_beside_its_point_and_over_no_other() -> None:
    points = [Point(0.0, 1.0, "a", "first", "ok"), Point(0.3, 1.0, "b", "second"), Point(9.0, 1.0, "c", "last one")]
    drawn = scatter(points, "x", "y", 50, 5)
    at = next(row for row, text in enumerate(texts(drawn)) if "second" in text)
    assert "ab second" in texts(drawn)[at]
    assert any("last one" in text for text in texts(drawn))
    assert "first" in texts(drawn)[at - 1], "above it: there is no room between a and b"
    assert ("a", "ok") in drawn[at]


@pytest.mark.parametrize("at", [0.0, 0.5, 1.0])
def test_a_long_name_wraps_into_free_lines_beside_its_point(at: float) -> None:
    name = "masked, selective+mask(after=2), selective+mask(after=3)"
    points = [Point(0.1, 0.5, "a", "short"), Point(at, at, "b", name), Point(1.0, 0.2, "c", "c")]
    drawn = texts(scatter(points, "x", "y", 70, 14))
    assert set(name.split()) <= set(" ".join(drawn).split()), "a name is cut beside free lines"
    low = "\n".join(texts(scatter(points, "x", "y", 70, 4)))
    assert "short" in low, "a name in several lines pushed one in one line away"


def test_points_in_one_cell_share_their_names() -> None:
    points = [Point(1.0, 1.0, "S", "snowball"), Point(1.0, 1.0, "F", "file"), Point(0.2, 0.2, "a", "all")]
    drawn = texts(scatter(points, "x", "y", 60, 5))
    assert any("S snowball, file" in text or "snowball, file S" in text for text in drawn)


def test_a_name_of_wide_or_hostile_characters_moves_nothing() -> None:
    points = [Point(0.5, 1.0, "a", "日本語\x1b[31m\n\u202eé"), Point(1.0, 2.0, "b", "plain")]
    drawn = texts(scatter(points, "x", "y", 60, 5))
    assert all(cell_len(line) == len(line) <= 60 for line in drawn)
    assert not any(set("\x1b\n\u202e") & set(line) for line in drawn)


@pytest.mark.parametrize("calls", [1, 7, 40, 300])
@pytest.mark.parametrize("width", [24, 78, 190])
def test_two_lines_fit_their_room_whatever_the_number_of_calls(calls: int, width: int) -> None:
    names = [f"dig:{call}" for call in range(calls)]
    rising = [float(call * call) for call in range(calls)]
    drawn = texts(lines_over_calls(names, ["dig"] * calls, [rising, [None] * calls], "tokens sent", width, 6))
    assert len(drawn) == 1 + 6 + 2
    assert max(map(cell_len, drawn[1:])) <= width
    assert any("A" in text for text in drawn[1:])
    assert drawn[6].strip().startswith("0"), "both axes begin at 0"


def test_both_sides_in_one_cell_are_marked_as_both_and_a_call_of_one_side_alone_is_not_joined() -> None:
    drawn = texts(lines_over_calls(["a", "b", "c"], "vvv", [[1.0, 4.0, 1.0], [1.0, None, 4.0]], "tokens", 40, 5))
    assert sum(text.count("=") for text in drawn) == 1
    assert sum(text.count("B") for text in drawn) == 1


def test_no_line_leads_from_one_visit_to_the_next() -> None:
    names = ["dig:1", "dig:2", "sum:1", "sum:2"]
    drawn = texts(lines_over_calls(names, ["dig", "dig", "sum", "sum"], [[1.0, 1.0, 9.0, 9.0], [None] * 4], "t", 60, 8))
    rule = next(text.index("┊") for text in drawn if "┊" in text)
    dots = [at for text in drawn[1:9] for at, sign in enumerate(text) if "\u2800" < sign <= "\u28ff"]
    assert dots, "within a visit there is a line"
    assert not any(abs(at - rule) <= 2 for at in dots)
    assert "dig:1" in drawn[-1]
    assert "sum:1" in drawn[-1]


@pytest.mark.parametrize("width", [39, 59, 79, 119])
def test_the_heads_of_a_sweep_and_of_runs_stand_whole_or_not_at_all(width: int) -> None:
    sweep = SweepRows(Sweep((), (), ()), "night", 0, is_over=True).heads(width)[-1].text.split()
    more = {39: [], 59: ["dollars", "calls"]}.get(width, ["dollars", "runs", "calls", "peak", "invalid"])
    assert sweep == ["strategy", "tokens", "cost", *more]
    assert RunRows(Listing(wanted=RunsRequest())).heads(width) == (), "columns are named, and there is no row"
