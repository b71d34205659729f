"""What a comparison says of masking where the provider caches nothing."""

from __future__ import annotations

from tests.engine.test_compare import against, played
from workbench.views.compare import comparison_json
from workbench.views.compare_words import breach_line, cost_of, pay_lines


def test_masking_that_falls_below_the_cache_is_not_said_to_pay_where_it_costs_more() -> None:
    """400 words a result: two of them lie below 1,024 tokens, while all of them are read from the cache."""
    found = against(played(400), "selective", "selective+mask(after=2)")
    a, b = found.a.totals.cost, found.b.totals.cost
    assert a is not None
    assert b is not None
    assert b > a
    frees, pays = pay_lines(found)
    assert frees.startswith("B frees 1,580 tokens and has 0 read anew")
    assert pays == (
        "It breaks nothing that was cached, yet costs more: below 1,024 tokens, as at 4 calls, the cache holds nothing"
    )
    told = []
    for pair, call in zip(found.pairs, comparison_json(found)["calls"], strict=True):
        if pair.b is not None and pair.b.breach is not None:
            dearer = (cost_of(pair.b) or 0) > (cost_of(pair.a) or 0)
            line = breach_line(pair.b, pair.a)
            assert ("yet costs more" in line, "pays at once" in line) == (dearer, not dearer)
            assert call["b"]["break_even"]["pays"] is not dearer
            told.append(dearer)
    assert set(told) == {True, False}
