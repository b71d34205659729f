"""Sums of money: what was asked for in a run, and apart from it what a recording gave."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.engine.journal.costs import CostSum, Embeddings
from workbench.engine.journal.figures import Figures


def test_sums_of_parts_of_a_run_keep_billed_and_recorded_money_apart() -> None:
    own = CostSum(billed=0.25, calls=1, recorded=0.5, recorded_calls=2)
    inside = CostSum(predicted=0.125, exact=False, calls=1, recorded=0.0625, recorded_exact=False, recorded_calls=1)
    both = own + inside
    assert (both.total, both.exact, both.calls) == (0.375, False, 2)
    assert (both.recorded, both.recorded_exact, both.recorded_calls) == (0.5625, False, 3)
    assert (own + own).recorded_exact


@pytest.mark.parametrize(("left", "right"), [(0.5, 0.0), (0.0, 0.5)])
def test_money_of_a_recording_is_no_part_of_the_total(left: float, right: float) -> None:
    both = CostSum(billed=1.0, calls=1, recorded=left) + CostSum(billed=1.0, calls=1, recorded=right)
    assert (both.total, both.recorded) == (2.0, 0.5)


def test_embeddings_are_part_of_what_was_billed_and_one_call_without_a_price() -> None:
    billed = CostSum.sum([], Embeddings(3, "tiny", 30, 0.25))
    assert (billed.total, billed.exact, billed.embedded) == (0.25, True, 1)
    unknown = CostSum.sum([], Embeddings(3, "tiny", 30, None))
    assert (unknown.total, unknown.exact, unknown.unknown) == (None, False, 1)


@pytest.mark.parametrize(
    ("body", "calls", "recorded", "tokens"),
    [
        ({"calls": 2, "tokens_in": 20, "tokens_out": 4, "spent": {"billed": 0.5, "calls": 2}}, 2, 0, (20, 0)),
        ({"calls": 2, "recorded": 2, "tokens_in": 20, "spent": {"billed": 0.5, "calls": 2}}, 0, 2, (0, 20)),
        ({"calls": 2, "recorded": 2, "tokens_in": 20, "spent": {"recorded": 0.5, "recorded_calls": 2}}, 0, 2, (0, 20)),
        (
            {"calls": 1, "recorded": 2, "tokens_in": 5, "recorded_tokens_in": 20, "spent": {"recorded": 0.5}},
            1,
            2,
            (5, 20),
        ),
    ],
    ids=["none recorded", "recorded, and counted as spent", "recorded, and counted as calls", "as of today"],
)
def test_figures_of_child_runs_in_older_journals_are_read(
    body: dict[str, Any], calls: int, recorded: int, tokens: tuple[int, int]
) -> None:
    read = Figures.from_json(body)
    assert read is not None
    assert (read.calls, read.recorded, (read.tokens_in, read.recorded_tokens_in)) == (calls, recorded, tokens)
    assert (read.spent.billed, read.spent.recorded) == ((0.0, 0.5) if recorded else (0.5, 0.0))
    assert Figures.from_json(read.to_json()) == read


def test_figures_in_older_journals_that_cannot_be_told_apart_are_unknown() -> None:
    body = {"calls": 3, "recorded": 2, "tokens_in": 20, "spent": {"billed": 0.1, "recorded": 0.5, "recorded_calls": 2}}
    assert Figures.from_json(body) is None
