"""Many strategies on several runs: ratios, medians and the front, worked out again by hand."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.engine.support import FlatPrices, Words
from tests.engine.test_compare import Unknown, Writing, played
from tests.importers.test_journal import imported
from workbench.analysis.sweep import Dominant, Pricing, Subject, candidates, shared_strategies, strategies_in, sweep
from workbench.analysis.what_if import what_if
from workbench.context.cache import Price
from workbench.context.strategy import parse
from workbench.engine.definition import Definition
from workbench.views.sweep import model_lines, sentences

SIZES = (40, 400, 900)


def subjects() -> list[Subject]:
    runs = [played(words) for words in SIZES]
    return [Subject(f"run{words}", run.state, run.definition) for words, run in zip(SIZES, runs, strict=True)]


def sums(subject: Subject, spec: str) -> tuple[int, float]:
    """Tokens and cost, straight from the what-if."""
    found = what_if(subject.state, subject.definition, parse(spec), Words(), FlatPrices())
    return sum(one.prediction.forecast.tokens or 0 for one in found), sum(
        one.prediction.forecast.cost or 0.0 for one in found
    )


def test_ratios_and_medians_are_those_worked_out_by_hand() -> None:
    runs = subjects()
    found = sweep(
        runs,
        candidates(["mask(after=1..3)"], [r.definition for r in runs]),
        Words(),
        [Pricing("recorded", FlatPrices())],
    )
    assert [row.label for row in found.rows] == ["snowball", "file", "mask(after=1)", "mask(after=2)", "mask(after=3)"]
    for row in found.rows[2:]:
        tokens, costs = [], []
        for run in runs:
            base, mine = sums(run, "snowball"), sums(run, row.label)
            tokens.append(mine[0] / base[0])
            costs.append(mine[1] / base[1])
        assert row.cost is not None
        assert (row.tokens.low, row.tokens.median, row.tokens.high) == pytest.approx(tuple(sorted(tokens)))
        assert (row.cost.low, row.cost.median, row.cost.high) == pytest.approx(tuple(sorted(costs)))
        assert row.invalid == 0
    assert found.rows[0].tokens.median == 1.0


def test_no_strategy_of_the_front_is_beaten_and_every_other_one_is() -> None:
    runs = subjects()
    found = sweep(
        runs,
        candidates(["mask(after=1..4,step=[1,3])"], [r.definition for r in runs]),
        Words(),
        [Pricing("recorded", FlatPrices())],
    )
    points = [(row.tokens.median, row.cost.median if row.cost else 0.0, row.on_front) for row in found.rows]
    for tokens, cost, on_front in points:
        beaten = any(t <= tokens and c <= cost and (t, c) != (tokens, cost) for t, c, _ in points)
        assert on_front != beaten


def test_without_prices_tokens_are_compared_and_costs_stay_unknown() -> None:
    runs = subjects()
    found = sweep(
        runs, candidates(["mask(after=1)"], [r.definition for r in runs]), Words(), [Pricing("recorded", Unknown())]
    )
    assert [(row.cost, row.unknown, row.on_front) for row in found.rows] == [(None, 3, False)] * 3
    assert found.rows[-1].tokens.median < 1


def test_a_run_without_calls_is_left_out_by_name() -> None:
    run = played()
    empty = Subject("empty", type(run.state)(), run.definition)
    found = sweep(
        [empty, subjects()[0]],
        candidates(["mask(after=1)"], [run.definition]),
        Words(),
        [Pricing("recorded", FlatPrices())],
    )
    assert found.runs == ("run40",)
    assert [(one.run, one.reason) for one in found.excluded] == [("empty", "nothing was sent inside a turn")]


def test_a_name_counts_only_where_every_file_means_the_same_by_it() -> None:
    one = played().definition
    first = type(one).of(
        one.source.text.replace('"c"', '"c", "strategies": {"m": "mask(after=1)", "n": "selective"}', 1)
    )
    second = type(one).of(first.source.text.replace("after=1", "after=2"))
    assert shared_strategies([first, second]) == {"n": "selective"}
    assert shared_strategies([first]) == {"m": "mask(after=1)", "n": "selective"}


def test_the_strategy_that_files_set_is_spelled_out_where_it_is_one_or_two() -> None:
    one = played().definition
    again = type(one).of(one.source.text.replace('"c"', '"c", "strategy": "mask(after=7)"', 1))
    found = strategies_in([again])
    assert len(found) == 1
    assert "mask(after=7" in found[0]
    assert strategies_in([again, again]) == found
    assert strategies_in([one, again]) == ()


OWN = [Pricing("recorded", FlatPrices())]


def test_sums_are_dollars_over_named_runs_and_calls() -> None:
    runs = subjects()
    found = sweep(runs, candidates(["mask(after=1)"], [r.definition for r in runs]), Words(), OWN)
    masked = found.rows[-1]
    by_hand = [(sums(run, "mask(after=1)"), sums(run, "snowball")) for run in runs]
    assert masked.cost_sum is not None
    assert masked.cost_sum.value == pytest.approx(sum(mine[1] for mine, _ in by_hand))
    assert masked.cost_sum.ratio == pytest.approx(masked.cost_sum.value / sum(base[1] for _, base in by_hand))
    assert masked.tokens_sum.value == sum(mine[0] for mine, _ in by_hand)
    assert (masked.cost_sum.runs, masked.cost_sum.calls) == (3, sum(t.totals.calls for t in masked.trials))
    (cheapest,) = (row for row in found.rows if row.is_cheapest)
    assert cheapest == found.cheapest("recorded")
    assert cheapest.cost_sum is not None
    assert all(row.cost_sum is None or row.cost_sum.value >= cheapest.cost_sum.value for row in found.rows)


def test_one_run_that_makes_up_the_sum_is_named() -> None:
    def dominant(*sizes: int) -> object:
        runs = [Subject(f"run{i}", run.state, run.definition) for i, run in enumerate(map(played, sizes))]
        return sweep(runs, candidates([], [runs[0].definition]), Words(), OWN).dominant("recorded")

    found = dominant(900, 10, 10)
    assert isinstance(found, Dominant)
    assert (found.run, found.share > 0.8) == ("run0", True)
    assert dominant(40, 40, 40) is None
    assert dominant(900) is None


def test_each_provider_has_its_own_front_and_its_own_cheapest() -> None:
    runs = subjects()
    both = [*OWN, Pricing("writing", Writing())]
    found = sweep(runs, candidates(["mask(after=1..2)"], [r.definition for r in runs]), Words(), both)
    assert [row.pricing for row in found.rows] == ["recorded"] * 4 + ["writing"] * 4
    for pricing in both:
        alone = sweep(runs, candidates(["mask(after=1..2)"], [r.definition for r in runs]), Words(), [pricing])
        assert found.at(pricing.label) == alone.rows


def test_a_run_that_names_no_model_has_the_prices_of_the_model_that_is_asked_for() -> None:
    class Uncached(FlatPrices):
        def price(self, model: str, input_tokens: int = 0) -> Price:
            return Price(3e-5, 6e-5, source="test", grade="exact")

    (run,) = subjects()[:1]
    for call in run.state.calls:
        call.model = ""
    found = sweep([run], candidates([], [run.definition]), Words(), [Pricing("openai/gpt-4", Uncached())])
    (line,) = (line for line in model_lines(found) if line.startswith("openai/gpt-4"))
    assert line.startswith("openai/gpt-4: input $30.00 per million tokens")
    assert line.endswith("prompt cache none: every token costs the full price")


def test_sums_over_different_runs_are_not_compared() -> None:
    runs = subjects()
    both = [*OWN, Pricing("writing", Writing())]
    found = sweep(runs, candidates(["mask(after=1)"], [r.definition for r in runs]), Words(), both)
    assert any("cheapest of all: " in said.text for said in sentences(found))
    rows = [
        replace(row, priced="other", cost_sum=row.cost_sum and replace(row.cost_sum, runs=2))
        if row.pricing == "recorded"
        else row
        for row in found.rows
    ]
    said = [said.text for said in sentences(replace(found, rows=tuple(rows)))]
    assert not any("cheapest of all" in text for text in said)
    assert any("different runs (2 runs as recorded, 3 runs at writing)" in text for text in said)


def test_a_run_whose_recorded_messages_are_invalid_takes_itself_out_and_not_the_front() -> None:
    """A call of a tool has no result: no provider takes that, whatever is masked."""
    runs = subjects()
    ask, call = {"role": "user", "content": "Look."}, {"id": "c1", "function": {"name": "ls", "arguments": "{}"}}
    asked = {"role": "assistant", "tool_calls": [call]}
    state, _ = imported([ask, asked, {"role": "user", "content": "And?"}, {"role": "assistant", "content": "Well."}])
    wrong = Subject("wrong", state, Definition.of(state.cascade_text, ""))
    tried = candidates(["mask(after=1)"], [r.definition for r in runs])
    found = sweep([*runs, wrong], tried, Words(), OWN)
    whole = sweep(runs, tried, Words(), OWN)
    assert found.rows == whole.rows
    assert any(row.on_front for row in found.rows)
    (lost,) = found.excluded
    assert lost.run == "wrong"
    assert lost.reason.startswith("its recorded messages are invalid at ")
    alone = sweep([wrong], tried, Words(), OWN)
    assert (alone.runs, [one.run for one in alone.suspect]) == (("wrong",), ["wrong"])
    assert [row.invalid for row in alone.rows] == [0, 0, 0]


def test_what_is_cheapest_is_not_certain_where_a_guess_decides() -> None:
    runs = subjects()
    found = sweep(runs, candidates(["mask(after=1)"], [r.definition for r in runs]), Words(), OWN)
    assert found.rivals("recorded") == ()
    least = found.cheapest("recorded")
    assert least is not None
    assert least.cost_sum is not None
    other = next(row for row in found.rows if row is not least)
    assert other.cost_sum is not None
    low = least.cost_sum.value / 2
    rows = [
        replace(row, cost_sum=replace(row.cost_sum, low=low if row is other else low * 1.5))
        for row in found.rows
        if row.cost_sum is not None
    ]
    assert [row.label for row in replace(found, rows=tuple(rows)).rivals("recorded")] == [other.label]
