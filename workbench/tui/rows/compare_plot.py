"""Tokens and cost of two sides over their calls, drawn with characters."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest

from workbench.engine.compare import Comparison
from workbench.tui.rows.cells import Span, width_of
from workbench.tui.rows.compare_words import call_name, cost_of
from workbench.tui.rows.plot import Drawn, lines_over_calls
from workbench.tui.rows.text import DrawnRows, Line, drawn_line

BESIDE = 140
"""Cells from which on the two plots stand side by side."""
GAP = 4
"""Cells between them then."""


def plot_doc(comparison: Comparison, height: Callable[[], int]) -> DrawnRows:
    """Both plots, as wide as there is room, in a screen of so many lines: side by side, or below each other."""
    return DrawnRows(lambda room: _drawn(comparison, room, height()), (("Plot", "title"), ("  over the calls", "name")))


def _drawn(comparison: Comparison, room: int, height: int) -> list[Line]:
    names = [call_name(pair.place) for pair in comparison.pairs]
    sides = [pair.a for pair in comparison.pairs], [pair.b for pair in comparison.pairs]
    tokens = [[float(seen.tokens) if seen else None for seen in side] for side in sides]
    costs = [[cost_of(seen) for seen in side] for side in sides]
    priced = any(cost is not None for side in costs for cost in side)
    beside = room >= BESIDE and priced
    width = (room - GAP) // 2 if beside else room
    rows = max(4, height - 7 if beside else (height - 11) // 2)

    sent = lines_over_calls(names, tokens, "tokens sent", width, rows)
    paid = lines_over_calls(names, costs, "US dollars for the input, predicted", width, rows) if priced else []
    none: list[Drawn] = [] if priced else [(("No price is known: there is no cost to draw.", "dim"),)]
    plots = _side_by_side(sent, paid, width) if beside else [*sent, (), *paid, *none]
    return [drawn_line(spans) for spans in (_legend(comparison), (), *plots)]


def _legend(comparison: Comparison) -> tuple[Span, ...]:
    return (
        ("A", "side-a"),
        (f" {comparison.a.label}     ", "bold"),
        ("B", "side-b"),
        (f" {comparison.b.label}     ", "bold"),
        ("= both in one place", "dim"),
    )


def _side_by_side(left: list[Drawn], right: list[Drawn], width: int) -> list[Drawn]:
    return [(*a, (" " * (width - width_of(a) + GAP), "plain"), *b) for a, b in zip_longest(left, right, fillvalue=())]
