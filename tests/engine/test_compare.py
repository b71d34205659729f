"""Two looks at a run: their sums, what a provider reported, and from when on masking pays."""

from __future__ import annotations

import math
from typing import Any

import pytest
from msgspec.structs import replace

from tests.engine.support import FlatPrices, Played, Reply, Words, native, play
from workbench.analysis.compare import Comparison, ComparisonSide, Totals, as_recorded, cheaper, compare, under
from workbench.context.assembly import Grade
from workbench.context.cache import CacheRule, Price
from workbench.context.strategy import Strategy, parse
from workbench.engine.contracts import Answer
from workbench.engine.journal.usage import Usage

TURNS = 7
CASCADE: dict[str, Any] = {
    "cascade_id": "c",
    "phases": [
        {
            "name": "dig",
            "instructions": "Dig",
            "tackle": ["t"],
            "use_native_tools": True,
            "rules": {"max_turns": TURNS},
        },
        {"name": "tell", "instructions": "Tell", "context": {"from": ["dig"]}},
    ],
}


class Writing(FlatPrices):
    """Prices of a provider that bills what it writes to its cache."""

    def price(self, model: str, input_tokens: int = 0) -> Price:
        return Price(1e-6, 2e-6, 1e-7, 1.25e-6, "test", "exact", CacheRule("anthropic", 64, writes=True))


class Unknown(FlatPrices):
    def price(self, model: str, input_tokens: int = 0) -> Price:
        return Price()


class Free(FlatPrices):
    """Reading the cache costs nothing."""

    def price(self, model: str, input_tokens: int = 0) -> Price:
        return replace(FlatPrices().price(model), cache_read=0.0)


def played(words: int = 700, usage: Usage | None = None, turns: int = TURNS) -> Played:
    """Turns that each read a result of so many words."""
    answers: list[Reply] = [native(f"turn {i}", t={"x": str(i)}) for i in range(1, turns)]
    if usage is not None:
        answers = [replace(answer, usage=usage) for answer in answers if not isinstance(answer, str | Exception)]
    return play(
        CASCADE,
        {"dig": [*answers, Answer("done")], "tell": [Answer("told")]},
        tools={"t": lambda x: f"result {x} " + "word " * words},
    )


def side(run: Played, spec: str, prices: Any = None) -> ComparisonSide:
    return under(spec, run.state, run.definition, parse(spec), Words(), prices or FlatPrices())


def against(run: Played, a: str, b: str, prices: Any = None) -> Comparison:
    return compare(side(run, a, prices), side(run, b, prices))


@pytest.mark.parametrize("spec", ["snowball", "selective", "mask(after=1)", "slide(turns=2)", "clear(trigger=900)"])
def test_a_strategy_against_itself_shows_no_difference(spec: str) -> None:
    found = against(played(), spec, spec)
    assert found.pairs
    assert found.differing == ()
    assert found.a.totals == found.b.totals
    assert all(pair.changes == () for pair in found.pairs)


@pytest.mark.parametrize("prices", [FlatPrices(), Writing()])
def test_the_totals_are_the_sums_of_the_calls_and_cost_counts_what_is_written(prices: Any) -> None:
    shown = side(played(), "selective+mask(after=1)", prices)
    price = prices.price("")
    cost = 0.0
    for one in shown.seen:
        forecast = one.forecast
        assert forecast is not None
        assert forecast.cached + forecast.fresh + forecast.written == one.tokens
        cost += forecast.fresh * price.input + forecast.cached * price.cache_read
        cost += forecast.written * (price.cache_write or 0)
    totals = shown.totals
    assert totals.cost == pytest.approx(cost)
    assert totals.tokens == sum(one.tokens for one in shown.seen) == totals.cached + totals.fresh + totals.written
    assert totals.peak == max(one.tokens for one in shown.seen)
    assert (totals.calls, totals.unknown, totals.broken) == (TURNS + 1, 0, 0)
    assert bool(totals.written) == price.rule.writes


def test_masking_sends_less_and_costs_more_because_it_breaks_the_prefix() -> None:
    found = against(played(), "selective", "selective+mask(after=2)")
    a, b = found.a.totals, found.b.totals
    assert a.cost is not None
    assert b.cost is not None
    assert b.tokens < a.tokens
    assert b.cost > a.cost
    assert found.a.breaches == ()
    assert len(found.b.breaches) == TURNS - 3
    first = found.differing[0]
    assert first.place.turn == 4
    assert first.changes[0].words == "message 3 (turn 1's result) was sent in full, is now masked"


def test_the_break_even_is_where_savings_have_paid_for_what_was_read_anew() -> None:
    shown = side(played(), "selective+mask(after=2)")
    price = FlatPrices().price("")
    assert price.input
    assert price.cache_read
    by_turn = {one.call.place.turn: one for one in shown.seen if one.call.place.phase == "dig"}
    now, before = by_turn[4], by_turn[3]
    assert now.breach is not None
    assert now.forecast is not None
    assert now.forecast.cost is not None
    masked = sum(e.tokens_full - e.tokens_sent for e in now.entries)
    assert now.breach.freed == masked
    held = (before.tokens - Words().overhead("")) // 128 * 128
    unmasked = held * price.cache_read + (now.tokens + masked - held) * price.input
    lost_here = now.forecast.cost - unmasked
    turns = now.breach.turns
    assert turns is not None
    assert lost_here == pytest.approx(masked * price.cache_read * (turns - 1))
    assert now.breach.left == TURNS - 4
    assert now.breach.pays == (turns <= TURNS - 4)


