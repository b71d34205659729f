"""A call that does not fit into the model's context window has that as a problem, wherever it is predicted."""

from __future__ import annotations

import pytest

from tests.engine.support import FlatPrices, Words, play
from tests.engine.test_calibration import growing
from workbench.analysis.compare import under
from workbench.context.strategy import parse
from workbench.engine.contracts import Answer
from workbench.engine.forecasting import Forecaster, added_by_provider
from workbench.engine.journal.parts import WINDOW
from workbench.engine.journal.usage import Usage

LONG = {"cascade_id": "c", "phases": [{"name": "p", "instructions": "word " * 300}]}


class Small(FlatPrices):
    """A model that takes 200 tokens."""

    def window(self, model: str) -> int | None:
        return 200


def test_a_request_beyond_the_window_is_a_problem_of_its_call() -> None:
    (assembly,) = growing(1)
    found = Forecaster("m", Words(), FlatPrices()).predict(assembly, 0.0)
    assert (found.beyond, found.problems) == ("", ())
    small = Forecaster("m", Words(), Small()).predict(assembly, 0.0)
    assert assembly.tokens_sent * 0.8 < 200, "it may fit, by the range of the encoding: then nothing is said"
    assert small.problems == ()


def test_what_cannot_fit_is_said_in_a_what_if() -> None:
    run = play(LONG, [Answer("done")])
    shown = under("s", run.state, run.definition, parse("snowball"), Words(), Small())
    (seen,) = shown.seen
    (broken,) = seen.problems
    assert broken.invariant == WINDOW
    assert broken.message.endswith("input tokens do not fit into the model's context window of 200")
    assert shown.totals.broken == 1


@pytest.mark.parametrize("answered", [None, 400])
def test_a_model_that_answered_such_a_request_has_a_larger_window(answered: int | None) -> None:
    run = play(LONG, [Answer("done", usage=Usage(answered, 1) if answered else Usage())])
    shown = under("s", run.state, run.definition, parse("snowball"), Words(), Small())
    assert bool(shown.seen[0].problems) == (answered is None)


def test_what_a_provider_adds_to_a_live_request_is_named_and_opens_its_interval() -> None:
    asked = {**LONG, "parameters": {"extra_body": {"plugins": [{"id": "web"}]}}}
    (plain,), (added,) = (play(body, [Answer("done")]).state.calls for body in (LONG, asked))
    assert plain.unstated == ""
    assert added.unstated == "the provider adds to the request, or leaves out: plugins"
    assert added.forecast is not None
    assert added.forecast.high is None


def test_a_model_that_runs_tools_at_its_provider_has_an_open_interval() -> None:
    assert added_by_provider("groq/compound-mini", {}).endswith("the model groq/compound-mini")
    assert added_by_provider("groq/llama-3.3-70b-versatile", {}) == ""


def test_the_calls_of_a_branch_begin_with_what_the_main_line_knew_and_learn_apart() -> None:
    first, second, third = growing(3)
    main = Forecaster("m", Words(), FlatPrices())
    main.sent(first, 0.0)
    main.answered(first, Usage(9_000, 1), first.request.messages[0])
    branch = main.branched()
    known = branch.predict(second, 1.0).forecast.tokens
    assert known == main.predict(second, 1.0).forecast.tokens
    assert known is not None
    assert known > 9_000
    branch.answered(second, Usage(20_000, 1), second.request.messages[0])
    assert main.predict(third, 2.0).forecast.tokens != branch.predict(third, 2.0).forecast.tokens
