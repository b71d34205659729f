"""Plots as SVG: readable on every ground, with what has to be known about them below."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from textual.color import Color

from workbench.tui.palette import contrast
from workbench.views.plot import Point
from workbench.views.svg import svg_lines, svg_scatter

POINTS = [
    Point(1.0, 1.0, "S", "snowball"),
    Point(0.5, 0.7, "A", "mask"),
    Point(0.4, 0.9, "·", "x"),
    Point(2, 2, "x", "y"),
]
NOTES = ("auto: the heuristic stood in for a selector's choice <3 times>, " + "because no answer is recorded " * 6, "b")


@pytest.mark.parametrize("ground", ["#ffffff", "#000000"])
def test_every_colour_of_a_plot_can_be_read_on_white_and_on_black(ground: str) -> None:
    drawn = svg_scatter(POINTS, "x", "y") + svg_lines("tokens", ["a", "b"], [[1, 2], [2, 3]])
    colours = set(re.findall(r'(?:fill|stroke)="(#[0-9a-f]+)"', drawn))
    assert len(colours) == 5
    for colour in colours:
        assert contrast(Color.parse(ground), Color.parse(colour)) >= 3.9, colour


def test_what_has_to_be_known_of_a_plot_stands_whole_below_it() -> None:
    root = ElementTree.fromstring(svg_scatter(POINTS, "tokens", "cost", NOTES))
    texts = [node for node in root.iter() if node.tag.endswith("text")]
    height = float(root.attrib["height"])
    assert max(float(node.attrib["y"]) for node in texts) < height
    axis = next(float(node.attrib["y"]) for node in texts if node.text == "tokens")
    below = [node.text or "" for node in texts if float(node.attrib["y"]) > axis]
    assert " ".join(below).split() == " ".join(NOTES).split()
    assert max(map(len, below)) <= 112


def circles(drawing: str) -> list[tuple[float, float, str]]:
    """Where each point is drawn, and what it says when pointed at."""
    root = ElementTree.fromstring(drawing)
    found = [node for node in root.iter() if node.tag.endswith("circle")]
    return [(float(node.attrib["cx"]), float(node.attrib["cy"]), "".join(node.itertext()).strip()) for node in found]


def test_every_point_is_drawn_inside_the_plot_where_its_values_are() -> None:
    points = {label: (x, y) for x, y, label in circles(svg_scatter(POINTS, "tokens", "cost"))}
    assert points.keys() == {"snowball", "mask", "x", "y"}
    by_x = sorted(points, key=lambda label: points[label][0])
    by_y = sorted(points, key=lambda label: -points[label][1])
    assert by_x == ["x", "mask", "snowball", "y"]
    assert by_y == ["mask", "x", "snowball", "y"]
    assert all(80 <= x <= 680 and 24 <= y <= 440 for x, y in points.values())


def test_a_line_has_a_point_for_each_value_and_a_gap_for_none() -> None:
    drawn = circles(svg_lines("tokens", ["a", "b", "c"], [[1, None, 2], [2, 3, 4]]))
    assert [told for _, _, told in drawn] == ["A a: 1", "A c: 2", "B a: 2", "B b: 3", "B c: 4"]
    first, last = drawn[2], drawn[4]
    assert first[0] < drawn[3][0] < last[0]
    assert first[1] > drawn[3][1] > last[1], "more is higher"