def test_the_break_even_of_a_side_is_that_of_its_sums() -> None:
    shown = side(played(), "selective+mask(after=2)")
    freed, rewritten = sum(b.freed for b in shown.breaches), sum(b.rewritten for b in shown.breaches)
    assert shown.pays_after == pytest.approx(rewritten * (1 - 0.1) / (freed * 0.1))
    assert side(played(), "selective").pays_after is None


def test_masking_in_one_batch_breaks_the_prefix_once() -> None:
    assert len(side(played(), "selective+mask(after=1,step=4)").breaches) == 1


def test_unknown_prices_stay_unknown_and_free_reads_never_pay() -> None:
    run = played()
    unknown = side(run, "selective+mask(after=2)", Unknown())
    assert unknown.totals.cost is None
    assert unknown.totals.unknown == TURNS + 1
    assert unknown.pays_after is None
    assert {breach.pays for breach in unknown.breaches} == {None}
    free = side(run, "selective+mask(after=2)", Free())
    assert free.pays_after is not None
    assert math.isinf(free.pays_after)


def test_what_the_provider_counted_stands_beside_the_request_that_was_sent() -> None:
    run = played(usage=Usage(input=1000, output=5, cached=600, written=0))
    sent = as_recorded("run", run.state, run.definition, Words(), FlatPrices())
    report = sent.reported[0].reported
    assert report is not None
    assert (report.input, report.cached) == (1000, 600)
    assert report.cost == pytest.approx(400 * 1e-6 + 600 * 1e-7)
    other = side(run, "selective+mask(after=1)")
    assert {one.call.place.turn for one in other.reported if one.call.place.phase == "dig"} == {1, 2}


def test_a_run_as_recorded_is_what_its_file_says() -> None:
    run = played()
    recorded = as_recorded("run", run.state, run.definition, Words(), FlatPrices())
    by_file = under("file", run.state, run.definition, None, Words(), FlatPrices())
    assert compare(recorded, by_file).differing == ()
    stored = as_recorded("run", run.state, None, Words(), FlatPrices())
    assert replace(stored.totals, cost_low=None, cost_high=None) == replace(
        recorded.totals, cost_low=None, cost_high=None
    )


def test_of_two_runs_calls_that_only_one_made_stand_alone() -> None:
    long, short = played(), played(turns=TURNS - 2)
    sides = [as_recorded("r", run.state, run.definition, Words(), FlatPrices()) for run in (long, short)]
    found = compare(*sides)
    alone = [pair for pair in found.pairs if pair.b is None]
    assert [pair.place.turn for pair in alone] == [TURNS - 1, TURNS]
    assert len(found.pairs) == TURNS + 1
    assert Totals.of([pair.a for pair in found.pairs if pair.a is not None]) == found.a.totals


def test_a_strategy_that_leaves_what_enters_open_keeps_what_the_file_says() -> None:
    run = played()
    strategy: Strategy = parse("mask(after=2)")
    partly = under("x", run.state, run.definition, strategy, Words(), FlatPrices())
    assert compare(partly, side(run, "selective+mask(after=2)")).differing == ()


def totals(*costs: float | None) -> Totals:
    cost, low, high = costs
    return replace(Totals.of([]), cost=cost, cost_low=low, cost_high=high)


@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        ((1.0, 0.9, 1.2), (0.8, 0.7, 1.0), 1),
        ((0.8, 0.7, 1.0), (1.0, 0.9, 1.2), -1),
        ((1.0, 0.9, 1.2), (0.99, 0.95, 1.1), None),
        ((1.0, 1.0, 1.0), (1.0, 1.0, 1.0), 0),
        ((None, None, None), (1.0, 1.0, 1.0), None),
    ],
)
def test_a_side_is_cheaper_only_where_it_is_so_however_the_provider_counts(a: Any, b: Any, found: int | None) -> None:
    assert cheaper(totals(*a), totals(*b)) == found


def test_a_run_whose_tokens_were_stated_is_compared_by_those() -> None:
    """The provider counts three tokens for two of ours, and 1,000 in front: so do both strategies."""
    run = played()
    state, masking = run.state, parse("selective+mask(after=2)")
    own = [call.tokens_sent for call in state.calls]
    for call in state.calls:
        call.usage = Usage(1000 + call.tokens_sent * 3 // 2, 5, 0)
    whole = under("a", state, run.definition, parse("selective"), Words(), FlatPrices())
    masked = under("b", state, run.definition, masking, Words(), FlatPrices())
    by_own = under("c", run.state, run.definition, masking, Words(), FlatPrices())
    assert [one.tokens for one in whole.seen] == [call.usage.input for call in state.calls]
    last = TURNS - 1
    share = (masked.seen[last].tokens - 1000) / (whole.seen[last].tokens - 1000)
    assert share == pytest.approx(by_own.seen[last].tokens / own[last], rel=0.1)
    assert (whole.seen[last].grade, masked.seen[last].grade) == (Grade.EXACT, Grade.CALIBRATED)
