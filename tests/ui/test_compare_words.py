"""What a comparison says of masking where the provider caches nothing, and of runs that made other calls."""

from __future__ import annotations

import io
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from tests.engine.support import FlatPrices, Words
from tests.engine.test_compare import against, played
from workbench.analysis.compare import Comparison, as_recorded, compare
from workbench.cli.printer import Printer
from workbench.context.cache import Price
from workbench.views.compare import CompareRows, CompareView, comparison_json
from workbench.views.compare_words import (
    answer_lines,
    breach_line,
    brief_difference,
    cost_of,
    expired_lines,
    first_difference,
    pay_lines,
    verdict,
)


def assert_told_everywhere(found: Comparison, said: str) -> None:
    """The command prints a sentence, the screen wraps it into its lines, and JSON has it among the notes."""
    view, stream = CompareView(found, "r", is_what_if=False), io.StringIO()
    Printer(plain=True, stream=stream).show(view.blocks())
    assert f"  {said}.\n" in stream.getvalue()
    for width in (80, 120):
        rows = CompareRows(found, "r", is_what_if=False)
        rows.lay_out(width)
        drawn = " ".join(rows.row(at, width).text.strip() for at in range(len(rows)))
        assert said in drawn, width
    assert said in view.json()["notes"]


def test_masking_that_falls_below_the_cache_is_not_said_to_pay_where_it_costs_more() -> None:
    """400 words a result: two of them lie below 1,024 tokens, while all of them are read from the cache."""
    found = against(played(400), "selective", "selective+mask(after=2)")
    a, b = found.a.totals.cost, found.b.totals.cost
    assert a is not None
    assert b is not None
    assert b > a
    frees, pays = pay_lines(found)
    assert frees.startswith("B frees 1,580 tokens and breaks no cached prefix")
    assert pays == ("Yet it costs more: below 1,024 tokens, as at 4 calls, the cache holds nothing")
    told = []
    for pair, call in zip(found.pairs, comparison_json(found)["calls"], strict=True):
        if pair.b is not None and pair.b.breach is not None:
            dearer = (cost_of(pair.b) or 0) > (cost_of(pair.a) or 0)
            line = breach_line(pair.b, pair.a)
            assert ("yet it costs more" in line, "pays at once" in line) == (dearer, not dearer)
            assert call["b"]["break_even"]["pays"] is not dearer
            told.append(dearer)
    assert set(told) == {True, False}


class DearCache(FlatPrices):
    """What a cache holds costs half of the full price: a break costs less than what it frees saves in the end."""

    def price(self, model: str, input_tokens: int = 0) -> Price:
        return replace(super().price(model, input_tokens), cache_read=5e-7)


def test_breaks_that_do_not_pay_back_are_not_held_against_masking_that_costs_less() -> None:
    dearer, less = (
        against(played(800), "selective", "selective+mask(after=2)", prices) for prices in (None, DearCache())
    )
    assert [one.b.pays_after for one in (dearer, less)] == [pytest.approx(9.1, abs=0.1), pytest.approx(1.0, abs=0.9)]
    assert "more" in verdict(dearer)[1]
    assert "costs 21% less" in verdict(less)[1]
    assert [line[:11] for line in pay_lines(dearer)] == ["B frees 3,1", "Breaks even"]
    assert [line[:11] for line in pay_lines(less)] == ["B frees 3,1"]


def test_the_first_difference_is_told_in_a_sentence_and_in_few_words() -> None:
    found = against(played(), "snowball", "selective+mask(after=1)")
    same, masked = found.pairs[0], next(pair for pair in found.pairs if not pair.same)
    assert same.b is not None
    other = replace(same, b=replace(same.b, digest="another"))
    for pair, sentence, few in (
        (same, "", ""),
        (other, "model, tools or parameters differ", "parameters"),
        (replace(same, b=None), "only A made this call", "only A"),
        (replace(same, a=None), "only B made this call", "only B"),
        (masked, "3 turn 1's result: full → masked", "3 masked"),
    ):
        assert (first_difference(pair), brief_difference(pair)) == (sentence, few)


def test_a_run_that_was_stopped_early_is_not_said_to_be_cheaper() -> None:
    whole, cut = played(100), played(100, turns=3)
    a, b = (as_recorded("one", run.state, run.definition, Words(), FlatPrices()) for run in (whole, cut))
    warns, said = verdict(compare(a, b))
    assert not warns
    assert said.startswith("A made 8 calls, B 4: B sends ")
    assert b.outcome is not None
    stopped = compare(a, replace(b, outcome=replace(b.outcome, status="stopped", output="")))
    warns, said = verdict(stopped)
    assert warns
    assert said.startswith("A made 8 calls, B 4 (B stopped): B sends ")
    assert "A alone has a final output" in list(answer_lines(stopped))
    rows = CompareRows(stopped, "one and two")
    rows.lay_out(100)
    (told,) = (line for at in range(len(rows)) if (line := rows.row(at, 100).text).startswith(" final output"))
    assert told.rstrip() == " final output      A alone: told"
    assert verdict(compare(a, a)) == (False, "both send the same requests")


@pytest.mark.parametrize(("left", "words"), [(1, "1 remains"), (2, "2 remain"), (0, "0 remain")])
def test_one_turn_that_is_left_remains(left: int, words: str) -> None:
    found = against(played(800), "selective", "selective+mask(after=2)")
    (one, *_) = (pair.b for pair in found.pairs if pair.b is not None and pair.b.breach is not None)
    assert one.breach is not None
    assert breach_line(replace(one, breach=replace(one.breach, left=left)), None).endswith(f"more turns; {words}")


def test_a_cache_that_expired_on_one_side_is_named() -> None:
    """A pause before one call: with equal tokens it costs more, and only the gap between the calls says why."""
    run = played()
    state = run.state
    for call in state.calls[2:]:
        call.at = f"{datetime.fromisoformat(call.at) + timedelta(seconds=378):%Y-%m-%dT%H:%M:%S.%fZ}"
    a, b = (as_recorded("r", one, run.definition, Words(), FlatPrices()) for one in (run.state, state))
    assert list(expired_lines(compare(a, a))) == []
    (said,) = expired_lines(compare(a, b))
    told = "1 call of B begins after the cache has expired (dig:3: 378 s since the last call, it lives 300 s)"
    assert said == f"{told}; in A it has not"
    assert_told_everywhere(compare(a, b), said)
    assert next(expired_lines(compare(b, a))).startswith("1 call of A begins after the cache")
