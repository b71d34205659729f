"""How candidates are put before a person, and what is kept of the choice."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.engine.support import Played, play
from tests.engine.test_replay import check_replay
from tests.engine.test_soundings import cascade, evaluation
from workbench.engine.candidates.human_choice import read_reasons
from workbench.engine.candidates.previews import html_text
from workbench.engine.contracts import Answer
from workbench.engine.journal.usage import Usage

OUTPUTS = ("# Lamp\nbright\nlight", "# Lamp\ndark\nlight", "# Lamp\nbright\nlight")


def chosen(answers: list[str], outputs: tuple[str, ...] = OUTPUTS, /, **human_eval: Any) -> Played:
    soundings = {"factor": len(outputs), "max_parallel": 1, "evaluator": "human", "human_eval": human_eval}
    soundings |= {"mutation_mode": "augment", "mutations": ["Be brief."]}
    return play(cascade(soundings), [*outputs, "end"], answers=answers, input={"what": "it"})


def asked(played: Played, of: int = 0) -> dict[str, Any]:
    return dict(played.of_kind("human_asked")[of].data)


def test_candidates_are_shown_with_what_they_are_unless_the_file_hides_it() -> None:
    shown = asked(chosen(["Attempt 1"], show_index=True))["context"]
    assert "(s1 · gpt-4o-mini · 110 tokens · cost unknown · augment: Be brief.)\n# Lamp\ndark" in shown


def test_what_no_provider_states_of_a_candidate_has_the_sign_of_a_prediction_in_the_question() -> None:
    billed = Answer("one", usage=Usage(100, 10), cost=0.06, cost_grade="exact")
    priced = Answer("two", usage=Usage(100, 10), cost=0.06, cost_grade="estimate")
    soundings = {"factor": 2, "max_parallel": 1, "evaluator": "human"}
    played = play(cascade(soundings), [billed, priced, "end"], answers=["Attempt 1"], input={"what": "it"})
    told = re.findall(r"gpt-4o-mini · (\S+) tokens · (\S+)\)", asked(played)["context"])
    assert told == [("110", "$0.0600"), ("110", "~$0.0600")]
    check_replay(played)
    hidden = chosen(["Attempt 1"], show_metadata=False, show_mutations=False, max_preview_length=6)
    assert asked(hidden)["context"].startswith("Candidate 1:\n# Lamp… (19 characters)\n\nCandidate 2:\n# Lamp…")
    assert asked(hidden)["shown"] == {"hidden": ["metadata", "mutations"], "limit": 6}


def test_a_diff_shows_what_differs_from_the_first() -> None:
    context = asked(chosen(["Attempt 2"], presentation="diff", show_metadata=False, show_mutations=False))["context"]
    second, third = context.split("Candidate 2:\n")[1].split("Candidate 3:\n")
    assert "-bright\n+dark" in second
    assert third == "(the same as the first)"
    short = chosen(["Attempt 2"], presentation="diff", show_metadata=False, show_mutations=False, max_preview_length=6)
    assert asked(short)["context"].split("Candidate 2:\n")[1].split("Candidate 3:\n")[0].strip() == (
        "--- the first\n+++ candidate 2\n@@ -1 +1 @@\n-# Lamp… (19 characters)\n+# Lamp… (17 characters)"
    )


@pytest.mark.parametrize("presentation", ["tabbed", "carousel"])
def test_a_presentation_is_journaled_for_the_screen_that_draws_it(presentation: str) -> None:
    played = chosen(["Attempt 2"], presentation=presentation, preview_render="markdown")
    assert asked(played)["shown"] == {"presentation": presentation, "render": "markdown"}


def test_a_tournament_asks_pair_by_pair_whether_it_is_called_presentation_or_mode() -> None:
    played = chosen(["Attempt 2", "Attempt 3"], presentation="tournament")
    assert [asked(played, i)["candidates"] for i in range(2)] == [[0, 1], [1, 2]]
    assert evaluation(played)["winner"] == 2


def test_outputs_are_shown_in_the_form_that_the_file_names() -> None:
    page = "<style>p {color: red}</style><h1>Lamp</h1><p>Bright &amp; light</p>"
    shown = asked(chosen(["1"], (page, "x"), preview_render="html"))["context"]
    assert "Lamp\n\nBright & light" in shown
    fenced = "Here:\n```python\nx = 1\n```\nDone."
    code = asked(chosen(["1"], (fenced, "x"), preview_render="code", show_metadata=False))["context"]
    assert code.startswith("Candidate 1:\nx = 1\n\nCandidate 2:")
    assert html_text("<script>alert(1)</script>plain") == "plain"
    assert html_text("<!DOCTYPE html><!-- a<b -->1 < 2 &amp; <b title='x'>so</b> <P>on") == "1 < 2 & so\non"
    for never_closed in ("<a ", '<a b="', "<!--", "<!", "</a", "<![CDATA["):
        assert html_text("so " + never_closed * 100_000).startswith("so")


def test_reasons_against_the_others_are_asked_for_once_and_kept() -> None:
    played = chosen(["Attempt 2: dark", "1: too bright; s2: the same"], capture_rejected_reasons=True)
    assert asked(played, 1)["question"].startswith("Why not 1 (s0), 3 (s2)? One reason for all, or one for each: s0: …")
    assert evaluation(played)["rejected"] == {"0": "too bright", "2": "the same"}
    assert (evaluation(played)["offered"], evaluation(played)["reason"]) == ([0, 1, 2], "dark")
    check_replay(played)
    alone = {"llm_prefilter": 1, "evaluator": "hybrid", "human_eval": {"capture_rejected_reasons": True}}
    verdict = '{"winner": 1, "scores": {"1": 9, "2": 5}}'
    one = play(cascade({"factor": 2, "max_parallel": 1, **alone}), ["a", "b", verdict, "end"], answers=["1"])
    assert (one.outcome.status, len(one.of_kind("human_asked"))) == ("success", 1)
    assert read_reasons("none of them is dark", [0, 2]) == {0: "none of them is dark", 2: "none of them is dark"}


def test_all_can_be_rejected_only_where_the_file_allows_it() -> None:
    assert chosen(["reject all"]).outcome.status == "failed"
    played = chosen(["reject all", "Attempt 1"], allow_reject_all=False)
    assert played.outcome.status == "success"
    assert "reject all" not in asked(played)["options"]


def test_a_choice_that_is_not_for_training_says_so() -> None:
    assert "untold" not in evaluation(chosen(["1"]))
    assert evaluation(chosen(["1"], capture_for_training=False))["untold"] is True
