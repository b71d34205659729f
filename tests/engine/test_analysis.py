"""What stored soundings say: variants against chance, costs, traits of winners, and the suggestion that follows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.support import play
from workbench.analysis.soundings import Variant, VariantKey, analysed, suggestion
from workbench.engine.journal.event import Event
from workbench.engine.journal.state import RunState

STEPS = "Think step by step."
BULLETS = "Answer as a list."


def run(number: int, winner: int, outputs: tuple[str, str, str] = ("plain", "1. first\n2. second", "- a")) -> RunState:
    """A run whose phase had a baseline and two augmented candidates."""
    soundings: dict[str, Any] = {
        "factor": 3,
        "max_parallel": 1,
        "mutate": True,
        "mutation_mode": "augment",
        "mutations": [STEPS, BULLETS],
        "evaluator_instructions": "The best.",
    }
    cascade = {"cascade_id": "c", "phases": [{"name": "p", "instructions": "Write.", "soundings": soundings}]}
    verdict = json.dumps({"winner": winner, "scores": {}, "reason": "it is"})
    played = play(cascade, [*outputs, verdict, verdict])
    assert played.outcome.status == "success", played.outcome.reason
    state = played.state
    state.run_id = f"run-{number}"
    return state


def test_a_variant_that_wins_more_often_than_chance_is_suggested_with_its_text() -> None:
    (found,) = analysed([run(number, 2 if number else 1) for number in range(12)])
    assert (found.phase, found.runs, found.rounds) == ("p", 12, 12)
    best = found.best
    assert best is not None
    assert (best.key.words(), best.stood, best.won) == (f"augment: {STEPS}", 12, 11)
    assert best.chance == pytest.approx(4)
    assert suggestion(best) == f"Make this a part of the instructions:\n{STEPS}"
    assert found.to_json()["suggestion"] == suggestion(best)


def test_without_a_clear_winner_nothing_is_suggested() -> None:
    (found,) = analysed([run(number, number % 3 + 1) for number in range(12)])
    assert found.best is None
    assert [variant.won for variant in found.variants] == [4, 4, 4]
    (found,) = analysed([run(number, 1) for number in range(12)])
    assert found.best is None  # The baseline is what the file says already.


def test_a_winner_that_nobody_chose_is_no_evidence() -> None:
    """Evaluations that could not be used let the first stand: twelve of them recommend nothing."""
    decided = [run(number, 2) for number in range(3)]
    (found,) = analysed([*decided, *(run(3 + number, 9) for number in range(12))])
    assert (found.runs, found.rounds, found.undecided) == (3, 3, 12)
    assert [variant.won for variant in found.variants] == [3, 0, 0]
    assert analysed([run(0, 9)]) == []


def test_a_price_that_came_late_is_a_cost_of_its_candidate() -> None:
    state = run(0, 2)
    assert [variant.cost for variant in analysed([state])[0].variants] == [None] * 3
    for number, call in enumerate(call for call in state.calls if not call.beside):
        late = {"digest": call.digest, "cost": 0.25 * (1 + number)}
        state.apply(Event(900 + number, "", state.run_id, "cost_known", call.place, late))
    assert sorted(variant.cost or 0 for variant in analysed([state])[0].variants) == [0.25, 0.5, 0.75]


def test_traits_that_winners_share_are_named_with_their_shares() -> None:
    (found,) = analysed([run(number, 2) for number in range(4)])
    traits = {trait.name: (trait.winners, trait.losers) for trait in found.traits}
    assert traits["numbered steps"] == (1.0, 0.0)
    assert traits["bullets"] == (0.0, 0.5)
    assert traits["the word 'first'"] == (1.0, 0.0)


def test_one_phase_can_be_asked_for() -> None:
    assert analysed([run(0, 1)], "q") == []


@given(st.integers(1, 200), st.integers(0, 200))
def test_the_lower_end_is_below_the_share_and_grows_with_the_evidence(stood: int, won: int) -> None:
    won = min(won, stood)
    variant, more = Variant(VariantKey(), stood, won), Variant(VariantKey(), 4 * stood, 4 * won)
    low, high = variant.interval
    assert 0.0 <= low <= won / stood + 1e-9
    assert won / stood - 1e-9 <= high <= 1.0
    assert more.least >= variant.least - 1e-9
