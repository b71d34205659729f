"""The numbers beside the tree where it is wide: calls, tokens, cost and seconds, in columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from workbench.tui.rows.cells import Row, Span, crop, fit, width_of
from workbench.tui.rows.numbers import count, seconds, spent_words

if TYPE_CHECKING:
    from workbench.engine.parts import CallState

WIDE = 76
"""Cells from which on a tree has columns."""
ROOMY = 100
"""Cells from which on it has all of them."""
COLUMNS = {"calls": 7, "in": 10, "cached": 10, "out": 9, "cost": 11, "time": 9}
LEAVES = "cached"
"""The column that leaves where it is narrower."""
GAP = 4
"""Cells between the longest name and the first column."""


def label_width(longest: int, width: int) -> int:
    """Cells of the names: as many as the longest one takes, so that the numbers stand near it."""
    return max(20, min(longest + GAP, width - _room(width) - 1))


def _room(width: int) -> int:
    return sum(COLUMNS.values()) - (0 if width >= ROOMY else COLUMNS[LEAVES])


def _fitted(texts: Mapping[str, Span], width: int) -> list[Span]:
    """The columns that there are, each with its text."""
    return [
        (fit(texts.get(name, ("", ""))[0], cells, "right"), texts.get(name, ("", "plain"))[1])
        for name, cells in COLUMNS.items()
        if width >= ROOMY or name != LEAVES
    ]


def head(label: int, width: int) -> Row:
    return Row(crop(((" " * label, "head"), *_fitted({name: (name, "head") for name in COLUMNS}, width)), width))


def figures(calls: Sequence[CallState], width: int, *, counted: bool) -> list[Span]:
    """The columns for some calls; ``counted`` where there may be more than one. What nobody knows is left empty."""
    from workbench.engine.spent import Spent  # Not before there is a run: the first tree needs no engine.

    answered = [call for call in calls if call.answer is not None]
    texts: dict[str, Span] = {"calls": (f"{len(calls):,}" if counted else "", "dim")}
    if shown := answered if counted else calls:
        grade = shown[0].grade if not counted and shown[0].usage.input is None else "exact"
        texts["in"] = (count(sum(_sent(call) for call in shown), grade), "plain")
    if answered:
        took = [call.duration_s for call in answered if call.duration_s is not None]
        texts["cached"] = (_known([call.usage.cached for call in answered]), "cached")
        texts["out"] = (_known([call.usage.output for call in answered]), "plain")
        texts["cost"] = (spent_words(Spent.of(answered)), "plain")
        texts["time"] = (seconds(sum(took)) if took else "", "dim")
    return _fitted(texts, width)


def _sent(call: CallState) -> int:
    """The provider's count where it is known, else the predicted one."""
    from workbench.engine.prediction import Predicted

    return Predicted.of(call).tokens if call.usage.input is None else call.usage.input


def _known(values: Sequence[int | None]) -> str:
    found = [value for value in values if value is not None]
    return count(sum(found)) if found and any(found) else ""


def alone(span: Span, width: int) -> list[Span]:
    """The columns of a row that has no call: seconds, or nothing."""
    return _fitted({"time": span}, width)


def row(left: Sequence[Span], right: Sequence[Span], label: int, width: int, tone: str) -> Row:
    """A name in so many cells, and what stands in the columns."""
    name = crop(left, label - 1)
    return Row(crop((*name, (" " * (label - width_of(name)), "plain"), *right), width), tone)
