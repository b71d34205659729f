"""Predicted beside reported: what was said before a call, what the provider counted, and by how much they differ."""

from __future__ import annotations

import pytest

from tests.engine.support import play
from workbench.analysis.prediction import CallInput, PredictedUsage, Residual
from workbench.context.assembly import Grade
from workbench.context.cache import Forecast
from workbench.context.place import Place
from workbench.engine.contracts import Answer
from workbench.engine.journal.parts import CallState
from workbench.engine.journal.usage import Usage
from workbench.views.run import off_by, parts

PRICES = {"input": 1e-6, "output": 2e-6, "cache_read": 1e-7, "cache_write": None}


def call(**more: object) -> CallState:
    made = CallState(Place("", "p", 1, 1, 2, 1), 1, tokens_sent=2000, grade=Grade.ESTIMATE, prices=PRICES)
    made.forecast = Forecast(1024, 976, 0, 1024 * 1e-7 + 976 * 1e-6, 1, "")
    for name, value in more.items():
        setattr(made, name, value)
    return made


def test_an_estimate_is_scaled_by_what_the_call_before_was_off() -> None:
    predicted = PredictedUsage.of(call(grade=Grade.CALIBRATED, scale=1.1))
    assert (predicted.tokens, predicted.cached, predicted.scale) == (2200, 1126, 1.1)
    assert predicted.cost == pytest.approx(1.1 * (1024 * 1e-7 + 976 * 1e-6))


def test_what_there_is_in_all_is_what_is_sent_with_what_was_saved() -> None:
    one = call(grade=Grade.CALIBRATED, scale=1.1, tokens_full=2500)
    assert CallInput.of(one) == (2200, 2700, Grade.CALIBRATED, 1126, 2200 - 1126, Grade.ESTIMATE)
    one.usage = Usage(2400, 10, 1024)
    assert CallInput.of(one) == (2400, 2900, Grade.EXACT, 1024, 2400 - 1024, Grade.EXACT)


def test_an_exact_count_is_never_scaled() -> None:
    predicted = PredictedUsage.of(call(grade=Grade.EXACT, scale=1.1))
    assert (predicted.tokens, predicted.scale) == (2000, None)


def test_the_residual_is_reported_less_predicted_with_the_cost_at_the_same_prices() -> None:
    found = Residual.of(call(usage=Usage(2100, 50, 1280, 0)))
    assert found is not None
    assert found.share == pytest.approx(0.05)
    assert found.cost == pytest.approx(1280 * 1e-7 + 820 * 1e-6)
    said = list(parts(found))
    assert said[:2] == ["in ~2,000 → 2,100 +5.0%", "cached ~1,024 → 1,280 +256"]


def test_what_the_provider_does_not_say_stays_unknown() -> None:
    assert Residual.of(call()) is None
    found = Residual.of(call(usage=Usage(2000, 50)))
    assert found is not None
    assert (found.cached, found.cost, off_by(found.share)) == (None, None, "exact")
    assert "cached ~1,024 → not said" in list(parts(found))


def test_the_prices_of_a_prediction_are_journaled_with_it() -> None:
    phase = {"name": "p", "instructions": "Write."}
    answer = Answer("done", usage=Usage(40, 4, 0))
    played = play({"cascade_id": "c", "phases": [phase]}, [answer])
    (one,) = played.state.calls
    assert one.prices == {"input": 1e-6, "output": 2e-6, "cache_read": 1e-7, "cache_write": None}
    found = Residual.of(one)
    assert found is not None
    assert found.cost == pytest.approx(40 * 1e-6)
