"""Plots as pictures: readable on every ground, each point named, with what has to be known about them below."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from textual.color import Color

from workbench.tui.palette import contrast
from workbench.views.figure import Lines, lines_picture, scatter_picture
from workbench.views.plot import Point

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = 'a <script>&amp; $x^2$ \x1b[31m\u202e"'
POINTS = [
    Point(1.0, 1.0, "S", "snowball"),
    Point(0.5, 0.7, "a", HOSTILE),
    Point(0.4, 0.9, "·", "x"),
    Point(2, 2, "x", "y"),
]
NOTES = ("auto: the heuristic stood in for a selector's choice <3 times>, " + "because no answer is recorded " * 6, "b")
LINES = Lines("tokens", ["a:1", "a:2", "b:1", "b:2"], ["a", "a", "b", "b"], [[1, None, 2, 3], [2, 3, 4, 4]])


def texts(root: ElementTree.Element) -> list[str]:
    return ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]


def named(root: ElementTree.Element) -> dict[str, ElementTree.Element]:
    """What says something when it is pointed at."""
    return {
        title: node for node in root.iter(f"{SVG}g") if (title := node.findtext(f"{SVG}title", "")) and node.get("id")
    }


@pytest.mark.parametrize("ground", ["#ffffff", "#000000"])
def test_every_colour_of_a_plot_can_be_read_on_white_and_on_black(ground: str) -> None:
    drawn = (scatter_picture(POINTS, "x", "y") + lines_picture([LINES])).decode()
    colours = set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})\b", drawn))
    assert len(colours - {"#000000"}) >= 5
    for colour in colours - {"#000000"}:  # Black is the library's word for what is not painted.
        assert contrast(Color.parse(ground), Color.parse(colour)) >= 3.8, colour


def test_a_picture_is_named_point_by_point_and_holds_no_markup_of_a_name() -> None:
    root = ElementTree.fromstring(scatter_picture(POINTS, "tokens", "cost", NOTES))
    told = named(root)
    assert told.keys() >= {"snowball", "x", "y"}
    assert len(told) == len(POINTS)
    said = " ".join(texts(root))
    assert "<script>&amp; $x^2$" in said, "a name is text"
    assert not {"\x1b", "\u202e"} & set(said + " ".join(told))
    assert " ".join(" ".join(NOTES).split()) in " ".join(said.split()), "notes stand whole"
    assert root.tag == f"{SVG}svg"


def test_a_visit_of_one_call_ends_at_a_rule_too() -> None:
    plot = Lines("tokens", ["a:1", "b:1", "b:2"], ["a", "b", "b"], [[1, 2, 3]])
    drawn = lines_picture([plot]).decode()
    assert drawn.count("stroke-dasharray") == 1


def test_a_picture_is_the_same_each_time_and_a_png_is_one() -> None:
    assert scatter_picture(POINTS, "x", "y") == scatter_picture(POINTS, "x", "y")
    assert lines_picture([LINES], "png").startswith(b"\x89PNG")


def test_a_line_has_a_point_for_each_value_and_none_leads_to_another_visit() -> None:
    root = ElementTree.fromstring(lines_picture([LINES]))
    assert list(named(root)) == ["A a:1: 1", "A b:1: 2", "A b:2: 3", "B a:1: 2", "B a:2: 3", "B b:1: 4", "B b:2: 4"]
    paths = [node.get("d", "") for node in root.iter(f"{SVG}path") if "stroke-width: 1.8" in node.get("style", "")]
    ends = [[float(x) for x in re.findall(r"[ML] ([\d.]+)", path)] for path in paths]
    assert all(before < after for xs in ends for before, after in pairwise(xs))
    rules = [
        float(found[1])
        for node in root.iter(f"{SVG}path")
        if "dasharray" in node.get("style", "") and (found := re.match(r"M ([\d.]+)", node.get("d", "")))
    ]
    assert len(rules) == 1
    assert not any(min(xs) < rules[0] < max(xs) for xs in ends)
